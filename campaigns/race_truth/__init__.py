"""The race check on right kernels and planted races, over graphs and arrays."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable

from ..report import Report
from .graph_inputs import SIZES
from .judging import Verdict, judge_in, programs
from .program import RIGHT, Program


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Run programs in the seed's order; a race missed in the smallest size is no failure."""
    parser = argparse.ArgumentParser(prog="python -m campaigns race_truth")
    parser.add_argument("--only", default="", help="a text that the programs' names contain")
    parser.add_argument("--size", choices=SIZES, action="append", help="these sizes alone")
    parser.add_argument("--show", metavar="NAME", help="print the text of a program")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the programs")
    given = parser.parse_args(options)
    chosen = [each for each in programs() if given.only in each.name]
    report = Report()
    if given.show:
        report.notes += [each.text for each in chosen if each.name == given.show]
        return report
    random.Random(seed).shuffle(chosen)
    verdicts = []
    for each in judge_in(given.jobs, chosen, given.size or SIZES, seconds):
        verdicts.append(each)
        report.count("right programs" if each.program.is_right else "planted races")
        if not each.holds and (each.size != SIZES[0] or each.program.is_right):
            how = "reported wrongly" if each.program.is_right else "missed"
            first = "".join(f"\n{text}" for text in each.reports[:1])
            report.failures.append(f"{each.program.name}, {each.size}: {how}{first}")
    report.notes.append(table(chosen, verdicts))
    return report


def table(chosen: Iterable[Program], verdicts: Iterable[Verdict]) -> str:
    """A row for each class of fault: programs, then found of tried for each size."""
    count = Counter(each.fault for each in chosen)
    held: Counter[tuple[str, str]] = Counter()
    tried: Counter[tuple[str, str]] = Counter()
    for each in verdicts:
        key = each.program.fault, each.size
        tried[key] += 1
        held[key] += each.holds
    lines = [f"{'fault':32}{'programs':>9}" + "".join(f"{size:>14}" for size in SIZES)]
    for fault in sorted(count, key=lambda name: (name == RIGHT, name)):
        cells = []
        for size in SIZES:
            right, all_ = held[fault, size], tried[fault, size]
            cells.append(f"{all_ - right} of {all_}" if fault == RIGHT else f"{right} of {all_}")
        name = "none: false alarms" if fault == RIGHT else f"{fault}: found"
        lines.append(f"{name:40}{count[fault]:>6}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)
