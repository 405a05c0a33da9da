"""Comparisons of floats and halves against Python's own, through the emulator."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import numpy as np
import pytest

from ptx.emulate.model.errors import UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text, run
from tests.emulator.engine.ops.lanes import Bits, Case, run_lanes
from tests.rows import all_rows

ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
NAMES = [*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan"]
LEAST = {"f32": 2.0**-126, "f16": 2.0**-14}


def compare(name: str, a: float, b: float) -> bool:
    """PTX ISA, "Floating-Point Comparisons": the table, word for word."""
    unordered = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name in ORDERED:
        return not unordered and ORDERED[name](a, b)
    return unordered or ORDERED[name.removesuffix("u")](a, b)


def value(bits: int, kind: str) -> float:
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    unsigned, floating = {"f16": ("u2", "f2"), "f32": ("u4", "f4"), "f64": ("u8", "f8")}[kind]
    return float(np.array(bits, unsigned).view(floating))


def flushed(x: float, kind: str) -> float:
    return 0.0 if abs(x) < LEAST[kind] else x


def pairs(kind: str) -> list[Bits]:
    """All pairs of special values of a kind, as bits."""
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[kind]
    special = {
        "f16": [0, 1, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7FFF],
        "bf16": [0, 1, 0x7F, 0x80, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0x7F81, 0x7FFF],
        "f32": [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000,
                0x7F800001, 0x7FFFFFFF],
        "f64": [0, 1, (1 << 52) - 1, 1 << 52, 0x3FF0 << 48, (0x3FF0 << 48) + 1,
                (0x7FF0 << 48) - 1, 0x7FF0 << 48, (0x7FF0 << 48) + 1, (1 << 63) - 1],
    }[kind]  # fmt: skip
    signed = np.array([*special, *(bits | 1 << (width - 1) for bits in special)], f"u{width // 8}")
    first, second = np.meshgrid(signed, signed)
    return [first.reshape(-1).copy(), second.reshape(-1).copy()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_setp_compares_as_the_isa_specifies(kind: str) -> None:
    operands = pairs(kind)
    register = kind if kind in ("f32", "f64") else "16"
    forms = [f"setp.{name}.{kind}" for name in NAMES]
    if kind in LEAST:
        forms += [f"setp.{name}.ftz.{kind}" for name in NAMES]
    got = run_lanes([Case(form, "pred", (register, register)) for form in forms], operands)
    for form, found in zip(forms, got, strict=True):
        floats = [[value(int(x), kind) for x in each] for each in operands]
        if ".ftz" in form:
            floats = [[flushed(x, kind) for x in each] for each in floats]
        want = [compare(form.split(".")[1], a, b) for a, b in zip(*floats, strict=True)]
        assert found.tolist() == want, form


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        *itertools.product(["f32", "f64"], ["u32", "s32", "f32", "f16", "bf16"]),
        *itertools.product(["f16", "bf16"], ["u32", "s32", "f32", "f16", "bf16", "u16", "s16"]),
    ],
)
def test_set_writes_what_is_true_in_the_target_type(kind: str, target: str) -> None:
    operands = pairs(kind)
    register = kind if kind in ("f32", "f64") else "16"
    held = "f32" if target == "f32" else ("16" if target.endswith("16") else "32")
    cases = [Case(f"set.{name}.{target}.{kind}", held, (register,) * 2) for name in NAMES]
    true = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s16": 0xFFFF}
    for name, found in zip(NAMES, run_lanes(cases, operands), strict=True):
        want = [
            true.get(target, 0xFFFFFFFF) * compare(name, value(int(a), kind), value(int(b), kind))
            for a, b in zip(*operands, strict=True)
        ]
        assert found.tolist() == want, name


def words(kind: str) -> tuple[Bits, list[Bits]]:
    """Pairs of halves in words: (n, 2) to compare, and the same as two halves an operand."""
    first, second = pairs(kind)
    halves = [np.stack([x, x[::-1]], axis=1).copy() for x in (first, second)]
    packed = np.concatenate([x.view(np.uint32) for x in halves], axis=1)
    return packed, halves


@pytest.mark.slow
@pytest.mark.parametrize("boolean", ["", "and", "or", "xor"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_setp_gives_a_predicate_a_half(kind: str, boolean: str) -> None:
    packed, (first, second) = words(kind)
    n = len(packed)
    third = np.arange(n) % 3 == 0
    inputs = np.concatenate([packed, third.astype(np.uint32)[:, None]], axis=1)
    for name in NAMES:
        suffix, last = (f".{boolean}", ", %p3") if boolean else ("", "")
        body = f"""ld.global.v2.u32 {{%r3, %r4}}, [%rd1]; ld.global.u32 %r5, [%rd1+8];
            setp.ne.u32 %p3, %r5, 0;
            setp.{name}{suffix}.{kind}x2 %p1|%p2, %r3, %r4{last};
            selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2; or.b32 %r6, %r6, %r7;
            st.global.u32 [%rd2], %r6;"""
        # Rows of 16 bytes, so that the vector load is aligned.
        found = run(body, np.pad(inputs, ((0, 0), (0, 1))), np.uint32)
        want = []
        for row in range(n):
            halves = [
                compare(name, value(int(first[row, k]), kind), value(int(second[row, k]), kind))
                for k in (0, 1)
            ]
            if boolean:
                halves = [BOOLEAN[boolean](half, bool(third[row])) for half in halves]
            want.append(halves[0] | halves[1] << 1)
        assert found.tolist() == want, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_set_writes_each_half(kind: str) -> None:
    packed, (first, second) = words(kind)
    operands = [packed[:, 0].copy(), packed[:, 1].copy()]
    ones = {f"{kind}x2": 0x3C00 if kind == "f16" else 0x3F80, "u32": 0xFFFF, "s32": 0xFFFF}
    for target, one in ones.items():
        cases = [Case(f"set.{name}.{target}.{kind}x2", "32", ("32", "32")) for name in NAMES]
        for name, found in zip(NAMES, run_lanes(cases, operands), strict=True):
            want = [
                sum(
                    (one << 16 * k) * compare(name, value(int(a[k]), kind), value(int(b[k]), kind))
                    for k in (0, 1)
                )
                for a, b in zip(first, second, strict=True)
            ]
            assert found.tolist() == want, (name, target)


def test_setp_writes_the_opposite_and_combines_both() -> None:
    values = np.array([[1, 2], [2, 1], [math.nan, 1], [1, 1]], np.float32)
    body = """ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];
        setp.gt.f32 %p3, %f2, 0f3FC00000;
        setp.lt.and.f32 %p1|%p2, %f1, %f2, %p3;
        selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; or.b32 %r3, %r3, %r4;
        setp.ltu.or.f32 %p1|_, %f1, %f2, !%p3; selp.u32 %r4, 4, 0, %p1; or.b32 %r3, %r3, %r4;
        st.global.u32 [%rd2], %r3;"""
    assert run(body, values, np.uint32).tolist() == [1 + 4, 4, 4, 4]


def test_slct_selects_the_first_where_the_third_is_not_negative() -> None:
    tested = np.array(
        [0x00000000, 0x80000000, 0x80000001, 0xBF800000, 0x7FC00000, 0x3F800000], np.uint32
    )
    body = """ld.global.f32 %f1, [%rd1]; slct.u32.f32 %r3, 1, 2, %f1;
        slct.ftz.u32.f32 %r4, 10, 20, %f1; add.u32 %r3, %r3, %r4; st.global.u32 [%rd2], %r3;"""
    assert run(body, tested[:, None], np.uint32).tolist() == [11, 11, 12, 22, 22, 11]


def test_forms_that_ptx_lacks_are_rejected() -> None:
    for instruction in (
        "setp.lt.ftz.f64 %p1, %fd1, %fd1", "setp.lo.f32 %p1, %f1, %f1",
        "set.lt.ftz.u32.f64 %r1, %fd1, %fd1", "add.rna.f32 %f1, %f1, %f1",
        "fma.f32 %f1, %f1, %f1, 0f00000000",
        "div.f32 %f1, %f1, %f1", "add.sat.f64 %fd1, %fd1, %fd1", "cvt.f32.f64 %f1, %fd1",
        "cvt.s32.f32 %r1, %f1", "cvt.rn.s32.f32 %r1, %f1", "cvt.rs.f32.f64 %f1, %fd1",
        "sin.f32 %f1, %f1", "min.xorsign.f32 %f1, %f1, %f1", "sqrt.approx.f64 %fd1, %fd1",
        "mul.rz.bf16 %rs1, %rs1, %rs1", "setp.lt.f16x2 %p1, %r1, %r1",
    ):  # fmt: skip
        text = ptx_text(
            f""".reg .pred %p<3>; .reg .b16 %rs<3>; .reg .b32 %r<3>; .reg .b64 %rd<3>;
            .reg .f32 %f<3>; .reg .f64 %fd<3>; {instruction}; selp.u32 %r2, 1, 0, %p1;
            st.global.v2.u32 [%rd1], {{%r1, %r2}}; st.global.f32 [%rd1], %f1;
            st.global.f64 [%rd1], %fd1; st.global.u16 [%rd1], %rs1; ret;"""
        )
        with pytest.raises(UnsupportedInstruction, match=instruction.split()[0]):
            KernelRunner(text, 1 << 20).program.kernel("k")
