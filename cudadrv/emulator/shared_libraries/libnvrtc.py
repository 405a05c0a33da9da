"""NVRTC for an emulated device: a requested cubin is the PTX that NVRTC makes on its way to it.

The library is the real one, under any name and path. Two of its symbols lead to functions of this
file.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from ptx import _nvrtc

from .elf_file import elf_image
from .library_files import nvrtc_file, this_machine
from .shared_object import SharedObject, guarded
from .symbol_table import loaded_files, redirect

_INTERNAL_ERROR: Final = 11  # NVRTC_ERROR_INTERNAL_ERROR
_FORM: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)
_Address: Final = ctypes.c_size_t


class LibNvrtc:
    """The changed functions of NVRTC; one object per process, as libraries keep their addresses.

    Attributes:
        is_used: whether a cubin is PTX now; otherwise every function is the real one.
    """

    def __init__(self) -> None:
        self.is_used: bool = False
        self._files: set[tuple[int, int]] = set()

    def use(self) -> None:
        """Let a cubin be PTX, in each NVRTC that is installed or loaded."""
        self.is_used = True
        if not sys.platform.startswith("linux"):
            return
        own = nvrtc_file()
        for path in (*([own] if own else []), *loaded_files("libnvrtc.so")):
            file = path.stat()
            if (file.st_dev, file.st_ino) not in self._files:
                self._files.add((file.st_dev, file.st_ino))
                self._replace(path)

    def _replace(self, path: Path) -> None:
        """Let the symbols of a library lead to functions of this object."""
        try:
            real = _Nvrtc(self, ctypes.CDLL(str(path)))
        except (OSError, AttributeError):
            return  # no library, or one that makes no cubins
        name = f"cudadrv-nvrtc-{len(self._files)}.so"
        names = tuple(real.functions)
        library = SharedObject(
            name, names, elf_image(name, names, this_machine(name), result=_INTERNAL_ERROR)
        )
        targets = {n: _FORM(guarded(f, _INTERNAL_ERROR)) for n, f in real.functions.items()}
        library.connect(targets)
        for each, address in real.addresses.items():
            redirect(address, library.address(each) or address)


class _Nvrtc:
    """The real functions of one NVRTC, and those that replace them."""

    def __init__(self, owner: LibNvrtc, library: ctypes.CDLL) -> None:
        self._owner = owner
        self._library = library
        # Looked up here, before their symbols change.
        self._real_size, self._real_cubin = library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN
        self.functions: Final = {"nvrtcGetCUBINSize": self._size, "nvrtcGetCUBIN": self._cubin}
        self.addresses: Final = {
            "nvrtcGetCUBINSize": _address(self._real_size),
            "nvrtcGetCUBIN": _address(self._real_cubin),
        }

    def _size(self, program: int, result: int) -> int:
        """Return the size of the PTX, if a cubin was made."""
        code: int = self._real_size(_Address(program), _Address(result))
        if code or not self._is_ptx or not ctypes.c_size_t.from_address(result).value:
            return code
        return int(self._library.nvrtcGetPTXSize(_Address(program), _Address(result)))

    def _cubin(self, program: int, result: int) -> int:
        """Return the PTX, if a cubin was made."""
        size = ctypes.c_size_t()
        code: int = self._real_size(_Address(program), ctypes.byref(size))
        is_ptx = not code and size.value and self._is_ptx
        read = self._library.nvrtcGetPTX if is_ptx else self._real_cubin
        return int(read(_Address(program), _Address(result)))

    @property
    def _is_ptx(self) -> bool:
        return self._owner.is_used and not _nvrtc.reading.machine_code


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a function of a CDLL
