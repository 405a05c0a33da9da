"""A library of this process, found under the name of another library that programs load.

This file writes the library (System V ABI, "Object Files", "Program Loading and Dynamic Linking"):
its functions are jumps to the addresses in a table. A process that has loaded it under the name of
another library finds it wherever that name is requested.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...errors import DriverSelectionError
from .signature import Argument

if TYPE_CHECKING:
    from _ctypes import CFuncPtr


SLOTS: Final = "cudadrv_slots"
"""The name of the table: an address for each function, and one more for the fallback."""
ANSWER: Final = "cudadrv_answer"
"""The name of a function that returns CUDA_ERROR_DEINITIALIZED without any Python."""

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_ENTRY: Final = struct.Struct("<QQ")
_IDENT: Final = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, System V
_SHARED_OBJECT: Final = 3
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_EXECUTE, _READ_WRITE = 5, 6
_HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 10, 11, 14
_GLOBAL_OBJECT, _GLOBAL_FUNCTION = 0x11, 0x12
_PAGE: Final = 0x10000  # the largest page that Linux has on either machine
_CODE: Final = 16  # bytes of a function
# Like every call of Python's own functions by ctypes, it raises a pending exception.
_raise_what_passes = ctypes.pythonapi.PyErr_Occurred


def _jump_x86(at: int, slot: int) -> bytes:
    """`jmp *slot(%rip)`."""
    return b"\xff\x25" + struct.pack("<i", slot - (at + 6))


def _jump_arm(at: int, slot: int) -> bytes:
    """`ldr x16, slot; br x16`; the slot is less than 1 MiB away."""
    return struct.pack("<II", 0x58000010 | ((slot - at) // 4 & 0x7FFFF) << 5, 0xD61F0200)


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that depend on the processor.

    Attributes:
        number: e_machine.
        jump: a jump, from an offset in the file, to the address at another.
        answer: a function that returns 4, CUDA_ERROR_DEINITIALIZED.
    """

    number: int
    jump: Callable[[int, int], bytes]
    answer: bytes


MACHINES: Final = {
    "x86_64": Machine(62, _jump_x86, b"\xb8\x04\x00\x00\x00\xc3"),  # mov $4, %eax; ret
    "aarch64": Machine(183, _jump_arm, struct.pack("<II", 0x52800080, 0xD65F03C0)),
}
"""By the name that `os.uname()` returns."""


def elf_image(soname: str, names: Sequence[str], machine: Machine) -> bytes:
    """Return the file of a shared library with these functions."""
    functions = [*names, ANSWER]
    strings, places = _strings((soname, SLOTS, *functions))
    count = len(functions) + 2  # and the null symbol, and the table
    code = _aligned(_HEADER.size + 4 * _SEGMENT.size, _CODE)
    hashes = code + _CODE * len(functions)
    symbols = _aligned(hashes + 4 * (3 + count), 8)
    names_at = symbols + _SYMBOL.size * count
    dynamic = _aligned(names_at + len(strings), _PAGE)
    slots = dynamic + 7 * _ENTRY.size
    end = slots + 8 * len(names)

    image = bytearray(end)
    _put(image, 0, _headers(machine, names_at + len(strings), dynamic, slots, end))
    for at, _ in enumerate(names):
        place = code + _CODE * at
        _put(image, place, machine.jump(place, slots + 8 * at))
    _put(image, code + _CODE * len(names), machine.answer)
    # One bucket, whose chain contains all symbols.
    chain = [0, *range(2, count), 0]
    _put(image, hashes, struct.pack(f"<{3 + count}I", 1, count, 1, *chain))
    table = [bytes(_SYMBOL.size)]
    table.append(_SYMBOL.pack(places[1], _GLOBAL_OBJECT, 0, 1, slots, 8 * len(names)))
    for at, name_at in enumerate(places[2:]):
        place = code + _CODE * at
        table.append(_SYMBOL.pack(name_at, _GLOBAL_FUNCTION, 0, 1, place, _CODE))
    _put(image, symbols, b"".join(table))
    _put(image, names_at, strings)
    entries = (
        (_SONAME, places[0]), (_HASH, hashes), (_STRTAB, names_at), (_SYMTAB, symbols),
        (_STRSZ, len(strings)), (_SYMENT, _SYMBOL.size), (0, 0),
    )  # fmt: skip
    _put(image, dynamic, b"".join(_ENTRY.pack(*entry) for entry in entries))
    return bytes(image)


def _headers(machine: Machine, read_only: int, dynamic: int, slots: int, end: int) -> bytes:
    """Return the header, and the segments: code and names, writable data, `dynamic`, no stack."""
    header = _HEADER.pack(
        _IDENT, _SHARED_OBJECT, machine.number, 1, 0, _HEADER.size, 0, 0, _HEADER.size,
        _SEGMENT.size, 4, 64, 0, 0,
    )  # fmt: skip
    written = end - dynamic
    segments = (
        (_LOAD, _READ_EXECUTE, 0, read_only, _PAGE),
        (_LOAD, _READ_WRITE, dynamic, written, _PAGE),
        (_DYNAMIC, _READ_WRITE, dynamic, slots - dynamic, 8),
        (_STACK, _READ_WRITE, 0, 0, 16),
    )
    return header + b"".join(
        _SEGMENT.pack(kind, flags, at, at, at, nbytes, nbytes, alignment)
        for kind, flags, at, nbytes, alignment in segments
    )


def _strings(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Return a table of strings, and the beginning of each."""
    table, places = bytearray(1), []
    for text in texts:
        places.append(len(table))
        table += text.encode() + b"\0"
    return bytes(table), places


def _aligned(at: int, to: int) -> int:
    return (at + to - 1) // to * to


def _put(image: bytearray, at: int, part: bytes) -> None:
    image[at : at + len(part)] = part


def guarded(function: Callable[..., int], failed: int) -> Callable[..., int]:
    """Return the function, which returns `failed` instead of raising.

    An interrupt is raised again in the main thread, after the C code has returned. Any other error
    is reported as an error without a caller, as C has no other place for it. So is an exception
    that propagates through C code which cleans up: the function would treat it as its own.
    """

    def answer(*given: Argument) -> int:
        try:
            _raise_what_passes()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        try:
            return function(*given)
        except KeyboardInterrupt:
            # Within an unpacking: after a call the interpreter would check for it here already.
            (_,) = map(_thread.interrupt_main, (signal.SIGINT,))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        return failed

    return answer


class SharedObject:
    """A library whose functions jump where `point` directs, loaded until the process ends.

    It is never unloaded, as others keep the addresses of its functions. A function without a target
    returns CUDA_ERROR_DEINITIALIZED, also after the interpreter has ended.

    Raises:
        DriverSelectionError: a library of that name is already loaded, or the system cannot load
            this one.
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
        """Return the address of a function for callers; None if there is none."""
        return _address_in(self._library, name) if name in self._places else None

    def point(self, name: str, callback: CFuncPtr) -> None:
        """Let a function jump to a callback from now on; the caller keeps that alive."""
        self._slots[self._places[name]] = ctypes.cast(callback, ctypes.c_void_p).value

    def clear(self) -> None:
        """Let all functions report that there is no driver."""
        for at in range(len(self._places)):
            self._slots[at] = self._answer


def is_loaded(soname: str) -> bool:
    """Return whether a library of this name is in the process."""
    try:
        ctypes.CDLL(soname, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _load(soname: str, image: bytes) -> ctypes.CDLL:
    """Load a library without a file; others find it by its own name.

    Its descriptor stays open: the loader stores the path, and would confuse another library of the
    same path with this one.
    """
    file = os.memfd_create(soname)
    with os.fdopen(file, "wb", closefd=False) as opened:
        opened.write(image)
    return ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW | os.RTLD_GLOBAL)


def _address_in(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
