"""Integer arithmetic of arrays.

PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic
Instructions". Shifts rely on NumPy's rule that an amount of the width or more moves every bit out,
and leaves copies of the sign in signed values.

CC.CF is the carry of the adder. A subtraction adds the complement and one, so it carries if it does
not borrow. An `addc` after a `subc` therefore adds the opposite of a borrow. The manual describes a
borrow, but GPUs do this, and NVRTC's division of 128-bit integers depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from ptx.emulate.codegen.emitter import Emitter, choose
from ptx.emulate.codegen.registers import CARRY
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, unsigned, width_of
from ptx.isa.model import Immediate, Instruction

_U = ("u16", "u32", "u64")
_S = ("s16", "s32", "s64")
_operation = partial(operation, section="Integer Arithmetic Instructions")


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def divide(a: Value, b: Value) -> Value:
    """Quotient rounded towards zero; all ones where b is zero, as the hardware gives."""
    zero = b == 0
    has_zeros = zero.any()
    if has_zeros:
        b = choose(zero, b.dtype.type(1), b)
    quotient = a // b
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)
    return choose(zero, ~a.dtype.type(0), quotient) if has_zeros else quotient


def remainder(a: Value, b: Value) -> Value:
    """a - b * divide(a, b), with the sign of a; all ones where b is zero, as the hardware gives."""
    if b.ndim == 0:  # NumPy divides arrays by one number faster than `fmod` does
        return a - divide(a, b) * b if b else ~a.dtype.type(0)
    zero = b == 0
    if not zero.any():
        return np.fmod(a, b)
    return np.where(zero, ~a.dtype.type(0), np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def high_product(a: Value, b: Value) -> Value:
    """The upper half of the product of two 64-bit values, by halves of 32 bits."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - choose(a < 0, y, zero) - choose(b < 0, x, zero)
    return high.view(a.dtype)


def saturated_sum(a: Value, b: Value) -> Value:
    """a + b in 32 bits, clamped to the range of s32."""
    total = a.astype(np.int64) + b.astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def saturated_difference(a: Value, b: Value) -> Value:
    """a - b in 32 bits, clamped to the range of s32."""
    total = a.astype(np.int64) - b.astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def _sum(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        target, left, right = i.operands
        if "sat" in i.modifiers:
            if kind != "s32":
                raise e.reject(".sat needs .s32")
            helper = e.helper(saturated_sum if sign == "+" else saturated_difference)
            a, b = e.value(left, kind), e.value(right, kind)
            e.assign(target, kind, f"{helper}({a}, {b})")
            return
        if sign == "+" and kind[1:] in ("32", "64") and e.add_later(target, left, right):
            return
        a, b = e.value(left, kind), e.value(right, kind)
        e.assign(target, kind, f"{a} {sign} {b}")

    return emit


def _wide(e: Emitter, i: Instruction, kind: str) -> str:
    """The product of the first two sources in twice the width."""
    twice = _twice(kind)
    a, factor = i.operands[1], i.operands[2]
    wide = f"{e.value(a, kind)}.astype({e.dtype(twice)})"
    if isinstance(factor, Immediate):
        value = _as_kind(factor.value, kind)
        if value > 0 and value.bit_count() == 1:
            return f"({wide} << {e.constant(value.bit_length() - 1, twice)})"
        return f"({wide} * {e.constant(value, twice)})"
    return f"({wide} * {e.value(factor, kind)}.astype({e.dtype(twice)}))"


def _as_kind(value: int, kind: str) -> int:
    """An immediate as a value of a kind."""
    bits = 8 * width_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def _high(e: Emitter, i: Instruction, kind: str) -> str:
    if kind[1:] == "64":
        a, b = e.value(i.operands[1], kind), e.value(i.operands[2], kind)
        return f"{e.helper(high_product)}({a}, {b})"
    shift = e.constant(8 * width_of(kind), _twice(kind))
    return f"({_wide(e, i, kind)} >> {shift}).astype({e.dtype(kind)})"


def product_of(e: Emitter, i: Instruction) -> tuple[str, str]:
    """The product that `.lo`, `.hi` or `.wide` selects, and its kind."""
    kind = type_suffix(i)
    if "wide" in i.modifiers:
        if kind[1:] == "64":
            raise e.reject(".wide needs 16 or 32 bits")
        return _wide(e, i, kind), _twice(kind)
    if "hi" in i.modifiers:
        return _high(e, i, kind), kind
    a, b = i.operands[1], i.operands[2]
    if isinstance(b, Immediate) and b.value > 0 and b.value.bit_count() == 1:
        return f"({e.value(a, kind)} << {e.constant(b.value.bit_length() - 1, kind)})", kind
    return f"({e.value(a, kind)} * {e.value(b, kind)})", kind


def _multiply(e: Emitter, i: Instruction) -> None:
    target, source, factor = i.operands
    if "wide" in i.modifiers and isinstance(factor, Immediate):
        kind, value = type_suffix(i), factor.value
        is_power = 0 < value < 1 << 31 and value.bit_count() == 1
        shift = value.bit_length() - 1
        if kind[1:] == "32" and is_power and e.scale_later(target, source, kind, shift):
            return
    product, kind = product_of(e, i)
    e.assign(i.operands[0], kind, product)


def _multiply_add(e: Emitter, i: Instruction) -> None:
    product, kind = product_of(e, i)
    addend = e.value(i.operands[3], kind)
    if "sat" in i.modifiers:
        if "hi" not in i.modifiers or kind != "s32":
            raise e.reject(".sat needs .hi.s32")
        e.assign(i.operands[0], kind, f"{e.helper(saturated_sum)}({product}, {addend})")
        return
    e.assign(i.operands[0], kind, f"{product} + {addend}")


def product24(a: Value, b: Value) -> Value:
    """The 48-bit product of the low 24 bits of two 32-bit values, signed where they are."""
    if a.dtype.kind == "i":
        eight = np.int32(8)
        return ((a << eight) >> eight).astype(np.int64) * ((b << eight) >> eight).astype(np.int64)
    low = np.uint32(0xFFFFFF)
    return (a & low).astype(np.uint64) * (b & low).astype(np.uint64)


def _multiply24(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b = e.value(i.operands[1], kind), e.value(i.operands[2], kind)
    shift = e.constant(16 if "hi" in i.modifiers else 0, _twice(kind))
    part = f"({e.helper(product24)}({a}, {b}) >> {shift}).astype({e.dtype(kind)})"
    if i.opcode == "mad24":
        addend = e.value(i.operands[3], kind)
        if "sat" in i.modifiers:
            part = f"{e.helper(saturated_sum)}({part}, {addend})"
        else:
            part = f"{part} + {addend}"
    e.assign(i.operands[0], kind, part)


def _called(function: Callable[..., Value], *kinds: str, result: str = "") -> EmitFunction:
    """An operation that is one call of a Python function.

    `kinds` are the types of the sources, and `result` that of the destination, where one is not the
    instruction's own, which is "".
    """

    def emit(e: Emitter, i: Instruction) -> None:
        own_kind = type_suffix(i)
        sources = zip(i.operands[1:], kinds or repeat(own_kind), strict=False)
        arguments = ", ".join(e.value(operand, kind or own_kind) for operand, kind in sources)
        e.assign(i.operands[0], result or own_kind, f"{e.helper(function)}({arguments})")

    return emit


def _negate(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"{e.constant(0, kind)} - {e.value(i.operands[1], kind)}")


def absolute(a: Value) -> Value:
    """|a|, where the least value stays as it is."""
    return choose(a < 0, a.dtype.type(0) - a, a)


def _extreme(name: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = (e.value(operand, kind) for operand in i.operands[1:])
        function = e.helper(np.minimum if name == "min" else np.maximum)
        result = f"{function}({a}, {b})"
        if "relu" in i.modifiers:
            result = f"{e.helper(np.maximum)}({result}, {e.constant(0, kind)})"
        e.assign(i.operands[0], kind, result)

    return emit


_operation("add", (*_U, *_S), 3, _sum("+"), modifiers=["sat"])
_operation("sub", (*_U, *_S), 3, _sum("-"), modifiers=["sat"])
_operation("mul", (*_U, *_S), 3, _multiply, modifiers=["lo", "hi", "wide"])
_operation("mad", (*_U, *_S), 4, _multiply_add, modifiers=["lo", "hi", "wide", "sat"])
_operation("mul24", ("u32", "s32"), 3, _multiply24, modifiers=["lo", "hi"])
_operation("mad24", ("u32", "s32"), 4, _multiply24, modifiers=["lo", "hi", "sat"])
_operation("div", (*_U, *_S), 3, _called(divide))
_operation("rem", (*_U, *_S), 3, _called(remainder))
_operation("neg", _S, 2, _negate)
_operation("abs", _S, 2, _called(absolute))
_operation("min", (*_U, *_S), 3, _extreme("min"), modifiers=["relu"])
_operation("max", (*_U, *_S), 3, _extreme("max"), modifiers=["relu"])


_carry_operation = partial(operation, section="Extended-Precision Integer Arithmetic Instructions")
_CARRY_TYPES = ("u32", "s32", "u64", "s64")


def _finish(e: Emitter, i: Instruction, kind: str, total: str, carries: list[str]) -> None:
    """Write the sum, and with `.cc` the carry."""
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


def _add_carry(with_carry: bool) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = unsigned(type_suffix(i))
        a, b = (e.temporary(e.value(operand, kind)) for operand in i.operands[1:])
        _added(e, i, kind, a, b, with_carry)

    return emit


def _subtract_carry(with_carry: bool) -> EmitFunction:
    """a + ~b + 1, or a + ~b + CF: it borrows where a is below the subtrahend."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = unsigned(type_suffix(i))
        a, b = (e.temporary(e.value(operand, kind)) for operand in i.operands[1:])
        if with_carry:
            _added(e, i, kind, a, e.temporary(f"~{b}"), with_carry=True)
        else:
            _finish(e, i, kind, e.temporary(f"{a} - {b}"), [f"({a} >= {b})"])

    return emit


def _carry_mad(with_carry: bool) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        product, kind = product_of(e, i)
        unsigned_kind = unsigned(kind)
        a = e.temporary(f"({product}).view({e.dtype(unsigned_kind)})")
        b = e.temporary(e.value(i.operands[3], unsigned_kind))
        _added(e, i, unsigned_kind, a, b, with_carry)

    return emit


for _name, _middle, _arity, _emit in (
    ("add", "", 3, _add_carry),
    ("sub", "", 3, _subtract_carry),
    ("mad", ".lo", 4, _carry_mad),
    ("mad", ".hi", 4, _carry_mad),
):
    for _words, _reads, _writes in (
        (f"{_name}{_middle}.cc", False, True),
        (f"{_name}c{_middle}", True, False),
        (f"{_name}c{_middle}.cc", True, True),
    ):
        _carry_operation(
            _words, _CARRY_TYPES, _arity, _emit(_reads), reads_carry=_reads, writes_carry=_writes
        )


_BYTE = np.uint32(0xFF)
_NONE = 0xFFFFFFFF


def bits_of(dtype: np.dtype[Any]) -> int:
    """The width of an integer type."""
    return 8 * dtype.itemsize


def low_mask(length: Value, dtype: np.dtype[Any]) -> Value:
    """Return `length` ones from bit 0 on; all ones for the width or more."""
    width = bits_of(dtype)
    missing = np.uint32(width) - np.minimum(length, np.uint32(width))
    return ~dtype.type(0) >> missing.astype(dtype)


def field_place(start: Value, length: Value, dtype: np.dtype[Any]) -> tuple[Value, Value]:
    """Start and length of a field as the hardware reads them.

    The ISA gives them the range 0 to 255. Above, 32-bit fields take the lowest byte, and 64-bit
    ones the whole value, which is clamped to the width here.
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
    unused_bits = width - np.minimum(position + count, width)
    field = (a << unused_bits.astype(dtype)) >> (unused_bits + position).astype(dtype)
    return choose(count == 0, dtype.type(0), field)


def insert(a: Value, b: Value, start: Value, length: Value) -> Value:
    """`bfi`: b with its `length` bits from bit `start` on replaced by the lowest of a."""
    position, count = field_place(start, length, a.dtype)
    position = position.astype(a.dtype)
    mask = low_mask(count, a.dtype) << position
    return (b & ~mask) | ((a << position) & mask)


def leading_zeros(a: Value) -> Value:
    """(n,) uint32: zeros above the highest one of an unsigned value; its width for zero.

    The exponent of the value as a double is the position of its highest bit. Clearing the bit below
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
    """Return how many bits are one, summed in ever wider fields."""
    kind = a.dtype.type
    width = bits_of(a.dtype)
    all_ones = (1 << width) - 1
    pairs, fours, bytes_ = (kind(all_ones // d) for d in (3, 5, 17))
    a = a - ((a >> kind(1)) & pairs)
    a = (a & fours) + ((a >> kind(2)) & fours)
    a = (a + (a >> kind(4))) & bytes_
    return ((a * kind(all_ones // 255)) >> kind(width - 8)).astype(np.uint32)


_bitwise_count: Callable[[Value], Value] | None = getattr(np, "bitwise_count", None)  # NumPy 2


def population(a: Value) -> Value:
    """(n,) uint32: how many bits are one."""
    if _bitwise_count is None:
        return count_by_halves(a)
    return _bitwise_count(a).astype(np.uint32)


def reverse(a: Value) -> Value:
    """`brev`: the bits in the opposite order."""
    kind = a.dtype.type
    all_ones = (1 << bits_of(a.dtype)) - 1
    a = a.byteswap()
    for shift, divisor in ((4, 17), (2, 5), (1, 3)):
        mask, by = kind(all_ones // divisor), kind(shift)
        a = ((a >> by) & mask) | ((a & mask) << by)
    return a


def find_nth(mask: Value, base: Value, offset: Value) -> Value:
    """`fns`: place of the |offset|-th one from bit `base` on, up or down; all ones if none.

    With offset 0, `base` itself if that bit is one.
    """
    wide = offset.astype(np.int64)
    step = np.where(wide < 0, -1, 1)
    ordinal = np.maximum(np.abs(wide), 1)
    last = np.where(wide == 0, 1, 32)  # how many bits may be looked at
    position = base.astype(np.int64)
    last = np.where(position < 32, last, 0)
    results = np.full(np.broadcast(mask, base, offset).shape, _NONE, dtype=np.uint32)
    ones_seen = np.zeros(results.shape, dtype=np.int64)
    bits = mask.astype(np.int64)
    for looked in range(32):
        inside = (position >= 0) & (position < 32) & (looked < last)
        is_one = inside & ((bits >> np.clip(position, 0, 31)) & 1).astype(np.bool_)
        ones_seen = ones_seen + is_one
        results = np.where(is_one & (ones_seen == ordinal), position.astype(np.uint32), results)
        position = position + step
    return results[()]


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


def _find(e: Emitter, i: Instruction) -> None:
    value = e.value(i.operands[1], type_suffix(i))
    call = f"{e.helper(highest_bit)}({value}, {'shiftamt' in i.modifiers})"
    e.assign(i.operands[0], "u32", call)


def _clamped(function: Callable[..., Value]) -> Callable[[Emitter, Instruction], None]:
    """An operation of two values that is `.clamp` or `.wrap`."""

    def emit(e: Emitter, i: Instruction) -> None:
        if len({"clamp", "wrap"} & set(i.modifiers)) != 1:
            raise e.reject("it needs .clamp or .wrap")
        kind = kind_of(type_suffix(i))
        a, b = e.value(i.operands[1], kind), e.value(i.operands[2], "u32")
        call = f"{e.helper(function)}({a}, {b}, {'clamp' in i.modifiers})"
        e.assign(i.operands[0], kind, call)

    return emit


_INTEGERS = ("u32", "s32", "u64", "s64")
_MODES = ("clamp", "wrap")
_operation("bfe", _INTEGERS, 4, _called(extract, "", "u32", "u32"))
_operation("bfi", ("b32", "b64"), 5, _called(insert, "", "", "u32", "u32"))
_operation("bfind", _INTEGERS, 2, _find, modifiers=["shiftamt"])
_operation("clz", ("b32", "b64"), 2, _called(leading_zeros, result="u32"))
_operation("popc", ("b32", "b64"), 2, _called(population, result="u32"))
_operation("brev", ("b32", "b64"), 2, _called(reverse))
_operation("fns", ("b32",), 4, _called(find_nth, "u32", "u32", "s32", result="u32"))
_operation("bmsk", ("b32",), 3, _clamped(field_mask), modifiers=_MODES)
_operation("szext", ("u32", "s32"), 3, _clamped(extend), modifiers=_MODES)


def field(word: Value, bits: int, position: int) -> Value:
    """Field number `position` of `bits` bits, extended to 32 by its sign if the word is signed."""
    kind = word.dtype.type
    return (word << kind(32 - bits * (position + 1))) >> kind(32 - bits)


def dot4(a: Value, b: Value, c: Value) -> Value:
    """c plus the four products of bytes, modulo 2**32."""
    total = c
    for position in range(4):
        x, y = field(a, 8, position), field(b, 8, position)
        total = total + x.view(np.uint32) * y.view(np.uint32)
    return total


def dot2(a: Value, b: Value, c: Value, high: bool) -> Value:
    """c plus two products of a's halves with the lower or upper two bytes of b, modulo 2**32."""
    total = c
    for position in range(2):
        x, y = field(a, 16, position), field(b, 8, position + 2 * high)
        total = total + x.view(np.uint32) * y.view(np.uint32)
    return total


def _dot(e: Emitter, i: Instruction) -> None:
    target, first, second, third = i.operands
    kinds = type_suffix(i).split(".")
    arguments = f"{e.value(first, kinds[0])}, {e.value(second, kinds[1])}, {e.value(third, 'u32')}"
    if i.opcode == "dp4a":
        e.assign(target, "u32", f"{e.helper(dot4)}({arguments})")
        return
    halves = [word for word in i.modifiers if word in ("lo", "hi")]
    if len(halves) != 1:
        raise e.reject("it needs .lo or .hi")
    e.assign(target, "u32", f"{e.helper(dot2)}({arguments}, {halves[0] == 'hi'})")


def distance(a: Value, b: Value) -> Value:
    """|a - b| as an unsigned value of the same width."""
    kind = f"u{a.dtype.itemsize}"
    difference = a.view(kind) - b.view(kind)
    return choose(a < b, difference.dtype.type(0) - difference, difference)


def _sum_of_differences(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, a, b, c = i.operands
    call = f"{e.helper(distance)}({e.value(a, kind)}, {e.value(b, kind)})"
    e.assign(target, unsigned(kind), f"{call} + {e.value(c, unsigned(kind))}")


_PAIRS = tuple(f"{a}.{b}" for a in ("u32", "s32") for b in ("u32", "s32"))
_operation("dp4a", _PAIRS, 4, _dot)
_operation("dp2a", _PAIRS, 4, _dot, modifiers=["lo", "hi"])
_operation(
    "sad", tuple(f"{sign}{bits}" for sign in "us" for bits in (16, 32, 64)), 4, _sum_of_differences
)


_TOPS = np.uint32(0x80008000)
_REST = np.uint32(0x7FFF7FFF)


def add_halves(a: Value, b: Value) -> Value:
    """Two sums modulo 2**16; no carry crosses the middle."""
    return ((a & _REST) + (b & _REST)) ^ ((a ^ b) & _TOPS)


def _halves(word: Value, kind: str) -> tuple[Value, Value]:
    """The lower and the upper half."""
    upper = (word >> np.uint32(16)).astype(np.uint16)
    return word.astype(np.uint16).view(kind), upper.view(kind)


def _joined(low: Value, high: Value) -> Value:
    upper = high.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return upper | low.view(np.uint16)


def least_halves(a: Value, b: Value, kind: str) -> Value:
    """Two minima of halves of kind "u2" or "i2"."""
    (a0, a1), (b0, b1) = _halves(a, kind), _halves(b, kind)
    return _joined(np.minimum(a0, b0), np.minimum(a1, b1))


def greatest_halves(a: Value, b: Value, kind: str) -> Value:
    """Two maxima of halves of kind "u2" or "i2"."""
    (a0, a1), (b0, b1) = _halves(a, kind), _halves(b, kind)
    return _joined(np.maximum(a0, b0), np.maximum(a1, b1))


def _packed_extreme(name: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = "i2" if type_suffix(i)[0] == "s" else "u2"
        a, b = (e.value(operand, "u32") for operand in i.operands[1:])
        function = e.helper(least_halves if name == "min" else greatest_halves)
        result = f"{function}({a}, {b}, {kind!r})"
        if "relu" in i.modifiers:
            if kind == "u2":
                raise e.reject(".relu needs a signed type")
            zero = e.constant(0, "u32")
            result = f"{e.helper(greatest_halves)}({result}, {zero}, {kind!r})"
        e.assign(i.operands[0], "u32", result)

    return emit


_PACKED = ("u16x2", "s16x2")
_operation("add", _PACKED, 3, _called(add_halves, "u32", "u32", result="u32"))
_operation("min", _PACKED, 3, _packed_extreme("min"), modifiers=["relu"])
_operation("max", _PACKED, 3, _packed_extreme("max"), modifiers=["relu"])
