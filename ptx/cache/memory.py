"""Images of this process, and one making at a time for each of them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from ptx.errors import PtxError
from ptx.image import Image


class _Flight:
    """A making under way, which others wait for."""

    __slots__ = ("done", "error", "image", "maker")

    def __init__(self) -> None:
        self.maker = threading.get_ident()
        self.done = threading.Event()
        self.image: Image | None = None
        self.error: BaseException | None = None


class MemoryImages:
    """Images by key digest, the least recently used dropped first. Bound: `max_bytes` of them.

    A forked child keeps the images; locks and makings that its parent's threads held are forgotten.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._images: OrderedDict[str, Image] = OrderedDict()
        self._flights: dict[str, _Flight] = {}
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._images)

    @property
    def nbytes(self) -> int:
        """What the images take."""
        return sum(map(_nbytes, tuple(self._images.values())))

    def get(self, digest: str) -> Image | None:
        """The image of a key, or None."""
        if os.getpid() != self._pid:
            self._after_fork()
        with self._lock:
            image = self._images.get(digest)
            if image is not None:
                with contextlib.suppress(KeyError):  # a finalizer may have had it dropped
                    self._images.move_to_end(digest)
            return image

    def make_once(self, digest: str, make: Callable[[], Image]) -> tuple[Image, bool]:
        """The image that `make` gives, kept; and whether another thread's making gave it.

        Threads that want the same image at once wait for the first and share its image, or its
        error where that is one of the source's.
        """
        while True:
            mine = _Flight()
            with self._lock:
                flight = self._flights.setdefault(digest, mine)
            if flight is mine:
                return self._fly(digest, flight, make), False
            if flight.maker == mine.maker:
                # A finalizer in the middle of the making wants the same: it cannot wait for it.
                return make(), False
            flight.done.wait()
            if flight.image is not None:
                return flight.image, True
            if isinstance(flight.error, PtxError):
                raise flight.error
            # The maker was interrupted, which is not this thread's fault: try for oneself.

    def clear(self) -> None:
        """Forget every image."""
        with self._lock:
            self._images.clear()

    def _fly(self, digest: str, flight: _Flight, make: Callable[[], Image]) -> Image:
        try:
            flight.image = image = make()
        except BaseException as error:
            flight.error = error
            raise
        else:
            self._put(digest, image)
            return image
        finally:
            with self._lock:
                self._flights.pop(digest, None)
            flight.done.set()

    def _put(self, digest: str, image: Image) -> None:
        if _nbytes(image) > self.max_bytes:
            return
        with self._lock:
            self._images.setdefault(digest, image)
            while self.nbytes > self.max_bytes:
                with contextlib.suppress(KeyError):  # a finalizer may have forgotten all of them
                    self._images.popitem(last=False)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._flights = {}
        self._pid = os.getpid()


def _nbytes(image: Image) -> int:
    return len(image.data) + (0 if image.ptx is None else len(image.ptx))
