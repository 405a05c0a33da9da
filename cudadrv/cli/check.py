"""``check``: run a script on the emulator, with its work checked."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..driver.exit_status import FOUND
from ..emulator import CheckName, Emulator, KernelFault
from ..emulator.checks import Checks
from ..emulator.hosting import still_queued
from ..emulator.timeline.schedule import Schedule
from ..environment import emulated_devices
from ..errors import ArgumentValueError, CudadrvError
from ..sessions.session import opened
from ..version import VERSION
from .command_line import Commands, add_command, add_program, positive, program_name
from .finding_formats import as_json, as_junit, as_sarif
from .output import print_error, print_text
from .script import (
    ended_at_once,
    exit_functions,
    run_module,
    run_script,
    why_no_module,
    why_no_script,
)
from .user_files import why_no_output, write_text_file

if TYPE_CHECKING:
    from ..emulator import Found

_USAGE_ERROR: Final = 2  # argparse's status for a wrong command line
_NOT_WRITTEN: Final = 3
_STATUSES: Final = {
    "0": "the script succeeded, and there are no findings",
    str(FOUND): "there are findings, and the script did not fail for another reason",
    "2": "the command line is wrong; no script has run",
    str(_NOT_WRITTEN): "a file of --sarif or --junit cannot be written",
    "other": "the script's own status: 1 if an exception ended it",
}


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The checks, and the form of the report.

    Attributes:
        checks: the checks, by their names.
        devices: how many the script has.
        order, seed: when its work runs; None: the environment decides.
        as_json: print JSON instead of text.
        sarif: a file for SARIF.
        junit: a file for JUnit's XML.
        suppressions: a file of findings that are not reported.
    """

    checks: str
    devices: int = 1
    order: str | None = None
    seed: int | None = None
    as_json: bool = False
    sarif: Path | None = None
    junit: Path | None = None
    suppressions: Path | None = None


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "check",
        "Run a script on the emulator, and report races and other faults of its kernels.",
        example="--checks race,init script.py",
        statuses=_STATUSES,
        usage="%(prog)s [options] SCRIPT|-m MODULE [arguments]",
    )
    add = parser.add_argument
    add_checks_option(parser)
    add(
        "--order",
        metavar="ORDER",
        help="immediate, late (finds missing waits), random or random:SEED",
    )
    add("--seed", type=int, metavar="N", help="the seed of --order random")
    add("--devices", type=positive, metavar="N", help="default: those of CUDADRV_DRIVER, or 1")
    add("--json", action="store_true", help="print the findings as JSON")
    add("--sarif", type=Path, metavar="FILE", help="also write the findings as SARIF 2.1.0")
    add("--junit", type=Path, metavar="FILE", help="also write the findings as JUnit's XML")
    add(
        "--suppressions",
        type=Path,
        metavar="FILE",
        help="a file of known findings, which are not reported",
    )
    add_program(parser)
    parser.set_defaults(run=_run)


def add_checks_option(parser: argparse.ArgumentParser) -> None:
    """Add --checks, whose default is all checks."""
    parser.add_argument(
        "--checks",
        metavar="NAMES",
        default=os.environ.get(Checks.VARIABLE, "").strip() or None,
        help=f"some of {','.join(Checks.NAMES)} (default: those of CUDADRV_CHECK, or all but nan; "
        "assemble where nvJitLink is installed)",
    )


def _run(parsed: argparse.Namespace) -> int:
    checks = ",".join(Checks.default()) if parsed.checks is None else parsed.checks
    options = CheckOptions(
        checks,
        parsed.devices or emulated_devices() or 1,
        parsed.order,
        parsed.seed,
        parsed.json,
        parsed.sarif,
        parsed.junit,
        parsed.suppressions,
    )
    if parsed.module:
        module, *arguments = parsed.module
        return run_check(module, arguments, options, is_module=True)
    if parsed.script is None or parsed.module is not None:
        return _rejection("name a script, or a module with -m")
    return run_check(parsed.script, parsed.arguments, options)


def run_check(
    program: str, arguments: Sequence[str], options: CheckOptions, *, is_module: bool = False
) -> int:
    """Print the findings; return the script's status if it fails, else `FOUND` if there are any."""
    why = why_no_module(program) if is_module else why_no_script(program)
    for name, file in (("sarif", options.sarif), ("junit", options.junit)):
        if file is not None and (why_not := why_no_output(file)):
            why = f"--{name} {file}: {why_not}"
    if why:
        return _rejection(why)
    with ExitStack() as stack:
        try:
            checks = Checks.read(options.checks)
            if not checks:
                return _rejection(f"--checks: name some of {', '.join(Checks.NAMES)}")
            emulator = _emulator(options, checks)
        except CudadrvError as error:
            return _rejection(str(error))
        # An interrupt, a signal and `os._exit` end the script without the report below.
        stack.enter_context(ended_at_once(partial(_report_now, emulator, options, checks)))
        stack.enter_context(_settings_of_children(emulator, options, checks))
        held = stack.enter_context(exit_functions())
        name = f"of the script {program}"
        stack.enter_context(opened(emulator, name, raise_findings=False, roots=lambda: held))
        queued: list[str] = []
        run = run_module if is_module else run_script
        process = os.getpid()
        end = run(program, arguments, lambda: queued.extend(emulator.queued))
        if os.getpid() != process:  # a child that the script has forked: its parent reports
            raise SystemExit(end.status)
    if queued:
        print_error(still_queued(queued, "When the script failed"))
    findings = [finding for finding in emulator.findings if not finding.benign]
    is_written = _write_files(emulator.findings, options, checks, succeeded=not end.status)
    _print_findings(emulator, options, checks, end.error or "")
    # A script that a kernel's fault ended was ended by a finding.
    if end.error is not None and any(finding.is_told for finding in findings):
        return FOUND
    return end.status or (FOUND if findings else 0 if is_written else _NOT_WRITTEN)


def _write_files(
    every: Sequence[Found], options: CheckOptions, checks: Sequence[str], *, succeeded: bool
) -> bool:
    """Write the files of findings; return False, after printing why, if one cannot be written."""
    texts: list[tuple[Path, str]] = []
    if options.sarif is not None:
        log = as_sarif(every, version=VERSION, succeeded=succeeded)
        texts.append((options.sarif, json.dumps(log, indent=1)))
    if options.junit is not None:
        findings = [(finding.check, str(finding)) for finding in every if not finding.benign]
        texts.append((options.junit, as_junit(findings, checks)))
    written = [write_text_file(file, text) for file, text in texts]
    return all(written)


def _print_findings(
    emulator: Emulator, options: CheckOptions, checks: Sequence[str], shown: str
) -> None:
    if options.as_json:
        findings = [as_json(finding) for finding in emulator.findings if not finding.benign]
        print_text(json.dumps(findings))
    else:
        _print(emulator, checks, shown)


def _report_now(emulator: Emulator, options: CheckOptions, checks: Sequence[str]) -> int:
    """Print the findings of a script that ends at once; return `FOUND` if there are any, else 0."""
    emulator.finish()
    _print_findings(emulator, options, checks, "")
    return FOUND if any(not finding.benign for finding in emulator.findings) else 0


@contextmanager
def _settings_of_children(
    emulator: Emulator, options: CheckOptions, checks: Sequence[str]
) -> Iterator[None]:
    """Let processes and sessions that the script starts run with the same settings."""
    settings = {
        "CUDADRV_DRIVER": f"emulator:{options.devices}",
        Checks.VARIABLE: ",".join(checks),
        "CUDADRV_EMULATOR_ORDER": emulator.order,
    }
    if options.suppressions is not None:
        settings[Checks.SUPPRESSIONS_VARIABLE] = str(options.suppressions.absolute())
    former = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            os.environ.pop(name)
            if name in former:
                os.environ[name] = former[name]


def _emulator(options: CheckOptions, checks: Sequence[CheckName]) -> Emulator:
    """Return the emulator that the script runs on.

    Raises:
        ArgumentValueError: there is no such order, or it takes no seed.
    """
    order, seed = None, options.seed
    if options.order is not None:
        chosen = Schedule.read(options.order)
        if chosen.name == "held":
            raise ArgumentValueError(
                f"{options.order!r} is not an order: use one of {', '.join(Schedule.NAMES)}"
            )
        order = chosen.name
        if ":" in options.order:
            if seed is not None:
                raise ArgumentValueError(f"--seed {seed}: {options.order} has a seed already")
            seed = chosen.seed
    return Emulator(
        options.devices, order=order, seed=seed, check=checks, suppressions=options.suppressions
    )


def _rejection(text: str) -> int:
    """Print in one line why no script runs."""
    print_error(f"{program_name()} check: {text}")
    return _USAGE_ERROR


def _print(emulator: Emulator, checks: Sequence[str], shown: str) -> None:
    """Print the findings, without those that the error that is shown already tells."""
    every = emulator.findings
    findings = [finding for finding in every if not finding.benign]
    for finding in findings:
        is_shown = isinstance(finding, KernelFault) and finding.text.split("\n")[0] in shown
        if not is_shown:
            print_error(finding)
    for unused in emulator.unused_suppressions:
        print_error(f"unused suppression: {unused}")
    benign = len(every) - len(findings)
    suffix = f", {benign} likely intentional" if benign else ""
    hidden = emulator.checks.suppressions.hidden
    suffix += f", {hidden} suppressed" if hidden else ""
    print_error(f"{len(findings)} found by {', '.join(checks)}{suffix}")
