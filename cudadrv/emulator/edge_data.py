"""The data of graph edges: only ordinary edges are supported, whose data are zeros.

Another edge lets a node begin before the kernel ahead has ended. The emulator runs the nodes of a
graph one after the other, so it would hide what such an edge allows.

CUDA Driver API: CUgraphEdgeData, CUgraphDependencyType, CU_GRAPH_KERNEL_NODE_PORT_*. What a driver
accepts was measured on an H200 with driver 580.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from ..driver._api import CUgraphEdgeData, CUresult
from .call_error import CallError, invalid_value
from .node_kind import NodeKind

NBYTES: Final = 8
"""sizeof(CUgraphEdgeData): a port of each node, the type, and five bytes that are zeros."""
_PROGRAMMATIC: Final = 1
# What a kernel's dependents wait for: its end, its trigger, the begin of its blocks.
_TRIGGER: Final = 1
_LAUNCH_ORDER: Final = 2


def edge_data_at(address: int, count: int) -> list[CUgraphEdgeData] | None:
    """Return the data of edges at an address of a caller of C; None for the null pointer."""
    if not address:
        return None
    return [CUgraphEdgeData(_ptr=address + number * NBYTES) for number in range(count)]


def reject_edge_data(
    edge_data: Sequence[CUgraphEdgeData] | None, number: int, *kinds: NodeKind
) -> None:
    """Raise unless an edge is an ordinary one.

    Args:
        edge_data: those of all edges of a call; None where all are ordinary.
        number: the edge.
        kinds: those of the first node, and of the second one if it exists already.

    Raises:
        CallError: INVALID_VALUE as of a driver; NOT_SUPPORTED for another edge that it has.
    """
    if has_other_edge(edge_data, number, *kinds):
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            "the emulator has ordinary edges alone: nodes of its graphs run one after the other",
        )


def has_other_edge(
    edge_data: Sequence[CUgraphEdgeData] | None, number: int, *kinds: NodeKind
) -> bool:
    """Return whether a driver has such an edge, which is no ordinary one.

    Raises:
        CallError: INVALID_VALUE; a driver has no such edge.
    """
    if edge_data is None:
        return False
    if number >= len(edge_data):
        raise invalid_value("the data of fewer edges are given than their number says")
    content = ctypes.string_at(edge_data[number].getPtr(), NBYTES)
    if not any(content):
        return False
    from_port, to_port, kind, *reserved = content
    if kinds[0] is NodeKind.KERNEL and not to_port and not any(reserved):
        if kind == _PROGRAMMATIC:
            are_kernels = all(node is NodeKind.KERNEL for node in kinds)
            if are_kernels and from_port in (_TRIGGER, _LAUNCH_ORDER):
                return True
        elif not kind and from_port == _LAUNCH_ORDER:
            return True
    raise invalid_value(
        f"an edge of type {kind} from port {from_port} to port {to_port}: an ordinary edge has "
        "zeros, one from port 2 of a kernel has type 0 or 1, and a programmatic one (type 1) leads "
        "from port 1 or 2 of a kernel to port 0 of another one"
    )
