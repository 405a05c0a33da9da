"""Measure cases on a GPU: `python -m campaigns.hardware.measure FOLDER [options]`.

The command needs cuda.bindings, NumPy and this repository. Each set of cases runs in a process of
its own: a kernel that fails breaks its process, and a module can end the driver's assembler. A set
that fails is halved, down to the form or the program at fault.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import cudadrv

from .case import Case, case_of
from .contended import contended_case
from .forms import forms
from .programs import program_case
from .running import run_case
from .stored import Measured

_FORMS_OF_A_CASE: Final = 48
_PROGRAMS_OF_A_SET: Final = 50
_SECONDS_OF_A_SET: Final = 120.0


@dataclass(frozen=True, slots=True)
class Work:
    """A set of cases for one process: forms by name, programs by number, or contended atomics."""

    name: str
    forms: tuple[str, ...] = ()
    programs: tuple[int, ...] = ()
    seed: int = 1

    @property
    def title(self) -> str:
        """The name of its first form or program."""
        return (*self.forms, *(f"program {n}" for n in self.programs), self.name)[0]

    def cases(self) -> list[Case]:
        """Return the cases."""
        if self.programs:
            return [program_case(number, self.seed) for number in self.programs]
        if not self.forms:
            return [contended_case(self.seed)]
        by_name = {form.name: form for form in forms()}
        return [case_of(self.name, [by_name[name] for name in self.forms])]

    def halves(self) -> list[Work]:
        """Return both halves; none of a single form or program."""
        parts = self.forms or self.programs
        if len(parts) < 2:
            return []
        middle = len(parts) // 2
        return [
            Work(f"{self.name}{k}", self.forms[half], self.programs[half], self.seed)
            for k, half in (("a", slice(middle)), ("b", slice(middle, None)))
        ]


def all_work(programs: int, seed: int) -> list[Work]:
    """Return the sets: all forms by their groups, and so many programs."""
    groups: dict[str, list[str]] = {}
    for form in forms():
        groups.setdefault(form.group, []).append(form.name)
    found = []
    for group, names in groups.items():
        for start in range(0, len(names), _FORMS_OF_A_CASE):
            part = tuple(names[start : start + _FORMS_OF_A_CASE])
            found.append(Work(f"{group}{start // _FORMS_OF_A_CASE:02d}", part))
    if programs:
        found.append(Work("programs of contended cells", seed=seed))
    return found + [
        Work(f"programs{start}", (), tuple(range(start, min(start + _PROGRAMS_OF_A_SET, programs))),
             seed)
        for start in range(0, programs, _PROGRAMS_OF_A_SET)
    ]  # fmt: skip


def measured(cases: Sequence[Case]) -> Measured:
    """Run cases on the first device of the driver in use."""
    context = cudadrv.cuda_context_for(0)
    results = tuple(tuple(run_case(context, case)) for case in cases)
    driver = ".".join(map(str, cudadrv.driver_version()))
    return Measured(context.device.name, driver, tuple(cases), results, {})


@dataclass
class _Run:
    """All sets, in processes of their own.

    Attributes:
        deadline: by `time.monotonic`; no process starts after it.
        files: what the processes wrote, by the name of the set.
        failed: the reason why a form or a program has no result, by its name.
    """

    folder: Path
    deadline: float
    files: dict[str, Path] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, work: Work) -> None:
        """Measure a set; halve it if its process fails."""
        if time.monotonic() > self.deadline:
            self.failed[work.name] = "no time was left"
            return
        file = self.folder / f"{work.name}.xz"
        reason = _run_process(work, file)
        if not reason:
            self.files[work.name] = file
        elif halves := work.halves():
            for half in halves:
                self.run(half)
        else:
            self.failed[(*work.forms, *(f"program {n}" for n in work.programs), work.name)[0]] = (
                reason
            )


def _run_process(work: Work, file: Path) -> str:
    """Return why a process failed; "" if it wrote its file."""
    given = json.dumps([work.name, work.forms, work.programs, work.seed])
    command = [sys.executable, "-m", __spec__.name, str(file), "--worker"]
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_SECONDS_OF_A_SET,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it took more than {_SECONDS_OF_A_SET:g} s"
    return "" if done.returncode == 0 else f"{done.returncode}: {done.stderr[-600:]}"


def _work(file: Path) -> None:
    name, names, programs, seed = json.load(sys.stdin)
    measured(Work(name, tuple(names), tuple(programs), seed).cases()).save(file)


def _joined(files: Sequence[Path], failed: dict[str, str]) -> Measured:
    parts = [Measured.load(file) for file in files]
    return Measured(
        parts[0].device, parts[0].driver, tuple(case for part in parts for case in part.cases),
        tuple(result for part in parts for result in part.results), failed,
    )  # fmt: skip


def main() -> int:
    """Measure all forms and some programs; write two files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where forms.xz and programs.xz are written")
    parser.add_argument("--programs", type=int, default=0, help="random programs (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the programs (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=240.0, help="the most time (240)")
    parser.add_argument("--only", default="", help="sets whose name begins with this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _work(given.folder)
        return 0
    started = time.monotonic()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(Path(folder), started + given.seconds)
        chosen = [
            work for work in all_work(given.programs, given.seed)
            if work.name.startswith(given.only)
        ]  # fmt: skip
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(run.run, chosen))
        for name in ("forms", "programs"):
            is_program = name == "programs"
            files = [
                run.files[each] for each in sorted(run.files)
                if each.startswith("programs") == is_program
            ]  # fmt: skip
            if files:
                joined = _joined(files, {} if is_program else run.failed)
                joined.save(given.folder / f"{name}.xz")
                size = (given.folder / f"{name}.xz").stat().st_size
                print(f"{name}: {len(joined.cases)} cases, {size} bytes, {joined.device}")
    for failed, reason in run.failed.items():
        print(f"failed: {failed}: {reason}")
    print(f"{time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
