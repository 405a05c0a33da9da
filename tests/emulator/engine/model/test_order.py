"""The draws of an order: the same everywhere."""

from __future__ import annotations

import pytest

from ptx.emulate.model.order import Decisions, LaunchOrder


def test_a_seed_draws_the_same_numbers_on_every_machine() -> None:
    decisions = Decisions(LaunchOrder("random", 1234567))
    # The first outputs of SplitMix64 from this state, in the reference's own test.
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [decisions.below(1 << 64) for _ in range(4)] == wanted


def test_the_trace_distinguishes_draws() -> None:
    def trace(seed: int, draws: int) -> int:
        decisions = Decisions(LaunchOrder("random", seed))
        decisions.shuffled(range(draws))
        return decisions.trace

    assert trace(5, 20) == trace(5, 20) == 11879169491571779612
    assert len({trace(seed, draws) for seed in range(50) for draws in (20, 21)}) == 100


def test_a_shuffle_keeps_every_item_and_reaches_every_order() -> None:
    decisions = Decisions(LaunchOrder("random", 3))
    orders = {tuple(decisions.shuffled("abcd")) for _ in range(500)}
    assert len(orders) == 24
    assert all(sorted(each) == list("abcd") for each in orders)


def test_late_is_one_order_whatever_the_seed_and_nothing_in_it_is_early() -> None:
    first, second = (Decisions(LaunchOrder("late", seed)) for seed in (1, 2))
    assert [first.below(100) for _ in range(9)] == [second.below(100) for _ in range(9)]
    assert not any(first.early(1) for _ in range(9))


def test_an_unknown_kind_of_order_is_rejected() -> None:
    with pytest.raises(ValueError, match="not 'soon'"):
        LaunchOrder("soon")  # type: ignore[arg-type]  # what is tested
