"""The CUDA C++ of a file that others wrote, which is read and never run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from ptx.ordinary_files import read_text

from .verdict import CannotVerifyError

_KERNEL: Final = "__global__"
_MOST_BYTES: Final = 1 << 22


def submitted_source(file: Path) -> tuple[str, str]:
    """Return the CUDA C++ of a file, and the name of the file.

    A `.py` file has it in a string. Several strings with kernels are joined in their order. Strings
    of C++ for the host are left out, and so is code that launches kernels, from the first function
    on that is none of the device's.

    Raises:
        CannotVerifyError: the file cannot be read, is no Python, or has no kernel.
    """
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise CannotVerifyError(f"{file}: it has more than {_MOST_BYTES} bytes")
        text = read_text(file, "utf-8")
    except (OSError, ValueError) as error:
        raise CannotVerifyError(f"the source {file} cannot be read: {error}") from None
    if file.suffix != ".py":
        return text, str(file)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotVerifyError(f"{file}: it is no Python: {error}") from None
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNEL in node.value
    ]
    if not strings:
        raise CannotVerifyError(f"{file}: it has no string with a kernel of CUDA C++")
    return "\n".join(map(without_host_code, strings)), str(file)


def without_host_code(text: str) -> str:
    """Return a source without the includes and functions of PyTorch's C++."""
    lines = [line for line in text.split("\n") if not _is_include_of_torch(line)]
    kept: list[str] = []
    depth, part = 0, list[str]()
    for line in lines:
        part.append(line)
        depth += line.count("{") - line.count("}")
        if depth <= 0 and line.rstrip().endswith(("}", ";", "};")):
            whole = "\n".join(part)
            kept += [] if _is_of_host(whole) else part
            depth, part = 0, []
    return "\n".join([*kept, *part])


def _is_include_of_torch(line: str) -> bool:
    words = line.strip().replace(" ", "")
    return words.startswith(("#include<torch", "#include<ATen", "#include<c10", "#include<cuda.h"))


def _is_of_host(text: str) -> bool:
    is_of_device = _KERNEL in text or "__device__" in text
    return not is_of_device and ("torch::" in text or "at::" in text or "PYBIND11" in text)
