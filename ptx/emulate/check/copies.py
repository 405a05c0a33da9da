"""Asynchronous copies that nobody has waited for: each of their writes may still come.

PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy": a thread's copies are written
when it has waited for their group, or by `cp.async.wait_all` for all; until then an access to the
same memory by any thread, that one as well, is a race. The sources are taken as read at once.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.accesses import LastAccesses
from ptx.emulate.check.stamps import IN_FLIGHT, Stamps
from ptx.emulate.check.step import Step
from ptx.emulate.model.addresses import Index


class _Copy:
    """The units of one step, with the thread and the group of each."""

    def __init__(self, accesses: LastAccesses, step: Step, groups: Stamps) -> None:
        self.accesses = accesses
        self.step = step
        units = step.units
        self.units = np.arange(units.start, units.stop) if isinstance(units, slice) else units
        self.lanes = step.lanes
        self.stamps = step.stamps | IN_FLIGHT
        self.groups = groups[step.lanes]

    def put(self) -> None:
        """Write down that these writes may still come."""
        self.accesses.put(self.units, self.stamps, self.step)

    def finish(self, waited: Stamps, now: Stamps) -> bool:
        """The groups below each thread's number in `waited` are done; whether that is all."""
        done = self.groups < waited[self.lanes]
        if done.any():
            stamps = now[self.lanes[done]] | self.step.site
            self.accesses.put(self.units[done], stamps, self.step)
            rest = ~done
            self.units, self.lanes = self.units[rest], self.lanes[rest]
            self.stamps, self.groups = self.stamps[rest], self.groups[rest]
        return not len(self.units)


class Copies:
    """The copies that are under way among the `threads` of a chunk."""

    def __init__(self, threads: int) -> None:
        self._committed: Stamps = np.zeros(threads, dtype=np.int64)
        self._under_way: list[_Copy] = []

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def issue(self, accesses: LastAccesses, step: Step) -> None:
        """These threads begin to copy."""
        copy = _Copy(accesses, step, self._committed)
        copy.put()
        self._under_way.append(copy)

    def commit(self, lanes: Index) -> None:
        """What these threads began to copy since they last did so is a group."""
        self._committed[lanes] += 1

    def wait(self, lanes: Index, pending: int, now: Stamps) -> None:
        """These threads wait until at most `pending` groups are under way; -1 for everything.

        `now`: the threads' stamps.
        """
        waited: Stamps = np.zeros(len(self._committed), dtype=np.int64)
        waited[lanes] = self._committed[lanes] - pending
        self._under_way = [each for each in self._under_way if not each.finish(waited, now)]

    def put_again(self) -> None:
        """What was accessed is forgotten; what is under way is not."""
        for copy in self._under_way:
            copy.put()
