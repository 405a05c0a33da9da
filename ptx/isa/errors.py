"""Errors in PTX text, with their positions."""

from __future__ import annotations

from ptx.errors import PtxError

_WIDTH = 100  # characters of a line of the message
_BEFORE = 60  # of a long line, characters shown before the place


class PtxSyntaxError(PtxError):
    """A PTX text that cannot be read, with the 1-based line and column of the first wrong place.

    The message shows the line of text, or the part of a long one around the place, with a caret.
    """

    def __init__(self, message: str, *, line: int, column: int, source_line: str, width: int = 1):
        self.reason = message
        self.line = line
        self.column = column
        head = f"PTX line {line}, column {column}: {message}"
        first = max(0, column - 1 - _BEFORE) if len(source_line) > _WIDTH - 2 else 0
        shown = source_line[first : first + _WIDTH - 2].replace("\t", " ").rstrip()
        indent = column - 1 - first
        caret = " " * indent + "^" * max(1, min(width, len(shown) - indent))
        super().__init__(f"{shortened(head, _WIDTH)}\n  {shown}\n  {caret}")


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def syntax_error(text: str, offset: int, message: str, width: int = 1) -> PtxSyntaxError:
    """The error for character `offset` of `text`."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    source_line = text[start : end if end >= 0 else len(text)]
    return PtxSyntaxError(
        message,
        line=text.count("\n", 0, offset) + 1,
        column=offset - start + 1,
        source_line=source_line,
        width=width,
    )
