"""Counts of what a cache does: in memory, and added to a file when the process ends.

`ptx.cache.statistics` says what they mean; most starts never ask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

FILE = "statistics"
_COMPACT_NBYTES = 64 * 1024


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


def add_to_file(folder: Path, counts: Mapping[str, float]) -> None:
    """Add counts to the folder's; losing them to a fault, such as a missing folder, is harmless."""
    if not counts:
        return
    # JSON, whose module costs a start more than a millisecond.
    line = "{" + ", ".join(f'"{name}": {count!r}' for name, count in counts.items()) + "}\n"
    try:
        path = folder / FILE
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "ab") as file:
            file.write(line.encode())
            grown = file.tell() > _COMPACT_NBYTES
        if grown:
            from ptx.cache.statistics import sum_of_file

            total = sum_of_file(folder)
            path.unlink()
            add_to_file(folder, total.counts())
    except OSError:
        pass
