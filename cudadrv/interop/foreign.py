"""Device memory of other libraries: its address for a launch, and arrays over it.

An object's memory is found by the reader of its type, by the CUDA array interface, or by DLPack.

Sources: CUDA Array Interface, version 3 (Numba); the Python specification of DLPack.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import index
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.format import descr_to_dtype

from .. import border
from ..driver._api import CUcontext, CUdeviceptr, CUmemoryPool, CUpointer_attribute, CUstream
from ..driver.context_handle import ContextHandle, known_at
from ..driver.device import list_devices
from ..driver.stream import BaseStream
from ..errors import (
    ArgumentTypeError,
    CopyError,
    CudadrvError,
    InvalidValueError,
    NotSupportedError,
    WrongDeviceError,
)
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer, owning
from ..memory.dtypes import checked_dtype
from ..memory.layout import Layout, is_dense, require_countable
from .dlpack import Offer, UnusableTensorError, offered
from .elements import Elements, dtype_name, name_of_typestr, require_usable
from .ordering import follow_producers
from .reader import ByInterface, Foreign, found_for

LARGEST_ADDRESS: Final = 2**64 - 1
_UNMASK: Final = "fill the masked elements, and give the array without the mask"
READ_REMEDY: Final = (
    "give an object whose memory can be read, or copy its values with Stream.to_device"
)

_OWNER: Final = (CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT,)
_POOL: Final = (CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,)
_WHERE: Final = (*_POOL, CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)


_new: Final = object.__new__


# Any: every object that has the interface.
def interface_address(
    value: Any, stream: BaseStream, producers: list[int], elements: Elements | None = None
) -> int:
    """Return the address of memory on the stream's device, by the CUDA array interface.

    Args:
        value: an object that has the interface.
        stream: the stream that will use the memory.
        producers: foreign streams to be ordered after; the memory's own is added if there is one.
        elements: the type that the pointer points to, where that is known.

    Raises:
        AttributeError: `value` has no interface.
        BufferError: a kernel cannot use the memory: its elements have another type, are not
            C-contiguous, read-only or masked.
        TypeError: its address is no integer.
        ValueError: its address does not fit 64 bits.
        WrongDeviceError: the memory lies on another device.
    """
    interface = value.__cuda_array_interface__
    pointer, is_read_only = interface["data"]
    if type(pointer) is not int or not 0 <= pointer <= LARGEST_ADDRESS:
        pointer = _address_from(pointer)
    if interface.get("mask") is not None:
        raise BufferError(f"has a mask\n  {_UNMASK}")
    strides = interface.get("strides")
    require_usable(
        elements,
        None if elements is None else _dtype_name(interface),
        is_contiguous=strides is None or _is_dense(interface, strides),
        is_read_only=bool(is_read_only),
        nbytes=_nbytes(interface) if elements is not None and elements.is_vector else None,
    )
    producer = interface.get("stream")
    if producer is not None and producer not in producers:
        producers.append(_stream_number(producer))
    if pointer:
        _require_device(pointer, value, stream)
    return pointer


# Any: the entries of another library's dictionary.
def _nbytes(interface: Mapping[str, Any]) -> int:
    itemsize: int = np.dtype(interface["typestr"]).itemsize
    return math.prod(_shape(interface)) * itemsize


# Any: the entries of another library's dictionary.
def _shape(interface: Mapping[str, Any]) -> tuple[int, ...]:
    shape = tuple(map(index, interface["shape"]))
    if any(extent < 0 for extent in shape):
        raise ValueError(f"the shape {shape}")
    return shape


# Any: the entries of another library's dictionary.
def _dtype(interface: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the dtype of the elements, of structures with their fields if those are given."""
    text: object = interface["typestr"]
    if not isinstance(text, str):  # None would be float64
        raise TypeError(f"the typestr {border.shown(text)}")
    dtype: np.dtype[Any] = np.dtype(text)
    fields = interface.get("descr") if dtype.kind == "V" else None
    if not fields or fields == [("", text)]:
        return dtype
    structure: np.dtype[Any] = descr_to_dtype(fields)  # leaves out the padding
    if structure.itemsize != dtype.itemsize:
        raise ValueError(f"descr {fields} for the typestr {border.shown(text)}")
    return structure


# Any: the entries of another library's dictionary.
def _dtype_name(interface: Mapping[str, Any]) -> str:
    text: object = interface["typestr"]
    if isinstance(text, str) and "V" not in text:
        return name_of_typestr(text)
    return dtype_name(_dtype(interface))


def _is_dense(interface: Mapping[str, Any], strides: Iterable[Any]) -> bool:
    """Return whether the elements of an array interface lie in C order, one after the other."""
    shape, steps = _shape(interface), tuple(map(index, strides))
    if len(shape) != len(steps):
        raise ValueError(f"strides {steps} for the shape {shape}")
    return is_dense(shape, steps, np.dtype(interface["typestr"]).itemsize)


def _usable_offer(
    value: object, stream: BaseStream, elements: Elements | None, *, orders: bool = True
) -> Offer | None:
    """Return the tensor that an object exports by DLPack for a kernel; None if it exports none.

    With `orders` the producer orders the memory before `stream`, or names the stream that it works
    on.

    Raises:
        BufferError: a kernel cannot use the memory: its elements have another type, are not
            C-contiguous, or read-only.
        WrongDeviceError: the memory lies on another device.
    """
    offer = offered(value, stream, orders=orders)
    if offer is None:
        return None
    require_usable(
        elements,
        offer.element_name,
        is_contiguous=offer.strides is None,
        is_read_only=_is_read_only(value, offer.is_read_only),
        nbytes=offer.nbytes,
    )
    return offer


def import_array(stream: BaseStream, value: object) -> AnyDeviceArray:
    """Return an array over the memory of another library's object; see `Stream.import_array`."""
    try:
        array = _by_dlpack(stream, value)
        return _by_interface(stream, value) if array is None else array
    except CudadrvError:
        raise
    except UnusableTensorError as error:
        raise ArgumentTypeError(f"a {type(value).__name__} {error}") from error
    except Exception as error:  # any error of the library
        raise ArgumentTypeError(
            f"a {type(value).__name__} has memory that cannot be read\n  "
            f"{border.shown_error(error)}\n  {READ_REMEDY}"
        ) from error


def _by_dlpack(stream: BaseStream, value: object) -> AnyDeviceArray | None:
    # PyTorch exports no tensor that requires a gradient, though its memory is as any other.
    detach = getattr(value, "detach", None) if getattr(value, "requires_grad", False) else None
    offer = offered(value if detach is None else detach(), stream)
    if offer is None:
        return None
    _examine(value)
    dtype, steps = offer.dtype(value), offer.strides
    return _borrowed(
        stream,
        (value, offer.keeper),
        offer.address,
        offer.shape,
        dtype,
        None if steps is None else tuple([step * dtype.itemsize for step in steps]),
        is_read_only=_is_read_only(value, offer.is_read_only),
    )


def _is_read_only(value: object, marked: bool | None) -> bool:
    """Return whether an object's memory must not be written, by the mark of DLPack or otherwise.

    Where DLPack has no mark, or its producer sets none, the reader of the object's type and the
    array interface tell it.
    """
    foreign = found_for(type(value))
    if marked or (foreign is not None and foreign.reader.tells_read_only(value)):
        return True
    if marked is None:
        try:
            interface = getattr(value, "__cuda_array_interface__", None)
        except Exception:  # such as PyTorch's, for a tensor that requires a gradient
            return False
        if isinstance(interface, Mapping):
            return bool(interface["data"][1])
    return False


# Any: every object that has the interface.
def _by_interface(stream: BaseStream, value: Any) -> AnyDeviceArray:
    interface = getattr(value, "__cuda_array_interface__", None)
    if not isinstance(interface, Mapping):
        raise ArgumentTypeError(
            f"a {type(value).__name__} is not a device array\n"
            "  give an object with __dlpack__ on a CUDA device or __cuda_array_interface__"
        )
    if interface.get("mask") is not None:
        raise CopyError(f"a {type(value).__name__} with a mask is not supported\n  {_UNMASK}")
    strides, producer = interface.get("strides"), interface.get("stream")
    pointer, is_read_only = interface["data"]
    address, shape, dtype = _address_from(pointer), _shape(interface), _dtype(interface)
    steps = None if strides is None else tuple(map(index, strides))
    if steps is not None and len(steps) != len(shape):
        raise ArgumentTypeError(f"{border.shown(value)} has strides {steps} for the shape {shape}")
    if producer is not None:
        follow_producers(stream, (_stream_number(producer),))
    if address:
        _require_device(address, value, stream)
    is_read_only = _is_read_only(value, bool(is_read_only))
    return _borrowed(
        stream, value, address, shape, checked_dtype(dtype), steps, is_read_only=is_read_only
    )


def _examine(value: object) -> None:
    """Reject an object whose bytes are not its values, which DLPack cannot express."""
    foreign = found_for(type(value))
    if foreign is not None and foreign.reader.examine is not None:
        try:
            foreign.reader.examine(value)
        except BufferError as error:
            raise CopyError(f"a {type(value).__name__} {error}") from error


def stream_handle(stream: object) -> int:
    """Return the CUstream of another library's stream, as a number.

    Raises:
        TypeError: `stream` is no number and has no ``__cuda_stream__`` of version 0.
    """
    if isinstance(stream, (int, CUstream)):
        return _stream_number(int(stream))
    try:
        offered = getattr(stream, "__cuda_stream__", None)
        answer: object = offered() if callable(offered) else offered
    except Exception as error:  # any error of the library
        raise ArgumentTypeError(
            f"the __cuda_stream__ of a {type(stream).__name__} cannot be read\n  "
            f"{border.shown_error(error)}\n"
            "  give the CUstream as a number"
        ) from error
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == 0:
        return _stream_number(int(answer[1]) if isinstance(answer[1], CUstream) else answer[1])
    type_name = type(stream).__name__
    if answer is None:
        raise ArgumentTypeError(
            f"a {type_name} is not a stream: it is not an integer and has no __cuda_stream__"
        )
    raise ArgumentTypeError(
        f"the __cuda_stream__ of a {type_name} is {border.shown(answer)}: expected (0, CUstream)"
    )


def _stream_number(value: object) -> int:
    return border.int_in_range("the number of a stream", value, most=LARGEST_ADDRESS)


def _address_from(value: object) -> int:
    """Return an address that another library gives in any form.

    Raises:
        TypeError: it is no integer.
        ValueError: it does not fit 64 bits.
    """
    # A CUdeviceptr has an integer, and no index.
    # A value without an index fails.
    address = int(value) if isinstance(value, CUdeviceptr) else index(value)  # type: ignore[arg-type]
    if not 0 <= address <= LARGEST_ADDRESS:
        raise ValueError(f"the address {border.shown(address)} does not fit 64 bits")
    return address


class _MemoryPlaces:
    """How the devices of memory are found.

    Attributes:
        ordinals: the device's ordinal by its default pool.
        queried_first: the attribute that found the last memory. A program has mostly memory of one
            kind.
    """

    __slots__ = ("ordinals", "queried_first")

    def __init__(self) -> None:
        self.queried_first: tuple[CUpointer_attribute] = _OWNER
        self.ordinals: dict[int, int] = {}
        for device in list_devices():
            # A device without pools has no memory in one.
            with suppress(NotSupportedError):
                self.ordinals[int(device.default_pool())] = device.ordinal

    def is_in(self, context: ContextHandle, pointer: int) -> bool:
        """Return True if memory is of a context, or in the default pool of its device.

        For memory in a pool the driver reports no context. Each further attribute of one call takes
        half as long as the call.
        """
        query = context._driver.api.cuPointerGetAttributes
        first = self.queried_first
        for attribute in (first, _POOL if first is _OWNER else _OWNER):
            code, values = query(1, attribute, pointer)
            if code:
                return False
            value = values[0]
            if isinstance(value, CUcontext):
                is_found = int(value) == int(context.raw)
            else:
                is_found = self.ordinals.get(int(value)) == context.ordinal  # type: ignore[call-overload]
            if is_found:
                self.queried_first = attribute
                return True
        return False


def _require_device(pointer: int, value: object, stream: BaseStream) -> None:
    """Raise `WrongDeviceError` for memory that is known to lie on another device.

    cuda-bindings before 13.4 report ordinal 0 for all memory. So the devices' default pools decide
    first, and then any other ordinal.
    """
    context = stream._handle.context
    if not context._driver.has_several_devices:
        return
    places = context._driver.one_of(_MemoryPlaces)
    if places.is_in(context, pointer):
        return
    values = known_at(context, pointer, _WHERE)
    if values is None:
        raise InvalidValueError(
            f"finding the device of address {pointer:#x} of a {type(value).__name__}: it is no "
            "memory that the driver knows"
        )
    pool, ordinal = values
    if isinstance(pool, CUmemoryPool) and int(pool):
        ordinal = places.ordinals.get(int(pool), ordinal or None)
    if isinstance(ordinal, int) and ordinal != context.ordinal:
        raise WrongDeviceError(
            f"a {type(value).__name__} on device {ordinal} was given to {stream!r}"
        )


def _borrowed(
    stream: BaseStream,
    owner: object,
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    strides: tuple[int, ...] | None,
    *,
    is_read_only: bool,
) -> AnyDeviceArray:
    """Return an array over memory that an object keeps alive."""
    if strides is None or is_dense(shape, strides, dtype.itemsize):
        nbytes = math.prod(shape) * dtype.itemsize
        if not nbytes:
            require_countable(shape)
        array: AnyDeviceArray = _new(DeviceArray)
        array._shape, array._dtype = shape, dtype
        array._borrow(stream, address, nbytes, owner, is_read_only=is_read_only)
        return array
    first, end = Layout(0, shape, strides).bounds(dtype.itemsize)
    buffer = DeviceBuffer.borrowed(
        stream, address + first, end - first, owner, is_read_only=is_read_only
    )
    return owning(DeviceArray(buffer, shape, dtype, -first, strides))


_NO_INTERFACE: Final = (KeyError, IndexError, TypeError, ValueError)
_Way: TypeAlias = Foreign | ByInterface | Literal["raw"]


class Pointer(NamedTuple):
    """An address, and the reader of further objects of the same type.

    Attributes:
        address: of the first element.
        way: the reader of exactly this type, or the array interface of it; "raw" for all other
            types, which are examined each time.
        keeper: keeps the memory alive, beside the object.
    """

    address: int
    way: _Way
    keeper: object = None


def pointer_of(
    value: object, stream: BaseStream, elements: Elements | None = None
) -> Pointer | None:
    """Return the address of an object's memory, or None; order `stream` after the work on it.

    Args:
        value: the object.
        stream: the stream that will use the memory.
        elements: the type that the pointer points to, where that is known.

    Raises:
        BufferError: the kernel cannot use its memory; the text continues "it ...".
        WrongDeviceError: the memory lies on another device.
    """
    try:
        for find in (_pointer_by_reader, _pointer_by_interface, _pointer_by_dlpack):
            pointer = find(value, stream, elements)
            if pointer is not None:
                return pointer
        return None
    except (CudadrvError, BufferError):
        raise
    except Exception as error:  # any error of the library
        raise BufferError(
            f"has memory that cannot be read\n  {border.shown_error(error)}\n  {READ_REMEDY}"
        ) from error


def _pointer_by_reader(
    value: object, stream: BaseStream, elements: Elements | None
) -> Pointer | None:
    kind: type = type(value)
    foreign = found_for(kind)
    if foreign is None:
        return None
    reader, ordinal = foreign.reader, stream.context.ordinal
    is_quick = reader.examine is None or reader.examine(value)
    device = reader.device(value)
    if device < 0:
        return None
    if device != ordinal:
        raise WrongDeviceError(f"a {kind.__name__} on device {device} was given to {stream!r}")
    dtype = None if reader.dtype is None else reader.dtype(value)
    address = reader.address(value)
    if address is None and stream.capturing:
        # A capture cannot wait for work that JAX still computes: the host waits for it.
        wait = getattr(value, "block_until_ready", None)
        if wait is not None:
            wait()
            address = reader.address(value)
    if address is None:
        return _pointer_by_dlpack(value, stream, elements)
    if not 0 <= index(address) <= LARGEST_ADDRESS:
        raise BufferError(f"has no address: its reader gives {border.shown(address)}")
    if reader.is_contiguous is None:
        # The protocols that it has say how its elements lie, and are read each time.
        is_quick = is_quick and not _checked_by_protocols(value, stream, elements)
        is_contiguous = True
    else:
        is_contiguous = reader.is_contiguous(value)
    is_read_only = reader.tells_read_only(value)
    require_usable(elements, dtype, is_contiguous=is_contiguous, is_read_only=is_read_only)
    if reader.stream is not None:
        follow_producers(stream, (reader.stream(ordinal),))
    if not is_quick or not address or foreign.type is not kind:
        return Pointer(address, "raw")
    if reader.is_lazy is None and (elements is None or elements.takes_bytes):
        dtype = None
    return Pointer(address, Foreign(kind, reader, dtype))


def _checked_by_protocols(value: object, stream: BaseStream, elements: Elements | None) -> bool:
    """Check memory by a shared protocol, if the object has one; return whether it has.

    The reader alone has the address, and orders the stream.
    """
    if hasattr(value, "__cuda_array_interface__"):
        interface_address(value, stream, [], elements)
        return True
    return _usable_offer(value, stream, elements, orders=False) is not None


# Any: every object that has the interface.
def _pointer_by_interface(
    value: Any, stream: BaseStream, elements: Elements | None
) -> Pointer | None:
    if not hasattr(value, "__cuda_array_interface__"):
        return None
    producers: list[int] = []
    try:
        address = interface_address(value, stream, producers, elements)
    except _NO_INTERFACE as error:
        raise BufferError(
            f"has a __cuda_array_interface__ that cannot be read\n  "
            f"{border.shown_error(error)}\n  {READ_REMEDY}"
        ) from error
    follow_producers(stream, producers)
    return Pointer(address, ByInterface(type(value)))


def _pointer_by_dlpack(
    value: object, stream: BaseStream, elements: Elements | None
) -> Pointer | None:
    offer = _usable_offer(value, stream, elements)
    return None if offer is None else Pointer(offer.address, "raw", offer.keeper)
