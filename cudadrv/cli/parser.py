"""The command line: each command adds itself, with its options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from ..version import VERSION
from . import completion

# The commands, and the modules that add them.
_COMMANDS: Final[Mapping[str, str]] = {
    "selftest": "selftest",
    "info": "info",
    "doctor": "doctor",
    "top": "top",
    "cluster": "cluster",
    "compile": "compile",
    "ptx": "ptx_file",
    "run": "run_file",
    "check": "check",
    "count": "count",
    "emulate": "emulate",
    "explore": "explore",
    "cache": "cache",
}


def run(arguments: Sequence[str]) -> int:
    """Parse and run; answers the exit status."""
    options = make_parser(arguments[0] if arguments else None).parse_args(arguments)
    status: int = options.run(options)
    return status


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of one command, or of all without the name of one.

    A command pays for what it imports itself, and `emulate` imports next to nothing.
    """
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description="The CUDA driver layer.")
    parser.add_argument("--version", action="version", version=f"cudadrv {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        if command == name or command not in _COMMANDS:
            import_module(f".{module}", __package__).add_to(commands)
    completion.add_to(commands, parser)
    return parser
