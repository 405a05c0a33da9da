"""The driver's functions of graphs, and of what they keep alive."""

from __future__ import annotations

from typing import Protocol

from .._api import (
    CUcontext,
    CUgraph,
    CUgraphConditionalHandle,
    CUgraphEdgeData,
    CUgraphExec,
    CUgraphExecUpdateResultInfo,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUresult,
    CUstream,
    CUuserObject,
)


class GraphFunctions(Protocol):
    """Functions of graphs, and of what they keep alive."""

    def cuGraphInstantiate(
        self, h_graph: CUgraph, flags: int, /
    ) -> tuple[CUresult, CUgraphExec]: ...
    def cuGraphExecUpdate(
        self, h_graph_exec: CUgraphExec, h_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphExecUpdateResultInfo]: ...
    def cuGraphLaunch(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]: ...
    def cuGraphExecDestroy(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult]: ...
    def cuGraphGetNodes(
        self, h_graph: CUgraph, num_nodes: int, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]: ...
    def cuGraphCreate(self, flags: int, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphClone(self, original_graph: CUgraph, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphAddNode(
        self,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult, CUgraphNode]: ...
    def cuGraphNodeSetParams(
        self, h_node: CUgraphNode, node_params: CUgraphNodeParams | None, /
    ) -> tuple[CUresult]: ...
    def cuGraphExecNodeSetParams(
        self,
        h_graph_exec: CUgraphExec,
        h_node: CUgraphNode,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphKernelNodeSetAttribute(
        self,
        h_node: CUgraphNode,
        attr: CUkernelNodeAttrID,
        value: CUkernelNodeAttrValue | None,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphConditionalHandleCreate(
        self, h_graph: CUgraph, ctx: CUcontext, default_launch_value: int, flags: int, /
    ) -> tuple[CUresult, CUgraphConditionalHandle]: ...
    def cuGraphDestroyNode(self, h_node: CUgraphNode, /) -> tuple[CUresult]: ...
    def cuGraphAddDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | None,
        to: list[CUgraphNode] | None,
        edge_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphRemoveDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | None,
        to: list[CUgraphNode] | None,
        edge_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphGetEdges(
        self, h_graph: CUgraph, num_edges: int, /
    ) -> tuple[
        CUresult,
        list[CUgraphNode] | None,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]: ...
    def cuGraphNodeGetType(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeType]: ...
    def cuGraphNodeSetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphNodeGetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, /
    ) -> tuple[CUresult, int]: ...
    def cuGraphUpload(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuGraphDebugDotPrint(
        self, h_graph: CUgraph, path: bytes, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphReleaseUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphRetainUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuUserObjectCreate(
        self, ptr: int, destroy: int, initial_refcount: int, flags: int, /
    ) -> tuple[CUresult, CUuserObject]: ...
    def cuUserObjectRelease(self, object: CUuserObject, count: int, /) -> tuple[CUresult]: ...
