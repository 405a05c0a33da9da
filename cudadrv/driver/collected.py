"""Boxes that a garbage collection found; it runs finalizers in any order.

A box that is found while something refers to it waits here until the collection has ended; then
what refers to nothing but parents goes first.
"""

from __future__ import annotations

import gc
from collections import deque
from sys import getrefcount
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class Found(Protocol):
        """A box, as far as this file goes."""

        def _go(self) -> bool:
            """Destroy the driver's object; False if it must be tried later."""


found: Final[deque[Found]] = deque()
"""What waits."""


# `map` calls `getrefcount` from C, with references that C code takes. A call in Python would count
# those of the bytecode as well, which differ between versions of CPython and between two functions.


class _Finalized:
    """Measures what `getrefcount` gives in the finalizer of an object without references.

    Attributes:
        count: the references that the call itself makes.
    """

    count: int = 0
    _references = staticmethod(getrefcount)

    def __del__(self) -> None:
        (_Finalized.count,) = map(self._references, (self,))


_Finalized()  # it goes at once
ALONE: Final[int] = _Finalized.count
"""What ``map(getrefcount, (self,))`` gives in the finalizer of a box without references."""

LISTED: Final[int] = next(map(getrefcount, [object()]))
"""What ``map(getrefcount, [box])`` gives for a box that only this list refers to."""


def _after_collection(phase: str, _: object) -> None:
    """Destroy what the collection found and nothing refers to any more, children first.

    What a survivor of the collection refers to waits for the next one.
    """
    if phase == "stop":
        between_collections["start"] = True
        while sum(_goes() for _ in range(len(found))):
            pass


def _goes() -> bool:
    """Whether the first of the boxes that were found goes; otherwise it becomes the last."""
    try:
        held = [found.popleft()]
    except IndexError:
        return False  # the collection of another thread took it
    if next(map(getrefcount, held)) > LISTED:
        found.append(held.pop())
        return False
    try:
        return held.pop()._go()
    except BaseException as error:  # whatever it is, the others go
        _Unraisable(error)  # goes at once
        return True


class _Unraisable:
    """Hands an error to sys.unraisablehook, by raising it in its finalizer."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        try:
            raise self.error
        finally:
            # Its traceback holds this frame; without a circle what it holds goes with it.
            del self.error


between_collections: Final = {"start": True}
"""Empty during a collection, and as long after it as an interrupt kept it so."""

# A function of C, which no interrupt breaks off, takes "start" out at the start.
gc.callbacks.append(between_collections.pop)
gc.callbacks.append(_after_collection)
