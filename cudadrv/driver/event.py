"""Events: points in a stream that can be waited for and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from ptx.read_only import ReadOnly

from .. import border
from ..errors import ArgumentValueError, CudadrvError, InvalidHandleError, WrongDeviceError
from ._api import (
    OPAQUE_BYTES,
    CUevent,
    CUevent_flags,
    CUipcEventHandle,
    CUresult,
    of_opaque_bytes,
    opaque_bytes,
)
from .context import BaseContext, require_context
from .context_handle import ChildHandle, ContextHandle
from .deferred_release import run_deferred
from .driver_selection import checked, failure
from .handle import Closeable, ClosedHandle, LiveKey, _forget, _live, release
from .pickling import Reduced, device_named, register_reduction, unshared
from .stream import BaseStream
from .stream_handle import MOST_SPARE, UNTIMED, EventHandle

_BLOCKING: Final = int(CUevent_flags.CU_EVENT_BLOCKING_SYNC)
_DEFAULT: Final = int(CUevent_flags.CU_EVENT_DEFAULT)
_INTERPROCESS: Final = int(CUevent_flags.CU_EVENT_INTERPROCESS)
_new: Final = object.__new__
_CLOSED_TEXT: Final = "the event was closed"
_CLOSED: Final = ClosedHandle(_CLOSED_TEXT)
# A wait in asyncio takes at most this fraction longer than the work, plus this many seconds.
_SHARE: Final = 0.1
_LONGEST_S: Final = 0.005


class Event(Closeable):
    """A point in a stream; made by `Stream.record`, or by the user and recorded later.

    Args:
        context: the context it belongs to; an event is recorded on streams of its context.
        timing: whether `elapsed_ms` will be called; without timing an event is cheaper.
        blocking: whether a thread that waits in `synchronize` sleeps instead of spinning.
        interprocess: whether other processes may open it: through multiprocessing, or by an
            `IpcEventHandle`. Such an event has no timing.

    Attributes:
        context: the context.
        timing: whether it can be timed.
        interprocess: whether other processes may open it.
        handle: the CUevent; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_context", "_interprocess", "_timing")

    context: ReadOnly[BaseContext] = ReadOnly("_context")
    interprocess: ReadOnly[bool] = ReadOnly("_interprocess")
    timing: ReadOnly[bool] = ReadOnly("_timing")

    _handle: EventHandle
    _remedy = (
        "make it with interprocess=True, and give it to multiprocessing or send an IpcEventHandle"
    )

    def __init__(
        self,
        context: BaseContext,
        *,
        timing: bool = True,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        require_context("Event: context", context)
        flags = (_DEFAULT if timing else UNTIMED) | (_BLOCKING if blocking else _DEFAULT)
        if interprocess:
            if timing:
                raise ArgumentValueError(
                    "Event: an event of several processes cannot be timed: give timing=False"
                )
            flags |= _INTERPROCESS
            register_reduction(Event, _reduced)
        self._adopt_handle(context, EventHandle(context._handle, flags), timing, interprocess)

    def _adopt_handle(
        self, context: BaseContext, handle: EventHandle, timing: bool, interprocess: bool
    ) -> None:
        self._context: BaseContext = context
        self._timing: bool = timing
        self._interprocess: bool = interprocess
        self._own(handle)
        # The context finds its events by their handles. Another thread may have closed it before.
        owner: object = context._handle
        if owner.__class__ is ClosedHandle:
            self.close()
            raise context._closed_error()

    def close(self) -> None:
        """Release the driver's event; it is destroyed when nothing needs it any more. Idempotent.

        Raises:
            CudaError: it was destroyed at once, and the call failed or reported that earlier work
                failed.
        """
        handle = self._handle
        spare = handle.spare if handle.__class__ is EventHandle else None
        if spare is not None and handle.capture is None and len(spare) < MOST_SPARE:
            # `EventHandle.__del__` reuses it. No call destroys it, so none can fail.
            self._handle = _CLOSED  # type: ignore[assignment]  # as after each close
            key = self._key
            if key in _live:  # as `release` does
                _live[key] = None
        else:
            del handle  # so that `close` destroys it
            super().close()

    def _mark_closed(self, cause: str = "") -> None:
        if cause:
            super()._mark_closed(cause)
        else:
            # One for all saves making it.
            self._handle = _CLOSED  # type: ignore[assignment]  # as after each close
            release(self._key)

    def __repr__(self) -> str:
        handle = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Event {handle} on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return _CLOSED_TEXT

    @property
    def handle(self) -> CUevent:
        """The CUevent.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def record(self, stream: BaseStream) -> None:
        """Set the event to this point of `stream`."""
        if not isinstance(stream, BaseStream):
            raise border.wrong_type("Event.record: stream", stream, "give a Stream")
        self._handle.record(stream._handle)

    def synchronize(self) -> None:
        """Wait until the work before the event is done; one that was never recorded is done.

        Raises:
            CudaError: that work failed.
        """
        handle = self._handle
        if handle.capture is not None:
            handle.require_outside()
        (code,) = handle.context._driver.api.cuEventSynchronize(handle.raw)
        if code:
            raise failure(handle.api, code, "cuEventSynchronize", "waiting for an event")
        run_deferred()

    def is_done(self) -> bool:
        """Return whether the work before the event is done, without waiting.

        An event that was never recorded is done.

        Raises:
            CudaError: that work failed.
        """
        return self._handle.is_done()

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in asyncio until the work before the event is done: ``await event``.

        Raises:
            CudaError: that work failed.
        """
        yield from _until(self.is_done)
        run_deferred()

    def __sub__(self, since: Event) -> float:
        """Return the milliseconds of device time of ``end - begin``, as `elapsed_ms`."""
        if not isinstance(since, Event):
            return NotImplemented
        return self.elapsed_ms(since)

    def elapsed_ms(self, since: Event) -> float:
        """Return milliseconds of device time from `since` to this event.

        The resolution is about half a microsecond.

        Raises:
            NotReadyError: one of the two has not been reached; synchronize first.
            InvalidHandleError: one of the two was made without timing, or was never recorded;
                the message says which. Or the two are of different devices.
        """
        border.instance_of("Event.elapsed_ms: since", since, Event)
        end, start = self._handle, since._handle
        end.require_outside()
        start.require_outside()
        code, elapsed = end.api.cuEventElapsedTime(start.raw, end.raw)
        if code:
            raise _timing_failure(self, since, code)
        return elapsed


def event_at(of: BaseStream, timing: bool) -> Event:
    """Return a new event at the present point of a stream.

    In one function, as a program may record an event for each launch: calls would add a fifth.
    """
    stream, event = of._handle, _new(Event)
    owner, context = stream.context, of._context
    spare = owner.timed_events if timing else owner.untimed_events
    try:
        raw = spare.pop() if spare else None
    except IndexError:  # another thread took it
        raw = None
    if raw is None:
        handle = EventHandle(owner, _DEFAULT if timing else UNTIMED, spare)
    else:
        handle = _new(EventHandle)
        handle.context, handle.capture, handle.raw, handle.spare = owner, None, raw, spare
    event._context, event._timing, event._interprocess = context, timing, False
    event._handle, event._dependents = handle, None  # as `_own` does
    event._key = key = LiveKey(event, _forget)
    _live[key] = handle
    closed: object = context._handle  # as in `_adopt_handle`
    if closed.__class__ is ClosedHandle:
        event.close()
        raise context._closed_error()
    passes = stream.gate.passes  # as `EventHandle.record` does
    try:
        mine = passes.pop()
    except IndexError:
        mine, passes = stream.gate.enter(), stream.gate.passes
    try:
        (code,) = owner._driver.api.cuEventRecord(handle.raw, stream.raw)
    finally:
        passes.append(mine)
    if code:
        raise failure(handle.api, code, "cuEventRecord", f"recording an event on {stream}")
    handle.capture = stream.capture
    return event


def _timing_failure(end: Event, since: Event, code: CUresult) -> CudadrvError:
    """Return the error of a measured time; it names the event that has none, and why."""
    api, doing = end._handle.api, "timing between two events"
    error = failure(api, code, "cuEventElapsedTime", doing)
    if not isinstance(error, InvalidHandleError):
        return error
    text = ""
    for name, event in (("since, the earlier event,", since), ("the later event", end)):
        if not event.timing:
            text = f"{name} has no timing: make it with timing=True"
            break
        # Each event is at no distance from itself, unless it was never recorded.
        if api.cuEventElapsedTime(event._handle.raw, event._handle.raw)[0] == code:
            text = f"{name} was never recorded: use Stream.record, or Event.record first"
            break
    if not text:
        return error
    return InvalidHandleError(doing, call="cuEventElapsedTime", text=text, explained=True)


def _until(is_done: Callable[[], bool]) -> Generator[Any, None, None]:
    """Yield to asyncio until `is_done` returns True.

    The driver is polled. A host function in the stream would not be called after failed work;
    polling raises its error.
    """
    if is_done():
        return
    import asyncio  # 30 ms, only for programs that await

    start = time.perf_counter()
    while not is_done():
        waited = time.perf_counter() - start
        yield from asyncio.sleep(min(waited * _SHARE, _LONGEST_S)).__await__()


@dataclass(frozen=True, slots=True)
class IpcEventHandle:
    """Identifies an event for other processes of the host; `of` makes it.

    Attributes:
        payload: the driver's handle.
        device: the UUID of the device.
    """

    payload: bytes
    device: bytes

    @classmethod
    def of(cls, event: Event) -> IpcEventHandle:
        """Return a handle by which another process opens an event: plain bytes, sent in any way.

        Keep the event until that process has opened it.

        Raises:
            ExportError: it was not made with ``interprocess=True``.
        """
        if not border.instance_of("IpcEventHandle.of: event", event, Event).interprocess:
            raise unshared(repr(event), "make it with interprocess=True")
        event_handle, device = event._handle, event.context.device
        if isinstance(event_handle, _OpenedEventHandle):
            return cls(event_handle.payload, device.uuid.bytes)
        # With a context of another device current, the driver of CUDA 13.0 ends the process.
        result = event_handle.context.call(event_handle.api.cuIpcGetEventHandle, event_handle.raw)
        native = checked(event_handle.api, "cuIpcGetEventHandle", result, "sharing an event")
        handle = cls(opaque_bytes(native), device.uuid.bytes)
        _shared_events(event_handle.context)[handle.payload] = event_handle
        return handle

    def open(self, context: BaseContext) -> Event:
        """Open the event in this process: either process can record it, and the other wait for it.

        In the process that made the handle the result is the event itself.

        Raises:
            WrongDeviceError: the context is of another device.
            CudaError: the process that made it has closed it or has ended.
        """
        require_context("IpcEventHandle.open: context", context)
        if context.device.uuid.bytes != self.device:
            raise WrongDeviceError(f"opening an event of another device for {context!r}")
        if len(self.payload) != OPAQUE_BYTES:
            raise ArgumentValueError(f"{len(self.payload)} bytes are not the handle of an event")
        owner = context._handle
        with context.device.driver.lock:
            shared = _shared_events(owner)
            handle = shared.get(self.payload)
            if handle is None:
                handle = shared[self.payload] = _OpenedEventHandle(owner, self.payload)
        event = Event.__new__(Event)
        event._adopt_handle(context, handle, False, True)
        register_reduction(Event, _reduced)
        return event


class _OpenedEventHandle(EventHandle):
    """Owns an event that another process made.

    Attributes:
        payload: the bytes that identify it.
    """

    __slots__ = ("payload",)

    def __init__(self, context: ContextHandle, payload: bytes) -> None:
        ChildHandle.__init__(self, context)
        self.capture = self.spare = None
        self.payload: bytes = payload
        code = self.make(
            context.api.cuIpcOpenEventHandle, of_opaque_bytes(CUipcEventHandle, payload)
        )
        if code:
            doing = "opening an event of another process"
            raise failure(context.api, code, "cuIpcOpenEventHandle", doing)


class _SharedEvents:
    """The events of a device that other processes share, by the bytes of their handles."""

    def __init__(self) -> None:
        self.by_payload: WeakValueDictionary[bytes, EventHandle] = WeakValueDictionary()


def _shared_events(context: ContextHandle) -> WeakValueDictionary[bytes, EventHandle]:
    return context.driver.one_of(_SharedEvents, context.ordinal).by_payload


def _reduced(event: Event) -> Reduced:
    """Return the parts of an event for multiprocessing."""
    return _received, (type(event.context), IpcEventHandle.of(event))


def _received(kind: type[BaseContext], handle: IpcEventHandle) -> Event:
    """Return an event received by multiprocessing, in the primary context of its device."""
    return handle.open(kind._primary_of(device_named(handle.device, "an event")))
