"""Kernels of the corpus that share something, under all checks; a campaign runs all of them."""

from __future__ import annotations

import pytest

from campaigns.checked_corpus import KNOWN, check
from tests.emulator.differential.corpus import sources
from tests.short_cases import few

SHARING = ("async_copy", "barrier", "cooperative", "transaction", "warp")


@pytest.mark.parametrize("name", few(SHARING, 2))
def test_nothing_but_the_known_races_is_found_in_right_kernels(name: str) -> None:
    chosen = [each for each in sources() if each.name == name]
    report = check(chosen, lambda case: True)
    assert sum(report.kernels.values()) == len(chosen[0].cases)
    assert [str(each) for each in report.false] == []
    assert report.failed == []
    kernels = {case.name for case in chosen[0].cases}
    told = {(each.check, each.kernel) for each in report.found if not each.benign}
    assert told == {each for each in KNOWN if each[1] in kernels}
