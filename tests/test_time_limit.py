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


@pytest.mark.parametrize(("most", "errors"), [("0.25", 1), ("5", 0)])
def test_a_test_over_the_limit_fails_unless_it_waits_or_is_marked_slow(
    most: str, errors: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_TEST_SECONDS", most)
    pytester.makeini(INI)
    pytester.makepyfile(TESTS)
    run = pytester.runpytest("-p", "tests.conftest", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=3, errors=errors)
    if errors:
        run.stdout.fnmatch_lines(["*ERROR at teardown of test_that_works_long*", "*mark it slow"])
