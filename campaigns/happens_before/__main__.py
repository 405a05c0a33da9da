"""`python -m campaigns.happens_before [--seconds N] [--seed S]`: more kernels.

Prints each kernel about which the check and the model do not agree, made as small as it gets; ends
with status 1 if there was any. One in thousands is known: of three threads as far apart, which
read a place, the check keeps two, and a write may be behind these alone (docs/checks.md).
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from .judging import complaint_about
from .operations import Kernel, random_kernel


def smallest(kernel: Kernel) -> Kernel:
    """Without the operations that are not needed for the complaint."""
    kind = complaint_about(kernel)[:12]
    at = 0
    while at < len(kernel.operations):
        gone = kernel.operations[at]
        operations = tuple(
            each
            for number, each in enumerate(kernel.operations)
            if number != at and not (gone.count and each.count and gone.word == each.word)
        )
        less = Kernel(kernel.geometry, operations, kernel.times)
        if operations and complaint_about(less)[:12] == kind:
            kernel = less
        else:
            at += 1
    return kernel


def main() -> int:
    """Run, print, and tell by the status whether all agree."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.happens_before")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end, count, wrong = time.monotonic() + given.seconds, 0, 0
    while time.monotonic() < end:
        seed = f"{given.seed} {count}"
        kernel = random_kernel(random.Random(seed))
        count += 1
        if complaint_about(kernel):
            wrong += 1
            kernel = smallest(kernel)
            print(f"seed {seed!r}: {complaint_about(kernel)}")
            print(f"  {kernel.geometry}, {kernel.times} times")
            for number, each in enumerate(kernel.operations):
                print(f"  {number} {each}", flush=True)
    print(f"{count} kernels, {wrong} without agreement")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
