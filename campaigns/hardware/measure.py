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
from typing import Final, Literal

import cudadrv

from .case import Case, case_of
from .contended import contended_case
from .forms import forms
from .kernels import kernel_cases
from .programs import program_case
from .running import run_case
from .stored import Measured, stored_forms
from .warpgroup import warpgroup_case

_FORMS_OF_A_CASE: Final = 48
_PROGRAMS_OF_A_SET: Final = 50
_KERNELS_OF_A_SET: Final = 4
_SECONDS_OF_A_SET: Final = 120.0


Kind = Literal["forms", "kernels", "programs", "warpgroup", "contended"]


@dataclass(frozen=True, slots=True)
class Work:
    """A set of cases for one process.

    Attributes:
        name: of its file.
        kind: of its cases.
        parts: names of forms or kernels, or numbers of programs.
        seed: of the programs.
    """

    name: str
    kind: Kind
    parts: tuple[str, ...]
    seed: int

    @property
    def title(self) -> str:
        """Its first form or program."""
        is_named = self.kind in ("forms", "kernels")
        return self.parts[0] if is_named else f"{self.kind} {self.parts[0]}"

    def cases(self) -> list[Case]:
        """Return the cases."""
        if self.kind == "forms":
            by_name = {form.name: form for form in forms()}
            return [case_of(self.name, [by_name[name] for name in self.parts])]
        if self.kind == "kernels":
            return [kernel_cases()[name] for name in self.parts]
        if self.kind == "contended":
            return [contended_case(int(number)) for number in self.parts]
        make = program_case if self.kind == "programs" else warpgroup_case
        return [make(int(number), self.seed) for number in self.parts]

    def halves(self) -> list[Work]:
        """Return both halves; none of a single form or program."""
        if len(self.parts) < 2:
            return []
        middle = len(self.parts) // 2
        return [
            Work(f"{self.name}{k}", self.kind, self.parts[half], self.seed)
            for k, half in (("a", slice(middle)), ("b", slice(middle, None)))
        ]


def all_work(programs: int, seed: int, stored: frozenset[str] = frozenset()) -> list[Work]:
    """Return the sets: forms by their groups, all kernels, and so many programs.

    Args:
        programs: random programs.
        seed: of them.
        stored: names of forms to leave out.
    """
    groups: dict[str, list[str]] = {}
    for form in forms():
        if form.name not in stored:
            groups.setdefault(form.group, []).append(form.name)
    found: list[Work] = []
    for group, names in groups.items():
        found += _sets(group, "forms", names, _FORMS_OF_A_CASE, seed)
    found += _sets("kernels", "kernels", list(kernel_cases()), _KERNELS_OF_A_SET, seed)
    numbers = [str(number) for number in range(programs)]
    found += _sets("programs", "programs", numbers, _PROGRAMS_OF_A_SET, seed)
    found += _sets("warpgroup", "warpgroup", numbers[: programs // 10], _PROGRAMS_OF_A_SET, seed)
    return found + _sets("contended", "contended", [str(seed)] if programs else [], 1, seed)


def _sets(name: str, kind: Kind, parts: Sequence[str], size: int, seed: int) -> list[Work]:
    return [
        Work(f"{name}{start // size:02d}", kind, tuple(parts[start : start + size]), seed)
        for start in range(0, len(parts), size)
    ]


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
        files: what the processes wrote, by the kind and the name of the set.
        failed: the reason why a form or a program has no result, by its name.
    """

    folder: Path
    deadline: float
    files: dict[tuple[Kind, str], Path] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, work: Work) -> None:
        """Measure a set; halve it if its process fails."""
        if time.monotonic() > self.deadline:
            self.failed[work.name] = "no time was left"
            return
        file = self.folder / f"{work.name}.xz"
        reason = _run_process(work, file)
        if not reason:
            self.files[work.kind, work.name] = file
        elif halves := work.halves():
            for half in halves:
                self.run(half)
        else:
            self.failed[work.title] = reason


def _run_process(work: Work, file: Path) -> str:
    """Return why a process failed; "" if it wrote its file."""
    given = json.dumps([work.name, work.kind, work.parts, work.seed])
    command = [sys.executable, "-m", __spec__.name, str(file), "--worker"]
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=_SECONDS_OF_A_SET,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {_SECONDS_OF_A_SET:g} s"
    return "" if done.returncode == 0 else f"{done.returncode}: {done.stderr[-600:]}"


def _work(file: Path) -> None:
    name, kind, parts, seed = json.load(sys.stdin)
    measured(Work(name, kind, tuple(parts), seed).cases()).save(file)


def _joined(files: Sequence[Path], failed: dict[str, str]) -> Measured:
    parts = [Measured.load(file) for file in files]
    return Measured(
        parts[0].device,
        parts[0].driver,
        tuple(case for part in parts for case in part.cases),
        tuple(result for part in parts for result in part.results),
        failed,
    )


def main() -> int:
    """Measure all forms, all kernels and some programs; write three files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "folder", type=Path, help="where forms.xz, kernels.xz and programs.xz are written"
    )
    parser.add_argument("--programs", type=int, default=0, help="random programs (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the programs (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=240.0, help="the most time (240)")
    parser.add_argument("--only", default="", help="sets whose kind or name begins with this")
    parser.add_argument("--new", action="store_true", help="no forms with stored results")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _work(given.folder)
        return 0
    started = time.monotonic()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(Path(folder), started + given.seconds)
        stored = stored_forms() if given.new else frozenset[str]()
        chosen = [
            work
            for work in all_work(given.programs, given.seed, stored)
            if work.kind.startswith(given.only) or work.name.startswith(given.only)
        ]
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(run.run, chosen))
        for name in ("forms", "kernels", "programs"):
            files = [
                file
                for (kind, _), file in sorted(run.files.items())
                if (kind if kind in ("forms", "kernels") else "programs") == name
            ]
            if files:
                joined = _joined(files, run.failed if name == "forms" else {})
                joined.save(given.folder / f"{name}.xz")
                size = (given.folder / f"{name}.xz").stat().st_size
                print(f"{name}: {len(joined.cases)} cases, {size} bytes, {joined.device}")
    for failed, reason in run.failed.items():
        print(f"failed: {failed}: {reason}")
    print(f"{time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
