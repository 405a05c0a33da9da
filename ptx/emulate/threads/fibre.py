"""Fibres: sets of threads that execute together, each with its own registers.

A fibre's registers are a list by register number; a value is a NumPy scalar where all its threads
agree, else an array with one element a thread. Arrays are never changed in place once they are in a
register, so fibres may share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.lane.row_fibres import part_of_rows
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import InvalidBranch, Trap, Where
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.rows import Row
from ptx.isa.model import Instruction

if TYPE_CHECKING:
    from ptx.emulate.exec.calls import OpenCall
    from ptx.emulate.exec.scheduler import Scheduler
    from ptx.emulate.threads.device_model import DeviceModel
    from ptx.emulate.threads.resident_blocks import ResidentBlocks

Bools = NDArray[np.bool_]
Registers = list[Value]
GONE = -1  # what a basic block returns when its fibre does not go on

_UNSET: Value = np.uint32(0)
_KEEP_SHARE = 0.75  # a running fibre keeps its arrays while this share of their lanes is present
_LAZY_SHARE = 0.25  # a waiting one, while this share is


class Lineage:
    """A fibre that waits at a join with all its arrays while a part of it runs elsewhere.

    `written`: registers that the waiting fibre wrote since its own split from `parent`.
    """

    __slots__ = ("parent", "written")

    def __init__(self, parent: Lineage | None, written: int) -> None:
        self.parent: Lineage | None = parent
        self.written: int = written


class Fibre:
    """Threads of one chunk at one place.

    Attributes:
        lanes: (n,) their numbers in the chunk, ascending; None where they are all of the chunk's.
        n: the length of the register arrays.
        present: (n,) which elements still belong to the fibre; None where all do.
        count: how many belong to it.
        calls: those that it is in, outermost first.
        prefix: blocks of the calls that it is in, outermost first.
        written: registers written since it was split off `lineage`.
        released: what it waited for is there; its block is executed again with this set.
        exchange: values that lanes in other fibres brought where it waited, by name.
        few: blocks that it executed since it is of few threads, in this form.
        rows: the registers thread by thread, for few threads; None where `regs` has them.
    """

    __slots__ = (
        "_cached", "_places", "blocks", "calls", "count", "exchange", "few", "lanes", "lineage",
        "n", "prefix", "present", "regs", "released", "rows", "scheduler", "stack_pointer", "tick",
        "token", "written",
    )  # fmt: skip

    def __init__(self, scheduler: Scheduler, regs: Registers, lanes: Index | None, n: int) -> None:
        self.scheduler: Scheduler = scheduler
        self.blocks: ResidentBlocks = scheduler.blocks
        self.regs: Registers = regs
        self.lanes = lanes
        self.n: int = n
        self.count: int = n
        self.present: Bools | None = None
        self.prefix: tuple[int, ...] = ()
        self.calls: tuple[OpenCall, ...] = ()
        self.stack_pointer: int = 0
        self.lineage: Lineage | None = None
        self.token: Lineage | None = None
        self.written: int = 0
        self.released: bool = False
        self.exchange: dict[str, Value] | None = None
        self.few: int = 0
        self.rows: list[Row] | None = None
        self.tick: int = 0
        self._cached: dict[str, Value] = {}
        self._places: dict[str, Value] = {}

    # What generated code calls.

    def at(self, values: Value) -> Value:
        """This fibre's elements of an array that has one value for each lane of the chunk."""
        if self.lanes is None or values.ndim == 0:
            return values
        return values.take(self.lanes, mode="clip")

    def place(self, name: str) -> Value:
        """A `Geometry` array for this fibre's threads."""
        if self.lanes is None:
            return self.blocks.geometry.array(name)
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = self.at(self.blocks.geometry.array(name))
        return found

    def invariant(self, slot: int) -> Value | None:
        """What another chunk computed for this value; None unless all threads are here."""
        return self.blocks.cache.values.get(slot) if self.lanes is None else None

    def store_invariant(self, slot: int, value: Value) -> Value:
        """A block-invariant value, stored for later chunks if all threads have it."""
        cache = self.blocks.cache
        if self.n >= cache.fewest and self.lanes is None and self.present is None and value.ndim:
            cache.store(slot, value)
        return value

    def start_index(self, space: str, shift: int) -> Index:
        """(n,) where each thread's shared or local memory starts, in elements of 2**shift bytes."""
        if self.lanes is None:
            return self.blocks.start_index(space, shift)
        name = f"{space}{shift}"
        found: Index | None = self._places.get(name)
        if found is None:
            found = self.blocks.start_index(space, shift).take(self.lanes, mode="clip")
            self._places[name] = found
        return found

    def special(self, name: str) -> Value:
        """A special register."""
        if self.lanes is None:
            return self.blocks.special(name)
        found = self._cached.get(name)
        if found is None:
            found = self.at(self.blocks.special(name))
            if self.blocks.is_fixed(name):
                self._cached[name] = found
        return found

    def lane_numbers(self) -> Index:
        """(n,) the threads' numbers in the chunk."""
        return self.blocks.geometry.index("lane") if self.lanes is None else self.lanes

    def recall(self, name: str) -> Value:
        """What was remembered for this set of threads, None if nothing was."""
        return self._cached.get(name)

    def remember(self, name: str, thing: Value) -> None:
        """Remember what depends on this set of threads only."""
        self._cached[name] = thing

    def spread(self, value: Value) -> NDArray[np.generic]:
        """(n,) the value for each thread."""
        if value.ndim:
            return np.asarray(value)
        return np.full(self.n, value, dtype=value.dtype)

    @property
    def device(self) -> DeviceModel:
        """The device that the fibre runs on."""
        return self.blocks.launch.device

    def where(self, position: int, instruction: Instruction | None) -> Where:
        """The place of thread number `position`, which executes an instruction."""
        return self.blocks.launch.where(self, position, instruction)

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
        others = ~mask if present is None else present & ~mask
        if target < following:
            return self._part(mask, count, target, others, following)
        return self._part(others, self.count - count, following, mask, target)

    def _part(self, running: Bools, count: int, to: int, waiting: Bools, at: int) -> int:
        """Split: `count` lanes run on at block `to`, the smaller one; the others wait at `at`."""
        blocks = self.blocks
        scheduler = self.scheduler
        rest = self.count - count
        if blocks.code.is_pure[to] and count >= _KEEP_SHARE * self.n:
            scheduler.wait(self.subset(waiting.nonzero()[0], blocks.code.live[at]), at)
            self.present = running
            self.count = count
            return to
        part = self._running(running, count, to)
        if rest >= _LAZY_SHARE * self.n:
            self.token = Lineage(self.lineage, self.written)
            part.lineage, part.written = self.token, 0
            self.present = waiting
            self.count = rest
            scheduler.wait(self, at)
        else:
            scheduler.wait(self.subset(waiting.nonzero()[0], blocks.code.live[at]), at)
        scheduler.successor = part
        return to

    def _running(self, running: Bools, count: int, to: int) -> Fibre:
        """The part that runs on; a division that occurred before is taken from the cache."""
        blocks = self.blocks
        live = blocks.code.live[to]
        whole = self.lanes is None and self.present is None
        division = blocks.cache.division(to, running, count) if whole else None
        if division is None:
            return self.subset(running.nonzero()[0], live)
        part = self.subset(division.positions, ())
        for number in live:
            value = self.regs[number]
            part.regs[number] = blocks.cache.part(value, division) if value.ndim else value
        part._places = division.places
        return part

    def subset(self, positions: Index, live: tuple[int, ...]) -> Fibre:
        """A fibre of some of this one's elements, with just the live registers."""
        if self.rows is not None:
            return part_of_rows(self, positions, live)
        mine = self.regs
        regs: Registers = [_UNSET] * len(mine)
        for number in live:
            value = mine[number]
            regs[number] = value.take(positions, mode="clip") if value.ndim else value
        lanes = positions if self.lanes is None else self.lanes.take(positions, mode="clip")
        found = Fibre(self.scheduler, regs, lanes, len(positions))
        found.prefix = self.prefix
        found.calls = self.calls
        found.stack_pointer = self.stack_pointer
        found.lineage = self.lineage
        found.written = self.written
        found.few = self.few
        return found

    def compact(self, live: tuple[int, ...]) -> None:
        """Drop the elements that are not present."""
        if self.present is None:
            return
        positions = self.present.nonzero()[0]
        part = self.subset(positions, live)
        self.regs, self.lanes, self.n = part.regs, part.lanes, part.n
        self.present = None
        self.token = None
        self._cached = {}
        self._places = {}

    def branch_index(self, index: Value, targets: tuple[int, ...], instruction: Instruction) -> int:
        """`brx.idx`: each thread goes to the target that its index names.

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

    def note_unwritten(self, instruction: Instruction, names: tuple[str, ...]) -> None:
        """An instruction reads registers that nothing has written."""
        if self.blocks.unwritten is not None:
            position = 0 if self.present is None else int(np.argmax(self.present))
            self.blocks.unwritten.note_registers(self.where(position, instruction), names)

    def finish(self) -> int:
        """`exit`: the threads are done."""
        self.scheduler.finished(self)
        return GONE
