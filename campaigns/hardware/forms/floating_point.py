"""Forms of floating-point arithmetic."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import ROUNDINGS, FormList

_TESTS: Final = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
_FUNCTIONS: Final = ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2")


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    _single(found)
    _double(found)
    _quotients(found)
    _approximations(found)
    _signs(found)
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        _half(found, t)


def _single(found: FormList) -> None:
    for rounding, ftz, sat in product(("", *ROUNDINGS), ("", ".ftz"), ("", ".sat")):
        suffix = f"{rounding}{ftz}{sat}.f32"
        for op in ("add", "sub", "mul"):
            found.plain(op + suffix, ["f32"] * 2, "f32")
        if rounding:
            found.plain(f"fma{suffix}", ["f32"] * 3, "f32")
            found.plain(f"mad{suffix}", ["f32"] * 3, "f32")


def _double(found: FormList) -> None:
    for rounding in ("", *ROUNDINGS):
        for op in ("add", "sub", "mul"):
            found.plain(f"{op}{rounding}.f64", ["f64"] * 2, "f64")
        if rounding:
            found.plain(f"fma{rounding}.f64", ["f64"] * 3, "f64")
            found.plain(f"mad{rounding}.f64", ["f64"] * 3, "f64")


def _quotients(found: FormList) -> None:
    for t, rounding in product(("f32", "f64"), ROUNDINGS):
        for ftz in ("", ".ftz") if t == "f32" else ("",):
            found.plain(f"div{rounding}{ftz}.{t}", [t] * 2, t)
            found.plain(f"rcp{rounding}{ftz}.{t}", [t], t)
            found.plain(f"sqrt{rounding}{ftz}.{t}", [t], t)


def _approximations(found: FormList) -> None:
    for ftz in ("", ".ftz"):
        for mode in ("approx", "full"):
            found.plain(f"div.{mode}{ftz}.f32", ["f32"] * 2, "f32", "approximate")
        for op in _FUNCTIONS:
            found.plain(f"{op}.approx{ftz}.f32", ["f32"], "f32", "approximate")
        found.plain(f"rsqrt.approx{ftz}.f64", ["f64"], "f64", "approximate")
    found.plain("rcp.approx.ftz.f64", ["f64"], "f64", "approximate")
    found.plain("tanh.approx.f32", ["f32"], "f32", "approximate")
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        register = "b32" if t.endswith("x2") else "b16"
        exponential = f"ex2.approx.ftz.{t}" if t[0] == "b" else f"ex2.approx.{t}"
        found.plain(exponential, [register], register, "approximate")
        found.plain(f"tanh.approx.{t}", [register], register, "approximate")


def _signs(found: FormList) -> None:
    for ftz in ("", ".ftz"):
        for op in ("abs", "neg"):
            found.plain(f"{op}{ftz}.f32", ["f32"], "f32")
        for op, nan, sign in product(("min", "max"), ("", ".NaN"), ("", ".xorsign.abs")):
            found.plain(f"{op}{ftz}{nan}{sign}.f32", ["f32"] * 2, "f32")
    for op in ("abs", "neg"):
        found.plain(f"{op}.f64", ["f64"], "f64")
    for op in ("min", "max"):
        found.plain(f"{op}.f64", ["f64"] * 2, "f64")
    for t in ("f32", "f64"):
        found.plain(f"copysign.{t}", [t, t], t)
        for test in _TESTS:
            op = f"testp.{test}.{t}"
            found.add(op, [t], "pred", f"{op} $p,$a;")


def _half(found: FormList, t: str) -> None:
    register = "b32" if t.endswith("x2") else "b16"
    is_half = t[0] == "f"  # bfloat16 has no .ftz and no .sat
    flushes, saturates = (("", ".ftz"), ("", ".sat")) if is_half else (("",), ("",))
    for rounding, ftz, sat in product(("", ".rn"), flushes, saturates):
        for op in ("add", "sub", "mul"):
            found.plain(f"{op}{rounding}{ftz}{sat}.{t}", [register] * 2, register)
    for ftz, mode in product(flushes, (*saturates, ".relu")):
        found.plain(f"fma.rn{ftz}{mode}.{t}", [register] * 3, register)
    for relu in ("", ".relu"):
        found.plain(f"fma.rn.oob{relu}.{t}", [register] * 3, register)
    for op, ftz in product(("abs", "neg"), flushes):
        found.plain(f"{op}{ftz}.{t}", [register], register)
    for op, ftz, nan, sign in product(("min", "max"), flushes, ("", ".NaN"), ("", ".xorsign.abs")):
        found.plain(f"{op}{ftz}{nan}{sign}.{t}", [register] * 2, register)
