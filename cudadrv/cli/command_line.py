"""The command line: the parser that each command adds itself to, completions, and tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, TypeAlias

from ..version import VERSION

# argparse has no public name for the result of `add_subparsers`.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
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
    """Parse the arguments, run the command and return the exit status."""
    options = make_parser(arguments[0] if arguments else None).parse_args(arguments)
    status: int = options.run(options)
    return status


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one command, or of all if `command` is None.

    Only the named command is imported: `emulate` imports next to nothing.
    """
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description="The CUDA driver layer.")
    parser.add_argument("--version", action="version", version=f"cudadrv {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        if command == name or command not in _COMMANDS:
            import_module(f".{module}", __package__).add_to(commands)
    _add_completion(commands, parser)
    return parser


def positive(text: str) -> int:
    """Return the integer of a text, 1 or more.

    Raises:
        ArgumentTypeError: the text is no such integer.
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of 1 or more")
    return number


_SHELLS = ("bash", "zsh", "tcsh")


def _add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    """Add the command ``completion``, which completes all commands of the parser."""
    completion = commands.add_parser(
        "completion", help='a shell\'s completions of `cudadrv`: eval "$(cudadrv completion bash)"'
    )
    completion.add_argument("shell", choices=_SHELLS)
    completion.set_defaults(run=lambda options: _run_completion(parser, options.shell))


def _run_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the shell's code; return 1 if shtab is not installed."""
    try:
        import shtab
    except ModuleNotFoundError:
        print('completion needs shtab: pip install "cudadrv[cli]"', file=sys.stderr)
        return 1
    parser.prog = "cudadrv"
    print(shtab.complete(parser, shell))
    return 0


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title: with rich on a terminal, else in plain columns."""
    if not sys.stdout.isatty():
        _print_plain(title, columns, rows)
        return
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ModuleNotFoundError:
        _print_plain(title, columns, rows)
        return
    table = Table(title=escape(title), title_justify="left")
    for column in columns:
        numeric = column in ("ms", "device", "MiB")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(soft_wrap=False).print(table)


def _print_plain(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    print(title)
    for row in (columns, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"  {line.rstrip()}")
