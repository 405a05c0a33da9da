"""A library of this process, found under the name of another library that programs load.

Its functions call the addresses in a table of the process. A process that has loaded it under
the name of another library finds it wherever that name is requested. It is loaded locally, as the
real one: symbols of these names in other libraries, such as variables, stay their own.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import DriverSelectionError
from .elf_file import END, HOOKS, RETURN_CODE, RETURN_ZERO, TEXTS
from .kept_modules import restoring_builtins
from .lock_wait import lock_functions
from .signature import Argument
from .symbol_table import TABLE

if TYPE_CHECKING:
    from _ctypes import CFuncPtr


_ENDS_USE: Final = re.compile(
    "Destroy|Free|Unload|Release|Unregister|Unmap|Unbind|Detach|Close|Shutdown|CtxReset|Disable"
    "|ProfilerStop|Synchronize|(Push|Pop|Set)Current"
)


_RESTORE: Final = restoring_builtins()


def guarded(
    function: Callable[..., int], failed: int, end: Callable[[], int] | None = None
) -> Callable[..., int]:
    """Return the function, which returns `failed` instead of raising.

    An interrupt is raised again in the main thread, after the C code has returned. Any other error
    is reported as an error without a caller, as C has no other place for it.

    While the interpreter ends, modules lose their contents, in an order that is not documented. A
    function that fails then returns what `end` returns, without a report.
    """
    # Bound here, as this module loses its contents too, and so do the builtins.
    is_finalizing, interrupt, restore = sys.is_finalizing, _thread.interrupt_main, _RESTORE
    interrupted, anything, system = KeyboardInterrupt, BaseException, sys

    def wrapper(*arguments: Argument) -> int:
        if is_finalizing():
            restore()
        try:
            return function(*arguments)
        except interrupted:
            # Within an unpacking: after a call the interpreter would check for it here already.
            (_,) = map(interrupt, (signal.SIGINT,))
        except anything:
            if end is not None and is_finalizing():
                return end()
            system.excepthook(*system.exc_info())
        return failed

    return wrapper


class SharedObject:
    """A library whose functions call those that `connect` sets, loaded until the process ends.

    It is never unloaded, as others keep the addresses of its functions. While it is disconnected,
    its functions return an error without any Python. That is so in a process that only finds the
    library, and before `connect`.

    After the interpreter has ended, functions that free, destroy or wait return success: the
    process frees everything, and no work is left. C++ destructors may check that. cuGetErrorName
    and cuGetErrorString have their results. The others return the error.

    Raises:
        DriverSelectionError: a library of that name is already loaded.
    """

    def __init__(
        self,
        soname: str,
        names: Sequence[str],
        image: Callable[[], bytes],
        file: Path | None = None,
    ) -> None:
        """`image` makes a library of these functions; `file` is it on disk, if there is one."""
        self._library = _own(soname, file) or _load_file(file) or _load(soname, image())
        self._names: Final = tuple(names)
        self._tables = (ctypes.c_void_p * 2).in_dll(self._library, TABLE)
        self._functions: ctypes.Array[ctypes.c_void_p] | None = None
        self._gone: ctypes.Array[ctypes.c_void_p] | None = None
        # The interpreter calls it after the last line of Python.
        ctypes.pythonapi.Py_AtExit(ctypes.c_void_p(_address_in(self._library, END)))

    def address(self, name: str) -> int | None:
        """Return the address of a function for callers; None if there is none."""
        return _address_in(self._library, name) if name in self._names else None

    def connect(self, targets: Mapping[str, CFuncPtr], *, run_python: bool = True) -> None:
        """Let the functions, each by its name, call targets from now on.

        C code may call them until the process ends, so they are never freed. `run_python` makes
        each call wait for the GIL, and puts aside the exception of a caller that cleans up.
        """
        if self._functions is None:
            without = {name: own for name, own in TEXTS.items() if name in self._names}
            hooks = [_address_in(ctypes.pythonapi, name) if run_python else None for name in HOOKS]
            called = [ctypes.cast(targets[name], ctypes.c_void_p).value for name in self._names]
            functions = lock_functions() if run_python else None
            if functions is not None:
                hooks[0], hooks[-1] = functions.acquire, functions.release
                functions.name(dict(zip(filter(None, called), self._names, strict=True)))
            gone = [_address_in(self._library, without.get(n, RETURN_CODE)) for n in self._names]
            done = _address_in(self._library, RETURN_ZERO)
            ends = [
                done if ends_use(name) else without_python
                for name, without_python in zip(self._names, gone, strict=True)
            ]
            kind = ctypes.c_void_p * (len(HOOKS) + len(self._names))
            self._functions = kind(*hooks, *called)
            ended = kind(*[None] * len(HOOKS), *ends)
            self._gone = kind(*[None] * len(HOOKS), *gone)
            callbacks = targets, self._functions, ended, self._gone
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(callbacks))
            self._tables[1] = ctypes.addressof(ended)
        self._tables[0] = ctypes.addressof(self._functions)

    def disconnect(self) -> None:
        """Let all functions report that there is no driver.

        Without a table the first call would start an emulator again.
        """
        if self._gone is not None:
            self._tables[0] = ctypes.addressof(self._gone)

    def end(self) -> None:
        """Let the functions return what they return after the interpreter's end."""
        self._tables[0] = self._tables[1]

    def ending(self, name: str, ended_code: int) -> Callable[[], int]:
        """Return a function that ends the library after a failure, and returns the code."""
        code = 0 if ends_use(name) else ended_code

        def wrapper() -> int:
            self.end()
            return code

        return wrapper


def ends_use(name: str) -> bool:
    """Return whether a function frees, destroys or waits, or selects a context to do so."""
    return _ENDS_USE.search(name) is not None


def is_loaded(soname: str, file: Path | None = None) -> bool:
    """Return whether a library of this name is in the process, other than `file`."""
    loaded, own = _loaded(soname), None if file is None else _loaded(str(file))
    return loaded is not None and (own is None or own._handle != loaded._handle)


def _loaded(path: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def _own(soname: str, file: Path | None) -> ctypes.CDLL | None:
    """Return the library's file if the process has loaded it, as by LD_LIBRARY_PATH.

    Raises:
        DriverSelectionError: it has loaded another library of this name.
    """
    if is_loaded(soname, file):
        raise DriverSelectionError(
            f"{soname} is loaded already, so that its callers have it: call "
            "cudadrv.emulator.stand_in() before anything that uses the CUDA driver"
        )
    return None if file is None else _loaded(str(file))


def _load(soname: str, image: bytes) -> ctypes.CDLL:
    """Load a library without a file; others find it by its own name.

    Its descriptor stays open: the loader stores the path, and would confuse another library of the
    same path with this one.
    """
    file = os.memfd_create(soname)
    with os.fdopen(file, "wb", closefd=False) as opened:
        opened.write(image)
    return ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW)


def _load_file(file: Path | None) -> ctypes.CDLL | None:
    """Load a library that others may also find by its path; None if the system does not let."""
    if file is None:
        return None
    try:
        return ctypes.CDLL(str(file), mode=os.RTLD_NOW)
    except OSError:  # such as a file system without executable files
        return None


def _address_in(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
