"""How long other threads wait for a capture, and which waits raise at once.

The rule: a wait raises at once where it cannot end by what cudadrv knows, and else at its limit.
Tests of the first kind set no limit, so that nothing but the rule ends them.
"""

from __future__ import annotations

import gc
import inspect
import math
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import CudaClient, GpuRuntime, LaunchConfig, Stream, scatter_map
from cudadrv.errors import ArgumentTypeError, InvalidValueError, StreamCaptureIsolationError
from tests.several_threads import in_thread_of_c

from .conftest import compile_module

N: Final = 64
PATIENCE_S: Final = 60.0
ONE: Final = LaunchConfig(1, N)
SOURCE: Final = """
extern "C" __global__ void add(int* x, int n) { x[threadIdx.x] += n; }
"""


@pytest.fixture(scope="module")
def add(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, SOURCE).kernel("add")


def outcome_of(work: Callable[[], object]) -> str:
    """What a call leads to: "done", or the text of the error that a wait raised."""
    try:
        work()
    except StreamCaptureIsolationError as error:
        return str(error)
    return "done"


def _in_turn(*functions: Callable[[], object]) -> None:
    for function in functions:
        function()


# How a thread waits for another one without a timeout. Each takes what sets the result.
def _by_join(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _by_event(work: Callable[[], object]) -> None:
    done = threading.Event()
    threading.Thread(target=_in_turn, args=(work, done.set)).start()
    done.wait()


def _by_queue(work: Callable[[], object]) -> None:
    done: queue.Queue[object] = queue.Queue()
    threading.Thread(target=lambda: done.put(work())).start()
    done.get()


def _by_barrier(work: Callable[[], object]) -> None:
    barrier = threading.Barrier(2)
    threading.Thread(target=_in_turn, args=(work, barrier.wait)).start()
    barrier.wait()


def _by_semaphore(work: Callable[[], object]) -> None:
    semaphore = threading.Semaphore(0)
    threading.Thread(target=_in_turn, args=(work, semaphore.release)).start()
    semaphore.acquire()


def _by_future(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def _by_futures(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(2) as pool:
        wait([pool.submit(work)])


def _by_map(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: work(), range(2)))


def _by_shutdown(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)


def _by_middleman(work: Callable[[], object]) -> None:
    _by_join(lambda: _by_join(work))


WAITS: Final = (
    _by_join, _by_event, _by_queue, _by_barrier, _by_semaphore, _by_future, _by_futures, _by_map,
    _by_shutdown, _by_middleman,
)  # fmt: skip


def test_a_wait_raises_at_its_limit_and_names_the_capturing_thread_and_the_remedy(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    stream = context.new_stream()
    mine, theirs = (stream.zeros(N, np.int32) for _ in range(2))
    problems: list[str] = []
    for way in WAITS:
        stream.fill(theirs, 0)
        outcomes: list[str] = []

        def work(outcomes: list[str] = outcomes) -> None:
            outcomes.append(outcome_of(lambda: add.launch(stream, ONE, mine, 1)))

        with stream.capture(wait_limit_s=0.02) as graph:
            add.launch(stream, ONE, theirs, 1)
            way(work)
            add.launch(stream, ONE, theirs, 1)
        graph.instantiate().launch(stream)
        expected = (
            f"thread {threading.current_thread().name!r} captures",
            "not ended within 0.02 s",
            "after the capture",
            "larger wait_limit_s",
        )
        if not outcomes or not all(words in text for text in outcomes for words in expected):
            problems.append(f"{way.__name__}: {outcomes}")
        if not (stream.to_host(theirs) == 2).all() or stream.to_host(mine).any():
            problems.append(f"{way.__name__}: {stream.to_host(theirs)} {stream.to_host(mine)}")
    assert not problems, "\n".join(problems)


def test_captures_without_a_limit_of_their_own_have_that_of_the_pages() -> None:
    for function in (Stream.capture, CudaClient.capture_graph):
        assert inspect.signature(function).parameters["wait_limit_s"].default == 30.0


def test_a_limit_that_is_no_time_raises(context: cudadrv.Context) -> None:
    stream, client = context.new_stream(), CudaClient(0)
    for limit, error in ((-1, InvalidValueError), (math.nan, InvalidValueError)):
        with pytest.raises(error, match="0 or more seconds"):
            stream.capture(wait_limit_s=limit)
        with pytest.raises(error, match="0 or more seconds"):
            client.capture_graph([], [], lambda _: None, wait_limit_s=limit)
    with pytest.raises(ArgumentTypeError, match="wait_limit_s"):
        stream.capture(wait_limit_s="30")  # type: ignore[arg-type]  # the claim


def test_the_limit_of_a_client_applies_to_its_stream_and_its_allocator(
    context: cudadrv.Context,
) -> None:
    client, outcomes = CudaClient(0), []
    array = client.stream.zeros(N, np.int32)

    def record(_: object) -> None:
        uses: tuple[Callable[[], object], ...] = (
            lambda: client.stream.fill(array, 1),
            lambda: client.allocator.allocate(512),
        )
        for use in uses:
            thread = threading.Thread(target=lambda: outcomes.append(outcome_of(use)))  # noqa: B023
            thread.start()
            thread.join()

    with client.capture_graph([], [], record, wait_limit_s=0.02):
        assert len(outcomes) == 2
        assert all("not ended within 0.02 s" in outcome for outcome in outcomes)


def test_a_wait_with_a_timeout_ends_and_then_the_other_thread_goes_on(
    context: cudadrv.Context, add: cudadrv.Kernel
) -> None:
    stream, done = context.new_stream(), threading.Event()
    mine, theirs = (stream.zeros(N, np.int32) for _ in range(2))
    stream.synchronize()

    def work() -> None:
        add.launch(stream, ONE, mine, 1)
        done.set()

    thread = threading.Thread(target=work)
    with stream.capture() as graph:
        thread.start()
        assert not done.wait(0.4)
        add.launch(stream, ONE, theirs, 1)
    assert done.wait(PATIENCE_S)
    thread.join()
    assert graph.node_count == 1
    assert (stream.to_host(mine) == 1).all()


def test_one_of_several_captures_that_wait_for_each_other_raises(context: cudadrv.Context) -> None:
    for count, words in ((2, "waits for a capture"), (3, "waits, by way of other threads, for a")):
        streams = [context.new_stream() for _ in range(count)]
        arrays = [stream.zeros(N, np.int32) for stream in streams]
        all_capture = threading.Barrier(count)
        outcomes: list[str] = []

        def capture(
            number: int,
            streams: list[Stream] = streams,
            arrays: list[Any] = arrays,
            all_capture: threading.Barrier = all_capture,
            outcomes: list[str] = outcomes,
        ) -> None:
            other = (number + 1) % len(streams)
            with streams[number].capture(wait_limit_s=math.inf) as graph:
                streams[number].fill(arrays[number], 1)
                all_capture.wait(PATIENCE_S)
                outcomes.append(outcome_of(lambda: streams[other].fill(arrays[other], 7)))
            assert graph.node_count == 1

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(capture, range(count)))
        assert len(outcomes) == count
        raised = [outcome for outcome in outcomes if outcome != "done"]
        assert raised
        assert any(words in outcome for outcome in raised)
        for stream, array in zip(streams, arrays, strict=True):
            stream.fill(array, 3)
            assert (stream.to_host(array) == 3).all()


def test_a_tile_raises_that_uses_a_stream_of_the_thread_that_waits_for_it(
    context: cudadrv.Context,
) -> None:
    runtime, stream = GpuRuntime.current(), context.new_stream()
    assert runtime is not None
    device = next(each for each in runtime.devices if each.ordinal == context.ordinal)
    one_device = GpuRuntime(devices=[device])
    array, other = (stream.zeros(N, np.int32) for _ in range(2))

    def tile(_ordinal: int, _items: object) -> str:
        return outcome_of(lambda: stream.fill(array, 7))

    def outer(_ordinal: int, _items: object) -> str:
        return scatter_map(one_device, range(1), tile)[0]

    with stream.capture(wait_limit_s=math.inf) as graph:
        stream.fill(other, 1)
        outcomes = [scatter_map(one_device, range(1), each)[0] for each in (tile, outer)]
    assert "waits for a tile that this one runs" in outcomes[0]
    assert "waits, by way of other threads, for a tile" in outcomes[1]
    graph.instantiate().launch(stream)
    assert not stream.to_host(array).any()
    assert scatter_map(one_device, range(1), tile) == ["done"]
    assert (stream.to_host(array) == 7).all()


def test_a_capture_whose_thread_has_ended_raises_until_it_is_dropped(
    context: cudadrv.Context,
) -> None:
    stream, captures = context.new_stream(), []
    array = stream.zeros(N, np.int32)

    def begin() -> None:
        captures.append(stream.capture(wait_limit_s=math.inf))
        captures[0].__enter__()

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert "has ended without an end of the capture" in outcome_of(lambda: stream.fill(array, 2))
    captures.clear()
    gc.collect()
    stream.fill(array, 2)
    assert (stream.to_host(array) == 2).all()


def test_a_thread_that_python_did_not_start_captures_like_others(context: cudadrv.Context) -> None:
    stream = context.new_stream()
    array, nodes = stream.zeros(N, np.int32), []

    def capture() -> None:
        with stream.capture() as graph:
            stream.fill(array, 1)
            threading.current_thread()  # from here on `threading` knows it
            assert stream.capturing
            stream.fill(array, 2)
        nodes.append(graph.node_count)

    in_thread_of_c(capture)
    assert nodes == [2]
