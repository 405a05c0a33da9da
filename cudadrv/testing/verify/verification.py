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
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from ... import border
from ...emulator import CheckName
from ...emulator.checks import Checks
from ...errors import ArgumentValueError, CudadrvError
from ...launch.config import LaunchConfig
from ..strategies import LaunchConfigs, Size
from .contraction import Contraction, contractions
from .example_run import VALUES, CompiledCase
from .kernel_case import KernelCase, failed_call
from .measures import Measures
from .provenance import made_by
from .ptx_edit import EditablePtx
from .repairs import RepairSearch
from .search import FailedExampleError, Search, drawn_examples, error_of
from .verdict import CannotVerifyError, Example, Finding, Verdict

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
        seconds: the most time, shrinking included. Drawing examples ends at half of it.
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
            raise ArgumentValueError(f"examples is {border.shown(self.examples)}: give 1 or more")
        if not self.seconds > 0:
            raise ArgumentValueError(f"seconds is {border.shown(self.seconds)}: give more than 0")


def verify(case: KernelCase, options: VerifyOptions | None = None, *, name: str = "") -> Verdict:
    """Verify a case: draw examples, run each under the checks, and shrink the failures.

    One seed gives the same examples each time, if the limit of seconds does not end it. Hypothesis
    also draws constants of the local modules that are imported.

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
    # Slow examples leave half of the time to the measures.
    search = Search(compiled, began + options.seconds, began + options.seconds / 2)
    verification = _Verification(search, options, name)
    verification.draw_examples()
    if not verification.findings:
        verification.take_measures()
    if not verification.findings:
        verification.fuse()
    return verification.verdict(time.monotonic() - began)


@dataclass
class _Verification:
    """One verification of a case.

    Attributes:
        search: its examples.
        options: how thoroughly.
        name: `FILE.py::case`; "" is none.
        findings: what was found so far.
        examples: how many drawn examples ran.
    """

    search: Search
    options: VerifyOptions
    name: str
    findings: list[Finding] = field(default_factory=list)
    examples: int = 0

    def __post_init__(self) -> None:
        self._compiled = self._ran = self.search.compiled
        self._editable = EditablePtx(self._compiled)
        self._fused = _contractions(self._editable)
        self._measures = Measures(self.search, self.options.seed, self.options.examples)

    def draw_examples(self) -> None:
        """Run drawn examples; find at most one fault for each check, and its repairs.

        Raises:
            CannotVerifyError: the limit of seconds ended it before the first example.
        """
        search, options = self.search, self.options
        errors = _searched(search, options, self.name)
        if not search.ran:
            raise CannotVerifyError(
                f"no example ran within {options.seconds:g} seconds: compiling took longer\n"
                "  give more seconds"
            )
        if not (errors or search.compared or search.leaves_all_open):
            raise CannotVerifyError(
                "nothing was compared: the reference gives no element a value\n"
                "  let it change arrays in place (y[:] = ..., not y = ...), or return a dict\n"
                "  of new contents; None in a dict leaves an array open"
            )
        errors = [search.with_few_blocks(error) for error in errors]
        self.examples = search.ran
        self.findings = [self._finding(error, self._compiled) for error in errors]
        if options.explain and errors:
            repairs = RepairSearch(
                self._compiled, search.failed, _further_examples(search, options)
            )
            self.findings = [
                replace(finding, repairs=repairs.repairs(error.fault, error.example))
                for finding, error in zip(self.findings, errors, strict=True)
            ]

    def take_measures(self) -> None:
        """Run the measures beside drawn examples."""
        self.findings = [
            replace(self._finding(error, self._compiled), note=note)
            for error, note in self._measures.run()
        ]

    def fuse(self) -> None:
        """Run passed examples again with fused operations; find the first values that differ."""
        if not self._fused:
            return
        fused = _fused_case(self._compiled, self._editable, self._fused)
        for example in self.search.passed[:_MOST_FUSED]:
            if time.monotonic() > self.search.deadline:
                self._measures.left_out.append("fused operations")
                break
            faults = fused.faults(example, fused.case.expected(example))
            if faults:
                finding = self._finding(error_of(faults[0], example), fused)
                self.findings, self._ran = [replace(finding, note=_FUSED)], fused
                break

    def verdict(self, seconds: float) -> Verdict:
        """Return the verdict, after this many seconds."""
        case, left_out = self._compiled.case, self._measures.left_out
        unfinished = bool(left_out or self._measures.unreached)
        kernel = case.kernel or self._compiled.kernel
        return Verdict(
            case=self.name or case.name or kernel,
            kernel=kernel,
            outcome="found" if self.findings else "unfinished" if unfinished else "verified",
            findings=tuple(self.findings),
            checks=(VALUES, *self._compiled.checks),
            seed=self.options.seed,
            examples=self.examples,
            seconds=seconds,
            is_complete=not self.search.is_late,
            ptx=self._ran.image.data.decode(),
            contractions=tuple(self._editable.source(each.total, "sum") for each in self._fused),
            measures=tuple(self._measures.done),
            suspicions=tuple(dict.fromkeys(self._measures.suspicions)),
            left_out=tuple(left_out),
            unreached=tuple(self._measures.unreached),
        )

    def _finding(self, error: FailedExampleError, compiled: CompiledCase) -> Finding:
        return _finding(error, compiled, self.name, self.options)


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


def compiled_case(case: KernelCase, options: VerifyOptions, name: str) -> CompiledCase:
    """Compile a case, for the checks of the options.

    Raises:
        CannotVerifyError: the source does not compile, or does not fit the arguments.
    """
    case = case.named(name.partition("::")[2])
    chosen = Checks.default() if options.checks is None else Checks.read(options.checks)
    image, kernel = case.compile()
    return CompiledCase(case, image, kernel, chosen, case.source_text())


def _searched(search: Search, options: VerifyOptions, name: str) -> Sequence[FailedExampleError]:
    """Run Hypothesis; return the smallest failure of each check, causes before effects."""
    compiled = search.compiled
    database: ExampleDatabase | None = None
    if options.database is not None:
        identity = f"{name}\0{compiled.case.read_source()}"
        folder = hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()[:16]
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
    except FailedExampleError as error:
        return [error]
    except hypothesis.errors.Unsatisfiable:
        raise CannotVerifyError(
            "assume= skips almost every example: draw arguments that it allows"
        ) from None
    except Exception as error:
        raised = error.exceptions if isinstance(error, ExceptionGroup) else [error]
        failures = [failure for failure in raised if isinstance(failure, FailedExampleError)]
        other = next((failure for failure in raised if failure not in failures), None)
        if isinstance(other, CudadrvError):
            raise other from None
        if other is not None:
            raise failed_call("drawing an example", other) from other
        return failures
    return []


def _further_examples(search: Search, options: VerifyOptions) -> Sequence[Example]:
    """Return examples that passed, and drawn ones if these are few.

    Few examples run if an earlier failure is stored, or if almost every example fails.
    """
    if len(search.passed) >= _FEW_PASSED:
        return search.passed
    few = min(options.examples, _MOST_FURTHER)
    try:
        return [*search.passed, *drawn_examples(search.compiled, options.seed, few)]
    except hypothesis.errors.Unsatisfiable:
        return search.passed


def _finding(
    error: FailedExampleError, compiled: CompiledCase, name: str, options: VerifyOptions
) -> Finding:
    fault, lines = error.fault, error.fault.lines
    if fault.check == VALUES:
        lines = made_by(compiled, error.example, compiled.case.expected(error.example))
    repeat = ""
    if name:
        seed = f" --seed {options.seed}" if options.seed else ""
        examples = f" --examples {options.examples}" * (options.examples != DEFAULT_EXAMPLES)
        checks = f" --checks {','.join(options.checks)}" if options.checks else ""
        further = f" {options.further}" if options.further else ""
        repeat = f"python -m cudadrv verify {shlex.quote(name)}{seed}{examples}{checks}{further}"
    return Finding(
        fault.check,
        compiled.case.kernel or compiled.kernel,
        fault.text,
        lines,
        fault.variable,
        error.example,
        repeat,
        note=_fixed_launch(compiled.case, error.example),
    )


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
