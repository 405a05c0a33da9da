"""When allocations were made, so that two at one address are told apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

_MOST: Final = 64  # allocations at one address that are told apart
Named = tuple[int, str]
"""Where an allocation begins, and what it is in words."""


class Births:
    """The numbers of the moments in which allocations were made, by their addresses.

    It takes no lock: an allocation is noted under its device's.

    Args:
        allocation_at: finds the allocation that holds an address.
    """

    def __init__(self, allocation_at: Callable[[int], Named | None]) -> None:
        self._allocation_at = allocation_at
        self._numbers: dict[int, list[int]] = {}

    def note(self, address: int, number: int) -> None:
        """An allocation begins at an address."""
        born = self._numbers.setdefault(address, [])
        born.append(number)
        if len(born) > _MOST:
            del born[: _MOST // 2]

    def parts(self, address: int, *numbers: int) -> bool:
        """Whether these moments are of two allocations, one after the other at an address."""
        allocation = self._allocation_at(address)
        born = [] if allocation is None else self._numbers.get(allocation[0], [])
        return len({bisect_right(born, number) for number in numbers}) > 1
