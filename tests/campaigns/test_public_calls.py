from __future__ import annotations

import pytest

import cudadrv
import ptx
from campaigns.public_calls.calls import attack_round
from campaigns.public_calls.surface import Target, targets
from campaigns.report import Report

pytestmark = pytest.mark.slow


def _round_of(function: object) -> Report:
    assert callable(function)
    outcome = Report()
    attack_round(0, 1, [Target("a.function", None, function, ())], outcome)
    return outcome


def test_an_error_out_of_the_inside_does_not_hold_and_reports_what_repeats_it() -> None:
    for fault in (KeyError("k"), AttributeError("a"), OverflowError("o"), MemoryError("m")):

        def fails(fault: Exception = fault) -> None:
            raise fault

        outcome = _round_of(fails)
        assert len(outcome.failures) == sum(outcome.cases.values()) > 0
        assert outcome.failures[0].startswith(f"a.function(): {type(fault).__name__}: ")
        assert "seed 1 round 0" in outcome.failures[0]


def test_an_error_of_the_library_holds() -> None:
    for fault in (cudadrv.ClosedError("closed"), ptx.PtxArgumentValueError("wrong")):

        def fails(fault: Exception = fault) -> None:
            raise fault

        outcome = _round_of(fails)
        assert not outcome.failures
        assert list(outcome.cases) == [f"a: {type(fault).__name__}"]


def test_a_seed_makes_the_same_calls_again() -> None:
    known, twins = targets(), (Report(), Report())
    for outcome in twins:
        attack_round(3, 5, known, outcome)
    assert twins[0].cases == twins[1].cases


def test_every_public_function_is_a_target() -> None:
    names = {target.name for target in targets()}
    assert len(names) > 300
    assert {
        "cudadrv.Stream.alloc", "cudadrv.LaunchConfig", "cudadrv.Stream.handle",
        "cudadrv.Device.get", "cudadrv.emulator.session", "ptx.compile", "operation.launch",
    } <= names  # fmt: skip
