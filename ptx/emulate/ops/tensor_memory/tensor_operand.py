"""The operands of instructions on tensor memory: addresses, and what a warp's lanes agree on."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.isa.model import Address, Instruction, Operand, Register


def tensor_address(e: Emitter, operand: Operand) -> str:
    """The name of an address in tensor memory, u32: `[taddr]`, `[taddr + 8]`, `[16]`."""
    if not isinstance(operand, Address):
        raise e.refuse(f"it needs an address, not {operand}")
    if operand.base is None:
        return e.constant(operand.offset, "u32")
    if not isinstance(operand.base, Register):
        raise e.refuse("an address in tensor memory comes from a register")
    found = e.temporary(e.value(operand.base, "u32"))
    return (
        e.temporary(f"{found} + {e.constant(operand.offset, 'u32')}") if operand.offset else found
    )


def slots(fibre: Fibre) -> Index:
    """(n,) the block of each thread."""
    return np.broadcast_to(np.asarray(fibre.place("slot"), dtype=np.intp), (fibre.n,))


def each(fibre: Fibre, value: Value) -> Index:
    """(n,) a value for each thread."""
    return np.broadcast_to(np.asarray(value), (fibre.n,)).astype(np.intp)


def require_agreement(
    fibre: Fibre, group: Group, name: str, value: Value, instruction: Instruction
) -> None:
    """All lanes of a warp must bring the same.

    Raises:
        TensorMemoryFault: two differ.
    """
    grid = group.grid(fibre, name, value).reshape(-1, WARP)
    differ = (grid != grid[:, :1]).any(axis=1)
    if differ.any():
        position = int(np.argmax(differ[group.row]))
        raise TensorMemoryFault(
            f"the lanes of a warp give {instruction.text} different values of its {name}",
            fibre.where(position, instruction),
        )
