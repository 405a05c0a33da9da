"""``profile``: run a script, and print how long its kernels and copies take on the device."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..driver._api import CUdevice_attribute
from ..driver.device import Device
from ..driver.driver_selection import current
from ..emulator import Counts, Emulator
from ..errors import CudadrvError, InvalidValueError
from ..tracing import DeviceSpan, Trace, trace
from .command_line import Commands, add_command, add_program, program_name
from .driver_choice import use_emulator_without_gpu
from .output import print_error, print_table, print_text
from .script import run_module, run_script, why_no_module, why_no_script

_USAGE_ERROR: Final = 2  # argparse's status for a wrong command line
_INTERRUPTED: Final = 130  # a shell's status for SIGINT
_SECTOR: Final = 32  # bytes
_ISSUED: Final = 4  # warp instructions a cycle and multiprocessor, from compute capability 7.0 on
_COLUMNS: Final = ("what", "device", "count", "total ms", "share", "mean µs", "min µs", "max µs")
_NO_PREDICTION: Final = "these times are the emulator's own: they do not predict the times of a GPU"


@dataclass(frozen=True, slots=True)
class Bound:
    """Times of a mean launch at a limit of the device, by counts of the emulator.

    Attributes:
        memory_us: to move all counted sectors at the peak rate of device memory.
        issue_us: to issue all counted instructions of PTX, four a cycle and multiprocessor.
    """

    memory_us: float
    issue_us: float

    @property
    def cell(self) -> str:
        """The larger one, with its limit."""
        if self.memory_us >= self.issue_us:
            return f"{self.memory_us:.3g} memory"
        return f"{self.issue_us:.3g} issue"


@dataclass(frozen=True, slots=True)
class GraphKernel:
    """A kernel in the replays of a graph, which have one time together.

    Attributes:
        count: its launches in all the replays.
        bound: None where it is unknown.
    """

    what: str
    count: int
    bound: Bound | None


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """All spans of one name on one device; of graphs, all replays with the same kernels.

    Attributes:
        what: the kernel, or the driver's function; `category`: "launch" or "copy".
        share: of the total time of all work.
        bound: None where it is unknown.
        kernels: those of a graph.
    """

    what: str
    device: int
    category: str
    count: int
    total_ms: float
    share: float
    mean_us: float
    min_us: float
    max_us: float
    bound: Bound | None
    kernels: tuple[GraphKernel, ...] = ()

    def rows(self, *, with_bound: bool) -> Iterator[tuple[str, ...]]:
        """Yield the cells of the table's row, and of a row for each kernel of a graph."""
        times = (f"{time:,.1f}" for time in (self.mean_us, self.min_us, self.max_us))
        row = (
            self.what,
            str(self.device),
            f"{self.count:,}",
            f"{self.total_ms:.3f}",
            f"{self.share:.0%}",
            *times,
        )
        yield (*row, _bound_cell(self.bound)) if with_bound else row
        for kernel in self.kernels:
            row = (f"  {kernel.what}", str(self.device), f"{kernel.count:,}", *("-" * 5))
            yield (*row, _bound_cell(kernel.bound)) if with_bound else row


def _bound_cell(bound: Bound | None) -> str:
    return "-" if bound is None else bound.cell


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "profile",
        "Run a script, and print the device times of its kernels and copies in one table.",
        example="--bounds script.py",
        statuses={
            "0": "the script succeeded",
            "1": "the driver failed, or an exception ended the script",
            "2": "the command line is wrong; no script has run",
            "130": "interrupted by Ctrl-C",
            "other": "the script's own status",
        },
        usage="%(prog)s [options] SCRIPT|-m MODULE [arguments]",
    )
    add = parser.add_argument
    add(
        "--bounds",
        action="store_true",
        help="also what the device's limits allow, by counts of the emulator; on a GPU the script "
        "runs once more, on the emulator",
    )
    add("--json", action="store_true", help="print the table as JSON, in the last line")
    add_program(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    program, arguments = options.script, options.arguments
    if options.module:
        program, *arguments = options.module
        why = why_no_module(program)
    elif options.script is None or options.module is not None:
        why = "name a script, or a module with -m"
    else:
        why = why_no_script(program)
    if options.bounds and options.module:
        why = why or "--bounds needs a script, not a module"
    if why:
        print_error(f"{program_name()} profile: {why}")
        return _USAGE_ERROR
    return run_profile(
        program,
        arguments,
        is_module=bool(options.module),
        bounds=options.bounds,
        as_json=options.json,
    )


def run_profile(
    program: str, arguments: Sequence[str], *, is_module: bool, bounds: bool, as_json: bool
) -> int:
    """Print the times, also of a script that fails; return the script's status."""
    recorded, counters = trace(), None
    launches: Sequence[_Launch] = ()
    run = run_module if is_module else run_script
    with ExitStack() as stack:
        try:
            use_emulator_without_gpu("profile")
            driver = current()
            if bounds and isinstance(driver.api, Emulator):
                counters = stack.enter_context(driver.api.counting())
            stack.enter_context(recorded)
        except CudadrvError as error:
            print_error(f"{program_name()} profile: {error}")
            return 1
        try:
            status = run(program, arguments).status
        except KeyboardInterrupt:
            status = _INTERRUPTED
    if counters is not None:
        launches = [_Launch.of(launch.symbol, launch.total) for launch in counters.launches]
    elif bounds and status != _INTERRUPTED:
        launches = _counted_elsewhere(program, arguments)
    _print(recorded, launches, is_emulated=driver.is_emulated, bounds=bounds, as_json=as_json)
    return status


@dataclass(frozen=True, slots=True)
class _Launch:
    """A counted launch: the kernel's name in the PTX, bytes of global memory, instructions."""

    symbol: str
    nbytes: int
    instructions: int

    @staticmethod
    def of(symbol: str, counts: Counts) -> _Launch:
        traffic = counts.global_loads + counts.global_stores + counts.global_copies
        return _Launch(symbol, traffic.sectors * _SECTOR, counts.executed.warps)


def _counted_elsewhere(script: str, arguments: Sequence[str]) -> list[_Launch]:
    """Return the launches of the script, run in another process on the emulator."""
    environment = {key: value for key, value in os.environ.items() if key != "CUDADRV_DRIVER"}
    process = subprocess.run(
        [sys.executable, "-m", "cudadrv", "count", "--json", script, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        launches = json.loads(process.stdout.rstrip("\n").rpartition("\n")[2])
    except (IndexError, ValueError):
        print_error(f"no bounds: the script ended with {process.returncode} on the emulator")
        return []
    return [
        _Launch(
            launch["symbol"],
            _SECTOR
            * sum(
                launch["total"][name]["sectors"]
                for name in ("global_loads", "global_stores", "global_copies")
            ),
            launch["total"]["executed"]["warps"],
        )
        for launch in launches
    ]


def device_work(
    spans: Iterable[DeviceSpan], symbols: Mapping[str, str], launches: Sequence[_Launch]
) -> list[DeviceWork]:
    """Return the work by name and device, that with the most time first."""
    groups: dict[tuple[int, str, str, tuple[tuple[str, int], ...]], list[float]] = {}
    for span in spans:
        key = span.ordinal, span.category, span.name, span.kernels
        groups.setdefault(key, []).append(span.duration_ns / 1e3)
    total_of_all = sum(map(sum, groups.values())) or 1.0
    limits = _Limits(symbols, launches)
    rows = []
    for (ordinal, category, name, in_graph), times in groups.items():
        device, total = Device.get(ordinal), sum(times)
        bound = limits.of_graph(device, in_graph) if in_graph else limits.of(device, name)
        kernels = tuple(
            GraphKernel(kernel, count * len(times), limits.of(device, kernel))
            for kernel, count in in_graph
        )
        rows.append(
            DeviceWork(
                name,
                ordinal,
                category,
                len(times),
                total / 1e3,
                total / total_of_all,
                total / len(times),
                min(times),
                max(times),
                bound,
                kernels,
            )
        )
    return sorted(rows, key=lambda row: -row.total_ms)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The bounds of launches.

    Attributes:
        symbols: the name in the PTX of each kernel.
        launches: all counted launches.
    """

    symbols: Mapping[str, str]
    launches: Sequence[_Launch]

    def of(self, device: Device, name: str) -> Bound | None:
        """Return the bound of a mean launch of a kernel; None for other work."""
        symbol = self.symbols.get(name, name)
        return _bound(device, [launch for launch in self.launches if launch.symbol == symbol])

    def of_graph(self, device: Device, kernels: Iterable[tuple[str, int]]) -> Bound | None:
        """Return the bound of a replay: the device moves and issues the work of all kernels."""
        memory_us = issue_us = 0.0
        for name, count in kernels:
            bound = self.of(device, name)
            if bound is None:
                return None
            memory_us += count * bound.memory_us
            issue_us += count * bound.issue_us
        return Bound(memory_us, issue_us)


def _bound(device: Device, launches: Sequence[_Launch]) -> Bound | None:
    """Return the bound of a mean launch; None without launches, or where a rate is unknown."""
    kind = CUdevice_attribute
    try:
        clock_khz, multiprocessors, memory_khz, bus_bits = (
            device.attribute(attribute)
            for attribute in (
                kind.CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                kind.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                kind.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
            )
        )
    except InvalidValueError:
        return None
    # Device memory transfers twice a cycle of its clock.
    bytes_per_us = memory_khz * 2 * (bus_bits / 8) / 1e3
    issued_per_us = clock_khz * multiprocessors * _ISSUED / 1e3
    if not launches or not bytes_per_us or not issued_per_us:
        return None
    return Bound(
        sum(launch.nbytes for launch in launches) / len(launches) / bytes_per_us,
        sum(launch.instructions for launch in launches) / len(launches) / issued_per_us,
    )


def _print(
    recorded: Trace, launches: Sequence[_Launch], *, is_emulated: bool, bounds: bool, as_json: bool
) -> None:
    work = device_work(recorded.device_spans, recorded.symbols, launches)
    if as_json:
        document: dict[str, Any] = {  # numbers, texts and lists
            "is_emulated": is_emulated,
            "untimed": recorded.untimed,
            "work": [asdict(row) for row in work],
        }
        print_text(json.dumps(document))
        return
    columns = (*_COLUMNS, "bound µs") if bounds else _COLUMNS
    rows = [cells for row in work for cells in row.rows(with_bound=bounds)]
    print_table("work on devices", columns, rows)
    for ordinal, count in recorded.untimed.items():
        print_text(f"device {ordinal}: {count} calls queued work that could not be timed")
    if is_emulated:
        print_text(_NO_PREDICTION)
