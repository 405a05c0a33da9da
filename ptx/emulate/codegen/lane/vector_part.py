"""Some instructions of a block as NumPy's code, for fibres whose threads have rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptx.emulate.codegen.block_writer import Unit
from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import GOES_ON, VectorPart
from ptx.emulate.model.types import NUMPY
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import column, value_of

_USE_ALL = frozenset({"call", "ret", "brx"})  # use registers beyond those that they name


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
    opcode = ""
    for step, live in zip(block.steps[first:end], lives[first:end], strict=True):
        emitter.start(step.instruction)
        emitter.live_results = frozenset(each for each in step.writes if live >> each & 1)
        if step.operation.effect is Effect.PURE and not emitter.live_results:
            continue
        reads.update(dict.fromkeys(each for each in step.reads if each not in writes))
        writes.update(step.writes)
        opcode = step.instruction.opcode
        step.operation.emit(emitter, step.instruction)
    behind = lives[end - 1]
    if block.steps[end - 1].operation.effect is not Effect.ENDS:
        emitter.flush(behind)
        emitter.line(f"return {GOES_ON}")
    needs = None
    if opcode in _USE_ALL:
        needs = tuple({**reads, **dict.fromkeys(bits(emitter.live_out))})
    names: dict[str, object] = code.blocks.names
    source = "def part(f, R):\n    " + "\n    ".join(emitter.lines)
    exec(compile(source, f"<ptx {code.kernel}, part>", "exec"), names)
    return VectorPart(
        names.pop("part"),  # type: ignore[arg-type]  # just made
        tuple(reads),
        tuple(each for each in bits(behind) if each in writes),
        needs,
        opcode == "ret",
        tuple(code.sites[sites:]),
    )


def may_be_called(step: BlockStep) -> bool:
    """Whether the code for one thread may call NumPy's for a step, with just its registers."""
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
    """A part as a function of what rows hold; it gives the same, and None behind all."""
    scalars = [(number, np.dtype(NUMPY[unit.scope.home[number]])) for number in part.reads]

    def call(fibre: Fibre, *values: Any) -> tuple[Any, ...]:
        regs: dict[int, Any] = {}
        for (number, dtype), value in zip(scalars, values, strict=True):
            regs[number] = value_of((value,), dtype)
        part.function(fibre, regs)  # type: ignore[arg-type]  # it asks for these numbers alone
        return (*[column(regs[number], 1)[0] for number in part.writes], None)

    return call
