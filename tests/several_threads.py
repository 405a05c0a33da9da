"""Work that several threads do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def running(works: Iterable[Callable[[], object]]) -> Iterator[None]:
    """Do each in a thread of its own, and wait for all behind the block."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def all_at_once(works: Iterable[Callable[[], object]]) -> None:
    """Do each in a thread of its own, and wait for all."""
    with running(works):
        pass
