"""Asynchronous copies that their threads have not waited for: they may still be going on.

PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy": a thread's copies are done
when it has waited for their group, or by `cp.async.wait_all` for all, and have been read with
`cp.async.bulk.wait_group.read`. Until then an access to what is written, and a write of what is
read, by any thread, that one as well, is a race.
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

Kind = Literal["read", "write", "combine"]
"""What a copy does with one side: it combines by atomic operations."""


class _Copy:
    """The units of one step, with the thread and the group of each."""

    def __init__(
        self, kind: Kind, accesses: ShadowMemory, step: AccessStep, groups: Stamps
    ) -> None:
        self.kind = kind
        self.accesses = accesses
        self.step = step
        units = step.units
        self.units = np.arange(units.start, units.stop) if isinstance(units, slice) else units
        self.lanes = step.lanes
        self.stamps = step.stamps | IN_FLIGHT
        self.groups = groups[step.lanes]

    def put(self) -> None:
        """Write down that this may still come."""
        if self.kind == "write":
            self.accesses.put(self.units, self.stamps, self.step)
        elif self.kind == "combine":
            self.accesses.settle(self.step)
            self.accesses.atomics.add(self.units, self.stamps)

    def finish(self, waited: Stamps, now: Stamps) -> bool:
        """The groups below each thread's number in `waited` are done; whether that is all.

        `now`: the stamp of each thread with which they are done.
        """
        done = self.groups < waited[self.lanes]
        if done.any():
            units, stamps = self.units[done], now[self.lanes[done]] | self.step.site
            if self.kind == "write":
                self.accesses.put(units, stamps, self.step)
            elif self.kind == "combine":
                self.accesses.atomics.change(units, self.stamps[done], stamps)
            else:
                self._read(units, stamps, now, done.all())
            rest = ~done
            self.units, self.lanes = self.units[rest], self.lanes[rest]
            self.stamps, self.groups = self.stamps[rest], self.groups[rest]
        return not len(self.units)

    def _read(self, units: Index, stamps: Stamps, now: Stamps, every: np.bool_) -> None:
        """These units have been read."""
        is_first = len(units) == len(self.step.lanes)
        if every and is_first and self.accesses.lists_read(self.step.by(now[self.step.threads])):
            return
        self.accesses.settle(self.step)
        self.accesses.reads.add(units, stamps)


class AsyncCopies:
    """The copies that are under way among the `threads` of a chunk, of one kind of groups."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._under_way: list[_Copy] = []

    @cached_property
    def _committed(self) -> Stamps:
        """Made when first needed, as most kernels have no copies."""
        return np.zeros(self._threads, dtype=np.int64)

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def issue(self, kind: Kind, accesses: ShadowMemory, step: AccessStep) -> None:
        """These threads begin to copy."""
        copy = _Copy(kind, accesses, step, self._committed)
        copy.put()
        self._under_way.append(copy)

    def commit(self, lanes: Index) -> None:
        """What these threads began to copy since they last did so is a group."""
        self._committed[lanes] += 1

    def wait(self, lanes: Index, pending: int, now: Stamps, *, reads_alone: bool = False) -> None:
        """These threads wait until at most `pending` groups are under way; -1 for everything.

        `now`: the threads' stamps from then on.
        """
        waited: Stamps = np.zeros(len(self._committed), dtype=np.int64)
        waited[lanes] = self._committed[lanes] - pending
        self._under_way = [
            each
            for each in self._under_way
            if (reads_alone and each.kind != "read") or not each.finish(waited, now)
        ]

    def reads_of(self, accesses: ShadowMemory, step: AccessStep) -> Stamps | None:
        """Who may still read each unit of a step, 0 for nobody; None if nobody reads any."""
        found = None
        for copy in self._under_way:
            if copy.kind != "read" or copy.accesses is not accesses:
                continue
            if copy.step.high <= step.low or step.high <= copy.step.low:
                continue
            units = step.units
            if isinstance(units, slice):
                units = np.arange(units.start, units.stop)
            order = np.argsort(copy.units, kind="stable")
            at = np.searchsorted(copy.units[order], units)
            at = order[np.minimum(at, len(order) - 1)]
            reader = np.where(copy.units[at] == units, copy.stamps[at], 0)
            found = reader if found is None else np.where(found != 0, found, reader)
        return found

    def put_again(self, accesses: ShadowMemory) -> None:
        """What was accessed is forgotten; what is under way is not."""
        for copy in self._under_way:
            if copy.accesses is accesses:
                copy.put()


_LAST: Final = MOST_THREADS - 2
_LATEST: Final = MOST_EPOCHS - 1


class VirtualThreads:
    """The objects of a launch that count copies; they are numbered down from the last thread.

    So are workers of other kinds (`tensor_workers`).
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

    def known_number(self, place: Location) -> int | None:
        """The number of what stands at a place; None where nothing has one."""
        return self._numbers.get(place)

    def number_of(self, place: Location, block: int) -> int:
        """The number of what stands at a place, of a block, as if it were a thread."""
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = _LAST - len(self._blocks)
            self._blocks.append(block)
        return number

    def note_issuer(self, number: int, site: int, thread: int) -> None:
        """A thread issues what this number stands for."""
        self._issuers[number, site] = self._last_issuers[number] = thread

    def complete(self, place: Location, handovers: Synchronization) -> None:
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
