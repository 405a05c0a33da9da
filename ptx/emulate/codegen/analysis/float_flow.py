"""Which instructions of a function calculate with floats, and which registers get their results."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from ptx.emulate.codegen.cfg import BlockStep, reads_and_writes
from ptx.emulate.codegen.table import find_operation, in_table_order
from ptx.emulate.model.float_format import FORMATS, INTEGERS, FloatFormat
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    Body,
    FloatImmediate,
    Immediate,
    Instruction,
    Operand,
    Register,
    SourceLocation,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptx.isa.registers import registers_in

_CALCULATE: Final = frozenset({
    "add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2",
    "tanh", "min", "max",
})  # fmt: skip
_ADD: Final = ("add", "sub", "fma")
_INFINITIES: Final = (FloatImmediate(0x7F800000, 32), FloatImmediate(0x7FF << 52, 64))
"""CUDA's functions add them to a number that overflows; a mask adds the negative ones."""
_NEGATIVE: Final = (FloatImmediate(0xFF800000, 32), FloatImmediate(0xFFF << 52, 64))
_PRODUCTS: Final = ("mma", "wmma.mma")
SHARED_FACTORS: Final = Symbol("shared memory")
"""An operand: for each thread NaN, infinity or zero, as are the factors that its warp reads."""
_EXACT_OF_BITS: Final = frozenset({"add", "and", "mov", "or", "shl", "sub", "xor"})
_TESTS_OF_NAN: Final = ("nan", "num")
_SINGLE: Final = ("f32", "f64")  # floats that have a register for themselves
_EXPONENT_SHIFTS: Final = (20, 23, 52)
"""How far an integer is shifted to become an exponent; 20 in the upper half of a double."""
_MOST_STEPS: Final = 200  # back along the sources of a value
_OF_FLOATS: Final = _CALCULATE | {"abs", "copysign", "neg", "selp", "setp", "testp"}
_OF_BITS: Final = frozenset({
    "add", "and", "bfe", "bfi", "cvt", "lop3", "mad", "mov", "mul", "neg", "not", "or", "prmt",
    "selp", "shf", "shl", "shr", "sub", "xor",
})  # fmt: skip


@dataclass(frozen=True)
class Calculation:
    """An instruction with a result in floating point.

    Attributes:
        targets: the registers of the result, with `result` as the format of each.
        sources: the operands in floating point, each with its format.
        is_of_warp: whether a result depends on the operands of all threads of its warp.
    """

    result: FloatFormat
    targets: tuple[Register, ...]
    sources: tuple[tuple[Operand, FloatFormat], ...]
    is_of_warp: bool = False

    @cached_property
    def formats(self) -> tuple[FloatFormat, ...]:
        """The formats of the operands."""
        return tuple([kind for _, kind in self.sources])

    @cached_property
    def is_of_threads(self) -> bool:
        """Whether each thread calculates one register, each number of it of those beside it."""
        numbers = {each.count for each in (self.result, *self.formats)}
        return len(numbers) == len(self.targets) == 1 and not self.is_of_warp


def calculation_of(i: Instruction) -> Calculation | None:
    """Return what an instruction calculates; None if it has no result in floating point."""
    types, facts = i.facts.types, i.facts
    if not types and facts.name != "wmma.mma":
        return None
    if facts.name in _PRODUCTS or i.opcode == "mma":
        return _product(i)
    if i.opcode == "wgmma" and "mma_async" in i.modifiers:
        return _group_product(i)
    if i.opcode not in _CALCULATE and i.opcode != "cvt":
        return None
    result = FORMATS.get(types[0])
    targets = _registers(i.operands[0])
    if result is None or not targets:
        return None
    sources = i.operands[1:]
    formats: list[FloatFormat | None]
    if i.opcode == "cvt":
        of_sources = FORMATS.get(types[1])
        if of_sources is None and types[1][0] not in "us":
            return None  # of a format whose NaNs are not known
        if "rs" in i.facts.words:
            sources = sources[:-1]  # the last one is random bits
        formats = [of_sources] * len(sources)
    else:
        formats = [FORMATS.get(types[-1])] * len(sources)
        if len(types) == 2:  # add.f32.f16: the last operand has the type of the result
            formats[-1] = result
    pairs = [
        (each, kind)
        for each, kind in zip(sources, formats, strict=True)
        if kind and not (i.opcode in _ADD and each in _INFINITIES)
    ]
    return Calculation(result, targets, tuple(pairs))


def _product(i: Instruction) -> Calculation | None:
    types = list(i.facts.types)
    if len(types) == 2:  # wmma of f16 names only the results and what is added
        types = [types[0], "f16", "f16", types[1]]
    is_sparse = not {"sp", "sp::ordered_metadata"}.isdisjoint(i.modifiers)
    if len(types) != 4 or len(i.operands) != (6 if is_sparse else 4):
        return None
    formats = [FORMATS.get(_in_registers(name, i)) for name in types]
    if any(each is None for each in formats):
        return None
    result, *of_sources = [each for each in formats if each is not None]
    pairs = [
        (item, kind)
        for operand, kind in zip(i.operands[1:4], of_sources, strict=True)
        for item in _items(operand)
    ]
    return Calculation(result, _registers(i.operands[0]), tuple(pairs), is_of_warp=True)


def _group_product(i: Instruction) -> Calculation | None:
    """Return a product of four warps; `SHARED_FACTORS` stands for its factors in shared memory."""
    types = [word for word in i.facts.words if word in FORMATS]
    types = types or list(i.facts.types)
    if len(types) != 3:
        return None
    result, left = (FORMATS.get(_in_registers(name, i)) for name in types[:2])
    if result is None or left is None:
        return None
    targets = _registers(i.operands[0])
    pairs: list[tuple[Operand, FloatFormat]] = [(each, result) for each in targets]
    if isinstance(i.operands[1], Vector):
        pairs += [(each, left) for each in i.operands[1].items]
    pairs.append((SHARED_FACTORS, FORMATS["f32"]))
    return Calculation(result, targets, tuple(pairs), is_of_warp=True)


def _in_registers(name: str, i: Instruction) -> str:
    """Return the type that a register of a matrix has."""
    return f"{name}x2" if name in ("f16", "bf16", "e4m3", "e5m2") else name


def _items(operand: Operand) -> Sequence[Operand]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _registers(operand: Operand) -> tuple[Register, ...]:
    items = _items(operand)
    return tuple([item for item in items if isinstance(item, Register)])


def compared_format(i: Instruction) -> FloatFormat | None:
    """Return the format in which an instruction compares, unless it tests for NaN or infinity."""
    if i.opcode not in ("setp", "set") or not set(_TESTS_OF_NAN).isdisjoint(i.facts.words):
        return None
    kind = FORMATS.get(i.facts.types[-1])
    first, second = i.operands[1:3]
    if kind is None or first == second or is_nonfinite(first) or is_nonfinite(second):
        return None
    return kind


def integer_source(i: Instruction) -> FloatFormat | None:
    """Return the format that an instruction converts to an integer."""
    if i.opcode != "cvt" or i.facts.types[0][0] not in "us":
        return None
    return FORMATS.get(i.facts.types[1])


def summed_format(i: Instruction) -> FloatFormat | None:
    """Return the format of the sums that an atomic operation makes in memory; None if of none."""
    if i.opcode not in ("atom", "red") or "add" not in i.modifiers:
        return None
    return FORMATS.get(i.facts.types[-1]) if i.facts.types else None


def is_nonfinite(operand: Operand) -> bool:
    """Return whether an operand is a constant that is infinite or NaN."""
    if not isinstance(operand, FloatImmediate):
        return False
    mask = FORMATS[f"f{operand.width}"].exponent
    return operand.bits & mask == mask


def single_floats(i: Instruction) -> dict[str, FloatFormat]:
    """Return the registers that an instruction reads or writes as single floats, by their names.

    NVRTC's code for compute_100 has registers without a type.
    """
    types = i.facts.types
    if i.opcode == "cvt" and len(types) == 2:
        pairs = [(types[0], i.operands[0]), *((types[1], each) for each in i.operands[1:])]
    elif i.opcode in _OF_FLOATS and types:
        pairs = [(types[-1], each) for each in i.operands]
    else:
        return {}
    return {
        each.name: FORMATS[ptx_type]
        for ptx_type, each in pairs
        if isinstance(each, Register) and each.ptx_type != "pred" and ptx_type in _SINGLE
    }


class Pole(NamedTuple):
    """A selection that makes an infinity or a NaN: its constant, and the floats that decide."""

    constant: FloatImmediate
    sources: tuple[tuple[Operand, FloatFormat], ...]


class _Decision(NamedTuple):
    """A comparison with zero or an infinity, and the value that it compares."""

    instruction: Instruction
    value: Register


def is_moved_nan(i: Instruction) -> bool:
    """Return whether an instruction sets a register to a constant NaN, as before a branch."""
    return i.opcode == "mov" and _is_nan(i.operands[1])


def is_parameter_access(i: Instruction, frame: Container[str]) -> bool:
    """Return whether an instruction loads or stores a parameter or a result in a frame."""
    if i.opcode not in ("ld", "st") or i.facts.space != "param" or i.guard is not None:
        return False
    memory = i.operands[1 if i.opcode == "ld" else 0]
    base = memory.base if isinstance(memory, Address) else None
    return isinstance(base, Symbol) and base.name in frame


class FloatFlow:
    """What a function does with floats.

    Args:
        body: its code.
        frame: the names of parameters, results and variables in its frame.

    Attributes:
        reached: the names of the registers that a result may come to, also as bits.
    """

    def __init__(self, body: Body, frame: Container[str] = ()) -> None:
        self._steps = list(_steps_of(body))
        self._frame = frame
        self._writers: dict[str, list[BlockStep]] = {}
        self._singles: dict[str, FloatFormat] = {}
        self._lines: dict[tuple[int, tuple[Operand, ...]], SourceLocation | None] = {}
        for step in self._steps:
            self._singles |= single_floats(step.instruction)
            for register in reads_and_writes(step)[1]:
                self._writers.setdefault(register.name, []).append(step)
        for half in [each for step in self._steps for each in self._halves(step.instruction)]:
            self._singles.pop(half, None)
        self._poles: dict[tuple[int, tuple[Operand, ...]], Sequence[Pole]] = {}
        self._assembled: dict[tuple[int, tuple[Operand, ...]], Calculation] = {}
        for step in self._steps:
            place, poles = _place(step.instruction), self._poles_of(step.instruction)
            assembled = self._assembly(step.instruction)
            if poles:
                self._poles[place] = poles
            if assembled is not None:
                self._assembled[place] = assembled
        self.reached: frozenset[str] = self._reached()

    def _halves(self, i: Instruction) -> list[str]:
        """Return the registers of the halves of a double, also if they are compared as floats."""
        if i.opcode != "mov" or not isinstance(i.operands[0], Vector):
            return []
        source = i.operands[1]
        is_double = isinstance(source, Register) and self._single(source) == FORMATS["f64"]
        return [each.name for each in registers_in(i.operands[0])] if is_double else []

    def poles_of(self, i: Instruction) -> Sequence[Pole]:
        """Return why a selection makes an infinity or a NaN; none if it makes none."""
        return self._poles.get(_place(i), ())

    def assembly_of(self, i: Instruction) -> Calculation | None:
        """Return from which floats a float comes whose bits are integers; None for others.

        That is also a constant NaN, which comes from none.
        """
        return self._assembled.get(_place(i))

    def location_of(self, i: Instruction) -> SourceLocation | None:
        """Return the location of an instruction; of code without a line that of the one before.

        The compiler merges the last step of CUDA's functions with the next instruction. Then the
        location is that of the function.
        """
        place = _place(i)
        if i.opcode == "fma" and (exponential := self._exponential(i)) is not None:
            return exponential.location
        if (decision := self._lines.get(place)) is not None:
            return decision
        if i.location is None or i.location.line:
            return i.location
        before = (
            step.instruction.location
            for step in reversed(self._steps)
            if step.instruction.line < i.line
        )
        return next((each for each in before if each is not None and each.line), i.location)

    def _reached(self) -> frozenset[str]:
        reached: set[str] = set()
        size = -1
        while len(reached) != size:
            size = len(reached)
            for step in self._steps:
                i = step.instruction
                reads, writes = reads_and_writes(step)
                if (
                    calculation_of(i) is not None
                    or self.poles_of(i)
                    or self.assembly_of(i) is not None
                    or (i.opcode == "ld" and is_parameter_access(i, self._frame))
                    or any(register.name in reached for register in reads)
                ):
                    reached.update([each.name for each in writes if each.ptx_type != "pred"])
        return frozenset(reached)

    def _poles_of(self, i: Instruction) -> Sequence[Pole]:
        """Return the constants that a function of CUDA selects apart, and the value that decides.

        A logarithm selects the infinity where its operand is zero, of which the other result is
        calculated. A power that overflows selects an infinity or zero, by the sign of a calculated
        number, and CUDA's expm1 an infinity or -1, by the sign of its operand. Selected NaNs are
        made wherever they are constants.
        """
        if i.opcode != "selp" or len(i.operands) != 4:
            return ()
        first, second = i.operands[1:3]
        decision = self._decides(i.operands[3])
        poles = [
            Pole(constant, self._deciding_floats(decision))
            for constant, other in ((first, second), (second, first))
            if isinstance(constant, FloatImmediate) and is_nonfinite(constant)
            if _is_nan(constant) or _is_nan(other) or self._is_made(decision, other)
        ]
        location = None if decision is None else decision.instruction.location
        if poles and location is not None and location.line:
            self._lines[_place(i)] = location
        return poles

    def _is_made(self, decision: _Decision | None, other: Operand) -> bool:
        """Return whether an infinity belongs to a calculation, of which the other result is."""
        if decision is None:
            return False
        value = decision.value
        if isinstance(other, Register):
            return bool(self._roots(value) & self._roots(other))
        writers = (step for name in self._roots(value) for step in self._writers.get(name, ()))
        is_calculated = any(calculation_of(step.instruction) for step in writers)
        is_sign = self._single(value) is None and bool(self._floats_behind((value,)))
        return is_sign or (is_calculated and _is_zero(other))

    def _decides(self, predicate: Operand) -> _Decision | None:
        """Return what a predicate compares with zero or an infinity."""
        if isinstance(predicate, Register):
            for step in self._writers.get(predicate.name, ()):
                compared = step.instruction
                if compared.opcode == "setp" and _is_limit(compared.operands[-1]):
                    value = compared.operands[1]
                    return _Decision(compared, value) if isinstance(value, Register) else None
        return None

    def _deciding_floats(
        self, decision: _Decision | None
    ) -> tuple[tuple[Operand, FloatFormat], ...]:
        """Return the floats that a compared value is, or has the bits of."""
        if decision is None:
            return ()
        kind = FORMATS.get(decision.instruction.facts.types[-1])
        value = decision.value
        return self._floats_behind((value,)) if kind is None else ((value, kind),)

    def _single(self, register: Register) -> FloatFormat | None:
        """Return the format of a register that has a single float; None for others."""
        if register.ptx_type in _SINGLE:
            return FORMATS[register.ptx_type]
        return self._singles.get(register.name)

    def _assembly(self, i: Instruction) -> Calculation | None:
        target = i.operands[0] if i.operands else None
        kind = self._single(target) if isinstance(target, Register) else None
        if kind is None or i.opcode not in _OF_BITS or calculation_of(i) is not None:
            return None
        assert isinstance(target, Register)
        if is_moved_nan(i):
            return Calculation(kind, (target,), ())
        bits = tuple([each for operand in i.operands[1:] for each in registers_in(operand)])
        is_float = bool(i.facts.types) and i.facts.types[-1] in _SINGLE
        is_copy = i.opcode == "mov" and any(self._single(each) is not None for each in bits)
        if is_float or is_copy:
            return None
        sources = self._floats_behind(bits) or self._exponent(i)
        return Calculation(kind, (target,), sources) if sources else None

    def _exponent(self, i: Instruction) -> tuple[tuple[Operand, FloatFormat], ...]:
        """Return the integer that is shifted to be the exponent of a float; none if none is."""
        waiting, seen = [i], set[str]()
        while waiting and len(seen) < _MOST_STEPS:
            i = waiting.pop()
            if i.opcode == "shl" and isinstance(i.operands[2], Immediate):
                value, bits = i.operands[1], int(i.facts.types[-1][1:])
                if i.operands[2].value in _EXPONENT_SHIFTS and isinstance(value, Register):
                    return ((value, INTEGERS[bits]),) if bits in INTEGERS else ()
            if i.opcode not in _EXACT_OF_BITS or i.guard is not None:
                continue
            for register in (each for operand in i.operands[1:] for each in registers_in(operand)):
                writers = self._writers.get(register.name, ())
                if len(writers) == 1 and register.name not in seen:
                    seen.add(register.name)
                    waiting.append(writers[0].instruction)
        return ()

    def _exponential(self, i: Instruction) -> Instruction | None:
        """Return the power of two that a sum multiplies by one of integers, as CUDA's expf does."""
        of_factors = [
            step.instruction
            for each in i.operands[1:3]
            if isinstance(each, Register) and len(self._writers.get(each.name, ())) == 1
            for step in self._writers[each.name]
        ]
        powers = [each for each in of_factors if each.opcode == "ex2"]
        assembled = any(self.assembly_of(each) is not None for each in of_factors)
        return powers[0] if powers and assembled else None

    def _floats_behind(self, bits: Sequence[Register]) -> tuple[tuple[Operand, FloatFormat], ...]:
        """Return the floats from whose bits integers are calculated; none if others are, too."""
        found: dict[str, tuple[Operand, FloatFormat]] = {}
        waiting, seen = list(bits), set[str]()
        while waiting:
            register = waiting.pop()
            if register.name in seen or register.ptx_type == "pred":
                continue
            seen.add(register.name)
            writers = self._writers.get(register.name, ())
            kind = self._single(register)
            if len(writers) != 1 or len(seen) > _MOST_STEPS:
                return ()
            if kind is not None:
                found[register.name] = register, kind
                continue
            i = writers[0].instruction
            if i.opcode not in _OF_BITS or i.guard is not None:
                return ()
            sources = i.operands[writers[0].operation.writes :]
            if any(isinstance(each, (SpecialRegister, Symbol)) for each in sources):
                return ()
            waiting += [each for operand in sources for each in registers_in(operand)]
        return tuple(found.values())

    def _roots(self, register: Register) -> set[str]:
        """Return the registers that a value is calculated from, those before it included."""
        found: set[str] = set()
        waiting = [register.name]
        while waiting and len(found) < _MOST_STEPS:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            for step in self._writers.get(name, ()):
                if step.instruction.facts.kind is not InstructionKind.LOAD:
                    waiting += [
                        each.name
                        for operand in step.instruction.operands[step.operation.writes :]
                        for each in registers_in(operand)
                        if each.ptx_type != "pred"
                    ]
        return found


def _is_nan(operand: Operand) -> bool:
    if not isinstance(operand, FloatImmediate) or not is_nonfinite(operand):
        return False
    return bool(operand.bits & FORMATS[f"f{operand.width}"].fraction)


def _is_limit(operand: Operand) -> bool:
    return _is_zero(operand) or operand in _INFINITIES or operand in _NEGATIVE


def _place(i: Instruction) -> tuple[int, tuple[Operand, ...]]:
    return i.line, i.operands


def _is_zero(operand: Operand) -> bool:
    if isinstance(operand, FloatImmediate):
        return operand.bits & ~(1 << (operand.width - 1)) == 0
    return isinstance(operand, Immediate) and operand.value == 0


def _steps_of(body: Body) -> Iterator[BlockStep]:
    for statement in body.statements:
        if isinstance(statement, Instruction):
            instruction = in_table_order(statement)
            operation = find_operation(instruction)
            if operation is not None:
                yield BlockStep(instruction, operation)
