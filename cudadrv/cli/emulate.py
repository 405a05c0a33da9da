"""``emulate``: run a command whose Python processes have the emulator as their CUDA driver."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .command_line import Commands, add_command, positive, program_name

_STARTUP: Final = Path(__file__).parent / "startup"
_NOT_FOUND: Final = 127  # a shell's status


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands, "emulate",
        "Run a command with the emulator as the CUDA driver of its Python processes.",
        example="--devices 2 python script.py",
        statuses={
            "0": "the command succeeded", str(_NOT_FOUND): "there is no such command",
            "2": "the command line is wrong", "other": "the command's own status",
        },
    )  # fmt: skip
    add = parser.add_argument
    add("--devices", type=positive, metavar="N", help="default: 1")
    add("--order", metavar="ORDER", help="immediate, late or random:SEED")
    # Options are text here: this must start fast, and the emulator's modules take long to import.
    add("--checks", metavar="NAMES", help="some of race,init,sync,bounds,leak (default: none)")
    add("--suppressions", metavar="FILE", help="a file of known findings, which are not reported")
    add(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command and its arguments"
    )
    parser.set_defaults(run=lambda given: _run(parser, given))


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    command: list[str] = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error(f"name a command, such as: {parser.prog} python script.py")
    if command[0] == "python":
        command[0] = sys.executable  # the one that has this package
    return _replaced_by(command, environment(given))


def environment(given: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the command."""
    chosen = {
        "CUDADRV_DRIVER": f"emulator:{given.devices}" if given.devices else None,
        "CUDADRV_EMULATOR_ORDER": given.order,
        "CUDADRV_CHECK": given.checks,
        "CUDADRV_CHECK_SUPPRESSIONS": given.suppressions,
    }
    former = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        **{name: value for name, value in chosen.items() if value is not None},
        "PYTHONPATH": os.pathsep.join([str(_STARTUP), *([former] if former else [])]),
    }


def _replaced_by(command: Sequence[str], names: dict[str, str]) -> int:
    """Become the command, so that its signals and its status are its own."""
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), names)
    except OSError as error:
        print(f"{program_name()}: {command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_FOUND
