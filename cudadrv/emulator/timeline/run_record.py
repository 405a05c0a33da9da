"""What ran, in its order."""

from __future__ import annotations

import os
from collections import deque
from typing import Final

from .operation import Operation

_REMEMBERED: Final = 4096
TRACE_VARIABLE: Final = "CUDADRV_EMULATOR_TRACE"
"""The environment variable that names a file, to which each operation that ran adds a line."""


class RunRecord:
    """The operations that ran on one emulator, kept and written to a file.

    Args:
        index: the number of the timeline in this process, which each line begins with.

    Attributes:
        last: the last ones: number, kind, stream.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._trace = os.environ.get(TRACE_VARIABLE, "")
        self.last: deque[str] = deque(maxlen=_REMEMBERED)

    def add(self, operation: Operation) -> None:
        """An operation has run."""
        what = f"{operation.number} {operation.kind.value} on stream {operation.stream.number}"
        self.last.append(what)
        if self._trace:
            with open(self._trace, "a", encoding="utf-8") as file:
                file.write(f"{self._index}.{what}\t{operation.place}\n")
