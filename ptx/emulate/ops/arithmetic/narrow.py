"""Conversions to and from packed halves, floats of 8 bits and less, and tf32. PTX ISA, "cvt"."""

from __future__ import annotations

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.ieee import Format, Rounding
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.convert import FORMATS, float_conversion
from ptx.emulate.ops.arithmetic.lanewise import call_of, rounding_of
from ptx.isa.model import Instruction

_SECTION = "cvt"
_HALVES = ("f16x2", "bf16x2")
_NARROW: dict[str, Format] = {
    "e4m3x2": ieee.E4M3, "e5m2x2": ieee.E5M2, "e2m3x2": ieee.E2M3, "e3m2x2": ieee.E3M2,
    "e2m1x2": ieee.E2M1,
}  # fmt: skip
_TF32_ROUNDINGS = {"rn": Rounding.RN, "rz": Rounding.RZ, "rna": Rounding.RNA}


def pack(high: Value, low: Value) -> Value:
    """Two halves side by side in 32 bits."""
    return high.astype(np.uint32) << np.uint32(16) | low.astype(np.uint32)


def _pack_halves(e: Emitter, i: Instruction) -> None:
    """`cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half."""
    half = type_suffix(i).split(".")[0].removesuffix("x2")
    high, low = (
        float_conversion(e, i, half, "f32", e.value(operand, "f32")) for operand in i.operands[1:]
    )
    e.assign(i.operands[0], "b32", f"{e.helper(pack)}({high}, {low})")


def _narrow_name(i: Instruction) -> str:
    return next(word for word in i.modifiers if word in _NARROW)


def _to_narrow(e: Emitter, i: Instruction) -> None:
    """Two f32, or the halves of a word, to a pair; the first operand, or upper half, above."""
    name = _narrow_name(i)
    source = type_suffix(i).split(".")[-1]
    options = {"target": _NARROW[name], "rounding": rounding_of(i), "relu": "relu" in i.modifiers}
    if source == "f32":
        if len(i.operands) != 3:
            raise e.refuse("it takes two values")
        values = [e.value(operand, "f32") for operand in i.operands[1:]]
        result = call_of(e, ieee.narrow_pair, *values, **options)
    else:
        if len(i.operands) != 2:
            raise e.refuse("it takes one packed value")
        kind = FORMATS[source.removesuffix("x2")]
        word = e.value(i.operands[1], "b32")
        result = call_of(e, ieee.narrow_pair_of_halves, word, source=kind, **options)
    e.assign(i.operands[0], "b8" if name == "e2m1x2" else "b16", result)


def bf16_of_f16(words: Value) -> Value:
    """Both halves of words converted from f16 to bf16: exact for what a narrow float holds."""
    halves = np.atleast_1d(words).view(np.uint16)
    found = ieee.convert_float(halves, source=ieee.F16, target=ieee.BF16).view(np.uint32)
    return found if words.ndim else found[0]


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
            raise e.refuse("it takes two values")
        high, low = (e.value(operand, "f32") for operand in i.operands[1:])
    else:
        if len(i.operands) != 2:
            raise e.refuse("it takes one packed value")
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
        raise e.refuse("it needs .rn, .rz or .rna")
    flags = {word: True for word in ("relu", "satfinite") if word in i.modifiers}
    value = e.value(i.operands[1], "f32")
    e.assign(i.operands[0], "b32", call_of(e, ieee.to_tf32, value, rounding=mode, **flags))


def pack_integers(high: Value, low: Value, rest: Value, bits: int, signed: bool) -> Value:
    """Clamp two int32 to `bits` bits each and put them below the rest, which moves up."""
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    mask = np.uint32((1 << bits) - 1)
    upper, lower = (
        np.clip(x, np.int32(least), np.int32(most)).view(np.uint32) & mask for x in (high, low)
    )
    pair = upper << np.uint32(bits) | lower
    return pair if bits == 16 else rest << np.uint32(2 * bits) | pair


def _pack_integers(e: Emitter, i: Instruction) -> None:
    target = i.modifiers[2]
    bits = int(target[1:])
    if len(i.operands) != (3 if bits == 16 else 4):
        raise e.refuse("a result of 16 bits takes two values, a smaller one also the bits above")
    high, low = (e.value(operand, "s32") for operand in i.operands[1:3])
    rest = e.constant(0, "u32") if bits == 16 else e.value(i.operands[3], "b32")
    call = f"{e.helper(pack_integers)}({high}, {low}, {rest}, {bits}, {target[0] == 's'})"
    e.assign(i.operands[0], "b32", call)


for _half in _HALVES:
    operation(
        "cvt", (f"{_half}.f32",), 3, _pack_halves,
        modifiers=("rn", "rz", "relu", "satfinite", "ftz"), section=_SECTION,
    )  # fmt: skip
for _name in _NARROW:
    # A format whose name is no type of the parser's stands among the modifiers.
    if _name == "e2m1x2" or _name[:2] in ("e2", "e3"):
        for _source in ("f32", *_HALVES):
            for _flags in ("rn.satfinite", "rn.satfinite.relu", "rz.satfinite"):
                operation(f"cvt.{_flags}.{_name}", (_source,), (2, 3), _to_narrow, section=_SECTION)
        for _flags in ("rn", "rn.relu"):
            operation(f"cvt.{_flags}.{_name}", _HALVES, 2, _from_narrow, section=_SECTION)
    else:
        operation(
            "cvt.rn.satfinite", [f"{_name}.{source}" for source in ("f32", *_HALVES)], (2, 3),
            _to_narrow, modifiers=("relu",), section=_SECTION,
        )  # fmt: skip
        operation(
            "cvt.rn", [f"{half}.{_name}" for half in _HALVES], 2, _from_narrow,
            modifiers=("relu",), section=_SECTION,
        )  # fmt: skip
for _mode in ("rz", "rp"):
    for _flags in (_mode, f"{_mode}.satfinite"):
        operation(f"cvt.{_flags}.ue8m0x2", ("f32", "bf16x2"), (2, 3), _to_scales, section=_SECTION)
operation("cvt.rn.ue8m0x2", ("bf16x2",), 2, _from_scales, section=_SECTION)
operation(
    "cvt", ("tf32.f32",), 2, _to_tf32, modifiers=(*_TF32_ROUNDINGS, "relu", "satfinite"),
    section=_SECTION,
)  # fmt: skip
operation("cvt.pack.sat", ("u16.s32", "s16.s32"), 3, _pack_integers, section=_SECTION)
operation("cvt.pack.sat", ("u8.s32.b32", "s8.s32.b32"), 4, _pack_integers, section=_SECTION)
for _name in ("u2", "s2", "u4", "s4"):
    operation(f"cvt.pack.sat.{_name}", ("s32.b32",), 4, _pack_integers, section=_SECTION)
