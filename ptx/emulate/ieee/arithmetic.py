"""Addition, multiplication, division, square root and fused multiply-add, correctly rounded."""

from __future__ import annotations

from ptx.emulate.ieee.fma32 import fma32
from ptx.emulate.ieee.fma64 import fma64
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.rounding import Rounding
from ptx.emulate.ieee.types import Float


@elementwise
def fma(a: Float, b: Float, c: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a·b+c with one rounding (PTX ISA, `fma`), float32 or float64."""
    if a.dtype == "f4":
        return fma32(a, b, c, rounding)
    return fma64(a, b, c, rounding)
