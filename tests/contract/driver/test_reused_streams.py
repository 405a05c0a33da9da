"""`Context.new_stream` reuses the driver's streams of closed objects, and no object notices it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import Attachment, Context, Stream, emulator
from cudadrv.errors import ClosedError
from cudadrv.graph.capture import CaptureMode
from tests.several_threads import all_at_once

MOST_IDLE = 8


@pytest.fixture(params=["immediate", "late"])
def machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[emulator.Emulator]:
    """An emulator that lets streams be reused, as a driver does."""
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session(devices=2, order=request.param) as machine:
        yield machine


@pytest.fixture
def context(machine: emulator.Emulator) -> Context:
    return cudadrv.cuda_context_for(0)


def raw(stream: Stream) -> int:
    return int(stream.handle)


def closed(context: Context, *, priority: int = 0, blocking: bool = False) -> int:
    """Make and close a stream; return its number."""
    with context.new_stream(priority=priority, blocking=blocking) as stream:
        return raw(stream)


def test_a_closed_stream_is_the_next_new_one(context: Context) -> None:
    first = context.new_stream()
    number = raw(first)
    first.record(timing=False).synchronize()
    first.synchronize()
    first.close()
    first.close()
    second = context.new_stream()
    assert raw(second) == number
    for use in (first.synchronize, first.is_done, first.record, lambda: first.empty(4, "u4")):
        with pytest.raises(ClosedError, match="the stream on device 0 was closed"):
            use()
    assert (first.closed, second.closed, second.is_done()) == (True, False, True)
    assert second.to_host(second.to_device(np.arange(4))).tolist() == [0, 1, 2, 3]


def test_a_dropped_stream_is_the_next_new_one(context: Context) -> None:
    stream = context.new_stream()
    number = raw(stream)
    del stream
    gc.collect()
    assert raw(context.new_stream()) == number


def test_a_reused_stream_has_the_kind_and_context_that_were_requested(
    machine: emulator.Emulator,
) -> None:
    primary, other = cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)
    own = Context.create(0)
    cells = [
        (context, priority, blocking)
        for context in (primary, other, own)
        for priority in (0, -1)
        for blocking in (False, True)
    ]
    numbers = {
        cell: closed(cell[0], priority=cell[1], blocking=cell[2])
        for _ in range(2)
        for cell in cells
    }
    plain = [numbers[context, 0, False] for context in (primary, other, own)]
    assert len(set(plain)) == 3
    streams = []
    for cell in reversed(cells):
        context, priority, blocking = cell
        stream = context.new_stream(priority=priority, blocking=blocking)
        assert (stream.priority, stream.blocking) == (priority, blocking)
        assert stream.context is context
        assert (raw(stream) in plain) == (not priority and not blocking)
        streams.append(stream)
    assert len({*map(raw, streams)}) == len(cells)


def test_a_stream_of_memory_is_not_reused_before_the_memory_is_freed(
    machine: emulator.Emulator,
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    number = raw(stream)
    array = stream.to_device(np.arange(4))
    stream.synchronize()
    stream.close()
    new = [context.new_stream() for _ in range(2)]
    assert number not in map(raw, new)
    assert new[0].to_host(array).tolist() == [0, 1, 2, 3]
    new[0].synchronize()
    del array
    gc.collect()
    # If it is late, the stream still has to free the memory.
    assert (raw(context.new_stream()) == number) == (machine.order == "immediate")


def test_a_stream_with_work_is_not_reused_and_finishes_it(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    stream, calls = context.new_stream(), list[int]()
    number = raw(stream)
    for call in range(4):
        stream.call_on_host(calls.append, call)
    stream.close()
    has_work = len(calls) < 4
    assert has_work == (machine.order == "late")
    new = context.new_stream()
    assert (raw(new) == number) == (not has_work)
    assert new.is_done()
    context.synchronize()
    assert calls == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["relaxed", "thread_local", "global"])
@pytest.mark.parametrize("in_thread", [False, True])
def test_closing_a_stream_leaves_a_capture_of_any_mode_valid(
    context: Context, mode: CaptureMode, in_thread: bool
) -> None:
    out, stream = context.default_stream.zeros(4, np.uint32), context.new_stream()
    new = [context.new_stream() for _ in range(3)]
    context.synchronize()
    with stream.capture(mode=mode) as graph:
        stream.fill(out, 5)
        for each in new:
            if in_thread:
                all_at_once([each.close])
            else:
                each.close()
        stream.fill(out[:2], 6)
    graph.instantiate().launch(stream)
    assert stream.to_host(out).tolist() == [6, 6, 5, 5]


def test_a_stream_with_attached_memory_is_not_reused(context: Context) -> None:
    array = cudadrv.managed_empty(4, "u4")
    stream = context.new_stream()
    number = raw(stream)
    stream.attach(array, Attachment.STREAM)
    stream.synchronize()
    stream.close()
    new = [context.new_stream() for _ in range(MOST_IDLE)]
    assert number not in map(raw, new)
    array[:] = 7
    assert array.tolist() == [7] * 4


def test_a_stream_of_a_capture_is_reused_after_it(context: Context) -> None:
    stream, other = context.new_stream(), context.new_stream()
    numbers = {raw(stream), raw(other)}
    out = context.default_stream.zeros(4, np.uint32)
    with stream.capture() as graph:
        other.wait(stream)
        other.fill(out, 5)
        stream.wait(other)
    executable = graph.instantiate()
    context.synchronize()
    stream.close()
    other.close()
    del stream, other, graph
    gc.collect()
    new = [context.new_stream(), context.new_stream()]
    assert {*map(raw, new)} == numbers
    executable.launch(new[0])
    assert new[1].to_host(out).tolist() == [5] * 4
    assert not new[0].capturing


def test_a_context_keeps_a_few_idle_streams(machine: emulator.Emulator) -> None:
    context = Context.create(0)
    streams = [context.new_stream() for _ in range(3 * MOST_IDLE)]
    for stream in streams:
        stream.close()
    assert machine.live_objects()["stream"] == MOST_IDLE
    again = [context.new_stream() for _ in range(3 * MOST_IDLE)]
    assert len({*map(raw, again)}) == 3 * MOST_IDLE


def test_contexts_that_end_take_their_streams_along(machine: emulator.Emulator) -> None:
    context = Context.create(0)
    stream = context.new_stream()
    closed(context)
    context.close()
    assert stream.closed
    with pytest.raises(ClosedError):
        stream.synchronize()
    primary = cudadrv.cuda_context_for(1)
    stream = primary.new_stream()
    closed(primary)
    primary.reset()
    assert stream.closed
    del context, stream
    gc.collect()
    with cudadrv.cuda_context_for(1).new_stream() as stream:
        stream.synchronize()


def test_a_green_context_destroys_its_streams(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    green = Context.create_green(context.sm_resource.split(8)[0][0])
    closed(green)
    assert machine.live_objects()["stream"] == 0


def test_threads_that_make_streams_at_once_have_streams_of_their_own(context: Context) -> None:
    def make() -> None:
        for number in range(30):
            stream = context.new_stream()
            assert raw(stream) not in taken
            taken.add(raw(stream))
            assert stream.to_host(stream.to_device(np.full(4, number))).tolist() == [number] * 4
            taken.remove(raw(stream))
            stream.close()

    taken: set[int] = set()
    all_at_once([make] * 8)
    assert taken == set()


def test_a_driver_with_reuse_off_destroys_each_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "0")
    with emulator.session() as machine:
        closed(cudadrv.cuda_context_for(0))
        assert machine.live_objects()["stream"] == 0
