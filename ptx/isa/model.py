"""A PTX module as values: variables, functions, instructions, operands.

PTX ISA, "State Spaces, Types, and Variables", "Instruction Operands", "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ptx.isa.instruction_facts import TYPE_BYTES, InstructionFacts, facts_of

_OF_CUDA: Final = re.compile(r"[/\\](?:nvidia|cuda[-.\w]*|targets)[/\\](?:.*[/\\])?include[/\\]")


class Space(Enum):
    """A state space that a variable lives in."""

    REG = "reg"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    SHARED = "shared"
    TEX = "tex"


class Linkage(Enum):
    """The visibility of a symbol to other modules."""

    NONE = ""
    EXTERN = "extern"
    VISIBLE = "visible"
    WEAK = "weak"
    COMMON = "common"


@dataclass(frozen=True, slots=True)
class Register:
    """A register, by a name that is unique in its function (a nested scope adds a suffix)."""

    name: str
    ptx_type: str


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A read-only register of the machine, such as `%tid.x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer constant."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatImmediate:
    """A floating-point constant: its IEEE bits, of 32 (`0f`) or 64 bits (`0d` and decimals)."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, function, parameter or label, with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand `[base+offset]`; an absolute address has base None."""

    base: Register | Symbol | None
    offset: int


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace-enclosed list `{a, b}`; also the coordinates of textures."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parenthesised list of a call: its arguments or its results."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations `d|p` of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """A predicate operand `!p`."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Selected:
    """A register of a video instruction: a part of it (`%r1.b0`, `%r1.h10`), or its negation.

    `selector` is "" for the whole register.
    """

    register: Register
    selector: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Sink:
    """The destination `_`, which throws the value away."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A bracketed list that is no plain address, such as a texture's `[tex, {x, y}]`."""

    items: tuple[Operand, ...]


Operand = (
    Register
    | SpecialRegister
    | Immediate
    | FloatImmediate
    | Symbol
    | Address
    | Vector
    | Arguments
    | Pair
    | Negated
    | Selected
    | Sink
    | Bracket
)


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate `@p` or `@!p` of an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the CUDA source, from `.loc`; `file` is the number of a `.file` directive.

    `caller` is where the function that the line is of was inlined, if it was.
    """

    file: int
    line: int
    column: int
    caller: SourceLocation | None = None


def source_place(
    location: SourceLocation | None, files: Mapping[int, str]
) -> tuple[str | None, int | None]:
    """Return the file and the line of a location; None if they are unknown.

    Code that was inlined from a CUDA header has the line of its caller. For example, an atomic
    operation of libcu++ has the line that uses it.
    """
    inlined = location
    while inlined is not None:
        file = files.get(inlined.file)
        if file is not None and not _OF_CUDA.search(file):
            return file, inlined.line
        inlined = inlined.caller
    return (None, None) if location is None else (files.get(location.file), location.line)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `@guard opcode.modifiers operands;` at a 1-based line of the PTX text.

    `written` is the opcode with its modifiers if the text has them in another order. `used_bytes`
    is the mask of a `used_bytes_mask` pragma before a load: the bytes of the access that are
    needed. It is None without such a pragma, when all are.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    location: SourceLocation | None
    written: str = ""
    used_bytes: int | None = None
    facts: InstructionFacts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", facts_of(self.opcode, self.modifiers))

    @property
    def text(self) -> str:
        """The opcode with its modifiers, as it is written."""
        return self.written or ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A place that a branch can name."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class SymbolValue:
    """An element of an initialiser that is the address of a symbol.

    `generic` selects its generic address; `mask` and `shift` pick one byte of it, as in
    `0xFF00(name)`; without them mask is 0.
    """

    name: str
    offset: int
    generic: bool
    mask: int = 0


Element = int | FloatImmediate | SymbolValue


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of `count` elements of `ptx_type`; 0 for an `extern` array without a size.

    `shape` has the extent of each dimension, without the elements of a vector.
    """

    name: str
    space: Space
    ptx_type: str
    align: int
    count: int
    initialiser: tuple[Element, ...]
    linkage: Linkage
    line: int
    shape: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of the whole variable."""
        return TYPE_BYTES[self.ptx_type] * self.count


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal parameter of a function; `is_pointer` if it has `.ptr`, `is_array` if brackets."""

    name: str
    space: Space
    ptx_type: str
    align: int
    count: int
    is_pointer: bool
    is_array: bool = False

    @property
    def nbytes(self) -> int:
        """Size of the whole parameter."""
        return TYPE_BYTES[self.ptx_type] * self.count


@dataclass(frozen=True, slots=True)
class Prototype:
    """The parameters and results of an indirect call (`.callprototype`)."""

    returns: tuple[Parameter, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or `.func`; `span` is where its body lies in the text, None if only declared.

    `directives` holds performance-tuning directives with their numbers: `maxntid`, `reqntid`,
    `minnctapersm`, `maxnreg`, `noreturn`….
    """

    name: str
    is_entry: bool
    linkage: Linkage
    returns: tuple[Parameter, ...]
    params: tuple[Parameter, ...]
    directives: dict[str, tuple[int, ...]]
    span: tuple[int, int] | None
    line: int

    @property
    def passes_registers(self) -> bool:
        """Whether a parameter or a result is a register."""
        return any(each.space is Space.REG for each in (*self.returns, *self.params))


@dataclass(frozen=True, slots=True)
class Body:
    """A function's parsed body.

    Names in nested scopes are made unique. `tables`: `.branchtargets`, `.calltargets`.
    `declared_at`: how many statements stand before each of them, and before each prototype.
    """

    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    statements: tuple[Instruction | Label, ...]
    tables: dict[str, tuple[str, ...]]
    prototypes: dict[str, Prototype]
    declared_at: dict[str, int] = field(default_factory=dict)
