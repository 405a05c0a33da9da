"""Code that follows the values of loads; only kernels that may drop one of them have it."""

from __future__ import annotations

from ptx.emulate.check.held_loads import MOST_HELD
from ptx.emulate.check.register_marks import RegisterUse
from ptx.emulate.check.register_uses import decides, guard_argument, register_use
from ptx.emulate.codegen.analysis.droppable_loads import COMBINES, is_plain_load, is_plain_store
from ptx.emulate.codegen.cfg import Block, BlockStep, bits, mask_of
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.table import Effect
from ptx.emulate.codegen.unit import Unit
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.model.types import kind_of
from ptx.isa.model import Immediate, Instruction, Operand, Vector

_ZERO_TESTS = ("eq", "ne")


class HeldLoadsWriter(BlockInstrument):
    """Writes code that follows the values of loads until a thread needs or drops them.

    Attributes:
        numbers: of the loads, by the identity of the instruction.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.numbers: dict[int, int] = {}
        self._reached = 0  # the registers of the function that may have such values
        self._live: dict[int, int] = {}  # by the identity of an instruction, those read after it

    @classmethod
    def is_needed(cls, code: KernelFacts) -> bool:
        """Return whether some threads of the kernel may drop a value that they load."""
        return code.has_droppable_loads()

    def begin_function(self, unit: Unit) -> None:
        """Number the loads of a function, and find the registers that their values reach."""
        self._reached = 0
        for step in unit.droppable_loads:
            if len(self.numbers) < MOST_HELD:
                self.numbers[id(step.instruction)] = len(self.numbers)
                self._reached |= mask_of(step.writes)
        if not self._reached:
            return
        pure = [
            (mask_of(step.reads), mask_of(step.writes))
            for block in unit.blocks
            for step in block.steps
            if step.operation.effect is Effect.PURE
        ]
        reached = 0
        while reached != self._reached:
            reached = self._reached
            for reads, writes in pure:
                self._reached |= writes if reads & self._reached else 0
        self._live = {
            id(step.instruction): live
            for block in unit.blocks
            for step, live in zip(block.steps, unit.live_after_each(block), strict=True)
        }

    def begin_block(self, e: Emitter, block: Block) -> None:
        """Write code that discards values which are not read any more."""
        if self._reached:
            e.line(f"H = {self.follower}")
            live = frozenset(bits(block.live & self._reached))
            e.line(f"if H: H.enter(f, {e.scope.bind(live, 'live')})")

    def end_block(self, e: Emitter, block: Block) -> None:
        """Write code for the branch at the block's end, or for the guard of an instruction."""
        if block.guard is not None:
            number = e.scope.number(block.guard.register)
            if self._reached >> number & 1:
                instruction = block.branch or block.skipped
                assert instruction is not None  # the guard is its own
                _line(e, "needs", RegisterUse(instruction, (number,), ()), "")

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code for an instruction that the fibre executes."""
        if not self._reached:
            return
        i = step.instruction
        live = self._live[id(i)] & self._reached
        if is_plain_load(step):
            others = frozenset(bits(live & ~mask_of(step.writes)))
            is_held = id(i) in self.numbers
            condition = "" if is_held else "if H: "
            if is_held or self._concerns(step):
                use = e.scope.bind(register_use(e, step, ()), "use")
                e.line(f"{condition}H.loads(f, {use}, {e.scope.bind(others, 'live')})")
        elif is_plain_store(step):
            value = i.operands[1]
            elements = value.items if isinstance(value, Vector) else (value,)
            _line(e, "stores", register_use(e, step, elements), _bound(e, live))
        elif step.operation.effect is not Effect.PURE:
            needed = tuple(bits(live | mask_of(step.reads) & self._reached))
            _line(e, "orders", RegisterUse(i, needed, ()), "")
        elif self._concerns(step):
            _follow(e, step)

    def executed(self, e: Emitter, step: BlockStep) -> None:
        """Write code that follows what a load has loaded."""
        if id(step.instruction) in self.numbers:
            use = e.scope.bind(register_use(e, step, ()), "use")
            e.line(f"H.loaded(f, {use})")

    def _concerns(self, step: BlockStep) -> bool:
        return bool((mask_of(step.reads) | mask_of(step.writes)) & self._reached)


def _follow(e: Emitter, step: BlockStep) -> None:
    """Write code for an instruction without other effects."""
    i = step.instruction
    guard = guard_argument(e, i)
    kind, words = i.facts.type_suffix, i.facts.words
    operands = i.operands[0 if step.operation.updates else step.operation.writes :]
    use = register_use(e, step, operands)
    if i.opcode in COMBINES:
        left, right = [decides(e, i.opcode, source, kind) for source in operands]
        is_or = i.opcode == "or" and kind != "pred"
        nonzero = f", nonzero=({', '.join(_nonzero(e, each, kind) for each in operands)})"
        _line(e, "combines", use, f", ({left}, {right}){guard}{nonzero if is_or else ''}")
    elif i.opcode == "setp" and len(i.operands) == 4:
        joins = [word for word in COMBINES if word in words]
        if joins:
            _line(e, "compares", use, f", {decides(e, joins[0], i.operands[3], 'pred')}{guard}")
        else:
            _line(e, "passes", use, guard)
    elif i.opcode == "setp" and _tests_zero(i, kind):
        _line(e, "tests_zero", use, guard)
    elif i.opcode == "selp":
        _line(e, "selects", use, f", {e.value(i.operands[3], 'pred')}{guard}")
    else:
        _line(e, "passes", use, guard)


def _tests_zero(i: Instruction, kind: str) -> bool:
    zero = i.operands[2]
    is_zero = isinstance(zero, Immediate) and zero.value == 0
    return is_zero and kind[0] in "bsu" and any(word in i.facts.words for word in _ZERO_TESTS)


def _nonzero(e: Emitter, operand: Operand, kind: str) -> str:
    return f"({e.value(operand, kind)} != {e.constant(0, kind_of(kind))})"


def _bound(e: Emitter, live: int) -> str:
    return f", {e.scope.bind(frozenset(bits(live)), 'live')}"


def _line(e: Emitter, method: str, use: RegisterUse, arguments: str) -> None:
    e.line(f"if H: H.{method}(f, {e.scope.bind(use, 'use')}{arguments})")
