"""Initial values of variables. PTX ISA, "Initializers"."""

from __future__ import annotations

from collections.abc import Callable

from ptx.isa.constant_expressions import (
    constant,
    digits_value,
    integer_constant,
    integer_literal,
)
from ptx.isa.lexer import Cursor
from ptx.isa.model import Element, FloatImmediate, SymbolValue

# Types that integers, floats, addresses and bytes of addresses may initialise, as in ptxas of CUDA
# 13.5.
_INTEGERS = frozenset(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)) | {"b128"}
_FLOATS = frozenset({"b8", "b16", "b32", "b64", "b128", "f32", "f64"})
_ADDRESSES = frozenset({"u32", "u64"})
_BYTES = frozenset({"u8", "u32", "u64"})
_MASKS = frozenset(0xFF << 8 * byte for byte in range(8))
_MOST = (1 << 64) - 1


class Initialiser:
    """The values of one variable.

    `fault_of` returns why no initialiser may have the address of a symbol and an offset, "" if one
    may.
    """

    def __init__(
        self, cursor: Cursor, ptx_type: str, fault_of: Callable[[SymbolValue], str]
    ) -> None:
        self._cursor = cursor
        self._type = ptx_type
        self._fault_of = fault_of
        self.elements: list[Element] = []

    def read(self, shape: tuple[int, ...], width: int) -> int:
        """`element`, or `{ element, … }` for each dimension and vector; how many are in the first.

        Nested lists are flattened: after one with too few values the next follows at once.
        """
        cursor = self._cursor
        if not shape and width == 1:
            return self._element()
        cursor.expect("{")
        is_innermost = len(shape) + (width > 1) == 1
        first, count = cursor.index, 0
        if not cursor.accept("}"):
            while True:
                if is_innermost:
                    count += self._element()
                else:
                    self.read(shape[1:], width)
                    count += 1
                if not cursor.accept(","):
                    break
            cursor.expect("}")
        if not shape and count != width:
            raise cursor.error(f"{count} initial values for a vector of {width}", first)
        if shape and 0 < shape[0] < count:
            raise cursor.error(f"{count} initial values for {shape[0]} elements", first)
        return count

    def _element(self) -> int:
        """An integer, a float, an address or a table of integers; how many values."""
        cursor = self._cursor
        first = cursor.index
        if cursor.kind == "integers":
            self._require("an integer", _INTEGERS, first)
            values = self._table(cursor.advance(), first)
            self.elements += values
            return len(values)
        if cursor.kind == "word" and cursor.word != "WARP_SZ":
            self._require("an address", _ADDRESSES, first)
            self.elements.append(self._address(0))
        elif cursor.kind == "integer" and cursor.words[cursor.index + 1] == "(":
            self._require("a byte of an address", _BYTES, first)
            mask = integer_literal(cursor)
            if mask not in _MASKS:
                raise cursor.error(f"{mask:#x} does not select a byte", first)
            cursor.expect("(")
            self.elements.append(self._address(mask))
            cursor.expect(")")
        else:
            value = constant(cursor)
            if isinstance(value, FloatImmediate):
                self._require(f"a {value.width}-bit float", _FLOATS, first)
            else:
                self._require("an integer", _INTEGERS, first)
            self.elements.append(value)
        return 1

    def _table(self, text: str, place: int) -> list[int]:
        """The integers of a long list."""
        values = [int(digits) for digits in text.split(",")]
        if -_MOST <= min(values) <= max(values) <= _MOST:
            return values
        for position, value in enumerate(values):
            wrapped = digits_value(str(abs(value)))
            if wrapped is None:
                raise self._cursor.error("this list has an integer of more than 64 bits", place)
            values[position] = -wrapped if value < 0 else wrapped
        return values

    def _require(self, element: str, types: frozenset[str], index: int) -> None:
        if self._type not in types:
            raise self._cursor.error(f"{element} does not initialise a .{self._type}", index)

    def _address(self, mask: int) -> SymbolValue:
        """`name [+ n]` or `generic(name) [+ n]`, inside the parentheses of a mask if there is one.

        `n` is an expression.
        """
        cursor = self._cursor
        first = cursor.index
        name = cursor.expect_name()
        is_generic = name == "generic" and cursor.accept("(")
        if is_generic:
            name = cursor.expect_name()
            cursor.expect(")")
        offset = integer_constant(cursor) if cursor.accept("+") else 0
        symbol = SymbolValue(name, offset, is_generic, mask)
        fault = self._fault_of(symbol)
        if fault:
            raise cursor.error(f"{name} {fault}", first)
        return symbol
