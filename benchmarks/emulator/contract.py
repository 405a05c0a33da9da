"""The contract tests in each order of the emulator: what late and random work costs a test run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FILES: Final = (
    "test_memory.py", "test_streams.py", "test_graphs.py", "test_lifetimes.py", "test_launch.py",
    "test_kernels.py", "order/test_reported.py", "order/test_closing.py",
)  # fmt: skip
ORDERS: Final = ("immediate", "late", "random:1")
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Ratio:
    """A file of tests: the processor's seconds in each order, best of the rounds.

    By the clock two runs on a machine that others use differ more than two orders do.
    """

    title: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        base = self.seconds["immediate"]
        late, random = (self.seconds[order] / base for order in ORDERS[1:])
        return f"{self.title:38}{late:9.2f}{random:9.2f}"

    def to_json(self) -> dict[str, object]:
        """The figures."""
        return {"title": self.title, "seconds": self.seconds}


def lines() -> Iterator[Ratio]:
    """Each file's ratio as it is measured, in turns, then that of all together."""
    total = dict.fromkeys(ORDERS, 0.0)
    for name in FILES:
        best = dict.fromkeys(ORDERS, float("inf"))
        for _ in range(ROUNDS):
            for order in ORDERS:
                best[order] = min(best[order], _seconds(name, order))
        for order in ORDERS:
            total[order] += best[order]
        yield Ratio(name, best)
    yield Ratio("all of these", total)


def _seconds(name: str, order: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    before = os.times()
    subprocess.run(
        [*command, str(ROOT / "tests" / "contract" / name)],
        env=os.environ | {"CUDADRV_DRIVER": "emulator:2", "CUDADRV_EMULATOR_ORDER": order},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
