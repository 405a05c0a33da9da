"""Arrays and their lanes: functions for both arrays and scalars, and the NaNs of results.

The names of arrays are all `Any` to a type checker. NumPy's own stubs type the result of a mixed or
in-place ufunc expression differently from version to version (1.26 to 2.x are supported), often as
`Any`, sometimes wrongly. So these names document the dtypes, and the tests check them.

Only this file defines which NaN an operation returns. PTX ISA, "Floating Point Instructions":
operations on `.f32`, `.f16` and `.bf16` give a canonical NaN; "NaN payloads are supported" for
`.f64`, without a word on which operand's survives. The values here were measured on a GPU of
compute capability 9.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import NDArray

Float: TypeAlias = Any
"""A float32 or float64 array or NumPy scalar; all operands of one call share the dtype."""
Integer: TypeAlias = Any
"""An integer array or NumPy scalar."""
Bits: TypeAlias = Any
"""An unsigned integer array or NumPy scalar that holds a format's bits."""

Array: TypeAlias = Any
"""An array whose dtype the function's docstring names."""
Doubles: TypeAlias = Any
"""A float64 array."""
Singles: TypeAlias = Any
"""A float32 array."""
U64: TypeAlias = Any
"""A uint64 array."""
I64: TypeAlias = Any
"""An int64 array."""
Mask: TypeAlias = Any
"""A bool array."""


P = ParamSpec("P")
Indices: TypeAlias = NDArray[np.intp]

# NumPy's stubs, which differ from version to version, have no plain call of these methods.
_greatest: Callable[..., Any] = np.maximum.reduce
_least: Callable[..., Any] = np.minimum.reduce


def elementwise(kernel: Callable[P, Any]) -> Callable[P, Any]:
    """Make a function of arrays take NumPy scalars as well, without floating-point warnings.

    The positional arguments are the operands. The kernel sees no array without a dimension: a
    scalar comes as shape (1,) and broadcasts. If all were scalars, so is the result.
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
    """Return whether any float is a NaN: a maximum with one is one, and is the fastest test."""
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


F32_NAN = 0x7FFF_FFFF
"""The canonical NaN of `.f32`."""
F64_NAN = 0xFFF8_0000_0000_0000
"""The NaN of an invalid operation on `.f64` whose operands are numbers."""
F64_APPROXIMATE_NAN = 0x7FFF_FFFF_0000_0000
"""The NaN of the `.f64` approximations, which compute the upper word only."""
F16_NAN = 0x7FFF
"""The canonical NaN of `.f16`."""
BF16_NAN = 0x7FFF
"""The canonical NaN of `.bf16`."""

_F64_QUIET = np.uint64(1 << 51)


def settle_nans(result: Array, *operands: Array) -> Array:
    """Give a float32 or float64 result's NaN lanes the bits that the hardware gives.

    Changes `result` in place and returns it. float32: the canonical NaN. float64: the first of
    `operands` that is a NaN, made quiet, else `F64_NAN`. Callers list the operands in the order in
    which the hardware prefers them.
    """
    if not has_nan(result):
        return result
    nans = np.isnan(result)
    if result.dtype == np.float32:
        result.view(np.uint32)[nans] = F32_NAN
        return result
    bits = np.full(result.shape, F64_NAN, np.uint64)
    for operand in reversed(operands):
        bits = np.where(np.isnan(operand), operand.view(np.uint64) | _F64_QUIET, bits)
    result.view(np.uint64)[nans] = bits[nans]
    return result


def quiet(x: Array) -> Array:
    """Give float64 values with their signalling NaNs made quiet."""
    nans = np.isnan(x)
    if not nans.any():
        return x
    return np.where(nans, x.view(np.uint64) | _F64_QUIET, x.view(np.uint64)).view(np.float64)
