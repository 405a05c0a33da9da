"""Synchronisation through memory: fences with flags, locks and counters.

PTX ISA, "Memory Consistency Model", "Release and Acquire Patterns", "Memory Synchronization":

- A fence and a later strong write are a release pattern, as is a write with `.release`. It
  publishes everything that the thread knew before the fence.
- A strong read and a later fence are an acquire pattern, as is a read with `.acquire`.
- A release synchronizes with an acquire that reads its value. It also does if the acquire reads a
  later write in the location's release sequence.

Each location has one release sequence. A read there acquires all releases so far, because it reads
the last value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accelerations import ALL, Accelerations, LazyClock
from ptx.emulate.check.stamps import (
    EPOCH_BITS,
    key_of_block,
    key_of_fenced,
    key_of_strong,
    key_of_thread,
    key_of_warp,
)
from ptx.emulate.check.vector_clock import (
    EMPTY,
    SparseClock,
    VectorClock,
    epoch_of,
    joined,
    joined_all,
)

_BITS: Final = EPOCH_BITS + 1
_EPOCH: Final = (1 << _BITS) - 1

Location = tuple[str, int]
"""A space and a unit of it."""
ThreadClocks = tuple[VectorClock, VectorClock]
"""The clocks of a thread: the one of its whole block, and its own additions."""


class ReleaseSequence:
    """The releases at one location. Reading its n-th value acquires the first n of them.

    Attributes:
        number: of the sequence, from 1.
        length: how many releases there are.
        clock: what all of them publish.
        acquired_by: the threads that have acquired all of them.
    """

    __slots__ = ("_of_blocks", "_own", "acquired_by", "clock", "length", "number")

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.length: int = 0
        self.clock: LazyClock = LazyClock()
        self.acquired_by: set[int] = set()
        # For a thread, warp or block: positions, each with the epoch that is published from there.
        self._own: dict[int, list[int]] = {}
        # The common knowledge of a block's threads at its last release.
        self._of_blocks: dict[int, VectorClock] = {}

    def add(self, own_epochs: SparseClock, block: int, clocks: ThreadClocks) -> None:
        """Add a release by a thread of a block: its own epochs, and its knowledge of others."""
        if self.acquired_by:
            self.acquired_by = set()
        position = self.length << _BITS
        for number, epoch in own_epochs.items():
            epochs = self._own.get(number)
            if epochs is None:
                self._own[number] = [position | epoch]
            elif epoch > epochs[-1] & _EPOCH:
                epochs.append(position | epoch)
        together, own_clock = clocks
        if self._of_blocks.get(block, EMPTY) is together:
            together = EMPTY
        else:
            self._of_blocks[block] = together
        self.clock = self.clock.then(own_epochs, together, own_clock)
        self.length += 1

    def publishes(self, number: int, epoch: int, length: int) -> bool:
        """Return whether one of the first `length` releases itself publishes more than an epoch."""
        epochs = self._own.get(number)
        if epochs is None:
            return False
        n_releases = bisect_left(epochs, length << _BITS)
        return n_releases > 0 and epochs[n_releases - 1] & _EPOCH > epoch


_Read = dict[ReleaseSequence, tuple[int, LazyClock]]  # how much of each was read, and its clock


class MemoryOrder(IntEnum):
    """The order that memory establishes between two operations of two threads."""

    NONE = 0
    WITHOUT_ACQUIRE = 1
    """The other thread's block has read the flag, and met at a barrier since, without a fence."""
    WITHOUT_RELEASE = 2
    """The thread had a fence, and its block met since, before another thread wrote the flag."""
    HAPPENS_BEFORE = 3


class Synchronization:
    """The knowledge that the threads of a launch have of each other through memory.

    Threads are named by their numbers in the launch; `shift` turns one into that of its block. A
    scope is one of `levels`, from 0, the block, to the last one, all blocks. Fences and accesses
    synchronise up to the level of their scopes.

    Attributes:
        sequences: the release sequences, by their locations.
        lengths: by the numbers of the sequences, how many releases each has. Number 0 stands for
            all other locations, and counts the sequences.
    """

    def __init__(self, shift: int, levels: int, accelerations: Accelerations = ALL) -> None:
        self._shift = shift
        self._accelerations = accelerations
        self.sequences: dict[Location, ReleaseSequence] = {}
        self.lengths: NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self._numbers: dict[int, int] = {}  # of entries of clocks, by keys
        self._knows: dict[int, VectorClock] = {}
        self._block_knows: dict[int, VectorClock] = {}
        self._block_read: dict[int, VectorClock] = {}  # before its last barrier, without a fence
        # Of each block the threads that have acquired that by a fence.
        self._acquired: dict[int, set[int]] = {}
        # Of each level, by threads.
        self._read: list[dict[int, _Read]] = [{} for _ in range(levels)]
        self._fenced: list[dict[int, ThreadClocks]] = [{} for _ in range(levels)]
        # For each level, the threads whose next fence publishes more than their last one.
        self._unfenced: list[set[int]] = [set() for _ in range(levels)]
        # The part of a sequence that a thread waiting at a location acquires, if not all of it.
        self._complete: dict[Location, tuple[int, LazyClock]] = {}

    @property
    def has_releases(self) -> bool:
        """True if there was any release."""
        return bool(self._numbers)

    # Actions of threads.

    def fence(self, thread: int, level: int) -> None:
        """Acquire the releases that the thread read before, and let its later writes release its
        clocks.
        """
        if level:
            self._acquire_read_of_block(thread)
        for read_of_level in self._read[: level + 1]:
            read = read_of_level.pop(thread, None)
            if read is not None:
                self._learn(thread, _clock_of(read))
        clocks = self.clocks_of(thread)
        for fenced, unfenced in zip(self._fenced[: level + 1], self._unfenced, strict=False):
            fenced[thread] = clocks
            unfenced.discard(thread)

    def fence_all(self, threads: list[int], level: int) -> None:
        """Execute a fence of each of these threads."""
        if self._accelerations.skips_fences:
            threads = sorted(self._unfenced[level].intersection(threads))
        for thread in threads:
            self.fence(thread, level)

    def release(
        self,
        location: Location,
        thread: int,
        published: Iterable[tuple[int, int]],
        level: int,
        *,
        at_once: bool,
    ) -> None:
        """Publish the thread's clocks as of its last fence, or as of now.

        Args:
            location: where it writes.
            thread: its number.
            published: pairs of a key and the epoch below which that one is complete.
            level: of the scope.
            at_once: whether the write is a release itself.
        """
        no_clocks = EMPTY, EMPTY
        clocks = self.clocks_of(thread) if at_once else self._fenced[level].get(thread, no_clocks)
        self._release(location, self._numbered(published), thread >> self._shift, clocks)

    def release_by_block(self, location: Location, block: int, published: tuple[int, int]) -> None:
        """Publish the clocks that all threads of a block have now."""
        thread_clocks = [
            clock for thread, clock in self._knows.items() if thread >> self._shift == block
        ]
        clocks = self._block_knows.get(block, EMPTY), joined_all(thread_clocks)
        self._release(location, self._numbered((published,)), block, clocks)

    def read(self, location: Location, thread: int, level: int, *, at_once: bool) -> int:
        """Acquire the releases at a location at the next fence, or at once by an acquire.

        Returns:
            The number of the release sequence, 0 where there is none.
        """
        sequence = self.sequences.get(location)
        if sequence is None:
            return 0
        if thread in sequence.acquired_by:
            return sequence.number
        read = self._complete.get(location) or (sequence.length, sequence.clock)
        if at_once:
            self._learn(thread, read[1].known())
            if location not in self._complete and self._accelerations.acquires_once:
                sequence.acquired_by.add(thread)
        else:
            self._read[level].setdefault(thread, {})[sequence] = read
            self._unfence((thread,))
        return sequence.number

    def read_together(
        self, location: Location, threads: list[int], level: int, *, at_once: bool
    ) -> None:
        """Let each of these threads read one location."""
        sequence = self.sequences.get(location)
        if sequence is None:
            return
        new = set(threads) - sequence.acquired_by
        if at_once and location not in self._complete and self._accelerations.acquires_once:
            self._learn_together(new, sequence.clock.known())
            sequence.acquired_by |= new
            return
        for thread in sorted(new):
            self.read(location, thread, level, at_once=at_once)

    def read_by_block(self, location: Location, block: int) -> None:
        """Let all threads of a block acquire the releases at a location."""
        sequence = self.sequences.get(location)
        if sequence is not None:
            _, clock = self._complete.get(location) or (sequence.length, sequence.clock)
            self._learn_by_block(block, clock.known())

    def learn(self, threads: Sequence[int], key: int, epoch: int) -> None:
        """Record for these threads that everything below an epoch of a key is complete."""
        numbered = self._numbered(((key, epoch),))
        if numbered:
            self._learn_together(threads, numbered)

    def complete(self, location: Location) -> None:
        """End a phase: a thread that waits for it acquires the releases so far, and no others."""
        sequence = self.sequences.get(location)
        self._complete[location] = (
            (0, LazyClock()) if sequence is None else (sequence.length, sequence.clock)
        )

    def meet_block(self, block: int) -> None:
        """Join the clocks of all threads of a block, and store the releases that each has read.

        Once one of them has acquired those by a fence, the next barrier shares them with all.
        """
        if self._acquired.pop(block, None):
            del self._block_read[block]
        for read in self._read:
            for thread in [reader for reader in read if reader >> self._shift == block]:
                before = self._block_read.get(block, EMPTY)
                self._block_read[block] = joined(before, _clock_of(read.pop(thread)))
                self._unfence(self._threads_of(block))
        threads = [member for member in self._knows if member >> self._shift == block]
        if threads:
            self._learn_by_block(block, joined_all(self._knows.pop(member) for member in threads))

    def meet_threads(self, threads: list[int]) -> None:
        """Join the clocks of these threads."""
        thread_clocks = [self._knows[thread] for thread in threads if thread in self._knows]
        if thread_clocks:
            self._knows.update(dict.fromkeys(threads, joined_all(thread_clocks)))
            self._unfence(threads)

    # Queries.

    def clocks_of(self, thread: int) -> ThreadClocks:
        """Return the clocks of a thread."""
        together = self._block_knows.get(thread >> self._shift, EMPTY)
        return together, self._knows.get(thread, EMPTY)

    def block_knows(self, for_block: int, block: int, epoch: int) -> bool:
        """Return whether an epoch of all of another block is complete for all of one block."""
        number = self._numbers.get(key_of_block(block << self._shift, self._shift))
        block_clock = self._block_knows.get(for_block, EMPTY)
        return number is not None and epoch_of(block_clock, number) > epoch

    def thread_knows(self, thread: int, others: list[int], epochs: list[int]) -> list[bool]:
        """Return for each other thread whether its epoch is complete for this thread."""
        clocks = self.clocks_of(thread)
        return [
            self.clocks_know(clocks, other, epoch)
            for other, epoch in zip(others, epochs, strict=True)
        ]

    def clocks_know(self, clocks: ThreadClocks, thread: int, epoch: int) -> bool:
        """Return whether a thread's epoch is complete by these clocks."""
        return self._know(clocks, self._numbers_of(thread), epoch)

    def order(
        self, thread: int, epoch: int, for_thread: int, *, strong: bool, as_strong: bool
    ) -> MemoryOrder:
        """Return how a thread's epoch is ordered before what another thread does now.

        Args:
            thread, epoch: the earlier access.
            for_thread: the thread of the later access.
            strong: whether the earlier access is strong, so that it may be read as a flag itself.
            as_strong: whether the later one is strong: two threads see each other's strong
                accesses in their order, without a fence.
        """
        numbers = self._numbers_of(thread, strong=strong)
        clocks = self.clocks_of(for_thread)
        read = [
            read_of_level.get(for_thread, {})
            for read_of_level in self._read
            if strong and as_strong
        ]
        if self._know(clocks, numbers, epoch) or _publish(read, numbers, epoch):
            return MemoryOrder.HAPPENS_BEFORE
        of_block = self._block_read.get(for_thread >> self._shift, EMPTY)
        if self._know((of_block,), numbers, epoch):
            return MemoryOrder.WITHOUT_ACQUIRE
        fenced = self._numbers.get(key_of_fenced(thread, self._shift))
        if fenced is not None and (
            self._know((*clocks, of_block), [fenced], epoch) or _publish(read, [fenced], epoch)
        ):
            return MemoryOrder.WITHOUT_RELEASE
        return MemoryOrder.NONE

    def _numbers_of(self, thread: int, *, strong: bool = False) -> list[int]:
        """The entries of clocks that stand for a thread."""
        keys = [key_of_thread(thread), key_of_warp(thread), key_of_block(thread, self._shift)]
        if strong:
            keys.append(key_of_strong(thread))
        return [self._numbers[key] for key in keys if key in self._numbers]

    @staticmethod
    def _know(clocks: Iterable[VectorClock], numbers: list[int], epoch: int) -> bool:
        for clock in clocks:
            for number in numbers:
                if epoch_of(clock, number) > epoch:
                    return True
        return False

    # Changes of clocks.

    def _release(
        self, location: Location, own_epochs: SparseClock, block: int, clocks: ThreadClocks
    ) -> None:
        sequence = self.sequences.get(location)
        if sequence is None:
            number = len(self.sequences) + 1
            if number == len(self.lengths):
                self.lengths = np.concatenate([self.lengths, np.zeros_like(self.lengths)])
            sequence = self.sequences[location] = ReleaseSequence(number)
            self.lengths[0] = number
        sequence.add(own_epochs, block, clocks)
        if not self._accelerations.merges_lazily:
            sequence.clock.known()
        self.lengths[sequence.number] = sequence.length

    def _numbered(self, published: Iterable[tuple[int, int]]) -> SparseClock:
        numbers = self._numbers
        return {numbers.setdefault(key, len(numbers)): epoch for key, epoch in published if epoch}

    def _unfence(self, threads: Iterable[int]) -> None:
        """The next fence of these threads publishes more."""
        for unfenced in self._unfenced:
            unfenced.update(threads)

    def _threads_of(self, block: int) -> range:
        return range(block << self._shift, block + 1 << self._shift)

    def _learn(self, thread: int, clock: VectorClock) -> None:
        before = self._knows.get(thread, EMPTY)
        after = self._knows[thread] = joined(before, clock)
        if after is not before:
            self._unfence((thread,))

    def _learn_together(self, threads: Iterable[int], clock: VectorClock) -> None:
        """Add knowledge to these threads; those that shared one clock share one again."""
        knows = self._knows
        # By the identity of a thread's clock: that clock, and the new one.
        after: dict[int, tuple[VectorClock, VectorClock]] = {}
        for thread in threads:
            before = knows.get(thread, EMPTY)
            pair = after.get(id(before))
            if pair is None:
                pair = after[id(before)] = before, joined(before, clock)
            knows[thread] = pair[1]
        if any(now is not before for before, now in after.values()):
            self._unfence(threads)

    def _learn_by_block(self, block: int, clock: VectorClock) -> None:
        self._block_knows[block] = joined(self._block_knows.get(block, EMPTY), clock)
        self._unfence(self._threads_of(block))

    def _acquire_read_of_block(self, thread: int) -> None:
        """Acquire, once, the releases that the block has read before its last barrier."""
        block = thread >> self._shift
        read = self._block_read.get(block)
        if read is None:
            return
        acquired = self._acquired.setdefault(block, set())
        if thread not in acquired:
            acquired.add(thread)
            self._learn(thread, read)


def _clock_of(read: _Read) -> VectorClock:
    return joined_all(clock.known() for _, clock in read.values())


def _publish(read: list[_Read], numbers: list[int], epoch: int) -> bool:
    """Return whether a release that was read itself publishes more than an epoch."""
    for releases in read:
        for sequence, (length, _) in releases.items():
            if any(sequence.publishes(number, epoch, length) for number in numbers):
                return True
    return False
