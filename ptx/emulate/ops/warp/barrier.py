"""Barriers of a block, and memory fences. PTX ISA, "bar", "barrier", "membar", "fence"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.block_barrier import Counts
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.memory.late_store import publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction, Operand

_SECTION = "barrier"


def _number_and_count(e: Emitter, operands: tuple[Operand, ...]) -> tuple[str, str]:
    """The barrier's number and how many threads it expects."""
    values = [e.value(operand, "u32") for operand in operands]
    return values[0], values[1] if len(values) > 1 else "None"


def _sync(e: Emitter, i: Instruction) -> None:
    number, count = _number_and_count(e, i.operands)
    e.leave(f"f.scheduler.waiting.block_barriers.sync(f, {number}, {count}, {e.following})")


def _arrive(e: Emitter, i: Instruction) -> None:
    number, count = _number_and_count(e, i.operands)
    e.line(f"f.scheduler.waiting.block_barriers.arrive(f, {number}, {count}, {e.here})")


def verdict(fibre: Fibre, votes: tuple[Counts, Counts], mode: str) -> Value:
    """What `barrier.red` gives each thread, from how many flags hold in each block, and of all."""
    held, total = votes
    if mode == "popc":
        by_block: Value = held.astype(np.uint32)
    else:
        by_block = held == total if mode == "and" else held > 0
    if (by_block == by_block[0]).all():
        return by_block[0]
    return by_block.take(fibre.place("slot"))


def _reduce(e: Emitter, i: Instruction) -> None:
    target, *place, flag = i.operands
    number, count = _number_and_count(e, tuple(place))
    mode = next(word for word in i.modifiers if word in ("popc", "and", "or"))
    value = e.value(flag, "pred")
    votes = e.temporary(
        f"f.scheduler.waiting.block_barriers.reduce(f, {number}, {count}, {e.here}, {value})"
    )
    e.line(f"if {votes} is None: return -1")
    kind = "u32" if mode == "popc" else "pred"
    e.assign(target, kind, f"{e.helper(verdict)}(f, {votes}, {mode!r})")


for _name in ("bar", "bar.cta", "barrier", "barrier.cta"):
    operation(
        f"{_name}.sync", ("",), (1, 2), _sync, effect=Effect.ENDS, modifiers=["aligned"],
        writes=0, section=_SECTION,
    )  # fmt: skip
    operation(
        f"{_name}.arrive", ("",), 2, _arrive, effect=Effect.SYNCS, modifiers=["aligned"],
        writes=0, section=_SECTION,
    )  # fmt: skip
    for _mode, _type in (("popc", "u32"), ("and", "pred"), ("or", "pred")):
        operation(
            f"{_name}.red.{_mode}", (_type,), (3, 4), _reduce, effect=Effect.SYNCS,
            modifiers=["aligned"], section=_SECTION,
        )  # fmt: skip


def note_fence(fibre: Fibre, scope: str) -> None:
    """Tell what looks for races of a fence; every access is done at once, so it orders nothing."""
    if fibre.blocks.races is not None:
        fibre.blocks.races.order.fence(fibre.lane_numbers(), scope)


def note_proxy_fence(fibre: Fibre, kind: str) -> None:
    """Tell what looks for races of a proxy fence."""
    if fibre.blocks.races is not None:
        fibre.blocks.races.order.fence_proxy(fibre.lane_numbers(), kind)


def _proxy_fence(e: Emitter, i: Instruction) -> None:
    """Accesses through other proxies see what was written before anyway."""
    words = set(i.modifiers)
    if words & {"async", "async::generic"} and "sync_restrict::shared::cluster::read" not in words:
        shared = words & {"shared::cta", "shared::cluster"}
        spaces = ["shared"] if shared or "async::generic" in words else ["shared", "global"]
        for space in ["global"] if "global" in words else spaces:
            e.line(f"{e.helper(note_proxy_fence)}(f, {space!r})")


def _fence(e: Emitter, i: Instruction) -> None:
    facts = facts_of(i)
    e.line(f"{e.helper(note_fence)}(f, {facts.scope!r})")
    if e.late.stores and facts.publishes:
        e.line(f"{e.helper(publish)}(f)")


_SCOPES = ("cta", "cluster", "gpu", "sys")
operation(
    "membar", ("",), 0, _fence, effect=Effect.MEMORY, modifiers=["cta", "gl", "sys"], writes=0,
    section="membar",
)  # fmt: skip
operation(
    "fence", ("",), 0, _fence, effect=Effect.MEMORY, writes=0, section="fence",
    modifiers=[
        "sc", "acq_rel", "acquire", "release", "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster", *_SCOPES,
    ],
)  # fmt: skip
operation(
    "fence.proxy", ("",), 0, _proxy_fence, effect=Effect.MEMORY, writes=0, section="fence",
    modifiers=["alias", "async", "async.global", "async.shared::cta", "async.shared::cluster",
               "global", "shared::cta", "shared::cluster", "generic"],
)  # fmt: skip
operation(
    "fence.proxy.async::generic", ("",), 0, _proxy_fence, effect=Effect.MEMORY, writes=0,
    section="fence",
    modifiers=["acquire", "release", "sync_restrict::shared::cta", "sync_restrict::shared::cluster",
               "sync_restrict::shared::cluster::read", *_SCOPES],
)  # fmt: skip
# It orders objects that were made, and is taken here for a fence of all.
operation(
    "fence.mbarrier_init", ("",), 0, _fence, effect=Effect.MEMORY, writes=0, section="fence",
    modifiers=["release", "cluster"],
)  # fmt: skip
operation(
    "membar.proxy", ("",), 0, _proxy_fence, effect=Effect.MEMORY, writes=0, section="membar",
    modifiers=["alias", "async", "async.global"],
)  # fmt: skip
