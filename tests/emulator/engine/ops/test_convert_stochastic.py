"""`cvt.rs`: random bits are added to those that are cut away, and the carry is kept."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text, run

Words = NDArray[Any]  # uint32
# The type, the bits of a fraction, and the exponents of normal numbers that all results have.
TYPES: dict[str, tuple[Any, int, tuple[int, int]]] = {
    "f16x2": (np.float16, 10, (-14, 14)),
    "bf16x2": (ml_dtypes.bfloat16, 7, (-100, 100)),
    "e4m3x4": (ml_dtypes.float8_e4m3fn, 3, (-6, 7)),
    "e5m2x4": (ml_dtypes.float8_e5m2, 2, (-14, 14)),
    "e2m3x4": (ml_dtypes.float6_e2m3fn, 3, (0, 1)),
    "e3m2x4": (ml_dtypes.float6_e3m2fn, 2, (-2, 3)),
    "e2m1x4": (ml_dtypes.float4_e2m1fn, 1, (0, 1)),
}
GREATEST = {"e4m3x4": 448.0, "e5m2x4": 57344.0, "e2m3x4": 7.5, "e3m2x4": 28.0, "e2m1x4": 6.0}
HALVES = ("f16x2", "bf16x2")


def random_of(name: str, random: Words) -> tuple[list[Words], int]:
    """The random bits of each value, the first one in the highest bits, and how many they are."""
    halves = [random >> 16, random & 0xFFFF]
    if name == "f16x2":
        return [half & 0x1FFF for half in halves], 13
    if name == "bf16x2":
        return halves, 16
    if name == "e2m1x4":
        upper, lower = ([half >> 8 & 0xFF for half in halves], [half & 0xFF for half in halves])
        return [*upper, *lower], 8
    return [halves[0], halves[0], halves[1], halves[1]], 16


def samples(name: str, count: int) -> NDArray[np.float32]:
    """(n, count) numbers whose neighbours in the type are normal."""
    rng = np.random.default_rng(3)
    low, high = TYPES[name][2]
    exponents = rng.integers(low, high + 1, (400, count))
    found = np.ldexp(1 + rng.random((400, count)), exponents) * rng.choice([-1, 1], (400, count))
    found[::7] = np.ldexp(1.0, exponents[::7])  # exact ones
    floats: NDArray[np.float32] = found.astype(np.float32)
    return floats


def instruction(name: str, flags: str = "") -> str:
    satfinite = "" if name in HALVES else ".satfinite"
    operands = "%f1, %f2" if name in HALVES else "{%f1, %f2, %f3, %f4}"
    target = "%rs1" if name == "e2m1x4" else "%r3"
    return f"cvt.rs{flags}{satfinite}.{name}.f32 {target}, {operands}, %r4;"


def converted(name: str, values: NDArray[np.float32], random: Words, flags: str = "") -> Words:
    count = values.shape[1]
    loads = "".join(f"ld.global.f32 %f{k + 1}, [%rd1+{4 * k}];" for k in range(count))
    body = f"""
    {loads} ld.global.u32 %r4, [%rd1+{4 * count}];
    {instruction(name, flags)} {"cvt.u32.u16 %r3, %rs1;" if name == "e2m1x4" else ""}
    st.global.u32 [%rd2], %r3;
    """
    inputs = np.concatenate([values.view(np.uint32), random[:, None]], axis=1)
    found: Words = run(body, inputs, np.uint32)
    return found


def joined(name: str, each: list[NDArray[Any]]) -> Words:
    """Values of the type side by side, the first one highest."""
    step = {"f16x2": 16, "bf16x2": 16, "e2m1x4": 4}.get(name, 8)
    word = np.zeros(len(each[0]), np.uint32)
    for values in each:
        bits = np.ascontiguousarray(values).view(np.uint16 if step == 16 else np.uint8)
        word = word << np.uint32(step) | bits.astype(np.uint32)
    return word


@pytest.mark.parametrize("name", TYPES)
def test_a_carry_of_the_random_bits_rounds_away_from_zero(name: str) -> None:
    kind, fraction, _ = TYPES[name]
    count = 2 if name in HALVES else 4
    values = samples(name, count)
    random = np.random.default_rng(5).integers(0, 1 << 32, len(values), np.uint32)
    each, bits = random_of(name, random)
    dropped = 23 - fraction
    want = []
    for k in range(count):
        whole = values[:, k].copy().view(np.uint32)
        added = each[k] << (dropped - bits) if dropped >= bits else each[k] >> (bits - dropped)
        magnitude = (whole & 0x7FFFFFFF) + added.astype(np.uint32) & ~np.uint32((1 << dropped) - 1)
        want.append((magnitude | whole & 0x80000000).view(np.float32).astype(kind))
    assert np.array_equal(converted(name, values, random), joined(name, want))


@pytest.mark.parametrize("name", TYPES)
def test_numbers_of_the_type_stay_whatever_the_random_bits_are(name: str) -> None:
    kind = TYPES[name][0]
    count = 2 if name in HALVES else 4
    values = samples(name, count).astype(kind).astype(np.float32)
    random = np.full(len(values), 0xFFFFFFFF, np.uint32)
    want = joined(name, [values[:, k].astype(kind) for k in range(count)])
    assert np.array_equal(converted(name, values, random), want)


@pytest.mark.parametrize("name", TYPES)
def test_negative_numbers_become_zero_with_relu(name: str) -> None:
    count = 2 if name in HALVES else 4
    values = -np.abs(samples(name, count))
    assert not converted(name, values, np.zeros(len(values), np.uint32), ".relu").any()


@pytest.mark.parametrize("name", list(TYPES)[2:])
def test_what_is_too_great_becomes_the_greatest_number(name: str) -> None:
    kind = TYPES[name][0]
    values = np.array([[1e9, -1e9, np.inf, -np.inf]], np.float32)
    greatest = GREATEST[name]
    ends = [np.array([sign * greatest]).astype(kind) for sign in (1, -1, 1, -1)]
    assert np.array_equal(converted(name, values, np.zeros(1, np.uint32)), joined(name, ends))


@pytest.mark.parametrize(
    "line",
    [
        "cvt.rs.f16x2.f32 %r3, %f1, %f2;",
        "cvt.rs.satfinite.e4m3x4.f32 %r3, {%f1, %f2}, %r4;",
        "cvt.rs.e4m3x4.f32 %r3, {%f1, %f2, %f3, %f4}, %r4;",
    ],
)
def test_other_forms_are_rejected(line: str) -> None:
    used = ".shared .b32 s; st.shared.b32 [s], %r3;"
    text = ptx_text(f".reg .b32 %r<9>; .reg .f32 %f<9>; {line} {used} ret;")
    with pytest.raises(UnsupportedInstruction, match=r"cvt\.rs"):
        KernelRunner(text, 1 << 20).program.kernel("k")
