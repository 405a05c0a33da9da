"""`python -m campaigns.random_ptx --seconds 3600 [--seed N]`: exit status 1 if anything failed."""

from __future__ import annotations

import argparse
import sys
import warnings

from campaigns.random_ptx.search import search


def main() -> int:
    """Search, and print what was tried and what failed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("error")
    report = search(given.seconds, given.seed)
    print(*report.failures, report, sep="\n\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
