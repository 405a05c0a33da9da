"""One access of several threads: its units, and the thread of each."""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.access_step import AccessStep, Moment
from ptx.emulate.check.stamps import THREAD_SHIFT
from ptx.emulate.model.addresses import Addresses, Index, addresses_in, same_address

WORD_SHIFT = 2


def accessed(places: Addresses, count: int, nbytes: int, lanes: Index | None = None) -> AccessStep:
    moment = Moment(np.arange(1, 100) << THREAD_SHIFT)
    return AccessStep(moment, lanes, 0, places, 0, count, nbytes, WORD_SHIFT)


def test_an_access_of_two_words_has_two_units_for_each_thread() -> None:
    step = accessed(addresses_in(np.array([16, 0])), 2, 8)
    assert np.asarray(step.units).tolist() == [4, 5, 0, 1]
    assert step.first_units.tolist() == [4, 0]
    assert step.unit_count == 4
    assert step.lanes.tolist() == [0, 0, 1, 1]
    assert step.numbered(10).tolist() == [10, 10, 11, 11]


def test_threads_are_counted_by_their_numbers_in_the_chunk() -> None:
    step = accessed(addresses_in(np.array([16, 0])), 2, 8, np.array([5, 7]))
    assert step.lanes.tolist() == [5, 5, 7, 7]
    assert step.numbered(10).tolist() == [15, 15, 17, 17]


def test_threads_at_one_word_have_one_place_and_at_two_words_all_of_them() -> None:
    one, two = (accessed(same_address(8), 3, nbytes) for nbytes in (4, 8))
    assert one.places == 2
    assert sorted({*np.asarray(two.places).tolist()}) == [2, 3]


def test_only_threads_at_neighbouring_words_are_a_run() -> None:
    def first(start: int, step: int) -> int:
        places = addresses_in(np.arange(start, start + 64 * step, step))
        return accessed(places, 64, 4).first_of_run

    assert [first(8, 4), first(4, 4), first(16, 4)] == [2, 1, 4]
    assert [first(8, 8), first(2, 4)] == [-1, -1]
