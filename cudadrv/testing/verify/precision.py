"""Examples with fractions in place of whole numbers, and how far a right kernel may be off.

Sums of small whole numbers are exact in every type and order. So they show neither a kernel that
computes in a type smaller than that of its arrays, nor one that loses bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..strategies import ArrayInput, DrawnArray, NumberInput
from .comparison import Host
from .kernel_case import KernelCase
from .verdict import Argument, Example

PRECISION: Final = (
    "whole numbers give the right values: with fractions the kernel loses more bits than its types "
    "explain, as if it computed in a smaller type"
)
FRACTIONS: Final = "whole numbers give the right values, and fractions do not"
_LARGEST_FRACTION: Final = 0.5
_CHANGES: Final = 4
_COARSE: Final = 0.02  # of the largest value: a type of seven bits has lost as much
_LAST_BITS: Final = 64  # a sum of some hundred terms in any order

Floats = npt.NDArray[np.float64]


def with_fractions(case: KernelCase, example: Example, seed: int) -> Example | None:
    """Return an example whose floats are no whole numbers; None if the case has no such floats.

    Only floats that are whole numbers by `values="exact"` change.
    """
    source = np.random.default_rng(seed)

    def changed(value: Any) -> Any:
        fractions = source.uniform(-_LARGEST_FRACTION, _LARGEST_FRACTION, np.shape(value))
        return (value + fractions).astype(value.dtype)

    return _with_floats(case, example, changed)


def allowed_differences(
    case: KernelCase, example: Example, expected: Mapping[str, Host]
) -> dict[str, Floats]:
    """Return how far each element of the arrays may be from the reference.

    It is 64 times what changes of the last bit of the inputs change, and 64 last bits of the
    result. Integers and elements that are not finite may have any value.
    """
    source = np.random.default_rng(0)

    def changed(value: Any) -> Any:
        directions = source.choice([-np.inf, np.inf], np.shape(value))
        return np.nextafter(value, directions.astype(value.dtype))

    allowed: dict[str, Floats] = {}
    for name, array in expected.items():
        allowed[name] = np.full(array.shape, np.inf)
        if array.dtype.kind == "f":
            last_bits: Any = np.spacing(np.abs(_in_type(array, example.arguments[name])))
            allowed[name] = last_bits.astype(np.float64)
    with np.errstate(all="ignore"):
        for _ in range(_CHANGES):
            other = _with_floats(case, example, changed)
            assert other is not None  # the example has floats that may change
            for name, array in case.expected(other).items():
                apart = np.abs(array.astype(np.complex128) - expected[name].astype(np.complex128))
                allowed[name] = np.maximum(allowed[name], np.where(np.isnan(apart), np.inf, apart))
    return {name: _LAST_BITS * array for name, array in allowed.items()}


def coarse_differences(expected: Mapping[str, Host]) -> dict[str, Floats]:
    """Return how far results may be off that have lost bits, and are not simply wrong."""
    return {
        name: np.full(array.shape, _COARSE * float(np.nanmax(np.abs(array), initial=0)))
        for name, array in expected.items()
        if array.dtype.kind == "f"
    }


def _with_floats(case: KernelCase, example: Example, changed: Any) -> Example | None:
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        source = case.arguments[name]
        if not isinstance(source, (ArrayInput, NumberInput)) or source.values != "exact":
            continue
        if isinstance(value, DrawnArray):
            if value.is_written and value.contents.dtype.kind == "f":
                arguments[name] = replace(value, contents=changed(value.contents))
        elif isinstance(value, np.floating):
            arguments[name] = changed(value)
    is_changed = any(arguments[name] is not value for name, value in example.arguments.items())
    return replace(example, arguments=arguments) if is_changed else None


def _in_type(array: Host, argument: Argument) -> Host:
    """Return a reference in the type of the kernel's array."""
    return array.astype(argument.contents.dtype) if isinstance(argument, DrawnArray) else array
