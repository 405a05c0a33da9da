"""Order: what every operation on device memory says of it, and when memory is given back.

Each memory has a home, the stream whose queue comes after everything that was done to it. An
operation on the home needs nothing, and every caller tests that itself: ``memory.home is stream``.
On another stream, `use` lets that stream wait first. If the operation may write, its stream is the
home from then on. If it only reads, it is noted, and there is no home until a writer has waited for
the readers.

Memory is given back in stream order, after every stream that ever used it: a thread may just have
found its stream to be the home, and queue its operation a moment after another thread moved it.

In a capture an operation belongs to the graph: it is noted there, and each replay is a use.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.handle import unroot
from ..driver.locks import process_lock
from ..driver.stream_handle import CaptureState, StreamHandle
from ..errors import ClosedError

_RawT = TypeVar("_RawT")

# Held over the few bytecodes in which a memory moves. Re-entrant: a collection in between may run
# a finalizer that uses memory.
_moving: Final = process_lock()
# Beyond so many streams, those that are closed and idle are forgotten.
_MANY_USERS: Final = 8


class Epoch:
    """Tells whether any memory has moved since; a replay that finds the same one asks no further.

    Attributes:
        now: another object after each move.
    """

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: object = object()


# Of an object, as the attribute of a class costs each replay more.
moves: Final = Epoch()


class Uses(NamedTuple):
    """Who used a memory.

    Attributes:
        writer: the stream that may have written last; at first the one it came from.
        readers: streams that have read since.
        users: streams that ever used it; the release waits for them. The first home is not among
            them as long as there was no other.
    """

    writer: StreamHandle | None
    readers: tuple[StreamHandle, ...] = ()
    users: tuple[StreamHandle, ...] = ()


class Memory(ChildHandle[_RawT]):
    """Owns device memory, and knows who used it.

    Attributes:
        home: the stream that comes after everything that was done to the memory, for the quick
            test; None while readers are noted, and where that stream is of another context.
        moved: who used it, replaced as a whole; None as long as only its first home did, as with
            most memory.
        public: the `id` of the public object that owns it; 0 if none does.
        leads_to_user: whether it holds an object of the user.
    """

    __slots__ = ("home", "moved", "public")

    home: StreamHandle | None
    moved: Uses | None
    public: int
    leads_to_user: ClassVar[bool] = False

    def __init__(
        self, context: ContextHandle, raw: _RawT | None, stream: StreamHandle | None
    ) -> None:
        super().__init__(context, raw)
        self.home = stream
        self.moved = None
        self.public = 0

    @property
    def uses(self) -> Uses:
        """Who used it."""
        home = self.home  # first: another thread that moves it sets `moved` before the home
        return self.moved or Uses(home)

    def _destroy(self) -> None:
        raise NotImplementedError

    def all_users(self) -> tuple[StreamHandle, ...]:
        """Every stream that may still work on the memory."""
        writer, _, users = self.uses
        return users if writer is None or writer in users else (*users, writer)


# What the handle of a memory is does not matter to who orders its uses.
AnyMemory: TypeAlias = Memory[Any]


def use(memory: AnyMemory, stream: StreamHandle, *, writes: bool = True) -> None:
    """Order an operation that is about to be queued on `stream`, where it is not the home.

    Args:
        memory: what the operation reads or writes; the caller holds it until it is queued.
        stream: where it will be queued.
        writes: whether it may write.

    Raises:
        CudaError: the driver refused to let the stream wait.
    """
    if is_ordered(memory, stream, writes=writes):
        return
    _check_there(memory)
    writer = memory.uses.writer
    if stream.capture is not None and not (writer is not None and writer.capture is stream.capture):
        _use_in_capture(memory, stream, stream.capture, writes)
        return
    if stream.unordered:
        note(memory, stream)
        return
    while True:
        waited = {stream}
        seen = _settled(memory)
        for other in (seen.writer, *seen.readers) if writes else (seen.writer,):
            if other is not None and other not in waited:
                waited.add(other)
                stream.follow(other)
        # Where another thread moved it since, all is looked at again: more may be queued there.
        if _move(memory, stream, seen, writes):
            return


def is_ordered(memory: AnyMemory, stream: StreamHandle, *, writes: bool) -> bool:
    """Whether an operation on a stream comes after all that it must wait for already."""
    return memory.home is stream or (not writes and stream in memory.uses.readers)


def gather(memory: AnyMemory) -> StreamHandle | None:
    """A stream that comes after everything that was done to the memory, on any stream.

    It lives as long as the memory. None where the memory never was on a stream of its context.
    """
    if memory.home is None:
        streams = (memory.uses.writer, *memory.uses.users)
        own = [
            each
            for each in streams
            if each is not None and each.context is memory.context and each.captured_by is None
        ]
        if not own:
            return None
        use(memory, own[0])
    return memory.home


def note(memory: AnyMemory, stream: StreamHandle) -> None:
    """Let the release of a memory wait for a stream, and nothing else."""
    _check_there(memory)
    if stream.capture is not None:
        stream.capture.uses[memory] = True
        return
    while True:
        seen = _settled(memory)
        if stream in seen.users or seen.writer is stream:
            return
        more = seen._replace(users=(*seen.users, stream))
        with _moving:
            if memory.moved is seen:
                memory.moved = more
                _let_user_keep(memory, stream)
                return


def _check_there(memory: AnyMemory) -> None:
    """Raise `ClosedError` for memory that a collection gave back, and a finalizer saved."""
    if memory.is_destroyed:
        raise ClosedError("the device memory was given back by a garbage collection")


def _settled(memory: AnyMemory) -> Uses:
    """Who used a memory, as an object that stays the same until another thread moves it."""
    seen = memory.moved
    if seen is None:
        with _moving:
            seen = memory.moved
            if seen is None:
                seen = memory.moved = Uses(memory.home)
    return seen


def _move(memory: AnyMemory, stream: StreamHandle, seen: Uses, writes: bool) -> bool:
    """Note a use, unless another thread moved the memory since the caller looked."""
    writer, readers, known = seen
    for other in (writer, stream):
        if other is not None and other not in known:
            known = (*known, other)
    if len(known) > _MANY_USERS:
        # The release needs a stream of the memory's own device.
        own = next((user for user in known if user.context is memory.context), None)
        needed = (writer, stream, own)
        known = tuple(user for user in known if user in needed or not _is_over(user))
    new_writer = stream if writes else writer
    new_readers: tuple[StreamHandle, ...] = ()
    if not writes:
        new_readers = readers if stream in readers else (*readers, stream)
    new = Uses(new_writer, new_readers, known)
    with _moving:
        if memory.moved is not seen:
            return False
        former = memory.home
        try:
            # An interrupt may come in between: nobody may be at home then.
            memory.home = None
            memory.moved = new
            memory.home = _home(memory)
        finally:
            # Without a call, behind which an interrupt could come.
            now: list[object] = []
            moves.now = now
            if former is not None:
                former.home_version = now
    _let_user_keep(memory, stream)
    return True


def _let_user_keep(memory: AnyMemory, stream: StreamHandle) -> None:
    """Let a collection find memory that leads to the owner of another library's stream."""
    if stream.is_foreign and memory.public:
        unroot(memory.public, memory)
        memory.public = 0


def _home(memory: AnyMemory) -> StreamHandle | None:
    """The last writer, where nobody has read since and it is of the memory's context."""
    writer, readers, _ = memory.uses
    if writer is None or readers or writer.context is not memory.context:
        return None
    return writer


def _is_over(stream: StreamHandle) -> bool:
    return stream.is_closed and not stream.is_capturing() and stream.is_idle()


def _use_in_capture(
    memory: AnyMemory, stream: StreamHandle, capture: CaptureState, writes: bool
) -> None:
    """Note a use by the graph, and order the capture's own streams among each other."""
    capture.uses[memory] = capture.uses.get(memory, False) or writes
    if stream.unordered:
        return
    writer, readers = capture.order.get(memory, (stream, ()))
    before = (writer, *readers) if writes else (writer,)
    for other in before:
        if other is not stream and (writes or stream not in readers):
            stream.follow(other)
    if writes:
        writer, readers = stream, ()
    elif stream is not writer and stream not in readers:
        readers = (*readers, stream)
    capture.order[memory] = writer, readers


def settle(memory: AnyMemory, streams: dict[StreamHandle, StreamHandle]) -> None:
    """Order memory that was allocated in a capture on the streams themselves from now on."""
    with _moving:
        writer, readers, users = memory.uses
        memory.moved = Uses(
            None if writer is None else streams.get(writer, writer),
            tuple(streams.get(reader, reader) for reader in readers),
            tuple(dict.fromkeys(streams.get(user, user) for user in users)),
        )
        memory.home = _home(memory)
