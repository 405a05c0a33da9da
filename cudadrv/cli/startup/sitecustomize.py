"""Runs at the start of each Python process under `python -m cudadrv emulate`.

PYTHONPATH begins with this folder there. A `sitecustomize` of the user's own runs after it.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cudadrv.sessions.stand_in import StandIn

_REJECTED: Final = 2  # as of a wrong command line


def _replace_driver() -> None:
    """Put the emulator in the place of the driver for the life of the process.

    If that fails the process ends, as it would go on with the machine's own driver.
    """
    # Set for the helper that runs the real nvJitLink: emulator/shared_libraries/libnvjitlink.
    if os.environ.get("CUDADRV_NO_STAND_IN"):
        return
    # Every Python of the command runs this, including those of other environments, which may be
    # tools that have nothing to do with CUDA.
    try:
        from cudadrv.sessions.stand_in import stand_in
    except ImportError as error:
        print(f"cudadrv: no emulator in {sys.executable}: {error}", file=sys.stderr)
        return
    try:
        stood = stand_in(raise_findings=False)
    except Exception as error:
        print(f"cudadrv: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(_REJECTED)  # after an exception `site` would go on
    atexit.register(_report, stood)


def _report(stood: StandIn) -> None:
    """Print the findings at the end of the process."""
    stood.close()
    for found in stood.emulator.findings:
        print(found, file=sys.stderr)


def _run_next() -> None:
    """Run the next `sitecustomize` on the import path."""
    own = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder or ".").resolve() != own]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_replace_driver()
_run_next()
