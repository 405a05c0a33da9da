"""What is known of others, in a dict or in an array, against dicts alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.vector_clock import (
    EMPTY,
    SparseClock,
    VectorClock,
    epoch_of,
    joined,
    joined_all,
)
from tests.rows import all_rows

MOST = 3000


def drawn(draw: random.Random, among: int) -> SparseClock:
    count = draw.choice([0, 1, 5, 40, 200])
    return {draw.randrange(among): draw.randrange(1, 1000) for _ in range(count)}


def as_dict(known: VectorClock) -> SparseClock:
    every = {number: epoch_of(known, number) for number in range(MOST)}
    return {number: epoch for number, epoch in every.items() if epoch}


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("seed", range(30))
def test_what_is_joined_has_the_later_epoch_of_each(seed: int) -> None:
    draw = random.Random(seed)
    known, expected = EMPTY, SparseClock()
    for among in draw.choices([60, 250, MOST], k=8):
        few = drawn(draw, among)
        given = joined_all({number: epoch} for number, epoch in few.items())
        assert as_dict(given) == few
        before = as_dict(known)
        both = joined(known, given) if draw.random() < 0.5 else joined(given, known)
        assert (as_dict(known), as_dict(given)) == (before, few), "what others have is changed"
        expected = {each: max(expected.get(each, 0), few.get(each, 0)) for each in expected | few}
        known = both
        assert as_dict(known) == expected


def test_many_are_an_array_unless_that_is_mostly_empty() -> None:
    near = joined(dict.fromkeys(range(40), 1), dict.fromkeys(range(30, 80), 2))
    far = joined(
        {number * 100: 1 for number in range(40)}, {number * 100: 2 for number in range(80)}
    )
    assert isinstance(near, np.ndarray)
    assert isinstance(far, dict)
    assert isinstance(joined(near, {10 * MOST: 1}), dict)
    assert isinstance(joined(near, {100: 1}), np.ndarray)
