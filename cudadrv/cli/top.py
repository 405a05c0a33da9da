"""``python -m cudadrv top``: the devices, their memory and who uses it, again and again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from ..driver.device import Device, list_devices
from ..errors import CudadrvError
from .commands import Commands
from .nvml import Nvml, nvml
from .output import print_table

_COLUMNS: Final = ("device", "name", "MiB used", "MiB", "busy", "°C", "W", "processes")
_MIB: Final = 2**20
_CLEAR: Final = "\x1b[H\x1b[2J"  # to the corner, and what is there away: ECMA-48


@dataclass(slots=True)
class Usage:
    """One device now; what cannot be told is None.

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
        """The cells of its line."""
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
    parser = commands.add_parser("top", help="the devices, their memory and who uses it, live")
    parser.add_argument("--once", action="store_true", help="print it once")
    parser.add_argument("--json", action="store_true", help="print it once, as JSON")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="default: 1")
    parser.set_defaults(run=lambda given: run_top(given.interval, given.once, given.json))


def run_top(interval_s: float, once: bool, as_json: bool) -> int:
    """Print the devices' use; answers 1 where there is no device."""
    try:
        devices = list_devices()
    except CudadrvError as error:
        print(f"top: {error}", file=sys.stderr)
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
    """A device now. Without NVML this makes its primary context, to ask for its memory."""
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
