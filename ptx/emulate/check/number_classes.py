"""Which elements of values are NaN, infinite or finite; found once for each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.float_format import FloatFormat
from ptx.emulate.model.geometry import Value

_Flags = NDArray[np.bool_]
_MOST_VALUES: Final = 16  # a value that stays here keeps its memory from being used again
_MOST_CLASSES: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class NumberClasses:
    """The classes of the numbers of a value.

    Attributes:
        nans, wrong: which numbers are NaN, and which are NaN or infinite; by thread, or (numbers of
            a register, threads) if a register has several.
        with_nan, with_wrong: which threads have such a number.
        of_wrong: all bits of the latter, and none of others, to mask marks with.
    """

    nans: _Flags
    wrong: _Flags
    with_nan: _Flags
    with_wrong: _Flags
    of_wrong: NDArray[np.int32]
    content: tuple[object, ...]


class ClassesOfValues:
    """Finds the classes of values. Those that are alike are one object, to compare by identity."""

    def __init__(self) -> None:
        self._of_values: dict[int, tuple[Value, FloatFormat, NumberClasses]] = {}
        self._classes: list[NumberClasses] = []  # the one that was found last is the first

    def of(self, value: Value, kind: FloatFormat) -> NumberClasses:
        """Return the classes of the numbers of a value."""
        known = self._of_values.get(id(value))
        if known is not None and known[1] is kind:
            return known[2]
        classes = self._found(value, kind)
        if len(self._of_values) >= _MOST_VALUES:
            del self._of_values[next(iter(self._of_values))]
        self._of_values[id(value)] = value, kind, classes
        return classes

    def _found(self, value: Value, kind: FloatFormat) -> NumberClasses:
        nans, finite = kind.nans_and_finite(value)
        content = nans.shape, nans.tobytes(), finite.tobytes()
        known = self._classes
        for number, classes in enumerate(known):
            if classes.content == content:
                if number:
                    known.insert(0, known.pop(number))
                return classes
        wrong = np.asarray(~finite)
        with_wrong = any_number(wrong)
        of_wrong = np.negative(with_wrong.astype(np.int32))
        classes = NumberClasses(nans, wrong, any_number(nans), with_wrong, of_wrong, content)
        known.insert(0, classes)
        del known[_MOST_CLASSES:]
        return classes


def any_number(flags: _Flags) -> _Flags:
    """Return for each thread whether any number of its register has a flag."""
    return np.any(flags, axis=0) if flags.ndim == 2 else flags
