"""The stubs of cuda.bindings, and what makes them."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.metadata import version
from pathlib import Path

from cuda.bindings import driver

from tools.generate_stubs.modules import stub

FOLDER = Path(__file__).parents[3] / "stubs"
ARE_STORED = driver.CUDA_VERSION >= 13000
"""The stubs of CUDA 12 are not in the repository: a release makes them."""


def text_of(module: str) -> str:
    """The stub of a module of cuda.bindings."""
    if not ARE_STORED:
        return stub(importlib.import_module(f"cuda.bindings.{module}"), version("cuda-bindings"))
    return (FOLDER / "cuda/bindings" / f"{module}.pyi").read_text()


DRIVER = ast.parse(text_of("driver"))
"""The stub of the driver, parsed."""

_NAMED = re.match(r"# cuda\.bindings\.driver of cuda-bindings ([\d.]+),", text_of("driver"))
assert _NAMED is not None
WRITTEN_FOR = _NAMED[1]
"""The version of cuda-bindings that the stubs were made from."""
