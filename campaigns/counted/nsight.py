"""Nsight Compute run on this folder's own launches, and what it measured."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

Values = dict[str, dict[str, int]]  # kernel -> metric -> value
_SECONDS = 400.0
SAFE: Final = ("smsp__inst_executed.sum",)


def available(metrics: Sequence[str]) -> list[str]:
    """Those of the metrics that ncu may know: of each family that it lists, what it lists."""
    done = subprocess.run(
        ["ncu", "--query-metrics"], capture_output=True, text=True, timeout=120, check=False
    )
    listed = {line.split()[0] for line in done.stdout.splitlines() if "__" in line}
    families = {_family(name) for name in listed}
    names = {metric: metric.partition(".")[0] for metric in metrics}
    return [each for each, name in names.items() if name in listed or _family(name) not in families]


def _family(name: str) -> str:
    unit, _, what = name.partition("__")
    return f"{unit}__sass" if what.startswith("sass_") else unit


def measure(metrics: Sequence[str], kernels: Sequence[str], room: str) -> Values:
    """Launch the kernels of a room under ncu; metrics that it refuses are left out, and said.

    Raises:
        SystemExit: ncu measures nothing at all.
    """
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function",
        "--clock-control", "none", "--metrics", ",".join(metrics),
        sys.executable, "-m", room, "--launch", *kernels,
    ]  # fmt: skip
    environment = {**os.environ, "CUDADRV_DRIVER": "cuda"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"ncu took more than {_SECONDS} s for {' '.join(kernels)}", flush=True)
        return {}
    found = _read(done.stdout)
    if found:
        return found
    if metrics == SAFE:
        raise SystemExit(f"ncu does not work here: {_end_of(done.stdout + done.stderr)}")
    if len(metrics) == 1:
        print(f"ncu gave nothing for {metrics[0]}: {_end_of(done.stdout + done.stderr)}")
        return {}
    middle = len(metrics) // 2
    parts = [measure(part, kernels, room) for part in (metrics[:middle], metrics[middle:])]
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: {key: value for part in parts for key, value in part.get(name, {}).items()}
        for name in names
    }


def _read(text: str) -> Values:
    """The rows of ncu's raw page: a row of names, one of units, one a launch."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.reader(lines))
    if len(rows) < 3 or "Kernel Name" not in rows[0]:
        return {}
    found: Values = {}
    for row in rows[1:]:
        cells = dict(zip(rows[0], row, strict=False))
        values = {
            name: int(float(cell.replace(",", "")))
            for name, cell in cells.items()
            if "__" in name or name.startswith("memory_")
            if re.fullmatch(r"[\d,.eE+]+", cell)
        }
        if values and cells["Kernel Name"]:
            found.setdefault(cells["Kernel Name"].partition("(")[0], values)
    return found


def _end_of(text: str) -> str:
    return " | ".join(text.strip().splitlines()[-4:])
