"""How emitters let lanes of a warp wait for each other. PTX ISA, "membermask", ".sync.aligned"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.undefined_writer import BROUGHT, bring_undefined
from ptx.emulate.exec.sync.warp_group import Group, group_of
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Operand

_ALL = 0xFFFFFFFF


def sync_lanes(e: Emitter, i: Instruction, mask: Operand, values: dict[str, str]) -> str:
    """Wait for the lanes that `mask` names; the name of their `Group` when all are there.

    `values` are names of variables that every lane brings; the first is the instruction's second
    operand. Lanes wait for each other that execute the same opcode with the same modifiers,
    wherever it stands.
    """
    word = e.temporary(e.value(mask, "u32"))
    if values:
        values = {**values, **bring_undefined(e, i)}
    _wait(e, word, ".".join((i.opcode, *i.modifiers)), values)
    return e.temporary(f"{e.helper(group_of)}(f, {word})")


def sync_warp(e: Emitter, i: Instruction, values: dict[str, str], warps: int = 1) -> str:
    """Wait for the other lanes of each warp at this very instruction; the name of their `Group`.

    Of `warps` together, all wait for each other.

    `values` are names of variables that every lane brings. All 32 lanes of a warp must execute the
    instruction, and none may have exited; the ISA leaves open what happens otherwise, here it is a
    fault.
    """
    word = e.constant(_ALL, "u32")
    key = f"{'.'.join((i.opcode, *i.modifiers))} in block {e.here}"
    _wait(e, word, key, values, f", {warps}" if warps > 1 else "")
    instruction = e.scope.bind(i, "instruction")
    return e.temporary(f"{e.helper(whole_warps)}(f, {word}, {instruction})")


def _wait(e: Emitter, mask: str, key: str, values: dict[str, str], more: str = "") -> None:
    """Leave the block until all lanes that the mask names are at a place with the same key."""
    brought = ", ".join(f"{name!r}: {value}" for name, value in {"mask": mask, **values}.items())
    arrive = (
        f"f.scheduler.waiting.warp_sync.arrive(f, {mask}, {e.here}, {key!r}, {{{brought}}}{more})"
    )
    e.line(f"if not {arrive}: return -1")


def brought_by_any(fibre: Fibre, group: Group, undefined: Value) -> Value:
    """For each thread a read that the value of some lane of its group depends on, 0 for none."""
    return group.each(brought_grid(fibre, group, undefined).max(axis=1))


def brought_grid(fibre: Fibre, group: Group, undefined: Value) -> NDArray[np.int32]:
    """(rows, 32) the read that each lane's value depends on, 0 for none."""
    return group.grid(fibre, BROUGHT, undefined).reshape(-1, WARP)


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
