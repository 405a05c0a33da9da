"""Variables by their names in CUDA C++, from the debug information of PTX.

PTX ISA, "Debugging Directives"; DWARF 2, "Debugging Information Entry". Registers are numbered by
the characters of their names (CUDA, "PTX DWARF"): `%r1` is 0x257231.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

_SECTION: Final = re.compile(r"(?ms)^\s*\.section\s+(\.debug_\w+)\s*\{(.*?)^\s*\}")
_DATUM: Final = re.compile(r"\.b(8|16|32|64)\s+([^\n]+)")
_LABEL: Final = re.compile(r"^\s*([$\w]+):", re.MULTILINE)
# Bytes of a value by its form: addr, data2, data4, data8, data1, flag, ref4, sec_offset, present.
_SIZES: Final = {1: 8, 5: 2, 6: 4, 7: 8, 11: 1, 12: 1, 19: 4, 23: 4, 25: 0}
_STRING, _BLOCK, _BLOCK1, _EXPRESSION, _LEBS = 8, 9, 10, 24, (13, 15)
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
    """A debugging information entry, with the values of its attributes by name.

    A block's value is the range of its offsets, and that of an address its symbol.
    """

    tag: int
    values: dict[int, Any]
    children: list[_Entry]


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
            self._types: dict[int, CudaType] = {}
            self._by_offset: dict[int, _Entry] = {}
            self._read(self._entries(), [], None)

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

    def _read(
        self,
        entries: list[_Entry],
        variables: list[CudaVariable],
        scope: tuple[int, int] | None,
    ) -> None:
        """Collect the variables of entries that are in a function and a scope of PTX lines."""
        for tag, values, children in entries:
            if tag in (_SUBPROGRAM, _LEXICAL) and _LOW in values:
                its = variables
                if tag == _SUBPROGRAM:
                    name = values.get(_NAME, "")
                    symbol = values.get(_LINKAGE) or name
                    its = self.functions.setdefault(symbol, [])
                    self.names[symbol] = name
                lines = self._lines.get(values[_LOW], 0), self._lines.get(values[_HIGH], 0)
                self._read(children, its, lines)
                continue
            if tag in (_VARIABLE, _PARAMETER) and _LOCATION in values:
                places = tuple(self._places_of(values[_LOCATION], *(scope or (0, 0))))
                kind, is_parameter = self._type_of(values), tag == _PARAMETER
                if scope is not None:
                    name = values.get(_NAME, "")
                    variables.append(CudaVariable(name, kind, *scope, places, is_parameter))
                elif not is_parameter:
                    self.globals[places[0].symbol] = kind
            self._read(children, variables, scope)

    def _entries(self) -> list[_Entry]:
        """Return the outermost entries."""
        at, table = 11, self._abbreviation_table()
        nested: list[list[_Entry]] = [[]]
        while at < len(self._info.data):
            offset = at
            code, at = self._info.leb(at)
            if code:
                tag, has_children, attributes = table[code]
                entry = self._by_offset[offset] = _Entry(tag, {}, [])
                for name, form in attributes:
                    entry.values[name], at = self._value(form, at)
                nested[-1].append(entry)
                nested += [entry.children] * has_children
            elif len(nested) > 1:
                nested.pop()
        return nested[0]

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

    def _value(self, form: int, at: int) -> tuple[Any, int]:
        """Return the value of this form at an offset, and its end."""
        info = self._info
        if form == _STRING:
            return info.text(at), info.data.index(0, at) + 1
        if form in _LEBS:
            return info.leb(at)
        if form in (_BLOCK, _BLOCK1, _EXPRESSION):
            nbytes, start = info.leb(at)
            return range(start, start + nbytes), start + nbytes
        end = at + _SIZES[form]
        return info.symbols.get(at, int.from_bytes(info.data[at:end], "little")), end

    def _places_of(self, location: Any, low: int, high: int) -> Iterator[Place]:
        if isinstance(location, range):
            yield self._place(self._info, location.start, low, high)
            return
        section, at = self._places, location
        if isinstance(at, str):  # an offset from the start of a section
            at = int(at.partition("+")[2] or 0)
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

    def _type_of(self, values: dict[int, Any]) -> CudaType:
        """Return the type of a variable, an element or a member, by its attributes."""
        offset = values.get(_TYPE)
        if offset not in self._by_offset:
            return CudaType("void", nbytes=0)
        known = self._types.get(offset)
        if known is None:
            known = self._types[offset] = CudaType("")
            self._fill(known, self._by_offset[offset])
        return known

    def _fill(self, known: CudaType, entry: _Entry) -> None:
        values = entry.values
        known.name, known.nbytes = values.get(_NAME, ""), values.get(_SIZE, 0)
        if entry.tag == _BASE:
            encoding = values[_ENCODING]
            letter = "s" if encoding in (5, 6) else "u"
            known.kind = _KINDS.get((encoding, known.nbytes), f"{letter}{8 * known.nbytes}")
        elif entry.tag in _POINTERS:
            known.element, known.kind, known.nbytes = self._type_of(values), "u64", 8
            known.name = f"{known.element.name} *"
        elif entry.tag == _ARRAY:
            self._fill_array(known, entry)
        elif entry.tag in _STRUCTS:
            known.fields = [
                (each.values.get(_NAME, ""), self._member(each), self._type_of(each.values))
                for each in entry.children
                if each.tag == _FIELD
            ]
        elif _TYPE in values:  # const, volatile, typedef
            other, name = self._type_of(values), known.name
            for each in fields(CudaType):
                setattr(known, each.name, getattr(other, each.name))
            known.name = name or other.name

    def _member(self, entry: _Entry) -> int:
        """Return the offset of a member."""
        place = entry.values.get(_MEMBER, 0)
        if isinstance(place, range):  # DW_OP_plus_uconst
            return self._info.leb(place.start + 1)[0]
        return int(place)

    def _fill_array(self, known: CudaType, entry: _Entry) -> None:
        element = self._type_of(entry.values)
        extents = [
            each.values.get(_COUNT) or each.values.get(_UPPER, -1) + 1
            for each in entry.children
            if each.tag == _SUBRANGE
        ]
        for extent in reversed(extents[1:]):
            nbytes, name = element.nbytes * extent, f"{element.name}[{extent}]"
            element = CudaType(name, "", nbytes, element, extent)
        known.element, known.count = element, extents[0] if extents else 0
        known.nbytes = element.nbytes * known.count
        known.name = f"{element.name}[{known.count}]"
