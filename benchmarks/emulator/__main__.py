"""Measure, and print the tables."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Protocol

import benchmarks.emulator
from benchmarks import figures, report

from . import checks, contract, goals, narrow, orders, side_by_side, threads


class _Line(Protocol):
    """A row of a table, which prints as its text."""

    def to_json(self) -> object: ...


def main() -> None:
    """Print the tables, and write them to a file where one is named."""
    given = _options()
    where = f"{given.target}, Python {platform.python_version()}, {_versions()}"
    result: dict[str, object] = {"where": where}
    if given.keep:
        result["commit"] = report.commit()
    print(f"{where}\n\n{'':38}{'best':>9}{'median':>9}{'goal':>9}  ms", flush=True)
    result["goals"] = _printed(goals.lines(given.target))
    if given.orders:
        print(f"\n{'':38}{'late':>9}{'random':>9}  times the launch without an order", flush=True)
        result["orders"] = _printed(itertools.chain(orders.queued(), orders.lines(given.target)))
        print(f"\n{'contract tests':38}{'late':>9}{'random':>9}  times immediate", flush=True)
        result["contract"] = _printed(contract.lines())
    if given.narrow:
        print(f"\n{'':38}{'first':>9}{'rows':>9}{'NumPy':>9}{'times':>9}{'ns each':>9}", flush=True)
        result["narrow"] = _printed(narrow.lines(given.target))
    if given.checks:
        heads = f"{'race':>9}{'init':>9}{'all':>9}{'counted':>9}{'bytes':>9}"
        print(f"\n{'':38}{heads}  times the launch without; bytes for a byte", flush=True)
        result["checks"] = _printed(checks.lines(given.target))
    if given.threads:
        heads = "".join(f"{count:9}" for count in threads.COUNTS)
        print(f"\n{'':38}{'ms in 1':>9}{heads}{heads}  times as fast; processor time", flush=True)
        result["threads"] = _printed(threads.lines(given.target))
    if not given.no_peers:
        rows = side_by_side.rows(given.target)
        print(f"\n{report.table(rows)}")
        result["side_by_side"] = [row.to_json() for row in rows]
    for path in filter(None, (given.json, figures.EMULATOR if given.keep else None)):
        path.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulator", description=benchmarks.emulator.__doc__
    )
    parser.add_argument("target", nargs="?", default="compute_90")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    for name, words in (
        ("--no-peers", "leave Numba's simulator out"),
        ("--orders", "measure other orders, too"),
        ("--narrow", "measure few threads, too"),
        ("--checks", "measure what checks and counters cost, too"),
        ("--keep", "keep the figures for the pages (benchmarks.figures)"),
        ("--threads", "measure several threads, too"),
    ):
        parser.add_argument(name, action="store_true", help=words)
    return parser.parse_args()


def _printed(lines: Iterable[_Line]) -> list[object]:
    """Print each line as soon as it is measured, and return all for JSON."""
    measured = []
    for line in lines:
        print(line, flush=True)
        measured.append(line.to_json())
    return measured


def _versions() -> str:
    found = []
    for package in ("numpy", "numba", "numba-cuda"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{package} {metadata.version(package)}")
    return ", ".join(found)


if __name__ == "__main__":
    main()
