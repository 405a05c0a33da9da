"""`python -m campaigns.order_faults`: what finds each program; 1 if a twin fails."""

from __future__ import annotations

import argparse
import sys

from tests.campaigns.test_order_faults import SEEDS_TO_FIND

from .bench import run
from .programs import PROGRAMS


def main() -> int:
    """Print a line a program."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.order_faults")
    parser.add_argument("--seeds", type=int, default=500, help="of the corrected twins")
    seeds = parser.parse_args().seeds
    failed = 0
    for program in PROGRAMS:
        late = "late" if not run(program, False, "late").is_clean else "-"
        finding = [s for s in range(SEEDS_TO_FIND) if not run(program, False, "random", s).is_clean]
        first = f"seed {finding[0]}" if finding else "no seed"
        bad = [s for s in range(seeds) if not run(program, True, "random", s).is_clean]
        failed += bool(bad) + (late == "-" and not finding)
        print(
            f"{program.__name__:42} {late:5} {first:8} {len(finding):3} of {SEEDS_TO_FIND} seeds; "
            f"its twin fails with {len(bad)} of {seeds}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
