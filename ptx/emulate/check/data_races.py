"""An access beside earlier ones to the same memory: whether nothing orders two of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.happens_before import HappensBefore
from ptx.emulate.check.memory_model import AccessRole
from ptx.emulate.check.race_check import FENCED, GUESS, HEARD, LOST, SAME_VALUE, VOLATILE, RaceCheck
from ptx.emulate.check.shadow_memory import ShadowMemory
from ptx.emulate.check.stamps import (
    MOST_SITES,
    THREAD_SHIFT,
    WARP_SHIFT,
    Bools,
    Stamps,
    in_flight,
    sites_of,
    threads_of,
)
from ptx.emulate.check.synchronizes_with import MemoryOrder
from ptx.emulate.kernel_facts import Update
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.memory.tensor_memory import COLUMNS, HALF, LANES
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value


class WrittenValues:
    """Whether what an instruction writes is there already, or written by another lane as well."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        values: tuple[Value, ...],
        step: AccessStep,
        hidden: Sequence[LateStores] = (),
    ) -> None:
        """Compare what a step is about to write.

        Args:
            data: the memory.
            values: what each thread writes; none where it is not known.
            step: where.
            hidden: what others have written, although these threads do not see it yet.
        """
        self._data = data
        self._hidden = hidden
        self._values = values
        self._step = step

    def as_before(self, at: int) -> bool:
        """Whether memory has the value that the lane of this unit writes."""
        lane = self._step.position_of_thread(at)
        written = self._of(lane)
        start = self._step.byte(lane)
        there = self._data[start : start + len(written)]
        if not written or there.tobytes() == written:
            return bool(written)
        seen = bytearray(there.tobytes())
        for stores in self._hidden:
            stores.lay_over(there.ctypes.data, seen)
        return seen == written

    def among(self, one: int, two: int) -> bool:
        """Whether the lanes of two units write the same."""
        first, second = (self._of(self._step.position_of_thread(at)) for at in (one, two))
        return bool(first) and first == second

    def _of(self, lane: int) -> bytes:
        """The bytes that a lane writes; none where they are not known."""
        values = [value[lane] if value.ndim else value for value in self._values]
        return b"".join(np.asarray(value).tobytes() for value in values)


_MEANT = {MemoryOrder.HEARD: HEARD, MemoryOrder.FENCED: FENCED}


class DataRaces:
    """Compares the accesses of a chunk, and reports races.

    `shared_stride` is the bytes of each block's shared memory; `first` the number of the first
    block; `order` what the threads know of each other.
    """

    def __init__(
        self, launch: RaceCheck, order: HappensBefore, first: int, shared_stride: int
    ) -> None:
        self._launch = launch
        self._order = order
        self._first = first
        self._shared_stride = shared_stride

    def compare(
        self, space: str, old: Stamps, step: AccessStep, same: WrittenValues | None = None
    ) -> None:
        """Report where an access is not after an old one."""
        launch, stamps = self._launch, step.stamps
        flying = in_flight(old) if launch.has_copies else None
        compared = (old != 0) & (old >> THREAD_SHIFT != stamps >> THREAD_SHIFT)
        if flying is not None:
            compared |= flying
        others = np.flatnonzero(compared)
        if not len(others):
            return
        is_over = self._order.clocks.over(old[others], step.lanes[others])
        if flying is not None:
            is_over &= ~flying[others]
        open_ones = others[~is_over]
        if not len(open_ones):
            return
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
            if len(positions):
                over = self._order.over_for_blocks(old[positions], step.lanes[positions])
                positions = positions[~over]
            if len(positions):
                self._report_first(space, old, step, positions, same)

    def _out_of_scope(
        self, old: Stamps, stamps: Stamps, positions: Index, role: AccessRole, other: AccessRole
    ) -> Index:
        if not (role.writes or other.writes):
            return positions[:0]
        level = min(self._launch.level_of(each.scope) for each in (role, other))
        reached = self._order.reaches(old[positions], stamps[positions], level)
        found: Index = positions[~reached]
        return found

    def _report_first(
        self,
        space: str,
        old: Stamps,
        step: AccessStep,
        positions: Index,
        same: WrittenValues | None,
    ) -> None:
        launch, stamps = self._launch, step.stamps
        may_be_meant: dict[str, int] = {}
        first, second = (int(each[positions[0]]) & MOST_SITES - 1 for each in (old, stamps))
        # A thread has many units at once, whose order is the same.
        orders: dict[tuple[int, int], MemoryOrder] = {}
        for at in positions.tolist():
            pair = int(old[at]), int(stamps[at])
            order = orders.get(pair)
            if order is None:
                order = orders[pair] = self._order.of(*pair)
            if order is MemoryOrder.KNOWN:
                continue
            if order is not MemoryOrder.NONE:
                may_be_meant.setdefault(_MEANT[order], at)
                continue
            if same is not None and same.as_before(at):
                may_be_meant.setdefault(SAME_VALUE, at)
                continue
            is_guess = launch.role(second).is_guess or launch.role(first).is_guess
            may_be_meant = {GUESS if is_guess else "": at}
            break
        for benign, at in may_be_meant.items():
            place = self._place(space, step, at)
            launch.report(int(old[at]), int(stamps[at]), space, *place, benign=benign)

    def compare_proxies(
        self, space: str, old: Stamps, step: AccessStep, proxy: str, fences: Sequence[str]
    ) -> None:
        """Report where an access through another proxy may not see an old write.

        It sees those of the same proxy. `fences`: the kinds of proxy fences that it takes to see
        others; none where no fence helps.
        """
        launch, stamps = self._launch, step.stamps
        second = int(stamps[0]) & MOST_SITES - 1
        sites = np.where((old != 0) & ~in_flight(old), sites_of(old), -1)
        for first in np.unique(sites[sites >= 0]).tolist():
            if launch.role(first).proxy != proxy and not launch.is_unfenced(first, second):
                at = np.flatnonzero(sites == first)
                unseen = np.full(len(at), not fences)
                for kind in fences:
                    unseen |= self._order.unseen(kind, old[at], step.lanes[at])
                at = at[unseen]
                at = at[self._is_before(old[at], stamps[at], step.lanes[at])]
                if len(at):
                    place = self._place(space, step, int(at[0]))
                    pair = int(old[at[0]]), int(stamps[at[0]])
                    launch.report_unfenced(*pair, proxy, space, *place)

    def _is_before(self, old: Stamps, stamps: Stamps, lanes: Index) -> Bools:
        """Which old accesses are before the ones beside them: others are races already."""
        before = self._order.clocks.over(old, lanes) | self._order.over_for_blocks(old, lanes)
        for at in np.flatnonzero(~before).tolist():
            before[at] = self._order.of(int(old[at]), int(stamps[at])) is MemoryOrder.KNOWN
        return before

    def lost(
        self, space: str, old: Stamps, step: AccessStep, update: Update, same: WrittenValues
    ) -> None:
        """Report where an update overwrites a write that it has not seen and is not after."""
        launch, stamps = self._launch, step.stamps
        others = np.flatnonzero((old != 0) & (threads_of(old) != threads_of(stamps)))
        for at in self._open(old, step, others).tolist():
            pair = int(old[at]), int(stamps[at])
            if launch.is_told_lost(pair[0] & MOST_SITES - 1, pair[1] & MOST_SITES - 1):
                continue
            if update.is_idempotent and same.as_before(at):
                continue
            if self._order.of(*pair) is MemoryOrder.NONE:
                launch.report(*pair, space, *self._place(space, step, at), benign=LOST)

    def volatile(self, space: str, old: Stamps, step: AccessStep) -> None:
        """Report volatile accesses of lanes of one warp that nothing orders."""
        launch, stamps = self._launch, step.stamps
        second = int(stamps[0]) & MOST_SITES - 1
        apart = threads_of(old) ^ threads_of(stamps)
        others = np.flatnonzero((old != 0) & (apart != 0) & (apart >> WARP_SHIFT == 0))
        for first in np.unique(sites_of(old[others])).tolist():
            role = launch.role(first)
            is_update = role.update is not None and role.update == launch.role(second).update
            if not role.is_volatile or is_update or launch.is_reported(first, second):
                continue
            for at in self._open(old, step, others[sites_of(old[others]) == first]).tolist():
                pair = int(old[at]), int(stamps[at])
                if self._order.of(*pair) is MemoryOrder.NONE:
                    launch.report(*pair, space, *self._place(space, step, at), benign=VOLATILE)
                    break

    def _open(self, old: Stamps, step: AccessStep, positions: Index) -> Index:
        """The positions of old accesses that no barrier ends before the step."""
        positions = positions[~self._order.clocks.over(old[positions], step.lanes[positions])]
        over = self._order.over_for_blocks(old[positions], step.lanes[positions])
        found: Index = positions[~over]
        return found

    def lost_in_step(
        self, space: str, step: AccessStep, update: Update, same: WrittenValues
    ) -> None:
        """Report threads that update one place by the same instruction at once."""
        units, stamps = step.units, step.stamps
        if isinstance(units, slice):
            return  # those are apart
        site = int(stamps[0]) & MOST_SITES - 1
        order = np.argsort(units, kind="stable")
        for at in np.flatnonzero(units[order][1:] == units[order][:-1]).tolist():
            one, two = int(order[at]), int(order[at + 1])
            if self._launch.is_told_lost(site, site):
                return
            if not (update.is_idempotent and same.among(one, two)):
                pair, place = (int(stamps[one]), int(stamps[two])), self._place(space, step, one)
                self._launch.report(*pair, space, *place, benign=LOST)

    def same_step(self, space: str, step: AccessStep, same: WrittenValues) -> None:
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
        place = self._place(space, step, one)
        self._launch.report(int(stamps[one]), int(stamps[two]), space, *place, benign=reason)

    def _place(self, space: str, step: AccessStep, at: int) -> tuple[int, int]:
        """The address of a unit, and the number of the block whose memory it lies in."""
        if space == "global":
            return (step.unit(at) << self._launch.global_shift) + self._launch.memory.base, 0
        if space == "tensor":
            half, column = divmod(step.unit(at), COLUMNS)
            slot, lane = divmod(half * HALF, LANES)
            return lane << 16 | column, self._first + slot
        slot, within = divmod(step.unit(at) << self._launch.shared_shift, self._shared_stride)
        return within, self._first + slot


class LostUpdates:
    """The updates of the `threads` of a chunk that are between their load and their store."""

    def __init__(self, comparison: DataRaces, threads: int) -> None:
        self._comparison = comparison
        self._threads = threads
        # For each place: the unit that a thread loaded, and who had written it last.
        self._loaded: dict[tuple[str, int], tuple[Index, Stamps]] = {}

    def load(self, space: str, accesses: ShadowMemory, step: AccessStep, update: Update) -> None:
        """These threads load what they update."""
        loaded = self._loaded.get((space, update.place))
        if loaded is None:
            loaded = np.full(self._threads, -1), np.zeros(self._threads, dtype=np.int64)
            self._loaded[space, update.place] = loaded
        units = step.first_units
        loaded[0][step.threads] = units
        loaded[1][step.threads] = accesses.atomics.latest(units)

    def store(
        self,
        space: str,
        accesses: ShadowMemory,
        step: AccessStep,
        update: Update,
        same: WrittenValues,
    ) -> None:
        """These threads are about to store what they made of what they loaded."""
        loaded = self._loaded.get((space, update.place))
        if loaded is None:
            return
        written, threads = accesses.atomics.latest(step.units), step.threads
        each = len(written) // step.count
        is_old = (loaded[0][threads] == step.first_units) & (loaded[1][threads] != written[::each])
        old = np.where(np.repeat(is_old, each), written, 0)
        self._comparison.lost(space, old, step, update, same)
        self._comparison.lost_in_step(space, step, update, same)
