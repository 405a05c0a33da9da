"""Runs at the start of each Python process under `python -m cudadrv emulate`.

PYTHONPATH begins with this folder there. A `sitecustomize` of the user's own runs after it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def _replace_driver() -> None:
    """Put the emulator in the place of the driver for the life of the process."""
    if os.environ.get("CUDADRV_NO_STAND_IN"):
        return
    # Every Python of the command runs this, including those of other environments, which may be
    # tools that have nothing to do with CUDA.
    try:
        from cudadrv.sessions.process import start
    except ImportError as error:
        print(f"cudadrv: no emulator in {sys.executable}: {error}", file=sys.stderr)
        return
    start()


def _run_next() -> None:
    """Run the next `sitecustomize` on the import path."""
    own_folder = Path(__file__).resolve().parent
    other_folders = [folder for folder in sys.path if Path(folder or ".").resolve() != own_folder]
    spec = PathFinder.find_spec("sitecustomize", other_folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_replace_driver()
_run_next()
