"""Copies, arrays, pools and batches, whose structures the emulator takes in another form."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any, Final

from ...driver._api import (
    CUDA_ARRAY_DESCRIPTOR,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP,
    CUmemcpyAttributes,
    CUmemPool_attribute,
    CUstreamBatchMemOpParams,
    cuuint64_t,
)
from ..call_error import invalid_value
from ..caller_memory import mapped, view_at
from ..emulator import Emulator
from ..physical_memory import FABRIC
from .handlers import (
    INVALID_VALUE,
    Handlers,
    bytes_at,
    call,
    ints_at,
    passed_on,
    put_bytes,
    put_size,
    put_uint,
    sizes_at,
    structures_at,
)

MEMORY: Final = Handlers()
_COPY_2D: Final = struct.Struct("<2Qi4x4Q2Qi4x4Q2Q")  # CUDA_MEMCPY2D
_COPY_3D: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")  # CUDA_MEMCPY3D
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
_OPERATION_BYTES: Final = 48  # sizeof(CUstreamBatchMemOpParams)
_MOST_OPERATIONS: Final = 256
_SEMAPHORE_BYTES: Final = 144  # sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS), _SIGNAL_PARAMS
_LOCATION_BYTES: Final = 8  # sizeof(CUmemLocation)
_ACCESS_BYTES: Final = 12  # sizeof(CUmemAccessDesc)
_MOST_DESCRIPTIONS: Final = 4096  # of access: far more than the devices of a host
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


@MEMORY("cuArrayCreate_v2")
def create_flat_array(api: Emulator, result: int, descriptor: int) -> int:
    """Create an array of one or two dimensions."""
    return passed_on(
        api, "cuArrayCreate", (CUDA_ARRAY_DESCRIPTOR(_ptr=mapped(descriptor, 24)),), result
    )


@MEMORY("cuStreamBatchMemOp")
@MEMORY("cuStreamBatchMemOp_v2")
def run_memory_operations(api: Emulator, stream: int, count: int, params: int, flags: int) -> int:
    """Write values, and wait for them."""
    if (count and not params) or count > _MOST_OPERATIONS:
        return INVALID_VALUE
    operations = [
        CUstreamBatchMemOpParams(_ptr=at) for at in structures_at(params, _OPERATION_BYTES, count)
    ]
    return int(call(api, "cuStreamBatchMemOp", stream, count, operations, flags)[0])


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


@MEMORY("cuMemAdvise_v2")
def advise_location(api: Emulator, address: int, nbytes: int, advice: int, location: int) -> int:
    """Same, with a CUmemLocation, which is passed as one number of 8 bytes."""
    return int(call(api, "cuMemAdvise", address, nbytes, advice, _location(location))[0])


@MEMORY("cuMemPrefetchAsync")
def prefetch_to_device(api: Emulator, address: int, nbytes: int, device: int, stream: int) -> int:
    """Set where managed memory is used next: on a device or on the host."""
    return int(
        call(api, "cuMemPrefetchAsync", address, nbytes, _device_location(device), 0, stream)[0]
    )


@MEMORY("cuMemPrefetchAsync_v2")
def prefetch_to_location(
    api: Emulator, address: int, nbytes: int, location: int, flags: int, stream: int
) -> int:
    """Same, with a CUmemLocation."""
    native = _location(location)
    return int(call(api, "cuMemPrefetchAsync", address, nbytes, native, flags, stream)[0])


def _device_location(device: int) -> SimpleNamespace:
    return SimpleNamespace(type=_HOST if device == _CPU else _DEVICE, id=max(device, 0))


def _location(passed: int) -> SimpleNamespace:
    kind, number = struct.unpack("<ii", passed.to_bytes(8, "little"))
    return SimpleNamespace(type=kind, id=number)


@MEMORY("cuMemSetAccess")
def set_memory_access(
    api: Emulator, address: int, nbytes: int, descriptions: int, count: int
) -> int:
    """Set which devices can access a range of addresses."""
    native = _descriptions(descriptions, count)
    return int(call(api, "cuMemSetAccess", address, nbytes, native, count)[0])


@MEMORY("cuMemExportToShareableHandle")
def export_memory(api: Emulator, result: int, handle: int, kind: int, flags: int) -> int:
    """Return a descriptor of 4 bytes, or a fabric handle of 64."""
    code, exported = call(api, "cuMemExportToShareableHandle", handle, kind, flags)
    if not code and kind == FABRIC:
        put_bytes(result, bytes(exported.data))
    elif not code:
        put_uint(result, int(exported))
    return int(code)


@MEMORY("cuSignalExternalSemaphoresAsync")
def signal_semaphores(api: Emulator, semaphores: int, params: int, count: int, stream: int) -> int:
    """Signal semaphores in the order of a stream."""
    handles, kind = sizes_at(semaphores, count), CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS
    native = [kind(_ptr=at) for at in structures_at(params, _SEMAPHORE_BYTES, count)]
    return int(call(api, "cuSignalExternalSemaphoresAsync", handles, native, count, stream)[0])


@MEMORY("cuWaitExternalSemaphoresAsync")
def wait_for_semaphores(
    api: Emulator, semaphores: int, params: int, count: int, stream: int
) -> int:
    """Let a stream wait for semaphores."""
    handles, kind = sizes_at(semaphores, count), CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
    native = [kind(_ptr=at) for at in structures_at(params, _SEMAPHORE_BYTES, count)]
    return int(call(api, "cuWaitExternalSemaphoresAsync", handles, native, count, stream)[0])


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


@MEMORY("cuMemPoolSetAccess")
def set_pool_access(api: Emulator, pool: int, descriptions: int, count: int) -> int:
    """Set which devices can access a pool; CUmemAccessDesc is three numbers."""
    native = _descriptions(descriptions, count)
    return int(call(api, "cuMemPoolSetAccess", pool, native, count)[0])


def _descriptions(address: int, count: int) -> list[SimpleNamespace]:
    """Return an array of CUmemAccessDesc, as the emulator reads it."""
    if count > _MOST_DESCRIPTIONS:
        raise invalid_value(f"{count} descriptions of accesses are too many")
    native = []
    for at in structures_at(address, _ACCESS_BYTES, count):
        kind, number, flags = view_at(ctypes.c_int * 3, at)
        location = SimpleNamespace(type=kind, id=number)
        native.append(SimpleNamespace(location=location, flags=flags))
    return native


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
    kind, number = view_at(ctypes.c_int * 2, address)
    return SimpleNamespace(type=kind, id=number)


@MEMORY("cuMemcpyBatchAsync_v2")
def copy_batch(
    api: Emulator, targets: int, sources: int, sizes: int, count: int, attributes: int,
    starts: int, attribute_count: int, stream: int,
) -> int:  # fmt: skip
    """Copy several ranges."""
    if not (targets and sources and sizes and attributes and starts) or attribute_count > count:
        return INVALID_VALUE
    ranges = (sizes_at(array, count) for array in (targets, sources, sizes))
    native = [
        CUmemcpyAttributes(_ptr=at)
        for at in structures_at(attributes, _ATTRIBUTE_BYTES, attribute_count)
    ]
    indices = sizes_at(starts, attribute_count)
    arguments = (*ranges, count, native, indices, attribute_count, stream)
    return int(call(api, "cuMemcpyBatchAsync", *arguments)[0])


@MEMORY("cuMemcpyBatchAsync")
def copy_batch_of_old(
    api: Emulator, targets: int, sources: int, sizes: int, count: int, attributes: int,
    starts: int, attribute_count: int, failed: int, stream: int,
) -> int:  # fmt: skip
    """Same for CUDA 12, whose caller receives the failed index: the emulator reports none."""
    arguments = (targets, sources, sizes, count, attributes, starts, attribute_count, stream)
    code = copy_batch(api, *arguments)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY("cuMemcpy3DBatchAsync_v2")
def copy_boxes(api: Emulator, count: int, operations: int, flags: int, stream: int) -> int:
    """Copy several boxes."""
    native = [
        CUDA_MEMCPY3D_BATCH_OP(_ptr=at)
        for at in structures_at(operations, _BOX_BYTES, count if operations else 0)
    ]
    return int(call(api, "cuMemcpy3DBatchAsync", count, native, flags, stream)[0])


@MEMORY("cuMemcpy3DBatchAsync")
def copy_boxes_of_old(
    api: Emulator, count: int, operations: int, failed: int, flags: int, stream: int
) -> int:
    """Same for CUDA 12."""
    code = copy_boxes(api, count, operations, flags, stream)
    if code:
        put_size(failed, _NO_COPY)
    return code


@MEMORY("cuMemPrefetchBatchAsync")
def prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, locations: int, starts: int,
    location_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """Set where several ranges are used next."""
    arguments = addresses, sizes, count, locations, starts, location_count, flags, stream
    return _moved(api, "cuMemPrefetchBatchAsync", *arguments)


@MEMORY("cuMemDiscardAndPrefetchBatchAsync")
def discard_and_prefetch_batch(
    api: Emulator, addresses: int, sizes: int, count: int, locations: int, starts: int,
    location_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    """Same, if the content does not matter any more."""
    arguments = addresses, sizes, count, locations, starts, location_count, flags, stream
    return _moved(api, "cuMemDiscardAndPrefetchBatchAsync", *arguments)


def _moved(
    api: Emulator, name: str, addresses: int, sizes: int, count: int, locations: int, starts: int,
    location_count: int, flags: int, stream: int,
) -> int:  # fmt: skip
    if not (addresses and sizes and locations and starts) or location_count > count:
        return INVALID_VALUE
    native: list[SimpleNamespace | None] = [
        location_at(at) for at in structures_at(locations, _LOCATION_BYTES, location_count)
    ]
    range_arguments = (sizes_at(addresses, count), sizes_at(sizes, count), count)
    location_arguments = (native, sizes_at(starts, location_count), location_count)
    return int(call(api, name, *range_arguments, *location_arguments, flags, stream)[0])


@MEMORY("cuMemDiscardBatchAsync")
def discard_batch(
    api: Emulator, addresses: int, sizes: int, count: int, flags: int, stream: int
) -> int:
    """Let several ranges have undefined content."""
    if not (addresses and sizes):
        return INVALID_VALUE
    arguments = (sizes_at(addresses, count), sizes_at(sizes, count), count, flags, stream)
    return int(call(api, "cuMemDiscardBatchAsync", *arguments)[0])


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
    arguments = (sizes_at(sizes, number), ints_at(attributes, number), number)
    code, values = call(api, "cuMemRangeGetAttributes", *arguments, address, count)
    if not code:
        for result, value in zip(sizes_at(results, number), values, strict=True):
            _put_numbers(result, value)
    return int(code)


def _put_numbers(address: int, value: int | list[int]) -> None:
    numbers = value if isinstance(value, list) else [value]
    put_bytes(address, bytes((ctypes.c_int * len(numbers))(*numbers)))
