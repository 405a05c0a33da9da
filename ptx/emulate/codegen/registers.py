"""The condition code register, which no operand names."""

from __future__ import annotations

from ptx.isa.model import Register

CARRY = Register("%CC", "u32")
"""Holds CC.CF. PTX ISA, "Extended-Precision Arithmetic Instructions"."""
