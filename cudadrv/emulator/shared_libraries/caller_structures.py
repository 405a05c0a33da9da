"""Arrays, structures and images that callers of C pass by address."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

from ptx.isa.fatbin import HEADER as FATBIN_HEADER, MAGIC as FATBIN_MAGIC

from ..call_error import invalid_value
from ..caller_memory import is_readable, mapped, text_at, view_at
from ..edge_data import edge_data_at

_ELF: Final = b"\x7fELF"
_WRAPPED: Final = b"\xb1\x43\x62\x46"  # __fatBinC_Wrapper_t, whose third field is the fatbin
_LOCATION_BYTES: Final = 8  # sizeof(CUmemLocation)
_ACCESS_BYTES: Final = 12  # sizeof(CUmemAccessDesc)
_MOST_DESCRIPTIONS: Final = 4096  # of access: far more than the devices of a host
# Beyond every real count. Such a number of elements may be readable, by chance, and would take all
# memory.
_MOST_ELEMENTS: Final = 1 << 24
_SMALL: Final = 4096


def sizes_at(address: int, count: int) -> list[int]:
    """Return an array of 8-byte integers.

    Raises:
        CallError: as `structures_at`.
    """
    return _integers_at(address, count, "Q", 8)


def ints_at(address: int, count: int) -> list[int]:
    """Return an array of 4-byte integers, such as options and attributes.

    Raises:
        CallError: as `structures_at`.
    """
    return _integers_at(address, count, "i", 4)


def _integers_at(address: int, count: int, form: str, nbytes: int) -> list[int]:
    elements = structures_at(address, nbytes, count)
    data = ctypes.string_at(address, nbytes * count) if elements else b""
    return list(struct.unpack(f"{count}{form}", data))


def structures_at(address: int, nbytes: int, count: int) -> range:
    """Return the addresses of an array of structures, each of so many bytes.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as its elements cannot be read, or they are more than
            any call has.
    """
    if count > _MOST_ELEMENTS or (count and not is_readable(address, nbytes * count)):
        raise invalid_value(f"{address:#x} is no array of {count} elements")
    return range(address, address + nbytes * count, nbytes)


def bytes_at(address: int, nbytes: int) -> bytes:
    """Return bytes of the caller.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as they cannot be read.
    """
    if not address or (nbytes > _SMALL and not is_readable(address, nbytes)):
        raise invalid_value(f"{address:#x} is no address of {nbytes} bytes")
    return ctypes.string_at(mapped(address, nbytes), nbytes)


def image_at(address: int) -> bytes:
    """Return the image at a caller's address; of a cubin only enough to identify it."""
    head = bytes_at(address, 4)
    if head == _WRAPPED:
        return image_at(view_at(ctypes.c_size_t, address + 8).value)
    if head == FATBIN_MAGIC:
        _, _, header, nbytes = FATBIN_HEADER.unpack(bytes_at(address, FATBIN_HEADER.size))
        return bytes_at(address, header + nbytes)
    return head if head == _ELF else text_at(address) or b""


def location(passed: int) -> SimpleNamespace:
    """Return a CUmemLocation that is passed by value, as one number of 8 bytes."""
    kind, number = struct.unpack("<ii", passed.to_bytes(8, "little"))
    return SimpleNamespace(type=kind, id=number)


def location_at(address: int) -> SimpleNamespace | None:
    """Return a CUmemLocation, which is two numbers; None for null."""
    if not address:
        return None
    kind, number = view_at(ctypes.c_int * 2, address)
    return SimpleNamespace(type=kind, id=number)


def _locations_at(address: int, count: int) -> list[SimpleNamespace | None]:
    return [location_at(at) for at in structures_at(address, _LOCATION_BYTES, count)]


def _accesses_at(address: int, count: int) -> list[SimpleNamespace]:
    """Return an array of CUmemAccessDesc, each of which is three numbers."""
    if count > _MOST_DESCRIPTIONS:
        raise invalid_value(f"{count} descriptions of accesses are too many")
    native = []
    for at in structures_at(address, _ACCESS_BYTES, count):
        kind, number, flags = view_at(ctypes.c_int * 3, at)
        native.append(SimpleNamespace(location=SimpleNamespace(type=kind, id=number), flags=flags))
    return native


VALUES: Final[dict[str, Callable[[int], object]]] = {
    "location": location,
    "*location": location_at,
    "image": image_at,
}
"""What reads an argument, by the table's word (`driver/functions.py`)."""
ARRAYS: Final[dict[str, Callable[[int, int], object]]] = {
    "size": sizes_at, "int": ints_at, "location": _locations_at, "access": _accesses_at,
    "edge": edge_data_at,
}  # fmt: skip
"""What reads an array at an address, of so many elements, by their word."""
