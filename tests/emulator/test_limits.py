"""The limits of launches: what they take."""

from __future__ import annotations

from typing import Any

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator import Limits


@pytest.mark.parametrize(
    "given", [["race"], ("race",), {"race"}, frozenset({"race"}), iter(["race"])]
)
def test_checks_are_given_in_any_collection(given: Any) -> None:  # also those the type excludes
    limits = Limits(checks=given)
    assert limits.checks == {"race"}
    with emulator.session(limits=limits, check="init"):
        assert cudadrv.cuda_context_for(0).default_stream.zeros(2, "i4").size == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [("race", "Limits: checks"), (7, "Limits: checks"), ([7], "Limits: a check")],
)
def test_checks_that_are_no_texts_are_rejected(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Limits(checks=given)


def test_a_number_that_is_too_small_is_rejected() -> None:
    with pytest.raises(ValueError, match="Limits: max_steps is 0: give more"):
        Limits(max_steps=0)
