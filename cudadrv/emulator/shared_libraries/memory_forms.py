"""Copies, arrays and managed memory, whose structures the emulator takes in another form."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any, Final

from ...driver._api import CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER
from ..emulator import Emulator
from .special import INVALID_VALUE, Handlers, call, put_bytes

MEMORY_FORMS: Final = Handlers()
_COPY_2D: Final = struct.Struct("<2Qi4x4Q2Qi4x4Q2Q")
_COPY_3D: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")
_DEVICE, _HOST = 1, 2  # CU_MEM_LOCATION_TYPE_DEVICE and _HOST
_CPU: Final = -1  # CU_DEVICE_CPU


@MEMORY_FORMS("cuMemcpy2D_v2 3020 size")
def copy_rows(api: Emulator, copy: int) -> int:
    """Copy rows of memory or of arrays."""
    return _copied(api, "cuMemcpy3D", copy)


@MEMORY_FORMS("cuMemcpy2DUnaligned_v2 3020 size")
def copy_any_rows(api: Emulator, copy: int) -> int:
    """The same with any pitch, as the emulator always does it."""
    return _copied(api, "cuMemcpy3D", copy)


@MEMORY_FORMS("cuMemcpy2DAsync_v2 3020 size stream")
def queue_copy_of_rows(api: Emulator, copy: int, stream: int) -> int:
    """The same in the order of a stream."""
    return _copied(api, "cuMemcpy3DAsync", copy, stream)


def _copied(api: Emulator, name: str, copy: int, *stream: int) -> int:
    """A CUDA_MEMCPY2D as a copy of one slice."""
    if not copy:
        return INVALID_VALUE
    given = _COPY_2D.unpack(ctypes.string_at(copy, _COPY_2D.size))
    sides: list[int] = []
    for x, y, kind, host, device, array, pitch in (given[:7], given[7:14]):
        sides += (x, y, 0, 0, kind, host, device, array, 0, pitch, 0)
    memory = ctypes.create_string_buffer(_COPY_3D.pack(*sides, *given[14:], 1), _COPY_3D.size)
    seen = CUDA_MEMCPY3D(_ptr=ctypes.addressof(memory))
    return int(call(api, name, seen, *stream)[0])


@MEMORY_FORMS("cuMemcpy3DPeerAsync 4000 size stream")
def queue_copy_to_peer(api: Emulator, copy: int, stream: int) -> int:
    """Copy a box between two contexts."""
    seen = CUDA_MEMCPY3D_PEER(_ptr=copy) if copy else None
    return int(call(api, "cuMemcpy3DPeerAsync", seen, stream)[0])


@MEMORY_FORMS("cuArray3DGetDescriptor_v2 3020 >byte size")
def array_descriptor(api: Emulator, result: int, array: int) -> int:
    """What an array was made of."""
    code, found = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(found, found.Depth, flags=(found.Flags, 0)))
    return int(code)


@MEMORY_FORMS("cuArrayGetDescriptor_v2 3020 >byte size")
def flat_array_descriptor(api: Emulator, result: int, array: int) -> int:
    """The same of an array of two dimensions."""
    code, found = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(found))
    return int(code)


def _described(
    found: Any,  # CUDA_ARRAY3D_DESCRIPTOR
    *depth: int,
    flags: tuple[int, ...] = (),
) -> bytes:
    """CUDA_ARRAY_DESCRIPTOR; with depth and flags CUDA_ARRAY3D_DESCRIPTOR."""
    extents = (found.Width, found.Height, *depth)
    words = (int(found.Format), found.NumChannels, *flags)
    return struct.pack(f"<{len(extents)}Q{len(words)}I", *map(int, (*extents, *words)))


@MEMORY_FORMS("cuMemAdvise 8000 size size int int")
def advise_device(api: Emulator, address: int, nbytes: int, advice: int, device: int) -> int:
    """Say how managed memory is used, by a device or by the host."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _place(device))[0])


@MEMORY_FORMS("cuMemAdvise_v2 12020 size size int size")
def advise_place(api: Emulator, address: int, nbytes: int, advice: int, place: int) -> int:
    """The same with a CUmemLocation, which is passed as one number of 8 bytes."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _location(place))[0])


@MEMORY_FORMS("cuMemPrefetchAsync 8000 size size int stream")
def prefetch_to_device(api: Emulator, address: int, nbytes: int, device: int, stream: int) -> int:
    """Say where managed memory is used next: on a device or on the host."""
    return int(call(api, "cuMemPrefetchAsync", address, nbytes, _place(device), 0, stream)[0])


@MEMORY_FORMS("cuMemPrefetchAsync_v2 12020 size size size uint stream")
def prefetch_to_place(
    api: Emulator, address: int, nbytes: int, place: int, flags: int, stream: int
) -> int:
    """The same with a CUmemLocation."""
    seen = _location(place)
    return int(call(api, "cuMemPrefetchAsync", address, nbytes, seen, flags, stream)[0])


def _place(device: int) -> SimpleNamespace:
    return SimpleNamespace(type=_HOST if device == _CPU else _DEVICE, id=max(device, 0))


def _location(passed: int) -> SimpleNamespace:
    kind, number = struct.unpack("<ii", passed.to_bytes(8, "little"))
    return SimpleNamespace(type=kind, id=number)
