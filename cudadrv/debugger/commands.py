"""The commands of the terminal, which an editor's debug console has, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ptx.emulate.debug.stops import ANY, Breakpoint, Plan, Stop, Thread, Watchpoint

from .debugger import Debugger, DebuggerError, Ended

_MOST_FRAMES: Final = 5
_PLACE: Final = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)|(?P<name>[\w:<>*]+)")
_CONDITION: Final = re.compile(r"\s+if\s+")
_OF: Final = re.compile(r"\s+(block|thread)\s+(\d+(?:,\d+)*)")
HELP: Final = """\
break PLACE [block X,Y,Z] [thread X,Y,Z] [if CONDITION]  FILE:LINE, ptx:LINE or a kernel
watch NAME[INDEX]          stop before a write; `rwatch`: before a read, too
delete                     delete all breakpoints and watchpoints
continue, step, next, finish, stepi, nexti       go on
rcontinue, rstep, rnext, rfinish, rstepi, rnexti go back
print EXPRESSION           such as x[i], tile[0:8], %r3, isnan(sum)
info args|locals|shared|registers|warp|barriers|host
thread X,Y,Z; block X,Y,Z [thread X,Y,Z]         choose a thread of the blocks that run
where, list                the calls; the lines around
quit"""
_STEPS: Final[Mapping[str, Plan]] = {
    "continue": Plan(), "step": Plan("line", "in"), "next": Plan("line", "over"),
    "finish": Plan("line", "out"), "stepi": Plan("instruction", "in"),
    "nexti": Plan("instruction", "over"),
}  # fmt: skip
_SHORT: Final = {
    "c": "continue", "s": "step", "n": "next", "si": "stepi", "ni": "nexti", "b": "break",
    "p": "print", "bt": "where", "l": "list", "q": "quit", "rc": "rcontinue", "rs": "rstep",
    "rn": "rnext", "rsi": "rstepi", "h": "help", "i": "info",
}  # fmt: skip


class Commands:
    """Commands for a debugger, with a chosen thread and frame.

    Attributes:
        thread: the chosen thread; depth: the chosen frame.
        sources: CUDA sources by their names, as far as files have them.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.debugger: Debugger = debugger
        self.thread: Thread | None = None
        self.depth: int = 0
        self._number = 0
        self._group: list[Breakpoint] = []
        self._commands: Mapping[str, Callable[[str], str]] = {
            "break": self._break, "watch": self._watch, "rwatch": self._watch_reads,
            "delete": self._delete, "print": self._print, "info": self._info,
            "thread": self._choose, "block": self._choose_block, "where": self._where,
            "list": self._list, "help": lambda _: HELP,
        }  # fmt: skip

    def run(self, text: str) -> str:
        """Run a command; return what it says.

        Raises:
            DebuggerError: it cannot be done, with the reason.
        """
        word, _, rest = text.strip().partition(" ")
        word = _SHORT.get(word, word)
        back = word[:1] == "r" and word[1:] in _STEPS
        if word in _STEPS or back:
            return self.told(self.step(_STEPS[word[back:]], back=back))
        if word not in self._commands:
            return self._print(text)
        return self._commands[word](rest.strip())

    def is_query(self, text: str) -> bool:
        """Return whether a text is a command that leaves the threads where they are."""
        word = text.strip().partition(" ")[0]
        return _SHORT.get(word, word) in self._commands

    def step(self, plan: Plan, *, back: bool) -> Stop | Ended:
        """Go on, or back, by a plan of the chosen thread."""
        if plan.kind != "go":
            if self.thread is None:
                raise DebuggerError("no kernel is stopped")
            frames = self.debugger.ask("frames", thread=asdict(self.thread))
            plan = Plan(plan.kind, plan.depth, self.thread, max(len(frames) - 1, 0))
        end = self.debugger.back(plan) if back else self.debugger.go(plan)
        self.thread, self.depth = (None if isinstance(end, Ended) else end.thread), 0
        return end

    def told(self, end: Stop | Ended) -> str:
        """Return a stop in words."""
        if isinstance(end, Ended):
            return f"the program ended with status {end.status}"
        lines = [f"{end.kind}: {end.text}"] if end.kind in _TOLD else []
        if end.kind == "breakpoint":
            lines = [f"breakpoint {end.text}"]
        return "\n".join([*lines, self._where("1")])

    # Places to stop at.

    def _break(self, text: str) -> str:
        self._number += 1
        self._group.append(parse_breakpoint(text, self._number))
        self.debugger.wanted.breakpoints["commands"] = tuple(self._group)
        return f"breakpoint {self._number} at {text}"

    def _watch(self, text: str, *, reads: bool = False) -> str:
        place = self.debugger.ask("place", text=text, **self._chosen())
        self._number += 1
        watchpoint = Watchpoint(self._number, text, reads=reads, **place)
        self.debugger.wanted.watchpoints += (watchpoint,)
        return f"watchpoint {self._number} at {text}: {place['space']} {place['first']:#x}"

    def _watch_reads(self, text: str) -> str:
        return self._watch(text, reads=True)

    def _delete(self, _: str) -> str:
        self._group.clear()
        self.debugger.wanted.breakpoints.pop("commands", None)
        self.debugger.wanted.watchpoints = ()
        return "no breakpoints and watchpoints"

    # Looking.

    def _chosen(self) -> dict[str, Any]:
        if self.thread is None:
            raise DebuggerError("no kernel is stopped")
        return {"thread": asdict(self.thread), "depth": self.depth}

    def _print(self, text: str) -> str:
        value: str = self.debugger.ask("evaluate", text=text, **self._chosen())["value"]
        return value

    def _info(self, what: str) -> str:
        if what == "host":
            return host_text(self.debugger.ask("host"))
        if what == "barriers":
            return "\n".join(self.debugger.ask("barriers")) or "no thread waits at a barrier"
        chosen = self._chosen()
        if what == "warp":
            return warp_text(self.debugger.ask("warp", thread=chosen["thread"]))
        scope = {"args": "arguments"}.get(what, what)
        if scope not in ("arguments", "locals", "shared", "registers"):
            raise DebuggerError("info args, locals, shared, registers, warp, barriers or host")
        variables = self.debugger.ask("variables", scope=scope, **chosen)
        return "\n".join(f"{each['name']} = {each['value']}" for each in variables) or "none"

    def _choose(self, text: str) -> str:
        lanes = self.debugger.ask("warp", thread=self._chosen()["thread"])
        return self._choose_in(lanes[0]["block"], text)

    def _choose_block(self, text: str) -> str:
        block, _, thread = text.partition("thread")
        return self._choose_in(coordinates(block), thread.strip() or "0")

    def _choose_in(self, block: tuple[int, ...], thread: str) -> str:
        found = self.debugger.ask("thread", block=block, thread=coordinates(thread))
        self.thread, self.depth = Thread(**found), 0
        return self._where("1")

    def _where(self, most: str) -> str:
        if self.thread is None:
            raise DebuggerError("no kernel is stopped")
        lanes = self.debugger.ask("warp", thread=asdict(self.thread))
        (lane,) = [each for each in lanes if each["thread"] == asdict(self.thread)]
        frames = self.debugger.ask("frames", thread=asdict(self.thread))
        lines = [f"block {tuple(lane['block'])}, thread {tuple(lane['at'])}: {lane['state']}"]
        for number, frame in enumerate(frames[: int(most or 99)]):
            place = f"PTX line {frame['ptx']}"
            if frame["line"] is not None:
                file = Path(frame["path"] or frame["file"]).name
                place = f"{file}:{frame['line']} ({place})"
            lines.append(f"#{number} {frame['function']} at {place}: {frame['instruction']}")
        return "\n".join(lines)

    def _list(self, _: str) -> str:
        frame = self.debugger.ask("frames", thread=self._chosen()["thread"])[self.depth]
        line = frame["ptx"] if frame["line"] is None else frame["line"]
        if frame["path"]:
            text = Path(frame["path"]).read_text(errors="replace")
        else:
            number = frame["module"] if frame["line"] is None else frame["source"]
            text = self.debugger.ask("source", number=number)
        first = max(line - 5, 1)
        lines = text.split("\n")[first - 1 : line + 4]
        return "\n".join(
            f"{'>' if number == line else ' '}{number:5} {each}"
            for number, each in enumerate(lines, first)
        )


_TOLD: Final = ("exception", "finding", "watchpoint", "entry")


def parse_breakpoint(text: str, number: int) -> Breakpoint:
    """Return the breakpoint of a text such as `saxpy.cu:7 thread 3 if i > 5`.

    Raises:
        DebuggerError: it is none.
    """
    place, *condition = _CONDITION.split(text, maxsplit=1)
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
        return tuple(int(each) for each in text.strip().strip("()").split(","))
    except ValueError:
        raise DebuggerError(f"{text!r}: give coordinates such as 3 or 0,1,0") from None


def warp_text(lanes: list[dict[str, Any]]) -> str:
    """Return the states of a warp's threads, equal ones together."""
    groups: dict[tuple[str, int], list[int]] = {}
    for lane in lanes:
        groups.setdefault((lane["state"], lane["ptx"]), []).append(lane["thread"]["number"] % 32)
    return "\n".join(
        f"lanes {_ranges(numbers)}: {state}" + (f", next PTX line {line}" if line else "")
        for (state, line), numbers in groups.items()
    )


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def host_text(host: dict[str, Any]) -> str:
    """Return the host's call, and what is queued."""
    lines = [
        f"the host is in {name} at {file}:{line}"
        for file, line, name in host["frames"][:_MOST_FRAMES]
    ]
    for work in host["work"]:
        state = "runs" if work["is_running"] else "has not run"
        lines.append(f"{work['kind']} {work['number']} of stream {work['stream']} {state}, "
                     f"queued at {work['call']}")  # fmt: skip
    return "\n".join(lines)
