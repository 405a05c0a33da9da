"""A call of every driver function that builds or changes a graph and takes a handle."""

from __future__ import annotations

import os
from typing import Final

from cudadrv.driver._api import (
    CUcontext,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUresult,
    CUstream,
    CUuserObject,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of

from .calls import ok
from .handles import (
    RELAXED,
    Call,
    a_graph,
    a_kernel_node,
    a_node,
    a_stream,
    a_user_object,
    params,
)

COOPERATIVE: Final = CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE


def capture_into(api: Emulator, stream: CUstream, graph: CUgraph) -> tuple[CUresult, object]:
    """Capture nothing into a graph; the beginning of it is what may be refused."""
    (result,) = api.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, RELAXED)
    return (result, None) if result else api.cuStreamEndCapture(stream)


def update_dependencies(api: Emulator, stream: CUstream) -> tuple[CUresult]:
    """In a capture of the stream, if it may begin one."""
    (result,) = api.cuStreamBeginCapture(stream, RELAXED)
    if result:
        return (result,)
    changed = api.cuStreamUpdateCaptureDependencies(stream, None, None, 0, 1)
    ok(api.cuStreamEndCapture(stream))
    return changed


def edge(api: Emulator, graph: CUgraph, *, removes: bool) -> tuple[CUresult]:
    """An edge between two nodes of a graph, or none where that is dead."""
    code, one = api.cuGraphAddNode(graph, None, None, 0, params())
    if code:
        change = api.cuGraphRemoveDependencies if removes else api.cuGraphAddDependencies
        return change(graph, None, None, None, 0)
    other = ok(api.cuGraphAddNode(graph, None, None, 0, params()))
    added = api.cuGraphAddDependencies(graph, [one], [other], None, 1)
    return api.cuGraphRemoveDependencies(graph, [one], [other], None, 1) if removes else added


def released(api: Emulator, graph: CUgraph, held: CUuserObject) -> tuple[CUresult]:
    """Give a graph a reference, and take it away; or take away, where one of the two is dead."""
    api.cuGraphRetainUserObject(graph, held, 1, 0)
    return api.cuGraphReleaseUserObject(graph, held, 1)


def cooperative(api: Emulator, node: CUgraphNode) -> tuple[CUresult]:
    value = CUkernelNodeAttrValue()
    value.cooperative = 1
    return api.cuGraphKernelNodeSetAttribute(node, COOPERATIVE, value)


def executable_of(api: Emulator, node: CUgraphNode) -> CUgraphExec:
    """An executable of the graph that has a node; of another one where it is dead."""
    code, graph = api.cuGraphNodeGetContainingGraph(node)
    return ok(api.cuGraphInstantiate(a_graph(api) if code else graph, 0))


def with_node(
    api: Emulator, executable: CUgraphExec, node: CUgraphNode, act: str
) -> tuple[CUresult]:
    """Do something with a node of an executable."""
    if act == "set":
        return api.cuGraphExecNodeSetParams(executable, node, params())
    if act == "enable":
        return api.cuGraphNodeSetEnabled(executable, node, 1)
    return api.cuGraphNodeGetEnabled(executable, node)[:1]


def condition(api: Emulator, graph: CUgraph, context: CUcontext) -> tuple[CUresult]:
    return api.cuGraphConditionalHandleCreate(graph, context, 0, 0)[:1]


GRAPH_CALLS: Final[dict[tuple[str, str], tuple[str, Call]]] = {
    ("cuGraphClone", "original_graph"): ("graph", lambda api, h: api.cuGraphClone(h)),
    ("cuGraphAddNode", "h_graph"): (
        "graph", lambda api, h: api.cuGraphAddNode(h, None, None, 0, params())),
    ("cuGraphNodeSetParams", "h_node"): (
        "node", lambda api, h: api.cuGraphNodeSetParams(h, params())),
    ("cuGraphKernelNodeSetAttribute", "h_node"): ("kernel node", cooperative),
    ("cuGraphConditionalHandleCreate", "h_graph"): (
        "graph", lambda api, h: condition(api, h, ok(api.cuCtxGetCurrent()))),
    ("cuGraphConditionalHandleCreate", "ctx"): (
        "context", lambda api, h: condition(api, a_graph(api), h)),
    ("cuGraphDestroyNode", "h_node"): ("node", lambda api, h: api.cuGraphDestroyNode(h)),
    ("cuGraphAddDependencies", "h_graph"): (
        "graph", lambda api, h: edge(api, h, removes=False)),
    ("cuGraphRemoveDependencies", "h_graph"): (
        "graph", lambda api, h: edge(api, h, removes=True)),
    ("cuGraphGetEdges", "h_graph"): ("graph", lambda api, h: api.cuGraphGetEdges(h, 0)),
    ("cuGraphNodeGetType", "h_node"): ("node", lambda api, h: api.cuGraphNodeGetType(h)),
    ("cuGraphNodeGetParams", "h_node"): ("node", lambda api, h: api.cuGraphNodeGetParams(h)),
    ("cuGraphNodeGetDependencies", "h_node"): (
        "node", lambda api, h: api.cuGraphNodeGetDependencies(h, 1)),
    ("cuGraphNodeGetDependentNodes", "h_node"): (
        "node", lambda api, h: api.cuGraphNodeGetDependentNodes(h, 1)),
    ("cuGraphGetRootNodes", "h_graph"): ("graph", lambda api, h: api.cuGraphGetRootNodes(h, 1)),
    ("cuGraphChildGraphNodeGetGraph", "h_node"): (
        "child node", lambda api, h: api.cuGraphChildGraphNodeGetGraph(h)),
    ("cuGraphKernelNodeGetParams", "h_node"): (
        "kernel node", lambda api, h: api.cuGraphKernelNodeGetParams(h)),
    ("cuGraphKernelNodeGetAttribute", "h_node"): (
        "kernel node", lambda api, h: api.cuGraphKernelNodeGetAttribute(h, COOPERATIVE)),
    ("cuGraphKernelNodeCopyAttributes", "dst"): (
        "kernel node", lambda api, h: api.cuGraphKernelNodeCopyAttributes(h, a_kernel_node(api))),
    ("cuGraphKernelNodeCopyAttributes", "src"): (
        "kernel node", lambda api, h: api.cuGraphKernelNodeCopyAttributes(a_kernel_node(api), h)),
    ("cuGraphExecNodeSetParams", "h_node"): (
        "node", lambda api, h: with_node(api, executable_of(api, h), h, "set")),
    ("cuGraphNodeSetEnabled", "h_node"): (
        "kernel node", lambda api, h: with_node(api, executable_of(api, h), h, "enable")),
    ("cuGraphNodeGetEnabled", "h_node"): (
        "kernel node", lambda api, h: with_node(api, executable_of(api, h), h, "ask")),
    ("cuGraphUpload", "h_graph_exec"): (
        "executable", lambda api, h: api.cuGraphUpload(h, a_stream(api))),
    ("cuGraphUpload", "h_stream"): (
        "stream",
        lambda api, h: api.cuGraphUpload(ok(api.cuGraphInstantiate(a_graph(api), 0)), h)),
    ("cuGraphDebugDotPrint", "h_graph"): (
        "graph", lambda api, h: api.cuGraphDebugDotPrint(h, os.devnull.encode(), 0)),
    ("cuGraphReleaseUserObject", "graph"): (
        "graph", lambda api, h: released(api, h, a_user_object(api))),
    ("cuGraphReleaseUserObject", "object"): (
        "user object", lambda api, h: released(api, a_graph(api), h)),
    ("cuStreamBeginCaptureToGraph", "h_stream"): (
        "stream", lambda api, h: capture_into(api, h, a_graph(api))),
    ("cuStreamBeginCaptureToGraph", "h_graph"): (
        "graph", lambda api, h: capture_into(api, a_stream(api), h)),
    ("cuStreamGetCaptureInfo", "h_stream"): (
        "stream", lambda api, h: api.cuStreamGetCaptureInfo(h)),
    ("cuStreamUpdateCaptureDependencies", "h_stream"): ("stream", update_dependencies),
    # Of an executable, the node is of its graph: here it is dead, and so refused before.
    ("cuGraphExecNodeSetParams", "h_graph_exec"): (
        "executable", lambda api, h: node_of_executable(api, h, "set")),
    ("cuGraphNodeSetEnabled", "h_graph_exec"): (
        "kernel executable", lambda api, h: node_of_executable(api, h, "enable")),
    ("cuGraphNodeGetEnabled", "h_graph_exec"): (
        "kernel executable", lambda api, h: node_of_executable(api, h, "ask")),
}  # fmt: skip


def node_of_executable(api: Emulator, executable: CUgraphExec, act: str) -> tuple[CUresult]:
    """Do something with the one node of an executable, if that is not dead."""
    found = state_of(api).handles.executables.get(int(executable))
    node = (
        a_node(api) if found is None else state_of(api).handles.handle_of_node(found.steps[0].node)
    )
    return with_node(api, executable, node, act)
