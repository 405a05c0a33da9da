"""Streams: queues of device work, and the memory and copies that keep their order."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import numpy as np

from .driver._api import CUdeviceptr, CUresult, CUstream, CUstreamCaptureStatus, DriverApi
from .driver.in_use import Handle, failure
from .errors import ClosedError, CopyError, CudadrvError, WrongDeviceError
from .memory.array import AnyDeviceArray, DeviceArray, Shape, TypedDType
from .memory.buffer import DeviceBuffer
from .memory.copy import copy as copy_memory, download, upload

if TYPE_CHECKING:
    import numpy.typing as npt

    from .driver.context import Context
    from .driver.event import Event
    from .driver.types import CudaStream, Dependent
    from .graph import Capture, CaptureMemory

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
# Held while a stream closes, and while another one asks it for its end. One for all streams, and
# one that a thread may take again: a garbage collection may do either anywhere.
_ENDING: Final = threading.RLock()


class Stream(Handle):
    """A queue of work on one context's device; made by `Context.new_stream`.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a `capture` block is open on it.
        capture_memory: the memory that this capture concerns.
        closed: whether it was closed.
    """

    __slots__ = (
        "__weakref__", "_dependents", "_end", "_finalizer", "_origin",
        "api", "capture_memory", "capturing", "closed", "context", "handle", "spare_events",
    )  # fmt: skip

    handle: CUstream

    def __init__(
        self, context: Context, handle: CUstream, *, owned: bool, origin: object = None
    ) -> None:
        self.api: DriverApi = context.api
        self.context = context
        self.handle = handle
        self.capturing = False
        self.closed = False
        self.capture_memory: CaptureMemory | None = None
        # Its last work, for those that use its memory once it is closed.
        self._end: Event | None = None
        # The object of another library that keeps the handle alive.
        self._origin = origin
        # Events for waits on other libraries' streams, while no thread uses them.
        self.spare_events: list[Event] = []
        # What has the handle built in, and must be told when it is taken away.
        self._dependents: weakref.WeakSet[Dependent] | None = None
        self._finalizer = (
            weakref.finalize(self, _destroy, self.api, handle, context) if owned else None
        )
        if self._finalizer is not None:
            self._finalizer.atexit = False

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError(f"the stream on device {self.context.ordinal} was closed")
            raise AttributeError(f"a Stream has no attribute {name!r}")

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Stream {where} on device {self.context.ordinal}>"

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of cuda.core: (version 0, CUstream as an int)."""
        return 0, int(self.handle)

    def close(self) -> None:
        """Destroy the stream once its queued work is done; this does not wait. Idempotent.

        Memory of the stream stays usable. A context's default stream closes with its context; a
        stream of another library is let go, not destroyed.
        """
        with _ENDING:
            if self._finalizer is not None and self._finalizer.alive:
                self._mark_end()
                self.discard()
                self._finalizer()
            elif self._origin is not None:
                self._mark_end()
                self.discard()
                self._origin = None

    def _mark_end(self) -> None:
        if not (self.closed or self.capturing):
            # A stream that fails has no work left to wait for.
            with contextlib.suppress(CudadrvError):
                self._end = self.record(timing=False)

    def wait_for_end(self) -> None:
        """Wait on the host for the work that a closed stream still had."""
        if self._end is not None:
            self._end.synchronize()

    def end(self) -> Event | None:
        """Where its work ends: now, or where it ended when it was closed, if it had any then.

        Another thread may close it meanwhile.
        """
        with _ENDING:
            return self._end if self.closed else self.record(timing=False)

    def discard(self) -> None:
        """Take the handle away: it is destroyed, or its context is."""
        if not self.closed:
            self.closed = True
            del self.handle
            for dependent in tuple(self._dependents or ()):
                dependent.stop()

    def adopt(self, dependent: Dependent) -> None:
        """Remember what has the handle built in; its `stop` is called when the stream closes."""
        if self._dependents is None:
            self._dependents = weakref.WeakSet()
        self._dependents.add(dependent)

    def synchronize(self) -> None:
        """Wait until everything queued is done.

        Raises:
            CudaError: something that was queued failed.
        """
        (code,) = self.api.cuStreamSynchronize(self.handle)
        if code:
            raise failure(self.api, code, "cuStreamSynchronize", f"waiting for {self!r}")

    def is_done(self) -> bool:
        """Whether everything queued is done, without waiting.

        Raises:
            CudaError: something that was queued failed.
        """
        (code,) = self.api.cuStreamQuery(self.handle)
        if code == CUresult.CUDA_ERROR_NOT_READY:
            return False
        if code:
            raise failure(self.api, code, "cuStreamQuery", f"asking whether {self!r} is done")
        return True

    @property
    def priority(self) -> int:
        """The priority in force; lower runs first; asks the driver."""
        code, priority = self.api.cuStreamGetPriority(self.handle)
        if code:
            raise failure(self.api, code, "cuStreamGetPriority", f"the priority of {self!r}")
        return priority

    def record(self, *, timing: bool = True) -> Event:
        """A new event at this point of the stream."""
        from .driver.event import Event  # like `Capture`, what many programs never use

        event = Event(self.context, timing=timing)
        event.record(self)
        return event

    def wait(self, event: Event | Stream | CudaStream) -> None:
        """Let what is queued from now on wait for an event, or for what a stream holds now.

        The stream may be another library's.
        """
        if isinstance(event, Stream):
            if event is self:
                return
            event = event.record(timing=False)
        elif hasattr(event, "__cuda_stream__"):
            from .interop.foreign import order_after, stream_handle

            order_after(self, (stream_handle(event),))
            return
        (code,) = self.api.cuStreamWaitEvent(self.handle, event.handle, 0)
        if code:
            raise failure(self.api, code, "cuStreamWaitEvent", f"letting {self!r} wait")

    def alloc(self, nbytes: int) -> DeviceBuffer:
        """Device memory of `nbytes` bytes, not initialised, usable in this stream's order.

        Raises:
            OutOfMemoryError: with the request and the free and total bytes.
        """
        return DeviceBuffer(self, nbytes)

    @overload
    def empty(self, shape: Shape, dtype: TypedDType[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
        """A device array, not initialised."""
        return DeviceArray.allocate(self, shape, dtype)

    @overload
    def zeros(self, shape: Shape, dtype: TypedDType[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    @overload
    def zeros(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
    def zeros(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
        """A device array of zeros."""
        array = self.empty(shape, dtype)
        if array.nbytes:
            (code,) = self.api.cuMemsetD8Async(CUdeviceptr(array.ptr), 0, array.nbytes, self.handle)
            if code:
                raise failure(self.api, code, "cuMemsetD8Async", f"zeroing {array.nbytes} bytes")
        return array

    @overload
    def to_device(self, array: npt.NDArray[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    @overload
    def to_device(self, array: npt.ArrayLike) -> DeviceArray[Any]: ...
    def to_device(self, array: npt.ArrayLike) -> DeviceArray[Any]:
        """A device copy of a host array of any strides, in C order.

        The host array may be changed as soon as this returns.
        """
        # A graph reads its array at each replay: it gets one of its own.
        source = np.array(array, order="C") if self.capturing else np.asarray(array)
        result = self.empty(source.shape, source.dtype)
        upload(self, result, source)
        return result

    def to_host(
        self,
        array: DeviceArray[_ScalarT],
        out: npt.NDArray[_ScalarT] | None = None,
        *,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]:
        """A host copy of a device array, in `out` if given; waits for it.

        Args:
            array: the device array.
            out: a host array of its shape and dtype, of any strides.
            wait: whether to wait for a pinned C-contiguous `out`; without it the values are there
                once the stream is synchronised. Other arrays are always waited for.

        Raises:
            CopyError: `out` has another shape or dtype, or is read-only.
        """
        if out is None:
            out = np.empty(array.shape, array.dtype)
        elif out.shape != array.shape or not (out.dtype is array.dtype or out.dtype == array.dtype):
            raise CopyError(
                f"out is {out.shape} {out.dtype}, the device array {array.shape} {array.dtype}"
            )
        download(self, out, array, wait)
        return out

    copy = copy_memory  # the function itself: one call less for each copy

    def fill(self, dst: AnyDeviceArray | DeviceBuffer, value: object) -> None:
        """Set every element of an array, or every byte of a buffer, to `value`."""
        from .memory.fill import fill

        fill(self, dst, value)

    def import_array(self, value: object) -> AnyDeviceArray:
        """An array over device memory of another library, by DLPack or the CUDA array interface.

        Nothing is copied. This stream is ordered after the work that the memory waits for; let the
        other library's stream wait for this one before it uses the memory again. The object stays
        alive as long as the array.

        Raises:
            CopyError: its elements are not C-contiguous, or it has a mask.
            DTypeError: NumPy has no such dtype, such as bfloat16.
            TypeError: it is no device array.
            WrongDeviceError: the memory lies on another device.
        """
        from .interop.foreign import import_array

        return import_array(self, value)

    def call_on_host(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` at this point of the stream, in a thread of the driver.

        What follows in the stream waits for it. It must make no CUDA call, of no library, and must
        not wait for what does. What it raises is reported by `sys.unraisablehook`.

        Raises:
            StreamCaptureUnsupportedError: the stream is capturing.
        """
        from .host_function import call_on_host

        call_on_host(self, function, args)

    def capture(self) -> Capture:
        """``with stream.capture() as graph:`` records what the stream is given in the block."""
        from .graph import Capture

        return Capture(self)

    def follow(self, memory: AnyDeviceArray | DeviceBuffer) -> None:
        """Order this stream after the one that `memory` came from, where it is another."""
        owner = memory.stream
        if owner is self:
            return
        if self.capturing and not (owner.capturing or owner._takes_part_in_capture()):
            # A capture cannot wait for what is outside of it. What there is now is waited for here;
            # what comes later, whoever replays the graph orders.
            end = owner.end()
            if end is not None:
                end.synchronize()
        else:
            self.follow_stream(owner)

    def follow_stream(self, other: Stream) -> None:
        """Wait for what another stream holds now, or held when it was closed."""
        end = other.end()
        if end is not None:
            self.wait(end)

    def _takes_part_in_capture(self) -> bool:
        """Whether the stream was drawn into a capture by waiting for one of its streams."""
        with _ENDING:
            if self.closed:
                return False
            code, status = self.api.cuStreamIsCapturing(self.handle)
        if code:
            raise failure(self.api, code, "cuStreamIsCapturing", f"asking {self!r}")
        return status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    def require(self, context: Context, what: str) -> None:
        """Raise `WrongDeviceError` unless the stream belongs to `context`."""
        if self.context is not context:
            raise WrongDeviceError(f"{what} belongs to {context!r}, but {self!r} was given")

    def release(self, pointer: int, users: Sequence[Stream] = ()) -> None:
        """Free an address in this stream's order, after what `users` hold now; never raises."""
        memory = self.capture_memory
        if memory is not None:
            if pointer not in memory.allocated:
                # The graph would free at each replay what was allocated once.
                memory.deferred.append(pointer)
                return
            memory.allocated.remove(pointer)
        for user in users:
            # A finalizer must not raise, and a stream that fails has no work left to wait for.
            with contextlib.suppress(CudadrvError):
                self.follow_stream(user)
        self.api.cuMemFreeAsync(CUdeviceptr(pointer), self.handle)


def _destroy(api: DriverApi, handle: CUstream, context: Context) -> None:
    if not context.closed:
        api.cuStreamDestroy(handle)
