"""Arguments that change the reference's result, and not the kernel's.

A tolerance can hide such an argument, as a small factor of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ..strategies import ArrayInput, DrawnArray, NumberInput, pattern
from .comparison import Host, ReferenceArrays, bits_differ
from .example_run import CompiledCase
from .verdict import Argument, CannotVerifyError, Example

_SEED: Final = 49  # of other values; those below two are no random ones
# By so many last bits so many elements must change: no rounding hides that.
_HIDDEN: Final = ((64, 1), (8, 8))


@dataclass(frozen=True, slots=True)
class Ignored:
    """An argument that has no influence on an array.

    Attributes:
        name: of the argument.
        output: the array.
        example: an example with other values of the argument.
    """

    name: str
    output: str
    example: Example


def ignored_arguments(compiled: CompiledCase, example: Example) -> Iterator[Ignored]:
    """Yield arguments after whose change an array has the same bits, and should not."""
    before = _run(compiled, example)
    for name in compiled.case.reference_arguments if before is not None else ():
        other = _with_other(compiled, example, name)
        after = None if other is None else _run(compiled, other)
        if other is None or before is None or after is None:
            continue
        for output in _changed_arrays(before.expected, after.expected, after.arrays):
            changes = bits_differ(before.arrays[output], after.arrays[output])
            if output != name and not changes.any():
                yield Ignored(name, output, other)


def _others(source: ArrayInput | NumberInput, contents: Host) -> Host:
    """Return other values of an argument; of a range the end that is farther from each one."""
    drawn = pattern(source.dtype, contents.size, source.values, _SEED).reshape(contents.shape)
    if not isinstance(source.values, tuple) or source.dtype.kind != "f":
        return drawn
    low, high = source.values
    is_low = contents.astype(np.float64) < (low + high) / 2
    ends: Host = np.where(is_low, high, low).astype(source.dtype)
    return ends


@dataclass(frozen=True, slots=True)
class _Result:
    """The arrays of a run, and of the reference."""

    expected: ReferenceArrays
    arrays: dict[str, Host]


def _run(compiled: CompiledCase, example: Example) -> _Result | None:
    """Run an example; None if it is not allowed, or fails."""
    try:
        if not compiled.case.is_allowed(example):
            return None
        expected = compiled.case.expected(example)
        result = compiled.result(example, expected)
    except CannotVerifyError:
        return None
    return None if result.faults else _Result(expected, dict(result.arrays))


def _with_other(compiled: CompiledCase, example: Example, name: str) -> Example | None:
    """Return an example with other values of an argument; None if these cannot be drawn."""
    source, value = compiled.case.arguments[name], example.arguments[name]
    if not isinstance(source, (ArrayInput, NumberInput)):
        return None
    if not isinstance(source.values, (str, tuple)):
        return None
    other: Argument
    if isinstance(value, DrawnArray):
        if not value.is_written:
            return None
        other = DrawnArray(_others(source, value.contents))
    else:
        (other,) = _others(source, np.atleast_1d(np.asarray(value)))
    return replace(example, arguments={**example.arguments, name: other})


def _changed_arrays(
    before: ReferenceArrays, after: ReferenceArrays, arrays: dict[str, Host]
) -> Iterator[str]:
    """Yield the arrays of the reference that change by more than roundings explain."""
    for name, first in before.items():
        is_open = before.open_elements(name) | after.open_elements(name)
        changes = _last_bits(first, after[name], arrays[name].dtype)[~is_open]
        if any(np.count_nonzero(changes > bits) >= count for bits, count in _HIDDEN):
            yield name


def _last_bits(first: Host, second: Host, dtype: np.dtype[np.generic]) -> npt.NDArray[np.float64]:
    """Return by how many last bits of a type elements differ; integers by any or none."""
    if dtype.kind in "iu":
        return np.where(first != second, np.inf, 0.0)
    if dtype.kind != "f":
        return np.zeros(first.shape)
    with np.errstate(all="ignore"):
        one, other = (each.astype(np.float64) for each in (first, second))
        larger = np.asarray(np.maximum(np.abs(one), np.abs(other)), dtype)
        last_bit = np.asarray(np.spacing(larger), np.float64)
        return np.asarray(np.abs(one - other) / last_bit, np.float64)
