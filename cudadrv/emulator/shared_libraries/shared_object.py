"""A library of this process's own in the place of one that others load by its name."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...errors import DriverSelectionError
from .elf_image import ANSWER, MACHINES, SLOTS, elf_image

if TYPE_CHECKING:
    from _ctypes import CFuncPtr


class SharedObject:
    """A library whose functions go where `point` says, loaded for as long as the process lives.

    It is never unloaded, as others keep the addresses of its functions. A function that points
    nowhere answers CUDA_ERROR_DEINITIALIZED, also when there is no interpreter any more.

    Raises:
        DriverSelectionError: a library of that name is loaded already, or the system loads none of
            this kind.
    """

    def __init__(self, soname: str, names: Sequence[str]) -> None:
        machine = MACHINES.get(platform.machine())
        if sys.platform != "linux" or machine is None:
            raise DriverSelectionError(
                f"nothing stands in for {soname} on {sys.platform}, {platform.machine()}: that is "
                f"for Linux on {' and '.join(MACHINES)}"
            )
        if is_loaded(soname):
            raise DriverSelectionError(
                f"{soname} is loaded already, so that its callers have it: call "
                "cudadrv.emulator.stand_in() before anything that uses the CUDA driver"
            )
        self._library = _load(soname, elf_image(soname, names, machine))
        self._places: Final = {name: at for at, name in enumerate(names)}
        self._slots = (ctypes.c_void_p * len(names)).in_dll(self._library, SLOTS)
        self._answer = _address_in(self._library, ANSWER)
        self.clear()

    def address(self, name: str) -> int | None:
        """Where callers find a function, whatever it points to; None if it is not there."""
        return _address_in(self._library, name) if name in self._places else None

    def point(self, name: str, callback: CFuncPtr) -> None:
        """Let a function go to a callback from now on; the caller keeps that alive."""
        self._slots[self._places[name]] = ctypes.cast(callback, ctypes.c_void_p).value

    def clear(self) -> None:
        """Let all functions answer that there is nothing behind them."""
        for at in range(len(self._places)):
            self._slots[at] = self._answer


def is_loaded(soname: str) -> bool:
    """Whether a library of this name is in the process."""
    try:
        ctypes.CDLL(soname, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _load(soname: str, image: bytes) -> ctypes.CDLL:
    """Load a library that is in no file; others find it by the name within it.

    Its descriptor stays open: the loader remembers the path, and would take another library of the
    same path for this one.
    """
    file = os.memfd_create(soname)
    with os.fdopen(file, "wb", closefd=False) as opened:
        opened.write(image)
    return ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW | os.RTLD_GLOBAL)


def _address_in(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
