"""The rows of all opcodes."""

from __future__ import annotations

from typing import Final

from ptx.isa.opcodes import (
    arithmetic,
    async_copies,
    conversions,
    matrices,
    memory,
    synchronisation,
    textures,
    video,
)
from ptx.isa.opcodes.opcode_row import OpcodeRow, read_rows

ROWS: Final[dict[str, OpcodeRow]] = read_rows(
    (
        arithmetic.OPCODES,
        conversions.OPCODES,
        memory.OPCODES,
        async_copies.OPCODES,
        synchronisation.OPCODES,
        matrices.OPCODES,
        textures.OPCODES,
        video.OPCODES,
    )
)
"""By opcode, also of those that the emulator does not execute."""
