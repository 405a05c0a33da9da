"""Code that follows undefined values; it is generated only for launches that check them.

As long as there is no such value, that is one test of a dictionary for an instruction.
"""

from __future__ import annotations

from ptx.emulate.check.register_marks import RegisterUse
from ptx.emulate.check.register_uses import decides, guard_argument, register_use
from ptx.emulate.codegen.analysis.droppable_loads import COMBINES
from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import MARKS, Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.table import Effect
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.generic_addresses import are_global
from ptx.isa.instruction_facts import GENERIC, InstructionKind
from ptx.isa.model import Instruction, Operand, Vector
from ptx.isa.registers import registers_in


class UndefinedWriter(BlockInstrument):
    """Writes code that follows values of memory and registers that nothing has written."""

    @classmethod
    def is_needed(cls, code: KernelFacts) -> bool:
        """Return whether the kernel may have such values."""
        return code.loads_own_memory or code.may_leave_unwritten

    def begin_block(self, e: Emitter, block: Block) -> None:
        """Write code that discards values which are not read any more."""
        live = e.scope.bind(frozenset(bits(block.live)), "live")
        e.line(f"U = {self.follower}")
        e.line(f"if U: U.enter(f, {live})")
        if block.unwritten:
            e.line(f"U.begins(f, {e.scope.bind(block.unwritten, 'unwritten')})")

    def end_block(self, e: Emitter, block: Block) -> None:
        """Write code for the branch at the block's end, or for the guard of an instruction."""
        instruction = block.branch or block.skipped
        if block.guard is not None and instruction is not None:
            use = RegisterUse(instruction, (e.scope.number(block.guard.register),), ())
            e.line(f"if U: U.needs(f, {e.scope.bind(use, 'use')})")

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code for an instruction that the fibre executes."""
        i = step.instruction
        facts = step.instruction.facts
        if facts.kind is InstructionKind.LOAD:
            _line(e, "loads", register_use(e, step, ()), "")
        elif facts.kind is InstructionKind.STORE:
            value = i.operands[1]
            elements = value.items if isinstance(value, Vector) else (value,)
            _line(e, "stores", register_use(e, step, elements), f", {_outside(e, i)}")
        elif facts.kind is InstructionKind.EXCHANGE:
            lanes = tuple(e.scope.number(register) for register in registers_in(i.operands[-1]))
            _line(e, "meets", RegisterUse(i, (), (), lanes), "")
        elif step.operation.effect is not Effect.PURE:
            use = RegisterUse(i, step.reads, step.writes)
            _line(e, "needs", use, "")
        else:
            _follow_pure(e, step)

    def bring(self, e: Emitter, i: Instruction) -> dict[str, str]:
        """Bring each lane's undefined reads to an exchange of a warp."""
        numbers = tuple(e.scope.number(register) for register in registers_in(i.operands[1]))
        e.line(
            f"{MARKS} = U.exchanged_reads(f, {e.scope.bind(numbers, 'numbers')}) if U"
            f" else {e.constant(0, 's32')}"
        )
        return {MARKS: MARKS}

    def exchange(
        self, e: Emitter, i: Instruction, target: Operand, marks: str, sources: tuple[Operand, ...]
    ) -> None:
        """Write code that marks the result of an exchange."""
        sources_read, written = (
            tuple(
                e.scope.number(register)
                for operand in operands
                for register in registers_in(operand)
            )
            for operands in (sources, (target,))
        )
        use = e.scope.bind(RegisterUse(i, sources_read, written), "use")
        # Lanes of other fibres may pass some even if this chunk has none any more.
        e.line(f"if U or f.exchange: U.receives(f, {use}, {marks})")


def _outside(e: Emitter, store: Instruction) -> str:
    """Return an expression of the threads that store to memory that other blocks see."""
    facts = store.facts
    if facts.space != GENERIC:
        return e.constant(facts.space == "global" or facts.reaches_cluster, "pred")
    addresses, offset, space = e.address(store.operands[0], GENERIC)
    if space != GENERIC:
        return e.constant(space == "global", "pred")
    return f"{e.helper(are_global)}({addresses}, {offset}, f.n)"


def _follow_pure(e: Emitter, step: BlockStep) -> None:
    i = step.instruction
    guard = guard_argument(e, i)
    kind, words = step.instruction.facts.type_suffix, step.instruction.facts.words
    if i.opcode in COMBINES and len(i.operands) == 3:
        sources = i.operands[1:]
        left, right = [decides(e, i.opcode, source, kind) for source in sources]
        _line(e, "combines", register_use(e, step, sources), f", ({left}, {right}){guard}")
    elif i.opcode == "setp" and len(i.operands) == 4 and any(word in words for word in COMBINES):
        joins = "or" if "or" in words else "and"
        decided = decides(e, joins, i.operands[3], "pred")
        _line(e, "compares", register_use(e, step, i.operands[1:]), f", {decided}{guard}")
    elif i.opcode == "selp":
        chosen = e.value(i.operands[3], "pred")
        _line(e, "selects", register_use(e, step, i.operands[1:]), f", {chosen}{guard}")
    elif i.opcode == "slct" and kind.endswith(".s32"):
        chosen = f"({e.value(i.operands[3], 's32')} >= 0)"
        _line(e, "selects", register_use(e, step, i.operands[1:]), f", {chosen}{guard}")
    else:
        operands = i.operands[0 if step.operation.updates else step.operation.writes :]
        _line(e, "passes", register_use(e, step, operands), guard)


def _line(e: Emitter, method: str, use: RegisterUse, arguments: str) -> None:
    e.line(f"if U: U.{method}(f, {e.scope.bind(use, 'use')}{arguments})")
