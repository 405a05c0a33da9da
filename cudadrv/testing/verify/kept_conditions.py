"""Outcomes of comparisons with kept variables that no launch had, and that give wrong values.

A kernel can count its launches and be wrong after many. Where a comparison with the counter never
had one of its outcomes, that outcome is forced. If the values are wrong then, launches that would
have it are not verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Final

from ptx.isa.kept_comparisons import KeptComparison, kept_comparisons
from ptx.isa.model import Instruction, Register

from .example_run import FAULT, VALUES, CompiledCase
from .ptx_edit import EditablePtx, written_name
from .verdict import CannotVerifyError, Example

_MOST_COMPARISONS: Final = 12


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
        variables = self._changing(kept, chain)
        self.comparisons: Sequence[KeptComparison] = kept_comparisons(
            self._editable.module, compiled.kernel, variables
        )

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
        for each in self.comparisons[:_MOST_COMPARISONS]:
            for outcome in (True, False):
                forced = self._with(each.instruction, _forced(each.instruction, outcome))
                if forced is None or not any(
                    not is_late() and _fails(forced, VALUES, one) for one in examples
                ):
                    continue
                stops = self._with(each.instruction, _trap(each.instruction, outcome))
                if stops is not None and not any(_fails(stops, FAULT, one) for one in launched):
                    yield self._text(each, outcome)
        if len(self.comparisons) > _MOST_COMPARISONS:
            yield f"{len(self.comparisons)} comparisons with variables that the kernel keeps"

    def _text(self, comparison: KeptComparison, outcome: bool) -> str:
        line = self._editable.source(comparison.instruction, "")
        place = f"PTX line {line.ptx_line}"
        if line.file is not None:
            place = f"{Path(line.file).name}:{line.line}"
        word, names = "true" if outcome else "false", ", ".join(comparison.variables)
        text = f": {line.text}" if line.text else ""
        return f"a comparison with {names} was {word} in no launch, and its values are wrong: " + (
            f"{place}{text}"
        )

    def _with(self, instruction: Instruction, further: str) -> CompiledCase | None:
        line = self._editable.line(instruction)
        if line.count(";") != 1:
            return None
        return self._editable.with_lines({instruction.line: f"{line} {further}"})


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
