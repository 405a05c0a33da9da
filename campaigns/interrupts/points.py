"""Interrupts at each point in turn where CPython can deliver one, by trace functions.

CPython looks for signals where a Python function begins, where a loop goes back, and after the call
of what is not a Python function. Such a point differs from the beginning of the next instruction
where a `try` ends in between. So three events of the tracer are used. They are the call of a
function, the return of a C function, and an instruction after a jump back or after the call of a
class.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import cudadrv
import ptx

_PACKAGES: Final = (
    f"{Path(cudadrv.__file__).parent}{os.sep}",
    f"{Path(ptx.__file__).parent}{os.sep}",
)
_DRIVER: Final = (
    f"{Path(cudadrv.__file__).parent / 'emulator'}{os.sep}",
    f"{Path(ptx.__file__).parent / 'emulate'}{os.sep}",
)
_READER: Final = f"{Path(ptx.__file__).parent / 'isa'}{os.sep}"
# What a finalizer raises goes no further than `sys.unraisablehook`.
_FINALIZERS: Final = ("__del__", "_after_collection", "_forget")
_CALLS: Final = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
_BACK: Final = ("JUMP_BACKWARD", "POP_JUMP_BACKWARD")


class Interrupted(KeyboardInterrupt):
    """The interrupt of this campaign."""


def is_in_driver(frame: FrameType | None) -> bool:
    """Whether a call of the emulator is under way, which stands for a driver of C."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_DRIVER):
            return True
        frame = frame.f_back
    return False


def is_ours(code: CodeType) -> bool:
    """Whether a function is of the packages, and not of the emulator."""
    return code.co_filename.startswith(_PACKAGES) and not code.co_filename.startswith(_DRIVER)


@functools.cache
def _instructions(code: CodeType) -> dict[int, str]:
    return {each.offset: each.opname for each in dis.get_instructions(code)}


@functools.cache
def _handlers(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """Where each stretch of a function goes with an error."""
    # Python has no public name for the table.
    entries: Iterable[Any] = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end, entry.target) for entry in entries)


def _handler(code: CodeType, offset: int) -> int | None:
    for start, end, target in _handlers(code):
        if start <= offset < end:
            return target
    return None


class Interrupter:
    """Runs a function and interrupts it at one point.

    Args:
        number: which point, counted from 0.
        ours: which functions have points.

    Attributes:
        place: the point, once it was reached.
        points: how many there were, if it was not.
    """

    def __init__(self, number: int, ours: Callable[[CodeType], bool] = is_ours) -> None:
        self._number = number
        self._ours = ours
        self.points = 0
        self.place: str | None = None
        # The last instruction of each frame that runs, and whether its call was seen to return.
        self._last: dict[FrameType, int] = {}
        self._returned: FrameType | None = None

    def run(self, act: Callable[[], object]) -> bool:
        """Run it; whether it was interrupted, whatever became of the interrupt."""
        former, profiler = sys.gettrace(), sys.getprofile()
        try:
            sys.setprofile(self._profile)
            sys.settrace(self._call)
            try:
                act()
            finally:
                sys.settrace(former)
                sys.setprofile(profiler)
        except Interrupted:
            pass
        finally:
            self._last.clear()
            self._returned = None
        return self.place is not None

    def _point(self, frame: FrameType, what: str) -> None:
        if self.place is None:
            if self.points == self._number:
                code = frame.f_code
                path = Path(code.co_filename)
                where = f"{path.parent.name}/{path.name}:{frame.f_lineno}"
                self.place = f"{where} in {code.co_qualname}, {what}"
                self._last.clear()
                raise Interrupted(self.place)
            self.points += 1

    def _call(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if self.place is not None or not self._ours(code) or _is_finalizer(frame):
            return None
        # The emulator reads PTX while it executes a kernel. There it stands for a driver of C.
        if code.co_filename.startswith(_READER) and is_in_driver(frame.f_back):
            return None
        if frame not in self._last:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last[frame] = frame.f_lasti
        self._point(frame, "at the beginning")
        return self._step

    def _step(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "return":
            self._last.pop(frame, None)
            self._returned = frame.f_back  # after a Python function nothing is looked for
            if frame.f_code.co_name in ("__init__", "__new__"):
                self._returned = None  # but after the class
        elif event == "opcode":
            code, now = frame.f_code, frame.f_lasti
            before = self._last.get(frame, now)
            self._last[frame] = now
            returned, self._returned = self._returned, None
            name = _instructions(code).get(before, "")
            if _handler(code, before) != _handler(code, now):
                return self._step
            if name in _CALLS and returned is not frame:
                self._point(frame, f"after {name}")
            elif name.startswith(_BACK) and now < before:
                self._point(frame, "going back")
        return self._step

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "c_return" and frame in self._last:
            self._returned = frame
            self._point(frame, "after a call")


def _is_finalizer(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _FINALIZERS:
            return True
        frame = frame.f_back
    return False
