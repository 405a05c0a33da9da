"""Images on disk as a process sees them: a fault costs speed and one warning, never an error."""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

from ptx.cache.entry import decode, decode_key, encode
from ptx.cache.folder import WAIT_SECONDS, PrivateFolder
from ptx.cache.key import Key
from ptx.cache.log import DEBUG, INFO, log
from ptx.cache.statistics import Counter, add_counts, sum_of_file
from ptx.cache.store import Store
from ptx.image import Image


class DiskImages:
    """The images of a store, and this process's counts, which are added to the folder at its end.

    `store` is None where there is none; with a `fault` that is warned of at the first use.
    """

    def __init__(self, store: Store | None, counter: Counter, fault: OSError | None = None) -> None:
        self.store = store
        self._counter = counter
        self._fault = fault
        self._warned = False
        if store is not None:
            self._at_exit = weakref.finalize(self, add_counts, store.top, counter)

    @property
    def top(self) -> PrivateFolder | None:
        """The folder of it all."""
        return self.store.top if self.store else None

    @property
    def path(self) -> Path | None:
        """Where that folder is."""
        return self.store.top.path if self.store else None

    def close(self) -> None:
        """Add this process's counts to the folder's, once."""
        if self.store is not None:
            self._at_exit()

    def get(self, key: Key) -> Image | None:
        """The image of a key, counted as a hit."""
        started = time.perf_counter()
        data = self._data(key.digest)
        if data is None:
            return None
        image = decode(data, key.digest)
        if image is None:
            return None
        took = (time.perf_counter() - started) * 1e3
        saved = max(0.0, image.build_ms - took)
        self._counter.add(disk_hits=1, bytes_read=len(data), saved_ms=saved)
        log(DEBUG, "hit: %.12s read in %.2f ms", key.digest, took)
        return image

    def keep(self, key: Key, image: Image) -> None:
        """Write an image down under its key."""
        if self.store is None:
            return
        data = encode(image, key)
        if len(data) > self.store.max_bytes:
            log(INFO, "entry %.12s of %d bytes is above the cache's bound", key.digest, len(data))
            return
        try:
            evicted = self.store.write(key.digest, data)
            self._counter.add(evicted=evicted, bytes_written=len(data))
        except OSError as error:
            self._counter.add(failed=1)
            self._warn(error)

    @contextlib.contextmanager
    def making(self, key: Key, *, may_wait: bool) -> Iterator[Image | None]:
        """Have other processes wait for what this one makes; gives the image that one has made."""
        if self.store is None:
            yield None
            return
        if self.store.has(key.digest):
            self._counter.add(refused=1)
            log(INFO, "entry %.12s is damaged or not to be trusted", key.digest)
        if (untrusted := self.store.untrusted()) is not None:
            self._warn(untrusted)
        with self.store.lock(key.digest, WAIT_SECONDS if may_wait else 0.0):
            yield self.get(key)

    def holds(self, key: Key) -> bool:
        """Whether there is a good entry; not counted as a hit."""
        data = self._data(key.digest)
        return data is not None and decode(data, key.digest) is not None

    def entries(self) -> Iterator[tuple[str, Key | None]]:
        """The digest of each entry, and its key; None for one that is damaged or not trusted."""
        for digest in self.store.digests() if self.store else ():
            data = self._data(digest)
            good = data is not None and decode(data, digest) is not None
            yield digest, decode_key(data) if data is not None and good else None

    def lifetime(self) -> dict[str, float]:
        """The counts of every process that ended."""
        return sum_of_file(self.store.top) if self.store else {}

    def _data(self, digest: str) -> bytes | None:
        if self._fault is not None:
            self._warn(self._fault)
        try:
            return self.store.read(digest) if self.store else None
        except OSError as error:
            self._warn(error)
            return None

    def _warn(self, error: OSError) -> None:
        log(INFO, "cache folder: %s", error)
        if self._warned:
            return
        self._warned = True
        from ptx.cache.cache_report import CacheWarning  # saves a hit 3 ms

        warnings.warn(
            f"the disk cache of compiled images does not work: {error}. Set CUDADRV_CACHE_DIR to a "
            "folder of your own, or CUDADRV_CACHE_MAX_MB=0 to do without",
            CacheWarning,
            stacklevel=2,
        )
