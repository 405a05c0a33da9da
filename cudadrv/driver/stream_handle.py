"""Owning handles of streams and events, and the state of a capture.

A capture records the work that its streams receive. The graph uses the memory of that work, not the
stream. So a stream has another handle while it captures, its capture handle, on which no memory is
ordered. Then each fast test fails, and each use is recorded in the capture.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar, TypeVarTuple, Unpack

from .. import errors
from ._api import (
    CUdeviceptr,
    CUevent,
    CUevent_flags,
    CUresult,
    CUstream,
    CUstream_flags,
    CUstreamCaptureStatus,
)
from .call_gate import CallGate, CapturePeriod
from .context_handle import ChildHandle, ContextHandle
from .driver_selection import Driver, failure
from .handle import FREE_THREADED, AnyHandle, check, handle_of
from .stream_block_cache import StreamBlockCache

_Args = TypeVarTuple("_Args")
_T = TypeVar("_T")

UNTIMED: Final = int(CUevent_flags.CU_EVENT_DISABLE_TIMING)
MOST_SPARE: Final = 64
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


class CaptureUnderWay(Exception):  # no fault: the call is made after the capture
    """A capture has the stream, for which a call that must not wait cannot wait."""


class EventHandle(ChildHandle[CUevent]):
    """Owns an event.

    Attributes:
        capture: the capture that it was last recorded in, if it was in one.
        spare: the list of its context that receives the event when nothing refers to the handle;
            without one the event is destroyed then.
    """

    __slots__ = ("capture", "spare")

    def __init__(
        self,
        context: ContextHandle,
        flags: int = UNTIMED,
        spare: list[CUevent] | None = None,
        raw: CUevent | None = None,
    ) -> None:
        self.context = context  # in one function, as `Stream.record` makes a handle for each event
        self.capture: CaptureState | None = None
        self.raw = raw  # type: ignore[assignment]  # unused before the event is made
        if raw is None:
            code = self.make(context.api.cuEventCreate, flags)
            if code:
                raise failure(context.api, code, "cuEventCreate", "making an event")
        self.spare: list[CUevent] | None = spare  # last: a handle without it is unfinished

    def __del__(self) -> None:
        try:
            spare = self.spare
            if spare is not None and self.capture is None and len(spare) < MOST_SPARE:
                spare.append(self.raw)  # of a context that was reset, to a list no longer used
                self._forget_raw()  # a finalizer may save this handle
                return
        except AttributeError:  # it was never finished, but the event may be made
            pass
        self._destroy_and_report()

    def record(self, stream: StreamHandle) -> None:
        """Set the event to this point of a stream."""
        passes = stream.gate.passes  # as `submit` does, at half the cost
        try:
            mine = passes.pop()
        except IndexError:
            mine, passes = stream.gate.enter(), stream.gate.passes
        try:
            (code,) = self.context._driver.api.cuEventRecord(self.raw, stream.raw)
        finally:
            passes.append(mine)
        if code:
            raise failure(self.api, code, "cuEventRecord", f"recording an event on {stream}")
        self.capture = stream.capture

    def record_at_once(self, stream: StreamHandle) -> None:
        """Set the event to this point of a stream, without waiting for the end of a capture.

        Raises:
            CaptureUnderWay: a capture has the stream.
        """
        (code,) = stream.submit_at_once(self.api.cuEventRecord, self.raw, stream.raw)
        self._recorded(stream, code)

    def _recorded(self, stream: StreamHandle, code: CUresult) -> None:
        if code:
            raise failure(self.api, code, "cuEventRecord", f"recording an event on {stream}")
        self.capture = stream.capture

    def is_done(self) -> bool:
        """Return whether the work before the event is done, without waiting.

        Raises:
            CudaError: that work failed.
        """
        if self.capture is not None:
            self.require_outside()
        (code,) = self.context._driver.api.cuEventQuery(self.raw)
        if code == CUresult.CUDA_ERROR_NOT_READY:
            return False
        if code:
            raise failure(self.api, code, "cuEventQuery", "querying whether an event is done")
        return True

    def require_outside(self) -> None:
        """Raise if the event is of another thread's capture, which a use of it would invalidate.

        Raises:
            StreamCaptureIsolationError: it is.
        """
        capture = self.capture
        if capture is not None and capture.is_open and not capture.is_own:
            raise errors.StreamCaptureIsolationError(
                "using an event that another thread has recorded in a capture",
                text="record it outside of the capture, or use it in the capturing thread",
                explained=True,
            )

    def _destroy(self) -> None:
        api = self.context._driver.api
        (code,) = api.cuEventDestroy(self.raw)
        if code:
            doing = f"destroying an event of device {self.context.ordinal}"
            raise failure(api, code, "cuEventDestroy", doing)


class StreamHandle(ChildHandle[CUstream]):
    """Owns a stream, or represents and keeps alive one of another library.

    Attributes:
        is_owned: whether the stream is destroyed with the handle.
        keeps: of a capture handle, the stream's own handle; or the other library's object.
        heir: the handle that has its stream, once this one was destroyed; on free-threaded builds.
        spare: events for waits, while no thread uses them.
        capture: of a capture handle, the capture that records its work.
        captured_by: the capture in which the stream has a capture handle now.
        gate: lets a capture have the stream for itself.
        unordered: how many open blocks declare that the user orders the stream.
        queried_flags: the stream's flags, once the driver was queried.
        is_closed: whether its owner has closed it, so that it receives no new work.
        block_cache: the small blocks cached for its next allocations; none of a capture handle.
        home_version: replaced by a new object each time that memory ordered on this stream moves to
            another one or is about to be closed.
    """

    __slots__ = (
        "block_cache",
        "capture",
        "captured_by",
        "gate",
        "heir",
        "home_version",
        "is_closed",
        "is_owned",
        "keeps",
        "queried_flags",
        "spare",
        "unordered",
    )

    def __init__(
        self, context: ContextHandle, raw: CUstream | None, *, is_owned: bool, keeps: object = None
    ) -> None:
        self.heir: StreamHandle | None = None
        self.is_owned: bool = is_owned
        self.keeps: object = keeps
        self.spare: list[EventHandle] = []
        self.capture: CaptureState | None = None
        self.captured_by: CaptureState | None = None
        self.gate: CallGate = CallGate()
        self.unordered: int = 0
        self.queried_flags: int | None = None
        self.is_closed: bool = False
        self.home_version: object = []
        self.block_cache: StreamBlockCache = StreamBlockCache()
        self.block_cache.is_open = is_owned and context._driver.keeps_blocks
        self.raw = raw  # type: ignore[assignment]  # unused before the stream is made
        self.context = context  # last: a handle without a context counts as unfinished

    @property
    def own(self) -> StreamHandle:
        """The stream's own handle, if this may be its capture handle."""
        return self.keeps if isinstance(self.keeps, StreamHandle) else self

    @property
    def is_foreign(self) -> bool:
        """Whether it keeps an object of the user alive: the owner of another library's stream."""
        return self.keeps is not None and self.capture is None

    def __str__(self) -> str:
        return f"the stream {int(self.raw):#x} of device {self.context.ordinal}"

    def flags(self) -> tuple[CUresult, int]:
        """Return the driver's result and the flags of the stream, which never change.

        The driver is queried once: while the stream captures, the query fails and invalidates the
        capture. Measured on an H200 with driver 580.
        """
        own = self.own
        if own.queried_flags is None:
            code, flags = own.api.cuStreamGetFlags(own.raw)
            if code:
                return code, flags
            own.queried_flags = flags
        return CUresult.CUDA_SUCCESS, own.queried_flags

    def submit(self, function: Callable[[Unpack[_Args]], _T], *args: *_Args) -> _T:
        """Call a function that queues work on the stream, once no other thread captures it.

        Raises:
            StreamCaptureIsolationError: the capture cannot end, or has exceeded its limit.
        """
        passes = self.gate.passes
        try:
            mine = passes.pop()
        except IndexError:
            mine, passes = self.gate.enter(), self.gate.passes
        try:
            return function(*args)
        finally:
            passes.append(mine)

    def submit_at_once(self, function: Callable[[Unpack[_Args]], _T], *args: *_Args) -> _T:
        """As `submit`, for finalizers, which must not wait.

        Raises:
            CaptureUnderWay: a capture has the stream.
        """
        passes = self.gate.passes
        mine = self.gate.try_enter()
        if mine is None:
            raise CaptureUnderWay
        try:
            return function(*args)
        finally:
            passes.append(mine)

    def wait(self, event: EventHandle) -> None:
        """Let later work wait for an event."""
        passes = self.gate.passes  # as `submit` does, at half the cost
        try:
            mine = passes.pop()
        except IndexError:
            mine, passes = self.gate.enter(), self.gate.passes
        try:
            (code,) = self.context._driver.api.cuStreamWaitEvent(self.raw, event.raw, 0)
        finally:
            passes.append(mine)
        if code:
            raise failure(self.api, code, "cuStreamWaitEvent", f"making {self} wait for an event")

    def wait_at_once(self, event: EventHandle) -> None:
        """Let later work wait for an event, without waiting for the end of a capture.

        Raises:
            CaptureUnderWay: a capture has the stream.
        """
        (code,) = self.submit_at_once(self.api.cuStreamWaitEvent, self.raw, event.raw, 0)
        if code:
            raise failure(self.api, code, "cuStreamWaitEvent", f"making {self} wait for an event")

    def follow(self, other: StreamHandle) -> None:
        """Let later work wait for the current work of another stream.

        Raises:
            StreamCaptureIsolationError: that work is part of a capture, and this stream is not.
        """
        other.precede(self.wait, self.capture)

    def follow_at_once(self, other: StreamHandle) -> None:
        """As `follow`, for finalizers, which must not wait.

        Raises:
            CaptureUnderWay: a capture has the stream.
        """
        other.precede(self.wait_at_once, self.capture, at_once=True)

    def before_capture(self, *, at_once: bool = False) -> EventHandle | None:
        """Return the event where the capture that has the stream began; None if there is none.

        Raises:
            CaptureUnderWay: with `at_once`, the capture still waits for calls that are under way.
        """
        while True:
            period, capture = self.gate.period, self.captured_by
            event = None if capture is None else capture.before.get(self.gate)
            if period is None or event is not None:
                return event
            if at_once or period.is_own:
                raise CaptureUnderWay
            time.sleep(0.0005)

    def precede(
        self,
        wait: Callable[[EventHandle], None],
        capture: CaptureState | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """Let another queue wait for the current work of this stream.

        Work recorded by a capture of this stream does not count.

        Args:
            wait: lets the other queue wait for an event.
            capture: the capture that records the other queue.
            at_once: whether to raise rather than to wait for another thread.

        Raises:
            CaptureUnderWay: with `at_once`, a capture has the stream.
            StreamCaptureIsolationError: that work is part of a capture, and the other queue is not.
        """
        if self.context.is_gone:
            return
        if self.is_destroyed:
            if self.heir is None:
                self._wait_for_context()
            else:
                self.heir.precede(wait, capture, at_once=at_once)
            return
        if self.capture is not None and self.capture is not capture:
            if self.capture.is_open:
                raise errors.StreamCaptureIsolationError(
                    f"waiting for the capture of {self}",
                    text="end the capture before you use its memory outside of it",
                    explained=True,
                )
            self.own.precede(wait, capture, at_once=at_once)
            return
        self._make_wait(wait, at_once=at_once)

    def _make_wait(self, wait: Callable[[EventHandle], None], *, at_once: bool) -> None:
        """Call `wait` with an event after the current work, or with that before a capture."""
        while True:
            join_event = self.before_capture(at_once=at_once)
            if join_event is not None:
                wait(join_event)
                return
            if self.is_captured_elsewhere():
                raise errors.StreamCaptureIsolationError(
                    f"waiting for the work of {self} while another library captures it"
                )
            event = self.take_event()
            try:
                try:
                    event.record_at_once(self)
                except CaptureUnderWay:
                    continue
                wait(event)
                return
            finally:
                # The wait is for the event's state at this point: it may be recorded again at once.
                self.spare.append(event)

    def take_event(self) -> EventHandle:
        """Return an unused event of the stream's context; it returns to `spare`."""
        while True:
            try:
                event = self.spare.pop()
            except IndexError:
                break  # an error raised in here would keep this one, with its frames
            # A collection may have destroyed the event before the stream, or before its memory.
            if not event.is_destroyed:
                return event
        return EventHandle(self.context)

    def synchronize(self) -> None:
        """Wait on the host until everything queued is done."""
        if self.is_destroyed:
            if self.heir is None:
                self._wait_for_context()
            else:
                self.heir.synchronize()
            return
        (code,) = self.wait_for_work()
        if code:
            raise failure(self.api, code, "cuStreamSynchronize", f"waiting for {self}")

    def wait_for_work(self) -> tuple[CUresult]:
        """Wait until everything queued is done; in another thread's capture, for what was before.

        The driver rejects such a call for a stream that captures, and invalidates the capture.
        """
        passes = self.gate.passes
        try:
            mine = passes.pop()
        except IndexError:
            return self._wait_for_work()
        try:
            return self.context._driver.api.cuStreamSynchronize(self.raw)
        finally:
            passes.append(mine)

    def _wait_for_work(self) -> tuple[CUresult]:
        """As `wait_for_work`, where no pass is free."""
        while True:
            event = self.before_capture()
            if event is not None:
                return self.api.cuEventSynchronize(event.raw)
            with suppress(CaptureUnderWay):
                return self.submit_at_once(self.api.cuStreamSynchronize, self.raw)

    def wait_for_work_at_once(self) -> tuple[CUresult]:
        """As `wait_for_work`, for finalizers, which must not wait for another thread.

        Raises:
            CaptureUnderWay: a capture is about to have the stream.
        """
        event = self.before_capture(at_once=True)
        if event is not None:
            return self.api.cuEventSynchronize(event.raw)
        return self.submit_at_once(self.api.cuStreamSynchronize, self.raw)

    def is_idle(self) -> bool:
        """Return whether no queued work is left.

        Failed work counts as done. Other errors of the query count as not done.
        """
        if self.context.is_gone:
            return True
        if self.is_destroyed:
            if self.heir is not None:
                return self.heir.is_idle()
            self._wait_for_context()
            return True
        code = self.query()
        return not code or errors.CudaError.for_code(int(code)).sticky

    def query(self) -> CUresult:
        """Return the driver's result for queued work; in another thread's capture, of that before.

        The driver rejects such a call for a stream that captures, and invalidates the capture.
        """
        passes = self.gate.passes  # as `wait_for_work` does
        try:
            mine = passes.pop()
        except IndexError:
            return self._query()
        try:
            return self.context._driver.api.cuStreamQuery(self.raw)[0]
        finally:
            passes.append(mine)

    def _query(self) -> CUresult:
        """As `query`, where no pass is free."""
        with suppress(CaptureUnderWay):
            event = self.before_capture(at_once=True)
            if event is None:
                return self.submit_at_once(self.api.cuStreamQuery, self.raw)[0]
            return self.api.cuEventQuery(event.raw)[0]
        return CUresult.CUDA_ERROR_NOT_READY

    def is_capturing(self) -> bool:
        """Query whether another library's stream is capturing; our streams record it themselves."""
        if self.captured_by is not None or self.capture is not None:
            return True
        return self.is_captured_elsewhere()

    def is_captured_elsewhere(self) -> bool:
        """Return whether another library captures its stream; ours it does not capture."""
        if self.is_owned or self.capture is not None or self.is_destroyed:
            return False
        code, status = self.api.cuStreamIsCapturing(self.raw)
        if code:
            raise failure(self.api, code, "cuStreamIsCapturing", f"querying {self}")
        return status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    def free_cached_blocks(self) -> bool:
        """Return its cached blocks to the driver's pool; return whether there were some.

        Not during a capture that would record it.

        Raises:
            CudaError: the call failed, or reported the failure of earlier work.
        """
        if self.captured_by is not None or not self.block_cache:
            return False
        bins = list(self.block_cache.values())
        has_blocks = any(bins)
        free, stream = self.api.cuMemFreeAsync, self.raw
        for size_bin in bins:
            with suppress(IndexError):  # where none is left
                while True:
                    block = size_bin.pop()
                    try:
                        (code,) = self.submit_at_once(free, block[0], stream)
                    except CaptureUnderWay:
                        size_bin.append(block)
                        return False
                    # A broken context rejects every call, and that error was raised before.
                    if code and not self.driver.has_failed:
                        doing = f"freeing the memory that {self} caches"
                        raise failure(self.api, code, "cuMemFreeAsync", doing)
        return has_blocks

    def close_block_cache(self) -> None:
        """Cache no block from now on, and return the cached ones to the driver's pool.

        Raises:
            CudaError: the call failed, or reported the failure of earlier work.
        """
        self.block_cache.is_open = False
        if self.block_cache:
            self.block_cache.close()
            self.free_cached_blocks()

    def free(self, pointer: CUdeviceptr) -> CUresult:
        """Free memory of a pool in the order of the stream; after a capture that has the stream.

        Waits for no other thread, as finalizers call it.
        """
        try:
            return self.submit_at_once(self.api.cuMemFreeAsync, pointer, self.raw)[0]
        except CaptureUnderWay:
            self.free_after_capture(_FreedLater(self, pointer))
            return CUresult.CUDA_SUCCESS

    def free_after_capture(self, memory: AnyHandle) -> bool:
        """Keep memory until the capture that has the stream ends; False if there is none."""
        capture = self.captured_by or self.gate.period
        if not isinstance(capture, CaptureState):
            return False
        capture.deferred.append(memory)
        if not capture.is_open:  # it has just ended
            capture.deferred.clear()
        return True

    def _wait_for_context(self) -> None:
        """Wait for all work of the context, as the stream was destroyed before its memory.

        A collection may do that to objects that a finalizer had saved from an earlier one.
        """
        (code,) = self.context.call(self.api.cuCtxSynchronize)
        if code:
            raise failure(self.api, code, "cuCtxSynchronize", "waiting for a destroyed stream")

    def _destroy(self) -> None:
        if self.is_owned:
            # Memory that is freed after its stream is not cached, and takes the slow path.
            self.is_owned = False
            try:
                if self.block_cache:
                    self.close_block_cache()
            finally:
                if FREE_THREADED:
                    self.heir = _StreamHeir(self)
                else:
                    self._destroy_stream()

    def _destroy_stream(self) -> None:
        api = self.context._driver.api
        (code,) = api.cuStreamDestroy(self.raw)
        if code:
            doing = f"destroying a stream of device {self.context.ordinal}"
            raise failure(api, code, "cuStreamDestroy", doing)


class _FreedLater(ChildHandle[CUdeviceptr]):
    """Frees memory of a pool when it is dropped, in the order of a stream."""

    __slots__ = ("_stream",)

    def __init__(self, stream: StreamHandle, pointer: CUdeviceptr) -> None:
        self._stream = stream
        super().__init__(stream.context, pointer)

    def _destroy(self) -> None:
        code = self._stream.free(self.raw)
        check(self, code, "cuMemFreeAsync", f"freeing memory of device {self.context.ordinal}")


class _StreamHeir(StreamHandle):
    """Destroys the stream of a handle that was destroyed, when that handle's memory is freed.

    On a free-threaded build a collection may finalize a stream before memory that refers to it. It
    frees no object before it has finalized all. So memory that is finalized later finds the stream.
    """

    __slots__ = ()

    def __init__(self, former: StreamHandle) -> None:
        super().__init__(former.context, None, is_owned=False)
        self.is_owned = True  # now, as it caches no blocks
        self.captured_by = former.captured_by
        self.is_closed = True
        outcome: list[object] | None = getattr(former, "_outcome", None)
        if outcome is not None:
            self._outcome = outcome
        self.raw = former.raw  # last: until then it destroys nothing

    def _destroy(self) -> None:
        self._destroy_stream()


def free_cached_blocks(driver: Driver, ordinal: int) -> bool:
    """Return the cached blocks of a device's streams to the driver's pool, and whether any were.

    Raises:
        CudaError: the call failed, or reported the failure of earlier work.
    """
    has_blocks = False
    for stream in driver.streams.alive():
        handle = handle_of(stream)
        if isinstance(handle, StreamHandle) and handle.context.ordinal == ordinal:
            has_blocks |= handle.own.free_cached_blocks()
    return has_blocks


class CaptureState(CapturePeriod):
    """The streams, memory and objects of a capture that is under way.

    Args:
        wait_limit_s: the seconds after which a wait of another thread for the capture raises.

    Attributes:
        before: for the gate of each stream, the event at the point where its capture began.
        uses: memory that the graph will use, and whether it may write it.
        order: the last writer of that memory in the capture, and the readers since.
        keeps: other objects that the graph needs: host arrays, modules, textures.
        born: memory that was allocated in the capture, by identity.
        deferred: memory to be freed after the end of the capture.
    """

    __slots__ = ("_gates", "_members", "before", "born", "deferred", "keeps", "order", "uses")

    def __init__(self, wait_limit_s: float) -> None:
        super().__init__(wait_limit_s)
        self._gates: dict[CallGate, StreamHandle] = {}
        self._members: list[tuple[Callable[[StreamHandle], None], StreamHandle, StreamHandle]] = []
        self.before: dict[CallGate, EventHandle] = {}
        self.uses: dict[AnyHandle, bool] = {}
        self.order: dict[AnyHandle, tuple[StreamHandle, tuple[StreamHandle, ...]]] = {}
        self.keeps: list[object] = []
        self.born: dict[int, weakref.ref[AnyHandle]] = {}
        self.deferred: list[AnyHandle] = []

    def claim(self, own: StreamHandle, hold_back: Callable[[], Callable[[], bool]]) -> None:
        """Take a stream for the capture alone; `join` follows for each object of the stream.

        Call it before the driver starts the capture, so that no collection in between frees memory
        into the capture.

        Args:
            own: a handle of the stream.
            hold_back: makes launches take a pass that would not need one, and returns whether
                those under way are done, as a function. It is called once no call has a pass, as
                such a call lets later launches take none.

        Raises:
            StreamCaptureIsolationError: another thread's capture of it cannot end, or exceeds its
                limit; or other threads' calls have not ended within the limit of this one.
            CudaError: the driver does not say whether the legacy stream waits for this one.
        """
        context, api = own.context, own.api
        self._gates[own.gate] = own  # first: an interrupt may come before the next line ends
        own.gate.close(self)
        self.wait_for_calls(hold_back())
        code, flags = own.flags()  # not before: it would invalidate another thread's capture
        if code:
            raise failure(api, code, "cuStreamGetFlags", f"capturing on {own}")
        if not flags & _NON_BLOCKING:
            self.become_blocking()
        if self not in context.captures:
            try:
                context.gate.close(self)
                context.captures.append(self)
            finally:
                context.gate.open(self)
        event = own.take_event()
        event._recorded(own, api.cuEventRecord(event.raw, own.raw)[0])
        self.before[own.gate] = event

    def join(self, own: StreamHandle, use: Callable[[StreamHandle], None]) -> None:
        """Give a stream that the capture has claimed its capture handle.

        Args:
            own: the stream's own handle.
            use: makes the stream work with another handle.
        """
        captured = StreamHandle(own.context, own.raw, is_owned=False, keeps=own)
        captured.capture = self
        captured.unordered = own.unordered
        self._members.append((use, own, captured))
        own.captured_by = self
        use(captured)

    def add_born(self, memory: AnyHandle) -> None:
        """Record memory allocated in the capture; it may be freed before the capture ends."""
        self.born[id(memory)] = weakref.ref(memory)

    def own_handles(self) -> dict[StreamHandle, StreamHandle]:
        """Return each member's own handle by its capture handle."""
        return {captured: own for _, own, captured in self._members}

    def dismiss(self, stream: StreamHandle) -> None:
        """Restore the own handles of a stream whose capture did not begin."""
        gate = stream.gate
        for member in self._members[:]:
            use, own, _ = member
            if own.gate is gate:
                self._members.remove(member)
                own.captured_by = None
                use(own)
        self._release(gate)

    def _release(self, gate: CallGate) -> None:
        """Let other threads use a stream again."""
        own, event = self._gates.get(gate), self.before.pop(gate, None)
        if own is not None and event is not None:
            own.spare.append(event)  # an interrupt before loses the event
        gate.open(self)
        self._gates.pop(gate, None)

    def leave(self) -> None:
        """Restore every stream's own handle, and free deferred memory. Idempotent."""
        self.is_open = False
        for use, own, _ in self._members:
            own.captured_by = None
            use(own)
        for gate, own in list(self._gates.items()):
            own.context.gate.open(self)  # an interrupt may have left it closed
            with suppress(ValueError):  # where it is not
                own.context.captures.remove(self)
            self._release(gate)
        self.end()
        # The capture handles refer to the capture; it does not refer to them any more.
        self._members.clear()
        self.order.clear()
        self.uses.clear()
        self.keeps = []
        self.deferred.clear()


def wait_by_way(stream: StreamHandle, event: EventHandle) -> None:
    """Let a stream wait for another device's event that several processes share.

    A stream of that device waits for the event, and this stream for that one. A direct wait would
    end the process (driver of CUDA 13.0).
    """
    relay = private_stream(event.context)
    relay.wait(event)
    stream.follow(relay)


def replace(borrowed: StreamHandle) -> None:
    """Replace another library's stream by one of our own, ordered after its current work.

    For memory that was used there and is still needed: the owner may destroy the stream now.
    """
    if borrowed.context.is_lost or borrowed.is_capturing():
        return  # nothing may wait for it
    own = private_stream(borrowed.context)
    own.follow(borrowed)
    borrowed.raw, own.raw = own.raw, None  # type: ignore[assignment]  # it owns nothing any more
    borrowed.is_owned, borrowed.keeps = True, None


def private_stream(context: ContextHandle) -> StreamHandle:
    """Return a stream that is destroyed when its work is done and nothing needs it."""
    stream = StreamHandle(context, None, is_owned=True)
    code = stream.make(context._driver.api.cuStreamCreateWithPriority, _NON_BLOCKING, 0)
    if code:
        doing = f"making a stream of device {context.ordinal}"
        raise failure(context.api, code, "cuStreamCreateWithPriority", doing)
    return stream
