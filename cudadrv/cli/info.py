"""``python -m cudadrv info``: show the installed parts, their folders, and how to install missing
parts.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

import ptx
from ptx.cache.folder import folder_from_environment
from ptx.headers import BUNDLED, install_command, is_unpacked, package_of

from ..driver.device import driver_version, list_devices
from ..errors import CudadrvError, DriverNotFoundError
from ..nvml import PciPath
from ..version import VERSION
from .command_line import Commands, add_command, program_name
from .output import print_error, print_table, print_text

_PACKAGES = ("cuda-python", "cuda-bindings", "numpy", "platformdirs", "rich")
_HEADERS = {
    "cuda_fp16.h": "CUDA runtime headers (cuda_fp16.h)",
    "cuda/std/type_traits": "CCCL (cuda/std, CUB)",
    "crt/mma.h": "the compiler's headers (mma.h)",
}
_CONNECTIONS = {
    "NV": "so many NVLinks",
    PciPath.SAME_BOARD.value: "one board",
    PciPath.ONE_SWITCH.value: "one PCI Express switch",
    PciPath.SWITCHES.value: "several PCI Express switches",
    PciPath.HOST_BRIDGE.value: "a PCI Express host bridge",
    PciPath.NUMA_NODE.value: "several host bridges of a NUMA node",
    PciPath.SYSTEM.value: "the link between NUMA nodes",
    "?": "unknown",
}
_DRIVER_HINT = "install the NVIDIA driver, or set CUDADRV_DRIVER=emulator to do without a GPU"


@dataclass(slots=True)
class Info:
    """The installation; `missing` maps each missing part to the command that installs it.

    `headers` are the folders of CUDA's headers that a compilation searches, in order, each with
    its origin; `headers_not_used` those of another version. `cache_bytes` has the size of each file
    and folder in the cache folder.
    """

    packages: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    headers_not_used: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    cache_folder: str = ""
    cache_bytes: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "info",
        "Show the installed and the missing parts, and where they are.",
        example="--json",
        statuses={
            "0": "printed",
            "1": "the topology is unknown: the text has the reason",
            "2": "the command line is wrong",
        },
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument(
        "--topology", action="store_true", help="print how the devices are connected instead"
    )
    parser.set_defaults(
        run=lambda options: (run_topology if options.topology else run_info)(options.json)
    )


def run_info(as_json: bool) -> int:
    """Print the installation; return 0."""
    info = gather()
    if as_json:
        print_text(json.dumps(asdict(info), indent=2))
        return 0
    print_table("versions", ("what", "version"), list(info.packages.items()))
    print_table("libraries", ("what", "version and place"), list(info.libraries.items()))
    if info.headers:
        print_table("headers of CUDA", ("folder", "what"), list(info.headers.items()))
    if info.headers_not_used:
        rejected = list(info.headers_not_used.items())
        print_table("unused headers of CUDA", ("folder", "why"), rejected)
    if info.devices:
        print_table("devices", ("device", "what"), enumerated(info.devices))
    print_text(f"cache folder: {info.cache_folder}")
    if info.cache_bytes:
        sizes = [(name, f"{nbytes / 2**20:.1f}") for name, nbytes in info.cache_bytes.items()]
        print_table("cache content", ("what", "MiB"), sizes)
    if info.missing:
        print_table("missing", ("what", "how to install it"), list(info.missing.items()))
    return 0


def run_topology(as_json: bool) -> int:
    """Print the connections of all devices; return 1 if the driver or NVML is missing."""
    try:
        devices = list_devices()
        connections = [
            ["X" if a is b else str(a.nvml.connection(b.nvml)) for b in devices] for a in devices
        ]
        links = [[asdict(link) for link in device.nvml.nvlinks()] for device in devices]
    except CudadrvError as error:
        print_error(f"{program_name()} info: {error}")
        return 1
    if as_json:
        rows = [
            {
                "device": device.ordinal,
                "name": device.name,
                "pci_bus_id": device.pci_bus_id,
                "connections": connections[device.ordinal],
                "nvlinks": links[device.ordinal],
            }
            for device in devices
        ]
        print_text(json.dumps(rows, indent=2))
        return 0
    columns = ("device", *(str(device.ordinal) for device in devices), "name")
    cells = [(str(d.ordinal), *connections[d.ordinal], d.name) for d in devices]
    print_table("connections of devices", columns, cells)
    shown_connections = {cell.rstrip("0123456789") for row in connections for cell in row}
    for name, meaning in _CONNECTIONS.items():
        if name in shown_connections:
            print_text(f"  {name}: {meaning}")
    return 0


def enumerated(names: list[str]) -> list[tuple[str, str]]:
    """Return the names with their numbers, as text."""
    return [(str(number), name) for number, name in enumerate(names)]


def gather() -> Info:
    """Examine the installation; a missing part is listed, and raises no error."""
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
    try:
        folder = folder_from_environment()
    except OSError as error:
        info.cache_folder = f"none: {error}"
        return info
    info.cache_folder = str(folder)
    if folder.is_dir():
        info.cache_bytes = {entry.name: _nbytes(entry) for entry in sorted(folder.iterdir())}
    return info


def _nvrtc(info: Info) -> None:
    try:
        version = ".".join(map(str, ptx.nvrtc_version()))
        targets = ", ".join(target.arch for target in ptx.supported_targets())
        info.libraries["NVRTC"] = f"{version} at {_library('nvrtc')} ({targets})"
    except ptx.NvrtcNotFoundError:
        info.missing["NVRTC"] = _compiler_command()


def _nvjitlink(info: Info) -> None:
    path = _library("nvJitLink")
    if path is None:
        info.missing["nvJitLink"] = _compiler_command()
    else:
        info.libraries["nvJitLink"] = path


def _headers(info: Info) -> None:
    try:
        headers = ptx.cuda_headers(unpack=False)
    except ptx.NvrtcNotFoundError:
        return  # the matching headers are unknown
    nvrtc = "NVRTC is {}.{}".format(*headers.nvrtc)
    bundled = [folder for folder in headers.folders if folder.origin == BUNDLED]
    waiting = bool(bundled) and not is_unpacked(bundled[0].path)
    for folder in headers.folders:
        text = f"{folder.origin}: {folder.contents() or 'of no one version'}"
        if folder.misfits(headers.nvrtc):
            text += f", although {nvrtc}"
        if waiting and folder in bundled:
            text += ", unpacked when first needed"
        info.headers[folder.path] = text
    for folder in headers.rejected:
        info.headers_not_used[folder.path] = f"{folder.origin}: {folder.contents()}, but {nvrtc}"
    for header, title in _HEADERS.items():
        package = package_of(header, headers.nvrtc[0])
        if package and not waiting and not any(folder.has(header) for folder in headers.folders):
            info.missing[title] = install_command([package], headers.nvrtc)


def _nbytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.lstat().st_size for file in files)


def _driver(info: Info) -> None:
    try:
        version = ".".join(map(str, driver_version()))
        devices = list_devices()
        for device in devices:
            major, minor = device.compute_capability
            info.devices.append(
                f"{device.name}, compute capability {major}.{minor}, "
                f"{device.total_memory >> 20} MiB, {device.pci_bus_id}"
                f"{', emulated' if device.is_emulated else ''}"
            )
        is_emulated = any(device.is_emulated for device in devices)
        info.libraries["driver"] = f"CUDA {version}" + (
            "" if is_emulated else f" at {_library('cuda')}"
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
