"""Graphs: creating, copying, launching and destroying them, their references and memory.

CUDA Driver API: "Graph Management"; CUDA Programming Guide, "CUDA User Objects". The codes of user
objects were measured with driver 580 on an H200. Undefined uses are rejected here: releasing or
moving references that the caller does not have, and using a destroyed object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ...driver._api import (
    CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUdevice,
    CUgraph,
    CUgraphExec,
    CUgraphExecUpdateResultInfo,
    CUgraphInstantiateResult,
    CUgraphNode,
    CUresult,
    CUstream,
    CUuserObject,
    cuuint64_t,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from ..device_state import GraphAllocation
from ..driver_state import DriverState
from ..graphs import Graph, Node, References, UserObject
from ..node_kind import NodeKind, Run
from ..streams import Stream
from ..timeline.queues import QueuedOperation
from ..timeline.timeline import Timeline
from .call import DriverCalls, call

if TYPE_CHECKING:
    from ..executables import Executable
    from ..timeline.concurrent_accesses import ConcurrentAccesses

_AUTO_FREE, _UPLOAD, _DEVICE_LAUNCH = 1, 2, 4
# Also device launch and node priorities, which need no extra work; uploading takes parameters.
_INSTANTIATION_FLAGS: Final = (0, 1, 4, 8, 9, 12, 13)
_IN_BODIES: Final = frozenset(
    {
        NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET, NodeKind.CHILD, NodeKind.EMPTY,
        NodeKind.CONDITIONAL,
    }
)  # fmt: skip
_NO_DESTRUCTOR_SYNC: Final = 1
_MOVE: Final = 1
_DOT_HANDLES: Final = 1 << 10  # CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES
_INT_MAX: Final = (1 << 31) - 1
_USED, _USED_HIGH, _RESERVED, _RESERVED_HIGH = range(4)  # CUgraphMem_attribute
UNCOPIED: Final = frozenset({NodeKind.ALLOC, NodeKind.FREE, NodeKind.CONDITIONAL})


_ON_DEVICE: Final = frozenset({NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET, NodeKind.CHILD})
_Result = CUgraphInstantiateResult
_NODE_NOT_SUPPORTED: Final = _Result.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED


class _UnsupportedNodeError(CallError):
    """A node keeps a graph from being instantiated.

    Attributes:
        node: the node.
    """

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(CUresult.CUDA_ERROR_NOT_SUPPORTED, f"a {node.kind.value} {why}")
        self.node = node


_UPDATABLE: Final = "the graph has nodes that kernels update"


class GraphCalls(DriverCalls):
    """Graphs, their executables and their user objects."""

    @call
    def cuGraphInstantiate(self, h_graph: CUgraph, flags: int, /) -> tuple[CUresult, CUgraphExec]:
        """Make an executable of the present graph; only one at a time if it allocates memory.

        It requires any current context (measured with driver 580).
        """
        return SUCCESS, self._instantiate(h_graph, flags)

    @call
    def cuGraphInstantiateWithParams(
        self, h_graph: CUgraph, instantiate_params: CUDA_GRAPH_INSTANTIATE_PARAMS | None, /
    ) -> tuple[CUresult, CUgraphExec]:
        """Make an executable, and upload it; the parameters receive why and where that failed."""
        if instantiate_params is None:
            raise invalid_value("the parameters of the instantiation are null")
        flags = int(instantiate_params.flags)
        instantiate_params.hErrNode_out = CUgraphNode(0)
        instantiate_params.result_out = _Result.CUDA_GRAPH_INSTANTIATE_ERROR
        if flags & _UPLOAD:
            upload = instantiate_params.hUploadStream
            self._state.handles.stream(upload if int(upload) else self._state.thread.default_stream)
        try:
            executable = self._instantiate(h_graph, flags & ~_UPLOAD)
        except _UnsupportedNodeError as error:
            instantiate_params.hErrNode_out = self._state.handles.handle_of_node(error.node)
            instantiate_params.result_out = _NODE_NOT_SUPPORTED
            raise
        instantiate_params.result_out = _Result.CUDA_GRAPH_INSTANTIATE_SUCCESS
        return SUCCESS, executable

    def _instantiate(self, h_graph: CUgraph, flags: int) -> CUgraphExec:
        # With the first executable. No lock may be held: a finalizer in an import could want it.
        from ..executables import Executable, steps_of

        self._state.handles.graph(h_graph)
        self._state.handles.current()
        if flags not in _INSTANTIATION_FLAGS:
            raise invalid_value(f"invalid instantiation flags {flags:#x}")
        self._state.captures.reject_unsafe()
        with self._state.lock:
            graph = self._state.handles.graph(h_graph)
            if graph.executables and (graph.memory or graph.has_conditions or graph.is_updatable):
                raise CallError(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED,
                    "a graph that allocates memory, or has conditional nodes or nodes that "
                    "kernels update, can have one executable at a time",
                )
            if graph.is_body:
                raise invalid_value("a body of a conditional node cannot be instantiated")
            steps = steps_of(graph)
            check_bodies(graph)
            if flags & _DEVICE_LAUNCH:
                _reject_host_work(graph)
            executable = Executable(
                self._state.handles.new(),
                graph,
                bool(flags & _AUTO_FREE),
                retain(graph.references()),
                steps,
            )
            graph.executables += 1
            self._state.handles.executables[executable.handle] = executable
        for memory in graph.memory:
            memory.retain()
        return CUgraphExec(executable.handle)

    @call
    def cuGraphExecUpdate(
        self, h_graph_exec: CUgraphExec, h_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphExecUpdateResultInfo]:
        """Update an executable with the parameters of a graph of the same nodes and edges.

        It then has the graph's references to user objects.
        """
        self._state.handles.executable(h_graph_exec)
        self._state.handles.graph(h_graph)
        self._state.captures.reject_unsafe()
        with self._state.lock:
            executable, graph = (
                self._state.handles.executable(h_graph_exec),
                self._state.handles.graph(h_graph),
            )
            if graph.is_updatable or executable.graph.is_updatable:
                raise CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, _UPDATABLE)
            why = executable.why_not(graph)
            if why is not None:
                raise CallError(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, why.text)
            executable.update(graph)
            former = executable.user_objects
            executable.user_objects = retain(graph.references())
        release(self._state, former)
        return SUCCESS, CUgraphExecUpdateResultInfo()

    @call
    def cuGraphLaunch(self, h_graph_exec: CUgraphExec, h_stream: CUstream, /) -> tuple[CUresult]:
        """Replay the graph; a capturing stream is rejected (measured).

        Its user objects live until the replay has ended.
        """
        executable = self._state.handles.executable(h_graph_exec)
        stream = self._state.handles.stream(h_stream)
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
            self._state.captures.reject_if_capturing(stream)
        with self._state.lock:
            executable = self._state.handles.executable(h_graph_exec)
            in_flight = retain(executable.user_objects)
        timeline = self._state.operations.timeline
        if timeline is not None:
            self._launch_later(timeline, executable, stream, in_flight)
            return OK
        try:
            runs = self._timed(executable, stream, [s.running() for s in executable.steps])
            self._state.operations.queue.execute(stream, partial(executable.launch, runs))
        finally:
            release(self._state, in_flight)
        return OK

    def _timed(self, executable: Executable, stream: Stream, runs: list[Run]) -> list[Run]:
        """Wrap the nodes' functions so that their accesses are compared, if that is checked."""
        accesses = self._state.operations.accesses
        if accesses is None:
            return runs
        for index, step in enumerate(executable.steps):
            if step.work.memory is not None:
                runs[index] = partial(
                    _run_recorded, accesses, step.work.memory, step.kind, runs[index]
                )
        return accesses.timed_graph(executable, stream, runs, self._state.handles.events)

    def _launch_later(
        self, timeline: Timeline, executable: Executable, stream: Stream, in_flight: References
    ) -> None:
        """Queue the nodes, after the executable's previous launch."""
        try:
            executable.prepare()
        except CallError:
            release(self._state, in_flight)
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
            release(self._state, in_flight)

        runs = self._timed(executable, stream, [s.running(is_late=True) for s in executable.steps])

        def add_steps(add: Callable[..., QueuedOperation]) -> None:
            added: list[QueuedOperation] = []
            for step in executable.steps:
                dependencies = [added[number] for number in sorted(step.after)]
                event = self._state.handles.events.get(step.work.event)
                if event is not None and step.kind is NodeKind.WAIT and event.operation is not None:
                    dependencies.append(event.operation)
                added.append(add(step.kind, runs[len(added)], tuple(dependencies), step.work.host))
                if event is not None and step.kind is NodeKind.RECORD:
                    event.capture, event.tip, event.operation = None, frozenset(), added[-1]

        executable.last = timeline.submit_together(
            stream,
            add_steps,
            () if executable.last is None else (executable.last,),
            end,
            executable.begin,
        )

    @call
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]:
        """Destroy the graph; its executables live on."""
        with self._state.lock:
            graph = self._state.handles.graph(h_graph)
            if graph.is_body:
                raise invalid_value("a body of a conditional node goes with the node")
            if graph.is_child:
                raise invalid_value("the child graph of a node goes with the node")
            forget_graph(self._state, graph)
            references = graph.references()
        graph.close()
        release(self._state, references)
        return OK

    @call
    def cuGraphExecDestroy(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult]:
        """Destroy an executable."""
        self._state.handles.executable(h_graph_exec)
        self._state.captures.reject_unsafe()
        with self._state.lock:
            executable = self._state.handles.executable(h_graph_exec)
            del self._state.handles.executables[executable.handle]
            executable.graph.executables -= 1
        executable.close()
        release(self._state, executable.user_objects)
        return OK

    @call
    def cuGraphGetNodes(
        self, h_graph: CUgraph, num_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]:
        """Return up to `num_nodes` nodes, padded with nulls, and their number; for 0, only that."""
        graph = self._state.handles.graph(h_graph)
        count = len(graph.nodes)
        if num_nodes <= 0:
            return SUCCESS, [], count
        handles = [self._state.handles.handle_of_node(node) for node in graph.nodes[:num_nodes]]
        return SUCCESS, handles + [CUgraphNode(0)] * (num_nodes - len(handles)), len(handles)

    @call
    def cuGraphGetId(self, h_graph: CUgraph, /) -> tuple[CUresult, int]:
        """Return a number that no other graph has."""
        return SUCCESS, self._state.handles.graph(h_graph).number

    @call
    def cuGraphExecGetId(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult, int]:
        """Return a number that no other executable has."""
        return SUCCESS, self._state.handles.executable(h_graph_exec).number

    @call
    def cuGraphNodeGetLocalId(self, h_node: CUgraphNode, /) -> tuple[CUresult, int]:
        """Return a number that no other node of the graph has."""
        return SUCCESS, self._state.handles.node(h_node).number

    @call
    def cuGraphNodeGetToolsId(self, h_node: CUgraphNode, /) -> tuple[CUresult, int]:
        """Return a number that no other node of any graph has."""
        node = self._state.handles.node(h_node)
        return SUCCESS, node.graph.number << 32 | node.number

    @call
    def cuGraphNodeGetContainingGraph(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraph]:
        """Return the graph of a node."""
        return SUCCESS, self._state.handles.handle_of_graph(self._state.handles.node(h_node).graph)

    @call
    def cuGraphCreate(self, flags: int, /) -> tuple[CUresult, CUgraph]:
        """Create an empty graph."""
        if flags:
            raise invalid_value(f"a graph is made with flags 0, not {flags:#x}")
        return SUCCESS, self._state.handles.handle_of_graph(Graph())

    @call
    def cuGraphClone(self, original_graph: CUgraph, /) -> tuple[CUresult, CUgraph]:
        """Copy a graph, with copies of its child graphs."""
        graph = self._state.handles.graph(original_graph)
        if graph.is_updatable:
            raise CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, _UPDATABLE)
        return SUCCESS, self._state.handles.handle_of_graph(copied_graph(self._state, graph))

    @call
    def cuGraphUpload(self, h_graph_exec: CUgraphExec, h_stream: CUstream, /) -> tuple[CUresult]:
        """Do nothing: an emulated device needs no upload before a launch."""
        self._state.handles.executable(h_graph_exec)
        stream = self._state.handles.stream(h_stream)
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
            self._state.captures.reject_if_capturing(stream)
        return OK

    @call
    def cuGraphDebugDotPrint(self, h_graph: CUgraph, path: bytes, flags: int, /) -> tuple[CUresult]:
        """Write the graph in the language of Graphviz."""
        graph = self._state.handles.graph(h_graph)
        try:
            with open(path, "w", encoding="utf-8") as file:
                nodes = _dot(graph, "", bool(flags & _DOT_HANDLES))
                file.write(f"digraph graph_{graph.handle:#x} {{\n{nodes}}}\n")
        except OSError as error:
            why = f"writing the file: {error.strerror}"
            raise CallError(CUresult.CUDA_ERROR_OPERATING_SYSTEM, why) from error
        return OK

    @call
    def cuUserObjectCreate(
        self, ptr: int, destroy: int, initial_refcount: int, flags: int, /
    ) -> tuple[CUresult, CUuserObject]:
        """Create an object that the caller has `initial_refcount` references to."""
        destructor = int(destroy)
        if not destructor:
            raise invalid_value("the destructor of the user object is null")
        if flags != _NO_DESTRUCTOR_SYNC:
            raise invalid_value(
                f"a user object takes flags CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, not {flags:#x}"
            )
        count = _count(initial_refcount)
        user_object = UserObject(
            self._state.handles.new(), int(ptr), destructor, owned=count, count=count
        )
        self._state.handles.user_objects[user_object.handle] = user_object
        return SUCCESS, CUuserObject(user_object.handle)

    @call
    def cuUserObjectRelease(self, object: CUuserObject, count: int, /) -> tuple[CUresult]:
        """Release references of the caller's.

        The last one calls the destructor in this thread (measured with driver 580). If a graph
        releases the last reference, another thread calls it.
        """
        number = _count(count)
        with self._state.lock:
            user_object = self._user_object(object)
            _give_up(user_object, number)
        release(self._state, {user_object: number}, here=True)
        return OK

    @call
    def cuGraphRetainUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, flags: int, /
    ) -> tuple[CUresult]:
        """Give a graph references: new ones, or the caller's."""
        number = _count(count)
        if flags & ~_MOVE:
            raise invalid_value(f"a graph retains a user object with flags 0 or 1, not {flags:#x}")
        with self._state.lock:
            holder = self._state.handles.graph(graph)
            user_object = self._user_object(object)
            if flags & _MOVE:
                _give_up(user_object, number)
            else:
                user_object.count += number
            holder.user_objects[user_object] = holder.user_objects.get(user_object, 0) + number
        return OK

    @call
    def cuGraphReleaseUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, /
    ) -> tuple[CUresult]:
        """Remove references from a graph; its executables keep theirs."""
        number = _count(count)
        with self._state.lock:
            holder, user_object = self._state.handles.graph(graph), self._user_object(object)
            references = holder.user_objects.get(user_object, 0)
            if number > references:
                raise invalid_value(f"{number} references are more than the graph's {references}")
            holder.user_objects[user_object] = references - number
            if references == number:
                del holder.user_objects[user_object]
        release(self._state, {user_object: number})
        return OK

    def _user_object(self, handle: CUuserObject) -> UserObject:
        user_object = self._state.handles.user_objects.get(int(handle))
        if user_object is None:
            raise invalid_value(f"{int(handle):#x} is no live user object")
        return user_object

    @call
    def cuDeviceGetGraphMemAttribute(
        self, device: CUdevice, attr: int, /
    ) -> tuple[CUresult, cuuint64_t]:
        """Return the bytes used or reserved, current or highest."""
        state = self._state.devices.of(device)
        account = state.graph_account
        with state.lock:
            used = account.now(state.pieces.values())
        values = {
            _USED: used,
            _USED_HIGH: account.used_high,
            _RESERVED: used,
            _RESERVED_HIGH: account.reserved_high,
        }
        if int(attr) not in values:
            raise invalid_value(f"there is no attribute {int(attr)} of graphs' memory")
        return SUCCESS, cuuint64_t(values[int(attr)])

    @call
    def cuDeviceSetGraphMemAttribute(
        self, device: CUdevice, attr: int, value: cuuint64_t | int, /
    ) -> tuple[CUresult]:
        """Reset a high-water mark: only 0 can be set."""
        state = self._state.devices.of(device)
        if int(attr) not in (_USED_HIGH, _RESERVED_HIGH) or int(value):
            raise invalid_value(f"attribute {int(attr)} cannot be set to {int(value)}")
        with state.lock:
            used = state.graph_account.now(state.pieces.values())
            if int(attr) == _USED_HIGH:
                state.graph_account.used_high = used
            else:
                state.graph_account.reserved_high = used
        return OK

    @call
    def cuDeviceGraphMemTrim(self, device: CUdevice, /) -> tuple[CUresult]:
        """Free memory of graphs that they do not use."""
        state = self._state.devices.of(device)
        with state.lock:
            state.graph_account.trim(state.pieces.values())
        return OK


def forget_graph(driver: DriverState, graph: Graph) -> None:
    """Remove the handles of a graph, of the graphs in it, and of their nodes."""
    for part in graph.parts():
        driver.handles.graphs.pop(part.handle, None)
        for node in part.nodes:
            driver.handles.nodes.pop(node.handle, None)


def _run_recorded(
    accesses: ConcurrentAccesses, memory: GraphAllocation, kind: NodeKind, run: Run
) -> None:
    """Allocate or free memory of a graph, and record it."""
    run()
    accesses.in_graph(memory.piece.address, memory.nbytes, allocates=kind is NodeKind.ALLOC)


def check_bodies(graph: Graph) -> None:
    """Reject bodies of conditional nodes with forbidden contents.

    CUDA Programming Guide, "Conditional Node Body Graph Requirements".
    """
    for part in graph.parts():
        for node in part.nodes:
            for body in node.work.bodies:
                for inner in (n for inner_part in body.parts() for n in inner_part.nodes):
                    if inner.kind not in _IN_BODIES:
                        raise _UnsupportedNodeError(
                            inner, "cannot be in a body of a conditional node"
                        )


def _reject_host_work(graph: Graph) -> None:
    """Reject nodes that a graph for launches of the device cannot have.

    CUDA Driver API, cuGraphInstantiateWithParams: kernels, copies, fills and child graphs, and at
    least one node.
    """
    nodes = [node for part in graph.parts() for node in part.nodes]
    for node in nodes:
        if node.kind not in _ON_DEVICE:
            raise _UnsupportedNodeError(node, "cannot be in a graph that the device launches")
    if all(node.kind is NodeKind.CHILD for node in nodes):
        raise invalid_value("a graph that the device launches has a kernel, a copy or a fill")


def _dot(graph: Graph, prefix: str, has_handles: bool) -> str:
    """Return the nodes and edges of a graph, with those of graphs in it."""
    lines = []
    names = {node: f"{prefix}{number}" for number, node in enumerate(graph.nodes)}
    for node, name in names.items():
        launch = node.work.launch
        label = node.kind.value if launch is None else launch.function.name
        if has_handles:
            label += f" {node.handle:#x}"
        lines.append(f'  "{name}" [label="{label}"];\n')
        lines += [f'  "{names[first]}" -> "{name}";\n' for first in node.after]
        for part in (node.work.child, *node.work.bodies):
            if part is not None:
                inner = f"{name}_{len(lines)}_"
                lines.append(
                    f'  subgraph "cluster_{inner}" {{\n{_dot(part, inner, has_handles)}  }}\n'
                )
    return "".join(lines)


def retain(references: References) -> References:
    """Add the same references once more, for another holder; `_lock` is held."""
    for user_object, count in references.items():
        user_object.count += count
    return dict(references)


def release(driver: DriverState, references: References, *, here: bool = False) -> None:
    """Release a holder's references and destroy objects without any; hold no lock."""
    unreferenced = []
    with driver.lock:
        for user_object, count in references.items():
            user_object.count -= count
            if (
                not user_object.count
                and driver.handles.user_objects.pop(user_object.handle, None) is not None
            ):
                unreferenced.append(user_object)
    if unreferenced:  # destructors report nothing to the race check
        driver.operations.host_has_waited(None)
    for user_object in unreferenced:
        driver.thread.call_host(user_object.destructor, user_object.pointer, here=here)


def _count(count: int) -> int:
    if not 1 <= count <= _INT_MAX:
        raise invalid_value(f"{count} references: at least 1 and at most {_INT_MAX}")
    return count


def _give_up(user_object: UserObject, count: int) -> None:
    """Remove the caller's references; they still count."""
    if count > user_object.owned:
        raise invalid_value(
            f"{count} references are more than the {user_object.owned} that the caller has"
        )
    user_object.owned -= count


def copied_graph(driver: DriverState, graph: Graph) -> Graph:
    """Copy a graph, as for child graphs and clones.

    Raises:
        CallError: CUDA_ERROR_NOT_SUPPORTED, if it has nodes that cannot be copied.
    """
    copy = Graph()
    copies: dict[Node, Node] = {}
    for node in graph.ordered():
        work = node.work
        if work.kind in UNCOPIED:
            raise not_supported(f"a graph with a {work.kind.value} is not copied")
        if work.child is not None:
            work = work._replace(child=copied_graph(driver, work.child))
        copies[node] = copy.add(work, [copies[dependency] for dependency in node.after])
        copies[node].original = node
    with driver.lock:
        copy.user_objects = retain(graph.user_objects)
    return copy
