"""NVRTC for an emulated device: a requested cubin is the PTX that NVRTC makes on its way to it.

A mark distinguishes it from other PTX: drivers older than NVRTC load such a cubin.

The library is the real one, under any name and path. Two of its symbols lead to functions of this
file.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Final

from ptx import _nvrtc
from ptx.cubin_mark import CUBIN_MARK

from ..caller_memory import view_at
from .early_libraries import REPLACED, address_of, real_addresses
from .elf_file import elf_image
from .library_files import early_folder_here, this_machine
from .nvrtc_files import nvrtc_files, opened, replacing_name
from .shared_object import SharedObject, guarded
from .symbol_table import loaded_files, redirect

_INTERNAL_ERROR: Final = 11  # NVRTC_ERROR_INTERNAL_ERROR
_FORM: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)
_MARK: Final = CUBIN_MARK.encode()
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
        files = {file: replacing_name(major) for major, file in nvrtc_files().items()}
        for path in (*files, *loaded_files("libnvrtc.so")):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) not in self._files:
                self._files.add((status.st_dev, status.st_ino))
                early = real_addresses(status)
                name = files[path] if early else f"cudadrv-nvrtc-file-{len(self._files)}.so"
                self._replace(path, name, early)

    def _replace(self, path: str, name: str, early: Mapping[str, int] | None) -> None:
        """Let the symbols of a library lead to functions of this object.

        `early` has the addresses of the real functions if they lead to a library of that name.
        """
        try:
            real = _Nvrtc(self, opened(path), early)
        except (OSError, AttributeError):
            return  # no library, or one that makes no cubins
        folder = early_folder_here() if early else None
        library = SharedObject(
            name, REPLACED, lambda: replacing_image(name), folder and folder / name
        )
        targets = {n: _FORM(guarded(f, _INTERNAL_ERROR)) for n, f in real.functions.items()}
        library.connect(targets)
        for each, address in real.addresses.items():
            redirect(address, library.address(each) or address)


def replacing_image(name: str, statement: str = "") -> bytes:
    """Return the library with the functions; `statement` is of Python, as of `elf_image`."""
    machine = this_machine(name)
    return elf_image(name, REPLACED, machine, result=_INTERNAL_ERROR, statement=statement)


class _Nvrtc:
    """The real functions of one NVRTC, and those that replace them."""

    def __init__(
        self, owner: LibNvrtc, library: ctypes.CDLL, early: Mapping[str, int] | None
    ) -> None:
        self._owner = owner
        self._library = library
        # Looked up here, before their symbols change.
        self.addresses: Final = early or {name: address_of(library, name) for name in REPLACED}
        self._real_size, self._real_cubin = (_FORM(self.addresses[name]) for name in REPLACED)
        self.functions: Final = dict(zip(REPLACED, (self._size, self._cubin), strict=True))

    def _size(self, program: int, result: int) -> int:
        """Return the size of the PTX, if a cubin was made."""
        code: int = self._real_size(program, result)
        if code or not self._is_ptx or not view_at(ctypes.c_size_t, result).value:
            return code
        code = int(self._library.nvrtcGetPTXSize(_Address(program), _Address(result)))
        if not code:
            view_at(ctypes.c_size_t, result).value += len(_MARK)
        return code

    def _cubin(self, program: int, result: int) -> int:
        """Return the PTX, if a cubin was made."""
        size = ctypes.c_size_t()
        code: int = self._real_size(program, ctypes.addressof(size))
        if code or not size.value or not self._is_ptx:
            return int(self._real_cubin(program, result))
        code = self._library.nvrtcGetPTXSize(_Address(program), ctypes.byref(size))
        code = code or int(self._library.nvrtcGetPTX(_Address(program), _Address(result)))
        if not code:
            ctypes.memmove(result + size.value - 1, _MARK + b"\0", len(_MARK) + 1)
        return code

    @property
    def _is_ptx(self) -> bool:
        return self._owner.is_used and not _nvrtc.reading.machine_code
