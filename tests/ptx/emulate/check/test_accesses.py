"""What was accessed is found again, whatever was listed and written down in between."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.accesses import LastAccesses, in_memory
from ptx.emulate.check.stamps import THREAD_SHIFT
from ptx.emulate.check.step import Step
from ptx.emulate.model.addresses import addresses_in

UNITS = 256


def step_from(low: int, high: int) -> Step:
    """Two threads that read the first and the last of some words, without a line."""
    addresses = addresses_in(np.array([high - 4, low]))
    return Step(np.array([1, 2]) << THREAD_SHIFT, None, 0, addresses, 0, 2, 4, 2)


@pytest.mark.parametrize("seed", range(20))
def test_reads_are_listed_where_nothing_is_written_down(seed: int) -> None:
    rng = random.Random(seed)
    accesses = LastAccesses(UNITS, in_memory, 5)
    written_down: set[int] = set()
    listed: list[set[int]] = []
    for _ in range(200):
        low = rng.randrange(UNITS - 8)
        words = set(range(low, low + rng.randint(2, 6)))
        step = step_from(4 * min(words), 4 * max(words) + 4)
        around = [each for each in listed if each & words]
        if rng.random() < 0.9:
            assert accesses.lists_read(step) == (not words & written_down)
            if words & written_down:
                continue
            listed = [each for each in listed if not each & words] + [words.union(*around)]
        else:
            accesses.settle(step)
            written_down |= words.union(*around)
            listed = [each for each in listed if not each & words]
        if len(written_down) > UNITS // 2:
            accesses.reset()
            written_down, listed = set(), []
