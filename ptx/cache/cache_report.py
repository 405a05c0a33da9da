"""What a cache answers when it is asked about itself."""

from __future__ import annotations

from dataclasses import dataclass


class CacheWarning(UserWarning):
    """Images cannot be kept on disk; everything works, but is compiled in each process."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request would miss.

    `hit` says that it would not. `nearest` is the digest of the entry that differs least, None in
    an empty cache; `differing` says in words which parts of the key differ from that entry's.
    `reason` is set where the image cannot be cached at all.
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
    """How many entries were read, and the digests of those that are damaged or not trusted."""

    checked: int
    damaged: tuple[str, ...]
