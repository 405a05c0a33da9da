"""The public names and the pages of the reference that have them.

``python -m tests.documents.reference --write`` adds what is missing to the page of its room, takes
away what is not public any more or stands there twice, and writes the table of CUresults anew.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Final

from cudadrv import errors
from cudadrv.errors import CudadrvError

from . import results

REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"
_LISTED = re.compile(r"^\.\. (?:auto\w+|py:data):: (\S+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\.\. (?:auto\w+|py:data):: (\S+)\n(?:(?:   .*)?\n)*", re.MULTILINE)
UNTOLD: Final = "(say what it is)"
"""Instead of the text of a variable or an alias, which has no docstring."""
_PAGES: Final = {
    "cudadrv.blas": "client", "cudadrv.client": "client", "cudadrv.cluster": "pool",
    "cudadrv.checkpoint": "streams", "cudadrv.emulator": "emulator", "cudadrv.graph": "streams",
    "cudadrv.interop": "memory", "cudadrv.ipc": "memory",
    "cudadrv.launch": "kernels", "cudadrv.opengl": "memory",
    "cudadrv.memory": "memory", "cudadrv.pool": "pool", "cudadrv.runtime": "runtime",
    "cudadrv.stream": "streams", "cudadrv.tensor_map": "tensor-maps",
    "cudadrv.texture": "textures", "cudadrv.tracing": "tracing",
}  # fmt: skip


def emulator_names() -> set[str]:
    """What the emulator's package imports for its users."""
    package = importlib.import_module("cudadrv.emulator")
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text())
    return {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }


# Submodules whose names stand in `cudadrv` too, if they are of daily use.
SUBMODULES: Final = (
    "blas", "checkpoint", "client", "cluster", "driver", "graph", "interop", "ipc", "launch",
    "memory", "nvml", "opengl", "pool", "runtime", "stream", "tensor_map", "texture", "tracing",
)  # fmt: skip


def names_of_cudadrv() -> set[str]:
    """The names of `cudadrv`, and those of its submodules that it does not have."""
    root: list[str] = importlib.import_module("cudadrv").__all__
    names = {f"cudadrv.{name}" for name in root}
    for submodule in SUBMODULES:
        module = f"cudadrv.{submodule}"
        listed: list[str] = importlib.import_module(module).__all__
        names |= {f"{module}.{name}" for name in {*listed} - {*root}}
    return names


def public_names() -> set[str]:
    """Every public name, with the package that users take it from."""
    names = {f"cudadrv.errors.{name}" for name in dir(errors)}
    names |= {f"cudadrv.emulator.{name}" for name in emulator_names()}
    listed: list[str] = importlib.import_module("ptx").__all__
    names |= {f"ptx.{name}" for name in listed} | names_of_cudadrv()
    for part in ("report", "strategies", "verify"):
        module = f"cudadrv.testing.{part}"
        names |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    return {name for name in names if not is_elsewhere(name)}


def is_elsewhere(name: str) -> bool:
    """Whether it is an error that the reference has under its other name, or in the table."""
    found = named(name)
    if not isinstance(found, type) or not issubclass(found, CudadrvError):
        return False
    if name.startswith("cudadrv.errors."):
        of_ptx = found.__module__ == "ptx.errors"
        return of_ptx or (issubclass(found, errors.CudaError) and found is not errors.CudaError)
    return found.__module__.startswith("cudadrv.errors")


def named(name: str) -> object:
    """What a public name is."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def listed() -> list[str]:
    """The names that the pages have."""
    return [
        name
        for page in sorted(REFERENCE.glob("*.md"))
        for name in _LISTED.findall(page.read_text())
    ]


def page_of(name: str) -> Path:
    """The page that a name belongs into, by the room of what it is."""
    found, package = named(name), name.rpartition(".")[0]
    is_error = isinstance(found, type) and issubclass(found, BaseException)
    if package == "cudadrv" or package.removeprefix("cudadrv.") in SUBMODULES:
        room = ".".join(getattr(found, "__module__", "").split(".")[:2])
        page = _PAGES.get(room, "devices")
    elif package == "cudadrv.emulator":
        page = "emulator"
    elif package.startswith("cudadrv.testing"):
        page = "testing"
    else:
        page = "errors" if is_error else "ptx"
    return REFERENCE / f"{page}.md"


def entry(name: str) -> str:
    """The directive of a name."""
    found = named(name)
    if isinstance(found, type) and issubclass(found, BaseException):
        return f".. autoexception:: {name}\n   :members:\n   :show-inheritance:\n\n"
    if isinstance(found, type):
        inherited = "   :inherited-members: object, Exception, tuple, int, Enum\n"
        return f".. autoclass:: {name}\n   :members:\n{inherited}\n"
    if inspect.isroutine(found):
        return f".. autofunction:: {name}\n\n"
    return f".. py:data:: {name}\n\n   {UNTOLD}\n\n"


def write() -> None:
    """Bring the pages up to date."""
    public, there = public_names(), set(listed())
    left = set(public)
    for page in sorted(REFERENCE.glob("*.md")):
        kept = _ENTRY.sub(lambda match: _kept(match, left), page.read_text())
        new = "".join(entry(name) for name in sorted(public - there) if page_of(name) == page)
        at = kept.rindex("```\n") if new else len(kept)
        page.write_text(f"{kept[:at].rstrip()}\n\n{new.rstrip()}\n{kept[at:]}" if new else kept)
    results.PAGE.write_text(results.replaced(results.PAGE.read_text()))


def _kept(match: re.Match[str], left: set[str]) -> str:
    """An entry as it is, if its name is public and had none before."""
    if match[1] not in left:
        return ""
    left.remove(match[1])
    return match[0]


if __name__ == "__main__" and "--write" in sys.argv:
    write()
