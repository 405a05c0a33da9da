"""The emulator's counts beside those of Nsight Compute, on a machine with a GPU and ncu.

`python -m campaigns.counted` runs every kernel once on the emulator and once under ncu, and
prints the numbers that differ, with the reason where one is known; the exit status is 1 if one has
none. `--only WORD...` takes the kernels whose names have one of the words, `--record h200`
keeps what was measured, on which device, for the tests. `--launch` is what runs under ncu.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import cudadrv
from campaigns.counted.comparison import compared, counted
from campaigns.counted.kernels import KERNELS, benchmarks
from campaigns.counted.launching import launches
from campaigns.counted.metrics import FURTHER, QUANTITIES
from campaigns.counted.nsight import SAFE, Values, available, measure
from campaigns.counted.record import write_record
from cudadrv.emulator import Counts

_AT_ONCE = 45  # kernels under one ncu, so that something is known before the end


def _launch(names: set[str]) -> int:
    for name, launch in launches(cudadrv.cuda_context_for(0)):
        if not names or name in names:
            launch()
    return 0


def _compare(mine: dict[str, Counts], theirs: Values) -> int:
    """Print what differs; how many numbers that mean the same do so without a known reason."""
    every = list(compared(mine, theirs))
    different = [each for each in every if each.own != each.measured]
    for each in different:
        if each.quantity.is_same:
            print(f"{each.kernel}: {each}: {each.reason or 'NO KNOWN REASON'}")
        else:
            print(f"{each.kernel}: {each}")
    totals = Counter(each.quantity.name for each in every)
    unequal = Counter(each.quantity.name for each in different)
    for name, total in totals.items():
        print(f"{name}: equal in {total - unequal[name]} of {total} kernels")
    same = [each for each in every if each.quantity.is_same]
    strange = [each for each in different if each.quantity.is_same and not each.reason]
    equal = sum(each.own == each.measured for each in same)
    print(
        f"{equal} of {len(same)} numbers are equal that mean the same, {len(strange)} unexplained"
    )
    return len(strange)


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.counted", description=__doc__)
    parser.add_argument("--launch", nargs="*", metavar="KERNEL")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    parser.add_argument("--record", metavar="DEVICE")
    given = parser.parse_args()
    if given.launch is not None:
        return _launch(set(given.launch))
    every = [*(each.name for each in KERNELS), *(each.kernel for each in benchmarks())]
    names = [name for name in every if any(word in name for word in given.only)]
    mine = counted(set(names))
    wanted = list(dict.fromkeys([*(m for q in QUANTITIES for m in q.metrics), *FURTHER]))
    measure(SAFE, ["empty"])
    asked = available(wanted)
    missing = [metric for metric in wanted if metric not in asked]
    print(f"ncu does not list {', '.join(missing) or 'nothing'}", flush=True)
    theirs: Values = {}
    for start in range(0, len(names), _AT_ONCE):
        theirs |= measure(asked, names[start : start + _AT_ONCE])
        print(f"{len(theirs)} of {len(names)} kernels measured", file=sys.stderr, flush=True)
    if given.record:
        write_record(given.record, theirs)
    unexplained = _compare(mine, theirs)
    print("all that ncu measured, of each kernel: its numbers in the order of")
    print(" ".join(asked))
    for kernel, values in theirs.items():
        print(kernel, *(values.get(metric, "-") for metric in asked))
    return int(unexplained > 0 or len(theirs) < len(names))


if __name__ == "__main__":
    sys.exit(main())
