"""Counts, mismatches and worst errors: `python -m tests.emulator.differential.report`."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field

from cudadrv import CudadrvError
from tests.emulator.differential.case import Bound, Case, Source
from tests.emulator.differential.comparison import Comparison, compare
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import machine, run
from tests.emulator.differential.recording import Recording, path_of


@dataclass
class Group:
    """What came out for a group of instructions."""

    exact: int = 0
    approximate: int = 0
    rows: int = 0
    compared: int = 0
    mismatches: list[str] = field(default_factory=list)


def _compared(source: Source, recording: Recording) -> list[tuple[Case, Comparison]]:
    found = []
    with (
        machine() as context,
        context.new_stream() as stream,
        context.load_module(recording.ptx) as module,
    ):
        for case in source.cases:
            try:
                got = run(module, stream, case)
            except CudadrvError as error:
                found.append((case, Comparison((str(error).splitlines()[0],))))
                break
            found.append((case, compare(case, recording.results[case.name], got)))
    return found


def _stated(bound: Bound) -> str:
    parts = [
        f"{value:g} {unit}"
        for value, unit in (
            (bound.ulp, "ulp"),
            (bound.relative, "relative"),
            (bound.absolute, "absolute"),
        )
        if value
    ]
    return " or ".join(parts)


def main() -> None:
    groups: dict[str, Group] = defaultdict(Group)
    errors: list[tuple[str, Comparison, Bound]] = []
    origins = set()
    for source in sources():
        if not path_of(source).exists():
            print(f"{source.name}: no GPU's results yet\n")
            continue
        recording = Recording.load(path_of(source))
        origins.add(
            f"{recording.gpu}, driver API {recording.driver}, NVRTC {recording.nvrtc},"
            f" {recording.target}"
        )
        for case, comparison in _compared(source, recording):
            group = groups[case.group]
            group.compared += comparison.compared
            group.rows += max(len(case.rows), 1)
            if case.bound is None:
                group.exact += 1
            else:
                group.approximate += 1
                errors.append((f"{source.name}/{case.name}", comparison, case.bound))
            if comparison.problems:
                group.mismatches.append(f"{source.name}/{case.name}: {comparison.problems[0]}")
    _print(groups, errors, origins)


def _print(
    groups: dict[str, Group], errors: list[tuple[str, Comparison, Bound]], origins: set[str]
) -> None:
    print(f"Recorded on {'; '.join(sorted(origins))}")
    print(f"Compared with {os.environ.get('CUDADRV_DRIVER', 'emulator')}\n")
    print(f"{'group':14}{'exact':>7}{'approx.':>9}{'results':>9}{'elements':>10}{'mismatches':>12}")
    total = Group()
    for name, group in sorted(groups.items()):
        _print_group(name, group)
        total.exact += group.exact
        total.approximate += group.approximate
        total.rows += group.rows
        total.compared += group.compared
        total.mismatches += group.mismatches
    _print_group("all", total)
    print(f"\n{'approximate function':40}{'worst ulp':>14}{'of bound':>10}  bound")
    for name, comparison, bound in errors:
        share = f"{comparison.worst_share:.0%}"
        print(f"{name:40}{comparison.worst_ulp:14.6g}{share:>10}  {_stated(bound)}")
    for case in (case for source in sources() for case in source.cases):
        for row in case.open_rows:
            print(f"not compared, open in PTX: {case.name}, {row}")
    for line in total.mismatches:
        print(f"mismatch: {line}")


def _print_group(name: str, group: Group) -> None:
    print(
        f"{name:14}{group.exact:7}{group.approximate:9}{group.rows:9}{group.compared:10}"
        f"{len(group.mismatches):12}"
    )


if __name__ == "__main__":
    main()
