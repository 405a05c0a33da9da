"""Kinds of operands, and which operands are of a kind.

PTX ISA, "Operand Type Checking", "Operand Size Exceeding Instruction-Type Size", measured with
ptxas of CUDA 13.0 and 13.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from ptx.isa.instruction_facts import TYPE_BYTES

Shape = str | tuple["Shape | None", ...]
"""What counts of an operand: the type of a register, or a mark and the shapes of its parts.

`#` is an integer constant, `#f32` and `#f64` are floats by their width; `%u32` a special register
by its type; `_` the sink. Tuples begin with `[` (an address), `{` (a vector), `(` (a list of a
call), `|` (two destinations), `!` (a negated predicate), `&` and `&+` (a symbol by its space,
without and with an offset), `.` (a part of a register, whether it is negated), or `[[` (another bracketed list).
"""

_SUB_WORD: Final = {
    "bf16": "b16", "bf16x2": "b32", "tf32": "b32", "e4m3": "b8", "e5m2": "b8", "e4m3x2": "b16", "e5m2x2": "b16",
    "e4m3x4": "b32", "e5m2x4": "b32", "e2m1x2": "b8", "e2m1x4": "b16", "e2m3x2": "b16",
    "e3m2x2": "b16", "e2m3x4": "b32", "e3m2x4": "b32", "ue8m0x2": "b16", "f32x2": "b64",
    "u8x4": "b32", "s8x4": "b32", "s2f6x2": "b16",
}  # fmt: skip


def _bits(ptx_type: str) -> int:
    return 8 * TYPE_BYTES[ptx_type]


@cache
def registers_of(ptx_type: str) -> frozenset[str]:
    """The types of registers that an operand of a type may have, of its size."""
    if ptx_type in _SUB_WORD:
        return frozenset({_SUB_WORD[ptx_type]})
    if ptx_type == "pred":
        return frozenset({"pred", "f16x2"})  # as ptxas has it
    if ptx_type in ("f16", "f32", "f64"):
        return frozenset({ptx_type, f"b{ptx_type[1:]}"})
    if ptx_type == "f16x2":
        return frozenset({"f16x2", "b32"})
    if ptx_type in ("u16x2", "s16x2"):
        return frozenset({"f16x2", "b32"})
    size = ptx_type[1:]
    if size == "128":
        return frozenset({"b128"})
    found = {f"u{size}", f"s{size}", f"b{size}"}
    if size == "32":
        found.add("f16x2")
    if ptx_type[0] == "b" and size != "8":
        found.add(f"f{size}")
    return frozenset(found)


_INTEGER_REGISTERS: Final = [f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in "usb"] + [
    "b128",
    "f16x2",
]


@cache
def wider_registers_of(ptx_type: str) -> frozenset[str]:
    """The same, where the register may be wider: of loads, stores and conversions."""
    if ptx_type in ("f32", "f64", "f16", "f16x2"):
        of_bits = {f"b{bits}" for bits in (16, 32, 64, 128) if bits >= _bits(ptx_type)}
        return frozenset({ptx_type, *of_bits})
    if ptx_type[0] not in "usb" or not ptx_type[1:].isdigit():
        return registers_of(ptx_type)
    bits = _bits(ptx_type)
    found = {each for each in _INTEGER_REGISTERS if _bits(each) >= bits}
    if bits == 128:
        return frozenset({"b128"})
    if ptx_type[0] == "b":
        found |= {each for each in ("f16", "f32", "f64") if _bits(each) >= bits}
    return frozenset(found)


def constants_of(ptx_type: str) -> frozenset[str]:
    """The constants that an operand of a type may be."""
    if ptx_type in ("f32", "f64"):
        return frozenset({"#f32", "#f64"})
    if ptx_type == "pred":
        return frozenset({"#"})
    if ptx_type[0] not in "usb" or not ptx_type[1:].isdigit():
        return frozenset()
    return frozenset({"#", {"b32": "#f32", "b64": "#f64"}.get(ptx_type, "#")})


_WORDS: Final = frozenset({"u32", "s32", "b32"})
Fits = Callable[[Shape], bool]
SPEC: Final = re.compile(
    r"(?P<count>\d*|v)(?P<letter>[A-Za-z])(?P<number>\d?)(?::(?P<type>[A-Za-z0-9]+))?(?P<sink>_?)"
)


@dataclass(frozen=True, slots=True)
class Operands:
    """What the operands of one form depend on: the types, in order, the vector's width, the space."""

    types: tuple[str, ...]
    width: int = 1
    space: str = ""


def _of(*sets: frozenset[str] | frozenset[Shape]) -> Fits:
    accepted = frozenset[Shape]().union(*sets)
    return lambda shape: shape in accepted


_OF_SYMBOLS: Final = {
    "": ("global", "shared", "local"), "param": ("kparam", "fparam", "param"), "argument": ("fparam", "param"),
    "param::entry": ("kparam",), "param::func": ("fparam", "param"), "generic": ("global", "shared", "local", "const"),
    "policy": ("global", "shared", "local"), "none": (), "source": ("global",), "object": ("shared",),
    "bulk": ("global",), "multimem": ("global", "shared", "local"), "matrix": ("shared",),
    "word": ("global", "shared", "local", "const"), "globalword": ("global",),
    "sharedword": ("shared",),
}  # fmt: skip
_LONGS: Final = frozenset({"u64", "s64", "b64"})
_NARROW: Final = frozenset(f"{kind}{bits}" for kind in "usb" for bits in (8, 16))
# By the space: 32 bits are no place in all memory, and some instructions take no narrow ones.
_ADDRESS_REGISTERS: Final = {
    **dict.fromkeys(("", "global", "generic", "none", "object"), _LONGS | _NARROW),
    **dict.fromkeys(("matrix", "word", "globalword", "sharedword", "policy"), _LONGS | _WORDS),
    **dict.fromkeys(("source", "multimem"), _LONGS),
    "param::func": frozenset[str](),  # of a call: no register has its address
}


@cache
def _address_in(space: str) -> Fits:
    """The test of an address in a space, "" for generic ones."""
    stem = space.partition("::")[0]
    symbols = _OF_SYMBOLS.get(space) or _OF_SYMBOLS.get(stem, (stem,))
    registers = _ADDRESS_REGISTERS.get(
        space, _ADDRESS_REGISTERS.get(stem, _LONGS | _NARROW | _WORDS)
    )

    def test(shape: Shape) -> bool:
        if shape[0] != "[":
            return False
        base = shape[1]
        if base is None:
            return stem == "local"
        if isinstance(base, str):
            return base in registers
        return base[0] in ("&", "&+") and base[1] in symbols

    return test


def _is_symbol(*spaces: str) -> Fits:
    return lambda shape: shape[0] == "&" and (not spaces or shape[1] in spaces)


def _is_predicate(shape: Shape) -> bool:
    return shape == "pred" or shape == ("!", "pred")


def _is_integer(shape: Shape) -> bool:
    return isinstance(shape, str) and shape[0] == "#" and shape[1:2] != "f"


def _predicate_or_constant(shape: Shape) -> bool:
    return _is_integer(shape) or _is_predicate(shape)


_NEGATED: Final[frozenset[Shape]] = frozenset({("!", "pred")})
_ADDRESSABLE: Final = frozenset({
    "global", "shared", "local", "const", "kparam", "fparam", "code", "entry", "texref", "surfref",
    "samplerref",
})  # fmt: skip
_SMALL: Final = frozenset({"shared", "local", "const", "kparam", "fparam", "code", "entry"})
_UNTYPED: Final[dict[str, Fits]] = {
    "p": _predicate_or_constant,
    "P": _is_predicate,
    "q": _of(frozenset({"pred"})),
    "i": _is_integer,
    "n": lambda shape: shape in _WORDS or _is_integer(shape),
    "N": _of(_WORDS),
    "h": lambda shape: shape in ("u64", "s64", "b64") or _is_integer(shape),
    "H": _of(frozenset({"u64", "s64", "b64"})),
    "X": lambda shape: shape == "%pred",
    "x": lambda shape: shape == "%v4",
    "t": lambda shape: shape == ("&", "table"),
    "l": _is_symbol("label"),
}


def _or_constant(ptx_type: str, is_register: Fits) -> Fits:
    constants = constants_of(ptx_type)
    has_integers = "#" in constants
    return lambda shape: (
        is_register(shape) or shape in constants or (has_integers and _is_integer(shape))
    )


_PARTS: Final = {
    # One byte or half; those that may be negated, too; those that must be.
    "e": re.compile(r"(?:b[0-3]|h[01])"),
    "g": re.compile(r"(?:b[0-3]|h[01])?"),
    "E": re.compile(r"(?:b[0-3]|h[01])"),
    "V": re.compile(r"(?:b[0-3]|h[01])"),
    "k": re.compile(r"(?:b[0-3]|h[01])?"),
    "K": re.compile(""),
    "G": re.compile(""),
}
_PACKED: Final = {
    "f2": re.compile(r"h[0-3][0-3]"),
    "f4": re.compile(r"b[0-7]{4}"),
    "F2": re.compile(r"h(?:10|[01])"),
    "F4": re.compile(r"b(?=.)3?2?1?0?"),
}


_SIGNS: Final = {"g": ("", "-"), "G": ("", "-"), "k": ("-",), "K": ("-",)}


def _part(pattern: re.Pattern[str], whole: Fits, signs: tuple[str, ...] = ("",)) -> Fits:
    """The test of a register of a video instruction, or a part of one."""

    def test(shape: Shape) -> bool:
        if shape[0] != ".":
            return "" in signs and whole(shape)
        if isinstance(shape, str):
            return False
        _, selector, sign, ptx_type = shape
        return (
            isinstance(selector, str)
            and pattern.fullmatch(selector) is not None
            and sign in signs
            and ptx_type is not None
            and not (sign and ptx_type == "f16x2")
            and whole(ptx_type)
        )

    return test


def _typed(letter: str, ptx_type: str) -> Fits:
    if letter == "d" or letter == "r":
        return _of(registers_of(ptx_type))
    if letter == "D" or letter == "R":
        return _of(wider_registers_of(ptx_type))
    if letter == "a":
        negated = _NEGATED if ptx_type == "pred" else frozenset[Shape]()
        return _or_constant(ptx_type, _of(registers_of(ptx_type), negated))
    if letter == "A":
        return _or_constant(ptx_type, _of(wider_registers_of(ptx_type)))
    raise ValueError(f"{letter!r} is no kind of operand")


def _wide(ptx_type: str) -> str:
    return f"{ptx_type[0]}{2 * int(ptx_type[1:])}"


@lru_cache(maxsize=4096)
def fits(spec: str, operands: Operands) -> Fits:
    """The test of one operand, such as `d`, `a2`, `r:b32_`, `{4d:b32}`, `d|q` or `{vD}`."""
    if "|" in spec:
        first, second = (fits(part, operands) for part in spec.split("|"))
        return _pair_of(first, second)
    if "/" in spec:
        tests = [fits(part, operands) for part in spec.split("/")]
        return lambda shape: any(test(shape) for test in tests)
    if spec[0] == "=":
        return _value_of(spec[1:])
    if spec == "_":
        return lambda shape: shape == "_"
    if spec[0] == "{":
        return _vector(spec[1:-1], operands)
    if spec[0] == "*":  # a vector of the instruction's width, of which one element may stand alone
        vector = fits(f"{{v{spec[1:]}}}", operands)
        if operands.width > 1:
            return vector
        scalar = fits(spec[1:].rstrip("_"), operands)
        return lambda shape: scalar(shape) or vector(shape)
    match = SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"{spec!r} is no kind of operand")
    if spec in _PACKED:
        return _part(_PACKED[spec], fits("N", operands))
    return _fits_letter(match, operands)


def _fits_letter(match: re.Match[str], operands: Operands) -> Fits:
    """The test of an operand that a letter names, with its number, type or sink."""
    letter = match["letter"]
    if letter in _PARTS:
        whole = fits({"V": "N", "E": "d"}.get(letter, f"a{match['number']}"), operands)
        return _part(_PARTS[letter], whole, _SIGNS.get(letter, ("",)))
    if letter == "S":  # a conversion narrows it
        is_wide = operands.types[1][1:] == "64"
        specials = ("%u64", "%u64h") if is_wide else ("%u32", "%u32h", "%u64", "%u64h")
        return lambda shape: shape in specials
    if letter == "s":
        return _special(operands.types[int(match["number"] or 1) - 1])
    if letter == "y":
        return _symbol(match["type"] or "", operands)
    if letter == "Y":
        spaces = _OF_SYMBOLS.get(
            operands.space.partition("::")[0], (operands.space.partition("::")[0],)
        )
        return lambda shape: shape[0] in ("&", "&+") and shape[1] in spaces
    if letter == "M":  # of an object in shared memory
        return _address_in(operands.space or match["type"] or "object")
    if letter == "m":
        return _address_in(operands.space if match["type"] is None else match["type"])
    one = _UNTYPED.get(letter)
    if one is None:
        one = _typed(letter, type_of(match, operands.types))
    if not match["sink"]:
        return one
    return lambda shape: shape == "_" or one(shape)


def _value_of(spec: str) -> Fits:
    """The test of a constant: `128`, `0..15`, or with a factor `0..2048%32`."""
    bounds, _, factor = spec.partition("%")
    first, _, last = bounds.partition("..")
    values = range(int(first), int(last or first) + 1, int(factor or 1))

    def test(shape: Shape) -> bool:
        return (
            isinstance(shape, str)
            and shape[0] == "#"
            and shape[1:2] != "f"
            and (int(shape[1:]) in values)
        )

    return test


def _special(ptx_type: str) -> Fits:
    """The test of a special register that is moved as a type."""
    if ptx_type[1:] == "16":
        return lambda shape: shape == "%u32h"
    if ptx_type[1:] == "32":
        return lambda shape: shape in ("%u32", "%u32h", "%u64h")
    return lambda shape: shape in ("%u64", "%u64h")


def _symbol(space: str, operands: Operands) -> Fits:
    """The test of a name whose address is taken: in a space, or one that the type has room for."""
    spaces = {space} if space else _ADDRESSABLE
    if operands.types[0][1:] == "32" and not space:
        # Without an offset, ptxas takes the address of global memory as one of 32 bits.
        return lambda shape: shape[0] == "&+" or (shape[0] == "&" and shape[1] in _SMALL)
    return lambda shape: shape[0] in ("&", "&+") and shape[1] in spaces


def type_of(match: re.Match[str], types: tuple[str, ...]) -> str:
    """The type of an operand, of its kind's match with `SPEC`."""
    written = match["type"]
    of_number = types[int(match["number"] or 1) - 1] if types else ""
    if written is None:
        return of_number
    return _wide(of_number) if written == "W" else written


def _pair_of(first: Fits, second: Fits) -> Fits:
    def test(shape: Shape) -> bool:
        if isinstance(shape, str) or shape[0] != "|":
            return False
        _, a, b = shape
        return a is not None and b is not None and first(a) and second(b)

    return test


# Elements of a vector may be integers where a register that stands alone may not.
_INTEGERS_FOR: Final = {"f16": ("u16", "s16"), "f32": ("u32", "s32"), "f64": ("u64", "s64")}


def _vector(spec: str, operands: Operands) -> Fits:
    match = SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"{spec!r} is no kind of element")
    one = fits(spec[len(match["count"]) :], operands)
    count = operands.width if match["count"] == "v" else int(match["count"])
    ptx_type = type_of(match, operands.types)
    integers = _INTEGERS_FOR.get(ptx_type, ()) if match["type"] is None else ()

    def test(shape: Shape) -> bool:
        if isinstance(shape, str) or shape[0] != "{" or len(shape) != count + 1:
            return False
        merged = _merged(shape[1:])
        is_sink = match["sink"] or "_" not in shape[1:]
        return merged is not None and bool(is_sink) and (merged in integers or one(merged))

    return test


def _merged(elements: tuple[Shape | None, ...]) -> Shape | None:
    """The type of a vector expression, None if its elements do not go together.

    ptxas compares each element with the one before it.
    """
    merged: str | None = None
    before: str | None = None
    for element in elements:
        if not isinstance(element, str) or (element[0] != "#" and element not in _ELEMENTS):
            return None
        if element != "_":
            if before is not None and _merged_pair(before, element) is None:
                return None
            merged = element if merged is None else _merged_pair(merged, element)
            before = element
    return merged


_ELEMENTS: Final = TYPE_BYTES.keys() | {"_"}


def _merged_pair(first: str, second: str) -> str | None:
    """The type of two elements: bits go together with all of their size."""
    if first[0] == "#" or second[0] == "#":
        constant, other = (first, second) if first[0] == "#" else (second, first)
        if other == "f16x2":
            return None
        number = "f" if constant[1:2] == "f" else "s"
        kind = other[1:2] if other[0] == "#" else other[0]
        return other if kind == "b" or (kind == "f") == (number == "f") else None
    if first == second:
        return first
    if TYPE_BYTES[first] != TYPE_BYTES[second]:
        return None
    if "b" in (first[0], second[0]) or {first[0], second[0]} == {"u", "s"}:
        return f"b{8 * TYPE_BYTES[first]}"
    return None
