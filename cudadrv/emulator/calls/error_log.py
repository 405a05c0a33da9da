"""The driver's log of errors: what failed calls report beyond their codes.

CUDA Driver API: "Error Log Management Functions".
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from ...driver._api import CUlogIterator, CUlogsCallbackHandle, CUresult
from ..call_error import OK, SUCCESS, CallError, invalid_value
from .call import DriverCalls, call

_MOST_BYTES: Final = 25600  # of a dump to memory
_TRUNCATED: Final = "[older messages are lost]\n"


class ErrorLogCalls(DriverCalls):
    """The log, its callbacks, and dumps of it."""

    @call
    def cuLogsRegisterCallback(
        self, callback_func: int, user_data: int, /
    ) -> tuple[CUresult, CUlogsCallbackHandle]:
        """Call a function of the host for each message from now on."""
        if not int(callback_func):
            raise invalid_value("the function of the host is null")
        handle = self._state.handles.new()
        self._state.process.log.receivers[handle] = (int(callback_func), int(user_data))
        return SUCCESS, CUlogsCallbackHandle(handle)

    @call
    def cuLogsUnregisterCallback(self, callback: CUlogsCallbackHandle, /) -> tuple[CUresult]:
        """Call that function no more."""
        if self._state.process.log.receivers.pop(int(callback), None) is None:
            raise invalid_value(f"{int(callback):#x} is no callback of the log")
        return OK

    @call
    def cuLogsCurrent(self, flags: int, /) -> tuple[CUresult, CUlogIterator]:
        """Return the place of the next message."""
        _check_flags(flags)
        return SUCCESS, CUlogIterator(self._state.process.log.count)

    @call
    def cuLogsDumpToFile(
        self, iterator: CUlogIterator | None, path_to_file: bytes, flags: int, /
    ) -> tuple[CUresult, CUlogIterator]:
        """Write the messages from a place on, or all, and return the place after them."""
        _check_flags(flags)
        text, end = self._messages(iterator)
        try:
            Path(os.fsdecode(path_to_file)).write_text(text)
        except (OSError, ValueError) as error:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_VALUE, f"the file of the log: {error}"
            ) from None
        return SUCCESS, CUlogIterator(end)

    @call
    def cuLogsDumpToMemory(
        self, iterator: CUlogIterator | None, buffer: int, size: int, flags: int, /
    ) -> tuple[CUresult, CUlogIterator, int]:
        """Same to memory, which ends with a NUL; without room the oldest are left out.

        Returns the place after them, and the bytes without the NUL.
        """
        _check_flags(flags)
        if not 0 < size <= _MOST_BYTES:
            raise invalid_value(f"a buffer of {size} bytes: it has 1 to {_MOST_BYTES}")
        text, end = self._messages(iterator)
        data = text.encode()
        if len(data) >= size:
            mark = _TRUNCATED.encode()[: size - 1]
            room = size - 1 - len(mark)
            data = mark + (data[-room:] if room else b"")
        ctypes.memmove(buffer, data + b"\0", len(data) + 1)
        return SUCCESS, CUlogIterator(end), len(data)

    def _messages(self, iterator: CUlogIterator | None) -> tuple[str, int]:
        messages, is_whole, end = self._state.process.log.since(
            0 if iterator is None else int(iterator)
        )
        text = "".join(f"{message}\n" for message in messages)
        return text if is_whole else _TRUNCATED + text, end


def _check_flags(flags: int) -> None:
    if flags:
        raise invalid_value(f"the log takes flags 0, not {flags:#x}")
