"""Barriers and fences of blocks and clusters, and dependencies between grids.

PTX ISA, "bar", "barrier", "barrier.cluster", "mapa", "getctarank", "fence", "membar",
"griddepcontrol". Only in an ordered launch does a grid begin before the one it depends on has
ended: else nothing waits.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.sync.block_barrier import Counts
from ptx.emulate.memory.generic_addresses import map_address, rank_of
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.data_movement import publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Operand

_operation = partial(operation, section="barrier")


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
    """Return each thread's result of `barrier.red`, from each block's true flags and all flags."""
    true_count, total = votes
    if mode == "popc":
        by_block: Value = true_count.astype(np.uint32)
    else:
        by_block = true_count == total if mode == "and" else true_count > 0
    if (by_block == by_block[0]).all():
        return by_block[0]
    return by_block.take(fibre.place("slot"))


def _reduce(e: Emitter, i: Instruction) -> None:
    target, *barrier_operands, flag = i.operands
    number, count = _number_and_count(e, tuple(barrier_operands))
    mode = next(word for word in i.modifiers if word in ("popc", "and", "or"))
    value = e.value(flag, "pred")
    votes = e.temporary(
        f"f.scheduler.waiting.block_barriers.reduce(f, {number}, {count}, {e.here}, {value})"
    )
    e.line(f"if {votes} is None: return -1")
    kind = "u32" if mode == "popc" else "pred"
    e.assign(target, kind, f"{e.helper(verdict)}(f, {votes}, {mode!r})")


for _name in ("bar", "bar.cta", "barrier", "barrier.cta"):
    _operation(
        f"{_name}.sync", ("",), (1, 2), _sync, effect=Effect.ENDS, modifiers=["aligned"], writes=0
    )
    _operation(
        f"{_name}.arrive", ("",), 2, _arrive, effect=Effect.SYNCS, modifiers=["aligned"], writes=0
    )
    for _mode, _type in (("popc", "u32"), ("and", "pred"), ("or", "pred")):
        _operation(
            f"{_name}.red.{_mode}",
            (_type,),
            (3, 4),
            _reduce,
            effect=Effect.SYNCS,
            modifiers=["aligned"],
        )


def note_fence(fibre: Fibre, scope: str) -> None:
    """Report a fence; accesses are done at once, so it orders nothing itself."""
    for observer in fibre.blocks.order_observers:
        observer.fence(fibre.lane_numbers(), scope)


def note_proxy_fence(fibre: Fibre, kind: str) -> None:
    """Report a proxy fence."""
    for observer in fibre.blocks.order_observers:
        observer.fence_proxy(fibre.lane_numbers(), kind)


def _proxy_fence(e: Emitter, i: Instruction) -> None:
    """Do nothing: accesses through other proxies see earlier writes anyway."""
    words = set(i.modifiers)
    if words & {"async", "async::generic"} and "sync_restrict::shared::cluster::read" not in words:
        shared = words & {"shared::cta", "shared::cluster"}
        spaces = ["shared"] if shared or "async::generic" in words else ["shared", "global"]
        for space in ["global"] if "global" in words else spaces:
            e.line(f"{e.helper(note_proxy_fence)}(f, {space!r})")


def _fence(e: Emitter, i: Instruction) -> None:
    facts = i.facts
    e.line(f"{e.helper(note_fence)}(f, {facts.scope!r})")
    if e.late.stores and facts.publishes:
        e.line(f"{e.helper(publish)}(f)")


_SCOPES = ("cta", "cluster", "gpu", "sys")
operation(
    "membar",
    ("",),
    0,
    _fence,
    effect=Effect.MEMORY,
    modifiers=["cta", "gl", "sys"],
    writes=0,
    section="membar",
)
operation(
    "fence",
    ("",),
    0,
    _fence,
    effect=Effect.MEMORY,
    writes=0,
    section="fence",
    modifiers=[
        "sc",
        "acq_rel",
        "acquire",
        "release",
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
        *_SCOPES,
    ],
)
operation(
    "fence.proxy", ("",), 0, _proxy_fence, effect=Effect.MEMORY, writes=0, section="fence",
    modifiers=["alias", "async", "async.global", "async.shared::cta", "async.shared::cluster",
               "global", "shared::cta", "shared::cluster", "generic"],
)  # fmt: skip
operation(
    "fence.proxy.async::generic",
    ("",),
    0,
    _proxy_fence,
    effect=Effect.MEMORY,
    writes=0,
    section="fence",
    modifiers=[
        "acquire",
        "release",
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
        "sync_restrict::shared::cluster::read",
        *_SCOPES,
    ],
)
# It orders objects that were made, and is taken here for a fence of all.
operation(
    "fence.mbarrier_init",
    ("",),
    0,
    _fence,
    effect=Effect.MEMORY,
    writes=0,
    section="fence",
    modifiers=["release", "cluster"],
)
operation(
    "membar.proxy",
    ("",),
    0,
    _proxy_fence,
    effect=Effect.MEMORY,
    writes=0,
    section="membar",
    modifiers=["alias", "async", "async.global"],
)


def _map(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    address, rank = e.value(i.operands[1], kind), e.value(i.operands[2], "u32")
    blocks = "f.blocks.launch.cluster.blocks"
    e.assign(i.operands[0], kind, f"{e.helper(map_address)}({address}, {rank}, {blocks})")


def _rank(e: Emitter, i: Instruction) -> None:
    address = e.value(i.operands[1], type_suffix(i))
    e.assign(i.operands[0], "u32", f"{e.helper(rank_of)}({address}, f.special('cluster_ctarank'))")


def _arrive_cluster(e: Emitter, i: Instruction) -> None:
    releases = "relaxed" not in i.modifiers
    e.line(f"f.scheduler.waiting.cluster_barriers.arrive(f, {e.here}, releases={releases})")


def _wait_cluster(e: Emitter, i: Instruction) -> None:
    e.leave(f"f.scheduler.waiting.cluster_barriers.wait(f, {e.following})")


operation("mapa", ("u32", "u64"), 3, _map, modifiers=["shared::cluster"], section="mapa")
operation(
    "getctarank", ("u32", "u64"), 2, _rank, modifiers=["shared::cluster"], section="getctarank"
)
operation(
    "barrier.cluster.arrive",
    ("",),
    0,
    _arrive_cluster,
    effect=Effect.SYNCS,
    writes=0,
    modifiers=["release", "relaxed", "aligned"],
    section="barrier.cluster",
)
operation(
    "barrier.cluster.wait",
    ("",),
    0,
    _wait_cluster,
    effect=Effect.ENDS,
    writes=0,
    modifiers=["acquire", "aligned"],
    section="barrier.cluster",
)


def may_go_on(fibre: Fibre, block: int) -> bool:
    """Return whether the launch before has ended; else the fibre tries again at `block`."""
    dependency = fibre.blocks.launch.limits.dependency
    if dependency is None or dependency.may_go_on:
        return True
    fibre.scheduler.wait(fibre, block)
    fibre.scheduler.give_way()
    return False


def release_dependents(fibre: Fibre) -> None:
    """Release the next launch from the threads' blocks; it may begin now."""
    launch = fibre.blocks.launch
    dependency = launch.limits.dependency
    if dependency is None:
        return
    slots = np.unique(np.asarray(fibre.place("slot"))) + fibre.blocks.first
    if dependency.release_dependents(slots.tolist(), math.prod(launch.grid)):
        fibre.scheduler.give_way()


def _wait_grid(e: Emitter, i: Instruction) -> None:
    e.line(f"if not {e.helper(may_go_on)}(f, {e.here}): return -1")


def _release_dependents(e: Emitter, i: Instruction) -> None:
    # It ends its basic block, so that no later instruction runs before the next launch.
    e.line(f"{e.helper(release_dependents)}(f)")
    e.leave(str(e.following))


operation(
    "griddepcontrol.wait",
    ("",),
    0,
    _wait_grid,
    effect=Effect.SYNCS,
    writes=0,
    section="griddepcontrol",
)
operation(
    "griddepcontrol.launch_dependents",
    ("",),
    0,
    _release_dependents,
    effect=Effect.ENDS,
    writes=0,
    section="griddepcontrol",
)
