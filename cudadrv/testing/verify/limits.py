"""Constants beyond which a kernel has wrong values, where the case draws no such numbers.

A kernel may clamp what it computes, as it does for an exponential. So these are suspicions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from ..strategies import ArrayInput, NumberInput
from .comparison import Host, ReferenceArrays
from .contents import Floats, allowed_differences, coarse_differences, with_contents
from .example_run import VALUES, CompiledCase
from .verdict import CannotVerifyError, Example

_DRAWN: Final = 8.5  # no contents for values="exact" are as large in general
_MOST: Final = 1e6
_MOST_LIMITS: Final = 4
_BEYOND: Final = (1.25, 4)  # times a constant


def wrong_beyond(
    compiled: CompiledCase,
    example: Example,
    limits: Sequence[float],
    is_late: Callable[[], bool],
) -> Iterator[str]:
    """Yield which value is wrong where all elements are beyond a constant, for each such one.

    Elements change whose values are "exact". A result that overflows may have any value, and others
    may lose bits.
    """
    chosen = [each for each in dict.fromkeys(limits) if _DRAWN < abs(each) <= _MOST]
    for limit in chosen[:_MOST_LIMITS]:
        source = np.random.default_rng(0)

        def fill(
            each: ArrayInput | NumberInput,
            count: int,
            limit: float = limit,
            source: np.random.Generator = source,
        ) -> Floats | None:
            is_chosen = (
                each.dtype.kind == "f" and each.dtype.itemsize > 2 and each.values == "exact"
            )
            return limit * source.uniform(*_BEYOND, count) if is_chosen else None

        other = with_contents(compiled.case, example, fill)
        text = "" if other is None or is_late() else _wrong(compiled, other)
        if text:
            yield f"beyond {limit:g}, a constant of the kernel, values are wrong: {text}"


def _wrong(compiled: CompiledCase, example: Example) -> str:
    """Return which value is wrong by more than lost bits; "" is none."""
    try:
        if not compiled.case.is_allowed(example):
            return ""
        expected = compiled.case.expected(example)
        allowed = coarse_differences(expected)
        sensitive = allowed_differences(compiled.case, example, expected, is_wide=True)
        for name, each in allowed.items():
            np.maximum(each, sensitive[name], out=each)
            each[_overflows(expected, name)] = np.inf
        result = compiled.result(example, expected, allowed)
    except CannotVerifyError:
        return ""
    if [fault.check for fault in result.faults] != [VALUES]:
        return ""
    if not all(np.isfinite(_floats(array)).all() for array in result.arrays.values()):
        return ""
    first, _, _ = result.faults[0].text.partition("\n")
    return first.removeprefix(f"{VALUES}: ")


def _overflows(expected: ReferenceArrays, name: str) -> Host:
    """Return which elements of a reference are no finite numbers of 32 bits."""
    with np.errstate(all="ignore"):
        return np.asarray(~np.isfinite(expected[name].astype(np.float32)))


def _floats(array: Host) -> Host:
    return array if array.dtype.kind == "f" else np.zeros(0)
