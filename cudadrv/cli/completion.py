"""``python -m cudadrv completion``: what completes the command line in a shell."""

from __future__ import annotations

import argparse
import sys

from .commands import Commands

_SHELLS = ("bash", "zsh", "tcsh")


def add_to(commands: Commands, parser: argparse.ArgumentParser) -> None:
    """Add the command, which tells of all commands of the parser."""
    completion = commands.add_parser(
        "completion", help='a shell\'s completions of `cudadrv`: eval "$(cudadrv completion bash)"'
    )
    completion.add_argument("shell", choices=_SHELLS)
    completion.set_defaults(run=lambda options: run_completion(parser, options.shell))


def run_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the shell's code; answers 1 where shtab is not installed."""
    try:
        import shtab
    except ModuleNotFoundError:
        print('completion needs shtab: pip install "cudadrv[cli]"', file=sys.stderr)
        return 1
    parser.prog = "cudadrv"
    print(shtab.complete(parser, shell))
    return 0
