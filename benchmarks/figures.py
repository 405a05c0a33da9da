"""The figures of README and docs: ``python -m benchmarks.figures --write``.

Pages take every figure about speed from the records in ``benchmarks/results``. A figure stands
between ``<!-- figure: NAME -->`` and ``<!-- end -->``; its name is one of `FIGURES`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from .report import bar_chart

ROOT: Final = Path(__file__).parents[1]
_RESULTS: Final = ROOT / "benchmarks" / "results"
GPU: Final = _RESULTS / "nvidia-h200-python-3.12-bindings-13.5.json"
EMULATOR: Final = _RESULTS / "emulator.json"
H100: Final = _RESULTS / "nvidia-h100-80gb-hbm3-python-3.12-bindings-13.5.json"
NULL: Final = _RESULTS / "null-device-python-3.12-bindings-13.4.json"
FREE_THREADED: Final = _RESULTS / "nvidia-h100-80gb-hbm3-python-3.14t-bindings-13.5.json"
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARKED: Final = re.compile(r"(<!-- figure: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)


@cache
def _record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def _median(case: str, who: str, record: Path = GPU) -> float:
    """Microseconds on the GPU."""
    (row,) = (row for row in _record(record)["rows"] if (row["case"], row["who"]) == (case, who))
    assert not row["error"], (case, who, row["error"])
    return float(row["median"])


def _micro(case: str, who: str) -> Callable[[], str]:
    return lambda: _shown(_median(case, who), 1)


def _times(case: str, who: str, than: str, digits: int = 1) -> Callable[[], str]:
    return lambda: _shown(_median(case, who) / _median(case, than), digits)


def _shown(value: float, digits: int) -> str:
    """A number with commas between thousands, which need no decimals."""
    return f"{value:,.{0 if value >= 1000 else digits}f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """A table whose last columns are numbers, as a block of a page."""
    rule = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    lines = (" | ".join(row) for row in (heads, rule, *rows))
    return "\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n\n"


_MEASURED: Final = {
    "5 parameters": (
        "cuda.bindings", "cudadrv Launcher", "cudadrv PreparedLaunch", "cudadrv Kernel.launch",
        "cuda.core launch", "CuPy RawKernel", "Triton jit",
    ),
    "20 parameters": ("cuda.bindings", "cudadrv Launcher"),
    "on the default stream": tuple(
        f"cudadrv Launcher, {arrays}"
        for arrays in (
            "own arrays", "cuda.core buffers", "CuPy arrays", "PyTorch tensors",
            "Numba-CUDA arrays", "JAX arrays",
        )
    ),
    "graph of 100 launches": ("cuda.bindings", "cudadrv GraphExec.launch"),
    "graph of 1000 launches, waited for": ("captured", "built node by node"),
    "1 KiB, taken and given back": (
        "cuda.bindings", "cudadrv Stream.alloc", "cudadrv Stream.empty, dropped",
        "cudadrv DeviceArena", "cudadrv CudaAllocator", "cuda.core Buffer", "CuPy pool",
        "CuPy empty", "PyTorch empty",
    ),
    "4 KiB to the device": (
        "cuda.bindings", "cudadrv Stream.copy", "CuPy set", "PyTorch copy_",
        "Numba-CUDA copy_to_device",
    ),
    "4 KiB to the host": (
        "cuda.bindings", "cudadrv Stream.to_host", "CuPy get", "PyTorch copy_",
        "Numba-CUDA copy_to_host",
    ),
    "1 GiB to the device": (
        "cuda.bindings, pinned", "cuda.bindings, ordinary", "cudadrv Stream.copy", "CuPy set",
        "PyTorch copy_", "Numba-CUDA copy_to_device",
    ),
    "1 GiB to the host": (
        "cuda.bindings, pinned", "cuda.bindings, ordinary", "cudadrv Stream.to_host", "CuPy get",
        "PyTorch copy_", "Numba-CUDA copy_to_host",
    ),
    "1 GiB between devices": ("cuda.bindings", "cudadrv Stream.copy"),
    "64 MiB each way and 40 ms of work on 2 devices": (
        "its part of one device", "cudadrv scatter_batched",
    ),
    "a process that imports": (
        "numpy alone", "ptx alone", "cudadrv", "cuda.core", "cupy", "numba_cuda", "torch",
    ),
}  # fmt: skip
"""The cases of the table of measurements, and whose figures it has."""
_SHOWN_AS: Final = {"1 KiB, taken and given back": "1 KiB allocated and freed"}


def _measurements() -> str:
    rows = [
        (_SHOWN_AS.get(case, case), who, _shown(_median(case, who), 2))
        for case, names in _MEASURED.items()
        for who in names
    ]
    return _table(("what", "by", "median µs"), rows, 1)


def _scaling() -> str:
    """Thousands of launches a second by the number of threads."""
    rows: dict[str, list[str]] = {}
    for row in _record(FREE_THREADED)["rows"]:
        if row["group"] == "threads":
            assert not row["error"], row
            rows.setdefault(row["who"], []).append(_shown(1000 / row["median"], 0))
    return _table(
        ("by", *(f"{count} thread{'s' * (count > 1)}" for count in (1, 2, 4, 8, 16))),
        [(who, *cells) for who, cells in rows.items()],
        5,
    )


def _batches() -> str:
    """Batches of copies and exchanged arrays: medians on a GPU, best rounds without one."""
    without = {
        (row["case"], row["who"]): _shown(row["best"], 1)
        for row in _record(NULL)["rows"]
        if not row["error"]
    }
    rows = []
    for row in _record(H100)["rows"]:
        case, who = row["case"], row["who"]
        assert not row["error"], row
        if case != "1000 copies of 4 KiB":  # the table has it with the wait
            queued = case.removesuffix(", waited for")
            rows.append((case, who, _shown(row["median"], 1), without.get((queued, who), "")))
    return _table(("what", "by", "median µs", "host alone, best µs"), rows, 2)


def _batch(peer: str) -> Callable[[], str]:
    """The time of many copies by another way, in times of `Stream.copy_batch`."""
    return lambda: _shown(
        _median(_COPIES, peer, H100) / _median(_COPIES, "cudadrv Stream.copy_batch", H100), 1
    )


def _software(path: Path) -> Callable[[], str]:
    """The software of a run, and the commit that stored its figures."""
    return lambda: f"{_record(path)['where']}, commit {_record(path)['commit']}"


def _simulator() -> list[tuple[str, float]]:
    """Kernels, and how many times as long Numba's simulator took."""
    theirs = [
        row for row in _record(EMULATOR)["side_by_side"] if row["who"] != "cudadrv's emulator"
    ]
    return [(row["case"], row["ratio"]) for row in theirs if not row["error"]]


def _simulator_table() -> str:
    rows = [(case, _rough(ratio)) for case, ratio in _simulator()]
    return _table(("kernel", "times as long"), rows, 1)


def _rough(value: float) -> str:
    """Two digits, as one run on a shared machine supports no more."""
    return f"{float(f'{value:.2g}'):,.{0 if value >= 10 else 1}f}"


def _costs() -> list[dict[str, Any]]:
    """The cost of checks and counters for each kernel, ascending, without empty launches."""
    costs: list[dict[str, Any]] = _record(EMULATOR)["checks"]
    return sorted(
        (cost for cost in costs if not cost["title"].startswith("empty")),
        key=lambda cost: cost["every"],
    )


def _check_table() -> str:
    rows = [
        (cost["title"], *(f"{cost[column]:.1f}" for column in ("every", "race", "init")))
        for cost in _costs()
    ]
    return _table(("kernel", "all checks", '"race" alone', '"init" alone'), rows, 3)


def _extent(column: str) -> Callable[[], str]:
    """The least and the most of a column of costs."""

    def shown() -> str:
        values = [cost[column] for cost in _costs()]
        return f"{min(values):.1f} to {max(values):.1f}"

    return shown


def _argument(arrays: str) -> Callable[[], str]:
    """What one argument costs more than an array of ours; the launch has three of them."""
    case, who = "on the default stream", "cudadrv Launcher, "
    return lambda: f"{(_median(case, who + arrays) - _median(case, who + 'own arrays')) / 3:.1f}"


_COPIES: Final = "1000 copies of 4 KiB, waited for"
_FIVE, _KIB = "5 parameters", "1 KiB, taken and given back"
FIGURES: Final[dict[str, Callable[[], str]]] = {
    "launch, cudadrv": _micro(_FIVE, "cudadrv Launcher"),
    "launch, CuPy": _micro(_FIVE, "CuPy RawKernel"),
    "launch, cuda.core": _micro(_FIVE, "cuda.core launch"),
    "launch, ratio to the bindings": _times(_FIVE, "cudadrv Launcher", "cuda.bindings", 2),
    "allocation, cudadrv": _micro(_KIB, "cudadrv Stream.alloc"),
    "allocation, cuda.core": _micro(_KIB, "cuda.core Buffer"),
    "allocation, CuPy": _micro(_KIB, "CuPy pool"),
    "allocation, CudaAllocator": _micro(_KIB, "cudadrv CudaAllocator"),
    "allocation, DeviceArena": _micro(_KIB, "cudadrv DeviceArena"),
    "argument, PyTorch": _argument("PyTorch tensors"),
    "argument, CuPy": _argument("CuPy arrays"),
    "large copy, ratio of the driver's": _times(
        "1 GiB to the device", "cuda.bindings, ordinary", "cudadrv Stream.copy"
    ),
    "scatter, ratio to one part": _times(
        "64 MiB each way and 40 ms of work on 2 devices",
        "cudadrv scatter_batched", "its part of one device", 2,
    ),
    "batch, the driver's single copies": lambda: _shown(
        _median(_COPIES, "cuda.bindings", H100)
        / _median(_COPIES, "cuda.bindings, one call", H100), 1,
    ),
    "batch, single copies": _batch("cudadrv Stream.copy"),
    "batch, cuda.core": _batch("cuda.core copy_batch"),
    "batch, PyTorch": _batch("PyTorch _foreach_copy_"),
    "batches": _batches,
    "batches' software": _software(H100),
    "measurements": _measurements,
    "scaling": _scaling,
    "scaling's software": _software(FREE_THREADED),
    "software": _software(GPU),
    "simulator": _simulator_table,
    "emulator's software": _software(EMULATOR),
    "checks": _check_table,
    "all checks": _extent("every"),
    "counters": _extent("counted"),
    "check bytes": lambda: f"{max(cost['nbytes'] for cost in _costs()):.1f}",
}  # fmt: skip
"""How each figure is made."""

PICTURES: Final[dict[str, Callable[[], str]]] = {
    "docs/images/launch.svg": lambda: bar_chart(
        "A launch with five arguments, microseconds of the host", "µs",
        [
            (name, _median(_FIVE, who)) for name, who in (
                ("cuda.bindings", "cuda.bindings"), ("cudadrv, bound", "cudadrv Launcher"),
                ("cudadrv, launch()", "cudadrv Kernel.launch"), ("cuda.core", "cuda.core launch"),
                ("CuPy RawKernel", "CuPy RawKernel"), ("Triton", "Triton jit"),
            )
        ],
    ),
    "docs/images/emulator.svg": lambda: bar_chart(
        "Time of Numba's simulator over that of the emulator", "times",
        _simulator(), logarithmic=True,
    ),
}  # fmt: skip
"""The charts, as files of the repository."""


def replaced(text: str) -> str:
    """A page with its figures as the records have them.

    Raises:
        KeyError: a figure has no entry in `FIGURES`.
    """
    return MARKED.sub(lambda match: f"{match[1]}{FIGURES[match[2]]()}{match[4]}", text)


def without(text: str) -> str:
    """A page without its figures."""
    return MARKED.sub("", text)


def write() -> None:
    """Bring the pages and the charts up to date."""
    for page in PAGES:
        if (new := replaced(text := page.read_text())) != text:
            page.write_text(new)
    for path, made in PICTURES.items():
        (ROOT / path).write_text(made())


def main() -> int:
    """Write the pages, or print which differ and return 1."""
    if "--write" in sys.argv:
        write()
        return 0
    differ = [page for page in PAGES if replaced(text := page.read_text()) != text]
    differ += [path for name in PICTURES if not (path := ROOT / name).exists()]
    for page in differ:
        print(f"{page.relative_to(ROOT)} differs from the records: run with --write")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
