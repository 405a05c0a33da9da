"""Waits for Python's interpreter lock that do not end.

C code that holds the lock, and waits for a thread of its own that calls the driver, hangs: the
emulator is Python. Nothing of Python can run then. So a thread sets a timer of the system before it
asks for the lock, and stops it afterwards. The timer's signal runs a few instructions, which print
one line. The main thread sets no timer: it is rarely waited for, and a timer costs two calls of the
system.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import struct
import sys
import threading
from functools import cache
from typing import Final, NamedTuple

SECONDS: Final = 5
_MESSAGE: Final = (
    f"cudadrv: a thread has waited {SECONDS} s for Python's interpreter lock, to call the driver. "
    "If C code holds the lock while it waits for that thread, neither will go on: release the lock "
    "there (Py_BEGIN_ALLOW_THREADS; ctypes.CDLL, not PyDLL)\n"
).encode()
_MONOTONIC: Final = 1  # CLOCK_MONOTONIC
_SIGNAL_BYTES, _EVENT_BYTES = 152, 64  # sizeof(struct sigaction), struct sigevent
_RESTART: Final = 0x10000000  # SA_RESTART
_OFFSET_FLAGS: Final = 136  # of sa_flags
_SPECIFICATION: Final = struct.Struct("<4Q")  # struct itimerspec: interval, time


class Waiting(NamedTuple):
    """The function that waits.

    Attributes:
        ensure: its address.
        calls: counts its calls in other threads than the main one.
    """

    ensure: int
    calls: ctypes.c_uint64


def waiting_ensure() -> int | None:
    """Return the address of a PyGILState_Ensure that reports a long wait; None if there is none."""
    found = waiting()
    return None if found is None else found.ensure


@cache
def waiting() -> Waiting | None:
    """Return a PyGILState_Ensure that reports a long wait; None if there is none.

    It is for the processor x86-64. Some systems forbid code in memory.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        return _made()
    except (OSError, ValueError, AttributeError):
        return None


def _made() -> Waiting:
    libc = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    data = {"message": start + 1024, "arm": start + 2048, "stop": start + 2048 + 64}
    counter = ctypes.c_uint64()
    number = signal.SIGRTMAX - 4  # debuggers and runtimes use the first ones
    timer = _timer(libc, number)
    handler, ensure = start, start + 256
    main = threading.main_thread().ident
    assert main is not None
    settime = _address(libc, "timer_settime")
    printed = ctypes.c_int()
    memory[0:256] = _write(data["message"], ctypes.addressof(printed)).ljust(256, b"\xcc")
    code = _ensure(
        main, timer, settime, data["arm"], data["stop"], counter=ctypes.addressof(counter)
    )
    memory[256 : 256 + len(code)] = code
    memory[1024 : 1024 + len(_MESSAGE)] = _MESSAGE
    memory[2048 : 2048 + 32] = _SPECIFICATION.pack(0, 0, SECONDS, 0)
    if libc.mprotect(ctypes.c_size_t(start), ctypes.c_size_t(mmap.PAGESIZE), 5):  # read, execute
        raise OSError(ctypes.get_errno(), "mprotect")
    action = ctypes.create_string_buffer(struct.pack("<Q", handler), _SIGNAL_BYTES)
    struct.pack_into("<i", action, _OFFSET_FLAGS, _RESTART)
    if libc.sigaction(number, action, None):
        raise OSError(ctypes.get_errno(), "sigaction")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((memory, printed, counter)))  # for the process
    return Waiting(ensure, counter)


def _timer(libc: ctypes.CDLL, number: int) -> int:
    """Return a timer that sends a signal."""
    event, timer = ctypes.create_string_buffer(_EVENT_BYTES), ctypes.c_size_t()
    struct.pack_into("<Qii", event, 0, 0, number, 0)  # sigev_value, sigev_signo, SIGEV_SIGNAL
    if libc.timer_create(_MONOTONIC, event, ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    return timer.value


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def _write(message: int, flag: int) -> bytes:
    """Write the message to standard error, unless the flag is set; set it."""
    once = b"\x48\xb8" + struct.pack("<Q", flag) + b"\xb9\x01\0\0\0"  # to %rax; 1 to %ecx
    write = b"\xbf\x02\0\0\0\x48\xbe" + struct.pack("<Q", message)  # 2 to %edi; to %rsi
    write += b"\xba" + struct.pack("<i", len(_MESSAGE)) + b"\xb8\x01\0\0\0\x0f\x05"  # syscall
    skip = b"\x87\x08\x85\xc9\x75" + bytes([len(write)])  # xchg %ecx, (%rax); test; jne
    return once + skip + write + b"\xc3"


def _ensure(main: int, timer: int, settime: int, arm: int, stop: int, counter: int) -> bytes:
    """Call PyGILState_Ensure, between two calls of timer_settime unless in the main thread."""

    def set_timer(specification: int) -> bytes:
        first = b"\x48\xbf" + struct.pack("<Q", timer) + b"\x31\xf6"  # %rdi, %esi
        then = b"\x48\xba" + struct.pack("<Q", specification) + b"\x31\xc9"  # %rdx, %ecx
        return first + then + b"\x48\xb8" + struct.pack("<Q", settime) + b"\xff\xd0"

    ensure = b"\x48\xb8" + struct.pack("<Q", _address(ctypes.pythonapi, "PyGILState_Ensure"))
    in_main = ensure + b"\xff\xe0"  # jmp *%rax
    count = b"\x48\xb8" + struct.pack("<Q", counter) + b"\xf0\x48\xff\x00"  # lock incq (%rax)
    elsewhere = (
        b"\x50" + count + set_timer(arm) + ensure + b"\xff\xd0\x89\x04\x24" + set_timer(stop)
    )
    elsewhere += b"\x8b\x04\x24\x59\xc3"  # mov (%rsp), %eax; pop %rcx; ret
    own = b"\x64\x48\x8b\x0c\x25\x10\0\0\0"  # mov %fs:16, %rcx: what pthread_self returns
    compare = b"\x48\xb8" + struct.pack("<Q", main) + b"\x48\x39\xc1\x75"  # cmp; jne
    return own + compare + bytes([len(in_main)]) + in_main + elsewhere
