"""Images of this process, and one making at a time for each of them."""

from __future__ import annotations

import copy
import itertools
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from ptx.errors import PtxError
from ptx.image import Image


class Made(NamedTuple):
    """An image, and whether it is the key's for good: another thread may be given it as well."""

    image: Image
    lasting: bool


class _Kept:
    """An image in memory; `used` is the place of its last use among all uses."""

    __slots__ = ("digest", "image", "nbytes", "used")

    def __init__(self, digest: str, image: Image, used: int) -> None:
        self.digest = digest
        self.image = image
        self.nbytes = len(image.data) + (0 if image.ptx is None else len(image.ptx))
        self.used = used


class _Making:
    """A making under way. Its maker holds the lock, and others wait for it."""

    __slots__ = ("lock", "maker", "outcome")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.maker = 0
        self.outcome: Image | PtxError | None = None


class MemoryImages:
    """Images by key digest, the least recently used dropped first. Bound: `max_bytes` of them.

    The images need no lock: each change is one step of a dict. A maker that is interrupted, in
    whatever line, leaves a lock that is free and no outcome: who waited makes the image himself.
    A forked child keeps the images, and knows nothing of its parent's makings.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._kept: dict[str, _Kept] = {}
        self._makings: dict[tuple[int, str], _Making] = {}
        self._uses = itertools.count()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """What the images take."""
        return sum(kept.nbytes for kept in list(self._kept.values()))

    def get(self, digest: str) -> Image | None:
        """The image of a key, or None."""
        kept = self._kept.get(digest)
        if kept is None:
            return None
        kept.used = next(self._uses)
        return kept.image

    def make_once(self, digest: str, make: Callable[[bool], Made]) -> tuple[Image, bool]:
        """The image that `make` gives, kept; and whether another thread's making gave it.

        Threads that want the same image at once wait for the first and share its image, or its
        error where that is one of the source's. `make` is told whether it may wait for others: a
        finalizer or signal handler in the middle of a making may not, as they may wait for it.
        """
        key, me = (os.getpid(), digest), threading.get_ident()
        if any(making.maker == me for making in list(self._makings.values())):
            return self._made(digest, make(False)), False
        while True:
            making = self._makings.setdefault(key, _Making())
            with making.lock:
                making.maker, outcome = me, making.outcome
                # What has an outcome, or was interrupted, is in the table no more.
                if outcome is None and self._makings.get(key) is making:
                    return self._make(key, making, make), False
            if isinstance(outcome, Image):
                return outcome, True
            if outcome is not None:
                raise _copied(outcome)

    def clear(self) -> None:
        """Forget every image."""
        self._kept.clear()

    def _make(self, key: tuple[int, str], making: _Making, make: Callable[[bool], Made]) -> Image:
        outcome: Image | PtxError | None = None
        try:
            made = make(True)
            outcome = made.image if made.lasting else None
            return self._made(key[1], made)
        except PtxError as error:
            outcome = _copied(error)
            raise
        finally:
            self._makings.pop(key, None)
            making.outcome = outcome

    def _made(self, digest: str, made: Made) -> Image:
        if made.lasting:
            self._keep(digest, made.image)
        return made.image

    def _keep(self, digest: str, image: Image) -> None:
        new = _Kept(digest, image, next(self._uses))
        if new.nbytes > self.max_bytes:
            return
        self._kept.setdefault(digest, new)
        while True:
            kept = list(self._kept.values())
            if sum(each.nbytes for each in kept) <= self.max_bytes:
                return
            self._kept.pop(min(kept, key=lambda each: each.used).digest, None)


def _copied(error: PtxError) -> PtxError:
    """An error of its own, without the traceback, which leads to the frame of the making.

    Some libraries, tblib among them, have copies keep it.
    """
    return copy.copy(error).with_traceback(None)
