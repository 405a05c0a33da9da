"""Device memory of other libraries: its address, device and stream, by the shared protocols.

Sources: CUDA Array Interface, version 3 (Numba); the Python specification of DLPack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from .. import border
from ..driver._api import CUcontext, CUdeviceptr, CUmemoryPool, CUpointer_attribute, CUstream
from ..driver.addresses import known_at
from ..driver.device import list_devices
from ..driver.stream_core import StreamCore
from ..errors import (
    ArgumentTypeError,
    CopyError,
    CudadrvError,
    InvalidValueError,
    WrongDeviceError,
)
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer
from ..memory.layout import Layout, is_dense
from .elements import Elements, name_of_typestr
from .offer import offered
from .ordering import follow_producers
from .reader import found_for

LARGEST_ADDRESS: Final = 2**64 - 1
_MOST_AXES: Final = 64  # NumPy's
READ_REMEDY: Final = (
    "give an object whose memory can be read, or copy its values with Stream.to_device"
)

_WHERE: Final = (
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT,
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
)


# Whatever has the interface; a protocol would say no more than that attribute's name.
def interface_address(
    value: Any, stream: StreamCore, producers: list[int], elements: Elements | None = None
) -> int:
    """The address of memory on the stream's device, by the CUDA array interface.

    Args:
        value: an object that has the interface.
        stream: the stream that will use the memory.
        producers: foreign streams to be ordered after; the memory's own is added, if it needs it.
        elements: what the pointer points to, where that is known.

    Raises:
        AttributeError: it has no interface.
        BufferError: its elements are of another type, or may only be read.
        TypeError: its address is no integer.
        ValueError: its address does not fit 64 bits.
        WrongDeviceError: the memory lies on another device.
    """
    interface = value.__cuda_array_interface__
    pointer, is_read_only = interface["data"]
    if type(pointer) is not int or not 0 <= pointer <= LARGEST_ADDRESS:
        pointer = _address_from(pointer)
    if elements is not None:
        elements.check(name_of_typestr(interface["typestr"]), is_read_only=bool(is_read_only))
    producer = interface.get("stream")
    if producer is not None and producer not in producers:
        producers.append(_stream_number(producer))
    if pointer:
        _require_device(pointer, value, stream)
    return pointer


def dlpack_address(
    value: object, stream: StreamCore, elements: Elements | None = None
) -> int | None:
    """The address of memory that an object offers by DLPack, or None if it offers none.

    The producer orders the memory before `stream`, or names the stream that it works on.

    Raises:
        BufferError: its elements are of another type than the pointer points to.
        WrongDeviceError: the memory lies on another device.
    """
    offer = offered(value, stream)
    if offer is None:
        return None
    if elements is not None:
        elements.check(offer.dtype_name, is_read_only=offer.is_read_only)
    pointer = offer.address
    if pointer:
        _require_device(pointer, value, stream)
    return pointer


class _Found(NamedTuple):
    """What another library's object says of its memory; strides are in bytes.

    Attributes:
        address: of the first element.
        shape: elements along each axis.
        dtype: of the elements.
        strides: None where the elements lie in C order.
        keeper: keeps the memory, beside the object.
        producers: streams that the memory comes after.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    keeper: object = None
    producers: tuple[int, ...] = ()


def import_array(stream: StreamCore, value: object) -> AnyDeviceArray:
    """The array that an object of another library is; see `Stream.import_array`."""
    try:
        found = _by_dlpack(stream, value) or _by_interface(value)
    except CudadrvError:
        raise
    except Exception as error:  # whatever the library raises
        raise ArgumentTypeError(
            f"a {type(value).__name__} has memory that cannot be read\n  {error!r}\n  {READ_REMEDY}"
        ) from error
    follow_producers(stream, found.producers)
    return _borrowed(stream, value, found)


def _by_dlpack(stream: StreamCore, value: object) -> _Found | None:
    # PyTorch exports no tensor that requires a gradient, which memory has nothing to do with.
    detach = getattr(value, "detach", None) if getattr(value, "requires_grad", False) else None
    offer = offered(value if detach is None else detach(), stream)
    if offer is None:
        return None
    _examine(value)
    tensor, dtype = offer.tensor, offer.dtype(value)
    # ctypes reads as many as it is told, from wherever it is told.
    if not 0 <= tensor.ndim <= _MOST_AXES or (tensor.ndim and not tensor.shape):
        raise ValueError(f"its DLPack tensor has {tensor.ndim} axes and no such shape")
    strides = None
    if tensor.strides:
        strides = tuple(each * dtype.itemsize for each in tensor.strides[: tensor.ndim])
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    return _Found(offer.address, shape, dtype, strides, offer.keeper)


# Whatever has the interface; a protocol would say no more than that attribute's name.
def _by_interface(value: Any) -> _Found:
    interface = getattr(value, "__cuda_array_interface__", None)
    if not isinstance(interface, Mapping):
        raise ArgumentTypeError(
            f"a {type(value).__name__} is no device array: it has neither __dlpack__ on a CUDA "
            "device nor __cuda_array_interface__"
        )
    if interface.get("mask") is not None:
        raise CopyError(f"a {type(value).__name__} with a mask has no counterpart here")
    strides, producer = interface.get("strides"), interface.get("stream")
    return _Found(
        _address_from(interface["data"][0]),
        tuple(map(index, interface["shape"])),
        np.dtype(interface["typestr"]),
        None if strides is None else tuple(map(index, strides)),
        producers=() if producer is None else (_stream_number(producer),),
    )


def _examine(value: object) -> None:
    """Refuse what its bytes do not stand for, which DLPack has no words for."""
    found = found_for(type(value))
    if found is not None and found.reader.examine is not None:
        try:
            found.reader.examine(value)
        except BufferError as error:
            raise CopyError(f"a {type(value).__name__} {error}") from error


def stream_handle(stream: object) -> int:
    """The CUstream, as a number, of what another library calls a stream.

    Raises:
        TypeError: it is no number and has no ``__cuda_stream__`` of version 0.
    """
    if isinstance(stream, (int, CUstream)):
        return _stream_number(int(stream))
    try:
        offered = getattr(stream, "__cuda_stream__", None)
        answer: object = offered() if callable(offered) else offered
    except Exception as error:  # whatever the library raises
        raise ArgumentTypeError(
            f"the __cuda_stream__ of a {type(stream).__name__} cannot be read\n  {error!r}\n"
            "  give the CUstream as a number"
        ) from error
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == 0:
        return _stream_number(int(answer[1]) if isinstance(answer[1], CUstream) else answer[1])
    what = type(stream).__name__
    if answer is None:
        raise ArgumentTypeError(
            f"a {what} is no stream: it is no number and has no __cuda_stream__"
        )
    raise ArgumentTypeError(
        f"the __cuda_stream__ of a {what} is {border.shown(answer)}: known is (0, CUstream)"
    )


def _stream_number(value: object) -> int:
    return border.whole("the number of a stream", value, most=LARGEST_ADDRESS)


def _address_from(value: object) -> int:
    """Return the address that another library has in whatever form.

    Raises:
        TypeError: it is no integer.
        ValueError: it does not fit 64 bits.
    """
    # A CUdeviceptr has an integer, and no index.
    # What has no index fails.
    address = int(value) if isinstance(value, CUdeviceptr) else index(value)  # type: ignore[arg-type]
    if not 0 <= address <= LARGEST_ADDRESS:
        raise ValueError(f"the address {border.shown(address)} does not fit 64 bits")
    return address


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


def _require_device(pointer: int, value: object, stream: StreamCore) -> None:
    """Raise `WrongDeviceError` for memory that is known to lie on another device.

    Of memory in a pool the driver says no context, and ordinal 0 wherever it lies (measured with
    driver 580 on two devices); there the default pools of the devices tell, and memory of other
    pools is taken.
    """
    context = stream.context
    places = context.device.driver.one_of(_Places)
    if places.alone:
        return
    values = known_at(stream._box.context, pointer, _WHERE)
    if values is None:
        raise InvalidValueError(
            f"finding the device of address {pointer:#x} of a {type(value).__name__}: it is no "
            "memory that the driver knows"
        )
    owner, pool, found = values
    if isinstance(owner, CUcontext) and int(owner) == int(context.handle):
        return
    if isinstance(pool, CUmemoryPool) and int(pool):
        found = places.ordinals.get(int(pool))
    if isinstance(found, int) and found != context.ordinal:
        raise WrongDeviceError(
            f"a {type(value).__name__} on device {found} was given to {stream!r}"
        )


def _borrowed(stream: StreamCore, value: object, found: _Found) -> AnyDeviceArray:
    """An array over memory that an object keeps."""
    pointer, shape, strides, dtype = found.address, found.shape, found.strides, found.dtype
    if strides is not None and len(strides) != len(shape):
        raise ArgumentTypeError(
            f"{border.shown(value)} has strides {strides} for the shape {shape}"
        )
    if pointer:
        _require_device(pointer, value, stream)
    if strides is not None and is_dense(shape, strides, dtype.itemsize):
        strides = None
    first, end = 0, math.prod(shape) * dtype.itemsize
    if strides is not None:
        first, end = Layout(0, shape, strides).bounds(dtype.itemsize)
    buffer = DeviceBuffer.borrowed(stream, pointer + first, end - first, (value, found.keeper))
    return DeviceArray(buffer, shape, dtype, -first, strides)
