"""Queries of devices, pointers and results."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Final
from uuid import UUID

from ptx.standard_streams import write_error

from ...driver._api import CUpointer_attribute, CUresult
from ..call_error import result_text
from ..caller_memory import view_at
from ..emulator import Emulator
from .caller_structures import bytes_at, ints_at, sizes_at
from .handlers import INVALID_VALUE, Handlers, Texts, call, put_bytes, put_size, put_uint

QUERIES: Final = Handlers()
_TEXTS: Final = Texts()
_KERNEL_THREADS: Final = 0  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_WARP: Final = 32
_MOST_TEXT: Final = 4096  # names are shorter
_NAMES: Final = {int(code): code.name for code in CUresult}

_OF_RUNTIME: Final = UUID("6bd5fb6c-5bf4-e74a-8987-d93912fd9df9")
# NVRTC looks for this one, and works without it.
_OF_NVRTC: Final = UUID("da9151d3-3ae6-cc41-a5c0-4f26d533e328")
_REPORTED: Final[set[UUID]] = {_OF_NVRTC}
# Reasons of failed calls that were printed.
_TOLD: Final[set[str]] = set()
_MOST_TOLD: Final = 100
_NO_TABLE: Final = (
    "cudadrv: the emulator lacks the table of driver functions {}, which is in no manual: the "
    "library that asked for it may not run on the emulator"
)
_NO_RUNTIME: Final = (
    "cudadrv: the emulator has the functions of the CUDA driver, and the CUDA runtime (libcudart) "
    "does not run on it, as it needs functions of the driver that are in no manual: call the "
    "driver instead, as cuda.core does; in Python also cuda.bindings.runtime, whose usual "
    "functions are there"
)

# The C types of settings of core dumps that are no texts.
_SETTING: Final = {bool: struct.Struct("?"), int: struct.Struct("<i")}
_TEXT_BYTES: Final = 1024  # of a name's memory

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
    "ACCESS_FLAGS": ctypes.c_uint,
}
_NARROW: Final = {
    int(getattr(CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")): c_type
    for name, c_type in _NARROW_BY_NAME.items()
}


@QUERIES("cuGetErrorName")
def error_name(api: Emulator, code: int, result: int) -> int:
    """Return the name of a result, null for an unknown one."""
    name = _NAMES.get(code)
    if name:
        tell_reason(api, code)
    put_size(result, _TEXTS.address(name.encode()) if name else 0)
    return 0 if name else INVALID_VALUE


@QUERIES("cuGetErrorString")
def error_string(api: Emulator, code: int, result: int) -> int:
    """Return the driver's text of a result, null for an unknown one."""
    if code not in _NAMES:
        put_size(result, 0)
        return INVALID_VALUE
    tell_reason(api, code)
    put_size(result, _TEXTS.address(result_text(CUresult(code)).encode()))
    return 0


def tell_reason(api: Emulator, code: int) -> None:
    """Print why this thread's last call failed, if it failed with this result; once each.

    A library that asks for the name or the text of a result is about to report it. Many show
    their own words in place of the text. What the emulator does not support is printed at once.
    """
    _, text = api.cuGetErrorString(CUresult(code))
    reason = (text or b"").decode(errors="replace")
    fault = api.last_fault
    is_reported = fault is not None and str(fault) in reason  # when it happened
    if reason == result_text(CUresult(code)) or is_reported or reason in _TOLD:
        return
    if len(_TOLD) < _MOST_TOLD:
        _TOLD.add(reason)
        write_error(f"cudadrv: {_NAMES[code]}: {reason}\n")


@QUERIES("cuGetExportTable")
def export_table(api: Emulator, result: int, uuid: int) -> int:
    """Reject a table of functions that have no names.

    The CUDA runtime does not work without its own table, which proves that the driver is NVIDIA's.
    So its user receives advice. Each table is reported once.
    """
    put_size(result, 0)
    name = UUID(bytes=bytes_at(uuid, 16))
    if name not in _REPORTED:
        _REPORTED.add(name)
        write_error(f"{_NO_RUNTIME if name == _OF_RUNTIME else _NO_TABLE.format(name)}\n")
    return int(CUresult.CUDA_ERROR_NOT_FOUND)


@QUERIES("cuCoredumpGetAttribute")
def coredump_setting(api: Emulator, attribute: int, result: int, size: int) -> int:
    """Return a setting of the current context; without memory for it, only its size."""
    return _put_setting(api, "cuCoredumpGetAttribute", attribute, result, size)


@QUERIES("cuCoredumpGetAttributeGlobal")
def global_coredump_setting(api: Emulator, attribute: int, result: int, size: int) -> int:
    """Same for a global setting."""
    return _put_setting(api, "cuCoredumpGetAttributeGlobal", attribute, result, size)


def _put_setting(api: Emulator, name: str, attribute: int, result: int, size: int) -> int:
    code, value = call(api, name, attribute)
    if code:
        return int(code)
    room = view_at(ctypes.c_size_t, size)
    data = value + b"\0" if isinstance(value, bytes) else _SETTING[type(value)].pack(value)
    if not result:
        room.value = _TEXT_BYTES if isinstance(value, bytes) else len(data)
        return 0
    if room.value < len(data):
        return INVALID_VALUE
    put_bytes(result, data)
    room.value = len(data)
    return 0


@QUERIES("cuCoredumpSetAttribute")
def set_coredump_setting(api: Emulator, attribute: int, value: int, size: int) -> int:
    """Change a setting of the current context."""
    return _set_setting(api, "cuCoredumpSetAttribute", attribute, value, size)


@QUERIES("cuCoredumpSetAttributeGlobal")
def set_global_coredump_setting(api: Emulator, attribute: int, value: int, size: int) -> int:
    """Change a global setting."""
    return _set_setting(api, "cuCoredumpSetAttributeGlobal", attribute, value, size)


def _set_setting(api: Emulator, name: str, attribute: int, value: int, size: int) -> int:
    """Pass a value on in the type of the present one."""
    code, present = call(api, "cuCoredumpGetAttributeGlobal", attribute)
    if code:
        return int(code)
    data = bytes_at(value, view_at(ctypes.c_size_t, size).value)
    if isinstance(present, bytes):
        return int(call(api, name, attribute, data.partition(b"\0")[0])[0])
    form = _SETTING[type(present)]
    if len(data) < form.size:
        return INVALID_VALUE
    return int(call(api, name, attribute, *form.unpack_from(data))[0])


@QUERIES("cuLogsDumpToFile")
def dump_log_to_file(api: Emulator, iterator: int, path: bytes, flags: int) -> int:
    """Write the log, and advance the iterator if there is one."""
    code, end = call(api, "cuLogsDumpToFile", _iterator_at(iterator), path, flags)
    if not code:
        put_uint(iterator, int(end))
    return int(code)


@QUERIES("cuLogsDumpToMemory")
def dump_log_to_memory(api: Emulator, iterator: int, buffer: int, size: int, flags: int) -> int:
    """Same to memory; the size becomes that of the messages."""
    arguments = _iterator_at(iterator), buffer, view_at(ctypes.c_size_t, size).value, flags
    code, end, nbytes = call(api, "cuLogsDumpToMemory", *arguments)
    if not code:
        put_uint(iterator, int(end))
        put_size(size, nbytes)
    return int(code)


def _iterator_at(address: int) -> int | None:
    return view_at(ctypes.c_uint, address).value if address else None


@QUERIES("cuDeviceGetName")
def device_name(api: Emulator, result: int, length: int, device: int) -> int:
    """Return the device's name."""
    return _put_text(api, "cuDeviceGetName", result, length, device)


@QUERIES("cuDeviceGetPCIBusId")
def device_bus_id(api: Emulator, result: int, length: int, device: int) -> int:
    """Return the device's PCI address."""
    return _put_text(api, "cuDeviceGetPCIBusId", result, length, device)


def _put_text(api: Emulator, name: str, result: int, length: int, device: int) -> int:
    code, text = call(api, name, min(length, _MOST_TEXT), device)
    if not code and length > 0:
        put_bytes(result, text.rstrip(b"\0")[: length - 1] + b"\0")
    return int(code)


@QUERIES("cuPointerGetAttribute")
def pointer_attribute(api: Emulator, result: int, attribute: int, address: int) -> int:
    """Return one attribute; memory unknown to the driver is an error (measured)."""
    kind = CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE
    range_code, values = call(api, "cuPointerGetAttributes", 1, (kind,), address)
    if range_code or not values[0]:
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
    numbers = ints_at(attributes, count)
    code, values = call(api, "cuPointerGetAttributes", count, numbers, address)
    if not code:
        for result, attribute, value in zip(sizes_at(results, count), numbers, values, strict=True):
            _put_attribute(result, attribute, value)
    return int(code)


@QUERIES("cuPointerSetAttribute")
def set_pointer_attribute(api: Emulator, value: int, attribute: int, address: int) -> int:
    """Set an attribute; that one that can be set is a boolean."""
    is_set = bool(view_at(ctypes.c_ubyte, value).value)
    return int(call(api, "cuPointerSetAttribute", is_set, attribute, address)[0])


def _put_attribute(result: int, attribute: int, value: Any) -> None:  # a number or a handle
    if not result:
        return
    narrow = _NARROW.get(attribute)
    if narrow is None:
        put_size(result, value)
    else:
        view_at(narrow, result).value = int(value)


@QUERIES("cuCtxGetDevice_v2")
def context_device(api: Emulator, result: int, context: int) -> int:
    """Return the device of a context."""
    if context:
        code = int(call(api, "cuCtxPushCurrent", context)[0])
        if code:
            return code
    code, device = api.cuCtxGetDevice()
    if context:
        api.cuCtxPopCurrent()
    if not code:
        view_at(ctypes.c_int, result).value = int(device)
    return int(code)


@QUERIES("cuOccupancyMaxPotentialBlockSize")
def block_of_most_threads(
    api: Emulator, grid: int, block: int, function: int, shared_of: int, shared: int, limit: int
) -> int:
    """Return the block size that fills a device with most threads, and the number of blocks."""
    code, device = call(api, "cuCtxGetDevice")
    if code:
        return int(code)
    code, max_threads = call(api, "cuFuncGetAttribute", _KERNEL_THREADS, function)
    if code:
        return int(code)
    size_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(shared_of) if shared_of else None
    best_size, best_blocks = 0, 0
    max_threads = min(max_threads, limit or max_threads)
    for warps in range(-(-max_threads // _WARP), 0, -1):
        size = min(max_threads, warps * _WARP)
        nbytes = shared if size_of is None else size_of(size)
        occupancy_function = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        code, blocks = call(api, occupancy_function, function, size, nbytes)
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
