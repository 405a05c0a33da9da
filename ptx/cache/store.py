"""Entries on disk: one file each, the least recently used evicted when they grow too many."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from ptx.cache.folder import PrivateFolder, remove
from ptx.cache.lock import exclusive

_SUFFIX = ".image"
_STALE_SECONDS = 3600.0
_KEPT_SHARE = 0.9
_WRITES_BETWEEN_COUNTS = 32


class Store:
    """Images and header memos in a folder, bounded by `max_bytes` together."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.top = PrivateFolder(path)
        self.images = PrivateFolder(path / "images")
        self.memos = PrivateFolder(path / "memos")
        self.max_bytes = max_bytes
        self._known_bytes: int | None = None
        self._writes = 0

    def read(self, digest: str) -> bytes | None:
        """The bytes of an entry, or None; reading it makes it recently used.

        Raises:
            OSError: the folder is not to be trusted.
        """
        data = self.images.read(digest + _SUFFIX)
        if data is not None:
            with contextlib.suppress(OSError):
                os.utime(self.images.path / (digest + _SUFFIX))
        return data

    def write(self, digest: str, data: bytes) -> int:
        """Keep an entry, and evict others where there are too many; how many went.

        Raises:
            OSError: there is no room, no right or no trust.
        """
        self.top.ensure()
        self.images.write(digest + _SUFFIX, data)
        return self._make_room(len(data))

    def has(self, digest: str) -> bool:
        """Whether there is an entry, of whatever content."""
        return os.path.exists(self.images.path / (digest + _SUFFIX))

    def remove(self, digest: str) -> None:
        """Drop an entry."""
        remove(self.images.path / (digest + _SUFFIX))

    def lock(self, digest: str) -> contextlib.AbstractContextManager[bool]:
        """Keep other processes from making the same image; False where there are no locks.

        The wait ends early when the entry appears. 256 lock files serve all entries.
        """
        return exclusive(self.top.path / "locks" / digest[:2], lambda: self.has(digest))

    def digests(self) -> list[str]:
        """The key digests of all entries, the most recently used first."""
        found = [(_used_at(e), e.name) for e in self.images.files() if e.name.endswith(_SUFFIX)]
        return [name.removesuffix(_SUFFIX) for _, name in sorted(found, reverse=True)]

    def usage(self) -> tuple[int, int]:
        """How many entries there are, and the bytes of all files that count."""
        files = self.images.files()
        nbytes = sum(_nbytes(e) for e in (*files, *self.memos.files()))
        return len(files), nbytes

    def clear(self) -> int:
        """Remove what the cache keeps, and nothing else; how many entries went."""
        entries = sum(remove(entry.path) for entry in self.images.files())
        for folder in (self.images, self.memos, self.top):
            for entry in folder.unfinished():
                remove(entry.path)
        for entry in self.memos.files():
            remove(entry.path)
        for name in ("toolchain", "statistics"):
            remove(self.top.path / name)
        for bundle in self.top.path.glob("headers-*"):
            if (bundle / ".nvrtc_headers_version").is_file():
                shutil.rmtree(bundle, ignore_errors=True)
        self._known_bytes = None
        return entries

    def _make_room(self, added: int) -> int:
        self._writes += 1
        if self._known_bytes is None or self._writes % _WRITES_BETWEEN_COUNTS == 0:
            _, self._known_bytes = self.usage()
            self._remove_stale()
        else:
            self._known_bytes += added
        if self._known_bytes <= self.max_bytes:
            return 0
        return self._evict()

    def _evict(self) -> int:
        """Drop the least recently used until a tenth is free, so that not every write evicts."""
        files = [(_used_at(e), _nbytes(e), e.path) for e in self.images.files()]
        files += [(_used_at(e), _nbytes(e), e.path) for e in self.memos.files()]
        total = sum(nbytes for _, nbytes, _ in files)
        evicted = 0
        for _, nbytes, path in sorted(files):
            if total <= self.max_bytes * _KEPT_SHARE:
                break
            evicted += remove(path)
            total -= nbytes
        self._known_bytes = total
        return evicted

    def _remove_stale(self) -> None:
        """Remove what processes left that died while writing."""
        for folder in (self.images, self.memos, self.top):
            for entry in folder.unfinished():
                if time.time() - _used_at(entry) > _STALE_SECONDS:
                    remove(entry.path)


def _used_at(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _nbytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0
