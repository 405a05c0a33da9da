"""`Registry`: the living objects of one kind, without keeping any of them alive and without a lock.

A lock here would deadlock: an object may be made or dropped by a finalizer in the middle of
anything. Single operations of a dict are atomic, with and without the interpreter lock.
"""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Registry(Generic[_T]):
    """Living objects by identity; a dead one leaves by itself."""

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[_T]] = {}

    def __len__(self) -> int:
        return len(self._references)

    def add(self, item: _T) -> None:
        """Remember an object as long as it lives."""
        references, key = self._references, id(item)
        references[key] = weakref.ref(item, lambda _: references.pop(key, None))

    def alive(self) -> tuple[_T, ...]:
        """The objects that live now."""
        found = (reference() for reference in list(self._references.values()))
        return tuple(item for item in found if item is not None)
