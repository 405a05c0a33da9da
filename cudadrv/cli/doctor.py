"""``python -m cudadrv doctor``: what is wrong with this machine's CUDA, and what mends it.

Sources: CUDA Compatibility Guide (which driver takes which compiler's output); CUDA Driver API,
`CUresult`; CUDA on WSL User Guide; NVIDIA Container Toolkit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Final

from ptx.headers import install_command, package_of

from .commands import Commands
from .machine import Machine, look
from .output import print_table

_NO_DEVICE: Final = 100
_STUB: Final = 34
_FAILING: Final = {
    2: "the device is out of memory: end the processes that use it (nvidia-smi shows them)",
    46: "another process has the device for itself (nvidia-smi -c DEFAULT changes that)",
    802: "start the fabric manager: systemctl start nvidia-fabricmanager",
    803: "the driver was updated while its old kernel module runs: restart the machine",
    804: "remove the cuda-compat package, which does not go with this driver",
    999: "load the kernel module (modprobe nvidia_uvm), or restart the machine",
}
_WSL_LIBRARIES: Final = "/usr/lib/wsl/lib"


class Severity(IntEnum):
    """How bad something is; the worst is the command's exit status."""

    FINE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, what is so, and what mends it."""

    severity: Severity
    subject: str
    text: str
    remedy: str = ""


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor", help="what is wrong with this machine's CUDA, and what mends it"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=lambda options: run_doctor(options.json))


def run_doctor(as_json: bool) -> int:
    """Print what was found; answers 0 if all is fine, 1 after warnings, 2 after errors."""
    findings = diagnose(look())
    if as_json:
        named = [{**asdict(each), "severity": each.severity.name.lower()} for each in findings]
        print(json.dumps(named, indent=2))
    else:
        rows = [(e.severity.name.lower(), e.subject, e.text, e.remedy) for e in findings]
        print_table("doctor", ("", "what", "how it is", "what to do"), rows)
    return max(findings, key=lambda each: each.severity).severity


def diagnose(machine: Machine) -> list[Finding]:
    """What can be told of a machine, in the order of its parts."""
    return [finding for rule in _RULES for finding in rule(machine)]


def _driver(machine: Machine) -> Iterator[Finding]:
    if machine.driver_fault:
        yield Finding(
            Severity.ERROR, "driver", f"the driver library does not load: {machine.driver_fault}",
            "install the NVIDIA driver again, or take this file out of the library path",
        )  # fmt: skip
    elif machine.driver_code is None:
        yield _no_driver(machine)
    elif machine.driver_code == _STUB or "/stubs/" in machine.driver_path:
        yield Finding(
            Severity.ERROR, "driver", f"{machine.driver_path} is a stub to link against",
            "take the folder out of LD_LIBRARY_PATH",
        )  # fmt: skip
    elif machine.driver_code == _NO_DEVICE:
        yield _no_device(machine)
    elif machine.driver_code:
        remedy = _FAILING.get(machine.driver_code, "see nvidia-smi and the system's log")
        text = f"cuInit answers error {machine.driver_code}"
        yield Finding(Severity.ERROR, "driver", text, remedy)
    else:
        version = "CUDA {}.{}".format(*machine.driver) if machine.driver else "unknown"
        yield Finding(Severity.FINE, "driver", f"{version} at {machine.driver_path}")


def _no_driver(machine: Machine) -> Finding:
    if machine.chosen.startswith("emulator"):
        return Finding(Severity.FINE, "driver", "none, and CUDADRV_DRIVER chooses the emulator")
    if machine.is_container:
        remedy = "start the container with the devices: docker run --gpus all …"
    elif machine.is_wsl:
        remedy = "install the NVIDIA driver of Windows, never one of Linux, in WSL"
    else:
        remedy = "install the NVIDIA driver, or set CUDADRV_DRIVER=emulator"
    return Finding(Severity.ERROR, "driver", "there is no CUDA driver", remedy)


def _no_device(machine: Machine) -> Finding:
    if machine.visible is not None:
        text = f"CUDA_VISIBLE_DEVICES is {machine.visible!r}, which names no device"
        return Finding(Severity.ERROR, "devices", text, "unset it, or name devices that exist")
    if machine.is_container and not machine.has_device_files:
        return Finding(
            Severity.ERROR, "devices", "the container has a driver and no device",
            "start it with the devices: docker run --gpus all …",
        )  # fmt: skip
    remedy = "see nvidia-smi, or set CUDADRV_DRIVER=emulator"
    return Finding(Severity.ERROR, "devices", "the driver finds no device", remedy)


def _devices(machine: Machine) -> Iterator[Finding]:
    for ordinal, name in enumerate(machine.devices):
        is_part = "MIG" in name or (machine.visible or "").startswith("MIG-")
        text = f"{ordinal}: {name}" + (", a part of a device (MIG)" if is_part else "")
        yield Finding(Severity.FINE, "devices", text)
    if machine.is_wsl and machine.driver_path and not _is_of_windows(machine.driver_path):
        yield Finding(
            Severity.ERROR, "driver", f"{machine.driver_path} is no driver of Windows",
            f"remove the Linux driver; WSL has its own in {_WSL_LIBRARIES}",
        )  # fmt: skip


def _is_of_windows(path: str) -> bool:
    return path.startswith(_WSL_LIBRARIES) or "wsl" in path


def _compiler(machine: Machine) -> Iterator[Finding]:
    if machine.nvrtc is None:
        major = machine.bindings[0] if machine.bindings else 13
        yield Finding(
            Severity.ERROR, "compiler", "NVRTC is not there", f'pip install "cudadrv[cu{major}]"'
        )
        return
    text = "NVRTC {}.{} at {}".format(*machine.nvrtc, machine.nvrtc_path)
    yield Finding(Severity.FINE, "compiler", text)
    if machine.bindings and machine.bindings[0] != machine.nvrtc[0]:
        yield Finding(
            Severity.ERROR, "compiler",
            f"cuda-bindings is of CUDA {machine.bindings[0]}, NVRTC of CUDA {machine.nvrtc[0]}",
            f'pip install "cudadrv[cu{machine.bindings[0]}]" in a fresh environment',
        )  # fmt: skip


def _driver_and_compiler(machine: Machine) -> Iterator[Finding]:
    if machine.driver is None or machine.nvrtc is None or machine.driver >= machine.nvrtc:
        return
    text = "the driver is of CUDA {}.{}, older than NVRTC {}.{}".format(
        *machine.driver, *machine.nvrtc
    )
    suffix = "" if machine.driver[0] >= 13 else "-cu12"
    wanted = f"nvidia-cuda-nvrtc{suffix}=={machine.driver[0]}.{machine.driver[1]}.*"
    remedy = f'update the driver, or pip install "{wanted}"'
    if machine.driver[0] < machine.nvrtc[0]:
        yield Finding(Severity.ERROR, "versions", f"{text}: its kernels do not load", remedy)
    else:
        text += ": cubins load (minor version compatibility), PTX does not"
        yield Finding(Severity.WARNING, "versions", text, remedy)


def _majors(machine: Machine) -> Iterator[Finding]:
    twelve = sorted(name for name in machine.packages if name.endswith("-cu12"))
    thirteen = [
        name.removesuffix("-cu12") for name in twelve
        if name.removesuffix("-cu12") in machine.packages
    ]  # fmt: skip
    if thirteen:
        yield Finding(
            Severity.WARNING, "packages",
            f"of two majors of CUDA: {', '.join(thirteen)} with and without -cu12",
            "keep one: which is loaded first is left to chance",
        )  # fmt: skip


def _headers(machine: Machine) -> Iterator[Finding]:
    found = machine.headers
    if found is None:
        return
    nvrtc = "NVRTC is {}.{}".format(*found.nvrtc)
    for folder in found.folders:
        if folder.misfits(found.nvrtc):
            text = f"{folder.path} has {folder.contents()}, but {nvrtc}"
            remedy = "name others with CUDADRV_HEADERS, or install those of NVRTC's version"
            yield Finding(Severity.WARNING, "headers", text, remedy)
    for folder in found.refused:
        text = f"{folder.path} has {folder.contents()}, but {nvrtc}: it is not used"
        yield Finding(Severity.FINE, "headers", text)
    if found.folders:
        return
    packages = [package_of(header, found.nvrtc[0]) for header in ("cuda_fp16.h", "cuda/atomic")]
    names = [package for package in packages if package]
    text = "CUDA's headers (cuda_fp16.h, CCCL) are not there"
    yield Finding(Severity.WARNING, "headers", text, install_command(names, found.nvrtc))


def _cache(machine: Machine) -> Iterator[Finding]:
    if machine.cache_fault:
        remedy = "set CUDADRV_CACHE_DIR to a folder of your own"
        text = f"nothing is kept: {machine.cache_fault}"
        yield Finding(Severity.WARNING, "cache", text, remedy)
    else:
        yield Finding(Severity.FINE, "cache", str(machine.cache_folder))


_RULES: Final[tuple[Callable[[Machine], Iterator[Finding]], ...]] = (
    _driver, _devices, _compiler, _driver_and_compiler, _majors, _headers, _cache,
)  # fmt: skip
