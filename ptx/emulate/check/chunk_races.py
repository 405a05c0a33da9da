"""The races among blocks that are executed together, found at each of their accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_role import AccessRole
from ptx.emulate.check.accesses import LastAccesses, in_memory
from ptx.emulate.check.clocks import Clocks, Fences, Words
from ptx.emulate.check.copies import Copies
from ptx.emulate.check.handover import (
    Order,
    Place,
    key_of_block,
    key_of_strong,
    key_of_thread,
    key_of_warp,
)
from ptx.emulate.check.stamps import (
    MOST_SITES,
    THREAD_SHIFT,
    WARP_SHIFT,
    Bools,
    Stamps,
    epochs_of,
    in_flight,
    sites_of,
    threads_of,
)
from ptx.emulate.check.step import Step
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Geometry, Value

if TYPE_CHECKING:
    from ptx.emulate.memory.accessing_threads import AccessingThreads


from ptx.emulate.check.races import GUESS, HEARD, NARROW, SAME_VALUE, RaceCheck
from ptx.emulate.check.same_values import SameValues


class ChunkRaces:
    """The races of the blocks that are executed together, of which `first` is the first."""

    def __init__(
        self, launch: RaceCheck, geometry: Geometry, first: int, shared: NDArray[np.uint8]
    ) -> None:
        self._launch = launch
        self._data = shared
        shared_stride = len(shared) // geometry.blocks
        self._shared_stride = shared_stride
        self._several = geometry.blocks > 1
        self._most = shared_stride if self._several else shared_stride * geometry.blocks
        units = geometry.blocks * shared_stride >> launch.shared_shift
        self._in_shared = LastAccesses(units, in_memory, launch.shift)
        self._first = first
        self._shared = f"shared {first}"
        self._clocks = Clocks(geometry, first)
        self._wide = Fences(geometry.threads)
        self._narrow = Fences(geometry.threads)
        self._meeting = Fences(geometry.threads)
        self._copies = Copies(geometry.threads)

    # What accesses tell.

    def note(
        self,
        threads: AccessingThreads,
        space: str,
        addresses: Addresses,
        offset: int,
        site: Site,
        values: tuple[Value, ...] = (),
    ) -> None:
        """These threads are about to access memory; nothing of it is done yet."""
        if space not in ("global", "shared"):
            return
        launch, starts = self._launch, None
        if space == "global":
            accesses, offset = launch.in_global, offset - launch.memory.base
            data, most, shift = launch.memory.data, launch.memory.nbytes, launch.global_shift
        else:
            accesses = self._in_shared
            data, most, shift = self._data, self._most, launch.shared_shift
            if self._several:
                starts = threads.start_index("shared", 0)
        number = launch.number_of(site)
        role = launch.role(number)
        lanes = None if threads.lanes is None else threads.lane_numbers()
        step = Step(
            self._clocks.now, lanes, number, addresses, offset, threads.n, site.total, shift, starts
        )  # fmt: skip
        if step.low < 0 or step.high > most:
            if space == "global":
                launch.note_elsewhere(step, writes=role.writes)
            return  # another device's memory, the host's, or that of another block
        same = SameValues(data, values, step)
        if role.strong:
            self._pass_on(space, step, role)
            if role.scope in NARROW or not role.writes or not accesses.lists_atomic(step):
                accesses.settle(step)
                self._strong(space, accesses, step, role, same)
        elif role.is_copy:
            accesses.settle(step)
            self._write(space, accesses, step, same)
            self._copies.issue(accesses, step)
        elif role.writes:
            if not accesses.lists_write(step):
                accesses.settle(step)
                self._write(space, accesses, step, same)
        elif not accesses.lists_read(step):
            if step.is_uniform and step.count > 2:
                step = step.ends()
            accesses.settle(step)
            atomics = accesses.atomics.found_by_others(step.units, step.stamps)
            for old in accesses.written(step.units) + atomics:
                self._compare(space, old, step)
            accesses.reads.add(step.units, step.stamps)

    def _write(self, space: str, accesses: LastAccesses, step: Step, same: SameValues) -> None:
        units, stamps = step.units, step.stamps
        for old in accesses.written(units):
            self._compare(space, old, step, same)
        atomics = accesses.atomics.found_by_others(units, stamps)
        for old in accesses.reads.found(units) + atomics:
            self._compare(space, old, step)
        lost = accesses.write(step)
        if lost is not None:
            self._same_step(space, step, same)

    def _strong(
        self, space: str, accesses: LastAccesses, step: Step, role: AccessRole, same: SameValues
    ) -> None:
        units, stamps = step.units, step.stamps
        for old in accesses.written(units):
            self._compare(space, old, step, same if not role.reads else None)
        if role.writes:
            for old in accesses.reads.found(units):
                self._compare(space, old, step)
        narrow = self._launch.has_narrow
        for old in accesses.atomics.found(units) if narrow else ():
            self._compare(space, old, step)
        if not role.writes:
            accesses.reads.add(units, stamps)
            return
        accesses.atomics.add(units, stamps)
        if role.scope in NARROW:
            for old in accesses.atomics.found(units):
                self._compare(space, old, step)  # with each other

    def _compare(self, space: str, old: Stamps, step: Step, same: SameValues | None = None) -> None:
        """Report where an access is not after an old one."""
        stamps = step.stamps
        compared = (old != 0) & (old >> THREAD_SHIFT != stamps >> THREAD_SHIFT)
        if self._copies:
            compared |= in_flight(old)
        others = np.flatnonzero(compared)
        if not len(others):
            return
        is_over = self._clocks.over(old[others], step.lanes[others])
        if self._copies:
            is_over &= ~in_flight(old[others])
        open_ones = others[~is_over]
        if not len(open_ones):
            return
        launch = self._launch
        second = int(stamps[0]) & MOST_SITES - 1
        role = launch.role(second)
        sites = sites_of(old[open_ones])
        for first in np.unique(sites).tolist():
            if launch.is_reported(first, second):
                continue
            positions = open_ones[sites == first]
            other = launch.role(first)
            if role.strong and other.strong:
                positions = self._out_of_scope(old, stamps, positions, role, other)
            if not len(positions):
                continue
            self._report_first(space, old, step, positions, same)

    def _out_of_scope(
        self, old: Stamps, stamps: Stamps, positions: Index, role: AccessRole, other: AccessRole
    ) -> Index:
        if not (role.writes or other.writes):
            return positions[:0]
        if role.scope not in NARROW and other.scope not in NARROW:
            return positions[:0]
        shift = self._clocks.shift
        one, two = (threads_of(each[positions]) >> shift for each in (old, stamps))
        found: Index = positions[one != two]
        return found

    def _report_first(
        self, space: str, old: Stamps, step: Step, positions: Index, same: SameValues | None
    ) -> None:
        launch, stamps = self._launch, step.stamps
        may_be_meant: dict[str, int] = {}
        first, second = (int(each[positions[0]]) & MOST_SITES - 1 for each in (old, stamps))
        for at in positions.tolist():
            order = self._order(int(old[at]), int(stamps[at]), first, second)
            if order is Order.KNOWN:
                continue
            if order is Order.HEARD:
                may_be_meant.setdefault(HEARD, at)
                continue
            if same is not None and same.as_before(at):
                may_be_meant.setdefault(SAME_VALUE, at)
                continue
            is_guess = launch.role(second).is_guess or launch.role(first).is_guess
            may_be_meant = {GUESS if is_guess else "": at}
            break
        for benign, at in may_be_meant.items():
            address = self._address(space, step, at)
            launch.report(int(old[at]), int(stamps[at]), space, address, benign=benign)

    def _order(self, old: int, new: int, first: int, second: int) -> Order:
        """The order that memory gives two accesses, by their stamps and sites."""
        launch = self._launch
        if not launch.handovers.anything:
            return Order.NONE
        both = np.array([old, new], dtype=np.int64)
        one, other = threads_of(both).tolist()
        strong, as_strong = launch.role(first).strong, launch.role(second).strong
        epoch = int(epochs_of(both)[0])
        return launch.handovers.order(one, epoch, other, strong=strong, as_strong=as_strong)

    def _same_step(self, space: str, step: Step, same: SameValues) -> None:
        """Threads that write one place by the same instruction at once."""
        units, stamps = step.units, step.stamps
        assert not isinstance(units, slice)  # those are apart
        order = np.argsort(units, kind="stable")
        twice = np.flatnonzero(units[order][1:] == units[order][:-1])
        benign = True
        for at in twice.tolist():
            one, two = int(order[at]), int(order[at + 1])
            if same.among(one, two):
                continue
            benign = False
            break
        else:
            one, two = int(order[twice[0]]), int(order[twice[0] + 1])
        reason = SAME_VALUE if benign else ""
        address = self._address(space, step, one)
        self._launch.report(int(stamps[one]), int(stamps[two]), space, address, benign=reason)

    def _address(self, space: str, step: Step, at: int) -> int:
        if space == "global":
            return (step.unit(at) << self._launch.global_shift) + self._launch.memory.base
        return (step.unit(at) << self._launch.shared_shift) % self._shared_stride

    # What barriers and fences tell.

    def pass_block(self, lanes: Index) -> None:
        """These threads, all that their blocks have, pass a barrier."""
        if len(lanes) == len(self._clocks.now):
            self._clocks.pass_blocks()
            self._in_shared.reset()
            self._copies.put_again()
            slots = np.arange(len(self._clocks.block_known))
        else:
            slots = self._clocks.pass_block(lanes)
        if self._launch.handovers.anything:
            first = int(threads_of(self._clocks.now[0])) >> self._clocks.shift
            for slot in slots.tolist():
                self._launch.handovers.meet_block(first + slot)

    def pass_warps(self) -> None:
        """All threads of the chunk meet those of their warps."""
        self._clocks.pass_warps()
        known = self._launch.handovers
        if known.anything:
            threads = threads_of(self._clocks.now)
            for warp in np.unique(threads >> WARP_SHIFT).tolist():
                known.meet_threads(threads[threads >> WARP_SHIFT == warp].tolist())

    def pass_warp(self, lanes: Index, masks: Words, whole: Bools) -> None:
        """These threads meet those of their warps that their masks name; `whole`: all of them."""
        self._clocks.pass_warp(lanes, masks, whole)
        known = self._launch.handovers
        if known.anything:
            threads = threads_of(self._clocks.now[lanes])
            keys = (threads >> WARP_SHIFT << 32) | masks
            for key in np.unique(keys).tolist():
                known.meet_threads(threads[keys == key].tolist())

    def arrive(self, lanes: Index, what: str, numbers: Index) -> None:
        """These threads arrive where others wait: at the objects of these numbers of a kind."""
        clocks = self._clocks
        clocks.advance(lanes, self._meeting)
        threads = threads_of(clocks.now[lanes]).tolist()
        for lane, thread, number in zip(lanes.tolist(), threads, numbers.tolist(), strict=True):
            known = self._known(self._meeting, lane)
            place = f"{what} {self._first}", number
            self._launch.handovers.write(place, thread, known, wide=True, at_once=True)

    def take(self, lanes: Index, what: str, numbers: Index) -> None:
        """These threads have waited for all who arrived there."""
        threads = threads_of(self._clocks.now[lanes]).tolist()
        for thread, number in zip(threads, numbers.tolist(), strict=True):
            place = f"{what} {self._first}", number
            self._launch.handovers.read(place, thread, wide=True, at_once=True)

    def commit_copies(self, threads: AccessingThreads) -> None:
        """What these threads began to copy is a group."""
        self._copies.commit(threads.lane_numbers())

    def wait_for_copies(self, threads: AccessingThreads, pending: int) -> None:
        """These threads wait for all but so many groups of copies; -1 for everything."""
        if self._copies:
            self._copies.wait(threads.lane_numbers(), pending, self._clocks.now)

    def fence(self, threads: AccessingThreads, scope: str) -> None:
        """These threads execute a fence."""
        lanes = threads.lane_numbers()
        wide = scope not in NARROW
        self._clocks.advance(lanes, self._narrow, *([self._wide] if wide else []))
        if self._launch.handovers.anything:
            for thread in threads_of(self._clocks.now[lanes]).tolist():
                self._launch.handovers.fence(thread, wide=wide)

    def _pass_on(self, space: str, step: Step, role: AccessRole) -> None:
        """What these threads take over at a place and hand over there, one after the other."""
        known, clocks, lanes = self._launch.handovers, self._clocks, step.lanes
        reaches_all = role.scope not in NARROW
        if role.releases:
            clocks.advance(lanes, self._narrow, *([self._wide] if reaches_all else []))
        for wide, fences in ((True, self._wide), (False, self._narrow))[0 if reaches_all else 1 :]:
            fenced = fences.ended[lanes] >= 0 if role.writes else np.zeros(len(lanes), np.bool_)
            if not (role.reads and known.anything) and not fenced.any():
                continue
            threads = threads_of(clocks.now[lanes]).tolist()
            for at, thread in enumerate(threads):
                place = self._place(space, step.unit(at), thread, wide=wide)
                if role.reads:
                    known.read(place, thread, wide=wide, at_once=role.acquires)
                if fenced[at]:
                    ended = self._known(fences, int(lanes[at]))
                    known.write(place, thread, ended, wide=wide, at_once=role.releases)

    def _known(self, fences: Fences, lane: int) -> tuple[tuple[int, int], ...]:
        """What a thread hands over: up to where it, its warp and its block are over for it."""
        thread = int(threads_of(self._clocks.now[lane]))
        return (
            (key_of_thread(thread), int(fences.ended[lane]) + 1),
            (key_of_strong(thread), int(epochs_of(self._clocks.now[lane : lane + 1])[0]) + 1),
            (key_of_warp(thread), int(fences.warp[lane])),
            (key_of_block(thread, self._clocks.shift), int(fences.block[lane])),
        )

    def _place(self, space: str, unit: int, thread: int, *, wide: bool) -> Place:
        # What is handed over within blocks has a place of its own in each.
        block = thread >> self._clocks.shift
        name = space if space == "global" else self._shared
        return (name if wide else f"{name} in {block}"), unit
