"""Copies of tensors that nothing waits for: seen in some orders, and by the race check."""

from __future__ import annotations

import pytest

from ptx.emulate.check.findings import Findings
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.ops.tensor_device import STORE, WAIT, Device, arrive, load, noise

ORDERS = [LaunchOrder("late"), *(LaunchOrder("random", seed) for seed in range(6))]
# The block's first 32 bytes as they are behind the given code, in the first 32 of the result.
READ = """ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [s]; st.global.v4.b32 [%rd2],
    {%r20, %r21, %r22, %r23};"""
CHANGED = "mov.u32 %r15, 7; st.shared.u32 [s], %r15;"
STORED = f"{STORE} [%rd1, {{0, 4}}], [%r5]; cp.async.bulk.commit_group;"
COMBINED = f"cp.reduce.async.bulk.tensor.2d.{STORE[24:].replace('.tile', '.add.tile')}"
# Right code, and what is left out of it for a faulty twin.
LATE_CODES = {
    "load": (f"{arrive(64)} {load((0, 0))} ⟦{WAIT}⟧ {READ}", ()),
    "store": (
        f"{arrive(64)} {load((0, 0))} {WAIT} {STORED} ⟦cp.async.bulk.wait_group.read 0;⟧ {CHANGED}"
        " cp.async.bulk.wait_group 0;",
        (4,),
    ),
    "sum": (
        f"{arrive(64)} {load((0, 0))} {WAIT} {COMBINED} [%rd1, {{0, 4}}], [%r5];"
        f" cp.async.bulk.commit_group; ⟦cp.async.bulk.wait_group 0;⟧ {CHANGED}",
        (4,),
    ),
}


def of_a_twin(name: str, *, right: bool) -> str:
    code = LATE_CODES[name][0]
    before, _, rest = code.partition("⟦")
    left_out, _, after = rest.partition("⟧")
    return before + (left_out if right else "") + after


def seen(name: str, order: LaunchOrder, *, right: bool) -> bytes:
    device = Device(of_a_twin(name, right=right), noise((8, 16), "f2"), (2, 16))
    found = device.launched(16, order=order)
    return found.tobytes() + device.tensor().tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", LATE_CODES)
def test_a_copy_lands_as_late_as_its_wait_allows(name: str) -> None:
    expected = {seen(name, order, right=True) for order in ORDERS}
    assert len(expected) == 1
    assert seen(name, ORDERS[0], right=False) not in expected


@pytest.mark.parametrize("name", LATE_CODES)
def test_a_copy_that_is_not_waited_for_is_a_race(name: str) -> None:
    for right in (True, False):
        findings = Findings()
        device = Device(of_a_twin(name, right=right), noise((8, 16), "f2"), (2, 16))
        device.launched(16, limits=Limits(checks={"race"}, findings=findings))
        assert bool(findings.found) != right


def test_two_boxes_at_one_place_are_a_race_unless_they_are_sums() -> None:
    for body, is_race in ((STORED, True), (f"{COMBINED} [%rd1, {{0, 4}}], [%r5];", False)):
        findings = Findings()
        stored = f"{CHANGED} add.u32 %r15, %r2, 1; st.shared.u32 [s], %r15;"
        whole = f"{stored} fence.proxy.async.shared::cta; {body}"
        device = Device(whole, noise((8, 16), "f2"), (2, 16))
        device.launched(16, 2, limits=Limits(checks={"race"}, findings=findings))
        assert any(not each.benign for each in findings.found) == is_race
