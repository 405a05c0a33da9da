"""The state of the emulated driver: devices, handles, threads; and look-ups for calls.

Locks:

- `DriverState._lock`, one per emulator, is held over bookkeeping only. It guards captures with
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

The tables of handles need no lock: each look-up or removal is one operation of a dict. A removal
that must happen once is done under the lock of the removed object. Handles are numbers that are
never reused, so that a dead one refers to nothing. Only a primary context has one permanent handle,
as on a GPU.

- `DriverState._mapping_lock`, one per emulator. It guards memory of cuMemCreate, its mappings and
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
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from ptx.emulate.check.findings import Found
from ptx.emulate.memory.mapped_memory import MappedHostMemory
from ptx.emulate.threads.limits import Limits
from ptx.errors import PtxError
from ptx.read_only import Guarded, ReadOnly

from .. import border
from ..driver._api import (
    CUarray,
    CUcontext,
    CUdevice,
    CUevent,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUmemoryPool,
    CUresult,
    CUstream,
    HostAccesses,
)
from ..errors import ArgumentValueError, ClosedError
from .address_limit import fitted
from .call_error import CallError, invalid_handle, invalid_value
from .checkpoint_lock import CheckpointLock
from .checks import Checks
from .contexts import Context, SmRange
from .device_state import DeviceState, LentMemory, device_states
from .events import Event
from .graphs import Conditions, Graph, Node, UserObject
from .host_memory import HostMemory
from .leaks import LeakWatch
from .message_log import ErrorLog
from .modules import KernelFunction, Library, LibraryKernel, Module, PendingLink
from .native_thread import ThreadStates, thread_number
from .node_kind import NodeKind
from .pools import HostPools, Pool
from .profiles import MAX_DEVICES, EmulatedDevice
from .streams import LEGACY_HANDLE, PER_THREAD_HANDLE, Stream, StreamCapture
from .thread import CallingThread
from .timeline.concurrent_accesses import ConcurrentAccesses
from .timeline.freed_memory import FreedMemory
from .timeline.schedule import Schedule
from .timeline.timeline import LateErrors, Timeline
from .unwritten_copies import UnwrittenCopies

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .arrays import Array, MipmappedArray
    from .executables import Executable
    from .external_resources import ExternalMemory, ExternalSemaphore
    from .fault_injection import ScheduledAction, ScheduledFault
    from .physical_memory import MulticastObject, PhysicalMemory


_WORK: Final = (NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET, NodeKind.HOST)


class DriverState(Guarded):
    """State and look-ups that the groups of driver functions share."""

    # Tests replace functions of the driver.
    _settable = ("_", "cu")

    checks: ReadOnly[Checks] = ReadOnly("_checks")
    limits: ReadOnly[Limits] = ReadOnly("_limits")
    copy_watch: ReadOnly[UnwrittenCopies | None] = ReadOnly("_copy_watch")
    memory_watch: ReadOnly[LentMemory | None] = ReadOnly("_memory_watch")

    _serials: ClassVar[Iterator[int]] = itertools.count()

    def __init__(
        self,
        devices: Sequence[EmulatedDevice],
        driver_version: tuple[int, int],
        checks: Checks,
        order: Schedule,
    ) -> None:
        version = _checked_version(devices, driver_version)
        serial = next(self._serials)
        # Other emulators' handles have other serial numbers, so that a foreign one is rejected.
        self._handles = itertools.count((serial + 1) << 32, 16)
        # Context handles end in 8, so a destroyed context is recognised without storing it.
        self._first_context = self._next_context = (serial + 1) << 32 | 8
        self._contexts: dict[int, Context] = {}
        # By ordinal.
        self._primaries: dict[int, Context] = {}
        self._streams: dict[int, Stream] = {}
        # By context and thread; thread 0 is the legacy stream.
        self._default_streams: dict[tuple[Context, int], Stream] = {}
        self._captures: set[StreamCapture] = set()
        self._events: dict[int, Event] = {}
        self._modules: dict[int, Module] = {}
        self._libraries: dict[int, Library] = {}
        self._kernels: dict[int, LibraryKernel] = {}
        self._links: dict[int, PendingLink] = {}
        self._external_memory: dict[int, ExternalMemory] = {}
        self._external_semaphores: dict[int, ExternalSemaphore] = {}
        # Guarded by `_mapping_lock`, as is all that they contain.
        self._physical: dict[int, PhysicalMemory] = {}
        self._multicasts: dict[int, MulticastObject] = {}
        self._mapping_lock = threading.RLock()
        self._green: dict[int, Context] = {}
        self._descriptions: dict[int, tuple[SmRange, ...]] = {}
        self._functions: dict[int, KernelFunction] = {}
        self._graphs: dict[int, Graph] = {}
        self._nodes: dict[int, Node] = {}
        self._conditions = Conditions()
        self._executables: dict[int, Executable] = {}
        self._user_objects: dict[int, UserObject] = {}
        self._arrays: dict[int, Array] = {}
        self._mipmapped_arrays: dict[int, MipmappedArray] = {}
        # Textures and surfaces themselves are in the models of their devices.
        self._texture_owners: dict[int, Context] = {}
        profiles = fitted(devices, has_checks=bool(checks.names))
        self._devices = device_states(profiles, serial, self._handles)
        self._all_devices = self._devices
        self._follows_environment = False
        self._driver_version = version
        self._checks = checks
        self._limits: Limits = checks.limits
        self._thread = CallingThread()
        self._thread.states = ThreadStates()
        # Whether addresses of callers are checked before they are read. Our own are always right.
        self._has_foreign_callers = False
        self._lock = threading.RLock()
        self._log = ErrorLog()
        self._coredump: dict[int, bool | int | bytes] = {}
        self._late_errors = LateErrors(order)
        self._order = order
        self._is_immediate = order.name == "immediate"
        self._queued = Timeline(order, self._late_errors, self._thread, self._lock)
        self._freed = None if self._is_immediate else FreedMemory(self._queued)
        self._launches = itertools.count()
        self._pid: int | None = None
        # Called after each call, to report what it found.
        self._reporter: Callable[[], object] | None = None
        # The reason why every call raises; "" while none does.
        self._ended = ""
        self._schedule: dict[str, list[ScheduledFault]] = {}
        self._actions: dict[str, list[ScheduledAction]] = {}
        self._process = CheckpointLock()
        self._host = HostMemory()
        self._host_pools = HostPools(self._handles)
        self._accesses = self._concurrent_accesses()
        self._copy_watch: UnwrittenCopies | None = self._unwritten_copies()
        self._connect_devices()
        watches = "bounds" in checks.names and self._is_immediate
        self._memory_watch: LentMemory | None = LentMemory(self._devices) if watches else None
        self._leaks = self._watch() if "leak" in checks.names else None

    def _concurrent_accesses(self) -> ConcurrentAccesses | None:
        """The race check among operations; None if races are not checked."""
        findings = self._limits.findings
        if findings is None:
            return None
        return ConcurrentAccesses(
            findings, self._allocation_at, self._host, self._lock, is_late=not self._is_immediate
        )

    def _unwritten_copies(self) -> UnwrittenCopies | None:
        """The check of copies to the host; None if unwritten memory is not checked."""
        findings = self._limits.unwritten
        if findings is None:
            return None
        return UnwrittenCopies(findings, self._allocation_at, self._written_flags)

    def _written_flags(self, address: int, nbytes: int) -> NDArray[np.uint8] | None:
        """Return which bytes of a device's memory are written; None if that is not known."""
        device = self._device_of(address)
        if device is None:
            return None
        with device.lock:
            flags = device.flags(address, nbytes)
            return None if flags is None else flags.copy()

    @property
    def _timeline(self) -> Timeline | None:
        """The queue of operations; None if each runs at its call.

        Under "immediate" a nested call queues, and other calls do until its work is done.
        """
        queued = self._queued
        return None if self._is_immediate and queued.is_unused else queued

    def _connect_devices(self) -> None:
        """Connect host and devices to each other, and to the checks."""
        has_patterns = not self._is_immediate
        has_flags = self._limits.unwritten is not None
        self._host.has_patterns = has_patterns
        self._host.has_flags = has_flags
        for device in self._devices:
            device.model.host = partial(self._reachable_host_memory, device)
            device.model.multicast = partial(self._members_at, device)
            device.model.set_condition = self._conditions.set
            device.others = tuple(other for other in self._devices if other is not device)
            device.has_patterns = has_patterns
            device.note_fault = self._checks.note
            if self._accesses is not None:
                device.memory.allocated = self._accesses.born
            if has_flags:
                device.memory.watch_writes()

    def _reachable_host_memory(self, device: DeviceState, address: int) -> MappedHostMemory | None:
        """Return the host memory at an address, as kernels of a device access it."""
        return self._host.reachable(address, device.ordinal)

    def _members_at(self, device: DeviceState, address: int, nbytes: int) -> list[int] | None:
        """Return where bytes of a multicast object lie, for a kernel of a device with access."""
        for multicast in list(self._multicasts.values()):
            for start, owner in list(multicast.mapped.items()):
                if not start <= address <= start + multicast.nbytes - nbytes:
                    continue
                for reservation in list(owner.reservations.values()):
                    piece = reservation.pieces.get(start)
                    if piece is not None and device.ordinal in piece.devices:
                        return multicast.members(address - start, nbytes)
        return None

    def _watch(self) -> LeakWatch:
        """Watch all tables from now on."""
        leaks = LeakWatch()
        self._streams = leaks.handles("stream", self._streams)
        self._events = leaks.handles("event", self._events)
        self._modules = leaks.handles("module", self._modules)
        self._graphs = leaks.handles("graph", self._graphs)
        self._executables = leaks.handles("executable graph", self._executables)
        self._arrays = leaks.handles("array", self._arrays)
        self._mipmapped_arrays = leaks.handles("mipmapped array", self._mipmapped_arrays)
        self._texture_owners = leaks.handles("texture or surface", self._texture_owners)
        self._host.pieces = leaks.host_memory(self._host.pieces)
        for device in self._devices:
            device.pieces = leaks.memory(device.pieces)
        return leaks

    @property
    def host_accesses(self) -> HostAccesses | None:
        """Receives reads of arrays by the host: if races are checked, and in any late order."""
        if self._accesses is None and not self._is_immediate:
            return self._queued
        return self._accesses

    @property
    def devices(self) -> tuple[EmulatedDevice, ...]:
        """The devices, by ordinal."""
        return tuple(device.profile for device in self._devices)

    @property
    def order(self) -> str:
        """The order of operations: "immediate", "late", or "random:" and the seed."""
        return str(self._order)

    @property
    def findings(self) -> tuple[Found, ...]:
        """The findings of the checks (`check`), without suppressed ones.

        The host's changes of memory that queued copies were still to use are always included; an
        `OrderWarning` reports those as well.
        """
        return self._checks.found(self._queued.findings)

    @property
    def unused_suppressions(self) -> tuple[str, ...]:
        """The lines of the file of suppressions that matched no finding, with their places."""
        return self._checks.suppressions.unused

    def end(self, cause: str) -> None:
        """Raise `ClosedError` for every call from now on; `cause` ends its text."""
        self._ended = cause
        self._pid = None  # every call compares it

    def reject_if_ended(self, name: str) -> None:
        """Raise `ClosedError` if the session of the emulator has ended."""
        if self._ended:
            raise ClosedError(f"{name}: the emulator was closed{self._ended}")

    def look_for_leaks(self, reachable: Set[int] = frozenset()) -> None:
        """Record existing objects as leaks, if that is checked; `findings` has them then.

        On a broken device nothing can be freed, so nothing is reported. Neither are objects whose
        handles are in `reachable`.
        """
        if self._leaks is not None and not any(device.fault for device in self._devices):
            leaks = self._leaks.left()
            self._checks.leaks = [leak for leak in leaks if leak.handle not in reachable]

    @property
    def executed(self) -> tuple[str, ...]:
        """The latest executed operations, in their order; empty under "immediate"."""
        return () if self._is_immediate else tuple(self._queued.executed)

    @property
    def queued(self) -> tuple[str, ...]:
        """Kernels, copies, fills and host functions that have not run, in the order of their calls.

        Each has the place of its call; a copy to the host also the present contents of its
        destination. Empty under "immediate", and for a broken device, which executes nothing more.
        """
        return tuple(
            operation.text for operation in self._queued.pending()
            if operation.kind in _WORK and operation.stream.context.device.fault is None
        )  # fmt: skip

    @property
    def last_fault(self) -> PtxError | None:
        """The typed error behind this thread's last failed call, or None.

        It is a kernel's `ptx.emulate.EmulationFault`, also for the calls that fail after it, or the
        `UnsupportedInstruction`, `UnsupportedTarget`, `SizeLimitExceeded` or `PtxSyntaxError` for
        which a kernel or module was rejected. It has no traceback.
        """
        failure = self._thread.failure
        return None if failure is None else failure.cause

    def _enter(self, name: str, always: bool) -> None:
        """Check what every call requires."""
        if not always and self._pid != os.getpid():
            self.reject_if_ended(name)
            raise CallError(
                CUresult.CUDA_ERROR_NOT_INITIALIZED,
                "cuInit was not called"
                if self._pid is None
                else f"initialization error: the driver was initialised in process {self._pid} "
                "before the fork",
            )
        if self._thread.runs_host_function and not always:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_PERMITTED,
                f"a host function in a stream makes no CUDA calls, and this one called {name}",
            )
        if self._process.state and not always:
            self._process.wait(name)
        actions = self._actions.get(name)
        if actions:
            with self._lock:
                due = [each for each in actions if each.count()]
            for each in due:  # without the lock: they make calls, or wait for other threads
                each.action()
        scheduled = self._schedule.get(name)
        if scheduled:
            with self._lock:
                faults = [fault for fault in scheduled if fault.count()]
                if faults:
                    raise faults[0].strike()

    def _device(self, handle: CUdevice) -> DeviceState:
        return self._device_at(int(handle))

    def _device_at(self, ordinal: int) -> DeviceState:
        if not 0 <= ordinal < len(self._devices):
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"invalid device ordinal: {ordinal} of {len(self._devices)} devices",
            )
        return self._devices[ordinal]

    def _device_named(self, uuid: bytes) -> DeviceState:
        for device in self._devices:
            if device.uuid == uuid:
                return device
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_DEVICE, "it is of a device that is none of these"
        )

    def _device_of(self, address: int) -> DeviceState | None:
        """Return the device whose memory contains an address."""
        for device in self._devices:
            if device.holds(address):
                return device
        return None

    def _allocation_at(self, address: int) -> tuple[int, str] | None:
        """Return the start and the description of the allocation that holds an address."""
        device = self._device_of(address)
        if device is not None:
            with device.lock:
                allocation = device.memory.find(address) or device.memory.find_freed(address)
            return None if allocation is None else (allocation.address, str(allocation))
        piece = self._host.find(address)
        if piece is None:
            return None
        kind = "managed" if piece.managed else "page-locked"
        return piece.address, f"{piece.nbytes} bytes of {kind} memory at {piece.address:#x}"

    def _context_handle(self) -> int:
        """Return a handle for a new context; `_lock` is held."""
        handle = self._next_context
        self._next_context += 16
        return handle

    def _context(self, handle: CUcontext) -> Context:
        """Return the context of a handle; of destroyed ones only a primary one."""
        number = int(handle)
        context = self._contexts.get(number)
        if context is None:
            if number & 15 == 8 and self._first_context <= number < self._next_context:
                raise CallError(
                    CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"
                )
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"{int(handle):#x} is no context's handle"
            )
        return context

    def _usable(self, context: Context) -> Context:
        """Return the context, if calls may still use it."""
        if context.destroyed:
            raise CallError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
        context.device.reject_if_broken()
        return context

    def _top(self) -> Context:
        """Return the calling thread's current context, usable or destroyed."""
        stack = self._thread.stack
        if not stack:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread"
            )
        top = stack[-1]
        # A primary context keeps its handle when another one replaces it.
        return self._primaries[top.device.ordinal] if top.primary else top

    def _current(self) -> Context:
        """Return the calling thread's current context, usable."""
        return self._usable(self._top())

    def _stream(self, handle: CUstream) -> Stream:
        """Return the usable stream of a handle; 0, 1 and 2 mean the current context's own."""
        number = int(handle)
        if number <= 2:
            context = self._current()
            return self._default_stream(context, number)
        stream = self._streams.get(number) or self._thread.streams.get(number)
        if stream is None:
            raise invalid_handle(f"invalid resource handle: {number:#x} is no live stream")
        self._usable(stream.context)
        return stream

    def _streams_among(self, arguments: Iterable[object]) -> dict[int, Stream]:
        """Return the streams among the arguments of a call, by their handles."""
        numbers = [int(argument) for argument in arguments if isinstance(argument, CUstream)]
        return {number: self._streams[number] for number in numbers if number in self._streams}

    def _lost_its_context(self, handle: CUstream) -> bool:
        """Return whether a deferred call names a stream whose context was destroyed meanwhile."""
        thread, number = self._thread, int(handle)
        if number <= 2:
            return thread.makes_up and bool(thread.stack) and thread.stack[-1].destroyed
        stream = thread.streams.get(number)
        return stream is not None and stream.context.destroyed

    def _default_stream(self, context: Context, number: int) -> Stream:
        """Return a context's legacy stream, or its stream of the calling thread."""
        if number < PER_THREAD_HANDLE:
            number, thread = LEGACY_HANDLE, 0
        else:
            thread = thread_number()
        stream = self._default_streams.get((context, thread))
        if stream is None:
            new = Stream(number, context, flags=0, priority=0)
            stream = self._default_streams.setdefault((context, thread), new)
        return stream

    def _event(self, handle: CUevent) -> Event:
        """Return the usable event of a handle."""
        number = int(handle)
        event = self._events.get(number)
        if event is None:
            if not number:
                raise invalid_handle("invalid resource handle: the event is null")
            # Measured: the driver returns this, not INVALID_HANDLE, for a destroyed event.
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live event"
            )
        self._usable(event.context)
        return event

    def _array(self, handle: CUarray) -> Array:
        """Return the usable array of a handle."""
        number = int(handle)
        array = self._arrays.get(number)
        if array is None:
            if not number:
                raise invalid_handle("invalid resource handle: the array is null")
            # Measured: as for events.
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live array"
            )
        self._usable(array.context)
        return array

    def _graph(self, handle: CUgraph) -> Graph:
        graph = self._graphs.get(int(handle))
        if graph is None:
            raise invalid_value(f"{int(handle):#x} is no live graph")
        return graph

    def _handle_of_graph(self, graph: Graph) -> CUgraph:
        """Return the handle of a graph, made at the first request."""
        if not graph.handle:
            graph.handle = next(self._handles)
            self._graphs[graph.handle] = graph
        return CUgraph(graph.handle)

    def _node(self, handle: CUgraphNode) -> Node:
        node = self._nodes.get(int(handle))
        if node is None:
            raise invalid_value(f"{int(handle):#x} is no live node of a graph")
        return node

    def _handle_of(self, node: Node) -> CUgraphNode:
        """Return the handle of a node, made at the first request."""
        if not node.handle:
            node.handle = next(self._handles)
            self._nodes[node.handle] = node
        return CUgraphNode(node.handle)

    def _executable(self, handle: CUgraphExec) -> Executable:
        executable = self._executables.get(int(handle))
        if executable is None:
            raise invalid_value(f"{int(handle):#x} is no live executable graph")
        return executable

    def _pool(self, handle: CUmemoryPool) -> tuple[DeviceState | None, Pool]:
        """Return a pool, and the device of its memory; None for the host's."""
        number = int(handle)
        for device in self._devices:
            pool = device.account.pools.get(number)
            if pool is not None and pool.is_open:
                return device, pool
        pool = self._host_pools.by_handle.get(number)
        if pool is not None and pool.is_open:
            return None, pool
        raise invalid_value(f"{number:#x} is no memory pool")


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
