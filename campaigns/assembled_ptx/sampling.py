"""Instructions made of the table of forms: its modifiers and types, and operands of its kinds."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from ptx.isa.forms.grammar import Form
from ptx.isa.forms.operand_kinds import (
    SPEC,
    Operands,
    constants_of,
    registers_of,
    type_of,
    wider_registers_of,
)
from ptx.isa.forms.table import form_table

REGISTERS: Final = (
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "b128",
    "f16", "f16x2", "f32", "f64", "pred",
)  # fmt: skip
# By the letter of a kind without a type.
_SIMPLE: Final = {
    "p": ("%pred_1", "!%pred_2", "1"), "P": ("%pred_1", "!%pred_2"), "q": ("%pred_3",),
    "i": ("0", "1", "5", "0x3F"), "n": ("%u32_1", "%b32_2", "%s32_1", "3"),
    "N": ("%u32_1", "%b32_2", "%s32_1"), "h": ("%u64_1", "%b64_2", "7"),
    "H": ("%u64_1", "%b64_2"), "X": ("%is_explicit_cluster",), "x": ("%tid", "%ctaid"),
    "l": ("L",), "t": ("T",), "S": ("%laneid", "%tid.x", "%clock64"),
    "s": ("%laneid", "%tid.x", "%clock64", "%tid"),
    "y": ("gmem", "mem", "lmem", "cmem", "parameter", "gmem+4"), "G": ("%u32_1", "-%s32_2", "5"),
    "K": ("-%s32_2", "-%u32_1"), "k": ("-%b32_2", "-%u32_1.h1"),
}  # fmt: skip
_SIMPLE_Y: Final = {"": "gmem", "shared": "mem", "local": "lmem", "const": "cmem", "global": "gmem"}
_PLACES: Final = {
    "": ("[gmem]", "[%b64_1]", "[%u64_1+8]", "[mem]", "[lmem]"),
    "global": ("[gmem]", "[%b64_1]", "[gmem+8]"), "shared": ("[mem]", "[%b32_1]", "[%u64_1]"),
    "local": ("[lmem]", "[%b32_1]"), "const": ("[cmem]",), "none": ("[%b64_1]",),
    **dict.fromkeys(("param", "argument"), ("[parameter]", "[argument]")),
    "generic": ("[gmem]", "[mem]"),
    "source": ("[gmem]", "[%b64_1]"), "policy": ("[gmem]", "[mem]", "[%b64_1]"),
    "bulk": ("[gmem]", "[%b64_1]", "[%u32_1]"),
    "multimem": ("[gmem]", "[%b64_1]"), "matrix": ("[mem]", "[%u64_1]"),
    "word": ("[gmem]", "[%u32_1]"), "globalword": ("[gmem]", "[%u32_1]"),
    "sharedword": ("[mem]", "[%u32_1]"), "object": ("[mem]", "[%u64_1]"),
}  # fmt: skip
_CONSTANTS: Final = {
    "#": ("5", "-1", "0x10", "WARP_SZ*2", "1<<3"),
    "#f32": ("0f3F800000",),
    "#f64": ("1.5", "0d3FF0000000000000"),
}


_TRIES: Final = 10
# Operands that only some forms take: sinks, narrow addresses, and those of other state spaces.
_UNUSUAL: Final = re.compile(r"^[{]?_|_[|]|[|]_|^mem$|lmem|gmem[+]|\[%[usb](?:8|16)_")


def _words_of(form: Form) -> list[str]:
    return sorted(frozenset[str]().union(*form.required, *form.optional))


def spellings_of(form: Form) -> Iterator[tuple[str, ...]]:
    """The modifiers with each type, and with each word of each group."""
    required, types = [min(group) for group in form.required], sorted(form.types)
    for each in types:
        yield (*form.words, *required, *each)
    for group in form.optional:
        for word in sorted(group):
            yield (*form.words, *required, word, *types[0])
    for place, group in enumerate(form.required):
        for word in sorted(group):
            yield (*form.words, *required[:place], word, *required[place + 1 :], *types[0])


class Sampler:
    """Makes instructions from one source of chance."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._table = form_table()
        self._opcodes = sorted(self._table.opcodes)
        forms = [form for opcode in self._opcodes for form in self._table.forms(opcode)]
        self._types = sorted({kind for form in forms for types in form.types for kind in types})
        self._words = sorted({word for form in forms for word in _words_of(form)})

    def instruction(self) -> tuple[list[str], list[str]] | None:
        """An instruction's word in parts, and its operands; None if they are not in the table."""
        source = self._source
        opcode = source.choice(self._opcodes)
        form = source.choice(self._table.forms(opcode))
        words = [source.choice(sorted(group)) for group in form.required]
        words += [source.choice(sorted(g)) for g in form.optional if source.random() < 0.4]
        types = source.choice(sorted(form.types))
        modifiers = (*form.words, *words, *types)
        operands = form.match(modifiers)
        if operands is None:
            return None
        pattern = source.choice(form.patterns)
        if pattern[-1:] == ("...",):
            return None
        return [opcode, *modifiers], [self._operand(spec, operands) for spec in pattern]

    def with_modifiers(self, opcode: str, form: Form, modifiers: tuple[str, ...]) -> Iterator[str]:
        """Instructions of a form with these modifiers, for each alternative of its operands."""
        operands = form.match(modifiers)
        if operands is None:
            return
        for pattern in form.patterns:
            kinds = [spec.split("/") if spec[0] not in "{*" else [spec] for spec in pattern]
            for number in range(max(map(len, kinds), default=1)):
                chosen = [each[number % len(each)] for each in kinds]
                if "..." not in chosen:
                    made = [self._usual_operand(spec, operands) for spec in chosen]
                    yield f"{'.'.join((opcode, *modifiers))} {', '.join(made)}".rstrip() + ";"

    def _usual_operand(self, spec: str, operands: Operands) -> str:
        made = self._operand(spec, operands)
        for _ in range(_TRIES):
            if _UNUSUAL.search(made) is None:
                break
            made = self._operand(spec, operands)
        return made

    def neighbour(self) -> tuple[list[str], list[str]] | None:
        """The same with other modifiers and types, and operands that would be right for them.

        It finds forms that the table lacks.
        """
        source = self._source
        opcode = source.choice(self._opcodes)
        forms = self._table.forms(opcode)
        form = source.choice(forms)
        words = [source.choice(sorted(g)) for g in form.required if source.random() < 0.95]
        words += [source.choice(sorted(g)) for g in form.optional if source.random() < 0.3]
        if source.random() < 0.4:
            vocabulary = _words_of(source.choice(forms)) if source.random() < 0.8 else self._words
            words.insert(source.randint(0, len(words)), source.choice(vocabulary or self._words))
        types = list(source.choice(sorted(form.types)))
        if source.random() < 0.3:
            types = list(source.choice(sorted(source.choice(forms).types)))
        if types and source.random() < 0.5:
            types[source.randrange(len(types))] = source.choice(self._types)
        width = max((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), default=1)
        space = next((word for word in words if word.partition("::")[0] in _SIMPLE_Y), "")
        pattern = source.choice(source.choice(forms).patterns)
        if pattern[-1:] == ("...",):
            return None
        operands = Operands(tuple(types), width, space)
        try:
            made = [self._operand(spec, operands) for spec in pattern]
        except (IndexError, KeyError, ValueError):  # no such operand of these types
            return None
        return [opcode, *form.words, *words, *types], made

    def _operand(self, spec: str, operands: Operands) -> str:
        """An operand of a kind."""
        source = self._source
        if "|" in spec:
            return "|".join(self._operand(each, operands) for each in spec.split("|"))
        if spec[0] == "{":
            return self._vector(spec[1:-1], operands)
        if spec[0] == "*":
            of_one = spec[1:]
            return self._operand(f"{{v{of_one}}}" if operands.width > 1 else of_one, operands)
        if "/" in spec:
            return self._operand(source.choice(spec.split("/")), operands)
        if spec[0] == "=":
            return self._number(spec[1:])
        match = SPEC.fullmatch(spec)
        if spec == "_" or match is None or (match["sink"] and source.random() < 0.3):
            return "_"
        letter, kind = match["letter"], match["type"]
        if letter in "mM":
            space = (operands.space if kind is None or letter == "M" else kind).partition("::")[0]
            space = space or (kind or "object" if letter == "M" else space)
            return source.choice(_PLACES[space])
        if letter in "yY":
            return _SIMPLE_Y.get(kind or operands.space.partition("::")[0], "mem")
        if spec in ("f2", "F2"):
            return "%u32_1" + source.choice(("", ".h10", ".h1"))
        if spec in ("f4", "F4"):
            return "%u32_1" + source.choice(("", ".b3210", ".b10", ".b7777"))
        if letter in "egEV":
            parts = source.choice(("", ".b0", ".h1", ".b3"))
            return source.choice(("%u32_1", "%b32_2", "%s32_3")) + parts
        if letter in _SIMPLE:
            return source.choice(_SIMPLE[letter])
        ptx_type = type_of(match, operands.types)
        constants = sorted(constants_of(ptx_type))
        if letter in "aA" and constants and source.random() < 0.25:
            return source.choice(_CONSTANTS[source.choice(constants)])
        may_be = wider_registers_of if letter in "DR" else registers_of
        return f"%{source.choice(sorted(may_be(ptx_type)))}_{source.randrange(5)}"

    def _vector(self, spec: str, operands: Operands) -> str:
        match = SPEC.fullmatch(spec)
        if match is None:
            raise ValueError(f"{spec!r} is no kind of element")
        count = operands.width if match["count"] == "v" else int(match["count"])
        of_one = spec[len(match["count"]) :]
        first = self._operand(of_one, operands)
        if self._source.random() < 0.8:  # registers of one type
            name = first.rpartition("_")[0]
            same = first if name == "" or first[0] != "%" else f"{name}_2"
            return "{" + ", ".join((first, *[same] * (count - 1))) + "}"
        return "{" + ", ".join(self._operand(of_one, operands) for _ in range(count)) + "}"

    def _number(self, spec: str) -> str:
        bounds, _, factor = spec.partition("%")
        first, _, last = bounds.partition("..")
        low, high, step = int(first), int(last or first), int(factor or 1)
        return str(self._source.choice((low, high, low + step * ((high - low) // step // 2))))
