"""Libraries that a Python process of `emulate` loads at its start, before the emulator.

Others find them by their names, and NVRTC is changed in each of its files. Their first call starts
the emulator, which connects the functions. This module imports nothing heavy, as each Python
process of `emulate` loads it.
"""

from __future__ import annotations

import ctypes
import os
import threading  # of the main thread: Python takes the first thread that imports it for that
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ...driver.deferred_start import defer
from .early_runtime import EarlyRuntime
from .lock_wait import lock_functions
from .nvrtc_files import MAJORS, nvrtc_files, opened, replacing_name
from .symbol_table import ENSURE, RELEASE, TABLE, redirect

FOLDER: Final = "CUDADRV_EMULATE_LIBRARIES"
REPLACED: Final = ("nvrtcGetCUBINSize", "nvrtcGetCUBIN")
"""The functions of NVRTC that the emulator replaces."""
_LOCK_SECONDS: Final = "CUDADRV_EMULATOR_LOCK_SECONDS"
_LONGEST_START: Final = 300
_IN_FOLDER: Final = ("libnvJitLink.so.{0}",)
_IN_SEARCH_PATH: Final = ("libcuda.so.1", "libnvidia-ml.so.1")
_real: Final[dict[tuple[int, int], dict[str, int]]] = {}


def start_at_first_call(start: Callable[[], object]) -> bool:
    """Let the first driver call run `start`; return whether that is possible in this process."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return False
    linkers = [os.path.join(folder, n.format(major)) for n in _IN_FOLDER for major in MAJORS]
    functions = lock_functions()
    if functions is not None:
        seconds = os.environ.get(_LOCK_SECONDS, "")
        functions.end_after(int(seconds) if seconds.isdigit() else _LONGEST_START)
    for library in (*_IN_SEARCH_PATH, *linkers):
        with suppress(OSError):  # the start reports what is wrong with them
            _load(library)
    for major, file in nvrtc_files().items():
        with suppress(OSError, AttributeError):
            _replace(file, os.path.join(folder, replacing_name(major)))
    defer(start)
    EarlyRuntime(start).install()
    return threading.current_thread() is threading.main_thread()


def _load(library: str) -> ctypes.CDLL:
    """Load a library whose first call, too, goes on while C code holds the interpreter lock."""
    loaded = ctypes.CDLL(library, mode=os.RTLD_NOW)
    functions = lock_functions()
    if functions is not None:
        starters = (ctypes.c_void_p * (RELEASE + 1)).in_dll(loaded, TABLE)
        if starters[ENSURE]:
            starters[ENSURE] = functions.acquire_at_start
            starters[RELEASE] = functions.release
    return loaded


def _replace(file: str, replacing: str) -> None:
    """Let symbols of an NVRTC lead to functions that start the emulator."""
    real, own = opened(file), _load(replacing)
    addresses = {name: address_of(real, name) for name in REPLACED}
    status = os.stat(file)
    _real[status.st_dev, status.st_ino] = addresses
    for name, address in addresses.items():
        redirect(address, address_of(own, name))


def real_addresses(status: os.stat_result) -> dict[str, int] | None:
    """Return the addresses of an NVRTC's own functions that are replaced; None if they are not."""
    return _real.get((status.st_dev, status.st_ino))


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function.

    Raises:
        AttributeError: the library has no such function.
    """
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
