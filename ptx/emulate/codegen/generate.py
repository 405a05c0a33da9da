"""From a kernel's PTX to Python: one function a basic block, for the kernel and all it may call."""

from __future__ import annotations

from functools import partial
from typing import Final

from ptx.emulate.codegen.analysis.block_invariant import invariant_definitions
from ptx.emulate.codegen.analysis.pointer_origins import KernelOrigins
from ptx.emulate.codegen.analysis.shared_places import guessed_reads, polls_of, updates_of
from ptx.emulate.codegen.analysis.use_of_loads import uses_of
from ptx.emulate.codegen.block_writer import BlockWriter, Unit
from ptx.emulate.codegen.call_graph import CallGraph, call_target
from ptx.emulate.codegen.cfg import Block, BlockStep, CfgBuilder, bits, find_live_registers
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.lane.lane_writer import LaneWriter
from ptx.emulate.codegen.scope import FunctionScope, Namespace
from ptx.emulate.exec.kernel_code import BlockFunctions, KernelCode
from ptx.emulate.exec.lane.lane_code import LaneCode
from ptx.emulate.kernel_facts import NOTHING_LATE, LateWork
from ptx.emulate.memory.layout import (
    FRAME_ALIGN,
    MOST_LOCAL_BYTES,
    CodeAddresses,
    CodePlace,
    ModuleLayout,
    aligned,
    frame_layout,
)
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.isa.instruction_facts import GENERIC, InstructionKind
from ptx.isa.model import Body, Instruction, SpecialRegister, Symbol
from ptx.isa.module import PtxModule
from ptx.isa.signature import shared_layout, shared_variables

_OF_BLOCK: Final = frozenset({
    InstructionKind.MOVE, InstructionKind.LOAD_MATRIX, InstructionKind.STORE_MATRIX,
    InstructionKind.MATRIX, InstructionKind.WARP_BARRIER, InstructionKind.EXCHANGE,
    InstructionKind.ELECTION, InstructionKind.WARP_STATE, InstructionKind.BRANCH,
    InstructionKind.RETURN, InstructionKind.EXIT, InstructionKind.TRAP,
})  # fmt: skip
_OF_ALL_BLOCKS: Final = ("global", GENERIC)


def may_be_late(blocks: list[Block], other_work: LateWork) -> LateWork:
    """Return the work that an ordered launch may defer in a function, or in `other_work`.

    Stores are late only if blocks can wait for each other's stores. For that, threads must read
    global memory by instructions that observe concurrent writes of other blocks. Without such reads
    no block can detect that another one has written. PTX ISA, "Memory Consistency Model".
    """
    steps = [step for block in blocks for step in block.steps]
    copies = any(step.instruction.facts.may_be_late for step in steps)
    read = {number for step in steps for number in step.reads}
    return LateWork(
        copies or other_work.copies,
        other_work.stores or any(_sees_others(step, read) for step in steps),
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
    namespace = Namespace()
    shown = shown or kernel
    blocks = BlockFunctions(shown, namespace.names)
    code = KernelCode(shown, module.files, offsets, nbytes, blocks=blocks)
    made = tuple([instrument(number) for number, instrument in enumerate(instruments)])
    code.instruments = made
    sizes = {name: variable.nbytes for name, variable in shared.items()}
    writer = _KernelWriter(layout, code_addresses, code, namespace, graph, late, sizes, made)
    return writer.write(kernel)


def _reads_clock(instruction: Instruction) -> bool:
    return any(
        isinstance(operand, SpecialRegister)
        and ("clock" in operand.name or "timer" in operand.name)
        for operand in instruction.operands
    )


class _KernelWriter:
    """Writes a kernel and the functions that it calls by name; others when they are called."""

    def __init__(
        self,
        layout: ModuleLayout,
        code_addresses: CodeAddresses,
        code: KernelCode,
        namespace: Namespace,
        graph: CallGraph,
        late: LateWork,
        shared_sizes: dict[str, int],
        instruments: tuple[BlockInstrument, ...],
    ) -> None:
        self._layout = layout
        self._code_addresses = code_addresses
        self._code = code
        self._namespace = namespace
        self._graphs = {layout: graph}
        self._numbers: dict[CodePlace, int] = {}
        self._late = late
        self._instruments = instruments
        self._origins = KernelOrigins(code, shared_sizes)
        self._bodies: list[Body] = []
        self._units: list[Unit] = []

    def write(self, kernel: str) -> KernelCode:
        """Generate all blocks of all functions that the kernel of this symbol calls by name."""
        code = self._code
        self._add(CodePlace(self._layout, kernel))
        code.count_registers = self._count_registers
        graph = self._graphs[self._layout]
        code.stack_bytes = aligned(graph.depth(kernel), FRAME_ALIGN)
        code.is_recursive = graph.is_recursive
        code.calls_by_address = graph.reaches_addresses(kernel)
        if code.calls_by_address:  # the called function is unknown
            code.may_be_late = LateWork(copies=True, stores=True)
        code.find_function = self.find_function
        code.find_origins = self._origins.find
        code.uses_of = partial(uses_of, self._bodies)
        if not self._instruments and self._late == NOTHING_LATE:
            writer = LaneWriter(code, self._units)
            code.lanes = LaneCode(writer.write, writer.write_loop, writer.shows_order)
        if code.stack_bytes > MOST_LOCAL_BYTES:
            raise UnsupportedInstruction(
                code.kernel, ".local", self._layout.module.functions[kernel].line,
                f"a thread needs {code.stack_bytes} bytes of local memory; it has at most"
                f" {MOST_LOCAL_BYTES}",
            )  # fmt: skip
        return code

    def _count_registers(self) -> int:
        return max(unit.registers_at_once() for unit in self._units)

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
        code, layout = self._code, first_place.layout
        graph = self._graphs.setdefault(layout, CallGraph(layout.module))
        units: dict[CodePlace, Unit] = {}
        waiting = [first_place]
        while waiting:
            next_place = waiting.pop(0)
            if next_place not in units and next_place not in self._numbers:
                units[next_place] = self._unit(next_place)
                waiting += [CodePlace(layout, name) for name in graph.callees(next_place.name)]
        first = len(code.blocks)
        numbers = {code_place: len(code.entries) + index for index, code_place in enumerate(units)}
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
            blocks = CfgBuilder(self._code.kernel, body).build()
            scope = FunctionScope(
                self._code.kernel, function, body, frame_layout(function, body), layout,
                self._code.shared_offsets, self._namespace, self._code.sites, self._late,
            )  # fmt: skip
        except KeyError as missing:
            raise UnsupportedInstruction(
                self._code.kernel, ".reg", function.line, f"the type {missing} is not executed"
            ) from None
        find_live_registers(blocks, scope.numbers)
        if function.is_entry:
            definitions = sorted(invariant_definitions(blocks, scope.kernel_parameters))
            steps = [blocks[block].steps[position] for block, position in definitions]
            scope.invariants = {id(step.instruction): slot for slot, step in enumerate(steps)}
        return Unit(layout, blocks, scope)

    def _written(self, unit: Unit, functions: dict[str, int]) -> list[list[str]]:
        """The lines of each block."""
        emitter = Emitter(unit.scope, self._instruments)
        emitter.functions = unit.functions = functions
        emitter.first = unit.first
        first = len(self._code.sites)
        written = [
            BlockWriter(unit, block, emitter, self._instruments).write() for block in unit.blocks
        ]
        unit.sites = self._code.sites[first:]
        return written

    def _append(self, unit: Unit, written: list[list[str]]) -> None:
        """Take a function into the kernel's code."""
        code = self._code
        code.entries.append(unit.first)
        code.names.append(unit.function.name)
        frame = unit.scope.frame
        code.frame_bytes.append(frame.nbytes)
        for formals, offsets in (
            (unit.function.params, code.params),
            (unit.function.returns, code.results),
        ):
            offsets.append(tuple((frame.offsets.get(p.name, 0), p.nbytes) for p in formals))
        for block, lines in zip(unit.blocks, written, strict=True):
            code.blocks.add(lines)
            code.live.append(tuple(bits(block.live)))
            code.defined.append(block.defined)
            code.successors.append(tuple(unit.first + successor for successor in block.successors))
            code.is_pure.append(block.pure)
            instructions = [step.instruction for step in block.steps]
            code.reads_clock |= any(map(_reads_clock, instructions))
            code.needs_order |= any(_needs_order(step, unit.layout.module) for step in block.steps)
            code.fences_narrowly |= any(
                step.instruction.facts.is_narrow_fence for step in block.steps
            )
            code.first.append(instructions[0] if instructions else None)
            code.last.append(instructions[-1] if instructions else None)
        code.zeros.append(unit.scope.zeros())
        code.numbers.append(unit.scope.numbers)
        self._origins.add(unit.blocks, unit.scope, unit.sites)
        self._bodies.append(unit.scope.body)
        self._units.append(unit)
        code.divides |= bool(unit.divisions)
        code.guesses |= guessed_reads(unit.blocks)
        code.polls |= polls_of(unit.blocks, unit.scope.numbers)
        code.updates |= updates_of(unit.blocks, len(code.updates))
        code.may_be_late = may_be_late(unit.blocks, code.may_be_late)
