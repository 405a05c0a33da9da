"""What an emulator knows of its process: initialisation, planned faults, and the error log."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..driver._api import CUresult
from ..errors import ClosedError
from .call_error import CallError
from .checkpoint_lock import CheckpointLock
from .message_log import ErrorLog
from .thread import CallingThread

if TYPE_CHECKING:
    from .fault_injection import ScheduledAction, ScheduledFault

_T = TypeVar("_T")


class ProcessSettings:
    """Settings that apply to all calls of the process.

    Attributes:
        driver_version: major and minor.
        pid: the process that initialised the driver; None before that, and at the end.
        follows_environment: whether CUDA_VISIBLE_DEVICES selects the devices.
        has_foreign_callers: whether addresses of callers are checked before they are read. Those of
            this library are always right.
        log: messages of failed calls.
        coredump: attributes of core dumps that were set.
        checkpoint: the lock of the process for checkpoints.
        reporter: called after each call, to report what it found.
        faults: planned failures, by function.
        actions: planned actions, by function.
    """

    def __init__(
        self, driver_version: tuple[int, int], thread: CallingThread, lock: threading.RLock
    ) -> None:
        self._thread, self._lock = thread, lock
        self.driver_version: tuple[int, int] = driver_version
        self.pid: int | None = None
        self.follows_environment: bool = False
        self.has_foreign_callers: bool = False
        self.log: ErrorLog = ErrorLog()
        self.coredump: dict[int, bool | int | bytes] = {}
        self.checkpoint: CheckpointLock = CheckpointLock()
        self.reporter: Callable[[], object] | None = None
        self.faults: dict[str, list[ScheduledFault]] = {}
        self.actions: dict[str, list[ScheduledAction]] = {}
        # The reason why every call raises; None while none does.
        self._ended: str | None = None

    def end(self, cause: str) -> None:
        """Raise `ClosedError` for every call from now on; `cause` ends its text."""
        self._ended = cause
        self.pid = None  # every call compares it

    def reject_if_ended(self, name: str) -> None:
        """Raise `ClosedError` if the session of the emulator has ended."""
        if self._ended is not None:
            raise ClosedError(f"{name}: the emulator was closed{self._ended}")

    def enter(self, name: str, always: bool) -> None:
        """Check what every call requires."""
        if not always and self.pid != os.getpid():
            self.reject_if_ended(name)
            raise CallError(
                CUresult.CUDA_ERROR_NOT_INITIALIZED,
                "cuInit was not called"
                if self.pid is None
                else f"initialization error: the driver was initialised in process {self.pid} "
                "before the fork",
            )
        if self._thread.runs_host_function and not always:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_PERMITTED,
                f"a host function in a stream makes no CUDA calls, and this one called {name}",
            )
        if self.checkpoint.state and not always:
            self.checkpoint.wait(name)
        actions = self.actions.get(name)
        if actions:
            with self._lock:
                due = [each for each in actions if each.count()]
            for each in due:  # without the lock: they make calls, or wait for other threads
                each.action()
        scheduled = self.faults.get(name)
        if scheduled:
            with self._lock:
                faults = [fault for fault in scheduled if fault.count()]
                if faults:
                    raise faults[0].strike()

    def plan(self, planned: dict[str, list[_T]], names: tuple[str, ...], item: _T) -> None:
        """Add an item to what is planned for functions."""
        with self._lock:
            for name in names:
                planned.setdefault(name, []).append(item)

    def unplan(self, planned: dict[str, list[_T]], names: tuple[str, ...], item: _T) -> None:
        """Remove an item from what is planned for functions."""
        with self._lock:
            for name in names:
                if item in planned.get(name, []):
                    planned[name].remove(item)
