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

import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from ..driver._api import CUdeviceptr, CUresult
from ..driver.handle import Box, ContextBox, Part
from ..driver.in_use import failure
from ..driver.later import park
from ..driver.stream_box import Capture, StreamBox
from ..errors import CudadrvError, CudaError

_RawT = TypeVar("_RawT")

# Held over the few bytecodes in which a memory moves. Re-entrant: a collection in between may run
# a finalizer that uses memory.
_moving: Final = threading.RLock()
# Beyond so many streams, those that are closed and idle are forgotten.
_MANY_USERS: Final = 8


class Epoch:
    """Tells whether any memory has moved since; a replay that finds the same one asks no further.

    Attributes:
        now: another object after each move.
    """

    now: object = object()


class Memory(Part[_RawT]):
    """Owns device memory, and knows who used it.

    Attributes:
        home: the stream that comes after everything that was done to the memory, for the quick
            test; None while readers are noted, and where that stream is of another context.
        writer: the stream that may have written last; at first the one it came from.
        readers: streams that have read since.
        users: streams that ever used it; the release waits for them. The first home is not among
            them as long as there was no other.
    """

    __slots__ = ("home", "readers", "users", "writer")

    home: StreamBox | None
    writer: StreamBox | None
    readers: tuple[StreamBox, ...]
    users: tuple[StreamBox, ...]

    def __init__(self, context: ContextBox, raw: _RawT, stream: StreamBox | None) -> None:
        super().__init__(context, raw)
        self.home = self.writer = stream
        self.readers = self.users = ()

    def _destroy(self) -> None:
        raise NotImplementedError

    def all_users(self) -> tuple[StreamBox, ...]:
        """Every stream that may still work on the memory."""
        writer = self.writer
        if writer is None or writer in self.users:
            return self.users
        return (*self.users, writer)


# What the handle of a memory is does not matter to who orders its uses.
AnyMemory: TypeAlias = Memory[Any]


def use(memory: AnyMemory, stream: StreamBox, *, writes: bool = True) -> None:
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
    writer = memory.writer
    if stream.capture is not None and not (writer is not None and writer.capture is stream.capture):
        _use_in_capture(memory, stream, stream.capture, writes)
        return
    if stream.unordered:
        note(memory, stream)
        return
    while True:
        waited = {stream}
        writer, readers, users = memory.writer, memory.readers, memory.users
        for other in (writer, *readers) if writes else (writer,):
            if other is not None and other not in waited:
                waited.add(other)
                stream.follow(other)
        # Where another thread moved it since, all is looked at again: more may be queued there.
        if _move(memory, stream, writer, readers, users, writes):
            return


def is_ordered(memory: AnyMemory, stream: StreamBox, *, writes: bool) -> bool:
    """Whether an operation on a stream comes after all that it must wait for as it is."""
    return memory.home is stream or (not writes and stream in memory.readers)


def gather(memory: AnyMemory) -> StreamBox | None:
    """A stream that comes after everything that was done to the memory, on any stream.

    It lives as long as the memory. None where the memory never was on a stream of its context.
    """
    if memory.home is None:
        streams = (memory.writer, *memory.users)
        own = [
            each
            for each in streams
            if each is not None and each.context is memory.context and each.captured_by is None
        ]
        if not own:
            return None
        use(memory, own[0])
    return memory.home


def note(memory: AnyMemory, stream: StreamBox) -> None:
    """Let the release of a memory wait for a stream, and nothing else."""
    if stream.capture is not None:
        stream.capture.uses[memory] = True
        return
    while True:
        users = memory.users
        if stream in users or memory.writer is stream:
            return
        more = (*users, stream)
        with _moving:
            if memory.users is users:
                memory.users = more
                return


def _move(
    memory: AnyMemory,
    stream: StreamBox,
    writer: StreamBox | None,
    readers: tuple[StreamBox, ...],
    users: tuple[StreamBox, ...],
    writes: bool,
) -> bool:
    """Note a use, unless another thread moved the memory since the caller looked."""
    known = users
    for other in (writer, stream):
        if other is not None and other not in known:
            known = (*known, other)
    if len(known) > _MANY_USERS:
        # The release needs a stream of the memory's own device.
        own = next((user for user in known if user.context is memory.context), None)
        needed = (writer, stream, own)
        known = tuple(user for user in known if user in needed or not _is_over(user))
    new_writer = stream if writes else writer
    new_readers: tuple[StreamBox, ...] = ()
    if not writes:
        new_readers = readers if stream in readers else (*readers, stream)
    with _moving:
        if (
            memory.writer is not writer
            or memory.readers is not readers
            or memory.users is not users
        ):
            return False
        try:
            # An interrupt may come in between: nobody may be at home then, and the new writer,
            # which waited for the readers, must be known before they are forgotten.
            memory.home = None
            memory.users = known
            memory.writer = new_writer
            memory.readers = new_readers
            memory.home = _home(memory)
        finally:
            Epoch.now = object()
    return True


def _home(memory: AnyMemory) -> StreamBox | None:
    """The last writer, where nobody has read since and it is of the memory's context."""
    writer = memory.writer
    if writer is None or memory.readers or writer.context is not memory.context:
        return None
    return writer


def _is_over(stream: StreamBox) -> bool:
    return stream.is_closed and not stream.is_capturing() and stream.is_idle()


def _use_in_capture(memory: AnyMemory, stream: StreamBox, capture: Capture, writes: bool) -> None:
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


class NoMemory(Memory[None]):
    """Stands for the memory of what has no bytes."""

    __slots__ = ()

    def _destroy(self) -> None:
        pass


class PoolMemory(Memory[CUdeviceptr]):
    """Memory of the device's pool, given back in stream order.

    Attributes:
        has_contents: whether the driver has it; memory that a graph allocates is there from its
            first replay on.
    """

    __slots__ = ("has_contents",)

    has_contents: bool

    def __del__(self) -> None:
        references = self._references(self)
        home, driver = self.home, self.context._driver
        if references > self._alone and all(user.keeps is None for user in self.all_users()):
            self._found.append(self)
        elif home is None or self.users or home.captured_by is not None or not home.is_owned:
            self._go()
        elif self.has_contents and not driver.is_gone:  # most memory, at a third of the cost
            had_failed = driver.has_failed
            (code,) = driver.api.cuMemFreeAsync(self.raw, home.raw)
            if code:
                fault = self._refused(code)
                if isinstance(fault, CudaError):
                    self._tell(fault, had_failed)

    def _destroy(self) -> None:
        """Give the memory back after every stream that used it."""
        users = self.all_users()
        writer = self.writer
        if writer is not None and writer.capture is not None and writer.capture.is_open:
            # It was allocated in a capture that is open: its release becomes part of the graph.
            for user in users:
                if user is not writer:
                    writer.follow(user)
            self._free(writer)
            return
        if not self.has_contents:
            return
        own = [user for user in users if user.context.ordinal == self.context.ordinal]
        free = [user for user in own if not user.is_capturing()]
        # To wait for a stream that another library captures would be to be captured with it.
        if not free or any(user.is_captured_elsewhere() for user in users):
            self._defer()
            return
        target = writer if writer in free else free[-1]
        assert target is not None
        fault = None
        for user in users:
            if user is not target:
                try:
                    target.follow(user)
                except CudadrvError as error:
                    fault = error
                    if not user.is_capturing():
                        user.api.cuStreamSynchronize(user.raw)
        self._free(target)
        if fault is not None:
            raise fault

    def _free(self, stream: StreamBox) -> None:
        (code,) = self.api.cuMemFreeAsync(self.raw, stream.raw)
        if code:
            raise self._refused(code)

    def _refused(self, code: CUresult) -> CudadrvError:
        doing = f"giving back the memory at {int(self.raw):#x} of device {self.context.ordinal}"
        return failure(self.api, code, "cuMemFreeAsync", doing)

    def _defer(self) -> None:
        """Leave the release to another object, which goes when the capture has ended.

        This one's finalizer runs once. A graph would free at each replay what was allocated once.
        """
        heir = PoolMemory(self.context, self.raw, self.writer)
        heir.has_contents, heir.users = True, self.users
        users = self.all_users()
        for user in users:
            capture = user.captured_by
            if capture is not None:
                capture.deferred.append(heir)
                return
        # Another library's capture: nobody tells when it ends, so it is asked at later calls.
        park(lambda: not any(user.is_captured_elsewhere() for user in users), [heir])


class BorrowedMemory(Memory[int]):
    """Memory that another object keeps; that is let go of after every stream that used it.

    Attributes:
        owner: what keeps it.
    """

    __slots__ = ("owner",)

    def __init__(
        self, context: ContextBox, raw: int, stream: StreamBox | None, owner: object
    ) -> None:
        super().__init__(context, raw, stream)
        self.owner = owner

    def __del__(self) -> None:
        # It must not wait for the end of a collection: its owner may refer to an array over it.
        self._go()

    def _destroy(self) -> None:
        # What is of the driver waits itself when it is destroyed.
        if isinstance(self.owner, Box):
            return
        users = self.all_users()
        if all(not user.is_capturing() and user.is_idle() for user in users):
            return
        tests = [_until_now(user) for user in users]
        park(lambda: all(is_done() for is_done in tests), [self.owner, *users])


def _until_now(stream: StreamBox) -> Callable[[], bool]:
    """What tells whether all that a stream was given until now is done."""
    try:
        capture = stream.captured_by
        event = capture.before.get(stream) if capture is not None else None
        if event is None and not stream.is_captured_elsewhere():
            event = stream.take_event()
            event.record(stream)
    except CudadrvError:
        event = None  # such as that the driver has no event
    if event is not None:
        return event.is_done
    return lambda: not stream.is_capturing() and stream.is_idle()


def settle(memory: AnyMemory, streams: dict[StreamBox, StreamBox]) -> None:
    """Give memory that was allocated in a capture the streams' own boxes for their twins."""
    with _moving:
        memory.users = tuple(dict.fromkeys(streams.get(user, user) for user in memory.users))
        memory.readers = tuple(streams.get(reader, reader) for reader in memory.readers)
        if memory.writer is not None:
            memory.writer = streams.get(memory.writer, memory.writer)
        memory.home = _home(memory)
