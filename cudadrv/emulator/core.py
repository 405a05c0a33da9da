"""The state behind the emulated driver: devices, handles, threads; and how a call finds them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from ptx.emulate.exec.limits import Limits
from ptx.errors import PtxError

from ..driver._api import CUarray, CUcontext, CUdevice, CUevent, CUresult, CUstream
from .contexts import Context
from .emulated_device import Machine
from .host_memory import HostMemory
from .profiles import MAX_TOTAL_MEMORY, EmulatedDevice
from .refusal import Failure, Refusal, invalid_handle
from .streams import Event, Stream

if TYPE_CHECKING:
    from .arrays import Array, MipmappedArray
    from .capture import Capture
    from .fault_injection import ScheduledFault
    from .graphs import Executable, Graph
    from .modules import Function, Module

# Device addresses lie above what a host gives a process (2**48) and below what a float64 holds
# exactly (2**53). Each emulator takes a part of its own, so that a pointer that outlives one is
# not mistaken for a pointer of the next.
_LOWEST_BASE = 1 << 48
_MAX_DEVICES = 64
_EMULATOR_SPAN = MAX_TOTAL_MEMORY * _MAX_DEVICES
_EMULATOR_SPANS = ((1 << 52) - _LOWEST_BASE) // _EMULATOR_SPAN


class _ThreadState(threading.local):
    """What the driver keeps for each thread: its contexts, and its last failed call."""

    def __init__(self) -> None:
        self.stack: list[int] = []
        self.failure: Failure | None = None
        self.runs_host_function = False


class Core:
    """State and look-ups that the groups of driver functions share."""

    _serials: ClassVar[Iterator[int]] = itertools.count()

    def __init__(
        self, devices: Sequence[EmulatedDevice], driver_version: tuple[int, int], limits: Limits
    ) -> None:
        if not 0 <= len(devices) <= _MAX_DEVICES:
            raise ValueError(f"{len(devices)} devices asked for: at most {_MAX_DEVICES} will do")
        serial = next(self._serials)
        base = _LOWEST_BASE + serial % _EMULATOR_SPANS * _EMULATOR_SPAN
        # Handles are numbers that no other emulator gives, so that a foreign one is refused.
        self._handles = itertools.count((serial + 1) << 32, 16)
        self._machines = tuple(
            Machine(profile, ordinal, base + ordinal * MAX_TOTAL_MEMORY, next(self._handles))
            for ordinal, profile in enumerate(devices)
        )
        self._driver_version = driver_version
        self.limits = limits
        self._thread = _ThreadState()
        # Held while captures change, and while a test plans faults; taken before a device's lock.
        self._lock = threading.RLock()
        self._pid: int | None = None
        self._schedule: dict[str, list[ScheduledFault]] = {}
        self._contexts: dict[int, Context] = {}
        self._primaries: dict[int, Context] = {}
        self._streams: dict[int, Stream] = {}
        self._events: dict[int, Event] = {}
        self._modules: dict[int, Module] = {}
        self._functions: dict[int, Function] = {}
        self._graphs: dict[int, Graph] = {}
        self._executables: dict[int, Executable] = {}
        self._arrays: dict[int, Array] = {}
        self._mipmapped_arrays: dict[int, MipmappedArray] = {}
        # Textures and surfaces themselves are in the models of their devices.
        self._texture_owners: dict[int, Context] = {}
        self._captures: set[Capture] = set()
        self._host = HostMemory()
        for machine in self._machines:
            machine.model.host = self._host.reachable

    @property
    def devices(self) -> tuple[EmulatedDevice, ...]:
        """The devices, by ordinal."""
        return tuple(machine.profile for machine in self._machines)

    @property
    def last_fault(self) -> PtxError | None:
        """The typed error behind this thread's last failed call, None if it had none.

        A kernel's `ptx.emulate.EmulationFault`, also for the calls that fail after it; the
        `UnsupportedInstruction` or `PtxSyntaxError` for which a kernel or module was refused.
        """
        failure = self._thread.failure
        return None if failure is None else failure.cause

    def _enter(self, name: str, always: bool) -> None:
        """What every call checks first."""
        if not always and self._pid != os.getpid():
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_INITIALIZED,
                "cuInit was not called"
                if self._pid is None
                else f"initialization error: the driver was initialised in process {self._pid} "
                "before the fork",
            )
        if self._thread.runs_host_function and not always:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_PERMITTED,
                f"a host function in a stream makes no CUDA calls, and this one called {name}",
            )
        scheduled = self._schedule.get(name)
        if scheduled:
            with self._lock:
                due = [fault for fault in scheduled if fault.count()]
                if due:
                    raise due[0].strike()

    def _note(self, failure: Failure) -> None:
        self._thread.failure = failure

    def _machine(self, device: CUdevice) -> Machine:
        return self._machine_at(int(device))

    def _machine_at(self, ordinal: int) -> Machine:
        if not 0 <= ordinal < len(self._machines):
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"invalid device ordinal: {ordinal} of {len(self._machines)} devices",
            )
        return self._machines[ordinal]

    def _machine_of(self, address: int) -> Machine | None:
        """The device whose memory an address lies in."""
        for machine in self._machines:
            if machine.holds(address):
                return machine
        return None

    def _context(self, handle: CUcontext) -> Context:
        """The context of a handle, dead or alive."""
        found = self._contexts.get(int(handle))
        if found is None:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"{int(handle):#x} is no context's handle"
            )
        return found

    def _usable(self, context: Context) -> Context:
        """The context, if calls may still use it."""
        if context.destroyed:
            raise Refusal(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
        fault = context.machine.fault
        if fault is not None:
            raise Refusal(fault.code, fault.text, fault.cause)
        return context

    def _top(self) -> Context:
        """The calling thread's current context, dead or alive."""
        stack = self._thread.stack
        if not stack or not stack[-1]:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread"
            )
        return self._contexts[stack[-1]]

    def _current(self) -> Context:
        """The calling thread's current context, usable."""
        return self._usable(self._top())

    def _stream(self, handle: CUstream) -> Stream:
        """The stream of a handle, usable; 0, 1 and 2 mean the current context's own."""
        number = int(handle)
        if number <= 2:
            context = self._current()
            return context.legacy if number < 2 else context.per_thread_stream()
        stream = self._streams.get(number)
        if stream is None:
            raise invalid_handle(f"invalid resource handle: {number:#x} is no live stream")
        self._usable(stream.context)
        return stream

    def _event(self, handle: CUevent) -> Event:
        """The event of a handle, usable."""
        number = int(handle)
        event = self._events.get(number)
        if event is None:
            if not number:
                raise invalid_handle("invalid resource handle: the event is null")
            # Measured: the driver answers this, not INVALID_HANDLE, for a destroyed event.
            raise Refusal(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live event")
        self._usable(event.context)
        return event

    def _array(self, handle: CUarray) -> Array:
        """The array of a handle."""
        number = int(handle)
        array = self._arrays.get(number)
        if array is None:
            if not number:
                raise invalid_handle("invalid resource handle: the array is null")
            # Measured: as for events.
            raise Refusal(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live array")
        return array
