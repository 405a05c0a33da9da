"""`Stream.record` reuses the driver's events of closed objects, and no object notices it."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import Event, LaunchConfig, Stream, emulator
from cudadrv.errors import ClosedError, InvalidHandleError
from tests.several_threads import all_at_once

KINDS = (False, True)
SLEEP = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry idle() { nanosleep.u32 1000; ret; }
"""


@pytest.fixture(params=["immediate", "late"])
def machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[emulator.Emulator]:
    """An emulator that lets events be reused, as a driver does."""
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session(devices=2, order=request.param) as machine:
        yield machine


@pytest.fixture
def stream(machine: emulator.Emulator) -> Stream:
    return cudadrv.cuda_context_for(0).new_stream()


def raw(event: Event) -> int:
    return int(event.handle)


def closed(stream: Stream, *, timing: bool) -> int:
    """Record and close an event; return its number."""
    with stream.record(timing=timing) as event:
        return raw(event)


@pytest.mark.parametrize("timing", KINDS)
def test_a_closed_event_is_recorded_again_by_the_next_object(stream: Stream, timing: bool) -> None:
    first = stream.record(timing=timing)
    number = raw(first)
    first.close()
    first.close()
    second = stream.record(timing=timing)
    assert raw(second) == number
    with pytest.raises(ClosedError, match="the event was closed"):
        first.synchronize()
    with pytest.raises(ClosedError, match="the event was closed"):
        stream.wait(first)
    assert (first.closed, second.closed, second.timing) == (True, False, timing)
    second.synchronize()


def test_an_event_is_reused_for_its_kind_and_context_alone(machine: emulator.Emulator) -> None:
    contexts = [cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)]
    contexts += [cudadrv.Context.create(0), cudadrv.Context.create(1)]
    streams = [context.new_stream() for context in contexts]
    cells = list(itertools.product(streams, KINDS))
    first = [closed(stream, timing=timing) for stream, timing in cells]
    again = [closed(stream, timing=timing) for stream, timing in reversed(cells)]
    assert first == again[::-1]
    assert len(set(first)) == len(cells)
    for stream, timing in cells:
        with stream.record(timing=timing) as begin, stream.record(timing=timing) as end:
            end.synchronize()
            if timing:
                assert end - begin >= 0
            else:
                with pytest.raises(InvalidHandleError, match="has no timing"):
                    end.elapsed_ms(begin)


def test_an_event_in_use_is_not_reused(stream: Stream) -> None:
    """Open objects, graphs that wait for the event, and the object of a with block."""
    held = [stream.record(timing=False) for _ in range(3)]
    graph = stream.context.new_graph()
    graph.add_wait(held[0])
    numbers = [raw(event) for event in held]
    held[0].close()
    event = held[1]
    del held[1:]
    new = [stream.record(timing=False) for _ in range(6)]
    assert raw(event) == numbers[1]
    assert numbers[0] not in map(raw, new)
    assert raw(event) not in map(raw, new)
    assert len({*map(raw, new)}) == 6
    assert numbers[2] in map(raw, new)  # the dropped one
    executable = graph.instantiate()
    del graph
    gc.collect()
    new += [stream.record(timing=False) for _ in range(3)]
    assert numbers[0] not in map(raw, new)
    executable.launch(stream)
    stream.synchronize()
    del executable
    gc.collect()
    stream.synchronize()  # releases what a graph has held
    new += [stream.record(timing=False) for _ in range(3)]
    assert numbers[0] in map(raw, new)


@pytest.mark.parametrize("timing", KINDS)
def test_an_event_that_was_never_recorded_is_none_that_was(stream: Stream, timing: bool) -> None:
    number = closed(stream, timing=timing)
    kernel = stream.context.load_module(SLEEP).kernel("idle")
    kernel.launch(stream, LaunchConfig(1, 1))
    event = Event(stream.context, timing=timing)
    assert raw(event) != number
    assert event.is_done()
    if timing:
        later = stream.record()
        later.synchronize()
        with pytest.raises(
            InvalidHandleError, match="since, the earlier event, was never recorded"
        ):
            later.elapsed_ms(event)


@pytest.mark.parametrize("timing", KINDS)
def test_a_reused_event_is_reached_after_the_new_work(stream: Stream, timing: bool) -> None:
    other, value = stream.context.new_stream(), np.zeros(4, "u4")
    array = stream.zeros(4, np.uint32)
    number = closed(stream, timing=timing)
    with stream.unordered(), other.unordered():
        stream.fill(array, 7)
        event = stream.record(timing=timing)
        assert raw(event) == number
        other.wait(event)
        event.close()
        again = other.record(
            timing=timing
        )  # before the driver has made `other` wait, if it is late
        assert raw(again) == number
        other.copy(value, array)
        again.synchronize()
        other.synchronize()
    assert value.tolist() == [7] * 4


def test_an_event_of_a_capture_is_not_reused(stream: Stream) -> None:
    before = closed(stream, timing=False)
    other, out = stream.context.new_stream(), stream.zeros(4, np.uint32)
    with stream.capture() as graph:
        event = stream.record(timing=False)
        inside = raw(event)
        other.wait(event)
        event.close()
        stream.wait(other)
        stream.fill(out, 5)
    event = stream.record(timing=False)
    assert event.is_done() in (False, True)  # and no error, as of one in a capture
    event.synchronize()
    assert inside == before
    assert raw(event) != inside
    graph.instantiate().launch(stream)
    assert stream.to_host(out).tolist() == [5] * 4


def test_contexts_that_end_take_their_events_along(machine: emulator.Emulator) -> None:
    for timing in KINDS:
        context = cudadrv.Context.create(0)
        event = context.new_stream().record(timing=timing)
        closed(context.new_stream(), timing=timing)
        context.close()
        assert event.closed
        with pytest.raises(ClosedError):
            event.synchronize()
        primary = cudadrv.cuda_context_for(1)
        event = primary.new_stream().record(timing=timing)
        closed(primary.new_stream(), timing=timing)
        primary.reset()
        assert event.closed
        del context, event
        gc.collect()
        assert machine.live_objects()["event"] == 0
        stream = cudadrv.cuda_context_for(1).new_stream()
        with stream.record(timing=timing) as event:
            event.synchronize()


def test_a_green_context_destroys_its_events(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    green = cudadrv.Context.create_green(context.sm_resource.split(8)[0][0])
    stream = green.new_stream()
    for timing in KINDS:
        closed(stream, timing=timing)
    assert machine.live_objects()["event"] == 0


def test_threads_that_record_at_once_have_events_of_their_own(stream: Stream) -> None:
    def record() -> None:
        for _ in range(50):
            events = [stream.record(timing=timing) for timing in KINDS]
            for event in events:
                assert raw(event) not in taken
                taken.add(raw(event))
            for event in events:
                event.synchronize()
                taken.remove(raw(event))
                event.close()

    taken: set[int] = set()
    all_at_once([record] * 8)
    assert taken == set()


def test_a_driver_with_reuse_off_destroys_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "0")
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        for timing in KINDS:
            closed(stream, timing=timing)
        assert machine.live_objects()["event"] == 0


@pytest.mark.parametrize("is_recorded", [False, True])
def test_an_event_is_destroyed_if_the_former_context_cannot_be_restored(
    machine: emulator.Emulator, stream: Stream, is_recorded: bool
) -> None:
    before = machine.live_objects()["event"]
    with machine.fail("cuCtxPopCurrent"), pytest.raises(cudadrv.CudaError, match="cuCtxPopCurrent"):
        if is_recorded:
            stream.record()
        else:
            Event(stream.context)
    gc.collect()
    assert machine.live_objects()["event"] == before
