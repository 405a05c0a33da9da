"""Conditions of a search that read registers alone: evaluated for many instructions at once.

A search needs the last place at which a condition holds. One evaluation of NumPy costs as much for
thousands of instructions as for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre

Holds = Callable[[Fibre, Registers, Index], NDArray[np.bool_] | None]


class _Seen:
    """A fibre and its registers, or the values of many; notes what an expression reads."""

    def __init__(self, fibre: Any, registers: Any) -> None:  # of a thread group, or of values
        self._fibre, self._registers = fibre, registers
        self.read: list[int | str] = []
        self.reads_more = False
        self.stack_pointer = 0

    def __getitem__(self, number: int) -> Any:  # a register
        self.read.append(number)
        return self._registers[number]

    def special(self, name: str) -> Any:
        """Return a special register."""
        self.read.append(name)
        return self._fibre.special(name)

    def __getattr__(self, name: str) -> Any:  # such as memory
        self.reads_more = True
        return getattr(self._fibre, name)


class _Values:
    """The values of registers, at many instructions."""

    def __init__(self, values: dict[int | str, NDArray[Any]]) -> None:
        self._values = values

    def special(self, name: str) -> NDArray[Any]:
        """Return a special register."""
        return self._values[name]

    def __getitem__(self, number: int) -> NDArray[Any]:
        return self._values[number]


class DeferredCondition:
    """A condition at an instruction, of a search.

    Args:
        holds: evaluates it for threads at these positions; None if it has no value.
    """

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._read: list[int | str] | None = None
        self._is_possible = self._are_scalars = True
        self._values: list[list[Any]] = []
        self._noted: list[tuple[int, int, Index | None]] = []  # time, count, lanes if not all

    def defer(self, fibre: Fibre, positions: Index | None, time: int) -> bool:
        """Note an instruction of some threads, or all (None), for a later evaluation.

        Returns:
            Whether that is possible.
        """
        if self._read is None:
            self._find_registers(fibre)
        if not self._is_possible or self._read is None:
            return False
        lanes = fibre.lanes if positions is None else fibre.lane_numbers()[positions]
        self._noted.append((time, fibre.n if positions is None else len(positions), lanes))
        for values, name in zip(self._values, self._read, strict=True):
            value = fibre.special(name) if isinstance(name, str) else fibre.regs[name]
            if isinstance(value, np.ndarray) and value.ndim:
                self._are_scalars = False
                value = value.copy() if positions is None else value[positions]
            values.append(value)
        return True

    def _find_registers(self, fibre: Fibre) -> None:
        """Find what the condition reads, by one evaluation."""
        seen, every = _Seen(fibre, fibre.regs), np.arange(fibre.n)
        holds = self._holds(cast(Fibre, seen), cast(Registers, seen), every)
        self._is_possible = not seen.reads_more and holds is not None
        self._read = list(dict.fromkeys(seen.read))
        self._values = [[] for _ in self._read]

    def __len__(self) -> int:
        """Return how many instructions wait for their evaluation."""
        return len(self._noted)

    def last(self) -> tuple[int, int] | None:
        """Evaluate what was noted; return the last time at which it holds, and the lane."""
        noted, read, self._noted = self._noted, self._read or [], []
        if not noted:
            return None
        counts = [count for _, count, _ in noted]
        columns = {}
        for name, values in zip(read, self._values, strict=True):
            if self._are_scalars:
                columns[name] = np.repeat(np.array(values), counts)
            else:
                parts = [np.broadcast_to(v, n) for v, n in zip(values, counts, strict=True)]
                columns[name] = np.concatenate(parts)
            values.clear()
        self._are_scalars = True
        every = _Values(columns)
        whole: Index = np.arange(sum(counts))
        holds = self._holds(cast(Fibre, _Seen(every, every)), cast(Registers, every), whole)
        found = np.zeros(0, np.intp) if holds is None else holds.nonzero()[0]
        if not len(found):
            return None
        ends = np.cumsum(counts)
        last = int(np.searchsorted(ends, found[-1], "right"))
        begin = int(ends[last]) - counts[last]
        first = int(found[np.searchsorted(found, begin)]) - begin
        time, _, lanes = noted[last]
        return time, first if lanes is None else int(lanes[first])
