"""Addresses that instructions before an access calculate. PTX ISA, "Addresses as Operands".

Those are elements of arrays at a register's index, and registers with far offsets. An index has 32
bits, as in NVIDIA's assembler: wider ones are cut.
"""

from __future__ import annotations

from typing import Final

from ptx.isa.instruction_facts import TYPE_BYTES, facts_of
from ptx.isa.model import Address, Immediate, Operand, Register, Space, Symbol
from ptx.isa.names import Names

Step = tuple[str, tuple[str, ...], tuple[Operand, ...]]

_FAR: Final = 1 << 31
_NARROW: Final = (Space.SHARED, Space.LOCAL)
_GENERIC: Final = (Space.GLOBAL, Space.SHARED, Space.LOCAL)


def is_far(offset: int) -> bool:
    """Return whether an offset needs more than 32 bits."""
    return not -_FAR <= offset < _FAR


class ComputedAddresses:
    """The addresses of one instruction that others calculate.

    Attributes:
        steps: the opcodes, modifiers and operands of these others, in their order.
    """

    def __init__(self, names: Names, opcode: str, modifiers: tuple[str, ...]) -> None:
        self.steps: list[Step] = []
        self._names = names
        self._opcode = opcode
        self._modifiers = modifiers
        self._space = facts_of(opcode, modifiers).space

    def fault_of_element(self, name: str, index: Register) -> str:
        """Return why the instruction takes no element of an array at an index, or ""."""
        if index.ptx_type[0] not in "usb" or TYPE_BYTES[index.ptx_type] > 8:
            return f"{index.name} of type .{index.ptx_type} is no index: it has no 8 to 64 bits"
        return "" if self._takes(self._names.space(name)) else f"{name} is of another state space"

    def _takes(self, space: Space | None) -> bool:
        if space is None:
            return False
        is_own = space.value == self._space
        if self._opcode in ("ld", "ldu"):
            return is_own or (self._space == "generic" and space in _GENERIC)
        if self._opcode == "st":
            is_argument = space is Space.PARAM
            return not is_argument and (is_own or (self._space == "generic" and space in _GENERIC))
        if self._opcode == "cvta":
            return is_own and "to" not in self._modifiers
        return self._opcode == "mov"

    def element(self, name: str, nbytes: int, index: Register, offset: int) -> Register:
        """Return a register with the address of an element at an index plus an offset."""
        number = self._number(index)
        if offset:
            number = self._made("u32", "add.u32", number, Immediate(offset & 0xFFFFFFFF))
        space = self._names.space(name)
        assert space is not None
        if space not in _NARROW:
            base = self._made("u64", "mov.u64", Symbol(name))
            address = self._made("u64", "mad.wide.u32", number, Immediate(nbytes), base)
            is_cut = space is not Space.GLOBAL and self._bytes_needed() == 4
            return self._made("u32", "cvt.u32.u64", address) if is_cut else address
        base = self._made("u32", "mov.u32", Symbol(name))
        address = self._made("u32", "mad.lo.u32", number, Immediate(nbytes), base)
        if self._bytes_needed() == 8:
            address = self._made("u64", "cvt.u64.u32", address)
        if self._opcode not in ("mov", "cvta") and self._space == "generic":
            wide = self._made("u64", "cvt.u64.u32", address)
            address = self._made("u64", f"cvta.{space.value}.u64", wide)
        return address

    def _number(self, index: Register) -> Register:
        """Return the register of an index in 32 bits."""
        kind, size = index.ptx_type[0], TYPE_BYTES[index.ptx_type]
        if size == 4:
            return index
        kind = "s" if kind == "s" and size < 4 else "u"
        return self._made("u32", f"cvt.{kind}32.{kind}{8 * size}", index)

    def _bytes_needed(self) -> int:
        """Return the bytes of an address that is a value; 0 of one that is accessed."""
        return TYPE_BYTES.get(self._modifiers[-1], 0) if self._opcode in ("mov", "cvta") else 0

    def near(self, operand: Operand) -> Operand:
        """Return an operand, with a register and no offset for an address with a far one."""
        if not isinstance(operand, Address) or not is_far(operand.offset):
            return operand
        base, offset = operand.base, operand.offset
        space = self._names.space(base.name) if isinstance(base, Symbol) else None
        is_wide = space is Space.GLOBAL or (
            isinstance(base, Register)
            and TYPE_BYTES[base.ptx_type] == 8
            and self._space in ("generic", "global")
        )
        if not is_wide:
            return operand if base is None else Address(base, (offset + _FAR) % (2 * _FAR) - _FAR)
        if isinstance(base, Symbol):
            base = self._made("u64", "mov.u64", base)
        assert base is not None
        return Address(self._made("u64", "add.u64", base, Immediate(offset % (1 << 64))), 0)

    def _made(self, ptx_type: str, word: str, *operands: Operand) -> Register:
        result = self._names.temporary(ptx_type)
        opcode, *modifiers = word.split(".")
        self.steps.append((opcode, tuple(modifiers), (result, *operands)))
        return result
