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
import time
import warnings
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.debug.expression import ExpressionError
from ptx.emulate.debug.frames import Frame
from ptx.emulate.debug.stops import CodePoint, Orders, Stop, StopHandler, Stops
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.watchers import process_watchers
from ptx.options import source_observers

from .inspector import Body, Inspector, ModuleTexts
from .sources import Sources

ADDRESS: Final = "CUDADRV_DEBUG_ADDRESS"
# Of processor time, so that a busy machine makes no difference.
_TICK_S: Final = 0.02  # between looks at the clock
_BETWEEN_COPIES_S: Final = 0.1
_FREE_COPYING_S: Final = 1.0  # besides half of the time that is used
_OUTPUTS: Final = (1, 2)
CAN_FORK: Final = hasattr(os, "fork")
"""Whether copies of a process can be made."""
_WRONG: Final = (LookupError, TypeError, ValueError, AttributeError)  # of arguments of any form


class Debuggee(StopHandler):
    """Serves the debugger at each stop.

    Attributes:
        stops: the stops of this process's launches.
        is_copy: whether this process is a copy, which ends with its launch.
        texts: the sources that it has compiled.
    """

    def __init__(self) -> None:
        self.stops: Stops = Stops(self)
        self.is_copy: bool = False
        self.texts: ModuleTexts = ModuleTexts()
        self._inspector: Inspector | None = None
        self._began = self._last_copy = self._last_tick = time.process_time()
        self._copying = 0.0
        self._copies: list[int] = []
        self._ticks = 1000
        self._has_begun = False
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
        self._send("stop", stop, self.stops.searched)
        self._serve()
        self._inspector = None
        self._last_tick = time.process_time()

    def launch_began(self) -> None:
        """Make a copy at the first instruction."""
        self._has_begun = True
        self.stops.timer = self.stops.time

    def launch_ended(self) -> None:
        """End this process if it is a copy."""
        if self.is_copy:
            self._send("ended", self.stops.time, self.stops.searched)
            os._exit(0)

    def describe(self, point: CodePoint) -> None:
        """Complete what is known of an instruction."""
        self.texts.describe(point)

    def on_time(self) -> None:
        """Make a copy if it is time, and stop or change orders if the debugger wants it."""
        now = time.process_time()
        passed, self._last_tick = now - self._last_tick, now
        if not self._has_begun:
            self._ticks = max(1, int(self._ticks * min(max(_TICK_S / max(passed, 1e-6), 0.25), 4)))
        self.stops.timer = self.stops.time + self._ticks
        is_due = self._has_begun or now - self._last_copy > _BETWEEN_COPIES_S
        may_copy = self._copying < _FREE_COPYING_S + (now - self._began) / 2
        self._has_begun = False
        if CAN_FORK and not self.is_copy and is_due and may_copy:
            self._copies = [each for each in self._copies if not os.waitpid(each, os.WNOHANG)[0]]
            self._copy()
        while self._connection.poll():  # a copy ends here if it is not wanted any more
            self._take(*self._receive())

    def holds(
        self, point: CodePoint, fibre: Fibre, registers: Registers, positions: Index, condition: str
    ) -> NDArray[np.bool_] | None:
        """Return for which threads a condition holds; None if it has no value."""
        frame = Frame(
            fibre, positions, registers, point.scope, fibre.stack_pointer, point.instruction
        )
        try:
            return self.texts.evaluator(frame).holds(condition)
        except ExpressionError:
            return None

    # Copies.

    def _copy(self) -> None:
        began = time.process_time()
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the copy runs this thread alone
            process = os.fork()
        if not process:
            theirs.close()
            self._sleep(ours)
            return
        ours.close()
        try:
            send_end(self._connection, theirs, "copy", self.stops.time)
        except OSError:  # the debugger is gone
            os._exit(1)
        self._copies.append(process)
        self._last_copy = self._last_tick = time.process_time()
        self._copying += self._last_copy - began

    def _sleep(self, end: Connection) -> None:
        """Wait, in a copy, until the debugger wants the time from here on again."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for output in _OUTPUTS:
            os.dup2(nowhere, output)
        self.is_copy = True
        self.stops.note = lambda _: None
        self._connection.close()  # so that the debugger sees when the program's process has ended
        self._connection = end
        while True:
            try:
                _, orders = end.recv()
                run = receive_end(end)
            except (EOFError, OSError):
                os._exit(0)
            if not os.fork():
                end.close()
                self._connection = run
                self._last_tick = time.process_time()  # which begins anew
                self._go(orders)
                return
            run.close()

    # Messages.

    def _send(self, *message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError:  # the debugger is gone
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
                self._go(*values)
                return
            if what == "ask":
                self._answer(*values)

    def _answer(self, command: str, arguments: Body) -> None:
        try:
            if self._inspector is None:
                raise ExpressionError("no kernel is stopped")
            self._send("answer", self._inspector.answers[command](arguments))
        except ExpressionError as error:
            self._send("error", str(error))
        except _WRONG as error:
            text = f"no {error}" if isinstance(error, KeyError) else str(error)
            self._send("error", f"{command}: {text}")

    def _take(self, what: str, *values: Any) -> None:
        """Take a message while threads run."""
        if what == "change":
            plan, self.stops.orders = self.stops.orders.plan, values[0]
            self.stops.orders.plan = plan
            self.stops.change()
        elif what == "pause" and self.stops.current is not None:
            self.stops.pause()

    def _go(self, orders: Orders) -> None:
        self.stops.orders = orders
        if self.is_copy:
            self.stops.timer = self.stops.time
            self.stops.resume()


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
