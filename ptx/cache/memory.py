"""Images of this process, and one making at a time for each of them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from ptx.errors import PtxError
from ptx.image import Image


class _Flight:
    """A making under way, which others wait for."""

    __slots__ = ("done", "error", "image")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.image: Image | None = None
        self.error: BaseException | None = None


class MemoryImages:
    """Images by key digest, the least recently used dropped first. Bound: `max_bytes` of them.

    A forked child keeps the images; locks and makings that its parent's threads held are forgotten.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._images: OrderedDict[str, Image] = OrderedDict()
        self._flights: dict[str, _Flight] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._images)

    def get(self, digest: str) -> Image | None:
        """The image of a key, or None."""
        if os.getpid() != self._pid:
            self._after_fork()
        with self._lock:
            image = self._images.get(digest)
            if image is not None:
                self._images.move_to_end(digest)
            return image

    def make_once(self, digest: str, make: Callable[[], Image]) -> tuple[Image, bool]:
        """The image that `make` gives, kept; and whether another thread's making gave it.

        Threads that want the same image at once wait for the first and share its image, or its
        error where that is one of the source's.
        """
        while True:
            with self._lock:
                flight = self._flights.get(digest)
                mine = flight is None
                if flight is None:
                    flight = self._flights[digest] = _Flight()
            if mine:
                return self._fly(digest, flight, make), False
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
            self.nbytes = 0

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
        size = _nbytes(image)
        with self._lock:
            if size > self.max_bytes or digest in self._images:
                return
            self._images[digest] = image
            self.nbytes += size
            while self.nbytes > self.max_bytes:
                _, dropped = self._images.popitem(last=False)
                self.nbytes -= _nbytes(dropped)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._flights = {}
        self._pid = os.getpid()


def _nbytes(image: Image) -> int:
    return len(image.data) + (0 if image.ptx is None else len(image.ptx))
