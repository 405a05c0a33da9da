"""Reports of a cache: statistics, explanations of misses, verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

__all__ = ["CacheWarning", "Explanation", "Verification"]


class CacheWarning(UserWarning):
    """Images cannot be cached on disk; everything works, but is compiled in each process."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request would miss.

    `hit` is True if it would not. `nearest` is the digest of the entry that differs least, None in
    an empty cache; `differing` describes the parts of the key that differ from that entry's.
    `reason` is set if the image cannot be cached at all.
    """

    digest: str
    hit: bool
    nearest: str | None = None
    differing: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"not cacheable: {self.reason}"
        if self.hit:
            return "a hit"
        if self.nearest is None:
            return "a miss: the cache holds no entry to compare with"
        return f"a miss: the nearest entry differs in {'; '.join(self.differing)}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The number of entries read, and the digests of those that are damaged or not trusted."""

    checked: int
    damaged: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    """Counts of one cache in one process; bytes are of whole entries, times in milliseconds.

    `saved_ms` is the build time of all hits, less the time to read them. `waited` are misses that
    another thread or process turned into hits. `rejected` are entries that were damaged or not
    trusted, `failed` writes that the file system rejected.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    misses: int = 0
    compiled: int = 0
    linked: int = 0
    waited: int = 0
    uncacheable: int = 0
    rejected: int = 0
    failed: int = 0
    evicted: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    build_ms: float = 0.0
    saved_ms: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, float]) -> Tally:
        """The tally of counts by name; missing ones are zero, others are another version's."""
        tally = cls()
        for field in fields(cls):
            count = counts.get(field.name, 0)
            is_time = field.name.endswith("_ms")  # the file has floats; only times are floats here
            setattr(tally, field.name, count if is_time else int(count))
        return tally

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Tally)))

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
