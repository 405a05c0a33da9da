"""Files in memory that processes of one host share, and device pages in them.

A `SharedFile` has no name in any folder. Another process of the same user receives its descriptor,
or opens it by its number in the process that made it (proc(5), /proc/PID/fd). So the system frees
it when the last process that has it open or mapped has closed it or has ended, however it ended.
"""

from __future__ import annotations

import errno
import mmap
import os
import platform
import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import DeviceMemory

from ..driver._api import CUmemAllocationHandleType, CUresult
from .call_error import CallError, not_supported

CAN_SHARE: Final = platform.system() == "Linux" and hasattr(os, "memfd_create")
"""True if the system has such files."""
PAGE: Final = mmap.PAGESIZE
DESCRIPTORS: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
_PREFIX: Final = "cudadrv"
_NAME: Final = re.compile(rf"/memfd:{_PREFIX}-(\w+)-([0-9a-f]{{32}})-([0-9a-f]{{32}})\b")
_AT_ONCE: Final = (16 << 20) // PAGE
_MADV_REMOVE: Final = 9  # Linux; named in mmap only there
HOST_MEMORY: Final = bytes(16)


def whole_pages(nbytes: int) -> int:
    """Return the bytes of as many pages as hold `nbytes`."""
    return -(-nbytes // PAGE) * PAGE


class FileName(NamedTuple):
    """The name of a file, to distinguish it from others.

    Attributes:
        kind: its purpose: "pool", "memory", "mapped" or "event".
        token: unique among files.
        device: the UUID of its device; `HOST_MEMORY` for a pool of page-locked memory.
    """

    kind: str
    token: bytes
    device: bytes

    @classmethod
    def new(cls, kind: str, device: bytes) -> FileName:
        """Return a name unique among files."""
        return cls(kind, os.urandom(16), device)

    @classmethod
    def read(cls, link: str) -> FileName | None:
        """Return the name of the target of a link of /proc; None if it is no such file."""
        match = _NAME.match(link)
        if match is None:
            return None
        kind, token, device = match.groups()
        return cls(kind, bytes.fromhex(token), bytes.fromhex(device))

    def __str__(self) -> str:
        return f"{_PREFIX}-{self.kind}-{self.token.hex()}-{self.device.hex()}"


class SharedFile:
    """An open file.

    Attributes:
        name: its name.
        number: its descriptor in this process; -1 once it is closed.
    """

    number: int = -1  # until `__init__` ends, which an interrupt may prevent

    def __init__(self, name: FileName, number: int) -> None:
        self.name: FileName = name
        self.number = number

    @classmethod
    def made(cls, kind: str, device: bytes, nbytes: int = 0) -> SharedFile:
        """Make a file, whose pages are allocated at their first write.

        Raises:
            OSError: the system cannot make more files.
        """
        name = FileName.new(kind, device)
        self = cls(name, os.memfd_create(str(name)))
        os.ftruncate(self.number, nbytes)
        return self

    @classmethod
    def of_descriptor(cls, number: int, kind: str) -> SharedFile | None:
        """Return the file of a descriptor, which its owner keeps; None if it is no such file."""
        return cls._opened(f"/proc/self/fd/{number}", kind)

    @classmethod
    def of_process(cls, process: int, number: int, kind: str, token: bytes) -> SharedFile | None:
        """Open a file of another process; None if that has ended or closed it."""
        file = cls._opened(f"/proc/{process}/fd/{number}", kind)
        return file if file is not None and file.name.token == token else None

    @classmethod
    def _opened(cls, path: str, kind: str) -> SharedFile | None:
        try:
            number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        # The name of the opened file: another file may have got the number since.
        name = FileName.read(os.readlink(f"/proc/self/fd/{number}"))
        if name is None or name.kind != kind:
            os.close(number)
            return None
        return cls(name, number)

    @property
    def nbytes(self) -> int:
        """The size."""
        return os.fstat(self.number).st_size

    def extend(self, nbytes: int) -> int:
        """Add pages for so many bytes, which are zero; return their offset.

        Raises:
            OSError: the system reported an error.
        """
        offset = self.nbytes
        os.ftruncate(self.number, offset + whole_pages(nbytes))
        return offset

    def duplicate(self) -> int:
        """Return another descriptor, which the caller owns."""
        return os.dup(self.number)

    def close(self) -> None:
        """Close it here; mapped pages stay. Idempotent."""
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)

    def __del__(self) -> None:
        self.close()


class SharedPages:
    """The pages of one device that lie in files. Callers hold the device's lock.

    Memory of a shared pool has pages of its own. Memory that is shared after its allocation may
    have a page in common with other memory. So all such memory is in one file, at the same offset
    from the beginning as in the device, and its pages stay there.

    Attributes:
        file: memory that was shared after its allocation; None before the first.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory: Final = memory
        self.file: SharedFile | None = None
        self._is_in_file: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def share(self, address: int, nbytes: int, device: bytes) -> tuple[SharedFile, int]:
        """Share an allocation with other processes; return the file and the offset there.

        Raises:
            OSError: the system reported an error.
        """
        memory, offset = self._memory, address - self._memory.base
        if self.file is None:
            size = whole_pages(memory.nbytes)
            self._is_in_file = np.zeros(size // PAGE, np.bool_)
            self.file = SharedFile.made("memory", device, size)
        first, end = offset // PAGE, whole_pages(offset + nbytes) // PAGE
        if end * PAGE > memory.nbytes:
            raise OSError(errno.EINVAL, "the device's memory ends in the middle of a page")
        for start in range(first, end, _AT_ONCE):
            self._move(start, min(start + _AT_ONCE, end), self.file)
        return self.file, offset

    def _move(self, first: int, end: int, file: SharedFile) -> None:
        """Move some pages to the file, with their contents.

        A few at once, as they exist twice meanwhile.
        """
        outside = ~self._is_in_file[first:end]
        if not outside.any():
            return
        start, size = first * PAGE, (end - first) * PAGE
        words = self._memory.data[start : start + size].view(np.uint64).reshape(-1, PAGE // 8)
        outside &= words.max(axis=1) != 0  # zeros use no memory
        if outside.any():
            with mmap.mmap(file.number, size, offset=start) as pages:
                shared_words = np.frombuffer(pages, np.uint64).reshape(words.shape)
                shared_words[outside] = words[outside]
                del shared_words  # before the pages
        self._memory.show_file(self._memory.base + start, size, file.number, start)
        self._is_in_file[first:end] = True

    def show(self, address: int, size: int, file: SharedFile, offset: int) -> None:
        """Map whole pages of a file.

        Raises:
            OSError: the system reported an error.
        """
        self._memory.show_file(address, size, file.number, offset)
        self._forget(address, size)

    def hide(self, address: int, size: int) -> None:
        """Make whole pages private again; other processes that map them keep the contents."""
        self._memory.hide_file(address, size)
        self._forget(address, size)

    def _forget(self, address: int, size: int) -> None:
        """Remove the contents of these pages from the file: later pages there find zeros."""
        start = address - self._memory.base
        in_file = self._is_in_file[start // PAGE : (start + size) // PAGE]
        if self.file is None or not in_file.any():
            return
        in_file[:] = False
        with mmap.mmap(self.file.number, size, offset=start) as pages:
            empty_pages(pages)

    def add(self, file: SharedFile, offset: int, nbytes: int, origin: str) -> int:
        """Map another process's memory, which uses addresses but no memory; return the address.

        Raises:
            OutOfMemory: there is no range of so many addresses.
            OSError: the system reported an error.
        """
        start = offset // PAGE * PAGE
        size = whole_pages(offset + nbytes) - start
        mapped = self._memory.reserve(size, PAGE)
        try:
            self.show(mapped, size, file, start)
        except OSError:
            self._memory.unreserve(mapped)
            raise
        address = mapped + offset - start
        self._memory.show(address, nbytes, origin)
        self._memory.mark_written(address, nbytes)  # the other process has the details
        if self._memory.allocated is not None:
            self._memory.allocated(address)  # accesses at this address belong to another allocation
        return address

    def remove(self, address: int, nbytes: int) -> None:
        """Unmap memory of another process."""
        mapped = self._memory.base + (address - self._memory.base) // PAGE * PAGE
        size = whole_pages(address - mapped + nbytes)
        self._memory.hide(address)
        self.hide(mapped, size)
        self._memory.unreserve(mapped)


def empty_pages(pages: mmap.mmap) -> None:
    """Free the memory of mapped pages of a file; they are zero from then on, for all processes."""
    pages.madvise(_MADV_REMOVE)


def new_shared_file(kind: str, device: bytes, nbytes: int) -> SharedFile:
    """Make a file for memory or an event that other processes may open.

    Raises:
        CallError: the system cannot make one.
    """
    if not CAN_SHARE:
        raise not_supported("the emulator shares memory between processes on Linux alone")
    try:
        return SharedFile.made(kind, device, whole_pages(nbytes))
    except (OSError, OverflowError) as error:
        raise CallError(CUresult.CUDA_ERROR_OPERATING_SYSTEM, f"making a file: {error}") from error
