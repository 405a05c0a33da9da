"""The table of all forms."""

from __future__ import annotations

from functools import cache
from typing import Final

from ptx.isa.forms import (
    arithmetic,
    async_copies,
    conversions,
    matrices,
    memory,
    synchronisation,
    textures,
)
from ptx.isa.forms.grammar import FormTable
from ptx.isa.instruction_facts import opcodes

UNCHECKED: Final = {
    "call": "its operands are those of its function, or of a .callprototype",
    "tcgen05": "the operation checks its operands where a kernel is taken from its module",
}
"""Opcodes without forms here, with the reason."""


@cache
def form_table() -> FormTable:
    """The forms, read on first use."""
    table = FormTable(
        (
            arithmetic.INTEGERS, arithmetic.FLOATS, arithmetic.COMPARISONS, arithmetic.LOGIC,
            async_copies.COPIES,
            memory.MOVES, memory.ACCESSES, memory.ATOMICS,
            conversions.SCALARS, conversions.OTHERS, synchronisation.BARRIERS,
            synchronisation.WARPS, synchronisation.CONTROL, synchronisation.MBARRIERS,
            textures.TEXTURES, textures.TENSOR_MAPS, textures.VIDEO, textures.MULTIMEM,
            matrices.PRODUCTS,
        ),
        {"wmma": matrices.opaque_products, "wgmma": matrices.group_products},
    )  # fmt: skip
    absent = opcodes() - table.opcodes - UNCHECKED.keys()
    if absent:
        raise ValueError(f"opcodes without a form: {sorted(absent)}")
    return table
