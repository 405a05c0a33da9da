"""Runs at the start of each Python process under `python -m cudadrv emulate`.

PYTHONPATH begins with this folder there. A `sitecustomize` of the user's own runs after it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _replace_driver() -> None:
    """Let the first driver call put the emulator in the place of the driver.

    Where no call can start it, it starts now.
    """
    if os.environ.get("CUDADRV_NO_STAND_IN", "").strip() == "1":
        return
    # Every Python of the command runs this, including those of other environments, which may be
    # tools that have nothing to do with CUDA.
    try:
        from cudadrv.emulator.shared_libraries.early_libraries import start_at_first_call

        if not start_at_first_call(_start):
            _start()
    except ImportError as error:
        print(f"cudadrv: no emulator in {sys.executable}: {error}", file=sys.stderr)


def _start() -> None:
    from cudadrv.sessions.process import start  # it imports the emulator: 1 s

    start()


def _run_next() -> None:
    """Run the next `sitecustomize` on the import path."""
    own_folder = os.path.dirname(os.path.realpath(__file__))
    other_folders = [each for each in sys.path if os.path.realpath(each or ".") != own_folder]
    spec = PathFinder.find_spec("sitecustomize", other_folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_replace_driver()
_run_next()
