"""`python -m campaigns.race_truth [--seconds N] [--only TEXT] [--size SIZE] [--jobs N]`.

Runs the programs of the ground truth and prints a table by class of fault and size of input; ends
with status 1 if a fault was missed above the smallest size, or a right program was accused.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable

from .graph_inputs import SIZES
from .judging import Verdict, judge_in, programs
from .program import RIGHT, Program


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


def main() -> int:
    """Run, print, and tell by the status whether all holds."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.race_truth")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--only", default="", help="a text that the programs' names contain")
    parser.add_argument("--size", choices=SIZES, action="append", help="these sizes alone")
    parser.add_argument("--seed", type=int, help="take the programs in a random order")
    parser.add_argument("--show", metavar="NAME", help="print the text of a program")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the programs")
    given = parser.parse_args()
    chosen = [each for each in programs() if given.only in each.name]
    if given.show:
        print("\n".join(each.text for each in chosen if each.name == given.show))
        return 0
    if given.seed is not None:
        random.Random(given.seed).shuffle(chosen)
    verdicts, wrong = [], 0
    for each in judge_in(given.jobs, chosen, given.size or SIZES, given.seconds):
        verdicts.append(each)
        if each.holds or (each.size == SIZES[0] and not each.program.is_right):
            continue
        wrong += 1
        print(
            f"{'accused' if each.program.is_right else 'missed'}: {each.program.name}, {each.size}"
        )
        print("\n".join(each.reports[:1]), flush=True)
    print(table(chosen, verdicts))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
