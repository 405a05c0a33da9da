"""The newest messages of failed calls."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Final

_MOST_MESSAGES: Final = 100
_ERROR: Final = 0  # CU_LOG_LEVEL_ERROR
_Callback: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
)


class ErrorLog:
    """The log of an emulator.

    Attributes:
        count: how many messages there have been.
        receivers: functions of the host with their arguments, by their handles.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self.receivers: dict[int, tuple[int, int]] = {}
        self._newest: deque[str] = deque(maxlen=_MOST_MESSAGES)

    def add(self, message: str) -> None:
        """Keep a message, and pass it to the callbacks; hold no lock."""
        self._newest.append(message)
        self.count += 1
        data = message.encode()
        for function, argument in list(self.receivers.values()):
            _Callback(function)(argument, _ERROR, data, len(data))

    def since(self, start: int) -> tuple[list[str], bool, int]:
        """Return the messages from a number on, whether none is lost, and the next number."""
        messages = list(self._newest)
        first = self.count - len(messages)
        return messages[max(0, start - first) :], start >= first, self.count
