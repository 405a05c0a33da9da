"""Copies, arrays, pools and batches, whose structures the emulator takes in another form."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any, Final

from ...driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP,
    CUmemcpyAttributes,
    CUmemPool_attribute,
    cuuint64_t,
)
from ..emulator import Emulator
from .handlers import (
    INVALID_VALUE,
    Handlers,
    call,
    ints_at,
    passed_on,
    put_bytes,
    put_size,
    put_uint,
    sizes_at,
)

MEMORY: Final = Handlers()
_COPY_2D: Final = struct.Struct("<2Qi4x4Q2Qi4x4Q2Q")
_COPY_3D: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")
_DEVICE, _HOST = 1, 2  # CU_MEM_LOCATION_TYPE_DEVICE and _HOST
_CPU: Final = -1  # CU_DEVICE_CPU
_MOST: Final = 13  # CU_MEMPOOL_ATTR_MAX_POOL_SIZE
_SIZES: Final = frozenset((
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH),
    _MOST,
))  # fmt: skip
_ATTRIBUTE_BYTES: Final = 24  # sizeof(CUmemcpyAttributes)
_BOX_BYTES: Final = 112  # sizeof(CUDA_MEMCPY3D_BATCH_OP)
_LOCATION_BYTES: Final = 8  # sizeof(CUmemLocation)
_NO_COPY: Final = (1 << 64) - 1  # SIZE_MAX: by the manual the error concerns no copy


@MEMORY("cuMemcpy2D_v2")
@MEMORY("cuMemcpy2DUnaligned_v2")
def copy_rows(api: Emulator, copy: int) -> int:
    """Copy rows of memory or of arrays."""
    return _copied(api, "cuMemcpy3D", copy)


@MEMORY("cuMemcpy2DAsync_v2")
def queue_copy_of_rows(api: Emulator, copy: int, stream: int) -> int:
    """Same, in the order of a stream."""
    return _copied(api, "cuMemcpy3DAsync", copy, stream)


def _copied(api: Emulator, name: str, copy: int, *stream: int) -> int:
    """Run a CUDA_MEMCPY2D as a copy of one slice."""
    if not copy:
        return INVALID_VALUE
    given = _COPY_2D.unpack(ctypes.string_at(copy, _COPY_2D.size))
    sides: list[int] = []
    for x, y, kind, host, device, array, pitch in (given[:7], given[7:14]):
        sides += (x, y, 0, 0, kind, host, device, array, 0, pitch, 0)
    memory = ctypes.create_string_buffer(_COPY_3D.pack(*sides, *given[14:], 1), _COPY_3D.size)
    seen = CUDA_MEMCPY3D(_ptr=ctypes.addressof(memory))
    return int(call(api, name, seen, *stream)[0])


@MEMORY("cuArray3DGetDescriptor_v2")
def array_descriptor(api: Emulator, result: int, array: int) -> int:
    """Return the descriptor of an array."""
    code, found = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(found, found.Depth, flags=(found.Flags, 0)))
    return int(code)


@MEMORY("cuArrayGetDescriptor_v2")
def flat_array_descriptor(api: Emulator, result: int, array: int) -> int:
    """Return the descriptor of an array of two dimensions."""
    code, found = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(found))
    return int(code)


def _described(
    found: Any,  # CUDA_ARRAY3D_DESCRIPTOR
    *depth: int,
    flags: tuple[int, ...] = (),
) -> bytes:
    """Write a CUDA_ARRAY_DESCRIPTOR; with depth and flags a CUDA_ARRAY3D_DESCRIPTOR."""
    extents = (found.Width, found.Height, *depth)
    words = (int(found.Format), found.NumChannels, *flags)
    return struct.pack(f"<{len(extents)}Q{len(words)}I", *map(int, (*extents, *words)))


@MEMORY("cuMemAdvise")
def advise_device(api: Emulator, address: int, nbytes: int, advice: int, device: int) -> int:
    """Set how managed memory is used, by a device or by the host."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _place(device))[0])


@MEMORY("cuMemAdvise_v2")
def advise_place(api: Emulator, address: int, nbytes: int, advice: int, place: int) -> int:
    """Same, with a CUmemLocation, which is passed as one number of 8 bytes."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _location(place))[0])


@MEMORY("cuMemPrefetchAsync")
def prefetch_to_device(api: Emulator, address: int, nbytes: int, device: int, stream: int) -> int:
    """Set where managed memory is used next: on a device or on the host."""
    return int(call(api, "cuMemPrefetchAsync", address, nbytes, _place(device), 0, stream)[0])


@MEMORY("cuMemPrefetchAsync_v2")
def prefetch_to_place(
    api: Emulator, address: int, nbytes: int, place: int, flags: int, stream: int
) -> int:
    """Same, with a CUmemLocation."""
    seen = _location(place)
    return int(call(api, "cuMemPrefetchAsync", address, nbytes, seen, flags, stream)[0])


def _place(device: int) -> SimpleNamespace:
    return SimpleNamespace(type=_HOST if device == _CPU else _DEVICE, id=max(device, 0))


def _location(passed: int) -> SimpleNamespace:
    kind, number = struct.unpack("<ii", passed.to_bytes(8, "little"))
    return SimpleNamespace(type=kind, id=number)


@MEMORY("cuMemSetAccess")
def set_memory_access(
    api: Emulator, address: int, nbytes: int, descriptions: int, count: int
) -> int:
    """Set which devices can access a range of addresses."""
    seen = _descriptions(descriptions, count)
    return int(call(api, "cuMemSetAccess", address, nbytes, seen, count)[0])


@MEMORY("cuMemPoolGetAttribute")
def pool_attribute(api: Emulator, pool: int, attribute: int, result: int) -> int:
    """Return a switch of 4 bytes, or a number of 8."""
    code, value = call(api, "cuMemPoolGetAttribute", pool, attribute)
    if not code:
        (put_uint if _is_switch(attribute) else put_size)(result, int(value))
    return int(code)


@MEMORY("cuMemPoolSetAttribute")
def set_pool_attribute(api: Emulator, pool: int, attribute: int, value: int) -> int:
    """Set a switch of 4 bytes, or a number of 8."""
    c_type = ctypes.c_uint if _is_switch(attribute) else ctypes.c_size_t
    number = c_type.from_address(value).value
    return int(call(api, "cuMemPoolSetAttribute", pool, attribute, cuuint64_t(number))[0])


def _is_switch(attribute: int) -> bool:
    """Return whether it has 4 bytes; the others are sizes."""
    return attribute not in _SIZES


@MEMORY("cuMemPoolSetAccess")
def set_pool_access(api: Emulator, pool: int, descriptions: int, count: int) -> int:
    """Set which devices can access a pool; CUmemAccessDesc is three numbers."""
    seen = _descriptions(descriptions, count)
    return int(call(api, "cuMemPoolSetAccess", pool, seen, count)[0])


def _descriptions(address: int, count: int) -> list[SimpleNamespace]:
    """Return an array of CUmemAccessDesc, as the emulator reads it."""
    seen = []
    for at in range(count):
        kind, number, flags = (ctypes.c_int * 3).from_address(address + 12 * at)
        location = SimpleNamespace(type=kind, id=number)
        seen.append(SimpleNamespace(location=location, flags=flags))
    return seen


@MEMORY("cuMemPoolGetAccess")
def pool_access(api: Emulator, result: int, pool: int, location: int) -> int:
    """Return the access to a pool, as cuMemPoolSetAccess set it."""
    code, flags = call(api, "cuMemPoolGetAccess", pool, location_at(location))
    if not code:
        put_uint(result, int(flags))
    return int(code)


@MEMORY("cuMemGetMemPool")
def pool_in_use(api: Emulator, result: int, location: int, kind: int) -> int:
    """Return the pool in use for a location."""
    return passed_on(api, "cuMemGetMemPool", (location_at(location), kind), result)


@MEMORY("cuMemGetDefaultMemPool")
def default_pool(api: Emulator, result: int, location: int, kind: int) -> int:
    """Return the default pool of a location."""
    return passed_on(api, "cuMemGetDefaultMemPool", (location_at(location), kind), result)


@MEMORY("cuMemSetMemPool")
def use_pool(api: Emulator, location: int, kind: int, pool: int) -> int:
    """Choose a pool for a location."""
    return int(call(api, "cuMemSetMemPool", location_at(location), kind, pool)[0])


def location_at(address: int) -> SimpleNamespace | None:
    """Return a CUmemLocation, which is two numbers; None for null."""
    if not address:
        return None
    kind, number = (ctypes.c_int * 2).from_address(address)
    return SimpleNamespace(type=kind, id=number)


@MEMORY("cuMemcpyBatchAsync_v2")
def copy_batch(
    api: Emulator, targets: int, sources: int, sizes: int, count: int, attributes: int,
    starts: int, attribute_count: int, stream: int,
) -> int:  # fmt: skip
    """Copy several ranges."""
    if not (targets and sources and sizes and attributes and starts):
        return INVALID_VALUE
    ranges = (sizes_at(each, count) for each in (targets, sources, sizes))
    seen = [
        CUmemcpyAttributes(_ptr=attributes + _ATTRIBUTE_BYTES * at) for at in range(attribute_count)
    ]
    indices = sizes_at(starts, attribute_count)
    given = (*ranges, count, seen, indices, attribute_count, stream)
    return int(call(api, "cuMemcpyBatchAsync", *given)[0])


@MEMORY("cuMemcpyBatchAsync")
def copy_batch_of_old(
    api: Emulator, targets: int, sources: int, sizes: int, count: int, attributes: int,
    starts: int, attribute_count: int, failed: int, stream: int,
) -> int:  # fmt: skip
    """Same for CUDA 12, whose caller receives the failed index: the emulator reports none."""
    given = (targets, sources, sizes, count, attributes, starts, attribute_count, stream)
    code = copy_batch(api, *given)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY("cuMemcpy3DBatchAsync_v2")
def copy_boxes(api: Emulator, count: int, boxes: int, flags: int, stream: int) -> int:
    """Copy several boxes."""
    seen = [CUDA_MEMCPY3D_BATCH_OP(_ptr=boxes + _BOX_BYTES * at) for at in range(count) if boxes]
    return int(call(api, "cuMemcpy3DBatchAsync", count, seen, flags, stream)[0])


@MEMORY("cuMemcpy3DBatchAsync")
def copy_boxes_of_old(
    api: Emulator, count: int, boxes: int, failed: int, flags: int, stream: int
) -> int:
    """Same for CUDA 12."""
    code = copy_boxes(api, count, boxes, flags, stream)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY("cuMemPrefetchBatchAsync")
def prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, places: int, starts: int,
    place_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """Set where several ranges are used next."""
    given = addresses, sizes, count, places, starts, place_count, flags, stream
    return _moved(api, "cuMemPrefetchBatchAsync", *given)


@MEMORY("cuMemDiscardAndPrefetchBatchAsync")
def discard_and_prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, places: int, starts: int,
    place_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """Same, if the content does not matter any more."""
    given = addresses, sizes, count, places, starts, place_count, flags, stream
    return _moved(api, "cuMemDiscardAndPrefetchBatchAsync", *given)


def _moved(
    api: Emulator, name: str, addresses: int, sizes: int, count: int, places: int, starts: int,
    place_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    if not (addresses and sizes and places and starts):
        return INVALID_VALUE
    seen: list[SimpleNamespace | None] = [
        location_at(places + _LOCATION_BYTES * at) for at in range(place_count)
    ]
    given = (sizes_at(addresses, count), sizes_at(sizes, count), count)
    where = (seen, sizes_at(starts, place_count), place_count)
    return int(call(api, name, *given, *where, flags, stream)[0])


@MEMORY("cuMemDiscardBatchAsync")
def discard_batch(
    api: Emulator, addresses: int, sizes: int, count: int, flags: int, stream: int
) -> int:
    """Let several ranges have undefined content."""
    if not (addresses and sizes):
        return INVALID_VALUE
    given = (sizes_at(addresses, count), sizes_at(sizes, count), count, flags, stream)
    return int(call(api, "cuMemDiscardBatchAsync", *given)[0])


@MEMORY("cuMemRangeGetAttribute")
def range_attribute(
    api: Emulator, result: int, nbytes: int, attribute: int, address: int, count: int
) -> int:
    """Return the advice for a range: a number of 4 bytes, or several."""
    code, value = call(api, "cuMemRangeGetAttribute", nbytes, attribute, address, count)
    if not code:
        _put_numbers(result, value)
    return int(code)


@MEMORY("cuMemRangeGetAttributes")
def range_attributes(
    api: Emulator, results: int, sizes: int, attributes: int, number: int, address: int, count: int
) -> int:
    """Return several attributes of a range."""
    asked = (sizes_at(sizes, number), ints_at(attributes, number), number)
    code, values = call(api, "cuMemRangeGetAttributes", *asked, address, count)
    if not code:
        for result, value in zip(sizes_at(results, number), values, strict=True):
            _put_numbers(result, value)
    return int(code)


def _put_numbers(address: int, value: int | list[int]) -> None:
    numbers = value if isinstance(value, list) else [value]
    put_bytes(address, bytes((ctypes.c_int * len(numbers))(*numbers)))
