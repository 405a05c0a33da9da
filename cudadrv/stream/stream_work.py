"""What a stream is given: memory, copies, functions of the host, captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import border
from ..driver.default_stream import DefaultStream
from ..driver.event import Event
from ..driver.in_use import failure
from ..driver.stream_core import StreamCore
from ..driver.types import CudaStream
from ..errors import CopyError
from ..memory.array import (
    C_ORDER,
    AnyDeviceArray,
    DeviceArray,
    empty as new_array,
    empty_pitched as new_pitched,
    is_fortran,
)
from ..memory.assign import assign
from ..memory.buffer import DeviceBuffer, alloc
from ..memory.copy import contiguous as new_contiguous, copy as copy_memory, download_any
from ..memory.dtypes import TypedDType
from ..memory.fill import fill
from ..memory.host_copy import as_array, require_plain, upload
from ..memory.layout import Shape, checked_shape
from ..memory.resource import MemoryResource, choose
from ..memory.reuse.host_results import host_result
from ..memory.staging import LEAST_STAGED_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..memory.managed import Attachment

# Imported where they are used: graphs, host functions and the room of other libraries, which many
# programs do without. Together they take 4 ms.

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class StreamWork(StreamCore):
    """A queue of work on one context's device, without the type of its context."""

    __slots__ = ()

    def wait(self, event: Event | StreamCore | DefaultStream | CudaStream) -> None:
        """Let what is queued from now on wait for an event, or for what a stream holds now.

        The stream may be another library's.
        """
        if isinstance(event, Event):
            self._wait_event(event)
        elif isinstance(event, (StreamCore, DefaultStream)):
            if event is not self:
                self._wait_event(event.record(timing=False))
        else:
            from ..interop.foreign import stream_handle
            from ..interop.ordering import order_after

            order_after(self, (stream_handle(event),))

    # `alloc`, `empty` and `copy` are the functions themselves: one call less for each array.
    alloc = alloc

    if TYPE_CHECKING:

        @overload
        def empty(
            self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
        ) -> DeviceArray[_ScalarT]: ...
        # A dtype given as text says nothing to a type checker.
        @overload
        def empty(
            self, shape: Shape, dtype: npt.DTypeLike, order: str = "C"
        ) -> DeviceArray[Any]: ...
        def empty(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
            """A device array, not initialised; in the order "F" the first axis is the nearest."""

        @overload
        def empty_pitched(
            self, shape: Shape, dtype: TypedDType[_ScalarT]
        ) -> DeviceArray[_ScalarT]: ...
        @overload
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
            """A device array, not initialised, whose rows begin at multiples of 512 bytes."""

        def contiguous(self, array: DeviceArray[_ScalarT]) -> DeviceArray[_ScalarT]:
            """The array if its elements lie in C order, one behind the other, else such a copy.

            Raises:
                WrongDeviceError: the array is of another context.
            """
    else:
        empty, empty_pitched, contiguous = new_array, new_pitched, new_contiguous

    @overload
    def zeros(
        self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]: ...
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
        """A device array of zeros; in the order "F" the first axis is the nearest."""
        if order is not C_ORDER and is_fortran(order):
            return self.zeros(checked_shape(shape)[::-1], dtype).T
        array = self.empty(shape, dtype)
        if array.nbytes:
            box, pointer = self._box, array._pointer or array._make_pointer()
            (code,) = box.context._driver.api.cuMemsetD8Async(pointer, 0, array.nbytes, box.raw)
            if code:
                raise failure(box.api, code, "cuMemsetD8Async", f"zeroing {array.nbytes} bytes")
        return array

    @overload
    def to_device(
        self, array: npt.NDArray[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]: ...
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]:
        """A device copy of a host array of any strides, in the order "C" or "F".

        The host array may be changed as soon as this returns.

        Raises:
            CopyError: it has masked elements.
            DTypeError: its elements are Python objects.
        """
        source = array if type(array) is np.ndarray else as_array(array)
        if order is not C_ORDER and is_fortran(order):
            return self.to_device(source.T).T
        # A graph reads its array at each replay: it gets one of its own.
        if self.capturing:
            source = np.array(source, order="C")
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
        """A host copy of a device array, of any strides, in `out` if given; waits for it.

        Args:
            array: the device array.
            out: a host array of its shape and dtype, of any strides.
            wait: whether to wait for a pinned C-contiguous `out`; without it the values are there
                once the stream is synchronised. Other arrays are always waited for. A capture
                cannot wait: without it the copy is recorded, and each replay writes the array.

        Raises:
            CopyError: `out` has another shape or dtype, or is read-only.
        """
        if type(array) is not DeviceArray:
            border.instance("Stream.to_host: array", array, DeviceArray)
        if out is not None and type(out) is not np.ndarray:
            require_plain(border.instance("Stream.to_host: out", out, np.ndarray))
        if out is None:
            try:
                if array.nbytes < LEAST_STAGED_BYTES or not self._box.driver.keeps_blocks:
                    out = np.empty(array.shape, array.dtype)
                else:
                    out = host_result(array.shape, array.dtype, array.nbytes)
            except ValueError as error:  # NumPy has fewer axes
                raise CopyError(f"{array!r} has no counterpart on the host: {error}") from None
        elif out.shape != array.shape or not (out.dtype is array.dtype or out.dtype == array.dtype):
            raise CopyError(
                f"out is {out.shape} {out.dtype}, the device array {array.shape} {array.dtype}: "
                "both must have one shape and dtype"
            )
        download_any(self, out, array, wait)
        return out

    copy = copy_memory

    def assign(self, dst: AnyDeviceArray, value: object) -> None:
        """Give elements the values of another array, or one value, as `dst[...] = value` does.

        A device or host array is broadcast to the shape, by NumPy's rules. Host values of another
        dtype are converted where NumPy calls that "same kind", whole numbers where they are in
        range; one value as by `fill`.

        Raises:
            CopyError: the shapes do not fit.
            DTypeError: the values have another dtype, which does not become the array's.
            InvalidValueError: an element cannot have the value as it is.
        """
        assign(self, dst, value)

    def fill(self, dst: AnyDeviceArray | DeviceBuffer, value: object) -> None:
        """Set every element of an array, or every byte of a buffer, to `value`."""
        fill(self, dst, value)

    def import_array(self, value: object) -> AnyDeviceArray:
        """An array over device memory of another library, by DLPack or the CUDA array interface.

        Nothing is copied. This stream is ordered after the work that the memory waits for: by its
        producer, or after the stream that DLPack's exchange functions name, where its type has
        them. Let the other library's stream wait for this one before it uses the memory again. The
        object stays alive as long as the array, and until the work that was queued with it is done.

        Raises:
            CopyError: it has a mask, or its values are not its bytes, as of a negated view.
            DTypeError: NumPy has no such dtype, nor ml_dtypes, where that is loaded.
            TypeError: it is no device array.
            WrongDeviceError: the memory lies on another device.
        """
        from ..interop.foreign import import_array

        return import_array(self, value)

    @overload
    def in_place(self, array: npt.NDArray[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    @overload
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]: ...
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]:
        """A device array over a host array in pinned, registered or managed memory: nothing moves.

        Of any strides. The host array stays alive as long as the device array, and until the work
        that was queued with it is done; the host must not touch it meanwhile.

        Raises:
            CopyError: it is in ordinary memory.
        """
        from ..memory.managed import on_device

        return on_device(self, array)

    def prefetch(
        self, array: npt.NDArray[Any] | AnyDeviceArray, to: int | str | None = None
    ) -> None:
        """Move managed memory to where it is used next, in the order of the stream.

        Args:
            array: a C-contiguous array of `managed_empty`, or a part, or `in_place` of it.
            to: the ordinal of a device, or "host"; None is the stream's device.

        Raises:
            InvalidValueError: it is no managed memory.
            InvalidDeviceError: the device moves no memory on request, or there is none.
        """
        from ..memory.managed import prefetch

        prefetch(self, array, to)

    def attach(self, array: npt.NDArray[Any], to: Attachment) -> None:
        """Say who uses managed memory while kernels run, in the order of the stream.

        For devices without `CONCURRENT_MANAGED_ACCESS`, where the host may touch managed memory
        only while no kernel may use it.

        Args:
            array: an array of `managed_empty`, as a whole.
            to: everybody, the host, or this stream alone.
        """
        from ..memory.managed import attach

        attach(self, array, to)

    def call_on_host(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` at this point of the stream, in a thread of the driver.

        What follows in the stream waits for it. It must make no CUDA call, of no library, and must
        not wait for what does. What it raises is reported by `sys.unraisablehook`.
        In a capture it is a node of the graph, and called at each replay.
        """
        border.function("Stream.call_on_host: function", function)
        from ..graph.host_function import call_on_host

        call_on_host(self, function, args)

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of this stream come from a resource; None is as its context says."""
        self._resource = choose("Stream.use_memory: resource", resource)
