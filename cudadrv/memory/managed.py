"""Managed memory: arrays of the host and of every device, and hints to the driver.

CUDA Programming Guide, "Unified Memory"; CUDA Driver API, cuMemAllocManaged, cuMemPrefetchAsync,
cuMemAdvise, cuStreamAttachMemAsync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import partial
from typing import ClassVar, Final, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border
from ..driver._api import (
    CUdeviceptr,
    CUmem_advise as _Number,
    CUmemLocation,
    CUmemLocationType,
    CUpointer_attribute,
    CUresult,
)
from ..driver.context_handle import ContextHandle, known_at
from ..driver.device import Device, needs_version
from ..driver.driver_selection import failure
from ..driver.handle import check
from ..driver.stream import BaseStream
from ..errors import CopyError, InvalidValueError, OutOfMemoryError
from .array import AnyDeviceArray, DeviceArray
from .buffer import DeviceBuffer, owning
from .dtypes import AnyArray, TypedDType
from .host_copy import host_address
from .layout import Layout, Shape
from .order import AnyMemory, order_access
from .pinned import HostHandle, array_over, host_context

_IS_MANAGED: Final = (CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED,)


_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_GLOBAL: Final = 0x01  # CU_MEM_ATTACH_GLOBAL: every stream of every device may use it


@overload
def managed_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text has no static type.
@overload
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """Return a C-contiguous array in managed memory, shared by host and devices, not initialised.

    Kernels take it as a pointer; the driver moves its pages to where they are used. While a kernel
    uses it the host may access it only where each device has `CONCURRENT_MANAGED_ACCESS`;
    synchronise first. The memory is freed with the last array over it, which waits for the work of
    every context.

    Raises:
        OutOfMemoryError: there is not enough memory.
        NotSupportedError: the device has no managed memory.
        DTypeError: the dtype holds Python objects.

    Source: CUDA Programming Guide, "Unified Memory".
    """
    return array_over(shape, dtype, _managed)


def _managed(nbytes: int) -> npt.NDArray[np.uint8]:
    doing = f"allocating {nbytes} bytes of managed memory"
    if nbytes > border.LARGEST:
        raise OutOfMemoryError._of_host(doing)
    handle = ManagedHandle(host_context(), nbytes)
    code = handle.make(handle.api.cuMemAllocManaged, nbytes, _GLOBAL)
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError._of_host(doing, "cuMemAllocManaged")
    if code:
        raise failure(handle.api, code, "cuMemAllocManaged", doing)
    return np.asarray(handle)


class ManagedHandle(HostHandle[CUdeviceptr]):
    """Owns managed memory."""

    __slots__ = ()

    kind: ClassVar[str] = "managed"

    def _destroy(self) -> None:
        self._wait_elsewhere()
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        check(self, code, "cuMemFree", f"freeing {self._nbytes} bytes of managed memory")


def is_managed(array: AnyArray) -> bool:
    """Return whether a host array is one of `managed_empty`, or a part; costs little."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, ManagedHandle)


class Advice(IntEnum):
    """How managed memory is used: for `advise`.

    Source: CUmem_advise in the CUDA Driver API manual.
    """

    READ_MOSTLY = int(_Number.CU_MEM_ADVISE_SET_READ_MOSTLY)
    NOT_READ_MOSTLY = int(_Number.CU_MEM_ADVISE_UNSET_READ_MOSTLY)
    PREFERRED_LOCATION = int(_Number.CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
    NO_PREFERRED_LOCATION = int(_Number.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
    ACCESSED_BY = int(_Number.CU_MEM_ADVISE_SET_ACCESSED_BY)
    NOT_ACCESSED_BY = int(_Number.CU_MEM_ADVISE_UNSET_ACCESSED_BY)


class Attachment(IntEnum):
    """The streams that may use managed memory while kernels run: for `Stream.attach`.

    Source: CUmemAttach_flags in the CUDA Driver API manual.
    """

    GLOBAL = 1
    HOST = 2
    STREAM = 4


def on_device(stream: BaseStream, array: AnyArray) -> AnyDeviceArray:
    """Implement `Stream.in_place`."""
    border.instance_of("Stream.in_place: array", array, np.ndarray)
    first, end = Layout(0, array.shape, array.strides).bounds(array.dtype.itemsize)
    address = array.ctypes.data
    queue = stream._handle
    if array.nbytes and known_at(queue.context, address + first) is None:
        raise CopyError(
            f"a host array {array.shape} {array.dtype} in ordinary memory has no place on a "
            "device: use pinned_empty, managed_empty or RegisteredArray, or copy by to_device"
        )
    buffer = DeviceBuffer.borrowed(
        stream, address + first, end - first, array, is_read_only=not array.flags.writeable
    )
    return owning(DeviceArray(buffer, array.shape, array.dtype, -first, array.strides))


def advise(array: AnyArray | AnyDeviceArray, advice: Advice, device: int | None = None) -> None:
    """Advise the driver how managed memory is used.

    Args:
        array: a C-contiguous array of `managed_empty`, a part of one, or `Stream.in_place` of it.
        advice: the expected use.
        device: the ordinal of the device concerned; None is the host.

    Raises:
        InvalidValueError: it is not managed memory, or the device does not support the advice.
    """
    location = mem_location("advise: device", "host" if device is None else device)
    advice = border.instance_of("advise: advice", advice, Advice)
    context = host_context()
    address, nbytes = _range("advise: array", array, context)
    if nbytes == 0:
        return
    function = context.api.cuMemAdvise
    (code,) = context.call(function, CUdeviceptr(address), nbytes, _Number(int(advice)), location)
    if code:
        doing = f"advising {advice.name} for {nbytes} bytes of managed memory"
        raise failure(context.api, code, "cuMemAdvise", doing)


def prefetch(stream: BaseStream, array: AnyArray | AnyDeviceArray, to: int | str | None) -> None:
    """Implement `Stream.prefetch`."""
    queue = stream._handle
    queue.raw  # noqa: B018  # raises once the stream is closed
    location = mem_location("Stream.prefetch: to", stream.context.ordinal if to is None else to)
    address, nbytes = _range("Stream.prefetch: array", array, queue.context)
    memory: AnyMemory | None = array._memory if isinstance(array, DeviceArray) else None
    if memory is not None:
        order_access(memory, queue, writes=False)
    if nbytes == 0:
        return
    function, pointer = queue.api.cuMemPrefetchAsync, CUdeviceptr(address)
    (code,) = queue.submit(queue.context.call, function, pointer, nbytes, location, 0, queue.raw)
    if code:
        doing = f"moving {nbytes} bytes of managed memory"
        raise failure(queue.api, code, "cuMemPrefetchAsync", doing)


def prefetch_batch(
    stream: BaseStream,
    arrays: Iterable[AnyArray | AnyDeviceArray],
    to: int | str | None,
    discard: bool,
) -> None:
    """Implement `Stream.prefetch_batch`."""
    to = stream.context.ordinal if to is None else to
    location_arguments = [mem_location("Stream.prefetch_batch: to", to)], [0], 1
    api = stream._handle.api
    ranges = _ranges("Stream.prefetch_batch: arrays", stream, arrays, writes=discard)
    if discard:
        with needs_version("Stream.prefetch_batch with discard", (13, 0)):
            function = api.cuMemDiscardAndPrefetchBatchAsync
            _call_batch(
                "cuMemDiscardAndPrefetchBatchAsync", function, stream, ranges, *location_arguments
            )
    else:
        with needs_version("Stream.prefetch_batch", (13, 0)):
            function = api.cuMemPrefetchBatchAsync
            _call_batch("cuMemPrefetchBatchAsync", function, stream, ranges, *location_arguments)


def discard_batch(stream: BaseStream, arrays: Iterable[AnyArray | AnyDeviceArray]) -> None:
    """Implement `Stream.discard_batch`."""
    ranges = _ranges("Stream.discard_batch: arrays", stream, arrays, writes=True)
    with needs_version("Stream.discard_batch", (13, 0)):
        function = stream._handle.api.cuMemDiscardBatchAsync
        _call_batch("cuMemDiscardBatchAsync", function, stream, ranges)


_Ranges = tuple[list[CUdeviceptr], list[int]]


def _ranges(
    where: str, stream: BaseStream, arrays: Iterable[AnyArray | AnyDeviceArray], *, writes: bool
) -> _Ranges:
    """Return addresses and sizes of managed arrays, with the stream ordered after other work."""
    queue = stream._handle
    queue.raw  # noqa: B018  # raises once the stream is closed
    if isinstance(arrays, (np.ndarray, DeviceArray)) or not isinstance(arrays, Iterable):
        raise border.wrong_type(where, arrays, "give a list of arrays")
    items = list(border.elements(where, arrays))
    ranges = [_range(f"{where}: an item", array, queue.context) for array in items]
    for array in items:
        if not writes:
            continue
        if isinstance(array, DeviceArray):
            array._require_writable()
        elif isinstance(array, np.ndarray) and not array.flags.writeable:
            raise CopyError(f"{where}: a host array to discard is read-only")
    for array in items:
        if isinstance(array, DeviceArray) and array.nbytes:
            order_access(array._memory, queue, writes=writes)
    ranges = [(address, nbytes) for address, nbytes in ranges if nbytes]
    return [CUdeviceptr(address) for address, _ in ranges], [nbytes for _, nbytes in ranges]


def _call_batch(
    call: str,
    function: Callable[..., tuple[CUresult]],
    stream: BaseStream,
    ranges: _Ranges,
    *location_arguments: object,
) -> None:
    queue, (addresses, sizes) = stream._handle, ranges
    if not sizes:
        return
    count = len(sizes)
    bound = partial(queue.context.call, function, addresses, sizes, count, *location_arguments)
    (code,) = queue.submit(bound, 0, queue.raw)
    if code:
        doing = f"moving or discarding {len(sizes)} ranges, {sum(sizes)} bytes of managed memory"
        raise failure(queue.api, code, call, doing)


def attach(stream: BaseStream, array: AnyArray, to: Attachment) -> None:
    """Implement `Stream.attach`."""
    queue, to = stream._handle, border.instance_of("Stream.attach: to", to, Attachment)
    address, nbytes = _range("Stream.attach: array", array, queue.context)
    if nbytes == 0:
        return
    pointer = CUdeviceptr(address)
    function = queue.api.cuStreamAttachMemAsync
    (code,) = queue.submit(queue.context.call, function, queue.raw, pointer, 0, int(to))
    if code:
        doing = f"attaching {nbytes} bytes of managed memory ({to.name})"
        raise failure(queue.api, code, "cuStreamAttachMemAsync", doing)


_ARRAYS: Final[tuple[type[AnyArray] | type[AnyDeviceArray], ...]] = (np.ndarray, DeviceArray)


def _range(where: str, value: object, context: ContextHandle) -> tuple[int, int]:
    """Return address and size of managed memory."""
    array: AnyArray | AnyDeviceArray = border.instance_of(where, value, _ARRAYS)
    if isinstance(array, DeviceArray):
        is_dense, address = array.is_contiguous, array.ptr
    else:
        is_dense, address = array.flags.c_contiguous, host_address(array)
    if not is_dense:
        raise InvalidValueError(f"{where} is not C-contiguous: give the whole array")
    if array.nbytes and known_at(context, address, _IS_MANAGED) != [True]:
        raise InvalidValueError(f"{where} is in no managed memory: make it by managed_empty")
    return address, array.nbytes


def mem_location(where: str, device: int | str) -> CUmemLocation:
    """Return a device by its ordinal, or the "host", as the driver's structure.

    Raises:
        InvalidDeviceError: there is no such device.
    """
    location = CUmemLocation()
    if isinstance(device, str):
        if device != "host":
            raise border.wrong_type(where, device, 'give a device\'s ordinal or "host"')
        location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    else:
        location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = Device.get(border.int_in_range(where, device)).ordinal
    return location
