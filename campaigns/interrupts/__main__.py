"""`python -m campaigns.interrupts`: interrupts at random moments alone.

For a GPU, two minutes of copies and captures:

    CUDADRV_DRIVER=cuda python -m campaigns.interrupts --seconds 120 --only load capture
"""

from __future__ import annotations

import argparse
import sys
import time

from ..report import Outcome
from .moments import attack_moments
from .operations import LONG


def main() -> int:
    """Interrupt operations at random moments, and print what was tried and what did not hold."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.interrupts", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    parser.add_argument("--interrupts", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="operations with this in their name")
    given = parser.parse_args()
    names = [name for name in LONG if not given.only or any(part in name for part in given.only)]
    outcome = Outcome()
    until = time.monotonic() + given.seconds
    attack_moments(outcome, until, given.seed, names=names, most=given.interrupts)
    print(outcome)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
