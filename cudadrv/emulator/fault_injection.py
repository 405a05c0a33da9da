"""Fault injection, for tests of what a program does when a driver call fails.

Each is planned by a method of `Emulator`, and removed by `remove()` or at the end of a `with`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .. import border
from ..driver._api import CUresult
from ..errors import ArgumentValueError
from .core import Core
from .refusal import RESULT_TEXTS, Failure, Refusal

if TYPE_CHECKING:
    from .device_state import DeviceState

# What a fault of one function applies to beside it: a launch is a launch by either call.
_ALSO = {"cuLaunchKernel": ("cuLaunchKernelEx",)}


class Planned:
    """Something planned, in force until it is removed."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove = remove

    def remove(self) -> None:
        """End it; again is fine."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class ScheduledFault(Planned):
    """A driver function that fails, from its `nth` call on, `times` times.

    Attributes:
        calls: calls of the function since the fault was planned.
        hits: how many of them failed for it.
    """

    def __init__(
        self,
        remove: Callable[[], None],
        function: str,
        nth: int,
        times: int | None,
        refusal: tuple[CUresult, str],
    ) -> None:
        super().__init__(remove)
        self.function = function
        self.calls: int = 0
        self.hits: int = 0
        self._nth = nth
        self._times = times
        self._code, self._text = refusal

    def count(self) -> bool:
        """One call more; whether it is one that fails."""
        self.calls += 1
        return self.calls >= self._nth and (self._times is None or self.hits < self._times)

    def strike(self) -> Refusal:
        """One failure more, to be raised."""
        self.hits += 1
        return Refusal(self._code, self._text)


class MemoryLimit(Planned):
    """A device that has less memory to give than it says."""


class BadDevice(Planned):
    """A device on which all calls return one error, as after a kernel's fault."""


class FaultInjection(Core):
    """Planning of faults."""

    def fail(
        self,
        function: str,
        *,
        nth: int = 1,
        times: int | None = 1,
        with_: int = int(CUresult.CUDA_ERROR_UNKNOWN),
        text: str = "",
    ) -> ScheduledFault:
        """Make the `nth` call of a driver function, counted from now, return `with_`.

        `with_` is a CUresult or its number, and `text` what cuGetErrorString then says. The call
        does nothing else. Calls of all threads count. Without `times` limit (None) every call from
        the nth on fails. A fault of cuLaunchKernel is one of cuLaunchKernelEx, which cudadrv
        launches with, too.

        Raises:
            ValueError: no such function, or a number out of range.
        """
        border.instance("Emulator.fail: function", function, str)
        if not (function.startswith("cu") and hasattr(self, function)):
            raise ArgumentValueError(f"{function!r} is no driver function that the emulator has")
        nth = border.integer("Emulator.fail: nth", nth)
        times = None if times is None else border.integer("Emulator.fail: times", times)
        if nth < 1 or (times is not None and times < 1):
            raise ArgumentValueError("nth and times count from 1")
        code = _result("Emulator.fail: with_", with_)
        border.text("Emulator.fail: text", text)
        names = (function, *_ALSO.get(function, ()))
        said = text or RESULT_TEXTS.get(int(code), code.name)

        def remove() -> None:
            with self._lock:
                for name in names:
                    planned = self._schedule.get(name, [])
                    if fault in planned:
                        planned.remove(fault)

        fault = ScheduledFault(remove, function, nth, times, (code, said))
        with self._lock:
            for name in names:
                self._schedule.setdefault(name, []).append(fault)
        return fault

    def limit_memory(self, nbytes: int, *, ordinal: int = 0) -> MemoryLimit:
        """Let no more than `nbytes` of a device's memory be in use at once.

        What is in use stays; cuMemGetInfo's free bytes go down, its total does not.

        Raises:
            ValueError: nbytes is negative, or there is no such device.
        """
        device = self._known_device(ordinal)
        nbytes = border.integer("Emulator.limit_memory: nbytes", nbytes)
        if nbytes < 0:
            raise ArgumentValueError(f"a limit of {nbytes} bytes")
        former, device.account.limit = device.account.limit, nbytes

        def remove() -> None:
            device.account.limit = former

        return MemoryLimit(remove)

    def break_device(
        self,
        ordinal: int = 0,
        *,
        with_: int = int(CUresult.CUDA_ERROR_ILLEGAL_ADDRESS),
        text: str = "",
    ) -> BadDevice:
        """Make every call on a device fail, as after a kernel's fault.

        Raises:
            ValueError: there is no such device, or no such fault.
        """
        device = self._known_device(ordinal)
        code = _result("Emulator.break_device: with_", with_)
        border.text("Emulator.break_device: text", text)
        former = device.fault
        own = Failure("break_device", code, text or RESULT_TEXTS.get(int(code), code.name), None)
        device.fault = own

        def remove() -> None:
            if device.fault is own:
                device.fault = former

        return BadDevice(remove)

    def _known_device(self, ordinal: int) -> DeviceState:
        ordinal = border.integer("an emulator's device: ordinal", ordinal)
        if not 0 <= ordinal < len(self._devices):
            raise ArgumentValueError(f"there is no device {ordinal}, only {len(self._devices)}")
        return self._devices[ordinal]


def _result(where: str, code: int) -> CUresult:
    number = border.integer(where, code)
    try:
        result = CUresult(number)
    except (ValueError, KeyError):
        raise ArgumentValueError(f"{where} is {number}, which is no CUresult") from None
    if result == CUresult.CUDA_SUCCESS:
        raise ArgumentValueError("a fault cannot be CUDA_SUCCESS")
    return result
