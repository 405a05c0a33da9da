"""Loops of a thread that runs alone, executed quickly while a repetition searches for a stop.

The code for observers reports each instruction, and executes it with NumPy. Here a loop has the
code for single threads of `codegen/lane` instead. That code counts the instructions, and records
the registers of a condition where a breakpoint may stop. The conditions of many passes are then
evaluated together. All else, and each other fibre, keeps the code for observers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import NoLaneCode
from ptx.emulate.codegen.lane.lane_table import find_lane
from ptx.emulate.codegen.lane.lane_writer import loops_of, next_block, write_step
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.codegen.table import Effect
from ptx.emulate.codegen.unit import Unit
from ptx.emulate.debug.expression import NO_VALUE, Conditions
from ptx.emulate.debug.stops import Breakpoint, CodePoint, LaunchStops, ReportedBlock, Stop, Stops
from ptx.emulate.exec.kernel_code import BlockFunction, BlockFunctions, KernelCode
from ptx.emulate.exec.lane.lane_memory import LaneMemory
from ptx.emulate.exec.lane.lane_runner import LaneRunner
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Registers
from ptx.emulate.model.types import NUMPY
from ptx.emulate.ops.data_movement import space_of
from ptx.emulate.ops.lane_data import LanePlace
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.resident_blocks import ResidentBlocks
from ptx.emulate.threads.rows import LANE, LOCAL, SHARED, Row, column, is_held, value_of
from ptx.isa.model import Address

_FEWEST: Final = 64  # blocks for which it is worth to change the form of the registers
_MOST_PASSES: Final = 1 << 14
_Chains = tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Crossing:
    """An instruction at which breakpoints may stop, and how often its thread came there.

    Attributes:
        times: of its passes; values: of the conditions' registers then, as a row holds them.
    """

    point: CodePoint
    values: dict[int, list[Any]]
    times: list[int] = field(default_factory=list)


class _Passes:
    """What a condition reads of a thread at several times, as if these were threads of a fibre."""

    def __init__(self, fibre: Fibre, registers: dict[int, Value], count: int) -> None:
        self.regs = registers
        self.n = count
        self._fibre = fibre

    def special(self, name: str) -> Value:
        """Return a special register, which does not change."""
        value: Value = self._fibre.special(name).reshape(-1)[0]
        return value


class _NoLanes(LaneRunner):
    """Runs no fibre, and has the memory that code for single threads accesses."""

    def __init__(self, blocks: ResidentBlocks) -> None:
        self.most: int = 0
        self.memory: LaneMemory | None = LaneMemory(blocks)

    def are_apart(self) -> None:
        """Leave the threads to the code for observers."""


class QuickLoops:
    """The loops of the launch that a repetition is in, up to a time.

    Args:
        stops: of the repetition, which searches, or has no places to stop at.
        conditions: evaluates those of breakpoints.
        end: the time up to which loops are executed quickly.
    """

    def __init__(self, stops: Stops, conditions: Conditions, end: int) -> None:
        assert stops.fibre is not None
        assert stops.current is not None
        self._stops = stops
        self._conditions = conditions
        self._end = end
        self._fibre = stops.fibre
        self._launch: LaunchStops = stops.current
        code = stops.fibre.blocks.code
        assert isinstance(code, KernelCode)
        self._code: KernelCode = code
        self._blocks: BlockFunctions = code.blocks
        self._loops_at: dict[int, tuple[Unit, _Chains]] = {}
        self._loops: dict[int, _Loop | None] = {}
        self._general: dict[int, BlockFunction] = {}
        self._quick: dict[int, BlockFunction] = {}
        self._crossings: list[_Crossing] = []
        if self._is_possible(stops.fibre):
            self._find_loops()

    @property
    def exist(self) -> bool:
        """Whether there are loops that may be executed quickly."""
        return bool(self._quick)

    def install(self) -> None:
        """Have threads execute the loops; repeat it when more of the kernel may be compiled."""
        for number, function in self._quick.items():
            if self._blocks[number] is not function:
                self._general[number], self._blocks[number] = self._blocks[number], function

    def _is_possible(self, fibre: Fibre) -> bool:
        """Return whether the debugger alone observes the threads, and their order is the usual."""
        blocks, limits = fibre.blocks, fibre.blocks.launch.limits
        has_memory_of_others = self._stops.ranges and blocks.cluster.blocks > 1
        return (
            type(fibre.scheduler) is Scheduler
            and len(blocks.observers) == 1
            and not limits.check_synchronisation
            and limits.dependency is None  # of a launch that may begin before this one ends
            and not (blocks.accesses or self._code.reads_clock or has_memory_of_others)
        )

    def _find_loops(self) -> None:
        functions: dict[int, tuple[FunctionScope, list[Block]]] = {}
        for number, each in self._launch.writer.blocks.items():
            functions.setdefault(number - each.block.index, (each.scope, []))[1].append(each.block)
        for first, (scope, blocks) in functions.items():
            unit = Unit(scope.layout, blocks, scope, (1 << len(scope.numbers)) - 1)
            unit.first = first
            for members in set(loops_of(blocks, alone=True, leave_out=True).values()):
                chains = _chains_of(blocks, members)
                for chain in chains:
                    self._loops_at[first + chain[0]] = unit, chains
        self._quick = {number: partial(self._run, number) for number in self._loops_at}

    def _run(self, number: int, fibre: Fibre, registers: Registers) -> int:
        """Execute a loop from one of its blocks on, or that block alone; return the next block."""
        loop, queue, stops = self._loop_for(number, fibre), fibre.scheduler, self._stops
        if loop is None or stops.time + loop.reports > self._end:
            return self._general[number](fibre, registers)
        if fibre is not self._fibre:
            self.note_hits()
            self._fibre = fibre
        row = self._row(fibre, registers, loop.used)
        room = queue.steps_left
        following, left, time, last = loop.function(fibre, row, number, room, stops.time, self._end)
        for register in loop.written:
            registers[register] = value_of((row[register],), fibre.register_types[register])
            fibre.written |= 1 << register
        queue.steps += room - left - 1
        if room - left < _FEWEST:
            del self._quick[number]
            self._blocks[number] = self._general[number]
        for chain, began in zip(loop.chains, last, strict=True):
            points = [point for each in chain for point in each.points] if began >= 0 else ()
            for at, point in enumerate(points, began + 1):
                point.last = at
        stops.time = time
        if any(len(each.times) > _MOST_PASSES for each in loop.crossings):
            self.note_hits()
        return following

    @staticmethod
    def _row(fibre: Fibre, registers: Registers, used: Iterable[int]) -> Row:
        """Return some of a thread's registers, and where the thread is, for its code."""
        blocks, lane = fibre.blocks, int(fibre.lane_numbers()[0])
        row: Row = {register: column(registers[register], 1)[0] for register in used}
        slot = lane // blocks.geometry.threads_per_block
        row[LANE], row[LOCAL] = lane, lane * blocks.local_stride
        row[SHARED] = slot * blocks.shared_stride
        return row

    def _loop_for(self, number: int, fibre: Fibre) -> _Loop | None:
        """Return the loop of a block if no other thread can run before the fibre leaves it."""
        queue = fibre.scheduler
        if fibre.n > 1 or fibre.present is not None or fibre.rest is not None or queue.has_runnable:
            return None
        unit, chains = self._loops_at[number]
        if queue.steps_left < max(sum(map(len, chains)), _FEWEST):
            return None
        if number not in self._loops:
            are_held = all(map(is_held, fibre.register_types))
            loop = self._loop(unit, chains, fibre) if are_held else None
            self._loops.update(dict.fromkeys((unit.first + chain[0] for chain in chains), loop))
        assert isinstance(queue, Scheduler)
        if queue.lanes is None:
            queue.lanes = _NoLanes(fibre.blocks)
        return self._loops[number]

    def _loop(self, unit: Unit, chains: _Chains, fibre: Fibre) -> _Loop | None:
        """Write a loop; None if an instruction or a condition in it has no quick code."""
        reported = self._launch.writer.blocks
        try:
            loop = _Loop(
                self,
                fibre,
                self._blocks,
                unit,
                [[reported[unit.first + number] for number in chain] for chain in chains],
            )
        except NoLaneCode:
            return None
        self._crossings += loop.crossings
        return loop

    def crossing_at(self, point: CodePoint, fibre: Fibre) -> _Crossing | None:
        """Return what to record at an instruction; None if no breakpoint may stop there.

        Raises:
            NoLaneCode: a condition reads more than registers.
        """
        if not point.breakpoints:
            return None
        registers: set[int] = set()
        for breakpoint in filter(lambda each: each.condition, point.breakpoints):
            try:
                condition = self._conditions.of_registers(point, fibre, breakpoint.condition)
            except NO_VALUE:
                condition = None
            if condition is None:
                raise NoLaneCode
            registers |= condition.registers
        return _Crossing(point, {register: [] for register in registers})

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The addresses that are watched."""
        return self._stops.ranges

    def touch(self, fibre: Fibre, address: int, site: Site, time: int) -> None:
        """A thread is about to access memory close to watched bytes; called by generated code."""
        self._stops.time = time
        self._launch.touch(fibre, Addresses(address, None), 0, site)

    def note_hits(self) -> None:
        """Note the last pass so far at which a breakpoint stops."""
        stops, fibre = self._stops, self._fibre
        lane = int(fibre.lane_numbers()[0])
        for crossing in self._crossings:
            if not crossing.times:
                continue
            kinds = crossing.point.scope.stored_kind
            registers = {
                number: value_of(values, np.dtype(NUMPY[kinds[number]]))
                for number, values in crossing.values.items()
            }
            passes = _Passes(fibre, registers, len(crossing.times))
            for breakpoint in crossing.point.breakpoints:
                positions = stops.positions_of(breakpoint, fibre)
                if positions is not None and not len(positions):
                    continue
                time = self._last_hit(crossing, breakpoint, passes)
                noted = stops.searched.stop
                if time >= stops.orders.plan.since and (noted is None or noted.time < time):
                    thread = self._launch.thread_of(fibre.blocks, lane)
                    stops.searched.stop = Stop("breakpoint", "", time, thread, breakpoint.number)
            for column_of in (crossing.times, *crossing.values.values()):
                column_of.clear()

    def _last_hit(self, crossing: _Crossing, breakpoint: Breakpoint, passes: _Passes) -> int:
        """Return the time of the last pass at which a condition holds; -1 if there is none."""
        if not breakpoint.condition:
            return crossing.times[-1]
        known = self._conditions.of_registers(crossing.point, self._fibre, breakpoint.condition)
        assert known is not None
        try:
            hits = known.holds(passes).nonzero()[0]
        except NO_VALUE:
            return -1
        return crossing.times[hits[-1]] if len(hits) else -1


class _Loop:
    """A loop of basic blocks, as a function.

    Attributes:
        function: executes the loop, as `_source` writes it.
        chains: its blocks, those together that follow each other; reports: of one pass of all.
        used: its registers; written: those that it writes.
        crossings: where breakpoints may stop.
    """

    def __init__(
        self,
        loops: QuickLoops,
        fibre: Fibre,
        code: BlockFunctions,
        unit: Unit,
        chains: Sequence[Sequence[ReportedBlock]],
    ) -> None:
        self.chains = chains
        blocks = [each for chain in chains for each in chain]
        self.reports: int = sum(len(each.points) for each in blocks)
        steps = [step for each in blocks for step in each.block.steps]
        self.written: tuple[int, ...] = tuple({number for step in steps for number in step.writes})
        guards = [e.block.guard for e in blocks if e.block.guard is not None]
        self.used: set[int] = {*self.written, *(unit.scope.number(e.register) for e in guards)}
        self.used.update(number for step in steps for number in step.reads)
        self.crossings: list[_Crossing] = []
        self._loops = loops
        self._fibre = fibre
        self._code = code
        self._unit = unit
        self._emitter = LaneEmitter(unit.scope, alone=True)
        self._emitter.begin()
        names: dict[str, Any] = code.names
        exec(compile(self._source(), f"<ptx {code.kernel}, search>", "exec"), names)
        self.function: Callable[..., tuple[int, int, int, tuple[int, ...]]] = names.pop("search")

    def _source(self) -> str:
        """Return the function: it loads registers, repeats the chains, and stores the registers.

        Its result is the next block, how many blocks it may still execute, the time, and the last
        times at which its chains began, -1 for never.
        """
        written = [self._chain(each) for each in self.chains]
        heads = [self._unit.first + each[0].block.index for each in self.chains]
        lines = [*self._emitter.prelude, *(f"r{number} = R[{number}]" for number in self.used)]
        lines += [f"began{head} = -1" for head in heads]
        count = sum(map(len, self.chains))
        lines.append(f"while room >= {count} and now + {self.reports} <= end:")
        for head, body in zip(heads, written, strict=True):
            lines.append(f"    if at == {head}:")
            lines += [f"        {line}" for line in (f"began{head} = now", *body)]
        lines.append(f"    if at not in {set(heads)}: break")
        lines += [f"R[{number}] = r{number}" for number in self.written]
        lines.append(f"return at, room, now, ({', '.join(f'began{head}' for head in heads)},)")
        return "def search(f, R, at, room, now, end):\n    " + "\n    ".join(lines)

    def _chain(self, chain: Sequence[ReportedBlock]) -> list[str]:
        """Return the lines of a chain, which set `at` to the next block."""
        lines, reports, unit = list[str](), 0, self._unit
        for each in chain:
            lines += self._block(each, reports)
            reports += len(each.points)
        following = next_block(self._emitter, unit, chain[-1].block)
        return [*lines, f"at = {following}", f"now += {reports}", f"room -= {len(chain)}"]

    def _block(self, reported: ReportedBlock, before: int) -> list[str]:
        """Return the lines of a block, which has so many reports of its chain before it."""
        block, emitter = reported.block, self._emitter
        emitter.begin_block()
        points = {
            id(point.instruction): (point, before + at)
            for at, point in enumerate(reported.points, 1)
        }
        for position, step in enumerate(block.steps):
            if id(step.instruction) not in points:  # it has no effect
                continue
            point, at = points[id(step.instruction)]
            self._record(point, at)
            if step.operation.effect is Effect.MEMORY and self._loops.ranges:
                self._watched(step, at)
            else:
                write_step(emitter, self._code, self._unit, block, position)
        if block.branch is not None:
            self._record(*points[id(block.branch)])
        emitter.end_block(self._unit.live_after(block))
        return emitter.lines

    def _watched(self, step: BlockStep, at: int) -> None:
        """Write an access and, before it, a test of its address.

        Raises:
            NoLaneCode: there is no code for a single thread that shows the address.
        """
        emitter, instruction = self._emitter, step.instruction
        emitter.instruction = instruction
        emit, count = find_lane(step.operation, instruction), len(self._emitter.sites)
        address = next((e for e in instruction.operands if isinstance(e, Address)), None)
        if emit is None or address is None:
            raise NoLaneCode
        name = emitter.temporary(LanePlace(emitter, address, space_of(instruction)).expression)
        emit(emitter, instruction)
        for site in emitter.sites[count:]:
            ranges = self._loops.ranges
            near = " or ".join(f"{first - site.total} < {name} < {end}" for first, end in ranges)
            touch = emitter.helper(self._loops.touch)
            emitter.line(f"if {near}: {touch}(f, {name}, {emitter.scope.bind(site)}, now + {at})")

    def _record(self, point: CodePoint, at: int) -> None:
        """Write code that records a pass of a breakpoint's instruction."""
        crossing, emitter = self._loops.crossing_at(point, self._fibre), self._emitter
        guard = point.instruction.guard
        if crossing is None:
            return
        self.crossings.append(crossing)
        self.used.update(crossing.values)
        columns = [(crossing.times, f"now + {at}")]
        columns += [(each, emitter.as_stored(number)) for number, each in crossing.values.items()]
        record = "; ".join(
            f"{emitter.scope.bind(values.append, 'record')}({value})" for values, value in columns
        )
        if guard is not None:
            condition = emitter.predicate(guard.register)
            record = f"if {'not ' * guard.negated}{condition}: {record}"
        emitter.line(record)


def _chains_of(blocks: Sequence[Block], members: Sequence[int]) -> _Chains:
    """Return the blocks of a loop, those together that threads enter at the first one alone."""
    before: dict[int, list[int]] = {}
    for block in blocks:
        for successor in block.successors:
            before.setdefault(successor, []).append(block.index)
    chains: list[list[int]] = []
    for number in members:
        last = chains[-1][-1] if chains else None
        is_next = last is not None and list(blocks[last].successors) == [number]
        if is_next and before[number] == [last]:
            chains[-1].append(number)
        else:
            chains.append([number])
    return tuple(map(tuple, chains))
