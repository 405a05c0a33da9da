"""One basic block as a Python function, or some of its instructions as one."""

from __future__ import annotations

from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.codegen.table import Effect
from ptx.emulate.codegen.unit import Unit
from ptx.emulate.kernel_facts import Action, PendingUse
from ptx.emulate.model.types import kind_of
from ptx.isa.model import Instruction

_SELECTED = "only selections read the result"


class BlockWriter:
    """Writes one basic block."""

    def __init__(
        self, unit: Unit, block: Block, emitter: Emitter, instruments: tuple[BlockInstrument, ...]
    ) -> None:
        self._unit = unit
        self._block = block
        self._emitter = emitter
        self._instruments = instruments

    def write(self) -> list[str]:
        """The lines of its function."""
        block, emitter, first = self._block, self._emitter, self._unit.first
        following = self._unit.following(block)
        emitter.begin(first + block.index, following)
        for instrument in self._instruments:
            instrument.begin_block(emitter, block)
        waits = bool(block.steps) and block.steps[0].operation.effect is Effect.SYNCS
        if not waits:
            self._execute_block()
        emitter.targets = tuple(first + target for target in block.targets)
        live_out = self._unit.live_after(block)
        emitter.live_out = live_out
        after = self._live_after_each(live_out)
        before = self._unit.blocks[block.index - 1] if block.index else None
        is_skipped = before is not None and before.skipped is not None
        ended = False
        for step, live in zip(block.steps, after, strict=True):
            emitter.start(step.instruction)
            emitter.live_results = live
            if live or step.operation.effect is not Effect.PURE:
                self._write_step(step, is_skipped=is_skipped)
                ended = step.operation.effect is Effect.ENDS
        if not ended:
            self._leave(live_out, following)
        return emitter.lines

    def _write_step(self, step: BlockStep, *, is_skipped: bool) -> None:
        """Write one instruction, and what instruments add before and after it."""
        emitter, effect = self._emitter, step.operation.effect
        for instrument in self._instruments:
            instrument.execute(emitter, step, is_skipped=is_skipped)
        self._note_division(step.instruction)
        pending = self._unit.pending.get(id(step.instruction))
        if pending is not None:
            self._note_pending(pending, "use_pending")
        try:
            step.operation.emit(emitter, step.instruction)
        except KeyError as missing:
            raise emitter.reject(f"it uses {missing}, which is not executed") from None
        if pending is not None and pending.action is Action.BEGINS:
            self._note_pending(pending, "begin_pending")
        if effect is Effect.SYNCS:
            self._execute_block()
        if effect is not Effect.ENDS:
            for instrument in self._instruments:
                instrument.executed(emitter, step)

    def _leave(self, live_out: int, following: int) -> None:
        block, emitter, first = self._block, self._emitter, self._unit.first
        if block.guard is None:
            self._end_block()
            emitter.flush(live_out)
            target = following if block.target is None else first + block.target
            emitter.line(f"return {target}")
            return
        assert block.target is not None
        branch = block.branch or block.skipped
        pending = None if branch is None else self._unit.pending.get(id(branch))
        if pending is not None:
            self._note_pending(pending, "use_pending")
        self._end_block()
        condition = emitter.value(block.guard.register, "pred")
        if block.guard.negated:
            condition = f"~{condition}"
        emitter.flush(live_out)
        emitter.line(f"return f.split({condition}, {first + block.target}, {following})")

    def _execute_block(self) -> None:
        for instrument in self._instruments:
            instrument.execute_block(self._emitter)

    def _end_block(self) -> None:
        for instrument in self._instruments:
            instrument.end_block(self._emitter, self._block)

    def _note_division(self, instruction: Instruction) -> None:
        """Write code that reports divisors."""
        is_selected = self._unit.divisions.get(id(instruction))
        if is_selected is None:
            return
        emitter, guard = self._emitter, instruction.guard
        kind = kind_of(instruction.facts.type_suffix)
        arguments = f"f, {self._unit.scope.bind(instruction, 'instruction')}"
        arguments += f", {emitter.value(instruction.operands[2], kind)}"
        if guard is not None:
            condition = emitter.value(guard.register, "pred")
            arguments += f", guard={'~' if guard.negated else ''}{condition}"
        if is_selected:
            arguments += f", benign={_SELECTED!r}"
        emitter.line(f"for O in f.blocks.observers: O.divide({arguments})")

    def _note_pending(self, use: PendingUse, method: str) -> None:
        """Write code that reports registers with pending results."""
        if method == "use_pending" and use.action is Action.BEGINS and not use.reads:
            return
        name = self._unit.scope.bind(use, "pending")
        self._emitter.line(f"for O in f.blocks.order_observers: O.{method}(f, {name})")

    def _live_after_each(self, live_out: int) -> list[frozenset[int]]:
        """Return for each step which of the registers that it writes are read later."""
        block = self._block
        live = set(bits(live_out))
        if block.guard is not None:
            live.add(self._unit.scope.numbers[block.guard.register.name])
        live_results: list[frozenset[int]] = []
        for step in reversed(block.steps):
            writes = frozenset(step.writes)
            live_results.append(writes & live)
            live -= writes
            live.update(step.reads)
        live_results.reverse()
        return live_results
