"""Asynchronous copies: their completion, and the virtual threads that perform them.

PTX ISA, "Memory Consistency Model", "Asynchronous Operations": an asynchronous operation is
performed as if by another thread. Nothing but a wait orders it before a later access, by whichever
thread ("Data Movement and Conversion Instructions: Asynchronous copy"):

- A copy of a group is complete when its thread has waited for the group, or for its reads alone by
  `cp.async.bulk.wait_group.read`. Until then its stamp marks it as in flight.
- A copy that an mbarrier object counts is complete for threads that have waited for the phase.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

import numpy as np

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.shadow_memory import ShadowMemory
from ptx.emulate.check.stamps import (
    EPOCH_SHIFT,
    IN_FLIGHT,
    MOST_EPOCHS,
    MOST_THREADS,
    THREAD_SHIFT,
    Bools,
    Stamps,
    key_of_thread,
)
from ptx.emulate.check.synchronizes_with import Location, Synchronization
from ptx.emulate.model.addresses import Index

_LAST: Final = MOST_THREADS - 2
_LATEST: Final = MOST_EPOCHS - 1
Kind = Literal["read", "write", "combine"]
"""The access of a copy to one of its sides; "combine" uses atomic operations."""


class _Copy:
    """The units of one step, with the thread and the group of each."""

    def __init__(self, kind: Kind, shadow: ShadowMemory, step: AccessStep, groups: Stamps) -> None:
        self.kind = kind
        self.shadow = shadow
        self.step = step
        units = step.units
        self.units = np.arange(units.start, units.stop) if isinstance(units, slice) else units
        self.lanes = step.lanes
        self.stamps = step.stamps | IN_FLIGHT
        self.groups = groups[step.lanes]

    def put(self) -> None:
        """Store that this may still happen."""
        if self.kind == "write":
            self.shadow.put(self.units, self.stamps, self.step)
        elif self.kind == "combine":
            self.shadow.settle(self.step)
            self.shadow.atomics.add(self.units, self.stamps)

    def finish(self, waited: Stamps, now: Stamps) -> bool:
        """End the groups below each thread's number in `waited`; return whether that is all.

        `now`: the stamp of each thread at the end.
        """
        is_complete = self.groups < waited[self.lanes]
        if is_complete.any():
            units, stamps = self.units[is_complete], now[self.lanes[is_complete]] | self.step.site
            if self.kind == "write":
                self.shadow.put(units, stamps, self.step)
            elif self.kind == "combine":
                self.shadow.atomics.change(units, self.stamps[is_complete], stamps)
            else:
                self._read(units, stamps, now, is_complete.all())
            unfinished = ~is_complete
            self.units, self.lanes = self.units[unfinished], self.lanes[unfinished]
            self.stamps, self.groups = self.stamps[unfinished], self.groups[unfinished]
        return not len(self.units)

    def _read(self, units: Index, stamps: Stamps, now: Stamps, every: np.bool_) -> None:
        """Store the reads of these units."""
        is_first = len(units) == len(self.step.lanes)
        if every and is_first and self.shadow.lists_read(self.step.by(now[self.step.threads])):
            return
        self.shadow.settle(self.step)
        self.shadow.reads.add(units, stamps)


class AsyncCopies:
    """The copies in flight among the `threads` of a chunk, of one kind of groups."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._in_flight: list[_Copy] = []

    @cached_property
    def _committed(self) -> Stamps:
        """Of each thread, how many groups it has committed. Most kernels have none."""
        return np.zeros(self._threads, dtype=np.int64)

    def __bool__(self) -> bool:
        return bool(self._in_flight)

    def issue(self, kind: Kind, shadow: ShadowMemory, step: AccessStep) -> None:
        """Record that these threads begin to copy."""
        copy = _Copy(kind, shadow, step, self._committed)
        copy.put()
        self._in_flight.append(copy)

    def commit(self, lanes: Index) -> None:
        """Make a group of the copies that these threads began since their last group."""
        self._committed[lanes] += 1

    def wait(self, lanes: Index, pending: int, now: Stamps, *, reads_alone: bool = False) -> None:
        """Record a wait until at most `pending` groups are in flight; -1 for all copies.

        `now`: the threads' stamps from then on.
        """
        waited: Stamps = np.zeros(len(self._committed), dtype=np.int64)
        waited[lanes] = self._committed[lanes] - pending
        self._in_flight = [
            copy
            for copy in self._in_flight
            if (reads_alone and copy.kind != "read") or not copy.finish(waited, now)
        ]

    def reads_of(self, shadow: ShadowMemory, step: AccessStep) -> Stamps | None:
        """Return the stamps of copies that may still read each unit of a step; None without any."""
        readers = None
        for copy in self._in_flight:
            if copy.kind != "read" or copy.shadow is not shadow:
                continue
            if copy.step.high <= step.low or step.high <= copy.step.low:
                continue
            units = step.units
            if isinstance(units, slice):
                units = np.arange(units.start, units.stop)
            order = np.argsort(copy.units, kind="stable")
            positions = np.searchsorted(copy.units[order], units)
            positions = order[np.minimum(positions, len(order) - 1)]
            reader = np.where(copy.units[positions] == units, copy.stamps[positions], 0)
            readers = reader if readers is None else np.where(readers != 0, readers, reader)
        return readers

    def put_again(self, shadow: ShadowMemory) -> None:
        """Store the copies in flight again, after all accesses were forgotten."""
        for copy in self._in_flight:
            if copy.shadow is shadow:
                copy.put()


class VirtualThreads:
    """The threads that perform asynchronous operations: one for each mbarrier object and worker.

    They are numbered down from the last number of a thread. Each has a location for its number. The
    epoch of an object's thread is the phase of the object; that of a worker's thread is the group
    that its work belongs to (`tensor_cores.py`).
    """

    def __init__(self) -> None:
        self._numbers: dict[Location, int] = {}
        self._phases: dict[Location, int] = {}
        self._blocks: list[int] = []
        self._issuers: dict[tuple[int, int], int] = {}
        self._last_issuers: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def stamps(
        self, kind: str, objects: Index, blocks: Index, issuers: Stamps, site: int
    ) -> Stamps:
        """Return the stamps, without a site, of copies that threads issue for these mbarrier
        objects.

        `kind`, `objects`: the locations; `blocks`: where they lie; `issuers`: the threads.
        """
        distinct, first, of = np.unique(objects, return_index=True, return_inverse=True)
        stamps = np.empty(len(distinct), dtype=np.int64)
        for k, number in enumerate(distinct.tolist()):
            location = kind, number
            thread = self.number_of(location, int(blocks[first[k]]))
            self.note_issuer(thread, site, int(issuers[first[k]]))
            phase = min(self._phases.get(location, 0), _LATEST)
            stamps[k] = (thread + 1) << THREAD_SHIFT | phase << EPOCH_SHIFT
        return stamps[of]

    def find_number(self, location: Location) -> int | None:
        """Return the number of a location's thread; None where it has none."""
        return self._numbers.get(location)

    def number_of(self, location: Location, block: int) -> int:
        """Return the number of the thread of a location, in a block."""
        number = self._numbers.get(location)
        if number is None:
            number = self._numbers[location] = _LAST - len(self._blocks)
            self._blocks.append(block)
        return number

    def note_issuer(self, number: int, site: int, thread: int) -> None:
        """Record that a thread has issued the work of a virtual thread."""
        self._issuers[number, site] = self._last_issuers[number] = thread

    def complete(self, location: Location, synchronization: Synchronization) -> None:
        """Complete a phase, and with it its copies for threads that wait for it."""
        thread = self._numbers.get(location)
        if thread is not None:
            phase = self._phases[location] = self._phases.get(location, 0) + 1
            synchronization.release(
                location, thread, ((key_of_thread(thread), phase),), 0, at_once=True
            )

    def are_virtual(self, threads: Stamps) -> Bools:
        """Return which threads are virtual."""
        virtual: Bools = threads > _LAST - len(self._blocks)
        return virtual

    def issuer(self, thread: int, site: int) -> int:
        """Return the thread that issued the work of a virtual thread; for others the thread itself.

        The sites of copies from before `cp.async.mbarrier.arrive` are unknown.
        """
        return self._issuers.get((thread, site), self._last_issuers.get(thread, thread))

    def blocks(self, threads: Stamps, shift: int) -> Stamps:
        """Return the blocks of threads, or the blocks that their locations lie in."""
        blocks: Stamps = threads >> shift
        virtual = self.are_virtual(threads)
        if virtual.any():
            blocks[virtual] = np.array(self._blocks)[_LAST - threads[virtual]]
        return blocks
