"""A model of what is before what in a straight kernel: vector clocks, and every access is kept.

It is told twice. Strictly, by what the PTX ISA promises (chapter "Memory Consistency Model"): what
is before by that must not be reported. The lenient model lets each strong write hand over and each
strong read take over, as if a fence stood beside it. Accesses that are not even ordered by that are
a race.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .operations import SCOPES, WARP, Kernel, Operation

Clock = NDArray[np.int64]
Place = tuple[str, int, int]
"""A space, the block whose memory it is (0 for all), and a word or a byte."""


_NEVER = 1 << 40


@dataclass(eq=False, slots=True)
class Access:
    """Who accessed a place, at which time of its own, and how.

    A copy that nobody has waited for has no time yet: nobody knows of it.
    """

    thread: int
    time: int
    writes: bool
    operation: Operation
    number: int


@dataclass
class Clocks:
    """What each thread knows of each, by one of the two rules."""

    count: int
    lenient: bool
    sizes: tuple[int, ...]
    """How many blocks each scope has, as far as they tell blocks apart."""
    knows: Clock = field(init=False)
    fenced: list[Clock] = field(init=False)
    """By levels: what each thread knew at its last fence."""
    read: list[Clock] = field(init=False)
    """By levels: what each thread has read and not taken over yet."""
    told: list[dict[tuple[Place, int], Clock]] = field(init=False)
    """By levels: what was handed over at a place, within a block or to all."""

    def __post_init__(self) -> None:
        self.knows = np.zeros((self.count, self.count), np.int64)
        self.fenced = [np.zeros_like(self.knows) for _ in SCOPES]
        self.read = [np.zeros_like(self.knows) for _ in SCOPES]
        self.told = [{} for _ in SCOPES]

    def meet(self, threads: list[int]) -> None:
        """These threads meet."""
        self.knows[threads] = self.knows[threads].max(axis=0)

    def fence(self, thread: int, level: int) -> None:
        """A fence."""
        for each in range(level + 1):
            np.maximum(self.knows[thread], self.read[each][thread], out=self.knows[thread])
        for each in range(level + 1):
            self.fenced[each][thread] = self.knows[thread]

    def read_at(self, place: Place, thread: int, block: int, level: int, acquires: bool) -> None:
        """A strong read."""
        for each in range(level + 1):
            told = self.told[each].get((place, block // self.sizes[each]))
            if told is not None:
                kept = self.knows if acquires or self.lenient else self.read[each]
                np.maximum(kept[thread], told, out=kept[thread])

    def write_at(self, place: Place, thread: int, block: int, level: int, releases: bool) -> None:
        """A strong write."""
        for each in range(level + 1):
            now = self.knows if releases or self.lenient else self.fenced[each]
            key = place, block // self.sizes[each]
            told = self.told[each].setdefault(key, np.zeros(self.count, np.int64))
            np.maximum(told, now[thread], out=told)


Step = tuple[int, list[int]]
"""An access as it was executed: the operation's number, and the threads."""


@dataclass
class Walk:
    """A kernel executed: its accesses in the order in which they happened."""

    kernel: Kernel
    steps: Iterable[Step]
    races: list[tuple[int, int]] = field(default_factory=list)
    """Operations that race by the lenient rule."""
    open: list[tuple[int, int]] = field(default_factory=list)
    """Operations that are not in order by the strict rule."""

    def __post_init__(self) -> None:
        geometry = self.kernel.geometry
        count, self._sizes = geometry.everyone, (1, geometry.cluster, geometry.blocks)
        self._strict, self._lenient = (Clocks(count, each, self._sizes) for each in (False, True))
        self._both = self._strict, self._lenient
        self._done: dict[Place, list[Access]] = {}
        self._next = [0] * count  # of each thread, the operation that comes next
        self._met: set[tuple[int, int, int]] = set()
        self._arrived: dict[tuple[int, int], list[Clock]] = {}  # by blocks and objects
        self._flying: dict[int, list[Access]] = {}
        self._operations = self.kernel.operations * self.kernel.times
        for number, threads in self.steps:
            for who in threads:
                to = self._next[who] + (number - self._next[who]) % len(self.kernel.operations)
                self._bring(who, to)
                self._next[who] = to + 1
                self._access(number, self._operations[to], who)

    def _bring(self, who: int, to: int) -> None:
        """A thread has come to an operation: what is before it, beside accesses, is done."""
        size = self.kernel.geometry.threads
        while self._next[who] < to:
            number = self._next[who]
            operation = self._operations[number]
            self._next[who] += 1
            if operation.guard.holds(*divmod(who, size)):
                self._pass(who, number, operation)

    def _pass(self, who: int, number: int, operation: Operation) -> None:
        block = who // self.kernel.geometry.threads
        if operation.kind == "fence":
            for clocks in self._both:
                clocks.fence(who, SCOPES.index(operation.scope))
        elif operation.kind == "await":
            for access in self._flying.pop(who, []):
                access.time = self._tick(who)
        elif operation.kind in ("arrive", "arrive at object"):
            now = [clocks.knows[who].copy() for clocks in self._both]
            told = self._arrived.setdefault((block, operation.word), now)
            for each, more in zip(told, now, strict=True):
                np.maximum(each, more, out=each)
        elif not operation.is_access:
            self._meet(who, number, operation)

    def _meet(self, who: int, number: int, operation: Operation) -> None:
        block, thread = divmod(who, self.kernel.geometry.threads)
        if operation.kind == "wait at object":
            self._take(block, operation, [who])
            return
        warp = thread // WARP if operation.kind == "warp barrier" else -1
        blocks = self._sizes[1] if operation.kind == "cluster barrier" else 1
        key = number, block // blocks, warp
        if key in self._met:
            return
        self._met.add(key)
        group = self._group(operation, block // blocks * blocks, blocks, warp)
        for each in group:
            self._bring(each, number + 1)
        if operation.kind == "wait":
            self._take(block, operation, group)
        self._lenient.meet(group)
        if operation.order == "relaxed":
            fenced = self._strict.fenced[SCOPES.index("cluster")][group].max(axis=0)
            self._strict.knows[group] = np.maximum(self._strict.knows[group], fenced)
        else:
            self._strict.meet(group)

    def _group(self, operation: Operation, first: int, blocks: int, warp: int) -> list[int]:
        """Who meets: of so many blocks, or of a warp where that is not negative."""
        size = self.kernel.geometry.threads
        return [
            block * size + thread
            for block in range(first, first + blocks)
            for thread in range(size)
            if operation.guard.holds(block, thread) and warp in (-1, thread // WARP)
        ]

    def _take(self, block: int, wait: Operation, group: list[int]) -> None:
        """These know what all who have arrived there knew."""
        arrival = next(
            number
            for number, each in enumerate(self.kernel.operations)
            if each.kind.startswith("arrive") and each.word == wait.word
        )
        for each in self._group(self._operations[arrival], block, 1, -1):
            self._bring(each, arrival + 1)
        told = self._arrived.get((block, wait.word), [])
        for clocks, known in zip(self._both, told, strict=False):
            clocks.knows[group] = np.maximum(clocks.knows[group], known)

    def _tick(self, who: int) -> int:
        """A thread's time, and one step on."""
        time = int(self._strict.knows[who, who])
        for clocks in self._both:
            clocks.knows[who, who] = time + 1
        return time

    def _access(self, number: int, operation: Operation, who: int) -> None:
        block, thread = divmod(who, self.kernel.geometry.threads)
        index = operation.index(block, thread, self.kernel.geometry)
        if operation.kind == "copy":
            for space, writes in (("global", False), ("shared", True)):
                access = Access(who, _NEVER, writes, replace(operation, space=space), number)
                self._flying.setdefault(who, []).append(access)
                owner = access.operation.owner(block, self.kernel.geometry)
                self._note(access, (space, owner, index))
            return
        place = operation.space, operation.owner(block, self.kernel.geometry), index
        reads, writes = operation.kind != "store", operation.kind != "load"
        is_strong, order = operation.order != "weak", operation.order
        level = SCOPES.index("gpu" if order == "volatile" else operation.scope)
        for clocks in self._both:
            # Leniently, who writes comes after those who wrote the place before.
            if is_strong and (reads or clocks.lenient):
                clocks.read_at(place, who, block, level, order in ("acquire", "acq_rel"))
        before = [clocks.knows[who].copy() for clocks in self._both]
        self._note(Access(who, self._tick(who), writes, operation, number), place)
        if not is_strong or not writes:
            return
        releases = order in ("release", "acq_rel")
        # A failing swap writes nothing; leniently it hands over all the same.
        if operation.kind != "swap":
            after, self._strict.knows[who] = self._strict.knows[who].copy(), before[0]
            self._strict.write_at(place, who, block, level, releases)
            self._strict.knows[who] = after
        self._lenient.write_at(place, who, block, level, releases)

    def _note(self, now: Access, place: Place) -> None:
        space, block, index = place
        for byte in range(4 * index, 4 * index + now.operation.nbytes):
            done = self._done.setdefault((space, block, byte), [])
            for old in done:
                self._compare(old, now)
            done.append(now)

    def _compare(self, old: Access, now: Access) -> None:
        if not (old.writes or now.writes):
            return
        if old.thread == now.thread and old.time < _NEVER:
            return
        if self._may_meet(old, now):
            return
        if self._strict.knows[now.thread, old.thread] <= old.time:
            self.open.append((old.number, now.number))
        swaps = "swap" in (old.operation.kind, now.operation.kind)
        in_vain = swaps and not _writes_for_sure(old) and not _writes_for_sure(now)
        if self._lenient.knows[now.thread, old.thread] <= old.time and not in_vain:
            self.races.append((old.number, now.number))

    def _may_meet(self, old: Access, now: Access) -> bool:
        """Whether both are strong, in a scope that has both."""
        orders = {old.operation.order, now.operation.order}
        if "weak" in orders:
            return False
        size = self.kernel.geometry.threads
        scopes = [each.operation.scope for each in (old, now) if each.operation.order != "volatile"]
        least = min((SCOPES.index(each) for each in scopes), default=len(SCOPES) - 1)
        one, other = (each.thread // size // self._sizes[least] for each in (old, now))
        return one == other


def _writes_for_sure(access: Access) -> bool:
    return access.writes and access.operation.kind != "swap"
