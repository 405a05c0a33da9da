"""The driver's error log: the reason of a failed call, in the driver's own words.

CUDA Driver API, "Error Log Management": CUDA 12.9 and newer. A failing call writes lines such as::

    [12:46:23.854][137216133754880][CUDA][E] One or more of block dimensions of ...
    [12:46:23.854][137216133754880][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunch...
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Final

# "The maximum size of the buffer is 25600 bytes": cuLogsDumpToMemory in the CUDA Driver API manual.
_BUFFER_BYTES: Final = 25600
_LINE: Final = re.compile(r"\[[^]]*\]\[(\d+)\]\[[^]]*\]\[[^]]*\](.*)")
_RESULT: Final = re.compile(r"Returning (\d+) \(\w*\) from (\w+)")


class DriverLog:
    """Reads the log after a failure.

    Each thread has a position of its own, as a failure of one thread must not hide another's lines.
    """

    def __init__(
        self,
        current: Callable[[int], tuple[Any, ...]],  # as cuda.bindings, of a driver before 12.9 too
        dump: Callable[[Any, bytes, int, int], tuple[Any, ...]],
    ) -> None:
        self._current = current
        self._dump = dump
        self._read = threading.local()

    def reason(self, code: int, call: str) -> str:
        """Return the driver's messages about this thread's failed call; empty if there are none.

        Args:
            code: the CUresult that the call returned.
            call: the name of the function; empty if it is unknown.
        """
        try:
            return _reason_in(self._new_lines(), code, call)
        except Exception:  # a driver without the functions, say: the failure itself is what counts
            return ""

    def _new_lines(self) -> list[str]:
        """Return this thread's messages since its last read."""
        buffer = bytes(_BUFFER_BYTES)  # the driver writes to this new object
        code, *_, nbytes = self._dump(
            getattr(self._read, "position", None), buffer, _BUFFER_BYTES, 0
        )
        is_known, position = self._current(0)
        if not is_known:
            self._read.position = position
        if code:
            return []
        thread = str(threading.get_ident())
        lines = map(_LINE.match, buffer[:nbytes].decode(errors="replace").split("\n"))
        return [line[2].strip() for line in lines if line is not None and line[1] == thread]


def _reason_in(messages: list[str], code: int, call: str) -> str:
    """Return the messages of the last call, if it is the failed one.

    The last line of a call names its result, which the error has already.
    """
    messages = list(messages)
    if messages and (result := _RESULT.fullmatch(messages[-1])):
        if int(result[1]) != code or not result[2].startswith(call):
            return ""
        messages.pop()
    earlier = [index for index, message in enumerate(messages) if _RESULT.fullmatch(message)]
    return "; ".join(messages[earlier[-1] + 1 :] if earlier else messages)
