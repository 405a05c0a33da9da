"""The address that an object of another library stands for, when a launch is given it."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ..driver.stream_core import StreamCore
from ..errors import CudadrvError, WrongDeviceError
from .foreign import dlpack_address, follow_producers, interface_address
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


def pointer_of(value: object, stream: StreamCore) -> Pointer | None:
    """The address of an object's memory, with `stream` ordered after it; None if it has none.

    Raises:
        BufferError: it has memory that no kernel can use; the text goes on from "it ...".
        WrongDeviceError: the memory lies on another device.
    """
    try:
        return (
            _by_reader(value, stream) or _by_interface(value, stream) or _by_dlpack(value, stream)
        )
    except (CudadrvError, BufferError):
        raise
    except Exception as error:  # whatever the library raises
        raise BufferError(f"has memory that cannot be read ({error!r})") from error


def _by_reader(value: object, stream: StreamCore) -> Pointer | None:
    kind: type = type(value)
    found = found_for(kind)
    if found is None:
        return None
    reader, ordinal = found.reader, stream.context.ordinal
    device = reader.device(value)
    if device < 0:
        return None
    if device != ordinal:
        raise WrongDeviceError(f"a {kind.__name__} on device {device} was given to {stream!r}")
    address = reader.address(value)
    if address is None:
        return _by_dlpack(value, stream)
    if reader.stream is not None:
        follow_producers(stream, (reader.stream(ordinal),))
    return Pointer(address, found if found.type is kind else "converted")


# Whatever has the interface; a protocol would say no more than that attribute's name.
def _by_interface(value: Any, stream: StreamCore) -> Pointer | None:
    if not hasattr(value, "__cuda_array_interface__"):
        return None
    producers: list[int] = []
    try:
        address = interface_address(value, stream, producers)
    except _NO_INTERFACE as error:
        raise BufferError(f"has a __cuda_array_interface__ that is none ({error!r})") from error
    follow_producers(stream, producers)
    return Pointer(address, "foreign")


def _by_dlpack(value: object, stream: StreamCore) -> Pointer | None:
    address = dlpack_address(value, stream)
    return None if address is None else Pointer(address, "converted")
