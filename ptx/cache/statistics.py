"""What a cache did, in this process and in those that ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from ptx.cache.counter import FILE


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


def sum_of_file(folder: Path) -> Tally:
    """The counts of every process that ended."""
    total = Tally()
    try:
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return total
    for line in text.splitlines():
        try:
            total += Tally(**json.loads(line))
        except (ValueError, TypeError):
            continue  # two processes wrote at once, or the file is damaged
    return total
