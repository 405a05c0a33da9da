"""Code that follows infinities and NaNs; it is generated only for launches that check them.

A calculation with finite results costs one scalar product of them. Any other instruction costs the
test of a dictionary, which is empty as long as no result was infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ptx.emulate.check.nonfinite_sums import FloatUse, SumPlace, sums_before
from ptx.emulate.check.register_marks import RegisterUse
from ptx.emulate.codegen.analysis.float_flow import (
    SHARED_FACTORS,
    Calculation,
    FloatFlow,
    Pole,
    calculation_of,
    compared_format,
    integer_source,
    is_parameter_access,
    summed_format,
)
from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.codegen.table import Effect
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.site import Site
from ptx.emulate.model.float_format import FORMATS, FloatFormat, may_be_nonfinite
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of
from ptx.emulate.ops.wgmma import group_product, shared_factors
from ptx.isa.model import (
    Address,
    Instruction,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptx.isa.registers import registers_in

_NUMBERS = ("f32", "f64")  # that NumPy calculates with


class NonfiniteWriter(BlockInstrument):
    """Writes code that follows infinities and NaNs."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._flows: dict[FunctionScope, FloatFlow] = {}
        self._finish: Callable[[Emitter], None] | None = None

    @classmethod
    def is_needed(cls, code: KernelFacts) -> bool:
        """Return whether the kernel calculates with floats, or may."""
        return code.may_calculate

    def begin_block(self, e: Emitter, block: Block) -> None:
        """Write code that discards marks of values which are not read any more."""
        if self._flow(e).reached:
            e.line(f"N = {self.follower}")
            e.line(f"if N: N.enter(f, {e.scope.bind(frozenset(bits(block.live)), 'live')})")

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code for an instruction that the fibre executes."""
        i, calculation = step.instruction, calculation_of(step.instruction)
        self._finish = None
        if calculation is not None:
            if calculation.is_of_warp:
                self._uses(e, step, writes=False)
            self._calculates(e, i, calculation)
        elif is_parameter_access(i, e.scope.frame.offsets):
            self._passes_parameters(e, i)
        elif step.operation.effect is not Effect.PURE:
            self._uses(e, step, writes=True)
            if (kind := summed_format(i)) is not None:
                self._adds(e, i, kind)
        elif (kind := compared_format(i)) is not None:
            self._decides(e, i, kind, "compares")
        elif (kind := integer_source(i)) is not None:
            self._decides(e, i, kind, "converts")
        elif i.opcode == "selp":
            self._selects(e, step)
        elif self._writes_reached(e, step):
            marked = self._marked(e, i.operands[step.operation.writes :])
            use = RegisterUse(i, _numbers(e, marked), step.writes, (), _guard_number(e, i))
            e.line(f"if N: N.passes(f, {e.scope.bind(use, 'use')}{_guard(e, i)})")
        if (assembly := self._flow(e).assembly_of(i)) is not None:
            self._assembles(e, i, assembly)

    def executed(self, e: Emitter, step: BlockStep) -> None:
        """Write code that looks at the results of an instruction."""
        if self._finish is not None:
            self._finish(e)
        self._finish = None

    def _flow(self, e: Emitter) -> FloatFlow:
        flow = self._flows.get(e.scope)
        if flow is None:
            flow = self._flows[e.scope] = FloatFlow(e.scope.body, e.scope.frame.offsets)
        return flow

    def _marked(self, e: Emitter, operands: Sequence[Operand]) -> list[Register]:
        """Return the registers of operands, addresses apart, that may have a mark."""
        reached = self._flow(e).reached
        return [
            register
            for operand in operands
            if not isinstance(operand, Address)
            for register in registers_in(operand)
            if register.name in reached
        ]

    def _writes_reached(self, e: Emitter, step: BlockStep) -> bool:
        numbers = [e.scope.numbers[name] for name in self._flow(e).reached]
        return not set(numbers).isdisjoint(step.writes)

    def _calculates(self, e: Emitter, i: Instruction, calculation: Calculation) -> None:
        use = self._bound(e, i, calculation)
        values = [
            self._factors(e, i) if operand == SHARED_FACTORS else e.value(operand, kind.held)
            for operand, kind in calculation.sources
        ]
        read = {operand for operand, _ in calculation.sources}
        if not read.isdisjoint(calculation.targets):
            values = [e.temporary(value) for value in values]
        if i.opcode == "wgmma":
            values = self._added(e, i, values, len(calculation.targets))
        guard = _guard(e, i, "guard=")

        def finish(e: Emitter) -> None:
            kind = calculation.result
            results = [e.value(target, kind.held) for target in calculation.targets]
            are_wrong = " or ".join([_is_wrong(e, kind, result) for result in results])
            e.line(
                f"if N or {are_wrong}:"
                f" N.calculated(f, {use}, {_tuple(values)}, {_tuple(results)}{guard})"
            )

        self._finish = finish

    def _bound(self, e: Emitter, i: Instruction, calculation: Calculation) -> str:
        operands = [operand for operand, _ in calculation.sources]
        sources = [_number(e, each) if isinstance(each, Register) else None for each in operands]
        located = replace(i, location=self._flow(e).location_of(i))
        targets = _numbers(e, calculation.targets)
        return e.scope.bind(FloatUse(i, calculation, targets, tuple(sources), located), "use")

    def _factors(self, e: Emitter, i: Instruction) -> str:
        """Write code that looks at the factors of a product in shared memory."""
        product = e.scope.bind(group_product(e, i), "product")
        left = "None" if isinstance(i.operands[1], Vector) else e.value(i.operands[1], "u64")
        right, warp = e.value(i.operands[2], "u64"), e.value(SpecialRegister("%warpid"), "u32")
        helper = e.helper(shared_factors)
        return e.temporary(f"{helper}(f, {product}, {left}, {right}, {warp})")

    def _added(self, e: Emitter, i: Instruction, values: list[str], count: int) -> list[str]:
        """Return values of which the first ones are zero where a product does not add them."""
        flag = e.value(i.operands[5 if "sp" in i.modifiers else 3], "pred")
        added = [e.temporary(f"{e.helper(_where)}({flag}, {each})") for each in values[:count]]
        return [*added, *values[count:]]

    def _uses(self, e: Emitter, step: BlockStep, *, writes: bool) -> None:
        """Write code for an instruction after which nothing follows its operands."""
        operands = step.instruction.operands[step.operation.writes :]
        if step.operation.updates:
            operands = step.instruction.operands
        marked = [each for each in self._marked(e, operands) if e.scope.width[_number(e, each)] < 9]
        written = step.writes if writes else ()
        use = e.scope.bind(RegisterUse(step.instruction, _numbers(e, marked), written), "use")
        if marked:
            widths = [8 * e.scope.width[_number(e, each)] for each in marked]
            values = [e.value(each, f"b{bits}") for each, bits in zip(marked, widths, strict=True)]
            if step.instruction.opcode == "wgmma" and not writes:
                targets = list(registers_in(step.instruction.operands[0]))
                marked_first = [each for each in marked if each in targets]
                assert marked[: len(marked_first)] == marked_first
                values = self._added(e, step.instruction, values, len(marked_first))
            e.line(f"if N: N.needs(f, {use}, {_tuple(values)})")
        elif written and self._writes_reached(e, step):
            e.line(f"if N: N.passes(f, {use})")

    def _passes_parameters(self, e: Emitter, i: Instruction) -> None:
        """Write code for a load or a store of a function's parameters or results."""
        is_load = i.opcode == "ld"
        values, memory = i.operands if is_load else i.operands[::-1]
        assert isinstance(memory, Address)
        assert isinstance(memory.base, Symbol)
        items = values.items if isinstance(values, Vector) else (values,)
        numbers = [_number(e, each) if isinstance(each, Register) else None for each in items]
        if not self._flow(e).reached or (is_load and None in numbers):
            return
        start = e.scope.symbol(memory.base.name, i)[1]
        nbytes = int(i.facts.types[-1][1:]) // 8
        places = _tuple([f"{start} + {memory.offset + k * nbytes}" for k in range(len(items))])
        written = tuple([each for each in numbers if each is not None]) if is_load else ()
        use = e.scope.bind(RegisterUse(i, () if is_load else tuple(numbers), written), "use")
        e.line(f"if N: N.{'loads' if is_load else 'stores'}_parameters(f, {use}, {places})")

    def _adds(self, e: Emitter, i: Instruction, kind: FloatFormat) -> None:
        """Write code for an addition to memory, which looks at the sums after it."""
        memory, operand = i.operands[1:3] if i.opcode == "atom" else i.operands[:2]
        assert isinstance(memory, Address)
        addresses, offset, space = e.address(memory, i.facts.space)
        values = e.values(operand, kind.held)
        # No access is noted: the instruction does that.
        site = e.scope.bind(Site(i, space, kind_of(kind.held), len(values), writes=False), "site")
        added = tuple([each for each in registers_in(operand) if each.ptx_type != "pred"])
        place = e.scope.bind(SumPlace(i, kind, _memory_text(memory), added), "place")
        sums = e.temporary(
            f"{e.helper(sums_before)}(f, {addresses}, {offset}, {site}, {place}, {_tuple(values)})"
        )
        self._finish = lambda e: e.line(f"if {sums}: {self.follower}.added(f, {sums})")

    def _decides(self, e: Emitter, i: Instruction, kind: FloatFormat, method: str) -> None:
        """Write code for a comparison, or a conversion to an integer."""
        operands = i.operands[1:3] if method == "compares" else i.operands[1:2]
        marked = self._marked(e, operands)
        if marked:
            use = self._bound(e, i, Calculation(kind, (), tuple([(each, kind) for each in marked])))
            values = _tuple([e.value(each, kind.held) for each in marked])
            e.line(f"if N: N.{method}(f, {use}, {values}{_guard(e, i, 'guard=')})")

    def _assembles(self, e: Emitter, i: Instruction, assembly: Calculation) -> None:
        """Write code for a float whose bits integers are."""
        (target,), use, guard = (
            assembly.targets,
            self._bound(e, i, assembly),
            _guard(e, i, "guard="),
        )
        values = _tuple([e.value(operand, kind.held) for operand, kind in assembly.sources])

        def finish(e: Emitter) -> None:
            result = e.value(target, assembly.result.held)
            e.line(
                f"if {_is_wrong(e, assembly.result, result)}:"
                f" N.assembled(f, {use}, {values}, {result}{guard})"
            )

        self._finish = finish

    def _selects(self, e: Emitter, step: BlockStep) -> None:
        i = step.instruction
        target, first, _, predicate = i.operands
        poles = self._flow(e).poles_of(i)
        chosen = e.value(predicate, "pred")
        if self._writes_reached(e, step):
            numbers = [
                _number(e, each) if isinstance(each, Register) else None for each in i.operands[1:]
            ]
            use = RegisterUse(i, tuple(numbers), step.writes, (), _guard_number(e, i))
            e.line(f"if N: N.selects(f, {e.scope.bind(use, 'use')}, {chosen}{_guard(e, i)})")
        if not poles or not isinstance(target, Register):
            return
        conditions = [
            e.temporary(chosen if each.constant is first else f"~{chosen}") for each in poles
        ]
        texts = [self._pole(e, i, target, each) for each in poles]

        def finish(e: Emitter) -> None:
            for condition, (use, values) in zip(conditions, texts, strict=True):
                if i.guard is not None:
                    condition = e.temporary(f"{condition} & {guard}")
                result = e.value(target, FORMATS[f"f{poles[0].constant.width}"].held)
                e.line(
                    f"if {condition}.any(): N.calculated(f, {use}, {values}, ({result},),"
                    f" guard={condition})"
                )

        guard = "" if i.guard is None else e.temporary(_condition(e, i))
        self._finish = finish

    def _pole(self, e: Emitter, i: Instruction, target: Register, pole: Pole) -> tuple[str, str]:
        """Return the use of a selected constant, and the value that decides."""
        kind = FORMATS[f"f{pole.constant.width}"]
        use = self._bound(e, i, Calculation(kind, (target,), pole.sources))
        values = [e.temporary(e.value(each, of.held)) for each, of in pole.sources]
        return use, _tuple(values)


def _where(flag: Value, value: Value) -> Value:
    return np.where(flag, value, value.dtype.type(0))


def _memory_text(memory: Address) -> str:
    base = "" if memory.base is None else memory.base.name
    return f"[{base}{f'+{memory.offset}' if base and memory.offset else memory.offset or ''}]"


def _is_wrong(e: Emitter, kind: FloatFormat, value: str) -> str:
    """Return the condition that a value is infinite or NaN for a thread, or very large."""
    if kind.ptx_type in _NUMBERS:
        return f"{e.helper(may_be_nonfinite)}({value})"
    return f"{e.scope.bind(kind, 'format')}.has_nonfinite({value})"


def _number(e: Emitter, register: Register) -> int:
    return e.scope.number(register)


def _numbers(e: Emitter, registers: Sequence[Register]) -> tuple[int, ...]:
    return tuple([e.scope.number(register) for register in registers])


def _tuple(values: Sequence[str]) -> str:
    return f"({', '.join(values)},)" if values else "()"


def _condition(e: Emitter, i: Instruction) -> str:
    assert i.guard is not None
    value = e.value(i.guard.register, "pred")
    return f"~{value}" if i.guard.negated else value


def _guard(e: Emitter, i: Instruction, name: str = "") -> str:
    """Return the argument of the threads that execute an instruction; "" for all of them."""
    return "" if i.guard is None else f", {name}{_condition(e, i)}"


def _guard_number(e: Emitter, i: Instruction) -> int | None:
    return None if i.guard is None else e.scope.number(i.guard.register)
