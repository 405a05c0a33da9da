"""Owning handles of streams and events, and the state of a capture.

A capture records the work that its streams receive. The graph uses the memory of that work, not the
stream. So a stream has another handle while it captures, its capture handle, on which no memory is
ordered. Then each fast test fails, and each use is recorded in the capture.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from .. import errors
from ._api import CUevent, CUevent_flags, CUresult, CUstream, CUstream_flags, CUstreamCaptureStatus
from .context_handle import ChildHandle, ContextHandle
from .driver_selection import Driver, failure
from .handle import FREE_THREADED, AnyHandle, check
from .stream_block_cache import StreamBlockCache

UNTIMED: Final = int(CUevent_flags.CU_EVENT_DISABLE_TIMING)


class EventHandle(ChildHandle[CUevent]):
    """Owns an event.

    Attributes:
        capture: the capture that it was last recorded in, if it was in one.
    """

    __slots__ = ("capture",)

    def __init__(self, context: ContextHandle, flags: int = UNTIMED) -> None:
        super().__init__(context)
        self.capture: CaptureState | None = None
        code = self.make(context.api.cuEventCreate, flags)
        if code:
            raise failure(context.api, code, "cuEventCreate", "making an event")

    def record(self, stream: StreamHandle) -> None:
        """Set the event to this point of a stream."""
        (code,) = self.api.cuEventRecord(self.raw, stream.raw)
        if code:
            raise failure(self.api, code, "cuEventRecord", f"recording an event on {stream}")
        self.capture = stream.capture

    def is_done(self) -> bool:
        """Return whether the work before the event is done, without waiting.

        Raises:
            CudaError: that work failed.
        """
        (code,) = self.api.cuEventQuery(self.raw)
        if code == CUresult.CUDA_ERROR_NOT_READY:
            return False
        if code:
            raise failure(self.api, code, "cuEventQuery", "querying whether an event is done")
        return True

    def _destroy(self) -> None:
        (code,) = self.api.cuEventDestroy(self.raw)
        check(self, code, "cuEventDestroy", f"destroying an event of device {self.context.ordinal}")


class StreamHandle(ChildHandle[CUstream]):
    """Owns a stream, or represents and keeps alive one of another library.

    Attributes:
        is_owned: whether the stream is destroyed with the handle.
        keeps: of a capture handle, the stream's own handle; or the other library's object.
        heir: the handle that has its stream, once this one was destroyed; on free-threaded builds.
        spare: events for waits, while no thread uses them.
        capture: of a capture handle, the capture that records its work.
        captured_by: the capture in which the stream has a capture handle now.
        unordered: how many open blocks declare that the user orders the stream.
        is_closed: whether its owner has closed it, so that it receives no new work.
        block_cache: the small blocks cached for its next allocations; none of a capture handle.
        home_version: replaced by a new object each time that memory ordered on this stream moves to
            another one or is about to be closed.
    """

    __slots__ = (
        "block_cache",
        "capture",
        "captured_by",
        "heir",
        "home_version",
        "is_closed",
        "is_owned",
        "keeps",
        "spare",
        "unordered",
    )  # fmt: skip

    def __init__(
        self, context: ContextHandle, raw: CUstream | None, *, is_owned: bool, keeps: object = None
    ) -> None:
        self.heir: StreamHandle | None = None
        self.is_owned: bool = is_owned
        self.keeps: object = keeps
        self.spare: list[EventHandle] = []
        self.capture: CaptureState | None = None
        self.captured_by: CaptureState | None = None
        self.unordered: int = 0
        self.is_closed: bool = False
        self.home_version: object = []
        self.block_cache: StreamBlockCache = StreamBlockCache(
            is_open=is_owned and context.driver.keeps_blocks
        )
        super().__init__(context, raw)  # last: a handle without a context counts as unfinished

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

    def wait(self, event: EventHandle) -> None:
        """Let later work wait for an event."""
        (code,) = self.api.cuStreamWaitEvent(self.raw, event.raw, 0)
        if code:
            raise failure(self.api, code, "cuStreamWaitEvent", f"making {self} wait for an event")

    def follow(self, other: StreamHandle) -> None:
        """Let later work wait for the current work of another stream.

        Raises:
            StreamCaptureIsolationError: that work is part of a capture, and this stream is not.
        """
        other.precede(self.wait, self.capture)

    def precede(
        self, wait: Callable[[EventHandle], None], capture: CaptureState | None = None
    ) -> None:
        """Let another queue wait for the current work of this stream.

        Work recorded by a capture of this stream does not count.

        Args:
            wait: lets the other queue wait for an event.
            capture: the capture that records the other queue.

        Raises:
            StreamCaptureIsolationError: that work is part of a capture, and the other queue is not.
        """
        if self.context.is_gone:
            return
        if self.is_destroyed:
            if self.heir is None:
                self._wait_for_context()
            else:
                self.heir.precede(wait, capture)
            return
        if self.capture is not None and self.capture is not capture:
            if self.capture.is_open:
                raise errors.StreamCaptureIsolationError(
                    f"waiting for the capture of {self}",
                    text="end the capture before you use its memory outside of it",
                    explained=True,
                )
            self.own.precede(wait, capture)
            return
        outer = self.captured_by
        join_event = outer.before.get(self) if outer is not None else None
        if join_event is not None:
            wait(join_event)
            return
        if self.is_captured_elsewhere():
            raise errors.StreamCaptureIsolationError(
                f"waiting for the work of {self} while another library captures it"
            )
        event = self.take_event()
        try:
            event.record(self)
            wait(event)
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
        (code,) = self.api.cuStreamSynchronize(self.raw)
        if code:
            raise failure(self.api, code, "cuStreamSynchronize", f"waiting for {self}")

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
        (code,) = self.api.cuStreamQuery(self.raw)
        return not code or errors.CudaError.for_code(int(code)).sticky

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
        if self.captured_by is not None:
            return False
        bins = list(self.block_cache.values())
        has_blocks = any(bins)
        free, stream = self.api.cuMemFreeAsync, self.raw
        for size_bin in bins:
            with suppress(IndexError):  # where none is left
                while True:
                    pointer, _ = size_bin.pop()
                    (code,) = free(pointer, stream)
                    # A broken context rejects every call, and that error was raised before.
                    if code and not self.driver.has_failed:
                        doing = f"freeing the memory that {self} caches"
                        raise failure(self.api, code, "cuMemFreeAsync", doing)
        return has_blocks

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
            self.block_cache.close()
            try:
                self.free_cached_blocks()
            finally:
                if FREE_THREADED:
                    self.heir = _StreamHeir(self)
                else:
                    self._destroy_stream()

    def _destroy_stream(self) -> None:
        (code,) = self.api.cuStreamDestroy(self.raw)
        doing = f"destroying a stream of device {self.context.ordinal}"
        check(self, code, "cuStreamDestroy", doing)


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
        handle: object = getattr(stream, "_handle", None)
        if isinstance(handle, StreamHandle) and handle.context.ordinal == ordinal:
            has_blocks |= handle.own.free_cached_blocks()
    return has_blocks


class CaptureState:
    """The streams, memory and objects of a capture that is under way.

    Attributes:
        before: for each stream's handle, the event at the point where its capture began.
        uses: memory that the graph will use, and whether it may write it.
        order: the last writer of that memory in the capture, and the readers since.
        keeps: other objects that the graph needs: host arrays, modules, textures.
        born: memory that was allocated in the capture, by identity.
        deferred: memory to be freed after the end of the capture.
        is_open: whether it is under way.
    """

    __slots__ = ("_members", "before", "born", "deferred", "is_open", "keeps", "order", "uses")

    def __init__(self) -> None:
        self._members: list[tuple[Callable[[StreamHandle], None], StreamHandle, StreamHandle]] = []
        self.before: dict[StreamHandle, EventHandle] = {}
        self.uses: dict[AnyHandle, bool] = {}
        self.order: dict[AnyHandle, tuple[StreamHandle, tuple[StreamHandle, ...]]] = {}
        self.keeps: list[object] = []
        self.born: dict[int, weakref.ref[AnyHandle]] = {}
        self.deferred: list[AnyHandle] = []
        self.is_open: bool = True

    def join(self, own: StreamHandle, use: Callable[[StreamHandle], None]) -> None:
        """Give a stream its capture handle.

        Call it before the driver starts the capture, so that no collection in between frees memory
        into the capture.

        Args:
            own: the stream's own handle.
            use: makes the stream work with another handle.
        """
        event = own.take_event()
        event.record(own)
        self.before[own] = event
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
        """Restore the own handle of a stream whose capture did not begin."""
        for member in self._members:
            use, own, _ = member
            if own is stream:
                self._members.remove(member)
                own.captured_by = None
                use(own)
                return

    def leave(self) -> None:
        """Restore every stream's own handle, and free deferred memory. Idempotent."""
        self.is_open = False
        for use, own, _ in self._members:
            own.captured_by = None
            use(own)
        while self.before:  # an interrupt in here loses an event, and returns none twice
            own, event = self.before.popitem()
            own.spare.append(event)
        # The capture handles refer to the capture; it does not refer to them any more.
        self._members.clear()
        self.order.clear()
        self.uses.clear()
        self.keeps = []
        self.deferred.clear()


_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


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
    code = stream.make(context.api.cuStreamCreateWithPriority, _NON_BLOCKING, 0)
    if code:
        raise failure(context.api, code, "cuStreamCreateWithPriority", "making a stream")
    return stream
