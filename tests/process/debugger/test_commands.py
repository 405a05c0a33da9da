"""Commands of the terminal that need no stopped kernel."""

from __future__ import annotations

import pytest

from cudadrv.debugger.debugger import DebuggedProgram, DebuggerError
from cudadrv.debugger.terminal import Commands
from ptx.emulate.debug.stops import Breakpoint, Orders


class NoProcess:
    """A debugger of a program that has not started."""

    def __init__(self, file: str) -> None:
        self.program = DebuggedProgram(file)
        self.breakpoints: dict[str, tuple[Breakpoint, ...]] = {}
        self.wanted = Orders()
        self._numbers = 0

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(e.file, e.line) for group in self.breakpoints.values() for e in group]


def commands_of(file: str) -> tuple[NoProcess, Commands]:
    debugger = NoProcess(file)
    return debugger, Commands(debugger)  # type: ignore[arg-type]  # has what they use here


def test_a_number_alone_is_a_line_of_the_script() -> None:
    for file, expected in {
        "folder/smooth.py": ("smooth.py", 10),
        "folder/test_smooth.py::test_edges": ("test_smooth.py", 10),
        "finding.json": ("", 10),  # of the PTX
    }.items():
        debugger, commands = commands_of(file)
        commands.run("break 10")
        commands.run("b 10 thread 3")
        commands.run("break ptx:10")
        assert debugger.places == [expected, expected, ("", 10)]


def test_breakpoints_are_listed_and_deleted_by_their_numbers() -> None:
    debugger, commands = commands_of("smooth.py")
    assert commands.run("info breakpoints") == "no breakpoints and watchpoints"
    commands.run("break smooth if x[3] > 2")
    commands.run("break 7")
    assert commands.run("info breakpoints") == "1: break smooth if x[3] > 2\n2: break smooth.py:7"
    assert commands.run("delete 1") == "2: break smooth.py:7"
    assert debugger.places == [("smooth.py", 7)]
    with pytest.raises(DebuggerError, match="1 is no breakpoint or watchpoint"):
        commands.run("delete 1")
    assert commands.run("delete") == "no breakpoints and watchpoints"
    assert not debugger.places
