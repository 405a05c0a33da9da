"""``replay``: run a finding of ``verify`` again, and print the accesses to one address."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from ..errors import ArgumentValueError, CudadrvError
from .command_line import Commands, add_command, program_name
from .output import EscapedStream, print_error, print_text
from .verify import CANNOT, FOUND, WRONG, missing_package

_MOST_SHOWN: Final = 200


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "replay",
        "Run a finding again that `verify --save` wrote.",
        example="findings/saxpy-bounds.json --address 'y[3]' --thread 0:3",
        statuses={
            "0": "the kernel shows no fault any more",
            str(FOUND): "the kernel has a fault",
            str(WRONG): "the command line is wrong",
            str(CANNOT): "the file is not a saved finding, or does not run",
        },
    )
    add = parser.add_argument
    add("finding", type=Path, metavar="FINDING.json", help="a file of verify --save")
    add(
        "--address",
        default="",
        metavar="NAME[INDEX]",
        help="print the accesses to an element of an array, to NAME+BYTES, or to shared+BYTES",
    )
    add(
        "--thread",
        default="",
        metavar="BLOCK:THREAD",
        help="print the accesses of one thread, such as 0:3 or 1,0,0:3,0,0",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if missing_package("replay"):
        return CANNOT
    try:
        from ..testing.verify import SavedFinding  # imports Hypothesis

        saved = SavedFinding.read(options.finding)
        history: list[str] = []
        with (
            redirect_stdout(EscapedStream(sys.stdout)),
            redirect_stderr(EscapedStream(sys.stderr)),
        ):
            if options.address or options.thread:
                history = saved.history(options.address, options.thread)
            faults = saved.faults()
        for fault in faults:
            print_text(fault.text)
        if not faults:
            print_text("the kernel shows no fault any more")
        if options.address or options.thread:
            _print_history(history, options.address, options.thread)
    except ArgumentValueError as error:
        print_error(f"{program_name()} replay: {error}")
        return WRONG
    except CudadrvError as error:
        print_error(f"{options.finding}: cannot be replayed: {error}")
        return CANNOT
    return FOUND if faults else 0


def _print_history(lines: Sequence[str], address: str, thread: str) -> None:
    of = " ".join(filter(None, [address, thread and f"thread {thread}"]))
    print_text(f"history of {of}: {len(lines)} access{'es' * (len(lines) != 1)}")
    for line in lines[:_MOST_SHOWN]:
        print_text(f"  {line}")
    if len(lines) > _MOST_SHOWN:
        print_text(f"  and {len(lines) - _MOST_SHOWN} more")
