"""A function that one thread executes, instruction by instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptx.isa.model import (
    TYPE_BYTES,
    Address,
    Arguments,
    FloatImmediate,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Space,
    SpecialRegister,
    Symbol,
    Vector,
)
from tests.ptx.emulate.reference import integers
from tests.ptx.emulate.reference.integers import wrap
from tests.ptx.emulate.reference.state import Meeting, NotCovered, Request, Thread

if TYPE_CHECKING:
    from tests.ptx.emulate.reference.interpreter import Interpreter

FIELDS = ("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "lop3", "shf")
ARITHMETIC = (
    "add", "sub", "mul", "mad", "div", "rem", "min", "max", "abs", "neg", "sad", "mul24", "mad24",
)  # fmt: skip
LOGIC = ("and", "or", "xor", "not", "cnot", "shl", "shr")
SPACES = ("global", "shared", "local", "param", "const")


class Frame:
    """A function that one thread executes."""

    def __init__(
        self, machine: Interpreter, name: str, thread: Thread, shared: dict[str, int]
    ) -> None:
        self._machine = machine
        self._name = name
        self._body = machine.module.body(name)
        self._labels = machine.labels(name, self._body)
        self._thread = thread
        self._shared = shared
        self._registers: dict[str, int] = {}
        self._carry = 0
        self.params: dict[str, bytes | bytearray] = {}
        self._local: dict[str, bytearray] = {}
        for variable in self._body.variables:
            where = self.params if variable.space is Space.PARAM else self._local
            where[variable.name] = bytearray(variable.nbytes)

    def run(self) -> Meeting:
        at, statements = 0, self._body.statements
        while at < len(statements):
            statement = statements[at]
            at += 1
            if isinstance(statement, Label):
                continue
            guard = statement.guard
            if guard is not None and bool(self._registers[guard.register.name]) == guard.negated:
                continue
            if statement.opcode == "bra":
                target = statement.operands[0]
                assert isinstance(target, Symbol)
                at = self._labels[target.name]
            elif statement.opcode in ("ret", "exit"):
                return
            elif statement.opcode == "call":
                yield from self._call(statement)
            elif statement.opcode in ("bar", "vote", "shfl"):
                yield from self._stop(statement)
            else:
                self._execute(statement)

    def _call(self, i: Instruction) -> Meeting:
        operands = list(i.operands)
        first, last = operands[0], operands[-1]
        results = first.items if isinstance(first, Arguments) else ()
        given = last.items if isinstance(last, Arguments) and len(operands) > 1 else ()
        target = next(each for each in operands if isinstance(each, Symbol))
        function = self._machine.module.functions[target.name]
        callee = Frame(self._machine, target.name, self._thread, self._shared)
        for formal, actual in zip(function.params, given, strict=True):
            assert isinstance(actual, Symbol)
            callee.params[formal.name] = bytes(self.params[actual.name])
        for formal in function.returns:
            callee.params[formal.name] = bytearray(formal.nbytes)
        yield from callee.run()
        for formal, actual in zip(function.returns, results, strict=True):
            assert isinstance(actual, Symbol)
            self.params[actual.name] = bytearray(callee.params[formal.name])

    def _stop(self, i: Instruction) -> Meeting:
        if i.opcode == "bar":
            yield Request("bar")
            return
        values = tuple(self._value(operand) for operand in i.operands[1:-1])
        answer = yield Request(i.opcode, i.modifiers, values)
        target = i.operands[0]
        if isinstance(target, Pair):
            self._write(target.second, answer >> 32)
            target = target.first
        self._write(target, answer & 0xFFFFFFFF)

    # Operands.

    def _value(self, operand: Operand) -> int:
        if isinstance(operand, Register):
            return self._registers[operand.name]
        if isinstance(operand, Immediate):
            return wrap(operand.value, 64)
        if isinstance(operand, FloatImmediate):
            return operand.bits
        if isinstance(operand, Negated):
            return 1 - self._registers[operand.operand.name]
        if isinstance(operand, SpecialRegister):
            return self._thread.place[operand.name]
        if isinstance(operand, Symbol) and operand.name in self._shared:
            return self._shared[operand.name] + operand.offset
        if isinstance(operand, Symbol) and operand.name in self._local:
            return operand.offset
        raise NotCovered(str(operand))

    def _write(self, operand: Operand, value: int, signed: bool = False, bits: int = 0) -> None:
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register)
        width = 1 if operand.ptx_type == "pred" else 8 * TYPE_BYTES[operand.ptx_type]
        if signed and value >> (bits - 1):
            value -= 1 << bits
        self._registers[operand.name] = wrap(value, width)

    def _memory(self, i: Instruction, operand: Operand, nbytes: int) -> tuple[bytearray, int]:
        assert isinstance(operand, Address)
        space = next(word for word in i.modifiers if word in SPACES)
        base = operand.base
        if space == "param":
            assert isinstance(base, Symbol)
            data = self.params[base.name]
            return (data if isinstance(data, bytearray) else bytearray(data)), operand.offset
        if isinstance(base, Symbol) and base.name in self._local:
            return self._local[base.name], operand.offset
        address = (0 if base is None else self._value(base)) + operand.offset
        if space == "shared":
            return self._machine.memory.shared, address
        if space == "local":
            (only,) = self._local.values()
            return only, address
        return self._machine.memory.place(wrap(address, 64), nbytes)

    # Instructions.

    def _execute(self, i: Instruction) -> None:
        types = tuple(word for word in i.modifiers if word in TYPE_BYTES)
        if i.opcode in ("ld", "st", "red", "atom"):
            self._access(i, types[0])
        elif i.opcode == "mov":
            self._move(i, types[0])
        elif i.opcode in ("setp", "set"):
            self._compare(i, types[-1])
        elif i.opcode == "cvta":
            self._write(i.operands[0], self._value(i.operands[1]))
        elif i.opcode == "selp":
            yes, no, choice = i.operands[1:]
            self._write(i.operands[0], self._value(yes if self._value(choice) else no))
        elif i.opcode in ("addc", "subc") or "cc" in i.modifiers:
            self._with_carry(i, types[0])
        else:
            self._compute(i, types)

    def _compute(self, i: Instruction, types: tuple[str, ...]) -> None:
        given = [self._value(operand) for operand in i.operands[1:]]
        target, kind = i.operands[0], types[0]
        if i.opcode in ARITHMETIC:
            result = integers.arithmetic(i.opcode, i.modifiers, kind, given)
            wide = 2 * TYPE_BYTES[kind] if "wide" in i.modifiers else TYPE_BYTES[kind]
            self._write(target, result, kind[0] == "s", 8 * wide)
        elif i.opcode in LOGIC:
            self._write(target, integers.logic(i.opcode, kind, given))
        elif i.opcode in FIELDS:
            self._write(target, integers.fields(i.opcode, i.modifiers, kind, given))
        elif i.opcode in ("dp4a", "dp2a"):
            self._write(target, integers.dot(i.modifiers, types, given))
        elif i.opcode == "cvt":
            result = integers.convert(i.modifiers, kind, types[1], given[0])
            self._write(target, result, kind[0] == "s", 8 * TYPE_BYTES[kind])
        else:
            raise NotCovered(i.text)

    def _with_carry(self, i: Instruction, kind: str) -> None:
        bits = integers.bits_of(kind)
        a, b = (wrap(self._value(operand), bits) for operand in i.operands[1:])
        carry = self._carry if i.opcode in ("addc", "subc") else 0
        total = a + b + carry if i.opcode.startswith("add") else a - b - carry
        if "cc" in i.modifiers:
            self._carry = int(not 0 <= total < 1 << bits)
        self._write(i.operands[0], wrap(total, bits))

    def _compare(self, i: Instruction, kind: str) -> None:
        names = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
        name = next(word for word in i.modifiers if word in names)
        plain = integers.compare(name, kind, self._value(i.operands[1]), self._value(i.operands[2]))
        results = [int(plain), int(not plain)]
        boolean = next((word for word in i.modifiers if word in ("and", "or", "xor")), None)
        if boolean is not None:
            third = self._value(i.operands[3])
            results = [integers.logic(boolean, "pred", [each, third]) for each in results]
        target = i.operands[0]
        if i.opcode == "set":
            self._write(target, 0xFFFFFFFF if results[0] else 0)
        elif isinstance(target, Pair):
            self._write(target.first, results[0])
            self._write(target.second, results[1])
        else:
            self._write(target, results[0])

    def _move(self, i: Instruction, kind: str) -> None:
        target, source = i.operands
        if isinstance(source, Vector):
            width = 8 * TYPE_BYTES[kind] // len(source.items)
            parts = [wrap(self._value(item), width) for item in source.items]
            self._write(target, sum(part << width * k for k, part in enumerate(parts)))
        elif isinstance(target, Vector):
            width = 8 * TYPE_BYTES[kind] // len(target.items)
            value = self._value(source)
            for k, item in enumerate(target.items):
                self._write(item, wrap(value >> width * k, width))
        else:
            self._write(target, self._value(source))

    def _access(self, i: Instruction, kind: str) -> None:
        size = TYPE_BYTES[kind]
        place = i.operands[0] if i.opcode in ("st", "red") else i.operands[1]
        data, start = self._memory(i, place, size)
        if start < 0 or start + size > len(data):
            raise IndexError(f"{i.text} at {start}")
        if i.opcode == "ld":
            targets = i.operands[0].items if isinstance(i.operands[0], Vector) else (i.operands[0],)
            for k, target in enumerate(targets):
                piece = data[start + k * size : start + (k + 1) * size]
                value = int.from_bytes(piece, "little")
                self._write(target, value, kind[0] == "s", 8 * size)
            return
        if i.opcode == "st":
            sources = i.operands[1].items if isinstance(i.operands[1], Vector) else (i.operands[1],)
            for k, source in enumerate(sources):
                value = wrap(self._value(source), 8 * size)
                data[start + k * size : start + (k + 1) * size] = value.to_bytes(size, "little")
            return
        old = int.from_bytes(data[start : start + size], "little")
        given = [self._value(operand) for operand in i.operands[(1 if i.opcode == "red" else 2) :]]
        new = atomic(i.modifiers, kind, old, given)
        data[start : start + size] = new.to_bytes(size, "little")
        if i.opcode == "atom":
            self._write(i.operands[0], old)


def atomic(words: tuple[str, ...], kind: str, old: int, given: list[int]) -> int:
    """What an atomic operation leaves in memory."""
    bits = integers.bits_of(kind)
    value = wrap(given[0], bits)
    if "cas" in words:
        return wrap(given[1], bits) if old == value else old
    if "exch" in words:
        return value
    if "inc" in words:
        return 0 if old >= value else old + 1
    if "dec" in words:
        return value if old == 0 or old > value else old - 1
    name = next(word for word in words if word in ("add", "and", "or", "xor", "min", "max"))
    if name in ("and", "or", "xor"):
        return integers.logic(name, kind, [old, value])
    return integers.arithmetic(name, (), kind, [old, value])
