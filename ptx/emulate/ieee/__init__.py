"""Exact IEEE-754 arithmetic on NumPy arrays and scalars, with the rules of PTX."""

from ptx.emulate.ieee.arithmetic import fma
from ptx.emulate.ieee.rounding import Rounding

__all__ = ["Rounding", "fma"]
