"""The table of threads: launches in several threads of the interpreter beside one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ptx.emulate.threads.limits import Limits

from .cases import cases
from .device import Device, Launch
from .goals import SIZES

COUNTS: Final = (2, 4, 8)
_RUNS: Final = 7


@dataclass(frozen=True, slots=True)
class Speeds:
    """A launch in several threads.

    Attributes:
        ms: the best time in one thread.
        faster: that time over the best one in each of `COUNTS` threads.
        work: processor time in each of them over that in one.
    """

    title: str
    ms: float
    faster: tuple[float, ...]
    work: tuple[float, ...]

    def __str__(self) -> str:
        figures = "".join(f"{each:9.2f}" for each in (*self.faster, *self.work))
        return f"{self.title:38}{self.ms:9.2f}{figures}"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def lines(target: str) -> Iterator[Speeds]:
    """The lines of the table, each when it is measured; counts of threads take turns."""
    device = Device(target)
    for case in cases(SIZES):
        launch, _ = device.prepare(case)
        launch()
        counts = (1, *COUNTS)
        runs = [[_seconds(launch, count) for count in counts] for _ in range(_RUNS)]
        best = [min(run[at][0] for run in runs) for at in range(len(counts))]
        work = [min(run[at][1] for run in runs) for at in range(len(counts))]
        yield Speeds(
            case.title,
            1e3 * best[0],
            tuple(best[0] / each for each in best[1:]),
            tuple(each / work[0] for each in work[1:]),
        )


def _seconds(launch: Launch, threads: int) -> tuple[float, float]:
    """The time of a launch, and that of all processors."""
    start, work = time.perf_counter(), time.process_time()
    launch(limits=Limits(threads=threads))
    return time.perf_counter() - start, time.process_time() - work
