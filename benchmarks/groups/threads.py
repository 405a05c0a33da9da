"""Launches a second of 1 to 16 threads, each on a stream of its own with arguments of its own."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import cudadrv

from .. import bare
from ..kernels import BLOCK, FIVE_IN_PTX, GRID
from ..setting import PEERS, Setting, installed
from ..timing import Case, Row

GROUP: Final = "threads"
COUNTS: Final = (1, 2, 4, 8, 16)
# On a GPU the queue of a stream has room for what a thread launches in a round.
_LAUNCHES: Final = 500
_LAUNCHES_ON_NULL: Final = 10_000
_LIMIT_S: Final = 4.0
_CONFIG: Final = cudadrv.LaunchConfig(GRID, BLOCK)


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to launch; `case` makes the statement and its names in the thread that uses them."""

    who: str
    case: Callable[[], Case]


@dataclass(slots=True)
class _Crew:
    """Threads that wait for the next round.

    Attributes:
        way: how they launch.
        times: seconds of each round, from the first thread's start to the last one's end.
        error: the first thing that went wrong.
    """

    way: _Way
    count: int
    launches: int
    settle: Callable[[], object]
    times: list[float] = field(default_factory=list)
    error: Exception | None = None
    _spans: list[tuple[float, float]] = field(default_factory=list)
    _ended: bool = False
    _gate: threading.Barrier = field(init=False)
    _threads: list[threading.Thread] = field(init=False)

    def __post_init__(self) -> None:
        self._gate = threading.Barrier(self.count + 1)
        self._threads = [threading.Thread(target=self._work) for _ in range(self.count)]
        for thread in self._threads:
            thread.start()
        self._wait()

    def _wait(self) -> None:
        try:
            self._gate.wait()
        except threading.BrokenBarrierError:
            self._ended = True

    def _work(self) -> None:
        try:
            loop = _loop(self.way.case(), self.launches)
            loop()  # warms up
            self.settle()
            self._gate.wait()
            while True:
                self._gate.wait()
                if self._ended:
                    return
                began = time.perf_counter()
                loop()
                self._spans.append((began, time.perf_counter()))
                self.settle()
                self._gate.wait()
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            # One library's failure is a line of the table, whatever it is.
            self.error = self.error or error
            self._gate.abort()

    def round(self) -> None:
        """Let every thread launch; remember how long it took."""
        if self._ended:
            return
        self._spans.clear()
        self._wait()
        self._wait()
        if not self._ended:
            starts, ends = zip(*self._spans, strict=True)
            self.times.append(max(ends) - min(starts))

    def end(self) -> None:
        """End the threads."""
        if not self._ended:
            self._ended = True
            self._wait()
        for thread in self._threads:
            thread.join()

    def row(self, base: Row | None, one: Row | None) -> Row:
        """The figures.

        Args:
            base: the first row of the case.
            one: the row of one thread.
        """
        case = f"{self.count} thread{'s' * (self.count != 1)}"
        if self.error is not None or not self.times:
            return Row.failed(GROUP, case, self.way.who, self.error or "was not reached")
        per = 1e6 / (self.count * self.launches)
        best, median = min(self.times) * per, statistics.median(self.times) * per
        row = Row(GROUP, case, self.way.who, median, best, best / base.best if base else 1.0)
        return replace(row, scaling=(one.median if one else median) / median)


def run(setting: Setting) -> list[Row]:
    """Every number of threads, by every way."""
    launches = _LAUNCHES_ON_NULL if setting.null else _LAUNCHES
    launches = max(100, int(launches * min(setting.effort * 5, 1)))
    ways, rows = _ways(setting), list[Row]()
    one: dict[str, Row] = {}
    for count in COUNTS:
        crews = [_Crew(way, count, launches, setting.settle) for way in ways]
        try:
            _rounds(crews, setting.rounds(40))
        finally:
            for crew in crews:
                crew.end()
        base: Row | None = None
        for crew in crews:
            row = crew.row(base, one.get(crew.way.who))
            if not row.error:
                base = base or row
                one.setdefault(row.who, row)
            rows.append(row)
    return rows


def _rounds(crews: Sequence[_Crew], rounds: int) -> None:
    end = time.perf_counter() + _LIMIT_S
    for number in range(rounds):
        if number > 2 and time.perf_counter() > end:
            break
        for crew in crews:
            crew.round()


def _ways(setting: Setting) -> list[_Way]:
    module = setting.context.load_module(FIVE_IN_PTX)
    kernel = module.kernel("k5")
    call = f"cuLaunchKernel(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)"
    ways = [
        _Way(bare.NAME, partial(_case, setting, kernel, bare.NAME, call)),
        _Way("cudadrv Launcher", partial(_case, setting, kernel, "", "launcher(a, b, c, x, n)")),
        _Way("cudadrv PreparedLaunch", partial(_case, setting, kernel, "", "prepared()")),
    ]
    if setting.with_peers and installed(PEERS["core"]):
        from ..peers import core

        ways.append(_Way(f"{core.NAME} launch", core.launch_in_a_thread))
    return ways


def _case(setting: Setting, kernel: cudadrv.Kernel, who: str, statement: str) -> Case:
    """A statement of ours, or of the bare bindings, for the calling thread."""
    setting.context.bind()
    stream = setting.context.new_stream()
    a, b, c = (stream.empty(256, "f4") for _ in "abc")
    launcher = kernel.bind(stream, _CONFIG)
    prepared = launcher.prepare(a, b, c, 1.5, 100)
    names: dict[str, object] = {
        **bare.launch_names(stream), "f": kernel.handle, "params": prepared.block.address,
        "launcher": launcher, "prepared": prepared, "a": a, "b": b, "c": c, "x": 1.5, "n": 100,
    }  # fmt: skip
    return Case(who, statement, names)


def _loop(case: Case, launches: int) -> Callable[[], Any]:
    """A function that runs the statement so often; its names are local, as in a user's loop."""
    names = dict(case.names)
    heads = ", ".join(f"{name}={name}" for name in names)
    text = f"def loop({heads}):\n for _ in range({launches}):\n  {case.statement}\n"
    exec(text, names)
    loop: Callable[[], Any] = names["loop"]  # type: ignore[assignment]  # made by the line above
    return loop
