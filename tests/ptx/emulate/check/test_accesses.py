"""What was accessed is found again, whatever was listed and written down in between."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.accesses import LastAccesses, in_memory
from ptx.emulate.check.stamps import THREAD_SHIFT
from ptx.emulate.check.step import Moment, Step
from ptx.emulate.model.addresses import Addresses, Index, addresses_in

UNITS = 256


def step_from(low: int, high: int) -> Step:
    """Two threads that read the first and the last of some words, without a line."""
    addresses = addresses_in(np.array([high - 4, low]))
    return Step(Moment(np.array([1, 2]) << THREAD_SHIFT), None, 0, addresses, 0, 2, 4, 2)


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


def _step_of(places: Addresses, chunk: int = 0, lanes: Index | None = None) -> Step:
    assert places.varying is not None
    count = len(places.varying.array)
    moment = Moment(np.arange(1, count + 1) << THREAD_SHIFT, chunk=chunk)
    return Step(moment, lanes, 0, places, 0, count, 4, 2)


def _places(*words: int) -> Addresses:
    return addresses_in(np.array(words) * 4)


def test_threads_that_read_and_write_their_own_places_are_listed_as_one_step() -> None:
    accesses = LastAccesses(UNITS, in_memory, 5)
    own = _places(3, 5, 9, 20)
    for _ in range(50):
        assert accesses.lists_read(_step_of(own))
        assert accesses.lists_write(_step_of(own))
    assert sum(len(steps) for _, steps in accesses.listed()) == 1
    assert not accesses.written(np.arange(UNITS))


@pytest.mark.parametrize("write", [False, True])
def test_other_threads_at_the_same_places_are_not_taken_for_the_same(write: bool) -> None:
    own, lanes = _places(3, 5, 9, 20), np.arange(4)
    for other in (
        _step_of(own, chunk=1),  # of other blocks
        _step_of(own, lanes=lanes),
        _step_of(_places(3, 5, 9, 20)),  # perhaps in another order
        _step_of(_places(3, 5, 5, 20)),
    ):
        accesses = LastAccesses(UNITS, in_memory, 5)
        assert accesses.lists_write(_step_of(own))
        assert not (accesses.lists_write(other) if write else accesses.lists_read(other))


@pytest.mark.parametrize("kind", ["read", "atomic"])
def test_few_addresses_stay_listed_and_what_they_say_is_kept(kind: str) -> None:
    accesses = LastAccesses(UNITS, in_memory, 5, fewest=80)
    lists = accesses.lists_read if kind == "read" else accesses.lists_atomic
    for at in range(100):
        assert lists(_step_of(_places(at, at + 7, at + 2)))
    assert sum(step.count for _, steps in accesses.listed() for step in steps) <= 12
    pair = accesses.reads if kind == "read" else accesses.atomics
    assert all((found[:90] != 0).all() for found in pair.found(np.arange(90))[:1])
    assert pair.found(np.arange(90))
    assert not accesses.lists_write(_step_of(_places(50, 60, 70)))
    if kind == "read":
        assert not accesses.lists_atomic(_step_of(_places(50, 60, 70)))
    else:
        assert not accesses.lists_read(_step_of(_places(50, 60, 70)))
    told = {(writes, first) for writes, first, _ in accesses.written_down(2)}
    assert (kind == "atomic", 0) in told
    accesses.reset()
    assert not pair.found(np.arange(90))
