"""Batches of copies, prefetches and discards, which C has in arrays."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Final

from ...driver._api import CUDA_MEMCPY3D_BATCH_OP, CUmemcpyAttributes
from ..emulator import Emulator
from .memory_pools import location_at
from .special import INVALID_VALUE, Handlers, call, ints_at, put_bytes, put_size, sizes_at

MEMORY_BATCHES: Final = Handlers()
_ATTRIBUTE_BYTES: Final = 24  # sizeof(CUmemcpyAttributes)
_BOX_BYTES: Final = 112  # sizeof(CUDA_MEMCPY3D_BATCH_OP)
_LOCATION_BYTES: Final = 8  # sizeof(CUmemLocation)
_NO_COPY: Final = (1 << 64) - 1  # SIZE_MAX: by the manual the error is of no copy


@MEMORY_BATCHES("cuMemcpyBatchAsync_v2 13000 size size size size size size size stream")
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


@MEMORY_BATCHES("cuMemcpyBatchAsync 12080 size size size size size size size size stream")
def copy_batch_of_old(
    api: Emulator, targets: int, sources: int, sizes: int, count: int, attributes: int,
    starts: int, attribute_count: int, failed: int, stream: int,
) -> int:  # fmt: skip
    """The same of CUDA 12, which is told where it failed: the emulator says nothing of one copy."""
    given = (targets, sources, sizes, count, attributes, starts, attribute_count, stream)
    code = copy_batch(api, *given)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY_BATCHES("cuMemcpy3DBatchAsync_v2 13000 size size size stream")
def copy_boxes(api: Emulator, count: int, boxes: int, flags: int, stream: int) -> int:
    """Copy several boxes."""
    seen = [CUDA_MEMCPY3D_BATCH_OP(_ptr=boxes + _BOX_BYTES * at) for at in range(count) if boxes]
    return int(call(api, "cuMemcpy3DBatchAsync", count, seen, flags, stream)[0])


@MEMORY_BATCHES("cuMemcpy3DBatchAsync 12080 size size size size stream")
def copy_boxes_of_old(
    api: Emulator, count: int, boxes: int, failed: int, flags: int, stream: int
) -> int:
    """The same of CUDA 12."""
    code = copy_boxes(api, count, boxes, flags, stream)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY_BATCHES("cuMemcpyWithAttributesAsync 13020 size size size size stream")
def copy_one(
    api: Emulator, target: int, source: int, nbytes: int, attributes: int, stream: int
) -> int:
    """Copy one range, with attributes."""
    seen = CUmemcpyAttributes(_ptr=attributes) if attributes else None
    given = (target, source, nbytes, seen, stream)
    return int(call(api, "cuMemcpyWithAttributesAsync", *given)[0])


@MEMORY_BATCHES("cuMemcpy3DWithAttributesAsync 13020 size size stream")
def copy_one_box(api: Emulator, box: int, flags: int, stream: int) -> int:
    """Copy one box, with attributes."""
    seen = CUDA_MEMCPY3D_BATCH_OP(_ptr=box) if box else None
    return int(call(api, "cuMemcpy3DWithAttributesAsync", seen, flags, stream)[0])


@MEMORY_BATCHES("cuMemPrefetchBatchAsync 12080 size size size size size size size stream")
def prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, places: int, starts: int,
    place_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """Say where several ranges are used next."""
    given = addresses, sizes, count, places, starts, place_count, flags, stream
    return _moved(api, "cuMemPrefetchBatchAsync", *given)


@MEMORY_BATCHES("cuMemDiscardAndPrefetchBatchAsync 13000 size size size size size size size stream")
def discard_and_prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, places: int, starts: int,
    place_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """The same, where the content does not matter any more."""
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


@MEMORY_BATCHES("cuMemDiscardBatchAsync 13000 size size size size stream")
def discard_batch(
    api: Emulator, addresses: int, sizes: int, count: int, flags: int, stream: int
) -> int:
    """Let several ranges have any content."""
    if not (addresses and sizes):
        return INVALID_VALUE
    given = (sizes_at(addresses, count), sizes_at(sizes, count), count, flags, stream)
    return int(call(api, "cuMemDiscardBatchAsync", *given)[0])


@MEMORY_BATCHES("cuMemRangeGetAttribute 8000 >byte size int size size")
def range_attribute(
    api: Emulator, result: int, nbytes: int, attribute: int, address: int, count: int
) -> int:
    """What was said of a range: a number of 4 bytes, or several."""
    code, value = call(api, "cuMemRangeGetAttribute", nbytes, attribute, address, count)
    if not code:
        _put_numbers(result, value)
    return int(code)


@MEMORY_BATCHES("cuMemRangeGetAttributes 8000 &size &size &int size size size")
def range_attributes(
    api: Emulator, results: int, sizes: int, attributes: int, number: int, address: int, count: int
) -> int:
    """Several attributes of a range."""
    asked = (sizes_at(sizes, number), ints_at(attributes, number), number)
    code, values = call(api, "cuMemRangeGetAttributes", *asked, address, count)
    if not code:
        for result, value in zip(sizes_at(results, number), values, strict=True):
            _put_numbers(result, value)
    return int(code)


def _put_numbers(address: int, value: int | list[int]) -> None:
    numbers = value if isinstance(value, list) else [value]
    put_bytes(address, bytes((ctypes.c_int * len(numbers))(*numbers)))
