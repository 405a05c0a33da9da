"""Cases of a test of which some are short and the others slow."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def few(cases: Iterable[object], count: int) -> list[ParameterSet]:
    """Mark all cases but `count` slow; those that stay are evenly spaced.

    A case that is a tuple has the values of several parameters.
    """
    found = [_parameters(case) for case in cases]
    short = {round(k * (len(found) - 1) / max(count - 1, 1)) for k in range(count)}
    return [
        each if number in short else each._replace(marks=[*each.marks, pytest.mark.slow])
        for number, each in enumerate(found)
    ]


def _parameters(case: object) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
