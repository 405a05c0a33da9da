"""Flushing of subnormal numbers, where it is done and where it was found to be needless."""

from __future__ import annotations

import numpy as np
import pytest

import ptx
from ptx.emulate.codegen.analysis.float_registers import (
    registers_with_visible_bits,
    registers_without_subnormals,
)
from tests.emulator.engine.kernel_runner import ptx_text, run

LEAST = 0x00800000
TINY = 0x00000001
BODY = """
    .reg .f32 %f<12>; .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
    ld.global.f32 %f1, [%rd1];
    mul.ftz.f32 %f2, %f1, %f1;
    mov.f32 %f3, %f2;
    mov.f32 %f4, %f1;
    mov.f32 %f5, 0f3F800000;
    mov.f32 %f6, 0f00000001;
    selp.f32 %f7, %f2, %f5, %p1;
    selp.f32 %f8, %f3, %f4, %p1;
    add.f32 %f9, %f2, %f2;
    add.ftz.f32 %f10, %f9, %f8;
    add.f32 %f10, %f10, %f2;
    st.global.f32 [%rd1], %f3;
    setp.lt.f32 %p1, %f9, %f10;
    ret;"""


def test_only_flushing_instructions_and_moves_of_their_results_bring_no_subnormals() -> None:
    body = ptx.parse(ptx_text(BODY)).body("k")
    assert registers_without_subnormals(body) == {"%f2", "%f3", "%f5", "%f7"}


def test_bits_are_visible_through_stores_and_moves_but_not_arithmetic() -> None:
    body = ptx.parse(ptx_text(BODY)).body("k")
    visible = registers_with_visible_bits(body)
    assert {"%f2", "%f3"} <= visible
    assert not visible & {"%f8", "%f9", "%f10"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # The operand is flushed, and the result.
        ("add.ftz.f32 %f3, %f1, %f1; st.global.f32 [%rd2], %f3;", [0, 0, LEAST + LEAST]),
        ("mul.ftz.f32 %f3, %f1, 0f3F000000; st.global.f32 [%rd2], %f3;", [0, 0, 0]),
        # A move keeps what `.ftz` drops afterwards.
        ("mov.f32 %f3, %f1; st.global.f32 [%rd2], %f3;", [TINY, LEAST - 1, LEAST]),
        ("mov.f32 %f3, %f1; add.ftz.f32 %f4, %f3, %f1; st.global.f32 [%rd2], %f4;",
         [0, 0, 2 * LEAST]),
        # The result of the first instruction needs no flushing, that of the second one does.
        ("add.ftz.f32 %f3, %f1, %f1; add.f32 %f4, %f1, 0f00000000; add.ftz.f32 %f5, %f3, %f4;"
         "st.global.f32 [%rd2], %f5;", [0, 0, 0x01400000]),
        # A register that a guard leaves as it was.
        ("mov.f32 %f3, %f1; setp.ne.u32 %p1, %r0, %r0; @%p1 add.ftz.f32 %f3, %f1, %f1;"
         "sub.ftz.f32 %f4, %f3, 0f80000000; st.global.f32 [%rd2], %f4;", [0, 0, LEAST]),
        ("setp.gt.ftz.f32 %p1, %f1, 0f00000000; selp.u32 %r3, 1, 0, %p1;"
         "st.global.u32 [%rd2], %r3;", [0, 0, 1]),
        ("max.ftz.f32 %f3, %f1, 0f00000000; st.global.f32 [%rd2], %f3;", [0, 0, LEAST]),
        ("fma.rn.ftz.f32 %f3, %f1, 0f3F800000, %f1; st.global.f32 [%rd2], %f3;",
         [0, 0, 2 * LEAST]),
    ],
)  # fmt: skip
def test_ftz_flushes_operands_and_results(body: str, expected: list[int]) -> None:
    inputs = np.array([[TINY], [LEAST - 1], [LEAST]], np.uint32)
    got = run("ld.global.f32 %f1, [%rd1];" + body, inputs, np.uint32)
    # Doubling the least normal number adds one to the exponent.
    wanted = [0x01000000 if value == 2 * LEAST else value for value in expected]
    assert [hex(x) for x in got] == [hex(x) for x in wanted]
