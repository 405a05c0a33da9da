"""The library that gives processes without Python an emulator, under `emulate --native`.

Its source is shipped (`native_start.c`), and a compiler of C builds it for this Python at the first
use.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from ...errors import DriverSelectionError
from .library_files import written_folder

_SOURCE: Final = Path(__file__).with_name("native_start.c")
_COMPILERS: Final = ("cc", "gcc", "clang")
_FILE: Final = "cudadrv-native.so"
_SEPARATORS: Final = frozenset(" :")
"""Of LD_PRELOAD, which has no way to quote them."""
_REMEDY: Final = "run the command without --native, in which only Python processes have an emulator"


def native_library() -> Path:
    """Return the file to preload, which is built if it is missing.

    Raises:
        DriverSelectionError: there is no compiler, no shared libpython or no place for the file,
            or the processor is not x86-64.
    """
    if platform.machine() != "x86_64":
        raise _cannot(f"is for x86-64, and this is {platform.machine()}")
    texts = _texts(_libpython())
    source = _SOURCE.read_bytes()
    key = sha256(source + repr(sorted(texts.items())).encode()).hexdigest()[:16]
    folder = written_folder(f"native-{key}", partial(_built, texts), {})
    if folder is None or _SEPARATORS & {*str(folder)}:
        raise _cannot(f"needs a cache folder without spaces and colons, and has {folder}")
    return folder / _FILE


def _texts(libpython: Path) -> dict[str, str]:
    """Return the texts of the source."""
    package = str(Path(__file__).parents[3])
    here = str(Path.cwd())
    folders = [package, *(each for each in sys.path if each not in ("", here, package))]
    return {
        "LIBRARY": str(libpython),
        "HOME": f"{sys.base_prefix}:{sys.base_exec_prefix}",
        "PREPARE": (
            f"import sys; sys.executable = {sys.executable!r}; "
            f"sys.path += [each for each in {folders!r} if each not in sys.path]"
        ),
    }


def _libpython() -> Path:
    """Return the file of this Python's shared library."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = (sysconfig.get_config_var("LIBDIR"), Path(sys.base_prefix, "lib"))
    files = (Path(folder, name) for folder in folders if folder and ".so" in name)
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise _cannot(f"needs a Python with a shared library, and {sys.executable} has none")
    return found


def _built(texts: Mapping[str, str]) -> Mapping[str, bytes]:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise _cannot(f"needs a compiler of C: one of {', '.join(_COMPILERS)}")
    with tempfile.TemporaryDirectory(prefix="cudadrv-native-") as folder:
        output = Path(folder, _FILE)
        values = [f"-D{name}={_literal(text)}" for name, text in texts.items()]
        command = [compiler, "-shared", "-fPIC", "-O1", *values, str(_SOURCE), "-o", str(output)]
        done = subprocess.run(
            [*command, "-ldl", "-lpthread"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise _cannot(f"needs a compiler of C, and {compiler} failed:\n{done.stderr.strip()}")
        return {_FILE: output.read_bytes()}


def _literal(text: str) -> str:
    """Return a literal of C."""
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode(errors="surrogateescape")) + '"'


def _cannot(reason: str) -> DriverSelectionError:
    return DriverSelectionError(f"--native {reason}\n  {_REMEDY}")
