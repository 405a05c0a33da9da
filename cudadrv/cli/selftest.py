"""``python -m cudadrv selftest``: run the main job end to end, and print each step's time."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

import ptx

from ..driver import driver_selection
from ..driver.device import Device, list_devices
from ..errors import CudadrvError, DriverNotFoundError, NoDeviceError
from ..launch.module_and_kernel import Module
from ..runtime.module_cache import PtxModuleCache
from ..stream import Context, cuda_context_for
from . import kernels
from .command_line import Commands, positive, print_table

DriverKind: TypeAlias = Literal["cuda", "emulator"]
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
        # A self-test reports whatever goes wrong, of whatever class, as its result.
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
    parser = commands.add_parser(
        "selftest", help="compile kernels, run them on every device and compare with NumPy"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--devices",
        type=positive,
        metavar="N",
        help="how many devices: of a GPU machine the first N, of the emulator N (default 2)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    return run_selftest(options.devices, options.json)


def run_selftest(devices: int | None, as_json: bool) -> int:
    """Run all steps, print the report, and return the exit status: 1 if any step failed."""
    report = selftest(devices)
    if as_json:
        print(report.to_json())
    else:
        _print(report)
    return 0 if report.ok else 1


def selftest(devices: int | None = None) -> Report:
    """Run the main job on `devices` devices (default: every GPU, or two emulated ones)."""
    kind, reason = choose_driver(devices or _EMULATED_DEVICES)
    report = Report(kind, reason)
    found: list[Device] = []

    def find() -> str:
        found.extend(list_devices()[:devices])
        report.devices.extend(map(_described, found))
        return ", ".join(device.name for device in found)

    if not report.step("find devices", find) or not found:
        return report
    image: list[ptx.Image] = []
    first = cuda_context_for(0)
    if report.step("compile", lambda: _compile(first, image)):
        for device in found:
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


def choose_driver(emulated_devices: int) -> tuple[DriverKind, str]:
    """Select the GPU if there is one, else the emulator; return the choice and its reason.

    A driver that is there but broken is neither: its error is the first step's.
    """
    named = os.environ.get("CUDADRV_DRIVER")
    if named:
        kind: DriverKind = "emulator" if named.startswith("emulator") else "cuda"
        return kind, f"CUDADRV_DRIVER is {named}"
    try:
        if list_devices():
            return "cuda", "a GPU is present"
        reason = "the driver sees no device"
    except (DriverNotFoundError, NoDeviceError) as error:
        reason = str(error).partition("\n")[0]
    except CudadrvError as error:
        return "cuda", f"a driver is present, but fails: {error}"
    from ..emulator import Emulator  # only where it is used

    driver_selection.set_current(driver_selection.Driver(Emulator(devices=emulated_devices)))
    return "emulator", reason


def _compile(context: Context, image: list[ptx.Image]) -> str:
    options = ptx.CompileOptions(target=context.target)
    image.append(
        ptx.compile(
            kernels.source(), options, name="selftest.cu", name_expressions=kernels.NAME_EXPRESSIONS
        )
    )
    version = ".".join(map(str, ptx.nvrtc_version()))
    return f"NVRTC {version}, {context.target}, {len(image[0].data)} bytes"


def _check_device(report: Report, device: Device, image: ptx.Image) -> None:
    """Load the image on a device, copy both ways, and compare every kernel with NumPy."""
    context = cuda_context_for(device.ordinal)
    where = f"device {device.ordinal}: "
    modules: list[Module] = []

    def load() -> str:
        modules.append(context.load_module(image))
        return f"{len(modules[0].kernel_names)} kernels"

    if not report.step(where + "load", load):
        return
    report.step(where + "copies both ways", lambda: _copies(context))
    for name, check in kernels.CHECKS.items():
        report.step(where + name, partial(_checked, check, context, modules[0]))


def _copies(context: Context) -> str:
    data = np.random.default_rng(0).integers(0, 256, _COPIED_BYTES, np.uint8)
    stream = context.default_stream
    start = time.perf_counter()
    with stream.to_device(data) as array:
        stream.synchronize()
        up = time.perf_counter() - start
        back = stream.to_host(array)
    down = time.perf_counter() - start - up
    if not np.array_equal(back, data):
        raise CheckFailedError(f"{np.count_nonzero(back != data)} bytes came back changed")
    size = _COPIED_BYTES / 1e9
    return f"{_COPIED_BYTES >> 20} MiB, {size / up:.1f} GB/s up, {size / down:.1f} GB/s down"


def _checked(
    run: Callable[[Context, Module], kernels.Check], context: Context, module: Module
) -> str:
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
        raise CheckFailedError("the module cache answered another module")
    again = time.perf_counter() - start - first
    return f"first {first * 1e3:.2f} ms, again {again * 1e3:.4f} ms"


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
    print(f"driver: {report.driver} ({report.reason})")
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
            print(f"failed: {step.name}: {step.detail}")
    print("passed" if report.ok else "FAILED")
