"""Reports of asynchronous operations to the race check when they are issued.

In an ordered launch they run later; the race check then relies on the waits for them alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.sync.bulk_copy import Amounts, Pointer, copies_to_blocks
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.kernel_facts import WorkerKind
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import COLUMNS, HALF, LANES
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre

if TYPE_CHECKING:
    from ptx.emulate.check.chunk_races import ChunkRaces


def note_copy(
    fibre: Fibre, target: Addresses, target_offset: int, source: Addresses, source_offset: int,
    target_site: Site, source_site: Site,
) -> None:  # fmt: skip
    """`cp.async` of all its bytes."""
    races = fibre.blocks.races
    if races is not None:
        races.issue(fibre, source, source_offset, source_site)
        races.issue(fibre, target, target_offset, target_site)


def note_part(
    fibre: Fibre, target: Addresses, target_offset: int, source: Addresses, source_offset: int,
    target_site: Site, source_site: Site, byte: Site, nbytes: Value,
) -> None:  # fmt: skip
    """`cp.async` of the first `nbytes` of each thread; the target is filled up with zeros."""
    races = fibre.blocks.races
    if races is None:
        return
    amounts = np.broadcast_to(np.asarray(nbytes), (fibre.n,))
    source_addresses = source.every(fibre.n) + source_offset
    complete: Index = (amounts >= source_site.total).nonzero()[0]
    if len(complete):
        races.issue(
            fibre.subset(complete, ()), addresses_in(source_addresses[complete]), 0, source_site
        )
    for k in range(source_site.total - 1):
        partial: Index = ((amounts > k) & (amounts < source_site.total)).nonzero()[0]
        if len(partial):
            races.issue(fibre.subset(partial, ()), addresses_in(source_addresses[partial]), k, byte)
    races.issue(fibre, target, target_offset, target_site)


def note_bulk(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer | None = None,
) -> None:
    """A copy or reduction of `nbytes` by each thread, that an object counts or a group."""
    races = fibre.blocks.races
    if races is None:
        return
    amounts = Amounts(fibre, nbytes, target.site.instruction)
    if not len(amounts.thread):
        return
    objects = None if barrier is None else _begin(races, fibre, barrier)
    thread, start = amounts.thread, amounts.start
    _issue(races, fibre, source, thread, start, objects)
    if target.site.count == 1:  # a reduction, element by element
        thread, start = amounts.elements(target.site.nbytes)
    _issue(races, fibre, target, thread, start, objects)


def note_bulk_to_blocks(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer,
    ranks: Value,
) -> None:
    """`.multicast::cluster`."""
    if fibre.blocks.races is not None:
        for block_copy in copies_to_blocks(fibre, target, source, nbytes, barrier, ranks):
            note_bulk(
                block_copy.fibre,
                block_copy.target,
                block_copy.source,
                block_copy.nbytes,
                block_copy.barrier,
            )


def note_pieces(
    fibre: Fibre,
    sides: Iterable[tuple[Fibre, Addresses, Site, Index]],
    barrier: Pointer | None,
) -> None:
    """Report a copy piece by piece: for each side the threads, the pieces and their owners.

    An object counts it, or a group.
    """
    races = fibre.blocks.races
    if races is None:
        return
    objects = None if barrier is None else _begin(races, fibre, barrier)
    for part, addresses, site, thread in sides:
        races.issue(part, addresses, 0, site, None if objects is None else objects[thread])


def note_sent(fibre: Fibre, target: Pointer, barrier: Pointer) -> None:
    """`st.async`, `red.async`."""
    races = fibre.blocks.races
    if races is not None:
        objects = _begin(races, fibre, barrier)
        races.issue(fibre, target.addresses, target.offset, target.site, objects)


def note_work(
    fibre: Fibre, kind: WorkerKind, threads: Index, pieces: NDArray[np.int64], site: Site
) -> None:
    """Tensor cores read shared memory: `pieces` at (n, …) addresses, for some of the threads."""
    races = fibre.blocks.races
    if races is not None:
        part = fibre.subset(np.repeat(threads, pieces[0].size), ())
        races.begin_work(kind, part, addresses_in(pieces.reshape(-1)), site)


def note_cells(
    fibre: Fibre, kind: WorkerKind, threads: Index, lanes: Index, columns: Index, site: Site
) -> None:
    """Report an access of threads to tensor memory, to all of the halves that contain `lanes`.

    `lanes` and `columns` are (n, …) for each thread.
    """
    races = fibre.blocks.races
    if races is not None:
        slots = np.broadcast_to(np.asarray(fibre.place("slot")), (fibre.n,))[threads]
        lanes, columns = np.broadcast_arrays(lanes, columns)
        halves = slots.reshape(-1, *(1,) * (lanes.ndim - 1)) * (LANES // HALF) + lanes // HALF
        units = halves * COLUMNS + np.minimum(columns, COLUMNS - 1)
        races.tensor.access(kind, fibre.lane_numbers()[threads], units, site)


def note_counted(fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
    """`cp.async.mbarrier.arrive`: an object counts what these threads began to copy."""
    races = fibre.blocks.races
    if races is not None:
        races.count_copies(
            fibre.lane_numbers(), mbarriers_of(fibre.blocks).places(fibre, addresses, offset, site)
        )


def note_commit(fibre: Fibre, *, bulk: bool = False) -> None:
    """Report that the copies which these threads began form a group."""
    if fibre.blocks.races is not None:
        fibre.blocks.races.commit_copies(fibre.lane_numbers(), bulk=bulk)


def note_wait(fibre: Fibre, pending: int, *, bulk: bool = False, reads_alone: bool = False) -> None:
    """Report a wait for all but `pending` groups, or for their reads; -1 for all copies."""
    if fibre.blocks.races is not None:
        fibre.blocks.races.wait_for_copies(
            fibre.lane_numbers(), pending, bulk=bulk, reads_alone=reads_alone
        )


def _begin(races: ChunkRaces, fibre: Fibre, barrier: Pointer) -> Index:
    """Return the objects that count a copy; waits for them acquire the threads' earlier work."""
    objects = mbarriers_of(fibre.blocks).places(
        fibre, barrier.addresses, barrier.offset, barrier.site
    )
    races.order.arrive(fibre.lane_numbers(), "mbarrier", objects)
    return objects


def _issue(
    races: ChunkRaces, fibre: Fibre, pointer: Pointer, thread: Index, start: Index,
    objects: Index | None,
) -> None:  # fmt: skip
    part = fibre.subset(thread, ())
    addresses = addresses_in(pointer.every(fibre.n)[thread] + start)
    races.issue(part, addresses, 0, pointer.site, None if objects is None else objects[thread])
