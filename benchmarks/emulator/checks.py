"""A table of what checks and counters cost: launches with them beside the same one without.

Targets: all checks take at most 4 times the launch (6 where threads synchronise by atomic
operations), and 8 bytes for a byte of memory.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from ptx.emulate.check.accessed_bytes import LaunchAccesses
from ptx.emulate.check.findings import Findings
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

from .array_kernels import SHARED, SOURCE as ARRAYS, array_cases
from .cases import Case, cases
from .device import Device, Launch
from .goals import SIZES
from .graph_kernels import SOURCE as GRAPH, graph_cases
from .kernels import SOURCE

_PAIRS: Final = 5
_PAIRS_OF_EMPTY: Final = 100
_SECONDS: Final = 5.0  # for the pairs of one case
_SHARED: Final = {"matmul": 2048, "histogram": 1024, **SHARED}  # bytes declared for each block


@dataclass(frozen=True, slots=True)
class CheckCost:
    """Median ratios of a launch's CPU time to that without checks, and the memory of all checks.

    Attributes:
        nbytes: how many bytes more all of them keep at most, for a byte of what the kernel may
            access: its arrays, and the shared memory of the blocks that run together.
        counted: the ratio with counters and without checks.
    """

    title: str
    race: float
    init: float
    every: float
    nbytes: float
    counted: float

    def __str__(self) -> str:
        times = f"{self.race:9.2f}{self.init:9.2f}{self.every:9.2f}{self.counted:9.2f}"
        return f"{self.title:38}{times}{self.nbytes:9.2f}"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


@dataclass(slots=True)
class _Kept:
    """What the emulated driver does with what a launch accessed, but for its comparison.

    Attributes:
        most: the bytes of pages that the system gives only as they are written, which Python's
            accounts do not have.
    """

    most: int = 0

    def __call__(self, accesses: LaunchAccesses) -> None:
        if tracemalloc.is_tracing():
            self.most = max(self.most, accesses.committed_nbytes())
        accesses.release()


def lines(target: str) -> Iterator[CheckCost]:
    """The lines of the table, each when it is measured."""
    sources = (SOURCE, cases(SIZES)), (ARRAYS, array_cases()), (GRAPH, graph_cases())
    for source, launches in sources:
        device = Device(target, source=source)
        device.memory.watch_writes()
        yield from map(partial(_cost, device), launches)


def _cost(device: Device, case: Case) -> CheckCost:
    launch, _ = device.prepare(case)
    ratios: list[list[float]] = []
    end = time.perf_counter() + _SECONDS
    found = Findings()
    kept = _Kept()
    chosen = _limits(found, kept)
    for pair in range(_PAIRS_OF_EMPTY if case.kernel == "empty" else _PAIRS):
        base, *others = (_seconds(launch, limits) for limits in chosen)
        others.append(_seconds(launch, DEFAULT_LIMITS, LaunchCounts()))
        if pair:  # the first one makes code
            ratios.append([other / base for other in others])
            if time.perf_counter() > end:
                break
    once, _ = device.prepare(replace(case, steps=case.steps[-1:]))  # not the garbage of many
    more = _peak(once, chosen[-1]) - _peak(once, chosen[0]) + kept.most
    assert not found.found
    race, init, every, counted = map(statistics.median, zip(*ratios, strict=True))
    return CheckCost(case.title, race, init, every, more / _accessible(case), counted)


def _limits(found: Findings, kept: _Kept) -> list[Limits]:
    """Without checks, and with one, the other, and all."""
    race = Limits(checks={"race"}, findings=found, accessed=kept)
    return [
        DEFAULT_LIMITS,
        race,
        Limits(checks={"unwritten", "undefined"}, findings=found),
        replace(
            race,
            checks={"race", "unwritten", "undefined", "bounds"},
            check_synchronisation=True,
        ),
    ]


def _accessible(case: Case) -> int:
    threads = case.block[0] * case.block[1] * case.block[2]
    blocks = min(
        case.grid[0] * case.grid[1] * case.grid[2], DEFAULT_LIMITS.chunk_threads // threads
    )
    arrays = sum(each.nbytes for each in case.arguments if isinstance(each, np.ndarray))
    return max(arrays + blocks * max(case.shared_bytes, _SHARED.get(case.kernel, 0)), 1 << 20)


def _peak(launch: Launch, limits: Limits) -> int:
    """The most bytes that a launch keeps at once."""
    gc.collect()
    tracemalloc.start()
    try:
        launch(None, limits)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds(launch: Launch, limits: Limits, counts: LaunchCounts | None = None) -> float:
    start = time.process_time()
    launch(None, limits, counts)
    return time.process_time() - start
