"""Copies of many bytes by one thread, counted by mbarrier objects. PTX ISA, "cp.async.bulk".

The ISA lets such a copy happen at any time until it is waited for. Here it happens at once; in an
ordered launch, late (`exec/order`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.memory.generic_addresses import map_address
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Misaligned, OutOfBounds, OutsideCluster
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

UNIT = 16  # sizes are multiples of it, addresses too
_MOST_RANKS = 16
_MOST_BYTES = 1 << 20  # one side lies in shared memory, and no block has as much


class Pointer:
    """An address operand: the addresses in its register, its constant offset, and its access."""

    __slots__ = ("addresses", "offset", "site")

    def __init__(self, addresses: Addresses, offset: int, site: Site) -> None:
        self.addresses: Addresses = addresses
        self.offset: int = offset
        self.site: Site = site

    def every(self, count: int) -> NDArray[np.int64]:
        """(count,) the threads' addresses."""
        return self.addresses.every(count) + self.offset

    def part(self, count: int, positions: Index | None) -> Pointer:
        """The addresses of some of `count` threads; None: of all."""
        if positions is None:
            return self
        return Pointer(addresses_in(self.every(count)[positions]), 0, self.site)

    def in_block(self, fibre: Fibre, positions: Index, rank: int) -> Pointer:
        """For some threads, the same place in the block of a rank in their cluster."""
        own = self.every(fibre.n)[positions]
        addresses = map_address(own, np.int64(rank), fibre.blocks.cluster.blocks)
        return Pointer(addresses_in(np.asarray(addresses)), 0, self.site)


class Amounts:
    """Numbers of bytes that threads copy; pieces of `unit` bytes count as threads of their own.

    Attributes:
        thread: (pieces,) the thread of each; start: (pieces,) its offset in that thread's bytes.
    """

    def __init__(
        self, fibre: Fibre, nbytes: Value, instruction: Instruction, unit: int = UNIT
    ) -> None:
        amounts = np.broadcast_to(np.asarray(nbytes), (fibre.n,))
        self.nbytes: NDArray[np.int64] = amounts.astype(np.int64)
        wrong = self.nbytes % unit != 0
        if wrong.any():
            position = int(np.argmax(wrong))
            raise Misaligned(
                f"a bulk copy of {self.nbytes[position]} bytes, which is no multiple of {unit}",
                fibre.where(position, instruction),
                address=0,
                nbytes=int(self.nbytes[position]),
                space="shared",
            )
        too_large = self.nbytes.view(np.uint64) > np.uint64(_MOST_BYTES)
        if too_large.any():
            position = int(np.argmax(too_large))
            count = int(self.nbytes.view(np.uint64)[position])
            raise OutOfBounds(
                f"a bulk copy of {count} bytes, more than shared memory has",
                fibre.where(position, instruction),
                address=0,
                nbytes=count,
                space="shared",
            )
        pieces = self.nbytes // unit
        self.thread: Index = np.repeat(np.arange(fibre.n, dtype=np.intp), pieces)
        first = np.cumsum(pieces) - pieces
        self.start: NDArray[np.int64] = (np.arange(len(self.thread)) - first[self.thread]) * unit

    def elements(self, nbytes: int) -> tuple[Index, NDArray[np.int64]]:
        """Return for elements of `nbytes` the thread of each, and its offset in the copy."""
        count = UNIT // nbytes
        start = np.repeat(self.start, count) + np.arange(len(self.start) * count) % count * nbytes
        return np.repeat(self.thread, count), start

    def addresses(self, starts: NDArray[np.int64]) -> Addresses:
        """The pieces' addresses, from those of their threads."""
        return addresses_in(starts[self.thread] + self.start)


def copy_bulk(fibre: Fibre, target: Pointer, source: Pointer, nbytes: Value) -> None:
    """Copy `nbytes` for each thread.

    Raises:
        MemoryFault: an address or a size is no multiple of 16, or an address is out of bounds.
    """
    BulkCopy(fibre, target, source, nbytes).write()


class BulkCopy:
    """A copy of `nbytes` for each thread: the data read, to be written."""

    def __init__(self, fibre: Fibre, target: Pointer, source: Pointer, nbytes: Value) -> None:
        amounts = Amounts(fibre, nbytes, target.site.instruction)
        self._site = target.site
        self._data: list[NDArray[np.uint64]] = []
        if len(amounts.thread):
            self._part = fibre.subset(amounts.thread, ())
            self._data = load_pieces(self._part, amounts, source, fibre.n)
            self._where = amounts.addresses(target.every(fibre.n))

    def write(self) -> None:
        """Store the data that was read."""
        if self._data:
            store(self._part, self._where, 0, self._site, *self._data)


def copy_masked(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    mask: Value,
    byte: Site,
) -> None:
    """`.cp_mask`: of each 16 bytes, copy those that the mask's bits name; `byte` writes one."""
    amounts = Amounts(fibre, nbytes, target.site.instruction)
    if not len(amounts.thread):
        return
    part = fibre.subset(amounts.thread, ())
    data = load_pieces(part, amounts, source, fibre.n)
    rows = np.stack(data, axis=1).view(np.uint8)
    masks = np.broadcast_to(np.asarray(mask), (fibre.n,))[amounts.thread]
    addresses = target.every(fibre.n)[amounts.thread] + amounts.start
    for bit in range(UNIT):
        chosen: Index = (masks >> bit & 1).nonzero()[0]
        if len(chosen):
            targets = addresses_in(addresses[chosen])
            store(part.subset(chosen, ()), targets, bit, byte, rows[chosen, bit])


def copy_to_blocks(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer,
    ranks: Value,
) -> None:
    """`.multicast::cluster`: copy to the same place in each block whose bit is set in `ranks`.

    The mbarrier object at the same place as `barrier` in each of them counts the bytes.
    """
    for block_copy in copies_to_blocks(fibre, target, source, nbytes, barrier, ranks):
        copy_bulk(block_copy.fibre, block_copy.target, block_copy.source, block_copy.nbytes)
        deliver(block_copy.fibre, block_copy.barrier, block_copy.nbytes)


class BlockCopy(NamedTuple):
    """The copies of some threads to one block of their cluster."""

    fibre: Fibre
    target: Pointer
    source: Pointer
    nbytes: Value
    barrier: Pointer


def copies_to_blocks(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer,
    ranks: Value,
) -> Iterator[BlockCopy]:
    """The copies of which a `.multicast::cluster` consists, by the rank of their block."""
    sizes = np.broadcast_to(np.asarray(nbytes), (fibre.n,))
    for rank, chosen in ranks_named(fibre, ranks):
        block_target, signal = (
            pointer.in_block(fibre, chosen, rank) for pointer in (target, barrier)
        )
        of = source.part(fibre.n, chosen)
        yield BlockCopy(fibre.subset(chosen, ()), block_target, of, sizes[chosen], signal)


def ranks_named(fibre: Fibre, ranks: Value) -> Iterator[tuple[int, Index]]:
    """Return the ranks set in the threads' masks, and the threads that name each rank."""
    masks = np.broadcast_to(np.asarray(ranks), (fibre.n,))
    for rank in range(_MOST_RANKS):
        chosen: Index = (masks >> rank & 1).nonzero()[0]
        if len(chosen):
            yield rank, chosen


def require_cluster(fibre: Fibre, site: Site) -> None:
    """Reject what an H200 with driver 580 executes only in a launch with clusters.

    Raises:
        OutsideCluster: the launch has none.
    """
    if not fibre.blocks.launch.is_cluster:
        raise OutsideCluster(
            "a copy between the shared memory of blocks, in a launch without clusters: a GPU ends "
            "the kernel by an illegal instruction\n  give the launch clusters, of one block at "
            "least: LaunchConfig(cluster=1), or .reqnctapercluster 1, 1, 1 in PTX",
            fibre.where(0, site.instruction),
        )


def clear_bulk(fibre: Fibre, target: Pointer, nbytes: Value) -> None:
    """`st.bulk`: zeros for each thread, in pieces of 8 bytes.

    Raises:
        MemoryFault: an address or a size is no multiple of 8, or an address is out of bounds.
    """
    amounts = Amounts(fibre, nbytes, target.site.instruction, unit=8)
    if len(amounts.thread):
        part = fibre.subset(amounts.thread, ())
        store(part, amounts.addresses(target.every(fibre.n)), 0, target.site, np.uint64(0))


def deliver(fibre: Fibre, barrier: Pointer, nbytes: Value) -> None:
    """`.mbarrier::complete_tx::bytes`: the object counts the bytes that were copied."""
    mbarriers_of(fibre.blocks).deliver(
        fibre, barrier.addresses, barrier.offset, barrier.site, nbytes
    )


def load_pieces(
    part: Fibre, amounts: Amounts, source: Pointer, count: int
) -> list[NDArray[np.uint64]]:
    """(pieces,) each of the two halves of every piece."""
    words = load_vector(part, amounts.addresses(source.every(count)), 0, source.site)
    return [np.ascontiguousarray(np.broadcast_to(word, (part.n,))) for word in words]
