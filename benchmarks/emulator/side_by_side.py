"""The second table: the emulator beside Numba's CUDA simulator, on equal results.

NVRTC contracts no products and sums here, since the simulator rounds each of them.
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ..setting import installed
from ..timing import Row
from .cases import Case, Outcome, Sizes, Task, cases
from .device import Device
from .goals import timed

GROUP: Final = "emulator"
OURS: Final = "cudadrv's emulator"
THEIRS: Final = "Numba's simulator"
# A thread with barriers takes the simulator about a millisecond.
_SIZES: Final = Sizes(
    saxpy=1 << 16,
    reduction=1 << 12,
    shuffle=1 << 12,
    product=32,
    picture=256,
    limit=256,
    bytes=1 << 12,
    histogram_blocks=4,
    exact=True,
)
_ROOT: Final = Path(__file__).parents[2]
_LIMIT_S: Final = 300


def rows(target: str) -> list[Row]:
    """Two rows a kernel: the emulator's, and the simulator's with its ratio to that."""
    device, tasks, found = Device(target, fmad=False), [], []
    for case in cases(_SIZES):
        launch, values = device.prepare(case)
        launch()
        tasks.append(Task(case, values()))
        timed(launch, 2)
        best, median = (1e3 * elapsed_ms for elapsed_ms in timed(launch, 30))
        found.append(Row(GROUP, case.title, OURS, median, best, 1.0))
    outcomes = simulated(tasks)
    both = zip(found, _theirs(found, [task.case for task in tasks], outcomes), strict=True)
    return [row for pair in both for row in pair]


def _theirs(ours: list[Row], launched: list[Case], outcomes: list[Outcome] | str) -> list[Row]:
    if isinstance(outcomes, str):
        return [Row.failed(GROUP, case.title, THEIRS, outcomes) for case in launched]
    found = []
    for row, case, outcome in zip(ours, launched, outcomes, strict=True):
        if outcome.error:
            found.append(Row.failed(GROUP, case.title, THEIRS, outcome.error))
            continue
        best, median = min(outcome.elapsed_us), statistics.median(outcome.elapsed_us)
        found.append(Row(GROUP, case.title, THEIRS, median, best, best / row.best))
    return found


def simulated(tasks: list[Task]) -> list[Outcome] | str:
    """What the simulator's process made of the tasks, or why it made nothing."""
    if not installed("numba.cuda"):
        return "Numba is not installed"
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "tasks", Path(folder) / "outcomes"
        given.write_bytes(pickle.dumps(tasks))
        command = [sys.executable, "-m", "benchmarks.emulator.simulator", str(given), str(made)]
        try:
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"took longer than {_LIMIT_S} s"
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [""]
            return f"ended with {done.returncode}: {last[0]}"
        outcomes: list[Outcome] = pickle.loads(made.read_bytes())
        return outcomes
