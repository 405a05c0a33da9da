"""All rows of a table in one test."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
from tests.rows import all_rows

@pytest.fixture
def seven(): return 7

@all_rows
@pytest.mark.parametrize("x", [1, pytest.param(2, id="two"), 3])
@pytest.mark.parametrize(("y", "z"), [(1, 1), (2, 2)], ids=["ones", "twos"])
def test_some_fail(x, seven, y, z):
    if x == 3: pytest.skip("three")
    assert y == z
    assert x * y < 2 and seven == 7, "the product"

@all_rows
@pytest.mark.parametrize("x", [*range(99), pytest.param(99, marks=pytest.mark.slow)])
def test_all_pass(x): assert x < 100

@all_rows
@pytest.mark.parametrize("x", range(2))
def test_all_skip(x): pytest.skip("no reason")

@all_rows
@pytest.mark.parametrize("x", [])
def test_of_nothing(x): pass
"""


def test_each_row_that_fails_is_reported_by_its_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    pytester.makeini("[pytest]\nmarkers = slow: takes long")
    pytester.makepyfile(TESTS)
    run = pytester.runpytest_inprocess("-pno:cacheprovider", "-pno:randomly")
    run.assert_outcomes(passed=2, skipped=1, failed=2)
    run.stdout.fnmatch_lines(
        ["3 of 6 rows fail:", "[[]two-ones[]] *AssertionError: the product", "*the table is empty*"]
    )
    run.stdout.no_fnmatch_line("[[]1-ones*")
    slow = pytester.runpytest_inprocess("-pno:cacheprovider", "-mslow")
    slow.assert_outcomes(passed=1, deselected=4)


def test_rows_with_other_marks_than_slow_are_rejected() -> None:
    from tests.rows import all_rows

    def test(x: int) -> None: ...

    marked = pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.xfail)])(test)
    with pytest.raises(TypeError, match="no mark but slow"):
        all_rows(marked)
