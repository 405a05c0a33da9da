"""`shown_path`: the form in which messages show the path of a file."""

from __future__ import annotations

import os

from ptx.visible_text import visible_line


def shown_path(path: str) -> str:
    """Return a path relative to the working folder if it is inside of it, else the path itself.

    A line may follow the path. Its control characters and line ends are escaped.
    """
    try:
        folder = os.getcwd()
    except OSError:  # the folder is gone
        return visible_line(path)
    return visible_line(path.removeprefix(f"{folder}{os.sep}"))
