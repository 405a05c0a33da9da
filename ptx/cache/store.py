"""Entries on disk: one file each, the least recently used evicted when they grow too many.

Everything that is removed is known by its name's form, so that a folder may hold the user's own
files beside the cache's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from ptx.cache import statistics, toolchain
from ptx.cache.folder import WAIT_SECONDS, PrivateFolder, UntrustedFolderError, exclusive

_SUFFIX: Final = ".image"
_IMAGE: Final = re.compile(r"[0-9a-f]{64}\.image")
_MEMO: Final = re.compile(r"[0-9a-f]{32}\.memo")
_HEADERS: Final = re.compile(r"headers-\d+\.\d+")
_KEPT_SHARE: Final = 0.9
_WRITES_BETWEEN_COUNTS: Final = 32


class Store:
    """Images and memos in a folder, bounded by `max_bytes` together.

    Memos are of headers, and of what the assembler said of a text.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.top: PrivateFolder = PrivateFolder(path)
        self.images: PrivateFolder = self.top.below("images")
        self.memos: PrivateFolder = self.top.below("memos")
        self.max_bytes = max_bytes
        self._locks = self.top.below("locks")
        self._known_bytes: int | None = None
        self._writes = 0

    def read(self, digest: str) -> bytes | None:
        """The bytes of an entry, or None; reading it makes it recently used.

        Raises:
            OSError: the entry cannot be read, or the folder is not to be trusted.
        """
        return self.images.read(digest + _SUFFIX, self.max_bytes, use=True)

    def write(self, digest: str, data: bytes) -> int:
        """Keep an entry, and evict others where there are too many; how many went.

        Raises:
            OSError: there is no room, no right or no trust.
        """
        self.images.write(digest + _SUFFIX, data)
        return self._make_room(len(data))

    def has(self, digest: str) -> bool:
        """Whether there is an entry, of whatever content."""
        return self.images.has(digest + _SUFFIX)

    def remove(self, digest: str) -> None:
        """Drop an entry."""
        self.images.remove([digest + _SUFFIX])

    def untrusted(self) -> UntrustedFolderError | None:
        """What is wrong with the first folder that others could have written, None if all is well.

        Without memos each process reads the headers, without locks several make one image.
        """
        try:
            for folder in (self.images, self.memos, self._locks):
                with contextlib.suppress(FileNotFoundError):
                    folder.check()
        except UntrustedFolderError as error:
            return error
        except OSError:
            pass  # whoever reads or writes there is told
        return None

    def lock(
        self, digest: str, wait_seconds: float = WAIT_SECONDS
    ) -> contextlib.AbstractContextManager[bool]:
        """Keep other processes from making the same image; False where there are no locks.

        The wait ends early when the entry appears. 256 lock files serve all entries.
        """
        lock_file = self._locks.lock_file(digest[:2])
        return exclusive(lock_file, lambda: self.has(digest), wait_seconds)

    def digests(self) -> list[str]:
        """The key digests of all entries, the most recently used first."""
        found = sorted(self.images.files(_IMAGE), key=lambda file: file.used_at, reverse=True)
        return [file.name.removesuffix(_SUFFIX) for file in found]

    def usage(self) -> tuple[int, int]:
        """How many entries there are, and the bytes of all files that count."""
        files = self.images.files(_IMAGE)
        return len(files), sum(file.nbytes for file in (*files, *self.memos.files(_MEMO)))

    def clear(self) -> int:
        """Remove what the cache keeps, and nothing else; how many entries went."""
        entries = self.images.remove(file.name for file in self.images.files(_IMAGE))
        self.memos.remove(file.name for file in self.memos.files(_MEMO))
        for folder in (self.images, self.memos, self.top):
            folder.remove_unfinished(at_once=True)
        self.top.remove([toolchain.FILE, statistics.FILE])
        self._remove_headers()
        self._known_bytes = None
        return entries

    def _remove_headers(self) -> None:
        """Remove the headers that NVRTC unpacked here; it marks their folder."""
        with contextlib.suppress(OSError):
            names = [name for name in os.listdir(self.top.path) if _HEADERS.fullmatch(name)]
            for name in names:
                if self.top.below(name).has(".nvrtc_headers_version"):
                    shutil.rmtree(self.top.path / name, ignore_errors=True)

    def _make_room(self, added: int) -> int:
        self._writes += 1
        if self._known_bytes is None or self._writes % _WRITES_BETWEEN_COUNTS == 0:
            _, self._known_bytes = self.usage()
            for folder in (self.images, self.memos, self.top):
                folder.remove_unfinished()
        else:
            self._known_bytes += added
        if self._known_bytes <= self.max_bytes:
            return 0
        return self._evict()

    def _evict(self) -> int:
        """Drop the least recently used until a tenth is free, so that not every write evicts."""
        kept = [(file, self.images) for file in self.images.files(_IMAGE)]
        kept += [(file, self.memos) for file in self.memos.files(_MEMO)]
        total = sum(file.nbytes for file, _ in kept)
        evicted = 0
        for file, folder in sorted(kept, key=lambda each: (each[0].used_at, each[0].name)):
            if total <= self.max_bytes * _KEPT_SHARE:
                break
            evicted += folder.remove([file.name])
            total -= file.nbytes
        self._known_bytes = total
        return evicted
