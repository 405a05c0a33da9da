"""Of all accesses to a unit the last is kept, and one of a thread as far from it as there is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.shadow_memory import AccessPair, in_memory
from ptx.emulate.check.stamps import EPOCH_SHIFT, THREAD_SHIFT, WARP_SHIFT
from tests.rows import all_rows

UNITS, BLOCK_SHIFT = 4, 6


def stamp(thread: int, epoch: int) -> int:
    return thread + 1 << THREAD_SHIFT | epoch << EPOCH_SHIFT


def distance(one: int, other: int) -> int:
    """0 for the very thread, then those of its warp, of its block, and others."""
    return (one != other) + sum(one >> bits != other >> bits for bits in (WARP_SHIFT, BLOCK_SHIFT))


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("seed", range(40))
def test_the_last_access_is_stored_and_the_farthest_other_thread(seed: int) -> None:
    rng = random.Random(seed)
    pair = AccessPair(lambda: in_memory(UNITS), BLOCK_SHIFT)
    # Few threads, so that the same ones come again, as those do that poll.
    threads = rng.sample(range(200), rng.choice([2, 3, 8]))
    latest: list[dict[int, int]] = [{} for _ in range(UNITS)]
    for epoch in range(300):
        count = min(len(threads), rng.choice([1, 2, 2, 2, 3]))
        by = sorted(rng.sample(threads, count)) if rng.random() < 0.5 else threads[:count]
        units = rng.choices(range(UNITS), k=count)
        if rng.random() < 0.6:
            units = [units[0]] * count
        pair.add(np.array(units), np.array([stamp(each, epoch) for each in by]))
        for unit, thread in zip(units, by, strict=True):
            latest[unit].pop(thread, None)
            latest[unit][thread] = stamp(thread, epoch)
        assert pair.last is not None
        assert pair.other is not None
        for unit in set(units):
            *_, last = latest[unit]
            assert pair.last[unit] == latest[unit][last]
            farthest = max(distance(last, each) for each in latest[unit])
            other = (int(pair.other[unit]) >> THREAD_SHIFT) - 1
            if farthest:
                assert distance(last, other) == farthest
                assert pair.other[unit] == latest[unit][other]
