"""Run a user's script or module within this process."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final

_FAILED: Final = 1  # Python's status of a script that an error ended
# Files of the frames that lead to the script's own.
_LEADING: Final = (__file__, "<frozen runpy>", "<frozen importlib._bootstrap>", runpy.__file__)


def run_script(
    script: str, arguments: Sequence[str], failed: Callable[[], object] | None = None
) -> tuple[int, bool]:
    """Run a script as `python SCRIPT` does; return its status, and True if an error ended it.

    After an error `failed` is called, while the script's objects still exist.
    """
    folder = str(Path(script).resolve().parent)
    with _as_main(script, arguments, folder):
        return _run(partial(runpy.run_path, script, run_name="__main__"), failed)


def run_module(
    module: str, arguments: Sequence[str], failed: Callable[[], object] | None = None
) -> tuple[int, bool]:
    """Run a module as `python -m MODULE` does; return the same as `run_script`."""
    with _as_main(module, arguments, str(Path.cwd())):
        run = partial(runpy.run_module, module, run_name="__main__", alter_sys=True)
        return _run(run, failed)


def why_no_module(module: str) -> str:
    """Return the reason why `python -m` finds no such module; "" if it finds it."""
    with _as_main(module, (), str(Path.cwd())):
        try:
            found = find_spec(module)
            if found is not None and found.submodule_search_locations is not None:
                module += ".__main__"
                found = find_spec(module)
        except (ImportError, ValueError) as error:
            return str(error)
    return f"no module named {module}" if found is None else ""


@contextmanager
def _as_main(name: str, arguments: Sequence[str], folder: str) -> Iterator[None]:
    """Set the arguments and the import path of a script for a block."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [name, *arguments], [folder, *path]
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path


def _run(run: Callable[[], object], failed: Callable[[], object] | None) -> tuple[int, bool]:
    try:
        run()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0, False
        print(left.code, file=sys.stderr)
        return _FAILED, False
    except Exception as error:
        if failed is not None:
            failed()
        traceback.print_exception(error.with_traceback(_of_the_script(error.__traceback__)))
        return _FAILED, True
    return 0, False


def _of_the_script(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the script's first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _LEADING:
        trace = trace.tb_next
    return trace
