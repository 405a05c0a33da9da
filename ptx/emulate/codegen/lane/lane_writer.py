"""Writes a kernel's code for few threads: parts of basic blocks, and loops.

A basic block is cut into parts, each for single threads or for NumPy. Code for one thread continues
as long as every operation has it. Several threads take turns, so that their parts also end before
and after each store. Each thread then loads the same values as if all had executed each instruction
together.

A loop is one Python function, with a thread's registers in its variables. Several threads go
through it one after another, up to where they leave it. As nothing in it stores, each sees the
memory that it would have seen together with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ptx.emulate.codegen.block_writer import Unit
from ptx.emulate.codegen.call_graph import call_target
from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import NoLaneCode
from ptx.emulate.codegen.lane.lane_table import find_lane
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import GOES_ON, LanePart, Loop, Part, VectorPart
from ptx.emulate.model.types import NUMPY
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import column, value_of
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Symbol

# They use registers beyond those that they name.
_USE_ALL = frozenset({InstructionKind.CALL, InstructionKind.RETURN, InstructionKind.BRANCH})


def vector_part(code: KernelCode, unit: Unit, block: Block, first: int, end: int) -> VectorPart:
    """The steps of a block from number `first` to below `end`."""
    sites = len(code.sites)
    lives = unit.live_behind_each(block)
    emitter = Emitter(unit.scope)
    emitter.functions, emitter.first = unit.functions, unit.first
    emitter.begin(unit.first + block.index, unit.following(block))
    emitter.targets = tuple(unit.first + target for target in block.targets)
    emitter.live_out = unit.live_behind(block)
    reads: dict[int, None] = {}
    writes: set[int] = set()
    kind: InstructionKind | None = None
    for step, live in zip(block.steps[first:end], lives[first:end], strict=True):
        emitter.start(step.instruction)
        emitter.live_results = frozenset(each for each in step.writes if live >> each & 1)
        if step.operation.effect is Effect.PURE and not emitter.live_results:
            continue
        reads.update(dict.fromkeys(each for each in step.reads if each not in writes))
        writes.update(step.writes)
        kind = step.instruction.facts.kind
        step.operation.emit(emitter, step.instruction)
    behind = lives[end - 1]
    if block.steps[end - 1].operation.effect is not Effect.ENDS:
        emitter.flush(behind)
        emitter.line(f"return {GOES_ON}")
    needs = None
    if kind in _USE_ALL:
        needs = tuple({**reads, **dict.fromkeys(bits(emitter.live_out))})
    names: dict[str, object] = code.blocks.names
    source = "def part(f, R):\n    " + "\n    ".join(emitter.lines)
    exec(compile(source, f"<ptx {code.kernel}, part>", "exec"), names)
    return VectorPart(
        names.pop("part"),  # type: ignore[arg-type]  # just made
        tuple(reads),
        tuple(each for each in bits(behind) if each in writes),
        needs,
        kind is InstructionKind.RETURN,
        tuple(code.sites[sites:]),
    )


def may_be_called(step: BlockStep) -> bool:
    """Return whether one thread's code may call NumPy's for a step, with its registers alone."""
    return step.operation.effect in (Effect.PURE, Effect.MEMORY)


def call_vector(e: LaneEmitter, code: KernelCode, unit: Unit, block: Block, at: int) -> None:
    """Have the code for one thread call NumPy's for a step."""
    part = vector_part(code, unit, block, at, at + 1)
    name = e.helper(_called(part, unit))
    arguments = "".join(f", {e.as_home(number)}" for number in part.reads)
    targets = [e.temporary("None") for _ in part.writes]
    e.line(f"{', '.join([*targets, '_'])} = {name}(f{arguments})")
    for number, target in zip(part.writes, targets, strict=True):
        e.set_home(number, target)


def _called(part: VectorPart, unit: Unit) -> Callable[..., tuple[Any, ...]]:
    """Return a part as a function from row values to row values, with None as the last result."""
    scalars = [(number, np.dtype(NUMPY[unit.scope.home[number]])) for number in part.reads]

    def call(fibre: Fibre, *values: Any) -> tuple[Any, ...]:
        regs: dict[int, Any] = {}
        for (number, dtype), value in zip(scalars, values, strict=True):
            regs[number] = value_of((value,), dtype)
        part.function(fibre, regs)  # type: ignore[arg-type]  # it uses these numbers alone
        return (*[column(regs[number], 1)[0] for number in part.writes], None)

    return call


_MOST_STEPS = 600  # writing and compiling take some 100 µs for each
_MOST_STEPS_APART = 6000  # where threads diverge for long
_GROUP = 8  # blocks that are passed over by one test


def loops_of(
    blocks: Sequence[Block], *, alone: bool, leave_out: bool
) -> dict[int, tuple[int, ...]]:
    """Return for each block the largest loop around it that may become one function.

    With `leave_out` a loop omits blocks that have no code for single threads, and threads leave the
    loop for them. Otherwise a loop that has such blocks stays as it is.
    """
    found: dict[int, tuple[int, ...]] = {}
    waiting = [set(range(len(blocks)))]
    most = _MOST_STEPS_APART if leave_out else _MOST_STEPS
    while waiting:
        for loop in _cycles(blocks, waiting.pop()):
            inside = tuple(n for n in loop if _may_be_inside(blocks[n], alone))
            is_small = sum(len(blocks[n].steps) for n in inside) <= most
            if is_small and inside and (leave_out or len(inside) == len(loop)):
                found |= dict.fromkeys(inside, inside)
            elif len(loop) > 1:
                waiting.append(set(loop[1:]))
    return found


def _cycles(blocks: Sequence[Block], inside: set[int]) -> Iterator[tuple[int, ...]]:
    """Return the largest sets of blocks, among some, in which every block reaches every other.

    Kosaraju's algorithm: forward in any order, then backward from the last finished block.
    """
    before: dict[int, list[int]] = {each: [] for each in inside}
    for each in inside:
        for to in blocks[each].successors:
            if to in inside:
                before[to].append(each)
    finished: list[int] = []
    seen: set[int] = set()
    for start in sorted(inside):
        stack = [] if start in seen else [(start, iter(tuple(blocks[start].successors)))]
        seen.add(start)
        while stack:
            block, rest = stack[-1]
            to = next((n for n in rest if n in inside and n not in seen), -1)
            if to < 0:
                finished.append(block)
                stack.pop()
            else:
                seen.add(to)
                stack.append((to, iter(tuple(blocks[to].successors))))
    taken: set[int] = set()
    for start in reversed(finished):
        if start in taken:
            continue
        taken.add(start)
        loop, waiting = {start}, [start]
        while waiting:
            for each in before[waiting.pop()]:
                if each not in taken:
                    taken.add(each)
                    loop.add(each)
                    waiting.append(each)
        if len(loop) > 1 or start in before[start]:
            yield tuple(sorted(loop))


def write_loop(code: KernelCode, unit: Unit, inside: Sequence[int], alone: bool) -> Loop | None:
    """The function of a loop; None where an operation in it has no code for single threads."""
    blocks = [unit.blocks[each] for each in inside]
    emitter = LaneEmitter(unit.scope, alone=alone)
    emitter.begin()
    try:
        written = [_write_block(emitter, code, unit, block) for block in blocks]
    except NoLaneCode:
        return None
    numbers = tuple(unit.first + each for each in inside)
    source = _function(emitter, unit, blocks, numbers, written)
    names: dict[str, object] = code.blocks.names
    exec(compile(source, f"<ptx {code.kernel}, loop>", "exec"), names)
    defined = 0
    for block in blocks:
        defined |= block.defined
    return Loop(names.pop("loop"), numbers, numbers[-1], defined)  # type: ignore[arg-type]  # made


def _may_be_inside(block: Block, alone: bool) -> bool:
    for step in block.steps:
        if step.operation.effect in (Effect.ENDS, Effect.SYNCS):
            return False
        if step.instruction.facts.kind is InstructionKind.STORE and not alone:
            return False
        if not find_lane(step.operation, step.instruction) and not (alone and may_be_called(step)):
            return False
    return True


def _write_block(emitter: LaneEmitter, code: KernelCode, unit: Unit, block: Block) -> list[str]:
    """Return the lines of a block, with the next block as `at`."""
    emitter.begin_block()
    live = unit.live_behind_each(block)
    for at, (step, behind) in enumerate(zip(block.steps, live, strict=True)):
        if step.operation.effect is Effect.PURE and not any(behind >> n & 1 for n in step.writes):
            continue
        emitter.instruction = step.instruction
        emit = find_lane(step.operation, step.instruction)
        try:
            if emit is None:
                raise NoLaneCode
            emit(emitter, step.instruction)
        except NoLaneCode:
            if not emitter.alone or not may_be_called(step):
                raise
            call_vector(emitter, code, unit, block, at)
    following = unit.following(block)
    target = following if block.target is None else unit.first + block.target
    goes = str(target)
    if block.guard is not None:
        yes, no = (following, target) if block.guard.negated else (target, following)
        goes = f"{yes} if {emitter.predicate(block.guard.register)} else {no}"
    emitter.end_block(unit.live_behind(block))
    emitter.line(f"at = {goes}")
    return emitter.lines


def _function(
    emitter: LaneEmitter,
    unit: Unit,
    blocks: Sequence[Block],
    numbers: tuple[int, ...],
    written: Sequence[Sequence[str]],
) -> str:
    """The whole: registers are loaded, the blocks repeated, and what they wrote is stored."""
    defined = live = beyond = 0
    for block in blocks:
        defined |= block.defined
        live |= block.live
        beyond |= unit.live_behind(block)
    kept = defined & (live | beyond)
    lines = [f"r{each} = get({each})" for each in bits(live | kept)]
    lines.insert(0, "get = R.get")
    lines += ["at, left = start, room", f"while left >= {len(blocks)}:"]
    for number, body in zip(numbers, written, strict=True):
        if len(numbers) > _GROUP and (place := numbers.index(number)) % _GROUP == 0:
            group = numbers[place : place + _GROUP]
            lines.append(f"    if {group[0]} <= at <= {group[-1]}:")
        deep = "    " * (1 + (len(numbers) > _GROUP))
        lines.append(f"{deep}if at == {number}:")
        lines += [f"{deep}    {each}" for each in body]
        lines.append(f"{deep}    left -= 1")
    is_dense = numbers[-1] - numbers[0] == len(numbers) - 1
    inside = f"{numbers[0]} <= at <= {numbers[-1]}" if is_dense else f"at in {set(numbers)}"
    lines.append(f"    if not {inside}: break")
    lines += [f"R[{each}] = r{each}" for each in bits(kept)]
    lines += ["N.append(at)", "if left < least: least = left"]
    head = [*emitter.prelude, "least = room", "for R in rows:"]
    body = [*head, *(f"    {each}" for each in lines), "return least"]
    return "def loop(f, rows, N, start, room):\n    " + "\n    ".join(body)


_IN_NO_ORDER = frozenset({
    InstructionKind.LOAD, InstructionKind.STORE, InstructionKind.RETURN, InstructionKind.EXIT,
    InstructionKind.TRAP, InstructionKind.BRANCH, InstructionKind.BARRIER,
    InstructionKind.WARP_BARRIER,
})  # fmt: skip


def _shows_order(step: BlockStep, unit: Unit) -> bool:
    """Return whether an instruction meets other threads, but for barriers, or the world outside."""
    instruction = step.instruction
    if step.operation.effect is Effect.PURE:
        return any("clock" in repr(each) or "timer" in repr(each) for each in instruction.operands)
    facts = step.instruction.facts
    if facts.kind is InstructionKind.CALL:
        target = call_target(instruction)
        named = isinstance(target, Symbol) and unit.scope.real_name(target.name) in unit.functions
        return not named
    return facts.kind not in _IN_NO_ORDER or facts.is_strong or "red" in facts.words


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
        """Return whether results may depend on which of two threads ran first, without a race."""
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
        """Return all parts of the block."""
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
        kind = step.instruction.facts.kind
        loads, stores = kind is InstructionKind.LOAD, kind is InstructionKind.STORE
        if not self._alone and ((stores and self._accesses) or (loads and self._stored)):
            self._end_part(at)
            self._begin(at)
        emitter = self._emitter
        emitter.instruction = step.instruction
        try:
            emit(emitter, step.instruction)
        except NoLaneCode:  # what it loaded stays; no name is read of what it began to compute
            return self._inline(at)
        self._emitted += 1
        self._accesses += loads or stores
        self._stored |= stores
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
        """Make a function of the part; `result` is its result for all threads."""
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
        """Return the steps for NumPy; if the block ends with them, also the branch from there."""
        vector = self._vector(first, end)
        if result == GOES_ON:
            return (vector,)
        self._parts = []
        self._begin(end)
        self._leave()
        return (vector, *self._parts)

    def _vector(self, first: int, end: int) -> VectorPart:
        return vector_part(self._code, self._unit, self._block, first, end)
