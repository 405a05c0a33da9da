"""The command line: each command adds itself, with its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from ..version import VERSION
from . import (
    cache,
    check,
    cluster,
    compile,
    completion,
    count,
    doctor,
    emulate,
    explore,
    info,
    ptx_file,
    run_file,
    selftest,
    top,
)

_COMMANDS: Final = (
    selftest, info, doctor, top, cluster, compile, ptx_file, run_file, check, count, emulate,
    explore, cache,
)  # fmt: skip


def run(arguments: Sequence[str]) -> int:
    """Parse and run; answers the exit status."""
    options = make_parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description="The CUDA driver layer.")
    parser.add_argument("--version", action="version", version=f"cudadrv {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    completion.add_to(commands, parser)
    return parser
