"""The emulator's checks beside compute-sanitizer's tools, on a machine with a GPU.

`python -m campaigns.sanitized` takes programs of the ground truth, some of each class of fault
and right twins, runs each on the GPU in a process of its own under each tool, and on the emulator
with its checks. It prints by class what both find, only one or neither; the exit status is 1 if
compute-sanitizer found something in a program in which the checks found nothing, unless it is known
to be a false alarm. `--launch` and `--check` are what these processes run.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from campaigns.race_truth.graph_inputs import SIZES
from campaigns.race_truth.judging import programs
from campaigns.sanitized import one_program, processes
from campaigns.sanitized.processes import Judged
from campaigns.sanitized.selection import chosen
from campaigns.sanitized.side_by_side import details, false_alarm, side, table
from campaigns.sanitized.tool_report import TOOLS

_SHOWN = 6  # outputs that told nothing and are printed whole
Work = Callable[[], None]


def _work(judged: Sequence[Judged], tools: Sequence[str], size: str, each_s: float) -> list[Work]:
    """What is to be done; what a program's first tool compiled is in the cache for the next."""
    return [
        *(partial(processes.check, one, size, each_s) for one in judged),
        *(partial(processes.sanitize, one, tool, size, each_s) for tool in tools for one in judged),
    ]


def _run(work: Sequence[Work], jobs: int, seconds: float) -> None:
    """So many at once; what has not begun after these seconds is left."""
    end = time.monotonic() + seconds

    def do(one: Work) -> None:
        if time.monotonic() < end:
            one()

    with ThreadPoolExecutor(jobs) as pool:
        for count, _ in enumerate(pool.map(do, work), 1):
            if count % 50 == 0:
                print(f"{count} of {len(work)} processes", file=sys.stderr, flush=True)


def _print_trouble(judged: Sequence[Judged]) -> int:
    """What is not known, with the first outputs whole; how many."""
    count = 0
    for one in judged:
        if one.trouble:
            count += 1
            print(f"emulator: {one.program.name}: {one.trouble}")
        for tool, report in one.theirs.items():
            if report.trouble:
                count += 1
                print(f"{tool}: {one.program.name}: {report.trouble}")
                if count <= _SHOWN:
                    print(report.output)
    return count


def _keep(path: Path, judged: Sequence[Judged]) -> None:
    parts = [
        f"##### {one.program.name} {tool} ended={report.ended}\n{report.output}"
        for one in judged
        for tool, report in one.theirs.items()
    ]
    path.write_text("\n".join(parts))


def main() -> int:
    """Run, print, and tell by the status whether ours finds what theirs does."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.sanitized", description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--tool", choices=("all", *TOOLS), default="all")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=40, help="seconds for a process")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so long")
    parser.add_argument("--seed", type=int, default=1, help="another choice of programs")
    parser.add_argument("--only", default="", help="a text that the programs' names contain")
    parser.add_argument("--raw", type=Path, help="a file for all that was printed")
    parser.add_argument("--launch", metavar="NAME")
    parser.add_argument("--check", metavar="NAME")
    given = parser.parse_args()
    if given.launch or given.check:
        if hasattr(signal, "alarm"):
            signal.alarm(int(given.timeout))
        run = one_program.launch if given.launch else one_program.check
        run(given.launch or given.check, given.size)
        return 0
    tools = TOOLS if given.tool == "all" else (given.tool,)
    every = [each for each in programs() if given.only in each.name]
    judged = [Judged(each) for each in chosen(every, given.programs, given.seed)]
    random.Random(given.seed).shuffle(judged)  # those that hang are not all at once
    _run(_work(judged, tools, given.size, given.timeout), given.jobs, given.seconds)
    if given.raw:
        _keep(given.raw, judged)
    unknown = _print_trouble(judged)
    for line in details(judged):
        print(line)
    print(table(judged))
    made = sum(len(one.theirs) for one in judged)
    print(f"{made} of {len(judged) * len(tools)} runs of a tool, {unknown} told nothing")
    theirs = [one for one in judged if side(one) == "only theirs"]
    worse = [one.program.name for one in theirs if not false_alarm(one)]
    print(f"only compute-sanitizer finds something in {len(worse)}: {' '.join(worse)}")
    return int(bool(worse or unknown or made < len(judged) * len(tools)))


if __name__ == "__main__":
    sys.exit(main())
