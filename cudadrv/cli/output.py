"""The output of all commands: text on both streams, and tables.

No other file of the commands prints. So all text, which may have names and lines of other people's
files, passes `visible`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from ptx.standard_streams import encodable, write_error
from ptx.visible_text import visible

_CLEAR: Final = "\x1b[H\x1b[2J"  # cursor to the corner, clear the screen: ECMA-48


def print_text(text: object = "") -> None:
    """Print a text on standard output, if the process has one."""
    stream: TextIO | None = sys.stdout  # typeshed does not know None
    if stream is not None:
        print(encodable(visible(str(text)), stream), file=stream, flush=True)


def print_error(text: object) -> None:
    """Print a text on standard error, if the process has one."""
    write_error(f"{text}\n")


class EscapedStream(io.TextIOBase):
    """A stream that escapes all text for another one: of a foreign kernel's printf, say."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write a text; return its characters."""
        if self._stream is not None:
            self._stream.write(visible(text))
        return len(text)


def is_terminal() -> bool:
    """Return whether standard output is a terminal; False if the process has none."""
    stdout: TextIO | None = sys.stdout  # typeshed does not know None
    return stdout is not None and stdout.isatty()


def clear_terminal() -> None:
    """Erase the terminal."""
    print(_CLEAR, end="")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title: with rich on a terminal, else in plain columns."""
    if not rows:
        print_text(f"{title}: none")
        return
    title, rows = visible(title), [list(map(visible, row)) for row in rows]
    if not is_terminal():
        _print_plain(title, columns, rows)
        return
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ModuleNotFoundError:
        _print_plain(title, columns, rows)
        return
    table = Table(title=escape(title), title_justify="left")
    for column in columns:
        numeric = column in ("ms", "device", "MiB")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(soft_wrap=False).print(table)


def _print_plain(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    print_text(title)
    for row in (columns, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_text(f"  {line.rstrip()}")
