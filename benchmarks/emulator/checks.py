"""A table of what checks cost: launches with them beside the same launch without, in pairs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ptx.emulate.check.accessed_bytes import LaunchAccesses
from ptx.emulate.check.findings import Findings
from ptx.emulate.exec.limits import DEFAULT_LIMITS, Limits

from .cases import cases
from .device import Device, Launch
from .goals import SIZES

_PAIRS: Final = 5
_PAIRS_OF_EMPTY: Final = 100
_SECONDS: Final = 5.0  # for the pairs of one case


@dataclass(frozen=True, slots=True)
class CheckCost:
    """Median of the ratios of a launch's times to those without a check."""

    title: str
    race: float
    init: float
    both: float

    def __str__(self) -> str:
        return f"{self.title:38}{self.race:9.2f}{self.init:9.2f}{self.both:9.2f}"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def lines(target: str) -> Iterator[CheckCost]:
    """The lines of the table, each when it is measured."""
    device = Device(target)
    device.memory.watch_writes()
    for case in cases(SIZES):
        launch, _ = device.prepare(case)
        ratios: list[list[float]] = []
        end = time.perf_counter() + _SECONDS
        for pair in range(_PAIRS_OF_EMPTY if case.kernel == "empty" else _PAIRS):
            found = Findings()
            base, *others = (
                _seconds(launch, limits)
                for limits in (
                    DEFAULT_LIMITS,
                    Limits(findings=found, accessed=_let_go),
                    Limits(unwritten=found, check_uninitialised=True),
                    Limits(
                        findings=found,
                        accessed=_let_go,
                        unwritten=found,
                        check_uninitialised=True,
                    ),
                )
            )
            if pair:  # the first one makes code
                ratios.append([other / base for other in others])
                if time.perf_counter() > end:
                    break
        assert not found.found
        yield CheckCost(case.title, *map(statistics.median, zip(*ratios, strict=True)))


def _let_go(accesses: LaunchAccesses) -> None:
    """What the emulated driver does with what a launch accessed, but for its comparison."""
    accesses.let_go()


def _seconds(launch: Launch, limits: Limits) -> float:
    start = time.perf_counter()
    launch(None, limits)
    return time.perf_counter() - start
