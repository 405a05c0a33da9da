"""``python -m cudadrv selftest``: run the main job end to end, and print each step's time."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import resources

import numpy as np
import numpy.typing as npt

import ptx

from ..driver.device import Device, list_devices
from ..errors import CudadrvError
from ..launch.config import LaunchConfig
from ..launch.module_and_kernel import Module
from ..runtime.module_cache import PtxModuleCache
from ..stream import Context, cuda_context_for
from .command_line import Commands, add_command, positive
from .driver_choice import DriverKind, choose_driver
from .output import print_table, print_text

NAME_EXPRESSIONS = ("scale<float>", "scale<double>", "scale<int>")


def source() -> str:
    """Return the CUDA C++ source of the self-test."""
    return resources.files(__package__).joinpath("selftest.cu").read_text()


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel's result, NumPy's result, and the tolerance."""

    result: npt.NDArray[np.generic]
    expected: npt.NDArray[np.generic]
    tolerance: float = 0.0

    @property
    def error(self) -> float:
        """The largest difference, relative to the largest expected value."""
        result, expected = self.result.astype(np.float64), self.expected.astype(np.float64)
        scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
        return float(np.max(np.abs(result - expected), initial=0.0)) / scale

    @property
    def ok(self) -> bool:
        """True if the two agree."""
        if self.tolerance == 0:
            return bool(np.array_equal(self.result, self.expected))
        return self.error <= self.tolerance


def run_saxpy(context: Context, module: Module, n: int = 1 << 16) -> Check:
    """a·x + y over float32; fused on the device, so within one rounding of NumPy's."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, n), np.float32)
    stream = context.default_stream
    with stream.to_device(x) as dx, stream.to_device(y) as dy, stream.empty(n, "f4") as out:
        launch = module.kernel("saxpy").launch
        launch(stream, LaunchConfig.for_elements(n), np.float32(2.5), dx, dy, out, n)
        result = stream.to_host(out)
    exact = 2.5 * x.astype(np.float64) + y.astype(np.float64)
    return Check(result, exact.astype(np.float32), 0.0)


def run_sum(context: Context, module: Module, dtype: str = "float32", n: int = 1 << 16) -> Check:
    """A block reduction in shared memory, one atomicAdd a block."""
    x = np.random.default_rng(2).random(n).astype(dtype)
    stream = context.default_stream
    config = LaunchConfig.for_elements(n, 256)
    config = LaunchConfig(config.grid, config.block, shared_bytes=256 * x.itemsize)
    with stream.to_device(x) as dx, stream.zeros(1, dtype) as total:
        module.kernel(f"sum_{dtype}").launch(stream, config, dx, total, n)
        result = stream.to_host(total)
    return Check(result, np.array([x.sum(dtype=np.float64)]), 1e-5 if dtype == "float32" else 1e-13)


def run_matmul(context: Context, module: Module, n: int = 64) -> Check:
    """A product of n by n matrices through tiles in shared memory."""
    a, b = np.random.default_rng(3).random((2, n, n)).astype(np.float32)
    stream = context.default_stream
    config = LaunchConfig((n // 16, n // 16), (16, 16))
    with stream.to_device(a) as da, stream.to_device(b) as db, stream.empty((n, n), "f4") as c:
        module.kernel("matmul").launch(stream, config, da, db, c, n)
        result = stream.to_host(c)
    return Check(result, a.astype(np.float64) @ b.astype(np.float64), 1e-5)


def run_template(context: Context, module: Module, n: int = 1000) -> Check:
    """A template kernel found by its name expression."""
    x = np.arange(n, dtype=np.float64)
    stream = context.default_stream
    with stream.to_device(x) as dx:
        kernel = module.kernel("scale<double>")
        kernel.launch(stream, LaunchConfig.for_elements(n), dx, 3.0, n)
        result = stream.to_host(dx)
    return Check(result, 3.0 * x)


def run_mandelbrot(context: Context, module: Module, side: int = 64, iterations: int = 64) -> Check:
    """A loop whose length differs a thread."""
    stream = context.default_stream
    config = LaunchConfig((-(-side // 16), -(-side // 16)), (16, 16))
    with stream.empty((side, side), "i4") as out:
        module.kernel("mandelbrot").launch(stream, config, out, side, side, iterations)
        result = stream.to_host(out)
    return Check(result, mandelbrot_counts(side, iterations))


def run_histogram(context: Context, module: Module, n: int = 1 << 16) -> Check:
    """Integer atomics in shared and global memory."""
    data = np.random.default_rng(4).integers(0, 256, n, np.uint8)
    stream = context.default_stream
    with stream.to_device(data) as dd, stream.zeros(256, "u4") as bins:
        module.kernel("histogram").launch(stream, LaunchConfig(32, 256), dd, n, bins)
        result = stream.to_host(bins)
    return Check(result, np.bincount(data, minlength=256).astype(np.uint32))


def mandelbrot_counts(side: int, iterations: int) -> npt.NDArray[np.int32]:
    """Return the counts in float32 arithmetic, each step rounded by itself."""
    three, extent = np.float32(3), np.float32(side)
    axis = three * np.arange(side, dtype=np.float32) / extent
    cr = np.broadcast_to(np.float32(-2) + axis, (side, side))
    ci = np.broadcast_to((np.float32(-1.5) + axis)[:, None], (side, side))
    zr, zi = np.zeros((2, side, side), np.float32)
    counts = np.zeros((side, side), np.int32)
    for _ in range(iterations):
        rr, ii = zr * zr, zi * zi
        running = rr + ii <= np.float32(4)
        counts += running
        zi = np.where(running, np.float32(2) * zr * zi + ci, zi)
        zr = np.where(running, rr - ii + cr, zr)
    return counts


CHECKS: dict[str, Callable[[Context, Module], Check]] = {
    "saxpy": run_saxpy,
    "sum float32": run_sum,
    "sum float64": lambda context, module: run_sum(context, module, "float64"),
    "matmul": run_matmul,
    "template by name expression": run_template,
    "mandelbrot": run_mandelbrot,
    "histogram": run_histogram,
}


_EMULATED_DEVICES = 2
_COPIED_BYTES = 8 << 20


class CheckFailedError(CudadrvError):
    """A kernel's result differs from NumPy's."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step with its outcome, its time and its result in words."""

    name: str
    ok: bool
    ms: float
    detail: str


@dataclass(slots=True)
class Report:
    """The results of the self-test."""

    driver: DriverKind
    reason: str
    devices: list[dict[str, object]] = field(default_factory=list)
    steps: list[StepResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if there were steps and all passed."""
        return bool(self.steps) and all(step.ok for step in self.steps)

    def step(self, name: str, work: Callable[[], str]) -> bool:
        """Run one step and store its outcome; return True if it passed."""
        start = time.perf_counter()
        try:
            ok, detail = True, work()
        # A self-test reports an error of any class as its result.
        except Exception as error:
            ok, detail = False, f"{type(error).__name__}: {error}"
        self.steps.append(StepResult(name, ok, (time.perf_counter() - start) * 1e3, detail))
        return ok

    def to_json(self) -> str:
        """Return the report as JSON: driver, ok, devices, steps, and the reason for the driver."""
        return json.dumps(
            {
                "driver": self.driver,
                "ok": self.ok,
                "reason": self.reason,
                "devices": self.devices,
                "steps": [asdict(step) for step in self.steps],
            },
            indent=2,
        )


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "selftest",
        "Compile kernels, run them on every device, and compare the results with NumPy.",
        example="--devices 1",
        statuses={"0": "every step passed", "1": "a step failed", "2": "the command line is wrong"},
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--devices",
        type=positive,
        metavar="N",
        help="use the first N GPUs, or N emulated devices (default: every GPU, or 2)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    return run_selftest(options.devices, options.json)


def run_selftest(devices: int | None, as_json: bool) -> int:
    """Run all steps, print the report, and return the exit status: 1 if any step failed."""
    report = selftest(devices)
    if as_json:
        print_text(report.to_json())
    else:
        _print(report)
    return 0 if report.ok else 1


def selftest(devices: int | None = None) -> Report:
    """Run the main job on `devices` devices (default: every GPU, or two emulated ones)."""
    kind, reason = choose_driver(devices or _EMULATED_DEVICES)
    report = Report(kind, reason)
    devices_found: list[Device] = []

    def find() -> str:
        devices_found.extend(list_devices()[:devices])
        report.devices.extend(map(_described, devices_found))
        return ", ".join(device.name for device in devices_found)

    if not report.step("find devices", find) or not devices_found:
        return report
    image: list[ptx.Image] = []
    first = cuda_context_for(0)
    if report.step("compile", lambda: _compile(first, image)):
        for device in devices_found:
            _check_device(report, device, image[0])
        report.step("second request from the module cache", lambda: _cached(first))
    return report


def selftest_of(ordinal: int) -> Report:
    """Run the main job on one device of the driver in use."""
    device = Device.get(ordinal)
    report = Report("emulator" if device.is_emulated else "cuda", "the driver in use")
    report.devices.append(_described(device))
    image: list[ptx.Image] = []
    if report.step("compile", lambda: _compile(cuda_context_for(ordinal), image)):
        _check_device(report, device, image[0])
    return report


def _compile(context: Context, image: list[ptx.Image]) -> str:
    options = ptx.CompileOptions(target=context.target)
    image.append(
        ptx.compile(source(), options, name="selftest.cu", name_expressions=NAME_EXPRESSIONS)
    )
    version = ".".join(map(str, ptx.nvrtc_version()))
    return f"NVRTC {version}, {context.target}, {len(image[0].data)} bytes"


def _check_device(report: Report, device: Device, image: ptx.Image) -> None:
    """Load the image on a device, copy both ways, and compare every kernel with NumPy."""
    context = cuda_context_for(device.ordinal)
    prefix = f"device {device.ordinal}: "
    modules: list[Module] = []

    def load() -> str:
        modules.append(context.load_module(image))
        return f"{len(modules[0].kernel_names)} kernels"

    if not report.step(prefix + "load", load):
        return
    report.step(prefix + "copies both ways", lambda: _copies(context))
    for name, check in CHECKS.items():
        report.step(prefix + name, partial(_checked, check, context, modules[0]))


def _copies(context: Context) -> str:
    data = np.random.default_rng(0).integers(0, 256, _COPIED_BYTES, np.uint8)
    stream = context.default_stream
    start = time.perf_counter()
    with stream.to_device(data) as array:
        stream.synchronize()
        up = time.perf_counter() - start
        downloaded = stream.to_host(array)
    down = time.perf_counter() - start - up
    if not np.array_equal(downloaded, data):
        raise CheckFailedError(f"{np.count_nonzero(downloaded != data)} bytes came back changed")
    size = _COPIED_BYTES / 1e9
    return f"{_COPIED_BYTES >> 20} MiB, {size / up:.1f} GB/s up, {size / down:.1f} GB/s down"


def _checked(run: Callable[[Context, Module], Check], context: Context, module: Module) -> str:
    check = run(context, module)
    if not check.ok:
        raise CheckFailedError(f"differs from NumPy by {check.error:.3g} relative")
    return "equal to NumPy" if check.tolerance == 0 else f"within {check.error:.1e} of NumPy"


def _cached(context: Context) -> str:
    cache = PtxModuleCache()
    source = 'extern "C" __global__ void once(int* p) { *p = 1; }'
    start = time.perf_counter()
    module = cache.get_or_compile(context, "selftest", source)
    first = time.perf_counter() - start
    if cache.get_or_compile(context, "selftest", source) is not module:
        raise CheckFailedError("the module cache returned another module")
    repeated = time.perf_counter() - start - first
    return f"first {first * 1e3:.2f} ms, again {repeated * 1e3:.4f} ms"


def _described(device: Device) -> dict[str, object]:
    major, minor = device.compute_capability
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "compute_capability": f"{major}.{minor}",
        "total_memory": device.total_memory,
        "uuid": str(device.uuid),
        "pci_bus_id": device.pci_bus_id,
        "emulated": device.is_emulated,
    }


def _print(report: Report) -> None:
    print_text(f"driver: {report.driver} ({report.reason})")
    print_table(
        "devices",
        ("device", "name", "capability", "MiB", "PCI address"),
        [
            (
                str(device["ordinal"]),
                str(device["name"]),
                str(device["compute_capability"]),
                str(int(str(device["total_memory"])) >> 20),
                str(device["pci_bus_id"]),
            )
            for device in report.devices
        ],
    )
    print_table(
        "steps",
        ("step", "ok", "ms", "detail"),
        [
            (step.name, "ok" if step.ok else "FAILED", f"{step.ms:.1f}", step.detail)
            for step in report.steps
        ],
    )
    for step in report.steps:
        if not step.ok:
            print_text(f"failed: {step.name}: {step.detail}")
    print_text("passed" if report.ok else "FAILED")
