"""The debugger in a terminal: its commands, which an editor's debug console has, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TextIO

from ptx.emulate.debug.expression import ExpressionError, parsed
from ptx.emulate.debug.stops import ANY, Breakpoint, Stop, Watchpoint
from ptx.standard_streams import write_error

from .debugger import MOVES, DebuggedProgram, Debugger, DebuggerError, on_interrupt
from .inspector import TOLD, Body, thread_id

_PROMPT: Final = "(cudadrv) "
_PLACE: Final = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d{1,9})|(?P<name>[\w:<>]*\w[\w:<>]*|\*)")
_LINE: Final = re.compile(r"\d+(\s|$)")
_CONDITION: Final = re.compile(r"\s+if\s+")
_OF: Final = re.compile(r"\s+(block|thread)\s+(\d+(?:,\d+)*)")
_DATA: Final = re.compile(r"(global|shared|local) (\d{1,9}) (\d{1,20}) (\d{1,20}) (.*)", re.DOTALL)
_MOST_FRAMES: Final = 99
_OWN: Final = "commands"  # the group of breakpoints
_INTERRUPTED: Final = 130
HELP: Final = """\
break PLACE [block X,Y,Z] [thread X,Y,Z] [if CONDITION]
                           LINE of the script, FILE:LINE, ptx:LINE or a kernel
watch NAME[INDEX]          stop before a write; `rwatch`: before a read, too
info breakpoints           list breakpoints and watchpoints; `delete N`, `delete`: all
continue, step, next, finish, stepi, nexti       go on; `run` begins, too
rcontinue, rstep, rnext, rfinish, rstepi, rnexti go back
print EXPRESSION           such as x[i], tile[0:8], %r3, isnan(sum)
info args|locals|shared|registers|warp|barriers|host
thread X,Y,Z; block X,Y,Z [thread X,Y,Z]         choose a thread of the blocks that run
where, list; frame N       the calls; the lines around; choose a call, as `up`, `down`
quit"""
_SHORT: Final = {
    "c": "continue", "s": "step", "n": "next", "si": "stepi", "ni": "nexti", "b": "break",
    "p": "print", "bt": "where", "l": "list", "q": "quit", "rc": "rcontinue", "rs": "rstep",
    "rn": "rnext", "rsi": "rstepi", "h": "help", "i": "info", "f": "frame",
    "run": "continue", "r": "continue",
}  # fmt: skip


class Commands:
    """Commands for a debugger.

    Attributes:
        thread: the number of the chosen thread; None if no kernel is stopped.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.debugger: Debugger = debugger
        self.thread: int | None = None
        self._depth = 0
        self._texts: dict[int, str] = {}  # of breakpoints and watchpoints
        self._commands: Mapping[str, Callable[[str], str]] = {
            "break": self._break, "watch": self._watch,
            "rwatch": lambda text: self._watch(text, reads=True), "delete": self._delete,
            "print": self._print, "info": self._info, "thread": self._choose_thread,
            "block": self._choose_block, "frame": self._choose_frame, "help": lambda _: HELP,
            "where": lambda _: self._ask("where", first=0, end=_MOST_FRAMES),
            "list": lambda _: self._ask("list"),
            "up": lambda _: self._choose_frame(str(self._depth + 1)),
            "down": lambda _: self._choose_frame(str(self._depth - 1)),
        }  # fmt: skip

    def choose(self, thread: int | None) -> None:
        """Choose a thread by its number, and its innermost frame."""
        self.thread, self._depth = thread, 0

    def run(self, text: str) -> str:
        """Run a command; return what it says.

        Raises:
            DebuggerError: it cannot be done, with the reason.
        """
        word, rest = word_of(text)
        if is_move(word):
            end = self.debugger.move(word, self.thread)
            self.choose(None if end is None else thread_id(end.thread))
            return self._told(end)
        return self._commands[word](rest) if word in self._commands else self._print(text)

    def has(self, word: str) -> bool:
        """Return whether a word is a command that leaves the threads where they are."""
        return word in self._commands

    def _told(self, end: Stop | None) -> str:
        if end is None:
            return f"the program ended with status {self.debugger.status}"
        lines = [f"{end.kind}: {end.text}"] if end.text else []
        if end.kind == "breakpoint":
            lines = [f"breakpoint {end.number}", *([end.text] if end.text else [])]
        return "\n".join([*lines, self._here()])

    def _ask(self, command: str, **values: Any) -> Any:  # JSON
        if self.thread is None:
            raise DebuggerError("no kernel is stopped")
        return self.debugger.ask(command, threadId=self.thread, depth=self._depth, **values)

    # Places to stop at.

    def _break(self, text: str) -> str:
        script = Path(self.debugger.program.file.partition("::")[0])
        if _LINE.match(text) and script.suffix == ".py":
            text = f"{script.name}:{text}"
        breakpoint = parse_breakpoint(text, 0)
        breakpoint = replace(breakpoint, number=self.debugger.number())
        former = self.debugger.breakpoints.get(_OWN, ())
        self.debugger.breakpoints[_OWN] = (*former, breakpoint)
        self._texts[breakpoint.number] = f"break {text}"
        said = f"breakpoint {breakpoint.number} at {text}"
        if self.thread is not None:
            known = self._ask("verified", breakpoints=[breakpoint])
            message = place_of(breakpoint, known.get(breakpoint.number)).get("message", "")
            said += f": {message}" * bool(message)
        return said

    def _watch(self, text: str, *, reads: bool = False) -> str:
        info = self._ask("dataBreakpointInfo", name=text)
        if info["dataId"] is None:
            raise DebuggerError(info["description"])
        watchpoint = watchpoint_of(info["dataId"], self.debugger.number(), reads=reads)
        self.debugger.wanted.watchpoints += (watchpoint,)
        self._texts[watchpoint.number] = f"{'r' * reads}watch {text}"
        return f"watchpoint {watchpoint.number} at {text}: {watchpoint.space} {watchpoint.first:#x}"

    def _delete(self, text: str) -> str:
        numbers = coordinates(text) if text else tuple(self._texts)
        for number in numbers:
            if self._texts.pop(number, None) is None:
                raise DebuggerError(f"{number} is no breakpoint or watchpoint")
        debugger = self.debugger
        debugger.breakpoints[_OWN] = tuple(
            each for each in debugger.breakpoints.get(_OWN, ()) if each.number not in numbers
        )
        debugger.wanted.watchpoints = tuple(
            each for each in debugger.wanted.watchpoints if each.number not in numbers
        )
        return self._list_breakpoints()

    def _list_breakpoints(self) -> str:
        lines = [f"{number}: {text}" for number, text in self._texts.items()]
        return "\n".join(lines) or "no breakpoints and watchpoints"

    # Looking.

    def _print(self, text: str) -> str:
        value: str = self._ask("evaluate", expression=text)["result"]
        return value

    def _info(self, what: str) -> str:
        if what in ("breakpoints", "watchpoints", "b"):
            return self._list_breakpoints()
        what = {"args": "arguments", "threads": "warp"}.get(what, what)
        if what not in TOLD:
            raise DebuggerError(
                "info args, locals, shared, registers, warp, barriers, host or breakpoints"
            )
        told: str = self._ask("info", what=what)
        return told

    def _choose_thread(self, text: str, block: tuple[int, ...] | None = None) -> str:
        self.choose(self._ask("thread", block=block, thread=coordinates(text)))
        return self._here()

    def _choose_block(self, text: str) -> str:
        block, _, thread = text.partition("thread")
        return self._choose_thread(thread.strip() or "0", coordinates(block))

    def _choose_frame(self, text: str) -> str:
        former, self._depth = self._depth, coordinates(text)[0]
        try:
            self._ask("list")
        except DebuggerError:
            self._depth = former
            raise
        return self._here()

    def _here(self) -> str:
        told: str = self._ask("where", first=self._depth, end=self._depth + 1)
        return told


def parse_breakpoint(text: str, number: int) -> Breakpoint:
    """Return the breakpoint of a text such as `saxpy.cu:7 thread 3 if i > 5`.

    Raises:
        DebuggerError: it is none.
    """
    place, *condition = _CONDITION.split(text, maxsplit=1)
    try:
        for each in condition:
            parsed(each)
    except ExpressionError as error:
        raise DebuggerError(str(error)) from None
    only = {name: coordinates(numbers) for name, numbers in _OF.findall(place)}
    place = _OF.sub("", place).strip()
    match = _PLACE.fullmatch(place)
    if match is None:
        raise DebuggerError(f"{place!r}: give FILE:LINE, ptx:LINE or the name of a kernel")
    file, line = match["file"] or "", int(match["line"] or 0)
    kernel = "" if line else (match["name"] or ANY)
    file = "" if file == "ptx" else file
    block, thread = only.get("block", ()), only.get("thread", ())
    return Breakpoint(number, file, line, kernel, block, thread, "".join(condition))


def word_of(text: str) -> tuple[str, str]:
    """Return the whole word of a command, and the text after it."""
    word, _, rest = text.strip().partition(" ")
    return _SHORT.get(word, word), rest.strip()


def is_move(word: str) -> bool:
    """Return whether threads go on, or back, by a command."""
    return word in MOVES or word.removeprefix("r") in MOVES


def watchpoint_of(data: str, number: int, *, reads: bool) -> Watchpoint:
    """Return the watchpoint of a data id, which the inspector has made.

    Raises:
        DebuggerError: it is none.
    """
    match = _DATA.fullmatch(data)
    if match is None:
        raise DebuggerError(f"dataId is {data!r}: take it from dataBreakpointInfo")
    space, block, first, end, name = match.groups()
    return Watchpoint(number, name, space, int(first), int(end), int(block), reads)


def place_of(breakpoint: Breakpoint, line: int | None) -> Body:
    """Return the protocol's description of a breakpoint that stops at a line, if it does."""
    place: Body = {"id": breakpoint.number, "verified": line is not None}
    if breakpoint.file:
        place["line"] = line or breakpoint.line
    if line is None:
        place["message"] = "no kernel so far has code there"
    elif breakpoint.file and line != breakpoint.line:
        place["message"] = f"line {breakpoint.line} has no code: moved to line {line}"
    return place


def coordinates(text: str) -> tuple[int, ...]:
    """Return the numbers of a text such as `3` or `0,1,0`.

    Raises:
        DebuggerError: there are none.
    """
    try:
        numbers = tuple(int(each) for each in text.strip().strip("()").split(","))
    except ValueError:
        numbers = ()
    if not 1 <= len(numbers) <= 3:
        raise DebuggerError(f"{text!r}: give coordinates such as 3 or 0,1,0")
    return numbers


def run_terminal(program: DebuggedProgram, source: TextIO, show: Callable[[str], None]) -> int:
    """Read commands until the program has ended; return its status.

    An empty line repeats the last command. Commands of a file are shown, too.
    """
    debugger = Debugger(program)
    try:
        commands, last = Commands(debugger), ""
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
            debugger.is_interrupted = False
            try:
                if last:
                    with on_interrupt(debugger.pause):
                        show(commands.run(last))
            except DebuggerError as error:
                show(str(error))
        return debugger.status
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        debugger.close()
