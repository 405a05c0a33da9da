"""Work that several threads do at once."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


@contextmanager
def running(works: Iterable[Callable[[], object]]) -> Iterator[None]:
    """Do each in a thread of its own, and wait for all behind the block."""
    # Threads that work already would keep the next from starting, for seconds.
    begin = threading.Event()

    def wait_and_do(work: Callable[[], object]) -> None:
        begin.wait()
        work()

    threads = [threading.Thread(target=wait_and_do, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    begin.set()
    yield
    for thread in threads:
        thread.join()


def all_at_once(works: Iterable[Callable[[], object]]) -> None:
    """Do each in a thread of its own, and wait for all."""
    with running(works):
        pass


def in_thread_of_c(function: Callable[[], object]) -> None:
    """Call a function in a thread that Python did not start, and wait for its end."""

    def run(_: int | None) -> None:
        function()

    start, library, thread = _START(run), ctypes.CDLL(None), ctypes.c_ulong()
    assert library.pthread_create(ctypes.byref(thread), None, start, None) == 0
    assert library.pthread_join(thread, None) == 0
