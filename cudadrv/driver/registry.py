"""`Registry`: the existing objects of one kind, held weakly and without a lock.

A lock here would deadlock: a finalizer may make or drop an object in the middle of any operation.
Single operations of a dict are atomic, with and without the interpreter lock.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TypeVar

_T = TypeVar("_T")


class Registry(dict[int, weakref.ref[_T]]):
    """Existing objects by identity; a freed one is removed automatically."""

    __slots__ = ()

    def add(self, item: _T) -> None:
        """Register an object until it is freed."""
        key = id(item)
        # No Python function: an interrupt that arrives while one runs is lost. The reference is
        # the default value of `pop`.
        self[key] = weakref.ref(item, partial(self.pop, key))

    def discard(self, item: _T) -> None:
        """Remove an object, if it is registered."""
        self.pop(id(item), None)

    def alive(self) -> tuple[_T, ...]:
        """Return the objects that exist now."""
        items = (reference() for reference in list(self.values()))
        return tuple(item for item in items if item is not None)
