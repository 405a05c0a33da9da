"""The conditions of a kernel: its comparisons, each with the calculations of its operands.

A condition follows registers that one instruction writes. So a value that a loop changes, that
another function returns or that a warp exchanges is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ptx.isa.instruction_facts import TYPE_BYTES, InstructionKind
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptx.isa.module import PtxModule
from ptx.isa.registers import registers_in

_PURE: Final = frozenset({
    "abs", "add", "and", "bfe", "bfi", "brev", "clz", "cnot", "copysign", "cos", "cvt", "div",
    "dp4a", "ex2", "fma", "fns", "lg2", "lop3", "mad", "max", "min", "mov", "mul", "neg", "not",
    "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr",
    "sin", "sqrt", "sub", "tanh", "testp", "xor",
})  # fmt: skip
_THREAD: Final = ("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid")
_HARDWARE: Final = ("%clock", "%globaltimer", "%smid", "%nsmid", "%warpid", "%nwarpid", "%gridid")
_PLACES: Final = ("local", "shared")
_MOST_STEPS: Final = 200


class Source(Enum):
    """Where a value of a condition comes from."""

    ARGUMENT = "argument"
    ELEMENT = "element"
    THREAD = "thread"
    HARDWARE = "hardware"
    ADDRESS = "address"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A register that a condition begins with.

    Attributes:
        register: the register.
        source: where its value comes from.
        name: of a special register; of an argument its number.
        address: of an element in memory the register of its address; `offset`: bytes after it.
        ptx_type: of an element.
    """

    register: Register
    source: Source
    name: str = ""
    address: Register | None = None
    offset: int = 0
    ptx_type: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison.

    Attributes:
        instruction: the comparison.
        predicate: the register of its result.
        steps: the instructions before it that calculate its operands, in an order to run them.
        leaves: the registers that these begin with.
    """

    instruction: Instruction
    predicate: Register
    steps: tuple[Instruction, ...]
    leaves: tuple[Leaf, ...]

    @property
    def sources(self) -> frozenset[Source]:
        """Where its values come from."""
        return frozenset(leaf.source for leaf in self.leaves)

    @property
    def constants(self) -> Sequence[Immediate | FloatImmediate]:
        """The constants of its calculations."""
        return [
            operand
            for step in (*self.steps, self.instruction)
            for operand in step.operands
            if isinstance(operand, (Immediate, FloatImmediate))
        ]


class Conditions:
    """The conditions of a kernel, but for those in functions that it calls."""

    def __init__(self, module: PtxModule, kernel: str) -> None:
        function = module.functions[kernel]
        self._function: Function = function
        self._numbers = {each.name: number for number, each in enumerate(function.params)}
        self._variables = module.variables
        self._spaces: dict[str, str] = {
            each.name: each.space.value for each in module.variables.values()
        }
        self._writers: dict[str, list[Instruction]] = {}
        self._comparisons: list[Instruction] = []
        if function.span is not None:
            body = module.body(kernel)
            self._spaces |= {each.name: each.space.value for each in body.variables}
            for statement in body.statements:
                if isinstance(statement, Instruction):
                    self._add(statement)

    def _add(self, instruction: Instruction) -> None:
        if instruction.opcode == "setp" and instruction.guard is None:
            self._comparisons.append(instruction)
        for register in _targets(instruction):
            self._writers.setdefault(register.name, []).append(instruction)

    def __iter__(self) -> Iterator[Comparison]:
        """Yield the conditions whose values are known, in the order of the text."""
        for comparison in self._comparisons:
            predicate = comparison.operands[0]
            found = self.behind(comparison.operands[1:])
            if found is not None and isinstance(predicate, Register):
                condition = Comparison(comparison, predicate, *found)
                if Source.UNKNOWN not in condition.sources:
                    yield condition

    def behind(
        self, operands: Sequence[Operand]
    ) -> tuple[tuple[Instruction, ...], tuple[Leaf, ...]] | None:
        """Return the calculations of some operands, and the registers that these begin with.

        None stands for calculations that are too long.
        """
        steps: dict[int, Instruction] = {}
        leaves: dict[str, Leaf] = {}
        waiting = [register for operand in operands for register in registers_in(operand)]
        while waiting:
            register = waiting.pop()
            if register.name in leaves:
                continue
            instruction = self._calculation(register)
            if instruction is None:
                leaves[register.name] = self._leaf(register)
            elif instruction.line not in steps:
                steps[instruction.line] = instruction
                waiting += [
                    each for operand in instruction.operands[1:] for each in registers_in(operand)
                ]
            if len(steps) > _MOST_STEPS:
                return None
        # Single writers precede their readers in the text, as the compiler numbers registers.
        return tuple(steps[line] for line in sorted(steps)), tuple(leaves.values())

    def _only_writer(self, register: Register) -> Instruction | None:
        writers = self._writers.get(register.name, ())
        return writers[0] if len(writers) == 1 and writers[0].guard is None else None

    def _calculation(self, register: Register) -> Instruction | None:
        """Return the instruction that calculates a register of others; None for a leaf."""
        instruction = self._only_writer(register)
        if instruction is None or instruction.opcode not in (*_PURE, "cvta"):
            return None
        if "cc" in instruction.modifiers:
            return None
        others = (SpecialRegister, Symbol, Address)
        is_known = not any(isinstance(each, others) for each in instruction.operands[1:])
        return instruction if is_known else None

    def _leaf(self, register: Register) -> Leaf:
        instruction = self._only_writer(register)
        if instruction is None:
            return Leaf(register, Source.UNKNOWN)
        source = instruction.operands[1] if len(instruction.operands) > 1 else None
        if isinstance(source, SpecialRegister):
            for kind, names in ((Source.THREAD, _THREAD), (Source.HARDWARE, _HARDWARE)):
                if source.name.startswith(names):
                    return Leaf(register, kind, source.name)
        elif isinstance(source, Symbol) and self._spaces.get(source.name) in _PLACES:
            return Leaf(register, Source.ADDRESS, source.name)
        elif isinstance(source, Address) and instruction.facts.kind is InstructionKind.LOAD:
            return self._loaded(register, instruction, source)
        return Leaf(register, Source.UNKNOWN)

    def _loaded(self, register: Register, load: Instruction, source: Address) -> Leaf:
        ptx_type = load.facts.types[0]
        offset = source.offset
        target = load.operands[0]
        if isinstance(target, Vector):
            names = [each.name if isinstance(each, Register) else "" for each in target.items]
            offset += names.index(register.name) * TYPE_BYTES[ptx_type]
        if load.facts.space == "param" and isinstance(source.base, Symbol):
            number = self._numbers.get(source.base.name)
            if number is not None and not source.base.offset and not offset:
                return Leaf(register, Source.ARGUMENT, str(number), ptx_type=ptx_type)
        elif isinstance(source.base, Register) and load.facts.space in ("global", "generic"):
            return Leaf(
                register, Source.ELEMENT, address=source.base, offset=offset, ptx_type=ptx_type
            )
        return Leaf(register, Source.UNKNOWN)


def _targets(instruction: Instruction) -> Iterator[Register]:
    """Yield the registers that an instruction may write, and those that it might."""
    if not instruction.operands:
        return
    first = instruction.operands[0]
    if instruction.facts.kind in (InstructionKind.STORE, InstructionKind.REDUCTION):
        return
    if not isinstance(first, Address):
        yield from registers_in(first)


def written(operand: Operand, names: dict[str, str]) -> str:
    """Return an operand as text, with other names for its registers."""
    match operand:
        case Register():
            return names[operand.name]
        case Negated():
            return f"!{names[operand.operand.name]}"
        case Immediate():
            return str(operand.value)
        case FloatImmediate():
            return f"0{'f' if operand.width == 32 else 'd'}{operand.bits:0{operand.width // 4}X}"
        case Vector():
            return f"{{{', '.join(written(each, names) for each in operand.items)}}}"
        case Pair():
            return f"{written(operand.first, names)}|{written(operand.second, names)}"
    raise TypeError(f"{operand!r} is no operand of a calculation")
