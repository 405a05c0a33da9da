"""Bulk copies and tensor cores: each faulty program is reported in every order, no right one is."""

from __future__ import annotations

import numpy as np
import pytest

import ptx
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows
from tests.short_cases import few

from ..kernel_runner import KernelRunner
from .tensor_core_programs import LIKELY_INTENTIONAL, PROGRAMS, Program, compiled

ORDERS = [LaunchOrder("late"), *(LaunchOrder("random", seed) for seed in (1, 2, 3))]
RIGHT = [each for each in PROGRAMS if each.is_right]
FAULTY = [each for each in PROGRAMS if not each.is_right]
DATA = (np.arange(8192) % 7).astype(np.float16)


def named(program: Program) -> str:
    return program.name.replace(" ", "-")


def launched(program: Program, order: LaunchOrder | None) -> tuple[list[Finding], str, bytes]:
    """What is found, the fault that ends the launch, and the result."""
    runner = KernelRunner(compiled(program.target), 1 << 20)
    given, out = runner.put(DATA), runner.put(np.zeros(4096, np.float32))
    findings, fault = Findings(), ""
    try:
        runner.launch(
            program.symbol,
            1,
            program.threads,
            given,
            out,
            order=order,
            limits=Limits(checks={"race"}, findings=findings, max_steps=50_000),
        )
    except ptx.PtxError as error:
        fault = str(error)
    return findings.found, fault, runner.get(out, 4096, np.float32).tobytes()


def require_report(program: Program, order: LaunchOrder | None) -> None:
    found, fault, _ = launched(program, order)
    told = [each for each in found if not each.benign]
    assert told or fault
    if told and not fault:  # what races first may be something else where threads go wrong
        assert any(program.words in str(each) for each in told)
    for each in told:
        assert all(place.line is not None for place in each.places)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("program", few(RIGHT, 5), ids=named)
def test_a_right_program_is_not_reported(program: Program) -> None:
    assert launched(program, None)[:2] == ([], "")


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("program", few(FAULTY, 6), ids=named)
def test_a_faulty_program_is_reported(program: Program) -> None:
    require_report(program, None)


@all_rows
@pytest.mark.slow
@pytest.mark.parametrize("program", RIGHT, ids=named)
def test_a_right_program_is_not_reported_in_another_order(program: Program) -> None:
    results = {launched(program, None)[2]}
    for order in ORDERS:
        found, fault, result = launched(program, order)
        assert (found, fault) == ([], "")
        results.add(result)
    assert len(results) == 1


@all_rows
@pytest.mark.slow
@pytest.mark.parametrize("program", FAULTY, ids=named)
def test_a_faulty_program_is_reported_in_every_order(program: Program) -> None:
    for order in ORDERS:
        require_report(program, order)


def test_a_fence_left_out_after_cp_async_is_reported_as_likely_intentional() -> None:
    for order in (None, ORDERS[0]):
        found, fault, _ = launched(LIKELY_INTENTIONAL, order)
        assert fault == ""
        assert {each.kind for each in found} == {"proxy fence missing"}
        assert all("leave this fence out after cp.async" in each.benign for each in found)
