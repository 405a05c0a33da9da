"""The emitter of instructions that need no code in the emulator.

Every access, copy and product happens at once and in order, there are no caches, every thread has
the registers that it needs, and grids run one after another: nothing is left to order, to wait for
or to prepare.
"""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.isa.model import Instruction


def nothing(_e: Emitter, _i: Instruction) -> None:
    """Emit no code."""
