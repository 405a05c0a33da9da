"""The mbarrier objects in the shared memory of a chunk. PTX ISA, "mbarrier".

An object holds its phase, the pending arrivals of that phase, and the expected arrivals of each
later phase. It also holds the tx-count, the bytes of asynchronous copies that it still waits for. A
phase is complete when both counts are zero. Each use compares memory with the last contents
written, and so finds objects that were never initialised, were invalidated, or were overwritten.

PTX leaves the bits of an object open ("Contents of the mbarrier object"). The emulator uses 20 for
expected arrivals, 20 for pending ones, 21 for the tx-count plus 2**20, and two for the phase's
number. None is all zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import locate
from ptx.emulate.memory.generic_addresses import SHARED_WINDOW, WINDOW_BYTES
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.resident_blocks import ResidentBlocks
from ptx.isa.instruction_facts import InstructionKind

Words = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_ARRIVALS = (1 << 20) - 1
MOST_BYTES = (1 << 20) - 1  # of the tx-count, of either sign
_PENDING, _BYTES, _PHASE = 20, 40, 61
_BIAS = 1 << 20
_BYTES_MASK = (1 << 21) - 1


def pending_count(state: Value) -> Value:
    """`mbarrier.pending_count`: the pending arrivals of a state that an arrival gave."""
    count: Value = (state >> np.uint64(_PENDING) & np.uint64(MOST_ARRIVALS)).astype(np.uint32)
    return count


def _fresh(counts: Words) -> Words:
    """The bits of objects in phase 0 that expect so many arrivals."""
    return counts | counts << _PENDING | _BIAS << _BYTES


def _phase_of(words: Words) -> Words:
    """The numbers of objects' phases, modulo 4."""
    return words >> _PHASE


def _is_state(words: Words) -> Bools:
    """Return whether bits may be a state that an arrival gave."""
    is_state: Bools = (words >> _BYTES & _BYTES_MASK) != 0
    return is_state


def _reduced(words: Words, counts: Words) -> Words:
    """Objects with so many fewer pending arrivals; they must have them."""
    return words - (counts << _PENDING)


class _Objects:
    """The fields of some mbarrier objects, (k,) int64 each."""

    __slots__ = ("expected", "pending", "phase", "tx")

    def __init__(self, words: Words) -> None:
        self.expected: Words = words & MOST_ARRIVALS
        self.pending: Words = words >> _PENDING & MOST_ARRIVALS
        self.tx: Words = (words >> _BYTES & _BYTES_MASK) - _BIAS
        self.phase: Words = words >> _PHASE

    def words(self) -> Words:
        """The objects' bits."""
        counts = self.expected | self.pending << _PENDING
        return counts | (self.tx + _BIAS) << _BYTES | self.phase << _PHASE

    def are_complete(self) -> Bools:
        """(k,) whether their phases are complete."""
        is_complete: Bools = (self.pending == 0) & (self.tx == 0)
        return is_complete

    def complete(self) -> None:
        """Begin the next phase of objects whose phase is complete."""
        is_complete = self.are_complete()
        self.phase = np.where(is_complete, (self.phase + 1) & 3, self.phase)
        self.pending = np.where(is_complete, self.expected, self.pending)


class Awaited:
    """Phases that threads wait for: objects, and the bits of their phases that must change."""

    __slots__ = ("at", "bits", "mask")

    def __init__(self, at: Index, bits: Words, mask: int) -> None:
        self.at: Index = at
        self.bits: Words = bits
        self.mask: int = mask

    def part(self, positions: Index) -> Awaited:
        """Return the awaited phases of some of the threads."""
        return Awaited(self.at[positions], self.bits[positions], self.mask)


class Mbarriers:
    """The objects of one chunk, by their place in its shared memory in units of 8 bytes.

    `version` changes when any of them does.
    """

    def __init__(self, blocks: ResidentBlocks) -> None:
        self._blocks = blocks
        self._memory: Words = blocks.shared.view(np.int64)
        self._words: Words = np.zeros(len(self._memory), dtype=np.int64)
        self.version: int = 0

    def initialise(
        self, fibre: Fibre, addresses: Addresses, offset: int, site: Site, count: Value
    ) -> None:
        """`mbarrier.init`: phase 0, with `count` arrivals expected.

        Raises:
            SynchronisationFault: the count is not one that an object can hold.
        """
        indices = self.places(fibre, addresses, offset, site)
        counts = _per_thread(fibre, count)
        wrong = (counts < 1) | (counts > MOST_ARRIVALS)
        if wrong.any():
            position = int(np.argmax(wrong))
            raise self._fault(
                fibre,
                position,
                site,
                indices,
                f"is to expect {counts[position]} arrivals, not 1 to {MOST_ARRIVALS}",
            )
        self._note(fibre, indices, site)
        self._put(indices, _fresh(counts))

    def invalidate(self, fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
        """`mbarrier.inval`: the memory is free for anything else."""
        indices, _ = self._valid(fibre, addresses, offset, site)
        self._words[indices] = 0
        self.version += 1

    def arrive(
        self,
        fibre: Fibre,
        addresses: Addresses,
        offset: int,
        site: Site,
        count: Value,
        tx: Value | None = None,
        *,
        drops: bool = False,
        completes: bool = True,
        releases: bool = True,
        scope: str = "",
        is_noted: bool = False,
    ) -> Value:
        """`mbarrier.arrive`, each thread with its count, in their order; the state before, u64.

        `tx` is expected before that; `drops`: later phases expect so many fewer arrivals;
        `completes`: whether the arrival may complete the phase; `releases`: unless it is
        `.relaxed`; `scope`: the scope that it names; `is_noted`: it has been reported to observers.

        Raises:
            SynchronisationFault: an address holds no object, or it has fewer pending arrivals.
        """
        indices, words = self._valid(fibre, addresses, offset, site)
        for observer in () if is_noted else self._blocks.order_observers:
            lanes = fibre.lane_numbers()
            observer.arrive(lanes, "mbarrier", indices, scope, releases=releases)
        counts = _per_thread(fibre, count)
        distinct, of = np.unique(indices, return_inverse=True)
        total = np.bincount(of, counts, len(distinct)).astype(np.int64)
        if (total > _Objects(self._words[distinct]).pending).any() or (counts == 0).any():
            bytes_expected = None if tx is None else _per_thread(fibre, tx)
            return self._arrive_in_turn(
                fibre, indices, site, counts, bytes_expected, drops, completes
            )
        states = _reduced(words, self._before(of, counts))
        if tx is not None:
            self._count_bytes(fibre, indices, site, _per_thread(fibre, tx))
        objects = _Objects(self._words[distinct])
        objects.pending -= total
        objects.expected -= total * drops
        self._check_arrival(fibre, indices, site, objects, of, completes)
        objects.complete()
        self._put(distinct, objects.words())
        return states.view(np.uint64)

    def _arrive_in_turn(
        self,
        fibre: Fibre,
        indices: Index,
        site: Site,
        counts: Words,
        tx: Words | None,
        drops: bool,
        completes: bool,
    ) -> Value:
        """Thread by thread, as their arrivals may complete phases on the way."""
        states = np.empty(len(indices), dtype=np.int64)
        first = np.zeros(1, dtype=np.intp)
        for position in range(len(indices)):
            index, count = indices[position : position + 1], counts[position]
            states[position] = self._words[index[0]]
            if tx is not None:
                self._count_bytes(fibre, index, site, tx[position : position + 1])
            objects = _Objects(self._words[index])
            if count > objects.pending[0]:
                raise self._fault(
                    fibre,
                    position,
                    site,
                    indices,
                    f"gets {count} arrivals, but waits for only {objects.pending[0]} more in this"
                    " phase",
                )
            if count:
                objects.pending -= count
                objects.expected -= count * drops
                self._check_arrival(fibre, index, site, objects, first, completes)
                objects.complete()
                self._put(index, objects.words())
        return states.view(np.uint64)

    def _check_arrival(
        self,
        fibre: Fibre,
        indices: Index,
        site: Site,
        objects: _Objects,
        of: Index,
        completes: bool,
    ) -> None:
        wrong, reason = objects.expected < 0, "expects fewer arrivals than are to be dropped"
        if not completes and not wrong.any():
            wrong, reason = objects.are_complete(), "is completed by an arrival with .noComplete"
        if wrong.any():
            raise self._fault(fibre, int(np.argmax(wrong[of])), site, indices, reason)

    def expect(
        self, fibre: Fibre, addresses: Addresses, offset: int, site: Site, tx: Value
    ) -> None:
        """`mbarrier.expect_tx`: the phase waits for so many bytes more."""
        indices, _ = self._valid(fibre, addresses, offset, site)
        self._count_bytes(fibre, indices, site, _per_thread(fibre, tx))

    def deliver(
        self, fibre: Fibre, addresses: Addresses, offset: int, site: Site, tx: Value
    ) -> None:
        """`mbarrier.complete_tx`: so many bytes have arrived."""
        indices, _ = self._valid(fibre, addresses, offset, site)
        self._count_bytes(fibre, indices, site, -_per_thread(fibre, tx))

    def await_arrivals(self, fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
        """One more arrival of each thread is pending in this phase."""
        indices, _ = self._valid(fibre, addresses, offset, site)
        distinct, of = np.unique(indices, return_inverse=True)
        objects = _Objects(self._words[distinct])
        objects.pending += np.bincount(of, minlength=len(distinct))
        self._put(distinct, objects.words())

    def check(self, fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
        """Check the object: `cp.async.mbarrier.arrive` without .noinc changes nothing.

        Raises:
            SynchronisationFault: there is no valid object.
        """
        self._valid(fibre, addresses, offset, site)

    def awaited(
        self,
        fibre: Fibre,
        addresses: Addresses,
        offset: int,
        site: Site,
        phase: Value,
        parity: bool,
    ) -> Awaited:
        """Return the phase that each thread waits for, given by a state or a parity.

        Raises:
            SynchronisationFault: there is no object, it is in another block, or the state is
                older than the last phase.
        """
        indices, words = self._valid(fibre, addresses, offset, site)
        stride = self._blocks.shared_stride >> 3
        remote = indices // stride != np.asarray(fibre.place("slot"))
        if remote.any():
            position = int(np.argmax(remote))
            raise self._fault(
                fibre, position, site, indices, "is in another block; only arrivals may be"
            )
        bits = np.broadcast_to(np.asarray(phase), (fibre.n,)).astype(np.int64)
        if parity:
            return Awaited(indices, bits & 1, 1)
        wrong = ((_phase_of(words) - _phase_of(bits) & 3) > 1) | ~_is_state(bits)
        if wrong.any():
            raise self._fault(
                fibre,
                int(np.argmax(wrong)),
                site,
                indices,
                "is waited for with a state that is of neither its current nor its last phase",
            )
        return Awaited(indices, _phase_of(bits), 3)

    def has_passed(self, awaited: Awaited) -> Bools:
        """(n,) whether the phases are over."""
        phase = _phase_of(self._words[awaited.at])
        are_complete: Bools = ((phase ^ awaited.bits) & awaited.mask) != 0
        return are_complete

    def take(self, fibre: Fibre, awaited: Awaited, are_complete: Bools, *, acquires: bool) -> None:
        """Record that phases are complete for threads of a fibre."""
        for observer in self._blocks.order_observers:
            if are_complete.any():
                lanes = fibre.lane_numbers()[are_complete]
                observer.end_wait(lanes, "mbarrier", awaited.at[are_complete], acquires=acquires)

    def is_gone(self, awaited: Awaited) -> Bools:
        """(n,) whether the objects were invalidated meanwhile."""
        is_gone: Bools = self._words[awaited.at] == 0
        return is_gone

    def described(self, index: int) -> str:
        """An object and its state, in words."""
        objects = _Objects(self._words[index : index + 1])
        address = (index << 3) % self._blocks.shared_stride
        return (
            f"the mbarrier object at shared address {address:#x} (pending arrivals"
            f" {objects.pending[0]} of {objects.expected[0]}, tx-count {objects.tx[0]})"
        )

    def places(self, fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> Index:
        """(n,) the index of the object at each address."""
        if site.space == "generic":
            low, high = addresses.lowest() + offset, addresses.highest() + offset
            if not (low >= SHARED_WINDOW and high < SHARED_WINDOW + WINDOW_BYTES):
                every = addresses.every(fibre.n) + offset - SHARED_WINDOW
                outside = (every < 0) | (every >= WINDOW_BYTES)
                position = int(np.argmax(outside))
                raise SynchronisationFault(
                    f"an mbarrier object at {int(every[position]) + SHARED_WINDOW:#x}, which is not"
                    " in shared memory",
                    fibre.where(position, site.instruction),
                )
        elements, index = locate(fibre, addresses, offset, site, is_access=False)
        start = elements.ctypes.data - self._memory.ctypes.data >> 3
        indices: Index = np.broadcast_to(np.asarray(index, dtype=np.intp) + start, (fibre.n,))
        return indices

    def _valid(
        self, fibre: Fibre, addresses: Addresses, offset: int, site: Site
    ) -> tuple[Index, Words]:
        """(n,) the objects and their bits.

        Raises:
            SynchronisationFault: an object was not initialised, or overwritten since.
        """
        indices = self.places(fibre, addresses, offset, site)
        self._note(fibre, indices, site)
        words = self._words[indices]
        wrong = (words == 0) | (words != self._memory[indices])
        if wrong.any():
            position = int(np.argmax(wrong))
            reason = "was never initialised, or was invalidated"
            if words[position]:
                reason = "was overwritten by an ordinary write since it was initialised"
            raise self._fault(fibre, position, site, indices, reason)
        return indices, words

    def _note(self, fibre: Fibre, indices: Index, site: Site) -> None:
        """Report a use of objects."""
        for observer in self._blocks.order_observers:
            if site.facts.kind is InstructionKind.MBARRIER:
                observer.use_objects(fibre, indices, site)

    def _put(self, indices: Index, words: Words) -> None:
        before = self._words[indices]
        for observer in self._blocks.order_observers:
            complete = (before != 0) & (_phase_of(before) != _phase_of(words))
            observer.complete("mbarrier", indices[complete])
        self._words[indices] = words
        self._memory[indices] = words
        self.version += 1

    def _count_bytes(self, fibre: Fibre, indices: Index, site: Site, tx: Words) -> None:
        """Add to tx-counts, and complete phases."""
        distinct, of = np.unique(indices, return_inverse=True)
        objects = _Objects(self._words[distinct])
        after = objects.tx + np.bincount(of, tx, len(distinct)).astype(np.int64)
        if len(indices) > 1 and ((objects.pending == 0) & (objects.tx * after < 0)).any():
            for position in range(len(indices)):  # the phase is complete on the way
                self._count_bytes(fibre, indices[position : position + 1], site, tx[position:][:1])
            return
        wrong = abs(after) > MOST_BYTES
        if wrong.any():
            position = int(np.argmax(wrong[of]))
            raise self._fault(
                fibre,
                position,
                site,
                indices,
                f"gets the tx-count {after[of[position]]}, beyond {MOST_BYTES}",
            )
        objects.tx = after
        objects.complete()
        self._put(distinct, objects.words())

    @staticmethod
    def _before(of: Index, counts: Words) -> Words:
        """(n,) the sum of the counts of threads before each one at the same object."""
        order = np.argsort(of, kind="stable")
        sums = np.cumsum(counts[order]) - counts[order]
        first = np.searchsorted(of[order], np.arange(int(np.max(of)) + 1))
        before = np.empty_like(sums)
        before[order] = sums - sums[first][of[order]]
        return before

    def _fault(
        self, fibre: Fibre, position: int, site: Site, indices: Index, reason: str
    ) -> SynchronisationFault:
        address = (int(indices[position]) << 3) % self._blocks.shared_stride
        return SynchronisationFault(
            f"the mbarrier object at shared address {address:#x} {reason}",
            fibre.where(position, site.instruction),
        )


def mbarriers_of(blocks: ResidentBlocks) -> Mbarriers:
    """The mbarrier objects of a chunk, made when first used."""
    objects = blocks.mbarriers
    if not isinstance(objects, Mbarriers):
        objects = blocks.mbarriers = Mbarriers(blocks)
    return objects


def _per_thread(fibre: Fibre, value: Value) -> Words:
    """(n,) int64 of a 32-bit operand."""
    return np.broadcast_to(np.asarray(value), (fibre.n,)).astype(np.int64)
