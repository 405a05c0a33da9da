"""The files on a command line: why one cannot be read or written, before the command works."""

from __future__ import annotations

import os
from pathlib import Path

from ptx.ordinary_files import why_not_ordinary, write_bytes

from .output import print_error


def why_no_file(file: str | os.PathLike[str]) -> str:
    """Return the reason why a file cannot be read; "" if it can."""
    # Functions of os.path: those of Path raise for some names, such as long ones.
    if os.path.isfile(file):
        return ""
    return why_not_ordinary(file) or "there is no such file"


def why_no_output(file: str | os.PathLike[str]) -> str:
    """Return the reason why a file cannot be written; "" if it can."""
    if not os.path.isdir(os.path.dirname(file) or "."):
        return "there is no such folder"
    if os.path.isdir(file):
        return "it is a folder"
    return why_not_ordinary(file, writes=True)


def write_text_file(file: Path, text: str) -> bool:
    """Write a text to a file; return False, after printing why, if it cannot be written."""
    try:
        write_bytes(file, text.encode())
    except OSError as error:
        print_error(f"{file}: cannot be written: {error.strerror or error}")
        return False
    return True
