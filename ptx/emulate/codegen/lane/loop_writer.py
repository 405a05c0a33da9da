"""A loop of a kernel as one Python function, with a thread's registers in its variables.

Several threads go through it one after another, up to where they leave it. As nothing in it stores,
each sees the memory that it would have seen together with the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptx.emulate.codegen.block_writer import Unit
from ptx.emulate.codegen.cfg import Block, bits
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter, NoLaneCode
from ptx.emulate.codegen.lane.lane_table import STORES, find_lane
from ptx.emulate.codegen.lane.vector_part import call_vector, may_be_called
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import Loop

_MOST_BLOCKS = 64
_MOST_STEPS = 600  # Python's compiler takes some 20 µs for each


def loops_around(blocks: Sequence[Block], block: int) -> Iterator[tuple[int, ...]]:
    """The loops that a block is in, the outermost first."""
    inside = set(range(len(blocks)))
    while True:
        forward = _reached(blocks, block, inside)
        back = {each for each in forward if block in _reached(blocks, each, forward)}
        if block not in back:
            return
        yield tuple(sorted(back))
        head = min(back)
        if head == block:
            return
        inside = back - {head}


def _reached(blocks: Sequence[Block], start: int, inside: set[int]) -> set[int]:
    """The blocks that control may come to behind one, without leaving some."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for each in blocks[waiting.pop()].successors:
            if each in inside and each not in found:
                found.add(each)
                waiting.append(each)
    return found


def write_loop(code: KernelCode, unit: Unit, inside: Sequence[int], alone: bool) -> Loop | None:
    """The function of a loop; None where an operation in it has no code for single threads."""
    blocks = [unit.blocks[each] for each in inside]
    if len(blocks) > _MOST_BLOCKS or sum(len(each.steps) for each in blocks) > _MOST_STEPS:
        return None
    if not all(_may_be_inside(block, alone) for block in blocks):
        return None
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
    lines = [f"r{each} = R[{each}]" for each in bits(live | kept)]
    lines += ["at, left = start, room", f"while left >= {len(blocks)}:"]
    for number, body in zip(numbers, written, strict=True):
        lines.append(f"    if at == {number}:")
        lines += [f"        {each}" for each in body]
        lines.append("        left -= 1")
    is_dense = numbers[-1] - numbers[0] == len(numbers) - 1
    inside = f"{numbers[0]} <= at <= {numbers[-1]}" if is_dense else f"at in {set(numbers)}"
    lines.append(f"    if not {inside}: break")
    lines += [f"R[{each}] = r{each}" for each in bits(kept)]
    lines += ["N.append(at)", "if left < least: least = left"]
    head = [*emitter.prelude, "least = room", "for R in rows:"]
    body = [*head, *(f"    {each}" for each in lines), "return least"]
    return "def loop(f, rows, N, start, room):\n    " + "\n    ".join(body)
