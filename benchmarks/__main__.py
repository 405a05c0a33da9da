"""What cudadrv adds to each call, beside the bare bindings and other libraries.

Measures on the GPU if there is one, else on a driver that does nothing; each group in a process of
its own, with whatever libraries are installed.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from . import bars, groups, report
from .driver import NoCompilerError, environment, has_gpu
from .timing import Row

_ROOT: Final = Path(__file__).parent.parent
# A group takes 10 to 30 seconds, most of it the imports and compilers of other libraries.
_LIMIT_S: Final = 75
_PACKAGES: Final = (
    "cuda-bindings", "cuda-core", "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "triton",
    "numba-cuda", "jax", "pycuda",
)  # fmt: skip


def main() -> int:
    """Run the benchmark; the exit status is 1 where `--check` finds a bar that does not hold."""
    parser = _parser()
    given = parser.parse_args()
    null = given.driver == "null" or (given.driver == "auto" and not has_gpu())
    only = chosen_groups(given.only)
    if unknown := [name for name in only if name not in groups.NAMES]:
        parser.error(f"no group is called {unknown[0]!r}; there are {', '.join(groups.NAMES)}")
    began = time.perf_counter()
    try:
        device, driver, rows = _measure(
            only, null=null, effort=given.effort, peers=not given.no_peers
        )
    except NoCompilerError as error:
        print(error, file=sys.stderr)
        return 2
    where = f"{device}, {driver}, Python {platform.python_version()}, {_versions()}"
    print(f"{where}; {time.perf_counter() - began:.0f} s\n\n{report.table(rows)}\n")
    judged = bars.judge(rows, null=null)
    machine = bars.Machine.of(device)
    compared = bars.compare(rows, machine) if given.check else []
    print(report.verdicts("Bars", judged))
    if compared:
        print(report.verdicts("Against the kept figures", compared))
    elif given.check:
        print(f"No figures of {machine} are kept: nothing is compared with earlier ones.")
    result = {**asdict(machine), "where": where, "rows": [row.to_json() for row in rows]}
    if given.keep:
        result["commit"] = report.commit()
    _write(given, result, rows, where)
    worse = [verdict for verdict in (*judged, *compared) if verdict.holds is False]
    # What cannot be measured of ours has got worse, too.
    broken = [row for row in rows if row.error and row.who.startswith(bars.OURS)]
    if given.check and (worse or broken):
        print(report.verdicts(f"\n{len(worse)} got worse or miss their bar:", worse))
        print("\n".join(f"  {row.group}: {row.case}: {row.who}: {row.error}" for row in broken))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--plot", type=Path, help="write the plot here; else benchmarks.png")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="GROUP",
        help=f"groups to run, with spaces or commas between: {', '.join(groups.NAMES)}",
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if a bar or a kept figure is missed"
    )
    parser.add_argument("--keep", action="store_true", help="keep the figures for later checks")
    parser.add_argument("--driver", choices=("auto", "gpu", "null"), default="auto")
    parser.add_argument("--no-peers", action="store_true", help="measure no other library")
    parser.add_argument(
        "--effort", type=float, default=1.0, help="less than 1 makes fewer rounds and rough figures"
    )
    return parser


def chosen_groups(only: Sequence[str] | None) -> list[str]:
    """The groups' names, each once."""
    given = [name for part in only or groups.NAMES for name in part.split(",") if name]
    return list(dict.fromkeys(given))


def _measure(
    only: Sequence[str], *, null: bool, effort: float, peers: bool
) -> tuple[str, str, list[Row]]:
    """The names of the device and the driver, and the rows of all groups."""
    device, driver, rows = "", "no driver", []
    for group in only:
        print(f"measuring {group}", file=sys.stderr, flush=True)
        result = _run_group(group, null=null, effort=effort, peers=peers)
        if isinstance(result, str) and peers:
            # Perhaps a peer took the process down: ours are measured all the same.
            rows.append(Row.failed(group, "with other libraries", "the whole group", result))
            result = _run_group(group, null=null, effort=effort, peers=False)
        if isinstance(result, str):
            rows.append(Row.failed(group, "all", "cudadrv", result))
        else:
            device, driver = result["device"], result["driver"]
            rows += [Row(**row) for row in result["rows"]]
    return device, driver, rows


def _run_group(group: str, *, null: bool, effort: float, peers: bool) -> dict[str, Any] | str:
    """What a group's process wrote, or why it wrote nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks.worker", group]
        command += ["--out", str(out), "--effort", str(effort)]
        command += ["--null"] * null + ["--no-peers"] * (not peers)
        try:
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env=environment(null=null),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"took longer than {_LIMIT_S} s"
        if done.returncode or not out.exists():
            last = done.stderr.strip().splitlines()[-1:] or [""]
            return f"ended with {done.returncode}: {last[0]}"
        result: dict[str, Any] = json.loads(out.read_text())
        return result


def _versions() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _write(given: argparse.Namespace, result: dict[str, Any], rows: list[Row], where: str) -> None:
    """Write the files that were asked for."""
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")
    if given.keep:
        print(f"kept in {bars.keep(bars.Machine.of(result['device']), result)}")
    path = given.plot or Path("benchmarks.png")
    try:
        report.plot(rows, where, path)
        print(f"plotted to {path}")
    except ImportError as error:
        print(f"no plot: {error} (pip install matplotlib)")
    except ValueError as error:
        print(f"no plot: {error}")


if __name__ == "__main__":
    sys.exit(main())
