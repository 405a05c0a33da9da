"""Approximate functions: inside the PTX ISA's bounds, and its tables of special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.ieee import BF16, F16, F32
from tests.emulator.engine.ieee import samples

INF, NAN = math.inf, math.nan
TINY = 2.0**-140


def single(*values: float) -> samples.Values:
    return np.array(values, np.float32)


def identical(got: Any, want: samples.Values) -> bool:
    return bool(
        ((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(want)).all()
    ) and (np.isnan(got).tolist() == np.isnan(want).tolist())


PAGE: Final = Path(__file__).parents[4] / "docs" / "hardware.md"
COUNT: Final = 1 << 16
_HALVES: Final = {"f16": (F16, 10, 2.0**-14), "bf16": (BF16, 7, 2.0**-126)}


@dataclass(frozen=True)
class Case:
    """One row of the page: an instruction, and the arguments in its words.

    Attributes:
        compute: the emulator's function.
        exact: the same in a wider type.
        operands: arguments of that range.
        least: of the exact results whose relative error counts.
    """

    instruction: str
    arguments: str
    compute: Callable[..., Any]
    exact: Callable[..., Any]
    operands: tuple[samples.Values, ...]
    least: float = 2.0**-126

    def error(self, kind: str) -> float:
        """Return the largest error, absolute, relative, or in units of the last place."""
        got = self.compute(*self.operands)
        with np.errstate(all="ignore"):
            exact = self.exact(*(np.asarray(x, np.longdouble) for x in self.operands))
        taken = np.isfinite(got) & np.isfinite(exact)
        size = np.abs(exact[taken])
        error = np.abs(got[taken] - exact[taken])
        if kind == "absolute":
            return float(error.max())
        counts = size >= self.least
        error, size = error[counts], size[counts]
        if kind == "relative":
            return float((error / size).max())
        digits = np.finfo(self.operands[0].dtype).nmant
        return float((error / np.exp2(np.floor(np.log2(size)) - digits)).max())


def magnitudes(low: float, high: float, seed: int, dtype: type = np.float32) -> samples.Values:
    """Positive values with evenly distributed exponents."""
    exponents = np.random.default_rng(seed).uniform(np.log2(low), np.log2(high), COUNT)
    return np.exp2(exponents).astype(dtype)


def both_signs(values: samples.Values) -> samples.Values:
    return np.where(np.arange(len(values)) % 2, values, -values)


def half_case(name: str, compute: Callable[..., Any], exact: Callable[..., Any]) -> Case:
    """A case of every value of a narrow type, widened to float32 on both sides."""
    kind, _, least = _HALVES[name.rpartition(".")[2]]
    every = np.arange(1 << 16, dtype=np.uint16)

    def widened(bits: Any) -> Any:
        return ieee.convert_float(bits, source=kind, target=F32)

    ftz = {"ftz": True} if "ftz" in name else {}
    arguments = "of normal results" if name.startswith("ex2") else "all"
    return Case(
        name,
        arguments,
        lambda _: widened(compute(every, kind=kind, **ftz)),
        exact,
        (widened(every),),
        least,
    )


def cases() -> list[Case]:
    turns = np.linspace(-2 * math.pi, 2 * math.pi, COUNT, dtype=np.float32)
    normal = magnitudes(2.0**-126, 3e38, 1)
    signed = both_signs(magnitudes(2.0**-126, 2.0**126, 2))
    ones = both_signs(np.linspace(1, 2, COUNT, dtype=np.float32))
    doubles = magnitudes(2.0**-1000, 2.0**1000, 3, np.float64)
    far = magnitudes(2.0**-126, 3e38, 4)
    far = far[(far < 0.5) | (far > 2)]
    rsqrt = lambda x: 1 / np.sqrt(x)  # noqa: E731  # one of several such expressions
    return [
        Case("sin.approx.f32", "−2π to 2π", ieee.sin_approx, np.sin, (turns,)),
        Case("sin.approx.f32", "−100π to 100π", ieee.sin_approx, np.sin, (50 * turns,)),
        Case("cos.approx.f32", "−2π to 2π", ieee.cos_approx, np.cos, (turns,)),
        Case("cos.approx.f32", "−100π to 100π", ieee.cos_approx, np.cos, (50 * turns,)),
        Case("tanh.approx.f32", "all", ieee.tanh_approx, np.tanh, (both_signs(normal),)),
        half_case("tanh.approx.f16", ieee.half_tanh_approx, np.tanh),
        half_case("tanh.approx.bf16", ieee.half_tanh_approx, np.tanh),
        Case("ex2.approx.f32", "−126 to 128", ieee.ex2_approx, np.exp2,
             (np.linspace(-126, 127.99, COUNT, dtype=np.float32),)),
        half_case("ex2.approx.f16", ieee.half_ex2_approx, np.exp2),
        half_case("ex2.approx.ftz.bf16", ieee.half_ex2_approx, np.exp2),
        Case("lg2.approx.f32", "0.5 to 2", ieee.lg2_approx, np.log2,
             (np.linspace(0.5, 2, COUNT, dtype=np.float32),)),
        Case("lg2.approx.f32", "below 0.5, above 2", ieee.lg2_approx, np.log2, (far,)),
        Case("rcp.approx.f32", "2^-126 to 2^126", ieee.rcp_approx, np.reciprocal, (signed,)),
        Case("sqrt.approx.f32", "positive, normal", ieee.sqrt_approx, np.sqrt, (normal,)),
        Case("rsqrt.approx.f32", "positive, normal", ieee.rsqrt_approx, rsqrt, (normal,)),
        Case("div.approx.f32", "divisor 2^-126 to 2^126", ieee.div_approx, np.divide,
             (ones, signed)),
        Case("div.full.f32", "normal", ieee.div_full, np.divide, (ones, both_signs(normal))),
        Case("rcp.approx.ftz.f64", "2^-1000 to 2^1000", ieee.rcp_approx_f64, np.reciprocal,
             (doubles,)),
        Case("rsqrt.approx.ftz.f64", "2^-1000 to 2^1000",
             lambda x: ieee.rsqrt_approx_f64(x, ftz=True), rsqrt, (doubles,)),
        Case("rsqrt.approx.f64", "2^-1000 to 2^1000", ieee.rsqrt_approx_f64, rsqrt, (doubles,)),
    ]  # fmt: skip


def figure(text: str) -> float:
    """Read a figure of the page: 2^-20.5, or 2 ulp; no bound is infinite."""
    if text == "none":
        return INF
    return float(text.split()[0]) if text.endswith("ulp") else 2.0 ** float(text.removeprefix("2^"))


def test_errors_are_within_those_of_the_page_and_within_the_bounds_of_ptx() -> None:
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    stated = {
        (row[0].strip("`"), row[1]): (row[2], figure(row[3]), figure(row[4]))
        for row in rows
        if (len(row) == 6 and "approx" in row[0]) or row[0].startswith("`div.full")
    }
    wrong = []
    for case in cases():
        kind, bound, own = stated.pop((case.instruction, case.arguments))
        error = case.error(kind)
        if not error <= own <= bound:
            wrong.append(f"{case.instruction}, {case.arguments}: {error} of {own} of {bound}")
    assert not wrong, "\n".join(wrong)
    assert not stated


def test_special_values_follow_the_tables() -> None:
    x = single(-INF, -1, -TINY, -0.0, 0.0, TINY, INF, NAN)
    assert identical(ieee.sqrt_approx(x, ftz=True), single(NAN, NAN, -0.0, -0.0, 0, 0, INF, NAN))
    assert identical(ieee.rsqrt_approx(x, ftz=True), single(NAN, NAN, -INF, -INF, INF, INF, 0, NAN))
    assert identical(ieee.rcp_approx(x, ftz=True), single(-0.0, -1, -INF, -INF, INF, INF, 0, NAN))
    assert identical(
        ieee.lg2_approx(x, ftz=True), single(NAN, NAN, -INF, -INF, -INF, -INF, INF, NAN)
    )
    assert identical(ieee.ex2_approx(x), single(0, 0.5, 1, 1, 1, 1, INF, NAN))
    assert identical(ieee.tanh_approx(x[[0, 3, 4, 6, 7]]), single(-1, -0.0, 0, 1, NAN))
    edges = x[[0, 3, 4, 6, 7]]
    assert identical(ieee.sin_approx(edges), single(NAN, -0.0, 0, NAN, NAN))
    assert identical(ieee.cos_approx(edges), single(NAN, 1, 1, NAN, NAN))


def test_subnormal_numbers_remain_without_ftz() -> None:
    assert ieee.sqrt_approx(np.float32(2.0**-140)) == np.float32(2.0**-70)
    assert ieee.lg2_approx(np.float32(2.0**-149)) == -149
    assert ieee.ex2_approx(np.float32(-140)) == np.float32(2.0**-140)
    assert ieee.ex2_approx(np.float32(-140), ftz=True) == 0


def test_a_divisor_near_overflow_gives_zero_or_nan() -> None:
    a = single(1, -1, INF, NAN, 2.0**127)
    huge = np.float32(2.0**126 * 1.5)
    assert identical(ieee.div_approx(a, huge), single(0, -0.0, NAN, NAN, 0))
    assert ieee.div_full(np.float32(2.0**127), huge) == np.float32(4 / 3)
    assert ieee.div_approx(np.float32(1), np.float32(2.0**126)) == np.float32(2.0**-126)


def test_flushed_quotients_are_normal_or_zero() -> None:
    x = np.uint32(0x3F7F_FFFF).view(np.float32)
    assert ieee.div_full(x, np.float32(2.0**126), ftz=True) == 0
    assert ieee.div(x, np.float32(2.0**126), ftz=True) == 0
    assert ieee.div(x, np.float32(2.0**126)) == np.float32(2.0**-126)


def test_double_approximations_fill_the_upper_word() -> None:
    x = np.array([3.0, -0.0, INF, NAN, 5e-324])
    got = ieee.rcp_approx_f64(x)
    assert (got.view(np.uint64) & np.uint64(0xFFFF_FFFF) == 0).all()
    assert abs(got[0] * 3 - 1) < 2.0**-19
    assert got[1:3].tolist() == [-INF, 0]
    assert int(got[3].view(np.uint64)) == 0x7FFF_FFFF_0000_0000
    assert got[4] == INF
    assert abs(ieee.rsqrt_approx_f64(np.float64(4)) * 2 - 1) < 2.0**-50
