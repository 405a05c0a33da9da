"""A table of launches of few threads, in pairs: by rows of Python numbers, as the emulator does it,
and by NumPy alone. Launches of many threads follow in the same way, which must not lose by it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.threads.limits import DEFAULT_LIMITS, FewThreads, Limits

from .cases import Case, cases
from .device import Device
from .goals import SIZES
from .kernels import SOURCE
from .narrow_kernels import SOURCE as NARROW

_PAIRS: Final = 5
_NO_ROWS: Final = Limits(few_threads=FewThreads(most=0, most_in_loop=0))


@dataclass(frozen=True, slots=True)
class NarrowTime:
    """Best milliseconds of a launch, and of the one that makes the code; by NumPy alone, too.

    `instructions`: that its threads execute together.
    """

    title: str
    instructions: int
    first_ms: float
    rows_ms: float
    numpy_ms: float

    def __str__(self) -> str:
        each = self.rows_ms * 1e6 / self.instructions if self.instructions else 0.0
        ratio = self.numpy_ms / self.rows_ms
        return (
            f"{self.title:38}{self.first_ms:9.2f}{self.rows_ms:9.2f}{self.numpy_ms:9.2f}"
            f"{ratio:9.2f}{each:9.1f}"
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def narrow_cases() -> list[Case]:
    """Launches of one thread, of few, and of threads that go their own ways."""
    rng = np.random.default_rng(0)
    one = (1, 1, 1), (1, 1, 1)
    sound = rng.standard_normal(500).astype(np.float32)
    weights = rng.standard_normal(64).astype(np.float32)
    filtered = (sound, weights, np.zeros_like(sound), np.int32(500))
    return [
        Case("Jacobi sweep, 16 x 16, 1 thread", "jacobi", *one,
             (rng.standard_normal((16, 16)), np.int32(16), np.int32(1))),
        Case("sort of 60, 1 thread", "sort", *one,
             (rng.standard_normal(60).astype(np.float32), np.int32(60))),
        Case("softmax of 500, 1 thread", "softmax", *one,
             (sound, np.zeros_like(sound), np.int32(500))),
        *(
            Case(f"two barriers a sample, {count} threads", "samples", (1, 1, 1), (count, 1, 1),
                 filtered)
            for count in (1, 8, 32)
        ),
        Case("500 threads in 64 branches", "branches", (2, 1, 1), (256, 1, 1),
             (np.zeros(500, np.uint32), np.int32(500), np.int32(100))),
    ]  # fmt: skip


def lines(target: str) -> Iterator[NarrowTime]:
    """The lines of the table, each when it is measured."""
    for source, launches in ((NARROW, narrow_cases()), (SOURCE, cases(SIZES))):
        for case in launches:
            yield _measured(case, Device(target, source=source), Device(target, source=source))


def _measured(case: Case, device: Device, other: Device) -> NarrowTime:
    """Both ways in turns, each with code of its own, on arguments that are as they were."""
    counts = LaunchCounts()
    device.prepare(case)[0](counts=counts)
    executed = counts.lines().values()
    first = _milliseconds(device, case)
    by_rows: list[float] = []
    by_numpy: list[float] = []
    for _ in range(_PAIRS * 20 if case.kernel == "empty" else _PAIRS):
        by_rows.append(_milliseconds(device, case))
        by_numpy.append(_milliseconds(other, case, _NO_ROWS))
    threads = sum(each.executed.threads for each in executed)
    return NarrowTime(case.title, threads, first, min(by_rows), min(by_numpy))


def _milliseconds(device: Device, case: Case, limits: Limits = DEFAULT_LIMITS) -> float:
    launch, _ = device.prepare(case)
    start = time.perf_counter()
    launch(limits=limits)
    return (time.perf_counter() - start) * 1e3
