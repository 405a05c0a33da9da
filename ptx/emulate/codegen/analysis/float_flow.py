"""Which instructions of a function calculate with floats, and which registers get their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from ptx.emulate.codegen.cfg import BlockStep, reads_and_writes
from ptx.emulate.codegen.table import find_operation, in_table_order
from ptx.emulate.model.float_format import FORMATS, FloatFormat
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Body,
    FloatImmediate,
    Immediate,
    Instruction,
    Operand,
    Register,
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
_PRODUCTS: Final = ("mma", "wmma.mma")
SHARED_FACTORS: Final = Symbol("shared memory")
"""An operand: for each thread NaN, infinity or zero, as are the factors that its warp reads."""
_TESTS_OF_NAN: Final = ("nan", "num")
_MOST_STEPS: Final = 200  # back along the sources of a value


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
    def is_of_numbers(self) -> bool:
        """Whether the result and the operands are single floats of NumPy, of one thread."""
        formats = (self.result, *(kind for _, kind in self.sources))
        are_floats = all(each.held in ("f32", "f64") for each in formats)
        return are_floats and len(self.targets) == 1 and not self.is_of_warp


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


class Pole(NamedTuple):
    """A selection that makes an infinity or a NaN: its constant, and the value that decides."""

    constant: FloatImmediate
    value: Register | None


class FloatFlow:
    """What a function does with floats.

    Attributes:
        reached: the names of the registers that a result may come to, also as bits.
    """

    def __init__(self, body: Body) -> None:
        self._steps = list(_steps_of(body))
        self._writers: dict[str, list[BlockStep]] = {}
        for step in self._steps:
            for register in reads_and_writes(step)[1]:
                self._writers.setdefault(register.name, []).append(step)
        self._poles: dict[tuple[int, tuple[Operand, ...]], Pole] = {}
        for step in self._steps:
            pole = self._pole(step.instruction)
            if pole is not None:
                self._poles[_place(step.instruction)] = pole
        self.reached: frozenset[str] = self._reached()

    def pole_of(self, i: Instruction) -> Pole | None:
        """Return why a selection makes an infinity or a NaN; None if it makes none."""
        return self._poles.get(_place(i))

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
                    or self.pole_of(i) is not None
                    or any(register.name in reached for register in reads)
                ):
                    reached.update([each.name for each in writes if each.ptx_type != "pred"])
        return frozenset(reached)

    def _pole(self, i: Instruction) -> Pole | None:
        """Return the constant that a function of CUDA selects apart, and the value that decides.

        A logarithm selects the infinity where its operand is zero, of which the other result is
        calculated. A power that overflows selects an infinity or zero, by the sign of a calculated
        number. Selected NaNs are made wherever they are constants.
        """
        if i.opcode != "selp" or len(i.operands) != 4:
            return None
        constant = next((each for each in i.operands[1:3] if is_nonfinite(each)), None)
        if not isinstance(constant, FloatImmediate):
            return None
        (other,) = [each for each in i.operands[1:3] if each is not constant][:1] or (constant,)
        value = self._compared_with_zero(i.operands[3])
        if _is_nan(constant):
            return Pole(constant, value)
        if value is None:
            return None
        if isinstance(other, Register):
            is_made = bool(self._roots(value) & self._roots(other))
        else:
            is_made = _is_zero(other) and any(
                calculation_of(step.instruction) for step in self._writers.get(value.name, ())
            )
        return Pole(constant, value) if is_made else None

    def _compared_with_zero(self, predicate: Operand) -> Register | None:
        if isinstance(predicate, Register):
            for step in self._writers.get(predicate.name, ()):
                compared = step.instruction
                if compared.opcode == "setp" and _is_zero(compared.operands[-1]):
                    value = compared.operands[1]
                    return value if isinstance(value, Register) else None
        return None

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


def _is_nan(constant: FloatImmediate) -> bool:
    kind = FORMATS[f"f{constant.width}"]
    return bool(constant.bits & kind.fraction)


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
