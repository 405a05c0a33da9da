"""The fenced blocks of a page, and the lines before them.

A path as code, alone in the line before a block, is the file that the block is. It is written into
the page's folder. Or a comment stands there:

- ``<!-- raises -->``: the block raises; the `output` block behind it has the error's text.
- ``<!-- fails -->``: a command of the block exits with a status other than 0.
- ``<!-- not run: WHY -->``: the block is another program's, or changes the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^(?:<!-- (?P<mark>[^\n]*?) -->|`(?P<file>[^\s`]+)`)\n)?"
    r"^```(?P<language>[\w-]+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        language: what stands behind the fence, such as "python".
        text: what is in it.
        mark: the comment before it, "" without one.
        file: the path of the file that it is, or None.
        line: the line of the page in which the text begins, counted from 1.
        start, end: where the text lies in the page.
    """

    language: str
    text: str
    mark: str
    file: str | None
    line: int
    start: int
    end: int

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
            match["file"],
            text.count("\n", 0, match.start("text")) + 1,
            match.start("text"),
            match.end("text"),
        )
        for match in _BLOCK.finditer(text)
    ]
