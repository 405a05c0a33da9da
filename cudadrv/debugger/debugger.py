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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from ptx.emulate.debug.stops import NEVER, Breakpoint, Orders, Plan, Searched, Stop, Thread

from ..errors import CudadrvError
from .debuggee import ADDRESS, CAN_FORK, MOST_COPIES, NEAR, receive_end, send_end
from .inspector import thread_id, thread_of

MOVES: Final[Mapping[str, Plan]] = {
    "continue": Plan(), "step": Plan("line", "in"), "next": Plan("line", "over"),
    "finish": Plan("line", "out"), "stepi": Plan("instruction", "in"),
    "nexti": Plan("instruction", "over"),
}  # fmt: skip
"""The words for going on; with "r" before them they go back."""
_OUTPUT_S: Final = 300  # of the output's rest, which another process may have open
LOOK_S: Final = 0.1
"""How long a wait goes on before it looks at what signals and other threads want."""
_LATER: Final = "launches after this one cannot be repeated, and may have later stops"
_EARLIER: Final = "launches before this one cannot be repeated, and may have earlier stops"
_NOTHING: Final = "nothing earlier can be repeated"
_ENDED: Final = "the program has ended"
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
    """A sleeping copy of the program's process, at a time of a launch."""

    time: int
    launch: int
    connection: Connection


@dataclass(slots=True)
class _Here:
    """A process that has stopped, and its stop; None before the first one."""

    connection: Connection
    stop: Stop | None = None


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
        self._near: _Copy | None = None  # shortly before the end of the last repetition
        self._findings: list[Stop] = []  # at the instructions that they are of
        # The stops that the run has made at some places since a time, and all faults.
        self._hits: list[Stop] = []
        self._known_places: object = None
        self._known_from = 0
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
                    depth = self._ask(self._here.connection, "ask", "depth", {"threadId": number})
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
            return self._ask(self._here.connection, "ask", command, arguments)
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
        for connection in (*connections, *(copy.connection for copy in self._until(NEVER))):
            connection.close()

    def _go(self, plan: Plan) -> Stop | None:
        """Go forwards to the next stop, or to the end of the program."""
        stop, has_left_out = self._repeat(plan)
        if self._here is self._main and stop is None:
            stop = self._go_main(plan)
        return noted(stop, _EARLIER) if stop is not None and has_left_out else stop

    def _repeat(self, plan: Plan) -> tuple[Stop | None, bool]:
        """Repeat the run up to the next stop; None at its end, without one.

        Also returns whether launches that cannot be repeated may have earlier stops.
        """
        now, copy, has_left_out = self._time, None, False
        while self._here is not self._main:
            last = self._main.stop
            assert last is not None
            findings = (each for each in self._findings if now < each.time < last.time)
            ahead = min(findings, key=lambda stop: stop.time, default=last)
            orders = self._orders(replace(plan, until=ahead.time))
            if copy is not None:
                self._here = _Here(self._wake(copy, orders))
            message = ("go", orders) if copy is None else ()
            kind, at, *_ = self._call(self._here.connection, *message)
            if kind == "stop" and (at.kind != "arrived" or at.time < ahead.time or ahead != last):
                is_ahead = at.kind == "arrived" and at.time == ahead.time
                self._here.stop = stop = ahead if is_ahead else at
                return stop, has_left_out
            self._here.connection.close()
            copy = None
            if kind == "ended":
                now, plan = at, Plan()
                copy = next((each for each in self._copies if now < each.time <= last.time), None)
                end = last.time if copy is None else copy.time
                there = self._main.connection if copy is None else copy.connection
                has_left_out |= now < end - 1 and now < self._last_time(there, end)
            if copy is None:
                self._here = self._main
                return (last if self._is_wanted(last) else None), has_left_out
        return None, False

    def _is_wanted(self, stop: Stop) -> bool:
        """Return whether a stop that was made once is made again."""
        if stop.kind in ("breakpoint", "watchpoint"):
            numbers = {each.number for each in self._every()}
            return stop.number in numbers | {each.number for each in self.wanted.watchpoints}
        return stop.kind == "exception"

    def _go_main(self, plan: Plan) -> Stop | None:
        began, places = self._time, self._places
        if plan.kind != "go" or self._known_places != places:
            self._hits = [each for each in self._hits if each.kind == "exception"]
            self._known_places, self._known_from = places, began
        self._main.stop = None
        kind, *values = self._call(self._main.connection, "go", self._orders(plan))
        if kind != "stop":
            self.status = self.process.wait()
            for reader in self._readers:
                reader.join(_OUTPUT_S)
            return None
        stop: Stop = values[0]
        self._main.stop = stop
        if stop.kind in ("breakpoint", "watchpoint", "exception"):
            self._hits.append(stop)
        if plan.kind != "go" or self._places != places:  # not all of them have stopped
            self._known_places = None
        if stop.kind == "finding" and any(copy.time < stop.time for copy in self._copies):
            # It was seen after the instruction that it is of.
            self._findings.append(replace(stop, time=stop.time - 1))
            self._main.stop = replace(stop, kind="arrived", text="")
            with suppress(DebuggerError):
                return self._travel(self._findings[-1])
        return stop

    def _call(
        self, connection: Connection, *message: Any, may_end: bool = False
    ) -> tuple[Any, ...]:
        """Send a message, if there is one, and return the answer."""
        is_pausing = False
        try:
            if message:
                connection.send(message)
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
                    if answer[0] not in ("copy", "near"):
                        return answer
                    self._add(answer[0], _Copy(answer[1], answer[2], receive_end(connection)))
        except (EOFError, OSError):
            return "exited", None

    def _ask(self, connection: Connection, *message: Any) -> Any:  # JSON
        kind, answer = self._call(connection, *message)
        if kind != "answer":
            raise DebuggerError(_ENDED if kind == "exited" else answer)
        return answer

    def _last_time(self, connection: Connection, end: int) -> int:
        """Return the last time before another one at which the present places may stop.

        A process knows it that is at this other time.
        """
        if self.wanted.watchpoints:
            return end - 1
        return min(int(self._ask(connection, "last", self._every())), end - 1)

    # Going back.

    def _back(self, plan: Plan) -> Stop:
        """Go back to the last stop before this one, or to the first instruction that is known.

        Raises:
            DebuggerError: nothing is known of the past.
        """
        launch = None if plan.thread is None else plan.thread.launch
        copies = self._until(self._time - 1, launch)
        if not copies:
            why = "" if CAN_FORK else ": this system has no fork"
            raise DebuggerError(f"nothing before this instruction can be repeated{why}")
        found = self._last_hit(copies) if launch is None else self._last_step(plan, launch)
        if found is None:
            thread = Thread(copies[0].launch, 0, 0)
            found = Stop("entry", _NOTHING, copies[0].time, thread)
        return self._travel(found)

    def _last_hit(self, copies: list[_Copy]) -> Stop | None:
        """Return the last breakpoint, watchpoint, fault or finding before this stop.

        Where the present places have stopped before, the stops are known. Elsewhere a part is
        repeated, up to the last instruction in it at which a place may stop.
        """
        end, are_known = self._time, self._known_places == self._places
        kinds = ("exception", *(("breakpoint", "watchpoint") if are_known else ()))
        known = [*self._findings, *(each for each in self._hits if each.kind in kinds)]
        best, has_left_out = None, False
        for hit in sorted(known, key=lambda stop: stop.time):
            if hit.time < end:
                has_left_out = self._copy_of(hit) is None
                best = best if has_left_out else hit
        if are_known:
            end = min(end, self._known_from + 1)
        there = self._here.connection
        for copy in reversed(copies):
            first = max(copy.time, 0 if best is None else best.time + 1)
            last = self._last_time(there, end) if first < end else 0
            if first <= last:
                kind, at, found = self._search(copy, Plan(since=first, until=last + 1))
                has_left_out |= kind == "ended" and at < last
                if found.stop is not None:
                    best = found.stop
                    break
            there, end = copy.connection, min(end, copy.time)
        return noted(best, _LATER) if best is not None and has_left_out else best

    def _last_step(self, plan: Plan, launch: int) -> Stop | None:
        """Return where the last step of a thread before this stop ends."""
        end, first = self._time, 0
        copy = self._until(end - 1, launch)[-1]
        if copy.time < end - 2 * NEAR:
            self._search(copy, Plan(since=end, until=end))  # for a copy that is nearer
        for copy in reversed(self._until(end - 1, launch)):
            *_, found = self._search(copy, replace(plan, until=end))
            if found.stop is not None:
                return found.stop
            # The step may end between this part and the one before it.
            end, first = found.first + 1 if found.first else copy.time, found.first
        return Stop("step", _NOTHING, first, plan.thread) if first and plan.thread else None

    def _search(self, copy: _Copy, plan: Plan) -> tuple[str, Any, Searched]:
        """Return what a copy finds: at the end of the plan or of the launch, with its time."""
        self.searched.append((copy.time, plan.until))
        with self._wake(copy, self._orders(replace(plan, is_search=True))) as connection:
            kind, *values = self._call(connection, may_end=True)  # closing it ends a repetition
        if kind == "exited":
            raise DebuggerError("a copy of the program has ended")
        at, found = values
        return kind, at, found

    def _until(self, time: int, launch: int | None = None) -> list[_Copy]:
        """Return the copies up to a time, of one launch or of all, in their order."""
        near = () if self._near is None else (self._near,)
        copies = sorted((*self._copies, *near), key=lambda copy: copy.time)
        return [e for e in copies if e.time <= time and launch in (None, e.launch)]

    def _copy_of(self, stop: Stop) -> _Copy | None:
        """Return the copy that repeats the way to a stop, if there is one."""
        copies = self._until(stop.time)
        return copies[-1] if copies and copies[-1].launch == stop.thread.launch else None

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
        copy = self._copy_of(stop)
        if copy is None:
            raise DebuggerError("nothing before this instruction can be repeated")
        thread = None if stop.kind == "entry" else stop.thread
        plan = Plan(thread=thread, since=stop.time, until=stop.time)
        connection = self._wake(copy, Orders(plan=plan))
        try:
            kind, at, *_ = self._call(connection, may_end=True)
            if kind != "stop":
                raise DebuggerError("the launch did not repeat itself")
        except DebuggerError:
            connection.close()
            raise
        if self._here is not self._main:
            self._here.connection.close()
        stop = replace(stop, thread=at.thread) if stop.kind == "entry" else stop
        self._here = _Here(connection, stop)
        return stop

    @property
    def _time(self) -> int:
        return 0 if self.stop is None else self.stop.time

    def _add(self, kind: str, copy: _Copy) -> None:
        """Take in a copy that was made, and end every second one if there are many."""
        if kind == "near":
            if self._near is not None:
                self._near.connection.close()
            self._near = copy
            return
        self.copies_made += 1
        self._copies.append(copy)
        if len(self._copies) > MOST_COPIES:
            for each in self._copies[1::2]:
                each.connection.close()
            del self._copies[1::2]


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
        start_new_session=True,  # Ctrl-C is the debugger's alone
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        close_fds=os.name != "nt",
        pass_fds=(handle,) if os.name != "nt" else (),
    )


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
