"""Shared memory of other blocks of a cluster, and the cluster's barrier.

PTX ISA, "mapa", "getctarank", "barrier.cluster".
"""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.memory.cluster_shared import map_address, rank_of
from ptx.isa.model import Instruction


def _map(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    address, rank = e.value(i.operands[1], kind), e.value(i.operands[2], "u32")
    blocks = "f.blocks.launch.cluster.blocks"
    e.assign(i.operands[0], kind, f"{e.helper(map_address)}({address}, {rank}, {blocks})")


def _rank(e: Emitter, i: Instruction) -> None:
    address = e.value(i.operands[1], type_suffix(i))
    e.assign(i.operands[0], "u32", f"{e.helper(rank_of)}({address}, f.special('cluster_ctarank'))")


def _arrive(e: Emitter, i: Instruction) -> None:
    releases = "relaxed" not in i.modifiers
    e.line(f"f.scheduler.waiting.cluster_barriers.arrive(f, {e.here}, releases={releases})")


def _wait(e: Emitter, i: Instruction) -> None:
    e.leave(f"f.scheduler.waiting.cluster_barriers.wait(f, {e.following})")


operation("mapa", ("u32", "u64"), 3, _map, modifiers=["shared::cluster"], section="mapa")
operation(
    "getctarank", ("u32", "u64"), 2, _rank, modifiers=["shared::cluster"], section="getctarank"
)
operation(
    "barrier.cluster.arrive", ("",), 0, _arrive, effect=Effect.SYNCS, writes=0,
    modifiers=["release", "relaxed", "aligned"], section="barrier.cluster",
)  # fmt: skip
operation(
    "barrier.cluster.wait", ("",), 0, _wait, effect=Effect.ENDS, writes=0,
    modifiers=["acquire", "aligned"], section="barrier.cluster",
)  # fmt: skip
