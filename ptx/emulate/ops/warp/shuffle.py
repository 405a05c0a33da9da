"""Shuffles of a register among the lanes of a warp. PTX ISA, "shfl.sync"."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.codegen.undefined_writer import BROUGHT, follow_exchange
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.warp.lane_sync import sync_lanes
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Pair

MODES = ("up", "down", "bfly", "idx")
_LANES = np.arange(WARP, dtype=np.int64)


def source_lanes(
    mode: str, lane: Value, b: Value, c: Value
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The lane that each lane reads, and whether it lies in the segment.

    All are int64 arrays that broadcast. `c` has the clamp value in its low 5 bits and the segment
    mask in bits 8 to 12; a lane whose source is outside of its segment reads itself.
    """
    amount, clamp, segment = b & 31, c & 31, c >> 8 & 31
    least = lane & segment
    most = least | (clamp & ~segment)
    if mode == "up":
        source = lane - amount
        inside = source >= most
    else:
        if mode == "down":
            source = lane + amount
        elif mode == "bfly":
            source = lane ^ amount
        else:
            source = least | (amount & ~segment)
        inside = source <= most
    return np.where(inside, source, lane), inside


@lru_cache(maxsize=1024)  # modes by the constants that occur in kernels
def _table(mode: str, b: int, c: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return source_lanes(mode, _LANES, b, c)


@lru_cache(maxsize=64)  # as above, for chunks of as many whole warps
def _dense(mode: str, b: int, c: int, rows: int) -> tuple[Index, NDArray[np.bool_]]:
    table, flags = _table(mode, b, c)
    first = np.arange(rows, dtype=np.intp)[:, None] * WARP
    return (first + table).reshape(-1), np.tile(flags, rows)


def _sources(group: Group, mode: str, b: Value, c: Value) -> tuple[Index, NDArray[np.bool_]]:
    """(n,) the place in the grid that each thread reads, and the predicate."""
    key = None
    if not b.ndim and not c.ndim:
        key = (mode, int(b) & 31, int(c) & 0x1F1F)
        if group.dense:
            return _dense(*key, group.rows)
        found: tuple[Index, NDArray[np.bool_]] | None = group.recall(key)
        if found is not None:
            return found
        table, flags = _table(*key)
        lane = group.mine & (WARP - 1)
        found = group.mine - lane + table.take(lane), flags.take(lane)
        group.remember(key, found)
        return found
    lane = (group.mine & (WARP - 1)).astype(np.int64)
    source, inside = source_lanes(mode, lane, b.astype(np.int64), c.astype(np.int64))
    return (group.mine - lane) + source, inside


def shuffle(
    fibre: Fibre, group: Group, mode: str, a: Value, b: Value, c: Value, name: str = "a"
) -> tuple[Value, Value]:
    """`shfl.sync`: what each thread reads, and whether its source was in its segment.

    `a` is what the fibre's lanes brought under `name`. A lane that takes no part gives zero, as the
    hardware does; the ISA leaves it open.
    """
    where, inside = _sources(group, mode, b, c)
    if not a.ndim and group.dense:
        return a, inside
    return group.grid(fibre, name, a).take(where, mode="clip"), inside


def _emit(e: Emitter, i: Instruction) -> None:
    mode = i.modifiers[1]
    target, *sources, mask = i.operands
    a, b, c = (e.temporary(e.value(operand, "u32")) for operand in sources)
    group = sync_lanes(e, i, mask, {"a": a})
    call = f"{e.helper(shuffle)}(f, {group}, {mode!r}"
    found = e.temporary(f"{call}, {a}, {b}, {c})")
    own = tuple(sources[1:])
    if isinstance(target, Pair):
        follow_exchange(e, i, target.second, e.constant(0, "s32"), own)
        e.assign(target.second, "pred", f"{found}[1]")
        target = target.first
    follow_exchange(e, i, target, f"{call}, {BROUGHT}, {b}, {c}, {BROUGHT!r})[0]", own)
    e.assign(target, "b32", f"{found}[0]")


for _mode in MODES:
    operation(f"shfl.sync.{_mode}", ("b32",), 5, _emit, effect=Effect.SYNCS, section="shfl.sync")
