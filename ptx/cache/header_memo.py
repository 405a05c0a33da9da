"""What header files hold, remembered by path, size and time, in memory and on disk."""

from __future__ import annotations

import json
import os
import stat
import time
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from ptx.cache.folder import open_into
from ptx.cache.scan import References, scan
from ptx.cache.seal import UNREADABLE, seal, unseal

RACY_NS = 2_000_000_000
"""A file changed less than this before it was read may change again under the same time stamp
(a file system's clock can be that coarse): it is used but not remembered."""

Stamp: TypeAlias = tuple[int, int, int, int]
"""A file's size, times of its content and of its entry in the file system, and its number."""


@dataclass(frozen=True, slots=True)
class Header:
    """One header file: when it was read, the hash of its bytes, what it refers to."""

    stamp: Stamp
    digest: str
    references: References


class HeaderMemo:
    """Headers by path. Bound: as many as sources reach, a few hundred bytes each.

    A lookup costs one `stat`. Threads may share it: a race reads a file twice at worst.
    """

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}
        self.read_count: int = 0

    def header(self, path: str) -> Header | None:
        """What a file holds now, or None where there is no such file that can be read."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        known = self._headers.get(path)
        if known is not None and known.stamp == _stamp(found):
            return known
        if not stat.S_ISREG(found.st_mode):
            return None
        now = time.time_ns()
        read = _read(path)
        if read is None:
            return None
        stamp, content = read
        self.read_count += 1
        header = Header(stamp, sha256(content).hexdigest(), scan(content))
        if max(stamp[1:3]) + RACY_NS < now:
            self._headers[path] = header
        else:
            self._headers.pop(path, None)
        return header

    def to_bytes(self, paths: list[str]) -> bytes:
        """What is remembered of these files, to be kept on disk."""
        known = {path: self._headers[path] for path in paths if path in self._headers}
        return seal(
            json.dumps(
                {p: [h.stamp, h.digest, astuple(h.references)] for p, h in known.items()},
                separators=(",", ":"),
            ).encode("utf-8", "surrogatepass")
        )

    def add(self, data: bytes) -> None:
        """Remember what another process found; damaged bytes add nothing."""
        content = unseal(data)
        if content is None:
            return
        try:
            found = {path: _header(*value) for path, value in json.loads(content).items()}
        except UNREADABLE:
            return  # written by another version of this package
        for path, header in found.items():
            self._headers.setdefault(path, header)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _read(path: str) -> tuple[Stamp, bytes] | None:
    """A regular file's bytes, and its stamp from before they were read."""
    # O_NONBLOCK: another may put a FIFO there at any time.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    opened: list[int] = []
    try:
        found = os.fstat(open_into(opened, path, flags))
        if not stat.S_ISREG(found.st_mode):
            return None
        with open(opened[0], "rb", closefd=False) as file:
            return _stamp(found), file.read()
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)


# Any: JSON as `to_bytes` writes it; another shape fails in here.
def _header(stamp: Any, digest: Any, references: Any) -> Header:
    quoted, angled, following, computed, definitions, opaque = references
    size, changed, moved, inode = stamp
    return Header(
        (size, changed, moved, inode),
        digest,
        References(
            tuple(quoted),
            tuple(angled),
            tuple(following),
            tuple(computed),
            tuple((macro, header) for macro, header in definitions),
            opaque,
        ),
    )
