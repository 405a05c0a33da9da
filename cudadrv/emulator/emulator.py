"""The emulated driver: all its functions in one class."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence, Set, Sized
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from ptx.emulate import Limits
from ptx.errors import PtxError
from ptx.read_only import ReadOnly
from ptx.visible_text import visible

from .. import border
from ..driver._api import CUresult, HostAccesses
from ..driver.driver_api import DriverApi
from ..errors import ArgumentValueError
from .call_error import Failure, result_text
from .calls.array_copy import ArrayCopyCalls
from .calls.checkpoint import CheckpointCalls
from .calls.context import ContextCalls
from .calls.coredump import CoredumpCalls
from .calls.device import DeviceCalls
from .calls.error_log import ErrorLogCalls
from .calls.event import EventCalls
from .calls.execution import ExecutionCalls
from .calls.external_resource import ExternalResourceCalls
from .calls.graph import GraphCalls
from .calls.graph_node import GraphNodeCalls
from .calls.green_context import GreenContextCalls
from .calls.interprocess import InterprocessCalls
from .calls.legacy_launch import LegacyLaunchCalls
from .calls.library import LibraryCalls
from .calls.memory import ArrayCalls, MemoryCalls
from .calls.memory_copy import CopyCalls
from .calls.memory_fill import FillCalls
from .calls.module import ModuleCalls
from .calls.opengl import OpenGLCalls
from .calls.stream import StreamCalls
from .calls.stream_memory_operation import StreamMemoryOperationCalls
from .calls.stream_ordered_memory import StreamOrderedMemoryCalls
from .calls.tensor_map import TensorMapCalls
from .calls.texture import TextureCalls
from .calls.unified_addressing import UnifiedAddressingCalls
from .calls.virtual_memory import VirtualMemoryCalls
from .checks import CheckName, Checks
from .device_state import DeviceState, LentMemory
from .driver_state import DriverState
from .environment import emulated_limits, reject_wrong_variables
from .fault_injection import BadDevice, MemoryLimit, ScheduledAction, ScheduledFault, result_named
from .modules import NEWEST_DRIVER as NEWEST_DRIVER, accepts_newer_ptx
from .node_kind import NodeKind
from .profiles import EmulatedDevice, given_devices
from .timeline.host_watch import OrderWarning
from .timeline.schedule import OrderName, Schedule

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Found

    from .counters import Counters
    from .unwritten_copies import UnwrittenCopies

_WORK: Final = (NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET, NodeKind.HOST)


# A fault of a function also applies to functions that do the same and more.
_ALSO: Final = {
    "cuDevicePrimaryCtxRetain": ("cuGreenCtxCreate",),
    "cuFuncGetAttribute": ("cuKernelGetAttribute",),
    "cuFuncGetParamInfo": ("cuKernelGetParamInfo",),
    "cuFuncSetAttribute": ("cuKernelSetAttribute",),
    "cuLaunchKernel": ("cuLaunchKernelEx",),
    "cuModuleGetGlobal": ("cuLibraryGetGlobal",),
}


class Emulator(
    DeviceCalls,
    ContextCalls,
    GreenContextCalls,
    ModuleCalls,
    LibraryCalls,
    ExecutionCalls,
    LegacyLaunchCalls,
    MemoryCalls,
    CopyCalls,
    ArrayCopyCalls,
    FillCalls,
    ArrayCalls,
    VirtualMemoryCalls,
    StreamOrderedMemoryCalls,
    UnifiedAddressingCalls,
    StreamCalls,
    StreamMemoryOperationCalls,
    EventCalls,
    GraphCalls,
    GraphNodeCalls,
    TextureCalls,
    TensorMapCalls,
    InterprocessCalls,
    ExternalResourceCalls,
    OpenGLCalls,
    CheckpointCalls,
    CoredumpCalls,
    ErrorLogCalls,
):
    """The driver API, executed on the PTX emulator.

    It has the functions of `DriverApi`, and a few that other libraries call. Every function has the
    signature, the result tuple and the error codes of cuda.bindings 13. Operations run at their
    call, unless another order was chosen. A kernel's fault breaks its device for good: the launch
    and every later call on the device's contexts return its code. `last_fault` is then the typed
    error and cuGetErrorString its text. Devices are independent and may be used by several threads
    at once; the launches of one device follow each other.

    Attributes:
        is_emulated: True; the choice of image format depends on it.
        accepts_newer_ptx: whether it accepts the PTX of an NVRTC that is newer than the driver, as
            by default.
        limits: how far a kernel may run before it counts as endless.
        checks: the checks of kernels and their findings.
        copy_watch: the check of copies to the host; None if unwritten memory is not checked.
        memory_watch: memory of allocators, for the checks bounds and init where operations run at
            their call.
    """

    checks: ReadOnly[Checks] = ReadOnly("_state.checks")
    limits: ReadOnly[Limits] = ReadOnly("_state.limits")
    copy_watch: ReadOnly[UnwrittenCopies | None] = ReadOnly("_state.copy_watch")
    memory_watch: ReadOnly[LentMemory | None] = ReadOnly("_state.memory_watch")

    is_emulated: Final = True
    keeps_blocks: Final = False

    def __init__(
        self,
        devices: int | Sequence[EmulatedDevice] = 1,
        *,
        driver_version: tuple[int, int] = NEWEST_DRIVER,
        limits: Limits | None = None,
        order: OrderName | None = None,
        seed: int | None = None,
        check: CheckName | Sequence[CheckName] | None = None,
        suppressions: str | os.PathLike[str] | None = None,
    ) -> None:
        """`devices` is the number of default devices, or the devices themselves.

        `driver_version` is the result of cuDriverGetVersion, and decides which PTX is too new. The
        default is the newest released driver; that one takes the PTX of a newer NVRTC, too. Others
        take newer PTX of their major version in place of a cubin.
        `limits` are those of kernels' execution; None reads CUDADRV_EMULATOR_STEPS and
        CUDADRV_EMULATOR_THREADS.
        `order` is when operations run (docs/orders.md): "immediate" at their call, "late" when they
        are needed, "random" by `seed`; None reads CUDADRV_EMULATOR_ORDER. `check` selects the
        checks of a program (docs/checks.md): "race", "init", "sync", "bounds", "divide",
            "nan", "assemble", "leak";
        None reads CUDADRV_CHECK. `suppressions` is a file of findings that are not reported; None
        reads CUDADRV_CHECK_SUPPRESSIONS.

        Raises:
            ValueError: an impossible count, device, order or check.
            CudadrvError: a variable of the environment has a wrong value, of use here or not.
        """
        reject_wrong_variables()
        super().__init__(
            DriverState(
                given_devices(devices, EmulatedDevice),
                driver_version,
                Checks.chosen(emulated_limits() if limits is None else limits, check, suppressions),
                Schedule.chosen(order, seed),
            )
        )

    @property
    def accepts_newer_ptx(self) -> bool:
        """Whether it accepts the PTX of an NVRTC that is newer than the driver, as by default."""
        return accepts_newer_ptx(self._state.process.driver_version)

    @property
    def host_accesses(self) -> HostAccesses | None:
        """Receives reads of arrays by the host, if races are checked, and in any late order."""
        return self._state.host_accesses

    @property
    def devices(self) -> tuple[EmulatedDevice, ...]:
        """The devices, by ordinal."""
        return tuple(device.profile for device in self._state.devices.visible)

    @property
    def order(self) -> str:
        """The order of operations, as ``immediate``, ``late``, or ``random:7`` with the seed."""
        return str(self._state.operations.schedule)

    @property
    def repeated_by(self) -> str:
        """Return a sentence on how to run a program in this order again."""
        return self._state.operations.schedule.repeated_by

    @property
    def findings(self) -> tuple[Found, ...]:
        """The findings of the checks (`check`), without suppressed ones.

        The host's changes of memory that queued copies were still to use are always included; an
        `OrderWarning` reports those as well.
        """
        return self._state.checks.found(self._state.operations.queue.findings)

    @property
    def unused_suppressions(self) -> tuple[str, ...]:
        """The lines of the file of suppressions that matched no finding, with their places."""
        return self._state.checks.suppressions.unused

    @property
    def executed(self) -> tuple[str, ...]:
        """The latest executed operations, in their order; empty under "immediate"."""
        operations = self._state.operations
        return () if operations.is_immediate else tuple(operations.queue.executed)

    @property
    def queued(self) -> tuple[str, ...]:
        """Kernels, copies, fills and host functions that have not run, in the order of their calls.

        Each has the place of its call; a copy to the host also the present contents of its
        destination. Empty under "immediate", and for a broken device, which executes nothing more.
        """
        return tuple(
            operation.text
            for operation in self._state.operations.queue.pending()
            if operation.kind in _WORK and operation.stream.context.device.fault is None
        )

    @property
    def last_fault(self) -> PtxError | None:
        """The typed error behind this thread's last failed call, or None.

        It is a kernel's `ptx.emulate.EmulationFault`, also for the calls that fail after it, or the
        `UnsupportedInstruction`, `UnsupportedTarget`, `SizeLimitExceeded` or `PtxSyntaxError` for
        which a kernel or module was rejected. It has no traceback.
        """
        failure = self._state.thread.failure
        return None if failure is None else failure.cause

    def end(self, cause: str) -> None:
        """Raise `ClosedError` for every call from now on; `cause` ends its text.

        Raises:
            ArgumentTypeError: `cause` is no text.
        """
        # The name of a file may be no UTF-8.
        given: object = cause
        shown = visible(given) if isinstance(given, str) else given
        self._state.process.end(border.text("Emulator.end: cause", shown))

    def reject_if_ended(self, name: str) -> None:
        """Raise `ClosedError` if the session of the emulator has ended."""
        self._state.process.reject_if_ended(name)

    def look_for_leaks(self, reachable: Set[int] = frozenset()) -> None:
        """Record existing objects as leaks, if that is checked; `findings` has them then.

        On a broken device nothing can be freed, so nothing is reported. Neither are objects whose
        handles are in `reachable`.
        """
        self._state.look_for_leaks(reachable)

    def finish(self) -> None:
        """Run all queued operations, as at the end of a session; failures become warnings."""
        state = self._state
        if state.operations.timeline is None:
            return
        for device in state.devices.visible:
            broken = device.fault
            state.thread.within_a_call(partial(state.operations.finish_device, device))
            if device.fault is not None and device.fault is not broken:
                warnings.warn(
                    f"what was still queued on device {device.ordinal} failed, which no call could "
                    f"say: {visible(device.fault.text)}",
                    OrderWarning,
                    stacklevel=2,
                )

    @contextmanager
    def counting(self) -> Iterator[Counters]:
        """Count the instructions that the launches of a `with` block execute (docs/counters.md).

        Queued operations run before the block and at its end.
        """
        from .counters import Counters  # only if launches are counted

        self._state.process.reject_if_ended("Emulator.counting")
        counters = Counters()
        self.finish()
        try:
            for device in self._state.devices.visible:
                with device.lock:
                    device.counters = (*device.counters, counters)
            yield counters
            self.finish()
        finally:
            for device in self._state.devices.visible:
                with device.lock:
                    device.counters = tuple(c for c in device.counters if c is not counters)

    def fail(
        self,
        function: str,
        *,
        nth: int = 1,
        times: int | None = 1,
        with_: int = int(CUresult.CUDA_ERROR_UNKNOWN),
        text: str = "",
    ) -> ScheduledFault:
        """Make calls of a driver function fail; they do nothing but return an error.

        A fault of cuLaunchKernel also applies to cuLaunchKernelEx, which cudadrv calls. The same
        holds for other functions with variants, such as cuFuncGetAttribute and
        cuKernelGetAttribute.

        Args:
            function: its name, such as "cuMemAlloc".
            nth: the first call that fails, from now on, of any thread.
            times: the number of calls that fail; None for all from the nth on.
            with_: the error, a CUresult or its number.
            text: the text of the error in cuGetErrorString.

        Raises:
            ValueError: no such function, or a number out of range.
        """
        self._state.process.reject_if_ended("Emulator.fail")
        names, nth, times = self._planned_calls("Emulator.fail", function, nth, times)
        code = result_named("Emulator.fail: with_", with_)
        border.text("Emulator.fail: text", text)
        message = text or result_text(code)

        def remove() -> None:
            self._state.process.unplan(self._state.process.faults, names, fault)

        fault = ScheduledFault(remove, function, nth, times, (code, message))
        self._state.process.plan(self._state.process.faults, names, fault)
        return fault

    def on_call(
        self,
        function: str,
        action: Callable[[], object],
        *,
        nth: int = 1,
        times: int | None = 1,
    ) -> ScheduledAction:
        """Run an action in calls of a driver function, before they do anything.

        It stands for a garbage collection, a signal or another thread in the middle of a call. An
        exception of the action leaves the call. Functions with variants are as for `fail`.

        Args:
            function: its name, such as "cuMemAlloc".
            action: a function without arguments, called in the calling thread.
            nth: the first call that runs it, from now on, of any thread.
            times: the number of calls that run it; None for all from the nth on.

        Raises:
            ValueError: no such function, or a number out of range.
        """
        self._state.process.reject_if_ended("Emulator.on_call")
        names, nth, times = self._planned_calls("Emulator.on_call", function, nth, times)

        def remove() -> None:
            self._state.process.unplan(self._state.process.actions, names, planned)

        planned = ScheduledAction(remove, function, nth, times, action)
        self._state.process.plan(self._state.process.actions, names, planned)
        return planned

    def _planned_calls(
        self, where: str, function: str, nth: int, times: int | None
    ) -> tuple[tuple[str, ...], int, int | None]:
        """Return the function with its variants, and the checked numbers of its calls."""
        border.instance_of(f"{where}: function", function, str)
        if not (function.startswith("cu") and hasattr(self, function)):
            raise ArgumentValueError(f"{function!r} is no driver function that the emulator has")
        nth = border.integer(f"{where}: nth", nth)
        times = None if times is None else border.integer(f"{where}: times", times)
        if nth < 1 or (times is not None and times < 1):
            raise ArgumentValueError("nth and times count from 1")
        return (function, *_ALSO.get(function, ())), nth, times

    def live_objects(self) -> dict[str, int]:
        """Return how many objects exist, by kind; kinds without objects are included.

        Default streams are not counted, nor are graphs, nodes and functions without a handle.
        Textures and surfaces are one kind. Device memory is counted by allocations.
        """
        tables: dict[str, Sized] = {
            "context": self._state.handles.contexts,
            "stream": self._state.handles.streams,
            "capture": self._state.captures.active,
            "event": self._state.handles.events,
            "module": self._state.handles.modules,
            "library": self._state.handles.libraries,
            "graph": self._state.handles.graphs,
            "executable graph": self._state.handles.executables,
            "condition": self._state.handles.conditions,
            "user object": self._state.handles.user_objects,
            "array": self._state.handles.arrays,
            "mipmapped array": self._state.handles.mipmapped_arrays,
            "resource description": self._state.handles.descriptions,
            "green context": self._state.handles.green,
            "link": self._state.handles.links,
            "external memory": self._state.handles.external_memory,
            "external semaphore": self._state.handles.external_semaphores,
            "physical memory": self._state.memory.physical,
            "multicast object": self._state.memory.multicasts,
        }
        pools = [
            self._state.memory.host_pools.by_handle,
            *(each.account.pools for each in self._state.devices.visible),
        ]
        return {kind: len(table) for kind, table in tables.items()} | {
            "texture or surface": sum(
                len(each.model.textures) + len(each.model.surfaces)
                for each in self._state.devices.visible
            ),
            "memory pool": sum(map(len, pools)),
            "device memory": sum(len(device.pieces) for device in self._state.devices.visible),
        }

    def limit_memory(self, nbytes: int, *, ordinal: int = 0) -> MemoryLimit:
        """Let no more than `nbytes` of a device's memory be in use at once.

        Memory in use stays; the free bytes of cuMemGetInfo shrink, its total does not.

        Raises:
            ValueError: nbytes is negative, or there is no such device.
        """
        self._state.process.reject_if_ended("Emulator.limit_memory")
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
        self._state.process.reject_if_ended("Emulator.break_device")
        device = self._known_device(ordinal)
        code = result_named("Emulator.break_device: with_", with_)
        border.text("Emulator.break_device: text", text)
        former = device.fault
        failure = Failure("break_device", code, text or result_text(code), None)
        device.fault = failure

        def remove() -> None:
            if device.fault is failure:
                device.fault = former

        return BadDevice(remove)

    def _known_device(self, ordinal: int) -> DeviceState:
        ordinal = border.integer("an emulator's device: ordinal", ordinal)
        if not 0 <= ordinal < len(self._state.devices.visible):
            raise ArgumentValueError(
                f"there is no device {ordinal}, only {len(self._state.devices.visible)}"
            )
        return self._state.devices.visible[ordinal]


def _the_emulator_is_a_driver(emulator: Emulator) -> DriverApi:
    """Check, for the type checker alone, that an emulator is a `DriverApi`."""
    return emulator
