"""The rounding modes of PTX floating-point instructions."""

from __future__ import annotations

from enum import IntEnum


class Rounding(IntEnum):
    """How an inexact result becomes a value of its format.

    PTX ISA, "Rounding Modifiers": `.rn`, `.rz`, `.rm`, `.rp`; `.rna` and `.rs` exist for some
    forms of `cvt` only.
    """

    RN = 0
    """To nearest, ties to even."""
    RZ = 1
    """Towards zero."""
    RM = 2
    """Towards minus infinity."""
    RP = 3
    """Towards plus infinity."""
    RNA = 4
    """To nearest, ties away from zero."""
    RS = 5
    """Stochastic: random bits are added below the last kept bit, then truncated."""
