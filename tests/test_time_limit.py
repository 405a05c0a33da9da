"""A test that takes long without the mark slow fails, where CUDADRV_TEST_SECONDS says so."""

from __future__ import annotations

import pytest

TESTS = """
import time
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_that_works_long(): burn(0.3)
def test_that_waits_long(): time.sleep(0.3)
@pytest.mark.slow
def test_that_is_marked(): burn(0.3)
"""
INI = "[pytest]\nmarkers = slow: takes long"


@pytest.mark.parametrize(("most", "failed"), [("0.25", 1), ("5", 0)])
def test_a_test_over_the_limit_fails_unless_it_waits_or_is_marked_slow(
    most: str, failed: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_TEST_SECONDS", most)
    pytester.makeini(INI)
    pytester.makepyfile(TESTS)
    run = pytester.runpytest("-ptests.conftest", "-pno:cacheprovider", "-pno:hypothesispytest")
    run.assert_outcomes(passed=3 - failed, failed=failed)
    if failed:
        run.stdout.fnmatch_lines(["*_ test_that_works_long _*", "*mark it slow"])
