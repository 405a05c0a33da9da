"""The emulator's benchmark: its kernels compute what NumPy does, and the simulator what they do."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from benchmarks import report
from benchmarks.emulator import side_by_side
from benchmarks.emulator.cases import Argument, Case, Outcome, Sizes, Task, cases
from benchmarks.emulator.device import Device

SMALL = Sizes(
    saxpy=512,
    reduction=512,
    shuffle=512,
    product=32,
    picture=16,
    limit=40,
    bytes=700,
    histogram_blocks=2,
    exact=True,
)


@pytest.fixture(scope="module")
def done() -> dict[str, tuple[Case, list[Argument]]]:
    """Each kernel's case and its arguments after one launch."""
    device = Device("compute_90", fmad=False)
    found = {}
    for case in cases(SMALL):
        launch, values = device.prepare(case)
        launch()
        found[case.kernel] = case, values()
    return found


@pytest.mark.slow
def test_the_kernels_compute_what_numpy_does(done: dict[str, tuple[Case, list[Argument]]]) -> None:
    a, x, y, out, _ = (np.asarray(one, np.float32) for one in done["saxpy"][1])
    np.testing.assert_array_equal(out, a * x + y)
    data, total, _ = done["reduce"][1]
    assert total == np.sum(np.asarray(data), dtype=np.float64)
    data, total, _ = done["shuffle"][1]
    assert total == np.sum(np.asarray(data), dtype=np.float64)
    left, right, product, _ = (np.asarray(one, np.float64) for one in done["matmul"][1])
    np.testing.assert_array_equal(product, left @ right)
    data, _, bins = done["histogram"][1]
    np.testing.assert_array_equal(bins, np.bincount(np.asarray(data), minlength=256))
    counts = np.asarray(done["mandelbrot"][1][0])
    # Pixel (x, y) is the point (-2 + 3 x / 16, -1.5 + 3 y / 16).
    assert counts[8, 10] == 40  # -0.125, inside
    assert counts[0, 0] == 1  # -2 - 1.5 i: |c|^2 = 6.25


@pytest.mark.slow
def test_without_numba_each_line_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(side_by_side, "_SIZES", SMALL)
    rows = side_by_side.rows("compute_90")
    theirs = [row for row in rows if row.who == side_by_side.THEIRS]
    assert {row.error for row in theirs} == {"Numba is not installed"}
    assert len(theirs) == len(rows) / 2 == len(cases(SMALL))
    assert "not measured: Numba is not installed" in report.table(rows)


@pytest.mark.slow
def test_numbas_simulator_gives_equal_results(
    done: dict[str, tuple[Case, list[Argument]]],
) -> None:
    if importlib.util.find_spec("numba") is None:
        pytest.skip("needs Numba")
    tasks = [Task(*both) for both in done.values()]
    outcomes = side_by_side.simulated(tasks)
    assert not isinstance(outcomes, str), outcomes
    errors = {task.case.kernel: one.error for task, one in zip(tasks, outcomes, strict=True)}
    assert {kernel: error for kernel, error in errors.items() if error} in (
        {},
        {"shuffle": "it has no 'shfl_down_sync'"},
    )


@pytest.mark.slow
def test_a_simulated_result_that_differs_is_not_timed(
    done: dict[str, tuple[Case, list[Argument]]],
) -> None:
    if importlib.util.find_spec("numba") is None:
        pytest.skip("needs Numba")
    case, values = done["saxpy"]
    task = Task(case, [*values[:3], np.zeros(512, np.float32), values[4]])
    assert side_by_side.simulated([task]) == [
        Outcome(error="argument 3 differs from the emulator's")
    ]
