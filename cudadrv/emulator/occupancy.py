"""How many blocks of a kernel fit on a multiprocessor.

CUDA Programming Guide, "Occupancy Calculator"; the granularities are those of compute capability
7.0 and newer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..driver._api import CUdevice_attribute

if TYPE_CHECKING:
    from .device_state import DeviceState
    from .modules import Function

_WARP = 32
_REGISTERS_AT_ONCE = 256  # a warp's registers are taken in these pieces
_WARPS_AT_ONCE = 4
_SHARED_AT_ONCE = 128
_MOST_REGISTERS: Final = 255
_LEAST_REGISTERS: Final = 16


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def most_registers(attributes: Mapping[int, int], threads: int, blocks: int) -> int:
    """Registers a thread with which `blocks` blocks of `threads` threads fit a multiprocessor."""
    block = attributes[int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)]
    shared = attributes[
        int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
    ]
    warps = -(-threads // _WARP)
    together = _up(warps * blocks, _WARPS_AT_ONCE)
    each = min(block // warps, shared // together)  # of a warp
    return each // _REGISTERS_AT_ONCE * _REGISTERS_AT_ONCE // _WARP


def blocks_per_sm(
    attributes: Mapping[int, int], threads: int, registers: int, shared_bytes: int
) -> int:
    """Blocks of `threads` threads that a multiprocessor holds at once, 0 if not one.

    `registers` is of a thread; `shared_bytes` static and dynamic shared memory of a block.
    """

    def attribute(which: CUdevice_attribute) -> int:
        return attributes[int(which)]

    if threads > attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK):
        return 0
    warps = -(-threads // _WARP)
    most = [
        attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
        // _WARP
        // warps,
    ]
    if registers:
        all_registers = attribute(
            CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR
        )
        held = all_registers // _up(registers * _WARP, _REGISTERS_AT_ONCE)
        most.append(held // _WARPS_AT_ONCE * _WARPS_AT_ONCE // warps)
    reserved = attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
    shared = _up(shared_bytes + reserved, _SHARED_AT_ONCE)
    if shared:
        most.append(
            attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
            // shared
        )
    return min(most)


def registers_of(function: Function, device: DeviceState) -> int:
    """Registers a thread: the estimate, as far as the kernel's own limits allow.

    These are `__maxnreg__`, and that the blocks which `__launch_bounds__` asks for fit, else one of
    the largest size (PTX ISA, "Performance-Tuning Directives").
    """
    directives = function.directives
    threads = function.signature.max_threads or device.model.max_threads_per_block
    (blocks,) = directives.get("minnctapersm", (1,))
    (most,) = directives.get("maxnreg", (_MOST_REGISTERS,))
    room = most_registers(device.attributes, threads, max(blocks, 1))
    return max(min(function.kernel().registers, most, room), _LEAST_REGISTERS)
