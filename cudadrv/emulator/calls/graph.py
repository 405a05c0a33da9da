"""Graphs: instantiation, launch and what they hold.

CUDA Driver API: "Graph Management".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ...driver._api import (
    CUgraph,
    CUgraphExec,
    CUgraphExecUpdateResultInfo,
    CUgraphNode,
    CUresult,
    CUstream,
)
from ..executables import Executable
from ..graph_memory import GraphMemory
from ..graphs import NodeKind, Run
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..streams import Stream
from ..timeline.concurrent_accesses import ConcurrentAccesses
from ..timeline.operation import Operation
from ..timeline.queues import Timeline
from ..user_objects import References
from .call import call
from .user_object import UserObjectCalls

_AUTO_FREE: Final = 1
# Also device launch and node priorities, which need nothing more; uploading takes parameters.
_FLAGS: Final = (0, 1, 4, 8, 9, 12, 13)


class GraphCalls(UserObjectCalls):
    """Graphs: instantiation, launch and what they hold."""

    @call(1)
    def cuGraphInstantiate(self, h_graph: CUgraph, flags: int, /) -> tuple[CUresult, CUgraphExec]:
        """An executable of the graph as it is; one at a time if it allocates memory.

        It wants a current context, whichever (measured with driver 580).
        """
        self._graph(h_graph)
        self._current()
        if flags not in _FLAGS:
            raise invalid_value(f"invalid instantiation flags {flags:#x}")
        self._refuse_unsafe()
        with self._lock:
            graph = self._graph(h_graph)
            if graph.memory and graph.executables:
                raise Refusal(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED,
                    "a graph that allocates memory can have one executable at a time",
                )
            executable = Executable(
                next(self._handles),
                graph,
                bool(flags & _AUTO_FREE),
                self._retain(graph.user_objects),
            )
            graph.executables += 1
            self._executables[executable.handle] = executable
        for memory in graph.memory:
            memory.retain()
        return SUCCESS, CUgraphExec(executable.handle)

    @call(1)
    def cuGraphExecUpdate(
        self, h_graph_exec: CUgraphExec, h_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphExecUpdateResultInfo]:
        """Give an executable the parameters of a graph of the same nodes and edges.

        Its references to user objects are then the graph's.
        """
        self._executable(h_graph_exec)
        self._graph(h_graph)
        self._refuse_unsafe()
        with self._lock:
            executable, graph = self._executable(h_graph_exec), self._graph(h_graph)
            why = executable.why_not(graph)
            if why:
                raise Refusal(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, why)
            executable.update(graph)
            former = executable.user_objects
            executable.user_objects = self._retain(graph.user_objects)
        self._release(former)
        return SUCCESS, CUgraphExecUpdateResultInfo()

    @call()
    def cuGraphLaunch(self, h_graph_exec: CUgraphExec, h_stream: CUstream, /) -> tuple[CUresult]:
        """Replay the graph; a capturing stream does not take it (measured).

        Its user objects live until the replay has ended.
        """
        executable = self._executable(h_graph_exec)
        stream = self._stream(h_stream)
        if self._captures:
            self._refuse_if_implicit(stream)
            self._refuse_in_capture(stream)
        with self._lock:
            executable = self._executable(h_graph_exec)
            in_flight = self._retain(executable.user_objects)
        if self._timeline is not None:
            self._launch_later(self._timeline, executable, stream, in_flight)
            return OK
        try:
            executable.launch(
                self._timed(executable, stream, [n.run for n in executable.graph.nodes])
            )
        finally:
            self._release(in_flight)
        return OK

    def _timed(self, executable: Executable, stream: Stream, runs: list[Run]) -> list[Run]:
        """What is to run in the place of the nodes' functions, where accesses are compared."""
        accesses = self._accesses
        if accesses is None:
            return runs
        for at, node in enumerate(executable.graph.nodes):
            if node.memory is not None:
                runs[at] = partial(_noted, accesses, node.memory, node.kind, runs[at])
        return accesses.timed_graph(executable, stream, runs)

    def _launch_later(
        self, timeline: Timeline, executable: Executable, stream: Stream, in_flight: References
    ) -> None:
        """Queue the nodes, after the executable's launch before this one."""
        graph = executable.graph
        try:
            executable.prepare()
        except Refusal:
            self._release(in_flight)
            raise
        for memory in graph.memory:
            memory.retain()
        for node in graph.nodes:
            if node.memory is not None:
                node.memory.live = node.kind is NodeKind.ALLOC

        def end() -> None:
            for memory in graph.memory:
                memory.release()
            self._release(in_flight)

        runs = self._timed(executable, stream, [node.run_later for node in graph.nodes])

        def add_nodes(add: Callable[..., Operation]) -> None:
            added: list[Operation] = []
            for node in graph.nodes:
                before = tuple(added[number] for number in sorted(node.after))
                added.append(add(node.kind, runs[len(added)], before, node.host))

        executable.last = timeline.submit_together(
            stream, add_nodes, () if executable.last is None else (executable.last,), end
        )

    @call()
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]:
        """Destroy the graph; its executables live on."""
        with self._lock:
            graph = self._graph(h_graph)
            del self._graphs[graph.handle]
        graph.close()
        self._release(graph.user_objects)
        return OK

    @call()
    def cuGraphExecDestroy(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult]:
        """Destroy an executable."""
        self._executable(h_graph_exec)
        self._refuse_unsafe()
        with self._lock:
            executable = self._executable(h_graph_exec)
            del self._executables[executable.handle]
            executable.graph.executables -= 1
        executable.close()
        self._release(executable.user_objects)
        return OK

    @call(2)
    def cuGraphGetNodes(
        self, h_graph: CUgraph, num_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]:
        """Up to `num_nodes` nodes, filled up with null ones, and how many; for 0, only how many."""
        graph = self._graph(h_graph)
        if not graph.node_handles:
            graph.node_handles = [next(self._handles) for _ in graph.nodes]
        count = len(graph.nodes)
        if num_nodes <= 0:
            return SUCCESS, [], count
        handles = graph.node_handles[:num_nodes]
        padding = [0] * (num_nodes - len(handles))
        return SUCCESS, [CUgraphNode(h) for h in handles + padding], len(handles)

    def _executable(self, handle: CUgraphExec) -> Executable:
        executable = self._executables.get(int(handle))
        if executable is None:
            raise invalid_value(f"{int(handle):#x} is no live executable graph")
        return executable


def _noted(accesses: ConcurrentAccesses, memory: GraphMemory, kind: NodeKind, run: Run) -> None:
    """Allocate or free memory of a graph, and say so."""
    run()
    accesses.in_graph(memory.piece.address, memory.nbytes, allocates=kind is NodeKind.ALLOC)
