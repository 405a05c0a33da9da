"""Which elements of values are NaN, infinite or finite; found once for each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.geometry import Value

_Flags = NDArray[np.bool_]
_MOST_ALIKE: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class NumberClasses:
    """The classes of the elements of a value.

    Attributes:
        nans, finite: which elements are NaN, and which are finite.
        are_all_nan: whether each one is NaN.
    """

    nans: _Flags
    finite: _Flags
    are_all_nan: bool
    content: bytes


class ClassesOfValues:
    """Finds the classes of values. Those that are alike are one object, to compare by identity."""

    def __init__(self) -> None:
        self._of_values: dict[int, tuple[Value, NumberClasses]] = {}
        self._alike: dict[tuple[int, int, int, int], NumberClasses] = {}

    def of(self, value: Value) -> NumberClasses:
        """Return the classes of the elements of a value."""
        known = self._of_values.get(id(value))
        if known is None:
            known = self._of_values[id(value)] = value, self._found(value)
        return known[1]

    def forget(self) -> None:
        """Forget the values, of which later code has others; their classes stay."""
        self._of_values.clear()
        if len(self._alike) > _MOST_ALIKE:
            self._alike.clear()

    def _found(self, value: Value) -> NumberClasses:
        finite: _Flags = np.asarray(np.isfinite(value))
        nans: _Flags = np.asarray(np.isnan(value))
        size = value.size
        with_nan, with_number = int(np.count_nonzero(nans)), int(np.count_nonzero(finite))
        key = value.ndim, size, with_nan, with_number
        alike = self._alike.get(key)
        if size in (with_nan, with_number, size - with_nan - with_number):
            content = b""  # all elements are of one class
        elif size == with_nan + with_number:
            content = nans.tobytes()
        else:
            content = nans.tobytes() + finite.tobytes()
        if alike is None or alike.content != content:
            alike = self._alike[key] = NumberClasses(nans, finite, size == with_nan, content)
        return alike
