"""fma against libm's, and against exact rationals in the directed modes."""

from __future__ import annotations

import ctypes
import ctypes.util
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptx.emulate.ieee import Rounding, fma
from tests.emulator.engine.ieee import reference, samples

LAYOUT = {
    np.float32: (24, 8, np.uint32, ctypes.c_float),
    np.float64: (53, 11, np.uint64, ctypes.c_double),
}
RNG_SEED = 6


def libm_fma(dtype: type[Any], *operands: samples.Values) -> samples.Values:
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("this platform has no libm to compare with")
    kind = LAYOUT[dtype][3]
    function = getattr(ctypes.CDLL(name), "fmaf" if dtype is np.float32 else "fma")
    function.argtypes = [kind] * 3
    function.restype = kind
    rows = zip(*(x.tolist() for x in operands), strict=True)
    return np.array([function(*row) for row in rows], dtype)


def same_but_nan(x: samples.Values, y: samples.Values) -> samples.Values:
    unsigned = np.uint32 if x.dtype == np.float32 else np.uint64
    return (x.view(unsigned) == y.view(unsigned)) | (np.isnan(x) & np.isnan(y))


def families(dtype: type[Any], n: int) -> list[list[samples.Values]]:
    rng = np.random.default_rng(RNG_SEED)
    reach = 140 if dtype is np.float32 else 1060
    digits = 12 if dtype is np.float32 else 27
    made = [[samples.random_bits(dtype, n, rng) for _ in range(3)]]
    for spread in (3, digits, 2 * digits, reach // 2, reach):
        made.append([samples.short(dtype, n, digits, spread, rng) for _ in range(3)])
        made.append([samples.near_powers(dtype, n, spread, rng) for _ in range(3)])
    a, b = (samples.random_bits(dtype, n, rng) for _ in range(2))
    with np.errstate(all="ignore"):
        made.append([a, b, -(a * b)])
        x, y = (samples.near_powers(dtype, n, 30, rng) for _ in range(2))
        made.append([x, y, -(x * y)])
        # An addend far above or below the product, so that only the tie's side is left of it.
        tiny = dtype(2.0 ** -(reach - 2 * digits))
        made.append([x * tiny, y, samples.near_powers(dtype, n, 60, rng)])
        made.append([samples.short(dtype, n, digits, 2, rng), y, x * tiny])
        # Subnormal factors of few bits, against factors that bring them back into range.
        few = samples.short(dtype, n, digits // 3, digits, rng) * np.finfo(dtype).smallest_subnormal
        made.append([few, samples.near_powers(dtype, n, reach, rng), x * tiny])
        made.append([samples.near_powers(dtype, n, reach, rng), few, few])
    return made


def exact_bits(dtype: type[Any], a: Any, b: Any, c: Any, mode: reference.Mode) -> int | None:
    if not all(np.isfinite([a, b, c])):
        return None
    precision, exponent_bits, _, _ = LAYOUT[dtype]
    value = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    p_negative = bool(np.signbit(a) ^ np.signbit(b))
    both = p_negative == bool(np.signbit(c))
    zero_negative = p_negative if both else mode == "RM"
    return reference.encode(value, mode, precision, exponent_bits, zero_negative=zero_negative)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_of_special_values_equals_libm(dtype: type[Any]) -> None:
    operands = samples.combinations(dtype, 3)
    assert same_but_nan(fma(*operands), libm_fma(dtype, *operands)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_of_random_and_risky_values_equals_libm(dtype: type[Any]) -> None:
    for operands in families(dtype, 4000):
        got, want = fma(*operands), libm_fma(dtype, *operands)
        wrong = np.flatnonzero(~same_but_nan(got, want))
        assert not wrong.size, [float(x[wrong[0]]).hex() for x in (*operands, got, want)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["RN", "RZ", "RM", "RP"])
def test_fma_rounds_once_in_every_mode(dtype: type[Any], mode: reference.Mode) -> None:
    unsigned = LAYOUT[dtype][2]
    for operands in families(dtype, 250):
        got = fma(*operands, rounding=Rounding[mode]).view(unsigned)
        for i, row in enumerate(zip(*operands, strict=True)):
            a, b, c = row
            want = exact_bits(dtype, a, b, c, mode)
            assert want is None or int(got[i]) == want, [float(x).hex() for x in row]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_of_scalars_and_of_mixed_shapes_keeps_the_type(dtype: type[Any]) -> None:
    third = dtype(1) / dtype(3)
    x = np.linspace(0, 1, 7, dtype=dtype)
    assert isinstance(fma(third, third, third), dtype)
    assert fma(x, third, third).dtype == dtype
    assert (fma(x, third, third) == [fma(v, third, third) for v in x]).all()
    assert (fma(third, third, x.reshape(7, 1)).ravel() == [fma(third, third, v) for v in x]).all()
