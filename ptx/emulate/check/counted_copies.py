"""Asynchronous operations that an mbarrier object counts, and other workers beside the threads.

PTX ISA, "Asynchronous Operations": such an operation is performed as if by another thread. Here
each object stands for that thread: what it counts has a stamp with a number of the object, and with
its phase as the epoch. Who has waited for the phase knows that the epoch is over; nobody else does,
whatever barriers come between.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ptx.emulate.check.handover import Handovers, Place
from ptx.emulate.check.keys import key_of_thread
from ptx.emulate.check.stamps import (
    EPOCH_SHIFT,
    MOST_EPOCHS,
    MOST_THREADS,
    THREAD_SHIFT,
    Bools,
    Stamps,
)
from ptx.emulate.model.addresses import Index

_LAST: Final = MOST_THREADS - 2
_LATEST: Final = MOST_EPOCHS - 1


class CountedCopies:
    """The objects of a launch that count copies; they are numbered down from the last thread.

    So are workers of other kinds (`tensor_workers`).
    """

    def __init__(self) -> None:
        self._numbers: dict[Place, int] = {}
        self._phases: dict[Place, int] = {}
        self._blocks: list[int] = []
        self._issuers: dict[tuple[int, int], int] = {}
        self._last_issuers: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def stamps(
        self, what: str, objects: Index, blocks: Index, issuers: Stamps, site: int
    ) -> Stamps:
        """(n,) stamps without a site, of what threads issue for these objects of the blocks."""
        found, first, of = np.unique(objects, return_index=True, return_inverse=True)
        stamps = np.empty(len(found), dtype=np.int64)
        for k, number in enumerate(found.tolist()):
            place = what, number
            thread = self.number_of(place, int(blocks[first[k]]))
            self.note_issuer(thread, site, int(issuers[first[k]]))
            phase = min(self._phases.get(place, 0), _LATEST)
            stamps[k] = (thread + 1) << THREAD_SHIFT | phase << EPOCH_SHIFT
        return stamps[of]

    def known_number(self, place: Place) -> int | None:
        """The number of what stands at a place; None where nothing has one."""
        return self._numbers.get(place)

    def number_of(self, place: Place, block: int) -> int:
        """The number of what stands at a place, of a block, as if it were a thread."""
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = _LAST - len(self._blocks)
            self._blocks.append(block)
        return number

    def note_issuer(self, number: int, site: int, thread: int) -> None:
        """A thread issues what this number stands for."""
        self._issuers[number, site] = self._last_issuers[number] = thread

    def complete(self, place: Place, handovers: Handovers) -> None:
        """A phase of an object is complete: what it counted in it is over for who waits for it."""
        thread = self._numbers.get(place)
        if thread is not None:
            phase = self._phases[place] = self._phases.get(place, 0) + 1
            handovers.write(place, thread, ((key_of_thread(thread), phase),), 0, at_once=True)

    def are_counted(self, threads: Stamps) -> Bools:
        """Which of these numbers of threads stand for an object."""
        found: Bools = threads > _LAST - len(self._blocks)
        return found

    def issuer(self, thread: int, site: int) -> int:
        """The number of a thread, or of one that issued what an object counts.

        What threads copied before an object was told to count it has no site here.
        """
        return self._issuers.get((thread, site), self._last_issuers.get(thread, thread))

    def blocks(self, threads: Stamps, shift: int) -> Stamps:
        """The numbers of the threads' blocks, or of those that the objects lie in."""
        blocks: Stamps = threads >> shift
        counted = self.are_counted(threads)
        if counted.any():
            blocks[counted] = np.array(self._blocks)[_LAST - threads[counted]]
        return blocks
