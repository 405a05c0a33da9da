"""Symbols of a loaded library that lead to other functions.

A library is found under its name, a name without a version, a link or its path: the loader opens
one file once. So a changed symbol serves them all, and whoever looks it up later.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Final

TABLE: Final = "cudadrv_table"
"""The name of two variables of the emulator's libraries: the addresses of the table of functions,
and of that for the end. The addresses of Python's functions that start the emulator follow."""
ENSURE, RELEASE = 3, 5
"""The places of those of PyGILState_Ensure and PyGILState_Release from there, in words."""
_SYMBOL_ENTRY: Final = 1  # RTLD_DL_SYMENT
_VALUE_OFFSET: Final = 8  # of st_value in Elf64_Sym
_BITS: Final = (1 << 64) - 1
_PROTECTION: Final = {"r": 1, "w": 2, "x": 4}  # PROT_READ, PROT_WRITE, PROT_EXEC of Linux


class _Found(ctypes.Structure):
    """Dl_info."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_size_t),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_size_t),
    )


def redirect(address: int, target: int) -> bool:
    """Let the symbol of a function lead to another one; return whether the system can.

    Args:
        address: of the function that the symbol has now.
        target: the address of the function that a look-up returns from now on.
    """
    find = getattr(ctypes.CDLL(None), "dladdr1", None)  # of the GNU C library
    found, entry = _Found(), ctypes.c_size_t()
    if find is None:
        return False
    arguments = (ctypes.c_size_t(address), ctypes.byref(found), ctypes.byref(entry))
    if not find(*arguments, _SYMBOL_ENTRY) or not entry.value or found.address != address:
        return False
    return _write(entry.value + _VALUE_OFFSET, target - found.base & _BITS)


def _write(address: int, value: int) -> bool:
    """Write 8 bytes to pages that are read-only."""
    start = address & -mmap.PAGESIZE
    nbytes = address + 8 - start
    protection = _protection_at(address)
    change = ctypes.CDLL(None).mprotect
    where = ctypes.c_size_t(start), ctypes.c_size_t(nbytes)
    if protection is None or change(*where, protection | _PROTECTION["w"]):
        return False
    ctypes.c_uint64.from_address(address).value = value
    change(*where, protection)
    return True


def _mapped() -> list[str]:
    """Return the lines of Linux's table of this process's memory."""
    with open("/proc/self/maps", errors="surrogateescape") as file:
        return file.read().removesuffix("\n").split("\n")


def _protection_at(address: int) -> int | None:
    for line in _mapped():
        bounds, flags, *_ = line.split(maxsplit=2)
        first, last = (int(bound, 16) for bound in bounds.split("-"))
        if first <= address < last:
            return sum(_PROTECTION.get(flag, 0) for flag in flags)
    return None


def loaded_files(prefix: str) -> list[str]:
    """Return the files of this process whose names begin so."""
    paths = {line.split(maxsplit=5)[-1] for line in _mapped() if "/" in line}
    return sorted(path for path in paths if os.path.basename(path).startswith(prefix))
