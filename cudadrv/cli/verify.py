"""``verify``: verify kernels against their references, under all checks of the emulator."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ptx.ordinary_files import write_bytes

from ..emulator.checks import Checks
from ..errors import ArgumentValueError, CudadrvError
from .check import add_checks_option
from .command_line import Commands, add_command, positive, program_name
from .output import print_error, print_text
from .script import names_of
from .user_files import why_no_file

if TYPE_CHECKING:
    from ..testing.report import CaseReport
    from ..testing.verify import KernelCase, MutationReport, Verdict, VerifyOptions

_T = TypeVar("_T")
FOUND: Final = 1
WRONG: Final = 2  # argparse's status for a wrong command line
CANNOT: Final = 3
_EXAMPLES: Final = 100
_SECONDS: Final = 60.0
_MEMORY_MB: Final = 4096
_NEEDED: Final = ("hypothesis", "pytest")
_NEEDED_FOR_PAGE: Final = ("jinja2", "pygments")


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "verify",
        "Verify kernels against NumPy references on the emulator, with generated inputs.",
        example="cases.py::saxpy --seed 7",
        statuses={
            "0": "every case is verified",
            str(FOUND): "a kernel has a fault",
            str(WRONG): "the command line is wrong",
            str(
                CANNOT
            ): "a case cannot be verified, or not within its limit of seconds, or a result "
            "cannot be written",
        },
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="FILE[::CASE]",
        help="a Python file with cases, or a .cu file with the cases in a .py file beside it",
    )
    add_checks_option(parser)
    _add_search(parser)
    _add_results(parser)
    _add_comparison(parser)
    parser.add_argument(
        "--sealed",
        action="store_true",
        help="with --json: copy the first line of the input to the JSON, as `seal`",
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    _add_submissions(parser)
    parser.set_defaults(run=_run)


def _add_search(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--examples",
        type=positive,
        default=_EXAMPLES,
        metavar="N",
        help=f"inputs of each case (default: {_EXAMPLES})",
    )
    add(
        "--seconds",
        type=_seconds,
        default=_SECONDS,
        metavar="N",
        help=f"the most time for each case (default: {_SECONDS:g})",
    )
    add(
        "--seed", type=int, default=0, metavar="N", help="seed of the generated inputs (default: 0)"
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--explain",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="try single repairs of each finding, and report which of them heal it",
    )
    add(
        "--mutate",
        action="store_true",
        help="also change the PTX in small ways, and report the changes that no check notices",
    )
    add(
        "--save",
        type=Path,
        metavar="FOLDER",
        help="write each finding to a file CASE-CHECK.json of a folder, for the command replay",
    )
    add(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page: findings, source, PTX, counters, memory accesses, streams, bounds",
    )


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--against",
        metavar="FILE[::KERNEL]",
        help="compare with the kernel of another .cu file, in place of the reference",
    )
    add("--exact", action="store_true", help="with --against: the values must be equal")
    add(
        "--source",
        type=Path,
        metavar="FILE",
        help="verify the kernel of this file in place of the case's: CUDA C++, or a .py file with "
        "CUDA C++ in a string, which does not run",
    )


def _add_submissions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--json-lines",
        type=Path,
        metavar="DIR",
        help="verify each submission of a folder, kernels for FILE.py::CASE, in a process of its "
        "own, and print a line of JSON for each",
    )
    add(
        "--trust-python",
        action="store_true",
        help="with --json-lines and no case: run .py files with cases of their own, whose Python "
        "can replace the verifier",
    )
    add(
        "--jobs",
        type=positive,
        default=None,
        metavar="N",
        help="with --json-lines: how many run at once (default: the processors)",
    )
    add(
        "--memory-mb",
        type=positive,
        default=_MEMORY_MB,
        metavar="N",
        help=f"with --json-lines: the most memory of each (default: {_MEMORY_MB})",
    )


def missing_package(command: str, needed: Sequence[str] = _NEEDED) -> bool:
    """Return True, and print how to install it, if a package is missing that a command needs."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        print_error(f'{command} needs {missing[0]}: pip install "cudadrv[testing]"')
    return bool(missing)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


@dataclass(frozen=True, slots=True)
class _Job:
    """The work on each case, as the command line has it.

    Attributes:
        options: of the verification.
        has_mutations: whether a verified case is also mutated.
        saved_to: the folder of the findings; None writes none.
        page: the file of the page; None writes none.
        against: the file and the kernel that replace the reference; None keeps it.
        is_exact: whether the values must then be equal.
        source: the file of the kernel to verify in place of the case's; None keeps it.
    """

    options: VerifyOptions
    has_mutations: bool
    saved_to: Path | None
    page: Path | None
    against: tuple[Path, str] | None = None
    is_exact: bool = False
    source: Path | None = None


@dataclass
class _Report:
    """The results of all cases.

    Attributes:
        as_json: True to print JSON at the end, and no text.
        seal: what the process that reads the JSON gave; what a case prints does not have it.
        saved: the files of findings; cases of several files may have one name.
    """

    as_json: bool
    seal: str = ""
    verdicts: list[Verdict] = field(default_factory=list)
    mutations: list[MutationReport] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    pages: list[CaseReport] = field(default_factory=list)
    saved: set[Path] = field(default_factory=set)

    def attempt(
        self, name: str, function: Callable[[], _T], failed: str = "cannot be verified: "
    ) -> _T | None:
        """Return the function's result; None after an error, which it records."""
        try:
            return function()
        except CudadrvError as error:
            self.fail(name, str(error), failed)
            return None

    def fail(self, name: str, text: str, failed: str = "cannot be verified: ") -> None:
        """Record an error, and print it after the words `failed`."""
        self.errors.append({"case": name, "text": text})
        print_error(f"{name}: {failed}{text}")

    def show(self, text: str) -> None:
        """Print a result, unless JSON is wanted."""
        if not self.as_json:
            print_text(text)

    def finish(self) -> int:
        """Print JSON if it is wanted; return the exit status."""
        if self.as_json:
            results: dict[str, Any] = {  # of JSON
                "verdicts": [result.to_json() for result in self.verdicts],
                "mutations": [result.to_json() for result in self.mutations],
                "errors": self.errors,
            }
            if self.seal:
                results["seal"] = self.seal
            print_text(json.dumps(results))
        if self.errors:
            return CANNOT
        return status_of({verdict.outcome for verdict in self.verdicts})


def status_of(outcomes: Set[str]) -> int:
    """Return the exit status for the outcomes of all cases, or of all submissions."""
    if "failed" in outcomes:
        return CANNOT
    if "found" in outcomes:
        return FOUND
    return CANNOT if "unfinished" in outcomes else 0


def _run(args: argparse.Namespace) -> int:
    if missing_package("verify"):
        return CANNOT
    if args.html is not None and missing_package("verify --html", _NEEDED_FOR_PAGE):
        return CANNOT
    if args.json_lines is not None:
        return _verify_folder(args)
    from ..testing.verify import VerifyOptions  # imports Hypothesis, which takes 0.3 s

    try:
        if not args.targets:
            raise ArgumentValueError("the following arguments are required: FILE[::CASE]")
        checks = None if args.checks is None else Checks.read(args.checks)
        options = VerifyOptions(
            checks,
            args.seed,
            args.examples,
            args.seconds,
            explain=args.explain,
            further=_further(args),
        )
        job = _Job(
            options,
            args.mutate,
            args.save,
            args.html,
            _against(args),
            is_exact=args.exact,
            source=args.source,
        )
        targets = [_target(target) for target in args.targets]
    except ArgumentValueError as error:
        print_error(f"{program_name()} verify: {error}")
        return WRONG
    report = _Report(args.json, sys.stdin.readline().strip() if args.sealed else "")
    # The output of a case must not mix with JSON.
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        for file, wanted in targets:
            _verify_file(file, wanted, job, report)
        if job.page is not None:
            _write_page(report, job.page)
    return report.finish()


def _case_of_folder(args: argparse.Namespace) -> str:
    """Return the case that a folder's submissions are for, `FILE.py::CASE`; "" for their own.

    Raises:
        ArgumentValueError: the options do not fit.
    """
    for option in ("mutate", "save", "html", "against", "exact", "source", "json"):
        if getattr(args, option):
            raise ArgumentValueError(f"--{option} does not go with --json-lines")
    if len(args.targets) > 1:
        raise ArgumentValueError("--json-lines takes one case, FILE.py::CASE, or none")
    if args.targets and args.trust_python:
        raise ArgumentValueError("--trust-python does not go with a case")
    case = f"{Path(args.targets[0]).resolve()}" if args.targets else ""
    if case:
        _target(case)
    if not args.json_lines.is_dir():
        raise ArgumentValueError(f"{args.json_lines}: there is no such folder")
    if not case and not args.trust_python:
        raise ArgumentValueError(
            "the Python of a submission can replace the verifier: name a case for all\n"
            "  give FILE.py::CASE, or run files of your own with --trust-python"
        )
    return case


def _verify_folder(args: argparse.Namespace) -> int:
    """Verify a folder of submissions; print a line of JSON for each."""
    from .submissions import SubmissionLimits, submissions_of, verify_submissions

    try:
        case = _case_of_folder(args)
        submissions = submissions_of(args.json_lines, case)
    except ArgumentValueError as error:
        print_error(f"{program_name()} verify: {error}")
        return WRONG
    options = [
        "--examples",
        str(args.examples),
        "--seconds",
        str(args.seconds),
        "--seed",
        str(args.seed),
        "--explain" if args.explain else "--no-explain",
    ]
    options += [] if args.checks is None else ["--checks", args.checks]
    limits = SubmissionLimits(args.seconds, args.memory_mb)
    jobs = args.jobs or os.cpu_count() or 1
    outcomes: set[str] = set()
    for result in verify_submissions(submissions, case, options, jobs, limits):
        print_text(json.dumps(result))
        outcomes.add(result["outcome"])
    return status_of(outcomes)


def _verify_file(file: Path, wanted: str, job: _Job, report: _Report) -> None:
    """Verify the case that is wanted of a file, or all of them."""
    names = names_of(file)
    if names is None:
        report.fail(str(file), "the file failed")
        return
    cases = dict(_cases(names, file))
    if not cases:
        report.fail(str(file), "it defines no KernelCase")
    elif wanted and wanted not in cases:
        report.fail(f"{file}::{wanted}", f"its cases are: {', '.join(cases)}")
    for name, case in cases.items():
        if wanted in ("", name):
            _verify(case, job, f"{file}::{name}", report)


def _verify(case: KernelCase, job: _Job, name: str, report: _Report) -> None:
    from ..testing.verify import verify  # imports Hypothesis

    options, folder = job.options, job.saved_to
    compared = report.attempt(name, lambda: _compared(case, job))
    if compared is None:
        return
    case = compared
    verdict = report.attempt(name, lambda: verify(case, options, name=name))
    if verdict is None:
        return
    report.verdicts.append(verdict)
    report.show(str(verdict))
    if job.has_mutations and verdict.is_verified:
        _mutate(case, options, name, report)
    if folder is not None and verdict.findings:
        report.attempt(name, lambda: _save(case, verdict, folder, report), "")
    if job.page is not None:
        from ..testing.report import report_case  # imports Jinja2

        page = report.attempt(name, lambda: report_case(case, verdict, options))
        report.pages += [] if page is None else [page]


def _write_page(report: _Report, file: Path) -> None:
    """Write the page of all cases."""
    from ..testing.report import Report, page_of  # imports Jinja2

    errors = tuple((error["case"], error["text"]) for error in report.errors)
    try:
        write_bytes(file, page_of(Report(tuple(report.pages), errors)).encode())
    except OSError as error:
        report.fail(str(file), f"the page cannot be written: {error}", "")
        return
    report.show(f"page: {file}")


def _save(case: KernelCase, verdict: Verdict, folder: Path, report: _Report) -> None:
    """Write the findings of a case.

    Raises:
        CannotVerifyError: they cannot be saved.
    """
    from ..testing.verify import CannotVerifyError, saved_findings

    for finding in saved_findings(case, verdict):
        stem = f"{case.name}-{finding.finding.check}"
        names = (f"{stem}{f'-{number}' * (number > 1)}.json" for number in count(1))
        file = next(folder / name for name in names if folder / name not in report.saved)
        report.saved.add(file)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(file, json.dumps(finding.to_json()).encode())
        except OSError as error:
            raise CannotVerifyError(f"a finding cannot be written: {error}") from None
        report.show(f"  replay: python -m cudadrv replay {shlex.quote(str(file))}")


def _mutate(case: KernelCase, options: VerifyOptions, name: str, report: _Report) -> None:
    from ..testing.verify import mutate

    mutation = report.attempt(name, lambda: mutate(case, options, name=name))
    if mutation is not None:
        report.mutations.append(mutation)
        report.show(str(mutation))


def _against(args: argparse.Namespace) -> tuple[Path, str] | None:
    """Return the file and the kernel of `--against`.

    Raises:
        ArgumentValueError: there is no such file, or the options do not go together.
    """
    if args.against is None:
        if args.exact:
            raise ArgumentValueError("--exact needs --against")
        return None
    if args.save is not None:
        raise ArgumentValueError("--save does not go with --against: replay knows the case alone")
    name, _, kernel = args.against.partition("::")
    if why := why_no_file(name):
        raise ArgumentValueError(f"{name}: {why}")
    return Path(name), kernel


def _further(args: argparse.Namespace) -> str:
    """Return the options that the command which repeats a finding needs as well."""
    if args.against is None:
        return ""
    return f"--against {shlex.quote(args.against)}{' --exact' * args.exact}"


def _compared(case: KernelCase, job: _Job) -> KernelCase:
    """Return the case, with another source, and another kernel as its reference, as is wanted."""
    if job.source is not None:
        from ..testing.verify.submitted_source import submitted_source

        case = case.of_text(*submitted_source(job.source))
    if job.against is None:
        return case
    from ..testing.verify import Tolerance
    from ..testing.verify.against import against

    compared = against(case, *job.against)
    return compared.with_tolerance(Tolerance(ulps=0)) if job.is_exact else compared


def _target(text: str) -> tuple[Path, str]:
    """Return the Python file and the case that a target names, "" for all.

    Raises:
        ArgumentValueError: there is no such file.
    """
    name, _, case = text.partition("::")
    file = Path(name)
    cases = file.with_suffix(".py") if file.suffix in (".cu", ".cuh") else file
    for path in (file, cases):
        if why := why_no_file(path):
            beside = f": the cases of {file} stand there" if path != file else ""
            raise ArgumentValueError(f"{path}: {why}{beside}")
    return cases, case


def _cases(names: Mapping[str, object], file: Path) -> Iterator[tuple[str, KernelCase]]:
    """Yield copies of the cases of a file, with their names and the paths of their sources."""
    from ..testing.verify import KernelCase

    for name, case in names.items():
        if isinstance(case, KernelCase):
            # Not in place: a case may have several names, and several files may import it.
            yield name, case.located(file.parent).named(name)
