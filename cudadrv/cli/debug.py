"""``debug``: stop in the kernels of a script, a test or a finding, in a terminal or an editor."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .command_line import Commands, add_command, program_name
from .output import print_error, print_text
from .user_files import why_no_file

if TYPE_CHECKING:
    from ..debugger.sources import Sources

_WRONG: Final = 2
_ENDED: Final = 128 + signal.SIGTERM


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "debug",
        "Stop in the kernels of a script, a test or a saved finding, and go on or back.",
        example="--checks race,init script.py",
        statuses={
            "0": "the debugger was left, or the program succeeded",
            "2": "the command line is wrong",
            "other": "the program's own status",
        },
        usage="%(prog)s [options] [SCRIPT|FINDING.json|TEST.py::NAME [arguments]]",
    )
    add = parser.add_argument
    add(
        "--adapter",
        action="store_true",
        help="speak the Debug Adapter Protocol on stdin and stdout, for editors",
    )
    add("--port", type=int, metavar="N", help="speak it on this port of 127.0.0.1; 0 chooses one")
    add("--commands", metavar="FILE", help="read the commands of the terminal from a file")
    add("--checks", metavar="NAMES", default="", help="checks whose findings stop, as of `check`")
    add("--order", metavar="ORDER", default="", help="immediate, late or random:SEED")
    add("--optimised", action="store_true", help="compile as usual, without names of variables")
    add(
        "program",
        nargs="?",
        metavar="PROGRAM",
        help="a script, a finding of `verify --save`, or a test as pytest names it",
    )
    add("arguments", nargs=argparse.REMAINDER, help="of the script")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..debugger.debuggee import ADDRESS, Debuggee

    if ADDRESS in os.environ:  # a debugger has started this process
        return Debuggee().run(partial(_run_program, options))
    from ..debugger.adapter import Adapter, serve_port
    from ..debugger.debugger import DebuggedProgram, DebuggerError
    from ..debugger.terminal import run_terminal

    for file in filter(None, ((options.program or "").partition("::")[0], options.commands)):
        if why := why_no_file(file):
            print_error(f"{program_name()} debug: {file}: {why}")
            return _WRONG
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_ENDED))  # after the program has ended
    program = DebuggedProgram(
        options.program or "",
        tuple(options.arguments),
        options.checks,
        options.order,
        optimised=options.optimised,
    )
    try:
        if options.adapter:
            return Adapter(program, sys.stdin.buffer, sys.stdout.buffer).run()
        if options.port is not None:
            return serve_port(program, options.port, print_error)
        if options.commands is None:
            return run_terminal(program, sys.stdin, print_text)
        with open(options.commands) as commands:
            return run_terminal(program, commands, print_text)
    except (DebuggerError, OSError, OverflowError) as error:
        print_error(f"{program_name()} debug: {error}")
        return _WRONG


def _run_program(options: argparse.Namespace, sources: Sources) -> int:
    program: str = options.program
    if program.endswith(".json"):
        from ..testing.verify import SavedFinding  # imports Hypothesis

        saved = SavedFinding.read(Path(program))
        sources.add(saved.source_file, saved.source)
        return int(bool(saved.faults()))
    if "::" in program:
        import pytest

        return int(pytest.main(["-q", "-p", "no:cacheprovider", program, *options.arguments]))
    from .check import CheckOptions, run_check
    from .script import run_script

    if options.checks:
        return run_check(program, options.arguments, CheckOptions(options.checks))
    return run_script(program, options.arguments).status
