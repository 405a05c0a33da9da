"""What a cache did, in this process and in those that ended.

It is counted in memory, and added to a file in the cache's folder when the process ends.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

_FILE = "statistics"
_COMPACT_NBYTES = 64 * 1024


@dataclass(slots=True)
class Tally:
    """Counts of one cache in one process; bytes are of whole entries, times in milliseconds.

    `saved_ms` is what the images cost when they were made, over all hits, less what reading them
    took. `waited` are misses that another thread or process turned into hits. `refused` are entries
    that were damaged or not to be trusted, `failed` writes that the file system refused.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    misses: int = 0
    compiled: int = 0
    linked: int = 0
    waited: int = 0
    uncacheable: int = 0
    refused: int = 0
    failed: int = 0
    evicted: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    build_ms: float = 0.0
    saved_ms: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, float]) -> Tally:
        """The tally of counts by name; those that are missing are zero."""
        tally = cls()
        for name, count in counts.items():
            setattr(tally, name, count)
        return tally

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Tally)))

    def counts(self) -> dict[str, float]:
        """The counts by name, without those that are zero."""
        values = {field.name: getattr(self, field.name) for field in fields(Tally)}
        return {name: value for name, value in values.items() if value}

    @property
    def hits(self) -> int:
        """Requests answered without compiling."""
        return self.memory_hits + self.disk_hits


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """A cache's counts and what lies on disk now.

    `process` is this cache in this process, `lifetime` every process that ended, and this one.
    `folder` is None where there is no disk cache.
    """

    folder: Path | None
    max_bytes: int
    entries: int
    disk_bytes: int
    memory_images: int
    memory_bytes: int
    process: Tally
    lifetime: Tally


class Counter:
    """Counts by the names of `Tally`, in which threads may count at once."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._counts: dict[str, float] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def add(self, **counts: float) -> None:
        """Add to the counts of these names."""
        if os.getpid() != self._pid:  # the parent's counts are the parent's to write down
            self._begin()
        with self._lock:
            for name, count in counts.items():
                self._counts[name] = self._counts.get(name, 0) + count

    def read(self) -> dict[str, float]:
        """The counts so far, without those that are zero."""
        if os.getpid() != self._pid:
            return {}
        with self._lock:
            return {name: count for name, count in self._counts.items() if count}


def add_counts(folder: Path, counter: Counter) -> None:
    """Add a process's counts to the folder's, at its end."""
    add_to_file(folder, counter.read())


def sum_of_file(folder: Path) -> Tally:
    """The counts of every process that ended."""
    total = Tally()
    try:
        text = (folder / _FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return total
    for line in text.splitlines():
        try:
            total += Tally(**json.loads(line))
        except (ValueError, TypeError):
            continue  # two processes wrote at once, or the file is damaged
    return total


def add_to_file(folder: Path, counts: Mapping[str, float]) -> None:
    """Add counts to the folder's; losing them to a fault, such as a missing folder, is harmless."""
    if not counts:
        return
    try:
        path = folder / _FILE
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "ab") as file:
            file.write(f"{json.dumps(counts)}\n".encode())
            grown = file.tell() > _COMPACT_NBYTES
        if grown:
            total = sum_of_file(folder)
            path.unlink()
            add_to_file(folder, total.counts())
    except OSError:
        pass
