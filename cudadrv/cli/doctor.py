"""``python -m cudadrv doctor``: find the faults of this machine's CUDA, and print their remedies.

Sources: CUDA Compatibility Guide (which driver accepts which compiler's output); CUDA Driver API,
`CUresult`; CUDA on WSL User Guide; NVIDIA Container Toolkit.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from importlib import metadata
from pathlib import Path
from typing import Final, TypeAlias

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

import ptx
from ptx.cache.folder import folder_from_environment
from ptx.headers import install_command, package_of

from ..driver.driver_selection import device_count
from ..driver.loading import driver_fault, load_cuda
from ..errors import CudadrvError
from ..ptx_package import other_distributions
from .command_line import Commands, add_command
from .output import print_table, print_text

Version: TypeAlias = tuple[int, int]

_NVIDIA: Final = re.compile(r"(?:nvidia-|cuda-)[a-z0-9-]+")
_CONTAINER_FILES: Final = ("/.dockerenv", "/run/.containerenv")


@dataclass(slots=True)
class MachineState:
    """The state of the machine.

    Attributes:
        packages: versions of the installed packages of NVIDIA, by name.
        other_ptx: the other distributions that have a package ptx.
        bindings: the version of cuda-bindings.
        driver_path: the library that was loaded; "" if there is none.
        driver_fault: the reason why a library that was found does not load.
        driver_code: the result of cuInit; None without a library.
        driver: the newest CUDA version that the driver supports.
        devices: the devices' names.
        has_device_files: True if the system shows a device.
        nvrtc: the compiler's version.
        nvrtc_path: the library that was loaded; "" if there is none.
        headers: CUDA's headers that a compilation would use.
        visible: CUDA_VISIBLE_DEVICES.
        chosen: CUDADRV_DRIVER.
        is_container: True in a container.
        is_wsl: True on Linux under Windows.
        cache_folder: the folder of the image cache; None if there is no home folder.
        cache_fault: the reason why nothing can be stored there.
    """

    packages: dict[str, str] = field(default_factory=dict)
    other_ptx: list[str] = field(default_factory=list)
    bindings: Version | None = None
    driver_path: str = ""
    driver_fault: str = ""
    driver_code: int | None = None
    driver: Version | None = None
    devices: list[str] = field(default_factory=list)
    has_device_files: bool = False
    nvrtc: Version | None = None
    nvrtc_path: str = ""
    headers: ptx.CudaHeaders | None = None
    visible: str | None = None
    chosen: str = ""
    is_container: bool = False
    is_wsl: bool = False
    cache_folder: Path | None = None
    cache_fault: str = ""


def look() -> MachineState:
    """Examine the machine; nothing that is missing raises an error."""
    machine = MachineState(
        packages=_packages(),
        other_ptx=other_distributions(),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        chosen=os.environ.get("CUDADRV_DRIVER", "").strip(),
        is_container=any(map(os.path.exists, _CONTAINER_FILES)) or _is_pod(),
        is_wsl="microsoft" in _text_of("/proc/version").lower(),
        has_device_files=sys.platform != "linux" or _shows_device(),
    )
    machine.bindings = _major_and_minor(machine.packages.get("cuda-bindings", ""))
    _look_at_driver(machine)
    _look_at_compiler(machine)
    _look_at_cache(machine)
    return machine


def _packages() -> dict[str, str]:
    names = (
        (distribution.metadata["Name"] or "", distribution.version)
        for distribution in metadata.distributions()
    )
    return {name.lower(): version for name, version in names if _NVIDIA.fullmatch(name.lower())}


def _look_at_driver(machine: MachineState) -> None:
    try:
        machine.driver_fault = driver_fault()
        machine.driver_path = load_nvidia_dynamic_lib("cuda").abs_path or ""
        api = load_cuda()
        (code,) = api.cuInit(0)
        machine.driver_code = int(code)
        code, number = api.cuDriverGetVersion()
        if not code:
            machine.driver = number // 1000, number % 1000 // 10
        if machine.driver_code:
            return
        for ordinal in range(device_count(api)):
            _, device = api.cuDeviceGet(ordinal)
            _, name = api.cuDeviceGetName(256, device)
            machine.devices.append(name.rstrip(b"\0").decode(errors="replace"))
    except (DynamicLibNotFoundError, CudadrvError):
        return  # the path and the code show how far it came


def _look_at_compiler(machine: MachineState) -> None:
    try:
        machine.nvrtc = ptx.nvrtc_version()
        machine.nvrtc_path = load_nvidia_dynamic_lib("nvrtc").abs_path or ""
        machine.headers = ptx.cuda_headers(unpack=False)
    except (ptx.NvrtcNotFoundError, DynamicLibNotFoundError):
        return


def _look_at_cache(machine: MachineState) -> None:
    try:
        folder = machine.cache_folder = folder_from_environment()
    except OSError as error:
        machine.cache_fault = str(error)
        return
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        machine.cache_fault = f"{existing} cannot be written"
    elif existing == folder and hasattr(os, "getuid"):
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            machine.cache_fault = f"others can write {folder}"


def _major_and_minor(text: str) -> Version | None:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _shows_device() -> bool:
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


_NO_DEVICE: Final = 100
_STUB: Final = 34
_FAILING: Final = {
    2: "the device is out of memory: end the processes that use it (nvidia-smi shows them)",
    46: "another process uses the device exclusively (nvidia-smi -c DEFAULT changes that)",
    802: "start the fabric manager: systemctl start nvidia-fabricmanager",
    803: "the driver was updated while its old kernel module runs: restart the machine",
    804: "remove the cuda-compat package, which does not go with this driver",
    999: "load the kernel module (modprobe nvidia_uvm), or restart the machine",
}
_EMULATOR: Final = "or run without a GPU on the emulator: set CUDADRV_DRIVER=emulator"
_WSL_LIBRARIES: Final = "/usr/lib/wsl/lib"


class Severity(IntEnum):
    """The severity of a finding; the worst is the command's exit status."""

    FINE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one part of the machine, and the remedy of a fault."""

    severity: Severity
    subject: str
    text: str
    remedy: str = ""


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "doctor",
        "Find problems of the CUDA installation, and print how to fix them.",
        example="--json",
        statuses={"0": "no problem", "1": "warnings", "2": "an error, or a wrong command line"},
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=lambda options: run_doctor(options.json))


def run_doctor(as_json: bool) -> int:
    """Print the findings; return 0 if all is fine, 1 after warnings, 2 after errors."""
    findings = diagnose(look())
    if as_json:
        fields = [
            {**asdict(finding), "severity": finding.severity.name.lower()} for finding in findings
        ]
        print_text(json.dumps(fields, indent=2))
    else:
        rows = [(e.severity.name.lower(), e.subject, e.text, e.remedy) for e in findings]
        print_table("doctor", ("", "part", "state", "what to do"), rows)
    return max(findings, key=lambda finding: finding.severity).severity


def diagnose(machine: MachineState) -> list[Diagnosis]:
    """Return the findings about a machine, part by part."""
    return [finding for rule in _RULES for finding in rule(machine)]


def _driver(machine: MachineState) -> Iterator[Diagnosis]:
    if machine.driver_fault:
        yield Diagnosis(
            Severity.ERROR,
            "driver",
            f"the driver library does not load: {machine.driver_fault}",
            "install the NVIDIA driver again, or remove this file from the library path",
        )
    elif machine.driver_code is None:
        yield _no_driver(machine)
    elif machine.driver_code == _STUB or "/stubs/" in machine.driver_path:
        yield Diagnosis(
            Severity.ERROR,
            "driver",
            f"{machine.driver_path} is a stub to link against",
            "remove the folder from LD_LIBRARY_PATH",
        )
    elif machine.driver_code == _NO_DEVICE:
        yield _no_device(machine)
    elif machine.driver_code:
        remedy = _FAILING.get(machine.driver_code, "see nvidia-smi and the system's log")
        text = f"cuInit returns error {machine.driver_code}"
        yield Diagnosis(Severity.ERROR, "driver", text, remedy)
    else:
        version = "CUDA {}.{}".format(*machine.driver) if machine.driver else "unknown"
        yield Diagnosis(Severity.FINE, "driver", f"{version} at {machine.driver_path}")


def _no_driver(machine: MachineState) -> Diagnosis:
    if machine.chosen.startswith("emulator"):
        return Diagnosis(Severity.FINE, "driver", "none, and CUDADRV_DRIVER chooses the emulator")
    if machine.is_container:
        remedy = f"start the container with the devices (docker run --gpus all …), {_EMULATOR}"
    elif machine.is_wsl:
        remedy = f"install the NVIDIA driver of Windows, never one of Linux, in WSL, {_EMULATOR}"
    else:
        remedy = f"install the NVIDIA driver, {_EMULATOR}"
    return Diagnosis(Severity.ERROR, "driver", "there is no CUDA driver", remedy)


def _no_device(machine: MachineState) -> Diagnosis:
    if machine.visible is not None:
        text = f"CUDA_VISIBLE_DEVICES is {machine.visible!r}, which names no device"
        return Diagnosis(Severity.ERROR, "devices", text, "unset it, or name devices that exist")
    if machine.is_container and not machine.has_device_files:
        return Diagnosis(
            Severity.ERROR,
            "devices",
            "the container has a driver and no device",
            f"start it with the devices (docker run --gpus all …), {_EMULATOR}",
        )
    remedy = f"see nvidia-smi, {_EMULATOR}"
    return Diagnosis(Severity.ERROR, "devices", "the driver finds no device", remedy)


def _devices(machine: MachineState) -> Iterator[Diagnosis]:
    for ordinal, name in enumerate(machine.devices):
        is_part = "MIG" in name or (machine.visible or "").startswith("MIG-")
        text = f"{ordinal}: {name}" + (", a part of a device (MIG)" if is_part else "")
        yield Diagnosis(Severity.FINE, "devices", text)
    if machine.is_wsl and machine.driver_path and not _is_of_windows(machine.driver_path):
        yield Diagnosis(
            Severity.ERROR,
            "driver",
            f"{machine.driver_path} is not a driver of Windows",
            f"remove the Linux driver; WSL has its own in {_WSL_LIBRARIES}",
        )


def _is_of_windows(path: str) -> bool:
    return path.startswith(_WSL_LIBRARIES) or "wsl" in path


def _compiler(machine: MachineState) -> Iterator[Diagnosis]:
    if machine.nvrtc is None:
        major = machine.bindings[0] if machine.bindings else 13
        yield Diagnosis(
            Severity.ERROR,
            "compiler",
            "NVRTC is not installed",
            f'pip install "cudadrv[cu{major}]"',
        )
        return
    text = "NVRTC {}.{} at {}".format(*machine.nvrtc, machine.nvrtc_path)
    yield Diagnosis(Severity.FINE, "compiler", text)
    if machine.bindings and machine.bindings[0] != machine.nvrtc[0]:
        yield Diagnosis(
            Severity.ERROR,
            "compiler",
            f"cuda-bindings is of CUDA {machine.bindings[0]}, NVRTC of CUDA {machine.nvrtc[0]}",
            f'pip install "cudadrv[cu{machine.bindings[0]}]" in a fresh environment',
        )


def _driver_and_compiler(machine: MachineState) -> Iterator[Diagnosis]:
    if machine.driver is None or machine.nvrtc is None or machine.driver >= machine.nvrtc:
        return
    text = "the driver is of CUDA {}.{}, older than NVRTC {}.{}".format(
        *machine.driver, *machine.nvrtc
    )
    suffix = "" if machine.driver[0] >= 13 else "-cu12"
    requirement = f"nvidia-cuda-nvrtc{suffix}=={machine.driver[0]}.{machine.driver[1]}.*"
    remedy = f'update the driver, or pip install "{requirement}"'
    if machine.driver[0] < machine.nvrtc[0]:
        yield Diagnosis(Severity.ERROR, "versions", f"{text}: its kernels do not load", remedy)
    else:
        text += ": cubins load (minor version compatibility), PTX does not"
        yield Diagnosis(Severity.WARNING, "versions", text, remedy)


def _majors(machine: MachineState) -> Iterator[Diagnosis]:
    twelve = sorted(name for name in machine.packages if name.endswith("-cu12"))
    thirteen = [
        name.removesuffix("-cu12")
        for name in twelve
        if name.removesuffix("-cu12") in machine.packages
    ]
    if thirteen:
        yield Diagnosis(
            Severity.WARNING,
            "packages",
            f"of two majors of CUDA: {', '.join(thirteen)} with and without -cu12",
            "uninstall one of them: either may be loaded first",
        )


def _other_ptx(machine: MachineState) -> Iterator[Diagnosis]:
    if machine.other_ptx:
        yield Diagnosis(
            Severity.WARNING,
            "packages",
            f"{', '.join(machine.other_ptx)} installs a package ptx, as cudadrv does",
            "install them in separate environments",
        )


def _headers(machine: MachineState) -> Iterator[Diagnosis]:
    headers = machine.headers
    if headers is None:
        return
    nvrtc = "NVRTC is {}.{}".format(*headers.nvrtc)
    for folder in headers.folders:
        if folder.misfits(headers.nvrtc):
            text = f"{folder.path} has {folder.contents()}, but {nvrtc}"
            remedy = "name others with CUDADRV_HEADERS, or install those of NVRTC's version"
            yield Diagnosis(Severity.WARNING, "headers", text, remedy)
    for folder in headers.rejected:
        text = f"{folder.path} has {folder.contents()}, but {nvrtc}: it is not used"
        yield Diagnosis(Severity.FINE, "headers", text)
    if headers.folders:
        return
    packages = [package_of(header, headers.nvrtc[0]) for header in ("cuda_fp16.h", "cuda/atomic")]
    names = [package for package in packages if package]
    text = "CUDA's headers (cuda_fp16.h, CCCL) are not installed"
    yield Diagnosis(Severity.WARNING, "headers", text, install_command(names, headers.nvrtc))


def _cache(machine: MachineState) -> Iterator[Diagnosis]:
    if machine.cache_fault:
        remedy = "set CUDADRV_CACHE_DIR to a folder of your own"
        text = f"no image is cached: {machine.cache_fault}"
        yield Diagnosis(Severity.WARNING, "cache", text, remedy)
    else:
        yield Diagnosis(Severity.FINE, "cache", str(machine.cache_folder))


_RULES: Final[tuple[Callable[[MachineState], Iterator[Diagnosis]], ...]] = (
    _driver, _devices, _compiler, _driver_and_compiler, _majors, _other_ptx,
    _headers, _cache,
)  # fmt: skip
