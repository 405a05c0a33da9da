"""What PyInstaller has to know: files that no import statement names, and data.

The hooks in `hooks` use it. PyInstaller finds them by the entry point pyinstaller40.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CODE: Final = frozenset({".py", ".pyc", ".pyi"})
# They import pytest and Hypothesis, which a program does not use: name them in its own spec.
_LEFT_OUT: Final = ("cudadrv.testing", "cudadrv.freezing")


def hook_folders() -> list[str]:
    """Return the folder of the hooks."""
    return [str(Path(__file__).parent / "hooks")]


def hidden_imports(package: str) -> list[str]:
    """Return the names of all files of a package; many are imported at their first use."""
    return sorted(
        name for path in _files(package) if path.suffix == ".py" and (name := _module(path))
    )


def data_files(package: str) -> list[tuple[str, str]]:
    """Return each file of a package that is no code, with its folder in the program."""
    root = _root(package).parent
    return [
        (str(path), str(path.parent.relative_to(root)))
        for path in _files(package)
        if path.suffix not in _CODE
    ]


def compiler_files() -> list[tuple[str, str]]:
    """Return NVRTC and nvJitLink of pip's packages, for the top folder of the program.

    The program's loader looks there. A program without them needs a CUDA toolkit, or
    LD_LIBRARY_PATH.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec is not None else None
    return [
        (str(path), ".")
        for folder in folders or ()
        for name in ("libnvrtc*.so*", "libnvJitLink.so*")
        for path in sorted(Path(folder).glob(f"*/lib/{name}"))
    ]


def _root(package: str) -> Path:
    return Path(__file__).parents[2] / package


def _files(package: str) -> Iterator[Path]:
    """Yield the files of a package, without those that are left out."""
    for path in sorted(_root(package).rglob("*")):
        is_left_out = _module(path).startswith(_LEFT_OUT)
        if path.is_file() and not is_left_out and "__pycache__" not in path.parts:
            yield path


def _module(path: Path) -> str:
    parts = path.relative_to(Path(__file__).parents[2]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
