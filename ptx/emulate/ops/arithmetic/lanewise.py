"""How generated code calls the exact arithmetic of `ptx.emulate.ieee`.

A launch has set `np.errstate` already, and the functions' own setting costs microseconds. So the
functions inside of the `elementwise` wrapper are called, with uniform values as arrays of one lane.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from ptx.emulate.codegen.analysis.float_registers import is_subnormal
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.ieee import Rounding, flush_subnormals
from ptx.emulate.model.geometry import Value
from ptx.isa.model import FloatImmediate, Instruction, Operand, Register

ROUNDINGS: dict[str, Rounding] = {name: Rounding[name.upper()] for name in ("rn", "rz", "rm", "rp")}
INTEGRAL_ROUNDINGS: dict[str, Rounding] = {f"{name}i": mode for name, mode in ROUNDINGS.items()}


def rounding_of(i: Instruction, modes: dict[str, Rounding] = ROUNDINGS) -> Rounding | None:
    """The rounding mode among the modifiers, None if there is none."""
    return next((modes[word] for word in i.modifiers if word in modes), None)


@lru_cache(maxsize=1024)  # one entry an instruction variant: a function and its options
def lanewise(function: Callable[..., Value], **options: Hashable) -> Callable[..., Value]:
    """A function of arrays, with fixed options, that takes scalars and gives one for them."""
    kernel = inspect.unwrap(function)

    def call(*operands: Value) -> Value:
        for each in operands:
            if each.ndim:
                arrays = [x if x.ndim else x.reshape(1) for x in operands]
                return kernel(*arrays, **options)
        return kernel(*[x.reshape(1) for x in operands], **options)[0]

    call.__name__ = function.__name__
    return call


@lru_cache(maxsize=1024)  # as above
def lanewise_packed(
    function: Callable[..., Value], part: str, word: str, **options: Hashable
) -> Callable[..., Value]:
    """A function of lanes of NumPy type `part`, applied to unsigned words of several of them."""
    kernel = inspect.unwrap(function)

    def call(*operands: Value) -> Value:
        n = max(x.size for x in operands)
        uniform = all(x.ndim == 0 for x in operands)
        lanes = [np.ascontiguousarray(x if x.ndim else np.full(n, x)).view(part) for x in operands]
        result = kernel(*lanes, **options).view(word)
        return result[0] if uniform else result

    call.__name__ = function.__name__
    return call


def call_of(e: Emitter, function: Callable[..., Value], *operands: str, **options: Hashable) -> str:
    """The expression of a call of a function, lane by lane."""
    return f"{e.helper(lanewise(function, **options))}({', '.join(operands)})"


def flushed(e: Emitter, operand: Operand) -> str:
    """The value of a float32 operand with subnormal numbers flushed, at no cost if it has none."""
    value = e.value(operand, "f32")
    if isinstance(operand, Register) and operand.name in e.scope.without_subnormals:
        return value
    if (
        isinstance(operand, FloatImmediate)
        and operand.width == 32
        and not is_subnormal(operand.bits)
    ):
        return value
    return e.temporary(call_of(e, flush_subnormals, value))


def flushed_values(e: Emitter, operands: Sequence[Operand], kind: str, ftz: bool) -> list[str]:
    """The values of operands, flushed if asked for; equal operands are flushed once."""
    if not ftz:
        return [e.value(operand, kind) for operand in operands]
    known: dict[Operand, str] = {}
    for operand in operands:
        if operand not in known:
            known[operand] = flushed(e, operand)
    return [known[operand] for operand in operands]
