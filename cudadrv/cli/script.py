"""Run a user's script or module within this process."""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Final, NoReturn, ParamSpec, TypeVar

import ptx
from ptx.ordinary_files import read_bytes, why_not_ordinary
from ptx.standard_streams import flush_output

from ..errors import CudadrvError
from .output import print_error

# The folders of both packages.
_OURS: Final = tuple(
    f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], Path(ptx.__file__).parent)
)
_P = ParamSpec("_P")
_T = TypeVar("_T")
_FAILED: Final = 1  # Python's status of a script that an error ended
# Files of the frames that lead to the script's own.
_LEADING: Final = (__file__, "<frozen runpy>", "<frozen importlib._bootstrap>", runpy.__file__)


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """The end of a script.

    Attributes:
        status: its exit status.
        error: the text of the error that ended it; None if none did.
    """

    status: int
    error: str | None = None


def run_script(
    script: str, arguments: Sequence[str], failed: Callable[[], object] | None = None
) -> ScriptEnd:
    """Run a script as `python SCRIPT` does; print the error that ended it, if one did.

    After an error `failed` is called, while the script's objects still exist.
    """
    folder = str(Path(script).resolve().parent)
    with _as_main(script, arguments, folder):
        return _run(partial(runpy.run_path, script, run_name="__main__"), failed)


def run_module(
    module: str, arguments: Sequence[str], failed: Callable[[], object] | None = None
) -> ScriptEnd:
    """Run a module as `python -m MODULE` does; return the same as `run_script`."""
    with _as_main(module, arguments, str(Path.cwd())):
        run = partial(runpy.run_module, module, run_name="__main__", alter_sys=True)
        return _run(run, failed)


def names_of(file: Path) -> Mapping[str, object] | None:
    """Run a file as a module; return its names, or None after printing the error that ended it."""
    loader = SourceFileLoader(file.stem, str(file))
    spec = spec_from_loader(file.stem, loader)
    assert spec is not None  # a loader of a file always has one
    module = module_from_spec(spec)
    names: Mapping[str, object] | None = None

    def load() -> None:
        nonlocal names
        # Not by the loader's exec_module: that may run the compiled code of an earlier content.
        exec(loader.source_to_code(read_bytes(file), str(file)), vars(module))
        names = vars(module)

    with _as_main(str(file), (), str(file.resolve().parent)), _imported(module):
        _run(load, None)
    return names


@contextmanager
def ended_at_once(report: Callable[[], int]) -> Iterator[None]:
    """Call `report` before an interrupt, SIGTERM or `os._exit` ends this process in the block.

    After `os._exit(0)` the process has the status that `report` returns. A child that the block
    forks calls nothing. SIGTERM is left to a handler of its own.
    """
    process, leave = os.getpid(), os._exit

    def report_and_leave(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        found = report()
        flush_output()
        leave(status or found)

    def report_and_repeat(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == process:
            report()
        os.kill(os.getpid(), number)

    handles = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if handles:
        signal.signal(signal.SIGTERM, report_and_repeat)
    # A script has no other way to skip the end of the command, so this is the one place to see it.
    os._exit = report_and_leave
    try:
        yield
    except KeyboardInterrupt:
        report()
        raise
    finally:
        os._exit = leave
        if handles and signal.getsignal(signal.SIGTERM) is report_and_repeat:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def exit_functions() -> Iterator[list[object]]:
    """Yield a list to which each `atexit.register` in the block adds its arguments.

    Python shows nobody the functions that it will call at its end.
    """
    register, registered = atexit.register, list[object]()

    def record(
        function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Callable[_P, _T]:
        registered.append((function, args, kwargs))
        return register(function, *args, **kwargs)

    atexit.register = record
    try:
        yield registered
    finally:
        atexit.register = register


def why_no_script(script: str) -> str:
    """Return the reason why `python` cannot open such a file; "" if it may run."""
    # Functions of os.path: those of Path raise for some names, such as long ones.
    if not os.path.exists(script):
        return f"{script or repr(script)}: there is no such file"
    if why := why_not_ordinary(script):
        return f"{script}: {why}"
    if os.path.isdir(script) and not os.path.exists(os.path.join(script, "__main__.py")):
        return f"{script}: the folder has no __main__.py"
    return ""


def why_no_module(module: str) -> str:
    """Return the reason why `python -m` finds no such module; "" if it finds it."""
    with _as_main(module, (), str(Path.cwd())):
        try:
            spec = find_spec(module)
            if spec is not None and spec.submodule_search_locations is not None:
                module += ".__main__"
                spec = find_spec(module)
        except (ImportError, ValueError) as error:
            return str(error)
    return f"no module named {module}" if spec is None else ""


@contextmanager
def _imported(module: ModuleType) -> Iterator[None]:
    """Let imports find a module by its name for a block."""
    earlier = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if earlier is None:
            sys.modules.pop(module.__name__, None)
        else:
            sys.modules[module.__name__] = earlier


@contextmanager
def _as_main(name: str, arguments: Sequence[str], folder: str) -> Iterator[None]:
    """Set the arguments and the import path of a script for a block."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [name, *arguments], [folder, *path]
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path


def _run(run: Callable[[], object], failed: Callable[[], object] | None) -> ScriptEnd:
    try:
        run()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return ScriptEnd(leaving.code or 0)
        print_error(leaving.code)
        return ScriptEnd(_FAILED)
    except Exception as error:
        if failed is not None:
            failed()
        print_error(_traceback_text(error))
        return ScriptEnd(_FAILED, f"{error}")
    return ScriptEnd(0)


def _traceback_text(error: BaseException) -> str:
    """Return the traceback of a script's error, without this library's frames at its end.

    They stay in errors that are not the library's own, as those can be its faults.
    """
    trace = error.with_traceback(_of_the_script(error.__traceback__))
    shown = traceback.TracebackException.from_exception(trace)
    if isinstance(error, CudadrvError):
        while len(shown.stack) > 1 and shown.stack[-1].filename.startswith(_OURS):
            del shown.stack[-1]
    return "".join(shown.format()).rstrip("\n")


def _of_the_script(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the script's first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _LEADING:
        trace = trace.tb_next
    return trace
