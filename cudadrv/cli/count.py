"""``count``: run a script on the emulator, and count the work of its kernels."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..emulator import (
    AtomicTraffic,
    CountedLaunch,
    Counters,
    Counts,
    GlobalTraffic,
    Line,
    SharedTraffic,
    use,
)
from ..environment import emulated_devices
from .command_line import Commands, add_command, positive, program_name
from .output import print_error, print_table, print_text
from .script import run_script, why_no_script

_USAGE_ERROR = 2
_MOST_LINES = 20
_KERNELS = ("kernel", "launches", "by warps", "by threads", "branches divergent", "occupancy")
_CLASSES = ("kernel", "class", "by warps", "by threads")
_TRAFFIC = ("kernel", "what", "requests", "wavefronts or sectors", "least")
_LINES = ("line", "kernel", "excess")


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "count",
        "Run a script on the emulator, and count the instructions and accesses of its kernels.",
        example="script.py",
        statuses={
            "0": "the script succeeded",
            "2": "the command line is wrong",
            "other": "the script's own status: 1 if an exception ended it",
        },
    )
    parser.add_argument(
        "--devices", type=positive, metavar="N", help="default: those of CUDADRV_DRIVER, or 1"
    )
    parser.add_argument("--json", action="store_true", help="print every launch as JSON")
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    parser.set_defaults(
        run=lambda options: run_count(
            options.script,
            options.arguments,
            options.devices or emulated_devices() or 1,
            options.json,
        )
    )


def run_count(script: str, arguments: Sequence[str], devices: int, as_json: bool) -> int:
    """Print the counts, also of a script that fails; return the script's status."""
    if why := why_no_script(script):
        print_error(f"{program_name()} count: {why}")
        return _USAGE_ERROR
    with use(devices).counting() as counters:
        status = run_script(script, arguments).status
    if as_json:
        print_text(json.dumps([_launch(launch) for launch in counters.launches]))
    else:
        _print(counters)
    return status


def _print(counters: Counters) -> None:
    kernels = counters.kernels
    if not kernels:
        print_text("the script launched no kernel")
        return
    print_table("executed instructions", _KERNELS, [_row(counters, k) for k in kernels])
    classes = [
        (kernel, kind.value, f"{class_counts.warps:,}", f"{class_counts.threads:,}")
        for kernel, counts in kernels.items()
        for kind, class_counts in counts.classes.items()
    ]
    print_table("instructions by class", _CLASSES, classes)
    traffic = [(kernel, *row) for kernel, counts in kernels.items() for row in _traffic(counts)]
    if traffic:
        print_table("accesses", _TRAFFIC, traffic)
    worst = sorted(counters.lines.items(), key=lambda item: _excess(item[1]), reverse=True)
    lines = [
        (_place(line), kernel, _avoidable_costs(counts))
        for (kernel, line), counts in worst[:_MOST_LINES]
        if _excess(counts)
    ]
    if lines:
        print_table("lines that cost more than the minimum", _LINES, lines)


def _row(counters: Counters, kernel: str) -> tuple[str, ...]:
    launches = [launch for launch in counters.launches if launch.kernel == kernel]
    counts = counters[kernel]
    shares = sorted({f"{launch.occupancy.share:.0%}" for launch in launches})
    return (
        kernel,
        f"{len(launches):,}",
        f"{counts.executed.warps:,}",
        f"{counts.executed.threads:,}",
        f"{counts.branches.divergent:,} of {counts.branches.executed:,}",
        ", ".join(shares),
    )


def _traffic(counts: Counts) -> Iterator[tuple[str, ...]]:
    """Yield each kind of access with its requests, their wavefronts or sectors, and the minimum."""
    for kind, sectors in (
        ("global loads", counts.global_loads),
        ("global stores", counts.global_stores),
        ("global copies", counts.global_copies),
    ):
        if sectors.requests:
            numbers = (sectors.requests, sectors.sectors, sectors.least_sectors)
            yield (kind, *(f"{number:,}" for number in numbers))
    for kind, shared_traffic in (
        ("shared loads", counts.shared_loads),
        ("shared stores", counts.shared_stores),
    ):
        if shared_traffic.requests:
            numbers = (
                shared_traffic.requests,
                shared_traffic.wavefronts,
                shared_traffic.least_wavefronts,
            )
            yield (kind, *(f"{number:,}" for number in numbers))
    for kind, atomics in (
        ("global atomics", counts.global_atomics),
        ("shared atomics", counts.shared_atomics),
    ):
        if atomics.requests:
            contention = (
                f", {atomics.most_on_one:,} on one address" if atomics.most_on_one > 1 else ""
            )
            numbers = (atomics.requests, atomics.ways, atomics.requests)
            yield (f"{kind}{contention}", *(f"{number:,}" for number in numbers))


def _place(line: Line) -> str:
    """Return a source line, with its file relative to the working folder if that contains it."""
    path = Path(line.file)
    near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{near if line.file else 'PTX'}:{line.number}"


def _excess(counts: Counts) -> int:
    """Return the cost of a line above the minimum."""
    traffic = counts.global_loads + counts.global_stores + counts.global_copies
    shared = counts.shared_loads + counts.shared_stores
    atomics = (counts.global_atomics, counts.shared_atomics)
    return (
        traffic.sectors
        - traffic.least_sectors
        + shared.conflicts
        + counts.branches.divergent
        + sum(kind.ways - kind.requests for kind in atomics)
    )


def _avoidable_costs(counts: Counts) -> str:
    texts = [
        f"{traffic.sectors:,} sectors {verb}, least {traffic.least_sectors:,}"
        for verb, traffic in (
            ("loaded", counts.global_loads),
            ("stored", counts.global_stores),
            ("copied", counts.global_copies),
        )
        if traffic.sectors > traffic.least_sectors
    ]
    conflicts = (counts.shared_loads + counts.shared_stores).conflicts
    texts += [f"{conflicts:,} wavefronts by bank conflicts"] if conflicts else []
    branches = counts.branches
    if branches.divergent:
        texts.append(f"{branches.divergent:,} of {branches.executed:,} branches divergent")
    texts += [
        f"{kind.ways:,} wavefronts of {kind.requests:,} atomics"
        for kind in (counts.global_atomics, counts.shared_atomics)
        if kind.ways > kind.requests
    ]
    return "; ".join(texts)


# JSON holds numbers, texts and further objects.
def _launch(launch: CountedLaunch) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "symbol": launch.symbol,
        "device": launch.device,
        "grid": launch.grid,
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "occupancy": {**asdict(launch.occupancy), "share": launch.occupancy.share},
        "total": _numbers(launch.total),
        "lines": [
            {"file": line.file, "line": line.number, **_numbers(counts)}
            for line, counts in launch.lines.items()
        ],
    }


def _numbers(counts: Counts) -> dict[str, Any]:
    classes = {kind.value: asdict(class_counts) for kind, class_counts in counts.classes.items()}
    kinds = (GlobalTraffic, SharedTraffic, AtomicTraffic)
    traffic = {
        name: asdict(getattr(counts, name))
        for name in counts.__dataclass_fields__
        if isinstance(getattr(counts, name), kinds)
    }
    return {
        "executed": asdict(counts.executed),
        "classes": classes,
        "branches": asdict(counts.branches),
        **traffic,
    }
