"""Votes, the election of a lane, and waiting for lanes without an exchange.

PTX ISA, "vote.sync", "activemask", "elect.sync", "bar.warp.sync".
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.codegen.undefined_writer import BROUGHT, follow_exchange
from ptx.emulate.exec.sync.warp_group import Group, group_of, packed
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.warp.lane_sync import brought_by_any, brought_grid, sync_lanes
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Pair

_FULL = np.uint32(0xFFFFFFFF)


def ballot(fibre: Fibre, group: Group, flag: Value) -> Value:
    """`vote.ballot`: the lanes whose predicate holds, as bits."""
    if not flag.ndim and group.dense:
        return _FULL if flag else np.uint32(0)
    return group.each(packed(group.grid(fibre, "flag", flag, fill=False)))


def vote(fibre: Fibre, group: Group, mode: str, flag: Value) -> Value:
    """`vote`: whether the predicate holds in all lanes, in any, or is the same in all (`uni`)."""
    if not flag.ndim and group.dense:
        return np.bool_(True) if mode == "uni" else flag
    set_bits = packed(group.grid(fibre, "flag", flag, fill=False))
    if mode == "any":
        return group.each(set_bits != 0)
    found = set_bits == group.members
    if mode == "uni":
        found |= set_bits == 0
    return group.each(found)


def undefined_vote(fibre: Fibre, group: Group, mode: str, flag: Value, undefined: Value) -> Value:
    """For each thread a read that the result of `vote` depends on, 0 where defined lanes decide."""
    reads = brought_grid(fibre, group, undefined)
    known = group.present().reshape(-1, WARP) & (reads == 0)
    holds = group.grid(fibre, "flag", flag, fill=False).reshape(-1, WARP)
    some, others = (known & holds).any(axis=1), (known & ~holds).any(axis=1)
    decided = {"any": some, "all": others, "uni": some & others}[mode]
    return group.each(np.where(decided, np.int32(0), reads.max(axis=1)))


def active_lanes(fibre: Fibre) -> Value:
    """`activemask`: the lanes of the warp that are at this place together."""
    exchange, fibre.exchange = fibre.exchange, None
    group = group_of(fibre, _FULL)
    fibre.exchange = exchange
    return _FULL if group.dense else group.each(group.members)


def elect(group: Group) -> tuple[Value, Value]:
    """`elect.sync`: the lowest lane of the group, and whether a thread is that one."""
    members = group.members
    lowest_bit = members & (~members + np.uint32(1))
    lowest = (np.frexp(lowest_bit.astype(np.float64))[1] - 1).astype(np.uint32)
    leader: Value = group.each(lowest)
    return leader, leader == (group.mine & (WARP - 1))


def _ballot(e: Emitter, i: Instruction) -> None:
    flag = e.temporary(e.value(i.operands[1], "pred"))
    group = sync_lanes(e, i, i.operands[2], {"flag": flag})
    follow_exchange(e, i, i.operands[0], f"{e.helper(brought_by_any)}(f, {group}, {BROUGHT})")
    e.assign(i.operands[0], "b32", f"{e.helper(ballot)}(f, {group}, {flag})")


def _vote(e: Emitter, i: Instruction) -> None:
    flag = e.temporary(e.value(i.operands[1], "pred"))
    group = sync_lanes(e, i, i.operands[2], {"flag": flag})
    taken = f"(f, {group}, {i.modifiers[1]!r}, {flag}"
    follow_exchange(e, i, i.operands[0], f"{e.helper(undefined_vote)}{taken}, {BROUGHT})")
    e.assign(i.operands[0], "pred", f"{e.helper(vote)}{taken})")


def _active_mask(e: Emitter, i: Instruction) -> None:
    e.assign(i.operands[0], "b32", f"{e.helper(active_lanes)}(f)")


def _elect(e: Emitter, i: Instruction) -> None:
    group = sync_lanes(e, i, i.operands[1], {})
    found = e.temporary(f"{e.helper(elect)}({group})")
    target = i.operands[0]
    if isinstance(target, Pair):
        e.assign(target.second, "pred", f"{found}[1]")
        target = target.first
    e.assign(target, "b32", f"{found}[0]")


def _sync_only(e: Emitter, i: Instruction) -> None:
    sync_lanes(e, i, i.operands[0], {})


operation("vote.sync.ballot", ("b32",), 3, _ballot, effect=Effect.SYNCS, section="vote.sync")
for _mode in ("all", "any", "uni"):
    operation(f"vote.sync.{_mode}", ("pred",), 3, _vote, effect=Effect.SYNCS, section="vote.sync")
# Which lanes are together is known only where no lane is absent: in a block of its own.
operation("activemask", ("b32",), 1, _active_mask, effect=Effect.MEMORY, section="activemask")
operation("elect.sync", ("",), 2, _elect, effect=Effect.SYNCS, section="elect.sync")
operation(
    "bar.warp.sync", ("",), 1, _sync_only, effect=Effect.SYNCS, writes=0, section="bar.warp.sync"
)
