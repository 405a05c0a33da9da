"""What writers told up to each of them, asked in any order, against dicts that keep all of it."""

from __future__ import annotations

import random

import pytest

from ptx.emulate.check.accelerations import LazyClock
from ptx.emulate.check.vector_clock import SparseClock, epoch_of
from tests.rows import all_rows

NUMBERS = 150


@all_rows
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_each_writer_adds_to_what_was_reported_before_it_and_to_nothing_else(seed: int) -> None:
    draw = random.Random(seed)
    told, expected = LazyClock(), SparseClock()
    kept: list[tuple[LazyClock, SparseClock]] = []
    for _ in range(400):
        said, knew, together = (
            {draw.randrange(NUMBERS): draw.randrange(1, 99) for _ in range(count)}
            for count in (1, *draw.choice([(0, 0), (0, 0), (3, 0), (3, 60)]))
        )
        told = told.then(said, knew, together)
        for each in (said, knew, together):
            expected = {n: max(expected.get(n, 0), each.get(n, 0)) for n in expected | each}
        kept.append((told, expected))
        if draw.random() < 0.1:
            assert known(told) == expected
    draw.shuffle(kept)
    for each_told, each_expected in kept:
        assert known(each_told) == each_expected


def known(told: LazyClock) -> SparseClock:
    every = {number: epoch_of(told.known(), number) for number in range(NUMBERS)}
    return {number: epoch for number, epoch in every.items() if epoch}
