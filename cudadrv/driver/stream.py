"""Streams as the layers below the public `Stream` see them.

Memory, launches and graphs take streams, and `Stream` has methods that allocate, copy and capture.
So those layers use its base class, which depends only on the driver layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import ref

from .. import border
from ..errors import WrongDeviceError
from ._api import CUresult, CUstream, CUstream_flags
from .context import BaseContext
from .deferred_release import run_deferred
from .driver_selection import failure
from .handle import Closeable, ClosedHandle
from .registry import Registry
from .stream_handle import CaptureState, StreamHandle, replace
from .types import Dependent

_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


class BaseStream(Closeable):
    """A queue of work on one context's device; every instance is a `Stream`.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a capture records the stream's work.
        closed: whether it was closed.
    """

    __slots__ = ("_is_default", "_launchers", "_resource", "capturing", "context")

    context: BaseContext
    _handle: StreamHandle

    def __init__(
        self, context: BaseContext, handle: StreamHandle, *, is_default: bool = False
    ) -> None:
        self.context = context
        self.capturing: bool = False
        self._is_default = is_default
        # Launchers whose code refers to the stream's handle.
        self._launchers: Registry[Dependent] = Registry()
        # The resource of its new memory, if one was chosen; the type is above this layer.
        self._resource: object | None = None
        if handle.is_foreign:
            self._own_unrooted(handle, handle.context)
        else:
            self._own(handle)
        context.device.driver.streams.add(self)
        context._adopt(self)

    def __repr__(self) -> str:
        handle = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Stream {handle} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the stream on device {self.context.ordinal} was closed"

    @property
    def _is_legacy_ordered(self) -> bool:
        """Whether it and the legacy stream of other libraries wait for each other.

        A capture is no part of that order.
        """
        return self._is_default and self.context.is_primary

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
        code, flags = handle.api.cuStreamGetFlags(handle.raw)
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
        own = handle.own
        own.is_closed = True
        own.block_cache.close()
        try:
            own.free_cached_blocks()
        finally:
            reference = None if own.is_owned else ref(own)
            del handle, own
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
        (code,) = handle.api.cuStreamSynchronize(handle.raw)
        if code:
            raise failure(handle.api, code, "cuStreamSynchronize", f"waiting for {self!r}")
        run_deferred()

    def is_done(self) -> bool:
        """Return whether everything queued is done, without waiting.

        Raises:
            CudaError: some queued work failed.
        """
        handle = self._handle
        (code,) = handle.api.cuStreamQuery(handle.raw)
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
        """Let a capture record the stream's work from now on."""
        capture.join(self._handle, self._use_handle)

    def _use_handle(self, handle: StreamHandle) -> None:
        """Work with another handle of the same stream: that of a capture, or its own again."""
        if handle.capture is None:
            self.capturing = False
        if self.closed:
            return
        self._handle = handle
        if handle.capture is not None:
            self.capturing = True
            for launcher in self._launchers.alive():
                launcher.reset()

    def _require(self, context: BaseContext, name: str, remedy: str = "") -> None:
        """Raise `WrongDeviceError` unless the stream belongs to `context`."""
        if self.context is not context:
            text = f"{name} belongs to {context!r}, but {self!r} was given"
            raise WrongDeviceError(f"{text}\n  {remedy}" if remedy else text)


def require_stream(where: str, value: object) -> BaseStream:
    """Return the value, which is a stream of cudadrv.

    Args:
        where: the name of the argument, for the error.
        value: the argument.
    """
    if isinstance(value, BaseStream):
        return value
    raise border.wrong_type(where, value, "give a Stream")
