"""The data of graph edges, in every call that takes them, of Python and of C.

The oracle: zeros and no data are an ordinary edge. The emulator does not have a programmatic edge
from a port of a kernel to another kernel, nor an ordinary one from port 2 of a kernel. All others
are edges of no driver. An edge is removed whichever valid data are given. An H200 with driver 580
has given these codes for all combinations of two nodes.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest

from cudadrv.driver._api import (
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUresult,
    CUstream,
)
from cudadrv.driver.functions import forms
from cudadrv.emulator import Emulator
from cudadrv.emulator.shared_libraries.signature import signature

from .calls import code, ok
from .handles import RELAXED, a_function, a_stream, params as empty

FORMS: Final = {form.symbol: signature(form) for form in forms()}
NOT_SUPPORTED: Final = int(CUresult.CUDA_ERROR_NOT_SUPPORTED)
INVALID: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)
# The bytes of CUgraphEdgeData: from a port, to a port, type, zeros.
Data: TypeAlias = tuple[int, int, int, bytes]
DATA: Final[tuple[Data, ...]] = tuple(
    itertools.product((0, 1, 2, 3, 255), (0, 1, 200), (0, 1, 2, 255), (bytes(5), b"\0\0\0\0\1"))
)


@pytest.fixture
def api(in_either_order: Emulator) -> Emulator:
    return in_either_order


@dataclass
class Place:
    """A graph with two nodes, and a stream that captures into it."""

    api: Emulator
    graph: CUgraph
    first: CUgraphNode
    then: CUgraphNode
    of_then: CUgraphNodeParams
    stream: CUstream


def expected(data: Data | None, *, from_kernel: bool, to_kernel: bool) -> int:
    """What a call answers."""
    if data is None or (*data[:3], any(data[3])) == (0, 0, 0, False):
        return 0
    from_port, to_port, kind, reserved = data
    is_programmatic = kind == 1 and from_port in (1, 2) and not to_port and not any(reserved)
    is_other = (is_programmatic and to_kernel) or (*data[:3], any(reserved)) == (2, 0, 0, False)
    return NOT_SUPPORTED if is_other and from_kernel else INVALID


def edges_of(data: Data | None) -> list[CUgraphEdgeData] | None:
    if data is None:
        return None
    edge = CUgraphEdgeData()
    from_port, to_port, kind, reserved = data
    ctypes.memmove(edge.getPtr(), bytes((from_port, to_port, kind)) + reserved, 8)
    return [edge]


def array_of(*nodes: CUgraphNode) -> ctypes.Array[ctypes.c_size_t]:
    return (ctypes.c_size_t * max(len(nodes), 1))(*[int(node) for node in nodes])


def bytes_of(data: Data | None) -> ctypes.Array[ctypes.c_char] | None:
    return None if data is None else ctypes.create_string_buffer(bytes(data[:3]) + data[3], 8)


def address(memory: ctypes.Array[ctypes.c_char] | None) -> int:
    return 0 if memory is None else ctypes.addressof(memory)


def through_c(api: Emulator, symbol: str, *arguments: int) -> int:
    """Call as callers of C do, with numbers and addresses, which the words of the table read."""
    form = FORMS[symbol]
    given = [(at, each) for at, each in enumerate(form.parameters) if not each.is_result]
    read = [each.read(arguments, at, per_thread=False) for at, each in given]
    return code(getattr(api, form.name)(*read))


def add_edge(p: Place, data: Data | None) -> int:
    return code(p.api.cuGraphAddDependencies(p.graph, [p.first], [p.then], edges_of(data), 1))


def remove_edge(p: Place, data: Data | None) -> int:
    ok(p.api.cuGraphAddDependencies(p.graph, [p.first], [p.then], None, 1))
    return code(p.api.cuGraphRemoveDependencies(p.graph, [p.first], [p.then], edges_of(data), 1))


def add_node(p: Place, data: Data | None) -> int:
    return code(p.api.cuGraphAddNode(p.graph, [p.first], edges_of(data), 1, p.of_then))


def begin_capture(p: Place, data: Data | None) -> int:
    begin = p.api.cuStreamBeginCaptureToGraph
    return code(begin(p.stream, p.graph, [p.first], edges_of(data), 1, RELAXED))


def update_capture(p: Place, data: Data | None) -> int:
    ok(p.api.cuStreamBeginCaptureToGraph(p.stream, p.graph, None, None, 0, RELAXED))
    update = p.api.cuStreamUpdateCaptureDependencies
    return code(update(p.stream, [p.first], edges_of(data), 1, 0))


def add_edge_of_c(p: Place, data: Data | None) -> int:
    first, then, memory = array_of(p.first), array_of(p.then), bytes_of(data)
    ends = ctypes.addressof(first), ctypes.addressof(then)
    return through_c(p.api, "cuGraphAddDependencies_v2", int(p.graph), *ends, address(memory), 1)


def remove_edge_of_c(p: Place, data: Data | None) -> int:
    ok(p.api.cuGraphAddDependencies(p.graph, [p.first], [p.then], None, 1))
    first, then, memory = array_of(p.first), array_of(p.then), bytes_of(data)
    ends = ctypes.addressof(first), ctypes.addressof(then)
    return through_c(p.api, "cuGraphRemoveDependencies_v2", int(p.graph), *ends, address(memory), 1)


def add_node_of_c(p: Place, data: Data | None) -> int:
    first, result, memory = array_of(p.first), array_of(), bytes_of(data)
    places = ctypes.addressof(result), int(p.graph), ctypes.addressof(first), address(memory)
    return through_c(p.api, "cuGraphAddNode_v2", *places, 1, p.of_then.getPtr())


def begin_capture_of_c(p: Place, data: Data | None) -> int:
    first, memory = array_of(p.first), bytes_of(data)
    places = int(p.stream), int(p.graph), ctypes.addressof(first), address(memory)
    return through_c(p.api, "cuStreamBeginCaptureToGraph", *places, 1, int(RELAXED))


def update_capture_of_c(p: Place, data: Data | None) -> int:
    ok(p.api.cuStreamBeginCaptureToGraph(p.stream, p.graph, None, None, 0, RELAXED))
    first, memory = array_of(p.first), bytes_of(data)
    arguments = int(p.stream), ctypes.addressof(first), address(memory), 1, 0
    return through_c(p.api, "cuStreamUpdateCaptureDependencies_v2", *arguments)


# Each call, and whether it knows the second node.
CALLS: Final[dict[Callable[[Place, Data | None], int], bool]] = {
    add_edge: True, remove_edge: True, add_node: True, begin_capture: False,
    update_capture: False, add_edge_of_c: True, remove_edge_of_c: True, add_node_of_c: True,
    begin_capture_of_c: False, update_capture_of_c: False,
}  # fmt: skip


def kernel_params(api: Emulator) -> CUgraphNodeParams:
    found = CUgraphNodeParams()
    found.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    kernel = found.kernel
    kernel.func = a_function(api)
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1
    return found


@pytest.mark.slow
def test_edge_data_are_ordinary_or_rejected_in_every_call(api: Emulator) -> None:
    problems, cells = [], 0
    kinds = {True: kernel_params(api), False: empty()}
    for from_kernel, to_kernel in itertools.product((True, False), repeat=2):
        for each, knows_both in CALLS.items():
            for data in (None, *DATA):
                graph = ok(api.cuGraphCreate(0))
                first, then = (
                    ok(api.cuGraphAddNode(graph, None, None, 0, kinds[is_kernel]))
                    for is_kernel in (from_kernel, to_kernel)
                )
                place = Place(api, graph, first, then, kinds[to_kernel], a_stream(api))
                count = ok(api.cuGraphGetNodes(graph, 9))[1]
                found = each(place, data)
                wanted = expected(
                    data, from_kernel=from_kernel, to_kernel=to_kernel or not knows_both
                )
                if each in (remove_edge, remove_edge_of_c) and wanted == NOT_SUPPORTED:
                    wanted = 0
                cells += 1
                if found != wanted:
                    problems.append(f"{each.__name__} {data} {from_kernel, to_kernel}: {found}")
                added = ok(api.cuGraphGetNodes(graph, 9))[1] - count
                if found and added:
                    problems.append(f"{each.__name__} {data}: a rejected node is in the graph")
                ok(api.cuStreamDestroy(place.stream))
                ok(api.cuGraphDestroy(graph))
    assert not problems, "\n".join(problems)
    assert cells == 4 * 10 * (1 + len(DATA))


def test_fewer_edge_data_than_edges_are_rejected(api: Emulator) -> None:
    graph = ok(api.cuGraphCreate(0))
    nodes = [ok(api.cuGraphAddNode(graph, None, None, 0, empty())) for _ in range(4)]
    ordinary = [CUgraphEdgeData()]
    assert code(api.cuGraphAddNode(graph, nodes[:2], ordinary, 2, empty())) == INVALID
    both = nodes[:2], nodes[2:]
    assert code(api.cuGraphAddDependencies(graph, *both, ordinary, 2)) == INVALID
    ok(api.cuGraphAddDependencies(graph, nodes[1:2], nodes[3:], ordinary, 1))


def test_wrong_data_of_one_edge_add_none(api: Emulator) -> None:
    graph = ok(api.cuGraphCreate(0))
    a, b, c = (ok(api.cuGraphAddNode(graph, None, None, 0, empty())) for _ in range(3))
    wrong = edges_of((7, 0, 0, bytes(5)))
    assert wrong is not None
    data = [CUgraphEdgeData(), *wrong]
    assert code(api.cuGraphAddDependencies(graph, [a, b], [b, c], data, 2)) == INVALID
    assert api.cuGraphGetEdges(graph, 9)[-1] == 0
