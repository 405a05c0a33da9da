"""What is wrong with a PTX text, and where."""

from __future__ import annotations

from ptx.errors import PtxError


class PtxSyntaxError(PtxError):
    """A PTX text that cannot be read, with the 1-based line and column of the first wrong place.

    The message shows the line of text with a caret under the place.
    """

    def __init__(self, message: str, *, line: int, column: int, source_line: str, width: int = 1):
        self.reason = message
        self.line = line
        self.column = column
        shown = source_line.replace("\t", " ").rstrip()
        caret = " " * (column - 1) + "^" * max(1, min(width, len(shown) - column + 1))
        super().__init__(f"PTX line {line}, column {column}: {message}\n  {shown}\n  {caret}")


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
