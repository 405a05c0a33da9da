"""What writes code for an observer into the basic blocks of a kernel."""

from __future__ import annotations

from typing import ClassVar

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.emitter import Emitter, OperationInstrument
from ptx.emulate.codegen.unit import Unit


class BlockInstrument(OperationInstrument):
    """Writes code for an observer into the code of one kernel; each method may write nothing.

    `Watcher` has it beside the observer, so that only observed launches execute that code.

    Attributes:
        keeps_registers: whether registers keep their values after they are read for the last time.
    """

    keeps_registers: ClassVar[bool] = False

    def begin_function(self, unit: Unit) -> None:
        """The code of a function begins."""

    def begin_block(self, e: Emitter, block: Block) -> None:
        """The code of a basic block begins."""

    def execute_block(self, e: Emitter) -> None:
        """From here on all threads of the fibre execute the block."""

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """The code of an instruction begins.

        `is_skipped`: a branch skips it where its guard excludes all threads.
        """

    def executed(self, e: Emitter, step: BlockStep) -> None:
        """The code of an instruction ends, unless control leaves the block there."""

    def end_block(self, e: Emitter, block: Block) -> None:
        """The code of the block's end begins: of its branch, or of the guard of an instruction."""
