"""Reports of asynchronous operations to observers when they are issued.

In an ordered launch they run later; observers then rely on the waits for them alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.sync.bulk_copy import Amounts, Pointer, copies_to_blocks
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.kernel_facts import WorkerKind
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.tensor_memory import COLUMNS, HALF, LANES


def note_copy(
    fibre: Fibre,
    target: Addresses,
    target_offset: int,
    source: Addresses,
    source_offset: int,
    target_site: Site,
    source_site: Site,
) -> None:
    """`cp.async` of all its bytes."""
    for observer in fibre.blocks.order_observers:
        observer.begin_copy(fibre, source, source_offset, source_site)
        observer.begin_copy(fibre, target, target_offset, target_site)


def note_part(
    fibre: Fibre,
    target: Addresses,
    target_offset: int,
    source: Addresses,
    source_offset: int,
    target_site: Site,
    source_site: Site,
    byte: Site,
    nbytes: Value,
) -> None:
    """`cp.async` of the first `nbytes` of each thread; the target is filled up with zeros."""
    observers = fibre.blocks.order_observers
    if not observers:
        return
    amounts = np.broadcast_to(np.asarray(nbytes), (fibre.n,))
    source_addresses = source.every(fibre.n) + source_offset
    whole = amounts >= source_site.total
    parts = [(whole, 0, source_site)]
    parts += [((amounts > k) & ~whole, k, byte) for k in range(source_site.total - 1)]
    for observer in observers:
        for is_part, offset, site in parts:
            positions: Index = is_part.nonzero()[0]
            if len(positions):
                part = fibre.subset(positions, ())
                observer.begin_copy(part, addresses_in(source_addresses[positions]), offset, site)
        observer.begin_copy(fibre, target, target_offset, target_site)


def note_bulk(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer | None = None,
) -> None:
    """A copy or reduction of `nbytes` by each thread, that an object counts or a group."""
    if not fibre.blocks.order_observers:
        return
    amounts = Amounts(fibre, nbytes, target.site.instruction)
    if not len(amounts.thread):
        return
    objects = None if barrier is None else _arrive(fibre, barrier)
    thread, start = amounts.thread, amounts.start
    _begin_copy(fibre, source, thread, start, objects)
    if target.site.count == 1:  # a reduction, element by element
        thread, start = amounts.elements(target.site.nbytes)
    _begin_copy(fibre, target, thread, start, objects)


def note_bulk_to_blocks(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer,
    ranks: Value,
) -> None:
    """`.multicast::cluster`."""
    if fibre.blocks.order_observers:
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
    observers = fibre.blocks.order_observers
    if not observers:
        return
    objects = None if barrier is None else _arrive(fibre, barrier)
    for part, addresses, site, thread in sides:
        for observer in observers:
            counting = None if objects is None else objects[thread]
            observer.begin_copy(part, addresses, 0, site, counting)


def note_sent(fibre: Fibre, target: Pointer, barrier: Pointer) -> None:
    """`st.async`, `red.async`."""
    if fibre.blocks.order_observers:
        objects = _arrive(fibre, barrier)
        for observer in fibre.blocks.order_observers:
            observer.begin_copy(fibre, target.addresses, target.offset, target.site, objects)


def note_work(
    fibre: Fibre, kind: WorkerKind, threads: Index, pieces: NDArray[np.int64], site: Site
) -> None:
    """Tensor cores read shared memory: `pieces` at (n, …) addresses, for some of the threads."""
    for observer in fibre.blocks.order_observers:
        part = fibre.subset(np.repeat(threads, pieces[0].size), ())
        observer.begin_work(kind, part, addresses_in(pieces.reshape(-1)), site)


def note_cells(
    fibre: Fibre, kind: WorkerKind, threads: Index, lanes: Index, columns: Index, site: Site
) -> None:
    """Report an access of threads to tensor memory, to all of the halves that contain `lanes`.

    `lanes` and `columns` are (n, …) for each thread.
    """
    for observer in fibre.blocks.order_observers:
        slots = np.broadcast_to(np.asarray(fibre.place("slot")), (fibre.n,))[threads]
        lanes, columns = np.broadcast_arrays(lanes, columns)
        halves = slots.reshape(-1, *(1,) * (lanes.ndim - 1)) * (LANES // HALF) + lanes // HALF
        units = halves * COLUMNS + np.minimum(columns, COLUMNS - 1)
        observer.access_cells(kind, fibre.lane_numbers()[threads], units, site)


def note_counted(fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
    """`cp.async.mbarrier.arrive`: an object counts what these threads began to copy."""
    observers = fibre.blocks.order_observers
    if observers:
        objects = mbarriers_of(fibre.blocks).places(fibre, addresses, offset, site)
        for observer in observers:
            observer.count_copies(fibre.lane_numbers(), objects)


def note_commit(fibre: Fibre, *, bulk: bool = False) -> None:
    """Report that the copies which these threads began form a group."""
    for observer in fibre.blocks.order_observers:
        observer.commit_copies(fibre.lane_numbers(), bulk=bulk)


def note_wait(fibre: Fibre, pending: int, *, bulk: bool = False, reads_alone: bool = False) -> None:
    """Report a wait for all but `pending` groups, or for their reads; -1 for all copies."""
    for observer in fibre.blocks.order_observers:
        observer.wait_for_copies(fibre.lane_numbers(), pending, bulk=bulk, reads_alone=reads_alone)


def _arrive(fibre: Fibre, barrier: Pointer) -> Index:
    """Return the objects that count a copy; waits for them acquire the threads' earlier work."""
    objects = mbarriers_of(fibre.blocks).places(
        fibre, barrier.addresses, barrier.offset, barrier.site
    )
    for observer in fibre.blocks.order_observers:
        observer.arrive(fibre.lane_numbers(), "mbarrier", objects)
    return objects


def _begin_copy(
    fibre: Fibre, pointer: Pointer, thread: Index, start: Index, objects: Index | None
) -> None:
    part = fibre.subset(thread, ())
    addresses = addresses_in(pointer.every(fibre.n)[thread] + start)
    for observer in fibre.blocks.order_observers:
        counting = None if objects is None else objects[thread]
        observer.begin_copy(part, addresses, 0, pointer.site, counting)
