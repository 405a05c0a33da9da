"""Repairs of a finding: single changes of the PTX or the call, and which of them heal it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeAlias

import numpy as np

from ...emulator import CheckName, Limits
from ...emulator.timeline.schedule import Schedule
from ...errors import CudadrvError
from ..strategies import DrawnArray
from .comparison import ReferenceArrays
from .example_run import FAULT, CompiledCase, Fault
from .repair_proposals import Proposal, proposals, source_barriers
from .verdict import Example, Repair

_MOST_TRIED: Final = 40
_MOST_SECONDS: Final = 10.0  # of the processor, for all findings of a verdict
_MOST_FAILED: Final = 12
_MOST_FURTHER: Final = 5
_MOST_STEPS: Final = 20_000  # basic blocks: a changed kernel may never end
_Input: TypeAlias = tuple[Example, ReferenceArrays]
_ADDED: Final[tuple[CheckName, ...]] = ("race", "init", "sync", "bounds")
_MOST_REORDERED: Final = 2
_SCHEDULES: Final = (Schedule("late"), *(Schedule("random", seed) for seed in (1, 2, 3)))


@dataclass
class RepairSearch:
    """Tries repairs on the examples of one verification.

    Attributes:
        compiled: the case.
        failed: examples that failed, by the check that reported them.
        further: other examples.
    """

    compiled: CompiledCase
    failed: Mapping[str, Sequence[Example]]
    further: Sequence[Example]
    _deadline: float = field(default_factory=lambda: time.process_time() + _MOST_SECONDS)

    def repairs(self, fault: Fault, example: Example) -> tuple[Repair, ...]:
        """Try the repairs that a fault suggests; return those that were tried.

        Args:
            fault: the fault.
            example: the smallest example that shows it.
        """
        expected = self.compiled.case.expected
        inputs = [(rerun, expected(rerun)) for rerun in self._inputs(fault.check, example)]
        quick = replace(self.compiled, limits=Limits(max_steps=_MOST_STEPS))
        quick = replace(quick, checks=self._checks(quick, inputs))
        tried = self._tried(proposals(quick, fault, example), inputs)
        is_healed = any(repair.healed for repair in tried)
        if fault.check == "race" and not fault.calls and not is_healed:
            tried += self._tried(source_barriers(quick, fault), inputs)
        return tuple(tried)

    def _tried(self, candidates: Iterator[Proposal], inputs: Sequence[_Input]) -> list[Repair]:
        """Try repairs; a change that heals at one place is not tried at others."""
        tried: list[Repair] = []
        healing: set[str] = set()
        for proposal in islice(candidates, _MOST_TRIED):
            if proposal.repair.change in healing:
                continue
            if time.process_time() > self._deadline:
                break
            leaves = self._leaves(proposal, inputs)
            tried.append(replace(proposal.repair, healed=not leaves, leaves=leaves))
            if not leaves:
                healing.add(proposal.repair.change)
        return tried

    def _checks(self, compiled: CompiledCase, inputs: Sequence[_Input]) -> tuple[CheckName, ...]:
        """Return the chosen checks, and others that report nothing of the unchanged kernel."""
        chosen = tuple(check for check in compiled.checks if check != "assemble")
        others = tuple(check for check in _ADDED if check not in chosen)
        if not others:
            return chosen
        alone = replace(compiled, checks=others)
        reported = {fault.check for pair in inputs for fault in alone.faults(*pair)}
        return chosen + tuple(check for check in others if check not in reported)

    def _inputs(self, check: str, example: Example) -> Iterator[Example]:
        """Yield the examples to run again, those of the fault first."""
        failed = _spread(self.failed.get(check, ()), _MOST_FAILED)
        yield from (example, *failed)
        # A wrong repair may show only in other orders, and only where the example is large enough.
        for failing in (example, *failed[:_MOST_REORDERED]):
            yield from (replace(failing, schedule=schedule) for schedule in _SCHEDULES)
        for other, examples in self.failed.items():
            if other != check:
                yield from _spread(examples, _MOST_FURTHER)
        yield from _spread(self.further, _MOST_FURTHER)

    def _leaves(self, proposal: Proposal, inputs: Sequence[_Input]) -> str:
        """Return the check that reports a fault after a repair; "" if none does."""
        compiled = proposal.compiled
        tries = [(compiled, pair) for pair in inputs]
        if "assemble" in self.compiled.checks and compiled.image != self.compiled.image:
            tries.append((replace(compiled, checks=("assemble",)), inputs[0]))
        try:
            for case, (example, expected) in tries:
                changed = proposal.changed(example)
                if changed is not example:
                    expected = case.case.expected(changed)
                faults = case.faults(changed, expected)
                if faults:
                    return faults[0].check
        except CudadrvError:
            return FAULT
        return ""


def _spread(examples: Sequence[Example], most: int) -> Sequence[Example]:
    """Return some examples, from the largest to the smallest."""
    ordered = sorted(examples, key=_size, reverse=True)
    if len(ordered) <= most:
        return ordered
    positions = np.linspace(0, len(ordered) - 1, most).round().astype(int)
    return [ordered[position] for position in dict.fromkeys(positions.tolist())]


def _size(example: Example) -> tuple[int, int]:
    arrays = [
        argument for argument in example.arguments.values() if isinstance(argument, DrawnArray)
    ]
    nbytes = sum(argument.contents.nbytes for argument in arrays)
    return example.config.blocks * example.config.threads, nbytes
