"""Change a kernel's PTX in small ways, and see which changes no check of its case notices."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ptx.isa.model import Instruction

from ...emulator import Limits
from ...errors import CudadrvError
from .example_run import CompiledCase
from .kernel_case import KernelCase
from .ptx_edit import EditablePtx, changed_bounds, changed_operators, with_part
from .search import drawn_examples
from .verdict import Example, Json, SourceLine
from .verification import VerifyOptions, compiled_case

MutantKind: TypeAlias = Literal["barrier", "fence", "wait", "scope", "bound", "operator", "branch"]
_MOST_EXAMPLES: Final = 30
_MOST_STEPS: Final = 20_000  # basic blocks: a mutant may never end
_WAITS: Final = re.compile(r"(cp\.async(\.bulk)?\.wait|wgmma\.wait_group|mbarrier\.try_wait)")
_BARRIERS: Final = ("bar", "barrier")
_FENCES: Final = ("fence", "membar")
_NARROWER: Final = {"sys": "gpu", "gpu": "cta", "gl": "cta"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a kernel's PTX.

    Attributes:
        kind: a barrier, fence or wait that was dropped, a narrower scope, a shifted bound, another
            operator, or a negated branch.
        line: the line of source.
        before, after: the line of PTX; after is "" if it was dropped.
        noticed_by: the check that noticed it; "" if none did.
    """

    kind: MutantKind
    line: SourceLine
    before: str
    after: str
    noticed_by: str = ""

    def __str__(self) -> str:
        line = self.line
        place = f"PTX line {line.ptx_line}"
        if line.file is not None:
            place = f"{Path(line.file).name}:{line.line}: {line.text}"
        return f"{self.kind}: {place}\n    {self.before}\n    {self.after or '(dropped)'}"


@dataclass(frozen=True, slots=True)
class MutationReport:
    """The mutants of one case.

    Attributes:
        case: the case's name.
        seed: of their order, and of the generated examples.
        tried: the mutants that ran.
        total: how many there are; those beyond `tried` had no time.
        seconds: how long it took.
    """

    case: str
    seed: int
    tried: tuple[Mutant, ...]
    total: int
    seconds: float

    @property
    def unnoticed(self) -> tuple[Mutant, ...]:
        """The mutants that no check noticed."""
        return tuple(mutant for mutant in self.tried if not mutant.noticed_by)

    def to_json(self) -> Json:
        """Return it as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        noticed = len(self.tried) - len(self.unnoticed)
        more = self.total - len(self.tried)
        lines = [
            f"{self.case}: {noticed} of {len(self.tried)} mutants noticed, {self.seconds:.1f} s"
            f"{f'; {more} more had no time' if more else ''}"
        ]
        if self.unnoticed:
            lines.append("  not noticed, or equivalent to the kernel:")
            lines += ["  " + str(mutant) for mutant in self.unnoticed]
        return "\n".join(lines)


def mutate(
    case: KernelCase, options: VerifyOptions | None = None, *, name: str = ""
) -> MutationReport:
    """Run the case on mutants of its kernel, in an order that the seed chooses.

    A mutant may be equivalent to the kernel, such as a barrier that another one makes superfluous.

    Args:
        case: a case that is verified.
        options: as for `verify`; at most 30 examples are used, and the seconds are of all mutants.
        name: `FILE.py::case`.

    Raises:
        CannotVerifyError: the source does not compile, or the reference fails.
    """
    options = options or VerifyOptions()
    began = time.monotonic()
    compiled = compiled_case(case, options, name)
    # The assembler's opinion of a mutant costs more than a run.
    checks = tuple(check for check in compiled.checks if check != "assemble")
    drawn = drawn_examples(compiled, options.seed, min(options.examples, _MOST_EXAMPLES))
    examples = _middle_first(drawn)
    expected = [compiled.case.expected(example) for example in examples]
    compiled = replace(compiled, checks=checks, limits=Limits(max_steps=_MOST_STEPS))
    inputs = list(zip(examples, expected, strict=True))
    mutants = list(_mutants(compiled))
    random.Random(options.seed).shuffle(mutants)
    tried: list[Mutant] = []
    for mutant, mutated in mutants:
        if time.monotonic() - began > options.seconds:
            break
        tried.append(replace(mutant, noticed_by=_noticed_by(mutated, inputs)))
    return MutationReport(
        name or case.name or compiled.kernel,
        options.seed,
        tuple(tried),
        len(mutants),
        time.monotonic() - began,
    )


def _middle_first(drawn: Sequence[Example]) -> Sequence[Example]:
    """Return the examples, middle-sized ones first: the smallest show little."""
    by_size = sorted(drawn, key=lambda example: example.config.blocks * example.config.threads)
    middle = len(by_size) // 3
    return [*by_size[middle:], *by_size[:middle]]


def _noticed_by(mutated: CompiledCase, inputs: Sequence[tuple[Example, object]]) -> str:
    for example, expected in inputs:
        try:
            faults = mutated.faults(example, expected)  # type: ignore[arg-type]  # of this example
        except CudadrvError:
            return "fault"
        if faults:
            return faults[0].check
    return ""


def _mutants(compiled: CompiledCase) -> Iterator[tuple[Mutant, CompiledCase]]:
    """Yield each mutant with the case that has its PTX."""
    editable = EditablePtx(compiled)
    seen: set[int] = set()
    for instruction in chain.from_iterable(editable.functions.values()):
        if instruction.line in seen:
            continue
        seen.add(instruction.line)
        ptx_line = editable.line(instruction)
        for kind, changed in _changes(instruction, ptx_line):
            line = editable.source(instruction, "changed")
            mutant = Mutant(kind, line, ptx_line.strip(), changed.strip())
            yield mutant, editable.with_lines({instruction.line: changed})


def _changes(instruction: Instruction, ptx_line: str) -> Iterator[tuple[MutantKind, str]]:
    """Yield the changes of one instruction: their kind, and the new line of PTX."""
    opcode, modifiers, text = instruction.opcode, instruction.modifiers, instruction.text
    if opcode in _BARRIERS:
        if not {"red", "arrive"} & set(modifiers):
            yield "barrier", ""
        return
    if opcode in _FENCES:
        yield "fence", ""
    elif _WAITS.match(text) and opcode != "mbarrier":
        yield "wait", ""
    for modifier in modifiers:
        if modifier in _NARROWER and opcode in (*_FENCES, "atom", "red", "ld", "st"):
            yield (
                "scope",
                with_part(ptx_line, instruction, f".{modifier}", f".{_NARROWER[modifier]}"),
            )
    for changed in changed_bounds(instruction, ptx_line):
        yield "bound", changed
    for changed in changed_operators(instruction, ptx_line):
        yield "operator", changed
    if opcode == "bra" and instruction.guard is not None:
        old, new = ("@!", "@") if instruction.guard.negated else ("@", "@!")
        yield "branch", ptx_line.replace(old, new, 1)
