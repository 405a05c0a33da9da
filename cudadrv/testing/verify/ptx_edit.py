"""`EditablePtx`: PTX whose lines are changed, for mutants of a kernel and for tried repairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import ptx
from ptx.isa.model import Instruction, Register, SourceLocation, source_place
from ptx.isa.module import PtxModule, parse
from ptx.isa.signature import reachable_functions

from .example_run import CompiledCase
from .verdict import SourceLine

_COMPARISONS: Final = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi",
    "eq": "ne", "ne": "eq",
}  # fmt: skip
_OPERATORS: Final = {
    "add": "sub", "sub": "add", "min": "max", "max": "min", "and": "or", "or": "and", "xor": "or",
}  # fmt: skip
_ATOMIC_OPERATORS: Final = {"min": "max", "max": "min", "and": "or", "or": "and", "xor": "or",
                            "inc": "dec", "dec": "inc", "exch": "add"}  # fmt: skip
_SWAPPED: Final = {"selp": 1, "fma": 2, "mad": 2}  # the first of two operands to exchange
_SHIFTED: Final = ("setp", "add", "sub", "shl", "shr", "and", "min", "max")
_LAST_CONSTANT: Final = re.compile(r"(-?\d+)(\s*;)")


class EditablePtx:
    """The PTX of a case, with the instructions of its kernels that can be changed.

    Attributes:
        module: the PTX as values.
        lines: the lines of its text; the first one has index 0.
        functions: the instructions of each function that the case's kernels reach. Those that do
            not have one line of their own are left out.
    """

    def __init__(self, compiled: CompiledCase) -> None:
        text = compiled.image.data.decode()
        self._compiled = compiled
        self.module: PtxModule = parse(text)
        self.lines: list[str] = text.split("\n")
        kernels = [compiled.kernel]
        if compiled.case.program is not None:
            kernels = [entry.name for entry in self.module.entries]
        names = [name for kernel in kernels for name in reachable_functions(self.module, kernel)]
        self.functions: dict[str, Sequence[Instruction]] = {
            name: self._instructions(name)
            for name in dict.fromkeys(names)
            if self.module.functions[name].span is not None
        }

    def _instructions(self, function: str) -> Sequence[Instruction]:
        return [
            statement
            for statement in self.module.body(function).statements
            if isinstance(statement, Instruction) and self.line(statement).count(";") == 1
        ]

    def line(self, instruction: Instruction) -> str:
        """Return the line of an instruction."""
        return self.lines[instruction.line - 1]

    def place(self, instruction: Instruction) -> tuple[str | None, int | None]:
        """Return the file and the line of source; None if they are unknown."""
        return self._place(instruction.location)

    def _place(self, location: SourceLocation | None) -> tuple[str | None, int | None]:
        file, line = source_place(location, self.module.files)
        return (file, line) if line else (None, None)  # 0 is code of no line

    def calls(self, instruction: Instruction) -> tuple[tuple[int, int], ...]:
        """Return its line of source, and those of the calls that inlining put it at."""
        locations: list[tuple[int, int]] = []
        location = instruction.location
        while location is not None:
            locations.append((location.file, location.line))
            location = location.caller
        return tuple(locations)

    def call_place(self, instruction: Instruction) -> tuple[str | None, int | None]:
        """Return where the function was called whose line an inlined instruction has."""
        own, location = self.place(instruction), instruction.location
        while location is not None:
            place = self._place(location)
            if place != own:
                return place
            location = location.caller
        return None, None

    def source(self, instruction: Instruction, what: str) -> SourceLine:
        """Return the line of source, for a mutant or a repair."""
        file, line = self.place(instruction)
        text = self._compiled.source.line(file, line)
        return SourceLine(what, file, line, instruction.line, text=text)

    def with_lines(self, changed: Mapping[int, str]) -> CompiledCase:
        """Return the case with other texts for some lines of PTX, which are counted from 1."""
        lines = [changed.get(number, line) for number, line in enumerate(self.lines, 1)]
        text = "\n".join(lines)
        image: ptx.Image = replace(self._compiled.image, data=text.encode(), ptx=text)
        return replace(self._compiled, image=image)


def written_name(register: Register) -> str:
    """Return a register as the text names it: the model numbers those of inner scopes."""
    return register.name.partition("@")[0]


def changed_bounds(instruction: Instruction, ptx_line: str) -> Iterator[str]:
    """Yield the line of an instruction with another comparison, and with a constant off by one."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "setp" and modifiers and modifiers[0] in _COMPARISONS:
        first = modifiers[0]
        yield with_part(ptx_line, instruction, f".{first}", f".{_COMPARISONS[first]}")
    if opcode in _SHIFTED and modifiers[-1:] != ("f32",):
        constant = _LAST_CONSTANT.search(ptx_line)
        if constant is not None and ptx_line[constant.start() - 1] in " ,":
            for number in (int(constant[1]) + 1, int(constant[1]) - 1):
                yield f"{ptx_line[: constant.start()]}{number}{constant[2]}"


def changed_operators(instruction: Instruction, ptx_line: str) -> Iterator[str]:
    """Yield the line of an instruction with another operator, or with exchanged operands."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _OPERATORS and "cc" not in modifiers and modifiers[-1:] != ("pred",):
        yield with_part(ptx_line, instruction, opcode, _OPERATORS[opcode])
    elif opcode == "mul" and modifiers[-1:] in (("f32",), ("f64",)):
        yield with_part(ptx_line, instruction, "mul", "add")
    elif opcode in _SWAPPED and len(instruction.operands) == 4:
        text = instruction.text
        head, _, operands = ptx_line.partition(text)
        names = [name.strip() for name in operands.rstrip().removesuffix(";").split(",")]
        if len(names) == 4:
            first = _SWAPPED[opcode]
            names[first], names[first + 1] = names[first + 1], names[first]
            yield f"{head}{text} \t{', '.join(names)};"
    elif opcode in ("atom", "red"):
        for modifier in modifiers:
            if modifier in _ATOMIC_OPERATORS:
                yield with_part(
                    ptx_line, instruction, f".{modifier}", f".{_ATOMIC_OPERATORS[modifier]}"
                )


def with_part(ptx_line: str, instruction: Instruction, old: str, new: str) -> str:
    """Return a line of PTX with a part of its instruction's name changed."""
    text = instruction.text
    return ptx_line.replace(text, text.replace(old, new, 1), 1)
