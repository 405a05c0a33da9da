"""Interrupts at the points of the operations that make something of the driver's, or begin one."""

from __future__ import annotations

import itertools
import math

import pytest

import cudadrv
from campaigns.interrupts.moments import Timer, attack_moments
from campaigns.interrupts.operations import OPERATIONS
from campaigns.interrupts.place import Act, Check, Operation, Place
from campaigns.interrupts.systematic import some_points
from campaigns.report import Report
from tests.short_cases import few

CHOSEN = (
    "allocations", "building of graphs", "capture and graphs", "captures of a client", "contexts",
    "copies of pinned arrays", "copy between devices", "download", "events", "fill",
    "green contexts", "host function", "links", "managed arrays", "streams", "textures and arrays",
    "unordered", "update of a graph", "upload",
)  # fmt: skip

MOST = 40
"""Points of each; the campaign tries all of them."""


@pytest.mark.skipif(
    not cudadrv.list_devices()[0].is_emulated, reason="needs the emulator, which counts captures"
)
@pytest.mark.parametrize("operation", few(CHOSEN, 5))
def test_after_an_interrupt_at_any_point_all_is_usable(operation: str) -> None:
    assert operation in OPERATIONS
    outcome = some_points(operation, MOST)
    assert outcome.failures == []
    assert outcome.cases[operation] > 5


def failing(good: int) -> dict[str, Operation]:
    """Return an operation by its name, which the driver rejects after some good calls."""
    calls = itertools.count(1)

    def operation(place: Place) -> tuple[Act, Check]:
        def act() -> None:
            if next(calls) > good:
                raise cudadrv.errors.InvalidValueError("launching")
            place.stream.synchronize()

        return act, lambda done: None

    return {"launch": operation}


@pytest.mark.slow
def test_a_call_that_fails_at_a_random_moment_is_counted_with_its_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("campaigns.interrupts.moments.LONG", failing(7))
    monkeypatch.setattr("campaigns.interrupts.moments.MOST_FAILURES", 2)
    late = Timer(1000, is_storm=False)
    monkeypatch.setattr("campaigns.interrupts.moments._moment", lambda chosen, seconds: late)
    outcome = Report()
    attack_moments(outcome, math.inf, 5, names=["launch"])
    assert "seed 5, case 5" in outcome.failures[0]
    assert "the call raises InvalidValueError: launching" in outcome.failures[0]
    assert len(outcome.failures) == 2


def test_a_call_that_fails_at_a_point_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATIONS, "launch", failing(2)["launch"])
    (failure,) = some_points("launch", 3).failures
    assert "the call raises InvalidValueError: launching" in failure
