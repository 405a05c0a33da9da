"""Instruction forms: each is one way to write an instruction, with its operands and results."""

from __future__ import annotations

from functools import cache

from . import conversion, floating_point, integer, matrix, memory, video, warp
from .form import Form, FormList

__all__ = ["Form", "forms"]


@cache  # one list for the process
def forms() -> tuple[Form, ...]:
    """Return all forms, in a fixed order.

    Raises:
        ValueError: two forms have one name.
    """
    found = FormList()
    for family in (integer, floating_point, conversion, video, warp, memory, matrix):
        family.add_forms(found)
    return tuple(found.by_name.values())
