"""Waits for Python's interpreter lock, where C code holds it and waits for its own thread.

The real driver needs no Python, so C code may hold the lock while a thread of its own calls the
driver. `lock_wait.c` lets such calls go on, or reports them and ends the process. It is for the
processor x86-64, and is shipped compiled (`tools/compile_lock_wait.py`).
"""

from __future__ import annotations

import base64
import ctypes
import mmap
import platform
import signal
import struct
import sys
import sysconfig
import threading
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from .lock_wait_code import CODE, OFFSETS

ENDED: Final = 68
"""The status of a process that a wait for the lock ends."""
_REPORT_SECONDS: Final = 5
_LONGEST: Final = 1 << 32  # seconds
_STEPS_A_SECOND: Final = 50  # 1000 / STEP_MS
_TABLES: Final = 8
_REMEDY: Final = "release the lock there (Py_BEGIN_ALLOW_THREADS; ctypes.CDLL, not PyDLL)"
_SIGNAL_BYTES, _ATTRIBUTE_BYTES = 152, 256  # sizeof(struct sigaction), more than pthread_attr_t
_FLAGS: Final = 0x10000004  # SA_RESTART, SA_SIGINFO
_OFFSET_FLAGS: Final = 136  # of sa_flags
_STACK_BYTES: Final = 256 << 10
_DETACHED: Final = 1  # PTHREAD_CREATE_DETACHED
_WIPE_ON_FORK: Final = 18  # MADV_WIPEONFORK
_READ_EXECUTE: Final = 5


class _Given(ctypes.Structure):
    """`given` of lock_wait.c."""

    _fields_ = (
        ("ensure", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("is_initialized", ctypes.c_void_p),
        ("check", ctypes.c_void_p),
        ("own_state", ctypes.c_void_p),
        ("current_state", ctypes.c_void_p),
        ("save", ctypes.c_void_p),
        ("restore", ctypes.c_void_p),
        ("add_pending_call", ctypes.c_void_p),
        ("create_thread", ctypes.c_void_p),
        ("thread_attributes", ctypes.c_void_p),
        ("main", ctypes.c_uint64),
        ("signal", ctypes.c_uint64),
        ("status", ctypes.c_uint64),
        ("report", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("own_threads", ctypes.c_char_p),
        ("first_call", ctypes.c_char_p),
        ("thread", ctypes.c_char_p),
        ("reported", ctypes.c_char_p * 2),
        ("ended", ctypes.c_char_p * 2),
        ("names", ctypes.c_void_p * _TABLES),
    )


class Name(ctypes.Structure):
    """`struct name` of lock_wait.c."""

    _fields_ = (("function", ctypes.c_void_p), ("text", ctypes.c_char_p))


class LockFunctions(NamedTuple):
    """Functions that take the place of PyGILState_Ensure and PyGILState_Release.

    Attributes:
        acquire: the first, called by a stand-in library.
        acquire_at_start: the first, for the call that starts the emulator.
        release: the second.
        given: what the code reads.
    """

    acquire: int
    acquire_at_start: int
    release: int
    given: _Given

    def name(self, names: Mapping[int, str]) -> None:
        """Let reports name functions, each by its address; the addresses stay valid."""
        table = (Name * (len(names) + 1))(*(Name(at, text.encode()) for at, text in names.items()))
        _keep(table)
        for place in range(_TABLES):
            if not self.given.names[place]:
                self.given.names[place] = ctypes.addressof(table)
                return

    def end_after(self, seconds: int) -> None:
        """Let a wait of so many seconds end the process."""
        seconds = min(seconds, _LONGEST)
        self.given.ended[:] = _line(
            seconds, f": the process ends with status {ENDED}\n  Where C code waits: {_REMEDY}"
        )
        self.given.last = _STEPS_A_SECOND * seconds


@cache
def lock_functions() -> LockFunctions | None:
    """Return the functions; None if there are none, as some systems forbid code in memory.

    A Python without an interpreter lock needs none.
    """
    is_here = sys.platform == "linux" and platform.machine() == "x86_64"
    if not is_here or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        return _made()
    except (OSError, ValueError, AttributeError):
        return None


def _made() -> LockFunctions:
    libc = ctypes.CDLL(None, use_errno=True)
    code = base64.b85decode(CODE)
    pages = OFFSETS["now"] + mmap.PAGESIZE
    memory = mmap.mmap(-1, pages, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[: len(code)] = code
    memory.madvise(_WIPE_ON_FORK, OFFSETS["now"], mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    number = signal.SIGRTMAX - 4  # debuggers and runtimes use the first ones
    given = _Given.from_buffer(memory, OFFSETS["given"])
    _set(given, libc, number)
    if libc.mprotect(
        ctypes.c_size_t(start), ctypes.c_size_t(OFFSETS["given"]), ctypes.c_int(_READ_EXECUTE)
    ):
        raise OSError(ctypes.get_errno(), "mprotect")
    handler = start + OFFSETS["on_signal"]
    action = ctypes.create_string_buffer(struct.pack("<Q", handler), _SIGNAL_BYTES)
    struct.pack_into("<i", action, _OFFSET_FLAGS, _FLAGS)
    if libc.sigaction(number, action, None):
        raise OSError(ctypes.get_errno(), "sigaction")
    _keep((memory, given))
    acquire, acquire_at_start, release = (
        start + OFFSETS[name] for name in ("acquire", "acquire_at_start", "release")
    )
    return LockFunctions(acquire, acquire_at_start, release, given)


def _set(given: _Given, libc: ctypes.CDLL, number: int) -> None:
    python = ctypes.pythonapi
    current = "PyThreadState_GetUnchecked"  # since 3.13
    given.ensure = _address(python, "PyGILState_Ensure")
    given.release = _address(python, "PyGILState_Release")
    given.is_initialized = _address(python, "Py_IsInitialized")
    given.check = _address(python, "PyGILState_Check")
    given.own_state = _address(python, "PyGILState_GetThisThreadState")
    given.current_state = _address(
        python, current if hasattr(python, current) else "_PyThreadState_UncheckedGet"
    )
    given.save = _address(python, "PyEval_SaveThread")
    given.restore = _address(python, "PyEval_RestoreThread")
    given.add_pending_call = _address(python, "Py_AddPendingCall")
    given.create_thread = _address(libc, "pthread_create")
    attributes = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setdetachstate(attributes, _DETACHED)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
    _keep(attributes)
    given.thread_attributes = ctypes.addressof(attributes)
    main = threading.main_thread().ident
    assert main is not None
    given.main, given.signal, given.status = main, number, ENDED
    given.report = _STEPS_A_SECOND * _REPORT_SECONDS
    given.own_threads, given.first_call = b"/proc/self/task", b"its first function of the driver"
    given.thread = b"cudadrv: thread "
    given.reported[:] = _line(
        _REPORT_SECONDS,
        f"\n  If C code holds the lock while it waits for that thread, neither goes on: {_REMEDY}",
    )


def _line(seconds: int, rest: str) -> tuple[bytes, bytes]:
    waited = f" has waited {seconds} s for Python's interpreter lock, to call "
    return waited.encode(), f"{rest}\n".encode()


def _keep(thing: object) -> None:
    """Let an object live until the process ends, as C code has its address."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
