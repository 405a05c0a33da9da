"""What graphs are made of: parameters of nodes, what they come after, child graphs, clones.

CUDA Driver API: "Graph Management", cuGraphNodeGetParams and those of single kinds.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, cast

from ...driver._api import (
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUgraphNodeParams,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUresult,
)
from ..graphs import Graph, Node
from ..launch import KernelCall, ShownParameters
from ..modules import NO_CLUSTER, Function
from ..node_kind import NodeKind
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call
from .graph_edit import GraphEditCalls
from .graph_node import CONDITION_TYPES, TYPES

_UNION: Final = 16  # where the parameters of one kind begin in CUgraphNodeParams
_KERNEL: Final = struct.Struct("<Q7I4xQQQQ")  # CUDA_KERNEL_NODE_PARAMS_v3, as far as it is used
_CONDITION: Final = struct.Struct("<QiIQQ")  # CUDA_CONDITIONAL_NODE_PARAMS
_ALLOCATION: Final = struct.Struct("<iiii72xQQQQ")  # CUDA_MEM_ALLOC_NODE_PARAMS_v2
_PINNED, _ON_DEVICE = 1, 1


class _Addressed(Protocol):
    """What every structure of cuda.bindings has."""

    def getPtr(self) -> int: ...


class GraphReadCalls(GraphEditCalls):
    """What graphs are made of."""

    @call(1)
    def cuGraphNodeGetParams(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeParams]:
        """The parameters of a node; what they point to is the node's, until they are changed."""
        node = self._node(h_node)
        found = CUgraphNodeParams()
        found.type = TYPES[node.kind]
        told = self._told_of(node)
        ctypes.memmove(cast(_Addressed, found).getPtr() + _UNION, told, len(told))
        return SUCCESS, found

    @call(3)
    def cuGraphNodeGetDependencies(
        self, h_node: CUgraphNode, num_dependencies: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, list[CUgraphEdgeData] | None, int]:
        """Up to so many nodes that a node comes after, and how many; for 0, only how many."""
        return self._listed(list(self._node(h_node).after), num_dependencies)

    @call(3)
    def cuGraphNodeGetDependentNodes(
        self, h_node: CUgraphNode, num_dependent_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, list[CUgraphEdgeData] | None, int]:
        """Likewise those that come after a node."""
        node = self._node(h_node)
        return self._listed([n for n in node.graph.nodes if node in n.after], num_dependent_nodes)

    @call(2)
    def cuGraphGetRootNodes(
        self, h_graph: CUgraph, num_root_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]:
        """Likewise the nodes that come after none."""
        roots = [node for node in self._graph(h_graph).nodes if not node.after]
        code, found, _, count = self._listed(roots, num_root_nodes)
        return code, found, count

    def _listed(
        self, nodes: Sequence[Node], room: int
    ) -> tuple[CUresult, list[CUgraphNode], list[CUgraphEdgeData], int]:
        if room <= 0:
            return SUCCESS, [], [], len(nodes)
        found = [self._handle_of(node) for node in nodes[:room]]
        return SUCCESS, found, [CUgraphEdgeData() for _ in found], len(found)

    @call(1)
    def cuGraphChildGraphNodeGetGraph(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraph]:
        """The graph of a node that is a child graph; it goes with the node."""
        child = self._node(h_node).work.child
        if child is None:
            raise invalid_value("the node is no child graph")
        return SUCCESS, CUgraph(self._handle_of_child(child))

    def _handle_of_child(self, child: Graph) -> int:
        if not child.handle:
            child.is_child = True
            self._known(child)
        return child.handle

    @call(1)
    def cuGraphNodeFindInClone(
        self, h_original_node: CUgraphNode, h_cloned_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphNode]:
        """The node of a clone that was made of a node of the original."""
        original, clone = self._node(h_original_node), self._graph(h_cloned_graph)
        for part in clone.parts():
            for node in part.nodes:
                if node.original is original:
                    return SUCCESS, self._handle_of(node)
        raise invalid_value("the graph is no clone of the one that the node is of")

    @call(1)
    def cuGraphKernelNodeGetAttribute(
        self, h_node: CUgraphNode, attr: CUkernelNodeAttrID, /
    ) -> tuple[CUresult, CUkernelNodeAttrValue]:
        """Whether a kernel's node launches cooperatively, or its clusters; of others zeros."""
        shape = self._launch_of(self._node(h_node)).shape
        found = CUkernelNodeAttrValue()
        if int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            found.cooperative = int(shape.cooperative)
        elif int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            cluster = (0, 0, 0) if shape.cluster == NO_CLUSTER else shape.cluster
            extents = found.clusterDim
            extents.x, extents.y, extents.z = cluster
        return SUCCESS, found

    @call()
    def cuGraphKernelNodeCopyAttributes(
        self, dst: CUgraphNode, src: CUgraphNode, /
    ) -> tuple[CUresult]:
        """Let a kernel's node launch as another one does."""
        target, given = self._node(dst), self._launch_of(self._node(src)).shape
        launch = self._launch_of(target)
        shape = replace(launch.shape, cooperative=given.cooperative, cluster=given.cluster)
        target.work = self._kernel_work(launch.function, shape, launch.parameters)
        return OK

    @staticmethod
    def _launch_of(node: Node) -> KernelCall:
        if node.work.launch is None:
            raise invalid_value(f"the node is a {node.kind.value}, and no kernel")
        return node.work.launch

    def _told_of(self, node: Node) -> bytes:
        """The structure of its kind.

        Raises:
            Refusal: the emulator does not know it any more.
        """
        work, kind = node.work, node.kind
        if work.launch is not None:
            return self._told_of_kernel(node, work.launch)
        if kind in (NodeKind.RECORD, NodeKind.WAIT):
            return struct.pack("<Q", work.event)
        if work.child is not None:
            return struct.pack("<Q", self._handle_of_child(work.child))
        if work.memory is not None and kind is NodeKind.FREE:
            return struct.pack("<Q", work.memory.piece.address)
        if work.memory is not None:
            memory = work.memory
            place = _PINNED, 0, _ON_DEVICE, memory.device.ordinal
            return _ALLOCATION.pack(*place, 0, 0, memory.nbytes, memory.piece.address)
        condition = work.condition
        if condition is not None:
            bodies = ctypes.addressof(condition.handles) if condition.handles is not None else 0
            assert condition.kind is not None  # its node has said so
            number = CONDITION_TYPES[condition.kind]
            return _CONDITION.pack(condition.handle, number, len(work.bodies), bodies, 0)
        if kind is not NodeKind.EMPTY and not work.told:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"the emulator does not keep the parameters of this {kind.value}",
            )
        return work.told

    def _told_of_kernel(self, node: Node, launch: KernelCall) -> bytes:
        function, shape = launch.function, launch.shape
        if node.shown is None or node.shown.launch is not launch:
            node.shown = ShownParameters(launch)
        return _KERNEL.pack(
            function.handle, *shape.grid, *shape.block, shape.shared_bytes,
            ctypes.addressof(node.shown.pointers), 0, self._kernel_of(function),
            function.module.context.handle,
        )  # fmt: skip

    def _kernel_of(self, function: Function) -> int:
        """The kernel of a library that a function is in its context; 0 if of none."""
        module = function.module
        for kernel in list(self._kernels.values()):
            is_its = kernel.library.modules.get(module.context) is module
            if is_its and kernel.name == function.name:
                return kernel.handle
        return 0
