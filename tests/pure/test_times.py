"""The processor times of tests: shown, stored, and compared with a table of another machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.times import by_file, marks_to_change, speed

TESTS = """
import time
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_that_works(): burn(0.3)
def test_that_waits(): time.sleep(0.3)
@pytest.mark.slow
def test_that_is_marked(): burn(0.1)
@pytest.mark.parametrize("each", range(8))
def test_short(each): pass
"""


@pytest.mark.parametrize("options", [(), pytest.param(("-n2",), marks=pytest.mark.slow)])
def test_a_run_shows_and_stores_processor_times_and_passes(
    options: tuple[str, ...], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    pytester.makeini("[pytest]\nmarkers = slow: takes long")
    pytester.makepyfile(TESTS)
    run = pytester.runpytest_inprocess(
        "-ptests.conftest", "-pno:cacheprovider", "--times=times.json", *options
    )
    run.assert_outcomes(passed=11)
    run.stdout.fnmatch_lines(["*slowest of * s of processor time*", "*s  *::test_that_works"])
    times = {
        test.partition("::")[2]: value
        for test, value in json.loads(Path("times.json").read_text()).items()
    }
    assert len(times) == 11
    assert times["test_that_works"][0] >= 0.25
    assert times["test_that_waits"][0] < times["test_that_works"][0]
    assert {test for test, (_seconds, slow) in times.items() if slow} == {"test_that_is_marked"}


def test_a_slower_machine_changes_no_mark() -> None:
    stored = {"a.py": 4.0, "b.py": 3.0, "c.py": 0.1}
    times = {
        "a.py::long": (5.2, False),
        "a.py::marked": (30.0, True),
        "b.py::short": (5.0, False),
        "b.py::short[marked]": (4.0, True),
        "c.py::new[1]": (5.0, False),
        "c.py::new[2]": (4.0, False),
    }
    seconds = by_file(times)
    assert seconds == {"a.py": 35.2, "b.py": 9.0, "c.py": 9.0}
    slower = speed({"a.py": 12.0, "b.py": 9.0, "c.py": 20.0}, stored)
    assert slower == 3.0
    assert marks_to_change(times, slower) == ["c.py::new: 3.0 s without the mark slow"]
