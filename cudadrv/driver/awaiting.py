"""Waiting for the device in asyncio: the loop goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

# The wait is longer by so much at most than the work takes, and by so many seconds.
_SHARE: Final = 0.1
_LONGEST_S: Final = 0.005


def until(is_done: Callable[[], bool]) -> Generator[Any, None, None]:
    """What ``await`` iterates, until something is done.

    The driver is asked again and again, as a function of the host in the stream would not be called
    where the work fails. What it answers then is raised.
    """
    if is_done():
        return
    import asyncio  # 30 ms, for those who await alone
    import time

    begun = time.perf_counter()
    while not is_done():
        waited = time.perf_counter() - begun
        yield from asyncio.sleep(min(waited * _SHARE, _LONGEST_S)).__await__()
