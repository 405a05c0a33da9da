"""How many blocks of a kernel a multiprocessor holds at once, and what limits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..driver._api import CUdevice_attribute
from .profiles import device_attributes

if TYPE_CHECKING:
    from .counters import CountedLaunch
    from .profiles import EmulatedDevice

_WARP: Final = 32
_REGISTERS_AT_ONCE: Final = 256  # a warp's registers are allocated in these units
_WARPS_AT_ONCE: Final = 4
_SHARED_AT_ONCE: Final = 128


@dataclass(frozen=True, slots=True)
class OccupancyLimit:
    """How many blocks one resource of a multiprocessor allows.

    Attributes:
        resource: "blocks", "threads", "registers" or "shared memory".
        formula: with its numbers.
        blocks: the result.
    """

    resource: str
    formula: str
    blocks: int


def _rounded_up(value: int, step: int) -> int:
    """Return the next multiple of `step`."""
    return -(-value // step) * step


def most_registers(attributes: Mapping[int, int], threads: int, blocks: int) -> int:
    """Return registers per thread with which `blocks` blocks of `threads` fit a multiprocessor."""
    block = attributes[int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)]
    shared = attributes[
        int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
    ]
    warps = -(-threads // _WARP)
    together = _rounded_up(warps * blocks, _WARPS_AT_ONCE)
    registers = min(block // warps, shared // together)  # of a warp
    return registers // _REGISTERS_AT_ONCE * _REGISTERS_AT_ONCE // _WARP


def blocks_per_sm(
    attributes: Mapping[int, int], threads: int, registers: int, shared_bytes: int
) -> int:
    """Return how many blocks of `threads` threads a multiprocessor holds at once.

    `registers` is per thread; `shared_bytes` static and dynamic shared memory of a block.
    """
    if threads > attributes[int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)]:
        return 0
    return min(_block_limits(attributes, threads, registers, shared_bytes).values())


def _block_limits(
    attributes: Mapping[int, int], threads: int, registers: int, shared_bytes: int
) -> dict[str, int]:
    """Return how many blocks each resource of a multiprocessor allows, by the resource."""

    def attribute(attribute_key: CUdevice_attribute) -> int:
        return attributes[int(attribute_key)]

    warps = -(-threads // _WARP)
    limits = {
        "blocks": attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        "threads": attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
        // _WARP
        // warps,
    }
    if registers:
        all_registers = attribute(
            CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR
        )
        warps_of_registers = all_registers // _rounded_up(registers * _WARP, _REGISTERS_AT_ONCE)
        limits["registers"] = warps_of_registers // _WARPS_AT_ONCE * _WARPS_AT_ONCE // warps
    reserved = attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
    shared = _rounded_up(shared_bytes + reserved, _SHARED_AT_ONCE)
    if shared:
        limits["shared memory"] = (
            attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
            // shared
        )
    return limits


def occupancy_limits(
    launch: CountedLaunch, device: EmulatedDevice, shared: int
) -> tuple[OccupancyLimit, ...]:
    """Return the limits of a launch whose blocks have so much shared memory, with their formulas.

    The least one is the launch's occupancy.
    """
    values = device_attributes(device, 0)

    def value(name: str) -> int:
        return values[int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"))]

    x, y, z = launch.block
    registers = launch.occupancy.registers
    warps = -(-(x * y * z) // _WARP)
    of_warp = _rounded_up(registers * _WARP, _REGISTERS_AT_ONCE)
    all_registers = value("MAX_REGISTERS_PER_MULTIPROCESSOR")
    reserved = value("RESERVED_SHARED_MEMORY_PER_BLOCK")
    of_block = _rounded_up(shared + reserved, _SHARED_AT_ONCE)
    held = all_registers // of_warp // _WARPS_AT_ONCE * _WARPS_AT_ONCE
    formulas = {
        "blocks": f"{value('MAX_BLOCKS_PER_MULTIPROCESSOR'):,} blocks per multiprocessor",
        "threads": (
            f"⌊{value('MAX_THREADS_PER_MULTIPROCESSOR') // _WARP:,} warps per multiprocessor / "
            f"{_counted(warps, 'warp')} per block⌋"
        ),
        "registers": (
            f"{registers:,} registers × {_WARP} threads, rounded up to {_REGISTERS_AT_ONCE}: "
            f"{of_warp:,} per warp. ⌊{all_registers:,} / {of_warp:,}⌋ rounded down to "
            f"{_WARPS_AT_ONCE}: {held:,} warps. ⌊{held:,} / {_counted(warps, 'warp')} per block⌋"
        ),
        "shared memory": (
            f"{shared:,} + {reserved:,} reserved bytes, rounded up to {_SHARED_AT_ONCE}: "
            f"{of_block:,} per block. "
            f"⌊{value('MAX_SHARED_MEMORY_PER_MULTIPROCESSOR'):,} / {of_block:,}⌋"
        ),
    }
    limits = _block_limits(values, x * y * z, registers, shared)
    return tuple(OccupancyLimit(name, formulas[name], blocks) for name, blocks in limits.items())


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
