"""Programs of other libraries under `python -m cudadrv emulate`."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.process.shared_libraries.process import Ended, run
from tests.process.shared_libraries.test_other_libraries import has


def emulated(package: str, program: str, folder: Path, **names: str) -> Ended:
    """Run a program of a package, with environment variables, or skip the test without it.

    The program is a file, as some compilers read their functions' source from it.
    """
    module = package.replace("-", ".")
    if not has(module):
        pytest.skip(f"needs {package}")
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    # Caches of compiled kernels, and other settings, belong to the test.
    caches = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    return run("-m", "cudadrv", "emulate", "python", str(path), names={**caches, **names})
