"""The third table: launches in another order beside the same launch without one, in pairs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ptx.emulate import LaunchOrder

from .cases import cases
from .device import Device, Launch
from .goals import SIZES

_PAIRS: Final = 9
_PAIRS_OF_EMPTY: Final = 200


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


def _seconds(launch: Launch, order: LaunchOrder | None) -> float:
    start = time.perf_counter()
    launch(order)
    return time.perf_counter() - start
