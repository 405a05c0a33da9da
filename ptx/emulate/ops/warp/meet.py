"""How the emitters of warp instructions have lanes meet."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.exec.sync.warp_group import group_of
from ptx.isa.model import Instruction, Operand


def meet(e: Emitter, i: Instruction, mask: Operand, values: dict[str, str]) -> str:
    """Wait for the lanes that `mask` names; the name of their `Group` when all are there.

    `values` are names of variables that every lane brings. Lanes meet that execute the same opcode
    with the same modifiers, wherever it stands.
    """
    word = e.temporary(e.value(mask, "u32"))
    brought = ", ".join(f"{name!r}: {value}" for name, value in {"mask": word, **values}.items())
    key = ".".join((i.opcode, *i.modifiers))
    e.line(f"if not f.chunk.meeting.meets(f, {word}, {e.here}, {key!r}, {{{brought}}}): return -1")
    return e.temporary(f"{e.helper(group_of)}(f, {word})")
