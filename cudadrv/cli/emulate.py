"""``emulate``: run a command whose Python processes have the emulator as their CUDA driver."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ptx.standard_streams import flush_output

from ..driver.exit_status import FOUND
from ..errors import ArgumentValueError, DriverSelectionError
from .command_line import Commands, add_command, positive, program_name
from .output import print_error
from .user_files import why_no_file, why_no_output, write_text_file

_STARTUP: Final = Path(__file__).parent / "startup"
_TOOLKIT: Final = Path(__file__).parent / "toolkit" / "bin"
_FAULT_PLUGIN: Final = "cudadrv.sessions.fault_clearing"
_FAULTS: Final = ("sticky", "test", "continue")
_NOT_FOUND: Final = 127  # a shell's status
_BY_SIGNAL: Final = 128  # as a shell's, plus the signal
_PRELOAD: Final = "LD_PRELOAD"
_NO_KERNEL: Final = 67
_NOT_WRITTEN: Final = 3
CHECKS: Final = ("race", "init", "sync", "bounds", "divide", "nan", "assemble", "leak")
"""The names of the checks, as the emulator's own list takes long to import."""
# Ten times the emulator's own: kernels of other libraries may loop long over registers alone.
_STEPS: Final = 100_000_000


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "emulate",
        "Run a command with the emulator as the CUDA driver of its Python processes.",
        example="--devices 2 python script.py",
        statuses={
            "0": "the command succeeded",
            str(_NOT_FOUND): "there is no such command",
            "66": "the command is a Python program, and --checks has findings; with "
            "--fail-on-findings also if another process had findings or a fault",
            "67": "--require-kernels, and no kernel ran on the emulator",
            "68": "a call of a Python process waited for the interpreter lock for five minutes",
            "2": "the command line is wrong",
            str(_NOT_WRITTEN): "the command succeeded, and the file of --junit cannot be written",
            "other": "the command's own status; a fault alone does not change it",
        },
    )
    _add_emulator(parser)
    _add_reports(parser)
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command and its arguments"
    )
    parser.set_defaults(run=lambda options: _run(parser, options))


def _add_emulator(parser: argparse.ArgumentParser) -> None:
    """Add the options of the emulator, and of the processes that have one."""
    add = parser.add_argument
    add("--devices", type=positive, metavar="N", help="default: 1")
    add("--compute-capability", metavar="X.Y", help="of the devices (default: 9.0)")
    add("--order", metavar="ORDER", help="immediate, late or random:SEED")
    # Options are text here: this must start fast, and the emulator's modules take long to import.
    add(
        "--checks",
        metavar="NAMES",
        help=f"some of {','.join(CHECKS)} (default: none)",
    )
    add(
        "--steps",
        type=positive,
        metavar="N",
        help="the limit of steps of a kernel that makes no "
        f"progress (default: {_STEPS}, two to ten minutes)",
    )
    add(
        "--fault",
        choices=_FAULTS,
        help="what a kernel's fault does: sticky, the default, fails "
        "all later calls, as on a GPU; test: until the next pytest test; continue: nothing more "
        "than its own error",
    )
    add(
        "--native",
        action="store_true",
        help="also give processes that run no Python an emulator; "
        "needs a compiler of C, x86-64, and a Python with a shared library",
    )


def _add_reports(parser: argparse.ArgumentParser) -> None:
    """Add the options of exit statuses, and of files about findings."""
    add = parser.add_argument
    add(
        "--fail-on-findings",
        action="store_true",
        help="end with status 66 if any process of the "
        "command had findings of checks, or a kernel's fault",
    )
    add(
        "--require-kernels",
        action="store_true",
        help="end with status 67 if the command succeeds and no kernel ran on the emulator",
    )
    add("--junit", metavar="FILE", help="write findings and faults of all processes as JUnit's XML")
    add("--suppressions", metavar="FILE", help="a file of known findings, which are not reported")


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    command: list[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not (command and command[0]):
        parser.error(f"name a command, such as: {parser.prog} python script.py")
    _check_names(parser, options)
    if command[0] == "python":
        command[0] = sys.executable  # the one that has this package
    from ..emulator.command_events import Event

    names = environment(options)
    if not (options.fail_on_findings or options.require_kernels or options.junit):
        return _replaced_by(command, names)
    with tempfile.TemporaryDirectory(prefix="cudadrv-emulate-") as folder:
        status = _ended(command, {**names, Event.FOLDER: folder})
        return _judged(status, Path(folder), options)


def _check_names(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Reject unknown names at once: the emulator starts later, or never."""
    unknown = [name for name in _words(options.checks) if name not in CHECKS]
    if unknown:
        parser.error(f"--checks: {unknown[0]!r} is none of {', '.join(CHECKS)}")
    if (options.checks or "").strip() and not _words(options.checks):
        parser.error(f"--checks: {options.checks!r} names none of {', '.join(CHECKS)}")
    if options.order is not None:
        from ..emulator.timeline.schedule import Schedule  # other commands save 10 ms

        try:
            Schedule.read(options.order)
        except ArgumentValueError as error:
            parser.error(f"--order: {error}")
    if options.junit is not None and (why := why_no_output(options.junit)):
        parser.error(f"--junit {options.junit}: {why}")
    if options.suppressions is not None and (why := why_no_file(options.suppressions)):
        parser.error(f"--suppressions {options.suppressions}: {why}")


def _words(checks: str | None) -> list[str]:
    return [name for word in (checks or "").split(",") if (name := word.strip())]


def _ended(command: Sequence[str], names: dict[str, str]) -> int:
    """Run the command, and return its status; signals that end this process reach it."""
    flush_output()
    try:
        process = subprocess.Popen(list(command), env=names)
    except OSError as error:
        print_error(f"{program_name()}: {command[0]}: {error.strerror}")
        return _NOT_FOUND

    def pass_on(number: int, _: object) -> None:
        process.send_signal(number)

    # A terminal sends its interrupts to both.
    former = {each: signal.signal(each, pass_on) for each in (signal.SIGTERM, signal.SIGHUP)}
    former[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        status = process.wait()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    return status if status >= 0 else _BY_SIGNAL - status


def _judged(status: int, folder: Path, options: argparse.Namespace) -> int:
    """Return the status of the command, changed by what its processes noted."""
    from ..emulator.command_events import Event

    if options.junit:
        from .finding_formats import as_junit  # with XML's escapes, which take 5 ms

        reports = Event.FINDING.reports(folder) + Event.FAULT.reports(folder)
        checks = _words(options.checks or os.environ.get("CUDADRV_CHECK"))
        if not write_text_file(Path(options.junit), as_junit(reports, [*checks, "fault"])):
            status = status or _NOT_WRITTEN
    if options.fail_on_findings and (
        Event.FINDING.happened(folder) or Event.FAULT.happened(folder)
    ):
        print_error("cudadrv: a process had findings or a kernel's fault (--fail-on-findings)")
        return FOUND
    if options.require_kernels and not status and not Event.KERNEL.happened(folder):
        print_error("cudadrv: no kernel ran on the emulator (--require-kernels)")
        return _NO_KERNEL
    return status


def environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the command."""
    steps = options.steps or (None if "CUDADRV_EMULATOR_STEPS" in os.environ else _STEPS)
    chosen = {
        "CUDADRV_DRIVER": f"emulator:{options.devices}" if options.devices else None,
        "CUDADRV_EMULATOR_COMPUTE_CAPABILITY": options.compute_capability,
        "CUDADRV_EMULATOR_ORDER": options.order,
        "CUDADRV_CHECK": options.checks,
        "CUDADRV_EMULATOR_STEPS": str(steps) if steps else None,
        "CUDADRV_CHECK_SUPPRESSIONS": options.suppressions,
        "CUDADRV_EMULATOR_FAULT": options.fault,
    }
    return {
        **os.environ,
        **{name: value for name, value in chosen.items() if value is not None},
        **_pytest_plugins(options.fault),
        **_libraries(is_native=options.native),
        "CUDADRV_PYTHON": sys.executable,
        "PATH": _first(_TOOLKIT, "PATH"),
        "PYTHONPATH": _first(_STARTUP, "PYTHONPATH"),
        # Triton has an assembler of its own otherwise.
        "TRITON_PTXAS_PATH": str(_TOOLKIT / "ptxas"),
        "TRITON_PTXAS_BLACKWELL_PATH": str(_TOOLKIT / "ptxas"),
    }


def _libraries(*, is_native: bool) -> dict[str, str]:
    """Return where programs look for the files of the driver's libraries."""
    from ..emulator.shared_libraries.early_files import early_folder
    from ..emulator.shared_libraries.early_libraries import FOLDER
    from ..emulator.shared_libraries.library_files import library_folder, nvrtc_folder
    from ..emulator.shared_libraries.nvrtc_files import SEARCH_PATH
    from .toolkit_folder import VARIABLES, toolkit_folder

    try:
        folder, early = library_folder(is_native=is_native), early_folder()
    except DriverSelectionError:
        return {}  # the command's Python processes report it
    if folder is None:
        print_error("cudadrv: no folder for the files of the driver's libraries")
        return {}
    # Triton searches the system's folders otherwise.
    folders = filter(None, (folder, nvrtc_folder(), os.environ.get(SEARCH_PATH)))
    preloaded: dict[str, str] = {}
    if is_native:
        from ..emulator.shared_libraries.native_library import native_library  # seldom needed

        former = os.environ.get(_PRELOAD)
        preloaded = {_PRELOAD: " ".join([str(native_library()), *([former] if former else [])])}
    toolkit = toolkit_folder(folder)
    named = [] if toolkit is None else [name for name in VARIABLES if name not in os.environ]
    return {
        **preloaded,
        **dict.fromkeys(named, str(toolkit)),
        SEARCH_PATH: os.pathsep.join(map(str, folders)),
        "TRITON_LIBCUDA_PATH": str(folder),
        **({FOLDER: str(early)} if early else {}),
    }


def _pytest_plugins(fault: str | None) -> dict[str, str]:
    if fault != "test":
        return {}
    former = os.environ.get("PYTEST_PLUGINS")
    return {"PYTEST_PLUGINS": ",".join([*([former] if former else []), _FAULT_PLUGIN])}


def _first(folder: Path, name: str) -> str:
    """Return a search path of the environment with a folder before all others."""
    former = os.environ.get(name)
    return os.pathsep.join([str(folder), *([former] if former else [])])


def _replaced_by(command: Sequence[str], names: dict[str, str]) -> int:
    """Become the command, so that its signals and its status are its own."""
    flush_output()
    try:
        os.execvpe(command[0], list(command), names)
    except OSError as error:
        print_error(f"{program_name()}: {command[0]}: {error.strerror}")
        return _NOT_FOUND
