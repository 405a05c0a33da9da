"""How generated code calls the exact arithmetic of `ptx.emulate.ieee`.

A launch has set `np.errstate` already, and the functions' own setting costs microseconds. So the
functions inside of the `elementwise` wrapper are called, with uniform values as arrays of one lane.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from functools import lru_cache

import numpy as np

from ptx.emulate.emitter import Emitter
from ptx.emulate.geometry import Value
from ptx.emulate.ieee import Rounding
from ptx.isa.model import Instruction

ROUNDINGS: dict[str, Rounding] = {name: Rounding[name.upper()] for name in ("rn", "rz", "rm", "rp")}
INTEGRAL_ROUNDINGS: dict[str, Rounding] = {f"{name}i": mode for name, mode in ROUNDINGS.items()}


def rounding_of(i: Instruction, modes: dict[str, Rounding] = ROUNDINGS) -> Rounding | None:
    """The rounding mode among the modifiers, None if there is none."""
    return next((modes[word] for word in i.modifiers if word in modes), None)


@lru_cache(maxsize=1024)  # one entry an instruction variant: a function and its options
def lifted(function: Callable[..., Value], **options: Hashable) -> Callable[..., Value]:
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
def lifted_packed(
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
    """The expression of a call of a lifted function."""
    return f"{e.helper(lifted(function, **options))}({', '.join(operands)})"
