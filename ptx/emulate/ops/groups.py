"""Groups of asynchronous work: committed, and waited for. Nothing, where all is done at once."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction
from ptx.isa.model import Immediate, Instruction


def group_operation(kind: str) -> EmitFunction:
    """The emitter of `commit_group`, `wait_group` and `wait_all` of one kind of `LateCopies`."""

    def emit(e: Emitter, i: Instruction) -> None:
        newest = i.operands[0] if i.operands else Immediate(0)
        if not isinstance(newest, Immediate):
            raise e.refuse("it waits for a constant number of groups")
        if not e.late.copies:
            return
        groups = f"f.blocks.late_copies.{kind}"
        if "commit_group" in i.modifiers:
            e.line(f"{groups}.commit(f)")
        elif "wait_all" in i.modifiers:
            e.line(f"{groups}.wait_all(f)")
        else:
            e.line(f"{groups}.wait(f, {newest.value}, read={'read' in i.modifiers})")

    return emit
