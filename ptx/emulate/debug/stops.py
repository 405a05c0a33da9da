"""Stops of launches: at breakpoints, steps, watched memory and faults, before an instruction.

Generated code reports each instruction before the threads of a fibre execute it. These reports are
numbered through: the number is a time, at which a repeated run has the same state.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Finding, demangled
from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.memory.generic_addresses import WINDOWS, by_space, owners_of
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.geometry import Dim3, Value
from ptx.emulate.model.threads import ThreadBlocks
from ptx.emulate.observer import ObservedLaunch, Observer, Watcher
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.resident_blocks import ResidentBlocks
from ptx.isa.model import Instruction, source_place
from ptx.isa.module import PtxModule

_LOCATION: Final = re.compile(r"(?m)^\s*\.loc\s+(\d+)\s+(\d+)")
NEVER: Final = 1 << 62
ANY: Final = "*"

_FibreLane = tuple[Fibre | None, Index | None, NDArray[np.bool_] | None, int | None]


@dataclass(slots=True, eq=False)
class CodePoint:
    """An instruction in generated code.

    Attributes:
        file, line: of the CUDA source; None if they are unknown.
        number: counts the points of all launches.
        last: the time at which it was reported last; 0 before the first time.
        names: of its function.
        is_known: whether the user has the source of its line.
        alias: the same line in the file that has the source as a text, if there is one.
        after: the last line before it that has code in its file; lines between have none.
        begins_line: whether the one before it in the text is of another line; is_start: whether
            there is none in its function.
        is_prologue: whether its function's parameters are not loaded yet; is_entry: whether it is
            the first one after that.
        breakpoints: those that may stop here.
    """

    instruction: Instruction
    scope: FunctionScope
    file: str | None
    line: int | None
    number: int = 0
    last: int = 0
    names: tuple[str, ...] = ()
    is_known: bool = True
    alias: tuple[str, int] | None = None
    after: int = 0
    begins_line: bool = True
    is_start: bool = True
    is_prologue: bool = False
    is_entry: bool = False
    breakpoints: tuple[Breakpoint, ...] = ()


@dataclass(slots=True)
class ReportedBlock:
    """A basic block of a function, with its instructions in the order of their reports."""

    scope: FunctionScope
    block: Block
    points: list[CodePoint] = field(default_factory=list)


class StopWriter(BlockInstrument):
    """Writes a call of `LaunchStops.at` before each instruction, and of `touch` at each access.

    Attributes:
        points: the instructions in the order in which they were written.
        blocks: the basic blocks, by their numbers.
    """

    keeps_registers = True

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.points: list[CodePoint] = []
        self.blocks: dict[int, ReportedBlock] = {}
        self._written: tuple[int, ...] = ()

    def begin_block(self, e: Emitter, block: Block) -> None:
        """Write code that finds the observer."""
        self.blocks[e.here] = ReportedBlock(e.scope, block)
        self._written = ()
        e.line(f"debug = {self.follower}")

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code that reports an instruction."""
        self._report(e, step.instruction)
        self._written = step.writes

    def end_block(self, e: Emitter, block: Block) -> None:
        """Write code that reports a branch."""
        if block.branch is not None:
            self._report(e, block.branch)

    def access(self, e: Emitter, addresses: str, offset: int, site: str) -> None:
        """Write code that reports an access."""
        e.line(f"debug.touch(f, {addresses}, {offset}, {site})")

    def _report(self, e: Emitter, i: Instruction) -> None:
        e.flush(sum(1 << number for number in self._written))
        self._written = ()
        file, line = source_place(i.location, e.scope.layout.module.files)
        name = e.scope.function.name
        point = CodePoint(i, e.scope, file, line or None, names=(name, demangled(name)))
        if self.points and self.points[-1].scope is e.scope:
            last, point.is_start = self.points[-1], False
            point.begins_line = (file, line) != (last.file, last.line)
        self.points.append(point)
        self.blocks[e.here].points.append(point)
        guard = "None"
        if i.guard is not None:
            guard = e.value(i.guard.register, "pred")
            guard = f"~{guard}" if i.guard.negated else guard
        e.line(f"debug.at(f, {e.scope.bind(point, 'point')}, {guard})")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread by numbers: of its launch, of its block in the grid, and of itself in the block."""

    launch: int
    block: int
    number: int

    def lane_in(self, fibre: Fibre, launch: int) -> int | None:
        """Return its number in the chunk of a fibre; None if it is in another one."""
        geometry = fibre.blocks.geometry
        slot = self.block - fibre.blocks.first
        if launch != self.launch or not 0 <= slot < geometry.blocks:
            return None
        return slot * geometry.threads_per_block + self.number


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where to stop.

    Attributes:
        number: counts breakpoints.
        file, line: of the CUDA source, where a line without code means the next one that has some;
            of PTX if the file is "".
        kernel: a kernel or function, or `ANY` kernel, whose first instruction stops.
        block, thread: the only coordinates.
        condition: an expression that must hold, or "".
    """

    number: int
    file: str = ""
    line: int = 0
    kernel: str = ""
    block: tuple[int, ...] = ()
    thread: tuple[int, ...] = ()
    condition: str = ""

    def may_stop(self, point: CodePoint) -> bool:
        """Return whether it may stop at an instruction."""
        if self.kernel == ANY:
            return point.is_entry and point.scope.function.is_entry
        if not self.line:
            return point.is_entry and self.kernel in point.names
        if not self.file:
            return point.instruction.line == self.line
        return point.begins_line and self.line_at(point) is not None

    def line_at(self, point: CodePoint) -> int | None:
        """Return an instruction's line in the file of this breakpoint; None if it has another."""
        if not self.file or not self.line:
            return point.instruction.line
        for file, line in ((point.file, point.line), point.alias or (None, None)):
            if file is None or line is None or point.line is None:
                continue
            if is_end_of(self.file, file) and line - (point.line - point.after) < self.line <= line:
                return line
        return None


@dataclass(frozen=True, slots=True)
class Watchpoint:
    """Bytes whose accesses stop.

    Attributes:
        number: counts watchpoints.
        name: what the user wrote.
        space: "global", or "shared" of the block of that number.
        first, end: addresses there.
        reads: whether reads stop, too.
    """

    number: int
    name: str
    space: str
    first: int
    end: int
    block: int = 0
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """How threads go on from a stop.

    Attributes:
        kind: "go" to a breakpoint, or a step: "line" or "instruction".
        depth: a step does not end in calls "over" this depth, may end in them ("in"), or ends in
            the caller ("out").
        thread: that steps, or that is shown at `until`; until_depth: how many calls it is in.
        since: the time before which nothing stops.
        until: the time to stop at anyway.
        is_search: whether to note stops, and to stop at `until` alone.
    """

    kind: Literal["go", "line", "instruction"] = "go"
    depth: Literal["in", "over", "out"] = "in"
    thread: Thread | None = None
    until_depth: int = 0
    since: int = 0
    until: int = NEVER
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Why threads stopped: `kind` as the Debug Adapter Protocol names it, `text`, and where.

    `number` is that of a breakpoint or watchpoint.
    """

    kind: str
    text: str
    time: int
    thread: Thread
    number: int = 0


@dataclass(slots=True)
class Searched:
    """What a search has found.

    Attributes:
        stop: the last stop.
        first: when the thread that steps was at a line for the first time; 0 if it was at none.
        last_line: its last line.
    """

    stop: Stop | None = None
    first: int = 0
    last_line: object = None


@dataclass(slots=True)
class Orders:
    """What a user has asked for: where to stop, and how to go on."""

    breakpoints: tuple[Breakpoint, ...] = ()
    watchpoints: tuple[Watchpoint, ...] = ()
    plan: Plan = field(default_factory=Plan)

    @property
    def may_be_quick(self) -> bool:
        """Whether nothing needs the threads' state at an instruction before `plan.until`."""
        is_search = self.plan.is_search or not (self.breakpoints or self.watchpoints)
        return self.plan.kind == "go" and is_search


class StopHandler:
    """What a debugger does; each method does nothing unless it is overridden."""

    def stopped(self, stop: Stop) -> None:
        """Threads have stopped; they go on by `Stops.orders` when this returns."""

    def launch_began(self) -> None:
        """A launch begins."""

    def describe(self, point: CodePoint) -> None:
        """Complete what is known of an instruction: names, is_known and alias."""

    def on_time(self) -> None:
        """`Stops.timer` is over."""

    def launch_ended(self) -> None:
        """A launch has ended."""

    def holding(
        self, point: CodePoint, fibre: Fibre, positions: Index | None, condition: str
    ) -> Index:
        """Return at which of some positions, or of all (None), a condition holds."""
        return np.arange(fibre.n) if positions is None else positions


class Stops:
    """The stops of all launches of `watcher`.

    Attributes:
        handler: what is called at stops.
        orders: what to stop at; call `resume` after a change.
        time: counts reported instructions.
        timer: a time at which `handler.on_time` is called.
        fibre, point: what was reported last; None before the first launch.
        current: the launch of that; launches: counts them.
        searched: what a search has found.
        is_repetition: whether the launches were observed before, so that findings are known.
        ranges: the addresses that are watched, of their spaces and generic.
    """

    def __init__(self, handler: StopHandler) -> None:
        self.handler = handler
        self.orders: Orders = Orders()
        self.time: int = 0
        self.timer: int = NEVER
        self.look_from: int = NEVER  # from this time on each instruction is looked at
        self.fibre: Fibre | None = None
        self.point: CodePoint | None = None
        self.current: LaunchStops | None = None
        self.searched: Searched = Searched()
        self.is_repetition: bool = False
        self.resumed_at: int = -1
        self.watcher: Watcher = Watcher(self._begin_launch, StopWriter)
        self.launches: int = 0
        self._points: list[CodePoint] = []
        self.ranges: list[tuple[int, int]] = []
        self._writers: dict[int, StopWriter] = {}
        self._exited = 0
        self._last_lane: _FibreLane = (None, None, None, None)

    def line_of(self, breakpoint: Breakpoint) -> int | None:
        """Return the line at which a breakpoint stops in kernels that were launched, if it does."""
        points = (point for point in self._points if breakpoint.may_stop(point))
        return min(map(breakpoint.line_at, points), key=lambda line: line or 0, default=None)

    def last_time(self, breakpoints: tuple[Breakpoint, ...]) -> int:
        """Return the last time at which one of some breakpoints may have stopped, up to now."""
        stopping = (point for point in self._points if any(e.may_stop(point) for e in breakpoints))
        return max((point.last for point in stopping), default=0)

    def _begin_launch(self, launch: ObservedLaunch) -> Observer:
        self.launches += 1
        (writer,) = [e for e in launch.code.instruments if isinstance(e, StopWriter)]
        if id(writer) not in self._writers:
            self._writers[id(writer)] = writer  # which also keeps its identity
            self._register(writer.points)
            self._arm(self.orders.breakpoints)
        self.handler.launch_began()
        self.look_from = min(self.look_from, self.timer)
        return LaunchStops(self, self.launches, writer)

    def change(self) -> None:
        """Follow `orders`, whose breakpoints or watchpoints have changed."""
        self._arm(self.orders.breakpoints)
        self.ranges = [
            (each.first + start, each.end + start)
            for each in self.orders.watchpoints
            for start in (0, *(start for space, start in WINDOWS if space == each.space))
        ]

    def resume(self) -> None:
        """Go on by `orders`, which have changed."""
        self.change()
        plan = self.orders.plan
        is_step = plan.kind != "go"
        self.look_from = self.time if is_step else min(self.timer, plan.until)
        self.resumed_at = -1 if plan.is_search else self.time  # a search begins before the access
        self.searched, self._last_lane = Searched(), (None, None, None, None)
        if is_step and self.fibre is not None and self.point is not None and not plan.is_search:
            self.searched.last_line = self._line(self.fibre, self.point)
        self._exited = 0 if self.fibre is None else len(self.fibre.scheduler.exited)

    def _arm(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        for point in self._points:
            point.breakpoints = tuple(each for each in breakpoints if each.may_stop(point))

    def _register(self, points: list[CodePoint]) -> None:
        """Number the instructions of code, and find where its functions begin after parameters."""
        first: dict[int, CodePoint] = {}
        line: object = None
        lines = lines_with_code(points[0].scope.layout.module) if points else {}
        for point in points:
            point.number = len(self._points)
            if point.line is not None:
                known_lines = lines.get(point.file, [])
                place = bisect_left(known_lines, point.line)
                point.after = known_lines[place - 1] if place else 0
            self._points.append(point)
            self.handler.describe(point)
            if point.is_known:  # code of headers in the midst of a line does not end it
                is_same = not point.is_start and (point.file, point.line) == line
                point.begins_line, line = not is_same, (point.file, point.line)
            is_written = point.instruction.line > 0  # the last `ret` is not
            known = first.get(id(point.scope))
            is_better = known is None or (point.is_known and not known.is_known)
            if point.begins_line and is_written and not point.is_start and is_better:
                first[id(point.scope)] = point
        for point in points:
            entry = first.get(id(point.scope))
            if entry is None and point.instruction.opcode not in ("ld", "mov", "cvta"):
                entry = first[id(point.scope)] = point  # all of it is in one line
            point.is_entry = entry is point
            point.is_prologue = entry is None or point.number < entry.number

    def look(
        self, launch: LaunchStops, fibre: Fibre, point: CodePoint, guard: Value | None
    ) -> None:
        """Stop before an instruction if there is a reason."""
        if fibre.released:  # after a wait the code of the instruction runs again
            return
        if self.time >= self.timer:
            self.handler.on_time()
            if self.orders.plan.kind == "go":
                self.look_from = min(self.timer, self.orders.plan.until)
        plan = self.orders.plan
        if self.time < plan.since:
            return
        reason = self._reason(launch, fibre, point, guard)
        if self.time >= plan.until:
            thread = plan.thread or launch.thread_of(fibre.blocks, first_of(fibre))
            reason = "arrived", "", thread, 0
        if reason is not None:
            self.stop(*reason)

    def pause(self) -> None:
        """Stop at the next instruction."""
        self.orders.plan = Plan(until=self.time)

    def stop(self, kind: str, text: str, thread: Thread, number: int) -> None:
        """Let the handler have a stop, or note it in a search."""
        stop = Stop(kind, text, self.time, thread, number)
        if self.orders.plan.is_search and self.time < self.orders.plan.until:
            self.searched.stop = stop
            return
        self.handler.stopped(stop)
        self.resume()

    def _reason(
        self, launch: LaunchStops, fibre: Fibre, point: CodePoint, guard: Value | None
    ) -> tuple[str, str, Thread, int] | None:
        plan = self.orders.plan
        findings = launch.new_findings()
        if findings and not self.is_repetition:
            where = (findings[0].second or findings[0].first).where  # which has just run
            text = "\n".join(map(str, findings))
            return "finding", text, launch.thread_at(fibre, where.block, where.thread), 0
        thread = plan.thread
        lane = None if thread is None else self._lane_in(launch, fibre, thread)
        for breakpoint in point.breakpoints:
            hit = self._hit(breakpoint, point, fibre, guard, lane)
            if hit is not None and (plan.kind == "go" or hit == lane):
                return "breakpoint", "", launch.thread_of(fibre.blocks, hit), breakpoint.number
        if thread is None:
            return None
        if lane is not None:
            return ("step", "", thread, 0) if self._ends_step(fibre, point) else None
        if len(fibre.scheduler.exited) > self._exited:
            self._exited = len(fibre.scheduler.exited)
            lane = thread.lane_in(fibre, launch.number)
            if lane is not None and any(lane in lanes for lanes in fibre.scheduler.exited):
                self.orders.plan = Plan(until=plan.until, is_search=plan.is_search)
        return None

    def _lane_in(self, launch: LaunchStops, fibre: Fibre, thread: Thread) -> int | None:
        """Return the lane of a thread if the fibre has it now."""
        # A fibre replaces these arrays; it does not change them.
        lanes, present = fibre.lanes, fibre.present
        seen, its_lanes, its_present, lane = self._last_lane
        if fibre is not seen or lanes is not its_lanes or present is not its_present:
            lane = thread.lane_in(fibre, launch.number)
            lane = None if lane is None or position_of(fibre, lane) is None else lane
            self._last_lane = fibre, lanes, present, lane
        return lane

    def _hit(
        self,
        breakpoint: Breakpoint,
        point: CodePoint,
        fibre: Fibre,
        guard: Value | None,
        only: int | None,
    ) -> int | None:
        """Return the first lane at which a breakpoint stops; `only`: of no other lane."""
        chosen = self.positions_of(breakpoint, fibre, guard, only)
        if breakpoint.condition and (chosen is None or len(chosen)):
            chosen = self.handler.holding(point, fibre, chosen, breakpoint.condition)
        if chosen is not None and not len(chosen):
            return None
        return int(fibre.lane_numbers()[0 if chosen is None else chosen[0]])

    @staticmethod
    def positions_of(
        breakpoint: Breakpoint, fibre: Fibre, guard: Value | None = None, only: int | None = None
    ) -> Index | None:
        """Return the positions of the threads that a breakpoint is for; None for all."""
        chosen, size = active(fibre, guard), fibre.blocks.geometry.threads_per_block
        if only is not None or breakpoint.thread or breakpoint.block:
            chosen = np.arange(fibre.n) if chosen is None else chosen
            lanes = fibre.lane_numbers()[chosen]
            wanted = np.ones(len(chosen), np.bool_) if only is None else lanes == only
            if breakpoint.thread:
                wanted &= lanes % size == linear(breakpoint.thread, fibre.blocks.geometry.block)
            if breakpoint.block:
                slot = slot_of(fibre.blocks, breakpoint.block)
                wanted &= lanes // size == (-1 if slot is None else slot)
            chosen = chosen[wanted]
        return chosen

    @staticmethod
    def _line(fibre: Fibre, point: CodePoint) -> object:
        """Return what differs between two lines: the depth of calls, and the line."""
        line = point.instruction.line if point.file is None else point.line
        return len(fibre.calls), point.file, line

    def _ends_step(self, fibre: Fibre, point: CodePoint) -> bool:
        """Return whether the thread that steps is where its step ends."""
        plan, depth = self.orders.plan, len(fibre.calls)
        limit = NEVER if plan.depth == "in" else plan.until_depth - (plan.depth == "out")
        if depth > limit:
            return False
        if plan.kind == "instruction" or plan.depth == "out":
            return True
        if point.is_prologue or not point.is_known:
            return False
        searched, line = self.searched, self._line(fibre, point)
        former, searched.last_line = searched.last_line, line
        if former is None:
            searched.first = self.time
        return former is not None and former != line

    def watch(
        self,
        launch: LaunchStops,
        fibre: Fibre,
        site: Site,
        space: str,
        chosen: Index | None,
        places: Index,
    ) -> None:
        """Stop at an access to watched bytes."""
        for watchpoint in self.orders.watchpoints:
            if watchpoint.space != space or not (
                site.writes or site.facts.is_atomic or watchpoint.reads
            ):
                continue
            positions = np.arange(fibre.n) if chosen is None else chosen
            lanes, at = fibre.lane_numbers()[positions], places
            hits = np.ones(len(positions), np.bool_)
            if fibre.present is not None:
                hits = fibre.present[positions]
            if space == "shared":
                slots = lanes // fibre.blocks.geometry.threads_per_block
                owners, at = owners_of(places, slots, fibre.blocks.cluster.blocks)
                hits = hits & (owners + fibre.blocks.first == watchpoint.block)
            hits = hits & (at < watchpoint.end) & (at + site.total > watchpoint.first)
            lanes = lanes[hits]
            if len(lanes):
                kind = "atomic" if site.facts.is_atomic else "write" if site.writes else "read"
                thread = launch.thread_of(fibre.blocks, int(lanes[0]))
                self.stop("watchpoint", f"{kind} of {watchpoint.name}", thread, watchpoint.number)
                return


class LaunchStops(Observer):
    """The stops of one launch, which generated code calls.

    Attributes:
        number: counts launches; writer: what wrote its code.
    """

    def __init__(self, stops: Stops, number: int, writer: StopWriter) -> None:
        self.number = number
        self.writer = writer
        self._stops = stops
        self._findings: list[Finding] = []
        self._known = 0

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Find the list of findings."""
        assert isinstance(blocks, ResidentBlocks)
        findings = blocks.launch.limits.findings
        if findings is not None and findings.found is not self._findings:
            self._findings, self._known = findings.found, len(findings.found)
        return self

    def follow(self, instrument: Instrument) -> object | None:
        """Return what generated code calls."""
        return self if isinstance(instrument, StopWriter) else None

    def at(self, fibre: Fibre, point: CodePoint, guard: Value | None) -> None:
        """Threads are about to execute an instruction; called by generated code."""
        stops = self._stops
        stops.fibre, stops.point, stops.current = fibre, point, self
        stops.time = time = stops.time + 1
        point.last = time
        if point.breakpoints or time >= stops.look_from or len(self._findings) != self._known:
            stops.look(self, fibre, point, guard)

    def touch(self, fibre: Fibre, addresses: Addresses, offset: int, site: Site) -> None:
        """Threads are about to access memory; called by generated code."""
        stops = self._stops
        if stops.ranges and stops.time != stops.resumed_at:
            low, end = addresses.lowest() + offset, addresses.highest() + offset + site.total
            is_near = any(first < end and low < after for first, after in stops.ranges)
            # Memory of another block of a cluster has other addresses.
            is_near = is_near or (fibre.blocks.cluster.blocks > 1 and site.space != "global")
            if is_near and stops.time >= stops.orders.plan.since:
                for space, chosen, places in by_space(addresses.every(fibre.n) + offset, site):
                    stops.watch(self, fibre, site, space, chosen, places)

    def new_findings(self) -> list[Finding]:
        """Return the findings since the last call."""
        former, self._known = self._known, len(self._findings)
        return self._findings[former:]

    def end(self) -> None:
        """The launch has ended without a fault."""
        self._stops.handler.launch_ended()

    def fail(self, error: BaseException) -> None:
        """Stop at a fault."""
        stops, fibre = self._stops, self._stops.fibre
        if isinstance(error, EmulationFault) and fibre is not None:
            thread = self.thread_at(fibre, error.where.block, error.where.thread)
            stops.stop("exception", str(error), thread, 0)
        if not isinstance(error, GeneratorExit):
            self.end()

    def thread_of(self, blocks: ResidentBlocks, lane: int) -> Thread:
        """Return the thread of a lane of the blocks of a chunk."""
        slot, number = divmod(lane, blocks.geometry.threads_per_block)
        return Thread(self.number, blocks.first + slot, number)

    def thread_at(self, fibre: Fibre, block: Dim3 | None, thread: Dim3 | None) -> Thread:
        """Return the thread with these coordinates in a fibre's chunk; else its first one."""
        lane = None
        if block is not None and thread is not None:
            lane = lane_at(fibre.blocks, block, thread)
        return self.thread_of(fibre.blocks, first_of(fibre) if lane is None else lane)


def is_end_of(
    end: str, file: str, normcase: Callable[[str], str] = os.path.normcase, separator: str = os.sep
) -> bool:
    """Return whether names of a path are its last ones; on Windows without regard to case."""
    its_end, names = (normcase(each).replace(separator, "/").lstrip("/") for each in (end, file))
    return f"/{names}".endswith(f"/{its_end}")


def lines_with_code(module: PtxModule) -> dict[str | None, list[int]]:
    """Return the lines of each file that functions of a module have code for, in their order."""
    found: dict[str | None, set[int]] = {}
    for file, line in set(_LOCATION.findall(module.text)):
        found.setdefault(module.files.get(int(file)), set()).add(int(line))
    return {file: sorted(lines) for file, lines in found.items()}


def linear(coordinates: tuple[int, ...], extents: Dim3) -> int:
    """Return the number of a thread in its block; missing coordinates are 0."""
    x, y, z = (*coordinates, 0, 0, 0)[:3]
    return x + extents[0] * (y + extents[1] * z)


def slot_of(blocks: ResidentBlocks, block: tuple[int, ...]) -> int | None:
    """Return which one of some blocks has these coordinates, whose missing ones are 0."""
    size, wanted = blocks.geometry.threads_per_block, (*block, 0, 0, 0)[:3]
    slots = range(blocks.geometry.blocks)
    return next((slot for slot in slots if blocks.block_of(slot * size) == wanted), None)


def lane_at(blocks: ResidentBlocks, block: tuple[int, ...], thread: tuple[int, ...]) -> int | None:
    """Return the lane of the thread with these coordinates; None if no block has it."""
    slot, geometry = slot_of(blocks, block), blocks.geometry
    if slot is None or any(not 0 <= at < n for at, n in zip(thread, geometry.block, strict=False)):
        return None
    return slot * geometry.threads_per_block + linear(thread, geometry.block)


def active(fibre: Fibre, guard: Value | None) -> Index | None:
    """Return the positions of the threads that execute an instruction; None for all."""
    if guard is None and fibre.present is None:
        return None
    chosen = np.ones(fibre.n, np.bool_) if fibre.present is None else fibre.present
    return (chosen if guard is None else chosen & guard).nonzero()[0]


def first_of(fibre: Fibre) -> int:
    """Return the lane of the first thread of a fibre."""
    position = 0 if fibre.present is None else int(np.argmax(fibre.present))
    return int(fibre.lane_numbers()[position])


def position_of(fibre: Fibre, lane: int) -> int | None:
    """Return where a lane is among the threads of a fibre; None if it is not."""
    position = lane if fibre.lanes is None else int(np.searchsorted(fibre.lanes, lane))
    if fibre.lanes is not None and (position >= fibre.n or fibre.lanes[position] != lane):
        return None
    return None if fibre.present is not None and not fibre.present[position] else position
