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

CHAPTERS: Final = (
    arithmetic.OPCODES,
    conversions.OPCODES,
    memory.OPCODES,
    async_copies.OPCODES,
    synchronisation.OPCODES,
    matrices.OPCODES,
    textures.OPCODES,
    video.OPCODES,
)
ROWS: Final[dict[str, OpcodeRow]] = read_rows(CHAPTERS)
"""By opcode, also of those that the emulator does not execute."""
