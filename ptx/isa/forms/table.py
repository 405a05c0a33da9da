"""The table of all forms."""

from __future__ import annotations

from functools import cache

from ptx.isa.forms.grammar import FormTable
from ptx.isa.opcodes.opcode_table import ROWS


@cache
def form_table() -> FormTable:
    """The forms of the opcodes that have some."""
    return FormTable(row for row in ROWS.values() if row.kind and not row.unchecked)
