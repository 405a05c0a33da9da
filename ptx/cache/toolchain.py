"""The compilers, linker and CUDA headers that this process would use, known without loading them.

The first process queries the library and writes a note with the version, the identity of the
library's file and of every place where another one could appear. The note holds for later processes
while none of these changes.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from ptx.cache.folder import UNREADABLE, PrivateFolder

FILE = "cudadrv-toolchain"
_MOST_NOTES = 64
_OF_CUDA = ("bindings", "pathfinder")
_OF_MAJOR = ("lib", "bin", "include", "include/cccl")
_OF_NVIDIA = {
    "cu12": _OF_MAJOR,
    "cu13": _OF_MAJOR,
    **dict.fromkeys(("cuda_nvrtc", "nvjitlink"), ("lib",)),
    **dict.fromkeys(("cuda_runtime", "cuda_cccl"), ("include",)),
    "cuda_nvcc": ("include", "nvvm/lib64"),
}
_IN_TOOLKIT = ("", "lib", "lib64", "bin", "include", "targets/x86_64-linux/lib", "nvvm/lib64")
ROOTS = ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")
"""Variables that name the folder of a toolkit."""

_SEARCH_PATHS = ("LD_LIBRARY_PATH", *(("PATH",) if os.name == "nt" else ()))
_SYSTEM = ("/etc/ld.so.cache", "/usr/local", "/usr/local/cuda", "/usr/local/cuda/include")


Library: TypeAlias = Literal["nvrtc", "nvJitLink", "nvvm"]
"""A library of the toolkit, by its name in cuda-pathfinder."""

LIBRARIES: Final[tuple[Library, ...]] = get_args(Library)

Folders: TypeAlias = tuple[tuple[str, str], ...]
"""Folders of CUDA's headers in search order, each with the versions in it, in words."""

LookForHeaders: TypeAlias = Callable[[tuple[str, ...], tuple[int, int], Path | None], Folders]
"""Finds the folders of CUDA's headers: those named, else those of a version of NVRTC.

It may unpack bundled ones into the cache folder given.
"""


class Build(NamedTuple):
    """A library's version, and its file's size: builds of one version differ in it.

    `archs` are the architecture numbers that an NVRTC compiles for, ascending.
    """

    version: tuple[int, int]
    nbytes: int
    archs: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.version[0]}.{self.version[1]} ({self.nbytes} bytes)"


def build_of(library: Library, folder: PrivateFolder | None) -> Build:
    """Return the build of a library, from the note in a cache folder where it holds.

    Raises:
        NvrtcNotFoundError: there is no NVRTC; NvJitLinkNotFoundError, NvvmNotFoundError likewise.
    """
    noted = noted_build(library, folder)
    if noted is not None:
        return noted
    from ptx import _nvrtc  # saves 1 ms where the note holds

    versions: dict[Library, Callable[[], tuple[int, int]]] = {
        "nvrtc": _nvrtc.version,
        "nvJitLink": _nvrtc.linker_version,
        "nvvm": _nvrtc.nvvm_version,
    }
    version = versions[library]()
    archs = _nvrtc.supported_archs() if library == "nvrtc" else ()
    path = _nvrtc.library_path(library)
    stamp = _stamp(path) if path else None
    if path and stamp:
        note = {"path": path, "stamp": stamp, "version": version, "archs": archs}
        _note(folder, f"{library} {fingerprint()}", note)
    return Build(version, stamp[0] if stamp else 0, archs)


def noted_build(library: Library, folder: PrivateFolder | None) -> Build | None:
    """Return the build that a note in a cache folder names; None where the note does not hold.

    The library is not loaded.
    """
    # Any: a note is a literal that some version of this package wrote; another shape fails below.
    notes: Any = folder.read_literal(FILE) if folder else None
    try:
        note = notes[f"{library} {fingerprint()}"]
        path, stamp = str(note["path"]), note["stamp"]
        major, minor = map(int, note["version"])
        build = Build((major, minor), int(stamp[0]), tuple(map(int, note["archs"])))
        is_current = _stamp(path) == stamp and not _loaded_from_elsewhere(library, path)
    except UNREADABLE:
        return None
    return build if is_current else None


def folders_of_headers(
    version: tuple[int, int], folder: PrivateFolder | None, look: LookForHeaders
) -> Folders:
    """Return the folders of the headers of an NVRTC, from a note in a cache folder if it holds."""
    key = f"headers {version} {fingerprint()}"
    note: Any = _notes(folder).get(key)  # Any: as above
    try:
        noted = tuple((str(path), str(of)) for path, of in note["folders"])
        if all(os.path.isdir(path) for path, _ in noted):
            return noted
    except UNREADABLE:
        pass
    folders = look((), version, folder.path if folder else None)
    _note(folder, key, {"folders": folders})
    return folders


def _notes(folder: PrivateFolder | None) -> dict[str, object]:
    notes = folder.read_literal(FILE) if folder else None
    return notes if isinstance(notes, dict) else {}


def _note(folder: PrivateFolder | None, key: str, note: Mapping[str, object]) -> None:
    if folder is None:
        return
    notes = _notes(folder)
    if len(notes) >= _MOST_NOTES:  # virtual environments come and go
        notes.clear()
    notes[key] = note
    folder.write_literal(FILE, notes)


def _stamp(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _loaded_from_elsewhere(library: Library, path: str) -> bool:
    """Return whether this process has loaded another copy, which the binding would then use."""
    mark = f"lib{library}.so".encode()
    try:
        with open("/proc/self/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return False
    if mark not in maps:  # as at most starts, with a thousand lines of other files
        return False
    # A library without a file passes calls on to the real one.
    lines = [line for line in maps.split(b"\n") if mark in line and b"/memfd:" not in line]
    paths = {os.fsdecode(line.split(maxsplit=5)[-1].strip()) for line in lines}
    real = os.path.realpath(path)
    return any(os.path.realpath(loaded_path) != real for loaded_path in paths)


def fingerprint() -> str:
    """A hash that changes when another library or other headers may be found than before."""
    parts = [sys.version, sys.prefix, *map(str, map(os.environ.get, (*ROOTS, *_SEARCH_PATHS)))]
    for path in dict.fromkeys(_places()):
        parts += (path, str(_stamp(path)))
    return sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _places() -> Iterator[str]:
    """Folders whose time changes when a library or header folder comes or goes.

    Files of a missing folder are not looked up: on some file systems a lookup of a missing file
    takes as long as one of an existing file.
    """
    for base in package_folders():
        cuda, nvidia = os.path.join(base, "cuda"), os.path.join(base, "nvidia")
        if _stamp(cuda) is not None:
            for leaf in _OF_CUDA:
                yield os.path.join(cuda, leaf)
        if _stamp(nvidia) is not None:
            yield nvidia
            for package, names in _OF_NVIDIA.items():
                folder = os.path.join(nvidia, package)
                if _stamp(folder) is not None:
                    for leaf in names:
                        yield os.path.join(folder, leaf)
    for name in ROOTS:
        if root := os.environ.get(name):
            for leaf in _IN_TOOLKIT:
                yield os.path.join(root, leaf)
    for name in _SEARCH_PATHS:
        yield from (os.environ.get(name) or "").split(os.pathsep)
    yield from _SYSTEM


def package_folders() -> tuple[str, ...]:
    """The folders that pip packages may lie in."""
    bases = [*sys.path, *getattr(site, "getsitepackages", list)()]
    if site.ENABLE_USER_SITE:
        bases.append(site.getusersitepackages())
    return tuple(dict.fromkeys(bases))
