"""Special registers. PTX ISA, "Special Registers"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import ThreadBlocks
from ptx.emulate.threads.launch_plan import LaunchPlan

_PLACES = ("tid.x", "tid.y", "tid.z", "laneid", "warpid")
_AXES = ("x", "y", "z")
_PERFORMANCE = tuple(f"pm{n}" for n in range(8))
_ZERO = frozenset(
    {"tid.w", "ctaid.w", "gridid", "nctaid.w", "clusterid.w", "cluster_ctaid.w",
     "smem_reserved", "current_graph_exec", *_PERFORMANCE,
     *(f"envreg{n}" for n in range(32) if n not in (1, 2))}
)  # fmt: skip
_CLUSTER = frozenset(
    {
        "cluster_ctarank",
        "cluster_nctarank",
        "is_explicit_cluster",
        *(
            f"{stem}.{axis}"
            for axis in _AXES
            for stem in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
        ),
    }
)
_MOST_WARPS = 64  # of a multiprocessor
_MOST_TIME = 0xFFFF_FFFF_FFFF_FFFF
_TIME_OF_SEED = 0x9E37_79B9_7F4A_7C15  # odd, so that a seed changes all bits
_MOST_RATE = 1000  # by which a seed makes clocks faster
# Of GPUs from compute capability 7.0 on.
_MULTIPROCESSORS = (
    8, 14, 16, 20, 22, 24, 28, 30, 34, 36, 38, 40, 46, 48, 50, 58, 60, 66, 68, 70, 72, 76, 78, 80,
    82, 84, 108, 114, 128, 132, 142, 144, 148, 152, 160, 170, 188,
)  # fmt: skip
RESERVED_BYTES = 1024  # CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK
# The bounds of the reserved shared memory, and two offsets in it. Cooperative groups exchange
# values of large tiles at the second one. Measured on an H100.
_RESERVED = {
    "reserved_smem_offset_begin": 0,
    "reserved_smem_offset_end": 288,
    "reserved_smem_offset_0": 0,
    "reserved_smem_offset_1": 0,
}
_SHARED_UNIT = 128  # in which a block's shared memory is given out
# The address of a cooperative grid's workspace: NVRTC's grid synchronisation reads it here.
_WORKSPACE = {"envreg1": 32, "envreg2": 0}
_WIDE = frozenset({"clock64", "globaltimer", "gridid", "current_graph_exec"})
_TIMES = frozenset(
    {"clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"}
)
_MASKS = frozenset(f"lanemask_{kind}" for kind in ("eq", "le", "lt", "ge", "gt"))
_COUNTS = frozenset(
    {"nsmid", "smid", "warpsize", "nwarpid", "dynamic_smem_size", "total_smem_size",
     "aggr_smem_size", "ntid.w", "reserved_smem_offset_cap"}
)  # fmt: skip


def known_special(name: str) -> str | None:
    """The kind of a special register, None if the emulator does not have it."""
    bare = name.removeprefix("%")
    if bare in _WIDE:
        return "u64"
    stem, _, axis = bare.partition(".")
    if axis in _AXES and stem in ("tid", "ntid", "ctaid", "nctaid"):
        return "u32"
    of_32_bits = _ZERO | _CLUSTER | _TIMES | _MASKS | _COUNTS | {*_PLACES, *_WORKSPACE, *_RESERVED}
    return "u32" if bare in of_32_bits else None


def special_value(blocks: ThreadBlocks, launch: LaunchPlan, name: str) -> tuple[Value, bool]:
    """The register's value for each lane of a chunk, and whether it never changes."""
    if name == "warpid" and launch.limits.hardware_seed:
        # Warps of one group stay one.
        moved = blocks.geometry.array(name) + np.uint32(4 * (1 + launch.limits.hardware_seed % 7))
        return moved % np.uint32(_MOST_WARPS), True
    if name in _PLACES:
        return blocks.geometry.array(name), True
    if name in _TIMES:
        return _time(blocks, launch, name), False
    if name in _MASKS:
        return _lane_mask(blocks, name.removeprefix("lanemask_")), True
    stem, _, axis = name.partition(".")
    if name in _CLUSTER:
        return _cluster_value(blocks, launch, stem, axis), True
    if name in _WORKSPACE:
        launch.lacks_workspace |= not launch.workspace
        return np.uint32(launch.workspace >> _WORKSPACE[name] & 0xFFFFFFFF), True
    if name in _RESERVED:
        return np.uint32(launch.reserved_start + _RESERVED[name]), True
    if name == "smid":
        numbers = _numbers(blocks) + launch.limits.hardware_seed
        return _by_block(blocks, numbers % _present(launch)), True
    if axis in _AXES:
        dimension = _AXES.index(axis)
        if stem == "ntid":
            return np.uint32(blocks.geometry.block[dimension]), True
        if stem == "nctaid":
            return np.uint32(launch.grid[dimension]), True
        if stem == "ctaid":
            return _block_number(blocks, launch, dimension), True
    if name in _WIDE:
        return np.uint64(launch.limits.hardware_seed if name == "gridid" else 0), True
    return np.uint32(_count(launch, name)), True


def _count(launch: LaunchPlan, name: str) -> int:
    """Return a register that is equal for all threads; 0 for those without meaning here."""
    shared = launch.code.shared_bytes + launch.dynamic_shared
    reserved = RESERVED_BYTES if launch.device.compute_capability >= (8, 0) else 0
    seed = launch.limits.hardware_seed
    counts = {
        "nsmid": _present(launch),
        **(dict.fromkeys(_PERFORMANCE, seed) if seed else {}),
        "warpsize": launch.device.warp_size,
        "nwarpid": _MOST_WARPS - (16 if seed else 0),
        "dynamic_smem_size": launch.dynamic_shared,
        "total_smem_size": -(-shared // _SHARED_UNIT) * _SHARED_UNIT,
        "aggr_smem_size": shared + reserved,
        "ntid.w": 1,
        "reserved_smem_offset_cap": RESERVED_BYTES,
    }
    return counts.get(name, 0)


def _present(launch: LaunchPlan) -> int:
    """Return the number of multiprocessors; a seed makes it that of another GPU."""
    seed = launch.limits.hardware_seed
    return _MULTIPROCESSORS[seed % len(_MULTIPROCESSORS)] if seed else launch.device.sm_count


def _numbers(blocks: ThreadBlocks) -> Index:
    """The numbers in the launch of the chunk's blocks."""
    return blocks.first + np.arange(blocks.geometry.blocks, dtype=np.intp)


def _by_block(
    blocks: ThreadBlocks, values: NDArray[Any], ptx_type: type[np.unsignedinteger[Any]] = np.uint32
) -> Value:
    """Return for each lane its block's value."""
    by_block = values.astype(ptx_type)
    if (by_block == by_block[0]).all():
        return by_block[0]
    return by_block.take(blocks.geometry.index("slot"), mode="clip")


def _block_number(blocks: ThreadBlocks, launch: LaunchPlan, axis: int) -> Value:
    grid, count = launch.grid, blocks.geometry.blocks
    if grid[axis] == 1:
        return np.uint32(0)
    if count == 1:
        return np.uint32(blocks.cluster.block(blocks.first)[axis])
    first = blocks.first % grid[0]
    if axis == 0 and first + count <= grid[0] and blocks.cluster.extent[1:] == (1, 1):
        return blocks.geometry.array("slot32") + np.uint32(first)
    return _by_block(blocks, blocks.cluster.along(axis, _numbers(blocks)))


def _cluster_value(blocks: ThreadBlocks, launch: LaunchPlan, stem: str, axis: str) -> Value:
    """A special register that describes clusters."""
    shape = blocks.cluster
    dimension = "xyz".find(axis)
    counts = {
        "nclusterid": shape.clusters[dimension],
        "cluster_nctaid": shape.extent[dimension],
        "cluster_nctarank": shape.blocks,
        "is_explicit_cluster": launch.is_cluster,
    }
    if stem in counts:
        return np.uint32(counts[stem])
    numbers = _numbers(blocks)
    if stem == "clusterid":
        return _by_block(blocks, shape.cluster_along(dimension, numbers))
    if stem == "cluster_ctaid":
        return _by_block(blocks, shape.rank_along(dimension, numbers))
    return _by_block(blocks, numbers % shape.blocks)  # cluster_ctarank


def _lane_mask(blocks: ThreadBlocks, kind: str) -> Value:
    own_bit = np.uint32(1) << np.asarray(blocks.geometry.array("laneid"), dtype=np.uint32)
    below = own_bit - np.uint32(1)
    masks = {
        "eq": own_bit,
        "lt": below,
        "le": below | own_bit,
        "ge": ~below,
        "gt": ~(below | own_bit),
    }
    return masks[kind]


def _time(blocks: ThreadBlocks, launch: LaunchPlan, name: str) -> Value:
    seed = launch.limits.hardware_seed
    rate = 1 + seed % _MOST_RATE
    if name.startswith("globaltimer"):
        # Another second, minute, hour and day.
        now = launch.clock.nanoseconds() * rate + seed * _TIME_OF_SEED & _MOST_TIME
        if name == "globaltimer":
            return np.uint64(now)
    else:
        now = launch.clock.ticks() * rate + seed & _MOST_TIME
        if seed:
            # Each multiprocessor has a clock of its own.
            own = _numbers(blocks).astype(np.uint64) * np.uint64(_TIME_OF_SEED) >> np.uint64(40)
            times = own + np.uint64(now)
            if name == "clock64":
                return _by_block(blocks, times, np.uint64)
            part = times >> np.uint64(32 if name == "clock_hi" else 0)
            return _by_block(blocks, part & np.uint64(0xFFFFFFFF))
        if name == "clock64":
            return np.uint64(now)
    return np.uint32(now >> 32 & 0xFFFFFFFF if name.endswith("hi") else now & 0xFFFFFFFF)
