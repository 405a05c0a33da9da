"""`StreamMemory`: the operations of a stream on memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import border
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..errors import CopyError
from ..memory import managed
from ..memory.array import (
    C_ORDER,
    AnyDeviceArray,
    DeviceArray,
    empty as new_array,
    empty_pitched as new_pitched,
    is_fortran,
)
from ..memory.assign import assign
from ..memory.buffer import DeviceBuffer, alloc, owning
from ..memory.copy import (
    contiguous as new_contiguous,
    copy as copy_memory,
    copy_of_host,
    download_any,
)
from ..memory.dtypes import TypedDType
from ..memory.fill import fill
from ..memory.host_copy import as_array, require_plain, upload
from ..memory.layout import Shape, checked_shape
from ..memory.reuse.host_results import host_result
from ..memory.staging import LEAST_STAGED_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..memory.copy_batch import CopySide, SourceOrder
    from ..memory.managed import Attachment


# Batches and other libraries' arrays are imported where they are used: few programs need them.

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


@cache  # an import statement takes 2 µs, also for a module that is loaded
def _importer() -> Callable[[BaseStream, object], AnyDeviceArray]:
    from ..interop.foreign import import_array  # many programs use no other library's memory

    return import_array


class StreamMemory(BaseStream):
    """New arrays, copies, fills and managed memory: a part of `Stream`, in its order."""

    __slots__ = ()

    # `alloc`, `empty` and `copy` are the functions themselves: one call less per array.
    alloc = alloc

    if TYPE_CHECKING:

        @overload
        def empty(
            self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
        ) -> DeviceArray[_ScalarT]: ...
        # A dtype given as text has no static type.
        @overload
        def empty(
            self, shape: Shape, dtype: npt.DTypeLike, order: str = "C"
        ) -> DeviceArray[Any]: ...
        def empty(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
            """Return an uninitialised device array; in order "F" the first axis is innermost."""

        @overload
        def empty_pitched(
            self, shape: Shape, dtype: TypedDType[_ScalarT]
        ) -> DeviceArray[_ScalarT]: ...
        @overload
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
            """Return an uninitialised device array whose rows begin at multiples of 512 bytes."""

        def contiguous(self, array: DeviceArray[_ScalarT]) -> DeviceArray[_ScalarT]:
            """Return a view of the array if it is contiguous in C order, else such a copy.

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
        """Return a device array of zeros; in the order "F" the first axis is innermost."""
        if order is not C_ORDER and is_fortran(order):
            return owning(self.zeros(checked_shape(shape)[::-1], dtype).T)
        array = self.empty(shape, dtype)
        if array._nbytes:
            handle, pointer = self._handle, array._pointer or array._make_pointer()
            function, passes = handle.context._driver.api.cuMemsetD8Async, handle.gate.passes
            try:
                mine = passes.pop()  # as `submit` does, at half the cost
            except IndexError:
                mine, passes = handle.gate.enter(), handle.gate.passes
            try:
                (code,) = function(pointer, 0, array._nbytes, handle.raw)
            finally:
                passes.append(mine)
            if code:
                raise failure(handle.api, code, "cuMemsetD8Async", f"zeroing {array.nbytes} bytes")
        return array

    @overload
    def to_device(
        self, array: npt.NDArray[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]: ...
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]:
        """Copy a host array of any strides to a new device array, in the order "C" or "F".

        The host array may be changed as soon as this returns.

        Raises:
            CopyError: it has masked elements.
            DTypeError: its elements are Python objects.
        """
        source = array if type(array) is np.ndarray else as_array(array)
        if order is not C_ORDER and is_fortran(order):
            return owning(self.to_device(source.T).T)
        result = self.empty(source.shape, source.dtype)
        # A graph reads its array at each replay: it gets a copy of its own.
        if self._handle.capture is not None:
            source = np.array(source, order="C")
        if source.base is not None and managed.is_managed(source):
            copy_of_host(self, result, source)
        else:
            upload(self, result, source)
        return result

    def to_host(
        self,
        array: DeviceArray[_ScalarT],
        out: npt.NDArray[_ScalarT] | None = None,
        *,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]:
        """Copy a device array of any strides to the host, into `out` if given; waits for it.

        Args:
            array: the device array.
            out: a host array of its shape and dtype, of any strides.
            wait: whether to wait for a pinned C-contiguous `out`; without it the values are
                complete once the stream is synchronised. Other arrays are always waited for. A
                capture cannot wait: without it the copy is recorded, and each replay writes the
                array.

        Raises:
            CopyError: `out` has another shape or dtype, or is read-only.
        """
        if type(array) is not DeviceArray:
            border.instance_of("Stream.to_host: array", array, DeviceArray)
        if out is not None and type(out) is not np.ndarray:
            require_plain(border.instance_of("Stream.to_host: out", out, np.ndarray))
        if out is None:
            try:
                if array._nbytes < LEAST_STAGED_BYTES or not self._handle.driver.keeps_blocks:
                    out = np.empty(array._shape, array._dtype)
                else:
                    out = host_result(array.shape, array.dtype, array.nbytes)
            except ValueError as error:  # NumPy has fewer axes
                raise CopyError(f"{array!r} has no counterpart on the host: {error}") from None
        elif out.shape != array._shape or not (
            out.dtype is array._dtype or out.dtype == array._dtype
        ):
            raise CopyError(
                f"out is {out.shape} {out.dtype}, the device array {array.shape} {array.dtype}: "
                "both must have one shape and dtype"
            )
        download_any(self, out, array, wait)
        return out

    copy = copy_memory

    def copy_batch(
        self,
        pairs: Iterable[tuple[CopySide, CopySide]],
        *,
        source_order: SourceOrder = "stream",
        source_location: int | str | None = None,
        target_location: int | str | None = None,
        wait: bool = True,
    ) -> None:
        """Copy many pairs of arrays at once, which is faster than `copy` of each.

        The copies run in no defined order: no copy may read or write what another one writes. A
        kernel makes small copies within the context's memory, unless there are few, the order is
        "call", or a location is given. One call of the driver makes the others.

        Args:
            pairs: destinations and sources, as `copy` takes them; host arrays, and what is copied
                from or to them, are contiguous in C order.
            source_order: when the sources may be read. "stream" is after the stream's earlier work,
                "call" before this function returns, "any" at any time: the sources then have their
                values already, and keep them until the copies are done.
            source_location: a hint for managed sources: the ordinal of a device, or "host".
            target_location: the same for the destinations.
            wait: whether to wait for pinned host arrays, as `copy` does. Other host arrays are
                always waited for. With the order "call", sources need no wait.

        Raises:
            CopyError: the two sides of a pair do not match or overlap, a copy from or to the host
                is strided, or one of device arrays is of more than 1,024 boxes.
            WrongDeviceError: the stream belongs to neither side's device.
            StreamCaptureUnsupportedError: the stream is capturing.
            UnsupportedError: the driver makes copies, and it or the bindings are older than
                CUDA 12.8.
        """
        from ..memory.copy_batch import copy_batch

        copy_batch(
            self,
            pairs,
            source_order=source_order,
            source_location=source_location,
            target_location=target_location,
            wait=wait,
        )

    def assign(self, dst: AnyDeviceArray, value: object) -> None:
        """Assign elements from another array, or one value, as `dst[...] = value` does.

        A device or host array is broadcast to the shape, by NumPy's rules. Host values of another
        dtype are converted if NumPy calls that "same kind", integers if they are in range. One
        value is converted as by `fill`.

        Raises:
            CopyError: the shapes do not fit.
            DTypeError: the values have another dtype, which cannot be cast to the array's.
            InvalidValueError: an element cannot hold the value unchanged.
        """
        assign(self, dst, value)

    def fill(self, dst: AnyDeviceArray | DeviceBuffer | npt.NDArray[Any], value: object) -> None:
        """Set every element of an array, or every byte of a buffer, to `value`.

        Host arrays in pinned, registered or managed memory are filled in place, after the earlier
        work of the stream. This waits for them; a capture cannot.

        Raises:
            CopyError: the host array is in ordinary memory, or read-only.
            InvalidValueError: an element cannot hold the value unchanged.
        """
        fill(self, dst, value)

    def import_array(self, value: object) -> AnyDeviceArray:
        """Return an array over another library's memory, by DLPack or the CUDA array interface.

        Nothing is copied. This stream is ordered after the work that the memory waits for. The
        producer orders it, or this waits for the stream that the type's `interop.Reader` or
        DLPack's exchange functions report. Let the other library's stream wait for this one before
        it uses the memory again. The object stays alive as long as the array, and until the work
        queued with it is done. The array is read-only if the object says so: then copies to it and
        fills raise, and kernels take it for pointers to const alone.

        Raises:
            CopyError: it has a mask, or its bytes are not its values, as of a negated view.
            DTypeError: neither NumPy nor a loaded ml_dtypes has such a dtype.
            TypeError: it is not a device array.
            WrongDeviceError: the memory lies on another device.
        """
        return _importer()(self, value)

    @overload
    def in_place(self, array: npt.NDArray[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    @overload
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]: ...
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]:
        """Return a device array over a pinned, registered or managed host array, without a copy.

        Strides are arbitrary. The host array stays alive as long as the device array, and until the
        work queued with it is done. The host must not access it meanwhile. The array of a read-only
        one is read-only.

        Raises:
            CopyError: it is in ordinary memory.
        """
        return managed.on_device(self, array)

    def prefetch(
        self, array: npt.NDArray[Any] | AnyDeviceArray, to: int | str | None = None
    ) -> None:
        """Move managed memory to where it is used next, in the order of the stream.

        Args:
            array: a C-contiguous array of `managed_empty`, or a part, or `in_place` of it.
            to: the ordinal of a device, or "host"; None is the stream's device.

        Raises:
            InvalidValueError: it is not managed memory.
            InvalidDeviceError: the device does not prefetch, or does not exist.
        """
        managed.prefetch(self, array, to)

    def prefetch_batch(
        self,
        arrays: Iterable[npt.NDArray[Any] | AnyDeviceArray],
        to: int | str | None = None,
        *,
        discard: bool = False,
    ) -> None:
        """Move several managed arrays in one call of the driver; otherwise as `prefetch`.

        Args:
            arrays: arrays as `prefetch` takes them.
            to: the ordinal of a device, or "host"; None is the stream's device.
            discard: whether the content is no longer needed, so that the driver need not move it.

        Raises:
            InvalidValueError: an array is not in managed memory.
            ArgumentValueError: device memory to discard is read-only.
            CopyError: a host array to discard is read-only.
            UnsupportedError: the driver or the bindings are older than CUDA 13.0.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        managed.prefetch_batch(self, arrays, to, discard)

    def discard_batch(self, arrays: Iterable[npt.NDArray[Any] | AnyDeviceArray]) -> None:
        """Let managed arrays have undefined content, which the driver need not move any more.

        Write the arrays, or prefetch them, before they are read again.

        Args:
            arrays: arrays as `prefetch` takes them.

        Raises:
            InvalidValueError: an array is not in managed memory.
            ArgumentValueError: device memory to discard is read-only.
            CopyError: a host array to discard is read-only.
            UnsupportedError: the driver or the bindings are older than CUDA 13.0.
        """
        managed.discard_batch(self, arrays)

    def attach(self, array: npt.NDArray[Any], to: Attachment) -> None:
        """Set the streams that may use managed memory during kernels, in the order of the stream.

        For devices without `CONCURRENT_MANAGED_ACCESS`, where the host may access managed memory
        only while no kernel may use it.

        Args:
            array: an array of `managed_empty`, as a whole.
            to: all streams, the host, or this stream alone.
        """
        managed.attach(self, array, to)


# Signatures show them as methods; their modules know only the base of streams.
for _function in (alloc, copy_memory, new_array, new_pitched, new_contiguous):
    _function.__annotations__.pop("self", None)
