"""What kernels print: kept together for the launch, written when it ends or fails."""

from __future__ import annotations

import sys

_LARGE = 1 << 20


class Output:
    """Text for the process's standard output.

    A GPU fills a buffer that the host writes out when it synchronises. So does this, so that other
    output does not come between the parts of a line.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Add text; bytes of it come as the characters U+0000 to U+00FF."""
        self._parts.append(text)
        self._size += len(text)
        if self._size > _LARGE:
            self.flush()

    def flush(self) -> None:
        """Write to `sys.stdout`, as it is now, what was added."""
        text, self._parts, self._size = "".join(self._parts), [], 0
        if text:
            sys.stdout.write(text.encode("latin-1").decode(errors="replace"))
