from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import pytest

from cudadrv.driver._api import (
    CUdevice,
    CUgraph,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUuserObject,
)
from cudadrv.emulator import Emulator
from tests.patience import SECONDS, wait_until

from .calls import LEGACY, OpenApi, code, ok

RELAXED = CUstreamCaptureMode(2)
MOVE, NO_SYNC = 1, 1
_HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class HostFunction:
    """A function for the driver to call, which notes what it is called with."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.calls: list[int | None] = []
        self.threads: list[int] = []
        self.found: list[object] = []
        self._work = work
        self._function = _HostFunction(self._called)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _called(self, argument: int | None) -> None:
        self.threads.append(threading.get_ident())
        self.found.append(self._work())
        self.calls.append(argument)

    def wait(self, count: int = 1) -> list[int | None]:
        """The calls, once there are `count` of them; a GPU's driver makes them when it likes."""
        wait_until(lambda: len(self.calls) >= count)
        return self.calls


def empty_graph(api: OpenApi, stream: CUstream) -> CUgraph:
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    return ok(api.cuStreamEndCapture(stream))


def new(api: OpenApi, destructor: HostFunction, count: int = 1) -> CUuserObject:
    return ok(api.cuUserObjectCreate(7, destructor.address, count, NO_SYNC))


def test_the_last_release_calls_the_destructor_once_in_its_thread(
    api: OpenApi, stream: CUstream
) -> None:
    destructor = HostFunction()
    found = new(api, destructor, 3)
    ok(api.cuUserObjectRelease(found, 1))
    assert not destructor.calls
    ok(api.cuUserObjectRelease(found, 2))
    assert destructor.wait() == [7]
    assert destructor.threads == [threading.get_ident()]


def test_a_destructor_makes_no_calls(api: OpenApi, device: CUdevice, stream: CUstream) -> None:
    destructor = HostFunction(
        lambda: (
            int(api.cuDeviceGetCount()[0]),
            int(api.cuMemAlloc(4)[0]),
            int(api.cuCtxGetCurrent()[0]),
            int(api.cuDriverGetVersion()[0]),
        )
    )
    ok(api.cuUserObjectRelease(new(api, destructor), 1))
    destructor.wait()
    assert destructor.found == [(800, 800, 800, 0)]
    assert code(api.cuStreamQuery(stream)) == 0


def test_what_cannot_be_is_rejected(api: OpenApi, stream: CUstream) -> None:
    destructor = HostFunction()
    address = destructor.address
    for ptr, destroy, count, flags in ((7, address, 1, 0), (7, address, 0, 1), (7, 0, 1, 1)):
        assert code(api.cuUserObjectCreate(ptr, destroy, count, flags)) == 1
    assert code(api.cuUserObjectCreate(7, address, 1, 2)) == 1
    graph, found, null = empty_graph(api, stream), new(api, destructor), CUuserObject(0)
    assert code(api.cuGraphRetainUserObject(graph, found, 0, 0)) == 1
    assert code(api.cuGraphRetainUserObject(graph, found, 1, 2)) == 1
    assert code(api.cuGraphRetainUserObject(graph, null, 1, 0)) == 1
    assert code(api.cuGraphRetainUserObject(CUgraph(0), found, 1, 0)) == 1
    assert code(api.cuUserObjectRelease(null, 1)) == 1
    assert code(api.cuUserObjectRelease(found, 0)) == 1
    assert not destructor.calls


def test_the_emulator_rejects_references_that_the_caller_does_not_have(
    emulator: Emulator,
) -> None:
    """The driver takes them, and what then happens is undefined."""
    stream = a_stream(emulator)
    destructor = HostFunction()
    found, graph = new(emulator, destructor), empty_graph(emulator, stream)
    assert code(emulator.cuUserObjectRelease(found, 2)) == 1
    assert code(emulator.cuGraphRetainUserObject(graph, found, 2, MOVE)) == 1
    ok(emulator.cuGraphRetainUserObject(graph, found, 1, MOVE))
    assert code(emulator.cuUserObjectRelease(found, 1)) == 1
    assert not destructor.calls
    ok(emulator.cuGraphDestroy(graph))
    assert destructor.calls == [7]
    assert code(emulator.cuUserObjectRelease(found, 1)) == 1
    again = empty_graph(emulator, stream)
    assert code(emulator.cuGraphRetainUserObject(again, found, 1, 0)) == 1
    assert destructor.calls == [7]


def a_stream(emulator: Emulator) -> CUstream:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return ok(emulator.cuStreamCreateWithPriority(1, 0))


def test_a_graph_keeps_its_objects(api: OpenApi, stream: CUstream) -> None:
    destructor = HostFunction()
    found, graph = new(api, destructor), empty_graph(api, stream)
    ok(api.cuGraphRetainUserObject(graph, found, 2, 0))
    ok(api.cuUserObjectRelease(found, 1))
    assert not destructor.calls
    ok(api.cuGraphDestroy(graph))
    assert destructor.wait() == [7]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("destroy", ["graph", "node"])
def test_child_graphs_give_their_references_up_with_the_graph(
    api: OpenApi, stream: CUstream, depth: int, destroy: str
) -> None:
    destructor = HostFunction()
    graphs = [empty_graph(api, stream)]
    ok(api.cuGraphRetainUserObject(graphs[0], new(api, destructor), 1, MOVE))
    for _ in range(depth):
        params = CUgraphNodeParams()
        params.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH
        params.graph.graph = graphs[-1]
        graphs.append(empty_graph(api, stream))
        node = ok(api.cuGraphAddNode(graphs[-1], None, None, 0, params))
    *inner, outer = graphs
    for graph in inner:
        ok(api.cuGraphDestroy(graph))
    assert not destructor.calls
    ok(api.cuGraphDestroyNode(node) if destroy == "node" else api.cuGraphDestroy(outer))
    assert destructor.wait() == [7]


def test_an_executable_has_references_of_its_own(api: OpenApi, stream: CUstream) -> None:
    destructor = HostFunction()
    graph = empty_graph(api, stream)
    ok(api.cuGraphRetainUserObject(graph, new(api, destructor), 1, MOVE))
    executables = [ok(api.cuGraphInstantiate(graph, 0)) for _ in range(2)]
    ok(api.cuGraphDestroy(graph))
    ok(api.cuGraphLaunch(executables[0], stream))
    ok(api.cuStreamSynchronize(stream))
    ok(api.cuGraphExecDestroy(executables[0]))
    assert not destructor.calls
    ok(api.cuGraphExecDestroy(executables[1]))
    assert destructor.wait() == [7]


def test_what_a_graph_retains_later_is_not_its_executables(api: OpenApi, stream: CUstream) -> None:
    destructor = HostFunction()
    graph = empty_graph(api, stream)
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuGraphRetainUserObject(graph, new(api, destructor), 1, MOVE))
    ok(api.cuGraphDestroy(graph))
    assert destructor.wait() == [7]
    ok(api.cuGraphExecDestroy(executable))


def test_an_update_copies_the_references_of_the_other_graph(api: OpenApi, stream: CUstream) -> None:
    former, new_one = HostFunction(), HostFunction()
    graph, other = empty_graph(api, stream), empty_graph(api, stream)
    ok(api.cuGraphRetainUserObject(graph, new(api, former), 1, MOVE))
    ok(api.cuGraphRetainUserObject(other, new(api, new_one), 1, MOVE))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuGraphDestroy(graph))
    ok(api.cuGraphExecUpdate(executable, other))
    assert former.wait() == [7]
    ok(api.cuGraphDestroy(other))
    assert not new_one.calls
    ok(api.cuGraphExecDestroy(executable))
    assert new_one.wait() == [7]


def test_a_rejected_update_changes_no_references(emulator: Emulator) -> None:
    stream = a_stream(emulator)
    destructor = HostFunction()
    graph = empty_graph(emulator, stream)
    ok(emulator.cuGraphRetainUserObject(graph, new(emulator, destructor), 1, MOVE))
    executable = ok(emulator.cuGraphInstantiate(graph, 0))
    ok(emulator.cuGraphDestroy(graph))
    memory = ok(emulator.cuMemAlloc(4))
    ok(emulator.cuStreamBeginCapture(stream, RELAXED))
    ok(emulator.cuMemsetD8Async(memory, 0, 4, stream))
    other = ok(emulator.cuStreamEndCapture(stream))
    assert code(emulator.cuGraphExecUpdate(executable, other)) == 910
    assert not destructor.calls
    ok(emulator.cuGraphExecDestroy(executable))
    assert destructor.calls == [7]


def test_a_replay_keeps_the_objects_until_it_has_ended(emulator: Emulator) -> None:
    """The executable is destroyed while a host function of its replay runs."""
    stream = a_stream(emulator)
    destructor = HostFunction()
    seen: list[int] = []

    def work() -> None:
        def destroy() -> None:
            seen.append(int(emulator.cuGraphExecDestroy(executable)[0]))

        other = threading.Thread(target=destroy)
        other.start()
        other.join()
        seen.append(len(destructor.calls))

    function = HostFunction(work)
    ok(emulator.cuStreamBeginCapture(stream, RELAXED))
    ok(emulator.cuLaunchHostFunc(stream, function.address, 5))
    graph = ok(emulator.cuStreamEndCapture(stream))
    ok(emulator.cuGraphRetainUserObject(graph, new(emulator, destructor), 1, MOVE))
    executable = ok(emulator.cuGraphInstantiate(graph, 0))
    ok(emulator.cuGraphDestroy(graph))
    ok(emulator.cuGraphLaunch(executable, stream))
    assert seen == [0, 0]
    assert function.calls == [5]
    assert destructor.calls == [7]


def test_a_graph_outlives_its_context(api: OpenApi, device: CUdevice, stream: CUstream) -> None:
    other = ok(api.cuCtxCreate(None, 0, device))
    destructor = HostFunction()
    graph = empty_graph(api, ok(api.cuStreamCreateWithPriority(1, 0)))
    ok(api.cuGraphRetainUserObject(graph, new(api, destructor), 1, MOVE))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuCtxDestroy(other))
    assert not destructor.calls
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuGraphExecDestroy(executable))
    ok(api.cuGraphDestroy(graph))
    assert destructor.wait() == [7]


def _launch(emulator: Emulator, function: HostFunction) -> CUresult:
    return emulator.cuLaunchHostFunc(LEGACY, function.address, 3)[0]


def _release(emulator: Emulator, function: HostFunction) -> CUresult:
    found = ok(emulator.cuUserObjectCreate(3, function.address, 1, NO_SYNC))
    return emulator.cuUserObjectRelease(found, 1)[0]


@pytest.mark.parametrize("make", [_launch, _release], ids=["cuLaunchHostFunc", "user object"])
def test_no_lock_is_held_while_the_host_is_called(
    emulator: Emulator, make: Callable[[Emulator, HostFunction], CUresult]
) -> None:
    """Another thread makes calls that take every lock, and the function waits for it."""
    context = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))

    def calls() -> None:
        ok(emulator.cuCtxSetCurrent(context))
        stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
        ok(emulator.cuGraphDestroy(empty_graph(emulator, stream)))
        ok(emulator.cuMemFree(ok(emulator.cuMemAlloc(4))))
        ok(emulator.cuMemFreeHost(ok(emulator.cuMemHostAlloc(4, 0))))

    def work() -> bool:
        other = threading.Thread(target=calls, daemon=True)
        other.start()
        other.join(SECONDS)
        return other.is_alive()

    function = HostFunction(work)
    assert make(emulator, function) == 0
    assert function.found == [False]
    assert function.calls == [3]
    assert (threading.get_ident() in function.threads) == (make is _release)


def test_a_host_function_makes_no_calls(api: OpenApi, stream: CUstream) -> None:
    function = HostFunction(
        lambda: (int(api.cuMemAlloc(4)[0]), int(api.cuCtxGetCurrent()[0]), int(api.cuInit(0)[0]))
    )
    ok(api.cuLaunchHostFunc(stream, function.address, 0))
    ok(api.cuStreamSynchronize(stream))
    function.wait()
    assert function.found == [(800, 800, 0)]
    assert threading.get_ident() not in function.threads
    assert code(api.cuStreamQuery(stream)) == 0
