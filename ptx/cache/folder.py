"""The cache's folder: where it is, and files in it that no other user can put there or change.

Each operation opens the folder once and checks its owner. It then names files within the opened
folder, so that another folder put in its place changes nothing. A folder that is not private is
neither read nor written. Links are not followed, and nothing waits for a FIFO.

Files are sealed, so that damage is detected before the content is used. Locks let one process at a
time make an image. The system frees the lock of a process that dies. A process that hangs, or a
file system without locks, costs a second compilation, because the wait has a limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import time
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from ptx.argument_checks import LARGEST, integer_of_text, shown
from ptx.base_errors import PtxArgumentValueError, PtxError

_MAGIC: Final = b"cudadrv cache 1\n"
_NBYTES_OF_SUM: Final = 32
_OVERHEAD: Final = len(_MAGIC) + _NBYTES_OF_SUM

UNREADABLE: Final = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    SyntaxError,
    RecursionError,
    MemoryError,
)
"""Errors of reading a value that another version of this package wrote. The parser raises
MemoryError for a literal that is nested too deeply."""


def seal(content: bytes) -> bytes:
    """Return the content after a mark and the SHA-256 of mark and content."""
    return b"".join((_MAGIC, sha256(_MAGIC + content).digest(), content))


def unseal(data: bytes) -> bytes | None:
    """Return the content, or None for bytes that `seal` did not make."""
    start = len(_MAGIC)
    if data[:start] != _MAGIC:
        return None
    content = data[_OVERHEAD:]
    if data[start:_OVERHEAD] != sha256(_MAGIC + content).digest():
        return None
    return content


_MIB: Final = 1 << 20
MOST_BYTES: Final = 64 * _MIB
"""The most bytes of a file that is no image."""
DEFAULT_MAX_BYTES: Final = 512 * _MIB
_MOST_MIB: Final = LARGEST // _MIB - 1


class NoCacheFolderError(PtxError, OSError):
    """There is no folder for images, as there is no home folder."""


def folder_from_environment() -> Path:
    """`CUDADRV_CACHE_DIR`, or the platform's cache folder for this user.

    Raises:
        NoCacheFolderError: there is no such folder, as in a container without users.
    """
    setting = os.environ.get("CUDADRV_CACHE_DIR", "")
    if setting.strip():
        try:
            return Path(setting).expanduser()
        except RuntimeError:
            raise NoCacheFolderError(
                f"CUDADRV_CACHE_DIR={setting!r} begins with a home folder that is not known"
            ) from None
    import platformdirs  # saves 2 ms where the folder is named

    try:
        path = Path(platformdirs.user_cache_dir("cudadrv", appauthor=False))
    except RuntimeError:  # older versions give a relative path instead, or one from an empty HOME
        path = Path()
    lost = os.environ.get("HOME") == "" and path.parent == Path("/.cache")
    if lost or not path.is_absolute():
        raise NoCacheFolderError("there is no home folder (HOME is not set, empty or relative)")
    return path


def cache_settings() -> tuple[Path | None, int]:
    """Return the folder of images, and the bound of its bytes by `CUDADRV_CACHE_MAX_MB`.

    The folder is None where the user turned it off by 0, or where there is no home folder.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number in digits.
    """
    text = os.environ.get("CUDADRV_CACHE_MAX_MB", "").strip()
    whole, dot, fraction = text.partition(".")
    mib = integer_of_text(whole, most=_MOST_MIB) if text else DEFAULT_MAX_BYTES // _MIB
    if mib is None or (dot and integer_of_text(fraction, most=None) is None):
        raise PtxArgumentValueError(
            f"CUDADRV_CACHE_MAX_MB={shown(text)} is not a number of megabytes\n"
            "  use digits alone, such as 512 or 0.5; 0 turns the cache off"
        )
    max_bytes = mib * _MIB + int(float(f"0.{fraction or 0}") * _MIB)
    try:
        return folder_from_environment() if max_bytes else None, max_bytes
    except OSError:
        return None, max_bytes  # a cache finds that out as well, and warns once


WAIT_SECONDS: Final = 120.0
_LONGEST_SLEEP: Final = 0.05

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def take(descriptor: int) -> bool:
    """Take a file's lock, until the file is closed; False if another has it.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        _try(descriptor)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextlib.contextmanager
def exclusive(
    lock_file: contextlib.AbstractContextManager[int],
    settled: Callable[[], bool],
    wait_seconds: float = WAIT_SECONDS,
) -> Iterator[bool]:
    """Hold the lock of a file that is opened for it; False where it was not had.

    Waiting ends early when `settled()` returns True, because the lock is no longer needed. The file
    stays: removing it would let two processes hold a lock of the same name.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(lock_file)
        except OSError:
            yield False
            return
        try:
            yield _acquire(descriptor, settled, wait_seconds)
        finally:
            with contextlib.suppress(OSError):  # which was perhaps not had
                _release(descriptor)  # a forked child may have the file open, too


def _acquire(descriptor: int, settled: Callable[[], bool], wait_seconds: float) -> bool:
    deadline = time.monotonic() + wait_seconds
    pause = 0.001
    while True:
        try:
            if take(descriptor):
                return True
        except OSError:
            return False
        if settled() or time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_SLEEP)


_POSIX: Final = sys.platform != "win32"
_SAFE: Final = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_UNFINISHED: Final = re.compile(r"\.new-\d+-[0-9a-f]{16}")
_MOST_SKEW_SECONDS: Final = 3600.0
"""Clocks of machines that share a folder differ by less; later dates are ignored."""
_NO_FILE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EMLINK, errno.ENXIO}
)
"""There is nothing of the name, or a folder, a link or a socket."""
_ATTEMPTS: Final = 3
_DEAD_SECONDS: Final = 10.0
"""A file that is this old and has a writer has that writer's lock."""


class UntrustedFolderError(PtxError, OSError):
    """The folder, or a file in it, is another user's, or others can write to it."""


class StoredFile(NamedTuple):
    """A file of a folder; `used_at` is when it was last used, 0 where its date is no past one."""

    name: str
    nbytes: int
    used_at: float


class PrivateFolder:
    """A folder of this user's files: read when trusted, written whole or not at all.

    One that is `below` another is trusted only if that one is.
    """

    def __init__(self, path: Path, parent: PrivateFolder | None = None) -> None:
        self.path = path
        self._above = parent
        # Before a name: within the opened folder where the system has such, else its path.
        self._prefix = "" if _POSIX else f"{path}{os.sep}"

    def below(self, name: str) -> PrivateFolder:
        """The folder of this name in this one."""
        return PrivateFolder(self.path / name, self)

    def ensure(self) -> None:
        """Make the folder where it is missing, and those above, for this user alone.

        Raises:
            OSError: it cannot be made, or is not to be trusted.
        """
        if self._above is None:
            _make(self.path)
        else:
            self._above.ensure()
            with self._above._opened() as parent_descriptor, contextlib.suppress(FileExistsError):
                os.mkdir(self._above._prefix + self.path.name, 0o700, dir_fd=parent_descriptor)
        self.check()

    def check(self) -> None:
        """Check that the folder exists and is to be trusted.

        Raises:
            OSError: it is not there, or not to be trusted.
        """
        with self._opened():
            pass

    def read(self, name: str, most: int = MOST_BYTES, *, use: bool = False) -> bytes | None:
        """Return the bytes of a file, or None where there is none that may be trusted.

        None as well for more than `most` bytes: a damaged file may have any size. With `use` its
        date is set to now.

        Raises:
            UntrustedFolderError: the folder itself is not to be trusted.
            OSError: the file cannot be read.
        """
        try:
            with self._file(name, os.O_RDONLY) as descriptor:
                status = os.fstat(descriptor)
                if not _private(status) or status.st_size > most:
                    return None
                if use and status.st_nlink == 1:  # a hard link's date is another file's, too
                    with contextlib.suppress(OSError):
                        os.utime(descriptor if _POSIX else self.path / name)
                with open(descriptor, "rb", closefd=False) as file:
                    return file.read()
        except OSError as error:
            # Without POSIX files, a file that is being replaced cannot be read, either.
            if _POSIX and error.errno not in _NO_FILE:
                raise
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place whole: under another name first, then renamed.

        Raises:
            OSError: no space, no permission, or an untrusted folder; no partial file remains.
        """
        for _ in range(_ATTEMPTS):
            try:
                self._write(name, data)
                return
            except FileNotFoundError:  # there is no folder yet, or somebody removed or cleared it
                self.ensure()
        self._write(name, data)

    def read_literal(self, name: str) -> object:
        """Return the Python literal that `write_literal` put into a file, or None."""
        try:
            content = unseal(self.read(name) or b"")
            return literal_eval(content.decode()) if content else None
        except (OSError, *UNREADABLE):
            return None

    def write_literal(self, name: str, value: object) -> None:
        """Put a Python literal into a file, as far as that is possible.

        Literals are read without loading JSON's module.
        """
        with contextlib.suppress(OSError):
            self.write(name, seal(repr(value).encode()))

    def append(self, name: str, data: bytes) -> int:
        """Add to the end of a file; its size then. The folder is not made for it.

        Raises:
            OSError: no space, no permission, or an untrusted folder.
        """
        with self._file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
            status = os.fstat(descriptor)
            if not _private(status) or status.st_nlink > 1:
                raise UntrustedFolderError(f"{self.path / name} is not a file of yours alone")
            os.write(descriptor, data)
            return os.fstat(descriptor).st_size

    @contextlib.contextmanager
    def lock_file(self, name: str) -> Iterator[int]:
        """The descriptor of a file to lock, which is made where it is missing.

        Raises:
            OSError: it cannot be had, or another user could hold its lock.
        """
        self.ensure()
        with self._file(name, os.O_RDWR | os.O_CREAT) as descriptor:
            status = os.fstat(descriptor)
            if not _private(status) or (_POSIX and status.st_mode & 0o077):
                raise UntrustedFolderError(f"{self.path / name} is not a file of yours alone")
            yield descriptor

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name, with any content."""
        try:
            with self._opened() as folder:
                status = os.stat(self._prefix + name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode)

    def files(self, pattern: re.Pattern[str]) -> list[StoredFile]:
        """The files whose whole name has this form; none where the folder is not to be trusted."""
        try:
            with (
                self._opened() as folder,
                os.scandir(self.path if folder is None else folder) as entries,
            ):
                return [file for e in entries if pattern.fullmatch(e.name) and (file := _stored(e))]
        except OSError:
            return []

    def remove(self, names: Iterable[str]) -> int:
        """Remove files as far as possible; return how many, as other processes may be quicker."""
        removed = 0
        with contextlib.suppress(OSError), self._opened() as folder:
            for name in names:
                with contextlib.suppress(OSError):
                    os.unlink(self._prefix + name, dir_fd=folder)
                    removed += 1
        return removed

    def remove_unfinished(self, *, at_once: bool = False) -> None:
        """Remove files of processes that died while writing.

        A writer holds its file's lock. `at_once` does not wait until a writer must have taken it.
        Without locks, only the file's age counts.
        """
        limit = time.time() - _DEAD_SECONDS
        unfinished = (f for f in self.files(_UNFINISHED) if at_once or f.used_at <= limit)
        self.remove([file.name for file in unfinished if self._is_unfinished(file)])

    def _is_unfinished(self, file: StoredFile) -> bool:
        try:
            with self._file(file.name, os.O_WRONLY) as descriptor:
                return take(descriptor)
        except OSError:
            return time.time() - file.used_at > _MOST_SKEW_SECONDS

    def _write(self, name: str, data: bytes) -> None:
        temporary = f".new-{os.getpid()}-{os.urandom(8).hex()}"
        try:
            with self._file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
                with contextlib.suppress(OSError):
                    take(descriptor)  # held until the file is closed
                with open(descriptor, "wb", closefd=False) as file:
                    file.write(data)
            with self._opened() as folder:
                source, target = self._prefix + temporary, self._prefix + name
                os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            self.remove([temporary])
            raise

    @contextlib.contextmanager
    def _file(self, name: str, flags: int) -> Iterator[int]:
        with self._opened() as folder:
            path = self._prefix + name
            descriptor = os.open(path, flags | _SAFE, 0o600, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Yield a descriptor of the folder, which is private; None on Windows, which has none."""
        if not _POSIX:
            yield None
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            if self._above is None:
                descriptor = os.open(self.path, flags)
            else:
                with self._above._opened() as parent_descriptor:
                    descriptor = os.open(self.path.name, flags, dir_fd=parent_descriptor)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            descriptor = self._open_link()
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS:
                raise self._untrusted(status)
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_link(self) -> int:
        """Open a folder that a link of this user's own, or of root's, leads to."""
        link = os.lstat(self.path)
        if not stat.S_ISLNK(link.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.path))
        if self._above is not None or link.st_uid not in (0, os.geteuid()):
            raise UntrustedFolderError(f"{self.path} is a link that user {link.st_uid} made")
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        after = os.lstat(self.path)
        if (link.st_ino, link.st_ctime_ns) != (after.st_ino, after.st_ctime_ns):
            os.close(descriptor)
            raise UntrustedFolderError(f"{self.path} is being replaced")
        return descriptor

    def _untrusted(self, status: os.stat_result) -> UntrustedFolderError:
        """Return the error of a folder that other users can write."""
        if status.st_uid != os.geteuid():
            return UntrustedFolderError(f"{self.path} belongs to user {status.st_uid}, not to you")
        writers = "everybody" if status.st_mode & stat.S_IWOTH else "its group"
        return UntrustedFolderError(f"{self.path} is writable by {writers} (chmod go-w fixes it)")


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _stored(entry: os.DirEntry[str]) -> StoredFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    is_past = status.st_mtime <= time.time() + _MOST_SKEW_SECONDS
    return StoredFile(entry.name, status.st_size, status.st_mtime if is_past else 0.0)


def _private(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    if not _POSIX:
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS
