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
from ..device_state import GraphMemory
from ..executables import Executable, steps_of
from ..graphs import Graph, References
from ..node_kind import NodeKind, Run
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..streams import Stream
from ..timeline.concurrent_accesses import ConcurrentAccesses
from ..timeline.operation import Operation
from ..timeline.timeline import Timeline
from .call import call
from .stream import StreamCalls
from .user_object import UserObjectCalls

_AUTO_FREE: Final = 1
# Also device launch and node priorities, which need nothing more; uploading takes parameters.
_FLAGS: Final = (0, 1, 4, 8, 9, 12, 13)


class GraphCalls(StreamCalls, UserObjectCalls):
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
            if graph.executables and (graph.memory or graph.has_conditions):
                raise Refusal(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED,
                    "a graph that allocates memory, or has conditional nodes, can have one "
                    "executable at a time",
                )
            if graph.is_body:
                raise invalid_value("a body of a conditional node cannot be instantiated")
            steps = steps_of(graph)
            refuse_bodies(graph)
            executable = Executable(
                next(self._handles),
                graph,
                bool(flags & _AUTO_FREE),
                self._retain(graph.references()),
                steps,
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
            executable.user_objects = self._retain(graph.references())
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
        timeline = self._timeline
        if timeline is not None:
            self._launch_later(timeline, executable, stream, in_flight)
            return OK
        try:
            runs = self._timed(executable, stream, [s.running() for s in executable.steps])
            self._queued.execute(stream, partial(executable.launch, runs))
        finally:
            self._release(in_flight)
        return OK

    def _timed(self, executable: Executable, stream: Stream, runs: list[Run]) -> list[Run]:
        """What is to run in the place of the nodes' functions, where accesses are compared."""
        accesses = self._accesses
        if accesses is None:
            return runs
        for at, step in enumerate(executable.steps):
            if step.work.memory is not None:
                runs[at] = partial(_noted, accesses, step.work.memory, step.kind, runs[at])
        return accesses.timed_graph(executable, stream, runs, self._events)

    def _launch_later(
        self, timeline: Timeline, executable: Executable, stream: Stream, in_flight: References
    ) -> None:
        """Queue the nodes, after the executable's launch before this one."""
        try:
            executable.prepare()
        except Refusal:
            self._release(in_flight)
            raise
        allocated = executable.memory
        for memory in allocated:
            memory.retain()
        for step in executable.steps:
            if step.work.memory is not None and step.kind is NodeKind.ALLOC:
                step.work.memory.mark_live()
            elif step.work.memory is not None:
                step.work.memory.live = False

        def end() -> None:
            for memory in allocated:
                memory.release()
            self._release(in_flight)

        runs = self._timed(executable, stream, [s.running(is_late=True) for s in executable.steps])

        def add_steps(add: Callable[..., Operation]) -> None:
            added: list[Operation] = []
            for step in executable.steps:
                before = [added[number] for number in sorted(step.after)]
                event = self._events.get(step.work.event)
                if event is not None and step.kind is NodeKind.WAIT and event.operation is not None:
                    before.append(event.operation)
                added.append(add(step.kind, runs[len(added)], tuple(before), step.work.host))
                if event is not None and step.kind is NodeKind.RECORD:
                    event.capture, event.tip, event.operation = None, frozenset(), added[-1]

        executable.last = timeline.submit_together(
            stream,
            add_steps,
            () if executable.last is None else (executable.last,),
            end,
            executable.begin,
        )

    @call()
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]:
        """Destroy the graph; its executables live on."""
        with self._lock:
            graph = self._graph(h_graph)
            if graph.is_body:
                raise invalid_value("a body of a conditional node goes with the node")
            if graph.is_child:
                raise invalid_value("the child graph of a node goes with the node")
            self._forget(graph)
            references = graph.references()
        graph.close()
        self._release(references)
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
        count = len(graph.nodes)
        if num_nodes <= 0:
            return SUCCESS, [], count
        found = [self._handle_of(node) for node in graph.nodes[:num_nodes]]
        return SUCCESS, found + [CUgraphNode(0)] * (num_nodes - len(found)), len(found)

    def _forget(self, graph: Graph) -> None:
        """Take the handles away of a graph, of what is in it, and of its nodes."""
        for part in graph.parts():
            self._graphs.pop(part.handle, None)
            for node in part.nodes:
                self._nodes.pop(node.handle, None)

    def _executable(self, handle: CUgraphExec) -> Executable:
        executable = self._executables.get(int(handle))
        if executable is None:
            raise invalid_value(f"{int(handle):#x} is no live executable graph")
        return executable


def _noted(accesses: ConcurrentAccesses, memory: GraphMemory, kind: NodeKind, run: Run) -> None:
    """Allocate or free memory of a graph, and say so."""
    run()
    accesses.in_graph(memory.piece.address, memory.nbytes, allocates=kind is NodeKind.ALLOC)


_IN_BODIES: Final = frozenset(
    {
        NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET, NodeKind.CHILD, NodeKind.EMPTY,
        NodeKind.CONDITIONAL,
    }
)  # fmt: skip


def refuse_bodies(graph: Graph) -> None:
    """Refuse bodies of conditional nodes with what they cannot have.

    CUDA Programming Guide, "Conditional Node Body Graph Requirements".
    """
    for part in graph.parts():
        for node in part.nodes:
            for body in node.work.bodies:
                for inner in (each for inside in body.parts() for each in inside.nodes):
                    if inner.kind not in _IN_BODIES:
                        raise Refusal(
                            CUresult.CUDA_ERROR_NOT_SUPPORTED,
                            f"a {inner.kind.value} cannot be in a body of a conditional node",
                        )
