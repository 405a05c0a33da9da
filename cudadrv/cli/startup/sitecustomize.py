"""What `python -m cudadrv emulate` has each Python of its command run first.

This folder stands first on PYTHONPATH then. A `sitecustomize` of the user's runs after it.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def _run_next() -> None:
    own = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder or ".").resolve() != own]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _stand_in() -> None:
    # The helper that runs the real nvJitLink says so: see emulator/shared_libraries/libnvjitlink.
    if os.environ.get("CUDADRV_NO_STAND_IN"):
        return
    # Every Python of the command comes here, also those that import nothing else of it, and those
    # of other environments: they may be tools that have nothing to do with CUDA.
    try:
        from cudadrv.cli.emulated_process import begin
    except ImportError as error:
        print(f"cudadrv: no emulator in {sys.executable}: {error}", file=sys.stderr)
    else:
        begin()


_stand_in()
_run_next()
