"""Searches that execute loops quickly find the stops of those that report each instruction."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from ptx.emulate.debug.debug_info import DebugInfo
from ptx.emulate.debug.expression import Conditions
from ptx.emulate.debug.quick_loops import QuickLoops
from ptx.emulate.debug.stops import (
    Breakpoint,
    CodePoint,
    Orders,
    Plan,
    Stop,
    StopHandler,
    Stops,
    Watchpoint,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.module import PtxModule

ELEMENTS = 8
TICK = 100  # reported instructions between looks


@dataclass(frozen=True)
class Shape:
    """How a kernel is compiled and launched."""

    threads: int = 1
    blocks: int = 1
    is_debug: bool = True


@dataclass
class Found:
    """What a search found, and the state at its end.

    Attributes:
        last: when each instruction was reported last; at: where the search arrived.
        time: of the whole run; y: the memory at its end.
        looks: how often a report of an instruction came after a tick.
    """

    stop: Stop | None
    last: list[int]
    at: Stop | None
    time: int
    y: list[float]
    looks: int = field(compare=False)


class Searcher(StopHandler):
    """Searches in a run of the same process; `is_quick`: with quick loops."""

    def __init__(self, *, is_quick: bool) -> None:
        self.stops = Stops(self)
        self.stops.timer = 0
        self.is_quick = is_quick
        self.loops: QuickLoops | None = None
        self.looks = 0
        self.found: Stop | None = None
        self.last: list[int] = []
        self.at: Stop | None = None
        self._infos: dict[int, DebugInfo] = {}
        self._conditions = Conditions(self._info)

    def _info(self, module: PtxModule) -> DebugInfo:
        return self._infos.setdefault(id(module), DebugInfo(module.text))

    def on_time(self) -> None:
        self.looks += 1
        self.stops.timer = self.stops.time + TICK
        if self.is_quick:
            if self.loops is None:
                end = self.stops.orders.plan.until - 1
                self.loops = QuickLoops(self.stops, self._conditions, end)
            self.loops.install()

    def stopped(self, stop: Stop) -> None:
        if self.at is None:
            if self.loops is not None:
                self.loops.note_hits()
            self.at, self.found = stop, self.stops.searched.stop
            assert self.stops.current is not None
            self.last = [point.last for point in self.stops.current.writer.points]
        self.stops.orders = Orders()

    def holding(
        self, point: CodePoint, fibre: Fibre, positions: Index | None, condition: str
    ) -> Index:
        return self._conditions.holding(point, fibre, positions, condition)


def search(
    source: str,
    plan: Plan,
    places: Callable[[int], Orders],
    *,
    is_quick: bool,
    shape: Shape = Shape(),
) -> Found:
    """Return what a search finds; `places` makes the orders from the address of `y`."""
    searcher = Searcher(is_quick=is_quick)
    stops = searcher.stops
    limits = emulator.Limits(watchers=(stops.watcher,))
    with emulator.session(order="immediate", limits=limits):
        context = cudadrv.cuda_context_for(0)
        kernel = context.compile(
            source, ptx.CompileOptions(debug=shape.is_debug), name="k.cu"
        ).kernel("k")
        stream = context.default_stream
        y = stream.zeros(ELEMENTS, np.float32)
        stops.orders = places(y.ptr)
        stops.orders.plan = plan
        stops.resume()
        kernel.launch(stream, cudadrv.LaunchConfig(shape.blocks, shape.threads), y, 40)
        result = stream.to_host(y)
    return Found(
        searcher.found, searcher.last, searcher.at, stops.time, result.tolist(), searcher.looks
    )


SIMPLE = """
extern "C" __global__ void k(float *y, int n) {
    int sum = 0;
    for (int j = 0; j < 20 * n; j++) {
        sum = sum * 3 + j;
        y[j % 5] = j;
    }
    y[7] = sum;
}
"""
LINE = 5  # of the loop's first statement


def compare(
    source: str, plan: Plan, places: Callable[[int], Orders], shape: Shape = Shape()
) -> Found:
    """Return what a quick search finds, which is what the other one finds."""
    slow = search(source, plan, places, is_quick=False, shape=shape)
    quick = search(source, plan, places, is_quick=True, shape=shape)
    assert quick == slow
    return quick


@pytest.mark.parametrize(
    "condition", ["", "j == 77", "sum % 7 == 1 && j < 300", "j < 0", "nothing"]
)
def test_a_quick_search_finds_the_last_stop_of_a_breakpoint(condition: str) -> None:
    breakpoint = Breakpoint(3, "k.cu", LINE, condition=condition)
    found = compare(SIMPLE, Plan(until=9000, is_search=True), lambda _: Orders((breakpoint,)))
    assert found.at is not None
    assert found.at.time == 9000
    assert (found.stop is None) == (condition in ("j < 0", "nothing"))


@pytest.mark.slow
def test_a_quick_search_finds_the_last_write_of_an_element() -> None:
    def places(y: int) -> Orders:
        return Orders((), (Watchpoint(2, "y[3]", "global", y + 12, y + 16),))

    found = compare(SIMPLE, Plan(until=9000, is_search=True), places)
    assert found.stop is not None
    assert found.stop.text == "write of y[3]"


@pytest.mark.slow
def test_a_loop_of_one_thread_is_not_reported_by_instructions() -> None:
    plan = Plan(until=15000, is_search=True)
    breakpoint = Breakpoint(3, "k.cu", LINE, condition="j == 77")
    found = search(SIMPLE, plan, lambda _: Orders((breakpoint,)), is_quick=True)
    assert found.at is not None
    assert found.looks < found.time // TICK // 4


class Program:
    """A random kernel: nested loops with branches, calls, barriers and memory of each space."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = [
            "__device__ __noinline__ int apart(int v) { return v % 3 ? v + 1 : v / 2; }",
            "__device__ int counter;",
            'extern "C" __global__ void k(float *y, int n) {',
            "__shared__ int tile[8];",
            "int own[4] = {1, 2, 3, 4}; int a = threadIdx.x; int b = 7; float c = 0.5f;",
            "tile[threadIdx.x % 8] = a;",
        ]
        self._block(2)
        self.lines += ["y[threadIdx.x % 8] = a + b + c + own[a & 3] + tile[b & 7];", "}"]

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    def _block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self._statement(depth)

    def _statement(self, depth: int) -> None:
        kind = self.random.choice(["simple"] * 4 + ["if", "for", "for", "while"] * (depth > 0))
        if kind == "simple":
            self.lines.append(self.random.choice(_SIMPLE))
            return
        i = f"i{len(self.lines)}"
        rounds = self.random.choice(["3", "17", "n / 2", "(a & 15)", "(threadIdx.x + 9)"])
        self.lines.append(
            {
                "if": f"if ({self.random.choice(_CONDITIONS)}) {{",
                "for": f"for (int {i} = 0; {i} < {rounds}; {i}++) {{",
                "while": f"int {i} = {rounds}; while ({i} > 0) {{ {i} -= 2;",
            }[kind]
        )
        self._block(depth - 1)
        self.lines.append("}")

    def orders(self, seed: float, y: int) -> Orders:
        """Return random places to stop at."""
        self.random.seed(seed)
        number = iter(range(1, 99)).__next__
        lines = range(5, len(self.lines) + 1)
        breakpoints = [
            Breakpoint(
                number(),
                "k.cu",
                self.random.choice(lines),
                thread=self.random.choice([(), (), (0,), (1,)]),
                block=self.random.choice([(), (), (1,)]),
                condition=self.random.choice(["", *_STOPS]),
            )
            for _ in range(self.random.randint(0, 3))
        ]
        element = self.random.randrange(8)
        reads = self.random.random() < 0.5
        watched = [
            Watchpoint(number(), "y", "global", y + 4 * element, y + 4 * element + 4, reads=reads),
            Watchpoint(number(), "tile", "shared", 4 * element, 4 * element + 4, reads=reads),
        ]
        return Orders(
            tuple(breakpoints), tuple(self.random.sample(watched, self.random.choice([0, 0, 1, 2])))
        )


_SIMPLE = (
    "a = a * 3 + b;", "b ^= a >> 2;", "c = c * 0.75f + a;", "own[b & 3] += a;", "a = own[a & 3];",
    "tile[b & 7] = a;", "b += tile[a & 7];", "y[b & 7] = c;", "c += y[a & 7];", "a = apart(a);",
    "if (a & 1) b++;", "atomicAdd(&counter, 1);",
    "__syncwarp();", "c = sqrtf(c * c + 1);", "a = (a << 3) | (a >> 5);", "b = (unsigned)b % 13u;",
)  # fmt: skip
_CONDITIONS = ("a & 1", "b > 3", "c < 9", "threadIdx.x == 0", "(a ^ b) % 5 == 2")
_STOPS = (
    "a % 7 == 3", "b > 2", "c < 5 && b != 1", "threadIdx.x == 0 && a & 4", "tile[0] > 3", "n == 40",
    "a == 12345", "b", "nothing > 2", "isnan(c) || a < b", "%tid.x == 0",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_quick_searches_in_random_programs_find_the_same(seed: int) -> None:
    program = Program(seed)
    choices = random.Random(seed)
    threads, blocks = choices.choice([1, 1, 1, 2, 9]), choices.choice([1, 1, 2])
    shape = Shape(threads, blocks, is_debug=choices.random() < 0.7)
    everything = search(program.source, Plan(), lambda _: Orders(), is_quick=False, shape=shape)
    for _ in range(3):
        until = choices.randint(1, everything.time)
        since = choices.choice([0, 0, choices.randint(0, until)])
        plan = Plan(since=since, until=until, is_search=True)
        compare(program.source, plan, partial(program.orders, choices.random()), shape)
