"""A function that one thread executes, instruction by instruction."""

from __future__ import annotations

from ptx.isa.model import Arguments, Instruction, Label, Pair, Symbol
from tests.emulator.engine.reference.instructions import Instructions
from tests.emulator.engine.reference.state import Request, RunningThread

# What a thread stops for: each yields a request.
_MEETINGS = ("bar", "barrier", "vote", "shfl", "match", "redux", "elect")


class Frame(Instructions):
    """Follows the control flow of a function."""

    def run(self) -> RunningThread:
        at, statements = 0, self.body.statements
        labels = self.interpreter.labels(self.body)
        while at < len(statements):
            statement = statements[at]
            at += 1
            if isinstance(statement, Label):
                continue
            guard = statement.guard
            if guard is not None and bool(self.registers[guard.register.name]) == guard.negated:
                continue
            self.interpreter.executed[statement.line] += 1
            if statement.opcode == "bra":
                target = statement.operands[0]
                assert isinstance(target, Symbol)
                at = labels[target.name]
            elif statement.opcode == "brx":
                index, table = statement.operands
                assert isinstance(table, Symbol)
                at = labels[self.body.tables[table.name][self.value(index)]]
            elif statement.opcode in ("ret", "exit"):
                return
            elif statement.opcode == "call":
                yield from self._call(statement)
            elif statement.opcode in _MEETINGS:
                yield from self._stop(statement)
            else:
                self.execute(statement)

    def _call(self, i: Instruction) -> RunningThread:
        operands = list(i.operands)
        first = operands[0]
        results = first.items if isinstance(first, Arguments) else ()
        # What is called, what it is given, and a prototype.
        called, *rest = operands[int(isinstance(first, Arguments)) :]
        name = self.function(called)
        given = rest[0].items if rest and isinstance(rest[0], Arguments) else ()
        function = self.interpreter.module.functions[name]
        callee = Frame(self.interpreter, name, self.thread, self.shared)
        for formal, actual in zip(function.params, given, strict=True):
            assert isinstance(actual, Symbol)
            callee.params[formal.name] = bytes(self.params[actual.name])
        for formal in function.returns:
            callee.params[formal.name] = bytearray(formal.nbytes)
        yield from callee.run()
        for formal, actual in zip(function.returns, results, strict=True):
            assert isinstance(actual, Symbol)
            self.params[actual.name] = bytearray(callee.params[formal.name])

    def _stop(self, i: Instruction) -> RunningThread:
        """Wait for the other threads; a second result comes as bit 32 of the answer."""
        kind = i.opcode if "warp" not in i.modifiers else "bar.warp"
        has_result = kind in _MEETINGS and (kind not in ("bar", "barrier") or "red" in i.modifiers)
        target = i.operands[0] if has_result else None
        values = [self.value(operand) for operand in i.operands[int(has_result) :]]
        if kind in ("bar", "barrier"):
            answer = yield Request("bar", i.modifiers, tuple(values))
        else:
            mask = values.pop()
            answer = yield Request(kind, i.modifiers, tuple(values), mask & 0xFFFFFFFF)
        if isinstance(target, Pair):
            self.write(target.second, answer >> 32)
            target = target.first
        if target is not None:
            self.write(target, answer & 0xFFFFFFFF)
