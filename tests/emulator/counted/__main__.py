"""The emulator's counts beside those of Nsight Compute, on a machine with a GPU and ncu.

`python -m tests.emulator.counted` runs every kernel once on the emulator and once under ncu, and
prints the numbers that differ; `--only WORD...` takes the kernels whose names have one of the
words, `--json FILE` writes all numbers. `--launch` is what runs under ncu.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import cudadrv
from cudadrv import emulator
from cudadrv.emulator import Counts
from tests.emulator.counted.kernels import KERNELS, benchmarks
from tests.emulator.counted.launching import launches
from tests.emulator.counted.metrics import FURTHER, QUANTITIES
from tests.emulator.counted.nsight import SAFE, Values, available, measure

_AT_ONCE = 45  # kernels under one ncu, so that something is known before the end


def counted(names: set[str]) -> dict[str, Counts]:
    """What the emulator counts of each kernel."""
    found: dict[str, Counts] = {}
    with emulator.session():
        for name, launch in launches(cudadrv.cuda_context_for(0)):
            if name in names:
                with emulator.counting() as counters:
                    launch()
                found[name] = counters[name]
    return found


def _launch(names: set[str]) -> int:
    for name, launch in launches(cudadrv.cuda_context_for(0)):
        if not names or name in names:
            launch()
    return 0


def _compare(mine: dict[str, Counts], theirs: Values) -> int:
    """Print what differs; how many numbers that mean the same do."""
    equal: dict[str, int] = {}
    wrong = 0
    for kernel, counts in mine.items():
        measured = theirs.get(kernel, {})
        said = []
        for quantity in QUANTITIES:
            have = [measured[metric] for metric in quantity.metrics if metric in measured]
            if not have:
                continue
            own, other = quantity.read(counts), sum(have)
            if own == other:
                equal[quantity.name] = equal.get(quantity.name, 0) + 1
                continue
            wrong += quantity.is_same
            said.append(f"{'' if quantity.is_same else '~'}{quantity.name} {own} ncu {other}")
        print(f"{kernel}: {'; '.join(said) or 'equal'}")
    for quantity in QUANTITIES:
        print(f"equal in {equal.get(quantity.name, 0):3} kernels: {quantity.name}")
    return wrong


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulator.counted", description=__doc__)
    parser.add_argument("--launch", nargs="*", metavar="KERNEL")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    parser.add_argument("--json", type=Path, metavar="FILE")
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
    if given.json is not None:
        given.json.write_text(json.dumps(theirs))
    wrong = _compare(mine, theirs)
    print("all that ncu measured, of each kernel: its numbers in the order of")
    print(" ".join(asked))
    for kernel, values in theirs.items():
        print(kernel, *(values.get(metric, "-") for metric in asked))
    print(f"{wrong} numbers differ that mean the same")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
