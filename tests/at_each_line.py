"""Something unexpected at each line of some files in turn: an exception, or a call in between."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

from ptx.shown_path import shown_path

_T = TypeVar("_T")
Trace = Callable[[FrameType, str, Any], Any]  # as sys.settrace takes it
Event = Callable[[], None]
"""What comes in between; it may raise."""


class Line:
    """One of the lines that an operation executes.

    Args:
        number: counts the executed lines of the files, from 0.
        files: parts of the files' names.
        event: called there.

    Attributes:
        place: file, line and function, once it was reached; else "".
        before: the places before it, in order.
        within: the files of the functions that had called this one.
    """

    def __init__(self, number: int, files: Sequence[str], event: Event) -> None:
        self._number = number
        self._files = files
        self._event = event
        self.place = ""
        self.before: list[str] = []
        self.within: set[str] = set()

    def run(self, act: Callable[[], _T]) -> _T:
        """Return the result of `act`, with the event at the line."""
        former = sys.gettrace()
        sys.settrace(self._called)
        try:
            return act()
        finally:
            sys.settrace(former)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Trace | None:
        file = frame.f_code.co_filename
        return self._reached if any(part in file for part in self._files) else None

    def _reached(self, frame: FrameType, event: str, argument: Any) -> Trace | None:
        if event != "line" or self.place:
            return self._reached
        code = frame.f_code
        place = f"{shown_path(code.co_filename)}:{frame.f_lineno} {code.co_name}"
        if len(self.before) != self._number:
            self.before.append(place)
            return self._reached
        self.place = place
        caller: FrameType | None = frame
        while caller is not None:
            self.within.add(caller.f_code.co_filename)
            caller = caller.f_back
        sys.settrace(None)
        self._event()
        return None


def raising(error: type[BaseException]) -> Event:
    """Return an event that raises an error."""

    def event() -> None:
        raise error

    return event
