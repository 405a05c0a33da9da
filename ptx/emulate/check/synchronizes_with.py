"""What threads learn of each other through memory: fences with flags, locks and counters.

A thread that writes a place by an atomic or volatile access after a fence hands over all that
happened before the fence; a thread that reads the place so, and then executes a fence, takes it
over. PTX ISA, "Memory Consistency Model": release and acquire patterns.

Each place has a chain, to which every writer adds what it says of itself and what it knows. Who
reads the place knows what the chain knows then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accelerations import LazyClock
from ptx.emulate.check.stamps import (
    EPOCH_BITS,
    key_of_block,
    key_of_fenced,
    key_of_strong,
    key_of_thread,
    key_of_warp,
)
from ptx.emulate.check.vector_clock import NOTHING, Few, VectorClock, epoch_of, joined, joined_all

_BITS: Final = EPOCH_BITS + 1
_EPOCH: Final = (1 << _BITS) - 1

Told = tuple[VectorClock, VectorClock]
"""What a thread may hand over: what all of its block know, and what it knows beyond that."""


class ReleaseSequence:
    """What was handed over at one place; who has read `n` writers of it knows the first `n`.

    Attributes:
        number: of the chain, from 1.
        length: how many have written.
        told: what all of them said, and knew of others.
        taken: the threads that have taken over all of it.
    """

    __slots__ = ("_heard", "_said", "length", "number", "taken", "told")

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.length: int = 0
        self.told: LazyClock = LazyClock()
        self.taken: set[int] = set()
        # For a thread, warp or block: positions, each with the epoch that is said from there on.
        self._said: dict[int, list[int]] = {}
        # What all of a block knew when it told so last.
        self._heard: dict[int, VectorClock] = {}

    def add(self, said: Few, block: int, told: Told) -> None:
        """One more writer, of a block, hands over what it says itself and what it knows."""
        if self.taken:
            self.taken = set()
        at = self.length << _BITS
        for number, epoch in said.items():
            epochs = self._said.get(number)
            if epochs is None:
                self._said[number] = [at | epoch]
            elif epoch > epochs[-1] & _EPOCH:
                epochs.append(at | epoch)
        together, own = told
        if self._heard.get(block, NOTHING) is together:
            together = NOTHING
        else:
            self._heard[block] = together
        self.told = self.told.then(said, together, own)
        self.length += 1

    def says(self, number: int, epoch: int, length: int) -> bool:
        """Whether the first `length` themselves say that an epoch of one of them is over."""
        epochs = self._said.get(number)
        if epochs is None:
            return False
        told = bisect_left(epochs, length << _BITS)
        return told > 0 and epochs[told - 1] & _EPOCH > epoch


class ReleaseCounts:
    """How many have written to each place where something was handed over, by their numbers.

    Number 0 stands for all others, where nothing was; it counts the places instead, so that who
    polls such a one looks again when there is another place.
    """

    def __init__(self) -> None:
        self._lengths: NDArray[np.int64] = np.zeros(16, dtype=np.int64)

    @property
    def every(self) -> NDArray[np.int64]:
        """By numbers; an array that changes."""
        return self._lengths

    def add(self) -> int:
        """The number of one more place."""
        lengths = self._lengths
        lengths[0] += 1
        number = int(lengths[0])
        if number == len(lengths):
            self._lengths = np.concatenate([lengths, np.zeros_like(lengths)])
        return number


Location = tuple[str, int]
"""A space and a unit of it."""

Read = dict[ReleaseSequence, tuple[int, LazyClock]]
"""How much of each chain was read, and what that much of it knows."""


class MemoryOrder(IntEnum):
    """How what one thread did comes before what another one does, through memory."""

    NONE = 0
    HEARD = 1
    """The other thread's block has read of it, and met at a barrier since, without a fence."""
    FENCED = 2
    """The other thread had a fence, and its block met since, before one of it handed over."""
    KNOWN = 3


class Synchronization:
    """What the threads of a launch know through memory.

    Threads are named by their numbers in the launch, `shift` makes a block's of them. How far
    something is handed over is one of `levels`, from 0, within a block, to the last one, to all
    blocks: it takes fences and accesses of a scope that reaches so far.

    Attributes:
        chains: of the places where something was handed over.
        lengths: of these chains.
    """

    def __init__(self, shift: int, levels: int) -> None:
        self._shift = shift
        self.chains: dict[Location, ReleaseSequence] = {}
        self.lengths: ReleaseCounts = ReleaseCounts()
        self._numbers: dict[int, int] = {}  # by keys
        self._knows: dict[int, VectorClock] = {}
        self._block_knows: dict[int, VectorClock] = {}
        self._block_heard: dict[int, VectorClock] = {}
        # Of each block the threads that have taken over what it heard.
        self._took: dict[int, set[int]] = {}
        # Of each level, by threads.
        self._read: list[dict[int, Read]] = [{} for _ in range(levels)]
        self._fenced: list[dict[int, Told]] = [{} for _ in range(levels)]
        # Of each level, the threads for which a fence tells what their last one did not.
        self._unfenced: list[set[int]] = [set() for _ in range(levels)]
        # What those who wait at a place know; all that its chain knows where nothing is said.
        self._complete: dict[Location, tuple[int, LazyClock]] = {}

    @property
    def anything(self) -> bool:
        """Whether anything was handed over."""
        return bool(self._numbers)

    def fence(self, thread: int, level: int) -> None:
        """A fence takes over what was read before, and hands over what is known now."""
        if level:
            self._take_heard(thread)
        for each in self._read[: level + 1]:
            read = each.pop(thread, None)
            if read is not None:
                self._take(thread, _known_of(read))
        told = self.told(thread)
        for fenced, unfenced in zip(self._fenced[: level + 1], self._unfenced, strict=False):
            fenced[thread] = told
            unfenced.discard(thread)

    def fence_all(self, threads: list[int], level: int) -> None:
        """A fence of each of these threads; most have learned nothing since their last one."""
        for thread in sorted(self._unfenced[level].intersection(threads)):
            self.fence(thread, level)

    def _learns(self, threads: Iterable[int]) -> None:
        """The next fence of these threads tells more."""
        for unfenced in self._unfenced:
            unfenced.update(threads)

    def write(
        self, place: Location, thread: int, known: Iterable[tuple[int, int]], level: int, *,
        at_once: bool,
    ) -> None:  # fmt: skip
        """Hand over what the thread knew at its last fence, or knows now.

        Args:
            place: where it writes.
            thread: who.
            known: pairs of a key and the epoch below which it is over.
            level: how far.
            at_once: the write is itself a release.
        """
        nothing = NOTHING, NOTHING
        told = self.told(thread) if at_once else self._fenced[level].get(thread, nothing)
        self._add(place, self._said(known), thread >> self._shift, told)

    def write_of_block(self, place: Location, block: int, known: tuple[int, int]) -> None:
        """All threads of a block hand over what they know now."""
        own = [mine for thread, mine in self._knows.items() if thread >> self._shift == block]
        told = self._block_knows.get(block, NOTHING), joined_all(own)
        self._add(place, self._said((known,)), block, told)

    def read(self, place: Location, thread: int, level: int, *, at_once: bool) -> int:
        """What is read here is known after the next fence, or at once where that is an acquire.

        Gives the number of the place's chain, 0 where nothing was handed over.
        """
        chain = self.chains.get(place)
        if chain is None:
            return 0
        if thread in chain.taken:
            return chain.number
        read = self._complete.get(place) or (chain.length, chain.told)
        if at_once:
            self._take(thread, read[1].known())
            if place not in self._complete:
                chain.taken.add(thread)
        else:
            self._read[level].setdefault(thread, {})[chain] = read
            self._learns((thread,))
        return chain.number

    def read_together(
        self, place: Location, threads: list[int], level: int, *, at_once: bool
    ) -> None:
        """These threads read one place; most may know all that it tells."""
        chain = self.chains.get(place)
        if chain is None:
            return
        new = set(threads) - chain.taken
        if at_once and place not in self._complete:
            self._take_together(new, chain.told.known())
            chain.taken |= new
            return
        for thread in sorted(new):
            self.read(place, thread, level, at_once=at_once)

    def read_by_block(self, place: Location, block: int) -> None:
        """All threads of a block know at once what is read here."""
        chain = self.chains.get(place)
        if chain is not None:
            _, told = self._complete.get(place) or (chain.length, chain.told)
            self._learn(block, told.known())

    def learn(self, threads: Sequence[int], key: int, epoch: int) -> None:
        """These threads know at once that all below an epoch of a key is over."""
        said = self._said(((key, epoch),))
        if said:
            self._take_together(threads, said)

    def complete(self, place: Location) -> None:
        """A phase is complete: who waits for it knows what was handed over so far, and no more."""
        chain = self.chains.get(place)
        self._complete[place] = (0, LazyClock()) if chain is None else (chain.length, chain.told)

    def _add(self, place: Location, said: Few, block: int, told: Told) -> None:
        chain = self.chains.get(place)
        if chain is None:
            chain = self.chains[place] = ReleaseSequence(self.lengths.add())
        chain.add(said, block, told)
        self.lengths.every[chain.number] = chain.length

    def _said(self, known: Iterable[tuple[int, int]]) -> Few:
        """What a writer says of itself, by numbers."""
        numbers = self._numbers
        return {numbers.setdefault(key, len(numbers)): epoch for key, epoch in known if epoch}

    def told(self, thread: int) -> Told:
        """What a thread knows: what all of its block know, and what it knows beyond that."""
        together = self._block_knows.get(thread >> self._shift, NOTHING)
        return together, self._knows.get(thread, NOTHING)

    def _learn(self, block: int, known: VectorClock) -> None:
        """All threads of a block know this from now on."""
        self._block_knows[block] = joined(self._block_knows.get(block, NOTHING), known)
        self._learns(self._threads_of(block))

    def _threads_of(self, block: int) -> range:
        return range(block << self._shift, block + 1 << self._shift)

    def _take(self, thread: int, known: VectorClock) -> None:
        before = self._knows.get(thread, NOTHING)
        after = self._knows[thread] = joined(before, known)
        if after is not before:
            self._learns((thread,))

    def _take_together(self, threads: Iterable[int], known: VectorClock) -> None:
        """These threads know this; those that knew the same before have one knowledge again."""
        knows = self._knows
        # By what a thread knew: that, which stays alive for its number, and what it knows now.
        after: dict[int, tuple[VectorClock, VectorClock]] = {}
        for thread in threads:
            before = knows.get(thread, NOTHING)
            pair = after.get(id(before))
            if pair is None:
                pair = after[id(before)] = before, joined(before, known)
            knows[thread] = pair[1]
        if any(now is not before for before, now in after.values()):
            self._learns(threads)

    def _take_heard(self, thread: int) -> None:
        """Know what the block has heard, once."""
        block = thread >> self._shift
        heard = self._block_heard.get(block)
        if heard is None:
            return
        took = self._took.setdefault(block, set())
        if thread not in took:
            took.add(thread)
            self._take(thread, heard)

    def meet_block(self, block: int) -> None:
        """All threads of a block know what each of them knew, and hear what each has read.

        What one of them took over of what they heard is known to all from now on.
        """
        if self._took.pop(block, None):
            del self._block_heard[block]
        for read in self._read:
            for thread in [each for each in read if each >> self._shift == block]:
                heard = self._block_heard.get(block, NOTHING)
                self._block_heard[block] = joined(heard, _known_of(read.pop(thread)))
                self._learns(self._threads_of(block))
        threads = [each for each in self._knows if each >> self._shift == block]
        if threads:
            self._learn(block, joined_all(self._knows.pop(each) for each in threads))

    def meet_threads(self, threads: list[int]) -> None:
        """These threads know what each of them knew."""
        known = [self._knows[each] for each in threads if each in self._knows]
        if known:
            self._knows.update(dict.fromkeys(threads, joined_all(known)))
            self._learns(threads)

    def knows_thread(self, thread: int, other: int, epoch: int) -> bool:
        """Whether a thread has itself taken over that an epoch of another one is over."""
        number = self._numbers.get(key_of_thread(other))
        known = self._knows.get(thread)
        return number is not None and known is not None and epoch_of(known, number) > epoch

    def is_over_for_block(self, block: int, epoch: int, for_block: int) -> bool:
        """Whether all threads of a block know that an epoch of all of another one is over."""
        number = self._numbers.get(key_of_block(block << self._shift, self._shift))
        known = self._block_knows.get(for_block, NOTHING)
        return number is not None and epoch_of(known, number) > epoch

    def over_for(self, thread: int, others: list[int], epochs: list[int]) -> list[bool]:
        """Whether a thread knows through memory that an epoch of each other one is over."""
        known = [self._knows.get(thread), self._block_knows.get(thread >> self._shift)]
        every = [each for each in known if each is not None]
        found: dict[int, int] = {}  # by keys: the epoch below which that one is over

        def least(key: int) -> int:
            if key not in found:
                number = self._numbers.get(key)
                told = () if number is None else (epoch_of(each, number) for each in every)
                found[key] = max(told, default=0)
            return found[key]

        return [
            least(key_of_thread(other)) > epoch
            or least(key_of_warp(other)) > epoch
            or least(key_of_block(other, self._shift)) > epoch
            for other, epoch in zip(others, epochs, strict=True)
        ]

    def tells(self, told: Told, thread: int, epoch: int) -> bool:
        """Whether that says that a thread's epoch is over."""
        keys = [key_of_thread(thread), key_of_warp(thread), key_of_block(thread, self._shift)]
        return self._tells(list(told), keys, epoch)

    def order(
        self, thread: int, epoch: int, for_thread: int, *, strong: bool, as_strong: bool
    ) -> MemoryOrder:
        """Whether a thread's epoch is over for another one that has taken it over.

        Args:
            thread, epoch: what happened.
            for_thread: for whom.
            strong: whether it was an atomic or volatile access, such as hands over itself.
            as_strong: whether it is compared with such an access: those of two threads keep their
                order without a fence.
        """
        keys = [key_of_thread(thread), key_of_warp(thread), key_of_block(thread, self._shift)]
        if strong:
            keys.append(key_of_strong(thread))
        block = for_thread >> self._shift
        known = [self._knows.get(for_thread, NOTHING), self._block_knows.get(block, NOTHING)]
        read = [each.get(for_thread, {}) for each in self._read if strong and as_strong]
        if self._tells(known, keys, epoch) or self._says(read, keys, epoch):
            return MemoryOrder.KNOWN
        heard = [self._block_heard.get(block, NOTHING)]
        if self._tells(heard, keys, epoch):
            return MemoryOrder.HEARD
        fenced = [key_of_fenced(thread, self._shift)]
        if self._tells(known + heard, fenced, epoch) or self._says(read, fenced, epoch):
            return MemoryOrder.FENCED
        return MemoryOrder.NONE

    def _tells(self, known: list[VectorClock], keys: list[int], epoch: int) -> bool:
        """Whether any of this says that an epoch of any of these is over."""
        numbers = [self._numbers[key] for key in keys if key in self._numbers]
        return any(epoch_of(each, number) > epoch for each in known for number in numbers)

    def _says(self, read: list[Read], keys: list[int], epoch: int) -> bool:
        """Whether a writer that was read has said so itself."""
        numbers = [self._numbers[key] for key in keys if key in self._numbers]
        return any(
            chain.says(number, epoch, length)
            for each in read
            for chain, (length, _) in each.items()
            for number in numbers
        )


def _known_of(read: Read) -> VectorClock:
    return joined_all(told.known() for _, told in read.values())
