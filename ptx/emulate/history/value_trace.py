"""The instructions of a launch with their operands and results, in the order in which they ran."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.analysis.float_flow import FloatFlow
from ptx.emulate.codegen.cfg import BlockStep
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.memory.generic_addresses import by_space
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.float_format import FloatFormat
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import ObservedLaunch, Observer, Watcher
from ptx.isa.model import Address, Instruction, Operand, Register
from ptx.isa.registers import registers_in

_WIDEST: Final = 8  # bytes of a register whose values are recorded
_MOST_BYTES: Final = 256 << 20

Place = tuple[str, Index | None, Index]
"""A space, the threads that access it (None: all), and their addresses there."""


@dataclass(frozen=True, slots=True)
class TracedUse:
    """An instruction with the registers that it reads and writes, but those of addresses.

    Attributes:
        located: the instruction, with the line of the function of which it is a step.
        assembled: the format of a float whose bits it makes of integers; None for others.
    """

    instruction: Instruction
    sources: tuple[Register, ...]
    targets: tuple[Register, ...]
    located: Instruction
    assembled: FloatFormat | None


@dataclass(frozen=True, slots=True)
class Step:
    """What some threads executed at once.

    Attributes:
        blocks: their blocks.
        lanes: (n,) their numbers in the chunk; is_active: which of them executed it.
        depth: how many calls they are in.
        sources, results: the registers' bits, one value for all threads or one for each.
        places: the memory that it accesses, and of `nbytes`.
    """

    use: TracedUse
    blocks: ThreadBlocks
    lanes: Index
    is_active: NDArray[np.bool_] | None
    depth: int
    sources: tuple[Value, ...]
    results: tuple[Value, ...]
    places: tuple[Place, ...]
    nbytes: int

    def position(self, thread: int) -> int | None:
        """Return where a thread of the grid is among its threads; None if it did not execute it."""
        lane = thread - self.blocks.first * self.blocks.geometry.threads_per_block
        position = int(np.searchsorted(self.lanes, lane))
        if position == len(self.lanes) or self.lanes[position] != lane:
            return None
        return position if self.is_active is None or self.is_active[position] else None

    def thread(self, position: int) -> int:
        """Return the number in the grid of the thread at a position."""
        first = self.blocks.first * self.blocks.geometry.threads_per_block
        return first + int(self.lanes[position])


class ValueWriter(BlockInstrument):
    """Writes code that records each instruction after it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._flows: dict[FunctionScope, FloatFlow] = {}
        self._use = ""
        self._targets: tuple[Register, ...] = ()
        self._sources: list[str] = []
        self._guard = ""

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code that retains the operands."""
        i = step.instruction
        count = step.operation.writes
        sources = _values_of(e, i.operands[0 if step.operation.updates else count :])
        self._targets = _values_of(e, i.operands[:count])
        flow = self._flows.get(e.scope) or self._flows.setdefault(e.scope, FloatFlow(e.scope.body))
        assembly = flow.assembly_of(i)
        located = replace(i, location=flow.location_of(i))
        kind = None if assembly is None else assembly.result
        self._use = e.scope.bind(TracedUse(i, sources, self._targets, located, kind), "use")
        self._sources = [e.temporary(_bits(e, each)) for each in sources]
        self._guard = ""
        if i.guard is not None:
            value = e.value(i.guard.register, "pred")
            self._guard = e.temporary(f"~{value}" if i.guard.negated else value)

    def access(self, e: Emitter, addresses: str, offset: int, site: str) -> None:
        """Write code that records where the instruction accesses memory."""
        e.line(f"{self.follower}.locate(f, {addresses}, {offset}, {site})")

    def executed(self, e: Emitter, step: BlockStep) -> None:
        """Write code that records the instruction."""
        values = [self._sources, [_bits(e, each) for each in self._targets]]
        sources, results = [f"({''.join(f'{each}, ' for each in every)})" for every in values]
        guard = self._guard or "None"
        e.line(f"{self.follower}.record(f, {self._use}, {sources}, {results}, {guard})")


def _values_of(e: Emitter, operands: tuple[Operand, ...]) -> tuple[Register, ...]:
    return tuple(
        [
            register
            for operand in operands
            if not isinstance(operand, Address)
            for register in registers_in(operand)
            if e.scope.width[e.scope.number(register)] <= _WIDEST
        ]
    )


def _bits(e: Emitter, register: Register) -> str:
    width = e.scope.width[e.scope.number(register)]
    return e.value(register, "pred" if register.ptx_type == "pred" else f"b{8 * width}")


class ValueTrace(Observer):
    """Records the launches that `watcher` observes, up to 256 MiB of values.

    Attributes:
        steps: what was executed, in order.
        is_whole: whether all of it was recorded.
        watcher: for `Limits.watchers`.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.is_whole: bool = True
        self.watcher: Watcher = Watcher(self._begin_launch, ValueWriter)
        self._places: list[Place] = []
        self._nbytes = 0
        self._room = _MOST_BYTES
        self._writers: dict[tuple[int, int, str], list[int]] = defaultdict(list)
        self._stores: dict[str, list[int]] = defaultdict(list)
        self._copies: list[tuple[int, int, int, int]] = []

    def _begin_launch(self, launch: ObservedLaunch) -> Observer:
        return self

    def follow(self, instrument: Instrument) -> object | None:
        """Return the trace, which generated code calls."""
        return self if isinstance(instrument, ValueWriter) else None

    def copy_local(self, lanes: Index | slice, source: int, target: int, nbytes: int) -> None:
        """Record that a call or a return copied arguments or results."""
        self._copies.append((len(self.steps), source, target, nbytes))

    # Called by generated code.

    def locate(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """Record where the instruction that follows accesses memory."""
        self._places += by_space(addresses.every(threads.n) + offset, site)
        self._nbytes = site.total

    def record(
        self,
        threads: Threads,
        use: TracedUse,
        sources: tuple[Value, ...],
        results: tuple[Value, ...],
        guard: Value | None,
    ) -> None:
        """Record an instruction."""
        places, self._places = tuple(self._places), []
        self._room -= 256 + sum(each.nbytes for each in (*sources, *results))
        if self._room < 0:
            self.is_whole = False
            return
        active = threads.present
        if guard is not None:
            guard = np.broadcast_to(guard, (threads.n,))
            active = guard if active is None else active & guard
        number, depth = len(self.steps), len(threads.calls)
        self.steps.append(
            Step(
                use,
                threads.blocks,
                threads.lane_numbers(),
                active,
                depth,
                sources,
                results,
                places,
                self._nbytes,
            )
        )
        for target in use.targets:
            self._writers[threads.blocks.first, depth, target.name].append(number)
        if places and (not use.targets or use.instruction.facts.is_atomic):
            for space, _, _ in places:
                self._stores[space].append(number)

    # For readers.

    def writer(self, reader: Step, register: Register, thread: int, before: int) -> int | None:
        """Return the number of the step that gave a thread's register its value before another."""
        steps = self._writers[reader.blocks.first, reader.depth, register.name]
        for number in reversed(steps):
            if number < before and self.steps[number].position(thread) is not None:
                return number
        return None

    def stored(
        self, space: str, address: int, nbytes: int, thread: int | None, before: int
    ) -> tuple[int, int] | None:
        """Return the last step before another that stored to bytes, and its thread.

        `thread` reads them: shared memory is that of its block, and local memory its own.
        """
        copies = list(self._copies) if space == "local" else []
        while True:
            found = self._stored(space, address, nbytes, thread, before)
            copy = copies.pop() if copies else None
            if copy is None:
                return found
            number, source, target, size = copy
            is_later = number <= before and (found is None or number > found[0])
            if is_later and target <= address < target + size:
                address, before = address - target + source, number

    def _stored(
        self, space: str, address: int, nbytes: int, thread: int | None, before: int
    ) -> tuple[int, int] | None:
        for number in reversed(self._stores[space]):
            if number >= before:
                continue
            step = self.steps[number]
            for of_space, chosen, addresses in step.places:
                if of_space != space:
                    continue
                hits = np.flatnonzero(
                    (addresses < address + nbytes) & (addresses + step.nbytes > address)
                )
                positions = hits if chosen is None else chosen[hits]
                for position in positions[::-1].tolist():
                    writer = step.thread(position)
                    if step.position(writer) is not None and _shares(step, space, writer, thread):
                        return number, writer
        return None


def _shares(step: Step, space: str, writer: int, reader: int | None) -> bool:
    if space == "global" or reader is None:
        return True
    if space == "shared":
        size = step.blocks.geometry.threads_per_block
        return writer // size == reader // size
    return writer == reader
