"""`python -m campaigns`: attacks on the library; exit status 1 if anything did not hold."""

from __future__ import annotations

import argparse
import sys

from .catalogue import CAMPAIGNS, run


def main() -> int:
    """Run the campaigns, one after the other, and print what was tried and what held."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=main.__doc__)
    parser.add_argument("--campaign", choices=sorted(CAMPAIGNS), help="this one alone")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each campaign")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = 0
    for name in [given.campaign] if given.campaign else sorted(CAMPAIGNS):
        outcome = run(name, given.seconds, given.seed)
        failed += len(outcome.failures)
        print(f"{name}:\n{outcome}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
