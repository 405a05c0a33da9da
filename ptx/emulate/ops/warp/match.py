"""Which lanes of a warp hold the same value. PTX ISA, "match.sync"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.codegen.undefined_writer import BROUGHT, follow_exchange
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.warp.lane_sync import brought_by_any, brought_grid, sync_lanes
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Pair


def match_any(fibre: Fibre, group: Group, value: Value) -> Value:
    """`match.any`: the lanes that hold the thread's own value."""
    if not value.ndim and group.lanes is None:
        return group.each(group.members)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    found = np.zeros(grid.shape, dtype=np.uint32)
    for lane in range(WARP):
        found |= (grid == grid[:, lane : lane + 1]).astype(np.uint32) << np.uint32(lane)
    mine = found.reshape(-1).take(group.mine)
    return mine & group.each(group.members)


def match_all(fibre: Fibre, group: Group, value: Value) -> tuple[Value, Value]:
    """`match.all`: the group's lanes if all hold one value, else none; and whether they do."""
    members = group.members
    if not value.ndim and group.lanes is None:
        return group.each(members), np.bool_(True)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    if group.dense:
        alike = (grid == grid[:, :1]).all(axis=1)
    else:
        taken = group.present().reshape(-1, WARP)
        first = taken.argmax(axis=1)
        alike = ((grid == grid[np.arange(len(grid)), first][:, None]) | ~taken).all(axis=1)
    return group.each(np.where(alike, members, np.uint32(0))), group.each(alike)


def undefined_match(fibre: Fibre, group: Group, value: Value, undefined: Value) -> Value:
    """For each thread a read that `match.all` depends on, 0 where two defined lanes differ."""
    reads = brought_grid(fibre, group, undefined)
    known = group.present().reshape(-1, WARP) & (reads == 0)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    first = grid[np.arange(len(grid)), known.argmax(axis=1)]
    differs = (known & (grid != first[:, None])).any(axis=1)
    return group.each(np.where(differs, np.int32(0), reads.max(axis=1)))


def _any(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], type_suffix(i)))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    follow_exchange(e, i, i.operands[0], f"{e.helper(brought_by_any)}(f, {group}, {BROUGHT})")
    e.assign(i.operands[0], "b32", f"{e.helper(match_any)}(f, {group}, {value})")


def _all(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], type_suffix(i)))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    found = e.temporary(f"{e.helper(match_all)}(f, {group}, {value})")
    target = i.operands[0]
    reads = f"{e.helper(undefined_match)}(f, {group}, {value}, {BROUGHT})"
    follow_exchange(e, i, target, reads)
    if isinstance(target, Pair):
        e.assign(target.second, "pred", f"{found}[1]")
        target = target.first
    e.assign(target, "b32", f"{found}[0]")


for _mode, _emit in (("any", _any), ("all", _all)):
    operation(
        f"match.{_mode}.sync", ("b32", "b64"), 3, _emit, effect=Effect.SYNCS, section="match.sync"
    )
