"""Whether accesses that race write the same value, so that it may be meant so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.step import Step
from ptx.emulate.model.geometry import Value


class SameValues:
    """Whether what an instruction writes is there already, or written by another lane as well."""

    def __init__(self, data: NDArray[np.uint8], values: tuple[Value, ...], step: Step) -> None:
        self._data = data
        self._values = values
        self._step = step

    def as_before(self, at: int) -> bool:
        """Whether memory has the value that the lane of this unit writes."""
        lane = self._step.position_of_thread(at)
        written = self._of(lane)
        start = self._step.byte(lane)
        return bool(written) and self._data[start : start + len(written)].tobytes() == written

    def among(self, one: int, two: int) -> bool:
        """Whether the lanes of two units write the same."""
        first, second = (self._of(self._step.position_of_thread(at)) for at in (one, two))
        return bool(first) and first == second

    def _of(self, lane: int) -> bytes:
        """The bytes that a lane writes; none where they are not known."""
        values = [value[lane] if value.ndim else value for value in self._values]
        return b"".join(np.asarray(value).tobytes() for value in values)
