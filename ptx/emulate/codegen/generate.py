"""From a kernel's PTX to Python: one function a basic block, for the kernel and all it may call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptx.emulate.codegen.analysis.block_invariant import invariant_definitions
from ptx.emulate.codegen.analysis.pointer_origins import KernelOrigins, SharedVariables
from ptx.emulate.codegen.analysis.shared_places import guessed_reads, polls_of, updates_of
from ptx.emulate.codegen.analysis.use_of_loads import uses_of
from ptx.emulate.codegen.block_writer import BlockWriter
from ptx.emulate.codegen.call_graph import CallGraph, call_target
from ptx.emulate.codegen.cfg import BlockStep, CfgBuilder, bits, find_live_registers
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.lane.lane_writer import LaneWriter
from ptx.emulate.codegen.scope import FunctionScope, Namespace
from ptx.emulate.codegen.unit import Unit
from ptx.emulate.exec.kernel_code import BlockFunctions, KernelCode
from ptx.emulate.exec.lane.lane_code import LaneCode
from ptx.emulate.kernel_facts import NOTHING_LATE, FunctionFacts, LateWork
from ptx.emulate.memory.device_memory import Use
from ptx.emulate.memory.layout import (
    FRAME_ALIGN,
    MOST_LOCAL_BYTES,
    CodeAddresses,
    CodePlace,
    ModuleLayout,
    aligned,
    frame_layout,
)
from ptx.emulate.memory.site import Site
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.isa.instruction_facts import GENERIC, InstructionKind
from ptx.isa.model import Instruction, SpecialRegister, Symbol
from ptx.isa.module import PtxModule
from ptx.isa.signature import shared_layout, shared_variables

_OF_BLOCK: Final = frozenset({
    InstructionKind.MOVE, InstructionKind.LOAD_MATRIX, InstructionKind.STORE_MATRIX,
    InstructionKind.MATRIX, InstructionKind.WARP_BARRIER, InstructionKind.EXCHANGE,
    InstructionKind.ELECTION, InstructionKind.WARP_STATE, InstructionKind.BRANCH,
    InstructionKind.RETURN, InstructionKind.EXIT, InstructionKind.TRAP,
})  # fmt: skip
_OF_ALL_BLOCKS: Final = ("global", GENERIC)


def may_be_late(steps: list[BlockStep]) -> LateWork:
    """Return the work that an ordered launch may defer in a function.

    Stores are late only if blocks can wait for each other's stores. For that, threads must read
    global memory by instructions that observe concurrent writes of other blocks. Without such reads
    no block can detect that another one has written. PTX ISA, "Memory Consistency Model".
    """
    read = {number for step in steps for number in step.reads}
    return LateWork(
        any(step.instruction.facts.may_be_late for step in steps),
        any(_sees_others(step, read) for step in steps),
    )


def _sees_others(step: BlockStep, read: set[int]) -> bool:
    """Return whether an instruction reads what other blocks may write in the same launch."""
    facts = step.instruction.facts
    if facts.space not in _OF_ALL_BLOCKS:
        return False
    if facts.kind is InstructionKind.LOAD:
        return facts.is_strong or facts.reads_past_l1
    return facts.kind is InstructionKind.ATOMIC and bool(read.intersection(step.writes))


def _needs_order(step: BlockStep, module: PtxModule) -> bool:
    """Return whether an instruction is more than work of its block, or a plain load or store.

    Then blocks cannot run at once and have the results of one after another.
    """
    facts = step.instruction.facts
    kind = facts.kind
    if kind is InstructionKind.LOAD or kind is InstructionKind.STORE:
        return facts.is_strong or facts.may_be_late or facts.reads_past_l1
    if facts.is_atomic:
        return facts.space != "shared"
    if kind is InstructionKind.COPY:
        return facts.proxy != GENERIC or "mbarrier" in facts.words
    if kind is InstructionKind.BARRIER:
        return "cluster" in facts.words
    if kind is InstructionKind.CALL:
        target = call_target(step.instruction)
        name = target.name if isinstance(target, Symbol) else ""
        function = module.functions.get(module.aliases.get(name, name))
        return function is None or function.span is None
    return facts.may_be_late or not (facts.is_calculation or kind in _OF_BLOCK)


def generate(
    layout: ModuleLayout,
    code_addresses: CodeAddresses,
    kernel: str,
    late: LateWork = NOTHING_LATE,
    instruments: tuple[type[BlockInstrument], ...] = (),
    *,
    shown: str = "",
) -> KernelCode:
    """The code of a kernel of a module; `code_addresses` has the functions of its device.

    Errors call the kernel `shown`, if that is given.

    Work in `late` is deferred. `instruments` write code for observers into it.

    Raises:
        UnsupportedInstruction: it, or a function that it calls by name, uses an unsupported
        instruction.
        UndefinedSymbol: it names a symbol that the module does not define.
        PtxSyntaxError: a body is wrong.
    """
    module = layout.module
    graph = CallGraph(module)
    shared = {v.name: v for v in shared_variables(module, kernel)}
    for name in graph.with_address if graph.reaches_addresses(kernel) else ():
        shared |= {v.name: v for v in shared_variables(module, name) if v.name not in shared}
    offsets, nbytes = shared_layout(tuple(shared.values()))
    sizes = {name: variable.nbytes for name, variable in shared.items()}
    writer = _KernelWriter(
        layout,
        code_addresses,
        shown or kernel,
        SharedVariables(offsets, sizes, nbytes),
        graph,
        late,
        tuple([instrument(number) for number, instrument in enumerate(instruments)]),
    )
    return writer.write(kernel)


def _reads_clock(instruction: Instruction) -> bool:
    return any(
        isinstance(operand, SpecialRegister)
        and ("clock" in operand.name or "timer" in operand.name)
        for operand in instruction.operands
    )


def _calculates(instruction: Instruction) -> bool:
    facts = instruction.facts
    if not (facts.is_calculation or facts.is_atomic or facts.kind is InstructionKind.MATRIX):
        return False
    return any("f" in name for name in facts.types) or "wmma" in facts.name


class _BlockTables:
    """The facts of the blocks of a kernel, by their numbers."""

    def __init__(self) -> None:
        self.live: list[tuple[int, ...]] = []
        self.defined: list[int] = []
        self.reads: list[tuple[int, ...] | None] = []
        self.is_pure: list[bool] = []
        self.first: list[Instruction | None] = []
        self.last: list[Instruction | None] = []
        self.successors: list[tuple[int, ...]] = []

    def add(self, unit: Unit) -> None:
        """Add the blocks of a function."""
        for block in unit.blocks:
            self.live.append(tuple(bits(block.live)))
            self.defined.append(block.defined)
            self.successors.append(tuple(unit.first + successor for successor in block.successors))
            self.reads.append(tuple(bits(block.used)) if block.only_goes_on else None)
            self.is_pure.append(block.pure)
            instructions = [step.instruction for step in block.steps]
            self.first.append(instructions[0] if instructions else None)
            self.last.append(instructions[-1] if instructions else None)


def _facts_of(unit: Unit, update_count: int) -> FunctionFacts:
    """Return the facts of a function; `update_count` updates of others are numbered before its."""
    frame, function, scope = unit.scope.frame, unit.function, unit.scope
    steps = [step for block in unit.blocks for step in block.steps]
    params, results = (
        tuple((frame.offsets.get(each.name, 0), each.nbytes) for each in formals)
        for formals in (function.params, function.returns)
    )
    zeros = scope.zeros()
    return FunctionFacts(
        name=function.name,
        entry=unit.first,
        zeros=zeros,
        dtypes=[value.dtype for value in zeros],
        numbers=scope.numbers,
        frame_bytes=frame.nbytes,
        params=params,
        results=results,
        guesses=guessed_reads(unit.blocks),
        polls=polls_of(unit.blocks, scope.numbers),
        updates=updates_of(unit.blocks, update_count),
        fences_narrowly=any(step.instruction.facts.is_narrow_fence for step in steps),
        leaves_unwritten=bool(unit.blocks[0].unwritten),
        divides=bool(unit.divisions),
        calculates=any(_calculates(step.instruction) for step in steps),
        reads_clock=any(_reads_clock(step.instruction) for step in steps),
        needs_order=any(_needs_order(step, unit.layout.module) for step in steps),
        may_be_late=may_be_late(steps),
    )


class _KernelWriter:
    """Writes a kernel and the functions that it calls by name; others when they are called."""

    def __init__(
        self,
        layout: ModuleLayout,
        code_addresses: CodeAddresses,
        shown: str,
        shared: SharedVariables,
        graph: CallGraph,
        late: LateWork,
        instruments: tuple[BlockInstrument, ...],
    ) -> None:
        self._layout = layout
        self._code_addresses = code_addresses
        self._shown = shown
        self._shared = shared
        self._namespace = Namespace()
        self._graphs = {layout: graph}
        self._numbers: dict[CodePlace, int] = {}
        self._late = late
        self._instruments = instruments
        self._origins = KernelOrigins(shared)
        self._units: list[Unit] = []
        self._blocks = BlockFunctions(shown, self._namespace.names)
        self._tables = _BlockTables()
        self._functions: list[FunctionFacts] = []

    def write(self, kernel: str) -> KernelCode:
        """Generate all blocks of all functions that the kernel of this symbol calls by name."""
        self._add(CodePlace(self._layout, kernel))
        graph, module = self._graphs[self._layout], self._layout.module
        stack_bytes = aligned(graph.depth(kernel), FRAME_ALIGN)
        if stack_bytes > MOST_LOCAL_BYTES:
            raise UnsupportedInstruction(
                self._shown,
                ".local",
                module.functions[kernel].line,
                f"a thread needs {stack_bytes} bytes of local memory; it has at most"
                f" {MOST_LOCAL_BYTES}",
            )
        calls_by_address = graph.reaches_addresses(kernel)
        tables = self._tables
        return KernelCode(
            kernel=self._shown,
            files=module.files,
            shared_offsets=self._shared.offsets,
            shared_bytes=self._shared.nbytes,
            functions=self._functions,
            live=tables.live,
            defined=tables.defined,
            reads=tables.reads,
            is_pure=tables.is_pure,
            first=tables.first,
            last=tables.last,
            successors=tables.successors,
            calls_by_address=calls_by_address,
            is_recursive=graph.is_recursive,
            stack_bytes=stack_bytes,
            find_function=self.find_function,
            find_origins=self._origins.find,
            find_sites=self._sites,
            uses_of=self._uses_of,
            count_registers=self._count_registers,
            has_droppable_loads=self._has_droppable_loads,
            instruments=self._instruments,
            blocks=self._blocks,
            lanes=self._lane_code(calls_by_address=calls_by_address),
        )

    def _lane_code(self, *, calls_by_address: bool) -> LaneCode | None:
        if self._instruments or self._late != NOTHING_LATE:
            return None
        writer = LaneWriter(self._blocks, self._units, calls_by_address=calls_by_address)
        return LaneCode(writer.write, writer.write_loop, writer.shows_order)

    def _sites(self) -> Iterator[Site]:
        for unit in self._units:
            yield from unit.sites
            yield from unit.lane_sites

    def _uses_of(self, instruction: Instruction) -> tuple[Use, ...]:
        return uses_of([unit.scope.body for unit in self._units], instruction)

    def _count_registers(self) -> int:
        return max(unit.registers_at_once() for unit in self._units)

    def _has_droppable_loads(self) -> bool:
        return any(unit.droppable_loads for unit in self._units)

    def find_function(self, address: int) -> int | None:
        """The number of the function at an address, generated if need be; None if there is none.

        Raises:
            UnsupportedInstruction: it uses an unsupported instruction.
            UndefinedSymbol: it names what its module does not define.
            PtxSyntaxError: its body is wrong.
        """
        code_place = self._code_addresses.find(address)
        if code_place is None:
            return None
        function = code_place.layout.module.functions[code_place.name]
        if function.is_entry or function.span is None:
            return None
        if code_place not in self._numbers:
            self._add(code_place)
        return self._numbers[code_place]

    def _add(self, first_place: CodePlace) -> None:
        """Generate a function and all that it calls by name, after the existing code."""
        layout = first_place.layout
        graph = self._graphs.setdefault(layout, CallGraph(layout.module))
        units: dict[CodePlace, Unit] = {}
        waiting = [first_place]
        while waiting:
            next_place = waiting.pop(0)
            if next_place not in units and next_place not in self._numbers:
                units[next_place] = self._unit(next_place)
                waiting += [CodePlace(layout, name) for name in graph.callees(next_place.name)]
        first = len(self._blocks)
        numbers = {
            code_place: len(self._functions) + index for index, code_place in enumerate(units)
        }
        all_numbers = {**self._numbers, **numbers}
        for unit in units.values():
            unit.first = first
            first += len(unit.blocks)
        functions = {
            code_place.name: number
            for code_place, number in all_numbers.items()
            if code_place.layout is layout
        }
        written = [self._written(unit, functions) for unit in units.values()]
        # Append them last, because any of them may be rejected.
        for unit, lines in zip(units.values(), written, strict=True):
            self._append(unit, lines)
        self._numbers = all_numbers

    def _unit(self, code_place: CodePlace) -> Unit:
        layout, name = code_place
        function = layout.module.functions[name]
        body = layout.module.body(name)
        try:
            blocks = CfgBuilder(self._shown, body).build()
            scope = FunctionScope(
                self._shown,
                function,
                body,
                frame_layout(function, body),
                layout,
                self._shared.offsets,
                self._namespace,
                self._late,
            )
        except KeyError as missing:
            raise UnsupportedInstruction(
                self._shown, ".reg", function.line, f"the type {missing} is not executed"
            ) from None
        find_live_registers(blocks, scope.numbers)
        kept = 0
        if any(instrument.keeps_registers for instrument in self._instruments):
            kept = (1 << len(scope.numbers)) - 1
            for block in blocks:
                block.live = kept
        if function.is_entry:
            definitions = sorted(invariant_definitions(blocks, scope.kernel_parameters))
            steps = [blocks[block].steps[position] for block, position in definitions]
            scope.invariants = {id(step.instruction): slot for slot, step in enumerate(steps)}
        return Unit(layout, blocks, scope, kept)

    def _written(self, unit: Unit, functions: dict[str, int]) -> list[list[str]]:
        """The lines of each block."""
        emitter = Emitter(unit.scope, self._instruments)
        emitter.functions = unit.functions = functions
        emitter.first = unit.first
        for instrument in self._instruments:
            instrument.begin_function(unit)
        written = [
            BlockWriter(unit, block, emitter, self._instruments).write() for block in unit.blocks
        ]
        unit.sites = emitter.sites
        return written

    def _append(self, unit: Unit, written: list[list[str]]) -> None:
        """Take a function into the kernel's code."""
        for lines in written:
            self._blocks.add(lines)
        self._tables.add(unit)
        self._origins.add(unit.blocks, unit.scope, unit.sites)
        self._units.append(unit)
        update_count = sum(len(each.updates) for each in self._functions)
        self._functions.append(_facts_of(unit, update_count))
