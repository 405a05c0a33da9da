"""Conditions of a search that read registers alone: evaluated for many instructions at once.

A search needs the last place at which a condition holds. One evaluation of NumPy costs as much for
thousands of instructions as for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.threads.fibre import Fibre

# Of a fibre, its registers and positions, or of `_Values` in place of the first two.
Holds = Callable[[Any, Any, Index], NDArray[np.bool_] | None]


class _Values:
    """The registers that a condition reads, by number or name: of a fibre, or `values`."""

    stack_pointer = 0

    def __init__(self, fibre: Fibre | None, values: dict[int | str, Any]) -> None:
        self._fibre = fibre
        self.values = values
        self.reads_more = False

    def __getitem__(self, name: int | str) -> Any:  # of any type
        if name not in self.values and self._fibre is not None:
            self.values[name] = _value(self._fibre, name)
        return self.values[name]

    special = __getitem__

    def __getattr__(self, name: str) -> Any:  # such as memory
        self.reads_more = True
        return getattr(self._fibre, name)


class DeferredCondition:
    """A condition at an instruction, of a search.

    Args:
        holds: evaluates it for threads at these positions; None if it has no value.
    """

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._is_possible: bool | None = None
        self._are_scalars = True
        self._values: dict[int | str, list[Any]] = {}
        self._noted: list[tuple[int, int, Index | None]] = []  # time, count, lanes if not all

    def defer(self, fibre: Fibre, positions: Index | None, time: int) -> bool:
        """Note an instruction of some threads, or all (None), for a later evaluation.

        Returns:
            Whether that is possible.
        """
        if self._is_possible is None:
            read = _Values(fibre, {})
            holds = self._holds(read, read, np.arange(fibre.n))
            self._is_possible = holds is not None and not read.reads_more
            self._values = {name: [] for name in read.values}
        if not self._is_possible:
            return False
        lanes = fibre.lanes if positions is None else fibre.lane_numbers()[positions]
        self._noted.append((time, fibre.n if positions is None else len(positions), lanes))
        for name, values in self._values.items():
            value = _value(fibre, name)
            if isinstance(value, np.ndarray) and value.ndim:
                self._are_scalars = False
                value = value.copy() if positions is None else value[positions]
            values.append(value)
        return True

    def __len__(self) -> int:
        """Return how many instructions wait for their evaluation."""
        return len(self._noted)

    def last(self) -> tuple[int, int] | None:
        """Evaluate what was noted; return the last time at which it holds, and the lane."""
        noted, self._noted = self._noted, []
        if not noted:
            return None
        counts = [count for _, count, _ in noted]
        columns = _Values(None, {})
        for name, values in self._values.items():
            if self._are_scalars:
                columns.values[name] = np.repeat(np.array(values), counts)
            else:
                parts = [np.broadcast_to(v, n) for v, n in zip(values, counts, strict=True)]
                columns.values[name] = np.concatenate(parts)
            values.clear()
        self._are_scalars = True
        holds = self._holds(columns, columns, np.arange(sum(counts)))
        if holds is None or not holds.any():
            return None
        found, ends = holds.nonzero()[0], np.cumsum(counts)
        last = int(np.searchsorted(ends, found[-1], "right"))
        begin = int(ends[last]) - counts[last]
        first = int(found[np.searchsorted(found, begin)]) - begin
        time, _, lanes = noted[last]
        return time, first if lanes is None else int(lanes[first])


def _value(fibre: Fibre, name: int | str) -> Any:  # of any type
    return fibre.special(name) if isinstance(name, str) else fibre.regs[name]
