"""Comparisons for equality that hold in no run: where a kernel can hide another result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from ptx.isa.compared import float_of
from ptx.isa.kept_comparisons import kept_comparisons
from ptx.isa.model import FloatImmediate, Immediate, Instruction, Register

from .example_run import FAULT, VALUES, CompiledCase
from .ptx_edit import EditablePtx, written_name
from .verdict import CannotVerifyError, Example, SourceLine

_HOLDS: Final = {"eq": "", "ne": "!", "equ": "", "neu": "!"}  # how the predicate says that
# CUDA's functions compare with these, also by the bits of an infinity.
_EQUAL: Final = re.compile(rf"(?<=\.)(?:{'|'.join(_HOLDS)})\b")
_USUAL: Final = (0, 1, math.inf, 0x7F800000, 0x7FF0000000000000)
_MOST_COMPARISONS: Final = 6
_MOST_OF_ELEMENTS: Final = 12
_MOST_RUNS: Final = 20  # of each
_FORCED_RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class Unmet:
    """A comparison of a value with a constant that is equal in no run.

    Attributes:
        line: its line of source.
        is_wrong: whether elements of arrays decide it, in runs some of its values are below the
            constant and some above, and values are wrong where it is equal.
    """

    line: SourceLine
    is_wrong: bool


def unmet_comparisons(
    compiled: CompiledCase,
    passed: Sequence[Example],
    others: Sequence[Example],
    arrays: Set[str],
    is_late: Callable[[], bool],
) -> Iterator[Unmet]:
    """Yield the comparisons of a value with a constant that are equal in none of the examples.

    Those with -1, 0, 1 and infinities are left out. A trap stops each where it holds.

    Args:
        compiled: the case, without checks.
        passed: the drawn examples; others: those with other contents of the arrays.
        arrays: the names of the arrays that the kernel reads, as its effects have them.
        is_late: whether to try no further ones.
    """
    editable = EditablePtx(compiled)
    found = kept_comparisons(editable.module, compiled.kernel, arrays)
    of_elements = {each.instruction.line for each in found}
    chosen = [each for body in editable.functions.values() for each in body if _trap(each)]
    for is_of_elements, most in ((True, _MOST_OF_ELEMENTS), (False, _MOST_COMPARISONS)):
        each_chosen = [each for each in chosen if (each.line in of_elements) is is_of_elements]
        examples = [*passed[:_MOST_RUNS], *(others if is_of_elements else ())]
        for instruction in each_chosen[:most]:
            if is_late():
                return
            if _any_faults(editable, instruction, _trap(instruction), FAULT, examples):
                continue
            is_wrong = (
                is_of_elements
                and _any_faults(
                    editable, instruction, holding(instruction), VALUES, passed[-_FORCED_RUNS:]
                )
                and _is_between(editable, instruction, examples)
            )
            yield Unmet(editable.source(instruction, "equal in no run"), is_wrong)


def _is_between(
    editable: EditablePtx, instruction: Instruction, examples: Sequence[Example]
) -> bool:
    """Return whether runs have values on both sides of the constant.

    If not, it is likely no value of the case: a mark, say, that its elements never have.
    """
    line, predicate = editable.line(instruction), (_equality(instruction) or "").lstrip("!")
    for relation in ("lt", "gt"):
        other = _EQUAL.sub(relation, line, count=1).replace(".b", ".u", 1)
        before = f"{other} @{predicate} trap;"
        changed = editable.with_lines({instruction.line: f"{before} {line}"})
        if not any(_has_fault(changed, FAULT, example) for example in examples):
            return False
    return True


def _trap(instruction: Instruction) -> str:
    """Return a trap for where a comparison with a constant holds; "" for other instructions."""
    equality = _equality(instruction)
    return "" if equality is None else f"@{equality} trap;"


def holding(instruction: Instruction) -> str:
    """Return what makes a comparison with a constant hold; "" for other instructions."""
    equality = _equality(instruction)
    if equality is None:
        return ""
    relation = "ne" if equality.startswith("!") else "eq"
    return f"setp.{relation}.u32 {equality.lstrip('!')}, 0, 0;"


def equal_outcome(instruction: Instruction) -> bool | None:
    """Return the outcome of a comparison that says that a value equals a constant other than 0.

    None stands for other instructions.
    """
    equality = _equality(instruction, (0,))
    return None if equality is None else not equality.startswith("!")


def _equality(instruction: Instruction, usual: Sequence[float] = _USUAL) -> str | None:
    """Return the predicate that says whether a value equals a constant; "!" is its opposite."""
    if instruction.opcode != "setp" or instruction.modifiers[0] not in _HOLDS:
        return None
    result, *compared = instruction.operands[:3]
    constants = [
        each.value if isinstance(each, Immediate) else float_of(each)
        for each in compared
        if isinstance(each, (Immediate, FloatImmediate))
    ]
    if not isinstance(result, Register) or instruction.guard is not None:
        return None
    if not constants or abs(constants[0]) in usual:
        return None
    return f"{_HOLDS[instruction.modifiers[0]]}{written_name(result)}"


def _any_faults(
    editable: EditablePtx,
    instruction: Instruction,
    further: str,
    check: str,
    examples: Sequence[Example],
) -> bool:
    """Return whether an example has a fault of a check where a line follows an instruction."""
    line = f"{editable.line(instruction)} {further}"
    changed = editable.with_lines({instruction.line: line})
    return any(_has_fault(changed, check, example) for example in examples)


def _has_fault(changed: CompiledCase, check: str, example: Example) -> bool:
    try:
        faults = changed.faults(example, changed.case.expected(example))
    except CannotVerifyError:
        return False
    return any(fault.check == check for fault in faults)
