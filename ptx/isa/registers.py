"""The registers that operands name."""

from __future__ import annotations

from collections.abc import Iterator

from ptx.isa.model import (
    Address,
    Arguments,
    Bracket,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Vector,
)


def registers_in(operand: Operand) -> Iterator[Register]:
    """The registers that an operand names."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Address):
        if isinstance(operand.base, Register):
            yield operand.base
    elif isinstance(operand, Vector | Arguments | Bracket):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, Negated):
        yield operand.operand
    elif isinstance(operand, Selected):
        yield operand.register
