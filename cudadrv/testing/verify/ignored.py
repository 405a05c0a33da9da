"""Arguments that change the reference's result, and not the kernel's.

A tolerance can hide such an argument, as a small factor of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..strategies import ArrayInput, DrawnArray, NumberInput, pattern
from .comparison import Host, Mask, ReferenceArrays, bits_differ
from .example_run import CompiledCase
from .verdict import Argument, CannotVerifyError, Example

_SEED: Final = 49  # of other values; those below two are no random ones
_LAST_BITS: Final = 64  # a change that no rounding hides


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
        for output, should in _changes(before.expected, after.expected, after.arrays).items():
            changes = bits_differ(before.arrays[output], after.arrays[output])
            if output != name and should.any() and not changes.any():
                yield Ignored(name, output, other)


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
        shape = value.contents.shape
        drawn = pattern(source.dtype, value.contents.size, source.values, _SEED)
        other = DrawnArray(drawn.reshape(shape))
    else:
        other = pattern(source.dtype, 1, source.values, _SEED)[0]
    return replace(example, arguments={**example.arguments, name: other})


def _changes(
    before: ReferenceArrays, after: ReferenceArrays, arrays: dict[str, Host]
) -> dict[str, Mask]:
    """Return which elements of the reference change by more than roundings explain."""
    changes: dict[str, Mask] = {}
    for name, first in before.items():
        second, dtype = after[name], arrays[name].dtype
        is_open = before.open_elements(name) | after.open_elements(name)
        if dtype.kind == "f":
            with np.errstate(all="ignore"):
                one, other = (each.astype(np.float64) for each in (first, second))
                larger = np.maximum(np.abs(one), np.abs(other)).astype(dtype)
                last_bit = np.spacing(larger).astype(np.float64)
                should = np.abs(one - other) > _LAST_BITS * last_bit
        elif dtype.kind in "iu":
            should = np.asarray(first != second, np.bool_)
        else:
            continue
        changes[name] = should & ~is_open
    return changes
