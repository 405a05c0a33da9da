"""Outcomes of comparisons with kept variables that no launch had, and that give wrong values.

A kernel can count its launches and be wrong after many. Where a comparison with the counter never
had one of its outcomes, that outcome is forced. If the values are wrong then, launches that would
have it are not verified. The outcome is also forced together with comparisons for equality, since a
kernel can be wrong for some inputs after others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Final

from ptx.isa.kept_comparisons import KeptComparison, kept_comparisons
from ptx.isa.model import Instruction, Register

from .example_run import FAULT, VALUES, CompiledCase
from .ptx_edit import EditablePtx, written_name
from .unmet import equal_outcome, holding
from .verdict import CannotVerifyError, Example

_MOST_COMPARISONS: Final = 12
_MOST_EQUALITIES: Final = 12
_FEW_EXAMPLES: Final = 3


class KeptConditions:
    """The comparisons of a kernel with variables that change from launch to launch.

    Args:
        compiled: the case.
        kept: the variables that the kernel may write.
        chain: examples that were launched one after another.
    """

    def __init__(self, compiled: CompiledCase, kept: Set[str], chain: Sequence[Example]) -> None:
        self._compiled = replace(compiled, checks=())
        self._editable = EditablePtx(self._compiled)
        changing = self._changing(kept, chain)
        self._outcomes: list[tuple[KeptComparison, tuple[bool, ...]]] = [
            (each, (True, False)) for each in self._of(changing)
        ]
        self._of_kept = {each.instruction.line for each in self._of(kept)}
        # Others may be state of one launch, whose limits no honest launch reaches.
        for each in self._of(kept - changing):
            outcome = equal_outcome(each.instruction)
            if outcome is not None:
                self._outcomes.append((each, (outcome,)))

    @property
    def runs(self) -> int:
        """How many outcomes are forced."""
        return sum(len(outcomes) for _, outcomes in self._outcomes)

    def _of(self, variables: Set[str]) -> Sequence[KeptComparison]:
        return kept_comparisons(self._editable.module, self._compiled.kernel, variables)

    def _changing(self, kept: Set[str], chain: Sequence[Example]) -> Set[str]:
        """Return the variables but for those that each launch leaves as it found them."""
        if not kept or not chain:
            return frozenset()
        observed = self._compiled.kept_after(chain)
        written: set[str] = set()
        for example in (chain[0], chain[len(chain) // 2], chain[-1]):
            written |= self._compiled.accessed(example).written
        return kept - (written & set(observed.names) - observed.changed)

    def unreached(
        self,
        examples: Sequence[Example],
        launched: Sequence[Example],
        is_late: Callable[[], bool],
    ) -> Iterator[str]:
        """Yield the outcomes for which values are wrong, and which no run had.

        Args:
            examples: those to run with a forced outcome.
            launched: all runs, with the launches before them.
            is_late: whether to run no further ones.
        """
        few = examples[:_FEW_EXAMPLES]
        equalities: dict[int, str] | None = None
        for each, outcomes in self._outcomes[:_MOST_COMPARISONS]:
            for outcome in outcomes:
                line = self._changed(each.instruction, _forced(each.instruction, outcome))
                stops = self._changed(each.instruction, _trap(each.instruction, outcome))
                is_wrong = bool(line) and self._any_fails(line, VALUES, examples, is_late)
                if not line or self._any_fails(stops, FAULT, launched):
                    continue
                if not is_wrong and equalities is None:
                    equalities = self._equalities(few, is_late)
                if is_wrong:
                    yield self._text(each, outcome, "")
                elif equalities and self._any_fails(equalities | line, VALUES, few, is_late):
                    yield self._text(each, outcome, " where other comparisons are equal")
        if len(self._outcomes) > _MOST_COMPARISONS:
            yield f"{len(self._outcomes)} comparisons with variables that the kernel keeps"

    def _equalities(
        self, examples: Sequence[Example], is_late: Callable[[], bool]
    ) -> dict[int, str]:
        """Return the lines that make other comparisons with constants equal, if values stay."""
        held: dict[int, str] = {}
        every = [each for body in self._editable.functions.values() for each in body]
        others = [each for each in every if each.line not in self._of_kept]
        chosen = [(each, text) for each in others if (text := holding(each))]
        for instruction, text in chosen[:_MOST_EQUALITIES]:
            further = held | self._changed(instruction, text)
            if not self._any_fails(further, VALUES, examples, is_late):
                held = further
        return held

    def _text(self, comparison: KeptComparison, outcome: bool, where: str) -> str:
        line = self._editable.source(comparison.instruction, "")
        place = f"PTX line {line.ptx_line}"
        if line.file is not None:
            place = f"{Path(line.file).name}:{line.line}"
        word, names = "true" if outcome else "false", ", ".join(comparison.variables)
        text = f": {line.text}" if line.text else ""
        return (
            f"a comparison with {names} was {word} in no launch, and its values are wrong{where}: "
            f"{place}{text}"
        )

    def _changed(self, instruction: Instruction, further: str) -> dict[int, str]:
        """Return the line of an instruction with another behind it; none if it is not alone."""
        line = self._editable.line(instruction)
        return {instruction.line: f"{line} {further}"} if line.count(";") == 1 else {}

    def _any_fails(
        self,
        lines: Mapping[int, str],
        check: str,
        examples: Sequence[Example],
        is_late: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Return whether an example fails with other texts for some lines."""
        changed = self._editable.with_lines(lines)
        return any(not is_late() and _fails(changed, check, each) for each in examples)


def _predicate(instruction: Instruction) -> str:
    predicate = instruction.operands[0]
    assert isinstance(predicate, Register)
    return written_name(predicate)


def _forced(instruction: Instruction, outcome: bool) -> str:
    return f"setp.{'eq' if outcome else 'ne'}.u32 {_predicate(instruction)}, 0, 0;"


def _trap(instruction: Instruction, outcome: bool) -> str:
    return f"@{'' if outcome else '!'}{_predicate(instruction)} trap;"


def _fails(changed: CompiledCase, check: str, example: Example) -> bool:
    try:
        faults = changed.faults(example, changed.case.expected(example))
    except CannotVerifyError:
        return False
    return any(fault.check == check for fault in faults)
