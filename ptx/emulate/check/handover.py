"""What threads learn of each other through memory: fences with flags, locks and counters.

A thread that writes a place by an atomic or volatile access after a fence hands over all that
happened before the fence; a thread that reads the place so, and then executes a fence, takes it
over. PTX ISA, "Memory Consistency Model": release and acquire patterns.

Each place has a chain, to which every writer adds. A thread knows a beginning of each chain that
it has read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from ptx.emulate.check.stamps import EPOCH_BITS, WARP_SHIFT

Place = tuple[str, int]
"""A space and a unit of it."""

_THREAD, _WARP, _BLOCK, _STRONG, _FENCED = range(5)
_KINDS: Final = 5
_BITS: Final = EPOCH_BITS + 1
_EPOCH: Final = (1 << _BITS) - 1


class Chain:
    """What was handed over at one place, oldest first; who knows `n` of it knows the first `n`."""

    __slots__ = ("_ends", "_heard", "_known", "_log", "_others", "length")

    def __init__(self) -> None:
        self.length: int = 0
        # For a thread, warp or block: positions, each with the epoch that is known from there on.
        self._known: dict[int, list[int]] = {}
        # What all of it knows of other chains, how that grew, and how far with each writer.
        self._others: Knowledge = {}
        self._log: Log = []
        self._ends: list[int] = [0]
        # How much of what all of a block know was told here.
        self._heard: dict[int, tuple[Log, int]] = {}

    def add(self, known: Iterable[tuple[int, int]], block: int, told: Told) -> None:
        """One more writer, of a block, hands over what it knows, by keys and by other chains."""
        at = self.length << _BITS
        for key, epoch in known:
            epochs = self._known.get(key)
            if epochs is None:
                self._known[key] = [at | epoch]
            elif epoch > epochs[-1] & _EPOCH:
                epochs.append(at | epoch)
        log, end, own = told
        heard, start = self._heard.get(block, (log, 0))
        self._hear(log[start if heard is log else 0 : end])
        self._heard[block] = log, end
        self._hear(own)
        self.length += 1
        self._ends.append(len(self._log))

    def _hear(self, others: Iterable[tuple[Chain, int]]) -> None:
        mine, log = self._others, self._log
        for each in others:
            other, length = each
            if mine.get(other, 0) < length and other is not self:
                mine[other] = length
                log.append(each)

    def knows(self, key: int, epoch: int, length: int) -> bool:
        """Whether the first `length` say that an epoch of a thread, warp or block is over."""
        epochs = self._known.get(key)
        if epochs is None:
            return False
        told = bisect_left(epochs, length << _BITS)
        return told > 0 and epochs[told - 1] & _EPOCH > epoch

    def beginnings(self, after: int, length: int) -> Iterable[tuple[Chain, int]]:
        """What the first `length` know of other chains, at least what the first `after` do not."""
        start, end = self._ends[after], self._ends[length]
        if length == self.length and end - start > len(self._others):
            return self._others.items()
        return self._log[start:end]


Knowledge = dict[Chain, int]
"""How much of each chain is known; with it, what that much of a chain knows of others."""


Log = list[tuple[Chain, int]]
"""The same in the order in which it was learned; it grows, and is never changed else."""

Told = tuple[Log, int, Log]
"""What a thread may hand over: so much of what its block knows, and what it knows beyond that."""

_NOTHING: Final[Knowledge] = {}


def join(into: Knowledge, more: Knowledge) -> None:
    """Know what `more` knows as well."""
    for chain, length in more.items():
        if into.get(chain, 0) < length:
            into[chain] = length


class Order(IntEnum):
    """How what one thread did comes before what another one does, through memory."""

    NONE = 0
    HEARD = 1
    """The other thread's block has read of it, and met at a barrier since, without a fence."""
    FENCED = 2
    """The other thread had a fence, and its block met since, before one of it handed over."""
    KNOWN = 3


class Handovers:
    """What the threads of a launch know through memory.

    Threads are named by their numbers in the launch, `shift` makes a block's of them. How far
    something is handed over is one of `levels`, from 0, within a block, to the last one, to all
    blocks: it takes fences and accesses of a scope that reaches so far.

    Attributes:
        chains: of the places where something was handed over.
    """

    def __init__(self, shift: int, levels: int) -> None:
        self._shift = shift
        self.chains: dict[Place, Chain] = {}
        self._knows: dict[int, Knowledge] = {}
        self._block_knows: dict[int, Knowledge] = {}
        self._block_logs: dict[int, Log] = {}
        self._block_heard: dict[int, Knowledge] = {}
        # Of each block the threads that have taken over what it heard.
        self._took: dict[int, set[int]] = {}
        # Of each level, by threads.
        self._read: list[dict[int, Knowledge]] = [{} for _ in range(levels)]
        self._fenced: list[dict[int, Told]] = [{} for _ in range(levels)]
        # Up to where those who wait at a place know its chain; all of it where nothing is said.
        self._complete: dict[Place, int] = {}

    @property
    def anything(self) -> bool:
        """Whether anything was handed over."""
        return bool(self.chains)

    def fence(self, thread: int, level: int) -> None:
        """A fence takes over what was read before, and hands over what is known now."""
        if level:
            self._take_heard(thread)
        for each in self._read[: level + 1]:
            self._take(thread, each.pop(thread, {}))
        known = self._told(thread)
        for fenced in self._fenced[: level + 1]:
            fenced[thread] = known

    def write(
        self, place: Place, thread: int, known: Iterable[tuple[int, int]], level: int, *,
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
        told = self._told(thread) if at_once else self._fenced[level].get(thread, ([], 0, []))
        self._chain(place).add(known, thread >> self._shift, told)

    def write_of_block(self, place: Place, block: int, known: tuple[int, int]) -> None:
        """All threads of a block hand over what they know now."""
        own = [mine for thread, mine in self._knows.items() if thread >> self._shift == block]
        log = self._block_logs.get(block, [])
        told = log, len(log), [each for mine in own for each in mine.items()]
        self._chain(place).add((known,), block, told)

    def read(self, place: Place, thread: int, level: int, *, at_once: bool) -> None:
        """What is read here is known after the next fence, or at once where that is an acquire."""
        chain = self.chains.get(place)
        if chain is None:
            return
        read = {chain: self._complete.get(place, chain.length)}
        if at_once:
            self._take(thread, read)
        else:
            join(self._read[level].setdefault(thread, {}), read)

    def read_by_block(self, place: Place, block: int) -> None:
        """All threads of a block know at once what is read here."""
        chain = self.chains.get(place)
        if chain is not None:
            read = {chain: self._complete.get(place, chain.length)}
            learned: Knowledge = {}
            _join_with_beginnings(learned, read, self._block_knows.get(block, _NOTHING))
            self._learn(block, learned)

    def complete(self, place: Place) -> None:
        """A phase is complete: who waits for it knows what was handed over so far, and no more."""
        chain = self.chains.get(place)
        self._complete[place] = 0 if chain is None else chain.length

    def _chain(self, place: Place) -> Chain:
        chain = self.chains.get(place)
        if chain is None:
            chain = self.chains[place] = Chain()
        return chain

    def _told(self, thread: int) -> Told:
        log = self._block_logs.get(thread >> self._shift, [])
        return log, len(log), list(self._knows.get(thread, _NOTHING).items())

    def _learn(self, block: int, learned: Knowledge) -> None:
        """All threads of a block know this from now on."""
        knows, log = self._block_knows.setdefault(block, {}), self._block_logs.setdefault(block, [])
        for each in learned.items():
            chain, length = each
            if knows.get(chain, 0) < length:
                knows[chain] = length
                log.append(each)
        if len(log) > 4 * len(knows):  # much of it is out of date
            self._block_logs[block] = list(knows.items())

    def _take(self, thread: int, read: Knowledge) -> None:
        if read:
            together = self._block_knows.get(thread >> self._shift, _NOTHING)
            _join_with_beginnings(self._knows.setdefault(thread, {}), read, together)

    def _take_heard(self, thread: int) -> None:
        """Know what the block has heard, once; what that knows was heard with it."""
        block = thread >> self._shift
        heard = self._block_heard.get(block)
        if heard is None:
            return
        took = self._took.setdefault(block, set())
        if thread not in took:
            took.add(thread)
            together = self._block_knows.get(block, _NOTHING)
            mine = self._knows.setdefault(thread, {})
            join(mine, {c: n for c, n in heard.items() if together.get(c, 0) < n})

    def meet_block(self, block: int) -> None:
        """All threads of a block know what each of them knew, and hear what each has read.

        What one of them took over of what they heard is known to all from now on.
        """
        if self._took.pop(block, None):
            del self._block_heard[block]
        for read in self._read:
            for thread in [each for each in read if each >> self._shift == block]:
                _join_with_beginnings(self._block_heard.setdefault(block, {}), read.pop(thread))
        for thread in [each for each in self._knows if each >> self._shift == block]:
            self._learn(block, self._knows.pop(thread))

    def meet_threads(self, threads: list[int]) -> None:
        """These threads know what each of them knew."""
        known = [self._knows[each] for each in threads if each in self._knows]
        if not known:
            return
        together: Knowledge = {}
        for each in known:
            join(together, each)
        for thread in threads:
            self._knows[thread] = dict(together)

    def is_over_for_block(self, block: int, epoch: int, for_block: int) -> bool:
        """Whether all threads of a block know that an epoch of all of another one is over."""
        keys = [key_of_block(block << self._shift, self._shift)]
        return _tells(self._block_knows.get(for_block), keys, epoch)

    def order(
        self, thread: int, epoch: int, for_thread: int, *, strong: bool, as_strong: bool
    ) -> Order:
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
        known = [self._knows.get(for_thread), self._block_knows.get(block)]
        if strong and as_strong:
            known += [each.get(for_thread) for each in self._read]
        if any(_tells(each, keys, epoch) for each in known):
            return Order.KNOWN
        heard = self._block_heard.get(block)
        if _tells(heard, keys, epoch):
            return Order.HEARD
        fenced = [key_of_fenced(thread, self._shift)]
        if any(_tells(each, fenced, epoch) for each in (*known, heard)):
            return Order.FENCED
        return Order.NONE


def _tells(knowledge: Knowledge | None, keys: list[int], epoch: int) -> bool:
    """Whether what is known says that an epoch of any of these is over."""
    return any(
        chain.knows(key, epoch, length)
        for chain, length in (knowledge or {}).items()
        for key in keys
    )


def _join_with_beginnings(into: Knowledge, read: Knowledge, known: Knowledge = _NOTHING) -> None:
    """Know what is read and what that knows, beyond what is `known` already.

    Who knows a part of a chain knows as well what that part knows of others.
    """
    for chain, length in read.items():
        part = max(into.get(chain, 0), known.get(chain, 0))
        if part < length:
            into[chain] = length
            for other, beginning in chain.beginnings(part, length):
                if into.get(other, 0) < beginning and known.get(other, 0) < beginning:
                    into[other] = beginning


def key_of_thread(thread: int) -> int:
    """The key of a thread alone."""
    return thread * _KINDS + _THREAD


def key_of_strong(thread: int) -> int:
    """The key of a thread's atomic and volatile writes, which are seen by who takes over."""
    return thread * _KINDS + _STRONG


def key_of_fenced(thread: int, shift: int) -> int:
    """The key of what each thread of a block had before a fence and a barrier behind it."""
    return (thread >> shift) * _KINDS + _FENCED


def key_of_warp(thread: int) -> int:
    """The key of a thread's warp."""
    return (thread >> WARP_SHIFT) * _KINDS + _WARP


def key_of_block(thread: int, shift: int) -> int:
    """The key of a thread's block."""
    return (thread >> shift) * _KINDS + _BLOCK
