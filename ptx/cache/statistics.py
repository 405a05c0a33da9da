"""What a cache did, in this process and in those that ended.

It is counted in memory, and added to a file in the cache's folder when the process ends.
"""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Mapping

from ptx.cache.folder import PrivateFolder

FILE = "cudadrv-statistics"
_COMPACT_NBYTES = 64 * 1024
_MOST = 2.0**63


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
        """The counts so far, without those that are zero."""
        if os.getpid() != self._pid:
            return {}
        with self._lock:
            return {name: count for name, count in dict(self._counts).items() if count}


def add_counts(folder: PrivateFolder, counter: Counter) -> None:
    """Add a process's counts to the folder's, at its end."""
    add_to_file(folder, counter.read())


def sum_of_file(folder: PrivateFolder) -> dict[str, float]:
    """The counts of every process that ended."""
    total: dict[str, float] = {}
    try:
        text = (folder.read(FILE) or b"").decode(errors="replace")
    except OSError:
        return total
    for line in text.splitlines():
        try:
            counts = json.loads(line)
        except (ValueError, RecursionError):
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
        nbytes = folder.append(FILE, f"{json.dumps(counts)}\n".encode())
        if nbytes > _COMPACT_NBYTES:
            folder.write(FILE, f"{json.dumps(sum_of_file(folder))}\n".encode())
    except OSError:
        pass
