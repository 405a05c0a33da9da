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
    found: Bools = (words >> _BYTES & _BYTES_MASK) != 0
    return found


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
        found: Bools = (self.pending == 0) & (self.tx == 0)
        return found

    def complete(self) -> None:
        """Begin the next phase of objects whose phase is complete."""
        done = self.are_complete()
        self.phase = np.where(done, (self.phase + 1) & 3, self.phase)
        self.pending = np.where(done, self.expected, self.pending)


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
        self, fibre: Fibre, where: Addresses, offset: int, site: Site, count: Value
    ) -> None:
        """`mbarrier.init`: phase 0, with `count` arrivals expected.

        Raises:
            SynchronisationFault: the count is not one that an object can hold.
        """
        at = self.places(fibre, where, offset, site)
        counts = _each(fibre, count)
        wrong = (counts < 1) | (counts > MOST_ARRIVALS)
        if wrong.any():
            position = int(np.argmax(wrong))
            raise self._fault(
                fibre, position, site, at,
                f"is to expect {counts[position]} arrivals, not 1 to {MOST_ARRIVALS}",
            )  # fmt: skip
        self._note(fibre, at, site)
        self._put(at, _fresh(counts))

    def invalidate(self, fibre: Fibre, where: Addresses, offset: int, site: Site) -> None:
        """`mbarrier.inval`: the memory is free for anything else."""
        at, _ = self._valid(fibre, where, offset, site)
        self._words[at] = 0
        self.version += 1

    def arrive(
        self, fibre: Fibre, where: Addresses, offset: int, site: Site, count: Value,
        tx: Value | None = None, *, drops: bool = False, completes: bool = True,
        releases: bool = True, scope: str = "", is_noted: bool = False,
    ) -> Value:  # fmt: skip
        """`mbarrier.arrive`, each thread with its count, in their order; the state before, u64.

        `tx` is expected before that; `drops`: later phases expect so many fewer arrivals;
        `completes`: whether the arrival may complete the phase; `releases`: unless it is
        `.relaxed`; `scope`: the one that it names; `is_noted`: the race check has its report.

        Raises:
            SynchronisationFault: an address holds no object, or it has fewer pending arrivals.
        """
        at, words = self._valid(fibre, where, offset, site)
        if self._blocks.races is not None and not is_noted:
            self._blocks.races.order.arrive(
                fibre.lane_numbers(), "mbarrier", at, scope, releases=releases
            )
        counts = _each(fibre, count)
        found, of = np.unique(at, return_inverse=True)
        total = np.bincount(of, counts, len(found)).astype(np.int64)
        if (total > _Objects(self._words[found]).pending).any() or (counts == 0).any():
            bytes_expected = None if tx is None else _each(fibre, tx)
            return self._arrive_in_turn(fibre, at, site, counts, bytes_expected, drops, completes)
        states = _reduced(words, self._before(of, counts))
        if tx is not None:
            self._count_bytes(fibre, at, site, _each(fibre, tx))
        objects = _Objects(self._words[found])
        objects.pending -= total
        objects.expected -= total * drops
        self._check_arrival(fibre, at, site, objects, of, completes)
        objects.complete()
        self._put(found, objects.words())
        return states.view(np.uint64)

    def _arrive_in_turn(
        self, fibre: Fibre, at: Index, site: Site, counts: Words, tx: Words | None, drops: bool,
        completes: bool,
    ) -> Value:  # fmt: skip
        """Thread by thread, as their arrivals may complete phases on the way."""
        states = np.empty(len(at), dtype=np.int64)
        first = np.zeros(1, dtype=np.intp)
        for position in range(len(at)):
            one, count = at[position : position + 1], counts[position]
            states[position] = self._words[one[0]]
            if tx is not None:
                self._count_bytes(fibre, one, site, tx[position : position + 1])
            objects = _Objects(self._words[one])
            if count > objects.pending[0]:
                raise self._fault(
                    fibre, position, site, at,
                    f"gets {count} arrivals, but waits for only {objects.pending[0]} more in this"
                    " phase",
                )  # fmt: skip
            if count:
                objects.pending -= count
                objects.expected -= count * drops
                self._check_arrival(fibre, one, site, objects, first, completes)
                objects.complete()
                self._put(one, objects.words())
        return states.view(np.uint64)

    def _check_arrival(
        self, fibre: Fibre, at: Index, site: Site, objects: _Objects, of: Index, completes: bool
    ) -> None:
        wrong, what = objects.expected < 0, "expects fewer arrivals than are to be dropped"
        if not completes and not wrong.any():
            wrong, what = objects.are_complete(), "is completed by an arrival with .noComplete"
        if wrong.any():
            raise self._fault(fibre, int(np.argmax(wrong[of])), site, at, what)

    def expect(self, fibre: Fibre, where: Addresses, offset: int, site: Site, tx: Value) -> None:
        """`mbarrier.expect_tx`: the phase waits for so many bytes more."""
        at, _ = self._valid(fibre, where, offset, site)
        self._count_bytes(fibre, at, site, _each(fibre, tx))

    def deliver(self, fibre: Fibre, where: Addresses, offset: int, site: Site, tx: Value) -> None:
        """`mbarrier.complete_tx`: so many bytes have arrived."""
        at, _ = self._valid(fibre, where, offset, site)
        self._count_bytes(fibre, at, site, -_each(fibre, tx))

    def await_arrivals(self, fibre: Fibre, where: Addresses, offset: int, site: Site) -> None:
        """One more arrival of each thread is pending in this phase."""
        at, _ = self._valid(fibre, where, offset, site)
        found, of = np.unique(at, return_inverse=True)
        objects = _Objects(self._words[found])
        objects.pending += np.bincount(of, minlength=len(found))
        self._put(found, objects.words())

    def check(self, fibre: Fibre, where: Addresses, offset: int, site: Site) -> None:
        """Check the object: `cp.async.mbarrier.arrive` without .noinc changes nothing.

        Raises:
            SynchronisationFault: there is no valid object.
        """
        self._valid(fibre, where, offset, site)

    def awaited(
        self, fibre: Fibre, where: Addresses, offset: int, site: Site, wanted: Value, parity: bool
    ) -> Awaited:
        """Return the phase that each thread waits for, given by a state or a parity.

        Raises:
            SynchronisationFault: there is no object, it is in another block, or the state is
                older than the last phase.
        """
        at, words = self._valid(fibre, where, offset, site)
        stride = self._blocks.shared_stride >> 3
        remote = at // stride != np.asarray(fibre.place("slot"))
        if remote.any():
            position = int(np.argmax(remote))
            raise self._fault(
                fibre, position, site, at, "is in another block; only arrivals may be"
            )
        bits = np.broadcast_to(np.asarray(wanted), (fibre.n,)).astype(np.int64)
        if parity:
            return Awaited(at, bits & 1, 1)
        wrong = ((_phase_of(words) - _phase_of(bits) & 3) > 1) | ~_is_state(bits)
        if wrong.any():
            raise self._fault(
                fibre, int(np.argmax(wrong)), site, at,
                "is waited for with a state that is of neither its current nor its last phase",
            )  # fmt: skip
        return Awaited(at, _phase_of(bits), 3)

    def has_passed(self, awaited: Awaited) -> Bools:
        """(n,) whether the phases are over."""
        phase = _phase_of(self._words[awaited.at])
        over: Bools = ((phase ^ awaited.bits) & awaited.mask) != 0
        return over

    def take(self, fibre: Fibre, awaited: Awaited, over: Bools, *, acquires: bool) -> None:
        """Record that phases are complete for threads of a fibre."""
        if self._blocks.races is not None and over.any():
            lanes = fibre.lane_numbers()[over]
            self._blocks.races.order.take(lanes, "mbarrier", awaited.at[over], acquires=acquires)

    def is_gone(self, awaited: Awaited) -> Bools:
        """(n,) whether the objects were invalidated meanwhile."""
        gone: Bools = self._words[awaited.at] == 0
        return gone

    def described(self, place: int) -> str:
        """An object and its state, in words."""
        objects = _Objects(self._words[place : place + 1])
        address = (place << 3) % self._blocks.shared_stride
        return (
            f"the mbarrier object at shared address {address:#x} (pending arrivals"
            f" {objects.pending[0]} of {objects.expected[0]}, tx-count {objects.tx[0]})"
        )

    def places(self, fibre: Fibre, where: Addresses, offset: int, site: Site) -> Index:
        """(n,) the index of the object at each address."""
        if site.space == "generic":
            low, high = where.lowest() + offset, where.highest() + offset
            if not (low >= SHARED_WINDOW and high < SHARED_WINDOW + WINDOW_BYTES):
                every = where.every(fibre.n) + offset - SHARED_WINDOW
                outside = (every < 0) | (every >= WINDOW_BYTES)
                position = int(np.argmax(outside))
                raise SynchronisationFault(
                    f"an mbarrier object at {int(every[position]) + SHARED_WINDOW:#x}, which is not"
                    " in shared memory",
                    fibre.where(position, site.instruction),
                )
        elements, index = locate(fibre, where, offset, site, is_access=False)
        start = elements.ctypes.data - self._memory.ctypes.data >> 3
        at: Index = np.broadcast_to(np.asarray(index, dtype=np.intp) + start, (fibre.n,))
        return at

    def _valid(
        self, fibre: Fibre, where: Addresses, offset: int, site: Site
    ) -> tuple[Index, Words]:
        """(n,) the objects and their bits.

        Raises:
            SynchronisationFault: an object was not initialised, or overwritten since.
        """
        at = self.places(fibre, where, offset, site)
        self._note(fibre, at, site)
        words = self._words[at]
        wrong = (words == 0) | (words != self._memory[at])
        if wrong.any():
            position = int(np.argmax(wrong))
            what = "was never initialised, or was invalidated"
            if words[position]:
                what = "was overwritten by an ordinary write since it was initialised"
            raise self._fault(fibre, position, site, at, what)
        return at, words

    def _note(self, fibre: Fibre, at: Index, site: Site) -> None:
        """Report a use of objects to the race check."""
        if self._blocks.races is not None and site.facts.kind is InstructionKind.MBARRIER:
            self._blocks.races.use_objects(fibre, at, site)

    def _put(self, at: Index, words: Words) -> None:
        before = self._words[at]
        if self._blocks.races is not None:
            complete = (before != 0) & (_phase_of(before) != _phase_of(words))
            self._blocks.races.order.complete("mbarrier", at[complete])
        self._words[at] = words
        self._memory[at] = words
        self.version += 1

    def _count_bytes(self, fibre: Fibre, at: Index, site: Site, tx: Words) -> None:
        """Add to tx-counts, and complete phases."""
        found, of = np.unique(at, return_inverse=True)
        objects = _Objects(self._words[found])
        after = objects.tx + np.bincount(of, tx, len(found)).astype(np.int64)
        if len(at) > 1 and ((objects.pending == 0) & (objects.tx * after < 0)).any():
            for position in range(len(at)):  # the phase is complete on the way
                self._count_bytes(fibre, at[position : position + 1], site, tx[position:][:1])
            return
        wrong = abs(after) > MOST_BYTES
        if wrong.any():
            position = int(np.argmax(wrong[of]))
            raise self._fault(
                fibre, position, site, at,
                f"gets the tx-count {after[of[position]]}, beyond {MOST_BYTES}",
            )  # fmt: skip
        objects.tx = after
        objects.complete()
        self._put(found, objects.words())

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
        self, fibre: Fibre, position: int, site: Site, at: Index, what: str
    ) -> SynchronisationFault:
        address = (int(at[position]) << 3) % self._blocks.shared_stride
        return SynchronisationFault(
            f"the mbarrier object at shared address {address:#x} {what}",
            fibre.where(position, site.instruction),
        )


def mbarriers_of(blocks: ResidentBlocks) -> Mbarriers:
    """The mbarrier objects of a chunk, made when first used."""
    found = blocks.mbarriers
    if not isinstance(found, Mbarriers):
        found = blocks.mbarriers = Mbarriers(blocks)
    return found


def _each(fibre: Fibre, value: Value) -> Words:
    """(n,) int64 of a 32-bit operand."""
    return np.broadcast_to(np.asarray(value), (fibre.n,)).astype(np.int64)
