"""The process that is debugged: it stops, answers, and makes copies of itself.

A copy is a fork in the middle of a launch. It sleeps until the debugger wants the time after it
again. Then it makes another copy. That one repeats the launch up to a time, and ends before the
host's code could go on. What the two write to files or to the output is discarded or private.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from ptx.emulate.debug.expression import Conditions, ExpressionError
from ptx.emulate.debug.quick_loops import QuickLoops
from ptx.emulate.debug.stops import CodePoint, Orders, Searched, Stop, StopHandler, Stops
from ptx.emulate.model.addresses import Index
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.watchers import process_watchers
from ptx.options import source_observers

from .inspector import WRONG, Body, Inspector, ModuleTexts, text_of
from .sources import Sources

ADDRESS: Final = "CUDADRV_DEBUG_ADDRESS"
# Work decides when copies are made, so that they are at the same instructions in each run.
_TICK: Final = 1024  # reported instructions between looks at the work and at messages
_REPORT: Final = 256  # the work of a report, in instructions of one of its threads
_FIRST_INTERVAL: Final = 1 << 21  # of work between copies; as much as a launch counts
MOST_COPIES: Final = 32
"""The copies that sleep; at one more, every second one ends, and the interval doubles."""
NEAR: Final = 4096
"""A repetition makes a copy this long before its end, for steps back from there."""
_OUTPUTS: Final = (1, 2)
CAN_FORK: Final = hasattr(os, "fork")
"""Whether copies of a process can be made."""


class Debuggee(StopHandler):
    """Serves the debugger at each stop.

    Attributes:
        stops: the stops of this process's launches. A copy repeats them, and ends with its launch.
        texts: the sources that it has compiled.
    """

    def __init__(self) -> None:
        self.stops: Stops = Stops(self)
        self.texts: ModuleTexts = ModuleTexts()
        self._inspector: Inspector | None = None
        self._conditions = Conditions(self.texts.info)
        self._work, self._interval = 0, _FIRST_INTERVAL
        self._copies = 0
        self._near: int | None = None  # when a repetition is to make a copy
        self._loops: QuickLoops | None = None
        self._processes: list[int] = []
        # Other processes that the program starts do not find the debugger.
        self._connection: Connection = _end_of(int(os.environ.pop(ADDRESS)))

    def run(self, program: Callable[[Sources], int]) -> int:
        """Run a program when the debugger wants it; return its status."""
        self._serve()
        self.stops.resume()
        process_watchers.append(self.stops.watcher)
        source_observers.append(self.texts.sources.add)
        status = program(self.texts.sources)
        self._send("exited", status)
        return status

    # Of `StopHandler`.

    def stopped(self, stop: Stop) -> None:
        """Serve the debugger until threads go on."""
        self._inspector = Inspector(stop, self.stops, self.texts)
        self._send("stop", stop, self._searched())
        self._serve()
        self._inspector = None

    def launch_began(self) -> None:
        """Look at its first instruction whether a copy is due."""
        self._work += _FIRST_INTERVAL
        self.stops.timer = self.stops.time

    def launch_ended(self) -> None:
        """End this process if it is a copy."""
        if self.stops.is_repetition:
            self._send("ended", self.stops.time, self._searched())
            os._exit(0)

    def describe(self, point: CodePoint) -> None:
        """Complete what is known of an instruction."""
        self.texts.describe(point)

    def on_time(self) -> None:
        """Make a copy if enough was done, and stop or change orders if the debugger wants it."""
        stops = self.stops
        assert stops.fibre is not None
        self._work += _TICK * (_REPORT + stops.fibre.n)
        stops.timer = stops.time + _TICK
        if CAN_FORK and not self.stops.is_repetition and self._work >= self._interval:
            self._work = 0
            self._copy("copy")
        elif self._near is not None and stops.time >= self._near:
            self._near = None
            self._copy("near")
        if self._loops is not None:
            self._loops.install()
        while self._has_message():  # a copy ends here if it is not wanted any more
            self._take(*self._receive())

    def holding(
        self, point: CodePoint, fibre: Fibre, positions: Index | None, condition: str
    ) -> Index:
        """Return at which of some positions, or of all (None), a condition holds."""
        return self._conditions.holding(point, fibre, positions, condition)

    def _searched(self) -> Searched:
        if self._loops is not None:
            self._loops.note_hits()
        return self.stops.searched

    # Copies.

    def _copy(self, kind: str) -> None:
        running = [each for each in self._processes if not os.waitpid(each, os.WNOHANG)[0]]
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the copy runs this thread alone
            process = os.fork()
        if not process:
            theirs.close()
            self._sleep(ours)
            return
        ours.close()
        self._processes = [*running, process]
        self._copies += 1
        if self._copies > MOST_COPIES:
            self._copies, self._interval = (self._copies + 1) // 2, 2 * self._interval
        try:
            send_end(self._connection, theirs, kind, self.stops.time, self.stops.launches)
        except OSError:  # the debugger is gone
            os._exit(1)

    def _sleep(self, end: Connection) -> None:
        """Wait, in a copy, until the debugger wants the time from here on again."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for output in _OUTPUTS:
            os.dup2(nowhere, output)
        self.stops.is_repetition, self._processes = True, []
        self._connection.close()  # so that the debugger sees when the program's process has ended
        self._connection = end
        while True:
            try:
                what, *values = end.recv()
                if what == "last":
                    end.send(("answer", self.stops.last_time(*values)))
                if what != "go":
                    continue
                run = receive_end(end)
            except (EOFError, OSError):
                os._exit(0)
            if not os.fork():
                end.close()
                self._connection = run
                self.stops.orders, self.stops.timer = values[0], self.stops.time
                self.stops.resume()
                self.stops.resumed_at = -1  # its instruction was not stopped at
                self._near = self._hasten(values[0])
                return
            run.close()

    def _hasten(self, orders: Orders) -> int | None:
        """Execute loops quickly if that is possible; return when a copy is to be made, if ever."""
        plan, near = orders.plan, max(orders.plan.until - NEAR, self.stops.time + NEAR)
        self._loops = None  # those of the repetition that made this copy are over
        if not orders.may_be_quick:
            return near
        is_for_copy = not plan.is_search or plan.since == plan.until
        end = near - NEAR if is_for_copy else plan.until - 1
        self._loops = QuickLoops(self.stops, self._conditions, end)
        return near if is_for_copy or not self._loops.exist else None

    # Messages.

    def _send(self, *message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError:  # the debugger is gone
            os._exit(1)

    def _has_message(self) -> bool:
        try:
            return self._connection.poll()
        except OSError:  # as on Windows when the debugger is gone
            os._exit(1)

    def _receive(self) -> tuple[Any, ...]:
        try:
            message: tuple[Any, ...] = self._connection.recv()
        except (EOFError, OSError):
            os._exit(1)
        return message

    def _serve(self) -> None:
        """Answer until the debugger says how to go on."""
        while True:
            what, *values = self._receive()
            if what == "go":
                self.stops.orders = values[0]
                return
            if what == "last":
                self._send("answer", self.stops.last_time(*values))
            if what == "ask":
                self._answer(*values)

    def _answer(self, command: str, arguments: Body) -> None:
        try:
            if self._inspector is None:
                raise ExpressionError("no kernel is stopped")
            self._send("answer", self._inspector.answers[command](arguments))
        except ExpressionError as error:
            self._send("error", str(error))
        except WRONG as error:
            self._send("error", text_of(error, command))

    def _take(self, what: str, *values: Any) -> None:
        """Take a message while threads run."""
        if what == "change":
            plan, self.stops.orders = self.stops.orders.plan, values[0]
            self.stops.orders.plan = plan
            self.stops.change()
        elif what == "pause" and self.stops.current is not None:
            self.stops.pause()


def _end_of(handle: int) -> Connection:
    """Return the end of a connection that has a handle, which no other process inherits."""
    if sys.platform == "win32":
        os.set_handle_inheritable(handle, False)
        return connection.PipeConnection(handle)
    os.set_inheritable(handle, False)
    return Connection(handle)


def send_end(through: Connection, end: Connection, *message: Any) -> None:
    """Send a message and then the end of a connection, which is closed here."""
    with end, _socket_of(through) as channel:
        through.send(message)
        socket.send_fds(channel, [b"."], [end.fileno()])


def receive_end(through: Connection) -> Connection:
    """Receive the end of a connection, after its message."""
    with _socket_of(through) as channel:
        handles = socket.recv_fds(channel, 1, 1)[1]
    if not handles:
        raise EOFError
    return _end_of(handles[0])


def _socket_of(end: Connection) -> socket.socket:
    return socket.fromfd(end.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
