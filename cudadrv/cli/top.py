"""``python -m cudadrv top``: show the devices, their memory and its users, repeatedly."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from ..driver.device import Device, list_devices
from ..errors import CudadrvError, NvmlNotFoundError, UnsupportedError
from .command_line import Commands, add_command, program_name
from .driver_choice import use_emulator_without_gpu
from .output import clear_terminal, is_terminal, print_error, print_table, print_text

_COLUMNS: Final = ("device", "name", "MiB used", "MiB", "busy", "°C", "W", "processes")
_MIB: Final = 2**20


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
        figures = (self.busy_percent, self.celsius, self.watts)
        busy, celsius, watts = ("-" if figure is None else f"{figure:.0f}" for figure in figures)
        processes = ", ".join(
            f"{pid}" + ("" if nbytes is None else f" ({nbytes // _MIB} MiB)")
            for pid, nbytes in self.processes.items()
        )
        used_mib, total_mib = self.used_bytes // _MIB, self.total_bytes // _MIB
        return (
            str(self.ordinal), self.name, str(used_mib), str(total_mib), busy, celsius, watts,
            processes or "-",
        )  # fmt: skip


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "top",
        "Show the devices, their memory and the processes that use it, live.",
        example="--once",
        statuses={
            "0": "printed",
            "1": "the driver failed, or has no device",
            "2": "the command line is wrong",
            "130": "interrupted by Ctrl-C",
        },
    )
    parser.add_argument("--once", action="store_true", help="print it once")
    parser.add_argument("--json", action="store_true", help="print it once, as JSON")
    parser.add_argument(
        "--interval", type=float, default=1.0, metavar="SECONDS", help="between updates; default: 1"
    )
    parser.set_defaults(run=lambda options: run_top(options.interval, options.once, options.json))


def run_top(interval_s: float, once: bool, as_json: bool) -> int:
    """Print the usage of the devices; return 1 if there is none."""
    try:
        use_emulator_without_gpu("top")
        devices = list_devices()
        _show(devices, interval_s, once=once, as_json=as_json)
    except CudadrvError as error:
        print_error(f"{program_name()} top: {error}")
        return 1
    return 0 if devices else 1


def _show(devices: Sequence[Device], interval_s: float, *, once: bool, as_json: bool) -> None:
    if as_json:
        print_text(json.dumps([asdict(usage(device)) for device in devices], indent=2))
    elif once or not is_terminal():
        print_table("devices", _COLUMNS, [usage(device).row() for device in devices])
    else:
        _watch(devices, interval_s)


def usage(device: Device) -> Usage:
    """Return the usage of a device. Without NVML this makes its primary context."""
    try:
        nvml_device = device.nvml
    except (NvmlNotFoundError, UnsupportedError):
        nvml_device = None
    memory = nvml_device.used_and_total() if nvml_device else None
    if memory is None:
        free, total = device.memory_info()
        memory = total - free, total
    now = Usage(device.ordinal, device.name, *memory)
    if nvml_device is not None:
        now.busy_percent = nvml_device.busy_percent()
        now.celsius, now.watts = nvml_device.celsius(), nvml_device.watts()
        now.processes = nvml_device.processes()
    return now


def _watch(devices: Sequence[Device], interval_s: float) -> None:
    while True:
        rows = [usage(device).row() for device in devices]
        clear_terminal()
        print_table("devices", _COLUMNS, rows)
        time.sleep(interval_s)
