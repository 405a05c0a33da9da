"""Where the files of NVRTC are, as cuda-pathfinder looks for them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Final

SEARCH_PATH: Final = "LD_LIBRARY_PATH"
MAJORS: Final = (13, 12)
"""The versions of CUDA that the bindings have; the newest first."""
_IN_PACKAGES: Final = ("nvidia/cu{0}/lib", "nvidia/cuda_nvrtc/lib")
_IN_TOOLKIT: Final = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_TOOLKITS: Final = ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME")


def nvrtc_files() -> dict[int, str]:
    """Return the file of NVRTC for each version of CUDA that has one, the newest first."""
    return {major: file for major in MAJORS if (file := _found(major)) is not None}


def nvrtc_file() -> str | None:
    """Return the file of NVRTC that cuda-pathfinder would load; None if there is none."""
    files = nvrtc_files()
    if len(files) < 2:
        return next(iter(files.values()), None)
    # Its import takes 15 ms, which most environments save.
    version: str = import_module("importlib.metadata").version("cuda-bindings")
    return files.get(int(version.partition(".")[0]))


def opened(file: str) -> ctypes.CDLL:
    """Open a file of NVRTC, with the library of built-in functions beside it.

    Some releases do not find that library by themselves. cuda-pathfinder opens it for them, but not
    for an NVRTC that is open already.

    Raises:
        OSError: the file cannot be opened.
    """
    library = ctypes.CDLL(file)
    folder = os.path.dirname(os.path.realpath(file))
    for name in os.listdir(folder):
        if name.startswith("libnvrtc-builtins.so."):
            with suppress(OSError):  # NVRTC names what it lacks
                ctypes.CDLL(os.path.join(folder, name))
    return library


def _found(major: int) -> str | None:
    return next(filter(os.path.isfile, _candidates(major)), None)


def _candidates(major: int) -> Iterator[str]:
    name = f"libnvrtc.so.{major}"
    for search_path in sys.path:
        for part in _IN_PACKAGES:
            yield os.path.join(search_path, part.format(major), name)
    for folder in os.environ.get(SEARCH_PATH, "").split(os.pathsep):
        if folder:
            yield os.path.join(folder, name)
    roots = [*filter(None, map(os.environ.get, _TOOLKITS)), "/usr/local/cuda"]
    for root in roots:
        for part in _IN_TOOLKIT:
            yield os.path.join(root, part, name)


def replacing_name(major: int) -> str:
    """Return the name of the library whose functions replace some of an NVRTC."""
    return f"cudadrv-nvrtc-{major}.so"
