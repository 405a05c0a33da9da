"""A loop of a kernel as one Python function, with a thread's registers in its variables.

Several threads go through it one after another, up to where they leave it. As nothing in it stores,
each sees the memory that it would have seen together with the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptx.emulate.codegen.block_writer import Unit
from ptx.emulate.codegen.cfg import Block, bits
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import NoLaneCode
from ptx.emulate.codegen.lane.lane_table import STORES, find_lane
from ptx.emulate.codegen.lane.vector_part import call_vector, may_be_called
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import Loop

_MOST_STEPS = 600  # writing and compiling take some 100 µs for each
_MOST_STEPS_APART = 6000  # where threads go their own ways for long
_GROUP = 8  # blocks that are passed over by one test


def loops_of(
    blocks: Sequence[Block], *, alone: bool, leave_out: bool
) -> dict[int, tuple[int, ...]]:
    """For each block of a function the largest loop around it that may become one function.

    `leave_out`: without the blocks that have no code for single threads, which a thread then
    leaves the loop for; else a loop that has such blocks stays as it is.
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
    """The largest sets of blocks, among some, whose every block comes back to every other.

    Kosaraju's way: forward in any order, then backward from what was finished last.
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
        if step.instruction.opcode in STORES and not alone:
            return False
        if not find_lane(step.operation, step.instruction) and not (alone and may_be_called(step)):
            return False
    return True


def _write_block(emitter: LaneEmitter, code: KernelCode, unit: Unit, block: Block) -> list[str]:
    """The lines of a block, with where control goes on as `at`."""
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
