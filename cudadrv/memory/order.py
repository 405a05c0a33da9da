"""The order of operations on device memory, and the streams that its release waits for.

Each memory is ordered on one stream: the stream whose queue comes after all earlier work on the
memory. An operation on that stream needs no ordering, and each caller tests that itself:
``memory.ordered_on is stream``. For another stream, `order_access` makes that stream wait first. If
the operation may write, the memory is ordered on its stream from then on. If it only reads, its
stream is recorded. The memory is ordered on no stream then, until a writer has waited for the
readers.

Memory is freed in stream order, after every stream that ever used it. A thread may have tested
`ordered_on` just before another thread changes it, and queue its operation a moment later.

In a capture an operation belongs to the graph: it is recorded there, and each replay is an access.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.handle import LiveKey, unroot
from ..driver.locks import process_lock
from ..driver.stream_handle import CaptureState, StreamHandle
from ..errors import ArgumentValueError, ClosedError

_RawT = TypeVar("_RawT")

# Held over the assignments that record an access. Re-entrant: a collection in between may run a
# finalizer that uses memory.
_recording: Final = process_lock()
# Above this number of streams, closed and idle ones are forgotten.
_MANY_USERS: Final = 8


class MoveCounter:
    """Counts how often any memory became ordered on another stream.

    A graph's replay that finds the same count orders nothing.

    Attributes:
        count: the number of moves.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: int = 0


# An instance attribute: a class attribute costs each replay more.
memory_moves: Final = MoveCounter()


class Accesses(NamedTuple):
    """The streams that used a memory.

    Attributes:
        writer: the stream that may have written last; at first the allocating one.
        readers: streams that have read since.
        users: streams that ever used it; the release waits for them. The first stream is not among
            them as long as there was no other.
    """

    writer: StreamHandle | None
    readers: tuple[StreamHandle, ...] = ()
    users: tuple[StreamHandle, ...] = ()


class Memory(ChildHandle[_RawT]):
    """Owns device memory, and records the streams that used it.

    Attributes:
        ordered_on: the stream that comes after all earlier work on the memory, for the fast test.
            None while readers are recorded, and where that stream is of another context.
        recorded: the streams that used it, replaced as one object; None as long as only its first
            stream did, as with most memory.
        public: the key of the public object that owns it; None if a collection may find it.
        leads_to_user: whether it holds an object of the user.
        is_read_only: whether no operation may write it. Such memory is ordered on no stream, so
            that each operation declares its access here, and a write raises.
    """

    __slots__ = ("ordered_on", "public", "recorded")

    ordered_on: StreamHandle | None
    recorded: Accesses | None
    public: LiveKey | None
    leads_to_user: ClassVar[bool] = False
    is_read_only: ClassVar[bool] = False

    def __init__(
        self, context: ContextHandle, raw: _RawT | None, stream: StreamHandle | None
    ) -> None:
        super().__init__(context, raw)
        self.ordered_on = stream
        self.recorded = None
        self.public = None

    @property
    def accesses(self) -> Accesses:
        """The streams that used it."""
        stream = self.ordered_on  # first: another thread sets `recorded` before the stream
        return self.recorded or Accesses(stream)

    def _destroy(self) -> None:
        raise NotImplementedError

    @property
    def open_devices(self) -> frozenset[int]:
        """The ordinals of other devices whose kernels may use it without peer access."""
        return frozenset()

    def is_open_to(self, context: ContextHandle) -> bool:
        """Return whether kernels of a context may use the memory."""
        return context.reaches(self.context) or context.ordinal in self.open_devices

    def all_users(self) -> tuple[StreamHandle, ...]:
        """Return every stream that may still work on the memory."""
        writer, _, users = self.accesses
        if writer is not None and writer not in users:
            users = (*users, writer)
        return tuple([user.heir or user for user in users])


# The order of accesses does not depend on the type of a memory's address.
AnyMemory: TypeAlias = Memory[Any]


def order_access(memory: AnyMemory, stream: StreamHandle, *, writes: bool = True) -> None:
    """Order an operation, about to be queued on a stream that the memory is not ordered on.

    Args:
        memory: the memory that the operation accesses; the caller holds it until it is queued.
        stream: where it will be queued.
        writes: whether it may write.

    Raises:
        ArgumentValueError: it may write, and the memory is read-only.
        CudaError: the driver could not let the stream wait.
    """
    if writes and memory.is_read_only:
        raise ArgumentValueError(f"memory of device {memory.context.ordinal} is read-only")
    if is_ordered(memory, stream, writes=writes):
        return
    _require_present(memory)
    writer = memory.accesses.writer
    if stream.capture is not None and not (writer is not None and writer.capture is stream.capture):
        _record_in_capture(memory, stream, stream.capture, writes)
        return
    if stream.unordered:
        record_access(memory, stream)
        return
    while True:
        waited = {stream}
        accesses = _ensure_recorded(memory)
        for earlier in (accesses.writer, *accesses.readers) if writes else (accesses.writer,):
            if earlier is not None and earlier not in waited:
                waited.add(earlier)
                stream.follow(earlier)
        # If another thread has recorded an access since, check again: more work may be queued.
        if _record(memory, stream, accesses, writes):
            return


def is_ordered(memory: AnyMemory, stream: StreamHandle, *, writes: bool) -> bool:
    """Return whether an operation on a stream already comes after all that it must wait for."""
    return memory.ordered_on is stream or (not writes and stream in memory.accesses.readers)


def join_on_one_stream(memory: AnyMemory) -> StreamHandle | None:
    """Return a stream that comes after all earlier work on the memory, on any stream.

    It lives as long as the memory. None if the memory was never used on a stream of its context.
    """
    if memory.ordered_on is None:
        streams = (memory.accesses.writer, *memory.accesses.users)
        streams_here = [
            stream
            for stream in streams
            if stream is not None
            and stream.context is memory.context
            and stream.captured_by is None
        ]
        if not streams_here:
            return None
        if memory.is_read_only:
            return streams_here[0]  # each of them only read it, after its owner's writes
        order_access(memory, streams_here[0])
    return memory.ordered_on


def record_access(memory: AnyMemory, stream: StreamHandle) -> None:
    """Let the release of a memory wait for a stream, without ordering anything."""
    _require_present(memory)
    if stream.capture is not None:
        stream.capture.uses[memory] = True
        return
    while True:
        accesses = _ensure_recorded(memory)
        if stream in accesses.users or accesses.writer is stream:
            return
        extended = accesses._replace(users=(*accesses.users, stream))
        with _recording:
            if memory.recorded is accesses:
                memory.recorded = extended
                _unroot_foreign(memory, stream)
                return


def _require_present(memory: AnyMemory) -> None:
    """Raise `ClosedError` for memory that a collection freed, and a finalizer saved."""
    if memory.is_destroyed:
        raise ClosedError("the device memory was freed by a garbage collection")


def _ensure_recorded(memory: AnyMemory) -> Accesses:
    """Return the streams that used a memory, as an object that stays until another access."""
    accesses = memory.recorded
    if accesses is None:
        with _recording:
            accesses = memory.recorded
            if accesses is None:
                accesses = memory.recorded = Accesses(memory.ordered_on)
    return accesses


def _record(memory: AnyMemory, stream: StreamHandle, accesses: Accesses, writes: bool) -> bool:
    """Record an access; False if another thread recorded one since the caller looked."""
    writer, readers, users = accesses
    for user in (writer, stream):
        if user is not None and user not in users:
            users = (*users, user)
    if len(users) > _MANY_USERS:
        # The release needs a stream of the memory's own device.
        same_context = next((user for user in users if user.context is memory.context), None)
        retained = (writer, stream, same_context)
        users = tuple(user for user in users if user in retained or not _is_over(user))
    new_writer = stream if writes else writer
    new_readers: tuple[StreamHandle, ...] = ()
    if not writes:
        remaining = tuple([reader for reader in readers if reader in users])
        new_readers = remaining if stream in remaining else (*remaining, stream)
    new = Accesses(new_writer, new_readers, users)
    with _recording:
        if memory.recorded is not accesses:
            return False
        former = memory.ordered_on
        try:
            # First: if an interrupt comes in between, no fast test may pass.
            memory.ordered_on = None
            if former is not None:
                former.home_version = []
            memory.recorded = new
            memory.ordered_on = _only_writer(memory)
        finally:
            memory_moves.count += 1
    _unroot_foreign(memory, stream)
    return True


def _unroot_foreign(memory: AnyMemory, stream: StreamHandle) -> None:
    """Let a collection find memory that refers to the owner of another library's stream."""
    key = memory.public
    if stream.is_foreign and key is not None:
        unroot(key, memory)
        memory.public = None


def _only_writer(memory: AnyMemory) -> StreamHandle | None:
    """Return the last writer, if no stream has read since and it is of the memory's context."""
    writer, readers, _ = memory.accesses
    if writer is None or readers or writer.context is not memory.context or memory.is_read_only:
        return None
    return writer


def _is_over(stream: StreamHandle) -> bool:
    return stream.is_closed and not stream.is_capturing() and stream.is_idle()


def _record_in_capture(
    memory: AnyMemory, stream: StreamHandle, capture: CaptureState, writes: bool
) -> None:
    """Record an access of the graph, and order the capture's own streams among each other."""
    capture.uses[memory] = capture.uses.get(memory, False) or writes
    if stream.unordered:
        return
    writer, readers = capture.order.get(memory, (stream, ()))
    predecessors = (writer, *readers) if writes else (writer,)
    for predecessor in predecessors:
        if predecessor is not stream and (writes or stream not in readers):
            stream.follow(predecessor)
    if writes:
        writer, readers = stream, ()
    elif stream is not writer and stream not in readers:
        readers = (*readers, stream)
    capture.order[memory] = writer, readers


def end_capture(memory: AnyMemory, streams: dict[StreamHandle, StreamHandle]) -> None:
    """Record the streams themselves for memory that was allocated in their capture.

    Args:
        memory: the memory.
        streams: each stream by its handle in the capture.
    """
    with _recording:
        writer, readers, users = memory.accesses
        memory.recorded = Accesses(
            None if writer is None else streams.get(writer, writer),
            tuple(streams.get(reader, reader) for reader in readers),
            tuple(dict.fromkeys(streams.get(user, user) for user in users)),
        )
        memory.ordered_on = _only_writer(memory)
