"""How the lanes of whole warps meet. PTX ISA, `.sync.aligned` of the matrix instructions.

All 32 lanes of a warp must execute the same instruction, and none may have exited; the ISA leaves
open what happens otherwise, here it is a fault.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.sync.warp_group import Group, group_of
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import Value
from ptx.isa.model import Instruction

_ALL = 0xFFFFFFFF


def whole_warps(fibre: Fibre, mask: Value, instruction: Instruction) -> Group:
    """The warps that execute now.

    Raises:
        SynchronisationFault: a warp lacks lanes, which have exited or never were.
    """
    group = group_of(fibre, mask)
    if not group.dense and len(group.slots) != 32 * group.rows:
        members = group.members
        row = int(np.argmax(members != _ALL))
        at = int(np.argmax(group.row == row))
        raise SynchronisationFault(
            f"{instruction.opcode}.sync.aligned is executed by the lanes {int(members[row]):#010x}"
            " of a warp; all 32 must exist and must not have exited",
            fibre.where(at, instruction),
        )
    return group


def meet_warp(e: Emitter, i: Instruction, values: dict[str, str]) -> str:
    """Wait for the other lanes of each warp at this very instruction; the name of their `Group`.

    `values` are names of variables that every lane brings.
    """
    word = e.constant(_ALL, "u32")
    brought = ", ".join(f"{name!r}: {value}" for name, value in {"mask": word, **values}.items())
    key = f"{'.'.join((i.opcode, *i.modifiers))} in block {e.here}"
    e.line(f"if not f.chunk.meeting.meets(f, {word}, {e.here}, {key!r}, {{{brought}}}): return -1")
    instruction = e.scope.bind(i, "instruction")
    return e.temporary(f"{e.helper(whole_warps)}(f, {word}, {instruction})")
