"""Device memory of other libraries: its address, device and stream, by the shared protocols.

Sources: CUDA Array Interface, version 3 (Numba); the Python specification of DLPack.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ._api import CUcontext, CUmemoryPool, CUpointer_attribute, CUstream
from ._driver import Bound, failure
from .capsule import capsule_address
from .device import list_devices
from .errors import WrongDeviceError
from .event import Event

if TYPE_CHECKING:
    from .stream import Stream

_DL_CUDA: Final = 2  # DLDeviceType kDLCUDA
_DL_MANAGED: Final = 13  # kDLCUDAManaged
# The legacy default stream and the one a thread, as the interface and the driver number them.
_NAMELESS: Final = (1, 2)


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


# Whatever has the interface; a protocol would say no more than that attribute's name.
def interface_address(value: Any, stream: Stream, producers: list[int]) -> int:
    """The address of memory on the stream's device, by the CUDA array interface.

    Args:
        value: an object that has the interface.
        stream: the stream that will use the memory.
        producers: foreign streams to be ordered after; the memory's own is added, if it needs it.

    Raises:
        AttributeError: it has no interface.
        WrongDeviceError: the memory lies on another device.
    """
    interface = value.__cuda_array_interface__
    pointer = int(interface["data"][0])
    producer = interface.get("stream")
    if producer is not None and producer not in producers:
        producers.append(int(producer))
    if pointer:
        _require_device(pointer, value, stream)
    return pointer


def dlpack_address(value: object, stream: Stream) -> int | None:
    """The address of memory that an object offers by DLPack, or None if it offers none.

    The producer is asked to order the memory before `stream` itself.

    Raises:
        WrongDeviceError: the memory lies on another device.
    """
    where = getattr(value, "__dlpack_device__", None)
    export = getattr(value, "__dlpack__", None)
    if where is None or export is None or int(where()[0]) not in (_DL_CUDA, _DL_MANAGED):
        return None
    pointer = _capsule_address(export(stream=int(stream.handle)))
    if pointer:
        _require_device(pointer, value, stream)
    return pointer


def order_after(stream: Stream, producers: Iterable[int]) -> None:
    """Let `stream` wait for what foreign streams hold now."""
    api, own = stream.api, int(stream.handle)
    for producer in producers:
        if producer == own:
            continue
        try:
            event = stream.spare_events.pop()
        except IndexError:
            event = Event(stream.context, timing=False)
        foreign = CUstream(producer)
        if producer in _NAMELESS:
            # Which stream this is, the current context says.
            with Bound(api, stream.context.handle):
                (code,) = api.cuEventRecord(event.handle, foreign)
        else:
            (code,) = api.cuEventRecord(event.handle, foreign)
        if not code:
            (code,) = api.cuStreamWaitEvent(stream.handle, event.handle, 0)
        # The wait is for what the event held then: it may be recorded anew at once.
        stream.spare_events.append(event)
        if code:
            doing = f"ordering {stream!r} after {producer:#x}"
            raise failure(api, code, "cuStreamWaitEvent", doing)


class _Places:
    """Where memory of pools lies.

    Attributes:
        alone: whether there is one device, on which everything lies.
        ordinals: the device of each device's default pool.
    """

    __slots__ = ("alone", "ordinals")

    def __init__(self) -> None:
        devices = list_devices()
        self.alone = len(devices) == 1
        self.ordinals = (
            {} if self.alone else {int(device.default_pool()): device.ordinal for device in devices}
        )


def _require_device(pointer: int, value: object, stream: Stream) -> None:
    """Raise `WrongDeviceError` for memory that is known to lie on another device.

    Of memory in a pool the driver says no context, and ordinal 0 wherever it lies (measured with
    driver 580 on two devices); there the default pools of the devices tell, and memory of other
    pools is taken.
    """
    context = stream.context
    # The cache of a driver has room for one a device ordinal; this is of all devices.
    cache = context.device.driver.cache(_Places)
    places = cache.get(0) or cache.setdefault(0, _Places())
    if places.alone:
        return
    attribute = CUpointer_attribute
    owner = _pointer_attribute(stream, attribute.CU_POINTER_ATTRIBUTE_CONTEXT, pointer)
    if isinstance(owner, CUcontext) and int(owner) == int(context.handle):
        return
    pool = _pointer_attribute(stream, attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer)
    if isinstance(pool, CUmemoryPool) and int(pool):
        found: object = places.ordinals.get(int(pool))
    else:
        found = _pointer_attribute(stream, attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer)
    if isinstance(found, int) and found != context.ordinal:
        raise WrongDeviceError(
            f"a {type(value).__name__} on device {found} was given to {stream!r}"
        )


def _pointer_attribute(stream: Stream, attribute: CUpointer_attribute, pointer: int) -> object:
    code, value = stream.api.cuPointerGetAttribute(attribute, pointer)
    if code:
        doing = f"finding the device of address {pointer:#x}"
        raise failure(stream.api, code, "cuPointerGetAttribute", doing)
    return value


def _capsule_address(capsule: object) -> int:
    # The capsule's own destructor gives the tensor back; its producer stays with the caller.
    head = _DLTensorHead.from_address(capsule_address(capsule, b"dltensor"))
    return (head.data or 0) + int(head.byte_offset)
