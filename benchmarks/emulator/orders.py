"""The third table: launches in another order beside the same launch without one, in pairs.

Times are the processor's, so that other programs change them little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, Literal

import numpy as np

import cudadrv
from cudadrv import emulator
from ptx.emulate import LaunchOrder

from .cases import cases
from .device import Device, Launch
from .goals import SIZES

_PAIRS: Final = 9
_PAIRS_OF_EMPTY: Final = 200
_QUEUED: Final = 300
_ADD: Final = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }'


@dataclass(frozen=True, slots=True)
class Ratios:
    """Median of the ratios of a launch's times to those without an order."""

    title: str
    late: float
    random: float

    def __str__(self) -> str:
        return f"{self.title:38}{self.late:9.2f}{self.random:9.2f}"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def lines(target: str) -> Iterator[Ratios]:
    """The lines of the table, each when it is measured; a pair has its own seed."""
    device = Device(target)
    for case in cases(SIZES):
        launch, _ = device.prepare(case)
        late: list[float] = []
        drawn: list[float] = []
        for order in (None, LaunchOrder("late"), LaunchOrder("random")):
            launch(order)
        for seed in range(_PAIRS_OF_EMPTY if case.kernel == "empty" else _PAIRS):
            base, later, random = (
                _seconds(launch, order)
                for order in (None, LaunchOrder("late"), LaunchOrder("random", seed))
            )
            late.append(later / base)
            drawn.append(random / base)
        yield Ratios(case.title, statistics.median(late), statistics.median(drawn))


def queued() -> Iterator[Ratios]:
    """The line of many short launches that cudadrv queues: what the queue itself costs."""
    late: list[float] = []
    drawn: list[float] = []
    for seed in range(_PAIRS):
        base, later, random = (
            _seconds_queued(order, seed) for order in ("immediate", "late", "random")
        )
        late.append(later / base)
        drawn.append(random / base)
    title = f"{_QUEUED} launches of 256 threads"
    yield Ratios(title, statistics.median(late), statistics.median(drawn))


def _seconds_queued(order: Literal["immediate", "late", "random"], seed: int) -> float:
    """The processor's seconds of launches in a session of an order, and of the wait for them."""
    with emulator.session(order=order, seed=seed if order == "random" else None):
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        launcher = context.compile(_ADD).kernel("add").bind(stream, cudadrv.LaunchConfig(1, 256))
        array = stream.to_device(np.zeros(256, np.float32))
        launcher(array)
        stream.synchronize()
        start = time.process_time()
        for _ in range(_QUEUED):
            launcher(array)
        stream.synchronize()
        return time.process_time() - start


def _seconds(launch: Launch, order: LaunchOrder | None) -> float:
    start = time.process_time()
    launch(order)
    return time.process_time() - start
