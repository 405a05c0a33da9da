"""What the driver is told of managed memory: where it is used next, and how.

CUDA Programming Guide, "Unified Memory"; CUDA Driver API, cuMemPrefetchAsync, cuMemAdvise,
cuStreamAttachMemAsync.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

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
from ..driver.stream import BaseStream
from ..errors import CopyError, InvalidValueError
from .array import AnyDeviceArray, DeviceArray
from .buffer import DeviceBuffer
from .dtypes import AnyArray
from .host_copy import host_address
from .layout import Layout
from .order import AnyMemory, use
from .pinned import host_context

_IS_MANAGED: Final = (CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED,)


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
    """Who may use managed memory while kernels run: for `Stream.attach`.

    Source: CUmemAttach_flags in the CUDA Driver API manual.
    """

    GLOBAL = 1
    HOST = 2
    STREAM = 4


def on_device(stream: BaseStream, array: AnyArray) -> AnyDeviceArray:
    """What `Stream.in_place` does."""
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
    """Tell the driver how managed memory is used.

    Args:
        array: a C-contiguous array of `managed_empty`, a part of one, or `Stream.in_place` of it.
        advice: what is to be expected.
        device: the ordinal of the device that is meant; None is the host.

    Raises:
        InvalidValueError: it is no managed memory, or the device cannot take the advice.
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
    """What `Stream.prefetch` does."""
    box = stream._handle
    box.raw  # noqa: B018  # raises once the stream is closed
    if isinstance(to, str) and to != "host":
        raise border.refused("Stream.prefetch: to", to, 'give a device\'s ordinal or "host"')
    ordinal = None if isinstance(to, str) else (stream.context.ordinal if to is None else to)
    where = _location("Stream.prefetch: to", ordinal)
    address, nbytes = _range("Stream.prefetch: array", array, box.context)
    memory: AnyMemory | None = array._memory if isinstance(array, DeviceArray) else None
    if memory is not None:
        use(memory, box, writes=False)
    if nbytes == 0:
        return
    function = box.context.call
    (code,) = function(box.api.cuMemPrefetchAsync, CUdeviceptr(address), nbytes, where, 0, box.raw)
    if code:
        doing = f"moving {nbytes} bytes of managed memory"
        raise failure(box.api, code, "cuMemPrefetchAsync", doing)


def attach(stream: BaseStream, array: AnyArray, to: Attachment) -> None:
    """What `Stream.attach` does."""
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
    """Address and size of managed memory."""
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
