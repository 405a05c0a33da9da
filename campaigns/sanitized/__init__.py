"""The emulator's checks beside compute-sanitizer's tools, on a machine with a GPU.

Programs of the ground truth run on the GPU under each tool and on the emulator with its checks,
each in a process of its own. Some of each class of fault are chosen, and right programs. A program
in which only compute-sanitizer finds something is a failure, unless it is known to be a false
alarm.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ..race_truth.graph_inputs import SIZES
from ..race_truth.judging import programs
from ..report import Report
from . import processes
from .processes import Judged
from .selection import chosen
from .side_by_side import details, false_alarm, side, table
from .tool_report import TOOLS

Work = Callable[[], None]


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Compare the programs that the seed chooses; none begins when the time is over."""
    parser = argparse.ArgumentParser(prog="python -m campaigns sanitized")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--tool", choices=("all", *TOOLS), default="all")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=40, help="seconds for a process")
    parser.add_argument("--only", default="", help="a text that the programs' names contain")
    parser.add_argument("--raw", type=Path, help="a file for all that was printed")
    given = parser.parse_args(options)
    tools = TOOLS if given.tool == "all" else (given.tool,)
    every = [each for each in programs() if given.only in each.name]
    judged = [Judged(each) for each in chosen(every, given.programs, seed)]
    random.Random(seed).shuffle(judged)  # those that hang are not all at once
    _run(_work(judged, tools, given.size, given.timeout), given.jobs, seconds)
    if given.raw:
        _keep(given.raw, judged)
    report = Report()
    for one in judged:
        report.count("programs")
        report.count("runs of a tool", len(one.theirs))
        if one.trouble:
            report.failures.append(f"emulator: {one.program.name}: {one.trouble}")
        for tool, each in one.theirs.items():
            if each.trouble:
                report.failures.append(f"{tool}: {one.program.name}: {each.trouble}\n{each.output}")
        if side(one) == "only theirs" and not false_alarm(one):
            report.failures.append(f"{one.program.name}: only compute-sanitizer finds something")
    missing = len(judged) * len(tools) - report.cases.get("runs of a tool", 0)
    if missing:
        report.skipped["runs of a tool"] = f"{missing} had no time"
    report.notes += [*details(judged), table(judged)]
    return report


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
        list(pool.map(do, work))


def _keep(path: Path, judged: Sequence[Judged]) -> None:
    parts = [
        f"##### {one.program.name} {tool} ended={report.ended}\n{report.output}"
        for one in judged
        for tool, report in one.theirs.items()
    ]
    path.write_text("\n".join(parts))
