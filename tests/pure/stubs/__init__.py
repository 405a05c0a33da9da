"""The stubs of cuda.bindings, and what makes them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from cuda.bindings import driver

STUBS = Path(__file__).parents[3] / "stubs"
FOLDER = STUBS / "12.9" if driver.CUDA_VERSION < 13000 else STUBS
"""The folder of the installed binding's major."""


def text_of(module: str) -> str:
    """The stub of a module of cuda.bindings."""
    return (FOLDER / "cuda/bindings" / f"{module}.pyi").read_text()


def tree_of(module: str) -> ast.Module:
    """The same, parsed."""
    return ast.parse(text_of(module))


_NAMED = re.match(r"# cuda\.bindings\.driver of cuda-bindings ([\d.]+),", text_of("driver"))
assert _NAMED is not None
WRITTEN_FOR = _NAMED[1]
"""The version of cuda-bindings that the stubs were made from."""
