"""The calls that wait for a worker's thread, which may wait for an answer at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

from .call import Call


class Inbox:
    """A queue, and a pipe that can be read when something was put into it.

    None among the calls says that no more come.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __del__(self) -> None:
        if hasattr(self, "_write"):
            os.close(self._read)
            os.close(self._write)

    def __len__(self) -> int:
        return self._calls.qsize()

    def fileno(self) -> int:
        """What can be read when something was put in since the last `take`."""
        return self._read

    def put(self, call: Call | None) -> None:
        """Put a call behind the others."""
        self._calls.put(call)
        with suppress(BlockingIOError):  # so full, it can be read in any case
            os.write(self._write, b"\0")

    def get(self) -> Call | None:
        """The first call, waited for."""
        return self._calls.get()

    def take(self) -> Call | None:
        """The first call, if there is one; an end stays for `get`."""
        with suppress(BlockingIOError):
            os.read(self._read, 1 << 12)
        with suppress(Empty):
            call = self._calls.get_nowait()
            if call is not None:
                return call
            self._calls.put(None)
        return None

    def drained(self) -> Iterator[Call]:
        """Take all calls out, and the end."""
        with suppress(Empty):
            while True:
                call = self._calls.get_nowait()
                if call is not None:
                    yield call
