"""The NVIDIA Management Library (NVML): what it reports of a device, by nvidia-ml-py.

NVML API Reference Guide. The library comes with the driver, its binding with the `cli` extra.
"""

from __future__ import annotations

import functools
import os
import time
import weakref
from dataclasses import dataclass
from enum import Enum, Flag
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias

from . import border
from .errors import ArgumentValueError, ClosedError, NvmlError, NvmlNotFoundError, UnsupportedError

__all__ = [
    "ClockRates", "DeviceConnection", "EccErrors", "FieldValue", "NvLink", "NvmlDevice",
    "NvmlEvent", "NvmlEventKind", "NvmlEvents", "PciPath", "PendingMode",
]  # fmt: skip

_INSTALL: Final = 'pip install "cudadrv[cli]"'
# nvmlReturn_t
_UNKNOWN_VALUES: Final = frozenset({3, 4, 6})  # not supported, no permission, not found
_INVALID_ARGUMENT: Final = 2
_TIMEOUT: Final = 10
_FUNCTION_NOT_FOUND: Final = 13
# nvmlClockType_t
_SM_CLOCK: Final = 1
_MEMORY_CLOCK: Final = 2
# nvmlMemoryErrorType_t, nvmlEccCounterType_t
_CORRECTED, _UNCORRECTED = 0, 1
_SINCE_BOOT, _LIFETIME = 0, 1
# nvmlIntNvLinkDeviceType_t
_REMOTE_SWITCH: Final = 2
_MOST_NVLINKS: Final = 36
_P2P_BY_NVLINK: Final = 2  # nvmlGpuP2PCapsIndex_t
# nvmlClocksEventReasons
_SLOWDOWNS: Final = {
    0x1: "idle",
    0x2: "clocks set by a user",
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}


class PendingMode(NamedTuple):
    """A mode that changes at the next reset of the device.

    Attributes:
        current: whether it is on.
        pending: whether it is on after the reset.
    """

    current: bool
    pending: bool


@dataclass(frozen=True, slots=True)
class EccErrors:
    """Memory errors that ECC found.

    Attributes:
        corrected: since the driver was loaded; `uncorrected`: those that lost data.
        lifetime_corrected, lifetime_uncorrected: since the device was made.
    """

    corrected: int
    uncorrected: int
    lifetime_corrected: int
    lifetime_uncorrected: int


@dataclass(frozen=True, slots=True)
class ClockRates:
    """Clock rates in MHz.

    Attributes:
        sm_mhz, memory_mhz: the rates now.
        max_sm_mhz, max_memory_mhz: the highest rates of the device.
        slowdowns: why the rates are below the highest, such as "power limit" or "idle".
    """

    sm_mhz: int
    memory_mhz: int
    max_sm_mhz: int
    max_memory_mhz: int
    slowdowns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NvLink:
    """An active NVLink of a device.

    Attributes:
        number: of the link on this device.
        version: of NVLink, None if unknown.
        remote_pci: the PCI address at the other end, "" if unknown.
        is_to_switch: whether that is an NVSwitch.
    """

    number: int
    version: int | None
    remote_pci: str
    is_to_switch: bool


class PciPath(Enum):
    """The path between two devices on PCI Express; the values are the names of nvidia-smi."""

    SAME_BOARD = "PSB"
    ONE_SWITCH = "PIX"
    SWITCHES = "PXB"
    HOST_BRIDGE = "PHB"
    NUMA_NODE = "NODE"
    SYSTEM = "SYS"


Field: TypeAlias = "str | int | tuple[str | int, int]"
_FIELD_PREFIX: Final = "NVML_FI_DEV_"
# nvmlValueType_t: the member of the union that has the value
_VALUE_MEMBERS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_NO_INSTANCE: Final = 0xFFFFFFFF
# Ctrl-C does not interrupt NVML's wait, so a long one is divided.
_LONGEST_WAIT: Final = 0.1


@dataclass(frozen=True, slots=True)
class FieldValue:
    """The value of a field of NVML.

    Attributes:
        value: in the unit that NVML's manual names, such as millijoules.
        time_us: when it was read, in microseconds since 1970.
        latency_us: how long reading it took, in microseconds.
    """

    value: int | float
    time_us: int
    latency_us: int


class NvmlEventKind(Flag):
    """Kinds of events; each has the value of its nvmlEventType."""

    SINGLE_BIT_ECC_ERROR = 0x1
    DOUBLE_BIT_ECC_ERROR = 0x2
    PERFORMANCE_STATE = 0x4
    XID = 0x8
    CLOCK = 0x10
    POWER_SOURCE = 0x80
    MIG_CONFIGURATION = 0x100
    SINGLE_BIT_ECC_ERROR_STORM = 0x200
    DRAM_RETIREMENT = 0x400
    DRAM_RETIREMENT_FAILURE = 0x800
    NON_FATAL_POISON_ERROR = 0x1000
    FATAL_POISON_ERROR = 0x2000
    GPU_UNAVAILABLE = 0x4000
    GPU_RECOVERY_ACTION = 0x8000


_ALL_KINDS: Final = ~NvmlEventKind(0)


@dataclass(frozen=True, slots=True)
class NvmlEvent:
    """An event of a device.

    Attributes:
        kind: its kind.
        data: of `NvmlEventKind.XID` the number of the error, such as 31 for a bad address; else 0.
        gpu_instance, compute_instance: the instance of MIG, None for the whole device.
    """

    kind: NvmlEventKind
    data: int
    gpu_instance: int | None
    compute_instance: int | None


_PATHS: Final = dict(zip((0, 10, 20, 30, 40, 50), PciPath, strict=True))  # nvmlGpuTopologyLevel_t


@dataclass(frozen=True, slots=True)
class DeviceConnection:
    """How two devices are connected.

    Attributes:
        nvlinks: the NVLinks between them, also through switches; 0 without.
        path: what lies between them on PCI Express; None if unknown.
    """

    nvlinks: int
    path: PciPath | None

    def __str__(self) -> str:
        if self.nvlinks:
            return f"NV{self.nvlinks}"
        return "?" if self.path is None else self.path.value


class Nvml:
    """The initialised library.

    Args:
        binding: the module pynvml.
    """

    # pynvml has no types: values are Any here, and get their types where they are returned.
    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def device(self, uuid: str, pci_bus_id: str | None) -> NvmlDevice | None:
        """Return the device of a UUID such as "GPU-…", else the one at a PCI address."""
        handle = self.call("nvmlDeviceGetHandleByUUID", uuid.encode())
        if handle is None and pci_bus_id is not None:
            # An instance of MIG: the device that it is a part of.
            handle = self.call("nvmlDeviceGetHandleByPciBusId", pci_bus_id.encode())
        return None if handle is None else NvmlDevice(self, handle)

    def call(self, function: str, *arguments: object) -> Any:
        """Call a function; None where the device lacks the value or the user may not read it.

        Raises:
            UnsupportedError: the driver or nvidia-ml-py lacks the function.
            NvmlError: the call failed.
        """
        called = getattr(self._binding, function, None)
        if called is None:
            raise UnsupportedError(
                f"nvidia-ml-py lacks {function}\n  update it: pip install -U nvidia-ml-py"
            )
        try:
            return called(*arguments)
        except self._binding.NVMLError as error:
            code = int(error.value)
            if code in _UNKNOWN_VALUES:
                return None
            if code == _FUNCTION_NOT_FOUND:
                raise UnsupportedError(
                    f"{function} needs a newer driver: this one is {self._driver_version()}"
                ) from error
            raise NvmlError(function, code, str(error)) from error

    def field_number(self, field: object) -> int:
        """Return the number of a field by its name, such as "MEMORY_TEMP"; a number as it is.

        Raises:
            ArgumentValueError: nvidia-ml-py has no such name.
        """
        if not isinstance(field, str):
            return border.int_in_range("NvmlDevice.fields: field", field, most=2**32 - 1)
        number = getattr(self._binding, _FIELD_PREFIX + field.removeprefix(_FIELD_PREFIX), None)
        if not isinstance(number, int):
            raise ArgumentValueError(
                f"NvmlDevice.fields: nvidia-ml-py has no field {border.shown(field)}\n"
                f"  names are those of NVML without {_FIELD_PREFIX}, such as MEMORY_TEMP"
            )
        return number

    def _driver_version(self) -> str:
        return str(self._binding.nvmlSystemGetDriverVersion())


def nvml() -> Nvml:
    """Return NVML, initialised once for each process.

    Raises:
        NvmlNotFoundError: its binding or the library is missing, or there is no driver.
    """
    return _nvml_of(os.getpid())


@functools.cache
def _nvml_of(process: int) -> Nvml:
    del process  # a forked child initialises it again
    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise NvmlNotFoundError(
            f"NVML needs the package nvidia-ml-py: {_INSTALL}", command=_INSTALL
        ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlNotFoundError(
            f"NVML cannot be used: {error}\n"
            "  install the NVIDIA driver; a container needs its library libnvidia-ml.so.1",
            command="",
        ) from error
    return Nvml(pynvml)


class NvmlDevice:
    """A device in NVML; from `Device.nvml`.

    A value is None where the device has none, or where the system hides it. For an instance of MIG
    the values are those of the whole device.

    Raises:
        UnsupportedError: the driver or nvidia-ml-py lacks the function.
        NvmlError: the call failed.
    """

    __slots__ = ("__weakref__", "_handle", "_library")

    def __init__(self, library: Nvml, handle: object) -> None:
        self._library, self._handle = library, handle

    def _get(self, function: str, *arguments: object) -> Any:  # as `Nvml.call`
        return self._library.call(f"nvmlDeviceGet{function}", self._handle, *arguments)

    def used_and_total(self) -> tuple[int, int] | None:
        """Return the bytes of device memory in use, and the total."""
        memory = self._get("MemoryInfo")
        return None if memory is None else (int(memory.used), int(memory.total))

    def busy_percent(self) -> int | None:
        """Return the percent of the last moments in which a kernel ran."""
        utilization = self._get("UtilizationRates")
        return None if utilization is None else int(utilization.gpu)

    def celsius(self) -> int | None:
        """Return the chip's temperature."""
        temperature = self._get("Temperature", 0)
        return None if temperature is None else int(temperature)

    def watts(self) -> float | None:
        """Return the power in watts."""
        milliwatts = self._get("PowerUsage")
        return None if milliwatts is None else float(milliwatts) / 1000

    def processes(self) -> dict[int, int | None]:
        """Return bytes of device memory by process id; None where the system hides them."""
        processes = self._get("ComputeRunningProcesses")
        return {int(process.pid): process.usedGpuMemory for process in processes or ()}

    def mps_processes(self) -> dict[int, int | None]:
        """Return the same for the clients of the Multi-Process Service (MPS)."""
        processes = self._get("MPSComputeRunningProcesses")
        return {int(process.pid): process.usedGpuMemory for process in processes or ()}

    def mig_mode(self) -> PendingMode | None:
        """Return whether the device is divided into instances (MIG)."""
        return _mode(self._get("MigMode"))

    def ecc_mode(self) -> PendingMode | None:
        """Return whether ECC is on."""
        return _mode(self._get("EccMode"))

    def ecc_errors(self) -> EccErrors | None:
        """Return the counts of memory errors; None without ECC."""
        counts = [
            self._get("TotalEccErrors", kind, period)
            for period in (_SINCE_BOOT, _LIFETIME)
            for kind in (_CORRECTED, _UNCORRECTED)
        ]
        return None if None in counts else EccErrors(*map(int, counts))

    def clocks(self) -> ClockRates | None:
        """Return the clock rates, and the reasons for low ones."""
        rates = [
            self._get(function, kind)
            for function in ("ClockInfo", "MaxClockInfo")
            for kind in (_SM_CLOCK, _MEMORY_CLOCK)
        ]
        if None in rates:
            return None
        try:
            bits = self._get("CurrentClocksEventReasons")
        except UnsupportedError:  # the function has another name before driver 535
            bits = self._get("CurrentClocksThrottleReasons")
        slowdowns = tuple(text for bit, text in _SLOWDOWNS.items() if bit & (bits or 0))
        sm, memory, max_sm, max_memory = map(int, rates)
        return ClockRates(sm, memory, max_sm, max_memory, slowdowns)

    def nvlinks(self) -> tuple[NvLink, ...]:
        """Return the active NVLinks."""
        links = []
        for number in range(_MOST_NVLINKS):
            try:
                is_active = self._get("NvLinkState", number)
            except NvmlError as error:
                if error.code != _INVALID_ARGUMENT:
                    raise
                break  # the device has no more links
            if is_active:
                links.append(self._nvlink(number))
        return tuple(links)

    def _nvlink(self, number: int) -> NvLink:
        version = self._get("NvLinkVersion", number)
        remote = self._get("NvLinkRemotePciInfo", number)
        kind = self._get("NvLinkRemoteDeviceType", number)
        return NvLink(
            number,
            None if version is None else int(version),
            "" if remote is None else _pci_address(remote),
            kind == _REMOTE_SWITCH,
        )

    def fields(self, *fields: Field) -> dict[Field, FieldValue | None]:
        """Query fields in one call; a value is None where the device or the driver has none.

        Args:
            fields: names of NVML without ``NVML_FI_DEV_``, or numbers. A pair adds a scope, such as
                the number of an NVLink: ("NVLINK_GET_SPEED", 3).

        Raises:
            ArgumentValueError: nvidia-ml-py has no such name.
        """
        numbers = []
        for field in fields:
            name, scope = field if isinstance(field, tuple) else (field, 0)
            scope = border.int_in_range("NvmlDevice.fields: scope", scope, most=2**32 - 1)
            numbers.append((self._library.field_number(name), scope))
        values = self._get("FieldValues", numbers) if numbers else ()
        if values is None:
            return dict.fromkeys(fields)
        return {field: _field_value(each) for field, each in zip(fields, values, strict=True)}

    def supported_events(self) -> NvmlEventKind:
        """Return the kinds of events that the device reports."""
        bits = self._get("SupportedEventTypes")
        return NvmlEventKind((bits or 0) & _ALL_KINDS.value)

    def events(self, kinds: NvmlEventKind) -> NvmlEvents:
        """Register for events, from now on.

        `with device.nvml.events(NvmlEventKind.XID) as events:` ends it after the block.

        Raises:
            UnsupportedError: the device does not report one of the kinds.
        """
        border.instance_of("NvmlDevice.events: kinds", kinds, NvmlEventKind)
        missing = kinds & ~self.supported_events()
        if missing or not kinds:
            raise UnsupportedError(
                f"the device reports no events of {missing or kinds}\n"
                f"  it has {self.supported_events()}"
            )
        return NvmlEvents(self._library, self._handle, kinds)

    def pci_address(self) -> str:
        """Return the PCI address as domain:bus:device.function."""
        pci_info = self._get("PciInfo")
        return "" if pci_info is None else _pci_address(pci_info)

    def connection(self, other: NvmlDevice) -> DeviceConnection:
        """Return how this device is connected with another one."""
        border.instance_of("NvmlDevice.connection: other", other, NvmlDevice)
        level = self._get("TopologyCommonAncestor", other._handle)
        path = None if level is None else _PATHS.get(int(level))
        links = self.nvlinks()
        address = other.pci_address()
        direct = sum(link.remote_pci == address for link in links)
        if direct or not any(link.is_to_switch for link in links):
            return DeviceConnection(direct, path)
        status = self._get("P2PStatus", other._handle, _P2P_BY_NVLINK)
        through = sum(link.is_to_switch for link in links) if status == 0 else 0
        return DeviceConnection(through, path)


class NvmlEvents:
    """Events of a device since it was registered for them; from `NvmlDevice.events`."""

    __slots__ = ("__weakref__", "_free", "_kinds", "_library", "_set")

    def __init__(self, library: Nvml, device: object, kinds: NvmlEventKind) -> None:
        self._library = library
        self._kinds = kinds
        self._set = library.call("nvmlEventSetCreate")
        self._free = weakref.finalize(self, _free_events, library, self._set, os.getpid())
        library.call("nvmlDeviceRegisterEvents", device, kinds.value, self._set)

    @property
    def kinds(self) -> NvmlEventKind:
        """The kinds that are reported."""
        return self._kinds

    def wait(self, seconds: float) -> NvmlEvent | None:
        """Wait for the next event, and return it; None after this time.

        Raises:
            ClosedError: the events were closed.
            NvmlError: the call failed, such as for a device that was lost.
        """
        end = time.monotonic() + border.real("NvmlEvents.wait: seconds", seconds)
        while True:
            if not self._free.alive:
                raise ClosedError("the NVML events were closed")
            left = min(max(0.0, end - time.monotonic()), _LONGEST_WAIT)
            try:
                # Rounded up, else the last wait is none.
                data = self._library.call("nvmlEventSetWait_v2", self._set, -int(-left * 1000 // 1))
            except NvmlError as error:
                if error.code != _TIMEOUT:
                    raise
                if time.monotonic() >= end:
                    return None
            else:
                return _event(data)

    def close(self) -> None:
        """End the registration."""
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _free_events(library: Nvml, events: object, process: int) -> None:
    if os.getpid() == process:  # a forked child has initialised NVML anew, or not at all
        library.call("nvmlEventSetFree", events)


def _event(data: Any) -> NvmlEvent:  # nvmlEventData_t
    instances = (int(data.gpuInstanceId), int(data.computeInstanceId))
    gpu, compute = (None if each == _NO_INSTANCE else each for each in instances)
    return NvmlEvent(NvmlEventKind(int(data.eventType)), int(data.eventData), gpu, compute)


def _field_value(native: Any) -> FieldValue | None:  # nvmlFieldValue_t
    kind, time_us = int(native.valueType), int(native.timestamp)
    # Driver 580 leaves some fields that it lacks as they are, without a code.
    is_left = not kind and not time_us
    if native.nvmlReturn or is_left or kind >= len(_VALUE_MEMBERS):
        return None
    value = getattr(native.value, _VALUE_MEMBERS[kind])
    return FieldValue(value, time_us, int(native.latencyUsec))


def _mode(modes: Any) -> PendingMode | None:  # two numbers of pynvml
    return None if modes is None else PendingMode(bool(modes[0]), bool(modes[1]))


def _pci_address(info: Any) -> str:  # nvmlPciInfo_t
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"
