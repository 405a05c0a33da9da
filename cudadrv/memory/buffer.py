"""`DeviceBuffer`: bytes of device memory that come from a stream and go back to it."""

from __future__ import annotations

import weakref
from operator import index
from typing import TYPE_CHECKING, Final, NoReturn

from .. import errors
from ..driver._api import CUdeviceptr, CUresult
from ..driver.in_use import Bound, Handle, failure
from ..errors import ClosedError, CudadrvError

if TYPE_CHECKING:
    from ..driver.context import Context
    from ..stream import Stream


class _Addressed(Handle):
    """What has a device address, which `close` takes away.

    Attributes:
        ptr: the address.
        driver_pointer: the address as the driver's functions take it, once one was made; making it
            costs as much as a quarter of what a small copy takes in Python.
    """

    __slots__ = ("__weakref__", "driver_pointer", "ptr")

    ptr: int
    driver_pointer: CUdeviceptr | None

    def make_driver_pointer(self) -> CUdeviceptr:
        """The address as the driver's functions take it, remembered for the next copy."""
        self.driver_pointer = pointer = CUdeviceptr(self.ptr)
        return pointer

    def __index__(self) -> int:
        return self.ptr

    # Python would take `__index__` where a float belongs, and hand over the address.
    def __float__(self) -> NoReturn:
        raise TypeError(f"{self!r} is no number: read it with Stream.to_host")

    if not TYPE_CHECKING:  # a type checker would take it for a promise of an array

        def __array__(self, *_: object, **__: object) -> NoReturn:
            raise TypeError(f"{self!r} is no host array: copy it with Stream.to_host")


class DeviceBuffer(_Addressed):
    """Device memory, allocated in the order of a stream and released in that order.

    Made by `Stream.alloc`. `ptr` is the device address, 0 for a buffer of no bytes; using it after
    `close` raises `ClosedError`.
    """

    __slots__ = ("_arrays", "_memory", "context", "nbytes", "stream")

    def __init__(self, stream: Stream, nbytes: int) -> None:
        self._memory: object | None = None
        if type(nbytes) is not int:
            nbytes = index(nbytes)
        if nbytes > 0:
            code, pointer = stream.api.cuMemAllocAsync(nbytes, stream.handle)
            if code:
                raise _refused(stream, nbytes, code)
            self._memory = memory = _Memory()
            memory.pointer = pointer
            memory.stream = stream
            memory.users = None
            self.ptr = int(pointer)
            if stream.capture_memory is not None:
                stream.capture_memory.allocated.add(self.ptr)
        else:
            if nbytes < 0:
                raise errors.InvalidValueError(f"allocating {nbytes} bytes: a size is 0 or more")
            self._memory = _NOTHING
            self.ptr = 0
        self.driver_pointer = None
        self.stream = stream
        self.context: Context = stream.context
        self.nbytes = nbytes
        # Arrays over this buffer, whose addresses must go when it is closed.
        self._arrays: weakref.ref[_Addressed] | weakref.WeakSet[_Addressed] | None = None

    @classmethod
    def borrowed(cls, stream: Stream, pointer: int, nbytes: int, owner: object) -> DeviceBuffer:
        """A buffer over memory that `owner` keeps; closing it gives nothing back."""
        self = cls.__new__(cls)
        self.stream = stream
        self.context = stream.context
        self.nbytes = nbytes
        self.ptr = pointer
        self.driver_pointer = None
        self._memory = (owner,)
        self._arrays = None
        return self

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "ptr":
                raise ClosedError(f"the device buffer of {self.nbytes} bytes was closed")
            raise AttributeError(f"a DeviceBuffer has no attribute {name!r}")

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self.ptr:#x}"
        return f"<DeviceBuffer {self.nbytes} bytes {where} on device {self.context.ordinal}>"

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the memory was given back."""
        return self._memory is None

    def record_use(self, stream: Stream) -> None:
        """Let the release wait for what `stream` has been given until then.

        For work on another stream than the buffer's own; copies between streams do it themselves.
        """
        memory = self._memory
        if stream is self.stream or not isinstance(memory, _Memory):
            return
        if memory.users is None:
            memory.users = [stream]
        elif stream not in memory.users:
            memory.users.append(stream)

    def close(self) -> None:
        """Give the memory back after the work queued on its stream so far. Idempotent."""
        if self._memory is not None:
            del self.ptr
            self.driver_pointer = None
            arrays = self._arrays
            if arrays is not None:
                for array in (arrays(),) if isinstance(arrays, weakref.ref) else arrays:
                    if array is not None:
                        del array.ptr
                        array.driver_pointer = None
            # Its only reference: the memory is released here.
            self._memory = None

    def adopt(self, array: _Addressed) -> None:
        """Remember an array over this buffer, so that `close` takes its address away too."""
        arrays = self._arrays
        if arrays is None:
            # Most buffers have one array: a set would cost more than the allocation.
            self._arrays = weakref.ref(array)
        elif isinstance(arrays, weakref.ref):
            first = arrays()
            self._arrays = weakref.WeakSet((array,) if first is None else (first, array))
        else:
            arrays.add(array)


class _Memory:
    """What a buffer of ours releases: raw handles alone, freed when the last reference goes.

    An object with a finalizer of its own costs a third of what `weakref.finalize` does, and like
    that never sees the buffer it belongs to.

    Attributes:
        pointer: the address, as the driver gave it.
        stream: the stream that orders its release.
        users: streams of other work that still uses the memory; the release waits for them.
    """

    __slots__ = ("pointer", "stream", "users")

    pointer: CUdeviceptr
    stream: Stream
    users: list[Stream] | None

    def __del__(self) -> None:
        try:
            stream = self.stream
            context = stream.context
            if context.closed:
                return
            try:
                if stream.capturing or self.users is not None:
                    stream.release(int(self.pointer), self.users or ())
                else:
                    stream.api.cuMemFreeAsync(self.pointer, stream.handle)
            except ClosedError:
                # Nothing orders the release any more: cuMemFree waits for the device.
                with Bound(stream.api, context.handle):
                    stream.api.cuMemFree(self.pointer)
        except Exception:
            # A finalizer must not raise: the context may be gone, or the interpreter be ending.
            return


_NOTHING: Final = ("no memory",)


def _refused(stream: Stream, nbytes: int, code: CUresult) -> CudadrvError:
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        return out_of_memory(stream.context, nbytes, "cuMemAllocAsync")
    doing = f"allocating {nbytes} bytes on {stream!r}"
    return failure(stream.api, code, "cuMemAllocAsync", doing)


def out_of_memory(context: Context, nbytes: int, call: str) -> errors.OutOfMemoryError:
    """The error for a request that did not fit, with the free and total bytes as of now."""
    free, total = context.memory_info()
    return errors.OutOfMemoryError(
        f"allocating {nbytes} bytes on device {context.ordinal}, "
        f"which has {free} bytes free of {total}",
        call=call,
    )
