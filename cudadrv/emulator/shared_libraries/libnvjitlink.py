"""nvJitLink for an emulated device: linked code stays PTX, as PTX is executed.

PTX is linked as text, and a text replaces `libcudadevrt`. LTO-IR is passed to the real nvJitLink,
which makes PTX of it. Then a linked "cubin" is the PTX text, which the emulated driver loads like a
cubin.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...driver._api import driver
from ...driver.deferred_start import register_at_exit
from ...driver.functions import read_table
from ..call_error import CallError, invalid_value
from ..caller_memory import text_at, view_at
from .caller_structures import bytes_at, sizes_at
from .elf_file import elf_image
from .handlers import put_bytes, put_size, put_uint
from .library_files import this_machine
from .shared_object import SharedObject, guarded
from .signature import Argument, Signature, signature

if TYPE_CHECKING:
    from .link import Link

_INTERNAL, _NULL_INPUT, _INVALID_INPUT = 6, 10, 3
_MINORS: Final = 10  # more than a major version of CUDA has had
LINKER_FUNCTIONS: Final = read_table("""
nvJitLinkVersion 12000 >uint >uint
nvJitLinkCreate 12000 >size uint size
nvJitLinkDestroy 12000 &size
nvJitLinkAddData 12000 size int &byte size ?text
nvJitLinkAddFile 12000 size int text
nvJitLinkComplete 12000 size
nvJitLinkGetLinkedCubinSize 12000 size >size
nvJitLinkGetLinkedCubin 12000 size >?byte
nvJitLinkGetLinkedPtxSize 12000 size >size
nvJitLinkGetLinkedPtx 12000 size >?byte
nvJitLinkGetErrorLogSize 12000 size >size
nvJitLinkGetErrorLog 12000 size >?byte
nvJitLinkGetInfoLogSize 12000 size >size
nvJitLinkGetInfoLog 12000 size >?byte
""")


def linker_name(major: int) -> str:
    """Return the name of the library of a version of CUDA."""
    return f"libnvJitLink.so.{major}"


def linker_image(major: int, statement: str = "") -> bytes:
    """Return the library of a version of CUDA; `statement` is of Python, as of `elf_image`."""
    soname = linker_name(major)
    return elf_image(
        soname,
        list(_symbols(major)),
        this_machine(soname),
        soname,
        result=_INTERNAL,
        statement=statement,
    )


def _symbols(major: int) -> dict[str, str]:
    """Return the functions by their symbols.

    Compiled callers refer to the names of the version that they were built with.
    """
    names = [form.symbol for form in LINKER_FUNCTIONS]
    return {name: name for name in names} | {
        f"__{name}_{major}_{minor}": name for name in names for minor in range(_MINORS)
    }


class LibnvJitLink:
    """The C functions of nvJitLink; one object per process.

    Outside of a stand-in they return NVJITLINK_ERROR_INTERNAL, as cubins are unknown then.
    """

    def __init__(self, folder: Path | None) -> None:
        """`folder` has the library, for processes that loaded it before the emulator started."""
        self._links: dict[int, Link] = {}
        self._next = 1
        major = _major()
        soname = linker_name(major)
        functions = {
            form.symbol: form.c_function(guarded(self._wrapped(form), _INTERNAL))
            for form in map(signature, LINKER_FUNCTIONS)
        }
        self._callbacks: Final = {
            symbol: functions[name] for symbol, name in _symbols(major).items()
        }
        self._library = SharedObject(
            soname, list(self._callbacks), lambda: linker_image(major), folder and folder / soname
        )
        register_at_exit(self._library.end)

    def _wrapped(self, form: Signature) -> Callable[..., int]:
        function: Callable[..., int] = getattr(self, form.name.removeprefix("nvJitLink"))

        def wrapper(*arguments: Argument) -> int:
            if form.has_null(arguments):
                return _NULL_INPUT
            try:
                return function(*form.read(arguments))
            except CallError:
                return _INVALID_INPUT

        return wrapper

    def use(self) -> None:
        """Let the functions link."""
        self._library.connect(self._callbacks)

    def leave(self) -> None:
        """Disable linking."""
        self._library.disconnect()

    def _link(self, handle: int) -> Link:
        found = self._links.get(handle)
        if found is None:
            raise invalid_value(f"{handle:#x} is no link")
        return found

    def Version(self, major: int, minor: int) -> int:
        """Return the version of the installed nvJitLink."""
        version = _installed_version()
        put_uint(major, version[0])
        put_uint(minor, version[1])
        return 0

    def Create(self, result: int, count: int, options: int) -> int:
        """Begin a link."""
        texts = tuple(
            (text_at(address) or b"").decode(errors="replace")
            for address in sizes_at(options, count)
        )
        from .link import link_with  # with the parser of PTX: a fifth of the emulator's start

        link = link_with(texts)
        if isinstance(link, int):
            return link
        handle, self._next = self._next, self._next + 1
        self._links[handle] = link
        put_size(result, handle)
        return 0

    def Destroy(self, handle: int) -> int:
        """Forget a link, given the address of its handle."""
        handle_field = view_at(ctypes.c_size_t, handle)
        self._links.pop(handle_field.value, None)
        handle_field.value = 0
        return 0

    def AddData(self, handle: int, kind: int, data: int, nbytes: int, name: bytes | None) -> int:
        """Add an input."""
        text = (name or b"an input").decode(errors="replace")
        return self._link(handle).add(kind, bytes_at(data, nbytes), text)

    def AddFile(self, handle: int, kind: int, name: bytes) -> int:
        """Add a file."""
        path = os.fsdecode(name)
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            self._link(handle).errors += f"error   : {error}\n"
            return _INVALID_INPUT
        return self._link(handle).add(kind, data, path)

    def Complete(self, handle: int) -> int:
        """Link."""
        return self._link(handle).complete()

    def GetLinkedCubinSize(self, handle: int, result: int) -> int:
        """Return the size of the image."""
        return _put_length(result, self._link(handle).image)

    def GetLinkedCubin(self, handle: int, result: int) -> int:
        """Return the image."""
        put_bytes(result, self._link(handle).image)
        return 0

    def GetLinkedPtxSize(self, handle: int, result: int) -> int:
        """Return the size of the LTO-IR's PTX."""
        return _put_length(result, self._link(handle).lto_text)

    def GetLinkedPtx(self, handle: int, result: int) -> int:
        """Return the PTX of the LTO-IR."""
        put_bytes(result, self._link(handle).lto_text)
        return 0

    def GetErrorLogSize(self, handle: int, result: int) -> int:
        """Return the size of the error log."""
        return _put_length(result, _log(self._link(handle).errors))

    def GetErrorLog(self, handle: int, result: int) -> int:
        """Return the error log."""
        put_bytes(result, _log(self._link(handle).errors))
        return 0

    def GetInfoLogSize(self, handle: int, result: int) -> int:
        """Return the size of the info log."""
        return _put_length(result, _log(self._link(handle).info))

    def GetInfoLog(self, handle: int, result: int) -> int:
        """Return the info log."""
        put_bytes(result, _log(self._link(handle).info))
        return 0


def _log(text: str) -> bytes:
    return text.encode() + b"\0" if text else b""


def _put_length(result: int, data: bytes) -> int:
    put_size(result, len(data))
    return 0


@cache
def _major() -> int:
    """Return the major version of CUDA that the bindings are for."""
    return driver.CUDA_VERSION // 1000


@cache
def _installed_version() -> tuple[int, int]:
    """Return the version from an installed package, as loading is slow; else from the library."""
    from importlib import metadata  # which few processes need

    for package in ("nvidia-nvjitlink", f"nvidia-nvjitlink-cu{_major()}"):
        try:
            major, minor, *_ = metadata.version(package).split(".")
            return int(major), int(minor)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    from .link import real_library

    library = real_library()
    if library is None:
        return _major(), 0
    numbers = ctypes.c_uint(), ctypes.c_uint()
    library.nvJitLinkVersion(*map(ctypes.byref, numbers))
    return numbers[0].value, numbers[1].value
