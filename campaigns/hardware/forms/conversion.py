"""Forms of `cvt`."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import INTEGERS, ROUNDINGS, FormList, bits

_INTEGERS: Final = ("u8", "s8", *INTEGERS)
_TO_INTEGER: Final = (".rni", ".rzi", ".rmi", ".rpi")
_PRECISION: Final = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    for to, of in product(_INTEGERS, _INTEGERS):
        found.plain(f"cvt.{to}.{of}", [of], to)
        if not _holds(to, of):  # ptxas rejects others
            found.plain(f"cvt.sat.{to}.{of}", [of], to)
    _floats_and_integers(found)
    _floats(found)
    _packed(found)


def _holds(to: str, of: str) -> bool:
    """Return whether an integer type has all values of another."""
    return (to[0] == "s" or of[0] == "u") and bits(to) - (to[0] == "s") >= bits(of) - (of[0] == "s")


def _floats_and_integers(found: FormList) -> None:
    for integer, number, sat in product(_INTEGERS, _PRECISION, ("", ".sat")):
        if number == "bf16" and (sat or integer.endswith("8")):
            continue  # PTX has none
        for rounding in _TO_INTEGER:
            for ftz in ("", ".ftz") if number == "f32" else ("",):
                found.plain(f"cvt{rounding}{ftz}{sat}.{integer}.{number}", [number], integer)
        for rounding in ROUNDINGS:
            found.plain(f"cvt{rounding}{sat}.{number}.{integer}", [integer], number)


def _floats(found: FormList) -> None:
    for to, of in product(_PRECISION, _PRECISION):
        is_brain = "bf16" in (to, of)
        narrows = _PRECISION[to] < _PRECISION[of]
        if to == of:
            roundings: tuple[str, ...] = ("", *_TO_INTEGER)
        elif {to, of} == {"f16", "bf16"} or (is_brain and not narrows):
            roundings = ("", *ROUNDINGS)
        else:
            roundings = ROUNDINGS if narrows else ("",)
        flushes = ("", ".ftz") if "f32" in (to, of) else ("",)
        for rounding, ftz, sat in product(roundings, flushes, ("",) if is_brain else ("", ".sat")):
            found.plain(f"cvt{rounding}{ftz}{sat}.{to}.{of}", [of], to)


def _packed(found: FormList) -> None:
    for rounding, relu, satfinite in product((".rn", ".rz"), ("", ".relu"), ("", ".satfinite")):
        mode = rounding + relu + satfinite
        for t in ("f16", "bf16"):
            if relu or satfinite:
                found.plain(f"cvt{mode}.{t}.f32", ["f32"], t)
            found.plain(f"cvt{mode}.{t}x2.f32", ["f32"] * 2, "b32")
        if not satfinite:
            found.plain(f"cvt{mode}.tf32.f32", ["f32"], "b32")
    for satfinite in ("", ".satfinite"):
        found.plain(f"cvt.rna{satfinite}.tf32.f32", ["f32"], "b32")
    for t, relu in product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        found.plain(f"cvt.rn.satfinite{relu}.{t}.f32", ["f32"] * 2, "b16")
        found.plain(f"cvt.rn.satfinite{relu}.{t}.f16x2", ["b32"], "b16")
        found.plain(f"cvt.rn{relu}.f16x2.{t}", ["b16"], "b32")
    for t in ("u16", "s16"):
        found.plain(f"cvt.pack.sat.{t}.s32", ["s32"] * 2, "b32")
    for t in ("u8", "s8", "u4", "s4", "u2", "s2"):
        found.plain(f"cvt.pack.sat.{t}.s32.b32", ["s32", "s32", "b32"], "b32")
