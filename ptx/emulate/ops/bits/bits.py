"""Bit fields and bit counts. PTX ISA, "Integer Arithmetic Instructions".

Shifts rely on NumPy's rule that an amount of the width or more moves every bit out, and leaves
copies of the sign in signed values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptx.emulate.codegen.emitter import Emitter, choose
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of
from ptx.isa.model import Instruction

_SECTION = "Integer Arithmetic Instructions"
_BYTE = np.uint32(0xFF)
_NONE = 0xFFFFFFFF


def bits_of(dtype: np.dtype[Any]) -> int:
    """The width of an integer type."""
    return 8 * dtype.itemsize


def low_mask(length: Value, dtype: np.dtype[Any]) -> Value:
    """As many ones as `length` says, from bit 0 on; all for the width or more."""
    width = bits_of(dtype)
    missing = np.uint32(width) - np.minimum(length, np.uint32(width))
    return ~dtype.type(0) >> missing.astype(dtype)


def field_place(start: Value, length: Value, dtype: np.dtype[Any]) -> tuple[Value, Value]:
    """Start and length of a field as the hardware reads them.

    The ISA gives them the range 0 to 255. Above, 32-bit fields take the lowest byte, and 64-bit
    ones the whole number, which is cut at the width here.
    """
    if dtype.itemsize == 4:
        return start & _BYTE, length & _BYTE
    width = np.uint32(bits_of(dtype))
    return np.minimum(start, width), np.minimum(length, width)


def extract(a: Value, start: Value, length: Value) -> Value:
    """`bfe`: `length` bits from bit `start` on, extended by the sign of a signed type."""
    dtype = a.dtype
    position, count = field_place(start, length, dtype)
    if dtype.kind == "u":
        return (a >> position.astype(dtype)) & low_mask(count, dtype)
    width = np.uint32(bits_of(dtype))
    room = width - np.minimum(position + count, width)
    field = (a << room.astype(dtype)) >> (room + position).astype(dtype)
    return choose(count == 0, dtype.type(0), field)


def insert(a: Value, b: Value, start: Value, length: Value) -> Value:
    """`bfi`: b with its `length` bits from bit `start` on replaced by the lowest of a."""
    position, count = field_place(start, length, a.dtype)
    position = position.astype(a.dtype)
    mask = low_mask(count, a.dtype) << position
    return (b & ~mask) | ((a << position) & mask)


def leading_zeros(a: Value) -> Value:
    """(n,) uint32: zeros above the highest one of an unsigned value; its width for zero.

    The exponent of the value as a double tells the place of its highest bit. Clearing the bit below
    keeps 64-bit values from being rounded up to the next power of two.
    """
    width = bits_of(a.dtype)
    isolated = a & ~(a >> a.dtype.type(1)) if width == 64 else a
    exponent = isolated.astype(np.float64).view(np.uint64) >> np.uint64(52)
    zeros = np.minimum(np.uint64(1022 + width) - exponent, np.uint64(width))
    return zeros.astype(np.uint32)


def highest_bit(a: Value, shift_amount: bool) -> Value:
    """`bfind`: place of the highest bit that is not the sign, all ones if there is none.

    With `shift_amount`, how far it is below the top instead.
    """
    width = bits_of(a.dtype)
    if a.dtype.kind == "i":
        a = (a ^ (a >> a.dtype.type(width - 1))).view(f"u{a.dtype.itemsize}")
    zeros = leading_zeros(a)
    if shift_amount:
        return choose(a == 0, np.uint32(_NONE), zeros)
    return np.uint32(width - 1) - zeros


def count_by_halves(a: Value) -> Value:
    """How many bits are one, summed in ever wider fields."""
    kind = a.dtype.type
    width = bits_of(a.dtype)
    ones = (1 << width) - 1
    pairs, fours, bytes_ = (kind(ones // d) for d in (3, 5, 17))
    a = a - ((a >> kind(1)) & pairs)
    a = (a & fours) + ((a >> kind(2)) & fours)
    a = (a + (a >> kind(4))) & bytes_
    return ((a * kind(ones // 255)) >> kind(width - 8)).astype(np.uint32)


_bitwise_count: Callable[[Value], Value] | None = getattr(np, "bitwise_count", None)  # NumPy 2


def population(a: Value) -> Value:
    """(n,) uint32: how many bits are one."""
    if _bitwise_count is None:
        return count_by_halves(a)
    return _bitwise_count(a).astype(np.uint32)


def reverse(a: Value) -> Value:
    """`brev`: the bits in the opposite order."""
    kind = a.dtype.type
    ones = (1 << bits_of(a.dtype)) - 1
    a = a.byteswap()
    for shift, divisor in ((4, 17), (2, 5), (1, 3)):
        mask, by = kind(ones // divisor), kind(shift)
        a = ((a >> by) & mask) | ((a & mask) << by)
    return a


def find_nth(mask: Value, base: Value, offset: Value) -> Value:
    """`fns`: place of the |offset|-th one from bit `base` on, up or down; all ones if none.

    With offset 0, `base` itself if that bit is one.
    """
    wide = offset.astype(np.int64)
    step = np.where(wide < 0, -1, 1)
    wanted = np.maximum(np.abs(wide), 1)
    last = np.where(wide == 0, 1, 32)  # how many bits may be looked at
    place = base.astype(np.int64)
    last = np.where(place < 32, last, 0)
    found = np.full(np.broadcast(mask, base, offset).shape, _NONE, dtype=np.uint32)
    seen = np.zeros(found.shape, dtype=np.int64)
    bits = mask.astype(np.int64)
    for looked in range(32):
        inside = (place >= 0) & (place < 32) & (looked < last)
        is_one = inside & ((bits >> np.clip(place, 0, 31)) & 1).astype(np.bool_)
        seen = seen + is_one
        found = np.where(is_one & (seen == wanted), place.astype(np.uint32), found)
        place = place + step
    return found[()]


def field_mask(start: Value, width: Value, clamp: bool) -> Value:
    """`bmsk`: `width` ones from bit `start` on; both modulo 32, or cut off at 32."""
    low, count = start & np.uint32(31), width & np.uint32(31)
    if clamp:
        low, count = np.minimum(start, np.uint32(32)), np.minimum(width, np.uint32(32))
    return low_mask(count, np.dtype(np.uint32)) << low


def extend(a: Value, width: Value, clamp: bool) -> Value:
    """`szext`: the lowest `width` bits, extended by the sign of a signed type.

    From 32 on the width counts modulo 32, or keeps all bits.
    """
    length = np.minimum(width, np.uint32(32)) if clamp else width & np.uint32(31)
    return extract(a, np.uint32(0), length)


def _field(e: Emitter, i: Instruction) -> None:
    """`bfe`, and `bfi` without its sign."""
    kind = kind_of(type_suffix(i))
    count = len(i.operands) - 3
    values = [e.value(operand, kind) for operand in i.operands[1 : 1 + count]]
    values += [e.value(operand, "u32") for operand in i.operands[1 + count :]]
    function = e.helper(extract if i.opcode == "bfe" else insert)
    e.assign(i.operands[0], kind, f"{function}({', '.join(values)})")


def _counted(function: Callable[[Value], Value]) -> Callable[[Emitter, Instruction], None]:
    def emit(e: Emitter, i: Instruction) -> None:
        value = e.value(i.operands[1], kind_of(type_suffix(i)))
        e.assign(i.operands[0], "u32", f"{e.helper(function)}({value})")

    return emit


def _find(e: Emitter, i: Instruction) -> None:
    value = e.value(i.operands[1], type_suffix(i))
    call = f"{e.helper(highest_bit)}({value}, {'shiftamt' in i.modifiers})"
    e.assign(i.operands[0], "u32", call)


def _reverse(e: Emitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    e.assign(i.operands[0], kind, f"{e.helper(reverse)}({e.value(i.operands[1], kind)})")


def _find_nth(e: Emitter, i: Instruction) -> None:
    kinds = ("u32", "u32", "s32")
    values = (e.value(each, kind) for each, kind in zip(i.operands[1:], kinds, strict=True))
    e.assign(i.operands[0], "u32", f"{e.helper(find_nth)}({', '.join(values)})")


def _clamped(function: Callable[..., Value]) -> Callable[[Emitter, Instruction], None]:
    """An operation of two values that is `.clamp` or `.wrap`."""

    def emit(e: Emitter, i: Instruction) -> None:
        if len({"clamp", "wrap"} & set(i.modifiers)) != 1:
            raise e.refuse("it needs .clamp or .wrap")
        kind = kind_of(type_suffix(i))
        a, b = e.value(i.operands[1], kind), e.value(i.operands[2], "u32")
        call = f"{e.helper(function)}({a}, {b}, {'clamp' in i.modifiers})"
        e.assign(i.operands[0], kind, call)

    return emit


_INTEGERS = ("u32", "s32", "u64", "s64")
_MODES = ("clamp", "wrap")
operation("bfe", _INTEGERS, 4, _field, section=_SECTION)
operation("bfi", ("b32", "b64"), 5, _field, section=_SECTION)
operation("bfind", _INTEGERS, 2, _find, modifiers=["shiftamt"], section=_SECTION)
operation("clz", ("b32", "b64"), 2, _counted(leading_zeros), section=_SECTION)
operation("popc", ("b32", "b64"), 2, _counted(population), section=_SECTION)
operation("brev", ("b32", "b64"), 2, _reverse, section=_SECTION)
operation("fns", ("b32",), 4, _find_nth, section=_SECTION)
operation("bmsk", ("b32",), 3, _clamped(field_mask), modifiers=_MODES, section=_SECTION)
operation("szext", ("u32", "s32"), 3, _clamped(extend), modifiers=_MODES, section=_SECTION)
