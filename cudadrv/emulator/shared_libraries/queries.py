"""Queries of devices, pointers and results."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

from ...driver._api import CUpointer_attribute, CUresult
from ..emulator import Emulator
from .handlers import (
    INVALID_VALUE,
    Handlers,
    Texts,
    call,
    ints_at,
    put_bytes,
    put_size,
    put_uint,
    sizes_at,
)

QUERIES: Final = Handlers()
_TEXTS: Final = Texts()
_KERNEL_THREADS: Final = 0  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_WARP: Final = 32
_NAMES: Final = {int(code): code.name for code in CUresult}

_OF_RUNTIME: Final = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
_NO_RUNTIME: Final = (
    "cudadrv: the emulator has the functions of the CUDA driver, and the CUDA runtime (libcudart, "
    "cuda.bindings.runtime) does not run on it, as it needs functions of the driver that are in no "
    "manual: call the driver instead, as cuda.core and cuda.bindings.driver do (of "
    "cuda.bindings.runtime there is what cuda.core calls: cudaDeviceSynchronize and the like)"
)

_Narrow = type[ctypes.c_uint] | type[ctypes.c_int] | type[ctypes.c_ubyte]
# The C type of each pointer attribute, if it is not an address or size.
_NARROW_BY_NAME: Final[dict[str, _Narrow]] = {
    "MEMORY_TYPE": ctypes.c_uint,
    "SYNC_MEMOPS": ctypes.c_ubyte,
    "IS_MANAGED": ctypes.c_ubyte,
    "DEVICE_ORDINAL": ctypes.c_int,
    "IS_LEGACY_CUDA_IPC_CAPABLE": ctypes.c_ubyte,
    "MAPPED": ctypes.c_ubyte,
    "IS_GPU_DIRECT_RDMA_CAPABLE": ctypes.c_ubyte,
}
_NARROW: Final = {
    int(getattr(CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")): c_type
    for name, c_type in _NARROW_BY_NAME.items()
}


@QUERIES("cuGetErrorName")
def error_name(api: Emulator, code: int, result: int) -> int:
    """Return the name of a result, null for an unknown one."""
    name = _NAMES.get(code)
    put_size(result, _TEXTS.address(name.encode()) if name else 0)
    return 0 if name else INVALID_VALUE


@QUERIES("cuGetErrorString")
def error_string(api: Emulator, code: int, result: int) -> int:
    """Return the text of a result: for this thread's last failed call, all known details."""
    if code not in _NAMES:
        put_size(result, 0)
        return INVALID_VALUE
    answer, text = api.cuGetErrorString(CUresult(code))
    put_size(result, _TEXTS.address(text) if text else 0)
    return int(answer)


@QUERIES("cuGetExportTable")
def export_table(api: Emulator, result: int, uuid: int) -> int:
    """Reject a table of functions that have no names.

    NVRTC requests such tables and works without them. The CUDA runtime does not: its own table is
    undocumented, and proves that the driver is NVIDIA's. So the runtime's user receives advice
    instead, once each time that the runtime begins.
    """
    put_size(result, 0)
    if ctypes.string_at(uuid, len(_OF_RUNTIME)) == _OF_RUNTIME:
        print(_NO_RUNTIME, file=sys.stderr)
    return int(CUresult.CUDA_ERROR_NOT_FOUND)


@QUERIES("cuDeviceGetName")
def device_name(api: Emulator, result: int, length: int, device: int) -> int:
    """Return the device's name."""
    return _put_text(api, "cuDeviceGetName", result, length, device)


@QUERIES("cuDeviceGetPCIBusId")
def device_bus_id(api: Emulator, result: int, length: int, device: int) -> int:
    """Return the device's PCI address."""
    return _put_text(api, "cuDeviceGetPCIBusId", result, length, device)


def _put_text(api: Emulator, name: str, result: int, length: int, device: int) -> int:
    code, text = call(api, name, length, device)
    if not code and length > 0:
        put_bytes(result, text.rstrip(b"\0")[: length - 1] + b"\0")
    return int(code)


@QUERIES("cuPointerGetAttribute")
def pointer_attribute(api: Emulator, result: int, attribute: int, address: int) -> int:
    """Return one attribute; memory unknown to the driver is an error (measured)."""
    kind = CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE
    known, values = call(api, "cuPointerGetAttributes", 1, (kind,), address)
    if known or not values[0]:
        return INVALID_VALUE
    code, values = call(api, "cuPointerGetAttributes", 1, (attribute,), address)
    if not code:
        _put_attribute(result, attribute, values[0])
    return int(code)


@QUERIES("cuPointerGetAttributes")
def pointer_attributes(
    api: Emulator, count: int, attributes: int, results: int, address: int
) -> int:
    """Return several attributes of an address."""
    asked = ints_at(attributes, count)
    code, values = call(api, "cuPointerGetAttributes", count, asked, address)
    if not code:
        for result, attribute, value in zip(sizes_at(results, count), asked, values, strict=True):
            _put_attribute(result, attribute, value)
    return int(code)


def _put_attribute(result: int, attribute: int, value: Any) -> None:  # a number or a handle
    if not result:
        return
    narrow = _NARROW.get(attribute)
    if narrow is None:
        put_size(result, value)
    else:
        narrow.from_address(result).value = int(value)


@QUERIES("cuCtxGetDevice_v2")
def context_device(api: Emulator, result: int, context: int) -> int:
    """Return the device of a context."""
    code, device = call(api, "cuCtxGetDevice", context) if context else api.cuCtxGetDevice()
    if not code:
        ctypes.c_int.from_address(result).value = int(device)
    return int(code)


@QUERIES("cuOccupancyMaxPotentialBlockSize")
def block_of_most_threads(
    api: Emulator, grid: int, block: int, function: int, shared_of: int, shared: int, limit: int
) -> int:
    """Return the block size that fills a device with most threads, and the number of blocks."""
    code, device = call(api, "cuCtxGetDevice")
    if code:
        return int(code)
    code, most = call(api, "cuFuncGetAttribute", _KERNEL_THREADS, function)
    if code:
        return int(code)
    size_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(shared_of) if shared_of else None
    best_size, best_blocks = 0, 0
    most = min(most, limit or most)
    for warps in range(-(-most // _WARP), 0, -1):
        size = min(most, warps * _WARP)
        nbytes = shared if size_of is None else size_of(size)
        asked = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        code, blocks = call(api, asked, function, size, nbytes)
        if code:
            return int(code)
        if size * blocks > best_size * best_blocks:
            best_size, best_blocks = size, blocks
    _, multiprocessors = call(api, "cuDeviceGetAttribute", _MULTIPROCESSORS, device)
    put_uint(grid, best_blocks * multiprocessors)
    put_uint(block, best_size)
    return 0


@QUERIES("cuOccupancyMaxPotentialBlockSizeWithFlags")
def flagged_block_of_most_threads(
    api: Emulator,
    grid: int,
    block: int,
    function: int,
    shared_of: int,
    shared: int,
    limit: int,
    flags: int,
) -> int:
    """Same; the flags are about caches, which the emulator does not have."""
    return block_of_most_threads(api, grid, block, function, shared_of, shared, limit)
