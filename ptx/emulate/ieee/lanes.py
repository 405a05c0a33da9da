"""How one function serves arrays and scalars alike, and how its risky lanes are picked out."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.ieee.array_types import Array, Mask

P = ParamSpec("P")
Indices: TypeAlias = NDArray[np.intp]

# NumPy's stubs, which differ from version to version, know no plain call of these methods.
_greatest: Callable[..., Any] = np.maximum.reduce
_least: Callable[..., Any] = np.minimum.reduce


def elementwise(kernel: Callable[P, Any]) -> Callable[P, Any]:
    """Make a function of arrays take NumPy scalars as well, without floating-point warnings.

    The positional arguments are the operands. The kernel sees no array without a dimension: a
    scalar comes as shape (1,) and broadcasts. If all were scalars, so is what is returned.
    `Any` is the array or scalar that comes back.
    """

    @wraps(kernel)
    def call(*operands: P.args, **options: P.kwargs) -> Any:
        scalar = True
        arrays: list[Any] = []
        for operand in operands:
            array = np.asarray(operand)
            if array.ndim:
                scalar = False
            else:
                array = array.reshape(1)
            arrays.append(array)
        # A fresh errstate a call: one shared as a decorator is not thread-safe before NumPy 2.
        with np.errstate(all="ignore"):
            result: Any = kernel(*arrays, **options)
        if not scalar:
            return result
        if isinstance(result, tuple):
            return tuple(part[0] for part in result)
        return result[0]

    return call


def pick(operand: Array, shape: tuple[int, ...], indices: Indices) -> Array:
    """Give the operand's values at flat indices of the result's shape; uniform ones repeat."""
    if operand.shape == shape:
        return operand.reshape(-1)[indices]
    return np.broadcast_to(operand, shape).reshape(-1)[indices]


def indices_of(risky: Mask) -> Indices:
    """List the flat indices of the true lanes."""
    return np.flatnonzero(risky)


def put(result: Array, indices: Indices, values: Array) -> None:
    """Store values at flat indices of a result that this call made itself."""
    result.reshape(-1)[indices] = values


def has_nan(x: Array) -> bool:
    """Tell whether any float is a NaN: a maximum with one is one, and is the fastest test."""
    if not x.size:
        return False
    most = _greatest(x if x.ndim == 1 else x.reshape(-1))
    return bool(most != most)


def least(x: Array) -> Any:
    """Give the least of values, NaN if there is one, infinity if there are none.

    `np.fmin` would not count NaNs, but forgets what it saw before a signalling one. `Any` is a
    scalar of x's dtype or a Python float.
    """
    flat = x if x.ndim == 1 else x.reshape(-1)
    return _least(flat) if x.size else np.inf
