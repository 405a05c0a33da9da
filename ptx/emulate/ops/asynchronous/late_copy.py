"""Asynchronous copies that are not done at once: what the code of an ordered launch calls.

What they read is what stands there when they land, and what they write is not there before.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ptx.emulate.access.memory_access import store
from ptx.emulate.exec.order.ordered_blocks import Stage, chosen, ordered_blocks, without_registers
from ptx.emulate.exec.sync.bulk_copy import (
    BulkCopy,
    Place,
    copies_to_blocks,
    copy_bulk,
    copy_masked,
    deliver,
)
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.memory.atomic import atomic
from ptx.emulate.threads.fibre import Fibre


def arrive_later(fibre: Fibre, where: Addresses, offset: int, site: Site, *, counted: bool) -> None:
    """`cp.async.mbarrier.arrive`: when the thread's copies have landed.

    `counted`: the object waits for this arrival already, as with `.noinc`.
    """
    blocks = ordered_blocks(fibre)
    barriers, groups = mbarriers_of(blocks), blocks.late_copies.copies
    threads = without_registers(fibre)
    if not counted:
        barriers.await_arrivals(fibre, where, offset, site)
    blocks.late_copies.add(
        fibre,
        Place(where, offset, site),
        partial(groups.wait_all, threads),
        lambda: barriers.arrive(threads, where, offset, site, np.uint32(1)),
    )


def copy_bulk_later(
    fibre: Fibre, target: Place, source: Place, nbytes: Value, barrier: Place
) -> None:
    """To shared memory: until a thread waits for the phase that counts the bytes."""
    threads = without_registers(fibre)
    ordered_blocks(fibre).late_copies.add(
        fibre,
        barrier,
        partial(copy_bulk, threads, target, source, nbytes),
        partial(deliver, threads, barrier, nbytes),
    )


def copy_to_blocks_later(
    fibre: Fibre, target: Place, source: Place, nbytes: Value, barrier: Place, ranks: Value
) -> None:
    """`.multicast::cluster`: in each block when its own object is waited for."""
    for each in copies_to_blocks(fibre, target, source, nbytes, barrier, ranks):
        copy_bulk_later(each.fibre, each.target, each.source, each.nbytes, each.barrier)


def copy_back_later(fibre: Fibre, target: Place, source: Place, nbytes: Value) -> None:
    """To global memory: read when the group's reads are waited for, written when all of it is."""
    count = fibre.n

    def read(part: Fibre, positions: Index | None) -> Stage | None:
        to, of = target.part(count, positions), source.part(count, positions)
        found = BulkCopy(part, to, of, chosen(nbytes, positions))

        def write(_: Fibre, __: Index | None) -> Stage | None:
            ordered_blocks(fibre).late_stores.publish()
            found.write()
            return None

        return write

    ordered_blocks(fibre).late_copies.bulk.add(fibre, read)


def copy_masked_later(
    fibre: Fibre, target: Place, source: Place, nbytes: Value, mask: Value, byte: Site
) -> None:
    """The same of some bytes; written when they are read."""
    count = fibre.n

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        to, of = target.part(count, positions), source.part(count, positions)
        ordered_blocks(fibre).late_stores.publish()
        copy_masked(part, to, of, chosen(nbytes, positions), chosen(mask, positions), byte)
        return None

    ordered_blocks(fibre).late_copies.bulk.add(fibre, land)


def store_later(fibre: Fibre, target: Place, nbytes: Value, barrier: Place, *values: Value) -> None:
    """`st.async`."""
    threads = without_registers(fibre)
    ordered_blocks(fibre).late_copies.add(
        fibre,
        barrier,
        partial(store, threads, target.where, target.offset, target.site, *values),
        partial(deliver, threads, barrier, nbytes),
    )


def combine_later(
    fibre: Fibre, target: Place, nbytes: Value, barrier: Place, name: str, ptx_type: str,
    value: Value,
) -> None:  # fmt: skip
    """`red.async`."""
    threads = without_registers(fibre)
    where, offset, site = target.where, target.offset, target.site
    ordered_blocks(fibre).late_copies.add(
        fibre,
        barrier,
        lambda: atomic(threads, where, offset, site, name, ptx_type, (value,), value, False),
        partial(deliver, threads, barrier, nbytes),
    )
