"""The debugger in a terminal: it reads commands, and prints what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TextIO

from ptx.standard_streams import write_error

from .commands import Commands
from .debugger import Debugger, DebuggerError
from .program import DebuggedProgram

_PROMPT: Final = "(cudadrv) "


def run_terminal(
    program: DebuggedProgram, breaks: Sequence[str], source: TextIO, show: Callable[[str], None]
) -> int:
    """Read commands until the program has ended; return its status.

    An empty line repeats the last command. Commands of a file are shown, too.
    """
    debugger = Debugger(program.command, program.settings)
    try:
        commands, last = Commands(debugger), ""
        for place in breaks:
            show(commands.run(f"break {place}"))
        if source.isatty():
            show("`continue` begins; `help` lists the commands")
        while debugger.status is None:
            if source.isatty():
                write_error(_PROMPT)
            line = source.readline()
            last = line.strip() or last
            if line.strip() and not source.isatty():
                show(f"{_PROMPT}{last}")
            if not line or last in ("q", "quit"):
                return 0
            try:
                if last:
                    show(commands.run(last))
            except DebuggerError as error:
                show(str(error))
        return debugger.status
    finally:
        debugger.close()
