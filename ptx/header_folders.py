"""Folders that hold headers of CUDA: where they are looked for, and which versions they tell."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ptx import border
from ptx.cache.toolchain import ROOTS, package_folders

Version = tuple[int, int]
"""A version of CUDA, such as (13, 5)."""

PIP = "pip"
"""The origin of a folder that pip packages share."""

_RUNTIME_FILE = "cuda_runtime_api.h"
_RUNTIME = re.compile(rb"#\s*define\s+CUDART_VERSION\s+(\d+)")
_CCCL_FILES = ("cuda/std/__cccl/version.h", "cuda/std/detail/libcxx/include/__cccl/version.h")
_CCCL = re.compile(rb"#\s*define\s+CCCL_VERSION\s+(\d+)")
_CRT = re.compile(r"nvidia_cuda_(?:crt|nvcc_cu12)-(\d+)\.(\d+)\..*\.dist-info")
_WITHOUT_VERSION = "curand_kernel.h"

_CUDA_12 = ("cuda_runtime/include", "cuda_cccl/include", "cuda_nvcc/include", "curand/include")
_IN_INCLUDE = ("", "cccl", *(("targets/x64/cccl",) if os.name == "nt" else ()))


@dataclass(frozen=True, slots=True)
class HeaderFolder:
    """A folder with headers of CUDA.

    `origin` says how it was found. `versions` has the CUDA version of each part that tells one:
    "runtime" (cuda_fp16.h, cooperative_groups.h), "CCCL" (cuda/std, CUB), "crt" (what those need of
    the compiler's own). Others, such as cuRAND's headers, go with every version.
    """

    path: str
    origin: str
    versions: tuple[tuple[str, Version], ...] = ()

    def __post_init__(self) -> None:
        border.path_text("HeaderFolder: path", self.path)
        for part in border.several("HeaderFolder: versions", self.versions, tuple):
            if len(part) != 2:
                raise border.refused("HeaderFolder: versions", part, "give (part, version) pairs")
            border.pair("HeaderFolder: versions", part[1])

    def misfits(self, nvrtc: Version) -> tuple[tuple[str, Version], ...]:
        """The parts whose version is not that of NVRTC."""
        version = border.pair("HeaderFolder.misfits: nvrtc", nvrtc)
        return tuple(part for part in self.versions if part[1] != version)

    def has(self, header: str) -> bool:
        """Whether an include of this name finds a file here."""
        name = border.path_text("HeaderFolder.has: header", header)
        return os.path.isfile(os.path.join(self.path, name))

    def contents(self) -> str:
        """The parts with their versions, in words."""
        return ", ".join(f"{part} {major}.{minor}" for part, (major, minor) in self.versions)


def inspect(path: str, origin: str) -> HeaderFolder:
    """What a folder holds, as its own files tell it."""
    found = (("runtime", _runtime_version(path)), ("CCCL", _cccl_version(path)))
    return HeaderFolder(path, origin, tuple((part, told) for part, told in found if told))


def found_folders(nvrtc: Version, library: str | None) -> tuple[HeaderFolder, ...]:
    """The folders on this machine, of whatever version: of pip packages, then of toolkits.

    First those that are laid out as NVRTC's own major version is, and the toolkit that `library`,
    NVRTC's file, is of. Each stands once, whatever links lead to it.
    """
    found: dict[str, HeaderFolder] = {}
    for folder in chain(_pip_folders(nvrtc), _toolkit_folders(nvrtc, library)):
        if folder.versions or folder.has(_WITHOUT_VERSION):
            found.setdefault(os.path.realpath(folder.path), folder)
    return tuple(found.values())


def _pip_folders(nvrtc: Version) -> Iterator[HeaderFolder]:
    major, _ = nvrtc
    of_13 = [f"cu{max(major, 13)}/include{leaf}" for leaf in ("", "/cccl")]
    layout = (*_CUDA_12, *of_13) if major == 12 else (*of_13, *_CUDA_12)
    for base in package_folders():
        top = os.path.join(base, "nvidia")
        if os.path.isabs(base) and os.path.isdir(top):  # "" is the working folder, no place of pip
            yield from (_of_pip(base, os.path.join(top, *leaf.split("/"))) for leaf in layout)


def _toolkit_folders(nvrtc: Version, library: str | None) -> Iterator[HeaderFolder]:
    for root, origin in _toolkits(nvrtc, library):
        for include in (root / "include", *sorted(root.glob("targets/*/include"))):
            yield from (inspect(str(include / leaf), origin) for leaf in _IN_INCLUDE)


def named_folders(paths: tuple[str, ...]) -> tuple[HeaderFolder, ...]:
    """The folders that a user names, as given, each followed by the `cccl` folder in it."""
    found = []
    for path in map(os.path.abspath, paths):
        inner = os.path.join(path, "cccl")
        found += [path, inner] if os.path.isdir(inner) else [path]
    return tuple(inspect(path, "named") for path in found)


def _toolkits(nvrtc: Version, library: str | None) -> Iterator[tuple[Path, str]]:
    if library is not None:
        # …/lib64, …/bin/x64, …/targets/x86_64-linux/lib, /usr/lib/x86_64-linux-gnu
        for parent in Path(library).parents[1:4]:
            yield parent, "toolkit of NVRTC"
    for name in ROOTS:
        if root := os.environ.get(name):
            yield Path(root), f"toolkit of {name}"
            yield Path(root, "Library"), f"toolkit of {name}"
    yield Path("/usr/local/cuda-{}.{}".format(*nvrtc)), "toolkit"
    yield Path("/usr/local/cuda"), "toolkit"


def _of_pip(base: str, path: str) -> HeaderFolder:
    """A folder of pip packages: crt has no version of its own, but its package does."""
    folder = inspect(path, PIP)
    if not os.path.isdir(os.path.join(path, "crt")):
        return folder
    told = (match for name in os.listdir(base) if (match := _CRT.fullmatch(name)))
    crt = tuple(("crt", (int(match[1]), int(match[2]))) for match in told)
    return HeaderFolder(path, PIP, (*folder.versions, *crt))


def _runtime_version(folder: str) -> Version | None:
    # CUDART_VERSION is 1000 * major + 10 * minor.
    number = _macro(os.path.join(folder, _RUNTIME_FILE), _RUNTIME)
    return None if number is None else (number // 1000, number % 1000 // 10)


def _cccl_version(folder: str) -> Version | None:
    """The CUDA version whose CCCL it is: CCCL 3.N is that of CUDA 13.N, 2.N that of 12.(N + 1)."""
    for file in _CCCL_FILES:
        number = _macro(os.path.join(folder, file), _CCCL)
        if number is not None:
            # CCCL_VERSION is 1000000 * major + 1000 * minor + patch.
            major, minor = number // 1_000_000, number // 1000 % 1000
            return major + 10, minor + (major == 2)
    return None


def _macro(path: str, pattern: re.Pattern[bytes]) -> int | None:
    try:
        with open(path, "rb") as file:
            match = pattern.search(file.read())
    except OSError:
        return None
    return int(match[1]) if match else None
