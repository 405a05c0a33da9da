"""The process that is debugged: it stops, returns variables, and makes copies of itself.

A copy is a fork in the middle of a launch. It sleeps until the debugger wants the time after it
again; then it makes another copy, which repeats the launch up to a time, and ends before the host's
code could go on. What the two write to files or to the output is discarded or private.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import demangled
from ptx.emulate.debug.debug_info import DebugInfo
from ptx.emulate.debug.expression import Evaluator, ExpressionError, Place, Result
from ptx.emulate.debug.frames import Frame, LaneState, StoppedLaunch
from ptx.emulate.debug.stops import NEVER, Breakpoint, Stop, StopHandler, Stops, Thread
from ptx.emulate.model.addresses import Index
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.watchers import process_watchers
from ptx.options import source_observers

from ..driver.driver_selection import current_or_none
from ..emulator.emulator import Emulator
from ..emulator.hosting import work_of
from .sources import Sources, user_frames
from .wire import Message, Origin, orders_of, receive, send

_TICK_S: Final = 0.02  # between looks at the clock
_BETWEEN_COPIES_S: Final = 0.1
_FREE_COPYING_S: Final = 1.0  # besides half of the time that passes
_OUTPUTS: Final = (1, 2)


class Debuggee(StopHandler):
    """Serves the debugger at each stop.

    Attributes:
        stops: the stops of this process's launches.
        is_copy: whether this process is a copy, which ends with its launch.
        sources: the CUDA sources that it has compiled.
    """

    def __init__(self, *, can_go_back: bool) -> None:
        self.stops: Stops = Stops(self)
        self.is_copy: bool = False
        self._can_go_back = can_go_back and hasattr(os, "fork")
        self._infos: dict[int, DebugInfo] = {}
        self._texts: list[str] = []
        self.sources: Sources = Sources()
        self._stop: Stop | None = None
        self._stopped_launch: StoppedLaunch | None = None
        self._emulator: Emulator | None = None
        self._began = self._last_copy = self._last_tick = time.perf_counter()
        self._copying = 0.0
        self._copies: list[int] = []
        self._ticks = 1000
        self._has_begun = False
        self._answers: dict[str, Callable[..., Any]] = {  # of JSON
            "frames": self._answer_frames,
            "warp": self._answer_warp,
            "thread": self._answer_thread,
            "barriers": self._answer_barriers,
            "variables": self._answer_variables,
            "evaluate": self._answer_evaluate,
            "children": self._answer_children,
            "place": self._answer_place,
            "source": self._answer_source,
            "verified": self._answer_verified,
            "host": self._answer_host,
        }
        self._origin = Origin()
        self._connection: Connection = self._origin.connect({"kind": "main"})

    def wait_for_orders(self) -> None:
        """Wait until the program may begin, and observe its launches."""
        self._serve()
        self.stops.resume()
        process_watchers.append(self.stops.watcher)
        source_observers.append(self.sources.add)

    def ended(self, status: int) -> None:
        """Report that the program has ended."""
        send(self._connection, {"exited": status})

    # Of `StopHandler`.

    def stopped(self, stop: Stop) -> None:
        """Serve the debugger until threads go on."""
        self._stop, self._stopped_launch = stop, StoppedLaunch(self.stops)
        found = None if self.stops.found is None else asdict(self.stops.found)
        send(self._connection, {"stop": asdict(stop), "found": found})
        self.stops.found = None
        self._serve()
        self._stop = self._stopped_launch = None
        self._last_tick = time.perf_counter()

    def launch_began(self) -> None:
        """Make a copy at the first instruction."""
        driver = current_or_none()
        if driver is not None and isinstance(driver.api, Emulator):
            self._emulator = driver.api
        self._has_begun = True
        self.stops.timer = self.stops.time

    def launch_ended(self) -> None:
        """End this process if it is a copy."""
        if self.is_copy:
            found = None if self.stops.found is None else asdict(self.stops.found)
            send(self._connection, {"ended": self.stops.time, "found": found})
            os._exit(0)

    def on_time(self) -> None:
        """Make a copy if it is time, and stop if the debugger wants it."""
        now = time.perf_counter()
        passed, self._last_tick = now - self._last_tick, now
        if not self._has_begun:
            self._ticks = max(1, int(self._ticks * min(max(_TICK_S / max(passed, 1e-6), 0.25), 4)))
        self.stops.timer = self.stops.time + self._ticks
        is_due = self._has_begun or now - self._last_copy > _BETWEEN_COPIES_S
        may_copy = self._copying < _FREE_COPYING_S + (now - self._began) / 2
        self._has_begun = False
        if self._can_go_back and not self.is_copy and is_due and may_copy:
            self._copy()
        while not self.is_copy and self._connection.poll():
            if receive(self._connection).get("do") == "pause" and self.stops.current is not None:
                self.stops.pause()

    def holds(self, fibre: Fibre, positions: Index, condition: str) -> NDArray[np.bool_]:
        """Return for which threads a condition holds; for none if it has no value."""
        point = self.stops.point
        assert point is not None
        frame = Frame(
            fibre, positions, fibre.regs, point.scope, fibre.stack_pointer, point.instruction
        )
        try:
            return self._evaluator(frame).holds(condition)
        except ExpressionError:
            return np.zeros(len(positions), np.bool_)

    # Copies.

    def _copy(self) -> None:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the copy runs this thread alone
            process = os.fork()
        if not process:
            self._sleep()
            return
        for other in (*self._copies, process):
            if os.waitpid(other, os.WNOHANG)[0]:
                self._copies.remove(other)
        self._copies.append(process)
        self._last_copy = self._last_tick = time.perf_counter()
        self._copying += self._last_copy - began

    def _sleep(self) -> None:
        """Wait, in a copy, until the debugger wants the time from here on again."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for output in _OUTPUTS:
            os.dup2(nowhere, output)
        self.is_copy = True
        hello = {"kind": "copy", "time": self.stops.time}
        try:
            self._connection = self._origin.connect(hello)
            while True:
                message = receive(self._connection)
                if not os.fork():
                    self._connection.close()
                    self._connection = self._origin.connect({"kind": "run"})
                    self._go(message["orders"])
                    return
        except (EOFError, OSError):
            os._exit(0)

    # Answers.

    def _serve(self) -> None:
        while True:
            try:
                message = receive(self._connection)
            except (EOFError, OSError):  # the debugger is gone
                os._exit(1)
            if message["do"] == "go":
                self._go(message["orders"])
                return
            if message["do"] == "pause":
                continue
            try:
                answer = self._answers[message.pop("do")](**message)
                send(self._connection, {"answer": answer})
            except (ExpressionError, LookupError) as error:
                send(self._connection, {"error": str(error)})

    def _go(self, orders: Message) -> None:
        self.stops.orders = orders_of(orders)
        self.stops.found = None
        if self.is_copy:
            self.stops.timer = NEVER
            self.stops.resume()

    def _evaluator(self, frame: Frame) -> Evaluator:
        module = frame.scope.layout.module
        info = self._infos.get(id(module))
        if info is None:
            info = self._infos[id(module)] = DebugInfo(module.text)
        return Evaluator(frame, info)

    def _frames(self, thread: Message) -> list[Frame]:
        launch = self._stopped_launch
        return [] if launch is None else launch.frames(Thread(**thread))

    def _at(self, thread: Message, depth: int) -> Evaluator:
        frames = self._frames(thread)
        if depth >= len(frames):
            raise ExpressionError("the thread is not in a kernel")
        return self._evaluator(frames[depth])

    def _answer_frames(self, thread: Message) -> list[Message]:
        return [self._frame(frame) for frame in self._frames(thread)]

    def _frame(self, frame: Frame) -> Message:
        """Return a frame; `path` is its file, or `text` the number of its source."""
        module, function = frame.scope.layout.module, frame.scope.function.name
        answer: Message = {
            "function": demangled(function), "ptx": frame.ptx_line, "kernel": frame.scope.kernel,
            "module": self._number_of(module.text), "file": None, "line": None, "path": None,
            "instruction": "",
        }  # fmt: skip
        if frame.ptx_line:
            answer["instruction"] = module.text.split("\n")[frame.ptx_line - 1].strip()
        file, line = frame.source
        source = None if file is None or not line else self.sources.find(function, file)
        if source is not None and line is not None:
            answer |= {"file": file, "line": line}
            if source.file:
                answer |= {"path": source.file, "line": line + source.offset}
            elif Path(source.name).is_file():
                answer["path"] = source.name
            answer["source"] = self._number_of(source.text)
        return answer

    def alias_of(self, function: str, file: str, line: int) -> tuple[str, int] | None:
        """Return the place of a CUDA line in the Python file that has the source."""
        source = self.sources.find(function, file)
        return None if source is None or not source.file else (source.file, line + source.offset)

    def _answer_warp(self, thread: Message) -> list[Message]:
        launch = self._stopped_launch
        return [] if launch is None else [self._lane(e) for e in launch.warp_of(Thread(**thread))]

    def _lane(self, state: LaneState) -> Message:
        assert self._stopped_launch is not None
        blocks, thread = self._stopped_launch.fibre.blocks, state.thread
        slot = thread.block - blocks.first
        lane = slot * blocks.geometry.threads_per_block + thread.number
        return {
            "thread": asdict(thread), "state": state.state, "block": blocks.block_of(lane),
            "at": blocks.thread_of(lane),
            "ptx": 0 if state.instruction is None else state.instruction.line,
        }  # fmt: skip

    def _answer_thread(self, block: list[int], thread: list[int]) -> Message:
        """Return a thread of the stopped blocks by its coordinates."""
        launch = self._stopped_launch
        if launch is None:
            raise LookupError("no kernel is stopped")
        found = launch.find(tuple(block), tuple(thread))
        if found is None:
            raise LookupError(f"block {block} is not among those that run now, or has no {thread}")
        return asdict(found)

    def _answer_barriers(self) -> list[str]:
        return [] if self._stopped_launch is None else self._stopped_launch.barriers()

    def _answer_variables(self, thread: Message, depth: int, scope: str) -> list[Message]:
        evaluator = self._at(thread, depth)
        if scope == "registers":
            return [{"name": name, "value": value} for name, value in evaluator.registers()]
        if scope == "shared":
            names = evaluator.shared()
        else:
            names = [e for e, is_argument in evaluator.variables().items()
                     if is_argument == (scope == "arguments")]  # fmt: skip
        return [self._shown(evaluator, name, name) for name in names]

    def _shown(self, evaluator: Evaluator, name: str, text: str) -> Message:
        try:
            result = evaluator.evaluate(text)
        except ExpressionError as error:
            return {"name": name, "value": f"<{error}>"}
        return self._described(evaluator, name, text, result)

    @staticmethod
    def _described(evaluator: Evaluator, name: str, text: str, result: Result) -> Message:
        answer: Message = {"name": name, "value": evaluator.shown(result), "text": text}
        if isinstance(result, Place):
            answer |= {"type": result.type.name, "elements": evaluator.count(result),
                       "members": len(result.type.fields)}  # fmt: skip
        return answer

    def _answer_evaluate(self, thread: Message, depth: int, text: str) -> Message:
        evaluator = self._at(thread, depth)
        return self._described(evaluator, text, text, evaluator.evaluate(text))

    def _answer_children(
        self, thread: Message, depth: int, text: str, first: int, count: int
    ) -> list[Message]:
        evaluator = self._at(thread, depth)
        children = evaluator.children(evaluator.evaluate(text), first, count)
        return [self._described(evaluator, name, f"{text}{name}", e) for name, e in children]

    def _answer_place(self, thread: Message, depth: int, text: str) -> Message:
        place = self._at(thread, depth).watched(text)
        first = int(place.addresses[0])
        nbytes = place.type.nbytes or 1
        return {"space": place.space, "first": first, "end": first + nbytes,
                "block": thread["block"]}  # fmt: skip

    def _answer_source(self, number: int) -> str:
        if not 0 < number <= len(self._texts):
            raise LookupError("there is no such source")
        return self._texts[number - 1]

    def _number_of(self, text: str) -> int:
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text) + 1

    def _answer_verified(self, breakpoint: Message) -> bool:
        """Return whether code that has been launched has an instruction for a breakpoint."""
        wanted = Breakpoint(**breakpoint)
        return any(
            wanted.may_stop(point, is_first=True)
            for writer in self.stops.writers for point in writer.points
        )  # fmt: skip

    def _answer_host(self) -> Message:
        work = [] if self._emulator is None else work_of(self._emulator)
        return {"frames": user_frames(), "work": work}
