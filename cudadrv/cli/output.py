"""What the commands print: tables with rich on a terminal, plain columns into a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title; also plainly where rich is not installed."""
    if not sys.stdout.isatty():
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
    print(title)
    for row in (columns, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"  {line.rstrip()}")
