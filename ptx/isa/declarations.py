"""Declarations: variables and parameters.

PTX ISA, "Variable Declarations", "Parameterized Variable Names", "Kernel Function Parameters".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod

from ptx.isa.constant_expressions import integer_literal
from ptx.isa.initialisers import Initialiser
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.lexer import Cursor
from ptx.isa.model import Element, Linkage, Parameter, Space, SymbolValue, Variable

SPACES: dict[str, Space] = {f".{space.value}": space for space in Space}
LINKAGES: dict[str, Linkage] = {f".{link.value}": link for link in Linkage if link.value}
_MOST_VECTOR_BYTES = 16
_MOST_NAMES = 1 << 16  # of a parameterised name of variables, which are declared one by one
_MEMORY_TYPES = frozenset(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)) | {
    "b128",
    "f16",
    "f16x2",
    "f32",
    "f64",
}
OPAQUE_TYPES = frozenset({"texref", "samplerref", "surfref"})
_INITIALISED = (Space.GLOBAL, Space.CONST)
_TYPES = {
    **dict.fromkeys((Space.CONST, Space.LOCAL, Space.SHARED, Space.PARAM), _MEMORY_TYPES),
    Space.GLOBAL: _MEMORY_TYPES | OPAQUE_TYPES,
    Space.REG: _MEMORY_TYPES | {"pred"},
}


def declared_type(cursor: Cursor, space: Space) -> str:
    """`.type`, one that a variable of the space may have."""
    word = cursor.word
    if word[:1] != "." or word[1:] not in TYPE_BYTES:
        cursor.fail(f"expected a type such as .b32{cursor.found}")
    if word[1:] not in _TYPES[space]:
        cursor.fail(f"no .{space.value} variable has type {word}")
    return cursor.advance()[1:]


def vector_width(cursor: Cursor) -> int:
    """`[.v2|.v4]`: 1 without."""
    return int(cursor.advance()[2:]) if cursor.word in (".v2", ".v4") else 1


def check_vector(cursor: Cursor, width: int, ptx_type: str) -> None:
    """Reject a vector that is too large, or of no numbers, at its type, which is just read."""
    is_large = width * TYPE_BYTES[ptx_type] > _MOST_VECTOR_BYTES
    if width > 1 and (is_large or ptx_type == "pred" or ptx_type in OPAQUE_TYPES):
        why = "has more than 128 bits" if is_large else "is no type"
        raise cursor.error(f"a vector of {width} .{ptx_type} {why}", cursor.index - 1)


def dimensions(cursor: Cursor) -> tuple[int, ...]:
    """`{[ [integer] ]}`: the extent of each dimension, 0 for a first `[]`; none for a scalar."""
    extents: list[int] = []
    while cursor.accept("["):
        extents.append(0 if cursor.word == "]" and not extents else integer_literal(cursor))
        cursor.expect("]")
    return tuple(extents)


def name_count(cursor: Cursor) -> int | None:
    """`[<count>]` after a parameterised name; None without."""
    if not cursor.accept("<"):
        return None
    count = integer_literal(cursor)
    if count >= 1 << 32:
        raise cursor.error("a count of names has over 32 bits", cursor.index - 1)
    cursor.expect(">")
    return count


def alignment(cursor: Cursor) -> int:
    """`integer` after `.align`: a power of two."""
    align = integer_literal(cursor)
    if align <= 0 or align & (align - 1) or align > 1 << 30:
        fault = "more than 2**30" if align > 1 << 30 else "not a power of two"
        raise cursor.error(f".align {align} is {fault}", cursor.index - 1)
    return align


def _no_fault(_: SymbolValue) -> str:
    return ""


def variables(
    cursor: Cursor,
    linkage: Linkage,
    line: int,
    fault_of: Callable[[SymbolValue], str] = _no_fault,
) -> list[Variable]:
    """`{space|.align n|.attribute(…)} [.vN] .type [declarator {, declarator}] ;`.

    `fault_of` returns why an initialiser may not have an address, "" if it may.
    """
    reader = _VariableReader(cursor, linkage, line, fault_of)
    while cursor.word != ";":
        reader.declarator()
        if not cursor.accept(","):
            break
        if cursor.word == ";":
            cursor.fail("expected a name")
    cursor.expect(";")
    return reader.declared


class _VariableReader:
    """One declaration of variables."""

    def __init__(
        self,
        cursor: Cursor,
        linkage: Linkage,
        line: int,
        fault_of: Callable[[SymbolValue], str],
    ) -> None:
        self._cursor = cursor
        self._linkage = linkage
        self._line = line
        self._fault_of = fault_of
        self.declared: list[Variable] = []
        self._align = 0
        self._space = self._qualifiers()
        self._width = vector_width(cursor)
        self._type = declared_type(cursor, self._space)
        check_vector(cursor, self._width, self._type)

    def _qualifiers(self) -> Space:
        cursor = self._cursor
        space: Space | None = None
        attribute = -1
        while True:
            if cursor.accept(".align"):
                self._align = max(self._align, alignment(cursor))
            elif cursor.accept(".attribute"):
                attribute = cursor.index - 1
                attributes(cursor)
            elif space is None and cursor.word in SPACES:
                space = SPACES[cursor.word]
                if space is Space.TEX:
                    cursor.fail(".tex is no state space since PTX 1.5: .global .texref is")
                cursor.advance()
            else:
                break
        if space is None:
            cursor.fail(f"expected a state space such as .global{cursor.found}")
        if attribute >= 0 and space is not Space.GLOBAL:
            raise cursor.error(
                f"only .global variables have attributes, not .{space.value}", attribute
            )
        if self._linkage is Linkage.COMMON and space is not Space.GLOBAL:
            raise cursor.error(f".common variables are .global, and not .{space.value}")
        return space

    def declarator(self) -> None:
        """`name [<count> | {[n]} [= initialiser]]`."""
        cursor = self._cursor
        place, name = cursor.index, cursor.expect_name()
        count = name_count(cursor)
        if count is not None:
            if count > _MOST_NAMES:
                raise cursor.error(f"{name} has more than {_MOST_NAMES} names", place)
            self._check_single(name, (), place)
            # ptxas finds none of a stem that ends in a digit.
            for number in range(count if not name[-1].isdigit() else 0):
                self._add(f"{name}{number}", ())
            return
        shape = dimensions(cursor)
        self._check_single(name, shape, place)

        def fault_of(symbol: SymbolValue) -> str:
            return "" if symbol.name == name else self._fault_of(symbol)

        values = Initialiser(cursor, self._type, fault_of)
        if cursor.word == "=":
            if self._linkage is Linkage.EXTERN or self._space not in _INITIALISED:
                kind = self._linkage if self._linkage is Linkage.EXTERN else self._space
                cursor.fail(f".{kind.value} variables have no initial value")
            cursor.advance()
            first = values.read(shape, self._width)
            if shape and not shape[0]:
                shape = (first, *shape[1:])
        if self._linkage is not Linkage.EXTERN and not prod(shape):
            raise cursor.error(f"{name} has no elements", place)
        self._add(name, shape, tuple(values.elements))

    def _check_single(self, name: str, shape: tuple[int, ...], place: int) -> None:
        """Reject what ptxas takes in `.param` as an array alone."""
        if _is_single_pair(self._space, self._type, shape):
            raise self._cursor.error(f"{name} is a single .f16x2 in .param", place)
        if self._space is Space.PARAM and self._width > 1 and not shape:
            raise self._cursor.error(f"{name} is a single vector in .param", place)

    def _add(
        self, name: str, shape: tuple[int, ...], initialiser: tuple[Element, ...] = ()
    ) -> None:
        self.declared.append(
            Variable(
                name=name,
                space=self._space,
                ptx_type=self._type,
                align=max(self._align, TYPE_BYTES[self._type] * self._width),
                count=prod(shape) * self._width,
                initialiser=initialiser,
                linkage=self._linkage,
                line=self._line,
                shape=shape,
            )
        )


def attributes(cursor: Cursor) -> None:
    """`( .managed | .unified ( n , n ) {, …} )`."""
    cursor.expect("(")
    while True:
        word = cursor.word
        if word not in (".managed", ".unified"):
            cursor.fail(f"expected an attribute such as .managed{cursor.found}")
        cursor.advance()
        if word == ".unified":
            cursor.expect("(")
            integer_literal(cursor)
            cursor.expect(",")
            integer_literal(cursor)
            cursor.expect(")")
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _is_single_pair(space: Space, ptx_type: str, shape: tuple[int, ...]) -> bool:
    """Return whether this is a `.param .f16x2`, of which ptxas takes arrays alone."""
    return space is Space.PARAM and ptx_type == "f16x2" and not shape


class ParameterOwner(Enum):
    """The owner of a parameter, which decides about its form."""

    ENTRY = "kernel"
    FUNCTION = "function"
    PROTOTYPE = "prototype"


def parameter(cursor: Cursor, owner: ParameterOwner) -> Parameter:
    """`.param {.align n} [.vN] .type [.ptr [.space]] {.align n} name [[n]]`, `.reg .type name`."""
    if cursor.word not in (".param", ".reg"):
        cursor.fail(f"expected .param or .reg{cursor.found}")
    place = cursor.index
    space = SPACES[cursor.advance()]
    align = _alignments(cursor)
    width = vector_width(cursor) if owner is ParameterOwner.ENTRY else 1
    ptx_type = _parameter_type(cursor, space, owner)
    check_vector(cursor, width, ptx_type)
    is_pointer = cursor.accept(".ptr")
    if is_pointer and cursor.word in (".const", ".global", ".local", ".shared"):
        cursor.advance()
    after_type = _alignments(cursor)
    if owner is ParameterOwner.FUNCTION and (is_pointer or after_type):
        cursor.fail("only kernels have parameters with .ptr, or .align after the type")
    is_anonymous = owner is not ParameterOwner.FUNCTION and cursor.accept("_")
    name = "_" if is_anonymous else cursor.expect_name()
    shape = dimensions(cursor)
    fault = _fault_of_parameter(name, space, ptx_type, shape, owner)
    if width > 1 and not shape:
        fault = f"parameter {name} of a kernel is a single vector"
    if fault:
        raise cursor.error(fault, place)
    return Parameter(
        name=name,
        space=space,
        ptx_type=ptx_type,
        align=max(align, 0 if is_pointer else after_type, TYPE_BYTES[ptx_type] * width),
        count=prod(shape) * width,
        is_pointer=is_pointer,
        is_array=bool(shape),
    )


_NOT_PASSED = frozenset({"u8", "s8", "u16", "s16", "pred"})
"""The types that no function passes by the ABI. It passes .b8, .b16 and arrays."""


def fault_of_passed(parameter: Parameter) -> str:
    """Why a function with a body cannot have a parameter, "" where it can."""
    name, ptx_type = parameter.name, parameter.ptx_type
    if parameter.is_array:
        is_register = parameter.space is Space.REG
        return f"parameter {name} is an array of registers" if is_register else ""
    if ptx_type in _NOT_PASSED:
        return (
            f"parameter {name} is a .{ptx_type}, which no function passes: .b32 and .b16 are passed"
        )
    if parameter.space is Space.PARAM and ptx_type == "f16x2":
        return f"parameter {name} is a single .f16x2"
    return ""


def _alignments(cursor: Cursor) -> int:
    """`{.align n}`: the largest, 0 without one."""
    align = 0
    while cursor.accept(".align"):
        align = max(align, alignment(cursor))
    return align


def _parameter_type(cursor: Cursor, space: Space, owner: ParameterOwner) -> str:
    """`.type`, one that a parameter of the owner may have."""
    if owner is ParameterOwner.ENTRY and cursor.word[1:] in OPAQUE_TYPES:
        return cursor.advance()[1:]
    if owner is not ParameterOwner.ENTRY and cursor.word == ".pred":
        return cursor.advance()[1:]
    return declared_type(cursor, space)


def _fault_of_parameter(
    name: str, space: Space, ptx_type: str, shape: tuple[int, ...], owner: ParameterOwner
) -> str:
    """Why a function cannot have a parameter, "" where it can."""
    if owner is ParameterOwner.ENTRY and space is not Space.PARAM:
        return f"parameter {name} of a kernel is not a .param"
    if owner is ParameterOwner.ENTRY and _is_single_pair(space, ptx_type, shape):
        return f"parameter {name} is a single .f16x2"
    if shape and ptx_type == "pred":
        return f"parameter {name} is an array of predicates"
    if len(shape) > 1:
        return f"parameter {name} has more than one dimension"
    if owner is ParameterOwner.ENTRY and not prod(shape):
        return f"parameter {name} of a kernel has no elements"
    return ""


def result_list(cursor: Cursor, owner: ParameterOwner) -> tuple[Parameter, ...]:
    """`( parameter )` before a function's name, or nothing."""
    place = cursor.index
    results = parameter_list(cursor, owner)
    for result in results:
        if not result.count:
            raise cursor.error(f"result {result.name} has no extent", place)
    return results


def parameter_list(cursor: Cursor, owner: ParameterOwner) -> tuple[Parameter, ...]:
    """`( parameter {, parameter} )`, or nothing."""
    if not cursor.accept("("):
        return ()
    parameters: list[Parameter] = []
    if cursor.accept(")"):
        return ()
    while True:
        parameters.append(parameter(cursor, owner))
        if not cursor.accept(","):
            break
    for each in parameters:
        is_last = each is parameters[-1] and each.space is Space.PARAM
        if not (each.count or is_last):
            raise cursor.error(f"parameter {each.name} has no extent, and is not the last one")
    cursor.expect(")")
    return tuple(parameters)
