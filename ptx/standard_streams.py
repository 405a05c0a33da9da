"""Standard output and standard error, which a process may lack: `python` under `>&-`, `pythonw`.

Then `sys.stdout` and `sys.stderr` are None, and `print(..., file=None)` writes to the other one.
"""

from __future__ import annotations

import sys
from typing import TextIO

from ptx.visible_text import visible


def write_output(text: str) -> None:
    """Write a text to standard output, if there is one."""
    stream: TextIO | None = sys.stdout  # typeshed does not know None
    if stream is not None:
        stream.write(text)


def flush_output() -> None:
    """Write what standard output has buffered, if there is one."""
    stream: TextIO | None = sys.stdout
    if stream is not None:
        stream.flush()


def write_error(text: str) -> None:
    """Write a text to standard error at once, if there is one that shows it.

    Its control characters are escaped, as reports have names of other people. A report must not
    fail the call that it is about.
    """
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    try:
        stream.write(encodable(visible(text), stream))
        stream.flush()
    except (OSError, ValueError):
        return  # it was closed, or is full


def encodable(text: str, stream: TextIO) -> str:
    """Return a text with the characters escaped that the encoding of a stream lacks."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
