"""Measure, and print the tables."""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
from importlib import metadata
from pathlib import Path

import benchmarks.emulator
from benchmarks import figures, report

from . import checks, contract, goals, narrow, orders, side_by_side, threads


def main() -> None:
    """Print the tables, and write them to a file where one is named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulator", description=benchmarks.emulator.__doc__
    )
    parser.add_argument("target", nargs="?", default="compute_90")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--no-peers", action="store_true", help="leave Numba's simulator out")
    parser.add_argument("--orders", action="store_true", help="measure other orders, too")
    parser.add_argument("--narrow", action="store_true", help="measure few threads, too")
    parser.add_argument(
        "--checks", action="store_true", help="measure what checks and counters cost, too"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures for the pages (benchmarks.figures)"
    )
    parser.add_argument("--threads", action="store_true", help="measure several threads, too")
    given = parser.parse_args()
    where = f"{given.target}, Python {platform.python_version()}, {_versions()}"
    result: dict[str, object] = {"where": where}
    print(f"{where}\n\n{'':38}{'best':>9}{'median':>9}{'goal':>9}  ms", flush=True)
    measured = []
    for line in goals.lines(given.target):
        print(line, flush=True)
        measured.append(line.to_json())
    result["goals"] = measured
    if given.orders:
        print(f"\n{'':38}{'late':>9}{'random':>9}  times the launch without an order", flush=True)
        ratios = []
        for pair in orders.lines(given.target):
            print(pair, flush=True)
            ratios.append(pair.to_json())
        result["orders"] = ratios
        print(f"\n{'contract tests':38}{'late':>9}{'random':>9}  times immediate", flush=True)
        files = []
        for line_of_file in contract.lines():
            print(line_of_file, flush=True)
            files.append(line_of_file.to_json())
        result["contract"] = files
    if given.narrow:
        print(f"\n{'':38}{'first':>9}{'rows':>9}{'NumPy':>9}{'times':>9}{'ns each':>9}", flush=True)
        narrow_times = []
        for time in narrow.lines(given.target):
            print(time, flush=True)
            narrow_times.append(time.to_json())
        result["narrow"] = narrow_times
    if given.checks:
        heads = f"{'race':>9}{'init':>9}{'all':>9}{'counted':>9}{'bytes':>9}"
        print(f"\n{'':38}{heads}  times the launch without; bytes for a byte", flush=True)
        costs = []
        for cost in checks.lines(given.target):
            print(cost, flush=True)
            costs.append(cost.to_json())
        result["checks"] = costs
    if given.threads:
        heads = "".join(f"{count:9}" for count in threads.COUNTS)
        print(f"\n{'':38}{'ms in 1':>9}{heads}{heads}  times as fast; processor time", flush=True)
        speeds = []
        for speed in threads.lines(given.target):
            print(speed, flush=True)
            speeds.append(speed.to_json())
        result["threads"] = speeds
    if not given.no_peers:
        rows = side_by_side.rows(given.target)
        print(f"\n{report.table(rows)}")
        result["side_by_side"] = [row.to_json() for row in rows]
    for path in filter(None, (given.json, figures.EMULATOR if given.keep else None)):
        path.write_text(json.dumps(result, indent=1) + "\n")


def _versions() -> str:
    found = []
    for package in ("numpy", "numba", "numba-cuda"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{package} {metadata.version(package)}")
    return ", ".join(found)


if __name__ == "__main__":
    main()
