"""Video instructions. PTX ISA, "Scalar Video Instructions", "SIMD Video Instructions".

A scalar instruction takes a word, a half or a byte of its sources, computes, and saturates. Then it
applies a second operation or merges the result into another word. A SIMD one works on two halves or
four bytes at once. One `ScalarVideo` or `SimdVideo` describes an instruction.

GPUs since Volta have no scalar video unit: the driver's assembler makes sequences of other
instructions, which depart from the PTX ISA. The emulator gives the bits of those sequences:

- `.h1` as the destination receives the upper half of the result, not the lower one.
- `.sat` into a half or a byte gives the largest value for negative results, too.
- `.sat` to u32 gives 0 for negative results, but does not limit large ones.
- A shift saturates the lowest 34 bits of its result, to 32 bits whatever the destination is.
- The second `.min` and `.max` compare 64 bits: those of c, extended by the destination's type, and
  those of the result, which `vadd` and `vsub` extend by the sign of 32 bits.
- `vmad` reads whole words, and c, as signed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.isa.model import Instruction, Operand, Selected

_operation = partial(operation, section="Scalar Video Instructions")

Operate = Callable[[Value, Value], Value]
# Bits and first bit of each part of a word.
_PARTS: dict[str, tuple[int, int]] = {
    "": (32, 0),
    **{f"b{k}": (8, 8 * k) for k in range(4)},
    **{f"h{k}": (16, 16 * k) for k in range(2)},
}

COMPARISONS: dict[str, Operate] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_SECOND: dict[str, Operate] = {"add": np.add, "min": np.minimum, "max": np.maximum}
ARITHMETIC: dict[str, Operate] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
}


def part_of(word: Value, part: str, signed: bool) -> Value:
    """A part of a word, extended by its sign or by zeros to int64."""
    bits, first = _PARTS[part]
    wide = word.astype(np.int64) >> np.int64(first)
    wide = wide & np.int64((1 << bits) - 1)
    if not signed:
        return wide
    top = np.int64(1 << (bits - 1))
    return (wide ^ top) - top


def clamp(value: Value, bits: int, signed: bool) -> Value:
    """An int64 value clamped to the range of so many bits."""
    low = -(1 << (bits - 1)) if signed else 0
    return np.clip(value, low, low + (1 << bits) - 1)


def word_of(value: Value) -> Value:
    """The lowest 32 bits of an int64 value."""
    return (value & np.int64(0xFFFFFFFF)).astype(np.uint32)


def signed_word(value: Value) -> Value:
    """The lowest 32 bits of an int64 value, extended by their sign."""
    top = np.int64(1 << 31)
    return ((value & np.int64(0xFFFFFFFF)) ^ top) - top


def saturated_shift(value: Value, signed: bool) -> Value:
    """The lowest 34 bits of a shift, clamped to 32, as an int64 with the sign of its word."""
    top = np.int64(1 << 33)
    limited = ((value & np.int64((1 << 34) - 1)) ^ top) - top
    return signed_word(clamp(limited, 32, signed))


@dataclass(frozen=True, slots=True)
class ScalarVideo:
    """The operation of one scalar video instruction.

    Attributes:
        first: the operation on the two selected parts.
        kind: "sum", "shift" or "", which decides how a result saturates.
        a, b: which parts of the sources; a_signed, b_signed how they are extended.
        signed: whether the result and c are; saturate: whether the result is clamped.
        second: an operation on the result and c; target: which part of c the result replaces.
    """

    first: Operate
    kind: str
    a: str
    b: str
    a_signed: bool
    b_signed: bool
    signed: bool
    saturate: bool
    second: str
    target: str

    def __call__(self, a: Value, b: Value, c: Value) -> Value:
        """(n,) uint32 from three words."""
        value = self.first(
            part_of(a, self.a, self.a_signed), part_of(b, self.b, self.b_signed)
        ).astype(np.int64)
        if self.saturate:
            value = self._saturated(value)
        if self.kind == "sum":
            value = signed_word(value)
        if self.second:
            value = self._with_second(value, part_of(c, "", self.signed))
        if not self.target:
            return word_of(value)
        bits, lowest = _PARTS[self.target]
        mask = np.uint32((1 << bits) - 1 << lowest)
        moved = word_of(value) if self.target == "h1" else word_of(value) << np.uint32(lowest)
        return (c & ~mask) | (moved & mask)

    def _saturated(self, value: Value) -> Value:
        if self.kind == "shift":
            return saturated_shift(value, self.signed)
        if self.target:
            highest = np.int64((1 << _PARTS[self.target][0] - self.signed) - 1)
            return np.where((value < 0) | (value > highest), highest, value)[()]
        return clamp(value, 32, True) if self.signed else np.maximum(value, 0)

    def _with_second(self, value: Value, c: Value) -> Value:
        if self.signed or self.second == "add":
            return _SECOND[self.second](value, c)
        unsigned = _SECOND[self.second](value.view(np.uint64), c.view(np.uint64))
        return unsigned.view(np.int64)


def split_operand(operand: Operand) -> tuple[Operand, str, bool]:
    """An operand without its selector, the selector, and whether it is negated."""
    if isinstance(operand, Selected):
        return operand.register, operand.selector, operand.negated
    return operand, "", False


def signs(i: Instruction) -> str:
    """The signs of its types, "s" or "u" for each."""
    return "".join(kind[0] for kind in type_suffix(i).split("."))


def comparison(e: Emitter, i: Instruction) -> Operate:
    """The one comparison that it names."""
    names = [word for word in i.modifiers if word in COMPARISONS]
    if len(names) != 1:
        raise e.reject("it needs one comparison")
    return COMPARISONS[names[0]]


def _part_operand(e: Emitter, operand: Operand) -> tuple[Operand, str]:
    word, part, negated = split_operand(operand)
    if negated or part not in _PARTS:
        raise e.reject("it takes .b0 to .b3, .h0, .h1 and no negation")
    return word, part


# How results saturate, where it is not by the destination alone (`ScalarVideo.kind`).
_KINDS = {"vadd": "sum", "vsub": "sum", "vshl": "shift", "vshr": "shift"}


def _emit(e: Emitter, i: Instruction, first: Operate, kinds: str) -> None:
    """`kinds`: signs of the result and the two sources."""
    target, into = _part_operand(e, i.operands[0])
    second = next((word for word in i.modifiers if word in _SECOND), "")
    if len(i.operands) != (4 if second or into else 3) or (second and into):
        raise e.reject("a third source belongs to a second operation or to a part of the result")
    a, a_part = _part_operand(e, i.operands[1])
    b, b_part = _part_operand(e, i.operands[2])
    scalar_video = ScalarVideo(
        first,
        _KINDS.get(i.opcode, ""),
        a_part,
        b_part,
        kinds[1] == "s",
        kinds[2] == "s",
        kinds[0] == "s",
        "sat" in i.modifiers,
        second,
        into,
    )
    c = e.value(i.operands[3], "u32") if len(i.operands) == 4 else e.constant(0, "u32")
    name = e.scope.bind(scalar_video, "video")
    e.assign(target, "u32", f"{name}({e.value(a, 'u32')}, {e.value(b, 'u32')}, {c})")


def _emitted(
    emit_one: Callable[[Emitter, Instruction, Operate, str], None], function: Operate | None
) -> EmitFunction:
    """The emitter of a function, or of the comparison that an instruction names."""

    def emit(e: Emitter, i: Instruction) -> None:
        if function is None:
            sources = signs(i)
            emit_one(e, i, comparison(e, i), sources[0] + sources)
        else:
            emit_one(e, i, function, signs(i))

    return emit


def _shift(name: str) -> EmitFunction:
    move = np.left_shift if name == "vshl" else np.right_shift

    def clamped(a: Value, b: Value) -> Value:
        return move(a, np.minimum(b, 32))

    def wrapped(a: Value, b: Value) -> Value:
        return move(a, b & 31)

    def emit(e: Emitter, i: Instruction) -> None:
        modes = [word for word in i.modifiers if word in ("clamp", "wrap")]
        if len(modes) != 1:
            raise e.reject("it needs .clamp or .wrap")
        _emit(e, i, clamped if modes[0] == "clamp" else wrapped, signs(i))

    return emit


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """The operation of one `vmad`.

    Attributes:
        a, b: which parts; a_signed, b_signed how parts are extended. Whole words and c are signed.
        signed: whether the sum is, where it is shifted and clamped.
        negate_product, negate_c, plus_one: what is negated, and whether one is added.
        shift: how far the sum is shifted to the right; saturate: whether it is clamped then.
    """

    a: str
    b: str
    a_signed: bool
    b_signed: bool
    signed: bool
    negate_product: bool
    negate_c: bool
    plus_one: bool
    shift: int
    saturate: bool

    def __call__(self, a: Value, b: Value, c: Value) -> Value:
        """(n,) uint32."""
        product = part_of(a, self.a, self.a_signed or not self.a) * part_of(
            b, self.b, self.b_signed or not self.b
        )
        c = part_of(c, "", True)
        total = -product if self.negate_product else product
        # Two's complement of 32 bits: the lowest c stays negative.
        total = total + (signed_word(~c) + np.int64(1) if self.negate_c else c)
        total = total + np.int64(self.plus_one)
        if not self.signed and self.shift:
            total = (total.view(np.uint64) >> np.uint64(self.shift)).view(np.int64)
        else:
            total = total >> np.int64(self.shift)
        return word_of(clamp(total, 32, self.signed) if self.saturate else total)


_SCALES = {"shr7": 7, "shr15": 15}


def _multiply_add(e: Emitter, i: Instruction) -> None:
    plus_one = "po" in i.modifiers
    sources = [split_operand(operand) for operand in i.operands[1:]]
    (a, a_part, a_minus), (b, b_part, b_minus), (c, c_part, c_minus) = sources
    minus = a_minus != b_minus
    if a_part not in _PARTS or b_part not in _PARTS or c_part:
        raise e.reject("a and b take .b0 to .b3, .h0, .h1; c takes no part")
    if (minus and c_minus) or (plus_one and (minus or c_minus)):
        raise e.reject("it negates the product or c, and neither beside .po")
    _, a_kind, b_kind = type_suffix(i).split(".")
    signed = "s" in (a_kind[0], b_kind[0]) or minus or c_minus  # PTX ISA, "vmad"
    multiply_add = MultiplyAdd(
        a_part,
        b_part,
        a_kind[0] == "s",
        b_kind[0] == "s",
        signed,
        minus,
        c_minus,
        plus_one,
        sum(_SCALES.get(word, 0) for word in i.modifiers),
        "sat" in i.modifiers,
    )
    values = ", ".join(e.value(source, "u32") for source in (a, b, c))
    e.assign(i.operands[0], "u32", f"{e.scope.bind(multiply_add, 'video')}({values})")


_SIGNS = ("u32", "s32")
_TRIPLES = [f"{d}.{a}.{b}" for d in _SIGNS for a in _SIGNS for b in _SIGNS]
for _name in ARITHMETIC:
    _operation(
        _name, _TRIPLES, (3, 4), _emitted(_emit, ARITHMETIC[_name]), modifiers=["sat", *_SECOND]
    )
for _name in ("vshl", "vshr"):
    _operation(
        _name,
        [f"{d}.{a}.u32" for d in _SIGNS for a in _SIGNS],
        (3, 4),
        _shift(_name),
        modifiers=["sat", "clamp", "wrap", *_SECOND],
    )
_operation(
    "vset",
    [f"{a}.{b}" for a in _SIGNS for b in _SIGNS],
    (3, 4),
    _emitted(_emit, None),
    modifiers=[*COMPARISONS, *_SECOND],
)
_operation("vmad", _TRIPLES, 4, _multiply_add, modifiers=["sat", "po", *_SCALES])


_simd_operation = partial(operation, section="SIMD Video Instructions")


def rounded_average(a: Value, b: Value) -> Value:
    """(a + b) / 2, halves away from zero."""
    total = a + b
    return (total + (total >= 0)) >> 1


_OPERATIONS: dict[str, Operate] = {**ARITHMETIC, "vavrg": rounded_average}


@dataclass(frozen=True, slots=True)
class SimdVideo:
    """The operation of one SIMD video instruction.

    Attributes:
        first: the operation on each pair of elements.
        bits: of an element, 16 or 8.
        a, b: for each element of the result, which of the elements of b:a is its source.
        mask: the elements that are written or added.
        a_signed, b_signed, signed: of the sources' elements and the result's.
        saturate: whether results are clamped; accumulate: whether they are added to c.
    """

    first: Operate
    bits: int
    a: tuple[int, ...]
    b: tuple[int, ...]
    mask: tuple[int, ...]
    a_signed: bool
    b_signed: bool
    signed: bool
    saturate: bool
    accumulate: bool

    def __call__(self, a: Value, b: Value, c: Value) -> Value:
        """(n,) uint32 from three words."""
        wide = (b.astype(np.uint64) << np.uint64(32)) | a
        result = c
        for position in self.mask:
            value = self.first(
                self._element(wide, self.a[position], self.a_signed),
                self._element(wide, self.b[position], self.b_signed),
            ).astype(np.int64)
            if self.saturate:
                value = clamp(value, self.bits, self.signed)
            if self.accumulate:
                result = result + word_of(value)
                continue
            low = np.uint32(position * self.bits)
            mask = np.uint32((1 << self.bits) - 1) << low
            result = (result & ~mask) | ((word_of(value) << low) & mask)
        return result

    def _element(self, wide: Value, index: int, signed: bool) -> Value:
        bits = (wide >> np.uint64(index * self.bits)) & np.uint64((1 << self.bits) - 1)
        value = bits.astype(np.int64)
        if not signed:
            return value
        top = np.int64(1 << (self.bits - 1))
        return (value ^ top) - top


def _selection(e: Emitter, selector: str, count: int, first: int) -> tuple[int, ...]:
    """The elements that a selector names, that of element 0 first; `first` and on without one."""
    if not selector:
        return tuple(range(first, first + count))
    pattern = r"b[0-7]{4}" if count == 4 else r"h[0-3]{2}"
    if not re.fullmatch(pattern, selector):
        raise e.reject(f".{selector} does not select {count} elements")
    return tuple(int(digit) for digit in reversed(selector[1:]))


def _written(e: Emitter, selector: str, count: int) -> tuple[int, ...]:
    """The elements that a mask names."""
    if not selector:
        return tuple(range(count))
    digits = tuple(int(digit) for digit in reversed(selector[1:]))
    is_mask = selector[0] == ("b" if count == 4 else "h") and digits == tuple(sorted(set(digits)))
    if not is_mask or digits[-1] >= count:
        raise e.reject(f".{selector} is no mask of {count} elements")
    return digits


def _whole(e: Emitter, operand: Operand) -> tuple[Operand, str]:
    word, selector, negated = split_operand(operand)
    if negated:
        raise e.reject("it takes no negation")
    return word, selector


def _emit_simd(e: Emitter, i: Instruction, first: Operate, kinds: str) -> None:
    count = int(i.opcode[-1])
    (target, mask), (a, a_selector), (b, b_selector) = (
        _whole(e, operand) for operand in i.operands[:3]
    )
    if "sat" in i.modifiers and "add" in i.modifiers:
        raise e.reject("it saturates or accumulates, not both")
    simd_video = SimdVideo(
        first,
        32 // count,
        _selection(e, a_selector, count, 0),
        _selection(e, b_selector, count, count),
        _written(e, mask, count),
        kinds[1] == "s",
        kinds[2] == "s",
        kinds[0] == "s",
        "sat" in i.modifiers,
        "add" in i.modifiers,
    )
    values = ", ".join(e.value(operand, "u32") for operand in (a, b, i.operands[3]))
    e.assign(target, "u32", f"{e.scope.bind(simd_video, 'video')}({values})")


for _count in (2, 4):
    for _name, _function in _OPERATIONS.items():
        _emit_one = _emitted(_emit_simd, _function)
        _simd_operation(f"{_name}{_count}", _TRIPLES, 4, _emit_one, modifiers=["sat", "add"])
    _simd_operation(
        f"vset{_count}",
        [f"{a}.{b}" for a in _SIGNS for b in _SIGNS],
        4,
        _emitted(_emit_simd, None),
        modifiers=[*COMPARISONS, "add"],
    )
