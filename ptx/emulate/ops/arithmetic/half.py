"""Arithmetic on f16 and bf16, single and packed. PTX ISA, "Half Precision Floating Point"."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.lanewise import lanewise, lanewise_packed
from ptx.isa.model import Instruction

_SECTION = "Half Precision Floating Point Instructions"
_FORMATS = {"f16": ieee.F16, "bf16": ieee.BF16}
_F16 = ("f16", "f16x2")
_BF16 = ("bf16", "bf16x2")
_OPTIONS = {"ftz": "ftz", "sat": "sat", "relu": "relu", "oob": "oob", "NaN": "nan"}


def _call(function: Callable[..., Value]) -> EmitFunction:
    """An operation that one function of halves' bits does."""

    def emit(e: Emitter, i: Instruction) -> None:
        half = type_suffix(i)
        options: dict[str, Hashable] = {"kind": _FORMATS[half.removesuffix("x2")]}
        for word, option in _OPTIONS.items():
            if word in i.modifiers:
                options[option] = True
        if "xorsign" in i.modifiers:
            if "abs" not in i.modifiers or len(i.operands) == 4:
                raise e.refuse(".xorsign goes with .abs and two operands")
            options["xorsign"] = True
        elif "abs" in i.modifiers:
            raise e.refuse(".abs alone is not executed on halves")
        packed = half.endswith("x2")
        call = (
            lanewise_packed(function, "uint16", "uint32", **options)
            if packed
            else lanewise(function, **options)
        )
        held = "b32" if packed else "b16"
        values = ", ".join(e.value(operand, held) for operand in i.operands[1:])
        e.assign(i.operands[0], held, f"{e.helper(call)}({values})")

    return emit


_function: Callable[..., Value]
for _name, _function in (
    ("add", ieee.half_add), ("sub", ieee.half_sub), ("mul", ieee.half_mul),
):  # fmt: skip
    operation(_name, _F16, 3, _call(_function), modifiers=("rn", "ftz", "sat"), section=_SECTION)
    operation(_name, _BF16, 3, _call(_function), modifiers=("rn",), section=_SECTION)
_fused = _call(ieee.half_fma)
operation("fma.rn", _F16, 4, _fused, modifiers=("ftz", "sat", "relu", "oob"), section=_SECTION)
operation("fma.rn", _BF16, 4, _fused, modifiers=("relu", "oob"), section=_SECTION)
for _name, _function in (("neg", ieee.half_neg), ("abs", ieee.half_abs)):
    operation(_name, _F16, 2, _call(_function), modifiers=("ftz",), section=_SECTION)
    operation(_name, _BF16, 2, _call(_function), section=_SECTION)
for _name, _function in (("min", ieee.half_minimum), ("max", ieee.half_maximum)):
    operation(
        _name, _F16, (3, 4), _call(_function), modifiers=("ftz", "NaN", "xorsign", "abs"),
        section=_SECTION,
    )  # fmt: skip
    operation(
        _name, _BF16, (3, 4), _call(_function), modifiers=("NaN", "xorsign", "abs"),
        section=_SECTION,
    )  # fmt: skip
operation("ex2.approx", _F16, 2, _call(ieee.half_ex2_approx), section=_SECTION)
operation("ex2.approx.ftz", _BF16, 2, _call(ieee.half_ex2_approx), section=_SECTION)
operation("tanh.approx", (*_F16, *_BF16), 2, _call(ieee.half_tanh_approx), section=_SECTION)
