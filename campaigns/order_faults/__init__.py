"""Programs that are wrong in some orders only, each beside its corrected twin.

`python -m campaigns.order_faults.gpu` runs them on a GPU.
"""

from __future__ import annotations

import random
import time
from typing import Final

from ..report import Report
from .bench import run
from .programs import PROGRAMS

SEEDS_TO_FIND: Final = 50
"""Seeds of which one must find a wrong program."""
_SEEDS_AT_ONCE: Final = 10


def run_campaign(seconds: float, seed: int) -> Report:
    """Look for what finds each wrong program; then run the twins with one seed after another."""
    report, end = Report(), time.monotonic() + seconds
    chosen = list(PROGRAMS)
    random.Random(seed).shuffle(chosen)
    for program in chosen:
        late = not run(program, False, "late").is_clean
        found = [s for s in range(SEEDS_TO_FIND) if not run(program, False, "random", s).is_clean]
        report.count("wrong programs")
        word, first = ("late", found[0]) if late else ("-", found[0] if found else "none")
        report.notes.append(
            f"{program.__name__:42} {word:5} first seed {first}, {len(found)} of {SEEDS_TO_FIND}"
        )
        if not late and not found:
            report.failures.append(f"{program.__name__}: nothing finds it")
        if time.monotonic() > end:
            return report
    number = seed
    while time.monotonic() < end:
        for program in chosen:
            for each in range(number, number + _SEEDS_AT_ONCE):
                report.count("corrected twins")
                if not run(program, True, "random", each).is_clean:
                    report.failures.append(f"{program.__name__}: its twin fails with seed {each}")
        number += _SEEDS_AT_ONCE
    return report
