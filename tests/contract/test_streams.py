from __future__ import annotations

import operator
import time
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv.errors import ClosedError, InvalidHandleError, InvalidValueError


def test_a_stream_does_its_work_in_order(stream: cudadrv.Stream) -> None:
    array = stream.zeros(1000, "i4")
    for value in range(5):
        stream.fill(array, value)
    assert stream.to_host(array).tolist() == [4] * 1000


def test_a_done_stream_reports_it(stream: cudadrv.Stream) -> None:
    stream.zeros(10, "f4")
    stream.synchronize()
    assert stream.is_done()


def test_priorities_are_clamped_to_the_range(context: cudadrv.Context) -> None:
    least, greatest = context.priority_range()
    assert greatest <= least
    with context.new_stream(priority=greatest) as urgent, context.new_stream() as usual:
        assert urgent.priority == greatest
        assert usual.priority == 0


def test_an_event_times_what_lies_between(stream: cudadrv.Stream) -> None:
    begun = time.perf_counter()
    start = stream.record()
    stream.zeros(1 << 20, "f4")
    end = stream.record()
    end.synchronize()
    host_ms = 1000 * (time.perf_counter() - begun)
    assert start.is_done()
    assert end.is_done()
    assert 0 <= end.elapsed_ms(start) <= host_ms + 1
    assert start.elapsed_ms(start) == 0


def test_an_event_without_timing_cannot_be_timed(stream: cudadrv.Stream) -> None:
    timed, untimed = stream.record(), stream.record(timing=False)
    stream.synchronize()
    with pytest.raises(InvalidHandleError, match="timing between two events"):
        untimed.elapsed_ms(timed)


def test_an_event_without_a_time_is_named_with_the_reason(context: cudadrv.Context) -> None:
    stream = context.new_stream()
    recorded, untimed = stream.record(), stream.record(timing=False)
    fresh = cudadrv.Event(context)
    stream.synchronize()
    rows = {
        "since, the earlier event, was never recorded": (recorded, fresh),
        "the later event was never recorded": (fresh, recorded),
        "since, the earlier event, was never recorded: ": (fresh, fresh),
        "since, the earlier event, has no timing": (recorded, untimed),
        "the later event has no timing": (untimed, recorded),
    }
    for text, (end, begin) in rows.items():
        for measure in (partial(operator.sub, end, begin), partial(end.elapsed_ms, begin)):
            with pytest.raises(InvalidHandleError, match=f"\n  {text}") as caught:
                measure()
            assert "closed, or belongs" not in str(caught.value)
            assert caught.value.call == "cuEventElapsedTime"
    # The driver defines that it is done.
    fresh.synchronize()
    stream.wait(fresh)
    assert fresh.is_done()
    fresh.record(stream)
    stream.synchronize()
    assert fresh - recorded >= 0


def test_a_stream_waits_for_an_event_of_another(context: cudadrv.Context) -> None:
    with context.new_stream() as first, context.new_stream() as second:
        array = first.zeros(1 << 20, "i4")
        first.fill(array, 7)
        second.wait(first.record())
        out = np.empty(1 << 20, np.int32)
        assert second.to_host(array, out).sum() == 7 << 20
        second.wait(first)
        second.wait(second)


def test_close_is_idempotent_and_use_after_it_is_an_error(context: cudadrv.Context) -> None:
    stream = context.new_stream()
    event = stream.record()
    for closed in (event, stream):
        closed.close()
        closed.close()
    assert stream.closed
    with pytest.raises(ClosedError, match="the event was closed"):
        event.synchronize()
    with pytest.raises(ClosedError, match="the stream on device 0 was closed"):
        stream.synchronize()
    with pytest.raises(ClosedError):
        stream.zeros(3, "f4")


def test_the_default_stream_is_one_a_context_and_outlives_close(context: cudadrv.Context) -> None:
    stream = context.default_stream
    stream.close()
    assert context.default_stream is stream
    assert not stream.closed
    assert stream.to_host(stream.zeros(2, "u1")).tolist() == [0, 0]


def test_a_stream_offers_its_handle_by_protocol(stream: cudadrv.Stream) -> None:
    assert stream.__cuda_stream__() == (0, int(stream.handle))


def test_memory_outlives_the_stream_it_came_from(context: cudadrv.Context) -> None:
    first = context.new_stream()
    array = first.to_device(np.arange(10))
    first.synchronize()
    first.close()
    with context.new_stream() as second:
        assert second.to_host(array).tolist() == list(range(10))
    array.close()
    assert array.closed


@pytest.mark.slow
def test_work_of_a_closed_stream_is_waited_for(context: cudadrv.Context) -> None:
    ones = np.ones(1 << 22, np.float32)
    with context.new_stream() as second:
        for value in range(5):
            first = context.new_stream()
            array = first.to_device(ones)
            for _ in range(20):
                first.fill(array, value)
            first.close()
            copy = second.empty(array.shape, array.dtype)
            second.copy(copy, array)
            assert (second.to_host(copy) == value).all()


def test_memory_of_a_closed_stream_can_be_given_to_other_libraries(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    first = context.new_stream()
    array = first.zeros(1 << 22, "i4")
    first.fill(array, 7)
    first.close()
    interface = array.__cuda_array_interface__
    assert (interface["data"], interface["stream"]) == ((array.ptr, False), None)
    assert array.__dlpack__() is not None
    assert (stream.to_host(stream.import_array(array)) == 7).all()


def test_a_capture_inside_a_capture_is_rejected(stream: cudadrv.Stream) -> None:
    array = stream.zeros(4, "i4")
    with stream.capture(), pytest.raises(InvalidValueError, match="already capturing"):
        stream.fill(array, 1)
        stream.capture().__enter__()
