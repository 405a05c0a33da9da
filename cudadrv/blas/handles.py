"""Handles of cuBLAS and cuSOLVER, which are costly to make and are used again."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..stream import Context


class _Idle:
    """Handles that nobody uses now, by context and library.

    Bounded by how many were in use at once; those of a destroyed context go with it.
    """

    def __init__(self) -> None:
        self.by_context: weakref.WeakKeyDictionary[Context, dict[str, deque[int]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, context: Context, library: str) -> deque[int]:
        """The idle handles of a library on a context."""
        # Each step is atomic: no lock that a finalizer could meet.
        return self.by_context.setdefault(context, {}).setdefault(library, deque())


_idle: Final = _Idle()


class Handle:
    """A library's handle, used by one owner at a time."""

    __slots__ = ("_idle", "value")

    def __init__(self, value: int, idle: deque[int]) -> None:
        self.value: int = value
        self._idle = idle

    @classmethod
    def take(cls, library: str, context: Context, create: Callable[[], int]) -> Handle:
        """An idle handle of the context, or a new one."""
        idle = _idle.of(context, library)
        try:
            return cls(idle.pop(), idle)
        except IndexError:
            return cls(create(), idle)

    def give_back(self) -> None:
        """Let the next owner have it; calls nothing, so a finalizer may."""
        self._idle.append(self.value)
