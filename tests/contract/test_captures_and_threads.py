"""While one thread captures a stream, others use it in every way that there is.

The oracle: what another thread does is no part of the graph. It runs once, after the capture; and
the graph does what its own thread recorded, at each replay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import DeviceBuffer, Event, LaunchConfig, MemoryPool
from cudadrv.errors import StreamCaptureIsolationError
from cudadrv.texture import CudaArray

from .conftest import compile_module

N: Final = 64
PATIENCE_S: Final = 60.0
POLLS: Final = 1000
ONE: Final = LaunchConfig(1, N)
SOURCE: Final = """
extern "C" __global__ void add(int* x, int n) { x[threadIdx.x] += n; }
"""
Ints = npt.NDArray[np.int32]
Stream = cudadrv.Stream


@dataclass
class Lab:
    """The objects of a case: `mine` is the other thread's array of `N` integers, first 0."""

    context: cudadrv.Context
    stream: Stream
    add: cudadrv.Kernel
    mine: cudadrv.DeviceArray[Any]
    # A graph that adds 1 to `mine`, and what is bound to the stream before the capture.
    graph: cudadrv.GraphExec
    launcher: Callable[..., None]
    prepared: Callable[[], None]
    event: Event

    def read(self) -> Ints:
        """The values of `mine`, by another stream."""
        with self.context.new_stream() as reader:
            return reader.to_host(self.mine)


def lab_on(stream: Stream, add: cudadrv.Kernel) -> Lab:
    mine = stream.zeros(N, np.int32)
    with stream.capture() as graph:
        add.launch(stream, ONE, mine, 1)
    launcher = add.bind(stream, ONE)
    prepared = launcher.prepare(mine, 1)
    # Warm, so that the fast paths are in use.
    for _ in range(4):
        launcher(mine, 0)
        add.launch(stream, ONE, mine, 0)
        prepared()
    stream.fill(mine, 0)
    event = Event(stream.context)
    stream.synchronize()
    return Lab(stream.context, stream, add, mine, graph.instantiate(), launcher, prepared, event)


def _host(value: int) -> Ints:
    return np.full(N, value, np.int32)


def _pinned(value: int) -> Ints:
    array = cudadrv.pinned_empty(N, np.int32)
    array[:] = value
    return array


def _download(lab: Lab) -> object:
    lab.stream.fill(lab.mine, 1)
    return lab.stream.to_host(lab.mine)


def _download_pinned(lab: Lab) -> object:
    lab.stream.fill(lab.mine, 1)
    out = cudadrv.pinned_empty(N, np.int32)
    return lab.stream.to_host(lab.mine, out)


def _upload(lab: Lab) -> object:
    made = lab.stream.to_device(_host(1))
    lab.stream.copy(lab.mine, made)
    return lab.stream.to_host(made)


def _allocate(lab: Lab) -> object:
    with lab.stream.empty(1 << 16, np.int32) as made:
        lab.stream.fill(made, 1)
        lab.stream.copy(lab.mine, made[:N])
        return lab.stream.to_host(made[:N])


def _zeros(lab: Lab) -> object:
    made = lab.stream.zeros(N, np.int32)
    lab.add.launch(lab.stream, ONE, made, 1)
    lab.stream.copy(lab.mine, made)
    return lab.stream.to_host(made)


def _strided(lab: Lab) -> object:
    lab.stream.fill(lab.mine[::2], 1)
    lab.stream.copy(lab.mine[1::2], lab.mine[::2])
    return lab.stream.to_host(lab.mine[1::2])


def _batch(lab: Lab) -> object:
    ones = lab.stream.to_device(_host(1))
    pairs = [(lab.mine[k : k + 1], ones[k : k + 1]) for k in range(N)]
    lab.stream.copy_batch(pairs)
    return lab.stream.to_host(ones)


def _event(lab: Lab) -> object:
    lab.stream.fill(lab.mine, 1)
    lab.event.record(lab.stream)
    lab.event.synchronize()
    return lab.stream.to_host(lab.mine) if lab.event.is_done() else None


def _other_waits(lab: Lab) -> object:
    with lab.context.new_stream() as other:
        other.wait(lab.stream)
        other.fill(lab.mine, 1)
        lab.stream.wait(other)
        return lab.stream.to_host(lab.mine)


def _on_host(lab: Lab) -> object:
    called = threading.Event()
    lab.stream.call_on_host(called.set)
    lab.stream.fill(lab.mine, 1)
    lab.stream.synchronize()
    return lab.stream.to_host(lab.mine) if called.is_set() else None


def _pool(lab: Lab) -> object:
    with MemoryPool(lab.context.device) as pool, cudadrv.using_memory(pool):
        made = lab.stream.to_device(_host(1))
        lab.stream.copy(lab.mine, made)
        result = lab.stream.to_host(made)
        made.close()
        lab.stream.synchronize()
        return result


def _drop(lab: Lab) -> object:
    made = [lab.stream.to_device(_host(1)) for _ in range(3)]
    lab.stream.copy(lab.mine, made[0])
    made.clear()
    return None


def _texels(lab: Lab) -> object:
    array = CudaArray(lab.context, N, np.int32)
    array.copy_from(lab.stream, _host(1))
    array.copy_to(lab.stream, lab.mine)
    return lab.stream.to_host(lab.mine)


def _adopt(lab: Lab) -> object:
    freed: list[int] = []
    with lab.context.new_stream() as other:
        held = other.alloc(4 * N)
        buffer = DeviceBuffer.adopted(lab.stream, held.ptr, held.nbytes, lambda *_: freed.append(1))
        lab.stream.fill(buffer, 1)
        buffer.close()
        lab.stream.fill(lab.mine, 1)
        lab.stream.synchronize()
    return lab.stream.to_host(lab.mine)


def _capture(lab: Lab) -> object:
    with lab.stream.capture() as graph:
        lab.add.launch(lab.stream, ONE, lab.mine, 1)
    assert graph.node_count == 1
    graph.instantiate().launch(lab.stream)
    return lab.stream.to_host(lab.mine)


def _managed(lab: Lab) -> object:
    array = cudadrv.managed_empty(N, np.int32)
    lab.stream.fill(lab.stream.in_place(array), 1)
    lab.stream.copy(lab.mine, lab.stream.in_place(array))
    lab.stream.synchronize()
    return array.copy()


def _by_other_object(lab: Lab) -> object:
    alias = lab.context.external_stream(int(lab.stream.handle))
    alias.fill(lab.mine, 0)
    lab.add.launch(alias, ONE, lab.mine, 1)
    return alias.to_host(lab.mine)


def _bind(lab: Lab) -> object:
    launcher = lab.add.bind(lab.stream, ONE)
    prepared = launcher.prepare(lab.mine, 1)
    prepared()
    for _ in range(6):
        launcher(lab.mine, 0)
    return lab.stream.to_host(lab.mine)


def _in_out(lab: Lab) -> object:
    values = _host(0)
    lab.add.launch(lab.stream, ONE, cudadrv.InOut(values), 1)
    lab.stream.copy(lab.mine, values)
    return values


def _context(lab: Lab) -> object:
    lab.stream.fill(lab.mine, 1)
    lab.context.synchronize()
    return lab.stream.to_host(lab.mine)


def _upload_graph(lab: Lab) -> None:
    lab.graph.upload(lab.stream)
    lab.graph.launch(lab.stream)


def _waited_for(lab: Lab) -> bool:
    lab.stream.synchronize()
    lab.event.synchronize()
    return lab.event.is_done()


def _then_read(queue: Callable[[Lab], object]) -> Callable[[Lab], object]:
    def act(lab: Lab) -> object:
        queue(lab)
        return lab.stream.to_host(lab.mine)

    return act


# What another thread does: it leaves 1 in `mine`, and returns that or None.
ACTS: Final[dict[str, Callable[[Lab], object]]] = {
    "launch": _then_read(lambda lab: lab.add.launch(lab.stream, ONE, lab.mine, 1)),
    "call a kernel": _then_read(lambda lab: lab.add(lab.stream, ONE, lab.mine, 1)),
    "launcher": _then_read(lambda lab: lab.launcher(lab.mine, 1)),
    "prepared launch": _then_read(lambda lab: lab.prepared()),
    "bind and prepare": _bind,
    "launch with a host array": _in_out,
    "launch a graph": _then_read(lambda lab: lab.graph.launch(lab.stream)),
    "upload a graph": _then_read(_upload_graph),
    "fill": _then_read(lambda lab: lab.stream.fill(lab.mine, 1)),
    "fill by doubling": _then_read(lambda lab: lab.stream.fill(lab.mine.view("i8"), (1 << 32) + 1)),
    "copy from the host": _then_read(lambda lab: lab.stream.copy(lab.mine, _host(1))),
    "copy from pinned memory": _then_read(lambda lab: lab.stream.copy(lab.mine, _pinned(1))),
    "assign": _then_read(lambda lab: lab.stream.assign(lab.mine, 1)),
    "copy to the host": _download,
    "copy to pinned memory": _download_pinned,
    "upload": _upload,
    "allocate and close": _allocate,
    "zeros": _zeros,
    "strided": _strided,
    "batch": _batch,
    "event": _event,
    "order another stream": _other_waits,
    "host function": _on_host,
    "memory pool": _pool,
    "drop arrays": _drop,
    "texels": _texels,
    "adopted memory": _adopt,
    "managed memory": _managed,
    "another object of the stream": _by_other_object,
    "synchronize the context": _context,
    "capture": _capture,
}


class Meeting:
    """Lets another thread act while the first one is inside a capture."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.inside = threading.Event()
        self.result: object = None
        self.error: BaseException | None = None
        self._act = act
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        assert self.inside.wait(PATIENCE_S)
        self.begun.set()
        try:
            self.result = self._act()
        except BaseException as error:
            self.error = error

    def let_it_act(self) -> None:
        """From the capture: give the other thread time to come to the stream."""
        self.inside.set()
        assert self.begun.wait(PATIENCE_S)
        self.thread.join(0.01)

    def end(self) -> None:
        """Wait for the other thread, whose error is raised here."""
        self.inside.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error


def problems_of(lab: Lab, name: str, capture: Callable[[Lab, Any, Meeting], Any]) -> list[str]:
    """Let another thread act during a capture of `theirs`, and return what is wrong."""
    theirs = lab.stream.zeros(N, np.int32)
    lab.stream.fill(lab.mine, 0)
    lab.stream.synchronize()
    meeting = Meeting(partial(ACTS[name], lab))
    found: list[str] = []
    try:
        replay = capture(lab, theirs, meeting)
        meeting.end()
    except Exception as error:
        meeting.thread.join(PATIENCE_S)
        return [f"{name}: {type(error).__name__}: {error}"]
    if meeting.result is not None and not (np.asarray(meeting.result) == 1).all():
        found.append(f"{name}: the other thread read {meeting.result}")
    for count in (1, 2, 3):
        replay()
        lab.stream.synchronize()
        if not (lab.read() == 1).all():
            found.append(f"{name}: after {count} replays the other thread's array is {lab.read()}")
        if not (lab.stream.to_host(theirs) == 2 * count).all():
            found.append(
                f"{name}: after {count} replays the graph's is {lab.stream.to_host(theirs)}"
            )
    return found


def by_stream(lab: Lab, theirs: Any, meeting: Meeting) -> Callable[[], object]:
    with lab.stream.capture() as graph:
        lab.add.launch(lab.stream, ONE, theirs, 1)
        meeting.let_it_act()
        assert lab.stream.capturing
        lab.add.launch(lab.stream, ONE, theirs, 1)
    assert graph.node_count == 2
    executable = graph.instantiate()
    return lambda: executable.launch(lab.stream)


def by_fork(lab: Lab, theirs: Any, meeting: Meeting) -> Callable[[], object]:
    """The stream joins the capture of another one."""
    with lab.context.new_stream() as first:
        with first.capture() as graph:
            lab.stream.wait(first)
            lab.add.launch(lab.stream, ONE, theirs, 1)
            meeting.let_it_act()
            lab.add.launch(lab.stream, ONE, theirs, 1)
            first.wait(lab.stream)
        assert graph.node_count == 2
    executable = graph.instantiate()
    return lambda: executable.launch(lab.stream)


def by_client(lab: Lab, theirs: Any, meeting: Meeting) -> Callable[[], object]:
    client = cudadrv.CudaClient(0)

    def record(_: object) -> None:
        lab.add.launch(lab.stream, ONE, theirs, 1)
        meeting.let_it_act()
        assert client.is_capturing
        lab.add.launch(lab.stream, ONE, theirs, 1)

    graph = client.capture_graph([theirs], [theirs], record)
    assert graph.node_count == 2
    return graph.launch


def _modes(mode: Any) -> Callable[[Lab, Any, Meeting], Callable[[], object]]:
    def capture(lab: Lab, theirs: Any, meeting: Meeting) -> Callable[[], object]:
        with lab.stream.capture(mode=mode) as graph:
            lab.add.launch(lab.stream, ONE, theirs, 1)
            meeting.let_it_act()
            lab.add.launch(lab.stream, ONE, theirs, 1)
        executable = graph.instantiate()
        return lambda: executable.launch(lab.stream)

    return capture


CAPTURES: Final = {
    "stream": by_stream,
    "fork": by_fork,
    "client": by_client,
    "thread_local": _modes("thread_local"),
    "default stream": by_stream,
}


@pytest.fixture(scope="module")
def add(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, SOURCE).kernel("add")


@pytest.mark.parametrize("way", CAPTURES)
def test_work_of_other_threads_on_a_capturing_stream_runs_once_after_the_capture(
    context: cudadrv.Context, add: cudadrv.Kernel, way: str
) -> None:
    if way == "client":
        stream = cudadrv.CudaClient(0).stream
    else:
        stream = context.default_stream if way == "default stream" else context.new_stream()
    lab = lab_on(stream, add)
    problems: list[str] = []
    for name in ACTS:
        problems += problems_of(lab, name, CAPTURES[way])
    assert not problems, "\n".join(problems)


QUERIES: Final[dict[str, Callable[[Lab], object]]] = {
    "capturing": lambda lab: lab.stream.capturing is False,
    "synchronize": _waited_for,
    # In a late order a query returns "not ready" at least once.
    "is_done": lambda lab: any(lab.stream.is_done() for _ in range(POLLS)),
    "priority": lambda lab: lab.stream.priority == 0,
    "blocking": lambda lab: lab.stream.blocking is False,
    "handle": lambda lab: int(lab.stream.handle) == lab.stream.__cuda_stream__()[1] != 0,
    "closed": lambda lab: lab.stream.closed is False,
    "repr": lambda lab: repr(lab.stream).startswith("<Stream 0x"),
    "isinstance": lambda lab: isinstance(lab.stream, cudadrv.Stream),
    "equal": lambda lab: lab.stream == lab.stream and {lab.stream: 1}[lab.stream] == 1,
    "an earlier event": lambda lab: lab.event.is_done(),
    "memory on another stream": lambda lab: (lab.read() == 5).all(),
    "an array of cached memory": lambda lab: lab.context.new_stream().zeros(4, "i4").nbytes == 16,
    "compile": lambda lab: compile_module(lab.context, SOURCE).kernel("add").name == "add",
    "free memory": lambda lab: lab.context.memory_info().free > 0,
}


def test_queries_of_other_threads_do_not_wait_for_a_capture_nor_invalidate_it(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    lab = lab_on(context.new_stream(), add)
    theirs = lab.stream.zeros(N, np.int32)
    problems: list[str] = []
    for name, query in QUERIES.items():
        lab.stream.fill(lab.mine, 5)
        lab.stream.fill(theirs, 0)
        lab.event.record(lab.stream)
        lab.stream.synchronize()
        found: list[object] = []
        with lab.stream.capture() as graph:
            add.launch(lab.stream, ONE, theirs, 1)
            thread = threading.Thread(target=lambda: found.append(query(lab)))  # noqa: B023
            thread.start()
            thread.join(PATIENCE_S)
            add.launch(lab.stream, ONE, theirs, 1)
        graph.instantiate().launch(lab.stream)
        if found != [True]:
            problems.append(f"{name}: {found}")
        if not (lab.stream.to_host(theirs) == 2).all():
            problems.append(f"{name}: the graph gives {lab.stream.to_host(theirs)}")
    assert not problems, "\n".join(problems)


def test_events_of_a_capture_are_rejected_in_other_threads(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    lab, errors = lab_on(context.new_stream(), add), []
    theirs, event = lab.stream.zeros(N, np.int32), Event(context)
    with context.new_stream() as other:
        uses: list[Callable[[], object]] = [
            lambda: other.wait(event),
            event.synchronize,
            event.is_done,
            lambda: event.elapsed_ms(lab.event),
            lambda: lab.event.elapsed_ms(event),
            lambda: context.legacy_stream.wait(event),
        ]

        def use_all() -> None:
            for use in uses:
                try:
                    use()
                except StreamCaptureIsolationError as error:
                    errors.append(str(error))

        lab.event.record(lab.stream)
        with lab.stream.capture() as graph:
            add.launch(lab.stream, ONE, theirs, 1)
            event.record(lab.stream)
            thread = threading.Thread(target=use_all)
            thread.start()
            thread.join(PATIENCE_S)
            other.wait(event)  # in the capturing thread it joins
            add.launch(other, ONE, theirs, 1)
            lab.stream.wait(other)
        assert graph.node_count == 2
        graph.instantiate().launch(lab.stream)
        assert (lab.stream.to_host(theirs) == 2).all()
    assert len(errors) == len(uses)
    assert all("another thread has recorded in a capture" in error for error in errors)


def test_captures_within_a_capture_have_streams_of_their_own(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    outer, inner = (lab_on(context.new_stream(), add) for _ in range(2))
    theirs = [lab.stream.zeros(N, np.int32) for lab in (outer, inner)]
    meetings = []
    with outer.stream.capture() as first:
        add.launch(outer.stream, ONE, theirs[0], 1)
        with inner.stream.capture() as second:
            add.launch(inner.stream, ONE, theirs[1], 1)
            for lab in (outer, inner):
                meetings.append(Meeting(partial(ACTS["launch"], lab)))
                meetings[-1].let_it_act()
            assert outer.stream.capturing
            assert inner.stream.capturing
        meetings[1].end()
        assert meetings[0].thread.is_alive()
        with pytest.raises(cudadrv.errors.InvalidValueError, match="already capturing"):
            outer.stream.capture().__enter__()
    meetings[0].end()
    assert (first.node_count, second.node_count) == (1, 1)
    for lab, graph, array in zip((outer, inner), (first, second), theirs, strict=True):
        graph.instantiate().launch(lab.stream)
        assert (lab.stream.to_host(array) == 1).all()
        assert (lab.read() == 1).all()


def test_the_allocator_of_a_client_serves_other_threads_after_the_capture(
    context: cudadrv.Context,
) -> None:
    client = cudadrv.CudaClient(0)
    allocator, arena = client.allocator, 1 << 16
    kept = allocator.allocate(4096)
    mine: list[int] = []

    def use() -> list[int]:
        allocator.deallocate(kept, 4096)
        mine.append(allocator.allocate(512))
        mine.append(allocator.allocate(4096))
        return mine

    for arena_bytes in (arena, None):
        meeting = Meeting(use)
        captured: list[int] = []

        def record(_: object, meeting: Meeting = meeting, captured: list[int] = captured) -> None:
            captured.append(allocator.allocate(512))
            meeting.let_it_act()
            captured.append(allocator.allocate(512))

        with client.capture_graph([], [], record, arena_bytes):
            meeting.end()
            assert not set(mine) & set(captured)
            assert not allocator.is_frozen
        for address, nbytes in zip(mine, (512, 4096), strict=True):
            allocator.deallocate(address, nbytes)
        mine.clear()
        kept = allocator.allocate(4096)
    allocator.deallocate(kept, 4096)


def test_captures_of_several_threads_take_turns(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    client = cudadrv.CudaClient(0)
    arrays = [client.stream.zeros(N, np.int32) for _ in range(6)]
    client.synchronize()
    graphs: dict[int, Any] = {}

    def capture(number: int) -> None:
        def record(_: object) -> None:
            for _ in range(number + 1):
                add.launch(client.stream, ONE, arrays[number], 1)

        if number % 2:
            graphs[number] = client.capture_graph([], [], record)
        else:
            with client.stream.capture() as graph:
                record(None)
            graphs[number] = graph

    with ThreadPoolExecutor(len(arrays)) as pool:
        list(pool.map(capture, range(len(arrays))))
    assert [graphs[number].node_count for number in range(len(arrays))] == [1, 2, 3, 4, 5, 6]


class Foreign:
    """Another library's array, which another stream makes ready."""

    def __init__(self, array: cudadrv.DeviceArray[Any], stream: Stream) -> None:
        self._stream = stream  # alive
        self._interface = {**array.__cuda_array_interface__, "stream": int(stream.handle)}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface


def _launches_of(lab: Lab) -> dict[str, tuple[Any, Callable[[int], object]]]:
    """Ways to add 1 to an array again and again on the lab's stream, with that array.

    They take each path of a launch: its cached values, memory and objects that another stream has
    to make ready, a new launcher or prepared launch each time, and a module that is closed.
    """
    context, stream, add = lab.context, lab.stream, lab.add
    other = context.new_stream()
    arrays = [stream.zeros(N, np.int32) for _ in range(8)]
    stream.synchronize()
    prepared = lab.launcher.prepare(arrays[1], 1)  # type: ignore[attr-defined]  # a Launcher
    foreign = Foreign(arrays[4], other)
    moved = context.new_stream()

    def on_two_streams(count: int) -> None:
        add.launch((stream, moved)[count % 2], ONE, arrays[5], 1)

    def newly_prepared(_: int) -> None:
        add.bind(stream, ONE).prepare(arrays[6], 1)()

    def closed_module(_: int) -> None:
        with compile_module(context, SOURCE) as module:
            kernel = module.kernel("add")
            for value in (1, 0, 0):
                kernel.launch(stream, ONE, arrays[7], value)

    return {
        "launch": (arrays[0], lambda _: add.launch(stream, ONE, arrays[0], 1)),
        "prepared": (arrays[1], lambda _: prepared()),
        "launcher": (arrays[2], lambda _: lab.launcher(arrays[2], 1)),
        "copy": (arrays[3], lambda count: stream.copy(arrays[3], _host(count + 1))),
        "foreign": (arrays[4], lambda _: add.launch(stream, ONE, foreign, 1)),
        "two streams": (arrays[5], on_two_streams),
        "newly prepared": (arrays[6], newly_prepared),
        "closed module": (arrays[7], closed_module),
    }


def lost_or_repeated(lab: Lab, names: tuple[str, ...], captures: int) -> list[str]:
    """Launch in a thread for each name while this one captures; return what is wrong."""
    ways = {name: way for name, way in _launches_of(lab).items() if name in names}
    ends, counts, problems = threading.Event(), dict.fromkeys(names, 0), []

    def work(name: str) -> None:
        act = ways[name][1]
        while not ends.is_set():
            act(counts[name])
            counts[name] += 1

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    theirs = lab.stream.zeros(N, np.int32)
    for number in range(captures):
        with lab.stream.capture() as graph:
            lab.add.launch(lab.stream, ONE, theirs, 1)
            lab.add.launch(lab.stream, ONE, theirs, 1)
        if graph.node_count != 2:
            problems.append(f"{names}: capture {number} has {graph.node_count} nodes")
        graph.instantiate().launch(lab.stream)
    ends.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    if not (lab.stream.to_host(theirs) == 2 * captures).all():
        problems.append(f"{names}: the graphs give {lab.stream.to_host(theirs)[0]}")
    for name, (array, _) in ways.items():
        value = int(lab.stream.to_host(array)[0])
        if value != counts[name] or not value:
            problems.append(f"{names}: {name!r} ran {counts[name]} times, and gives {value}")
    return problems


ALL_LAUNCHES: Final = (
    ("launch", "prepared", "launcher", "copy"),
    ("foreign", "two streams", "newly prepared", "closed module"),
)


def test_no_launch_is_lost_or_repeated_while_another_thread_captures_again_and_again(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    lab = lab_on(context.new_stream(), add)
    problems = [problem for names in ALL_LAUNCHES for problem in lost_or_repeated(lab, names, 20)]
    assert not problems, "\n".join(problems)


def test_a_capture_raises_if_a_launch_under_way_does_not_end_and_leaves_the_stream_usable(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    lab, may_end, count = lab_on(context.new_stream(), add), threading.Event(), 0
    began = threading.Event()

    def wait() -> None:
        began.set()
        may_end.wait(PATIENCE_S)

    def launch_more_than_fit_into_the_queue() -> None:
        nonlocal count
        lab.stream.call_on_host(wait)  # the emulator runs it in this call
        while not may_end.is_set():
            lab.launcher(lab.mine, 1)
            count += 1

    thread = threading.Thread(target=launch_more_than_fit_into_the_queue, daemon=True)
    thread.start()
    assert began.wait(PATIENCE_S)
    former = -1
    while former != count:
        former = count
        thread.join(0.2)
    with (
        pytest.raises(StreamCaptureIsolationError, match="have not ended within 0.05 s"),
        lab.stream.capture(wait_limit_s=0.05),
    ):
        pass
    may_end.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    with lab.stream.capture() as graph:
        add.launch(lab.stream, ONE, lab.mine, 1)
    assert graph.node_count == 1
    assert (lab.stream.to_host(lab.mine) == count).all()
