"""CUDA's narrow formats as NVRTC compiles them for 10.0 and 12.0, against ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ptx
from tests.emulator.engine.ops.corpus import runner_of, text_of

TARGETS = ["compute_100a", "compute_120f"]
E2M1, E2M3, E3M2, E4M3, E5M2, E8M0 = (
    ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu,
)  # fmt: skip
GREATEST = {E2M1: 6.0, E2M3: 7.5, E3M2: 28.0, E4M3: 448.0, E5M2: 57344.0}


def floats(count: int) -> NDArray[np.float32]:
    """(count, 2) numbers around those that the formats have, and beyond."""
    rng = np.random.default_rng(11)
    found = np.ldexp(rng.integers(-64, 65, (count, 2)) / 16, rng.integers(-20, 20, (count, 2)))
    found[: count // 2] = rng.integers(-256, 257, (count // 2, 2)) / 32
    return found.astype(np.float32)


def bits_of(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Rounded to nearest, what is too great to the greatest number."""
    most = GREATEST[kind]
    return np.clip(values.astype(np.float32), -most, most).astype(kind).view(np.uint8)


def paired(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """The second one above."""
    low, high = (bits_of(values[:, k].copy(), kind).astype(np.uint32) for k in (0, 1))
    return high << (4 if kind is E2M1 else 8) | low


def scales(values: NDArray[np.float32], *, up: bool) -> NDArray[Any]:
    """The exponents at or below, or at or above, of sizes."""
    sizes = np.abs(values.astype(np.float64))
    with np.errstate(divide="ignore"):
        exact = np.log2(sizes)
    whole = np.clip(np.ceil(exact) if up else np.floor(exact), -127, 127).astype(np.int64) + 127
    return (whole[:, 1] << 8 | whole[:, 0]).astype(np.uint32)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_numbers_are_rounded_to_the_narrow_formats(target: str) -> None:
    runner = runner_of("blackwell.cu", target)
    values = floats(500)
    out = runner.put(np.zeros((11, 500), np.uint32))
    runner.launch("narrow", 2, 256, runner.put(values), out, 500)
    found = runner.get(out, 5500, np.uint32).reshape(11, 500)
    brain = values.astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    want = [
        *(paired(values, kind) for kind in (E2M1, E2M3, E3M2, E4M3, E5M2)),
        paired(brain, E2M1),
        paired(brain, E3M2),
        paired(half, E2M3),
        paired(brain, E4M3),
        scales(values, up=True),
        scales(values, up=False),
    ]
    for row, (ours, theirs) in enumerate(zip(found, want, strict=True)):
        assert np.array_equal(ours, theirs), row


@pytest.mark.parametrize("target", TARGETS)
def test_every_narrow_number_is_widened(target: str) -> None:
    runner = runner_of("blackwell.cu", target)
    out = runner.put(np.zeros(1024, np.uint32))
    runner.launch("wide", 1, 256, out)
    found = runner.get(out, 1024, np.uint32).reshape(4, 256, 1).view(np.uint16)
    codes = np.arange(256, dtype=np.uint8)
    fours = np.stack([codes & 15, codes >> 4], axis=1).view(E2M1).astype(np.float16)
    assert np.array_equal(found[0], fours.view(np.uint16))
    for row, kind in ((1, E2M3), (2, E3M2)):
        sixes = (codes & 63).view(kind).astype(np.float16).view(np.uint16)
        assert np.array_equal(found[row], np.stack([sixes, sixes], axis=1))
    powers = codes.view(E8M0).astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    want = np.stack([powers[::-1], powers], axis=1)
    is_number = np.stack([codes[::-1], codes], axis=1) != 255
    assert np.array_equal(found[3][is_number], want[is_number])
    assert (found[3][~is_number] == 0x7FFF).all()


@pytest.mark.parametrize("target", TARGETS)
def test_packed_floats_and_wide_copies(target: str) -> None:
    runner = runner_of("blackwell.cu", target)
    values = np.random.default_rng(1).normal(size=(3, 300, 2)).astype(np.float32)
    out = runner.put(np.zeros_like(values))
    runner.launch("pairs", 2, 256, runner.put(values), out, 300)
    found = runner.get(out, values.size, np.float32).reshape(values.shape)
    x, y, z = values
    fused = (x.astype(np.float64) * y + z).astype(np.float32)
    assert np.array_equal(found[0], x + y)
    assert np.array_equal(found[1], x * y)
    assert np.allclose(found[2], fused, rtol=1e-7)
    doubles = np.random.default_rng(2).normal(size=(32, 4))
    copy = runner.put(np.zeros_like(doubles))
    runner.launch("copied", 1, 32, runner.put(doubles), copy)
    assert np.array_equal(runner.get(copy, 128, np.float64).reshape(32, 4), doubles)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_compiler_uses_the_instructions_of_the_target(target: str) -> None:
    if ptx.nvrtc_version() < (13, 3):
        pytest.skip("needs NVRTC 13.3, which has these conversions")
    text = text_of("blackwell.cu", target)
    for name in (
        "cvt.rn.satfinite.e2m1x2.f32", "cvt.rn.satfinite.e3m2x2.bf16x2", "cvt.rn.f16x2.e2m3x2",
        "cvt.rp.satfinite.ue8m0x2.f32", "cvt.rn.bf16x2.ue8m0x2", "fma.rn.f32x2",
        "ld.global.v4.b64",
    ):  # fmt: skip
        assert name in text, name
