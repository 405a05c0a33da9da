"""How far the roundings of a kernel put results off whose terms are larger than they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from .comparison import ReferenceArrays, within
from .example_run import CompiledCase, RunResult
from .verdict import Example

_ROUNDINGS: Final = 4.0  # of independent ones; so many are very rare
_MOST_ELEMENTS: Final = 12  # whose calculations are followed

Allowed = Mapping[str, npt.NDArray[np.float64]]


def with_roundings(
    compiled: CompiledCase,
    example: Example,
    expected: ReferenceArrays,
    result: RunResult,
    allowed: Allowed,
) -> Allowed:
    """Return how far elements may be off, with the roundings of the kernel's own calculations.

    The tolerance of small results shrinks with the largest one, which does not know that a result
    is the difference of larger terms. So elements that it alone rejects may be off by four times
    their rounding, but never beyond the tolerance of the case.
    """
    wider = dict(allowed)
    for name, reference in expected.items():
        array, tolerance = result.arrays.get(name), compiled.case.tolerance_of(name)
        if array is None or array.dtype.kind != "f":
            continue
        known = allowed.get(name, np.zeros(array.shape))
        strict = tolerance.scaled(reference.astype(array.dtype))
        wrong = strict.differs(array, reference) & ~within(array, reference, known)
        wrong &= ~expected.open_elements(name)
        if not wrong.any() or (wrong & tolerance.differs(array, reference)).any():
            continue
        places = np.flatnonzero(wrong)
        apart = np.abs(array.astype(np.float64) - reference.astype(np.float64)).reshape(-1)[places]
        worst = places[np.argsort(-apart, kind="stable")[:_MOST_ELEMENTS]]
        roundings = _ROUNDINGS * compiled.roundings(example, name, worst)
        # Elements that are less far off may be so by the least of these.
        slack = np.where(wrong, np.min(roundings), 0.0)
        slack.reshape(-1)[worst] = roundings
        wider[name] = np.maximum(known, slack)
    return wider
