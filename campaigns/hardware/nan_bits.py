"""Other bits for the NaNs whose bits PTX leaves open, in the text of a program.

A value that changes with them is not defined by PTX: a GPU may give any. docs/hardware.md lists
what PTX guarantees of a NaN.
"""

from __future__ import annotations

import random
import re
from typing import Final

_FORMATS: Final = {"f16": (16, 9), "bf16": (16, 6), "f32": (32, 22), "f64": (64, 51)}
"""Of each type its bits, and the lower ones that its NaNs may have either way."""
_STATEMENT: Final = re.compile(
    r"\s*(?P<guard>@!?%?\w+ )?"
    r"(?:(?:add|sub|mul|fma|mad|div|rcp|sqrt|min|max|neg|abs)(?:\.\w+)*?\.(?P<double>f64)"
    r"|cvt(?:\.\w+)*?\.(?P<wider>f64)\.(?:b?f16|f32|f64)"
    r"|(?:neg|abs)(?:\.ftz)?\.(?P<sign>b?f16(?:x2)?|f32)) +(?P<d>%?\w+) *,"
)
_SUM: Final = re.compile(
    r"\s*(?:atom|red)(?:\.\w+)*?(?P<space>\.global|\.shared|)\.add\.f64 [^\[]*(?P<at>\[%\w+\])"
)
"""A sum in memory, in a cell that no other thread uses."""


def with_other_nans(ptx: str, seed: int) -> str:
    """Return a program that changes the sign and the payload of each NaN that PTX leaves open.

    Args:
        ptx: a program whose statements end in the line in which they begin.
        seed: chooses the bits of each statement.
    """
    chance = random.Random(seed)
    return re.sub(r"[^;\n]*;", lambda match: match[0] + _change(match[0], chance), ptx)


def _change(statement: str, chance: random.Random) -> str:
    """Return what follows a statement; "" if PTX defines its result."""
    if match := _SUM.match(statement):
        space, at = match["space"], match["at"]
        change = _of_register("v", "f64", "", chance)
        return f" {{.reg .b64 v; ld{space}.b64 v,{at}; {change} st{space}.b64 {at},v;}}"
    if match := _STATEMENT.match(statement):
        format_ = match["double"] or match["wider"] or match["sign"]
        return " " + _of_register(match["d"], format_, match["guard"] or "", chance)
    return ""


def _of_register(name: str, format_: str, guard: str, chance: random.Random) -> str:
    if format_.endswith("x2"):
        halves = " ".join(
            _of_register(half, format_.removesuffix("x2"), guard, chance) for half in ("lo", "hi")
        )
        return f"{{.reg .b16 lo,hi; mov.b32 {{lo,hi}},{name}; {halves} mov.b32 {name},{{lo,hi}};}}"
    width, payload = _FORMATS[format_]
    mask = chance.getrandbits(payload) | chance.getrandbits(1) << width - 1
    # A guard that is false leaves a number of another statement, which can be an integer.
    unset = f"setp.ne.u32 nn,0,0; {guard}" if guard else ""
    return (
        f"{{.reg .pred nn; {unset}setp.nan.{format_} nn,{name},{name}; "
        f"@nn xor.b{width} {name},{name},{mask};}}"
    )
