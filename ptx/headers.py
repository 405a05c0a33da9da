"""CUDA's own headers: the folders and pip packages that have them, and the choice for an NVRTC."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from ptx import _nvrtc
from ptx.argument_checks import checks
from ptx.cache.folder import PrivateFolder, cache_settings
from ptx.cache.toolchain import ROOTS, package_folders
from ptx.errors import NvrtcError
from ptx.options import CompileOptions, headers_from_environment

__all__ = ["CudaHeaders", "HeaderFolder", "cuda_headers"]

_PACKAGES = (
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
_OF_PART = {
    "runtime": "nvidia-cuda-runtime",
    "CCCL": "nvidia-cuda-cccl",
    "crt": "nvidia-cuda-crt",
}


def package_of(header: str, major: int) -> str | None:
    """The pip package that contains one of CUDA's headers, or None for a header of others.

    `major` is CUDA's major version.
    """
    for package, pattern in _PACKAGES:
        if re.fullmatch(pattern, header):
            return _published(package, major)
    return None


def package_of_part(part: str, major: int) -> str:
    """The pip package that contains a part, as `HeaderFolder.versions` names it."""
    return _published(_OF_PART[part], major)


def install_command(packages: Iterable[str], nvrtc: tuple[int, int]) -> str:
    """The pip command that installs packages in the version of an NVRTC."""
    return "pip install " + " ".join(f'"{_pinned(p, *nvrtc)}"' for p in dict.fromkeys(packages))


def _published(package: str, major: int) -> str:
    return package if major >= 13 else _NAMES_12.get(package, f"{package}-cu12")


def _pinned(package: str, major: int, minor: int) -> str:
    if package == "nvidia-cuda-cccl" and major == 13 and minor >= 3:
        return f"{package}==13.3.{minor}.*"  # CUDA's major version, then CCCL's own
    if package.startswith("nvidia-cuda-"):
        return f"{package}=={major}.{minor}.*"
    return package  # the libraries count their versions by themselves


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

    `origin` is how it was found. `versions` has the CUDA version of each part that states one:
    "runtime" (cuda_fp16.h, cooperative_groups.h), "CCCL" (cuda/std, CUB), "crt" (the compiler's own
    headers for those). Others, such as cuRAND's headers, work with every version.
    """

    path: str
    origin: str
    versions: tuple[tuple[str, Version], ...] = ()

    def __post_init__(self) -> None:
        checks.path_text("HeaderFolder: path", self.path)
        for part in checks.sequence_of("HeaderFolder: versions", self.versions, tuple):
            if len(part) != 2:
                raise checks.wrong_type(
                    "HeaderFolder: versions", part, "give (part, version) pairs"
                )
            checks.int_pair("HeaderFolder: versions", part[1])

    def misfits(self, nvrtc: Version) -> tuple[tuple[str, Version], ...]:
        """The parts whose version is not that of NVRTC."""
        version = checks.int_pair("HeaderFolder.misfits: nvrtc", nvrtc)
        return tuple(part for part in self.versions if part[1] != version)

    def has(self, header: str) -> bool:
        """Return whether an include of this name finds a file here."""
        name = checks.path_text("HeaderFolder.has: header", header)
        return os.path.isfile(os.path.join(self.path, name))

    def contents(self) -> str:
        """The parts with their versions, in words."""
        return ", ".join(f"{part} {major}.{minor}" for part, (major, minor) in self.versions)


def inspect(path: str, origin: str) -> HeaderFolder:
    """Return the folder with the versions that its own files name."""
    versions_by_part = (("runtime", _runtime_version(path)), ("CCCL", _cccl_version(path)))
    return HeaderFolder(
        path, origin, tuple((part, version) for part, version in versions_by_part if version)
    )


def found_folders(nvrtc: Version, library: str | None) -> tuple[HeaderFolder, ...]:
    """Return the folders on this machine, of any version: of pip packages, then of toolkits.

    Folders with the layout of NVRTC's own major version come first, and the toolkit that contains
    `library`, NVRTC's file. Each folder occurs once, even if several links lead to it.
    """
    by_path: dict[str, HeaderFolder] = {}
    for folder in chain(_pip_folders(nvrtc), _toolkit_folders(nvrtc, library)):
        if folder.versions or folder.has(_WITHOUT_VERSION):
            by_path.setdefault(os.path.realpath(folder.path), folder)
    return tuple(by_path.values())


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
    folders = []
    for path in map(os.path.abspath, paths):
        inner = os.path.join(path, "cccl")
        folders += [path, inner] if os.path.isdir(inner) else [path]
    return tuple(inspect(path, "named") for path in folders)


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
    matches = (match for name in os.listdir(base) if (match := _CRT.fullmatch(name)))
    crt = tuple(("crt", (int(match[1]), int(match[2]))) for match in matches)
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


BUNDLED = "bundled with NVRTC"
"""The origin of folders that NVRTC's own headers were unpacked into."""

_BUNDLED_SINCE = (13, 3)
_NEEDED = ("cuda_fp16.h", "cuda/std/type_traits", "crt/mma.h")
_OPTIONS = CompileOptions()


@dataclass(frozen=True, slots=True)
class CudaHeaders:
    """The folders of CUDA's headers that a compilation searches, in order, and the rejected ones.

    `nvrtc` is the version of NVRTC. `rejected` are folders of another version, which are searched
    only when a user names them.
    """

    nvrtc: Version
    folders: tuple[HeaderFolder, ...]
    rejected: tuple[HeaderFolder, ...] = ()

    def __post_init__(self) -> None:
        checks.int_pair("CudaHeaders: nvrtc", self.nvrtc)
        checks.sequence_of("CudaHeaders: folders", self.folders, HeaderFolder)

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders' paths."""
        return tuple(folder.path for folder in self.folders)


def cuda_headers(options: CompileOptions = _OPTIONS, *, unpack: bool = True) -> CudaHeaders:
    """The headers of CUDA that a compilation with these options uses.

    If `options` or `CUDADRV_HEADERS` names folders, only those are used. Otherwise the headers of
    NVRTC's own version are, in this order:

    - pip packages, if they are complete;
    - NVRTC's bundled headers (13.3 and newer), unpacked into the cache folder, or into a folder
      that is removed with this process;
    - other pip packages, then toolkits.

    With `unpack` False bundled headers are not unpacked; the result only names their folder.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    checks.instance_of("cuda_headers: options", options, CompileOptions)
    named = options.cuda_headers or headers_from_environment()
    folder, _ = cache_settings()
    return find_headers(tuple(map(str, named)), _nvrtc.version(), folder, unpack=unpack)


def find_headers(
    named: tuple[str, ...], nvrtc: Version, cache_folder: Path | None, *, unpack: bool = True
) -> CudaHeaders:
    """The folders `named`, else the folders that belong to an NVRTC."""
    if named:
        return CudaHeaders(nvrtc, named_folders(named))
    available = found_folders(nvrtc, _nvrtc.library_path("nvrtc"))
    return choose(nvrtc, available, lambda: (_unpacked if unpack else _place)(nvrtc, cache_folder))


def choose(
    nvrtc: Version, available: Iterable[HeaderFolder], unpack: Callable[[], str | None]
) -> CudaHeaders:
    """Choose the folders that fit an NVRTC; `unpack` returns the folder of its bundled headers.

    The bundled headers are those of the pip packages of the same version, file by file: they are
    not unpacked where these are whole.
    """
    used: list[HeaderFolder] = []
    rejected: list[HeaderFolder] = []
    for folder in available:
        (rejected if folder.misfits(nvrtc) else used).append(folder)
    pip = [folder for folder in used if folder.origin == PIP]
    if nvrtc >= _BUNDLED_SINCE and not _are_whole(pip) and (path := unpack()) is not None:
        used[:0] = [
            HeaderFolder(path, BUNDLED, (("runtime", nvrtc), ("crt", nvrtc))),
            HeaderFolder(os.path.join(path, "cccl"), BUNDLED, (("CCCL", nvrtc),)),
        ]
    return CudaHeaders(nvrtc, tuple(used), tuple(rejected))


def is_unpacked(bundle: str) -> bool:
    """Return whether a folder has all of NVRTC's bundled headers: NVRTC writes this file last."""
    return os.path.isfile(os.path.join(bundle, ".nvrtc_headers_version"))


def _are_whole(folders: Sequence[HeaderFolder]) -> bool:
    return all(any(folder.has(header) for folder in folders) for header in _NEEDED)


def _place(nvrtc: Version, cache_folder: Path | None) -> str:
    """Return the folder of the headers bundled with an NVRTC, which may not exist yet."""
    if cache_folder is None:
        return _passing_folder().name
    return str(cache_folder / "headers-{}.{}".format(*nvrtc))


def _unpacked(nvrtc: Version, cache_folder: Path | None) -> str | None:
    """The folder of NVRTC's own headers, unpacked if they are not there yet."""
    if cache_folder is not None:
        lasting = _place(nvrtc, cache_folder)
        try:
            # NVRTC makes folders that others may write to if the umask allows it.
            PrivateFolder(cache_folder).below(os.path.basename(lasting)).ensure()
            if not is_unpacked(lasting):
                _nvrtc.unpack_bundled_headers(lasting)
        except (OSError, NvrtcError):
            pass  # a read-only, full or untrusted folder: this process alone then
        else:
            return lasting
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
