"""Streams as the layers below the public `Stream` see them.

Memory, launches and graphs take streams, and `Stream` has methods that allocate, copy and capture.
So those layers use its base class, which depends only on the driver layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakValueDictionary, ref

from ptx.read_only import ReadOnly

from .. import border
from ..errors import WrongDeviceError
from ._api import CUresult, CUstream, CUstream_flags
from .call_gate import CallGate
from .context import BaseContext
from .deferred_release import run_deferred
from .driver_selection import Driver, failure
from .handle import Closeable, ClosedHandle, handle_of
from .registry import Registry
from .stream_handle import CaptureState, StreamHandle, replace
from .types import StreamDependent

_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


class BaseStream(Closeable):
    """A queue of work on one context's device; every instance is a `Stream`.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a capture of the calling thread records the stream's work.
        closed: whether it was closed.
    """

    __slots__ = ("_context", "_is_default", "_launchers", "_resource")

    _context: BaseContext
    context: ReadOnly[BaseContext] = ReadOnly("_context")
    _handle: StreamHandle

    def __init__(
        self, context: BaseContext, handle: StreamHandle, *, is_default: bool = False
    ) -> None:
        self._context = context
        self._is_default = is_default
        # Launchers whose code refers to the stream's handle, and allocators on the stream.
        self._launchers: Registry[StreamDependent] = Registry()
        # The resource of its new memory, if one was chosen; the type is above this layer.
        self._resource: object | None = None
        if handle.is_foreign:
            self._own_unrooted(handle, handle.context)
        else:
            self._own(handle)
        handle.context._driver.streams.add(self)
        context._adopt(self)
        period = handle.gate.period  # of another object for the same stream
        if isinstance(period, CaptureState) and period.is_own:
            period.join(handle, self._use_handle)

    def __repr__(self) -> str:
        handle = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Stream {handle} on device {self._context.ordinal}>"

    @property
    def capturing(self) -> bool:
        """Whether a capture of the calling thread records the stream's work.

        A capture of another thread records the work of that thread alone.
        """
        return not self.closed and self._handle.capture is not None

    @property
    def _is_captured(self) -> bool:
        """Whether a capture of any thread records the stream's work."""
        return not self.closed and self._handle.own.captured_by is not None

    @property
    def _closed_text(self) -> str:
        return f"the stream on device {self._context._device._ordinal} was closed"

    @property
    def _is_legacy_ordered(self) -> bool:
        """Whether it and the legacy stream of other libraries wait for each other.

        A capture is no part of that order.
        """
        return self._is_default and self._context.is_primary

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of cuda.core: (version 0, CUstream as an int)."""
        return 0, int(self.handle)

    @property
    def handle(self) -> CUstream:
        """The CUstream.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    @property
    def priority(self) -> int:
        """Query the priority in force; lower runs first."""
        handle = self._handle
        code, priority = handle.api.cuStreamGetPriority(handle.raw)
        if code:
            raise failure(handle.api, code, "cuStreamGetPriority", f"the priority of {self!r}")
        return priority

    @property
    def blocking(self) -> bool:
        """Query whether it and the legacy default stream wait for each other."""
        handle = self._handle
        code, flags = handle.flags()
        if code:
            raise failure(handle.api, code, "cuStreamGetFlags", f"the flags of {self!r}")
        return not flags & _NON_BLOCKING

    def close(self) -> None:
        """Close the stream; its queued work still runs, and this does not wait. Idempotent.

        Memory of the stream stays usable, and is freed after the stream's queued work. A context's
        default stream closes with its context. A stream of another library is released, not
        destroyed; its owner may destroy it from now on.

        Raises:
            CudaError: the stream was destroyed, and the driver reported an error.
        """
        if not self._is_default:
            self._close_with_parent()

    def _close_with_parent(self) -> None:
        handle: StreamHandle | ClosedHandle = self._handle
        if isinstance(handle, ClosedHandle):
            return
        own = handle if handle.capture is None else handle.own
        own.is_closed = True
        try:
            own.close_block_cache()
        finally:
            reference = None if own.is_owned else ref(own)
            del handle, own
            if self._launchers:
                for launcher in self._launchers.alive():
                    launcher.on_owner_closed(self)
            super().close()
            borrowed = None if reference is None else reference()
            if borrowed is not None:
                replace(borrowed)

    def synchronize(self) -> None:
        """Wait until everything queued is done.

        Raises:
            CudaError: some queued work failed.
        """
        handle = self._handle
        (code,) = handle.wait_for_work()
        if code:
            raise failure(handle.api, code, "cuStreamSynchronize", f"waiting for {self!r}")
        run_deferred()

    def is_done(self) -> bool:
        """Return whether everything queued is done, without waiting.

        Raises:
            CudaError: some queued work failed.
        """
        handle = self._handle
        code = handle.query()
        if code == CUresult.CUDA_ERROR_NOT_READY:
            return False
        if code:
            raise failure(handle.api, code, "cuStreamQuery", f"querying whether {self!r} is done")
        return True

    @contextmanager
    def unordered(self) -> Iterator[None]:
        """Leave the ordering of the stream to the user in a block: ``with stream.unordered():``.

        In the block, work on it does not wait for other streams that use its memory. That memory is
        still freed after the work.
        """
        handle = self._handle
        handle.unordered += 1
        try:
            yield
        finally:
            handle.unordered -= 1

    def _join_capture(self, capture: CaptureState) -> None:
        """Let a capture record the stream's work from now on, and let other threads wait.

        Raises:
            StreamCaptureIsolationError: another thread's capture of it cannot end, or exceeds its
                limit.
        """
        own: StreamHandle = self._handle
        capture.claim(own, partial(_hold_back_launches, own))
        for stream in _streams_of(own):
            capture.join(stream._handle, stream._use_handle)

    def _use_handle(self, handle: StreamHandle) -> None:
        """Work with another handle of the same stream: that of a capture, or its own again.

        In a capture, threads other than the capturing one work with the own handle.
        """
        # A capture's handle is there only while other threads get the own one instead.
        if handle.capture is not None and not isinstance(self, _Captured):
            self.__class__ = _while_captured(type(self))
        if not self.closed:
            self._handle = handle
        if handle.capture is None and isinstance(self, _Captured):
            self.__class__ = type(self)._usual  # type: ignore[assignment]  # of this class

    def _require(self, context: BaseContext, name: str, remedy: str = "") -> None:
        """Raise `WrongDeviceError` unless the stream belongs to `context`."""
        if self._context is not context:
            text = f"{name} belongs to {context!r}, but {self!r} was given"
            raise WrongDeviceError(f"{text}\n  {remedy}" if remedy else text)


class _Captured(BaseStream):
    """A stream while it captures, whose handle is another one in other threads.

    Streams change their class instead of testing the thread, which would cost each operation.
    """

    __slots__ = ()

    # The class of the stream otherwise.
    _usual: ClassVar[type[BaseStream]]

    if not TYPE_CHECKING:  # the slot of the base, which the type checker sees

        @property
        def _handle(self) -> StreamHandle | ClosedHandle:
            handle = _slot.__get__(self)
            if handle.__class__ is ClosedHandle or handle.capture is None or handle.capture.is_own:
                return handle
            return handle.own

        @_handle.setter
        def _handle(self, handle: StreamHandle | ClosedHandle) -> None:
            _slot.__set__(self, handle)


_slot: Final = vars(Closeable)["_handle"]


# By the class of a stream, the one while it captures; as many as there are classes of streams.
_captured_classes: Final[dict[type[BaseStream], type[BaseStream]]] = {}


def _while_captured(usual: type[BaseStream]) -> type[BaseStream]:
    """Return the class of a stream while it captures."""
    captured = _captured_classes.get(usual)
    if captured is None:
        namespace = {"__slots__": (), "__module__": usual.__module__, "__doc__": usual.__doc__}
        made = type(usual.__name__, (_Captured, usual), {**namespace, "_usual": usual})
        captured = _captured_classes.setdefault(usual, made)
    return captured


class _SharedGates:
    """The gates of other libraries' streams, by the numbers of those."""

    def __init__(self) -> None:
        self.by_number: WeakValueDictionary[int, CallGate] = WeakValueDictionary()


def own_stream(driver: Driver, number: int) -> StreamHandle | None:
    """Return the handle of our own open stream of this number; None for another library's."""
    if number in driver.one_of(_SharedGates).by_number:
        return None
    for stream in driver.streams.alive():
        known = handle_of(stream)
        if isinstance(known, StreamHandle) and known.own.is_owned and int(known.raw) == number:
            return known.own
    return None


def gate_of(handle: StreamHandle) -> CallGate:
    """Return the gate of a stream of another library."""
    gates = handle.driver.one_of(_SharedGates).by_number
    return gates.setdefault(int(handle.raw), handle.gate)


def _streams_of(own: StreamHandle) -> list[BaseStream]:
    """Return the open objects for a stream, of which another library's stream may have several."""
    return [
        stream
        for stream in own.driver.streams.alive()
        if isinstance(stream, BaseStream)
        and isinstance(handle := handle_of(stream), StreamHandle)
        and handle.gate is own.gate
        and handle.capture is None
    ]


def _hold_back_launches(own: StreamHandle) -> Callable[[], bool]:
    """Make later launches on a stream take a pass of its gate.

    Return whether those under way are done, as a function.
    """
    launchers = [launcher for stream in _streams_of(own) for launcher in stream._launchers.alive()]
    waited_for = [launcher.hold_back() for launcher in launchers]

    def are_done() -> bool:
        waited_for[:] = [is_done for is_done in waited_for if not is_done()]
        return not waited_for

    return are_done


def require_stream(where: str, value: object) -> BaseStream:
    """Return the value, which is a stream of cudadrv.

    Args:
        where: the name of the argument, for the error.
        value: the argument.
    """
    if isinstance(value, BaseStream):
        return value
    raise border.wrong_type(where, value, "give a Stream")
