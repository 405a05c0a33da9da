"""Fibres: thread groups that execute together, each with its own registers, and their queue.

A fibre's registers are a list by register number; a value is a NumPy scalar where all its threads
agree, else an array with one element a thread. Arrays are never changed in place once they are in a
register, so fibres may share them. A fibre of few threads may have rows instead (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush
from typing import Any

import numpy as np

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import InvalidBranch, StackOverflow, Trap, Where
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Bools, OpenCall, Registers, Threads
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.resident_blocks import ResidentBlocks
from ptx.emulate.threads.rows import LANE, LOCAL, SHARED, Row, column, value_of
from ptx.isa.model import Instruction

Key = tuple[int, ...]  # a fibre's place: the blocks of its open calls, then its own block

GONE = -1  # returned by a basic block when its fibre does not continue
ENDLESS = 1 << 62

_UNSET: Value = np.uint32(0)
_KEEP_SHARE = 0.75  # a running fibre retains its arrays while this share of their lanes is present
_DEEPEST = 6  # splits whose registers a fibre retains; a program may split for ever


class RunQueue:
    """The fibres of a chunk that are ready to run, and how far the chunk is.

    Attributes:
        alive: threads that have not exited; exited: the lanes of those that have.
        successor: the fibre that a block's function left to run in place of its own.
        steps: basic blocks executed so far.
        work: the same, where a block of many threads counts more than one of few, and going from
            one fibre to another counts, too.
        released: fibres whose wait is over, with the block that each executes before others run.
    """

    def __init__(self, blocks: ResidentBlocks) -> None:
        self.blocks = blocks
        self.alive: int = blocks.geometry.threads
        self.exited: list[Index] = []
        self.successor: Fibre | None = None
        self.steps: int = 0
        self.work: int = 0
        self.released: list[tuple[Fibre, int]] = []
        self._runnable: dict[Key, list[Fibre]] = {}
        self._heap: list[Key] = []
        self._place: Key = (0,)
        self._deadline: int = 0
        self._turn_end: int = ENDLESS

    def wait(self, fibre: Fibre, block: int) -> None:
        """Queue the fibre; it continues at `block` when its turn comes."""
        key = (*fibre.prefix, block)
        fibre.tick = self.steps
        fibres = self._runnable.get(key)
        if fibres is None:
            self._runnable[key] = [fibre]
            heappush(self._heap, key)
        else:
            fibres.append(fibre)

    def waits_at(self, key: Key) -> bool:
        """Return whether a fibre waits for its turn at a place."""
        return key in self._runnable

    def give_way(self) -> None:
        """End the turn after this basic block."""
        self._deadline = self._turn_end = self.steps

    def finished(self, fibre: Fibre) -> None:
        """The fibre's threads have exited."""
        self.alive -= fibre.count
        if self.alive:
            self.exited.append(fibre.lane_numbers())

    def check_stack(self, fibre: Fibre, nbytes: int) -> None:
        """Raise if a call's frame would leave the thread's local memory.

        Raises:
            StackOverflow: it would.
        """
        available = self.blocks.local_stride
        if nbytes > available:
            raise StackOverflow(
                f"calls need more than the {available} bytes of local memory of a thread;"
                " set Limits.stack_bytes higher if they are meant to nest so deep",
                fibre.where_of_block(self._place[-1]),
            )

    @property
    def has_runnable(self) -> bool:
        """True if a fibre is ready to run."""
        return bool(self._heap or self.released)

    @property
    def steps_left(self) -> int:
        """How many basic blocks the running fibre may execute before others may have their turn."""
        return self._deadline - self.steps + 1

    @property
    def next_place(self) -> Key | None:
        """The smallest place at which a fibre waits for its turn."""
        return self._heap[0] if self._heap else None

    @property
    def runnable(self) -> list[tuple[Key, Fibre]]:
        """The fibres that are ready to run, with their places."""
        runnable = [(key, fibre) for key, fibres in self._runnable.items() for fibre in fibres]
        return runnable + [((*fibre.prefix, block), fibre) for fibre, block in self.released]


class Lineage:
    """A fibre as it was at a split.

    Where all of its threads meet again, the registers that no part wrote are the same arrays as
    before. Nothing is copied, and known facts of addresses in them still hold.

    Attributes:
        parent: the split before; written: registers that the fibre wrote since then.
        regs, lanes, n, present, count, calls: those of the fibre.
    """

    __slots__ = (
        "_cached", "_depth", "_places", "calls", "count", "lanes", "n", "parent", "present", "regs",
        "written",
    )  # fmt: skip

    def __init__(self, fibre: Fibre) -> None:
        parent = fibre.lineage
        self.parent: Lineage | None = None
        self._depth: int = 0
        if parent is not None and parent._depth < _DEEPEST:
            self.parent, self._depth = parent, parent._depth + 1
        self.written: int = fibre.written
        self.regs: Registers = list(fibre.regs)
        self.lanes: Index | None = fibre.lanes
        self.n: int = fibre.n
        self.present: Bools | None = fibre.present
        self.count: int = fibre.count
        self.calls: tuple[OpenCall, ...] = fibre.calls
        self._cached = fibre._cached
        self._places = fibre._places

    def whole(self, part: Fibre, regs: Registers, written: int) -> Fibre:
        """Return the fibre again, at the place of one of its parts, with other registers."""
        whole = Fibre(part.scheduler, regs, self.lanes, self.n)
        whole.present, whole.count = self.present, self.count
        whole._cached, whole._places = self._cached, self._places
        whole.prefix, whole.stack_pointer, whole.calls = part.prefix, part.stack_pointer, self.calls
        whole.lineage, whole.written = self.parent, self.written | written
        return whole


class Fibre(Threads):
    """Threads of one chunk at one place, with their registers.

    Attributes:
        scheduler: the queue of its chunk.
        prefix: blocks of the calls that it is in, outermost first.
        lineage: the last split that it is a part of; written: registers written since then.
        released: its wait is over; its block is executed again with this set.
        exchange: values that lanes in other fibres brought where it waited, by name.
        few: blocks that it executed since it is of few threads, in this form.
        rows: the registers thread by thread, for few threads; None where `regs` has them.
        rest: where its threads are in the arrays of `lineage`, which have the registers that it
            lacks; None if it lacks none. It has those that its block reads.
    """

    __slots__ = (
        "exchange", "few", "lineage", "prefix", "regs", "released", "rest", "rows", "scheduler",
        "stack_pointer", "tick", "written",
    )  # fmt: skip
    blocks: ResidentBlocks
    lanes: Index | None
    n: int
    count: int

    def __init__(self, scheduler: RunQueue, regs: Registers, lanes: Index | None, n: int) -> None:
        super().__init__(scheduler.blocks, lanes, n)
        self.scheduler: RunQueue = scheduler
        self.regs: Registers = regs
        self.prefix: tuple[int, ...] = ()
        self.stack_pointer: int = 0
        self.lineage: Lineage | None = None
        self.written: int = 0
        self.released: bool = False
        self.exchange: dict[str, Value] | None = None
        self.few: int = 0
        self.rows: list[Row] | None = None
        self.rest: Index | None = None
        self.tick: int = 0

    # Called by generated code.

    def invariant(self, slot: int) -> Value | None:
        """Return the value that another chunk computed; None unless all threads are here."""
        return self.blocks.cache.values.get(slot) if self.lanes is None else None

    def store_invariant(self, slot: int, value: Value) -> Value:
        """A block-invariant value, stored for later chunks if all threads have it."""
        cache = self.blocks.cache
        if self.n >= cache.fewest and self.lanes is None and self.present is None and value.ndim:
            cache.store(slot, value)
        return value

    def special(self, name: str) -> Value:
        """A special register."""
        if self.lanes is None:
            return self.blocks.special(name)
        value = self._cached.get(name)
        if value is None:
            value = self.at(self.blocks.special(name))
            if self.blocks.is_fixed(name):
                self._cached[name] = value
        return value

    @property
    def device(self) -> DeviceModel:
        """The device that the fibre runs on."""
        return self.blocks.launch.device

    def where_of_block(self, block: int) -> Where:
        """The place of the first thread, at the first instruction of a block."""
        position = 0 if self.present is None else int(np.argmax(self.present))
        return self.where(position, self.blocks.code.first_of(block))

    def split(self, taken: Value, target: int, following: int) -> int:
        """A branch: the next block, of this fibre or of its part that is `scheduler.successor`."""
        if taken.ndim == 0:
            return target if taken else following
        mask: Bools = np.asarray(taken, dtype=np.bool_)
        present = self.present
        if present is not None:
            mask = mask & present
        count = int(np.count_nonzero(mask))
        if count == self.count:
            return target
        if count == 0:
            return following
        not_taken = ~mask if present is None else present & ~mask
        if target < following:
            return self._part(mask, count, target, not_taken, following)
        return self._part(not_taken, self.count - count, following, mask, target)

    def _part(self, running: Bools, count: int, to: int, waiting: Bools, at: int) -> int:
        """Split: `count` lanes run on at block `to`, the smaller one; the others wait at `at`."""
        blocks = self.blocks
        scheduler = self.scheduler
        if scheduler.waits_at((*self.prefix, at)):  # those that left a loop before
            scheduler.wait(self.subset(waiting.nonzero()[0], blocks.code.live[at]), at)
        else:
            self.lineage, self.written = Lineage(self), 0
            scheduler.wait(self._masked(waiting, self.count - count), at)
        if blocks.code.is_pure[to] and count >= _KEEP_SHARE * self.n:
            self.present = running
            self.count = count
            return to
        scheduler.successor = self._running(running, count, to)
        return to

    def _needed(self, block: int, count: int) -> tuple[int, ...] | None:
        """The registers that so many threads need at a block until they meet others; None: all.

        Rows and observers have all registers.
        """
        launch, split = self.blocks.launch, self.lineage
        few = launch.limits.few_threads
        if launch.is_observed or split is None or self.written:
            return None
        if split.lanes is not self.lanes or split.n != self.n:
            return None
        is_wide = count > max(few.most, few.most_in_loop, few.most_apart)
        return self.blocks.code.reads[block] if is_wide else None

    def _masked(self, present: Bools, count: int) -> Fibre:
        """Some of these threads, in the same arrays."""
        fibre = self._beside(list(self.regs), self.lanes, self.n)
        fibre.present, fibre.count = present, count
        return fibre

    def _beside(self, regs: Registers, lanes: Index | None, n: int) -> Fibre:
        """Another fibre at the same place."""
        fibre = Fibre(self.scheduler, regs, lanes, n)
        fibre.prefix = self.prefix
        fibre.calls = self.calls
        fibre.stack_pointer = self.stack_pointer
        fibre.lineage = self.lineage
        fibre.written = self.written
        fibre.few = self.few
        return fibre

    def _running(self, running: Bools, count: int, to: int) -> Fibre:
        """The part that runs on; a division that occurred before is taken from the cache."""
        blocks = self.blocks
        live = blocks.code.live[to]
        needed = self._needed(to, count)
        if needed is not None:
            live = needed
        is_whole = self.lanes is None and self.present is None
        division = blocks.cache.division(to, running, count) if is_whole else None
        positions = running.nonzero()[0] if division is None else division.positions
        part = self.subset(positions, live if division is None else ())
        part.rest = None if needed is None else positions
        if division is None:
            return part
        for number in live:
            value = self.regs[number]
            part.regs[number] = blocks.cache.part(value, division) if value.ndim else value
        part._places = division.places
        return part

    def subset(self, positions: Index, live: tuple[int, ...]) -> Fibre:
        """A fibre of some of this one's elements, with just the live registers."""
        if self.rows is not None:
            part = self.with_rows([self.rows[position] for position in positions.tolist()])
            if not live:
                part.regs, part.rows = [_UNSET] * len(part.register_types), None
            return part
        if self.rest is not None and live:
            self._complete(live)
        registers = self.regs
        regs: Registers = [_UNSET] * len(registers)
        for number in live:
            value = registers[number]
            regs[number] = value.take(positions, mode="clip") if value.ndim else value
        lanes = positions if self.lanes is None else self.lanes.take(positions, mode="clip")
        return self._beside(regs, lanes, len(positions))

    @property
    def register_types(self) -> Sequence[np.dtype[Any]]:  # of any scalar type
        """The types of the registers of the function that it is in."""
        return self.blocks.code.functions[self.calls[-1].function if self.calls else 0].dtypes

    def with_rows(self, rows: list[Row]) -> Fibre:
        """Return a fibre of the threads that have these rows."""
        lanes = np.array([row[LANE] for row in rows], dtype=np.intp)
        fibre = self._beside([], lanes, len(rows))
        fibre.rows = rows
        return fibre

    def enter_rows(self, live: tuple[int, ...]) -> None:
        """Give each thread a row of its own, with just the live registers."""
        self.compact(live)
        blocks = self.blocks
        size = blocks.geometry.threads_per_block
        count = self.n
        lanes: list[int] = self.lane_numbers().tolist()
        columns = [column(self.regs[number], count) for number in live]
        columns.append([lane // size * blocks.shared_stride for lane in lanes])
        columns.append([lane * blocks.local_stride for lane in lanes])
        columns.append(lanes)
        names = (*live, SHARED, LOCAL, LANE)
        self.rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
        self.regs = []

    def leave_rows(self, live: tuple[int, ...]) -> None:
        """Have the live registers as NumPy values again."""
        rows = self.rows
        if rows is None:
            return
        dtypes = self.register_types
        self.regs = [_UNSET] * len(dtypes)
        for number in live:
            self.regs[number] = value_of([row[number] for row in rows], dtypes[number])
        self.rows = None

    def register(self, number: int) -> Value:
        """A register in either form."""
        if self.rows is None:
            if self.rest is not None and not self.written >> number & 1:
                return self._before(number)
            return self.regs[number]
        return value_of([row[number] for row in self.rows], self.register_types[number])

    def tidy(self, block: int) -> None:
        """Have just the present threads before a block, unless running it for all costs less."""
        code, present = self.blocks.code, self.present
        if self.rest is not None:
            self.compact(code.live[block])
        elif present is not None and (not code.is_pure[block] or self.count < _KEEP_SHARE * self.n):
            needed = self._needed(block, self.count)
            self.compact(code.live[block] if needed is None else needed)
            self.rest = None if needed is None else present.nonzero()[0]

    def compact(self, live: tuple[int, ...]) -> None:
        """Drop the elements that are not present."""
        if self.rest is not None:
            self._complete(live)
        if self.present is None:
            return
        positions = self.present.nonzero()[0]
        part = self.subset(positions, live)
        self.regs, self.lanes, self.n = part.regs, part.lanes, part.n
        self.present = None
        self._cached = {}
        self._places = {}

    def _complete(self, live: tuple[int, ...]) -> None:
        """Take the live registers that it lacks from before the split."""
        for number in live:
            if not self.written >> number & 1:
                self.regs[number] = self._before(number)
        self.rest = None

    def _before(self, number: int) -> Value:
        """A register that it has not written since the split."""
        assert self.lineage is not None
        assert self.rest is not None
        value = self.lineage.regs[number]
        return value.take(self.rest, mode="clip") if value.ndim else value

    def branch_index(self, index: Value, targets: tuple[int, ...], instruction: Instruction) -> int:
        """`brx.idx`: branch each thread to the target that its index names.

        Raises:
            InvalidBranch: there is no such target (the PTX ISA leaves open what happens then).
        """
        numbers = np.asarray(index)
        beyond = int(np.argmax(numbers))
        if numbers.flat[beyond] >= len(targets):
            raise InvalidBranch(
                f"a branch to target {numbers.flat[beyond]} of {len(targets)}",
                self.where(beyond, instruction),
            )
        if index.ndim == 0:
            return targets[int(index)]
        self.lineage, self.written = Lineage(self), 0
        for number in np.unique(numbers):
            block = targets[int(number)]
            chosen = (numbers == number).nonzero()[0]
            self.scheduler.wait(self.subset(chosen, self.blocks.code.live[block]), block)
        return GONE

    def trap(self, instruction: Instruction) -> None:
        """`trap`.

        Raises:
            Trap: always.
        """
        text = "the kernel trapped"
        if self.blocks.launch.lacks_workspace:
            text += ": it synchronises its grid, and was launched without cooperative=True"
        raise Trap(text, self.where(0, instruction))

    def finish(self) -> int:
        """`exit`: the threads are done."""
        self.scheduler.finished(self)
        return GONE
