"""``explore``: run a program under many orders, and find the late operations that break it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ptx.shown_path import shown_path

from ..emulator.checks import Checks
from ..emulator.timeline.schedule import Schedule
from .command_line import Commands, add_command, positive, program_name
from .output import print_error, print_text
from .user_files import why_no_file

_DRIVER = "emulator:2"
_SHOWN = 40
_LINES_AROUND = 6
_LINES_OF_ERRORS = 24


@dataclass(frozen=True, slots=True)
class _RanOperation:
    """An operation that ran: "T.N", the Nth of the Tth timeline; its description; the call site."""

    name: str
    what: str
    call_site: str

    @property
    def key(self) -> tuple[int, ...]:
        """Return its position in the order of the calls."""
        return tuple(map(int, self.name.split(".")))


@dataclass(frozen=True, slots=True)
class _Run:
    """The end of the program in one order; tests print times, so only their status counts."""

    status: int
    output: str
    warned: bool
    errors: str
    steps: tuple[_RanOperation, ...]

    def differs(self, passing: _Run) -> bool:
        """Return True if the status or the output differs from the other's."""
        return self.warned or (self.status, self.output) != (passing.status, passing.output)


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "explore",
        "Run a script or a test on the emulator in many orders, and find the operations that "
        "break it.",
        example="--seeds 50 test_file.py::test",
        statuses={
            "0": "no order changes the result",
            "1": "an order changes the result",
            "2": "the program fails without another order, or the command line is wrong",
        },
    )
    parser.add_argument("--seeds", type=positive, default=20, metavar="N", help="default: 20")
    parser.add_argument(
        "--checks",
        default="",
        metavar="NAMES",
        help=f"check as well: some of {','.join(Checks.NAMES)}",
    )
    parser.add_argument("target", metavar="SCRIPT_OR_TEST", help="file.py, or test_file.py::test")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    parser.set_defaults(
        run=lambda options: run_explore(
            options.target, options.arguments, options.seeds, options.checks
        )
    )


def run_explore(target: str, arguments: Sequence[str], seeds: int, checks: str) -> int:
    """Print the orders in which a script or a test fails, and why; return 1 if there are any.

    `checks` are names with commas: their findings in an order count as its failure.
    """
    program = _ExploredProgram(target, arguments, checks)
    misplaced = [word for word in arguments if word.partition("=")[0] in ("--seeds", "--checks")]
    if program.is_test and misplaced:
        print_error(
            f"{misplaced[0]} goes before the test: python -m cudadrv explore {misplaced[0]} … "
            f"{target}"
        )
        return 2
    file = target.partition("::")[0]
    if why := "" if os.path.isdir(file) else why_no_file(file):
        print_error(f"{program_name()} explore: {target}: {why}")
        return 2
    passing = program.run("held:")
    if passing.status or passing.warned:
        print_text(f"the program fails without another order, with status {passing.status}:")
        print_text(_end_of(passing.errors))
        return 2
    orders = ("late", *(f"random:{seed}" for seed in range(seeds)))
    failing = [order for order in orders if program.run(order).differs(passing)]
    print_text(f"{len(failing)} of {seeds + 1} orders change the result")
    if not failing:
        return 0
    print_text(f"  {', '.join(failing[:_SHOWN])}{' ...' if len(failing) > _SHOWN else ''}")
    first = program.run(failing[0])
    print_text(f"\n{Schedule.VARIABLE}={failing[0]}:\n{_end_of(first.errors or first.output)}")
    late = _fewest(program, passing, _suspects(first, passing))
    if late is None:
        print_text("no small set of operations breaks it")
        return 1
    _explain(program, passing, late)
    return 1


class _ExploredProgram:
    """A script, or a test for pytest, to be run in a process of its own."""

    def __init__(self, target: str, arguments: Sequence[str], checks: str) -> None:
        name = Path(target.partition("::")[0]).name
        self.is_test = "::" in target or name.startswith("test_") or not name.endswith(".py")
        driver = os.environ.get("CUDADRV_DRIVER", "").strip()
        self._environment = {"CUDADRV_DRIVER": driver if driver[:8] == "emulator" else _DRIVER}
        head: list[str] = []
        if self.is_test:
            # The checks of an ini file would fail every order.
            head = ["-m", "pytest", "-q", "-x", "-o", f"cuda_check={checks}"]
        elif checks:
            devices = self._environment["CUDADRV_DRIVER"].partition(":")[2] or "1"
            head = ["-m", "cudadrv", "check", "--checks", checks, "--devices", devices]
        if checks:
            self._environment[Checks.VARIABLE] = checks
        self._command = [sys.executable, *head, target, *arguments]

    def repeated_by(self, order: str) -> str:
        """Return the command line of a shell that runs the program in an order."""
        names = {**self._environment, Schedule.VARIABLE: order}
        assignments = [f"{name}={shlex.quote(value)}" for name, value in names.items()]
        return " ".join([*assignments, "python", shlex.join(self._command[1:])])

    def run(self, order: str) -> _Run:
        """Run the program in an order."""
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace")
            environment = {
                **os.environ,
                **self._environment,
                Schedule.VARIABLE: order,
                Schedule.TRACE_VARIABLE: str(trace),
            }
            process = subprocess.run(
                self._command,
                env=environment,
                capture_output=True,
                text=True,
                errors="backslashreplace",
                check=False,
            )
            text = trace.read_text(encoding="utf-8") if trace.exists() else ""
        steps = tuple(map(_step, filter(None, text.split("\n"))))
        output = "" if self.is_test else process.stdout
        errors = process.stdout + process.stderr if self.is_test else process.stderr
        return _Run(process.returncode, output, "OrderWarning" in errors, errors, steps)


def _step(line: str) -> _RanOperation:
    text, _, call_site = line.partition("\t")
    name, _, text = text.partition(" ")
    return _RanOperation(name, text, call_site)


def _suspects(failing: _Run, passing: _Run) -> Iterator[list[str]]:
    """Return the operations that may be too late: first those that ran after a later call's."""
    late, newest = [], (-1, -1)
    for step in failing.steps:
        if step.key < newest:
            late.append(step.name)
        else:
            newest = max(newest, (step.key[0], step.key[1]))
    if late:
        yield late
    yield [step.name for step in passing.steps]


def _fewest(
    program: _ExploredProgram, passing: _Run, suspects: Iterable[list[str]]
) -> tuple[str, ...] | None:
    """Return the fewest suspects that break the program when only they run late.

    Parts are left out as long as the rest still breaks it (Zeller, "Simplifying and Isolating
    Failure-Inducing Input").
    """

    def breaks(names: list[str]) -> bool:
        return program.run(_holding(names)).differs(passing)

    for names in suspects:
        if not breaks(names):
            continue
        part = (len(names) + 1) // 2
        while names and part:
            breaking = None
            for start in range(0, len(names), part):
                fewer = names[:start] + names[start + part :]
                if fewer and breaks(fewer):
                    breaking = fewer
                    break
            if breaking is None:
                part = part // 2
            else:
                names, part = breaking, min(part, (len(breaking) + 1) // 2)
        return tuple(names)
    return None


def _holding(names: Iterable[str]) -> str:
    return f"held:{','.join(names)}"


def _explain(program: _ExploredProgram, passing: _Run, late: Sequence[str]) -> None:
    """Print the operations that were late, and both timelines side by side."""
    broken = program.run(_holding(late))
    steps = {step.name: step for step in (*passing.steps, *broken.steps)}
    print_text(f"it breaks when only {len(late)} of {len(passing.steps)} operations run late:")
    for step in (steps[name] for name in late if name in steps):
        call_site = shown_path(step.call_site) or "an unknown place"
        print_text(f"  {step.name} {step.what}, queued at {call_site}")
    rows = [
        (
            "" if right is None else f"{right.name} {right.what}",
            "" if wrong is None else f"{wrong.name} {wrong.what}",
            "*" if wrong is not None and wrong.name in late else "",
        )
        for right, wrong in zip_longest(passing.steps, broken.steps)
    ]
    differing = [index for index, (right, wrong, _) in enumerate(rows) if right != wrong]
    first = max((differing[0] if differing else 0) - _LINES_AROUND, 0)
    last = (differing[-1] if differing else 0) + _LINES_AROUND
    shown_rows = rows[first : min(last, first + _SHOWN)]
    width = max([len(right) for right, _, _ in shown_rows], default=0) + 4
    print_text(f"\n  {'passing'.ljust(width)}failing")
    for right, wrong, mark in shown_rows:
        print_text(f"  {right.ljust(width)}{wrong} {mark}".rstrip())
    print_text(f"\nto repeat it: {program.repeated_by(_holding(late))}")


def _end_of(text: str) -> str:
    lines = text.rstrip().split("\n")
    return "\n".join(f"  {line}" for line in lines[-_LINES_OF_ERRORS:])
