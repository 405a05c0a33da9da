"""`DeviceBuffer`: bytes of device memory that come from a stream and go back to it."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING

from .._api import CUdeviceptr
from .._driver import Bound, failure
from ..errors import ClosedError, CudadrvError, InvalidValueError, OutOfMemoryError

if TYPE_CHECKING:
    from ..context import Context
    from ..stream import Stream


class DeviceBuffer:
    """Device memory, allocated in the order of a stream and released in that order.

    Made by `Stream.alloc`. `ptr` is the device address, 0 for a buffer of no bytes; using it after
    `close` raises `ClosedError`.
    """

    __slots__ = (
        "__weakref__", "_arrays", "_finalizer", "_users", "context", "nbytes", "ptr", "stream",
    )  # fmt: skip

    ptr: int

    def __init__(self, stream: Stream, nbytes: int) -> None:
        self.stream = stream
        self.context: Context = stream.context
        self.nbytes = nbytes
        self.ptr = _allocate(stream, nbytes)
        # Streams of other work that still uses the memory; its release waits for them.
        self._users: list[Stream] = []
        # Arrays over this buffer, whose addresses must go when it is closed.
        self._arrays: weakref.WeakSet[_Addressed] | None = None
        self._finalizer: weakref.finalize[..., DeviceBuffer] = weakref.finalize(
            self, _release, stream, self.ptr, self._users
        )
        self._finalizer.atexit = False

    @classmethod
    def borrowed(cls, stream: Stream, pointer: int, nbytes: int, owner: object) -> DeviceBuffer:
        """A buffer over memory that `owner` keeps; closing it gives nothing back."""
        self = cls.__new__(cls)
        self.stream = stream
        self.context = stream.context
        self.nbytes = nbytes
        self.ptr = pointer
        self._users = []
        self._arrays = None
        self._finalizer = weakref.finalize(self, _let_go, owner)
        self._finalizer.atexit = False
        return self

    def __getattr__(self, name: str) -> object:
        if name == "ptr":
            raise ClosedError(f"the device buffer of {self.nbytes} bytes was closed")
        raise AttributeError(name)

    def __repr__(self) -> str:
        where = f"at {self.ptr:#x}" if self._finalizer.alive else "closed"
        return f"<DeviceBuffer {self.nbytes} bytes {where} on device {self.context.ordinal}>"

    def __index__(self) -> int:
        return self.ptr

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the memory was given back."""
        return not self._finalizer.alive

    def record_use(self, stream: Stream) -> None:
        """Let the release wait for what `stream` has been given until then.

        For work on another stream than the buffer's own; copies between streams do it themselves.
        """
        if stream is not self.stream and stream not in self._users:
            self._users.append(stream)

    def close(self) -> None:
        """Give the memory back after the work queued on its stream so far. Idempotent."""
        if self._finalizer.alive:
            del self.ptr
            for array in self._arrays or ():
                del array.ptr
            self._finalizer()

    def adopt(self, array: _Addressed) -> None:
        """Remember an array over this buffer, so that `close` takes its address away too."""
        if self._arrays is None:
            self._arrays = weakref.WeakSet()
        self._arrays.add(array)


class _Addressed:
    """What has a device address that can be taken away."""

    __slots__ = ("__weakref__", "ptr")

    ptr: int


def _allocate(stream: Stream, nbytes: int) -> int:
    if nbytes <= 0:
        if nbytes < 0:
            raise InvalidValueError(f"allocating {nbytes} bytes: a size is 0 or more")
        return 0
    api = stream.api
    code, pointer = api.cuMemAllocAsync(nbytes, stream.handle)
    if code == OutOfMemoryError.result:
        raise out_of_memory(stream.context, nbytes, "cuMemAllocAsync")
    if code:
        raise failure(api, code, "cuMemAllocAsync", f"allocating {nbytes} bytes on {stream!r}")
    return int(pointer)


def out_of_memory(context: Context, nbytes: int, call: str) -> OutOfMemoryError:
    """The error for a request that did not fit, with the free and total bytes as of now."""
    free, total = context.memory_info()
    return OutOfMemoryError(
        f"allocating {nbytes} bytes on device {context.ordinal}, "
        f"which has {free} bytes free of {total}",
        call=call,
    )


def _let_go(owner: object) -> None:
    """End a borrowed buffer; holding `owner` until now is all that it is for."""


def _release(stream: Stream, pointer: int, users: list[Stream]) -> None:
    """Free memory in the order of its stream; a finalizer, so it never raises."""
    if pointer == 0 or stream.context.closed:
        return
    api = stream.api
    if stream.closed:
        # Nothing orders the release any more: cuMemFree waits for the device.
        with contextlib.suppress(CudadrvError), Bound(api, stream.context.handle):
            api.cuMemFree(CUdeviceptr(pointer))
        return
    stream.release(pointer, users)
