"""The state of the emulated driver: its parts, and how they are connected.

Locks:

- `DriverState.lock`, one per emulator, is held over bookkeeping only. It guards captures with
  their streams and events, references to user objects, and planned faults. It also guards the
  number of a graph's executables, the retentions of a primary context, the destruction of contexts,
  and the table of host memory and its pools.

  The timeline uses the same lock for its queues, and the race check for the accesses of operations.
  An operation runs without it, in the thread of a call that needs it. The race check takes it at
  the end of a launch, under the device's lock.

- `DeviceState.lock`, one per device. It guards the device's memory, its pool, the state of graphs'
  memory, arrays while they are destroyed, and modules while they are placed or generated. A kernel
  runs under it, so calls on its device wait for it; a queued kernel releases it after each of its
  turns.

- `MemoryState.mapping_lock`, one per emulator. It guards memory of cuMemCreate, its mappings and
  multicast objects. Only their calls take it, before a device's lock.

No other call takes one of these locks while it holds another. Exceptions are a copy between two
devices and a kernel that accesses memory of others, which take theirs in the order of ordinals.

No lock is held while a host function or the destructor of a user object runs. The locks are
re-entrant, because a collection may call finalizers at any allocation, in a thread that holds one.
Releases by finalizers are deferred until the call has ended (`calls/call.py`): so no
thread that holds a device's lock waits for another's. A kernel's output is written to `sys.stdout`
under its device's lock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, ClassVar

from ptx.emulate import Limits

from .. import border
from ..driver._api import HostAccesses
from ..errors import ArgumentValueError
from .address_limit import fitted
from .captures import Captures
from .checks import Checks
from .device_state import LentMemory, device_states
from .devices import Devices
from .handle_tables import HandleTables
from .memory_state import MemoryState
from .native_thread import ThreadStates
from .operations import Operations
from .process_settings import ProcessSettings
from .profiles import MAX_DEVICES, EmulatedDevice
from .thread import CallingThread
from .timeline.schedule import Schedule

if TYPE_CHECKING:  # an emulator without checks imports none: an eighth of its start
    from .leaks import LeakWatch
    from .timeline.concurrent_accesses import ConcurrentAccesses
    from .unwritten_copies import UnwrittenCopies


class DriverState:
    """The state that the groups of driver functions share.

    Attributes:
        lock: guards bookkeeping; see above.
        thread: the state of the calling thread.
        process: initialisation, planned faults, and the error log.
        handles: the objects that have handles.
        devices: the devices.
        memory: memory of devices and of the host.
        captures: the captures in progress.
        operations: runs, queues or records operations.
        checks: the checks of a program, with their findings.
        copy_watch: the check of copies to the host; None if unwritten memory is not checked.
        memory_watch: memory of allocators, for the checks bounds and init where operations run at
            their call.
    """

    __slots__ = (
        "_leaks", "captures", "checks", "copy_watch", "devices", "handles", "lock", "memory",
        "memory_watch", "operations", "process", "thread",
    )  # fmt: skip

    _serials: ClassVar[Iterator[int]] = itertools.count()

    def __init__(
        self,
        devices: Sequence[EmulatedDevice],
        driver_version: tuple[int, int],
        checks: Checks,
        schedule: Schedule,
    ) -> None:
        version = _checked_version(devices, driver_version)
        serial = next(self._serials)
        self.checks: Checks = checks
        self.lock: threading.RLock = threading.RLock()
        self.thread: CallingThread = CallingThread()
        self.thread.states = ThreadStates()
        self.process: ProcessSettings = ProcessSettings(version, self.thread, self.lock)
        self.handles: HandleTables = HandleTables(serial, self.thread)
        numbers = self.handles.numbers
        profiles = fitted(devices, has_checks=bool(checks.names))
        self.devices: Devices = Devices(device_states(profiles, serial, numbers))
        self.memory: MemoryState = MemoryState(self.devices, numbers, self.lock)
        self.captures: Captures = Captures(self.thread, self.lock, self.handles)
        is_late = schedule.name != "immediate"
        self.operations: Operations = Operations(
            schedule,
            self.thread,
            self.lock,
            self.handles,
            self.captures,
            self.memory,
            self._concurrent_accesses(is_late=is_late),
        )
        self.copy_watch: UnwrittenCopies | None = self._unwritten_copies()
        self._connect_devices(has_patterns=is_late)
        watches = not is_late and not checks.names.isdisjoint(("bounds", "init"))
        self.memory_watch: LentMemory | None = LentMemory(self.devices.all) if watches else None
        self._leaks = self._leak_watch() if "leak" in checks.names else None

    @property
    def limits(self) -> Limits:
        """How far a kernel may run, and what it reports to."""
        return self.checks.limits

    def _concurrent_accesses(self, *, is_late: bool) -> ConcurrentAccesses | None:
        """The race check among operations; None if races are not checked."""
        findings = self.limits.findings
        if findings is None or "race" not in self.limits.checks:
            return None
        from .timeline.concurrent_accesses import ConcurrentAccesses

        memory = self.memory
        return ConcurrentAccesses(
            findings, memory.allocation_at, memory.host, self.lock, is_late=is_late
        )

    def _unwritten_copies(self) -> UnwrittenCopies | None:
        """The check of copies to the host; None if unwritten memory is not checked."""
        findings = self.limits.findings
        if findings is None or not self._has_flags:
            return None
        from .unwritten_copies import UnwrittenCopies

        return UnwrittenCopies(findings, self.memory.allocation_at, self.memory.written_flags)

    @property
    def _has_flags(self) -> bool:
        """True if bytes have flags that tell whether they were written."""
        return "unwritten" in self.limits.checks

    def _connect_devices(self, *, has_patterns: bool) -> None:
        """Connect host and devices to the conditions of graphs, and to the checks."""
        self.memory.host.has_patterns = has_patterns
        self.memory.host.has_flags = self._has_flags
        accesses = self.operations.accesses
        for device in self.devices.all:
            device.model.set_condition = self.handles.conditions.set
            device.has_patterns = has_patterns
            device.note_fault = self.checks.note
            if accesses is not None:
                device.memory.allocated = accesses.born
            if self._has_flags:
                device.memory.watch_writes()

    def _leak_watch(self) -> LeakWatch:
        """Watch all tables from now on."""
        from .leaks import LeakWatch

        leaks = LeakWatch()
        self.handles.watch(leaks)
        self.memory.watch(leaks)
        return leaks

    @property
    def host_accesses(self) -> HostAccesses | None:
        """Receives reads of arrays by the host, if races are checked, and in any late order."""
        operations = self.operations
        if operations.accesses is None and not operations.is_immediate:
            return operations.queue
        return operations.accesses

    def look_for_leaks(self, reachable: Set[int]) -> None:
        """Record existing objects as leaks, if that is checked, but those with these handles."""
        if self._leaks is not None and not self.devices.any_broken:
            leaks = self._leaks.left()
            self.checks.leaks = [leak for leak in leaks if leak.handle not in reachable]


def _checked_version(
    devices: Sequence[EmulatedDevice], driver_version: tuple[int, int]
) -> tuple[int, int]:
    """Return the driver's version; raise unless such an emulator is possible."""
    if not 0 <= len(devices) <= MAX_DEVICES:
        raise ArgumentValueError(f"{len(devices)} devices asked for: at most {MAX_DEVICES} will do")
    where = "an emulator's driver_version"
    numbers = [border.integer(where, each) for each in border.elements(where, driver_version)]
    if len(numbers) != 2:
        raise ArgumentValueError(f"driver_version is {driver_version}: give (major, minor)")
    return numbers[0], numbers[1]
