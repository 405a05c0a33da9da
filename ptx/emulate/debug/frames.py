"""The calls that a stopped thread is in, where the threads of a warp are, and their barriers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.debug.stops import (
    CodePoint,
    LaunchStops,
    Stops,
    Thread,
    position_of,
)
from ptx.emulate.exec.calls import registers_of
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Geometry
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, source_place


@dataclass(slots=True)
class Frame:
    """A function that threads are in.

    Attributes:
        fibre: the threads; positions: which of them.
        registers: theirs in this function.
        scope: the function; stack_pointer: its place in their local memory.
        instruction: the next one, or the call; None at the end of the code.
    """

    fibre: Fibre
    positions: Index
    registers: Registers
    scope: FunctionScope
    stack_pointer: int
    instruction: Instruction | None

    @property
    def ptx_line(self) -> int:
        """The line of the instruction in the PTX."""
        return 0 if self.instruction is None else self.instruction.line

    @property
    def source(self) -> tuple[str | None, int | None]:
        """The file and line of CUDA C++."""
        location = None if self.instruction is None else self.instruction.location
        return source_place(location, self.scope.layout.module.files)


@dataclass(frozen=True, slots=True)
class LaneState:
    """Where a thread is: `state` in words; `instruction` is the next one."""

    thread: Thread
    state: str
    fibre: Fibre | None = None
    instruction: Instruction | None = None


class StoppedLaunch:
    """The threads of the chunk that has stopped."""

    def __init__(self, stops: Stops) -> None:
        assert stops.fibre is not None
        assert stops.point is not None
        assert stops.current is not None
        self.fibre: Fibre = stops.fibre
        self.point: CodePoint = stops.point
        self.launch: LaunchStops = stops.current
        self.code: KernelFacts = stops.fibre.blocks.code
        self.geometry: Geometry = stops.fibre.blocks.geometry

    def state_of(self, thread: Thread) -> LaneState:
        """Return where a thread is, and what it waits for."""
        lane = thread.lane_in(self.fibre, self.launch.number)
        if lane is None:
            return LaneState(thread, "in a block that does not run now")
        if position_of(self.fibre, lane) is not None:
            return LaneState(thread, "stopped", self.fibre, self.point.instruction)
        for fibre, instruction, state in self._others():
            if position_of(fibre, lane) is not None:
                return LaneState(thread, state, fibre, instruction)
        return LaneState(thread, "exited")

    def warp_of(self, thread: Thread) -> list[LaneState]:
        """Return the states of the threads of a thread's warp."""
        first = thread.number // WARP * WARP
        last = min(first + WARP, self.geometry.threads_per_block)
        return [
            self.state_of(Thread(thread.launch, thread.block, number))
            for number in range(first, last)
        ]

    def frames(self, thread: Thread) -> list[Frame]:
        """Return the functions that a thread is in, the innermost first."""
        state, lane = self.state_of(thread), thread.lane_in(self.fibre, self.launch.number)
        fibre = state.fibre
        if fibre is None or lane is None:
            return []
        position = position_of(fibre, lane)
        positions = np.array([position], dtype=np.intp)
        blocks = self.launch.writer.blocks
        opened = fibre.calls
        prefix = fibre.prefix[len(fibre.prefix) - len(opened) :]
        scope = self._scope_at(fibre, state)
        found = [Frame(fibre, positions, fibre.regs, scope, fibre.stack_pointer, state.instruction)]
        for call, block in zip(reversed(opened), reversed(prefix), strict=True):
            registers, scope = registers_of(fibre, call), blocks[block].scope
            at = self.code.last[block]
            found.append(Frame(fibre, positions, registers, scope, call.stack_pointer, at))
        return found

    def barriers(self) -> list[str]:
        """Return the barriers at which threads wait, and the mbarrier objects that are awaited."""
        scheduler = self.fibre.scheduler
        if not isinstance(scheduler, Scheduler):
            return []
        size, blocks, lines = self.geometry.threads_per_block, self.fibre.blocks, list[str]()
        for number, entries in scheduler.waiting.block_barriers.waiting.items():
            missing = scheduler.waiting.block_barriers.missing(number)
            slots = np.concatenate([each.fibre.lane_numbers() for each in entries]) // size
            lines += [
                f"barrier {number} of block {blocks.block_of(slot * size)}: "
                f"{np.count_nonzero(slots == slot)} threads wait, {missing[slot]} are missing"
                for slot in np.unique(slots).tolist()
            ]
        for wait in scheduler.waiting.timed_waits.phase_waits:
            if wait.awaited is not None:
                places = np.unique(wait.awaited.at).tolist()
                lines += [f"{mbarriers_of(blocks).described(each)}: awaited" for each in places]
        return lines

    def _scope_at(self, fibre: Fibre, state: LaneState) -> FunctionScope:
        if state.instruction is self.point.instruction:
            return self.point.scope
        function = fibre.calls[-1].function if fibre.calls else 0
        return self.launch.writer.blocks[self.code.functions[function].entry].scope

    def _first_of(self, block: int) -> Instruction | None:
        """Return the first instruction of a block, or of the next one if it has none."""
        instruction = self.code.first_of(block)
        while instruction is None and 0 <= block < len(self.code.successors):
            if len(self.code.successors[block]) != 1:
                return None
            (block,) = self.code.successors[block]
            instruction = self.code.first_of(block)
        return instruction

    def _others(self) -> Iterator[tuple[Fibre, Instruction | None, str]]:
        """Yield the fibres that do not run now, with their next instruction or wait, and why."""
        scheduler = self.fibre.scheduler
        for key, fibre in scheduler.runnable:
            yield fibre, self._first_of(key[-1]), "ready to run"
        if not isinstance(scheduler, Scheduler):
            return
        for number, entries in scheduler.waiting.block_barriers.waiting.items():
            for entry in entries:
                yield entry.fibre, entry.instruction, f"waits at barrier {number}"
        for lanes in scheduler.waiting.warp_sync.waiting:
            mask = int(np.asarray(lanes.mask).flat[0])
            state = f"waits for lanes {mask:#010x} of its warp"
            yield lanes.fibre, self._first_of(lanes.block), state
        for timed in scheduler.waiting.timed_waits.waits:
            state = "sleeps" if timed.awaited is None else "waits for a phase of an mbarrier object"
            yield timed.fibre, timed.instruction, state
        for cluster in scheduler.waiting.cluster_waits:
            yield cluster.fibre, cluster.instruction, "waits at the barrier of its cluster"
