"""What one instruction does to one thread's registers and to memory."""

from __future__ import annotations

from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import Instruction, Pair, Vector
from tests.emulator.engine.reference import conversions, floats, integers
from tests.emulator.engine.reference.atomics import atomic
from tests.emulator.engine.reference.formats import FORMS
from tests.emulator.engine.reference.integers import wrap
from tests.emulator.engine.reference.operands import SPACES, WINDOWS, Operands, space_of
from tests.emulator.engine.reference.state import NotCovered

_FIELDS = ("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "lop3", "shf")
_INTEGER = (
    "add", "sub", "mul", "mad", "div", "rem", "min", "max", "abs", "neg", "sad", "mul24", "mad24",
)  # fmt: skip
_FLOAT = (*floats.ARITHMETIC, "min", "max", "neg", "abs", "copysign")
_LOGIC = ("and", "or", "xor", "not", "cnot", "shl", "shr")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")  # fmt: skip
_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def is_float(kind: str) -> bool:
    return kind.removesuffix("x2") in FORMS


class Instructions(Operands):
    """Executes everything but control flow and what threads wait for."""

    _carry = 0

    def execute(self, i: Instruction) -> None:
        types = tuple(word for word in i.modifiers if word in TYPE_BYTES)
        if i.opcode in ("ld", "st", "red", "atom"):
            self._access(i, types[0])
        elif i.opcode == "mov":
            self._move(i, types[0])
        elif i.opcode in ("setp", "set"):
            self._compare(i, types)
        elif i.opcode == "cvta":
            window = WINDOWS.get(next(word for word in i.modifiers if word in SPACES), 0)
            given = self.value(i.operands[1])
            self.write(i.operands[0], given - window if "to" in i.modifiers else given + window)
        elif i.opcode == "isspacep":
            self.write(i.operands[0], int(space_of(self.value(i.operands[1])) in i.modifiers))
        elif i.opcode in ("selp", "slct"):
            yes, no, choice = i.operands[1:]
            chosen = self.value(choice)
            if i.opcode == "slct":
                chosen = _is_not_below_zero(types[1], "ftz" in i.modifiers, chosen)
            self.write(i.operands[0], self.value(yes if chosen else no))
        elif i.opcode == "testp":
            bits = self.value(i.operands[1])
            self.write(i.operands[0], int(floats.has_property(i.modifiers[0], types[0], bits)))
        elif i.opcode in ("addc", "subc") or "cc" in i.modifiers:
            self._with_carry(i, types[0])
        else:
            self._compute(i, types)

    def _compute(self, i: Instruction, types: tuple[str, ...]) -> None:
        given = [self.value(operand) for operand in i.operands[1:]]
        target, kind = i.operands[0], types[0]
        if i.opcode == "cvt":
            result = conversions.convert(i.modifiers, kind, types[1], given)
            self.write(target, result, kind[0] == "s", 8 * TYPE_BYTES[kind])
        elif is_float(kind) and i.opcode in _FLOAT:
            self.write(target, floats.compute(i.opcode, i.modifiers, types, given))
        elif i.opcode in _INTEGER:
            result = integers.arithmetic(i.opcode, i.modifiers, kind, given)
            wide = 2 * TYPE_BYTES[kind] if "wide" in i.modifiers else TYPE_BYTES[kind]
            self.write(target, result, kind[0] == "s", 8 * wide)
        elif i.opcode in _LOGIC:
            self.write(target, integers.logic(i.opcode, kind, given))
        elif i.opcode in _FIELDS:
            self.write(target, integers.fields(i.opcode, i.modifiers, kind, given))
        elif i.opcode in ("dp4a", "dp2a"):
            self.write(target, integers.dot(i.modifiers, types, given))
        else:
            raise NotCovered(i.text)

    def _with_carry(self, i: Instruction, kind: str) -> None:
        bits = integers.bits_of(kind)
        a, b = (wrap(self.value(operand), bits) for operand in i.operands[1:])
        subtracts = i.opcode.startswith("sub")
        b = wrap(~b, bits) if subtracts else b
        carry = self._carry if i.opcode in ("addc", "subc") else int(subtracts)
        total = a + b + carry
        if "cc" in i.modifiers:
            self._carry = total >> bits
        self.write(i.operands[0], wrap(total, bits))

    def _compare(self, i: Instruction, types: tuple[str, ...]) -> None:
        kind = types[-1]
        name = next(word for word in i.modifiers if word in _COMPARISONS)
        a, b = self.value(i.operands[1]), self.value(i.operands[2])
        packed = kind.endswith("x2")
        if packed:
            half, low = kind.removesuffix("x2"), 0xFFFF
            pairs = ((a & low, b & low), (a >> 16 & low, b >> 16 & low))
            results = [int(floats.compare(name, half, i.modifiers, *pair)) for pair in pairs]
        elif is_float(kind):
            plain = floats.compare(name, kind, i.modifiers, a, b)
            results = [int(plain), int(not plain)]
        else:
            plain = integers.compare(name, kind, a, b)
            results = [int(plain), int(not plain)]
        boolean = next((word for word in i.modifiers if word in ("and", "or", "xor")), None)
        if boolean is not None:
            third = self.value(i.operands[3])
            results = [integers.logic(boolean, "pred", [each, third]) for each in results]
        target = i.operands[0]
        if i.opcode == "set":
            self.write(target, _set(types[0], results, packed))
        elif isinstance(target, Pair):
            self.write(target.first, results[0])
            self.write(target.second, results[1])
        else:
            self.write(target, results[0])

    def _move(self, i: Instruction, kind: str) -> None:
        target, source = i.operands
        if isinstance(source, Vector):
            width = 8 * TYPE_BYTES[kind] // len(source.items)
            parts = [wrap(self.value(item), width) for item in source.items]
            self.write(target, sum(part << width * k for k, part in enumerate(parts)))
        elif isinstance(target, Vector):
            width = 8 * TYPE_BYTES[kind] // len(target.items)
            value = self.value(source)
            for k, item in enumerate(target.items):
                self.write(item, wrap(value >> width * k, width))
        else:
            self.write(target, self.value(source))

    def _access(self, i: Instruction, kind: str) -> None:
        size = TYPE_BYTES[kind]
        place = i.operands[0] if i.opcode in ("st", "red") else i.operands[1]
        data, start = self.place(i, place, size)
        if start < 0 or start + size > len(data):
            raise IndexError(f"{i.text} at {start}")
        if i.opcode == "ld":
            targets = i.operands[0].items if isinstance(i.operands[0], Vector) else (i.operands[0],)
            for k, target in enumerate(targets):
                piece = data[start + k * size : start + (k + 1) * size]
                value = int.from_bytes(piece, "little")
                self.write(target, value, kind[0] == "s", 8 * size)
            return
        if i.opcode == "st":
            sources = i.operands[1].items if isinstance(i.operands[1], Vector) else (i.operands[1],)
            for k, source in enumerate(sources):
                value = wrap(self.value(source), 8 * size)
                data[start + k * size : start + (k + 1) * size] = value.to_bytes(size, "little")
            return
        old = int.from_bytes(data[start : start + size], "little")
        given = [self.value(operand) for operand in i.operands[(1 if i.opcode == "red" else 2) :]]
        new = atomic(
            i.modifiers, kind, old, given, in_shared=data is self.interpreter.memory.shared
        )
        data[start : start + size] = new.to_bytes(size, "little")
        if i.opcode == "atom":
            self.write(i.operands[0], old)


def _is_not_below_zero(kind: str, ftz: bool, bits: int) -> bool:
    """slct's condition; -0 is not below zero, a NaN is taken as if it were."""
    if kind == "f32":
        return floats.compare("ge", kind, ("ftz",) if ftz else (), bits, 0)
    return integers.number(bits, kind) >= 0


def _set(kind: str, results: list[int], packed: bool) -> int:
    """What set writes: ones, or the number one in a floating-point type."""
    yes = _TRUE.get(kind.removesuffix("x2"), (1 << 8 * TYPE_BYTES[kind]) - 1)
    if not packed:
        return yes if results[0] else 0
    yes = yes if kind.endswith("x2") else 0xFFFF
    return (yes if results[0] else 0) | (yes << 16 if results[1] else 0)
