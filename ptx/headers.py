"""CUDA's own headers: where they are, and which package brings one that is missing."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ptx import _nvrtc
from ptx.cache.folder import PrivateFolder
from ptx.errors import NvrtcError

_COMPONENTS = ("cudart", "cccl", "curand")
_NEEDED = ("cuda_fp16.h", "cuda/std/type_traits", "crt/mma.h")

_PACKAGES_13 = (
    ("nvidia-cuda-crt", r"crt/.*"),
    ("nvidia-cuda-cccl", r"(cuda|cub|thrust|nv)/.*"),
    ("nvidia-curand", r"curand\w*\.h"),
    ("nvidia-cublas", r"(cublas|nvblas)\w*\.h"),
    ("nvidia-cufft", r"cufft\w*\.h"),
    ("nvidia-cuda-profiler-api", r"cuda_?[pP]rofiler\w*\.h"),
    (
        "nvidia-cuda-runtime",
        r"cooperative_groups(\.h|/.*)|cuda(_\w+)?\.(h|hpp)|cudart_platform\.h|cuComplex\.h|mma\.h"
        r"|(sm_\d+|vector|builtin|device|driver|channel|common|host|library|math|surface|texture)"
        r"_\w+\.(h|hpp)",
    ),
)
_NAMES_12 = {"nvidia-cuda-crt": "nvidia-cuda-nvcc-cu12"}


@dataclass(frozen=True, slots=True)
class HeaderFolders:
    """Folders with CUDA's headers, in search order, and for each how it was found."""

    paths: tuple[str, ...] = ()
    found_via: tuple[str, ...] = ()


def header_folders(cache_folder: Path | None = None) -> HeaderFolders:
    """The folders of CUDA's headers: those that cuda-pathfinder finds, then NVRTC's own.

    NVRTC's bundled headers (13.3 and newer) are unpacked, once, only where the others lack libcu++,
    the runtime's or the compiler's headers; into `cache_folder`, or, where that cannot be written,
    into a folder that goes with this process.
    """
    found = dict(_located())
    if not all(_has(found, header) for header in _NEEDED) and _nvrtc.bundled_header_count():
        bundled = _bundled(cache_folder)
        if bundled is not None:
            for path in (bundled, os.path.join(bundled, "cccl")):
                found.setdefault(path, "bundled with NVRTC")
    return HeaderFolders(tuple(found), tuple(found.values()))


def package_of(header: str) -> str | None:
    """The pip package that brings one of CUDA's headers, or None for a header of others.

    The name is that of the major version of the cuda-python that is installed.
    """
    for package, pattern in _PACKAGES_13:
        if re.fullmatch(pattern, header):
            if _nvrtc.bindings_major() >= 13:
                return package
            return _NAMES_12.get(package, f"{package}-cu12")
    return None


@functools.cache
def _located() -> tuple[tuple[str, str], ...]:
    """Folder and component, for each that cuda-pathfinder finds; it looks once a process."""
    # Saves 50 ms where nothing is looked for.
    from cuda.pathfinder import find_nvidia_header_directory

    paths: dict[str, str] = {}
    # The compiler's headers last: a system toolkit's may be all there is, and of another version.
    for component in (*_COMPONENTS, "nvcc"):
        if component == "nvcc" and _has(paths, "crt/mma.h"):
            break
        try:
            path = find_nvidia_header_directory(component)
        except (RuntimeError, ValueError):  # a component that this pathfinder does not know
            continue
        if path and os.path.isdir(path):
            paths.setdefault(os.path.abspath(path), f"cuda-pathfinder: {component}")
    return tuple(paths.items())


def _has(folders: dict[str, str], header: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, header)) for folder in folders)


def _bundled(cache_folder: Path | None) -> str | None:
    """The folder of NVRTC's own headers, unpacked if they are not there yet."""
    major, minor = _nvrtc.version()
    if cache_folder is not None:
        kept = cache_folder / f"headers-{major}.{minor}"
        try:
            PrivateFolder(cache_folder).ensure()
            _nvrtc.install_bundled_headers(str(kept))
        except (OSError, NvrtcError):
            pass  # a read-only, full or untrusted folder: this process alone then
        else:
            return str(kept)
    try:
        return _passing_bundle()
    except (OSError, NvrtcError):
        return None


@functools.cache
def _passing_bundle() -> str:
    folder = os.path.join(_passing_folder().name, "headers")
    _nvrtc.install_bundled_headers(folder)
    return folder


@functools.cache
def _passing_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="cudadrv-headers-", ignore_cleanup_errors=True)
