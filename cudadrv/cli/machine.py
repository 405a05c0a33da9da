"""What `doctor` asks of the machine: the driver, the compiler, their versions, where this runs."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final, TypeAlias

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

import ptx
from ptx.cache.folder import folder_from_environment

from ..driver.driver_api import driver_fault, load_cuda
from ..driver.in_use import device_count
from ..errors import CudadrvError

Version: TypeAlias = tuple[int, int]

_NVIDIA: Final = re.compile(r"(?:nvidia-|cuda-)[a-z0-9-]+")
_CONTAINER_FILES: Final = ("/.dockerenv", "/run/.containerenv")


@dataclass(slots=True)
class Machine:
    """What was found.

    Attributes:
        packages: versions of the installed packages of NVIDIA, by name.
        bindings: the version of cuda-bindings.
        driver_path: the library that was loaded; "" if there is none.
        driver_fault: why a library that was found does not load.
        driver_code: what cuInit answered; None without a library.
        driver: the newest CUDA version that the driver takes.
        devices: the devices' names.
        has_device_files: whether the system shows a device.
        nvrtc: the compiler's version.
        nvrtc_path: the library that was loaded; "" if there is none.
        headers: CUDA's headers that a compilation would use.
        visible: CUDA_VISIBLE_DEVICES.
        chosen: CUDADRV_DRIVER.
        is_container: whether this runs in one.
        is_wsl: whether this is Linux under Windows.
        cache_folder: where images are kept; None if there is no home folder.
        cache_fault: why nothing can be kept there.
    """

    packages: dict[str, str] = field(default_factory=dict)
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


def look() -> Machine:
    """Look at everything; nothing that is missing raises."""
    machine = Machine(
        packages=_packages(),
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
    names = ((each.metadata["Name"] or "", each.version) for each in metadata.distributions())
    return {name.lower(): version for name, version in names if _NVIDIA.fullmatch(name.lower())}


def _look_at_driver(machine: Machine) -> None:
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
        return  # the path and the code say how far it came


def _look_at_compiler(machine: Machine) -> None:
    try:
        machine.nvrtc = ptx.nvrtc_version()
        machine.nvrtc_path = load_nvidia_dynamic_lib("nvrtc").abs_path or ""
        machine.headers = ptx.cuda_headers(unpack=False)
    except (ptx.NvrtcNotFoundError, DynamicLibNotFoundError):
        return


def _look_at_cache(machine: Machine) -> None:
    try:
        folder = machine.cache_folder = folder_from_environment()
    except OSError as error:
        machine.cache_fault = str(error)
        return
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(there, os.W_OK):
        machine.cache_fault = f"{there} cannot be written"
    elif there == folder and hasattr(os, "getuid"):
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            machine.cache_fault = f"others can write {folder}"


def _major_and_minor(text: str) -> Version | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _shows_device() -> bool:
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
