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
from threading import RLock
from typing import Any

import numpy as np

from ptx.emulate.codegen.call_graph import call_target
from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import NoLaneCode
from ptx.emulate.codegen.lane.lane_table import find_lane
from ptx.emulate.codegen.table import Effect
from ptx.emulate.codegen.unit import Unit
from ptx.emulate.exec.kernel_code import BlockFunctions
from ptx.emulate.exec.lane.lane_code import GOES_ON, LanePart, Loop, Part, VectorPart
from ptx.emulate.model.types import NUMPY
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import column, value_of
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Symbol

# They use registers beyond those that they name.
_USE_ALL = frozenset({InstructionKind.CALL, InstructionKind.RETURN, InstructionKind.BRANCH})


def vector_part(code: BlockFunctions, unit: Unit, block: Block, first: int, end: int) -> VectorPart:
    """The steps of a block from number `first` to below `end`."""
    lives = unit.live_after_each(block)
    emitter = Emitter(unit.scope)
    emitter.functions, emitter.first = unit.functions, unit.first
    emitter.begin(unit.first + block.index, unit.following(block))
    emitter.targets = tuple(unit.first + target for target in block.targets)
    emitter.live_out = unit.live_after(block)
    reads: dict[int, None] = {}
    writes: set[int] = set()
    kind: InstructionKind | None = None
    for step, live in zip(block.steps[first:end], lives[first:end], strict=True):
        emitter.start(step.instruction)
        emitter.live_results = frozenset(
            register for register in step.writes if live >> register & 1
        )
        if step.operation.effect is Effect.PURE and not emitter.live_results:
            continue
        reads.update(dict.fromkeys(register for register in step.reads if register not in writes))
        writes.update(step.writes)
        kind = step.instruction.facts.kind
        step.operation.emit(emitter, step.instruction)
    live_after = lives[end - 1]
    if block.steps[end - 1].operation.effect is not Effect.ENDS:
        emitter.flush(live_after)
        emitter.line(f"return {GOES_ON}")
    needs = None
    if kind in _USE_ALL:
        needs = tuple({**reads, **dict.fromkeys(bits(emitter.live_out))})
    names: dict[str, object] = code.names
    source = "def part(f, R):\n    " + "\n    ".join(emitter.lines)
    exec(compile(source, f"<ptx {code.kernel}, part>", "exec"), names)
    unit.lane_sites += emitter.sites
    return VectorPart(
        names.pop("part"),  # type: ignore[arg-type]  # just made
        tuple(reads),
        tuple(register for register in bits(live_after) if register in writes),
        needs,
        kind is InstructionKind.RETURN,
        tuple(emitter.sites),
    )


def may_be_called(step: BlockStep) -> bool:
    """Return whether one thread's code may call NumPy's for a step, with its registers alone."""
    return step.operation.effect in (Effect.PURE, Effect.MEMORY)


def call_vector(
    e: LaneEmitter, code: BlockFunctions, unit: Unit, block: Block, position: int
) -> None:
    """Have the code for one thread call NumPy's for a step."""
    part = vector_part(code, unit, block, position, position + 1)
    name = e.helper(_called(part, unit))
    arguments = "".join(f", {e.as_stored(number)}" for number in part.reads)
    targets = [e.temporary("None") for _ in part.writes]
    e.line(f"{', '.join([*targets, '_'])} = {name}(f{arguments})")
    for number, target in zip(part.writes, targets, strict=True):
        e.set_stored(number, target)


def _called(part: VectorPart, unit: Unit) -> Callable[..., tuple[Any, ...]]:
    """Return a part as a function from row values to row values, with None as the last result."""
    scalars = [(number, np.dtype(NUMPY[unit.scope.stored_kind[number]])) for number in part.reads]

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
    loops: dict[int, tuple[int, ...]] = {}
    waiting = [set(range(len(blocks)))]
    most = _MOST_STEPS_APART if leave_out else _MOST_STEPS
    while waiting:
        for loop in _cycles(blocks, waiting.pop()):
            members = tuple(n for n in loop if _may_be_inside(blocks[n], alone))
            is_small = sum(len(blocks[n].steps) for n in members) <= most
            if is_small and members and (leave_out or len(members) == len(loop)):
                loops |= dict.fromkeys(members, members)
            elif len(loop) > 1:
                waiting.append(set(loop[1:]))
    return loops


def _cycles(blocks: Sequence[Block], members: set[int]) -> Iterator[tuple[int, ...]]:
    """Return the largest sets of blocks, among some, in which every block reaches every other.

    Kosaraju's algorithm: forward in any order, then backward from the last finished block.
    """
    predecessors: dict[int, list[int]] = {member: [] for member in members}
    for member in members:
        for successor in blocks[member].successors:
            if successor in members:
                predecessors[successor].append(member)
    finished: list[int] = []
    visited: set[int] = set()
    for start in sorted(members):
        stack = [] if start in visited else [(start, iter(tuple(blocks[start].successors)))]
        visited.add(start)
        while stack:
            block, successors = stack[-1]
            successor = next((n for n in successors if n in members and n not in visited), -1)
            if successor < 0:
                finished.append(block)
                stack.pop()
            else:
                visited.add(successor)
                stack.append((successor, iter(tuple(blocks[successor].successors))))
    assigned: set[int] = set()
    for start in reversed(finished):
        if start in assigned:
            continue
        assigned.add(start)
        loop, waiting = {start}, [start]
        while waiting:
            for member in predecessors[waiting.pop()]:
                if member not in assigned:
                    assigned.add(member)
                    loop.add(member)
                    waiting.append(member)
        if len(loop) > 1 or start in predecessors[start]:
            yield tuple(sorted(loop))


def write_loop(
    code: BlockFunctions, unit: Unit, members: Sequence[int], alone: bool
) -> Loop | None:
    """The function of a loop; None where an operation in it has no code for single threads."""
    blocks = [unit.blocks[block_number] for block_number in members]
    emitter = LaneEmitter(unit.scope, alone=alone)
    emitter.begin()
    try:
        written = [_write_block(emitter, code, unit, block) for block in blocks]
    except NoLaneCode:
        return None
    numbers = tuple(unit.first + number for number in members)
    source = _function(emitter, unit, blocks, numbers, written)
    names: dict[str, object] = code.names
    exec(compile(source, f"<ptx {code.kernel}, loop>", "exec"), names)
    unit.lane_sites += emitter.sites
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


def _write_block(emitter: LaneEmitter, code: BlockFunctions, unit: Unit, block: Block) -> list[str]:
    """Return the lines of a block, with the next block as `at`."""
    emitter.begin_block()
    live = unit.live_after_each(block)
    for position, (step, live_after) in enumerate(zip(block.steps, live, strict=True)):
        if step.operation.effect is Effect.PURE and not any(
            live_after >> n & 1 for n in step.writes
        ):
            continue
        write_step(emitter, code, unit, block, position)
    following = next_block(emitter, unit, block)
    emitter.end_block(unit.live_after(block))
    emitter.line(f"at = {following}")
    return emitter.lines


def write_step(
    emitter: LaneEmitter, code: BlockFunctions, unit: Unit, block: Block, position: int
) -> None:
    """Write one instruction of a block of a loop.

    Raises:
        NoLaneCode: it has no code for single threads.
    """
    step = block.steps[position]
    emitter.instruction = step.instruction
    emit = find_lane(step.operation, step.instruction)
    try:
        if emit is None:
            raise NoLaneCode
        emit(emitter, step.instruction)
    except NoLaneCode:
        if not emitter.alone or not may_be_called(step):
            raise
        call_vector(emitter, code, unit, block, position)


def next_block(emitter: LaneEmitter, unit: Unit, block: Block) -> str:
    """Return an expression for the block after one of a loop."""
    following = unit.following(block)
    target = following if block.target is None else unit.first + block.target
    if block.guard is None:
        return str(target)
    if_true, if_false = (following, target) if block.guard.negated else (target, following)
    return f"{if_true} if {emitter.predicate(block.guard.register)} else {if_false}"


def _function(
    emitter: LaneEmitter,
    unit: Unit,
    blocks: Sequence[Block],
    numbers: tuple[int, ...],
    written: Sequence[Sequence[str]],
) -> str:
    """Return the function: it loads registers, repeats the blocks, and stores the written
    registers.
    """
    defined = live = live_after = 0
    for block in blocks:
        defined |= block.defined
        live |= block.live
        live_after |= unit.live_after(block)
    stored = defined & (live | live_after)
    lines = [f"r{register} = get({register})" for register in bits(live | stored)]
    lines.insert(0, "get = R.get")
    lines += ["at, left = start, room", f"while left >= {len(blocks)}:"]
    for number, body in zip(numbers, written, strict=True):
        if len(numbers) > _GROUP and (position := numbers.index(number)) % _GROUP == 0:
            group = numbers[position : position + _GROUP]
            lines.append(f"    if {group[0]} <= at <= {group[-1]}:")
        deep = "    " * (1 + (len(numbers) > _GROUP))
        lines.append(f"{deep}if at == {number}:")
        lines += [f"{deep}    {line}" for line in body]
        lines.append(f"{deep}    left -= 1")
    is_dense = numbers[-1] - numbers[0] == len(numbers) - 1
    condition = f"{numbers[0]} <= at <= {numbers[-1]}" if is_dense else f"at in {set(numbers)}"
    lines.append(f"    if not {condition}: break")
    lines += [f"R[{register}] = r{register}" for register in bits(stored)]
    lines += ["N.append(at)", "if left < least: least = left"]
    head = [*emitter.prelude, "least = room", "for R in rows:"]
    body = [*head, *(f"    {line}" for line in lines), "return least"]
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
        return any(
            "clock" in repr(operand) or "timer" in repr(operand) for operand in instruction.operands
        )
    facts = step.instruction.facts
    if facts.kind is InstructionKind.CALL:
        target = call_target(instruction)
        is_known_function = (
            isinstance(target, Symbol) and unit.scope.real_name(target.name) in unit.functions
        )
        return not is_known_function
    return facts.kind not in _IN_NO_ORDER or facts.is_strong or "red" in facts.words


class LaneWriter:
    """Makes the parts of the blocks of a kernel, and its loops; one thread at a time."""

    def __init__(self, code: BlockFunctions, units: list[Unit], *, calls_by_address: bool) -> None:
        self._lock = RLock()  # two writers at once would give two things one name
        self._code = code
        self._units = units
        self._calls_by_address = calls_by_address
        self._loops: dict[tuple[int, bool, bool], dict[int, tuple[int, ...]]] = {}

    def write(self, block: int, alone: bool) -> tuple[Part, ...]:
        """The parts of a block, for one thread or for several."""
        unit = self._unit_of(block)
        with self._lock:
            return _LaneBlockWriter(
                self._code, unit, unit.blocks[block - unit.first], alone, self._lock
            ).parts()

    def write_loop(self, block: int, alone: bool, leave_out: bool) -> Loop | None:
        """The largest loop around a block that code for single threads can do as a whole.

        Or, if it may leave some out, but for those blocks for which there is no such code.
        """
        unit = self._unit_of(block)
        key = (unit.first, alone, leave_out)
        with self._lock:
            if key not in self._loops:
                self._loops[key] = loops_of(unit.blocks, alone=alone, leave_out=leave_out)
            members = self._loops[key].get(block - unit.first)
            return None if members is None else write_loop(self._code, unit, members, alone)

    def shows_order(self) -> bool:
        """Return whether results may depend on which of two threads ran first, without a race."""
        if self._calls_by_address:
            return True
        for unit in self._units:
            for block in unit.blocks:
                for step in block.steps:
                    if _shows_order(step, unit):
                        return True
        return False

    def _unit_of(self, block: int) -> Unit:
        return next(unit for unit in reversed(self._units) if unit.first <= block)


class _LaneBlockWriter:
    """Makes the parts of one block."""

    def __init__(
        self, code: BlockFunctions, unit: Unit, block: Block, alone: bool, lock: RLock
    ) -> None:
        self._lock = lock
        self._code = code
        self._unit = unit
        self._block = block
        self._alone = alone
        self._live = unit.live_after_each(block)
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
        for position, step in enumerate(steps):
            if step.operation.effect is Effect.PURE and not self._is_needed(position):
                continue
            if waiting is not None:
                self._begin(position)
            is_lane = self._emit(position, step)
            if is_lane and waiting is not None:
                self._parts.append(self._vector(waiting, position))
                waiting = None
            elif not is_lane and waiting is None:
                self._end_part(position)
                waiting = position
        if waiting is not None:
            self._parts.append(self._vector(waiting, len(steps)))
            self._begin(len(steps))
        if not steps or steps[-1].operation.effect is not Effect.ENDS:
            self._leave()
        return tuple(self._parts)

    def _is_needed(self, position: int) -> bool:
        return any(
            self._live[position] >> number & 1 for number in self._block.steps[position].writes
        )

    def _begin(self, position: int) -> None:
        self._from = position
        self._emitted = 0
        self._accesses = 0
        self._stored = False
        self._emitter.begin()

    def _emit(self, position: int, step: BlockStep) -> bool:
        """Write a step's code for single threads; whether there is such."""
        emit = find_lane(step.operation, step.instruction)
        if emit is None:
            return self._inline(position)
        kind = step.instruction.facts.kind
        loads, stores = kind is InstructionKind.LOAD, kind is InstructionKind.STORE
        if not self._alone and ((stores and self._accesses) or (loads and self._stored)):
            self._end_part(position)
            self._begin(position)
        emitter = self._emitter
        emitter.instruction = step.instruction
        try:
            emit(emitter, step.instruction)
        except NoLaneCode:  # what it loaded stays; no name is read of what it began to compute
            return self._inline(position)
        self._emitted += 1
        self._accesses += loads or stores
        self._stored |= stores
        return True

    def _inline(self, position: int) -> bool:
        """Have one thread's code call NumPy's, where that is possible; whether it is."""
        if not self._alone or not may_be_called(self._block.steps[position]):
            return False
        call_vector(self._emitter, self._code, self._unit, self._block, position)
        self._emitted += 1
        return True

    def _end_part(self, position: int) -> None:
        """End the code for single threads before a step, where there is any."""
        if not self._emitted:
            return
        self._emitter.flush(self._live[position - 1])
        if self._alone:
            self._emitter.line(f"return {GOES_ON}")
        self._close(position, GOES_ON)

    def _leave(self) -> None:
        """The branch at the block's end."""
        block, unit, emitter = self._block, self._unit, self._emitter
        following = unit.following(block)
        target = following if block.target is None else unit.first + block.target
        live = unit.live_after(block)
        if block.guard is None:
            emitter.flush(live)
            if self._alone:
                emitter.line(f"return {target}")
            self._close(len(block.steps), target)
            return
        condition = emitter.predicate(block.guard.register)
        emitter.flush(live)
        if_true, if_false = (following, target) if block.guard.negated else (target, following)
        choice = f"{if_true} if {condition} else {if_false}"
        emitter.line(f"return {choice}" if self._alone else f"N.append({choice})")
        self._close(len(block.steps), None)

    def _close(self, end: int, result: int | None) -> None:
        """Make a function of the part; `result` is its result for all threads."""
        emitter, first = self._emitter, self._from
        source = emitter.function("part", result)
        names: dict[str, object] = self._code.names
        exec(compile(source, f"<ptx {self._code.kernel}, lanes>", "exec"), names)
        function = names.pop("part")

        @cache
        def instead() -> tuple[Part, ...]:
            with self._lock:
                return self._instead(first, end, result)

        undo = emitter.changed if emitter.sites and not self._alone else ()
        self._unit.lane_sites += emitter.sites
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
