"""CUDA's own headers: those of NVRTC's version, and what was found but is of another one."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ptx import _nvrtc, border
from ptx.cache.folder import PrivateFolder
from ptx.cache.settings import folder_in_use
from ptx.errors import NvrtcError
from ptx.header_folders import PIP, HeaderFolder, Version, found_folders, named_folders
from ptx.options import CompileOptions, headers_from_environment

__all__ = ["CudaHeaders", "HeaderFolder", "cuda_headers"]

BUNDLED = "bundled with NVRTC"
"""The origin of folders that NVRTC's own headers were unpacked into."""

_BUNDLED_SINCE = (13, 3)
_NEEDED = ("cuda_fp16.h", "cuda/std/type_traits", "crt/mma.h")
_OPTIONS = CompileOptions()


@dataclass(frozen=True, slots=True)
class CudaHeaders:
    """Which folders of CUDA's headers a compilation searches, in order, and which it does not.

    `nvrtc` is the version of NVRTC. `refused` are folders of another version, which are searched
    only when a user names them.
    """

    nvrtc: Version
    folders: tuple[HeaderFolder, ...]
    refused: tuple[HeaderFolder, ...] = ()

    def __post_init__(self) -> None:
        border.pair("CudaHeaders: nvrtc", self.nvrtc)
        border.several("CudaHeaders: folders", self.folders, HeaderFolder)

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders' paths."""
        return tuple(folder.path for folder in self.folders)


def cuda_headers(options: CompileOptions = _OPTIONS, *, unpack: bool = True) -> CudaHeaders:
    """The headers of CUDA that a compilation with these options uses.

    Those that `options` or `CUDADRV_HEADERS` names, else those of NVRTC's own version: of pip
    packages where they are whole, else NVRTC's bundled ones (13.3 and newer; unpacked into the
    cache folder, or into one that goes with this process), then pip packages, then toolkits.
    `unpack` False only says where the bundled ones will be.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    border.instance("cuda_headers: options", options, CompileOptions)
    named = options.cuda_headers or headers_from_environment()
    return find_headers(tuple(map(str, named)), _nvrtc.version(), folder_in_use(), unpack=unpack)


def find_headers(
    named: tuple[str, ...], nvrtc: Version, cache_folder: Path | None, *, unpack: bool = True
) -> CudaHeaders:
    """The folders `named`, else those that go with an NVRTC."""
    if named:
        return CudaHeaders(nvrtc, named_folders(named))
    found = found_folders(nvrtc, _nvrtc.library_path("nvrtc"))
    return choose(nvrtc, found, lambda: (_unpacked if unpack else _place)(nvrtc, cache_folder))


def choose(
    nvrtc: Version, found: Iterable[HeaderFolder], unpack: Callable[[], str | None]
) -> CudaHeaders:
    """Which of the folders found go with an NVRTC; `unpack` gives the folder of its bundled ones.

    The bundled headers are those of the pip packages of the same version, file by file: they are
    not unpacked where these are whole.
    """
    used: list[HeaderFolder] = []
    refused: list[HeaderFolder] = []
    for folder in found:
        (refused if folder.misfits(nvrtc) else used).append(folder)
    pip = [folder for folder in used if folder.origin == PIP]
    if nvrtc >= _BUNDLED_SINCE and not _are_whole(pip) and (path := unpack()) is not None:
        used[:0] = [
            HeaderFolder(path, BUNDLED, (("runtime", nvrtc), ("crt", nvrtc))),
            HeaderFolder(os.path.join(path, "cccl"), BUNDLED, (("CCCL", nvrtc),)),
        ]
    return CudaHeaders(nvrtc, tuple(used), tuple(refused))


def is_unpacked(bundle: str) -> bool:
    """Whether a folder has all of NVRTC's bundled headers: NVRTC writes this file last."""
    return os.path.isfile(os.path.join(bundle, ".nvrtc_headers_version"))


def _are_whole(folders: Sequence[HeaderFolder]) -> bool:
    return all(any(folder.has(header) for folder in folders) for header in _NEEDED)


def _place(nvrtc: Version, cache_folder: Path | None) -> str:
    """Where the headers bundled with an NVRTC are, or will be."""
    if cache_folder is None:
        return _passing_folder().name
    return str(cache_folder / "headers-{}.{}".format(*nvrtc))


def _unpacked(nvrtc: Version, cache_folder: Path | None) -> str | None:
    """The folder of NVRTC's own headers, unpacked if they are not there yet."""
    if cache_folder is not None:
        kept = _place(nvrtc, cache_folder)
        try:
            # NVRTC makes folders that others may write to where the umask says so.
            PrivateFolder(cache_folder).below(os.path.basename(kept)).ensure()
            if not is_unpacked(kept):
                _nvrtc.unpack_bundled_headers(kept)
        except (OSError, NvrtcError):
            pass  # a read-only, full or untrusted folder: this process alone then
        else:
            return kept
    try:
        passing = _place(nvrtc, None)
        if not is_unpacked(passing):
            _nvrtc.unpack_bundled_headers(passing)
        return passing
    except (OSError, NvrtcError) as error:
        warnings.warn(
            f"the headers bundled with NVRTC cannot be unpacked: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@functools.cache
def _passing_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="cudadrv-headers-", ignore_cleanup_errors=True)
