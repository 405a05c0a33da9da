"""Copies, arrays, pools and batches, whose structures the emulator takes in another form."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any, Final

from ...driver._api import CUDA_MEMCPY3D, CUmemPool_attribute, cuuint64_t
from ..caller_memory import view_at
from ..emulator import Emulator
from ..physical_memory import FABRIC
from .caller_structures import bytes_at, structures_at
from .handlers import INVALID_VALUE, Handlers, call, put_bytes, put_size, put_uint

MEMORY: Final = Handlers()
_COPY_2D: Final = struct.Struct("<2Qi4x4Q2Qi4x4Q2Q")  # CUDA_MEMCPY2D
_COPY_3D: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")  # CUDA_MEMCPY3D
_DEVICE, _HOST = 1, 2  # CU_MEM_LOCATION_TYPE_DEVICE and _HOST
_CPU: Final = -1  # CU_DEVICE_CPU
_MOST: Final = 13  # CU_MEMPOOL_ATTR_MAX_POOL_SIZE
_SIZES: Final = frozenset(
    (
        int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
        int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
        int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
        int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH),
        _MOST,
    )
)
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
    fields = _COPY_2D.unpack(bytes_at(copy, _COPY_2D.size))
    sides: list[int] = []
    for x, y, kind, host, device, array, pitch in (fields[:7], fields[7:14]):
        sides += (x, y, 0, 0, kind, host, device, array, 0, pitch, 0)
    memory = ctypes.create_string_buffer(_COPY_3D.pack(*sides, *fields[14:], 1), _COPY_3D.size)
    box_copy = CUDA_MEMCPY3D(_ptr=ctypes.addressof(memory))
    return int(call(api, name, box_copy, *stream)[0])


@MEMORY("cuArray3DGetDescriptor_v2")
def array_descriptor(api: Emulator, result: int, array: int) -> int:
    """Return the descriptor of an array."""
    code, descriptor = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(descriptor, descriptor.Depth, flags=(descriptor.Flags, 0)))
    return int(code)


@MEMORY("cuArrayGetDescriptor_v2")
def flat_array_descriptor(api: Emulator, result: int, array: int) -> int:
    """Return the descriptor of an array of two dimensions."""
    code, descriptor = call(api, "cuArray3DGetDescriptor", array)
    if not code:
        put_bytes(result, _described(descriptor))
    return int(code)


def _described(
    descriptor: Any,  # CUDA_ARRAY3D_DESCRIPTOR
    *depth: int,
    flags: tuple[int, ...] = (),
) -> bytes:
    """Write a CUDA_ARRAY_DESCRIPTOR; with depth and flags a CUDA_ARRAY3D_DESCRIPTOR."""
    extents = (descriptor.Width, descriptor.Height, *depth)
    words = (int(descriptor.Format), descriptor.NumChannels, *flags)
    return struct.pack(f"<{len(extents)}Q{len(words)}I", *map(int, (*extents, *words)))


@MEMORY("cuMemAdvise")
def advise_device(api: Emulator, address: int, nbytes: int, advice: int, device: int) -> int:
    """Set how managed memory is used, by a device or by the host."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _device_location(device))[0])


@MEMORY("cuMemPrefetchAsync")
def prefetch_to_device(api: Emulator, address: int, nbytes: int, device: int, stream: int) -> int:
    """Set where managed memory is used next: on a device or on the host."""
    return int(
        call(api, "cuMemPrefetchAsync", address, nbytes, _device_location(device), 0, stream)[0]
    )


def _device_location(device: int) -> SimpleNamespace:
    return SimpleNamespace(type=_HOST if device == _CPU else _DEVICE, id=max(device, 0))


@MEMORY("cuMemExportToShareableHandle")
def export_memory(api: Emulator, result: int, handle: int, kind: int, flags: int) -> int:
    """Return a descriptor of 4 bytes, or a fabric handle of 64."""
    code, exported = call(api, "cuMemExportToShareableHandle", handle, kind, flags)
    if not code and kind == FABRIC:
        put_bytes(result, bytes(exported.data))
    elif not code:
        put_uint(result, int(exported))
    return int(code)


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
    number = view_at(c_type, value).value
    return int(call(api, "cuMemPoolSetAttribute", pool, attribute, cuuint64_t(number))[0])


def _is_switch(attribute: int) -> bool:
    """Return whether it has 4 bytes; the others are sizes."""
    return attribute not in _SIZES


@MEMORY("cuMemcpyBatchAsync")
def copy_batch_of_old(
    api: Emulator,
    targets: list[int],
    sources: list[int],
    sizes: list[int],
    count: int,
    attributes: list[object],
    starts: list[int],
    attribute_count: int,
    failed: int,
    stream: int,
) -> int:
    """Copy ranges for CUDA 12, whose caller receives the failed index: none is reported."""
    ranges = (targets, sources, sizes, count)
    arguments = (*ranges, attributes, starts, attribute_count, stream)
    return _reporting_no_copy(failed, call(api, "cuMemcpyBatchAsync", *arguments))


@MEMORY("cuMemcpy3DBatchAsync")
def copy_boxes_of_old(
    api: Emulator, count: int, operations: list[object], failed: int, flags: int, stream: int
) -> int:
    """Same for boxes."""
    results = call(api, "cuMemcpy3DBatchAsync", count, operations, flags, stream)
    return _reporting_no_copy(failed, results)


def _reporting_no_copy(failed: int, results: tuple[Any, ...]) -> int:
    if results[0]:
        put_size(failed, _NO_COPY)
    return int(results[0])


@MEMORY("cuMemRangeGetAttribute")
def range_attribute(
    api: Emulator, result: int, nbytes: int, attribute: int, address: int, count: int
) -> int:
    """Return the advice for a range: a number of 4 bytes, or several."""
    structures_at(result, 1, nbytes)
    code, value = call(api, "cuMemRangeGetAttribute", nbytes, attribute, address, count)
    if not code:
        _put_numbers(result, value)
    return int(code)


@MEMORY("cuMemRangeGetAttributes")
def range_attributes(
    api: Emulator,
    results: list[int],
    sizes: list[int],
    attributes: list[int],
    number: int,
    address: int,
    count: int,
) -> int:
    """Return several attributes of a range."""
    for result, nbytes in zip(results, sizes, strict=True):
        structures_at(result, 1, nbytes)
    arguments = (sizes, attributes, number, address, count)
    code, values = call(api, "cuMemRangeGetAttributes", *arguments)
    if not code:
        for result, value in zip(results, values, strict=True):
            _put_numbers(result, value)
    return int(code)


def _put_numbers(address: int, value: int | list[int]) -> None:
    numbers = value if isinstance(value, list) else [value]
    put_bytes(address, bytes((ctypes.c_int * len(numbers))(*numbers)))
