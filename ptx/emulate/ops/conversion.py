"""Conversions among integers, floats of all widths and packed pairs. PTX ISA, "cvt".

With `.rs` the random bits that the program supplies are added to the discarded bits. If the sum
carries, the result is rounded away from zero.

The ISA defines which random bits belong to which value of a word:

- Two halves: each uses its half of the word, of which `f16` takes 13 bits.
- Four values of 8 or 6 bits: the two upper values share the upper half, the two lower ones the
  lower half.
- Four values of 4 bits: the upper two use the upper bytes of both halves, the lower two the lower
  bytes.

That the first of such two takes the byte of the upper half is an interpretation, not measured on a
GPU.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.ieee import Format, Rounding
from ptx.emulate.ieee.half import widen
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.ops.floating_point import (
    INTEGRAL_ROUNDINGS,
    ROUNDINGS,
    call_of,
    lanewise,
    rounding_of,
)
from ptx.isa.model import Instruction, Vector

_INTEGERS = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_operation = partial(operation, section="cvt")
FORMATS: dict[str, Format] = {"f16": ieee.F16, "bf16": ieee.BF16, "f32": ieee.F32, "f64": ieee.F64}
HALVES = ("f16", "bf16")
_FLAGS = ("ftz", "sat", "relu", "satfinite")


def held(ptx_type: str) -> str:
    """The type as which a float is read and written: halves are their bits."""
    return "b16" if ptx_type in HALVES else ptx_type


def saturate_integer(value: Value, dtype: type[np.generic]) -> Value:
    """An integer clamped to the range of another integer type."""
    limits = np.iinfo(np.dtype(dtype))
    source_limits = np.iinfo(value.dtype)
    low, high = max(limits.min, source_limits.min), min(limits.max, source_limits.max)
    clipped = np.clip(value, value.dtype.type(low), value.dtype.type(high))
    result: Value = clipped.astype(dtype)
    return result


def _among_integers(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], source)
    if "sat" in i.modifiers:
        e.assign(i.operands[0], target, f"{e.helper(saturate_integer)}({value}, {e.dtype(target)})")
    elif target[1:] == source[1:]:
        e.assign(i.operands[0], target, f"({value}).view({e.dtype(target)})")
    else:
        e.assign(i.operands[0], target, f"({value}).astype({e.dtype(target)})")


def _from_integer(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    mode = rounding_of(i)
    if mode is None:
        raise e.reject("it needs a rounding mode")
    value = e.value(i.operands[1], source)
    if target in HALVES:
        result = call_of(e, ieee.integer_to_bits, value, target=FORMATS[target], rounding=mode)
        if "sat" in i.modifiers:
            kind = FORMATS[target]
            result = call_of(e, ieee.convert_float, result, source=kind, target=kind, sat=True)
    else:
        if mode is Rounding.RN:
            result = f"({value}).astype({e.dtype(target)})"
        else:
            dtype = np.dtype(NUMPY[target])
            result = call_of(e, ieee.integer_to_float, value, dtype=dtype, rounding=mode)
        if "sat" in i.modifiers:
            result = call_of(e, ieee.saturate, result)
    e.assign(i.operands[0], held(target), result)


def _to_integer(e: Emitter, i: Instruction) -> None:
    """Convert a float to an integer; values out of range are clamped, with `.sat` or without."""
    target, source = type_suffix(i).split(".")
    mode = rounding_of(i, INTEGRAL_ROUNDINGS)
    if mode is None:
        raise e.reject("it needs a mode of rounding to an integer")
    value = e.value(i.operands[1], held(source))
    if source in HALVES:
        value = f"{e.helper(widen)}({value}, {e.scope.bind(FORMATS[source])})"
    elif "ftz" in i.modifiers:
        value = call_of(e, ieee.flush_subnormals, value)
    dtype = np.dtype(NUMPY[target])
    result = call_of(e, ieee.float_to_integer, value, dtype=dtype, rounding=mode)
    e.assign(i.operands[0], target, result)


def _may_lack_mode(target: str, source: str) -> bool:
    """Return whether a mode is optional: the target holds every value, or both are 16-bit types."""
    to, of = FORMATS[target], FORMATS[source]
    if to.width == of.width:
        return True
    return to.precision >= of.precision and to.min_exponent <= of.min_exponent


def float_conversion(e: Emitter, i: Instruction, target: str, source: str, value: str) -> str:
    """The expression of a value converted from one float type to another.

    Raises:
        UnsupportedInstruction: there is no rounding mode, and one is needed, or a wrong one.
    """
    integral = rounding_of(i, INTEGRAL_ROUNDINGS)
    flags = {word: True for word in _FLAGS if word in i.modifiers}
    if integral is not None:
        if target != source or "relu" in flags or "satfinite" in flags:
            raise e.reject("rounding to an integral value keeps the type")
        kind = FORMATS[source]
        return call_of(e, ieee.round_to_integral, value, source=kind, rounding=integral, **flags)
    mode = rounding_of(i)
    if mode is None and not _may_lack_mode(target, source):
        raise e.reject("it needs a rounding mode")
    if (target, source) == ("f64", "f32") and not flags:
        return f"({value}).astype({e.dtype('f64')})"
    return call_of(
        e,
        ieee.convert_float,
        value,
        source=FORMATS[source],
        target=FORMATS[target],
        rounding=Rounding.RN if mode is None else mode,
        **flags,
    )


def _among_floats(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], held(source))
    e.assign(i.operands[0], held(target), float_conversion(e, i, target, source, value))


_operation(
    "cvt",
    [f"{to}.{of}" for to in _INTEGERS for of in _INTEGERS],
    2,
    _among_integers,
    modifiers=("sat",),
)
for _float in FORMATS:
    _ftz = ("ftz",) if _float == "f32" else ()
    _operation(
        "cvt",
        [f"{_float}.{of}" for of in _INTEGERS],
        2,
        _from_integer,
        modifiers=(*ROUNDINGS, *_ftz, "sat"),
    )
    _operation(
        "cvt",
        [f"{to}.{_float}" for to in _INTEGERS],
        2,
        _to_integer,
        modifiers=(*INTEGRAL_ROUNDINGS, *_ftz, "sat"),
    )
    for _source in FORMATS:
        _flags = ("sat", "relu", "satfinite") if _float in HALVES else ("sat",)
        if "f32" in (_float, _source):
            _flags = (*_flags, "ftz")
        _operation(
            "cvt",
            (f"{_float}.{_source}",),
            2,
            _among_floats,
            modifiers=(*ROUNDINGS, *INTEGRAL_ROUNDINGS, *_flags),
        )


_HALVES = ("f16x2", "bf16x2")
_NARROW: dict[str, Format] = {
    "e4m3x2": ieee.E4M3, "e5m2x2": ieee.E5M2, "e2m3x2": ieee.E2M3, "e3m2x2": ieee.E3M2,
    "e2m1x2": ieee.E2M1,
}  # fmt: skip
_TF32_ROUNDINGS = {"rn": Rounding.RN, "rz": Rounding.RZ, "rna": Rounding.RNA}


def _pack_halves(e: Emitter, i: Instruction) -> None:
    """`cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half."""
    half = type_suffix(i).split(".")[0].removesuffix("x2")
    high, low = (
        float_conversion(e, i, half, "f32", e.value(operand, "f32")) for operand in i.operands[1:]
    )
    e.assign(i.operands[0], "b32", f"{e.helper(ieee.pack)}({high}, {low})")


def _narrow_name(i: Instruction) -> str:
    return next(word for word in i.modifiers if word in _NARROW)


def _to_narrow(e: Emitter, i: Instruction) -> None:
    """Two f32, or the halves of a word, to a pair; the first operand, or upper half, above."""
    name = _narrow_name(i)
    source = type_suffix(i).split(".")[-1]
    options = {"target": _NARROW[name], "rounding": rounding_of(i), "relu": "relu" in i.modifiers}
    if source == "f32":
        if len(i.operands) != 3:
            raise e.reject("it takes two values")
        values = [e.value(operand, "f32") for operand in i.operands[1:]]
        result = call_of(e, ieee.narrow_pair, *values, **options)
    else:
        if len(i.operands) != 2:
            raise e.reject("it takes one packed value")
        kind = FORMATS[source.removesuffix("x2")]
        word = e.value(i.operands[1], "b32")
        result = call_of(e, ieee.narrow_pair_of_halves, word, source=kind, **options)
    e.assign(i.operands[0], "b8" if name == "e2m1x2" else "b16", result)


def bf16_of_f16(words: Value) -> Value:
    """Both halves of words converted from f16 to bf16: exact for what a narrow float holds."""
    halves = np.atleast_1d(words).view(np.uint16)
    words_of_bf16 = ieee.convert_float(halves, source=ieee.F16, target=ieee.BF16).view(np.uint32)
    return words_of_bf16 if words.ndim else words_of_bf16[0]


def _from_narrow(e: Emitter, i: Instruction) -> None:
    """A pair of narrow floats to a word of halves."""
    name = _narrow_name(i)
    bits = e.value(i.operands[1], "b8" if name == "e2m1x2" else "b16")
    options = {"source": _NARROW[name], "relu": "relu" in i.modifiers}
    result = call_of(e, ieee.halves_of_narrow_pair, bits, **options)
    if "bf16x2" in i.modifiers:
        result = f"{e.helper(bf16_of_f16)}({result})"
    e.assign(i.operands[0], "b32", result)


def to_scales(high: Value, low: Value, rounding: Rounding, satfinite: bool) -> Value:
    """Two float32 to a pair of ue8m0 bytes."""
    upper, lower = (
        ieee.to_ue8m0(x, rounding=rounding, satfinite=satfinite).astype(np.uint16)
        for x in (high, low)
    )
    return upper << np.uint16(8) | lower


def _to_scales(e: Emitter, i: Instruction) -> None:
    rounding = rounding_of(i)
    if i.modifiers[-1] == "f32":
        if len(i.operands) != 3:
            raise e.reject("it takes two values")
        high, low = (e.value(operand, "f32") for operand in i.operands[1:])
    else:
        if len(i.operands) != 2:
            raise e.reject("it takes one packed value")
        # A bf16 is the upper half of a float32.
        word = e.value(i.operands[1], "b32")
        f32 = e.dtype("f32")
        high = f"({word} & {e.constant(0xFFFF0000, 'u32')}).view({f32})"
        low = f"({word} << {e.constant(16, 'u32')}).view({f32})"
    mode = e.scope.bind(rounding)
    call = f"{e.helper(to_scales)}({high}, {low}, {mode}, {'satfinite' in i.modifiers})"
    e.assign(i.operands[0], "b16", call)


def _from_scales(e: Emitter, i: Instruction) -> None:
    bits = e.value(i.operands[1], "b16")
    e.assign(i.operands[0], "b32", f"{e.helper(ieee.from_ue8m0_pair)}({bits})")


def _to_tf32(e: Emitter, i: Instruction) -> None:
    mode = rounding_of(i, _TF32_ROUNDINGS)
    if mode is None:
        raise e.reject("it needs .rn, .rz or .rna")
    flags = {word: True for word in ("relu", "satfinite") if word in i.modifiers}
    value = e.value(i.operands[1], "f32")
    e.assign(i.operands[0], "b32", call_of(e, ieee.to_tf32, value, rounding=mode, **flags))


def pack_integers(high: Value, low: Value, word: Value, bits: int, signed: bool) -> Value:
    """Clamp two int32 to `bits` bits each and put them below the bits of `word`, which move up."""
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    mask = np.uint32((1 << bits) - 1)
    upper, lower = (
        np.clip(x, np.int32(least), np.int32(most)).view(np.uint32) & mask for x in (high, low)
    )
    pair = upper << np.uint32(bits) | lower
    return pair if bits == 16 else word << np.uint32(2 * bits) | pair


def _pack_integers(e: Emitter, i: Instruction) -> None:
    target = i.modifiers[2]
    bits = int(target[1:])
    if len(i.operands) != (3 if bits == 16 else 4):
        raise e.reject("a result of 16 bits takes two values, a smaller one also the bits above")
    high, low = (e.value(operand, "s32") for operand in i.operands[1:3])
    upper = e.constant(0, "u32") if bits == 16 else e.value(i.operands[3], "b32")
    call = f"{e.helper(pack_integers)}({high}, {low}, {upper}, {bits}, {target[0] == 's'})"
    e.assign(i.operands[0], "b32", call)


for _half in _HALVES:
    _operation(
        "cvt",
        (f"{_half}.f32",),
        3,
        _pack_halves,
        modifiers=("rn", "rz", "relu", "satfinite", "ftz"),
    )
for _name in _NARROW:
    # A format whose name is no type of the parser's stands among the modifiers.
    if _name == "e2m1x2" or _name[:2] in ("e2", "e3"):
        for _source in ("f32", *_HALVES):
            for _words in ("rn.satfinite", "rn.satfinite.relu", "rz.satfinite"):
                _operation(f"cvt.{_words}.{_name}", (_source,), (2, 3), _to_narrow)
        for _words in ("rn", "rn.relu"):
            _operation(f"cvt.{_words}.{_name}", _HALVES, 2, _from_narrow)
    else:
        _operation(
            "cvt.rn.satfinite",
            [f"{_name}.{source}" for source in ("f32", *_HALVES)],
            (2, 3),
            _to_narrow,
            modifiers=("relu",),
        )
        _operation(
            "cvt.rn", [f"{half}.{_name}" for half in _HALVES], 2, _from_narrow, modifiers=("relu",)
        )
for _mode in ("rz", "rp"):
    for _words in (_mode, f"{_mode}.satfinite"):
        _operation(f"cvt.{_words}.ue8m0x2", ("f32", "bf16x2"), (2, 3), _to_scales)
_operation("cvt.rn.ue8m0x2", ("bf16x2",), 2, _from_scales)
_operation("cvt", ("tf32.f32",), 2, _to_tf32, modifiers=(*_TF32_ROUNDINGS, "relu", "satfinite"))
_operation("cvt.pack.sat", ("u16.s32", "s16.s32"), 3, _pack_integers)
_operation("cvt.pack.sat", ("u8.s32.b32", "s8.s32.b32"), 4, _pack_integers)
for _name in ("u2", "s2", "u4", "s4"):
    _operation(f"cvt.pack.sat.{_name}", ("s32.b32",), 4, _pack_integers)


_HALF_PAIRS = {"f16x2": ieee.F16, "bf16x2": ieee.BF16}
_FOURS: dict[str, Format] = {
    "e4m3x4": ieee.E4M3, "e5m2x4": ieee.E5M2, "e2m3x4": ieee.E2M3, "e3m2x4": ieee.E3M2,
    "e2m1x4": ieee.E2M1,
}  # fmt: skip
_SHARED = (16, 16, 0, 0)
_BYTES = (24, 8, 16, 0)
"""From which bit on a word has the random bits of each of four values."""


def round_together(
    target: Format, relu: bool, satfinite: bool, random: Value, *values: Value
) -> Value:
    """Two or four values side by side, the first one in the highest bits."""
    shifts = (16, 0) if len(values) == 2 else _BYTES if target.width == 4 else _SHARED
    step = 16 if len(values) == 2 else 4 if target.width == 4 else 8
    call = lanewise(ieee.round_stochastically, target=target, relu=relu, satfinite=satfinite)
    packed: Value = np.uint32(0)
    for value, shift in zip(values, shifts, strict=True):
        rounded = call(value, random >> np.uint32(shift))
        packed = packed << np.uint32(step) | rounded.astype(np.uint32)
    return packed


def _stochastic(e: Emitter, i: Instruction) -> None:
    name = next((word for word in i.modifiers if word in _FOURS), type_suffix(i).split(".")[0])
    target = _HALF_PAIRS.get(name) or _FOURS[name]
    operands = i.operands[1].items if isinstance(i.operands[1], Vector) else i.operands[1:-1]
    if len(operands) != (2 if name in _HALF_PAIRS else 4):
        raise e.reject("it rounds two values to halves, and a vector of four to narrow floats")
    values = [e.value(operand, "f32") for operand in operands]
    random = e.temporary(e.value(i.operands[-1], "b32"))
    flags = f"{'relu' in i.modifiers}, {'satfinite' in i.modifiers}"
    call = f"{e.helper(round_together)}({e.scope.bind(target)}, {flags}, {random}"
    call = f"{call}, {', '.join(values)})"
    if name == "e2m1x4":
        e.assign(i.operands[0], "b16", f"({call}).astype({e.dtype('u16')})")
    else:
        e.assign(i.operands[0], "b32", call)


_operation(
    "cvt.rs",
    [f"{name}.f32" for name in _HALF_PAIRS],
    4,
    _stochastic,
    modifiers=("relu", "satfinite"),
)
for _name in _FOURS:
    _operation(f"cvt.rs.satfinite.{_name}", ("f32",), 3, _stochastic, modifiers=("relu",))
