"""Which driver the benchmark runs on: the machine's own, or the null driver built for it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("null_driver.c")
_COMPILERS: Final = ("cc", "gcc", "clang")


class NoCompilerError(Exception):
    """The null driver could not be built."""


def has_gpu() -> bool:
    """Whether there is a CUDA driver with a device."""
    count = ctypes.c_int()
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        return not cuda.cuInit(0) and not cuda.cuDeviceGetCount(ctypes.byref(count)) and bool(count)
    except (OSError, AttributeError):
        return False


def build_null_driver() -> Path:
    """The folder that holds the null driver as libcuda.so.1, built once for each source.

    Raises:
        NoCompilerError: no C compiler was found, or it refuses; the text has what it said.
    """
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"cudadrv-null-driver-{_user()}-{key}"
    library = folder / "libcuda.so.1"
    if library.exists():
        return folder
    folder.mkdir(mode=0o700, exist_ok=True)
    said = []
    for compiler in filter(None, (os.environ.get("CC"), *_COMPILERS)):
        made = library.with_suffix(f".{os.getpid()}")
        flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
        command = [compiler, *flags, "-o", str(made), str(_SOURCE)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            said.append(f"{compiler}: {error}")
            continue
        if result.returncode == 0:
            made.replace(library)
            return folder
        said.append(f"{compiler}: {result.stderr.strip()}")
    raise NoCompilerError("the null driver needs a C compiler:\n" + "\n".join(said))


def environment(*, null: bool) -> dict[str, str]:
    """The environment of a process that measures."""
    result = dict(os.environ)
    result["CUDADRV_DRIVER"] = "cuda"
    if null:
        former = result.get("LD_LIBRARY_PATH")
        folder = str(build_null_driver())
        result["LD_LIBRARY_PATH"] = f"{folder}{os.pathsep}{former}" if former else folder
    return result


def _user() -> int:
    # Windows has no user numbers; its folder for temporary files is the user's own.
    return os.getuid() if hasattr(os, "getuid") else 0
