"""Extended-precision integers with a carry. PTX ISA, "Extended-Precision Integer Arithmetic".

CC.CF is what the adder carries. A subtraction adds the complement and one, so it carries where it
borrows nothing, and `addc` behind `subc` adds the opposite of a borrow: the manual speaks of a
borrow, but GPUs do this, and NVRTC's division of 128-bit integers counts on it.
"""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.registers import CARRY
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.types import unsigned
from ptx.emulate.ops.arithmetic.integer import product_of
from ptx.isa.model import Instruction

_SECTION = "Extended-Precision Integer Arithmetic Instructions"
_TYPES = ("u32", "s32", "u64", "s64")


def _finish(e: Emitter, i: Instruction, kind: str, total: str, carries: list[str]) -> None:
    """Write the sum, and the carry where `.cc` asks for it."""
    if "cc" in i.modifiers:
        carry = " | ".join(carries)
        e.assign(CARRY, "u32", f"({carry}).astype({e.dtype('u32')})")
    e.assign(i.operands[0], kind, total)


def _added(e: Emitter, i: Instruction, kind: str, a: str, b: str, with_carry: bool) -> None:
    """a + b (+ CF): an unsigned sum carried where it is below what was added."""
    total = e.temporary(f"{a} + {b}")
    carries = [f"({total} < {a})"]
    if with_carry:
        carry = e.temporary(f"{e.value(CARRY, 'u32')}.astype({e.dtype(kind)})")
        first = total
        total = e.temporary(f"{first} + {carry}")
        carries.append(f"({total} < {first})")
    _finish(e, i, kind, total, carries)


def _add(with_carry: bool) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = unsigned(type_suffix(i))
        a, b = (e.temporary(e.value(operand, kind)) for operand in i.operands[1:])
        _added(e, i, kind, a, b, with_carry)

    return emit


def _subtract(with_carry: bool) -> EmitFunction:
    """a + ~b + 1, or a + ~b + CF: it borrows where a is below what is taken."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = unsigned(type_suffix(i))
        a, b = (e.temporary(e.value(operand, kind)) for operand in i.operands[1:])
        if with_carry:
            _added(e, i, kind, a, e.temporary(f"~{b}"), with_carry=True)
        else:
            _finish(e, i, kind, e.temporary(f"{a} - {b}"), [f"({a} >= {b})"])

    return emit


def _multiply_add(with_carry: bool) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        product, kind = product_of(e, i)
        wanted = unsigned(kind)
        a = e.temporary(f"({product}).view({e.dtype(wanted)})")
        b = e.temporary(e.value(i.operands[3], wanted))
        _added(e, i, wanted, a, b, with_carry)

    return emit


operation("add.cc", _TYPES, 3, _add(False), writes_carry=True, section=_SECTION)
operation("sub.cc", _TYPES, 3, _subtract(False), writes_carry=True, section=_SECTION)
operation("addc", _TYPES, 3, _add(True), reads_carry=True, section=_SECTION)
operation("addc.cc", _TYPES, 3, _add(True), reads_carry=True, writes_carry=True, section=_SECTION)
operation("subc", _TYPES, 3, _subtract(True), reads_carry=True, section=_SECTION)
operation(
    "subc.cc", _TYPES, 3, _subtract(True), reads_carry=True, writes_carry=True, section=_SECTION
)
for _half in ("lo", "hi"):
    operation(
        f"mad.{_half}.cc", _TYPES, 4, _multiply_add(False), writes_carry=True, section=_SECTION
    )
    operation(f"madc.{_half}", _TYPES, 4, _multiply_add(True), reads_carry=True, section=_SECTION)
    operation(
        f"madc.{_half}.cc", _TYPES, 4, _multiply_add(True), reads_carry=True, writes_carry=True,
        section=_SECTION,
    )  # fmt: skip
