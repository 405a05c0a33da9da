"""Pages of a device's memory that several processes of one host share.

A file in memory is mapped in the place of the pages (mmap(2), MAP_FIXED). So their addresses stay,
and whatever reads or writes them needs to know nothing of it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from typing import Final

from ptx.emulate.memory.device_memory import DeviceMemory

CAN_SHARE: Final = platform.system() == "Linux" and hasattr(os, "memfd_create")
"""Whether the system has such files."""
PAGE: Final = mmap.PAGESIZE
_MAP_FIXED: Final = 0x10  # Linux; mmap has no name for it
_MAP_NORESERVE: Final = 0x4000
_BOTH_WAYS: Final = mmap.PROT_READ | mmap.PROT_WRITE


def whole_pages(nbytes: int) -> int:
    """The bytes of as many pages as hold `nbytes`."""
    return -(-nbytes // PAGE) * PAGE


def show_file(memory: DeviceMemory, address: int, nbytes: int, file: int, offset: int) -> None:
    """Let whole pages of a device's memory be those of a file, by its descriptor.

    Raises:
        OSError: the system refused; the pages are as before.
    """
    _map(memory, address, nbytes, mmap.MAP_SHARED, file, offset)


def hide_file(memory: DeviceMemory, address: int, nbytes: int) -> None:
    """Let them be the process's own again, which read as zero."""
    _map(memory, address, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0)


def _map(
    memory: DeviceMemory, address: int, nbytes: int, flags: int, file: int, offset: int
) -> None:
    at = address - memory.base
    # What lies elsewhere would be lost for good.
    if at < 0 or at + nbytes > memory.nbytes or nbytes <= 0 or (at | nbytes | offset) % PAGE:
        raise ValueError(f"{nbytes} bytes at {address:#x} are no whole pages of the memory")
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64)
    place = memory.data.ctypes.data + at
    if function(place, nbytes, _BOTH_WAYS, flags | _MAP_FIXED, file, offset) != place:
        error = ctypes.get_errno()
        raise OSError(error, f"mapping {nbytes} bytes: {os.strerror(error)}")
