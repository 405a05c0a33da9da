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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ptx.cache.folder import PrivateFolder, folder_from_environment

from ...errors import DriverSelectionError
from .early_libraries import FOLDER
from .nvrtc_files import SEARCH_PATH, nvrtc_file

if TYPE_CHECKING:
    from .elf_file import Machine

LIBCUDA: Final = "libcuda.so.1"
LIBNVIDIA_ML: Final = "libnvidia-ml.so.1"
_DEINITIALIZED: Final = 4  # CUDA_ERROR_DEINITIALIZED
_DRIVER_NOT_LOADED: Final = 9  # NVML_ERROR_DRIVER_NOT_LOADED
_MACHINES: Final = ("x86_64", "aarch64")
_SOURCES: Final = "emulator/shared_libraries/*.py"
_TABLES: Final = ("driver/functions.py", "emulator/result_texts.py", "errors/results.py")
_SUMS: Final = "sums"
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
STATEMENT: Final = f"exec({_START!r}, {{}})"
"""Python that starts the emulator. It runs among the names of the main program, and adds none."""


@cache
def libcuda_names() -> tuple[str, ...]:
    """Return the names of the driver's functions, in the order of their table."""
    from ...driver.functions import forms  # as above

    return tuple(symbol for form in forms() for symbol in (form.symbol, form.per_thread) if symbol)


def this_machine(soname: str) -> Machine:
    """Return the facts of this processor.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    from .elf_file import MACHINES  # a command whose files are there saves 10 ms

    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise DriverSelectionError(
            f"nothing stands in for {soname} on {sys.platform}, {platform.machine()}: that is "
            f"for Linux on {' and '.join(MACHINES)}"
        )
    return machine


@cache
def library_images(*, is_native: bool = False) -> Mapping[str, bytes]:
    """Return the content of each library, by its name.

    With `is_native` the first call in a process without Python starts it (`native_library.py`).

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    from ..result_texts import RESULT_TEXTS, result_names  # as above
    from .elf_file import NATIVE_STARTERS, STARTERS, elf_image
    from .nvml_functions import NVML_NAMES

    machine, names = this_machine(LIBCUDA), result_names()
    starters = NATIVE_STARTERS if is_native else STARTERS
    return {
        LIBCUDA: elf_image(
            LIBCUDA,
            libcuda_names(),
            machine,
            result=_DEINITIALIZED,
            statement=STATEMENT,
            starters=starters,
            notice=_NOTICE.format(LIBCUDA, "CUDA_ERROR_DEINITIALIZED"),
            texts={"cuGetErrorName": names, "cuGetErrorString": {**names, **RESULT_TEXTS}},
        ),
        LIBNVIDIA_ML: elf_image(
            LIBNVIDIA_ML,
            NVML_NAMES,
            machine,
            result=_DRIVER_NOT_LOADED,
            statement=STATEMENT,
            starters=starters,
            notice=_NOTICE.format(LIBNVIDIA_ML, "NVML_ERROR_DRIVER_NOT_LOADED"),
        ),
    }


def nvrtc_folder() -> Path | None:
    """Return a folder where NVRTC has its name without a version, as in a toolkit; None as above.

    It is the real file, so that whoever opens it by this name has the library of the process.
    """
    file = nvrtc_file()
    if file is None:
        return None
    name = f"nvrtc-{sha256(os.fsencode(file)).hexdigest()[:16]}"
    return written_folder(name, dict, {"libnvrtc.so": os.path.abspath(file)})


def library_folder(*, is_native: bool = False) -> Path | None:
    """Return the folder with the libraries, which is made if it is missing.

    It is a folder of LD_LIBRARY_PATH, in the cache's folder, or in that of temporary files. None if
    each belongs to another user, or cannot be written. `is_native` is as of `library_images`.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    own = f"libraries-{sources_key()}"
    native = f"{own}-native"
    name = native if is_native else own
    for folder in os.environ.get(SEARCH_PATH, "").split(os.pathsep):
        if Path(folder).name in (native, name):
            return Path(folder)
    links = {soname.removesuffix(".1"): soname for soname in (LIBCUDA, LIBNVIDIA_ML)}
    return written_folder(name, partial(library_images, is_native=is_native), links)


@cache
def sources_key() -> str:
    """Return a text that differs for libraries with other content.

    It is that of the sources that make them, so that a command whose files are there makes none.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        this_machine(LIBCUDA)
    package = Path(__file__).parents[2]
    content = sha256(f"{platform.machine()}\0{sys.version_info[:2]}".encode())
    for path in sorted(map(str, (*package.glob(_SOURCES), *(package / name for name in _TABLES)))):
        with open(path, "rb") as file:
            content.update(file.read())
    return content.hexdigest()[:16]


def written_folder(
    name: str, make: Callable[[], Mapping[str, bytes]], links: Mapping[str, str]
) -> Path | None:
    """Return a folder with the files that `make` returns, which is called if one is missing."""
    for folder in private_folders(name):
        try:
            folder.ensure()
            if not _is_complete(folder):
                images = make()
                for soname, image in images.items():
                    folder.write(soname, image)
                folder.write_literal(
                    _SUMS, {soname: sha256(image).hexdigest() for soname, image in images.items()}
                )
            for link, target in links.items():
                _link(folder.path / link, target)
        except OSError:
            continue
        return folder.path.absolute()
    return None


def early_folder_here() -> Path | None:
    """Return the folder of early libraries in a process of `emulate`; None in others."""
    folder = os.environ.get(FOLDER)
    return Path(folder) if folder else None


def private_folders(name: str) -> Iterator[PrivateFolder]:
    """Yield where a folder of this name may be: in the cache, else in that of temporary files."""
    with suppress(OSError):
        yield PrivateFolder(folder_from_environment()).below(name)
    yield PrivateFolder(Path(tempfile.gettempdir(), f"cudadrv-{os.getuid()}")).below(name)


def _is_complete(folder: PrivateFolder) -> bool:
    """Return whether the files of a folder are those that were written."""
    sums = folder.read_literal(_SUMS)
    return isinstance(sums, dict) and all(
        sha256(folder.read(soname) or b"").hexdigest() == digest for soname, digest in sums.items()
    )


def _link(path: Path, target: str) -> None:
    """Let a name without a version lead to a library: one file, which is loaded once."""
    if path.is_symlink() and path.readlink() == Path(target):
        return
    temporary = path.with_name(f".new-{os.getpid()}-{path.name}")
    temporary.symlink_to(target)
    temporary.replace(path)
