"""Forms of the video instructions."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import FormList

_SIGNS: Final = ("u32", "s32")
_SELECTED: Final = (
    ("", "", "", ""), (".b1", ".h1", ".sat", ""), (".h0", ".b3", "", ".add"),
    (".b0", ".b2", ".sat", ".min"), ("", ".h1", "", ".max"),
)  # fmt: skip
"""Parts of both operands, saturation, and the second operation."""


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    for op, to, a, b in product(
        ("vadd", "vsub", "vabsdiff", "vmin", "vmax"), _SIGNS, _SIGNS, _SIGNS
    ):
        _scalar(found, f"{op}.{to}.{a}.{b}")
    for op, to, a, mode in product(("vshl", "vshr"), _SIGNS, _SIGNS, ("clamp", "wrap")):
        name = f"{op}.{to}.{a}"
        found.add(f"{name}.{mode}", ["b32"] * 2, "b32", f"{name}.u32.{mode} $d,$a,$b;")
        text = f"{name}.u32.sat.{mode}.add $d,$a.h0,$b.b0,$c;"
        found.add(f"{name}.{mode}.sat.add", ["b32"] * 3, "b32", text)
    _multiply_add(found)
    for a, b, comparison in product(_SIGNS, _SIGNS, ("eq", "ne", "lt", "le", "gt", "ge")):
        op = f"vset.{a}.{b}.{comparison}"
        found.add(op, ["b32"] * 3, "b32", f"{op}.add $d,$a.h0,$b.h1,$c;")
    _lanes(found)


def _scalar(found: FormList, op: str) -> None:
    for a, b, sat, second in _SELECTED:
        third, operands = (",$c", 3) if second else ("", 2)
        text = f"{op}{sat}{second} $d,$a{a},$b{b}{third};"
        found.add(f"{op}{sat}{second}{a}{b}", ["b32"] * operands, "b32", text)
    found.add(f"{op}.merge", ["b32"] * 3, "b32", f"{op}.sat $d.h1,$a.b1,$b,$c;")
    found.add(f"{op}.mergeb", ["b32"] * 3, "b32", f"{op} $d.b2,$a,$b.h0,$c;")


def _multiply_add(found: FormList) -> None:
    for to, a, b, scale in product(_SIGNS, _SIGNS, _SIGNS, ("", ".shr7", ".shr15")):
        op = f"vmad.{to}.{a}.{b}"
        for name, text in (
            ("", f"{op}{scale} $d,$a.h0,$b.b1,$c;"),
            (".whole.sat", f"{op}.sat{scale} $d,$a,$b,$c;"),
            (".po", f"{op}.po{scale} $d,$a.h1,$b.h0,$c;"),
            (".negated", f"{op}{scale} $d,-$a.h1,$b.h0,$c;"),
        ):
            found.add(f"{op}{name}{scale}", ["b32"] * 3, "b32", text)


def _lanes(found: FormList) -> None:
    for op, lanes in product(("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"), "24"):
        for to, a, b, mode in product(_SIGNS, _SIGNS, _SIGNS, ("", ".sat", ".add")):
            found.plain(f"{op}{lanes}.{to}.{a}.{b}{mode}", ["b32"] * 3, "b32")
        selected = {
            "2": f"{op}2.s32.s32.u32.sat $d.h1,$a.h20,$b.h31,$c;",
            "4": f"{op}4.s32.u32.s32.sat $d.b20,$a.b7610,$b.b3210,$c;",
        }[lanes]
        found.add(f"{op}{lanes}.selected", ["b32"] * 3, "b32", selected)
    for lanes, a, b, comparison in product("24", _SIGNS, _SIGNS, ("lt", "ne", "ge")):
        op = f"vset{lanes}.{a}.{b}.{comparison}"
        found.plain(op, ["b32"] * 3, "b32")
        found.plain(f"{op}.add", ["b32"] * 3, "b32")
