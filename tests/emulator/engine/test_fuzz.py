"""A slice of the search that `python -m campaigns random_ptx` goes on with, and what it found."""

from __future__ import annotations

import numpy as np
import pytest

from campaigns.random_ptx.search import compare, reject, try_any
from campaigns.report import Report
from ptx.emulate.model.errors import OutOfBounds, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text, run
from tests.rows import all_rows

SLICE = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 100_100, SLICE))
def test_random_programs_give_the_bits_of_the_reference(first: int) -> None:
    report = Report()
    for seed in range(first, first + SLICE):
        compare(seed, report)
    assert not report.failures, report.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200_000, 200_160, SLICE))
def test_broken_texts_meet_typed_errors_only(first: int) -> None:
    report = Report()
    for seed in range(first, first + SLICE):
        reject(seed, report)
    assert not report.failures, report.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(300_000, 301_600, 10 * SLICE))
def test_instructions_of_the_table_meet_typed_errors_only(first: int) -> None:
    report = Report()
    for seed in range(first, first + 10 * SLICE):
        try_any(seed, report)
    assert not report.failures, report.failures[0]


def test_a_guard_that_is_also_a_result_holds_for_both_results() -> None:
    body = """ld.global.u32 %r3, [%rd1]; setp.ne.u32 %p1, %r3, 0; setp.ne.u32 %p2, %r3, 9;
    @%p1 setp.eq.u32 %p1|%p2, %r3, %r3;
    selp.u32 %r4, 1, 0, %p2; st.global.u32 [%rd2], %r4;"""
    found = run(body, np.array([[0], [5]], dtype=np.uint32), np.uint32)
    assert found.tolist() == [1, 0]


def test_a_sum_of_a_wider_register_uses_its_low_bits() -> None:
    body = """ld.global.u64 %rd4, [%rd1]; add.u32 %r3, %rd4, 7; st.global.u32 [%rd2], %r3;"""
    inputs = np.array([[0x1_0000_0001], [0xFFFF_FFFF_FFFF_FFFF]], dtype=np.uint64)
    assert run(body, inputs, np.uint32).tolist() == [8, 6]


@all_rows
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (".reg .b16 %h<2>; ld.global.u32 %r0, [%h0];", "no register of 32 or 64 bits"),
        (".reg .b64 %rd<2>; ld.global.u32 %r0, [k];", "is a function"),
        ("st.global.u32 [9223372036854775808], 1;", "beyond the address space"),
        ("st.global.u32 [n], 1;", "parameters are not written"),
        (".reg .b64 %rd<2>; cvta.u64 %rd0, %rd1; st.u32 [%rd0], 1;", "needs a state space"),
        (".reg .b64 %rd<2>; .reg .pred %p; isspacep %p, %rd1; @%p trap;", "needs a state space"),
        (".reg .f64 %d; mov.f64 {%r0, %r1}, %d; st.u32 [n], %r0;", "packed and unpacked as bits"),
        (".reg .f64 %d; mov.f64 %d, {%r0, %r1}; st.f64 [8], %d;", "packed and unpacked as bits"),
        (".local .b8 own[1000000]; st.local.u32 [own], 1;", "local memory"),
        ("ld.global.v2.u32 %r0, [8];", "it moves 2 elements and names 1"),
        ("ld.global.u32 {%r0, %r1}, [8];", "it moves 1 elements and names 2"),
        ("st.global.v4.u32 [8], {%r0, %r1, %r0};", "it moves 4 elements and names 3"),
        ("{ .param .b64 a; call vprintf, (a); }", "vprintf takes 2 arguments, and 1 are given"),
        ("{ .param .b64 a; call (a), malloc; }", "malloc takes 1 arguments, and 0 are given"),
        ("call __assertfail;", "__assertfail takes 4 arguments, and 0 are given"),
    ],
)
def test_what_cannot_be_executed_is_rejected_with_its_reason(body: str, reason: str) -> None:
    text = ptx_text(f".reg .b32 %r<2>; {body} ret;", ".param .u64 n")
    with pytest.raises(UnsupportedInstruction, match=reason):
        KernelRunner(text).program.kernel("k")


def test_a_generic_address_of_a_parameter_is_read_only() -> None:
    body = (
        """.reg .b64 %rd<2>; mov.u64 %rd0, n; cvta.param.u64 %rd1, %rd0; st.u32 [%rd1], 1; ret;"""
    )
    with pytest.raises(OutOfBounds, match="read-only"):
        KernelRunner(ptx_text(body, ".param .u64 n")).launch("k", 1, 1, 5)
