"""Fault injection, for testing how a program handles failed driver calls.

A method of `Emulator` injects each; `remove()` or the end of a `with` removes it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUresult
from ..errors import ArgumentValueError
from .call_error import CallError


class Planned:
    """An injected fault or limit, in force until it is removed.

    Raises:
        ArgumentTypeError: `remove` is no function of no argument.
    """

    __slots__ = ("__weakref__", "_remove")

    def __init__(self, remove: Callable[[], None]) -> None:
        border.function("Planned: remove", remove, takes=0)
        self._remove = remove

    def remove(self) -> None:
        """Remove it. Idempotent."""
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


class ScheduledCall(Planned):
    """Some calls of a driver function: from the `nth` on, `times` calls.

    Attributes:
        calls: calls of the function since it was planned.
        hits: how many of them were chosen.
    """

    __slots__ = ("_calls", "_function", "_hits", "_nth", "_times")

    function: ReadOnly[str] = ReadOnly("_function")
    calls: ReadOnly[int] = ReadOnly("_calls")
    hits: ReadOnly[int] = ReadOnly("_hits")

    def __init__(
        self, remove: Callable[[], None], function: str, nth: int, times: int | None
    ) -> None:
        super().__init__(remove)
        self._function = function
        self._calls: int = 0
        self._hits: int = 0
        self._nth = nth
        self._times = times

    def count(self) -> bool:
        """Count a call. Return True if this one is due."""
        self._calls += 1
        return self._calls >= self._nth and (self._times is None or self._hits < self._times)


class ScheduledFault(ScheduledCall):
    """A driver function that fails, from its `nth` call on, `times` times.

    Attributes:
        calls: calls of the function since the fault was planned.
        hits: how many of them failed because of it.
    """

    __slots__ = ("_code", "_text")

    def __init__(
        self,
        remove: Callable[[], None],
        function: str,
        nth: int,
        times: int | None,
        error: tuple[CUresult, str],
    ) -> None:
        super().__init__(remove, function, nth, times)
        self._code, self._text = error

    def strike(self) -> CallError:
        """Count a failure and return the error to raise."""
        self._hits += 1
        return CallError(self._code, self._text)


class ScheduledAction(ScheduledCall):
    """A Python function that runs in calls of a driver function, before they do anything.

    Attributes:
        calls: calls of the driver function since the action was planned.
        hits: how many of them ran it.
    """

    __slots__ = ("_action",)

    action: ReadOnly[Callable[[], object]] = ReadOnly("_action")

    def __init__(
        self,
        remove: Callable[[], None],
        function: str,
        nth: int,
        times: int | None,
        action: Callable[[], object],
    ) -> None:
        super().__init__(remove, function, nth, times)
        self._action = action

    def count(self) -> bool:
        """Count a call. Return True if this one runs the action, and count that."""
        is_due = super().count()
        self._hits += is_due
        return is_due


class MemoryLimit(Planned):
    """A device with less usable memory than it reports."""

    __slots__ = ()


class BadDevice(Planned):
    """A device on which all calls return one error, as after a kernel's fault."""

    __slots__ = ()


def result_named(where: str, code: int) -> CUresult:
    """Return the failed result of a number.

    Raises:
        ValueError: there is none.
    """
    number = border.integer(where, code)
    try:
        result = CUresult(number)
    except (ValueError, KeyError):
        raise ArgumentValueError(f"{where} is {number}, which is no CUresult") from None
    if result == CUresult.CUDA_SUCCESS:
        raise ArgumentValueError("a fault cannot be CUDA_SUCCESS")
    return result
