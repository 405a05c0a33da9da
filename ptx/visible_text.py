"""`visible`, `visible_line`: foreign text as a terminal or a page may show it."""

from __future__ import annotations

import re
from typing import Final

_UNUSUAL: Final = re.compile(r"[^ -~\n\t]")


def visible(text: str) -> str:
    """Return a text with its control and format characters escaped, as Python's `repr` does.

    Names, PTX and findings come from other people. A control character can move the cursor or set
    the title of a terminal, and a bidirectional one shows code in another order than it has. Line
    ends and tabs stay.
    """
    return _UNUSUAL.sub(_shown, text)


def visible_line(text: str) -> str:
    """Return a text, such as the path of a file, with its line ends and tabs escaped as well."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
