"""Where images are kept, and whether what lies there may be believed.

Only files of this user that nobody else can write are read; new ones are private to the user.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path

DEFAULT_MAX_BYTES = 512 * 1024 * 1024
_TEMPORARY = ".new-"
_MAGIC = b"cudadrv cache 1\n"
_NBYTES_OF_SUM = 32
_OVERHEAD = len(_MAGIC) + _NBYTES_OF_SUM


class UntrustedFolderError(OSError):
    """The folder is another user's, or anybody can write to it."""


def folder_from_environment() -> Path:
    """`CUDADRV_CACHE_DIR`, or the platform's cache folder for this user."""
    if named := os.environ.get("CUDADRV_CACHE_DIR"):
        return Path(named).expanduser()
    import platformdirs  # saves 2 ms where the folder is named

    return Path(platformdirs.user_cache_dir("cudadrv", appauthor=False))


def max_bytes_from_environment() -> int:
    """`CUDADRV_CACHE_MAX_MB` in bytes; 0 means no cache on disk.

    Raises:
        ValueError: it is set to something that is not a number.
    """
    text = os.environ.get("CUDADRV_CACHE_MAX_MB")
    if text is None or not text.strip():
        return DEFAULT_MAX_BYTES
    try:
        return max(0, int(float(text) * 1024 * 1024))
    except (ValueError, OverflowError):
        raise ValueError(
            f"CUDADRV_CACHE_MAX_MB={text!r} is not a number of megabytes (0 turns the cache off)"
        ) from None


class PrivateFolder:
    """A folder of this user's files: read when trusted, written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ensure(self) -> None:
        """Make the folder where it is missing.

        Raises:
            OSError: it cannot be made, or is not to be trusted.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check()

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None where there is none that may be believed.

        Raises:
            OSError: the folder itself is not to be trusted.
        """
        try:
            self._check()
            # O_NOFOLLOW: a link could lead to a file of this user that was never an entry.
            flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self.path / name, flags)
        except UntrustedFolderError:
            raise
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            if not _private(os.fstat(descriptor)):
                return None
            try:
                return file.read()
            except OSError:
                return None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place whole: under another name first, then renamed.

        Raises:
            OSError: there is no room, no right, or no trust; nothing is left behind.
        """
        self.ensure()
        temporary = self.path / f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, self.path / name)
        except BaseException:
            remove(temporary)
            raise

    def files(self) -> list[os.DirEntry[str]]:
        """The files in place, without unfinished ones."""
        try:
            with os.scandir(self.path) as found:
                return [e for e in found if e.is_file() and not e.name.startswith(_TEMPORARY)]
        except OSError:
            return []

    def unfinished(self) -> list[os.DirEntry[str]]:
        """Files that a process is writing, or was when it died."""
        try:
            with os.scandir(self.path) as found:
                return [e for e in found if e.name.startswith(_TEMPORARY)]
        except OSError:
            return []

    def _check(self) -> None:
        found = os.stat(self.path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(f"{self.path} is not a folder")
        if os.name == "nt":
            return
        if found.st_uid != os.geteuid():
            raise UntrustedFolderError(f"{self.path} belongs to user {found.st_uid}, not to you")
        if found.st_mode & stat.S_IWOTH:
            raise UntrustedFolderError(f"{self.path} is writable by everybody (chmod 700 mends it)")


def remove(path: str | os.PathLike[str]) -> bool:
    """Remove a file if that is possible; another process may have been quicker."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _private(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if os.name == "nt":
        return True
    writable_by_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and not writable_by_others


def seal(content: bytes) -> bytes:
    """The content behind a mark and the SHA-256 of mark and content."""
    return b"".join((_MAGIC, sha256(_MAGIC + content).digest(), content))


def unseal(data: bytes) -> bytes | None:
    """The content, or None for bytes that `seal` did not give: damage is seen before belief."""
    start = len(_MAGIC)
    if data[:start] != _MAGIC:
        return None
    content = data[_OVERHEAD:]
    if data[start:_OVERHEAD] != sha256(_MAGIC + content).digest():
        return None
    return content
