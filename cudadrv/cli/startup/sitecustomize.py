"""What `python -m cudadrv emulate` has each Python of its command run first.

This folder stands first on PYTHONPATH then. A `sitecustomize` of the user's runs after it.
"""

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
    # Every Python of the command comes here, also those that import nothing else of it.
    from cudadrv.cli.emulate import begin

    begin()


_stand_in()
_run_next()
