"""``python -m cudadrv info``: what is installed and where, and the command for what is missing."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata

from cuda.pathfinder import (
    DynamicLibNotFoundError,
    find_nvidia_header_directory,
    load_nvidia_dynamic_lib,
)

import ptx
from ptx.cache.folder import folder_from_environment

from ..driver.device import driver_version, list_devices
from ..errors import CudadrvError, DriverNotFoundError
from ..version import VERSION
from .output import print_table

_PACKAGES = ("cuda-python", "cuda-bindings", "numpy", "platformdirs", "rich")
_HEADERS = {
    "cudart": ("CUDA runtime headers (cuda_fp16.h)", "nvidia-cuda-runtime"),
    "cccl": ("CCCL (cuda/std, CUB)", "nvidia-cuda-cccl"),
}
_DRIVER_HINT = "install the NVIDIA driver, or set CUDADRV_DRIVER=emulator to do without a GPU"


@dataclass(slots=True)
class Info:
    """What was found; `missing` maps each thing that was not to the command that brings it."""

    packages: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    cache_folder: str = ""
    missing: dict[str, str] = field(default_factory=dict)


def run_info(as_json: bool) -> int:
    """Print what is installed; answers 0."""
    info = gather()
    if as_json:
        print(json.dumps(asdict(info), indent=2))
        return 0
    print_table("versions", ("what", "version"), list(info.packages.items()))
    print_table("libraries", ("what", "version and place"), list(info.libraries.items()))
    print_table("headers", ("what", "folder"), list(info.headers.items()))
    if info.devices:
        print_table("devices", ("device", "what"), enumerated(info.devices))
    print(f"cache folder: {info.cache_folder}")
    if info.missing:
        print_table("missing", ("what", "what brings it"), list(info.missing.items()))
    return 0


def enumerated(names: list[str]) -> list[tuple[str, str]]:
    """The names with their numbers, as text."""
    return [(str(number), name) for number, name in enumerate(names)]


def gather() -> Info:
    """Look at everything; what is missing is noted, never raised."""
    info = Info()
    info.packages["Python"] = platform.python_version()
    info.packages["cudadrv"] = VERSION
    for package in _PACKAGES:
        try:
            info.packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            info.missing[package] = f"pip install {package}"
    _nvrtc(info)
    _nvjitlink(info)
    _headers(info)
    _driver(info)
    info.cache_folder = str(folder_from_environment())
    return info


def _nvrtc(info: Info) -> None:
    try:
        version = ".".join(map(str, ptx.nvrtc_version()))
        targets = ", ".join(target.arch for target in ptx.supported_targets())
        info.libraries["NVRTC"] = f"{version} at {_library('nvrtc')} ({targets})"
    except ptx.NvrtcNotFoundError:
        info.missing["NVRTC"] = _compiler_command()


def _nvjitlink(info: Info) -> None:
    place = _library("nvJitLink")
    if place is None:
        info.missing["nvJitLink"] = _compiler_command()
    else:
        info.libraries["nvJitLink"] = place


def _headers(info: Info) -> None:
    suffix = "-cu12" if _cuda_major() == 12 else ""
    for name, (title, package) in _HEADERS.items():
        folder = find_nvidia_header_directory(name)
        if folder is None:
            info.missing[title] = f"pip install {package}{suffix}"
        else:
            info.headers[title] = folder


def _driver(info: Info) -> None:
    try:
        version = ".".join(map(str, driver_version()))
        for device in list_devices():
            major, minor = device.compute_capability
            info.devices.append(
                f"{device.name}, compute capability {major}.{minor}, "
                f"{device.total_memory >> 20} MiB, {device.pci_bus_id}"
                f"{', emulated' if device.is_emulated else ''}"
            )
        info.libraries["driver"] = f"CUDA {version}" + (
            f" at {_library('cuda')}" if not any("emulated" in d for d in info.devices) else ""
        )
    except DriverNotFoundError:
        info.missing["driver"] = _DRIVER_HINT
    except CudadrvError as error:
        info.missing["driver"] = f"it is there, but fails: {error}"


def _cuda_major() -> int:
    return int(metadata.version("cuda-bindings").partition(".")[0])


def _compiler_command() -> str:
    return f'pip install "cudadrv[cu{_cuda_major()}]"'


def _library(name: str) -> str | None:
    try:
        return load_nvidia_dynamic_lib(name).abs_path
    except DynamicLibNotFoundError:
        return None
