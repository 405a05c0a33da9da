"""Variables by their names in CUDA C++, from the debug information of PTX.

PTX ISA, "Debugging Directives"; DWARF 2, "Debugging Information Entry". Registers are numbered by
the characters of their names (CUDA, "PTX DWARF"): `%r1` is 0x257231.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_SECTION: Final = re.compile(r"(?ms)^\s*\.section\s+(\.debug_\w+)\s*\{(.*?)^\s*\}")
_DATUM: Final = re.compile(r"\.b(8|16|32|64)\s+([^\n]+)")
_LABEL: Final = re.compile(r"^\s*([$\w]+):", re.MULTILINE)
# Bytes of a value by its form: addr, data2, data4, data8, data1, flag, ref4, sec_offset.
_SIZES: Final = {1: 8, 5: 2, 6: 4, 7: 8, 11: 1, 12: 1, 19: 4, 23: 4}
_STRING, _BLOCK, _BLOCK1, _EXPRESSION, _LEBS, _FLAG = 8, 9, 10, 24, (13, 15), 25
_NAME, _SIZE, _LOW, _HIGH, _LOCATION, _ENCODING = 0x03, 0x0B, 0x11, 0x12, 0x02, 0x3E
_UPPER, _COUNT, _TYPE, _MEMBER, _LINKAGE = 0x2F, 0x37, 0x49, 0x38, 0x2007
_LEXICAL, _SUBPROGRAM, _PARAMETER, _VARIABLE = 0x0B, 0x2E, 0x05, 0x34
_POINTERS, _STRUCTS = (0x0F, 0x10), (0x02, 0x13, 0x17)
_ARRAY, _BASE, _SUBRANGE, _FIELD = 0x01, 0x24, 0x21, 0x0D
_REGISTER, _ADDRESS = 0x90, 0x03
_KINDS: Final = {(2, 1): "u8", (4, 4): "f32", (4, 8): "f64", (4, 2): "f16"}


@dataclass(slots=True)
class CudaType:
    """A type of CUDA C++.

    Attributes:
        name: as it is written.
        kind: of a number, such as "f32"; "" of anything else.
        nbytes: its size.
        element: what a pointer or an array has; count: of an array, 0 of a pointer.
        fields: the members of a class: name, offset and type.
    """

    name: str
    kind: str = ""
    nbytes: int = 8
    element: CudaType | None = None
    count: int = 0
    fields: list[tuple[str, int, CudaType]] = field(default_factory=list)


class Place(NamedTuple):
    """A variable's place for PTX lines from `first` to `last`: a register, or a symbol's memory."""

    first: int
    last: int
    register: str
    symbol: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class CudaVariable:
    """A variable of a function, with its scope in PTX lines."""

    name: str
    type: CudaType
    first: int
    last: int
    places: tuple[Place, ...]
    is_parameter: bool


class _Section:
    """The bytes of a section, and the symbols at their offsets."""

    def __init__(self, text: str) -> None:
        data = bytearray()
        self.symbols: dict[int, str] = {}
        for width, values in _DATUM.findall(text):
            for value in values.split(","):
                try:
                    number = int(value.strip(), 0)
                except ValueError:
                    self.symbols[len(data)], number = value.strip(), 0
                data += (number % (1 << int(width))).to_bytes(int(width) // 8, "little")
        self.data = bytes(data)

    def leb(self, at: int) -> tuple[int, int]:
        """Return the unsigned number of variable length at an offset, and its end."""
        value = shift = 0
        while True:
            byte = self.data[at]
            value |= (byte & 127) << shift
            shift, at = shift + 7, at + 1
            if byte < 128:
                return value, at

    def text(self, at: int) -> str:
        """Return the text at an offset."""
        return self.data[at : self.data.index(0, at)].decode(errors="replace")


class _Entry(NamedTuple):
    """A debugging information entry: `values` has the offset of each attribute's value, by name."""

    offset: int
    tag: int
    depth: int
    values: dict[int, tuple[int, int]]


class DebugInfo:
    """The variables of the functions of a module; none without debug information of DWARF 2 to 4.

    Args:
        text: the module's PTX.

    Attributes:
        functions: the variables of each function, by its symbol; names: the names of these.
        globals: the types of other variables, by their symbols.
    """

    def __init__(self, text: str) -> None:
        self.functions: dict[str, list[CudaVariable]] = {}
        self.names: dict[str, str] = {}
        self.globals: dict[str, CudaType] = {}
        self._visible: dict[tuple[str, int], dict[str, tuple[CudaVariable, Place | None]]] = {}
        sections = {name: _Section(body) for name, body in _SECTION.findall(text)}
        if ".debug_info" not in sections or ".debug_abbrev" not in sections:
            return
        starts = [match.start() for match in re.finditer("\n", text)]
        self._lines = {
            match[1]: bisect_left(starts, match.start(1)) + 1 for match in _LABEL.finditer(text)
        }
        self._info, self._abbreviations = sections[".debug_info"], sections[".debug_abbrev"]
        self._places = sections.get(".debug_loc", _Section(""))
        if struct.unpack_from("<H", self._info.data, 4)[0] <= 4:
            entries = list(self._entries())
            self._by_offset = {entry.offset: number for number, entry in enumerate(entries)}
            self._all = entries
            self._types: dict[int, CudaType] = {}
            self._read()

    def visible(self, function: str, line: int) -> dict[str, tuple[CudaVariable, Place | None]]:
        """Return the variables at a PTX line by name, with their places; inner ones hide outer."""
        known = self._visible.get((function, line))
        if known is not None:
            return known
        found: dict[str, tuple[CudaVariable, Place | None]] = {}
        for variable in self.functions.get(function, ()):
            if variable.first <= line <= variable.last:
                places = [e for e in variable.places if e.first <= line <= e.last]
                found[variable.name] = variable, places[-1] if places else None
        self._visible[function, line] = found
        return found

    def _read(self) -> None:
        scopes: list[tuple[int, int, int]] = []
        variables: list[CudaVariable] = []
        for entry in self._all:
            while scopes and scopes[-1][0] >= entry.depth:
                scopes.pop()
            if entry.tag in (_SUBPROGRAM, _LEXICAL) and _LOW in entry.values:
                low, high = self._line(entry, _LOW), self._line(entry, _HIGH)
                scopes.append((entry.depth, low, high))
                if entry.tag == _SUBPROGRAM:
                    name = self._text(entry, _LINKAGE) or self._text(entry, _NAME)
                    variables = self.functions.setdefault(name, [])
                    self.names[name] = self._text(entry, _NAME)
            elif entry.tag == _VARIABLE and not scopes and _LOCATION in entry.values:
                place, *_ = self._places_of(entry, 0, 0)
                self.globals[place.symbol] = self._type_of(entry)
            elif entry.tag in (_VARIABLE, _PARAMETER) and scopes and _LOCATION in entry.values:
                _, low, high = scopes[-1]
                variables.append(
                    CudaVariable(
                        self._text(entry, _NAME),
                        self._type_of(entry),
                        low,
                        high,
                        tuple(self._places_of(entry, low, high)),
                        entry.tag == _PARAMETER,
                    )
                )

    def _entries(self) -> Iterator[_Entry]:
        at, depth, data = 11, 0, self._info.data
        table = self._abbreviation_table()
        while at < len(data):
            offset = at
            code, at = self._info.leb(at)
            if not code:
                depth -= 1
                continue
            tag, has_children, attributes = table[code]
            values: dict[int, tuple[int, int]] = {}
            for name, form in attributes:
                values[name] = form, at
                at = self._after(form, at)
            yield _Entry(offset, tag, depth, values)
            depth += has_children

    def _abbreviation_table(self) -> Mapping[int, tuple[int, int, list[tuple[int, int]]]]:
        table: dict[int, tuple[int, int, list[tuple[int, int]]]] = {}
        section, at = self._abbreviations, 0
        while at < len(section.data):
            code, at = section.leb(at)
            if not code:
                break
            tag, at = section.leb(at)
            attributes: list[tuple[int, int]] = []
            table[code] = tag, section.data[at], attributes
            at += 1
            while True:
                name, at = section.leb(at)
                form, at = section.leb(at)
                if not name:
                    break
                attributes.append((name, form))
        return table

    def _after(self, form: int, at: int) -> int:
        """Return the offset after a value of this form."""
        if form == _STRING:
            return self._info.data.index(0, at) + 1
        if form in _LEBS:
            return self._info.leb(at)[1]
        if form in (_BLOCK, _BLOCK1, _EXPRESSION):
            nbytes, start = self._info.leb(at)
            return start + nbytes
        return at if form == _FLAG else at + _SIZES[form]

    def _number(self, entry: _Entry, name: int) -> int:
        form, at = entry.values.get(name, (0, 0))
        if form in _LEBS:
            return self._info.leb(at)[0]
        if form in (_BLOCK1, _EXPRESSION):  # DW_OP_plus_uconst
            return self._info.leb(at + 2)[0]
        return int.from_bytes(self._info.data[at : at + _SIZES[form]], "little") if form else 0

    def _text(self, entry: _Entry, name: int) -> str:
        return self._info.text(entry.values[name][1]) if name in entry.values else ""

    def _line(self, entry: _Entry, name: int) -> int:
        return self._lines.get(self._info.symbols.get(entry.values[name][1], ""), 0)

    def _places_of(self, entry: _Entry, low: int, high: int) -> Iterator[Place]:
        form, at = entry.values[_LOCATION]
        if form in (_BLOCK1, _EXPRESSION):
            yield self._place(self._info, at + 1, low, high)
            return
        section, symbol = self._places, self._info.symbols.get(at, "")
        at = int(symbol.partition("+")[2] or 0) if symbol else self._number(entry, _LOCATION)
        while at + 16 <= len(section.data) and at in section.symbols:
            first, last = (self._lines.get(section.symbols[each], 0) for each in (at, at + 8))
            yield self._place(section, at + 18, first, last)
            at += 18 + struct.unpack_from("<H", section.data, at + 16)[0]

    @staticmethod
    def _place(section: _Section, at: int, first: int, last: int) -> Place:
        if section.data[at] == _REGISTER:
            number = section.leb(at + 1)[0]
            name = number.to_bytes(8, "big").lstrip(b"\0").decode(errors="replace")
            return Place(first, last, name, "")
        if section.data[at] == _ADDRESS:
            after, offset = at + 9, 0
            if after + 1 < len(section.data) and section.data[after] == 0x23:
                offset = section.leb(after + 1)[0]
            return Place(first, last, "", section.symbols.get(at + 1, ""), offset)
        return Place(first, last, "", "")

    def _type_of(self, entry: _Entry) -> CudaType:
        """Return the type of a variable, an element or a member."""
        number = self._by_offset.get(self._number(entry, _TYPE))
        if _TYPE not in entry.values or number is None:
            return CudaType("void", nbytes=0)
        offset = self._all[number].offset
        known = self._types.get(offset)
        if known is None:
            known = self._types[offset] = CudaType("")
            self._fill(known, number)
        return known

    def _fill(self, known: CudaType, number: int) -> None:
        entry = self._all[number]
        known.name = self._text(entry, _NAME)
        known.nbytes = self._number(entry, _SIZE)
        if entry.tag == _BASE:
            encoding = self._number(entry, _ENCODING)
            letter = "s" if encoding in (5, 6) else "u"
            known.kind = _KINDS.get((encoding, known.nbytes), f"{letter}{8 * known.nbytes}")
        elif entry.tag in _POINTERS:
            known.element, known.kind, known.nbytes = self._type_of(entry), "u64", 8
            known.name = f"{known.element.name} *"
        elif entry.tag == _ARRAY:
            self._fill_array(known, number)
        elif entry.tag in _STRUCTS:
            known.fields = [
                (self._text(each, _NAME), self._number(each, _MEMBER), self._type_of(each))
                for each in self._children(number)
                if each.tag == _FIELD
            ]
        elif _TYPE in entry.values:  # const, volatile, typedef
            other = self._type_of(entry)
            known.kind, known.nbytes, known.element = other.kind, other.nbytes, other.element
            known.count, known.fields, known.name = (
                other.count,
                other.fields,
                known.name or other.name,
            )

    def _fill_array(self, known: CudaType, number: int) -> None:
        element = self._type_of(self._all[number])
        extents = [
            self._number(each, _COUNT) or self._number(each, _UPPER) + (_UPPER in each.values)
            for each in self._children(number)
            if each.tag == _SUBRANGE
        ]
        for extent in reversed(extents[1:]):
            nbytes, name = element.nbytes * extent, f"{element.name}[{extent}]"
            element = CudaType(name, "", nbytes, element, extent)
        known.element, known.count = element, extents[0] if extents else 0
        known.nbytes = element.nbytes * known.count
        known.name = f"{element.name}[{known.count}]"

    def _children(self, number: int) -> Iterator[_Entry]:
        depth = self._all[number].depth
        for entry in self._all[number + 1 :]:
            if entry.depth <= depth:
                return
            if entry.depth == depth + 1:
                yield entry
