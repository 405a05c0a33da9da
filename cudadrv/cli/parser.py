"""The command line: its commands and options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from . import cache
from .check import run_check
from .compile import add_compile_options, run_compile
from .explore import run_explore
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

    compile_ = commands.add_parser("compile", help="compile a CUDA C++ file to an image file")
    add_compile_options(compile_)
    compile_.add_argument("--out", type=Path, metavar="FILE", help="default: beside the source")
    compile_.set_defaults(run=run_compile)
    check = commands.add_parser(
        "check", help="run a script on the emulator, with its kernels checked while they run"
    )
    check.add_argument("--checks", default="race,init", help="some of race,init (default: both)")
    check.add_argument("--devices", type=_positive, default=1, metavar="N", help="default: 1")
    check.add_argument("--json", action="store_true", help="print what was found as JSON")
    check.add_argument("script", metavar="SCRIPT")
    check.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    check.set_defaults(
        run=lambda options: run_check(
            options.script, options.arguments, options.checks.split(","), options.devices,
            options.json,
        )
    )  # fmt: skip
    explore = commands.add_parser(
        "explore", help="run a script or a test on the emulator under many orders of its work"
    )
    explore.add_argument("--seeds", type=_positive, default=20, metavar="N", help="default: 20")
    explore.add_argument("target", metavar="SCRIPT_OR_TEST", help="file.py, or test_file.py::test")
    explore.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    explore.set_defaults(
        run=lambda options: run_explore(options.target, options.arguments, options.seeds)
    )
    _add_cache(commands.add_parser("cache", help="the cache of compiled images"))
    return parser


def _add_cache(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    info = actions.add_parser("info", help="what it holds and what it saved")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    info.set_defaults(run=lambda options: cache.run_info(options.json))

    clear = actions.add_parser("clear", help="remove every entry")
    clear.set_defaults(run=lambda options: cache.run_clear())

    verify = actions.add_parser("verify", help="read every entry and name the damaged ones")
    verify.add_argument("--remove", action="store_true", help="remove the damaged ones")
    verify.set_defaults(run=lambda options: cache.run_verify(options.remove))

    prewarm = actions.add_parser("prewarm", help="compile ahead of time what a list names")
    prewarm.add_argument(
        "list", type=Path, metavar="LIST", help="a line an image: FILE.cu [options]"
    )
    prewarm.add_argument("--jobs", type=_positive, default=1, metavar="N", help="processes")
    prewarm.set_defaults(run=lambda options: cache.run_prewarm(options.list, options.jobs))


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number
