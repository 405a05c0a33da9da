"""From a kernel's PTX to Python: one function a basic block, for the kernel and all it may call."""

from __future__ import annotations

from collections.abc import Iterator

from ptx.emulate.codegen.analysis.block_invariant import invariant_definitions
from ptx.emulate.codegen.cfg import (
    Block,
    CfgBuilder,
    find_live_registers,
)
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.scope import FunctionScope, Namespace
from ptx.emulate.codegen.table import Effect
from ptx.emulate.exec.block_functions import BlockFunctions
from ptx.emulate.exec.fibre import GONE
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.memory.layout import (
    FRAME_ALIGN,
    MOST_LOCAL_BYTES,
    ModuleLayout,
    aligned,
    frame_layout,
)
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.isa.model import Arguments, Function, Instruction, Register, Symbol, SymbolValue
from ptx.isa.module import PtxModule
from ptx.isa.signature import shared_layout, shared_variables


def generate(module: PtxModule, layout: ModuleLayout, kernel: str) -> KernelCode:
    """The code of a kernel.

    Raises:
        UnsupportedInstruction: it, or a function that it may call, uses what is not executed.
        PtxSyntaxError: a body is wrong.
    """
    offsets, nbytes = shared_layout(shared_variables(module, kernel))
    namespace = Namespace()
    blocks = BlockFunctions(kernel, namespace.names)
    code = KernelCode(kernel, module.files, offsets, nbytes, blocks)
    return _KernelWriter(module, layout, code, namespace).write()


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class _Unit:
    """One function of the kernel while it is generated."""

    def __init__(self, function: Function, blocks: list[Block], scope: FunctionScope) -> None:
        self.function = function
        self.blocks = blocks
        self.scope = scope
        self.first = 0
        self.calls: set[str] = set()


class _KernelWriter:
    """Collects the functions that a kernel may call, then writes all their blocks."""

    def __init__(
        self, module: PtxModule, layout: ModuleLayout, code: KernelCode, namespace: Namespace
    ) -> None:
        self._module = module
        self._layout = layout
        self._code = code
        self._namespace = namespace
        self._units: dict[str, _Unit] = {}

    def write(self) -> KernelCode:
        """Generate all blocks of all functions that the kernel may call."""
        code = self._code
        waiting = [code.kernel]
        while waiting:
            name = waiting.pop(0)
            if name not in self._units:
                self._units[name] = self._unit(name)
                waiting += [each for each in self._callees(name) if each not in self._units]
        first = 0
        for number, unit in enumerate(self._units.values()):
            unit.first = first
            first += len(unit.blocks)
            code.entries.append(unit.first)
            code.names.append(unit.function.name)
            code.by_address[self._layout.code[unit.function.name]] = number
            code.frame_bytes.append(unit.scope.frame.nbytes)
            offsets = unit.scope.frame.offsets
            for formals, places in (
                (unit.function.params, code.params),
                (unit.function.returns, code.results),
            ):
                places.append(tuple((offsets.get(p.name, 0), p.nbytes) for p in formals))
        for unit in self._units.values():
            self._function(unit)
        self._measure_stack()
        return code

    def _unit(self, name: str) -> _Unit:
        function = self._module.functions[name]
        body = self._module.body(name)
        try:
            blocks = CfgBuilder(self._code.kernel, body).build()
            scope = FunctionScope(
                self._code.kernel, function, body, frame_layout(function, body), self._layout,
                self._code.shared_offsets, self._namespace, self._code.sites,
            )  # fmt: skip
        except KeyError as missing:
            raise UnsupportedInstruction(
                self._code.kernel, ".reg", function.line, f"the type {missing} is not executed"
            ) from None
        find_live_registers(blocks, scope.numbers)
        if function.is_entry:
            found = sorted(invariant_definitions(blocks, scope.kernel_parameters))
            steps = [blocks[block].steps[position] for block, position in found]
            scope.invariants = {id(step.instruction): slot for slot, step in enumerate(steps)}
        return _Unit(function, blocks, scope)

    def _callees(self, name: str) -> list[str]:
        """The defined functions that a function names, by itself or through a variable it names."""
        found: dict[str, None] = {}
        waiting = list(self._symbols(name))
        seen: set[str] = set()
        while waiting:
            symbol = waiting.pop(0)
            if symbol in seen:
                continue
            seen.add(symbol)
            function = self._module.functions.get(self._module.aliases.get(symbol, symbol))
            if function is not None and function.span is not None and not function.is_entry:
                found[function.name] = None
            variable = self._module.variables.get(symbol)
            if variable is not None:
                waiting += [e.name for e in variable.initialiser if isinstance(e, SymbolValue)]
        self._units[name].calls = set(found)
        return list(found)

    def _symbols(self, name: str) -> Iterator[str]:
        for statement in self._module.body(name).statements:
            if not isinstance(statement, Instruction):
                continue
            for operand in statement.operands:
                if isinstance(operand, Symbol):
                    yield operand.name
                elif hasattr(operand, "base") and isinstance(operand.base, Symbol):
                    yield operand.base.name
                elif isinstance(operand, Arguments):
                    yield from (e.name for e in operand.items if isinstance(e, Symbol))

    def _function(self, unit: _Unit) -> None:
        emitter = Emitter(unit.scope)
        emitter.functions = {name: number for number, name in enumerate(self._units)}
        emitter.entries = self._code.entries
        emitter.first = unit.first
        code = self._code
        for block in unit.blocks:
            code.blocks.add(_BlockWriter(unit, block, emitter).write())
            code.live.append(tuple(bits(block.live)))
            code.defined.append(block.defined)
            code.is_pure.append(block.pure)
            instructions = [step.instruction for step in block.steps]
            code.first.append(instructions[0] if instructions else None)
            code.last.append(instructions[-1] if instructions else None)
        code.registers = max(code.registers, len(unit.scope.width))
        code.zeros.append(unit.scope.zeros())
        code.local_bytes = max(code.local_bytes, unit.scope.frame.local_bytes)

    def _measure_stack(self) -> None:
        """The local memory of the deepest chain of calls, unless calls can recurse."""
        code = self._code
        depth: dict[str, int] = {}
        active: set[str] = set()

        def deepest(name: str) -> int:
            if name in active:
                code.is_recursive = True
                return 0
            if name not in depth:
                active.add(name)
                below = max((deepest(each) for each in self._reached(name)), default=0)
                active.discard(name)
                depth[name] = self._units[name].scope.frame.nbytes + below
            return depth[name]

        code.stack_bytes = aligned(deepest(code.kernel), FRAME_ALIGN)
        if code.stack_bytes > MOST_LOCAL_BYTES:
            raise UnsupportedInstruction(
                code.kernel, ".local", self._module.functions[code.kernel].line,
                f"a thread needs {code.stack_bytes} bytes of local memory; it has at most"
                f" {MOST_LOCAL_BYTES}",
            )  # fmt: skip

    def _reached(self, name: str) -> set[str]:
        """The functions that one may call: any, where it calls by an address."""
        unit = self._units[name]
        for block in unit.blocks:
            for step in block.steps:
                instruction = step.instruction
                # A call's results come before its target, its arguments behind it.
                target = next(
                    (o for o in instruction.operands if not isinstance(o, Arguments)), None
                )
                if instruction.opcode == "call" and isinstance(target, Register):
                    return set(self._units) - {self._code.kernel}
        return unit.calls


class _BlockWriter:
    """Writes one basic block."""

    def __init__(self, unit: _Unit, block: Block, emitter: Emitter) -> None:
        self._unit = unit
        self._block = block
        self._emitter = emitter

    def write(self) -> list[str]:
        """The lines of its function."""
        block, emitter, first = self._block, self._emitter, self._unit.first
        following = first + block.following if block.following is not None else GONE
        emitter.begin(first + block.index, following)
        emitter.targets = tuple(first + target for target in block.targets)
        live_out = 0
        for successor in block.successors:
            live_out |= self._unit.blocks[successor].live
        emitter.live_out = live_out
        after = self._live_after_each(live_out)
        ended = False
        for step, live in zip(block.steps, after, strict=True):
            emitter.start(step.instruction)
            emitter.live_results = live
            if step.operation.effect is Effect.PURE and not live:
                continue
            try:
                step.operation.emit(emitter, step.instruction)
            except KeyError as missing:
                raise emitter.refuse(f"it uses {missing}, which is not executed") from None
            ended = step.operation.effect is Effect.ENDS
        if not ended:
            self._leave(live_out, following)
        return emitter.lines

    def _leave(self, live_out: int, following: int) -> None:
        block, emitter, first = self._block, self._emitter, self._unit.first
        if block.guard is None:
            emitter.flush(live_out)
            target = following if block.target is None else first + block.target
            emitter.line(f"return {target}")
            return
        assert block.target is not None
        condition = emitter.value(block.guard.register, "pred")
        if block.guard.negated:
            condition = f"~{condition}"
        emitter.flush(live_out)
        emitter.line(f"return f.split({condition}, {first + block.target}, {following})")

    def _live_after_each(self, live_out: int) -> list[frozenset[int]]:
        """For each step, which of the registers that it writes are read later."""
        block = self._block
        live = set(bits(live_out))
        if block.guard is not None:
            live.add(self._unit.scope.numbers[block.guard.register.name])
        found: list[frozenset[int]] = []
        for step in reversed(block.steps):
            writes = frozenset(step.writes)
            found.append(writes & live)
            live -= writes
            live.update(step.reads)
        found.reverse()
        return found
