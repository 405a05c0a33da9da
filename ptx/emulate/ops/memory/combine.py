"""How one atomic operation combines what is in memory with a value: one `Rule` an operation.

PTX ISA, "atom", "red". Additions are rounded in their own width at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.access.memory_access import Elements
from ptx.emulate.ieee.formats import BF16, F16, Format
from ptx.emulate.model.geometry import Value

Step = Callable[[Elements, Value, Value], Elements]
_FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16}
_SAFE = 2.0**-102  # sums of multiples of its last place are zero or normal


@dataclass(frozen=True, slots=True)
class Rule:
    """One operation on one type.

    Attributes:
        name: as in PTX.
        step: what becomes of elements that differ from each other, given one value for each (and
            `cas`'s second value).
        ufunc: NumPy's operation where it is the same, for an addition of floats only while
            `is_plain` says so.
        wraps: an integer addition, whose partial sums can be had from any other sum.
        floating: an addition of f32 or f64; flushes: one that makes subnormals zero.
    """

    name: str
    step: Step
    ufunc: np.ufunc | None = None
    wraps: bool = False
    floating: bool = False
    flushes: bool = False

    def is_plain(self, elements: Elements, value: Value) -> bool:
        """Whether NumPy's addition gives the right bits: no NaN, and nothing to flush."""
        if not self.floating:
            return True
        for array in (elements, np.asarray(value)):
            magnitude = np.abs(array)
            if not np.isfinite(magnitude.max(initial=0)):
                return False
            if self.flushes and ((magnitude < _SAFE) & (magnitude != 0)).any():
                return False
        return True


def _increment(old: Elements, bound: Value, _: Value) -> Elements:
    """`inc`: back to zero from the bound on."""
    return np.where(old >= bound, np.uint32(0), old + np.uint32(1))


def _decrement(old: Elements, bound: Value, _: Value) -> Elements:
    """`dec`: from zero, or from above the bound, to the bound."""
    return np.where((old == 0) | (old > bound), bound, old - np.uint32(1))


def _exchange(old: Elements, value: Value, _: Value) -> Elements:
    return np.broadcast_to(value, old.shape)


def same_bits(a: Value, b: Value) -> Value:
    """Whether values are equal bit for bit; 16-byte values are compared by halves."""
    if a.dtype != np.complex128:
        return a == b
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint64) for x in (a, b))
    if len(left) != len(right):
        left, right = (np.resize(x, max(len(left), len(right))) for x in (left, right))
    same: Value = (left[0::2] == right[0::2]) & (left[1::2] == right[1::2])
    return same


def _compare_and_swap(old: Elements, wanted: Value, value: Value) -> Elements:
    return np.where(same_bits(old, wanted), value, old)


def _ufunc_step(ufunc: np.ufunc) -> Step:
    def step(old: Elements, value: Value, _: Value) -> Elements:
        found: Elements = ufunc(old, value)
        return found

    return step


def _float_add(flushes: bool, old: Elements, value: Value, _: Value) -> Elements:
    found: Elements = ieee.add(old, np.broadcast_to(value, old.shape), ftz=flushes)
    return found


def _wide_add_in_global(old: Elements, value: Value, unused: Value) -> Elements:
    """A signalling NaN stays one, as a GPU of compute capability 9.0 showed."""
    found = _float_add(False, old, value, unused)
    for operand in (old, np.broadcast_to(value, old.shape)):
        found = np.where(np.isnan(operand), operand, found)
    return found


_HALF_STEPS: dict[str, Callable[..., Value]] = {
    "add": ieee.half_add, "min": ieee.half_minimum, "max": ieee.half_maximum,
}  # fmt: skip


def _half(name: str, kind: Format, old: Elements, value: Value, _: Value) -> Elements:
    function = _HALF_STEPS[name]
    spread = np.broadcast_to(value, old.shape)
    if old.dtype == np.uint32:
        return np.asarray(ieee.packed(function, old, spread, kind=kind))
    return np.asarray(function(old, spread, kind=kind))


_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_STEPS: dict[str, Step] = {
    "inc": _increment, "dec": _decrement, "exch": _exchange, "cas": _compare_and_swap,
}  # fmt: skip


@lru_cache(maxsize=128)  # one entry an operation, type and memory
def rule(name: str, ptx_type: str, in_shared: bool) -> Rule:
    """The rule of an operation on a type.

    `in_shared`: f32 sums in shared memory keep subnormals, those in global memory flush them (PTX
    ISA, "atom": `.f32` addition).
    """
    half = ptx_type.removesuffix("x2")
    if half in _FORMATS:
        return Rule(name, partial(_half, name, _FORMATS[half]))
    if name in _STEPS:
        return Rule(name, _STEPS[name])
    ufunc = _UFUNCS[name]
    if ptx_type in ("f32", "f64"):
        flushes = ptx_type == "f32" and not in_shared
        step: Step = partial(_float_add, flushes)
        if ptx_type == "f64" and not in_shared:
            step = _wide_add_in_global
        return Rule(name, step, ufunc, floating=True, flushes=flushes)
    return Rule(name, _ufunc_step(ufunc), ufunc, wraps=name == "add")
