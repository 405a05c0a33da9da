"""NaNs have the hardware's bits wherever a program can look at them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.engine.kernel_runner import run

CANONICAL = 0x7FFFFFFF
QUIET = 0x7FC01234
SIGNALLING = 0xFF800001
INPUTS = np.array(
    [
        [QUIET, 0x3F800000],
        [SIGNALLING, 0x3F800000],
        [0x7F800000, 0xFF800000],
        [0x3F800000, 0x40000000],
    ],
    np.uint32,
)
LOAD = "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];"


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("add.f32 %f3, %f1, %f2; st.global.f32 [%rd2], %f3;", 0x40400000),
        ("add.f32 %f3, %f1, %f2; mul.f32 %f4, %f3, %f3; st.global.f32 [%rd2], %f4;", 0x41100000),
        ("add.f32 %f3, %f1, %f2; mov.b32 %r3, %f3; st.global.u32 [%rd2], %r3;", 0x40400000),
        ("add.f32 %f3, %f1, %f2; mov.f32 %f4, %f3; mov.f32 %f5, %f4; st.global.f32 [%rd2], %f5;",
         0x40400000),
        ("add.f32 %f3, %f1, %f2; setp.eq.f32 %p1, %f1, %f1; selp.f32 %f4, %f3, %f3, %p1;"
         "mov.b64 %rd4, {%f4, %f4}; shr.u64 %rd4, %rd4, 32; cvt.u32.u64 %r3, %rd4;"
         "st.global.u32 [%rd2], %r3;", 0x40400000),
        ("sub.f32 %f3, %f1, %f2; neg.f32 %f3, %f3; neg.f32 %f3, %f3; abs.f32 %f3, %f3;"
         "add.f32 %f3, %f3, %f2; st.global.f32 [%rd2], %f3;", 0x40400000),
        ("add.f32 %f3, %f1, %f2; mov.u32 %r4, 3; LOOP: fma.rn.f32 %f3, %f3, %f2, %f1;"
         "sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra LOOP;"
         "st.global.f32 [%rd2], %f3;", 0x41F80000),
        ("add.f32 %f3, %f1, %f2; copysign.f32 %f4, %f2, %f3; and.b32 %r3, %f4, 0x7fffffff;"
         "st.global.u32 [%rd2], %r3;", 0x40400000),
    ],
)  # fmt: skip
def test_arithmetic_gives_the_canonical_nan(body: str, number: int) -> None:
    fixed = INPUTS.copy()
    fixed[2] = [0x7F800000, 0xFF800000]
    got = run(LOAD + body, fixed, np.uint32).tolist()
    expected = [CANONICAL, CANONICAL, CANONICAL, number]
    assert [hex(x) for x in got] == [hex(x) for x in expected]


def test_moves_and_selections_keep_a_payload() -> None:
    body = (
        LOAD
        + """mov.f32 %f3, %f1; setp.eq.u32 %p1, 0, 0; selp.f32 %f4, %f3, %f2, %p1;
        st.global.f32 [%rd2], %f4;"""
    )
    assert run(body, INPUTS, np.uint32).tolist() == INPUTS[:, 0].tolist()


def test_a_nan_of_f64_is_taken_from_the_second_operand() -> None:
    first, second = 0x7FF8_0000_0000_0001, 0xFFF0_0000_0000_0002
    inputs = np.array([[first, second], [first, 1 << 62], [1 << 62, second]], np.uint64)
    body = """ld.global.f64 %fd1, [%rd1]; ld.global.f64 %fd2, [%rd1+8];
        add.f64 %fd3, %fd1, %fd2; st.global.f64 [%rd2], %fd3;"""
    quiet = second | 1 << 51
    assert run(body, inputs, np.uint64).tolist() == [quiet, first, quiet]


def test_uniform_nans_are_canonical_too() -> None:
    body = """mov.f32 %f1, 0f7F800000; mov.f32 %f2, 0fFF800000; add.f32 %f3, %f1, %f2;
        fma.rn.f32 %f4, %f1, 0f00000000, %f2; mov.b64 %rd4, {%f3, %f4};
        st.global.u64 [%rd2], %rd4;"""
    assert run(body, INPUTS, np.uint64).tolist() == [CANONICAL << 32 | CANONICAL] * 4
