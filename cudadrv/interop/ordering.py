"""The order of our streams after those of other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from ..driver._api import CUresult, CUstream, CUstreamCaptureStatus
from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import call_bound, failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle

# The last driver call that was made, and its result.
_Answer: TypeAlias = tuple[str, CUresult]
# The legacy default stream, by both its numbers, and the per-thread one.
_LEGACY: Final = (0, 1)
_NAMELESS: Final = {number: CUstream(number) for number in (*_LEGACY, 2)}
# A process may make streams for ever, each with a number of its own.
_MOST_KNOWN: Final = 1024


def needs_no_wait(stream: BaseStream) -> tuple[int, ...]:
    """Return the numbers of other libraries' streams that a stream follows without a wait.

    A stream follows itself. The default stream of a primary context also follows the legacy default
    stream, by the driver ("Stream synchronization behavior" in the CUDA Driver API manual). A
    capture is no part of that order.
    """
    box = stream._handle
    own_number = int(box.raw)
    if box.capture is None and stream._is_legacy_ordered:
        return own_number, *_LEGACY
    return (own_number,)


def order_after(stream: BaseStream, producers: Iterable[int]) -> None:
    """Make `stream` wait for the present work of foreign streams; a capture waits on the host."""
    box, before = stream._handle, needs_no_wait(stream)
    for producer in producers:
        if producer not in before and not _waits_for_known(box, producer):
            _follow(stream, box, producer)


def _follow(stream: BaseStream, box: StreamHandle, producer: int) -> None:
    call, code = _waited_for(stream, box, producer)
    if code:
        raise failure(box.api, code, call, f"ordering {stream!r} after {producer:#x}")


def _waits_for_known(box: StreamHandle, producer: int) -> bool:
    """Queue the usual wait, in half of the time: for a stream that is known, without captures.

    Return False if the wait is another one, or failed.
    """
    context = box.context
    foreign = context.known_streams.get(producer)
    if foreign is None or box.capture is not None:
        return False
    event = box.take_event()
    try:
        if producer in _NAMELESS:
            code = _recorded_on_default(context, event, foreign)
        else:
            (code,) = context._driver.api.cuEventRecord(event.raw, foreign)
        if code:
            return False
        box.wait(event)
    finally:
        # The wait is for the event's work of that moment: it may be recorded again at once.
        box.spare.append(event)
    return True


def _recorded_on_default(
    context: ContextHandle, event: EventHandle, foreign: CUstream
) -> CUresult | bool:
    """Record an event on a default stream; True if its context is not current, or one captures."""
    api, passes = context._driver.api, context.gate.passes
    code, now = api.cuCtxGetCurrent()
    if code or int(now) != int(context.raw):
        return True
    try:
        mine = passes.pop()  # as `call_in_legacy_order` does
    except IndexError:
        return True
    try:
        return bool(context.captures) or api.cuEventRecord(event.raw, foreign)[0]
    finally:
        passes.append(mine)


def _waited_for(stream: BaseStream, box: StreamHandle, producer: int) -> _Answer:
    wait = _wait_by_event if box.capture is None else _wait_outside
    if producer not in _NAMELESS:
        return wait(box, producer, CUstream(producer))
    if box.capture is not None and producer in _LEGACY and stream._is_legacy_ordered:
        # Nothing may touch the legacy stream in such a capture: its work is from before.
        (code,) = box.api.cuEventSynchronize(box.capture.before[box.own.gate].raw)
        return "cuEventSynchronize", code
    # The current context decides which stream this number is; other libraries use primary ones.
    # The query takes half of the time of binding.
    context, foreign = stream.context.device.primary_context(), _NAMELESS[producer]
    api = box.context.driver.api
    code, now = api.cuCtxGetCurrent()
    if not code and int(now) == int(context):
        return wait(box, producer, foreign)
    return call_bound(api, context, wait, box, producer, foreign)


def follow_producers(stream: BaseStream, producers: Iterable[int]) -> None:
    """Order `stream` after the producers of memory, unless its user opted out of ordering."""
    if not stream._handle.unordered:
        order_after(stream, producers)


def follow_producer(stream: BaseStream, producer: int) -> None:
    """As `follow_producers`, for one stream that `needs_no_wait` does not contain."""
    box = stream._handle
    if not box.unordered and not _waits_for_known(box, producer):
        _follow(stream, box, producer)


def _wait_by_event(box: StreamHandle, producer: int, foreign: CUstream) -> _Answer:
    if producer not in box.context.known_streams:
        return _wait_in_own_context(box, producer, foreign)
    event = box.take_event()
    try:
        answer = _recorded_and_awaited(box, event, foreign)
    finally:
        # The wait is for the event's work of that moment: it may be recorded again at once.
        box.spare.append(event)
    if answer[1] == CUresult.CUDA_ERROR_INVALID_HANDLE:
        # It was destroyed, and the number is now a stream's of another context.
        box.context.known_streams.pop(producer, None)
        return _wait_in_own_context(box, producer, foreign)
    return answer


def _wait_in_own_context(box: StreamHandle, producer: int, foreign: CUstream) -> _Answer:
    """Wait by an event of the foreign stream's own context, which is looked up."""
    # For a default stream this is the current context, as intended.
    code, raw = box.api.cuStreamGetCtx(foreign)
    if code:
        return "cuStreamGetCtx", code
    context, known = box.context, box.context.known_streams
    if int(raw) != int(context.raw):
        context = ContextHandle(box.driver, raw, context.ordinal, is_primary=True)  # not ours
    else:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[producer] = foreign
    return _recorded_and_awaited(box, EventHandle(context), foreign)


def _recorded_and_awaited(box: StreamHandle, event: EventHandle, foreign: CUstream) -> _Answer:
    api = box.context.driver.api
    if int(foreign) in _LEGACY and box.context.is_primary:
        function = api.cuEventRecord
        (code,) = box.context.call_in_legacy_order(function, event.raw, foreign)
    else:
        (code,) = api.cuEventRecord(event.raw, foreign)
    if code:
        return "cuEventRecord", code
    (code,) = box.submit(api.cuStreamWaitEvent, box.raw, event.raw, 0)
    return "cuStreamWaitEvent", code


def _wait_outside(box: StreamHandle, producer: int, foreign: CUstream) -> _Answer:
    """Wait on the host, as a capture cannot wait for a stream outside of it."""
    code, status = box.api.cuStreamIsCapturing(foreign)
    if code:
        return "cuStreamIsCapturing", code
    if status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
        return _wait_by_event(box, producer, foreign)
    (code,) = box.api.cuStreamSynchronize(foreign)
    return "cuStreamSynchronize", code
