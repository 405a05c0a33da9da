"""Device memory of other libraries: its address, device and stream, by the shared protocols.

Sources: CUDA Array Interface, version 3 (Numba); the Python specification of DLPack.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, NamedTuple

from ._api import CUevent_flags, CUmemoryPool, CUpointer_attribute, CUstream
from ._driver import Bound, failure
from .capsule import capsule_address
from .device import list_devices
from .errors import WrongDeviceError

if TYPE_CHECKING:
    from .stream import Stream

_DL_CUDA: Final = 2  # DLDeviceType kDLCUDA
_DL_MANAGED: Final = 13  # kDLCUDAManaged


class ForeignMemory(NamedTuple):
    """An address and the stream that its producer ordered it on, None if it needs no order."""

    pointer: int
    stream: int | None


class _DLTensorHead(ctypes.Structure):
    """The start of DLTensor (dlpack.h), as far as the address goes."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def foreign_memory(value: object, stream: Stream) -> ForeignMemory | None:
    """The device memory that an object offers, or None if it offers none.

    DLPack producers are asked to order their memory before `stream` themselves.
    """
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        producer = interface.get("stream")
        return ForeignMemory(
            int(interface["data"][0]), producer if isinstance(producer, int) else None
        )
    where = getattr(value, "__dlpack_device__", None)
    export = getattr(value, "__dlpack__", None)
    if where is None or export is None or int(where()[0]) not in (_DL_CUDA, _DL_MANAGED):
        return None
    return ForeignMemory(_capsule_address(export(stream=int(stream.handle))), None)


def ordered_pointer(value: object, stream: Stream) -> int | None:
    """The address of foreign memory on the stream's device, with `stream` ordered after it.

    None where the object offers no device memory.

    Raises:
        WrongDeviceError: the memory lies on another device.
    """
    memory = foreign_memory(value, stream)
    if memory is None:
        return None
    if memory.pointer:
        _require_device(memory.pointer, type(value).__name__, stream)
    if memory.stream is not None and memory.stream != int(stream.handle):
        _order_after(stream, memory.stream)
    return memory.pointer


def _require_device(pointer: int, what: str, stream: Stream) -> None:
    """Raise `WrongDeviceError` for memory that is known to lie on another device.

    Of memory in a pool the driver says ordinal 0 wherever it lies (measured with driver 580 on two
    devices); there the default pools of the devices tell, and memory of other pools is taken.
    """
    context = stream.context
    pool = _pointer_attribute(
        stream, CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer
    )
    if isinstance(pool, CUmemoryPool) and int(pool):
        others = (device for device in list_devices() if device is not context.device)
        found = next((d.ordinal for d in others if int(d.default_pool()) == int(pool)), None)
        if found is None:
            return
    else:
        ordinal = _pointer_attribute(
            stream, CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer
        )
        if ordinal == context.ordinal or not isinstance(ordinal, int):
            return
        found = ordinal
    raise WrongDeviceError(f"a {what} on device {found} was given to {stream!r}")


def _pointer_attribute(stream: Stream, attribute: CUpointer_attribute, pointer: int) -> object:
    code, value = stream.api.cuPointerGetAttribute(attribute, pointer)
    if code:
        doing = f"finding the device of address {pointer:#x}"
        raise failure(stream.api, code, "cuPointerGetAttribute", doing)
    return value


def _order_after(stream: Stream, producer: int) -> None:
    """Let `stream` wait for what a foreign stream holds now."""
    api = stream.api
    with Bound(api, stream.context.handle):
        code, event = api.cuEventCreate(int(CUevent_flags.CU_EVENT_DISABLE_TIMING))
        if code:
            raise failure(api, code, "cuEventCreate", "ordering foreign memory")
        (code,) = api.cuEventRecord(event, CUstream(producer))
        if not code:
            (code,) = api.cuStreamWaitEvent(stream.handle, event, 0)
        api.cuEventDestroy(event)
    if code:
        raise failure(api, code, "cuStreamWaitEvent", f"ordering {stream!r} after {producer:#x}")


def _capsule_address(capsule: object) -> int:
    # The capsule's own destructor gives the tensor back; its producer stays with the caller.
    head = _DLTensorHead.from_address(capsule_address(capsule, b"dltensor"))
    return (head.data or 0) + int(head.byte_offset)
