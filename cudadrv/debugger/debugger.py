"""The debugger: it starts the program in another process, and goes forwards and backwards in it.

The program's own process is at the furthest time that was reached. Copies of the process sleep at
earlier times. To go back, a copy repeats the time up to the wanted instruction.
"""

from __future__ import annotations

import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Listener
from typing import Any, Final

from ptx.emulate.debug.stops import NEVER, Breakpoint, Orders, Plan, Stop, Thread

from ..errors import CudadrvError
from .debuggee import ADDRESS, can_fork
from .inspector import Body, thread_id, thread_of

MOST_COPIES: Final = 12
MOVES: Final[Mapping[str, Plan]] = {
    "continue": Plan(), "step": Plan("line", "in"), "next": Plan("line", "over"),
    "finish": Plan("line", "out"), "stepi": Plan("instruction", "in"),
    "nexti": Plan("instruction", "over"),
}  # fmt: skip
"""The words for going on; with "r" before them they go back."""
_START_S: Final = 300  # of a program that lives
_LOOK_S: Final = 0.2


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
        goes_back: whether copies of the process are made.
    """

    file: str = ""
    arguments: tuple[str, ...] = ()
    checks: str = ""
    order: str = ""
    optimised: bool = False
    goes_back: bool = True

    @property
    def command(self) -> list[str]:
        """The command of the debuggee."""
        options = ["--no-back"] * (not self.goes_back)
        options += ["--checks", self.checks] if self.checks else []
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
class Ended:
    """The program has ended, with an exit status."""

    status: int


class Debugger:
    """One program that is debugged.

    Args:
        program: what to run.
        output: called with the program's output; None leaves it on this process's streams.

    Attributes:
        breakpoints: by the names that their owner gives to groups of them; wanted: other places to
            stop at. Call `change` if threads may run.
        status: the program's exit status; None while it runs.

    Raises:
        DebuggerError: the program does not start.
    """

    def __init__(
        self, program: DebuggedProgram, output: Callable[[str, str], None] | None = None
    ) -> None:
        self.breakpoints: dict[str, tuple[Breakpoint, ...]] = {}
        self.wanted: Orders = Orders()
        self.status: int | None = None
        self._numbers = 0
        self._lock = threading.Lock()  # of the conversation with the process that has stopped
        self._folder = tempfile.TemporaryDirectory(prefix="cudadrv-debug-")
        key = secrets.token_bytes(32)
        address = f"{self._folder.name}/debugger" if can_fork() else ("127.0.0.1", 0)
        self._listener = Listener(address, authkey=key, backlog=MOST_COPIES)
        self._arrivals: queue.Queue[tuple[str, int, Connection]] = queue.Queue()
        threading.Thread(target=self._accept, daemon=True).start()
        where = self._listener.address
        where = where if isinstance(where, str) else " ".join(map(str, where))
        pipe = None if output is None else subprocess.PIPE
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            program.command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
            env={**os.environ, **program.settings, ADDRESS: f"{key.hex()} {where}"},
            start_new_session=True,
        )  # fmt: skip
        self._readers = [
            threading.Thread(target=_forward, args=(stream, name, output), daemon=True)
            for name, stream in (("stdout", self.process.stdout), ("stderr", self.process.stderr))
            if output is not None
        ]
        for reader in self._readers:
            reader.start()
        self._copies: list[_Copy] = []
        self._findings: list[Stop] = []  # at the instructions that they are of
        try:
            self._main = _Here(self._arrived("main"))
        except DebuggerError:
            self._end_processes()
            raise
        self._here = self._main

    @property
    def stop(self) -> Stop | None:
        """The present stop; None before the first one, while threads run and after the end."""
        return self._here.stop

    def number(self) -> int:
        """Return a number for a breakpoint or watchpoint."""
        self._numbers += 1
        return self._numbers

    def _every(self) -> tuple[Breakpoint, ...]:
        return tuple(each for group in self.breakpoints.values() for each in group)

    def _orders(self, plan: Plan) -> Orders:
        return replace(self.wanted, breakpoints=self._every(), plan=plan)

    # Going on.

    def move(self, word: str, thread: int | None = None) -> Stop | Ended:
        """Go on, or back, by one of `MOVES`; a step is of the thread of this number.

        Raises:
            DebuggerError: there is nothing to go on from, or to go back to.
        """
        is_back = word not in MOVES
        plan = MOVES[word[is_back:]]
        with self._lock:
            if plan.kind != "go":
                if self.stop is None:
                    raise DebuggerError("no kernel is stopped")
                number = thread_id(self.stop.thread) if thread is None else thread
                depth = self._ask(self._here.connection, "depth", {"threadId": number})
                stepping = thread_of(number, self.stop.thread.launch)
                plan = replace(plan, thread=stepping, until_depth=depth)
            return self._back(plan) if is_back else self._go(plan)

    def change(self) -> None:
        """Send `wanted` to threads that run."""
        self._tell("change", self._orders(Plan()))

    def pause(self) -> None:
        """Stop at the next instruction of a kernel; may be called by another thread."""
        self._tell("pause")

    def _tell(self, *message: Any) -> None:
        with suppress(OSError):
            self._main.connection.send(message)

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
        self._collect()
        connections = [self._main.connection, self._here.connection]
        for connection in (*connections, *(copy.connection for copy in self._copies)):
            connection.close()
        self._end_processes()

    def _end_processes(self) -> None:
        with suppress(OSError):
            self._listener.close()
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)  # with all copies
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def _go(self, plan: Plan) -> Stop | Ended:
        """Go forwards to the next stop, or to the end of the program."""
        while self._here is not self._main:
            now, last = self._time(), self._main.stop
            assert last is not None
            ahead = min(
                [e for e in (*self._findings, last) if e.time > now] or [last],
                key=lambda stop: stop.time,
            )
            kind, at, *_ = self._run(self._here.connection, replace(plan, until=ahead.time))
            if kind == "stop" and at.kind != "arrived":
                stop: Stop = at
                self._here.stop = stop
                return stop
            if kind == "stop" and ahead is not last:
                self._here.stop = ahead
                return ahead
            self._here.connection.close()
            later = [e for e in self._copies if kind == "ended" and at < e.time <= ahead.time]
            if later:
                began = Stop("arrived", "", later[0].time, last.thread)
                self._here = _Here(self._wake(later[0], Orders(plan=Plan(until=began.time))), began)
                self._answer(self._here.connection)
                continue
            self._here = self._main
            if self._is_wanted(last):
                return last
        return self._go_main(plan)

    def _is_wanted(self, stop: Stop) -> bool:
        """Return whether a stop that was made once is made again."""
        if stop.kind in ("breakpoint", "watchpoint"):
            numbers = {each.number for each in self._every()}
            return stop.number in numbers | {each.number for each in self.wanted.watchpoints}
        return stop.kind == "exception"

    def _go_main(self, plan: Plan) -> Stop | Ended:
        self._main.stop = None
        kind, *values = self._run(self._main.connection, plan)
        if kind != "stop":
            self.status = self.process.wait()
            for reader in self._readers:
                reader.join(_START_S)
            return Ended(self.status)
        stop: Stop = values[0]
        self._main.stop = stop
        self._collect()
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
        try:
            return self._answer(connection)
        except KeyboardInterrupt:
            self.pause()
            return self._answer(connection)

    def _answer(self, connection: Connection) -> tuple[Any, ...]:
        try:
            while not connection.poll(_LOOK_S):
                self._collect()  # so that there are never many copies
            answer: tuple[Any, ...] = connection.recv()
        except (EOFError, OSError):
            return "exited", None
        return answer

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
        self._collect()
        now = self._time()
        earlier = [copy for copy in self._copies if copy.time < now]
        if not earlier:
            why = "" if can_fork() else ": this system has no fork"
            raise DebuggerError(f"nothing before this instruction can be repeated{why}")
        is_go = plan.kind == "go"
        searches = list(self._searches(earlier, now)) if is_go else [
            (copy, replace(plan, until=now)) for copy in reversed(earlier)  # may begin in any part
        ]  # fmt: skip
        # The last part alone, then all others at once.
        for parts in (searches[:1], searches[1:]):
            found = self._search(parts, now, is_go=is_go)
            if found is not None:
                return self._travel(found)
        first = Stop("entry", "nothing earlier can be repeated", earlier[0].time, self._thread())
        return self._travel(first)

    def _searches(self, copies: list[_Copy], now: int) -> Iterator[tuple[_Copy, Plan]]:
        """Yield what to repeat to find the last stop, the latest part first.

        The log of the program's process has the instructions of each time. A part in which no
        instruction has a breakpoint is not repeated; of a breakpoint without conditions only its
        last time is, and what is before that if it did not stop there after all.
        """
        spans = [
            (copy.time, end)
            for copy, end in zip(copies, [*(e.time for e in copies[1:]), now], strict=True)
        ]
        sure = tuple(e for e in self._every() if not (e.condition or e.block or e.thread))
        last, last_sure = self._ask(
            self._main.connection,
            "logged",
            {"breakpoints": [self._every(), sure], "spans": spans},
        )
        for copy, (first, end), reported, certain in reversed(
            list(zip(copies, spans, last, last_sure, strict=True))
        ):
            until = end if self.wanted.watchpoints else 1 + (-1 if reported is None else reported)
            if certain is not None and certain > first:
                yield copy, Plan(since=certain, until=until)
                until = min(until, certain)
            has_finding = any(first <= each.time < end for each in self._findings)
            if until > first or has_finding:
                yield copy, Plan(until=until)

    def _search(self, parts: list[tuple[_Copy, Plan]], now: int, *, is_go: bool) -> Stop | None:
        """Return the last stop before a time in some parts, the latest of which is first."""
        connections = [
            self._wake(copy, self._orders(replace(plan, is_search=True)), findings=False)
            for copy, plan in parts
        ]
        stop: Stop | None = None
        for connection, (copy, plan) in zip(connections, parts, strict=True):
            if stop is None:
                _, _, *found = self._answer(connection)
                known = [e for e in (*found, *self._findings * is_go) if e is not None]
                first = max(copy.time, plan.since)
                inside = [each for each in known if first <= each.time < now]
                stop = max(inside, key=lambda stop: stop.time, default=None)
            connection.close()  # which ends a repetition that goes on
        return stop

    def _wake(self, copy: _Copy, orders: Orders, *, findings: bool = True) -> Connection:
        """Let a copy repeat the time from it on; return the connection of what does it."""
        self._collect()
        orders.findings = orders.findings and findings
        try:
            copy.connection.send(("go", orders))
        except OSError:
            raise DebuggerError("a copy of the program has ended") from None
        return self._arrived("run")

    def _travel(self, stop: Stop) -> Stop:
        """Go to the time of a stop that was found."""
        copies = [copy for copy in self._copies if copy.time <= stop.time]
        if not copies:
            raise DebuggerError("nothing before this instruction can be repeated")
        connection = self._wake(copies[-1], Orders(findings=False, plan=Plan(until=stop.time)))
        if self._answer(connection)[0] != "stop":
            raise DebuggerError("the launch did not repeat itself")
        if self._here is not self._main:
            self._here.connection.close()
        self._here = _Here(connection, stop)
        return stop

    def _time(self) -> int:
        return NEVER if self._here.stop is None else self._here.stop.time

    def _thread(self) -> Thread:
        return Thread(0, 0, 0) if self._here.stop is None else self._here.stop.thread

    # The processes.

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
                self._arrivals.put((*connection.recv(), connection))
            except (OSError, EOFError):
                return
            except Exception:  # an unknown process, without the key
                continue

    def _arrived(self, kind: str) -> Connection:
        """Wait for the connection of a process.

        Raises:
            DebuggerError: it does not come.
        """
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            with suppress(queue.Empty):
                arrived, at, connection = self._arrivals.get(timeout=_LOOK_S)
                if arrived == kind:
                    return connection
                self._add(at, connection)
                continue
            if kind == "main" and self.process.poll() is not None:
                break
        raise DebuggerError("the program did not start")

    def _collect(self) -> None:
        """Take in the copies that were made meanwhile."""
        with suppress(queue.Empty):
            while True:
                _, at, connection = self._arrivals.get_nowait()
                self._add(at, connection)

    def _add(self, at: int, connection: Connection) -> None:
        self._copies.append(_Copy(at, connection))
        self._copies.sort(key=lambda copy: copy.time)
        while len(self._copies) > MOST_COPIES:  # the closer to each other, the sooner one goes
            gaps = [
                (after.time - before.time) / (self._copies[-1].time - before.time + 1)
                for before, after in zip(self._copies, self._copies[2:], strict=False)
            ]
            self._copies.pop(1 + gaps.index(min(gaps))).connection.close()


def _forward(stream: Any, name: str, output: Callable[[str, str], None]) -> None:
    for line in stream:
        output(name, line.decode(errors="replace"))
