"""Names in a function's body: registers, variables and labels, by the braces they stand in.

PTX ISA, "Scoping of names": a name in a nested scope hides the same name outside. Names of nested
scopes get a suffix that makes them unique in the function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ptx.isa.errors import syntax_error
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import Operand, Parameter, Register, Space, SymbolValue, Variable
from ptx.isa.special_registers import COLOURS, fault_of_name

_LANDMARK = re.compile(r'"[^"\n]*"|[{}:?]')
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%")
_DIGITS = "0123456789"
_MOST_DIGITS = 10  # of a register's number
_ELEMENTS = (".x", ".y", ".z", ".w")
_COLOUR_OF = {element: colour for colour, element in COLOURS.items()}

STATIC_SPACES = (Space.GLOBAL, Space.CONST)
"""Those of variables that exist once for a module, wherever they are declared."""

Span = tuple[int, int]


class Scope:
    """Names of one pair of braces.

    Attributes:
        registers: those declared or already named; `ranges`: `%r<9>` declares %r0 to %r8 at once.
        declared: the registers that are declared one by one.
        operands: what operand texts mean here, until something is declared.
        suffix: of the unique names of registers and variables.
        static_suffix: of those of `.global` and `.const` variables, which all functions share.
    """

    __slots__ = (
        "declared",
        "labels",
        "names",
        "operands",
        "ranges",
        "registers",
        "static_suffix",
        "suffix",
    )

    def __init__(self, labels: dict[str, str], suffix: str, static_suffix: str) -> None:
        self.registers: dict[str, Register] = {}
        self.ranges: dict[str, tuple[int, str]] = {}
        self.names: dict[str, str] = {}
        self.labels: dict[str, str] = labels
        self.suffix: str = suffix
        self.static_suffix: str = static_suffix
        self.operands: dict[str, Operand] = {}
        self.declared: set[str] = set()

    def fault_of(self, name: str) -> str:
        """Why a name cannot be declared here, "" where it can."""
        if name in self.declared or name in self.names or self._in_range(name) is not None:
            return f"{name} is declared twice"
        return f"{name} is a label too" if name in self.labels else ""

    def fault_of_range(self, stem: str, count: int) -> str:
        """Why `stem<count>` cannot be declared here, "" where it can."""
        if stem in self.ranges:
            return f"{stem} is declared twice"
        for name in self.declared if stem[-1] not in _DIGITS else ():
            number = name[len(stem) :]
            if name.startswith(stem) and number.isdigit() and _usual(number, count) == number:
                return f"{name} is declared twice"
        return ""

    def register(self, name: str) -> tuple[Register | None, bool]:
        """A register that is declared here, and whether this is the first time it is named."""
        register = self.registers.get(name)
        if register is not None:
            return register, False
        found = self._in_range(name)
        if found is None:
            return None, False
        usual, ptx_type = found
        register = self.registers.get(usual)
        is_new = register is None
        if register is None:
            register = self.registers[usual] = Register(usual + self.suffix, ptx_type)
        self.registers[name] = register
        return register, is_new

    def _in_range(self, name: str) -> tuple[str, str] | None:
        """The usual name and the type of a register that a range declares.

        As in ptxas, all digits at the end are its number, which may begin with zeros.
        """
        stem = name.rstrip(_DIGITS)
        declared = self.ranges.get(stem)
        usual = _usual(name[len(stem) :], declared[0]) if declared is not None else ""
        return (stem + usual, declared[1]) if declared is not None and usual else None


def _usual(number: str, count: int) -> str:
    """The usual form of a number below `count` at the end of a name; "" if it is none."""
    digits = number.lstrip("0") or number[-1:]
    is_below = 0 < len(digits) <= _MOST_DIGITS and int(digits) < count
    return digits if is_below else ""


class Names:
    """The scopes that are open at one place of a body, and every register named so far.

    Attributes:
        registers: in the order in which they are declared or, of ranges, first named.
    """

    def __init__(
        self,
        text: str,
        span: Span,
        parameters: Collection[Parameter],
        variables: Mapping[str, Variable],
        functions: Collection[str],
        declared_at: Mapping[str, int],
    ) -> None:
        self.registers: list[Register] = []
        self._variables = variables
        self._functions = functions
        self._declared_at = declared_at
        self._start = span[0]
        self._element_bytes: dict[str, int] = {}
        self._spaces: dict[str, Space] = {}
        self.scopes: list[Scope] = []
        self._labels = _labels_of_scopes(text, span, {each.name for each in parameters})
        self._parameters = parameters

    def open(self, offset: int) -> None:
        """Enter the scope whose opening brace is at `offset`."""
        suffix = f"@{offset}" if self.scopes else ""
        scope = Scope(self._labels.get(offset, {}), suffix, f"@{offset}")
        is_outermost = not self.scopes
        self.scopes.append(scope)
        for each in self._parameters if is_outermost else ():
            if each.space is Space.REG:
                self.declare(each.name, each.ptx_type, 1)
            else:
                scope.names[each.name] = each.name
                if each.is_array:
                    self._element_bytes[each.name] = TYPE_BYTES[each.ptx_type]

    def close(self) -> None:
        """Leave the innermost scope."""
        self.scopes.pop()

    @property
    def innermost(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    def label(self, name: str) -> str:
        """The unique name of a label of the innermost scope."""
        return self.innermost.labels.get(name, name)

    def fault_of(self, name: str) -> str:
        """Return why a name cannot be declared in the innermost scope, "" if it can."""
        return self.innermost.fault_of(name)

    def fault_of_range(self, stem: str, count: int) -> str:
        """Return why no range `stem<count>` can be declared there, "" if it can."""
        return self.innermost.fault_of_range(stem, count)

    def declare(self, name: str, ptx_type: str, width: int) -> None:
        """Add a register, or the elements of a vector register of `width`."""
        scope = self.innermost
        scope.operands.clear()
        scope.declared.add(name)
        for element in ("",) if width == 1 else _ELEMENTS[:width]:
            register = Register(name + element + scope.suffix, ptx_type)
            scope.registers[name + element] = register
            if element:
                scope.registers[name + _COLOUR_OF[element]] = register
            self.registers.append(register)
        if width > 1:
            scope.names[name] = f"{name}{scope.suffix}.v{width}"

    def declare_range(self, stem: str, count: int, ptx_type: str) -> None:
        """Add registers `stem0` to `stem{count - 1}`; each is made when it is first named."""
        self.innermost.operands.clear()
        self.innermost.ranges[stem] = (count, ptx_type)

    def declare_variable(self, declared: Variable) -> str:
        """Add a variable; gives its unique name."""
        name, space = declared.name, declared.space
        scope = self.innermost
        scope.operands.clear()
        suffix = scope.static_suffix if space in STATIC_SPACES else scope.suffix
        unique = scope.names[name] = name + suffix
        if declared.shape:
            self._element_bytes[unique] = TYPE_BYTES[declared.ptx_type]
        self._spaces[unique] = space
        return unique

    def element_bytes(self, name: str) -> int | None:
        """The bytes of an element of an array, by its unique name; None for another name."""
        variable = self._variables.get(name)
        if variable is not None and variable.shape:
            self._element_bytes.setdefault(name, TYPE_BYTES[variable.ptx_type])
        return self._element_bytes.get(name)

    def space(self, name: str) -> Space | None:
        """The space of a variable or parameter, by its unique name; None for another name."""
        variable = self._variables.get(name)
        space = self._spaces.get(name) or (variable.space if variable else None)
        return space or next((each.space for each in self._parameters if each.name == name), None)

    def temporary(self, ptx_type: str) -> Register:
        """Add a register whose name no text has."""
        register = Register(f"%computed[{len(self.registers)}]", ptx_type)
        self.registers.append(register)
        return register

    def fault_of_address(self, symbol: SymbolValue) -> str:
        """Return why no initialiser has the address of a variable, "" if one may have it."""
        name = self.resolve(symbol.name)
        variable = self._variables.get(name)
        space = self._spaces.get(name) or (variable.space if variable else None)
        if space is None:
            return fault_of_function_address(symbol, self._functions)
        if space in STATIC_SPACES:
            return ""
        return f"is a .{space.value} variable, whose address is not known here"

    def register(self, name: str) -> Register | None:
        """The register that a name means."""
        for scope in reversed(self.scopes):
            register, is_new = scope.register(name)
            if register is not None:
                if is_new:
                    self.registers.append(register)
                return register
        return None

    def vector(self, name: str) -> tuple[Register, ...]:
        """The elements of a vector register, () if the name means something else."""
        resolved = self.resolve(name)
        if (
            resolved[-3:-1] != ".v"
            or resolved[:-3] == name == resolved
            or not resolved.startswith(name)
        ):
            return ()
        elements = (self.register(name + element) for element in _ELEMENTS[: int(resolved[-1])])
        return tuple(register for register in elements if register is not None)

    def is_declared(self, name: str) -> bool:
        """Return whether a name is that of a variable or a label, or begins one."""
        return (
            self.resolve(name) != name
            or any(name in scope.names or name in scope.labels for scope in self.scopes)
            or name in self._variables
            or name in self._functions
        )

    def is_later(self, name: str) -> bool:
        """Return whether a name is of something that the module declares after this function."""
        return self._declared_at.get(name, 0) > self._start and not any(
            name in scope.names or name in scope.labels for scope in self.scopes
        )

    def hides(self, special: str) -> bool:
        """Return whether a function declares the name of a special register."""
        return self.register(special) is not None or self.is_declared(special)

    def resolve(self, name: str) -> str:
        """The unique name of a label or variable."""
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
            if name in scope.labels:
                return scope.labels[name]
        return name


def fault_of_function_address(symbol: SymbolValue, functions: Collection[str]) -> str:
    """Return why no initialiser has the address of a function, "" if one may have it."""
    if symbol.name not in functions:
        return "is not declared before"
    is_plain = not (symbol.offset or symbol.generic)
    return "" if is_plain else "is a function, whose plain address is needed"


def _labels_of_scopes(
    text: str, span: Span, parameters: Collection[str]
) -> dict[int, dict[str, str]]:
    """For the offset of each opening brace, the labels of its scope and their unique names."""
    labels_by_scope: dict[int, dict[str, str]] = {}
    braces: list[int] = []
    choices = 0  # expressions such as `a ? b : c`
    for match in _LANDMARK.finditer(text, *span):
        mark, at = match.group(), match.start()
        if mark == "{":
            braces.append(at)
        elif mark == "}":
            if braces:
                braces.pop()
        elif mark == "?":
            choices += 1
        elif mark == ":" and choices:
            choices -= 1
        elif mark == ":" and braces and ":" not in (text[at - 1], text[at + 1 : at + 2]):
            name, start = _name_before(text, at)
            if name:
                labels = labels_by_scope.setdefault(braces[-1], {})
                if name in labels:
                    raise syntax_error(text, start, f"label {name} is defined twice", len(name))
                fault = fault_of_name(name)
                if len(braces) == 1 and name in parameters:
                    fault = f"{name} is a parameter too"
                if fault:
                    raise syntax_error(text, start, fault, len(name))
                labels[name] = name if len(braces) == 1 else f"{name}@{braces[-1]}"
    return labels_by_scope


def _name_before(text: str, colon: int) -> tuple[str, int]:
    """The word that ends before a colon, and where it starts."""
    end = colon
    while text[end - 1].isspace():
        end -= 1
    start = end
    while text[start - 1] in _NAME_CHARACTERS:
        start -= 1
    return text[start:end], start
