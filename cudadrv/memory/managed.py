"""Managed memory: arrays of the host and of every device, and hints to the driver.

CUDA Programming Guide, "Unified Memory"; CUDA Driver API, cuMemAllocManaged, cuMemPrefetchAsync,
cuMemAdvise, cuStreamAttachMemAsync.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border
from ..driver._api import (
    CUdeviceptr,
    CUmem_advise as _Number,
    CUmemLocation,
    CUmemLocationType,
    CUpointer_attribute,
)
from ..driver.context_handle import ContextHandle, known_at
from ..driver.device import Device
from ..driver.driver_selection import failure
from ..driver.handle import check
from ..driver.stream import BaseStream
from ..errors import CopyError, InvalidValueError, OutOfMemoryError
from .array import AnyDeviceArray, DeviceArray
from .buffer import DeviceBuffer
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
        raise OutOfMemoryError(doing)
    box = _ManagedHandle(host_context(), nbytes)
    code = box.make(box.api.cuMemAllocManaged, nbytes, _GLOBAL)
    if code:
        raise failure(box.api, code, "cuMemAllocManaged", doing)
    return np.asarray(box)


class _ManagedHandle(HostHandle[CUdeviceptr]):
    """Owns managed memory."""

    __slots__ = ()

    def _destroy(self) -> None:
        self._wait_elsewhere()
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        check(self, code, "cuMemFree", f"freeing {self._nbytes} bytes of managed memory")


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
    border.instance("Stream.in_place: array", array, np.ndarray)
    first, end = Layout(0, array.shape, array.strides).bounds(array.dtype.itemsize)
    address = array.ctypes.data
    box = stream._handle
    if array.nbytes and known_at(box.context, address + first) is None:
        raise CopyError(
            f"a host array {array.shape} {array.dtype} in ordinary memory has no place on a "
            "device: use pinned_empty, managed_empty or RegisteredArray, or copy by to_device"
        )
    buffer = DeviceBuffer.borrowed(stream, address + first, end - first, array)
    return DeviceArray(buffer, array.shape, array.dtype, -first, array.strides)


def advise(array: AnyArray | AnyDeviceArray, advice: Advice, device: int | None = None) -> None:
    """Advise the driver how managed memory is used.

    Args:
        array: a C-contiguous array of `managed_empty`, a part of one, or `Stream.in_place` of it.
        advice: the expected use.
        device: the ordinal of the device concerned; None is the host.

    Raises:
        InvalidValueError: it is not managed memory, or the device does not support the advice.
    """
    where = _location("advise: device", device)
    advice = border.instance("advise: advice", advice, Advice)
    context = host_context()
    address, nbytes = _range("advise: array", array, context)
    if nbytes == 0:
        return
    function = context.api.cuMemAdvise
    (code,) = context.call(function, CUdeviceptr(address), nbytes, _Number(int(advice)), where)
    if code:
        doing = f"advising {advice.name} for {nbytes} bytes of managed memory"
        raise failure(context.api, code, "cuMemAdvise", doing)


def prefetch(stream: BaseStream, array: AnyArray | AnyDeviceArray, to: int | str | None) -> None:
    """Implement `Stream.prefetch`."""
    box = stream._handle
    box.raw  # noqa: B018  # raises once the stream is closed
    if isinstance(to, str) and to != "host":
        raise border.refused("Stream.prefetch: to", to, 'give a device\'s ordinal or "host"')
    ordinal = None if isinstance(to, str) else (stream.context.ordinal if to is None else to)
    where = _location("Stream.prefetch: to", ordinal)
    address, nbytes = _range("Stream.prefetch: array", array, box.context)
    memory: AnyMemory | None = array._memory if isinstance(array, DeviceArray) else None
    if memory is not None:
        order_access(memory, box, writes=False)
    if nbytes == 0:
        return
    function = box.context.call
    (code,) = function(box.api.cuMemPrefetchAsync, CUdeviceptr(address), nbytes, where, 0, box.raw)
    if code:
        doing = f"moving {nbytes} bytes of managed memory"
        raise failure(box.api, code, "cuMemPrefetchAsync", doing)


def attach(stream: BaseStream, array: AnyArray, to: Attachment) -> None:
    """Implement `Stream.attach`."""
    box, to = stream._handle, border.instance("Stream.attach: to", to, Attachment)
    address, nbytes = _range("Stream.attach: array", array, box.context)
    if nbytes == 0:
        return
    pointer = CUdeviceptr(address)
    (code,) = box.context.call(box.api.cuStreamAttachMemAsync, box.raw, pointer, 0, int(to))
    if code:
        doing = f"attaching {nbytes} bytes of managed memory ({to.name})"
        raise failure(box.api, code, "cuStreamAttachMemAsync", doing)


def _range(where: str, array: AnyArray | AnyDeviceArray, context: ContextHandle) -> tuple[int, int]:
    """Return address and size of managed memory."""
    border.instance(where, array, (np.ndarray, DeviceArray))
    if isinstance(array, DeviceArray):
        is_dense, address = array.is_contiguous, array.ptr
    else:
        is_dense, address = array.flags.c_contiguous, host_address(array)
    if not is_dense:
        raise InvalidValueError(f"{where} is not C-contiguous: give the whole array")
    if array.nbytes and known_at(context, address, _IS_MANAGED) != [True]:
        raise InvalidValueError(f"{where} is in no managed memory: make it by managed_empty")
    return address, array.nbytes


def _location(where: str, ordinal: int | None) -> CUmemLocation:
    location = CUmemLocation()
    if ordinal is None:
        location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    else:
        location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = Device.get(border.whole(where, ordinal)).ordinal
    return location
