"""The debugger in a terminal: its commands, which an editor's debug console has, too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TextIO

from ptx.emulate.debug.expression import ExpressionError, parsed
from ptx.emulate.debug.stops import ANY, Breakpoint, Stop, Watchpoint
from ptx.standard_streams import write_error

from .debugger import MOVES, DebuggedProgram, Debugger, DebuggerError, Ended
from .inspector import TOLD, thread_id

_PROMPT: Final = "(cudadrv) "
_PLACE: Final = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d{1,9})|(?P<name>[\w:<>]*\w[\w:<>]*|\*)")
_CONDITION: Final = re.compile(r"\s+if\s+")
_OF: Final = re.compile(r"\s+(block|thread)\s+(\d+(?:,\d+)*)")
_MOST_FRAMES: Final = 99
_INTERRUPTED: Final = 130
HELP: Final = """\
break PLACE [block X,Y,Z] [thread X,Y,Z] [if CONDITION]  FILE:LINE, ptx:LINE or a kernel
watch NAME[INDEX]          stop before a write; `rwatch`: before a read, too
delete                     delete all breakpoints and watchpoints
continue, step, next, finish, stepi, nexti       go on
rcontinue, rstep, rnext, rfinish, rstepi, rnexti go back
print EXPRESSION           such as x[i], tile[0:8], %r3, isnan(sum)
info args|locals|shared|registers|warp|barriers|host
thread X,Y,Z; block X,Y,Z [thread X,Y,Z]         choose a thread of the blocks that run
where, list; frame N       the calls; the lines around; choose a call
quit"""
_SHORT: Final = {
    "c": "continue", "s": "step", "n": "next", "si": "stepi", "ni": "nexti", "b": "break",
    "p": "print", "bt": "where", "l": "list", "q": "quit", "rc": "rcontinue", "rs": "rstep",
    "rn": "rnext", "rsi": "rstepi", "h": "help", "i": "info", "f": "frame",
}  # fmt: skip


class Commands:
    """Commands for a debugger, with a chosen thread and frame."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._thread: int | None = None
        self._depth = 0
        self._commands: Mapping[str, Callable[[str], str]] = {
            "break": self._break, "watch": self._watch,
            "rwatch": lambda text: self._watch(text, reads=True), "delete": self._delete,
            "print": self._print, "info": self._info, "thread": self._choose_thread,
            "block": self._choose_block, "frame": self._choose_frame, "help": lambda _: HELP,
            "where": lambda _: self._ask("where", first=0, end=_MOST_FRAMES),
            "list": lambda _: self._ask("list"),
        }  # fmt: skip

    def choose(self, thread: int | None) -> None:
        """Choose a thread by its number, and its innermost frame."""
        self._thread, self._depth = thread, 0

    def run(self, text: str) -> str:
        """Run a command; return what it says.

        Raises:
            DebuggerError: it cannot be done, with the reason.
        """
        word, _, rest = text.strip().partition(" ")
        word = _SHORT.get(word, word)
        if word in MOVES or (word[:1] == "r" and word[1:] in MOVES):
            end = self._debugger.move(word, self._thread)
            self.choose(None if isinstance(end, Ended) else thread_id(end.thread))
            return self._told(end)
        if word in self._commands:
            return self._commands[word](rest.strip())
        return self._print(text)

    def is_query(self, text: str) -> bool:
        """Return whether a text is a command that leaves the threads where they are."""
        word = text.strip().partition(" ")[0]
        return _SHORT.get(word, word) in self._commands

    def _told(self, end: Stop | Ended) -> str:
        if isinstance(end, Ended):
            return f"the program ended with status {end.status}"
        lines = [f"{end.kind}: {end.text}"] if end.text else []
        if end.kind == "breakpoint":
            lines = [f"breakpoint {end.number}"]
        return "\n".join([*lines, self._here()])

    def _ask(self, command: str, **values: Any) -> Any:  # JSON
        if self._thread is None:
            raise DebuggerError("no kernel is stopped")
        return self._debugger.ask(command, threadId=self._thread, depth=self._depth, **values)

    # Places to stop at.

    def _break(self, text: str) -> str:
        breakpoint = parse_breakpoint(text, 0)
        breakpoint = replace(breakpoint, number=self._debugger.number())
        former = self._debugger.breakpoints.get("commands", ())
        self._debugger.breakpoints["commands"] = (*former, breakpoint)
        said = f"breakpoint {breakpoint.number} at {text}"
        if self._thread is not None and not self._ask("verified", breakpoints=[breakpoint]):
            said += ": no kernel so far has code there"
        return said

    def _watch(self, text: str, *, reads: bool = False) -> str:
        info = self._ask("dataBreakpointInfo", name=text)
        if info["dataId"] is None:
            raise DebuggerError(info["description"])
        place = json.loads(info["dataId"])
        watchpoint = Watchpoint(self._debugger.number(), reads=reads, **place)
        self._debugger.wanted.watchpoints += (watchpoint,)
        return f"watchpoint {watchpoint.number} at {text}: {place['space']} {place['first']:#x}"

    def _delete(self, _: str) -> str:
        self._debugger.breakpoints.pop("commands", None)
        self._debugger.wanted.watchpoints = ()
        return "no breakpoints and watchpoints"

    # Looking.

    def _print(self, text: str) -> str:
        value: str = self._ask("evaluate", expression=text)["result"]
        return value

    def _info(self, what: str) -> str:
        what = {"args": "arguments"}.get(what, what)
        if what not in TOLD:
            raise DebuggerError("info args, locals, shared, registers, warp, barriers or host")
        told: str = self._ask("info", what=what)
        return told

    def _choose_thread(self, text: str) -> str:
        return self._choose(None, text)

    def _choose_block(self, text: str) -> str:
        block, _, thread = text.partition("thread")
        return self._choose(coordinates(block), thread.strip() or "0")

    def _choose(self, block: tuple[int, ...] | None, thread: str) -> str:
        self.choose(self._ask("thread", block=block, thread=coordinates(thread)))
        return self._here()

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


def run_terminal(
    program: DebuggedProgram, breaks: Sequence[str], source: TextIO, show: Callable[[str], None]
) -> int:
    """Read commands until the program has ended; return its status.

    An empty line repeats the last command. Commands of a file are shown, too.
    """
    places = [parse_breakpoint(text, 0) for text in breaks]
    debugger = Debugger(program)
    try:
        commands, last = Commands(debugger), ""
        debugger.breakpoints["options"] = tuple(
            replace(each, number=debugger.number()) for each in places
        )
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
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        debugger.close()
