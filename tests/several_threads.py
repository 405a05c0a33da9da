"""Work that several threads do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


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
