"""Whether accesses that race write the same value, so that it may be meant so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.step import Step
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.model.geometry import Value


class SameValues:
    """Whether what an instruction writes is there already, or written by another lane as well."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        values: tuple[Value, ...],
        step: Step,
        hidden: Sequence[LateStores] = (),
    ) -> None:
        """Compare what a step is about to write.

        Args:
            data: the memory.
            values: what each thread writes; none where it is not known.
            step: where.
            hidden: what others have written, although these threads do not see it yet.
        """
        self._data = data
        self._hidden = hidden
        self._values = values
        self._step = step

    def as_before(self, at: int) -> bool:
        """Whether memory has the value that the lane of this unit writes."""
        lane = self._step.position_of_thread(at)
        written = self._of(lane)
        start = self._step.byte(lane)
        there = self._data[start : start + len(written)]
        if not written or there.tobytes() == written:
            return bool(written)
        seen = bytearray(there.tobytes())
        for stores in self._hidden:
            stores.lay_over(there.ctypes.data, seen)
        return seen == written

    def among(self, one: int, two: int) -> bool:
        """Whether the lanes of two units write the same."""
        first, second = (self._of(self._step.position_of_thread(at)) for at in (one, two))
        return bool(first) and first == second

    def _of(self, lane: int) -> bytes:
        """The bytes that a lane writes; none where they are not known."""
        values = [value[lane] if value.ndim else value for value in self._values]
        return b"".join(np.asarray(value).tobytes() for value in values)
