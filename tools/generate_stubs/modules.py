"""Writes the stub of a whole module."""

from __future__ import annotations

import re
from types import ModuleType

from . import classes, functions
from .annotations import Annotations

_IMPORTS = {
    "collections.abc": ("Sequence",),
    "enum": ("IntEnum",),
    "typing": ("Any", "Self", "TypeAlias"),
    "typing_extensions": ("Buffer", "disjoint_base"),
}

_ALIASES = {
    "_Pointer": (
        "# void *: an address, an object with the buffer protocol, or a number.\n"
        "_Pointer: TypeAlias = {numbers}Buffer | int | None"
    ),
    "_KernelParams": (
        "# void **: the address of an array of pointers, or values and their ctypes types.\n"
        "_KernelParams: TypeAlias = (\n"
        "    Buffer | tuple[tuple[object, ...], tuple[type[object] | None, ...]] | int | None\n"
        ")"
    ),
}

_NUMBERS = ("CUdeviceptr", "cuuint32_t", "cuuint64_t")
"""Classes of a number that the conversion to void * takes, where the module has them."""


def stub(module: ModuleType, version: str) -> str:
    """The text of the module's stub, for cuda-bindings of this version."""
    annotations = Annotations(module)
    result_type = next((name for name in ("CUresult", "nvrtcResult") if hasattr(module, name)), "")
    constants, written_classes, written_functions = [], [], []
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, int):
            constants.append(f"{name}: int")
        elif isinstance(value, type) and value.__module__ == module.__name__:
            written_classes.append(classes.definition(name, value, annotations))
        elif type(value).__name__ == "cython_function_or_method":
            written_functions.append(functions.definition(name, value, annotations, result_type))
    body = [*_paragraph(constants), *_spaced(written_classes), *_paragraph(written_functions)]
    text = "\n\n".join(body)
    aliases = _aliases(module, text)
    heading = f"# {module.__name__} of cuda-bindings {version}, made by tools/generate_stubs."
    return "\n\n".join([heading, _imports("\n".join([text, *aliases])), *aliases, text]) + "\n"


def _paragraph(lines: list[str]) -> list[str]:
    return ["\n".join(lines)] if lines else []


def _spaced(written: list[str]) -> list[str]:
    """Classes with an empty line around each that has a body, as the formatter wants them."""
    paragraphs: list[str] = []
    follows = False
    for definition in written:
        bodiless = definition.endswith("): ...") and "def " not in definition
        if follows and bodiless:
            paragraphs[-1] += f"\n{definition}"
        else:
            paragraphs.append(definition)
        follows = bodiless
    return paragraphs


def _aliases(module: ModuleType, text: str) -> list[str]:
    numbers = "".join(f"{name} | " for name in _NUMBERS if hasattr(module, name))
    return [alias.format(numbers=numbers) for name, alias in _ALIASES.items() if _uses(text, name)]


def _imports(text: str) -> str:
    lines = []
    for module, names in _IMPORTS.items():
        used = [name for name in names if _uses(text, name)]
        if used:
            lines.append(f"from {module} import {', '.join(used)}")
    # What is not of the standard library stands apart.
    return "\n".join(lines).replace("\nfrom typing_ext", "\n\nfrom typing_ext")


def _uses(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
