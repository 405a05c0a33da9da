"""Files that a user names: opening one never waits, and reading one has an end.

Ordinary files are opened, and pipes without a name, as a shell makes. A FIFO with a name is not, as
its other end may never come. A device, such as a terminal, is only written.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)
_WHY: Final = "it is not an ordinary file"


def opener(path: str, flags: int) -> int:
    """Open a file as `os.open` does; the `opener` of `open`.

    Raises:
        OSError: it cannot be opened, or is a FIFO with a name, or an endless device to read.
    """
    writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
    try:
        descriptor = os.open(path, flags | _AT_ONCE, 0o666)
    except OSError as error:
        if writes and error.errno == errno.ENXIO:  # a FIFO without a reader
            raise OSError(errno.EINVAL, _WHY, path) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not _is_allowed(path, mode, writes=writes):
            raise OSError(errno.EINVAL, _WHY, path)
        if _AT_ONCE and not stat.S_ISREG(mode):
            os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, or is not an ordinary file.
    """
    with open(path, "rb", opener=opener) as file:
        return file.read()


def read_text(
    path: str | os.PathLike[str], encoding: str | None = None, errors: str | None = None
) -> str:
    """Return the text of a file. A carriage return alone ends no line, as for NVRTC and ptxas.

    Raises:
        OSError: it cannot be read, or is not an ordinary file.
        UnicodeDecodeError: it is no text.
    """
    with open(path, encoding=encoding, errors=errors, opener=opener, newline="") as file:
        return with_line_feeds(file.read())


def with_line_feeds(text: str) -> str:
    """Return a text whose lines end with a line feed alone."""
    return text.replace("\r\n", "\n")


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file.

    Raises:
        OSError: it cannot be written, or is a FIFO with a name.
    """
    with open(path, "wb", opener=opener) as file:
        file.write(data)


def why_not_ordinary(path: str | os.PathLike[str], *, writes: bool = False) -> str:
    """Return the reason why an existing file cannot be read again and again, or written; else "".

    A folder has none, and neither has a path without a file.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return "" if writes and _is_allowed(os.fspath(path), mode, writes=True) else _WHY


def _is_allowed(path: str, mode: int, *, writes: bool) -> bool:
    """Return whether the other end of an open file exists, and reading comes to an end."""
    if stat.S_ISFIFO(mode):
        # A shell's pipe has no name: the program at its other end is running, or has ended.
        return not os.path.lexists(Path(path).resolve())
    return stat.S_ISREG(mode) or (writes and stat.S_ISCHR(mode))
