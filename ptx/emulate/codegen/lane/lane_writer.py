"""Cuts a basic block into parts for few threads, and writes each: for single threads, or for NumPy.

Code for one thread goes on as long as every operation has it. Several threads take turns, so that
theirs also ends before each store and behind it: what a thread loads is then the same as if all had
done each instruction together.
"""

from __future__ import annotations

from functools import cache

from ptx.emulate.codegen.block_writer import Unit
from ptx.emulate.codegen.call_graph import call_target
from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import NoLaneCode
from ptx.emulate.codegen.lane.lane_table import LOADS, STORES, find_lane
from ptx.emulate.codegen.lane.loop_writer import loops_of, write_loop
from ptx.emulate.codegen.lane.vector_part import call_vector, may_be_called, vector_part
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import GOES_ON, LanePart, Loop, Part, VectorPart
from ptx.isa.model import Symbol

_IN_NO_ORDER = frozenset({"ld", "ldu", "st", "ret", "exit", "trap", "brx", "bar", "barrier"})
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio", "red"})


def _shows_order(step: BlockStep, unit: Unit) -> bool:
    """Whether an instruction meets other threads, but for barriers, or the world outside."""
    instruction = step.instruction
    if step.operation.effect is Effect.PURE:
        return any("clock" in repr(each) or "timer" in repr(each) for each in instruction.operands)
    if instruction.opcode == "call":
        target = call_target(instruction)
        named = isinstance(target, Symbol) and unit.scope.real_name(target.name) in unit.functions
        return not named
    return instruction.opcode not in _IN_NO_ORDER or not _STRONG.isdisjoint(instruction.modifiers)


class LaneWriter:
    """Makes the parts of the blocks of a kernel, and its loops."""

    def __init__(self, code: KernelCode, units: list[Unit]) -> None:
        self._code = code
        self._units = units
        self._loops: dict[tuple[int, bool, bool], dict[int, tuple[int, ...]]] = {}

    def write(self, block: int, alone: bool) -> tuple[Part, ...]:
        """The parts of a block, for one thread or for several."""
        unit = self._unit_of(block)
        return _LaneBlockWriter(self._code, unit, unit.blocks[block - unit.first], alone).parts()

    def write_loop(self, block: int, alone: bool, leave_out: bool) -> Loop | None:
        """The largest loop around a block that code for single threads can do as a whole.

        Or, if it may leave some out, but for those blocks for which there is no such code.
        """
        unit = self._unit_of(block)
        key = (unit.first, alone, leave_out)
        if key not in self._loops:
            self._loops[key] = loops_of(unit.blocks, alone=alone, leave_out=leave_out)
        inside = self._loops[key].get(block - unit.first)
        return None if inside is None else write_loop(self._code, unit, inside, alone)

    def shows_order(self) -> bool:
        """Whether what the kernel gives may tell which of two threads ran first, without a race."""
        if self._code.calls_by_address:
            return True
        for unit in self._units:
            for block in unit.blocks:
                for step in block.steps:
                    if _shows_order(step, unit):
                        return True
        return False

    def _unit_of(self, block: int) -> Unit:
        return next(each for each in reversed(self._units) if each.first <= block)


class _LaneBlockWriter:
    """Makes the parts of one block."""

    def __init__(self, code: KernelCode, unit: Unit, block: Block, alone: bool) -> None:
        self._code = code
        self._unit = unit
        self._block = block
        self._alone = alone
        self._live = unit.live_behind_each(block)
        self._emitter = LaneEmitter(unit.scope, alone=alone)
        self._parts: list[Part] = []
        self._from = 0
        self._emitted = 0
        self._accesses = 0
        self._stored = False

    def parts(self) -> tuple[Part, ...]:
        """All of the block."""
        steps = self._block.steps
        self._begin(0)
        waiting: int | None = None  # where the steps begin that wait for NumPy
        for at, step in enumerate(steps):
            if step.operation.effect is Effect.PURE and not self._is_needed(at):
                continue
            if waiting is not None:
                self._begin(at)
            is_lane = self._emit(at, step)
            if is_lane and waiting is not None:
                self._parts.append(self._vector(waiting, at))
                waiting = None
            elif not is_lane and waiting is None:
                self._end_part(at)
                waiting = at
        if waiting is not None:
            self._parts.append(self._vector(waiting, len(steps)))
            self._begin(len(steps))
        if not steps or steps[-1].operation.effect is not Effect.ENDS:
            self._leave()
        return tuple(self._parts)

    def _is_needed(self, at: int) -> bool:
        return any(self._live[at] >> number & 1 for number in self._block.steps[at].writes)

    def _begin(self, at: int) -> None:
        self._from = at
        self._emitted = 0
        self._accesses = 0
        self._stored = False
        self._emitter.begin()

    def _emit(self, at: int, step: BlockStep) -> bool:
        """Write a step's code for single threads; whether there is such."""
        emit = find_lane(step.operation, step.instruction)
        if emit is None:
            return self._inline(at)
        opcode = step.instruction.opcode
        if not self._alone and (
            (opcode in STORES and self._accesses) or (opcode in LOADS and self._stored)
        ):
            self._end_part(at)
            self._begin(at)
        emitter = self._emitter
        emitter.instruction = step.instruction
        try:
            emit(emitter, step.instruction)
        except NoLaneCode:  # what it loaded stays; no name is read of what it began to compute
            return self._inline(at)
        self._emitted += 1
        self._accesses += opcode in LOADS or opcode in STORES
        self._stored |= opcode in STORES
        return True

    def _inline(self, at: int) -> bool:
        """Have one thread's code call NumPy's, where that is possible; whether it is."""
        if not self._alone or not may_be_called(self._block.steps[at]):
            return False
        call_vector(self._emitter, self._code, self._unit, self._block, at)
        self._emitted += 1
        return True

    def _end_part(self, at: int) -> None:
        """End the code for single threads before a step, where there is any."""
        if not self._emitted:
            return
        self._emitter.flush(self._live[at - 1])
        if self._alone:
            self._emitter.line(f"return {GOES_ON}")
        self._close(at, GOES_ON)

    def _leave(self) -> None:
        """The branch at the block's end."""
        block, unit, emitter = self._block, self._unit, self._emitter
        following = unit.following(block)
        target = following if block.target is None else unit.first + block.target
        live = unit.live_behind(block)
        if block.guard is None:
            emitter.flush(live)
            if self._alone:
                emitter.line(f"return {target}")
            self._close(len(block.steps), target)
            return
        condition = emitter.predicate(block.guard.register)
        emitter.flush(live)
        yes, no = (following, target) if block.guard.negated else (target, following)
        choice = f"{yes} if {condition} else {no}"
        emitter.line(f"return {choice}" if self._alone else f"N.append({choice})")
        self._close(len(block.steps), None)

    def _close(self, end: int, result: int | None) -> None:
        """Make a function of the part; `result` is what it gives for all threads."""
        emitter, first = self._emitter, self._from
        source = emitter.function("part", result)
        names: dict[str, object] = self._code.blocks.names
        exec(compile(source, f"<ptx {self._code.kernel}, lanes>", "exec"), names)
        function = names.pop("part")

        @cache
        def instead() -> tuple[Part, ...]:
            return self._instead(first, end, result)

        undo = emitter.changed if emitter.sites and not self._alone else ()
        sites = tuple(emitter.sites)
        self._parts.append(LanePart(function, instead, sites, undo))  # type: ignore[arg-type]  # made

    def _instead(self, first: int, end: int, result: int | None) -> tuple[Part, ...]:
        """The steps for NumPy; where the block ends with them, also the way on from there."""
        vector = self._vector(first, end)
        if result == GOES_ON:
            return (vector,)
        self._parts = []
        self._begin(end)
        self._leave()
        return (vector, *self._parts)

    def _vector(self, first: int, end: int) -> VectorPart:
        return vector_part(self._code, self._unit, self._block, first, end)
