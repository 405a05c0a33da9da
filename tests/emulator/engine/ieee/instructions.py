"""What each PTX instruction of the recorded GPU results is, in terms of `ptx.emulate.ieee`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.ieee import BF16, E4M3, E5M2, F16, F32, F64, Rounding
from tests.emulator.engine.ieee.samples import Values

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
SMALL = {"e4m3x2": E4M3, "e5m2x2": E5M2}
DTYPES = {"f16": "u2", "bf16": "u2", "f32": "f4", "f64": "f8"}
MODES = {
    **{name: Rounding[name.upper()] for name in ("rn", "rz", "rm", "rp", "rna")},
    **{f"{name}i": Rounding[name.upper()] for name in ("rn", "rz", "rm", "rp")},
}


def run(instruction: str, operands: list[Values]) -> Values:
    """Give the result's bits of an instruction such as `add.rn.ftz.f32`, on operands' bits."""
    opcode, *modifiers, kind = instruction.split(".")
    mode = next((MODES[m] for m in modifiers if m in MODES), Rounding.RN)
    if opcode == "cvt":
        return convert(modifiers[:-1], modifiers[-1], kind, mode, operands)
    flags = {m: True for m in modifiers if m in ("ftz", "sat", "relu", "oob")}
    if kind.removesuffix("x2") in ("f16", "bf16"):
        return half(opcode, modifiers, kind, flags, operands)
    values = [x.view(DTYPES[kind]) for x in operands]
    return single(opcode, modifiers, mode, flags, values)


def single(
    opcode: str, modifiers: list[str], mode: Rounding, flags: dict[str, bool], x: list[Values]
) -> Values:
    ftz = {"ftz": True} if "ftz" in flags else {}
    if opcode in ("min", "max", "neg", "abs") and ftz:
        x = [ieee.flush_subnormals(v) for v in x]
    match opcode:
        case "min" | "max":
            extreme = ieee.minimum if opcode == "min" else ieee.maximum
            return extreme(*x, nan="NaN" in modifiers, xorsign="xorsign" in modifiers)
        case "neg" | "abs":
            return (ieee.neg if opcode == "neg" else ieee.absolute)(*x)
        case "copysign":
            return ieee.copysign(*x)
        case "testp":
            which: Any = modifiers[0]
            return ieee.testp(*x, which=which)
    if "full" in modifiers:
        return ieee.div_full(*x, **ftz)
    if "approx" in modifiers:
        if x[0].dtype == np.float64:
            return ieee.rcp_approx_f64(*x) if opcode == "rcp" else ieee.rsqrt_approx_f64(*x, **ftz)
        return getattr(ieee, f"{opcode}_approx")(*x, **ftz)
    result = getattr(ieee, opcode)(*x, rounding=mode, **ftz)
    return ieee.saturate(result) if "sat" in flags else result


def half(
    opcode: str, modifiers: list[str], kind: str, flags: dict[str, bool], x: list[Values]
) -> Values:
    options: dict[str, Any] = {**flags, "kind": FORMATS[kind.removesuffix("x2")]}
    name = {"min": "minimum", "max": "maximum"}.get(opcode, opcode)
    if opcode in ("min", "max"):
        options |= {"nan": "NaN" in modifiers, "xorsign": "xorsign" in modifiers}
    operation = getattr(ieee, f"half_{name}_approx" if "approx" in modifiers else f"half_{name}")
    if kind.endswith("x2"):
        return ieee.packed(operation, *x, **options)
    return operation(*x, **options)


def convert(
    modifiers: list[str], target: str, source: str, mode: Rounding, operands: list[Values]
) -> Values:
    flags = {m: True for m in modifiers if m in ("ftz", "sat", "relu", "satfinite")}
    relu: dict[str, Any] = {"relu": True} if "relu" in flags else {}
    if target in SMALL:
        if source == "f16x2":
            return ieee.narrow_pair_of_halves(operands[0], source=F16, target=SMALL[target], **relu)
        high, low = (x.view("f4") for x in operands)
        return ieee.narrow_pair(high, low, target=SMALL[target], **relu)
    if source in SMALL:
        return ieee.halves_of_narrow_pair(operands[0], source=SMALL[source], **relu)
    if target == "tf32":
        return ieee.to_tf32(operands[0].view("f4"), rounding=mode, **flags)
    if target.endswith("x2"):
        half_type = target.removesuffix("x2")
        high, low = (convert(modifiers, half_type, source, mode, [x]) for x in operands)
        return ieee.pack(high, low)
    if target in FORMATS and source in FORMATS:
        x = operands[0].view(DTYPES[source])
        if any(m in ("rni", "rzi", "rmi", "rpi") for m in modifiers):
            return ieee.round_to_integral(x, source=FORMATS[source], rounding=mode, **flags)
        return ieee.convert_float(
            x, source=FORMATS[source], target=FORMATS[target], rounding=mode, **flags
        )
    if source in FORMATS:
        return to_integer(target, source, mode, "ftz" in flags, operands[0])
    return from_integer(target, source, mode, "sat" in flags, operands[0])


def to_integer(target: str, source: str, mode: Rounding, ftz: bool, operand: Values) -> Values:
    x = operand.view(DTYPES[source])
    if source in ("f16", "bf16"):
        x = ieee.convert_float(x, source=FORMATS[source], target=F32)
    if ftz:
        x = ieee.flush_subnormals(x)
    result = ieee.float_to_integer(x, dtype=integer(target), rounding=mode)
    # Eight bits come back extended to the 16-bit register.
    return result.astype("i2" if target[0] == "s" else "u2") if target[1:] == "8" else result


def from_integer(target: str, source: str, mode: Rounding, sat: bool, operand: Values) -> Values:
    x = operand.astype(integer(source))
    if target in ("f16", "bf16"):
        bits = ieee.integer_to_bits(x, target=FORMATS[target], rounding=mode)
        same: Callable[..., Values] = ieee.convert_float
        return same(bits, source=F16, target=F16, sat=True) if sat else bits
    result = ieee.integer_to_float(x, dtype=np.dtype(DTYPES[target]), rounding=mode)
    return ieee.saturate(result) if sat else result


def integer(name: str) -> np.dtype[np.integer[Any]]:
    return np.dtype(("int" if name[0] == "s" else "uint") + name[1:])
