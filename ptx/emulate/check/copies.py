"""Asynchronous copies that their threads have not waited for: they may still be going on.

PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy": a thread's copies are done
when it has waited for their group, or by `cp.async.wait_all` for all, and have been read with
`cp.async.bulk.wait_group.read`. Until then an access to what is written, and a write of what is
read, by any thread, that one as well, is a race.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from ptx.emulate.check.accesses import LastAccesses
from ptx.emulate.check.stamps import IN_FLIGHT, Stamps
from ptx.emulate.check.step import Step
from ptx.emulate.model.addresses import Index

Kind = Literal["read", "write", "combine"]
"""What a copy does with one side: it combines by atomic operations."""


class _Copy:
    """The units of one step, with the thread and the group of each."""

    def __init__(self, kind: Kind, accesses: LastAccesses, step: Step, groups: Stamps) -> None:
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


class Copies:
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

    def issue(self, kind: Kind, accesses: LastAccesses, step: Step) -> None:
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

    def reads_of(self, accesses: LastAccesses, step: Step) -> Stamps | None:
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

    def put_again(self, accesses: LastAccesses) -> None:
        """What was accessed is forgotten; what is under way is not."""
        for copy in self._under_way:
            if copy.accesses is accesses:
                copy.put()
