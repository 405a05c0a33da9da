"""Stops at breakpoints, steps, watched memory and faults; threads, frames and variables there."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import emulator
from ptx.emulate.debug.debug_info import DebugInfo
from ptx.emulate.debug.expression import Conditions, Evaluator, ExpressionError
from ptx.emulate.debug.frames import Frame, StoppedLaunch
from ptx.emulate.debug.stops import (
    ANY,
    Breakpoint,
    CodePoint,
    Orders,
    Plan,
    Searched,
    Stop,
    StopHandler,
    Stops,
    Thread,
    Watchpoint,
    is_end_of,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.module import PtxModule

SOURCE = """struct Pair { int first; float second; };
__device__ __noinline__ float twice(float v) {
    float w = v * 2;
    return w;
}
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.f;
    __syncthreads();
    float sum = 0;
    for (int j = 0; j < 4; j++) {
        float t = tile[(threadIdx.x + j) % blockDim.x];
        sum += twice(t);
    }
    float own[3];
    own[i % 3] = sum;
    if (threadIdx.x < 7)
        sum += 1;
    Pair pair = {i, sum};
    y[i] = pair.second + own[i % 3] - own[i % 3] + pair.first - i;
}
"""
LINES = {text.strip(): number for number, text in enumerate(SOURCE.splitlines(), 1)}


class Debugger(StopHandler):
    """Collects stops; `script` decides at each how to go on."""

    def __init__(self, orders: Orders, script: Callable[[Debugger, Stop], Plan | None]) -> None:
        self.stops = Stops(self)
        self.stops.orders = orders
        self.script = script
        self.log: list[Stop] = []
        self.info: dict[int, DebugInfo] = {}
        self.conditions = Conditions(self.info_of)

    def stopped(self, stop: Stop) -> None:
        self.log.append(stop)
        self.stops.orders.plan = self.script(self, stop) or Plan()

    def holding(
        self, point: CodePoint, fibre: Fibre, positions: Index | None, condition: str
    ) -> Index:
        return self.conditions.holding(point, fibre, positions, condition)

    def info_of(self, module: PtxModule) -> DebugInfo:
        if id(module) not in self.info:
            self.info[id(module)] = DebugInfo(module.text)
        return self.info[id(module)]

    def evaluator(self, frame: Frame) -> Evaluator:
        return Evaluator(frame, self.info_of(frame.scope.layout.module))

    def value(self, stop: Stop, text: str, depth: int = 0) -> str:
        frame = StoppedLaunch(self.stops).frames(stop.thread)[depth]
        evaluator = self.evaluator(frame)
        return evaluator.shown(evaluator.evaluate(text))

    def line(self, stop: Stop) -> int | None:
        return StoppedLaunch(self.stops).frames(stop.thread)[0].source[1]


def run(
    orders: Orders,
    script: Callable[[Debugger, Stop], Plan | None],
    *,
    n: int = 64,
    y: int = 64,
    debug: bool = True,
    check: tuple[emulator.CheckName, ...] = (),
) -> tuple[Debugger, NDArray[np.float32]]:
    debugger = Debugger(orders, script)
    limits = emulator.Limits(watchers=(debugger.stops.watcher,))
    result = np.zeros(y, np.float32)
    with emulator.session(order="immediate", limits=limits, check=check, raise_findings=False):
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(debug=debug)
        kernel = context.compile(SOURCE, options, name="sums.cu").kernel("k")
        stream = context.default_stream
        x, out = stream.to_device(np.arange(64, dtype=np.float32)), stream.zeros(y, np.float32)
        with suppress(cudadrv.CudaError):
            kernel.launch(stream, cudadrv.LaunchConfig(2, 32), x, out, n)
            result = stream.to_host(out)
    return debugger, result


def test_observed_threads_have_the_results_of_others() -> None:
    _, plain = run(Orders(), lambda _, __: None)
    stopped, result = run(
        Orders((Breakpoint(1, "sums.cu", LINES["sum += twice(t);"]),)), lambda _, __: None
    )
    np.testing.assert_array_equal(result, plain)
    assert len(stopped.log) == 4  # all threads are together, and stop in each round


def test_breakpoints_stop_where_they_say() -> None:
    line = LINES["sum += twice(t);"]
    cases = {
        "line": (Breakpoint(1, "sums.cu", line), 4),
        "path": (Breakpoint(1, "elsewhere/sums.cu", line), 0),
        "kernel": (Breakpoint(1, kernel="k"), 1),
        "any kernel": (Breakpoint(1, kernel=ANY), 1),
        "function": (Breakpoint(1, kernel="twice"), 4),
        "other kernel": (Breakpoint(1, kernel="nothing"), 0),
        "block": (Breakpoint(1, "sums.cu", line, block=(1,)), 4),
        "absent block": (Breakpoint(1, "sums.cu", line, block=(2,)), 0),
        "thread": (Breakpoint(1, "sums.cu", line, thread=(5,)), 4),
        "diverged thread": (Breakpoint(1, "sums.cu", LINES["sum += 1;"], thread=(7,)), 0),
        "condition": (Breakpoint(1, "sums.cu", line, condition="j == 2 && threadIdx.x == 3"), 1),
        "condition of memory": (Breakpoint(1, "sums.cu", line, condition="x[i] > 62"), 4),
        "condition that never holds": (Breakpoint(1, "sums.cu", line, condition="isnan(sum)"), 0),
    }
    wrong = {}
    for name, (breakpoint, count) in cases.items():
        found = len(run(Orders((breakpoint,)), lambda _, __: None)[0].log)
        if found != count:
            wrong[name] = found, count
    assert not wrong


def test_a_breakpoint_names_the_end_of_a_path_with_the_separators_of_the_system() -> None:
    others = {"ums.cu", "b/sums.cu", "/b/a/sums.cu"}
    for system, file, names in (
        (posixpath, "/a/sums.cu", {"sums.cu", "a/sums.cu", "/a/sums.cu"}),
        (ntpath, r"C:\a\sums.cu", {"sums.cu", r"a\Sums.cu", r"c:\a\sums.cu", "a/sums.cu"}),
    ):
        found = {
            name for name in names | others if is_end_of(name, file, system.normcase, system.sep)
        }
        assert found == names


def test_a_breakpoint_at_a_line_without_code_stops_at_the_next_line() -> None:
    """Of all functions of the module, and not after its last line."""
    first, last = LINES["float own[3];"], len(SOURCE.splitlines())
    cases = {first: first + 1, last: last, last + 1: None, last + 9: None}
    wrong = {}
    for line, expected in cases.items():
        breakpoint = Breakpoint(1, "sums.cu", line)
        debugger, _ = run(Orders((breakpoint,)), lambda _, __: None)
        found = debugger.stops.line_of(breakpoint), len(debugger.log) > 0
        if found != (expected, expected is not None):
            wrong[line] = found
    assert not wrong


def test_a_breakpoint_of_a_thread_stops_in_that_thread() -> None:
    line = LINES["sum += twice(t);"]
    orders = Orders((Breakpoint(1, "sums.cu", line, block=(1,), thread=(5,)),))
    debugger, _ = run(orders, lambda _, __: None)
    assert {stop.thread for stop in debugger.log} == {Thread(1, 1, 5)}


def test_variables_have_their_names_in_cuda() -> None:
    seen: dict[str, str] = {}

    def script(debugger: Debugger, stop: Stop) -> None:
        for text in (
            "i", "sum", "n", "tile[5]", "tile[4:7]", "own[i % 3]", "x[37]", "x[0:3]", "pair",
            "pair.second", "threadIdx.x", "blockIdx.x", "sum * 2 + 1", "sum > 3 && i == 37",
        ):  # fmt: skip
            seen[text] = debugger.value(stop, text)

    line = LINES["y[i] = pair.second + own[i % 3] - own[i % 3] + pair.first - i;"]
    run(Orders((Breakpoint(1, "sums.cu", line, block=(1,), thread=(5,)),)), script)
    total = float(2 * (37 + 38 + 39 + 40) + 1)
    assert seen == {
        "i": "37", "sum": str(total), "n": "64", "tile[5]": "37.0",
        "tile[4:7]": "{36.0, 37.0, 38.0}", "own[i % 3]": str(total - 1), "x[37]": "37.0",
        "x[0:3]": "{0.0, 1.0, 2.0}", "pair": f"{{first = 37, second = {total}}}",
        "pair.second": str(total), "threadIdx.x": "5", "blockIdx.x": "1",
        "sum * 2 + 1": str(2 * total + 1), "sum > 3 && i == 37": "true",
    }  # fmt: skip


def test_steps_end_at_lines_instructions_and_calls() -> None:
    line = LINES["sum += twice(t);"]
    orders = Orders((Breakpoint(1, "sums.cu", line, thread=(3,), condition="j == 1"),))
    cases = {
        ("line", "over"): LINES["for (int j = 0; j < 4; j++) {"],
        ("line", "in"): LINES["float w = v * 2;"],
        ("line", "out"): None,
        ("instruction", "in"): line,
    }
    for (kind, depth), expected in cases.items():
        lines: list[int | None] = []

        def script(
            debugger: Debugger,
            stop: Stop,
            kind: str = kind,
            depth: str = depth,
            lines: list[int | None] = lines,
        ) -> Plan | None:
            lines.append(debugger.line(stop))
            frames = StoppedLaunch(debugger.stops).frames(stop.thread)
            return Plan(kind, depth, stop.thread, len(frames) - 1) if len(lines) == 1 else None  # type: ignore[arg-type]  # of the table

        run(orders, script)
        assert lines == [line] + ([] if expected is None else [expected]), (kind, depth)


def test_frames_name_the_callers() -> None:
    seen: list[tuple[str, int | None, str]] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        frames = StoppedLaunch(debugger.stops).frames(stop.thread)
        for depth, (frame, name) in enumerate(zip(frames, ("v", "t"), strict=True)):
            function = frame.scope.function.name
            seen.append((function, frame.source[1], debugger.value(stop, name, depth)))

    line = LINES["float w = v * 2;"]
    orders = Orders((Breakpoint(1, "sums.cu", line, block=(0,), thread=(3,)),))
    run(orders, script)
    assert [each[1:] for each in seen[:4]] == [
        (line, "3.0"), (LINES["sum += twice(t);"], "3.0"),
        (line, "4.0"), (LINES["sum += twice(t);"], "4.0"),
    ]  # fmt: skip


def test_lanes_of_a_warp_have_states() -> None:
    states: list[str] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        states.extend(lane.state for lane in StoppedLaunch(debugger.stops).warp_of(stop.thread))

    run(Orders((Breakpoint(1, "sums.cu", LINES["sum += 1;"], block=(1,)),)), script)
    assert states == ["stopped"] * 7 + ["ready to run"] * 25


def test_a_watchpoint_finds_the_writer() -> None:
    threads: list[Thread] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        if stop.kind == "breakpoint":
            frame = StoppedLaunch(debugger.stops).frames(stop.thread)[0]
            place, _ = debugger.evaluator(frame).watched("y[37]")
            first = int(place.addresses[0])
            shared, _ = debugger.evaluator(frame).watched("tile[9]")
            start = int(shared.addresses[0])
            debugger.stops.orders.watchpoints = (
                Watchpoint(1, "y[37]", "global", first, first + 4),
                Watchpoint(2, "tile[9]", "shared", start, start + 4, block=0),
            )
        else:
            threads.append(stop.thread)

    debugger, _ = run(Orders((Breakpoint(1, kernel="k"),)), script)
    assert threads == [Thread(1, 0, 9), Thread(1, 1, 5)]
    assert [stop.text for stop in debugger.log[1:]] == ["write of tile[9]", "write of y[37]"]


def test_a_fault_stops_with_its_threads_as_they_were() -> None:
    seen: list[str] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        seen.append(debugger.value(stop, "i"))

    debugger, _ = run(Orders(), script, y=40)
    (stop,) = debugger.log
    assert stop.kind == "exception"
    assert stop.thread == Thread(1, 1, 8)
    assert seen == ["40"]
    assert stop.text.startswith("out-of-bounds write of 4 bytes")


def test_code_without_debug_information_shows_registers_and_arguments() -> None:
    seen: list[str] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        frame = StoppedLaunch(debugger.stops).frames(stop.thread)[0]
        evaluator = debugger.evaluator(frame)
        seen.append(evaluator.shown(evaluator.evaluate("k_param_0[7]")))
        assert list(evaluator.variables()) == ["k_param_0", "k_param_1", "k_param_2"]
        assert any(name.startswith("%r") for name, _ in evaluator.registers())
        try:
            evaluator.evaluate("sum")
        except ExpressionError as error:
            seen.append(str(error))

    line = LINES["sum += twice(t);"]
    run(
        Orders((Breakpoint(1, "sums.cu", line, condition="%tid.x == %tid.x"),)), script, debug=False
    )
    assert seen[:2] == ["7.0", "there is no sum here"]


BARRIER = """
extern "C" __global__ void wait(const float *x, float *y) {
    extern __shared__ float dynamic[];
    int t = threadIdx.x;
    dynamic[t] = x[t];
    if (t < 32)
        __syncthreads();
    else
        dynamic[t] += 1;
    y[t] = dynamic[t];
}
"""


def test_threads_that_wait_have_their_barrier_and_variables() -> None:
    seen: list[str] = []

    def script(debugger: Debugger, stop: Stop) -> None:
        launch = StoppedLaunch(debugger.stops)
        waiting = Thread(stop.thread.launch, 0, 3)
        state = launch.state_of(waiting)
        assert state.instruction is not None
        (frame,) = launch.frames(waiting)
        evaluator = debugger.evaluator(frame)
        seen.extend([
            state.state, state.instruction.opcode, *launch.barriers(),
            evaluator.shown(evaluator.evaluate("t")),
            evaluator.shown(evaluator.evaluate("dynamic[62:64]")),
        ])  # fmt: skip

    debugger = Debugger(Orders((Breakpoint(1, "wait.cu", 9, thread=(32,)),)), script)
    limits = emulator.Limits(watchers=(debugger.stops.watcher,))
    with emulator.session(order="immediate", limits=limits, check=[]):
        context = cudadrv.cuda_context_for(0)
        kernel = context.compile(BARRIER, ptx.CompileOptions(debug=True), name="wait.cu")
        stream = context.default_stream
        x, y = stream.to_device(np.arange(64, dtype=np.float32)), stream.zeros(64, np.float32)
        config = cudadrv.LaunchConfig(1, 64, shared_bytes=256)
        kernel.kernel("wait").launch(stream, config, x, y)
    assert seen == [
        "waits at barrier 0", "bar",
        "barrier 0 of block (0, 0, 0): 32 threads wait, 32 are missing", "3", "{62.0, 63.0}",
    ]  # fmt: skip


CLUSTER = """
#line 1 "header.h"
__device__ __forceinline__ unsigned inner() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ unsigned rank() { return inner(); }
#line 10 "swap.cu"
extern "C" __global__ void __cluster_dims__(2, 1, 1) swap(int *y) {
    unsigned own = rank();
    __shared__ int tile[32];
    int *other;
    tile[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
    asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(tile), "r"(own ^ 1));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    other[threadIdx.x] += 7;
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    y[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
}
"""


def run_cluster(debugger: Debugger) -> NDArray[np.int32]:
    limits = emulator.Limits(watchers=(debugger.stops.watcher,))
    with emulator.session(compute_capability=(9, 0), order="immediate", limits=limits, check=[]):
        context = cudadrv.cuda_context_for(0)
        module = context.compile(CLUSTER, ptx.CompileOptions(debug=True), name="swap.cu")
        stream = context.default_stream
        y = stream.zeros(128, np.int32)
        module.kernel("swap").launch(stream, cudadrv.LaunchConfig(4, 32), y)
        return stream.to_host(y)


def test_shared_memory_of_another_block_of_the_cluster_is_shown_and_watched() -> None:
    for text, value, writer in (("tile[5]", "305", (2, 5)), ("other[6]", "206", (3, 6))):
        seen: list[object] = []

        def script(
            debugger: Debugger, stop: Stop, text: str = text, seen: list[object] = seen
        ) -> None:
            if stop.kind == "watchpoint":
                seen.append((stop.thread.block, stop.thread.number))
                return
            frame = StoppedLaunch(debugger.stops).frames(stop.thread)[0]
            evaluator = debugger.evaluator(frame)
            place, block = evaluator.watched(text)
            first = int(place.addresses[0])
            seen.append(evaluator.shown(evaluator.evaluate(text)))
            debugger.stops.orders.watchpoints = (
                Watchpoint(2, text, place.space, first, first + 4, block),
            )

        result = run_cluster(Debugger(Orders((Breakpoint(1, "swap.cu", 17, block=(3,)),)), script))
        assert result[96 + 5] == 312
        assert seen == [value, writer], text


class OfUser(Debugger):
    """Knows one source alone."""

    def describe(self, point: CodePoint) -> None:
        point.is_known = point.file is not None and point.file.endswith("swap.cu")


def test_a_kernel_stops_at_its_own_line_if_code_of_a_header_is_before_it() -> None:
    lines: list[int | None] = []
    debugger = OfUser(
        Orders((Breakpoint(1, kernel="swap"),)),
        lambda debugger, stop: lines.append(debugger.line(stop)),
    )
    run_cluster(debugger)
    assert lines == [11]


ONE_LINE = """
struct Sum { int n; __device__ __noinline__ int of(int v) const { return v * 2 + n; } };
extern "C" __global__ void one(int *y) { Sum s = {3}; y[threadIdx.x] = s.of(threadIdx.x); }
"""


def test_functions_of_one_line_stop_after_their_parameters() -> None:
    """Also by the name that the debug information has for a member."""
    debugger = Named(Orders((Breakpoint(1, kernel="one"), Breakpoint(2, kernel="of"))))
    limits = emulator.Limits(watchers=(debugger.stops.watcher,))
    with emulator.session(order="immediate", limits=limits, check=[]):
        context = cudadrv.cuda_context_for(0)
        module = context.compile(ONE_LINE, ptx.CompileOptions(debug=True), name="one.cu")
        stream = context.default_stream
        y = stream.zeros(32, np.int32)
        module.kernel("one").launch(stream, cudadrv.LaunchConfig(1, 32), y)
        assert stream.to_host(y)[5] == 13
    assert debugger.seen == [(1, "y[5]", "0"), (2, "v", "0")]


class Named(Debugger):
    """Names functions as the debug information does; notes a value at each stop."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(orders, lambda _, __: None)
        self.seen: list[tuple[int, str, str]] = []

    def describe(self, point: CodePoint) -> None:
        names = DebugInfo(point.scope.layout.module.text).names
        point.names = (*point.names, names[point.scope.function.name])

    def stopped(self, stop: Stop) -> None:
        text = {1: "y[5]", 2: "v"}[stop.number]
        self.seen.append((stop.number, text, self.value(stop, text)))


class Repeating(Debugger):
    """Begins a search at a time, as a copy of a process does."""

    def __init__(self, begin: int) -> None:
        super().__init__(Orders(), lambda _, __: None)
        self.stops.timer = begin
        self.wanted = Orders()

    def on_time(self) -> None:
        self.stops.timer = 1 << 62
        self.stops.orders = self.wanted
        self.stops.resume()


def search_from(begin: int, plan: Plan) -> tuple[Searched, int]:
    """Return what a search finds from a time on, and the time of the end."""
    debugger = Repeating(begin)
    limits = emulator.Limits(watchers=(debugger.stops.watcher,))
    with emulator.session(order="immediate", limits=limits, check=[]):
        context = cudadrv.cuda_context_for(0)
        module = context.compile(ONE_LINE, ptx.CompileOptions(debug=True), name="one.cu")
        stream = context.default_stream
        y = stream.zeros(32, np.int32)
        stream.synchronize()
        watched = Watchpoint(1, "y", "global", y.ptr, y.ptr + 4)
        debugger.wanted = Orders(watchpoints=(watched,), plan=plan)
        module.kernel("one").launch(stream, cudadrv.LaunchConfig(1, 32), y)
        stream.synchronize()
    return debugger.stops.searched, debugger.stops.time


def test_a_search_sees_the_access_of_the_instruction_that_it_begins_at() -> None:
    plan = Plan(is_search=True)
    stop = search_from(1, plan)[0].stop
    assert stop is not None
    assert search_from(stop.time, plan)[0].stop == stop
    assert search_from(stop.time + 1, plan)[0].stop is None


def test_parts_of_a_search_know_when_the_thread_that_steps_is_at_a_line_first() -> None:
    """A search that ends after this time finds a step that ends between two parts."""
    step = Plan("line", "in", Thread(1, 0, 3), 0, is_search=True)
    whole, end = search_from(1, step)
    assert whole.first
    parts = [search_from(begin, step)[0] for begin in range(1, end + 1)]
    assert all(part.first >= begin for begin, part in enumerate(parts, 1) if part.first)
    assert parts[-1].stop is None
    alone = [part.first for part in parts if part.first and part.stop is None]
    assert alone
    for first in sorted(set(alone))[:2]:
        found = search_from(1, replace(step, until=first + 1))[0].stop
        assert found is not None
        assert found == whole.stop


def assert_found(line: int, conditions: Iterable[str]) -> int:
    """Compare searches with the stops of runs forwards; return how many found one."""
    found, wrong = 0, {}
    for condition, thread in product(conditions, ((), (3,))):
        places = (Breakpoint(1, "sums.cu", line, thread=thread, condition=condition),)
        log = run(Orders(places), lambda _, __: None)[0].log
        plan = Plan(is_search=True)
        searching, _ = run(Orders(places, plan=plan), lambda _, __: None)
        stop, last = searching.stops.searched.stop, log[-1] if log else None
        found += last is not None
        if stop != last or searching.log:
            wrong[line, condition, thread] = stop, last
    assert not wrong
    return found


def test_a_search_finds_the_last_place_at_which_a_condition_holds() -> None:
    assert assert_found(LINES["sum += twice(t);"], ["i % 7 == 3 && j < 2"]) == 2


@pytest.mark.slow
def test_a_search_evaluates_conditions_of_all_kinds() -> None:
    """Those that read memory, those of registers alone, and those without a value."""
    conditions = [
        "j == 2 && threadIdx.x == 3", "sum > 20", "isnan(sum)", "x[i] > 62", "t == 5", "v == 7",
        "i % 7 == 3", "threadIdx.x < 5 && blockIdx.x == 1", "tile[3] == 3", "nothing == 3",
        "%tid.x == 9",
    ]  # fmt: skip
    lines = "sum += twice(t);", "sum += 1;", "float w = v * 2;"
    assert sum(assert_found(LINES[line], conditions) for line in lines) > 20
