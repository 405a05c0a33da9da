"""The operands of instructions on tensor memory: addresses, and what a warp's lanes agree on."""

from __future__ import annotations

from typing import Final

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Address, Instruction, Operand, Register

_SWIZZLES: Final = (0, 2, 4, 6)  # none, by 128, 64, 32 bytes


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


def one_by_one(fibre: Fibre) -> list[Fibre]:
    """Each thread by itself, without registers, for what it begins."""
    return [fibre.subset(np.array([k], dtype=np.intp), ()) for k in range(fibre.n)]


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


def require_known_layout(fibre: Fibre, instruction: Instruction, descriptor: int) -> None:
    """A shared memory descriptor of the fifth generation. PTX ISA, "Shared memory descriptor".

    Raises:
        TensorMemoryFault: it is none, or one of a layout that the emulator does not know.
    """
    said = ""
    if descriptor >> 46 & 7 != 1 or descriptor >> 53 & 0xFF:
        said = "is none: from bit 46 on stand 1, 0, 0, and from bit 53 on eight zeros"
    elif descriptor >> 52 & 1:
        said = "has an absolute address of the leading dimension, which the emulator does not know"
    elif descriptor >> 61 == 1:
        said = "swizzles 128 bytes in pieces of 32, which the emulator does not know"
    elif descriptor >> 61 not in _SWIZZLES:
        said = f"has the swizzling {descriptor >> 61}, which there is not"
    if said:
        raise TensorMemoryFault(
            f"the matrix descriptor {descriptor:#018x} of {instruction.text} {said}",
            fibre.where(0, instruction),
        )
