"""The command line: the parser that each command adds itself to, completions, and tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Final, NoReturn, TypeAlias

from .. import border
from ..environment import RULED
from ..version import VERSION
from .output import print_error, print_text

# argparse has no public name for the result of `add_subparsers`.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
COMMANDS: Final[Mapping[str, str]] = {
    "selftest": "selftest",
    "info": "info",
    "doctor": "doctor",
    "top": "top",
    "cluster": "cluster",
    "compile": "compile",
    "ptx": "ptx_file",
    "sass": "sass",
    "run": "run_file",
    "check": "check",
    "verify": "verify",
    "replay": "replay",
    "debug": "debug",
    "count": "count",
    "profile": "profile",
    "emulate": "emulate",
    "toolkit": "toolkit_folder",
    "explore": "explore",
    "cache": "cache",
}
"""The commands, and the modules that add them."""
# They report wrong variables of the environment, or read none.
WITH_ANY_VARIABLES: Final = ("doctor", "info", "completion", "toolkit")
_WRONG: Final = 2  # argparse's status for a wrong command line


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, run the command and return the exit status."""
    parser = make_parser(arguments[0] if arguments else None)
    if not arguments:
        parser.print_help()
        return 0
    names = (*COMMANDS, "completion")
    if arguments[0] not in names and not arguments[0].startswith("-"):
        import difflib  # which few commands need

        close = difflib.get_close_matches(arguments[0], names, 1)
        suggestion = f": did you mean {close[0]}?" if close else ""
        print_error(
            f"{parser.prog}: there is no command {arguments[0]!r}{suggestion}\n"
            f"  {parser.prog} --help lists the commands"
        )
        return _WRONG
    options = parser.parse_args(arguments)
    if arguments[0] not in WITH_ANY_VARIABLES and RULED & os.environ.keys():
        from ..emulator.environment import reject_wrong_variables  # which loads the emulator

        reject_wrong_variables()
    status: int = options.run(options)
    return status


def program_name() -> str:
    """Return the program name that the user typed: `cudadrv` or `python -m cudadrv`."""
    is_module = PurePath(sys.argv[0]).parts[-2:] == ("cudadrv", "__main__.py")
    return "python -m cudadrv" if is_module else "cudadrv"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors, which have words of the command line, are printed as all text is."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            print_error(message.rstrip("\n"))
        raise SystemExit(status)


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one command, or of all if `command` is None.

    Only the named command is imported: `emulate` imports next to nothing.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog=program_name(),
        description="Tools of the CUDA driver layer cudadrv: the installation, compiling and "
        "running kernels, and checks on the emulator.",
        epilog="%(prog)s COMMAND --help describes a command, with an example and its exit status.",
    )
    parser.add_argument("--version", action="version", version=f"cudadrv {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        if command == name or command not in COMMANDS:
            import_module(f".{module}", __package__).add_to(commands)
    _add_completion(commands, parser)
    return parser


def add_command(
    commands: Commands,
    name: str,
    description: str,
    *,
    example: str,
    statuses: Mapping[str, str],
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command; return its parser.

    Args:
        description: a sentence; the list of all commands shows it without its full stop.
        example: the words after the command's name.
        statuses: the meaning of each exit status.
    """
    width = max(map(len, statuses))
    lines = [f"  {status.ljust(width)}  {meaning}" for status, meaning in statuses.items()]
    summary = description[0].lower() + description[1:].removesuffix(".")
    return commands.add_parser(
        name,
        help=summary.replace("%", "%%"),
        description=description.replace("%", "%%"),
        epilog="\n".join(
            ["example:", f"  %(prog)s {example}".rstrip(), "", "exit status:", *lines]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=usage,
    )


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the script or module to run, with its arguments."""
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")


def positive(text: str) -> int:
    """Return the integer of a text, 1 or more.

    Raises:
        ArgumentTypeError: the text is no such integer.
    """
    number = border.integer_of_text(text, 1)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of 1 or more")
    return number


_SHELLS: Final = ("bash", "zsh", "tcsh", "fish")


def _add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    """Add the command ``completion``, which completes all commands of the parser."""
    completion = add_command(
        commands,
        "completion",
        "Print the code that completes `cudadrv` in a shell.",
        example='bash\n\nuse it in bash:\n  eval "$(cudadrv completion bash)"',
        statuses={"0": "printed", "1": "shtab is missing, or too old for this shell"},
    )
    completion.add_argument("shell", choices=_SHELLS)
    completion.set_defaults(run=lambda options: _run_completion(parser, options.shell))


def _run_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the shell's code; return 1 if shtab is not installed, or does not support the shell."""
    try:
        import shtab
    except ModuleNotFoundError:
        print_error('completion needs shtab: pip install "cudadrv[cli]"')
        return 1
    if shell not in shtab.SUPPORTED_SHELLS:
        print_error(f"completion for {shell} needs a newer shtab: pip install -U shtab")
        return 1
    parser.prog = "cudadrv"
    print_text(shtab.complete(parser, shell))
    return 0
