"""The debugger: it starts the program in another process, and goes forwards and backwards in it.

The program's own process is at the furthest time that was reached. Copies of the process sleep at
earlier times. To go back, a copy repeats the time up to the wanted instruction.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from ptx.emulate.debug.stops import Breakpoint, Orders, Plan, Searched, Stop

from ..errors import CudadrvError
from .debuggee import ADDRESS, CAN_FORK, receive_end, send_end
from .inspector import Body, thread_id, thread_of

MOST_COPIES: Final = 12
MOVES: Final[Mapping[str, Plan]] = {
    "continue": Plan(), "step": Plan("line", "in"), "next": Plan("line", "over"),
    "finish": Plan("line", "out"), "stepi": Plan("instruction", "in"),
    "nexti": Plan("instruction", "over"),
}  # fmt: skip
"""The words for going on; with "r" before them they go back."""
_OUTPUT_S: Final = 300  # of the output's rest, which another process may have open
LOOK_S: Final = 0.1
"""How long a wait goes on before it looks at what signals and other threads want."""
_REPEATED: Final = ("breakpoint", "watchpoint", "exception")  # stops that a search finds again
_AT_ONCE: Final = os.cpu_count() or 1
_LATER: Final = "launches after this one cannot be repeated, and may have later stops"
_EARLIER: Final = "launches before this one cannot be repeated, and may have earlier stops"
_INTERRUPTED: Final = "interrupted: the threads are where they were"


class DebuggerError(CudadrvError):
    """Something that the debugger cannot do now."""


@dataclass(frozen=True, slots=True)
class DebuggedProgram:
    """A program.

    Attributes:
        file: a script, a saved finding, or a test; arguments: of the script.
        checks: the checks whose findings stop, separated by commas.
        order: when the work of streams runs; "" is the usual order.
        optimised: whether kernels are compiled as usual.
    """

    file: str = ""
    arguments: tuple[str, ...] = ()
    checks: str = ""
    order: str = ""
    optimised: bool = False

    @property
    def command(self) -> list[str]:
        """The command of the debuggee."""
        options = ["--checks", self.checks] if self.checks else []
        return [sys.executable, "-m", "cudadrv", "debug", *options, self.file, *self.arguments]

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables of the debuggee."""
        driver = os.environ.get("CUDADRV_DRIVER", "").strip()
        settings = {
            "CUDADRV_DRIVER": driver if driver.startswith("emulator") else "emulator",
            "CUDADRV_CHECK": self.checks, "CUDADRV_EMULATOR_ORDER": self.order,
            "CUDADRV_DEVICE_DEBUG": "" if self.optimised else "1", "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        return {name: value for name, value in settings.items() if value}


@dataclass(slots=True)
class _Copy:
    """A sleeping copy of the program's process, at a time."""

    time: int
    connection: Connection


@dataclass(slots=True)
class _Here:
    """A process that has stopped, and its stop; None before the first one."""

    connection: Connection
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class KnownSpan:
    """Times from `first` to before `end` in which all stops at some places are known.

    Attributes:
        places: the breakpoints and the watchpoints; hits: the stops.
    """

    first: int
    end: int
    places: tuple[object, ...]
    hits: tuple[Stop, ...]


class Debugger:
    """One program that is debugged.

    Args:
        program: what to run.
        output: called with the program's output; None leaves it on this process's streams.

    Attributes:
        breakpoints: by the names that their owner gives to groups of them; wanted: other places to
            stop at.
        program: what runs; status: its exit status, None while it runs.
        number: returns a number for a breakpoint or watchpoint.
        is_interrupted: whether what runs is to stop, or the search for a way back is to end;
            has_changed: whether threads that run are to follow other breakpoints. Other threads and
            signal handlers may set these; `move` sees them wherever it is.
        copies_made: how many copies of the program's process there were.
        searched: the times of the parts that searches have repeated.

    Raises:
        DebuggerError: there is no such program.
    """

    def __init__(
        self, program: DebuggedProgram, output: Callable[[str, str], None] | None = None
    ) -> None:
        self.breakpoints: dict[str, tuple[Breakpoint, ...]] = {}
        self.wanted: Orders = Orders()
        self.program: DebuggedProgram = program
        self.status: int | None = None
        self.number: Callable[[], int] = itertools.count(1).__next__
        self.is_interrupted: bool = False
        self.has_changed: bool = False
        self.copies_made: int = 0
        self.searched: list[tuple[int, int]] = []
        self._lock = threading.Lock()  # of the conversation with the process that has stopped
        self._copies: list[_Copy] = []
        self._findings: list[Stop] = []  # at the instructions that they are of
        self._known: list[KnownSpan] = []
        if not os.path.isfile(program.file.partition("::")[0]):
            raise DebuggerError(f"program {program.file!r}: there is no such file")
        ours, theirs = Pipe()
        self._here = self._main = _Here(ours)
        with theirs:
            self.process: subprocess.Popen[bytes] = _start(program, theirs.fileno(), output)
        self._readers = [
            threading.Thread(target=_forward, args=(stream, name, output), daemon=True)
            for name, stream in (("stdout", self.process.stdout), ("stderr", self.process.stderr))
            if stream is not None
        ]
        for reader in self._readers:
            reader.start()

    @property
    def stop(self) -> Stop | None:
        """The present stop; None before the first one, while threads run and after the end."""
        return self._here.stop

    def _every(self) -> tuple[Breakpoint, ...]:
        groups = self.breakpoints.copy()  # which another thread may add to
        return tuple(each for group in groups.values() for each in group)

    @property
    def _places(self) -> tuple[object, ...]:
        """What the stops of a run depend on, besides the program."""
        return self._every(), self.wanted.watchpoints

    def _orders(self, plan: Plan) -> Orders:
        return replace(self.wanted, breakpoints=self._every(), plan=plan)

    # Going on.

    def move(self, word: str, thread: int | None = None) -> Stop | None:
        """Go on, or back, by one of `MOVES`; a step is of the thread of this number.

        Returns:
            The stop; None if the program has ended.

        Raises:
            DebuggerError: there is nothing to go on from, or to go back to.
        """
        is_back = word not in MOVES
        plan = MOVES[word[is_back:]]
        with self._lock:
            try:
                if plan.kind != "go":
                    if self.stop is None:
                        raise DebuggerError("no kernel is stopped")
                    number = thread_id(self.stop.thread) if thread is None else thread
                    depth = self._ask(self._here.connection, "depth", {"threadId": number})
                    stepping = thread_of(number, self.stop.thread.launch)
                    plan = replace(plan, thread=stepping, until_depth=depth)
                return self._back(plan) if is_back else self._go(plan)
            finally:
                self.is_interrupted = False

    def pause(self) -> None:
        """Stop at the next instruction of a kernel, or end a way back."""
        self.is_interrupted = True

    def ask(self, command: str, **arguments: Any) -> Any:  # JSON
        """Return what the stopped process answers.

        Raises:
            DebuggerError: there is no answer; with the reason.
        """
        if not self._lock.acquire(blocking=False):
            raise DebuggerError("the program runs")
        try:
            return self._ask(self._here.connection, command, arguments)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the program and its copies."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)  # with all copies
        self.process.kill()
        self.process.wait()
        connections = [self._main.connection, self._here.connection]
        for connection in (*connections, *(copy.connection for copy in self._copies)):
            connection.close()

    def _go(self, plan: Plan) -> Stop | None:
        """Go forwards to the next stop, or to the end of the program."""
        left: list[tuple[int, int]] = []
        stop = self._repeat(plan, left) or self._go_main(plan)
        if left and stop is not None and plan.kind == "go" and self._may_stop_in(left):
            return noted(stop, _EARLIER)
        return stop

    def _repeat(self, plan: Plan, left: list[tuple[int, int]]) -> Stop | None:
        """Repeat the run up to the next stop; None at its end, without one.

        `left` receives the times that no copy can repeat.
        """
        while self._here is not self._main:
            now, last = self._time, self._main.stop
            assert last is not None
            ahead = min(
                [e for e in (*self._findings, last) if e.time > now] or [last],
                key=lambda stop: stop.time,
            )
            kind, at, *_ = self._run(self._here.connection, replace(plan, until=ahead.time))
            if kind == "stop" and (at.kind != "arrived" or at.time < ahead.time):
                stop: Stop = at
                self._here.stop = stop
                return stop
            if kind == "stop" and ahead is not last:
                self._here.stop = ahead
                return ahead
            self._here.connection.close()
            later = [e for e in self._copies if kind == "ended" and at < e.time <= ahead.time]
            if kind == "ended":
                left.append((at + 1, later[0].time if later else last.time))
            if later:
                began = Stop("arrived", "", later[0].time, last.thread)
                self._here = _Here(self._wake(later[0], Orders(plan=Plan(until=began.time))), began)
                self._answer(self._here.connection)
                if self.is_interrupted:
                    return began
                continue
            self._here = self._main
            if self._is_wanted(last):
                return last
        return None

    def _is_wanted(self, stop: Stop) -> bool:
        """Return whether a stop that was made once is made again."""
        if stop.kind in ("breakpoint", "watchpoint"):
            numbers = {each.number for each in self._every()}
            return stop.number in numbers | {each.number for each in self.wanted.watchpoints}
        return stop.kind == "exception"

    def _go_main(self, plan: Plan) -> Stop | None:
        began, places = 0 if self._main.stop is None else self._main.stop.time, self._places
        self._main.stop = None
        kind, *values = self._run(self._main.connection, plan)
        if kind != "stop":
            self.status = self.process.wait()
            for reader in self._readers:
                reader.join(_OUTPUT_S)
            return None
        stop: Stop = values[0]
        self._main.stop = stop
        if plan.kind == "go" and places == self._places:
            hits = (stop,) * (stop.kind in _REPEATED)
            self._known.append(KnownSpan(began + 1, stop.time + len(hits), places, hits))
        if stop.kind == "finding" and any(copy.time < stop.time for copy in self._copies):
            # It was seen after the instruction that it is of.
            self._findings.append(replace(stop, time=stop.time - 1))
            self._main.stop = replace(stop, kind="arrived", text="")
            with suppress(DebuggerError):
                return self._travel(self._findings[-1])
        return stop

    def _run(self, connection: Connection, plan: Plan) -> tuple[Any, ...]:
        try:
            connection.send(("go", self._orders(plan)))
        except OSError:
            return "exited", None
        return self._answer(connection)

    def _answer(self, connection: Connection, *, may_end: bool = False) -> tuple[Any, ...]:
        is_pausing = False
        try:
            while True:
                if self.is_interrupted and may_end:
                    raise DebuggerError(_INTERRUPTED)
                if self.is_interrupted and not is_pausing:
                    connection.send(("pause",))
                    is_pausing = True
                if self.has_changed and not may_end:
                    self.has_changed = False
                    connection.send(("change", self._orders(Plan())))
                if connection.poll(LOOK_S):
                    answer: tuple[Any, ...] = connection.recv()
                    if answer[0] != "copy":
                        return answer
                    self._add(_Copy(answer[1], receive_end(connection)))
        except (EOFError, OSError):
            return "exited", None

    def _ask(self, connection: Connection, command: str, arguments: Body) -> Any:  # JSON
        try:
            connection.send(("ask", command, arguments))
        except OSError:
            raise DebuggerError("the program has ended") from None
        kind, answer = self._answer(connection)
        if kind == "exited":
            raise DebuggerError("the program has ended")
        if kind == "error":
            raise DebuggerError(answer)
        return answer

    # Going back.

    def _back(self, plan: Plan) -> Stop:
        """Go back to the last stop before this one, or to the first instruction that is known.

        Raises:
            DebuggerError: nothing is known of the past.
        """
        parts = self._parts()
        if not parts or self.stop is None:
            why = "" if CAN_FORK else ": this system has no fork"
            raise DebuggerError(f"nothing before this instruction can be repeated{why}")
        found = self._last_hit(parts) if plan.kind == "go" else self._last_step(parts, plan)
        if found is None:
            text = "nothing earlier can be repeated"
            found = Stop("entry", text, parts[0][0].time, self.stop.thread)
        return self._travel(found)

    def _parts(self) -> list[tuple[_Copy, int]]:
        """Return the copies before this stop, each with the end of the times that it repeats.

        A copy ends with its launch, and the next one repeats what is after it.
        """
        copies = [copy for copy in self._copies if copy.time < self._time]
        times = [copy.time for copy in copies]
        ends = self._ask(self._main.connection, "ends", {"times": times}) if copies else []
        return [
            (copy, min(end, launch_end))
            for copy, end, launch_end in zip(copies, [*times[1:], self._time], ends, strict=False)
        ]

    def _stops_known(self) -> tuple[list[KnownSpan], list[Stop]]:
        """Return the times at which all stops at the present places are known, and these stops."""
        known = [span for span in self._known if span.places == self._places]
        return known, [*self._findings, *(hit for span in known for hit in span.hits)]

    def _last_candidates(self, spans: list[tuple[int, int]]) -> list[int | None]:
        """Return the last time in each span at which one of the present places may stop."""
        if self.wanted.watchpoints:
            return [end - 1 for _, end in spans]
        arguments = {"breakpoints": self._every(), "spans": spans}
        last: list[int | None] = self._ask(self._main.connection, "logged", arguments)
        return last

    def _last_hit(self, parts: list[tuple[_Copy, int]]) -> Stop | None:
        """Return the last breakpoint, watchpoint, fault or finding in some parts.

        Where the present places were stopped at before, the stops are known. Elsewhere a part is
        repeated if an instruction in it has a breakpoint, by the log of the program's process.
        """
        places, (known, hits) = self._places, self._stops_known()
        best = max(
            (hit for hit in hits for copy, end in parts if copy.time <= hit.time < end),
            key=lambda stop: stop.time,
            default=None,
        )
        after = 0 if best is None else best.time + 1
        gaps = [
            (copy, *gap)
            for copy, end in parts
            for gap in unknown_spans(max(copy.time, after), end, known)
        ]
        last = self._last_candidates([gap[1:] for gap in gaps])
        searches = [
            (copy, Plan(since=first, until=at + 1))
            for (copy, first, _), at in zip(gaps, last, strict=True)
            if at is not None
        ]
        with closing(self._search(searches)) as searched:
            for plan, found in searched:
                stop = found.stop
                first, hit = (plan.since, ()) if stop is None else (stop.time, (stop,))
                self._known.append(KnownSpan(first, plan.until, places, hit))
                if stop is not None:
                    best = stop
                    break
        if best is None:
            return None
        repeated = [KnownSpan(copy.time, end, (), ()) for copy, end in parts]
        left = list(unknown_spans(best.time + 1, self._time, repeated))
        return noted(best, _LATER) if self._may_stop_in(left) else best

    def _may_stop_in(self, spans: list[tuple[int, int]]) -> bool:
        """Return whether the present places may have stops in some times, by what is known."""
        known, hits = self._stops_known()
        if any(first <= hit.time < end for hit in hits for first, end in spans):
            return True
        gaps = [part for first, end in spans for part in unknown_spans(first, end, known)]
        return any(at is not None for at in self._last_candidates(gaps))

    def _last_step(self, parts: list[tuple[_Copy, int]], plan: Plan) -> Stop | None:
        """Return where the last step in some parts ends; it may end between two of them."""
        later: Searched | None = None
        searches = [(copy, replace(plan, until=end)) for copy, end in parts]
        with closing(self._search(searches)) as searched:
            for _, found in searched:
                if later is not None and found.last_line not in (None, later.first_line):
                    return later.first
                if found.stop is not None:
                    return found.stop
                later = later if found.first is None else found
        return None

    def _search(
        self, searches: list[tuple[_Copy, Plan]]
    ) -> Generator[tuple[Plan, Searched], None, None]:
        """Yield what copies find in parts, the latest first; each processor searches one part."""
        running: list[tuple[Connection, Plan]] = []
        try:
            while searches or running:
                while searches and len(running) < _AT_ONCE:
                    copy, plan = searches.pop()
                    plan = replace(plan, is_search=True)
                    self.searched.append((copy.time, plan.until))
                    running.append((self._wake(copy, self._orders(plan)), plan))
                connection, plan = running[0]
                kind, *_, found = self._answer(connection, may_end=True)
                if kind == "exited":
                    raise DebuggerError("a copy of the program has ended")
                yield plan, found
                running.pop(0)[0].close()
        finally:
            for connection, _ in running:
                connection.close()  # which ends a repetition that goes on

    def _wake(self, copy: _Copy, orders: Orders) -> Connection:
        """Let a copy repeat the time from it on; return the connection of what does it."""
        ours, theirs = Pipe()
        try:
            send_end(copy.connection, theirs, "go", orders)
        except OSError:
            raise DebuggerError("a copy of the program has ended") from None
        return ours

    def _travel(self, stop: Stop) -> Stop:
        """Go to the time of a stop that was found."""
        copies = [copy for copy in self._copies if copy.time <= stop.time]
        if not copies:
            raise DebuggerError("nothing before this instruction can be repeated")
        plan = Plan(since=stop.time, until=stop.time)
        connection = self._wake(copies[-1], Orders(plan=plan))
        try:
            if self._answer(connection, may_end=True)[0] != "stop":
                raise DebuggerError("the launch did not repeat itself")
        except DebuggerError:
            connection.close()
            raise
        if self._here is not self._main:
            self._here.connection.close()
        self._here = _Here(connection, stop)
        return stop

    @property
    def _time(self) -> int:
        return 0 if self.stop is None else self.stop.time

    def _add(self, copy: _Copy) -> None:
        """Take in a copy that was made, and end one if there are many."""
        self.copies_made += 1
        self._copies.append(copy)
        if len(self._copies) > MOST_COPIES:  # the closer to each other, the sooner one goes
            gaps = [
                (after.time - before.time) / (self._copies[-1].time - before.time + 1)
                for before, after in zip(self._copies, self._copies[2:], strict=False)
            ]
            self._copies.pop(1 + gaps.index(min(gaps))).connection.close()


def _start(
    program: DebuggedProgram, handle: int, output: Callable[[str, str], None] | None
) -> subprocess.Popen[bytes]:
    """Start the debuggee, which has an end of a connection by its handle."""
    if sys.platform == "win32":
        os.set_handle_inheritable(handle, True)
    pipe = None if output is None else subprocess.PIPE
    return subprocess.Popen(
        program.command,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **program.settings, ADDRESS: str(handle)},
        start_new_session=True,
        close_fds=os.name != "nt",
        pass_fds=(handle,) if os.name != "nt" else (),
    )


def unknown_spans(first: int, end: int, known: list[KnownSpan]) -> Iterator[tuple[int, int]]:
    """Yield the spans of some times that are in no known span."""
    for span in sorted(known, key=lambda span: span.first):
        if first < min(span.first, end):
            yield first, min(span.first, end)
        first = max(first, span.end)
    if first < end:
        yield first, end


@contextmanager
def on_interrupt(call: Callable[[], object]) -> Iterator[None]:
    """Let the first Ctrl-C call a function, which raises nothing; a second one raises.

    An exception could come at any instruction, and be lost in a finalizer.
    """

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        call()

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def noted(stop: Stop, note: str) -> Stop:
    """Return a stop with a note."""
    return replace(stop, text=f"{stop.text}; {note}" if stop.text else note)


def _forward(stream: Any, name: str, output: Callable[[str, str], None]) -> None:
    with stream:
        for line in stream:
            output(name, line.decode(errors="replace"))
