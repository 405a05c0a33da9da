"""`verify`: draw examples of a case, run them under all checks, and shrink what fails."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import hypothesis
import numpy as np
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from ... import border
from ...emulator import CheckName
from ...emulator.checks import Checks
from ...errors import ArgumentValueError, CudadrvError
from ...launch.config import LaunchConfig
from ..strategies import DrawnArray, LaunchConfigs, Size
from .contraction import Contraction, contractions
from .example_run import VALUES, CompiledCase, Fault
from .kernel_case import KernelCase, failed_call
from .precision import (
    FRACTIONS,
    PRECISION,
    allowed_differences,
    coarse_differences,
    with_fractions,
)
from .ptx_edit import EditablePtx
from .repairs import RepairSearch
from .variations import smaller, spread, variations
from .verdict import Argument, CannotVerifyError, Example, Finding, Verdict

DEFAULT_EXAMPLES: Final = 100
DEFAULT_SECONDS: Final = 60.0
_FEW_BLOCKS: Final = 2
_FEW_PASSED: Final = 5
_MOST_FURTHER: Final = 30
_MOST_FUSED: Final = 20
_FUSED: Final = (
    "it fails if ptxas fuses products and sums, as on a GPU: compile with ptx.NO_FMA, or allow a "
    "larger tolerance"
)
_DATABASE: Final = Path(".hypothesis", "cudadrv")


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How thoroughly to verify.

    Attributes:
        checks: names of docs/checks.md; None is all of them. Values are always compared.
        seed: of the generated examples.
        examples: the most examples to draw; shrinking runs more.
        seconds: the most time, shrinking included.
        database: the folder of earlier failures, which run first; None stores none.
        explain: whether to try repairs of each finding; at most 10 more seconds of the processor.
        further: other options of the command that `Finding.repeat` has.
    """

    checks: tuple[CheckName, ...] | None = None
    seed: int = 0
    examples: int = DEFAULT_EXAMPLES
    seconds: float = DEFAULT_SECONDS
    database: Path | None = _DATABASE
    explain: bool = True
    further: str = ""

    def __post_init__(self) -> None:
        if border.integer("examples", self.examples) < 1:
            raise ArgumentValueError(f"examples is {self.examples}: give 1 or more")
        if not self.seconds > 0:
            raise ArgumentValueError(f"seconds is {self.seconds}: give more than 0")


class _FailedExampleError(Exception):
    """An example that fails; each check has a class of its own, so that each is shrunk apart."""

    def __init__(self, fault: Fault, example: Example) -> None:
        super().__init__(fault.check)
        self.fault = fault
        self.example = example


_ERRORS: Final[dict[str, type[_FailedExampleError]]] = {}  # by the checks, of which there are a few


def _error_class_of(check: str) -> type[_FailedExampleError]:
    return _ERRORS.setdefault(check, type(f"{check.capitalize()}Found", (_FailedExampleError,), {}))


@dataclass
class _Search:
    """One search for failures: each example runs once, and none after the deadline.

    Attributes:
        ran: how many examples ran.
        is_late: True once an example was not run.
        passed: the examples that did not fail.
    """

    compiled: CompiledCase
    deadline: float
    ran: int = 0
    is_late: bool = False
    passed: list[Example] = field(default_factory=list)
    _known: dict[bytes, _FailedExampleError | None] = field(default_factory=dict)

    def try_example(self, example: Example) -> None:
        """Raise a `_FailedExampleError` if an example fails."""
        if not self.compiled.case.is_allowed(example):
            hypothesis.reject()
        key = _key(example)
        if key not in self._known:
            if time.monotonic() > self.deadline:
                self.is_late = True
                return
            self._known[key] = self.failure(example)
            if self._known[key] is None:
                self.passed.append(example)
        error = self._known[key]
        if error is not None:
            raise error.with_traceback(None)

    @property
    def failed(self) -> Mapping[str, Sequence[Example]]:
        """The examples that failed, by the check that reported them."""
        by_check: dict[str, list[Example]] = {}
        for error in self._known.values():
            if error is not None:
                by_check.setdefault(error.fault.check, []).append(error.example)
        return by_check

    def with_few_blocks(self, error: _FailedExampleError) -> _FailedExampleError:
        """Return the same failure of at most two blocks, if there is one.

        Hypothesis prefers the smallest block, which can make the grid large.
        """
        example = error.example
        for config in example.alternatives:
            if config.blocks < example.config.blocks > _FEW_BLOCKS >= config.blocks:
                if time.monotonic() > self.deadline:
                    break
                fewer = self.failure(replace(example, config=config))
                if fewer is not None and fewer.fault.check == error.fault.check:
                    return fewer
        return error

    def failure(self, example: Example) -> _FailedExampleError | None:
        """Run an example; return its failure, or None."""
        self.ran += 1
        expected = self.compiled.case.expected(example)
        faults = self.compiled.faults(example, expected)
        return _error_class_of(faults[0].check)(faults[0], example) if faults else None


def _key(example: Example) -> bytes:
    digest = hashlib.sha256(f"{example.config}{example.schedule}{example.stream}".encode())
    for argument in example.arguments.values():
        digest.update(_bytes_of(argument))
    return digest.digest()


def _bytes_of(value: Argument) -> bytes:
    if isinstance(value, DrawnArray):
        return repr(value.contents.shape).encode() + value.contents.tobytes()
    return value.tobytes() if isinstance(value, np.generic) else repr(value).encode()


def verify(case: KernelCase, options: VerifyOptions | None = None, *, name: str = "") -> Verdict:
    """Verify a case: draw examples, run each under the checks, and shrink the failures.

    One seed gives the same examples each time, if the limit of seconds does not end it.

    Args:
        case: the case.
        options: how thoroughly.
        name: `FILE.py::case`, for the verdict and the command that repeats it.

    Raises:
        CannotVerifyError: the source does not compile, the reference fails, they do not fit, or the
            limit of seconds ended it before the first example.
    """
    options = options or VerifyOptions()
    began = time.monotonic()
    compiled = compiled_case(case, options, name)
    search = _Search(compiled, began + options.seconds)
    errors = _searched(search, options, name)
    if not search.ran:
        raise CannotVerifyError(
            f"no example ran within {options.seconds:g} seconds: compiling took longer\n"
            "  give more seconds"
        )
    errors = [search.with_few_blocks(error) for error in errors]
    findings = [_finding(error, compiled, name, options) for error in errors]
    if options.explain and errors:
        repairs = RepairSearch(compiled, search.failed, _further_examples(search, options))
        findings = [
            replace(finding, repairs=repairs.repairs(error.fault, error.example))
            for finding, error in zip(findings, errors, strict=True)
        ]
    examples = search.ran
    if not errors:
        findings = _varied_findings(search, name, options)
    editable = EditablePtx(compiled)
    fused = _contractions(editable)
    ran = compiled
    if not findings and fused:
        fused_case = _fused_case(compiled, editable, fused)
        findings = _fused_findings(search, fused_case, name, options)
        ran = fused_case if findings else compiled
    kernel = case.kernel or compiled.kernel
    return Verdict(
        case=name or case.name or kernel,
        kernel=kernel,
        outcome="found" if findings else "verified",
        findings=tuple(findings),
        checks=(VALUES, *compiled.checks),
        seed=options.seed,
        examples=examples,
        seconds=time.monotonic() - began,
        is_complete=not search.is_late,
        ptx=ran.image.data.decode(),
        contractions=tuple(editable.source(each.total, "sum") for each in fused),
    )


def _varied_findings(search: _Search, name: str, options: VerifyOptions) -> list[Finding]:
    """Run variations of passed examples; return the first finding of each cause."""
    compiled, found = search.compiled, dict[str, Finding]()
    for example, cause in variations(search.passed):
        if time.monotonic() > search.deadline:
            break
        if cause in found:
            continue
        error = search.failure(example)
        if error is not None:
            fewer = map(search.failure, smaller(example))
            error = next((each for each in fewer if each is not None), error)
            found[cause] = replace(_finding(error, compiled, name, options), note=cause)
    return [*found.values(), *_imprecise_findings(search, name, options)]


def _imprecise_findings(search: _Search, name: str, options: VerifyOptions) -> list[Finding]:
    """Run passed examples with fractions; return the first that loses too many bits."""
    compiled, case = search.compiled, search.compiled.case
    for seed, passed in enumerate(spread(search.passed)):
        example = with_fractions(case, passed, seed)
        if time.monotonic() > search.deadline or example is None or not case.is_allowed(example):
            continue
        expected = case.expected(example)
        allowed = {} if case.is_exact else allowed_differences(case, example, expected)
        faults = compiled.faults(example, expected, allowed)
        if faults:
            error = _error_class_of(faults[0].check)(faults[0], example)
            is_near = not compiled.faults(example, expected, coarse_differences(expected))
            note = "" if case.is_exact else PRECISION if is_near else FRACTIONS
            return [replace(_finding(error, compiled, name, options), note=note)]
    return []


def _contractions(editable: EditablePtx) -> Sequence[Contraction]:
    """Return the sums of a case's kernels that may be fused with a product."""
    bodies = (editable.module.body(name) for name in editable.functions)
    return [contraction for body in bodies for contraction in contractions(body)]


def _fused_case(
    compiled: CompiledCase, editable: EditablePtx, fused: Sequence[Contraction]
) -> CompiledCase:
    """Return the case with fused operations, as a GPU may execute it."""
    changed = {each.total.line: each.fused_line(editable.lines) for each in fused}
    lines = {line: text for line, text in changed.items() if text is not None}
    # The assembler's opinion of the changed text costs more than a run.
    checks = tuple(check for check in compiled.checks if check != "assemble")
    return replace(editable.with_lines(lines), checks=checks)


def _fused_findings(
    search: _Search, fused: CompiledCase, name: str, options: VerifyOptions
) -> list[Finding]:
    """Run passed examples again with fused operations; return the first values that differ."""
    for example in search.passed[:_MOST_FUSED]:
        if time.monotonic() > search.deadline:
            break
        faults = fused.faults(example, fused.case.expected(example))
        if faults:
            error = _error_class_of(faults[0].check)(faults[0], example)
            return [replace(_finding(error, fused, name, options), note=_FUSED)]
    return []


def compiled_case(case: KernelCase, options: VerifyOptions, name: str) -> CompiledCase:
    """Compile a case, for the checks of the options.

    Raises:
        CannotVerifyError: the source does not compile, or does not fit the arguments.
    """
    case = case.named(name.partition("::")[2])
    chosen = Checks.default() if options.checks is None else Checks.read(options.checks)
    image, kernel = case.compile()
    return CompiledCase(case, image, kernel, chosen, case.source_text())


def drawn_examples(compiled: CompiledCase, options: VerifyOptions) -> Sequence[Example]:
    """Draw examples by the seed, and run none; those that the case skips are left out."""
    examples: dict[bytes, Example] = {}
    signature = compiled.image.signatures[compiled.kernel]

    @hypothesis.seed(options.seed)
    @hypothesis.settings(
        max_examples=options.examples,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(compiled.case.examples(signature))
    def draw_examples(example: Example) -> None:
        hypothesis.assume(compiled.case.is_allowed(example))
        examples.setdefault(_key(example), example)

    draw_examples()
    return list(examples.values())


def _searched(search: _Search, options: VerifyOptions, name: str) -> Sequence[_FailedExampleError]:
    """Run Hypothesis; return the smallest failure of each check, causes before effects."""
    compiled = search.compiled
    database: ExampleDatabase | None = None
    if options.database is not None:
        identity = f"{name}\0{compiled.case.read_source()}"
        folder = hashlib.sha256(identity.encode()).hexdigest()[:16]
        database = DirectoryBasedExampleDatabase(options.database / folder)

    # Applied after the seed, which would switch the database off.
    @hypothesis.settings(
        max_examples=options.examples,
        database=database,
        deadline=None,
        report_multiple_bugs=True,
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        phases=[phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain],
    )
    @hypothesis.seed(options.seed)
    @hypothesis.given(compiled.case.examples(compiled.image.signatures[compiled.kernel]))
    def try_examples(example: Example) -> None:
        search.try_example(example)

    try:
        try_examples()
    except _FailedExampleError as error:
        return [error]
    except hypothesis.errors.Unsatisfiable:
        raise CannotVerifyError(
            "assume= skips almost every example: draw arguments that it allows"
        ) from None
    except Exception as error:
        raised = error.exceptions if isinstance(error, ExceptionGroup) else [error]
        failures = [failure for failure in raised if isinstance(failure, _FailedExampleError)]
        other = next((failure for failure in raised if failure not in failures), None)
        if isinstance(other, CudadrvError):
            raise other from None
        if other is not None:
            raise failed_call("drawing an example", other) from other
        return failures
    return []


def _further_examples(search: _Search, options: VerifyOptions) -> Sequence[Example]:
    """Return examples that passed, and drawn ones if these are few.

    Few examples run if an earlier failure is stored, or if almost every example fails.
    """
    if len(search.passed) >= _FEW_PASSED:
        return search.passed
    few = replace(options, examples=min(options.examples, _MOST_FURTHER))
    try:
        return [*search.passed, *drawn_examples(search.compiled, few)]
    except hypothesis.errors.Unsatisfiable:
        return search.passed


def _finding(
    error: _FailedExampleError, compiled: CompiledCase, name: str, options: VerifyOptions
) -> Finding:
    fault = error.fault
    repeat = ""
    if name:
        seed = f" --seed {options.seed}" if options.seed else ""
        examples = f" --examples {options.examples}" * (options.examples != DEFAULT_EXAMPLES)
        checks = f" --checks {','.join(options.checks)}" if options.checks else ""
        further = f" {options.further}" if options.further else ""
        repeat = f"python -m cudadrv verify {shlex.quote(name)}{seed}{examples}{checks}{further}"
    return Finding(
        fault.check, compiled.case.kernel or compiled.kernel, fault.text, fault.lines,
        fault.variable, error.example, repeat, note=_fixed_launch(compiled.case, error.example),
    )  # fmt: skip


def _fixed_launch(case: KernelCase, example: Example) -> str:
    """Return why a launch of many blocks cannot be smaller; "" if it is small, or not fixed."""
    launch = case.launch
    extents = launch.blocks or launch.threads
    is_fixed = not launch.loops and not any(isinstance(extent, Size) for extent in extents)
    if example.config.blocks <= _FEW_BLOCKS or not is_fixed:
        return ""
    what = "grid" if launch.blocks else "threads"
    return f"the case fixes the {what}; a size, st.sizes(LEAST, MOST), lets the launch shrink"


def verify_kernel(
    kernel: str | Path,
    reference: Callable[..., Mapping[str, object] | None],
    arguments: Mapping[str, object],
    launch: LaunchConfigs | LaunchConfig,
    options: VerifyOptions | None = None,
    **fields: object,
) -> Verdict:
    """Verify a kernel within a test; return the verdict.

    Args:
        kernel: CUDA C++, or the path of a file.
        reference, arguments, launch, fields: as for `KernelCase`.
        options: how thoroughly.

    Raises:
        VerificationError: it has findings.
        CannotVerifyError: the source does not compile, the reference fails, or they do not fit.
    """
    # KernelCase checks the types of its fields.
    case = KernelCase(kernel, arguments=arguments, launch=launch, reference=reference, **fields)  # type: ignore[arg-type]
    verdict = verify(case, options)
    verdict.raise_findings()
    return verdict
