"""The debugger: it starts the program in another process, and goes forwards and backwards in it.

The program's own process is at the furthest time that was reached. Behind it copies of the process
sleep. To go back, a copy repeats the time up to the wanted instruction.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, Final

from ptx.emulate.debug.stops import NEVER, Breakpoint, Orders, Plan, Stop, Thread, Watchpoint

from ..errors import CudadrvError
from .wire import ADDRESS, KEY, Message, message_of_orders, receive, send

MOST_COPIES: Final = 12
_START_S: Final = 60


class DebuggerError(CudadrvError):
    """Something that the debugger cannot do now."""


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


@dataclass(slots=True)
class Wanted:
    """What to stop at.

    Attributes:
        breakpoints, watchpoints: by the names that their owner gives to groups of them.
        faults, findings: whether these stop.
    """

    breakpoints: dict[str, tuple[Breakpoint, ...]] = field(default_factory=dict)
    watchpoints: tuple[Watchpoint, ...] = ()
    faults: bool = True
    findings: bool = True

    def orders(self, plan: Plan) -> Orders:
        """Return the orders to go on by a plan."""
        every = tuple(each for group in self.breakpoints.values() for each in group)
        return Orders(every, self.watchpoints, self.faults, self.findings, plan)


class Debugger:
    """One program that is debugged.

    Args:
        arguments: the command line of the debuggee.
        settings: environment variables.
        output: called with the program's output; None leaves it on this process's streams.

    Attributes:
        wanted: what to stop at.
        stop: the present stop; None before the first one, and after the end.
        status: the program's exit status; None while it runs.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        settings: Mapping[str, str],
        output: Callable[[str, str], None] | None = None,
    ) -> None:
        self.wanted: Wanted = Wanted()
        self._folder = tempfile.TemporaryDirectory(prefix="cudadrv-debug-")
        key = secrets.token_bytes(32)
        address = str(Path(self._folder.name) / "debugger") if hasattr(os, "fork") else None
        self._listener = Listener(address or ("127.0.0.1", 0), authkey=key, backlog=MOST_COPIES)
        self._arrivals: queue.Queue[tuple[Message, Connection]] = queue.Queue()
        threading.Thread(target=self._accept, daemon=True).start()
        pipe = None if output is None else subprocess.PIPE
        where = self._listener.address
        own = {ADDRESS: where if isinstance(where, str) else json.dumps(where), KEY: key.hex()}
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "cudadrv", *arguments],
            env={**os.environ, **settings, **own, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True,
        )  # fmt: skip
        self._readers = [
            threading.Thread(target=_forward, args=(stream, name, output), daemon=True)
            for name, stream in (("stdout", self.process.stdout), ("stderr", self.process.stderr))
            if output is not None
        ]
        for reader in self._readers:
            reader.start()
        self.status: int | None = None
        self._copies: list[_Copy] = []
        self._main = _Here(self._arrived("main"))
        self._here = self._main

    @property
    def stop(self) -> Stop | None:
        """The present stop."""
        return self._here.stop

    # Going on.

    def go(self, plan: Plan) -> Stop | Ended:
        """Go forwards to the next stop, or to the end of the program."""
        while self._here is not self._main:
            assert self._main.stop is not None
            bounded = replace(plan, until=self._main.stop.time)
            answer = self._run(self._here.connection, bounded)
            if "stop" in answer and answer["stop"]["kind"] != "arrived":
                self._here.stop = stop_of(answer["stop"])
                return self._here.stop
            reached = answer.get("ended", self._main.stop.time)
            self._here.connection.close()
            later = [copy for copy in self._copies if reached < copy.time < self._main.stop.time]
            if "ended" not in answer or not later:
                self._here = self._main
                if not self._is_past(self._main.stop, plan):
                    return self._main.stop
                break
            self._here = _Here(self._wake(later[0], Plan(until=later[0].time)))
            receive(self._here.connection)
        return self._go_main(plan)

    def back(self, plan: Plan) -> Stop:
        """Go back to the last stop before this one, or to the first instruction that is known.

        Raises:
            DebuggerError: nothing is known of the past.
        """
        self._collect()
        now = self._time()
        earlier = [copy for copy in self._copies if copy.time < now]
        if not earlier:
            raise DebuggerError("nothing before this instruction can be repeated")
        ends = [now] * len(earlier)
        if plan.kind == "go":  # a step may have begun before the next copy
            ends[:-1] = [copy.time for copy in earlier[1:]]
        searches = list(zip(earlier, ends, strict=True))[::-1]
        while searches:  # the last part alone, then others at once
            wave = searches[: 1 if len(searches) == len(earlier) else os.cpu_count() or 1]
            del searches[: len(wave)]
            connections = [
                self._wake(copy, replace(plan, until=end, is_search=True)) for copy, end in wave
            ]
            answers = [self._answer(connection) for connection in connections]
            for connection in connections:
                connection.close()
            for answer in answers:
                found = answer.get("found")
                if found is not None and found["time"] < now:
                    return self._travel(stop_of(found))
        first = Stop("entry", "nothing earlier can be repeated", earlier[0].time, self._thread())
        return self._travel(first)

    def pause(self) -> None:
        """Stop at the next instruction of a kernel; may be called by another thread."""
        send(self._main.connection, {"do": "pause"})

    def ask(self, what: str, **values: Any) -> Any:  # JSON
        """Return what the stopped process answers.

        Raises:
            DebuggerError: there is no answer; with the reason.
        """
        send(self._here.connection, {"do": what, **values})
        answer = receive(self._here.connection)
        if "error" in answer:
            raise DebuggerError(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """End the program and its copies."""
        with suppress(OSError):
            self._listener.close()
        self._collect()
        for connection in (self._main.connection, self._here.connection):
            connection.close()
        for copy in self._copies:
            copy.connection.close()
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    # The processes.

    def _is_past(self, stop: Stop, plan: Plan) -> bool:
        """Return whether the breakpoint of a stop was deleted, so that nothing stops there."""
        every = self.wanted.orders(plan).breakpoints
        return stop.kind == "breakpoint" and all(str(e.number) != stop.text for e in every)

    def _time(self) -> int:
        return NEVER if self._here.stop is None else self._here.stop.time

    def _thread(self) -> Thread:
        return Thread(0, 0, 0) if self._here.stop is None else self._here.stop.thread

    def _go_main(self, plan: Plan) -> Stop | Ended:
        self._main.stop = None
        try:
            answer = self._run(self._main.connection, plan)
        except (EOFError, OSError):
            answer = {"exited": None}
        if "exited" in answer:
            status = self.process.wait()
            for reader in self._readers:
                reader.join()
            self.status = status
            return Ended(status)
        self._main.stop = stop_of(answer["stop"])
        self._collect()
        return self._main.stop

    def _run(self, connection: Connection, plan: Plan) -> Message:
        send(connection, {"do": "go", "orders": message_of_orders(self.wanted.orders(plan))})
        try:
            return self._answer(connection)
        except KeyboardInterrupt:
            self.pause()
            return self._answer(connection)

    @staticmethod
    def _answer(connection: Connection) -> Message:
        try:
            return receive(connection)
        except EOFError:
            return {"exited": None}

    def _wake(self, copy: _Copy, plan: Plan) -> Connection:
        """Let a copy repeat the time from it on; return the connection of what does it."""
        self._collect()
        send(copy.connection, {"orders": message_of_orders(self.wanted.orders(plan))})
        return self._arrived("run")

    def _travel(self, stop: Stop) -> Stop:
        """Go to the time of a stop that was found."""
        copy = next(copy for copy in reversed(self._copies) if copy.time <= stop.time)
        connection = self._wake(copy, Plan(until=stop.time, is_search=True))
        answer = self._answer(connection)
        if self._here is not self._main:
            self._here.connection.close()
        if "stop" not in answer:
            raise DebuggerError("the launch did not repeat itself")
        self._here = _Here(connection, stop)
        return stop

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
                self._arrivals.put((receive(connection), connection))
            except (OSError, EOFError):
                return
            except Exception:  # an unknown process, without the key
                continue

    def _arrived(self, kind: str) -> Connection:
        """Wait for the connection of a process.

        Raises:
            DebuggerError: it does not come.
        """
        while True:
            try:
                hello, connection = self._arrivals.get(timeout=_START_S)
            except queue.Empty:
                raise DebuggerError("the program did not start") from None
            if hello["kind"] == kind:
                return connection
            self._add(hello, connection)

    def _collect(self) -> None:
        """Take in the copies that were made meanwhile."""
        with suppress(queue.Empty):
            while True:
                self._add(*self._arrivals.get_nowait())

    def _add(self, hello: Message, connection: Connection) -> None:
        self._copies.append(_Copy(hello["time"], connection))
        self._copies.sort(key=lambda copy: copy.time)
        while len(self._copies) > MOST_COPIES:  # the closer to each other, the sooner one goes
            gaps = [
                (after.time - before.time) / (self._copies[-1].time - before.time + 1)
                for before, after in zip(self._copies, self._copies[2:], strict=False)
            ]
            self._copies.pop(1 + gaps.index(min(gaps))).connection.close()


def stop_of(message: Message) -> Stop:
    """Return the stop in a message."""
    return Stop(**{**message, "thread": Thread(**message["thread"])})


def _forward(stream: Any, name: str, output: Callable[[str, str], None]) -> None:
    for line in stream:
        output(name, line.decode(errors="replace"))
