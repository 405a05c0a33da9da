"""The address that an object of another library stands for, when a launch is given it."""

from __future__ import annotations

from operator import index
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from .. import border
from ..driver.stream_core import StreamCore
from ..errors import CudadrvError, WrongDeviceError
from .elements import Elements
from .foreign import LARGEST_ADDRESS, READ_REMEDY, dlpack_address, interface_address
from .ordering import follow_producers
from .reader import Foreign, found_for

_NO_INTERFACE: Final = (KeyError, IndexError, TypeError, ValueError)
_Way: TypeAlias = Foreign | Literal["foreign", "converted"]


class Pointer(NamedTuple):
    """An address, and how the next launch finds one in such an object.

    Attributes:
        address: of the first element.
        way: the reader of the very type; "foreign" for the array interface; "converted" for
            everything else, which is looked at anew.
    """

    address: int
    way: _Way


def pointer_of(
    value: object, stream: StreamCore, elements: Elements | None = None
) -> Pointer | None:
    """The address of an object's memory, with `stream` ordered after it; None if it has none.

    Args:
        value: the object.
        stream: the stream that will use the memory.
        elements: what the pointer points to, where that is known.

    Raises:
        BufferError: it has memory that the kernel cannot use; the text goes on from "it ...".
        WrongDeviceError: the memory lies on another device.
    """
    try:
        found = _by_reader(value, stream, elements) or _by_interface(value, stream, elements)
        return found or _by_dlpack(value, stream, elements)
    except (CudadrvError, BufferError):
        raise
    except Exception as error:  # whatever the library raises
        raise BufferError(
            f"has memory that cannot be read\n  {error!r}\n  {READ_REMEDY}"
        ) from error


def _by_reader(value: object, stream: StreamCore, elements: Elements | None) -> Pointer | None:
    kind: type = type(value)
    found = found_for(kind)
    if found is None:
        return None
    reader, ordinal = found.reader, stream.context.ordinal
    is_quick = reader.examine is None or reader.examine(value)
    device = reader.device(value)
    if device < 0:
        return None
    if device != ordinal:
        raise WrongDeviceError(f"a {kind.__name__} on device {device} was given to {stream!r}")
    dtype = None if reader.dtype is None else reader.dtype(value)
    if elements is not None:
        elements.check(dtype, is_read_only=reader.is_read_only)
    address = reader.address(value)
    if address is None and stream.capturing:
        # No capture can wait for what JAX still computes: that is waited for on the host.
        wait = getattr(value, "block_until_ready", None)
        if wait is not None:
            wait()
            address = reader.address(value)
    if address is None:
        return _by_dlpack(value, stream, elements)
    if not 0 <= index(address) <= LARGEST_ADDRESS:
        raise BufferError(f"has no address: its reader gives {border.shown(address)}")
    if reader.stream is not None:
        follow_producers(stream, (reader.stream(ordinal),))
    if not is_quick or not address or found.type is not kind:
        return Pointer(address, "converted")
    is_typed = elements is not None and not elements.takes_any()
    return Pointer(address, found._replace(dtype=dtype if is_typed or reader.is_lazy else None))


# Whatever has the interface; a protocol would say no more than that attribute's name.
def _by_interface(value: Any, stream: StreamCore, elements: Elements | None) -> Pointer | None:
    if not hasattr(value, "__cuda_array_interface__"):
        return None
    producers: list[int] = []
    try:
        address = interface_address(value, stream, producers, elements)
    except _NO_INTERFACE as error:
        raise BufferError(
            f"has a __cuda_array_interface__ that cannot be read\n  {error!r}\n  {READ_REMEDY}"
        ) from error
    follow_producers(stream, producers)
    return Pointer(address, "foreign")


def _by_dlpack(value: object, stream: StreamCore, elements: Elements | None) -> Pointer | None:
    address = dlpack_address(value, stream, elements)
    return None if address is None else Pointer(address, "converted")
