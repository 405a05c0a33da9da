"""Comparisons for equality that hold in no run: where a kernel can hide another result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ptx.isa.compared import float_of
from ptx.isa.model import FloatImmediate, Immediate, Instruction, Register

from .example_run import FAULT, CompiledCase
from .ptx_edit import EditablePtx, written_name
from .verdict import CannotVerifyError, Example, SourceLine

_HOLDS: Final = {"eq": "", "ne": "!", "equ": "", "neu": "!"}  # how the predicate says that
# CUDA's functions compare with these, also by the bits of an infinity.
_USUAL: Final = (0, 1, math.inf, 0x7F800000, 0x7FF0000000000000)
_MOST_COMPARISONS: Final = 6
_MOST_RUNS: Final = 20  # of each


def unmet_comparisons(compiled: CompiledCase, examples: Sequence[Example]) -> Iterator[SourceLine]:
    """Yield the comparisons of a value with a constant that are equal in none of the examples.

    Those with -1, 0, 1 and infinities are left out. A trap stops each where it holds.
    """
    editable = EditablePtx(compiled)
    chosen = [
        (instruction, trap)
        for body in editable.functions.values()
        for instruction in body
        if (trap := _trap(instruction))
    ]
    for instruction, trap in chosen[:_MOST_COMPARISONS]:
        changed = editable.with_lines({instruction.line: f"{editable.line(instruction)} {trap}"})
        if not any(_stops(changed, example) for example in examples[:_MOST_RUNS]):
            yield editable.source(instruction, "equal in no run")


def _trap(instruction: Instruction) -> str:
    """Return a trap for where a comparison with a constant holds; "" for other instructions."""
    if instruction.opcode != "setp" or instruction.modifiers[0] not in _HOLDS:
        return ""
    result, *compared = instruction.operands[:3]
    constants = [
        each.value if isinstance(each, Immediate) else float_of(each)
        for each in compared
        if isinstance(each, (Immediate, FloatImmediate))
    ]
    if not isinstance(result, Register) or instruction.guard is not None:
        return ""
    if not constants or abs(constants[0]) in _USUAL:
        return ""
    return f"@{_HOLDS[instruction.modifiers[0]]}{written_name(result)} trap;"


def _stops(changed: CompiledCase, example: Example) -> bool:
    """Return whether an example reaches the trap."""
    try:
        expected = changed.case.expected(example)
        return any(fault.check == FAULT for fault in changed.faults(example, expected))
    except CannotVerifyError:
        return False
