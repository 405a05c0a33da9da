"""The command line: its commands and options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .info import run_info
from .selftest import run_selftest


def run(arguments: Sequence[str]) -> int:
    """Parse and run; answers the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description="The CUDA driver layer.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    selftest = commands.add_parser(
        "selftest", help="compile kernels, run them on every device and compare with NumPy"
    )
    selftest.add_argument("--json", action="store_true", help="print the report as JSON")
    selftest.add_argument(
        "--devices",
        type=_positive,
        default=None,
        metavar="N",
        help="how many devices: of a GPU machine the first N, of the emulator N (default 2)",
    )
    selftest.set_defaults(run=lambda options: run_selftest(options.devices, options.json))

    info = commands.add_parser("info", help="what is installed, where, and what is missing")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    info.set_defaults(run=lambda options: run_info(options.json))
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number
