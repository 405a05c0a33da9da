"""Data races: which of two accesses to one unit nothing orders.

PTX ISA, "Memory Consistency Model", "Conflict and Data-races": two accesses to the same memory
conflict if one of them writes. They are a data race if neither happens before the other one, unless
both are morally strong. `DataRaces.compare` takes these conditions one after the other.

`VolatileAccesses` has accesses that are no race in PTX, and updates lost by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.happens_before import HappensBefore
from ptx.emulate.check.memory_model import AccessRole, are_strong, do_conflict
from ptx.emulate.check.race_check import (
    GUESS,
    LOST,
    SAME_VALUE,
    VOLATILE,
    WITHOUT_ACQUIRE,
    WITHOUT_RELEASE,
    RaceCheck,
)
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
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.tensor_memory import COLUMNS, HALF, LANES

_INTENTIONAL = {
    MemoryOrder.WITHOUT_ACQUIRE: WITHOUT_ACQUIRE,
    MemoryOrder.WITHOUT_RELEASE: WITHOUT_RELEASE,
}


@dataclass(slots=True)
class MemoryAccess:
    """One instruction's access to memory.

    Attributes:
        space: "global", "shared" or "tensor".
        shadow: the earlier accesses to that memory.
        step: which threads access what.
        role: the instruction's role in the memory model.
        values: the value that each thread writes; empty if unknown.
    """

    space: str
    shadow: ShadowMemory
    step: AccessStep
    role: AccessRole
    values: tuple[Value, ...] = ()


class DataRaces:
    """Compares the accesses of a chunk with earlier ones, and reports data races.

    Args:
        launch: takes the reports.
        order: what happens before what.
        first: the number of the first block.
        shared: the shared memory of all blocks; `stride`: the bytes of each.

    Attributes:
        own: the stores that other chunks do not see yet.
    """

    def __init__(
        self,
        launch: RaceCheck,
        order: HappensBefore,
        first: int,
        shared: NDArray[np.uint8],
        stride: int,
    ) -> None:
        self.own: LateStores | None = None
        self._launch = launch
        self._order = order
        self._first = first
        self._shared = shared
        self._stride = stride

    def compare(self, old: Stamps, access: MemoryAccess, *, by_value: bool = False) -> None:
        """Report where old accesses that conflict with a new one are a data race.

        Args:
            old: the stamps of an old access for each unit of the new one.
            access: the new one.
            by_value: whether both are writes, which may write the same value.
        """
        launch, step, stamps = self._launch, access.step, access.step.stamps
        flying = in_flight(old) if launch.has_copies else None
        # Program order. An asynchronous copy in flight is in no thread's program order.
        compared = (old != 0) & (old >> THREAD_SHIFT != stamps >> THREAD_SHIFT)
        if flying is not None:
            compared |= flying
        conflicting = np.flatnonzero(compared)
        if not len(conflicting):
            return
        # Barriers.
        is_over = self._order.clocks.over(old[conflicting], step.lanes[conflicting])
        if flying is not None:
            is_over &= ~flying[conflicting]
        racing = conflicting[~is_over]
        if not len(racing):
            return
        second = int(stamps[0]) & MOST_SITES - 1
        sites = sites_of(old[racing])
        for first in np.unique(sites).tolist():
            if launch.is_reported(first, second):
                continue
            positions = racing[sites == first]
            if are_strong(launch.role(first), access.role):
                positions = self._not_morally_strong(old, access, positions, launch.role(first))
            # Synchronisation through memory, between whole blocks and then between threads.
            if len(positions):
                are_complete = self._order.over_for_blocks(old[positions], step.lanes[positions])
                positions = positions[~are_complete]
            if len(positions):
                self._report_unordered(old, access, positions, by_value=by_value)

    def _not_morally_strong(
        self, old: Stamps, access: MemoryAccess, positions: Index, other: AccessRole
    ) -> Index:
        """Return where strong accesses conflict, and a scope does not include the other thread."""
        if not do_conflict(access.role, other):
            return positions[:0]
        level = min(self._launch.level_of(role.scope) for role in (access.role, other))
        reached = self._order.reaches(old[positions], access.step.stamps[positions], level)
        unordered: Index = positions[~reached]
        return unordered

    def _report_unordered(
        self, old: Stamps, access: MemoryAccess, positions: Index, *, by_value: bool
    ) -> None:
        """Report the first pair that memory does not order either; else intentional ones."""
        launch, stamps = self._launch, access.step.stamps
        intentional: dict[str, int] = {}
        first = launch.role(int(old[positions[0]]) & MOST_SITES - 1)
        is_guess = access.role.is_guess or first.is_guess
        # A thread has many units at once, whose order is the same.
        orders: dict[tuple[int, int], MemoryOrder] = {}
        for position in positions.tolist():
            pair = int(old[position]), int(stamps[position])
            order = orders.get(pair)
            if order is None:
                order = orders[pair] = self._order.order_of(*pair)
            if order is MemoryOrder.HAPPENS_BEFORE:
                continue
            if order is not MemoryOrder.NONE:
                intentional.setdefault(_INTENTIONAL[order], position)
            elif by_value and self.is_there(access, position):
                intentional.setdefault(SAME_VALUE, position)
            else:
                intentional = {GUESS if is_guess else "": position}
                break
        for benign, position in intentional.items():
            pair = int(old[position]), int(stamps[position])
            launch.report(*pair, access.space, *self.place(access, position), benign=benign)

    def compare_in_step(self, access: MemoryAccess) -> None:
        """Report threads that write one unit by the same instruction at once."""
        benign, first = SAME_VALUE, None
        for positions in _twice(access.step):
            first = first or positions
            if not self.write_same(access, *positions):
                benign, first = "", positions
                break
        assert first is not None
        first_position, second_position = first
        pair = int(access.step.stamps[first_position]), int(access.step.stamps[second_position])
        self._launch.report(*pair, access.space, *self.place(access, first_position), benign=benign)

    def compare_proxies(
        self, old: Stamps, access: MemoryAccess, proxy: str, fences: Sequence[str]
    ) -> None:
        """Report where a read through a proxy may not see an old write through another one.

        PTX ISA, "Causality Order": a write through another proxy happens before the read only with
        a proxy fence in between. `fences`: the kinds of fences that it takes; without any, no fence
        helps.
        """
        launch, step, stamps = self._launch, access.step, access.step.stamps
        second = int(stamps[0]) & MOST_SITES - 1
        sites = np.where((old != 0) & ~in_flight(old), sites_of(old), -1)
        for first in np.unique(sites[sites >= 0]).tolist():
            if launch.role(first).proxy != proxy and not launch.is_unfenced(first, second):
                positions = np.flatnonzero(sites == first)
                unseen = np.full(len(positions), not fences)
                for kind in fences:
                    unseen |= self._order.unseen(kind, old[positions], step.lanes[positions])
                positions = positions[unseen]
                positions = positions[
                    self._is_before(old[positions], stamps[positions], step.lanes[positions])
                ]
                if len(positions):
                    pair = int(old[positions[0]]), int(stamps[positions[0]])
                    location = self.place(access, int(positions[0]))
                    launch.report_unfenced(*pair, proxy, access.space, *location)

    def _is_before(self, old: Stamps, stamps: Stamps, lanes: Index) -> Bools:
        """Return which old accesses happen before those beside them; others are races already."""
        before = self._order.clocks.over(old, lanes) | self._order.over_for_blocks(old, lanes)
        for position in np.flatnonzero(~before).tolist():
            order = self._order.order_of(int(old[position]), int(stamps[position]))
            before[position] = order is MemoryOrder.HAPPENS_BEFORE
        return before

    def not_over(self, old: Stamps, access: MemoryAccess, positions: Index) -> Index:
        """Return where an old access is not over for all of the new one's block."""
        lanes = access.step.lanes
        positions = positions[~self._order.clocks.over(old[positions], lanes[positions])]
        are_complete = self._order.over_for_blocks(old[positions], lanes[positions])
        pending: Index = positions[~are_complete]
        return pending

    def is_there(self, access: MemoryAccess, position: int) -> bool:
        """Return whether memory has the value already that a thread is about to write.

        Late stores of other chunks count, although the thread does not see them yet.
        """
        step, lane = access.step, access.step.position_of_thread(position)
        written = _value_of(access, lane)
        start = step.byte(lane)
        data = self._launch.memory.data if access.space == "global" else self._shared
        in_memory = data[start : start + len(written)]
        if not written or in_memory.tobytes() == written:
            return bool(written)
        visible = bytearray(in_memory.tobytes())
        for stores in self._launch.hidden:
            if stores is not self.own and stores:
                stores.lay_over(in_memory.ctypes.data, visible)
        return visible == written

    def write_same(self, access: MemoryAccess, first_position: int, second_position: int) -> bool:
        """Return whether the threads of two units write the same value."""
        first = _value_of(access, access.step.position_of_thread(first_position))
        second = _value_of(access, access.step.position_of_thread(second_position))
        return bool(first) and first == second

    def place(self, access: MemoryAccess, position: int) -> tuple[int, int]:
        """Return the address of a unit, and the number of the block whose memory it lies in."""
        unit, launch = access.step.unit(position), self._launch
        if access.space == "global":
            return (unit << launch.global_shift) + launch.memory.base, 0
        if access.space == "tensor":
            half, column = divmod(unit, COLUMNS)
            slot, lane = divmod(half * HALF, LANES)
            return lane << 16 | column, self._first + slot
        slot, address = divmod(unit << launch.shared_shift, self._stride)
        return address, self._first + slot


def _twice(step: AccessStep) -> Iterator[tuple[int, int]]:
    """Yield the positions of two threads each that access one unit in the same step."""
    units = step.units
    if isinstance(units, slice):
        return  # those are apart
    order = np.argsort(units, kind="stable")
    for index in np.flatnonzero(units[order][1:] == units[order][:-1]).tolist():
        yield int(order[index]), int(order[index + 1])


def _value_of(access: MemoryAccess, lane: int) -> bytes:
    """The bytes that a thread writes; nothing where they are unknown."""
    content = b""
    for value in access.values:
        content += np.asarray(value[lane] if value.ndim else value).tobytes()
    return content


class VolatileAccesses:
    """Volatile and relaxed accesses of a chunk's `threads` that lose an update, or lack an order.

    PTX calls two such accesses no race. A thread loads a value, another thread writes it, and the
    first thread stores a result of the old value. If nothing orders the write before that store,
    this run has lost an update. It may be intentional, as in an algorithm that repeats until
    nothing changes. Threads that poll a flag and take turns lose none.
    """

    def __init__(
        self, launch: RaceCheck, order: HappensBefore, races: DataRaces, threads: int
    ) -> None:
        self._launch = launch
        self._order = order
        self._races = races
        self._threads = threads
        # By the places of updates: the unit that each thread loaded, and its last write then.
        self._loaded: dict[tuple[str, int], tuple[Index, Stamps]] = {}

    def load(self, access: MemoryAccess, update: Update) -> None:
        """Record that these threads load a value that they update."""
        loaded = self._loaded.get((access.space, update.place))
        if loaded is None:
            loaded = np.full(self._threads, -1), np.zeros(self._threads, dtype=np.int64)
            self._loaded[access.space, update.place] = loaded
        units = access.step.first_units
        loaded[0][access.step.threads] = units
        loaded[1][access.step.threads] = access.shadow.atomics.latest(units)

    def store(self, access: MemoryAccess, update: Update) -> None:
        """Report updates that are lost when these threads store their results."""
        loaded = self._loaded.get((access.space, update.place))
        if loaded is None:
            return
        step = access.step
        written = access.shadow.atomics.latest(step.units)
        per_access = len(written) // step.count
        has_loaded = loaded[0][step.threads] == step.first_units
        is_old = has_loaded & (loaded[1][step.threads] != written[::per_access])
        self._compare(np.where(np.repeat(is_old, per_access), written, 0), access, update)
        site = int(step.stamps[0]) & MOST_SITES - 1
        for first, second in _twice(step):
            if self._launch.is_lost(site, site):
                return
            if not (has_loaded[first // per_access] and has_loaded[second // per_access]):
                continue
            if not (update.is_idempotent and self._races.write_same(access, first, second)):
                pair = int(step.stamps[first]), int(step.stamps[second])
                self._report(pair, access, first, LOST)

    def _compare(self, old: Stamps, access: MemoryAccess, update: Update) -> None:
        """Report where an update overwrites a write that it has not seen, and is not after."""
        stamps = access.step.stamps
        conflicting = np.flatnonzero((old != 0) & (threads_of(old) != threads_of(stamps)))
        for position in self._races.not_over(old, access, conflicting).tolist():
            pair = int(old[position]), int(stamps[position])
            if self._launch.is_lost(pair[0] & MOST_SITES - 1, pair[1] & MOST_SITES - 1):
                continue
            if update.is_idempotent and self._races.is_there(access, position):
                continue
            if self._order.order_of(*pair) is MemoryOrder.NONE:
                self._report(pair, access, position, LOST)

    def compare_lanes(self, old: Stamps, access: MemoryAccess) -> None:
        """Report volatile accesses of lanes of one warp that nothing orders."""
        launch, stamps = self._launch, access.step.stamps
        second = int(stamps[0]) & MOST_SITES - 1
        differences = threads_of(old) ^ threads_of(stamps)
        conflicting = np.flatnonzero(
            (old != 0) & (differences != 0) & (differences >> WARP_SHIFT == 0)
        )
        for first in np.unique(sites_of(old[conflicting])).tolist():
            role = launch.role(first)
            is_update = role.update is not None and role.update == access.role.update
            if not role.is_volatile or is_update or launch.is_reported(first, second):
                continue
            positions = conflicting[sites_of(old[conflicting]) == first]
            for position in self._races.not_over(old, access, positions).tolist():
                pair = int(old[position]), int(stamps[position])
                if self._order.order_of(*pair) is MemoryOrder.NONE:
                    self._report(pair, access, position, VOLATILE)
                    break

    def _report(
        self, pair: tuple[int, int], access: MemoryAccess, position: int, benign: str
    ) -> None:
        location = self._races.place(access, position)
        self._launch.report(*pair, access.space, *location, benign=benign)
