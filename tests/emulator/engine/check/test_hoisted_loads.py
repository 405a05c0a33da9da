"""Loads that the compiler moves before their condition: a dropped value is no access."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import ptx
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.check.held_loads_writer import HeldLoadsWriter
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.short_cases import few

from ..kernel_runner import KernelRunner

SOURCE = Path(__file__).with_name("hoisted_loads.cu").read_text()
OF_TYPES = ("of_1", "of_4", "of_8", "element")
DROPPED = (
    "by_all_but_one", "by_all_but_the_first", "by_two_flags", "shared", "in_a_loop",
    "before_a_branch", *OF_TYPES,
)  # fmt: skip
USED = (
    "by_two", "by_the_first_two", "by_two_flags", "shared", "in_a_loop", "before_a_branch",
    "after_a_barrier", "as_an_index", "by_another_lane", *OF_TYPES,
)  # fmt: skip
TARGETS = ("compute_90", "compute_75", "compute_100")
ORDERS = (None, LaunchOrder("late"), LaunchOrder("random", 1), LaunchOrder("random", 2))


@functools.cache
def text(target: str) -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), lineinfo=True)
    compiled = ptx.compile(SOURCE, options, name="hoisted_loads.cu").ptx
    assert compiled is not None
    return compiled


def races(kernel: str, target: str, order: LaunchOrder | None = None) -> list[Finding]:
    """Return the races of 64 threads; the value is used, or dropped, by those below 64."""
    runner, findings = KernelRunner(text(target)), Findings()
    o = runner.put(np.zeros(64, dtype=np.int32))
    limits = Limits(checks={"race"}, findings=findings)
    runner.launch(kernel, 1, 64, o, 64, limits=limits, order=order)
    return [each for each in findings.found if not each.benign]


@pytest.mark.parametrize("order", few(ORDERS, 1), ids=str)
@pytest.mark.parametrize("target", few(TARGETS, 1))
@pytest.mark.parametrize("kernel", few(DROPPED, 4))
def test_a_load_whose_value_is_dropped_races_with_nothing(
    kernel: str, target: str, order: LaunchOrder | None
) -> None:
    assert [str(each) for each in races(f"dropped_{kernel}", target, order)] == []


@pytest.mark.parametrize("order", few(ORDERS, 1), ids=str)
@pytest.mark.parametrize("target", few(TARGETS, 1))
@pytest.mark.parametrize("kernel", few(USED, 4))
def test_a_load_whose_value_is_used_races(
    kernel: str, target: str, order: LaunchOrder | None
) -> None:
    found = races(f"used_{kernel}", target, order)
    assert {"read", "write"} in [{place.what for place in each.places} for each in found]


@pytest.mark.parametrize("target", few(TARGETS, 1))
@pytest.mark.parametrize("kernel", few(DROPPED, 4))
def test_a_load_whose_value_is_dropped_is_executed(
    kernel: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeldLoadsWriter, "is_needed", classmethod(lambda cls, code: False))
    assert races(f"dropped_{kernel}", target)
