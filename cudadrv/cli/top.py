"""``python -m cudadrv top``: show the devices, their memory and its users, repeatedly.

NVML API Reference, "Device Queries". The library comes with the driver, its binding with
nvidia-ml-py (in the `cli` extra).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..driver.device import Device, list_devices
from ..errors import CudadrvError
from .command_line import Commands, add_command, print_table, program_name
from .driver_choice import use_emulator_without_gpu


class Nvml:
    """The initialised library.

    Args:
        binding: the module pynvml.
    """

    # pynvml has no types: values are Any here, and get their types where they are returned.
    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def device(self, pci_bus_id: str) -> NvmlDevice | None:
        """Return the device at a PCI address such as "0000:3b:00.0"; None if NVML lacks it."""
        handle = self.call("nvmlDeviceGetHandleByPciBusId", pci_bus_id.encode())
        return None if handle is None else NvmlDevice(self, handle)

    def call(self, function: str, *arguments: object) -> Any:
        """Call a function; None where the device lacks the value or the user may not read it."""
        try:
            return getattr(self._binding, function)(*arguments)
        except self._binding.NVMLError:
            return None


class NvmlDevice:
    """A device of NVML; None where NVML has no value."""

    def __init__(self, library: Nvml, handle: object) -> None:
        self._library, self._handle = library, handle

    def used_and_total(self) -> tuple[int, int] | None:
        """Return the bytes of device memory in use, and the total."""
        found = self._library.call("nvmlDeviceGetMemoryInfo", self._handle)
        return None if found is None else (int(found.used), int(found.total))

    def busy_percent(self) -> int | None:
        """Return the percent of the last moments in which a kernel ran."""
        found = self._library.call("nvmlDeviceGetUtilizationRates", self._handle)
        return None if found is None else int(found.gpu)

    def celsius(self) -> int | None:
        """Return the chip's temperature."""
        found = self._library.call("nvmlDeviceGetTemperature", self._handle, 0)
        return None if found is None else int(found)

    def watts(self) -> float | None:
        """Return the power in watts."""
        found = self._library.call("nvmlDeviceGetPowerUsage", self._handle)
        return None if found is None else float(found) / 1000

    def processes(self) -> dict[int, int | None]:
        """Return bytes of device memory by process id; None where the system hides them."""
        found = self._library.call("nvmlDeviceGetComputeRunningProcesses", self._handle)
        return {int(each.pid): each.usedGpuMemory for each in found or ()}


@contextmanager
def nvml() -> Iterator[Nvml | None]:
    """Yield NVML for a block; None where its binding or the library is missing."""
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


_COLUMNS: Final = ("device", "name", "MiB used", "MiB", "busy", "°C", "W", "processes")
_MIB: Final = 2**20
_CLEAR: Final = "\x1b[H\x1b[2J"  # cursor to the corner, clear the screen: ECMA-48


@dataclass(slots=True)
class Usage:
    """The usage of a device; None for unknown values.

    Attributes:
        busy_percent: of the last moments in which a kernel ran.
        processes: bytes of device memory by process id.
    """

    ordinal: int
    name: str
    used_bytes: int
    total_bytes: int
    busy_percent: int | None = None
    celsius: int | None = None
    watts: float | None = None
    processes: dict[int, int | None] = field(default_factory=dict)

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table's row."""
        told = (self.busy_percent, self.celsius, self.watts)
        busy, celsius, watts = ("-" if each is None else f"{each:.0f}" for each in told)
        processes = ", ".join(
            f"{pid}" + ("" if nbytes is None else f" ({nbytes // _MIB} MiB)")
            for pid, nbytes in self.processes.items()
        )
        used, total = self.used_bytes // _MIB, self.total_bytes // _MIB
        return (
            str(self.ordinal), self.name, str(used), str(total), busy, celsius, watts,
            processes or "-",
        )  # fmt: skip


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands, "top", "Show the devices, their memory and the processes that use it, live.",
        example="--once",
        statuses={
            "0": "printed", "1": "the driver failed, or has no device",
            "2": "the command line is wrong", "130": "interrupted by Ctrl-C",
        },
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print it once")
    parser.add_argument("--json", action="store_true", help="print it once, as JSON")
    parser.add_argument(
        "--interval", type=float, default=1.0, metavar="SECONDS", help="between updates; default: 1"
    )
    parser.set_defaults(run=lambda given: run_top(given.interval, given.once, given.json))


def run_top(interval_s: float, once: bool, as_json: bool) -> int:
    """Print the usage of the devices; return 1 if there is none."""
    try:
        use_emulator_without_gpu("top")
        devices = list_devices()
    except CudadrvError as error:
        print(f"{program_name()} top: {error}", file=sys.stderr)
        return 1
    with nvml() as library:
        if as_json:
            print(json.dumps([asdict(usage(device, library)) for device in devices], indent=2))
        elif once or not sys.stdout.isatty():
            rows = [usage(device, library).row() for device in devices]
            print_table("devices", _COLUMNS, rows)
        else:
            _watch(devices, library, interval_s)
    return 0 if devices else 1


def usage(device: Device, library: Nvml | None) -> Usage:
    """Return the usage of a device. Without NVML this makes its primary context."""
    found = library.device(device.pci_bus_id) if library and not device.is_emulated else None
    memory = found.used_and_total() if found else None
    if memory is None:
        free, total = device.memory_info()
        memory = total - free, total
    now = Usage(device.ordinal, device.name, *memory)
    if found is not None:
        now.busy_percent = found.busy_percent()
        now.celsius, now.watts = found.celsius(), found.watts()
        now.processes = found.processes()
    return now


def _watch(devices: Sequence[Device], library: Nvml | None, interval_s: float) -> None:
    while True:
        rows = [usage(device, library).row() for device in devices]
        print(_CLEAR, end="")
        print_table("devices", _COLUMNS, rows)
        time.sleep(interval_s)
