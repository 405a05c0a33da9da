"""Images on disk: one file each, the least recently used evicted when they grow too many.

A fault of the disk costs speed and one `CacheWarning`, never an error. Entries hold plain values
only; nothing in them is unpickled or run. The cache recognises its files by the form of their
names, so that a folder may hold the user's own files as well. Counts are collected in memory and
added to a file of the folder when the process ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import threading
import time
import warnings
import weakref
from ast import literal_eval
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ptx.cache import toolchain
from ptx.cache.folder import (
    UNREADABLE,
    WAIT_SECONDS,
    PrivateFolder,
    UntrustedFolderError,
    exclusive,
    seal,
    unseal,
)
from ptx.cache.key import Key, sealed_key
from ptx.image import Image, ImageOrigin
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

STATISTICS: Final = "cudadrv-statistics"
"""The file of the counts of all processes, a line for each."""
DEBUG: Final = 10  # logging's levels
INFO: Final = 20
_SUFFIX: Final = ".image"
_IMAGE: Final = re.compile(r"[0-9a-f]{64}\.image")
_MEMO: Final = re.compile(r"[0-9a-f]{32}\.memo")
_HEADERS: Final = re.compile(r"headers-\d+\.\d+")
_KEPT_SHARE: Final = 0.9
_WRITES_BETWEEN_COUNTS: Final = 32
_COMPACT_NBYTES: Final = 64 * 1024
_MOST: Final = 2.0**63


class Store:
    """Images and memos in a folder, bounded by `max_bytes` together.

    Memos are of headers, and of the assembler's results.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.top: PrivateFolder = PrivateFolder(path)
        self.images: PrivateFolder = self.top.below("images")
        self.memos: PrivateFolder = self.top.below("memos")
        self.max_bytes = max_bytes
        self.counter: Counter = Counter()
        self._locks = self.top.below("locks")
        self._known_bytes: int | None = None
        self._writes = 0
        self._warned = False
        self._at_exit = weakref.finalize(self, add_counts, self.top, self.counter)

    def close(self) -> None:
        """Add this process's counts to the folder's, once."""
        self._at_exit()

    def get(self, key: Key) -> Image | None:
        """Return the image of a key, counted as a hit; None where there is no good entry."""
        started = time.perf_counter()
        data = self.read(key.digest)
        image = None if data is None else decode(data, key.digest)
        if data is None or image is None:
            return None
        read_ms = (time.perf_counter() - started) * 1e3
        saved = max(0.0, image.build_ms - read_ms)
        self.counter.add(disk_hits=1, bytes_read=len(data), saved_ms=saved)
        log(DEBUG, "hit: %.12s read in %.2f ms", key.digest, read_ms)
        return image

    def put(self, key: Key, image: Image) -> None:
        """Write an image under its key, and evict others where there are too many."""
        data = encode(image, key)
        if len(data) > self.max_bytes:
            log(INFO, "entry %.12s of %d bytes is above the cache's bound", key.digest, len(data))
            return
        try:
            evicted = self.write(key.digest, data)
            self.counter.add(evicted=evicted, bytes_written=len(data))
        except OSError as error:
            self.counter.add(failed=1)
            self._warn(error)

    def read(self, digest: str) -> bytes | None:
        """Return the bytes of an entry, or None; reading it makes it recently used."""
        try:
            return self.images.read(digest + _SUFFIX, self.max_bytes, use=True)
        except OSError as error:
            self._warn(error)
            return None

    def write(self, digest: str, data: bytes) -> int:
        """Write the bytes of an entry, evict others if needed, and return how many were evicted.

        Raises:
            OSError: no space, no permission, or an untrusted folder.
        """
        self.images.write(digest + _SUFFIX, data)
        return self._make_room(len(data))

    def has(self, digest: str) -> bool:
        """Return whether there is an entry, with any content."""
        return self.images.has(digest + _SUFFIX)

    def holds(self, digest: str) -> bool:
        """Return whether there is a good entry; not counted as a hit."""
        data = self.read(digest)
        return data is not None and decode(data, digest) is not None

    def remove(self, digest: str) -> None:
        """Drop an entry."""
        self.images.remove([digest + _SUFFIX])

    @contextlib.contextmanager
    def making(self, key: Key, *, may_wait: bool) -> Iterator[Image | None]:
        """Have other processes wait while this one makes an image; yield one that was made since.

        Limitation: without locks of the file system several processes make it.
        """
        if self.has(key.digest):
            self.counter.add(rejected=1)
            log(INFO, "entry %.12s is damaged or not to be trusted", key.digest)
        if (untrusted := self._untrusted()) is not None:
            self._warn(untrusted)
        with self.lock(key.digest, WAIT_SECONDS if may_wait else 0.0):
            yield self.get(key)

    def lock(
        self, digest: str, wait_seconds: float = WAIT_SECONDS
    ) -> contextlib.AbstractContextManager[bool]:
        """Keep other processes from making the same image; yield False without locks.

        The wait ends early when the entry appears. 256 lock files serve all entries.
        """
        lock_file = self._locks.lock_file(digest[:2])
        return exclusive(lock_file, lambda: self.has(digest), wait_seconds)

    def digests(self) -> list[str]:
        """The key digests of all entries, the most recently used first."""
        images = sorted(self.images.files(_IMAGE), key=lambda file: file.used_at, reverse=True)
        return [file.name.removesuffix(_SUFFIX) for file in images]

    def entries(self) -> Iterator[tuple[str, Key | None]]:
        """Yield the digest and the key of each entry; no key for one that is damaged."""
        for digest in self.digests():
            data = self.read(digest)
            good = data is not None and decode(data, digest) is not None
            yield digest, decode_key(data) if data is not None and good else None

    def usage(self) -> tuple[int, int]:
        """Return the number of entries, and the bytes of entries and memos."""
        files = self.images.files(_IMAGE)
        return len(files), sum(file.nbytes for file in (*files, *self.memos.files(_MEMO)))

    def clear(self) -> int:
        """Remove the files of the cache, and nothing else; return the number of entries."""
        entries = self.images.remove(file.name for file in self.images.files(_IMAGE))
        self.memos.remove(file.name for file in self.memos.files(_MEMO))
        for folder in (self.images, self.memos, self.top):
            folder.remove_unfinished(at_once=True)
        self.top.remove([toolchain.FILE, STATISTICS])
        self._remove_headers()
        self._known_bytes = None
        return entries

    def _untrusted(self) -> UntrustedFolderError | None:
        """Return the fault of the first folder that other users can write, or None.

        Without memos each process reads the headers, without locks several make one image.
        """
        try:
            for folder in (self.images, self.memos, self._locks):
                with contextlib.suppress(FileNotFoundError):
                    folder.check()
        except UntrustedFolderError as error:
            return error
        except OSError:
            pass  # a read or a write there warns
        return None

    def _warn(self, error: OSError) -> None:
        log(INFO, "cache folder: %s", error)
        if not self._warned:
            self._warned = True
            warn_of(error)

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
        entries = [(file, self.images) for file in self.images.files(_IMAGE)]
        entries += [(file, self.memos) for file in self.memos.files(_MEMO)]
        total = sum(file.nbytes for file, _ in entries)
        evicted = 0
        for file, folder in sorted(entries, key=lambda entry: (entry[0].used_at, entry[0].name)):
            if total <= self.max_bytes * _KEPT_SHARE:
                break
            evicted += folder.remove([file.name])
            total -= file.nbytes
        self._known_bytes = total
        return evicted


def encode(image: Image, key: Key) -> bytes:
    """Return the bytes of an entry: a line of the key, a line of the description, data, PTX.

    The lines are Python literals, which are read without loading JSON's module. PTX is left out
    where it is the data.
    """
    target = image.target
    description = (
        (target.kind.value, target.number, target.suffix),
        image.log,
        dict(image.lowered_names),
        image.compiler,
        image.build_ms,
        len(image.data),
        image.ptx is not None,
        "\n".join(signature.to_line() for signature in image.signatures.values()),
    )
    name = repr((key.digest, dict(key.parts), key.headers)).encode()
    text = b"" if image.ptx is None or target.kind is ImageKind.PTX else image.ptx.encode()
    return seal(b"\n".join((name, repr(description).encode(), image.data + text)))


def decode(data: bytes, digest: str) -> Image | None:
    """Return the image of an entry, or None if the bytes are damaged or another key's."""
    content = unseal(data)
    if content is None or not content.startswith(f"('{digest}',".encode()):
        return None
    try:
        _, literal, body = content.split(b"\n", 2)
        # Another shape than `encode` writes fails here.
        target, log_text, names, compiler, build_ms, nbytes, has_ptx, lines = literal_eval(
            literal.decode()
        )
        kind = ImageKind(target[0])
        text = body[:nbytes] if kind is ImageKind.PTX else body[nbytes:]
        signatures = map(KernelSignature.from_line, filter(None, lines.split("\n")))
        return Image(
            target=Target(kind, target[1], target[2]),
            data=body[:nbytes],
            ptx=text.decode() if has_ptx else None,
            log=log_text,
            lowered_names=names,
            signatures={signature.name: signature for signature in signatures},
            compiler=None if compiler is None else (compiler[0], compiler[1]),
            build_ms=build_ms,
            origin=ImageOrigin.DISK,
        )
    except UNREADABLE:
        return None  # sealed by another version of this format


def decode_key(data: bytes) -> Key | None:
    """Return the key of an entry, or None if the bytes are damaged or another digest's."""
    content = unseal(data)
    if content is None:
        return None
    try:
        digest, parts, headers = literal_eval(content.partition(b"\n")[0].decode())
        key = sealed_key(parts, headers)
    except UNREADABLE:
        return None
    return key if key.digest == digest else None


class Counter:
    """Counts by the names of `Tally`, in which threads may count at once."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._counts: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.RLock()  # a finalizer may compile
        self._pid = os.getpid()

    def add(self, **counts: float) -> None:
        """Add to the counts of these names."""
        if os.getpid() != self._pid:  # the parent's counts are the parent's to write down
            self._begin()
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def read(self) -> dict[str, float]:
        """Return the counts so far, without those that are zero."""
        if os.getpid() != self._pid:
            return {}
        with self._lock:
            return {name: count for name, count in dict(self._counts).items() if count}


def add_counts(folder: PrivateFolder, counter: Counter) -> None:
    """Add a process's counts to the folder's, at its end."""
    add_to_file(folder, counter.read())


def sum_of_file(folder: PrivateFolder) -> dict[str, float]:
    """Return the counts of every process that ended."""
    total: dict[str, float] = {}
    try:
        text = (folder.read(STATISTICS) or b"").decode(errors="replace")
    except OSError:
        return total
    for line in text.split("\n"):
        try:
            counts = literal_eval(line)
        except UNREADABLE:
            continue  # two processes wrote at once, or the file is damaged
        if isinstance(counts, dict):
            for name, count in counts.items():
                if isinstance(count, (int, float)) and -_MOST < count < _MOST:
                    total[name] = total.get(name, 0) + count
    return total


def add_to_file(folder: PrivateFolder, counts: Mapping[str, float]) -> None:
    """Add counts to the folder's; losing them to a fault, such as a missing folder, is harmless."""
    if not counts:
        return
    try:
        nbytes = folder.append(STATISTICS, f"{dict(counts)}\n".encode())
        if nbytes > _COMPACT_NBYTES:
            folder.write(STATISTICS, f"{sum_of_file(folder)}\n".encode())
    except OSError:
        pass


def warn_of(error: OSError) -> None:
    """Warn that the disk cache does not work, and how to fix that."""
    from ptx.cache.cache_report import CacheWarning  # saves a hit 3 ms

    warnings.warn(
        f"the disk cache of compiled images does not work: {error}\n"
        "  set CUDADRV_CACHE_DIR to a folder of your own, or CUDADRV_CACHE_MAX_MB=0 to do without",
        CacheWarning,
        stacklevel=2,
    )


def log(level: int, message: str, *values: object) -> None:
    """Log as "ptx.image_cache", without importing `logging`.

    If nothing has imported it, there is no handler for records.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger("ptx.image_cache").log(level, message, *values)
