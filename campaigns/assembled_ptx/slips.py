"""The fault of a module: it has at most one, which has a name."""

from __future__ import annotations

import random
from typing import Final, TypeVar

_Choice = TypeVar("_Choice")
_WRONG_SHARE: Final = 0.4  # of modules that get a fault


class Slips:
    """The places of a module where it may be wrong; a fault is at one of them or at none.

    Attributes:
        places: the faults that were possible, in the order of the places.
    """

    def __init__(self, source: random.Random, chosen: int | None = None) -> None:
        self.places: list[str] = []
        self._source = source
        self._chosen = chosen

    @property
    def fault(self) -> str:
        """The name of the fault, "" for none."""
        return "" if self._chosen is None else self.places[self._chosen]

    def at(self, fault: str) -> bool:
        """Whether the module is wrong here."""
        self.places.append(fault)
        return len(self.places) - 1 == self._chosen

    def one(self, fault: str, usual: tuple[_Choice, ...], wrong: tuple[_Choice, ...]) -> _Choice:
        """One of the usual choices, or of the wrong ones."""
        return self._source.choice(wrong if self.at(fault) else usual)


def chosen_place(source: random.Random, places: list[str]) -> int | None:
    """A place for a fault, each name of one as often as another; None for a right module."""
    if not places or source.random() >= _WRONG_SHARE:
        return None
    fault = source.choice(sorted(set(places)))
    return source.choice([number for number, each in enumerate(places) if each == fault])
