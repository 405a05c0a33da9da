"""The emulator's counts beside those of Nsight Compute, on a machine with a GPU and ncu.

Every kernel runs once on the emulator and once under ncu; a number that differs without a known
reason is a failure.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from typing import Final

from cudadrv.emulator import Counts

from ..report import Report
from .comparison import compared, counted
from .kernels import KERNELS, benchmarks
from .metrics import FURTHER, QUANTITIES
from .nsight import SAFE, Values, available, measure
from .record import write_record

_AT_ONCE: Final = 45  # kernels under one ncu, so that something is known before the end
ROOM: Final = "campaigns.counted"


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Run every kernel, in the seed's order; no ncu is started when the time is over."""
    parser = argparse.ArgumentParser(prog="python -m campaigns counted")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="kernels by name")
    parser.add_argument("--record", metavar="DEVICE", help="store what was measured, for the tests")
    given = parser.parse_args(options)
    report, end = Report(), time.monotonic() + seconds
    every = [*(each.name for each in KERNELS), *(each.kernel for each in benchmarks())]
    names = [name for name in every if any(word in name for word in given.only)]
    random.Random(seed).shuffle(names)
    wanted = list(dict.fromkeys([*(m for q in QUANTITIES for m in q.metrics), *FURTHER]))
    measure(SAFE, ["empty"], ROOM)
    asked = available(wanted)
    missing = [metric for metric in wanted if metric not in asked]
    report.notes.append(f"ncu does not list {', '.join(missing) or 'nothing'}")
    theirs: Values = {}
    tried: list[str] = []
    for start in range(0, len(names), _AT_ONCE):
        tried += names[start : start + _AT_ONCE]
        theirs |= measure(asked, names[start : start + _AT_ONCE], ROOM)
        if time.monotonic() > end:
            break
    report.failures += [f"{name}: not measured" for name in tried if name not in theirs]
    if given.record:
        write_record(given.record, theirs)
    _compare(counted(set(theirs)), theirs, report)
    report.notes.append(f"all that ncu measured: kernel, then {' '.join(asked)}")
    for kernel, values in theirs.items():
        report.notes.append(" ".join([kernel, *(str(values.get(key, "-")) for key in asked)]))
    return report


def _compare(mine: dict[str, Counts], theirs: Values, report: Report) -> None:
    """Note what differs; a number that means the same must be equal or have a known reason."""
    every = list(compared(mine, theirs))
    different = [each for each in every if each.own != each.measured]
    for each in different:
        if each.quantity.is_same and not each.reason:
            report.failures.append(f"{each.kernel}: {each}: no known reason")
        else:
            reason = f": {each.reason}" if each.quantity.is_same else ""
            report.notes.append(f"{each.kernel}: {each}{reason}")
    for each in every:
        report.count(f"numbers: {each.quantity.name}")
    unequal = Counter(each.quantity.name for each in different)
    report.notes += [f"{name}: different in {count} kernels" for name, count in unequal.items()]
