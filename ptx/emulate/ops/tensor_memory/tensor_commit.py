"""How a thread lets others know that its work on tensor memory is done. PTX ISA, "tcgen05.commit".

An mbarrier object, or that at the same place in each of some blocks of the cluster, gets one
arrival when all is done that the thread has begun. The fences order what is done in order anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import ordered_blocks, without_registers
from ptx.emulate.exec.sync.bulk_copy import Place, ranks_named
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.asynchronous.mbarrier import mbarrier_place
from ptx.emulate.ops.nothing import nothing
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction


def commit(
    fibre: Fibre, where: Addresses, offset: int, site: Site, ranks: Value | None = None
) -> None:
    """All is done already: arrive."""
    for part, place in _places(fibre, Place(where, offset, site), ranks):
        _note(part, place)
        _arrive(part, place)


def commit_later(
    fibre: Fibre, where: Addresses, offset: int, site: Site, ranks: Value | None = None
) -> None:
    """Arrive when all is done; it is done when a thread waits for the arrival."""
    copies = ordered_blocks(fibre).late_copies
    for part, place in _places(fibre, Place(where, offset, site), ranks):
        _note(part, place)
        threads = without_registers(part)
        work = copies.tensor_work.committed(threads)

        def tell(threads: Fibre = threads, place: Place = place) -> None:
            _arrive(threads, place)

        copies.add(threads, place, work, tell)


def _places(fibre: Fibre, barrier: Place, ranks: Value | None) -> Iterator[tuple[Fibre, Place]]:
    if ranks is None:
        yield fibre, barrier
        return
    for rank, chosen in ranks_named(fibre, ranks):
        yield fibre.subset(chosen, ()), barrier.in_block(fibre.n, chosen, rank)


def _note(fibre: Fibre, place: Place) -> None:
    """Tell what looks for races what is handed over when all is done."""
    races = fibre.blocks.races
    if races is not None:
        objects = mbarriers_of(fibre.blocks).places(fibre, place.where, place.offset, place.site)
        races.order.arrive(fibre.lane_numbers(), "mbarrier", objects)
        races.workers.hand_over(fibre.lane_numbers(), objects)


def _arrive(fibre: Fibre, place: Place) -> None:
    barriers = mbarriers_of(fibre.blocks)
    where = place.where, place.offset, place.site
    barriers.arrive(fibre, *where, np.uint32(1), is_noted=True)


def _commit(e: Emitter, i: Instruction) -> None:
    several = "multicast::cluster" in i.modifiers
    if len(i.operands) != 1 + several:
        raise e.refuse("with .multicast::cluster, and only then, it takes a mask of blocks")
    if several and not facts_of(i).reaches_cluster:
        raise e.refuse("it tells several blocks by addresses of .shared::cluster")
    place = mbarrier_place(e, i, i.operands[0])
    ranks = f", {e.temporary(e.value(i.operands[1], 'u16'))}" if several else ""
    e.line(f"{e.helper(commit_later if e.late.copies else commit)}(f, {place}{ranks})")


operation(
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one", ("b64",), (1, 2), _commit,
    effect=Effect.MEMORY, modifiers=("shared::cluster", "multicast::cluster"), writes=0,
    section="tcgen05.commit",
)  # fmt: skip
for _name in ("before_thread_sync", "after_thread_sync"):
    operation(
        f"tcgen05.fence::{_name}", ("",), 0, nothing, effect=Effect.MEMORY, writes=0,
        section="tcgen05.fence",
    )  # fmt: skip
