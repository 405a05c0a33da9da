"""With --cuda=emulator each test has a session of its own, opened by its first driver call."""

from __future__ import annotations

from typing import Final

import pytest

from cudadrv.driver.driver_selection import current_or_none, is_chosen

from .runs import Runs

IMPORTS: Final = """
import threading
import unittest

import numpy as np
import pytest

import cudadrv
from cudadrv.runtime import CachedBackend, CudaBackendContext, probe_backend_with_compile
from kernels import run


def default():
    return cudadrv.cuda_context_for(0).default_stream

"""
BODY: Final = """
def test_race():
    run(default(), "racy")
def test_fault():
    run(default(), "bad")
def test_after_the_fault():
    assert run(default(), "good")[5] == 5
def test_race_in_a_thread():
    thread = threading.Thread(target=lambda: run(default(), "racy"))
    thread.start()
    thread.join()
def test_race_before_an_exit():
    run(default(), "racy")
    raise SystemExit(0)
@pytest.fixture
def stream():
    return cudadrv.cuda_context_for(0).new_stream()
def test_race_on_a_stream_of_a_fixture(stream):
    run(stream, "racy")
@pytest.fixture
def racy_end():
    yield
    run(default(), "racy")
def test_race_in_the_end_of_a_fixture(racy_end):
    pass
class TestCase(unittest.TestCase):
    def test_race_in_unittest(self):
        run(default(), "racy")
def test_nothing():
    pass
kept = []
def test_leak():
    kept.append(cudadrv.cuda_context_for(0).new_stream())
def test_object_of_the_last_test():
    with pytest.raises(cudadrv.ClosedError, match="session of the test test_user.py::test_leak"):
        kept[0].synchronize()
@pytest.mark.may_leak("for the test")
def test_leak_that_may_be():
    kept.append(cudadrv.cuda_context_for(0).new_stream())
"""
OUTCOMES: Final = {
    "test_race": "failed", "test_fault": "failed", "test_after_the_fault": "passed",
    "test_race_in_a_thread": "failed", "test_race_before_an_exit": "failed",
    "test_race_on_a_stream_of_a_fixture": "failed", "test_race_in_the_end_of_a_fixture": "error",
    "TestCase::test_race_in_unittest": "failed", "test_nothing": "passed", "test_leak": "error",
    "test_object_of_the_last_test": "passed", "test_leak_that_may_be": "passed",
}  # fmt: skip


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """Return how each test ended: passed, failed, or error at its set-up or teardown."""
    found: dict[str, str] = {}
    for line in result.outlines:
        word, _, name = line.partition(" test_user.py::")
        if word in ("PASSED", "FAILED", "ERROR"):
            name = name.partition(" - ")[0]
            found[name] = word.lower() if word == "ERROR" else found.get(name, word.lower())
    return found


@pytest.mark.parametrize("how", ["options", "environment", "ini"])
def test_a_test_without_a_marker_is_checked_alone(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    options: tuple[str, ...] = ()
    if how == "options":
        options = ("--cuda=emulator", "--cuda-check=race")
    elif how == "environment":
        monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
        monkeypatch.setenv("CUDADRV_CHECK", "race")
    else:
        runs.pytester.makeini("[pytest]\ncuda = emulator\ncuda_check = race")
    before = current_or_none()
    result = runs.here(IMPORTS + BODY, "-rA", *options)
    assert outcomes(result) == OUTCOMES
    assert result.stdout.str().count("race: kernel racy") >= 6
    assert current_or_none() is before
    assert is_chosen() == (before is not None)


@pytest.mark.slow
def test_a_backend_that_is_made_once_is_new_in_each_test(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
BACKEND = CachedBackend()
made = []
def backend():
    made.append(1)
    return probe_backend_with_compile("b", CudaBackendContext.from_parts)
def on_backend(name):
    return run(BACKEND.get_or_probe(backend).stream, name)
def test_good():
    assert on_backend("good")[5] == 5
def test_race():
    on_backend("racy")
def test_fault():
    on_backend("bad")
def test_good_again():
    assert on_backend("good")[5] == on_backend("good")[5]
    assert len(made) == 4
""",
        "-rA",
        "--cuda=emulator",
        "--cuda-check=race",
    )
    assert outcomes(result) == {
        "test_good": "passed",
        "test_race": "failed",
        "test_fault": "failed",
        "test_good_again": "passed",
    }


@pytest.mark.slow
def test_tests_that_call_no_driver_load_no_emulator(runs: Runs) -> None:
    result = runs.apart(
        "import sys\n"
        "def test_nothing(): assert 'cudadrv.emulator.emulator' not in sys.modules\n"
        "def test_nothing_more(): assert 'numpy' not in sys.modules\n",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.slow
def test_findings_on_objects_older_than_the_tests_fail_the_test(runs: Runs) -> None:
    result = runs.apart(
        IMPORTS
        + """
STREAM = default()
def test_good():
    run(STREAM, "good")
def test_race():
    run(STREAM, "racy")
""",
        "-rA",
        "--cuda=emulator",
        "--cuda-check=race",
    )
    assert outcomes(result) == {"test_good": "passed", "test_race": "failed"}
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the objects were made before the tests*"])


def test_a_fixture_of_the_session_cannot_hold_a_stream(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
@pytest.fixture(scope="session")
def stream():
    return cudadrv.cuda_context_for(0).new_stream()
def test_stream(stream):
    run(stream, "good")
""",
        "-rA",
        "--cuda=emulator",
    )
    assert outcomes(result) == {"test_stream": "error"}
    result.stdout.fnmatch_lines(["the fixture 'stream' of scope 'session' made what belongs to*"])


@pytest.mark.slow
def test_an_interrupted_test_reports_its_findings(runs: Runs) -> None:
    result = runs.apart(
        IMPORTS
        + """
def test_race():
    run(default(), "racy")
    raise KeyboardInterrupt
""",
        "--cuda=emulator",
        "--cuda-check=race",
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["race: kernel racy, *"])
