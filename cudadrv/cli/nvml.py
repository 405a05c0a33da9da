"""What NVML tells of a device: memory, use, temperature, power, processes.

NVML API Reference, "Device Queries". The library comes with the driver, its binding with
nvidia-ml-py (in the `cli` extra).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Nvml:
    """The initialised library.

    Args:
        binding: the module pynvml.
    """

    # pynvml has no types: what is asked here is Any, and gets its type where it is given on.
    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def device(self, pci_bus_id: str) -> NvmlDevice | None:
        """The device at a PCI address such as "0000:3b:00.0"; None if NVML does not know it."""
        handle = self.asked("nvmlDeviceGetHandleByPciBusId", pci_bus_id.encode())
        return None if handle is None else NvmlDevice(self, handle)

    def asked(self, function: str, *arguments: object) -> Any:
        """What a function gives; None where this device or this user has no such thing."""
        try:
            return getattr(self._binding, function)(*arguments)
        except self._binding.NVMLError:
            return None


class NvmlDevice:
    """One device of NVML's; what it cannot tell is None."""

    def __init__(self, library: Nvml, handle: object) -> None:
        self._library, self._handle = library, handle

    def used_and_total(self) -> tuple[int, int] | None:
        """Bytes of device memory in use, and all."""
        found = self._library.asked("nvmlDeviceGetMemoryInfo", self._handle)
        return None if found is None else (int(found.used), int(found.total))

    def busy_percent(self) -> int | None:
        """Percent of the last moments in which a kernel ran."""
        found = self._library.asked("nvmlDeviceGetUtilizationRates", self._handle)
        return None if found is None else int(found.gpu)

    def celsius(self) -> int | None:
        """The chip's temperature."""
        found = self._library.asked("nvmlDeviceGetTemperature", self._handle, 0)
        return None if found is None else int(found)

    def watts(self) -> float | None:
        """The power that it takes."""
        found = self._library.asked("nvmlDeviceGetPowerUsage", self._handle)
        return None if found is None else float(found) / 1000

    def processes(self) -> dict[int, int | None]:
        """Bytes of device memory by process id; None where the system hides them."""
        found = self._library.asked("nvmlDeviceGetComputeRunningProcesses", self._handle)
        return {int(each.pid): each.usedGpuMemory for each in found or ()}


@contextmanager
def nvml() -> Iterator[Nvml | None]:
    """NVML for a block; None where its binding or the library is not there."""
    try:
        import pynvml
    except ModuleNotFoundError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield Nvml(pynvml)
    finally:
        pynvml.nvmlShutdown()
