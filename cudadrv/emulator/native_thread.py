"""Native threads: a number of each that no later thread gets, and the ends of them.

A thread that C made has no state in Python between two calls of Python: CPython makes one for each
call. So the driver's state of such a thread is stored by a number of the native thread. Identifiers
do not serve: the system gives those of ended threads to new ones.

The number belongs to a value of `pthread_setspecific`. At the thread's end the system calls the
destructor of that value (POSIX, "pthread_key_create"). The value is a semaphore and the destructor
is `sem_post`, so no Python runs there. A later call looks at the semaphore.
"""

from __future__ import annotations

import itertools
import sys
import threading
from ctypes import PYFUNCTYPE, PyDLL, byref, c_int, c_size_t, c_uint, c_void_p, cast
from functools import cache
from typing import Any, Final

_SEMAPHORE_BYTES: Final = 64  # more than sem_t has on any Linux


class NativeThreads:
    """The native threads of this process that have a number.

    Raises:
        OSError: the process has no room for another thread-specific value.
    """

    def __init__(self) -> None:
        # The functions keep the interpreter lock, as they take no time.
        library = PyDLL(None)
        self._get = PYFUNCTYPE(c_void_p, c_uint)(("pthread_getspecific", library))
        self._set = PYFUNCTYPE(c_int, c_uint, c_void_p)(("pthread_setspecific", library))
        self._calloc = PYFUNCTYPE(c_void_p, c_size_t, c_size_t)(("calloc", library))
        self._free = PYFUNCTYPE(None, c_void_p)(("free", library))
        self._init = PYFUNCTYPE(c_int, c_void_p, c_int, c_uint)(("sem_init", library))
        self._value = PYFUNCTYPE(c_int, c_void_p, c_void_p)(("sem_getvalue", library))
        self._numbers: dict[int, int] = {}
        self._next = itertools.count(1)
        key = c_uint()
        if library.pthread_key_create(byref(key), cast(library.sem_post, c_void_p)):
            raise OSError("the process has no room for another thread-specific value")
        self._key: int = key.value

    def number(self) -> int:
        """Return the number of the calling thread."""
        semaphore = self._get(self._key)
        number = self._numbers.get(semaphore or 0)
        if number is None:
            self._forget_ended()
            # Not memory of Python: the thread may end after the interpreter.
            semaphore = self._calloc(1, _SEMAPHORE_BYTES)
            if not semaphore:
                raise MemoryError("no memory for the state of a thread")
            self._init(semaphore, 0, 0)
            number = self._numbers[semaphore] = next(self._next)
            self._set(self._key, semaphore)
        return number

    def alive(self) -> set[int]:
        """Return the numbers of the threads that have not ended."""
        self._forget_ended()
        return set(self._numbers.copy().values())

    def _forget_ended(self) -> None:
        value = c_int()
        for semaphore in list(self._numbers):
            self._value(semaphore, byref(value))
            if value.value and self._numbers.pop(semaphore, None) is not None:
                self._free(semaphore)


@cache
def native_threads() -> NativeThreads | None:
    """Return the native threads of this process; None if the system has no such semaphores."""
    return NativeThreads() if sys.platform == "linux" else None


def thread_number() -> int:
    """Return the number of the calling thread; its identifier if the system has no numbers."""
    threads = native_threads()
    return threading.get_ident() if threads is None else threads.number()


class ThreadStates:
    """The attributes of a `threading.local`, by native thread."""

    def __init__(self) -> None:
        self._states: dict[int, dict[str, Any]] = {}  # as of any object

    def restore(self, own: dict[str, Any]) -> None:  # as above
        """Give the calling thread's attributes, which Python has just made, the former values."""
        threads = native_threads()
        if threads is None:
            return
        former = self._states.get(threads.number())
        if former is None:
            alive = threads.alive()
            for number in list(self._states):
                if number not in alive:
                    self._states.pop(number, None)
        else:
            for name, value in former.items():
                own.setdefault(name, value)
        self._states[threads.number()] = own
