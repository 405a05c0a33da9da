"""The NVIDIA Management Library (NVML): what it reports of a device, by nvidia-ml-py.

NVML API Reference Guide. The library comes with the driver, its binding with the `cli` extra.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from .errors import NvmlError, NvmlNotFoundError, UnsupportedError

__all__ = [
    "ClockRates", "DeviceConnection", "EccErrors", "NvLink", "NvmlDevice", "PciPath", "PendingMode",
]  # fmt: skip

_INSTALL: Final = 'pip install "cudadrv[cli]"'
# nvmlReturn_t
_UNKNOWN_VALUES: Final = frozenset({3, 4, 6})  # not supported, no permission, not found
_INVALID_ARGUMENT: Final = 2
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

    def pci_address(self) -> str:
        """Return the PCI address as domain:bus:device.function."""
        pci_info = self._get("PciInfo")
        return "" if pci_info is None else _pci_address(pci_info)

    def connection(self, other: NvmlDevice) -> DeviceConnection:
        """Return how this device is connected with another one."""
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


def _mode(modes: Any) -> PendingMode | None:  # two numbers of pynvml
    return None if modes is None else PendingMode(bool(modes[0]), bool(modes[1]))


def _pci_address(info: Any) -> str:  # nvmlPciInfo_t
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"
