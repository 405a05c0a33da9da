"""Bits of registers, and moves."""

from ptx.emulate.ops.bits import bits, logic, lookup, move, permute, wide

__all__ = ["bits", "logic", "lookup", "move", "permute", "wide"]
