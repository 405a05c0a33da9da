"""What NVRTC makes of the math functions, against the C library, within CUDA's stated errors.

CUDA C++ Programming Guide, "Mathematical Functions": largest errors in units in the last place.
The references are computed in float64 and are themselves up to one unit off; where they would be
further off, nothing is tried.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import text_of
from tests.rows import all_rows
from tests.short_cases import few

Floats = NDArray[Any]
TARGETS = ["compute_75", "compute_90", "compute_100", "compute_120"]
WIDE = (-30.0, 30.0)
UNIT = (-0.999, 0.999)
POSITIVE = (1e-3, 40.0)
# Name: reference, where it is tried, error of float, error of double.
FUNCTIONS: dict[str, tuple[Callable[..., float], tuple[float, float], float, float]] = {
    "exp": (math.exp, WIDE, 2, 1),
    "exp2": (math.exp2, WIDE, 2, 1),
    "exp10": (lambda x: 10.0**x, WIDE, 2, 1),
    "expm1": (math.expm1, UNIT, 1, 1),
    "log": (math.log, POSITIVE, 1, 1),
    "log2": (math.log2, POSITIVE, 1, 1),
    "log10": (math.log10, POSITIVE, 2, 1),
    "log1p": (math.log1p, POSITIVE, 1, 1),
    "sin": (math.sin, (-1e5, 1e5), 2, 2),
    "cos": (math.cos, (-1e5, 1e5), 2, 2),
    "tan": (math.tan, (-1e5, 1e5), 4, 2),
    "asin": (math.asin, UNIT, 4, 2),
    "acos": (math.acos, UNIT, 3, 2),
    "atan": (math.atan, WIDE, 2, 2),
    "sinh": (math.sinh, WIDE, 3, 2),
    "cosh": (math.cosh, WIDE, 2, 1),
    "tanh": (math.tanh, WIDE, 2, 1),
    "asinh": (math.asinh, WIDE, 3, 3),
    "acosh": (math.acosh, (1.0, 90.0), 4, 3),
    "atanh": (math.atanh, UNIT, 3, 2),
    "erf": (math.erf, (-4.0, 4.0), 2, 2),
    "erfc": (math.erfc, (-4.0, 9.0), 4, 5),
    "lgamma": (math.lgamma, (12.0, 90.0), 6, 4),
    "tgamma": (math.gamma, (-4.9, 30.0), 11, 10),
    "cbrt": (math.cbrt, WIDE, 1, 1),
    "rcbrt": (lambda x: 1.0 / math.cbrt(x), POSITIVE, 2, 2),
    "rsqrt": (lambda x: 1.0 / math.sqrt(x), POSITIVE, 2, 1),
    "sqrt": (math.sqrt, POSITIVE, 0, 0),
    "pow": (lambda x, y: x**y, POSITIVE, 9, 2),
    "atan2": (math.atan2, WIDE, 3, 2),
    "hypot": (math.hypot, WIDE, 3, 2),
    "fmod": (math.fmod, WIDE, 0, 0),
    "remainder": (math.remainder, WIDE, 0, 0),
    "fmax": (max, WIDE, 0, 0),
    "fmin": (min, WIDE, 0, 0),
    "copysign": (math.copysign, WIDE, 0, 0),
    "floor": (math.floor, WIDE, 0, 0),
    "ceil": (math.ceil, WIDE, 0, 0),
    "trunc": (math.trunc, WIDE, 0, 0),
    "rint": (round, WIDE, 0, 0),
    "normcdf": (lambda x: math.erfc(-x / math.sqrt(2)) / 2, (-0.5, 5.0), 5, 5),
}


@functools.cache
def runner(
    target: str, fast: bool = False, debug: bool = False, name: str = "floating.cu"
) -> KernelRunner:
    return KernelRunner(text_of(name, target, debug=debug, fast=fast))


def launch(on: KernelRunner, name: str, a: Floats, b: Floats, rows: int, dtype: Any) -> Floats:
    """Run a kernel once a lane; (rows, n) of dtype."""
    n = len(a)
    out = on.put(np.zeros(rows * n, dtype))
    on.launch(name, 1, n, on.put(a), on.put(b), out, n)
    return on.get(out, rows * n, dtype).reshape(rows, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "fast", "debug"),
    few(
        [
            *((target, False, False) for target in TARGETS),
            ("compute_120", True, False),
            ("compute_120", False, True),
        ],
        1,
    ),
)
def test_every_kernel_of_the_corpus_loads(target: str, fast: bool, debug: bool) -> None:
    program = runner(target, fast, debug).program
    names = [name for name, each in program.module.functions.items() if each.is_entry]
    assert len(names) > 130
    for name in names:
        program.kernel(name)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["compute_75", "compute_90", "compute_100a", "compute_121"])
@pytest.mark.parametrize("debug", [False, True])
def test_every_kernel_of_the_narrow_formats_loads(target: str, debug: bool) -> None:
    program = runner(target, False, debug, "narrow.cu").program
    names = [name for name, each in program.module.functions.items() if each.is_entry]
    assert len(names) >= 4
    for name in names:
        program.kernel(name)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["compute_90", "compute_100a"])
def test_small_floats_are_the_same_in_software_and_in_hardware(target: str) -> None:
    """Where the architecture lacks the conversion, the headers compute it with integers."""
    x = np.array([0, 0.25, 0.5, 0.75, 1.25, -1.75, 2.5, -3.5, 5, 7, -100, 0.1], np.float32)
    pairs = np.zeros((32, 2), np.float32)
    pairs[: len(x), 0], pairs[: len(x), 1] = x, x[::-1]
    on = runner(target, False, False, "narrow.cu")
    out = on.put(np.zeros(128, np.uint32))
    on.launch("four_bits", 1, 32, on.put(pairs), out)
    got = on.get(out, 128, np.uint32).reshape(4, 32)
    codes = [0, 0, 1, 2, 2, 12, 4, 14, 6, 7, 15, 0]
    assert got[0, :12].tolist() == [a | b << 4 for a, b in zip(codes, codes[::-1], strict=True)]
    assert got[3].tolist() == got[0].tolist()
    on.launch("scales", 1, 32, on.put(np.abs(pairs)), out)
    low = on.get(out, 32, np.uint32)[:12]
    exponents = [0 if v == 0 else 127 + math.ceil(math.log2(v)) for v in np.abs(x).tolist()]
    assert low.tolist() == exponents


def error(got: Floats, want: Floats) -> Floats:
    """Distance in units in the last place of the wanted result."""
    return np.asarray(
        np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(want).astype(got.dtype)),
        np.float64,
    )


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("name", few(FUNCTIONS, len(FUNCTIONS) // 2))
@pytest.mark.parametrize("target", few(["compute_120", "compute_75"], 1))
def test_math_functions_stay_within_cudas_bounds(target: str, name: str) -> None:
    reference, (low, high), bound32, bound64 = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    for dtype, suffix, bound in ((np.float32, "f32", bound32), (np.float64, "f64", bound64)):
        a, b = (rng.uniform(low, high, 512).astype(dtype) for _ in range(2))
        if name == "pow":
            b = np.divide(b, 4, dtype=dtype)
        got = launch(runner(target), f"{name}_{suffix}", a, b, 1, dtype)[0]
        count = 2 if name in ("pow", "atan2", "hypot", "fmod", "remainder", "fmax", "fmin",
                              "copysign") else 1  # fmt: skip
        lanes = zip(a.tolist(), b.tolist(), strict=True)
        want = np.array([reference(*lane[:count]) for lane in lanes])
        if bound == 0:
            assert got.tolist() == want.astype(dtype).tolist(), suffix
            continue
        worst = error(got, want).max()
        assert worst <= bound + (0.51 if dtype is np.float32 else 1), (suffix, worst)


@pytest.mark.slow
def test_special_values_come_out_as_in_c() -> None:
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-310, 709.9, -745.5]
    x = np.array(values)
    on = runner("compute_90")
    with np.errstate(all="ignore"):
        for name, reference in {
            "exp": np.exp, "log": np.log, "sin": np.sin, "sqrt": np.sqrt, "cbrt": np.cbrt,
            "tanh": np.tanh, "floor": np.floor, "atan": np.arctan, "asinh": np.arcsinh,
        }.items():  # fmt: skip
            got = launch(on, f"{name}_f64", x, x, 1, np.float64)[0]
            want = reference(x)
            assert (np.isnan(got) == np.isnan(want)).all(), name
            number = ~np.isnan(want)
            assert np.signbit(got[number]).tolist() == np.signbit(want[number]).tolist(), name
            np.testing.assert_allclose(got[number], want[number], rtol=1e-14, err_msg=name)


@pytest.mark.slow
def test_inverses_undo_their_functions() -> None:
    x = np.linspace(-0.99, 0.99, 256)
    on = runner("compute_90")
    erfinv = launch(on, "erfinv_f64", x, x, 1, np.float64)[0]
    np.testing.assert_allclose([math.erf(v) for v in erfinv], x, atol=1e-14)
    share = (x + 1) / 2
    quantile = launch(on, "normcdfinv_f64", share, share, 1, np.float64)[0]
    want = [NormalDist().inv_cdf(float(v)) for v in share]
    np.testing.assert_allclose(quantile, want, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_half_arithmetic_is_that_of_numpy(target: str) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.normal(scale=30, size=256).astype(np.float16) for _ in range(2))
    got = launch(runner(target), "half_arithmetic", a, b, 40, np.float16)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64), b.astype(np.float64)
        rows = {
            0: a + b, 1: a - b, 2: a * b, 3: a / b, 5: -a, 6: np.abs(a),
            4: (wide[0] * wide[1] + wide[0]).astype(np.float16),
            7: np.clip(a + b, 0, 1), 10: np.maximum(a, b), 11: np.minimum(a, b),
            12: np.sqrt(a), 21: np.floor(a), 22: np.rint(a),
        }  # fmt: skip
        close = {13: 1 / np.sqrt(wide[0]), 14: 1 / wide[0], 15: np.exp(wide[0]),
                 16: np.exp2(wide[0]), 17: np.log(wide[0]), 18: np.log2(wide[0]),
                 19: np.sin(wide[0]), 20: np.cos(wide[0])}  # fmt: skip
        for row, want in rows.items():
            np.testing.assert_array_equal(got[row], want.astype(np.float16), err_msg=str(row))
        for row, exact in close.items():
            want = exact.astype(np.float16)
            np.testing.assert_allclose(
                got[row], want, rtol=2.0**-10, atol=2.0**-12, err_msg=str(row)
            )
    packed = got.reshape(-1)[24 * 256 :].reshape(16, 256)
    np.testing.assert_array_equal(packed[0], a + b)
    np.testing.assert_array_equal(packed[2], a * b)
    np.testing.assert_array_equal(packed[7], np.maximum(a, b))
    np.testing.assert_array_equal(packed[13], (a == b).astype(np.float16))
    np.testing.assert_array_equal(packed[14], (a < b).astype(np.float16))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS[1:])
def test_bfloat_arithmetic_rounds_the_exact_result(target: str) -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.normal(scale=30, size=256).astype(np.float32).view(np.uint32) >> 16 for _ in "ab")
    x, y = (((v << 16).view(np.float32)).astype(np.float64) for v in (a, b))
    got = launch(
        runner(target), "bfloat_arithmetic", a.astype(np.uint16), b.astype(np.uint16), 40, np.uint16
    )
    for row, want in ((0, x + y), (1, x - y), (2, x * y), (4, x * y + x)):
        # 53 bits hold sums and products of bfloats this close exactly: one rounding remains.
        bits = want.astype(np.float32).view(np.uint32).astype(np.int64)
        nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        difference = np.abs(got[row].astype(np.int64) - nearest)
        assert (difference == 0).mean() > 0.98, row
        assert difference.max() <= 1, row


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_eight_bit_floats_come_back(target: str) -> None:
    a = np.array([0.0, 1.0, -1.5, 448.0, 1000.0, 0.0625, -0.1, 3.3], np.float32)
    got = launch(runner(target), "eight_bits", a, a, 8, np.uint32)
    assert got[0].tolist() == [0x00, 0x38, 0xBC, 0x7E, 0x7E, 0x18, 0x9D, 0x45]
    assert got[1].tolist() == [0x00, 0x3C, 0xBE, 0x5F, 0x64, 0x2C, 0xAE, 0x43]
    e4m3 = np.array([0, 1, -1.5, 448, 448, 0.0625, -0.1015625, 3.25], np.float32)
    e5m2 = np.array([0, 1, -1.5, 448, 1024, 0.0625, -0.09375, 3.5], np.float32)
    assert got[4].view(np.float32).tolist() == (e4m3 + e5m2).tolist()
    assert got[7].astype(np.uint16).view(np.float16).tolist() == e4m3.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_conversions_of_halves_are_those_of_numpy(target: str) -> None:
    rng = np.random.default_rng(10)
    a = rng.normal(scale=200, size=256).astype(np.float32)
    b = np.abs(rng.normal(scale=1000, size=256))
    on = runner(target)
    out = on.put(np.zeros(16 * 256, np.uint32))
    on.launch("half_converted", 1, 256, on.put(a), on.put(b), out, 256)
    got = on.get(out, 16 * 256, np.uint32).reshape(16, 256)

    def bits(x: Floats) -> list[int]:
        found: list[int] = x.astype(np.float16).view(np.uint16).astype(int).tolist()
        return found

    half = a.astype(np.float16)
    assert got[2].tolist() == bits(b)
    assert got[3].view(np.int32).tolist() == np.rint(half).astype(int).tolist()
    assert got[4].tolist() == np.maximum(np.trunc(half), 0).astype(int).tolist()
    assert got[5].astype(np.uint16).view(np.int16).tolist() == np.floor(half).astype(int).tolist()
    assert got[6].tolist() == bits(np.trunc(a) + np.float32(0))
    assert got[8].view(np.float32).tolist() == half.astype(np.float32).tolist()
    low, high = got[13] & 0xFFFF, got[13] >> 16
    assert low.tolist() == bits(a)
    assert high.tolist() == bits(b.astype(np.float32))
    up, down = got[1].astype(np.uint16).view(np.float16), got[15].astype(np.uint16).view(np.float16)
    assert ((down <= a) & (a <= up)).all()
    assert (np.nextafter(down, np.float16(np.inf)) >= up).all()
