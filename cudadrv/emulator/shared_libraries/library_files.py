"""Files of the libraries that the emulator replaces, for programs that look for files.

The folder has `libcuda.so.1` and `libnvidia-ml.so.1`, and the names without a version. The loader
finds them by LD_LIBRARY_PATH. A Python process connects them to its emulator, at its start or at
the first call; in any other process their functions report that there is no driver.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Final

from ptx.cache.folder import PrivateFolder, folder_from_environment

from ...driver.functions import forms
from ...errors import DriverSelectionError
from ..result_texts import RESULT_TEXTS, result_names
from .elf_file import MACHINES, Machine, elf_image
from .nvml_functions import NVML_NAMES

LIBCUDA: Final = "libcuda.so.1"
LIBNVIDIA_ML: Final = "libnvidia-ml.so.1"
SEARCH_PATH: Final = "LD_LIBRARY_PATH"
_IN_PACKAGES: Final = ("nvidia/cu{0}/lib", "nvidia/cuda_nvrtc/lib")
_IN_TOOLKIT: Final = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_TOOLKITS: Final = ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME")
_DEINITIALIZED: Final = 4  # CUDA_ERROR_DEINITIALIZED
_DRIVER_NOT_LOADED: Final = 9  # NVML_ERROR_DRIVER_NOT_LOADED
_START: Final = """
import sys
try:
    from cudadrv.sessions.process import start
except ImportError as error:
    if not hasattr(sys, "cudadrv_is_missing"):
        sys.cudadrv_is_missing = True
        print(f"cudadrv: no emulator in {sys.executable}: {error}", file=sys.stderr)
else:
    start()
"""
_NOTICE: Final = (
    "cudadrv: no emulator in this process, which runs no Python: functions of {} return {}\n"
)
# It runs among the names of the main program, and adds none to them.
_STATEMENT: Final = f"exec({_START!r}, {{}})"


@cache
def libcuda_names() -> tuple[str, ...]:
    """Return the names of the driver's functions, in the order of their table."""
    return tuple(symbol for form in forms() for symbol in (form.symbol, form.per_thread) if symbol)


def this_machine(soname: str) -> Machine:
    """Return the facts of this processor.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise DriverSelectionError(
            f"nothing stands in for {soname} on {sys.platform}, {platform.machine()}: that is "
            f"for Linux on {' and '.join(MACHINES)}"
        )
    return machine


@cache
def library_images() -> Mapping[str, bytes]:
    """Return the content of each library, by its name.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    machine, names = this_machine(LIBCUDA), result_names()
    return {
        LIBCUDA: elf_image(
            LIBCUDA,
            libcuda_names(),
            machine,
            result=_DEINITIALIZED,
            statement=_STATEMENT,
            notice=_NOTICE.format(LIBCUDA, "CUDA_ERROR_DEINITIALIZED"),
            texts={"cuGetErrorName": names, "cuGetErrorString": {**names, **RESULT_TEXTS}},
        ),
        LIBNVIDIA_ML: elf_image(
            LIBNVIDIA_ML,
            NVML_NAMES,
            machine,
            result=_DRIVER_NOT_LOADED,
            statement=_STATEMENT,
            notice=_NOTICE.format(LIBNVIDIA_ML, "NVML_ERROR_DRIVER_NOT_LOADED"),
        ),
    }


def nvrtc_file() -> Path | None:
    """Return the file of NVRTC that cuda-pathfinder would load; None if there is none."""
    major = metadata.version("cuda-bindings").partition(".")[0]
    folders = [
        Path(search_path, part.format(major)) for search_path in sys.path for part in _IN_PACKAGES
    ]
    folders += map(Path, filter(None, os.environ.get(SEARCH_PATH, "").split(os.pathsep)))
    roots = [*filter(None, map(os.environ.get, _TOOLKITS)), "/usr/local/cuda"]
    folders += [Path(root, part) for root in roots for part in _IN_TOOLKIT]
    files = (folder / f"libnvrtc.so.{major}" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def nvrtc_folder() -> Path | None:
    """Return a folder where NVRTC has its name without a version, as in a toolkit; None as above.

    It is the real file, so that whoever opens it by this name has the library of the process.
    """
    file = nvrtc_file()
    if file is None:
        return None
    name = f"nvrtc-{sha256(os.fsencode(file)).hexdigest()[:16]}"
    return _written(name, {}, {"libnvrtc.so": str(file.absolute())})


def library_folder() -> Path | None:
    """Return the folder with the libraries, which is made if it is missing.

    It is a folder of LD_LIBRARY_PATH, in the cache's folder, or in that of temporary files. None if
    each belongs to another user, or cannot be written.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    images = library_images()
    name = f"libraries-{sha256(b''.join(images.values())).hexdigest()[:16]}"
    for folder in os.environ.get(SEARCH_PATH, "").split(os.pathsep):
        if Path(folder).name == name:
            return Path(folder)
    return _written(name, images, {soname.removesuffix(".1"): soname for soname in images})


def _written(name: str, images: Mapping[str, bytes], links: Mapping[str, str]) -> Path | None:
    folder_name = f"cudadrv-{os.getuid()}"
    for parent_of in (folder_from_environment, lambda: Path(tempfile.gettempdir(), folder_name)):
        try:
            folder = PrivateFolder(parent_of()).below(name)
            folder.ensure()
            for soname, image in images.items():
                if folder.read(soname) != image:
                    folder.write(soname, image)
            for link, target in links.items():
                _link(folder.path / link, target)
        except OSError:
            continue
        return folder.path.absolute()
    return None


def _link(path: Path, target: str) -> None:
    """Let a name without a version lead to a library: one file, which is loaded once."""
    if path.is_symlink() and path.readlink() == Path(target):
        return
    temporary = path.with_name(f".new-{os.getpid()}-{path.name}")
    temporary.symlink_to(target)
    temporary.replace(path)
