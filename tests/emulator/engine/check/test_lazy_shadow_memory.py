"""What was accessed is found again, whatever was listed and written down in between."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.access_step import AccessStep, Moment
from ptx.emulate.check.lazy_shadow_memory import LazyShadowMemory
from ptx.emulate.check.shadow_memory import ShadowMemory, in_memory
from ptx.emulate.check.stamps import THREAD_SHIFT
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from tests.rows import all_rows

UNITS = 256


def step_from(low: int, high: int) -> AccessStep:
    """Two threads that read the first and the last of some words, without a line."""
    addresses = addresses_in(np.array([high - 4, low]))
    return AccessStep(Moment(np.array([1, 2]) << THREAD_SHIFT), None, 0, addresses, 0, 2, 4, 2)


@all_rows
@pytest.mark.parametrize("seed", range(20))
def test_reads_are_listed_where_nothing_is_written_down(seed: int) -> None:
    rng = random.Random(seed)
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
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


def _step_of(places: Addresses, chunk: int = 0, lanes: Index | None = None) -> AccessStep:
    assert places.varying is not None
    count = len(places.varying.array)
    moment = Moment(np.arange(1, count + 1) << THREAD_SHIFT, chunk=chunk)
    return AccessStep(moment, lanes, 0, places, 0, count, 4, 2)


def _places(*words: int) -> Addresses:
    return addresses_in(np.array(words) * 4)


def test_threads_that_read_and_write_their_own_places_are_listed_as_one_step() -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
    own = _places(3, 5, 9, 20)
    for _ in range(50):
        assert accesses.lists_read(_step_of(own))
        assert accesses.lists_write(_step_of(own))
    assert sum(len(steps) for _, steps in accesses.listed()) == 1
    assert not accesses.written(np.arange(UNITS))


@pytest.mark.parametrize("write", [False, True])
def test_other_threads_at_the_same_places_are_not_mistaken_for_the_same(write: bool) -> None:
    own = _places(3, 5, 9, 20)
    for other in (
        _step_of(own, chunk=1),  # of other blocks
        _step_of(own, lanes=np.arange(4)[::-1]),
        _step_of(_places(3, 5, 20, 9)),
        _step_of(_places(3, 5, 5, 20)),
    ):
        accesses = LazyShadowMemory(UNITS, in_memory, 5)
        assert accesses.lists_write(_step_of(own))
        assert not (accesses.lists_write(other) if write else accesses.lists_read(other))


@pytest.mark.parametrize("kind", ["read", "atomic"])
def test_few_addresses_stay_listed_and_their_findings_are_retained(kind: str) -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5, fewest=80)
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
    told = {(writes, first) for writes, first, _ in accesses.stored(2)}
    assert (kind == "atomic", 0) in told
    accesses.reset()
    assert not pair.found(np.arange(90))


def test_threads_that_write_what_they_alone_have_read_are_listed() -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
    even, odd = _places(2, 4, 6, 8), _places(3, 5, 7, 9)
    assert accesses.lists_read(_step_of(even))
    assert accesses.lists_read(_step_of(odd))
    lanes = np.array([0, 2])
    assert accesses.lists_write(_step_of(_places(2, 6), lanes=lanes))
    assert accesses.lists_write(_step_of(_places(3, 7), lanes=lanes))
    assert accesses.lists_read(_step_of(even))
    assert accesses.lists_read(_step_of(_places(12, 13), chunk=1))
    assert not accesses.written(np.arange(UNITS))
    assert not accesses.lists_read(_step_of(_places(1, 6), chunk=1))


def test_many_may_read_what_none_writes_beside_what_they_write_themselves() -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
    assert accesses.lists_read(_step_of(_places(0, 2, 2, 6)))
    assert accesses.lists_write(_step_of(_places(1, 3, 5, 7)))
    assert accesses.lists_read(_step_of(_places(2, 4, 6, 0)))
    assert accesses.lists_read(_step_of(_places(4, 4, 1, 4), lanes=np.array([1, 2, 0, 3])))
    assert not accesses.lists_write(_step_of(_places(4, 9), lanes=np.array([1, 2])))


def test_what_threads_did_alone_is_written_down_in_its_order() -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
    own, every = _places(2, 4, 6, 8), np.arange(UNITS)
    assert accesses.lists_read(_step_of(own))
    assert accesses.lists_read(_step_of(_places(3, 5, 7, 9)))
    assert accesses.lists_write(_step_of(own))
    accesses.settle(_step_of(own))
    (last,) = accesses.reads.found(every)
    assert np.flatnonzero(last).tolist() == [3, 5, 7, 9]
    (written,) = accesses.written(every)
    assert np.flatnonzero(written).tolist() == [2, 4, 6, 8]


def test_after_many_attempts_in_vain_no_search_for_lone_threads_is_made() -> None:
    accesses = LazyShadowMemory(UNITS, in_memory, 5)
    for _ in range(20):
        assert accesses.lists_write(_step_of(_places(3, 5, 9, 20)))
        assert not accesses.lists_read(_step_of(_places(20, 9, 5, 3)))
        accesses.reset()
    assert accesses.lists_write(_step_of(_places(3, 5, 9, 20)))
    assert not accesses.lists_read(_step_of(_places(20, 9, 5, 3)))
    assert not any(part.any() for part in accesses.parts_in_use(2))


class _Brute:
    """Who has read each unit since it was written, and who wrote it, thread by thread."""

    def __init__(self) -> None:
        self.writer: dict[int, int] = {}
        self.readers: dict[int, set[int]] = {}

    def is_alone(self, threads: list[int], units: list[int], *, writes: bool) -> bool:
        """Whether no other thread conflicts with these accesses, in this step or before."""
        for thread, unit in zip(threads, units, strict=True):
            others = {self.writer.get(unit, thread)}
            if writes:
                others |= self.readers.get(unit, set())
            if others - {thread}:
                return False
        return not writes or len(set(units)) == len(units)

    def note(self, threads: list[int], units: list[int], *, writes: bool) -> None:
        """They do access them."""
        for thread, unit in zip(threads, units, strict=True):
            if writes:
                self.writer[unit] = thread
            else:
                self.readers.setdefault(unit, set()).add(thread)


@all_rows
@pytest.mark.parametrize("seed", range(30))
def test_only_what_one_thread_alone_accesses_is_listed_and_then_as_if_written_down(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    listing = LazyShadowMemory(64, in_memory, 5, fewest=int(rng.choice([200, 1 << 20])))
    eager = ShadowMemory(64, in_memory, 5)
    brute, own = _Brute(), rng.permutation(64).reshape(2, 8, 4)
    for epoch in range(int(rng.integers(5, 40))):
        chunk, count = int(rng.integers(2)), int(rng.integers(1, 9))
        lanes = np.sort(rng.permutation(8)[:count])
        words = own[chunk, lanes, int(rng.integers(4))]
        if rng.random() < 0.1:
            words = rng.integers(0, 64, count)
        stamps = (np.arange(8) + 1 + (chunk << 5) << THREAD_SHIFT) + (epoch << 14)
        one, other = (
            AccessStep(Moment(stamps, chunk=chunk), lanes, 0, _places(*words), 0, count, 4, 2)
            for _ in range(2)
        )
        writes = bool(rng.random() < 0.4)
        threads, units = (lanes + (chunk << 5)).tolist(), words.tolist()
        if listing.lists_write(one) if writes else listing.lists_read(one):
            assert brute.is_alone(threads, units, writes=writes)
        else:
            listing.settle(one)
            if writes:
                listing.write(one)
            else:
                listing.reads.add(one.units, one.stamps)
        brute.note(threads, units, writes=writes)
        if writes:
            eager.write(other)
        else:
            eager.reads.add(other.units, other.stamps)
    listing.settle(_step_of(_places(0, 63)))
    every = np.arange(64)
    assert np.array_equal(listing.written(every), eager.written(every))
    assert np.array_equal(listing.reads.found(every), eager.reads.found(every))
