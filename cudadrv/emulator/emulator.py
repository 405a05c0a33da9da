"""The emulated driver: all its functions in one class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

from .. import border
from ..driver._api import CUresult
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
from .checks import CheckName, chosen_checks
from .device_state import DeviceState
from .fault_injection import BadDevice, MemoryLimit, ScheduledAction, ScheduledFault, result_named
from .profiles import EmulatedDevice, given_devices
from .timeline.schedule import OrderName, chosen_schedule

if TYPE_CHECKING:
    from .counters import Counters

_T = TypeVar("_T")

# Newer than any compiler of its major version, so that only tests get PTX rejected.
NEWEST_DRIVER: Final = (13, 9)

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
        limits: how far a kernel may run before it counts as endless.
    """

    is_emulated: Final = True
    keeps_blocks: Final = False

    def __init__(
        self,
        devices: int | Sequence[EmulatedDevice] = 1,
        *,
        driver_version: tuple[int, int] = NEWEST_DRIVER,
        limits: Limits = DEFAULT_LIMITS,
        order: OrderName | None = None,
        seed: int | None = None,
        check: CheckName | Sequence[CheckName] | None = None,
        suppressions: str | os.PathLike[str] | None = None,
    ) -> None:
        """`devices` is the number of default devices, or the devices themselves.

        `driver_version` is the result of cuDriverGetVersion, and decides which PTX is too new.
        `order` is when operations run (docs/orders.md): "immediate" at their call, "late" when they
        are needed, "random" by `seed`; None reads CUDADRV_EMULATOR_ORDER. `check` selects the
        checks of a program (docs/checks.md): "race", "init", "sync", "bounds", "divide",
            "assemble", "leak";
        None reads CUDADRV_CHECK. `suppressions` is a file of findings that are not reported; None
        reads CUDADRV_CHECK_SUPPRESSIONS.

        Raises:
            ValueError: an impossible count, device, order or check.
        """
        super().__init__(
            given_devices(devices, EmulatedDevice),
            driver_version,
            chosen_checks(limits, check, suppressions),
            chosen_schedule(order, seed),
        )

    @contextmanager
    def counting(self) -> Iterator[Counters]:
        """Count the instructions that the launches of a `with` block execute (docs/counters.md).

        Queued operations run before the block and at its end.
        """
        from .counters import Counters  # only if launches are counted

        self.reject_if_ended("Emulator.counting")
        counters = Counters()
        self.finish()
        for device in self._devices:
            with device.lock:
                device.counters = (*device.counters, counters)
        try:
            yield counters
            self.finish()
        finally:
            for device in self._devices:
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
        self.reject_if_ended("Emulator.fail")
        names, nth, times = self._planned_calls("Emulator.fail", function, nth, times)
        code = result_named("Emulator.fail: with_", with_)
        border.text("Emulator.fail: text", text)
        message = text or result_text(code)

        def remove() -> None:
            self._unplan(self._schedule, names, fault)

        fault = ScheduledFault(remove, function, nth, times, (code, message))
        self._plan(self._schedule, names, fault)
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
        self.reject_if_ended("Emulator.on_call")
        names, nth, times = self._planned_calls("Emulator.on_call", function, nth, times)

        def remove() -> None:
            self._unplan(self._actions, names, planned)

        planned = ScheduledAction(remove, function, nth, times, action)
        self._plan(self._actions, names, planned)
        return planned

    def _planned_calls(
        self, where: str, function: str, nth: int, times: int | None
    ) -> tuple[tuple[str, ...], int, int | None]:
        """Return the function with its variants, and the checked numbers of its calls."""
        border.instance(f"{where}: function", function, str)
        if not (function.startswith("cu") and hasattr(self, function)):
            raise ArgumentValueError(f"{function!r} is no driver function that the emulator has")
        nth = border.integer(f"{where}: nth", nth)
        times = None if times is None else border.integer(f"{where}: times", times)
        if nth < 1 or (times is not None and times < 1):
            raise ArgumentValueError("nth and times count from 1")
        return (function, *_ALSO.get(function, ())), nth, times

    def _plan(self, planned: dict[str, list[_T]], names: tuple[str, ...], item: _T) -> None:
        with self._lock:
            for name in names:
                planned.setdefault(name, []).append(item)

    def _unplan(self, planned: dict[str, list[_T]], names: tuple[str, ...], item: _T) -> None:
        with self._lock:
            for name in names:
                if item in planned.get(name, []):
                    planned[name].remove(item)

    def live_objects(self) -> dict[str, int]:
        """Return how many objects exist, by kind; kinds without objects are included.

        Default streams are not counted, nor are graphs, nodes and functions without a handle.
        Textures and surfaces are one kind. Device memory is counted by allocations.
        """
        tables: dict[str, Sized] = {
            "context": self._contexts,
            "stream": self._streams,
            "capture": self._captures,
            "event": self._events,
            "module": self._modules,
            "library": self._libraries,
            "graph": self._graphs,
            "executable graph": self._executables,
            "condition": self._conditions,
            "user object": self._user_objects,
            "array": self._arrays,
            "mipmapped array": self._mipmapped_arrays,
            "resource description": self._descriptions,
            "green context": self._green,
            "link": self._links,
            "external memory": self._external_memory,
            "external semaphore": self._external_semaphores,
            "physical memory": self._physical,
            "multicast object": self._multicasts,
        }
        pools = [self._host_pools.by_handle, *(each.account.pools for each in self._devices)]
        return {kind: len(table) for kind, table in tables.items()} | {
            "texture or surface": sum(
                len(each.model.textures) + len(each.model.surfaces) for each in self._devices
            ),
            "memory pool": sum(map(len, pools)),
            "device memory": sum(len(device.pieces) for device in self._devices),
        }

    def limit_memory(self, nbytes: int, *, ordinal: int = 0) -> MemoryLimit:
        """Let no more than `nbytes` of a device's memory be in use at once.

        Memory in use stays; the free bytes of cuMemGetInfo shrink, its total does not.

        Raises:
            ValueError: nbytes is negative, or there is no such device.
        """
        self.reject_if_ended("Emulator.limit_memory")
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
        self.reject_if_ended("Emulator.break_device")
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
        if not 0 <= ordinal < len(self._devices):
            raise ArgumentValueError(f"there is no device {ordinal}, only {len(self._devices)}")
        return self._devices[ordinal]


def _the_emulator_is_a_driver(emulator: Emulator) -> DriverApi:
    """Check, for the type checker alone, that an emulator is a `DriverApi`."""
    return emulator
