"""The fenced blocks of a page, and what the comments before them say.

A comment stands in the line before a block:

- ``<!-- file: PATH -->``: the block is a file, written into the page's folder.
- ``<!-- raises -->``: the block raises; the `output` block behind it has the error's text.
- ``<!-- fails -->``: a command of the block exits with a status other than 0.
- ``<!-- not run: WHY -->``: the block is another program's, or changes the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>[\w-]+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        language: what stands behind the fence, such as "python".
        text: what is in it.
        mark: the comment before it, "" without one.
        line: the line of the page in which the text begins, counted from 1.
        start, end: where the text lies in the page.
    """

    language: str
    text: str
    mark: str
    line: int
    start: int
    end: int

    @property
    def file(self) -> str | None:
        """The file that the block is, or None."""
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else None

    def write_to(self, folder: Path) -> None:
        """Write it into a folder, if it is a file."""
        if self.file is not None:
            path = folder / self.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text)

    @property
    def not_run(self) -> str | None:
        """Why it is not run, or None."""
        start = "not run: "
        return self.mark.removeprefix(start) if self.mark.startswith(start) else None


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in its order."""
    text = page.read_text()
    return [
        Block(
            match["language"],
            match["text"],
            match["mark"] or "",
            text.count("\n", 0, match.start("text")) + 1,
            match.start("text"),
            match.end("text"),
        )
        for match in _BLOCK.finditer(text)
    ]
