"""How many blocks a multiprocessor holds: our calculation, the driver's answer, and ncu's.

It needs a GPU and ncu. The driver reports the occupancy of every kernel, and ncu measures its
launch. The emulated device of the GPU's name calculates with the registers of the machine code.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from typing import Final

from ..counted.nsight import SAFE, measure
from ..report import Report
from .answers import LIMITS, Answer, record
from .resident_kernels import KERNELS

ROOM: Final = "campaigns.resident"
_WARPS: Final = "sm__maximum_warps_avg_per_active_cycle"
_REGISTERS: Final = "launch__registers_per_thread"
_AT_ONCE: Final = 16


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Ask, measure and calculate, in the seed's order, until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m campaigns resident")
    parser.add_argument("--record", metavar="DEVICE", help="store what was measured, for the tests")
    given = parser.parse_args(options)
    report, end = Report(), time.monotonic() + seconds
    device, asked = _asked()
    random.Random(seed).shuffle(asked)
    measure(SAFE, [KERNELS[0].name], ROOM)
    report.notes.append(f"{device}: kernel, ours, driver, ncu: blocks, warps, limits, registers")
    answers = []
    for start in range(0, len(asked), _AT_ONCE):
        some = asked[start : start + _AT_ONCE]
        found = measure([_REGISTERS, _WARPS, *LIMITS], [each.name for each in some], ROOM)
        for each in some:
            values = found.get(each.name, {})
            limits = {short: values[metric] for metric, short in LIMITS.items() if metric in values}
            answer = replace(each, limits=limits, warps=values.get(_WARPS, 0))
            answers.append(answer)
            _compare(answer, device, values.get(_REGISTERS), report)
        if time.monotonic() > end:
            break
    if given.record:
        record(given.record, device, answers)
    return report


def _compare(answer: Answer, device: str, registers: int | None, report: Report) -> None:
    """Count a kernel; it fails where the three do not say the same."""
    least = min(answer.limits.values(), default=0)
    ours = answer.calculated(device)
    line = (
        f"{answer.name}: {ours}, {answer.blocks}, {least}, {answer.warps}, "
        f"{[*answer.limits.values()]}, {registers}"
    )
    report.count("kernels")
    if (least, answer.warps, answer.blocks) != (ours, ours * -(-answer.block // 32), ours):
        report.failures.append(line)
    report.notes.append(line)


def _asked() -> tuple[str, list[Answer]]:
    done = subprocess.run(
        [sys.executable, "-m", ROOM, "--ask"],
        env={**os.environ, "CUDADRV_DRIVER": "cuda"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the driver could not be asked: {done.stderr[-2000:]}")
    device, answers = json.loads(done.stdout.splitlines()[-1])
    return device, [Answer(**each) for each in answers]
