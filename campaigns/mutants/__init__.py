"""Mutation testing: changes one place of a module at a time, and runs the module's tests.

Cosmic Ray makes the mutants. A mutant that no test fails on is listed as survived; it is an answer
to read, not a failure of the campaign.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from ..report import Report
from .mutant import Mutant, mutants_of
from .results import Results
from .subjects import SUBJECTS
from .testbed import Outcome, Testbed

_ROOT: Final = Path(__file__).parents[2]


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Test mutants of each module in turn, for about so many seconds."""
    parser = argparse.ArgumentParser(prog="python -m campaigns mutants", allow_abbrev=False)
    parser.add_argument(
        "--module", choices=SUBJECTS, action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--count", type=int, help="end after so many mutants of each module")
    parser.add_argument(
        "--results", type=Path, help="append results to this file, and skip mutants that are in it"
    )
    parser.add_argument(
        "--slow", action="store_true", help="run the slow tests too, on what the others let pass"
    )
    given = parser.parse_args(options)
    report, results = Report(), Results(given.results)
    deadline = time.monotonic() + seconds
    with Testbed(_ROOT) as testbed:
        waiting: dict[str, Iterator[Mutant]] = {}
        for name in given.module or SUBJECTS:
            failed = testbed.prepare(name, slow=given.slow)
            if failed is not None:
                report.failures.append(f"{name}: its tests fail without a change:\n{failed}")
            elif time.monotonic() < deadline:
                waiting[name] = mutants_of(testbed.root, SUBJECTS[name].files, seed)
        for turn in count():
            if not waiting or turn == given.count:
                break
            for name in list(waiting):
                if time.monotonic() > deadline:
                    waiting.clear()
                    break
                _test_next(testbed, name, waiting, results, slow=given.slow)
    report.notes += results.table()
    for outcome, number in results.totals().items():
        report.count(outcome, number)
    return report


def _test_next(
    testbed: Testbed,
    name: str,
    waiting: dict[str, Iterator[Mutant]],
    results: Results,
    *,
    slow: bool,
) -> None:
    """Test the next mutant of a module that has no result yet."""
    mutant = next(waiting[name], None)
    if mutant is None:
        del waiting[name]
        return
    outcome = results.known(mutant)
    if outcome is None:
        outcome = testbed.test(name, mutant, slow=slow)
    results.add(name, mutant, outcome)


__all__ = ["Outcome", "run_campaign"]
