"""Exact IEEE-754 arithmetic on NumPy arrays and scalars, with the rules of PTX."""

from ptx.emulate.ieee.arithmetic import add, div, fma, mul, rcp, sqrt, sub
from ptx.emulate.ieee.modifiers import flush_subnormals, saturate
from ptx.emulate.ieee.rounding import Rounding

__all__ = [
    "Rounding",
    "add",
    "div",
    "flush_subnormals",
    "fma",
    "mul",
    "rcp",
    "saturate",
    "sqrt",
    "sub",
]
