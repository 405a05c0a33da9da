"""What the figures are held against: fixed bars, and the figures kept from an earlier run."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from . import bare
from .timing import Row

_KEPT: Final = Path(__file__).with_name("results")
# A ratio may be this much worse than a kept one: what two runs of one machine differ by.
_TOLERANCE: Final = 1.2
OURS: Final = "cudadrv"
_LAUNCHER: Final = "cudadrv Launcher"


@dataclass(frozen=True, slots=True)
class Machine:
    """What figures depend on: those of another one are not compared.

    Attributes:
        device: the device's name.
        python: Python's version, such as "3.12", or "3.14t" of a free-threaded build.
        bindings: that of cuda.bindings, such as "13.5".
    """

    device: str
    python: str
    bindings: str

    def __str__(self) -> str:
        return f"{self.device}, Python {self.python}, cuda-bindings {self.bindings}"

    @classmethod
    def of(cls, device: str) -> Machine:
        """This process's, on a device."""
        bindings = ".".join(metadata.version("cuda-bindings").split(".")[:2])
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        return cls(device, python + "t" * is_free_threaded, bindings)


@dataclass(frozen=True, slots=True)
class Bar:
    """The most that a figure may be.

    Attributes:
        group: the group.
        case: the case.
        who: whose figure.
        than: what it is divided by; "" for a figure in microseconds.
        limit: the most.
        null: whether it holds on the null driver.
        gpu: whether it holds on a GPU.
    """

    group: str
    case: str
    who: str
    than: str
    limit: float
    null: bool = False
    gpu: bool = True

    def __str__(self) -> str:
        than = f"{self.limit:.3g} × {self.than}" if self.than else f"{self.limit:.3g} µs"
        return f"{self.group}: {self.case}: {self.who} at most {than}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar and what was measured for it; `value` is None where something of it is missing."""

    bar: str
    limit: float
    value: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the bar holds; None if that is not known."""
        return None if self.value is None else self.value <= self.limit


def _five(who: str, than: str, limit: float, **where: bool) -> Bar:
    return Bar("launch", "5 parameters", who, than, limit, **where)


def _copies() -> Iterator[Bar]:
    for way, who, share in (
        ("to the device", "cudadrv Stream.copy", 0.7),
        ("to the host", "cudadrv Stream.to_host", 0.55),
    ):
        yield Bar("copies", f"1 GiB {way}", who, f"{bare.NAME}, pinned", 1 / share)
        # The least that is staged is no slower than a direct copy.
        yield Bar("copies", f"8 MiB {way}", who, f"{bare.NAME}, ordinary", 1.0)
        yield Bar("copies", f"16 MiB {way}", who, f"{bare.NAME}, ordinary", 0.8)
        yield Bar("copies", f"4 KiB {way}", who, bare.NAME, 1.2)
    new_array = "64 MiB to a new and an existing array"
    yield Bar("copies", new_array, "cudadrv Stream.to_host", "cudadrv, an existing one", 1 / 0.9)
    between = "1 GiB between devices"
    yield Bar("copies", between, "cudadrv Stream.copy", bare.NAME, 1 / 0.95)
    # The plain copies of other libraries: to the device into memory that is there, as all do, and
    # back into the new array that `get()` and `cpu()` give.
    up, new = "1 GiB to the device", "1 GiB to a new host array"
    yield Bar("copies", up, "cudadrv Stream.copy", "CuPy set", 0.25)
    yield Bar("copies", up, "cudadrv Stream.copy", "PyTorch copy_", 0.25)
    yield Bar("copies", new, "cudadrv Stream.to_host", "CuPy get", 0.25)
    yield Bar("copies", new, "cudadrv Stream.to_host", "PyTorch cpu", 0.25)


def _scatter() -> Iterator[Bar]:
    for devices in (1, 2, 4, 8):
        case = f"empty tiles on {devices} device{'s' * (devices != 1)}"
        yield Bar("scatter", case, "cudadrv scatter_batched", "", 150 + 60 * (devices - 1))
        case = f"64 MiB each way on {devices} device{'s' * (devices != 1)}"
        yield Bar("scatter", case, "cudadrv scatter_batched", "the memmove of all threads", 1 / 0.9)
    for devices, share in ((2, 0.93), (4, 0.85)):
        case = f"64 MiB each way and 40 ms of work on {devices} devices"
        yield Bar("scatter", case, "cudadrv scatter_batched", "its part of one device", 1 / share)


def _foreign() -> Iterator[Bar]:
    # Theirs queue on the legacy stream, which our default stream comes after without a call.
    for arrays in ("CuPy arrays", "PyTorch tensors", "Numba-CUDA arrays", "JAX arrays"):
        who, own = f"{_LAUNCHER}, {arrays}", f"{_LAUNCHER}, own arrays"
        yield Bar("foreign", "on the default stream", who, own, 1.35)


def _batches() -> Iterator[Bar]:
    case, ours = "1000 copies of 4 KiB", "cudadrv Stream.copy_batch"
    yield Bar("batches", case, ours, "cuda.core copy_batch", 1.0, null=True)
    yield Bar("batches", case, ours, "cudadrv Stream.copy", 0.3, null=True, gpu=False)
    yield Bar("batches", f"{case}, waited for", ours, "cudadrv Stream.copy", 0.1)


def _operations() -> Iterator[Bar]:
    # The driver takes less than a microsecond for each of these calls. On an H200 the method takes
    # 0.2 to 0.5 µs beside it, with the pass that keeps captures of other threads out. The objects
    # of an event take 1 µs. All stay within 1.5 times the bare calls and 1 µs.
    for case, on_gpu, on_null in (
        ("event recorded, waited for and closed", 1.5, 2.4),
        ("event recorded again", 1.5, 1.8),
        ("wait for an event", 1.7, 2.3),
        ("stream waited for", 1.35, 2.0),
    ):
        yield Bar("operations", case, OURS, bare.NAME, on_gpu)
        yield Bar("operations", case, OURS, bare.NAME, on_null, null=True, gpu=False)
    for case, most in (
        ("XᵀWX of a size", 0.5), ("XᵀWY of a size", 0.5), ("Hessian of a size", 0.5),
        ("matrix times vector of a size", 0.5), ("Cholesky of a size", 0.5),
        ("refinement of a size", 0.5), ("iterative solve of a size", 0.5),
        ("module of a key", 1.0), ("module of a source", 1.0), ("kernel of a library", 2.0),
        ("image in memory", 5.0),
    ):  # fmt: skip
        yield Bar("operations", case, OURS, "", most, null=True)


_ALLOCATION: Final = ("allocation", "1 KiB, taken and given back")
BARS: Final = (
    _five(_LAUNCHER, bare.NAME, 1.15),
    _five(_LAUNCHER, "cuda.core launch", 1.0),
    _five(_LAUNCHER, "CuPy RawKernel", 1.0),
    _five(_LAUNCHER, "Triton jit", 1.0),
    _five(_LAUNCHER, "PyTorch add_", 1.0),
    _five(_LAUNCHER, "PyTorch zero_", 1.0),
    _five("cudadrv PreparedLaunch", bare.NAME, 1.05),
    _five("cudadrv Kernel.launch", bare.NAME, 1.3),
    _five("cudadrv Kernel.launch", "cuda.core launch", 1.0),
    _five(_LAUNCHER, "struct and cuLaunchKernel by hand", 1.35, null=True, gpu=False),
    _five("cudadrv PreparedLaunch", bare.NAME, 1.1, null=True, gpu=False),
    _five(_LAUNCHER, "cuda.core launch", 1.15, null=True, gpu=False),
    Bar("launch", "20 parameters", _LAUNCHER, bare.NAME, 1.15),
    # 120 ns of the some 2.6 µs that an H200 takes for the bare call.
    Bar("graph", "graph of 100 launches", "cudadrv GraphExec.launch", bare.NAME, 1.046),
    Bar("graph", "graph of 100 launches, waited for", "cudadrv GraphExec.launch", bare.NAME, 1.01),
    Bar(*_ALLOCATION, "cudadrv DeviceArena", "CuPy pool", 0.8),
    Bar(*_ALLOCATION, "cudadrv DeviceArena", bare.NAME, 0.4),
    Bar(*_ALLOCATION, "cudadrv CudaAllocator", "CuPy pool", 1.0),
    *_foreign(),
    Bar(*_ALLOCATION, "cudadrv Stream.alloc", bare.NAME, 1.3),
    Bar(*_ALLOCATION, "cudadrv Stream.empty, dropped", "CuPy empty", 0.9),
    Bar("allocation", "64 bytes to a new device array", "cudadrv Stream.to_device", bare.NAME, 1.5),
    Bar("allocation", "64 bytes to a new host array", "cudadrv Stream.to_host", bare.NAME, 1.5),
    *_copies(),
    *_batches(),
    *_operations(),
    *_scatter(),
    Bar(
        "import",
        "a process that imports",
        "cudadrv",
        "numpy, cuda.bindings.driver, cuda.bindings.nvrtc",
        1.3,
        null=True,
    ),
)


def judge(rows: Sequence[Row], *, null: bool) -> list[Verdict]:
    """The bars that hold here, each with what was measured."""
    best = {(row.group, row.case, row.who): row.best for row in rows if not row.error}
    groups = {row.group for row in rows}
    verdicts = []
    for bar in BARS:
        if bar.group not in groups or not (bar.null if null else bar.gpu):
            continue
        ours = best.get((bar.group, bar.case, bar.who))
        than = best.get((bar.group, bar.case, bar.than)) if bar.than else 1.0
        value = ours / than if ours is not None and than is not None else None
        verdicts.append(Verdict(str(bar), bar.limit, value))
    return verdicts


def kept_path(machine: Machine) -> Path:
    """Where the figures of a kind of device are kept."""
    slug = "".join(letter if letter.isalnum() else "-" for letter in machine.device.lower())
    # The null driver's devices are numbered.
    device = slug.rstrip("-0123456789") if slug.startswith("null") else slug
    return _KEPT / f"{device}-python-{machine.python}-bindings-{machine.bindings}.json"


def keep(machine: Machine, result: Mapping[str, Any]) -> Path:
    """Keep a run's figures as those that later runs are compared with.

    Figures of other groups stay, if they are of the same software.
    """
    path = kept_path(machine)
    path.parent.mkdir(exist_ok=True)
    rows = [*_of_other_groups(path, result), *result["rows"]]
    path.write_text(json.dumps({**result, "rows": rows}, indent=1) + "\n")
    return path


def _of_other_groups(path: Path, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kept rows of the groups that a run has not measured."""
    try:
        former = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    if not {*former["where"].split(", ")} <= {*result["where"].split(", ")}:
        return []
    measured = {row["group"] for row in result["rows"]}
    return [row for row in former["rows"] if row["group"] not in measured]


def compare(rows: Sequence[Row], machine: Machine) -> list[Verdict]:
    """Our ratios against the kept ones, where there are kept ones of such a machine.

    Some figures are left out. They are those that are their case's first, and those of several
    threads, whose sharing of the interpreter differs by several times between two runs. Large
    copies on the null driver are only as fast as the host's memory is at the moment.
    """
    try:
        kept = json.loads(kept_path(machine).read_text())
    except FileNotFoundError:
        return []
    former = {(row["group"], row["case"], row["who"]): row["ratio"] for row in kept["rows"]}
    verdicts = []
    for row in _ours(rows):
        ratio = former.get((row.group, row.case, row.who), 0.0)
        idle = "threads" not in row.case and not (row.nbytes and machine.device.startswith("Null"))
        if ratio and row.ratio != 1.0 and idle:
            what = f"{row.group}: {row.case}: {row.who} against {ratio:.3f} kept"
            verdicts.append(Verdict(what, ratio * _TOLERANCE, row.ratio))
    return verdicts


def _ours(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.who.startswith(OURS) and not row.error)
