"""The table of forms: its lines as values, and the lines that an instruction matches.

A line is `opcodes | modifiers | types | operands`.

- An opcode may have words that stand directly behind it: `mul.lo`, `cvta.to`.
- Of modifiers `a/b` one must be there, of `[a/b]` one may; all may stand in any order, also among
  the types, as NVIDIA's assembler takes them.
- Types are alternatives, each with dots between several: `f32.s32`. `-` is none.
- Operands are kinds (`ptx.isa.forms.operand_kinds`); ` ; ` stands between alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ptx.isa.forms.operand_kinds import Operands, Shape, fits
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.opcodes.opcode_row import OpcodeRow

_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_SPACES: Final = frozenset(
    {
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "local",
        "const",
        "param",
        "param::entry",
        "param::func",
    }
)
_LAYOUTS: Final = frozenset({"row", "col"})  # of A and of B, in this order
_COUNTS_BITS: Final = "popc"  # of the operation before it


@dataclass(frozen=True, slots=True)
class Form:
    """One line for one opcode.

    Attributes:
        words: the opcode's own, after it.
        required, optional: groups of modifiers, of each of which one must or may be there.
        types: the sequences of types.
        patterns: the kinds of operands, by alternative.
    """

    words: tuple[str, ...]
    required: tuple[frozenset[str], ...]
    optional: tuple[frozenset[str], ...]
    types: frozenset[tuple[str, ...]]
    patterns: tuple[tuple[str, ...], ...]

    def match(self, modifiers: tuple[str, ...]) -> Operands | None:
        """What the operands of these modifiers depend on; None if they are not of this form."""
        if modifiers[: len(self.words)] != self.words:
            return None
        types: list[str] = []
        missing, allowed = list(self.required), list(self.optional)
        width, space = 1, ""
        for word in modifiers[len(self.words) :]:
            group = next((each for each in missing if word in each), None)
            if word == _COUNTS_BITS and any("and" in each for each in missing):
                return None
            if group is not None:
                if group <= _LAYOUTS and group is not next(g for g in missing if g <= _LAYOUTS):
                    return None
                missing.remove(group)
            else:
                group = next((each for each in allowed if word in each), None)
                if group is None:
                    types.append(word)
                    continue
                allowed.remove(group)
            width = _VECTORS.get(word, width)
            space = word if word in _SPACES else space
        if missing or tuple(types) not in self.types:
            return None
        if width > 1 and types and self._is_too_long(width, types[0], space):
            return None
        return Operands(tuple(types), width, space)

    def _is_too_long(self, width: int, ptx_type: str, space: str) -> bool:
        """Whether a vector has over 16 bytes, or over 32 of global memory."""
        size = TYPE_BYTES.get(ptx_type, 1)
        groups = (*self.required, *self.optional)
        is_wide = any("v8" in group or group == {"v4"} for group in groups)
        return width * size > (32 if is_wide and size <= 8 and space in ("", "global") else 16)


def _form(words: tuple[str, ...], line: str) -> Form:
    """The form of a line without its opcodes."""
    modifiers, types, operands = (part.strip() for part in line.split("|", 2))
    groups = modifiers.split()
    return Form(
        words,
        tuple(frozenset(g.split("/")) for g in groups if g[0] != "["),
        tuple(frozenset(g[1:-1].split("/")) for g in groups if g[0] == "["),
        frozenset(() if each == "-" else tuple(each.split(".")) for each in types.split()),
        tuple(tuple(each.split()) for each in operands.split(" ; ")),
    )


def _has_constant_result(shapes: tuple[Shape, ...]) -> bool:
    """Return whether the first operand is a vector with a number, where a register must be."""
    first = shapes[0] if shapes else ""
    return first[0:1] == ("{",) and any(isinstance(e, str) and e[0] == "#" for e in first[1:])


class FormTable:
    """The forms of each opcode, read from their lines when the opcode is first used.

    Attributes:
        opcodes: those that have forms here.
    """

    def __init__(self, rows: Iterable[OpcodeRow]) -> None:
        self._rows = {row.opcode: row for row in rows}
        self.opcodes: frozenset[str] = frozenset(self._rows)

    @lru_cache(maxsize=512)  # noqa: B019  # one table, which lives as long as the process
    def _lines_of(self, opcode: str) -> tuple[tuple[tuple[str, ...], str], ...]:
        """The words after the opcode, and the rest of the line, for each form."""
        lines: list[tuple[tuple[str, ...], str]] = []
        for line in self._rows[opcode].forms():
            heads, _, rest = line.partition("|")
            for head in heads.split():
                name, *words = head.split(".")
                if name == opcode:
                    lines.append((tuple(words), rest))
        return tuple(lines)

    @lru_cache(maxsize=512)  # noqa: B019  # as above
    def forms(self, opcode: str) -> tuple[Form, ...]:
        """The forms of an opcode."""
        return tuple(_form(words, line) for words, line in self._lines_of(opcode))

    @lru_cache(maxsize=512)  # noqa: B019  # as above
    def has_values(self, opcode: str) -> bool:
        """Return whether an opcode has operands that are certain numbers."""
        return any("=" in line.rpartition("|")[2] for _, line in self._lines_of(opcode))

    @lru_cache(maxsize=512)  # noqa: B019  # as above
    def _by_types(self, opcode: str) -> dict[tuple[str, ...], list[Form]]:
        found: dict[tuple[str, ...], list[Form]] = {}
        for form in self.forms(opcode):
            for types in form.types:
                found.setdefault(types, []).append(form)
        return found

    @lru_cache(maxsize=512)  # noqa: B019  # as above
    def types(self, opcode: str) -> frozenset[str]:
        """The words that are types in some form of an opcode."""
        return frozenset(word for types in self._by_types(opcode) for word in types)

    @lru_cache(maxsize=512)  # noqa: B019  # as above
    def modifiers(self, opcode: str) -> frozenset[str]:
        """The words that are modifiers in some form of an opcode; state spaces may be types, too."""
        return frozenset().union(
            *(group for form in self.forms(opcode) for group in (*form.required, *form.optional))
        )

    def _candidates(self, opcode: str, modifiers: tuple[str, ...]) -> Iterable[Form]:
        """The forms that may have these modifiers: those of their types, where types are clear."""
        names = self.types(opcode)
        types = tuple([word for word in modifiers if word in names])
        if not self.modifiers(opcode).isdisjoint(types):
            return self.forms(opcode)
        return self._by_types(opcode).get(types, ())

    @lru_cache(maxsize=4096)  # noqa: B019  # as above
    def matching(
        self, opcode: str, modifiers: tuple[str, ...]
    ) -> tuple[tuple[Form, Operands], ...]:
        """The forms with these modifiers. An opcode with more words of its own is another one."""
        found = [
            (form, operands)
            for form in self._candidates(opcode, modifiers)
            if (operands := form.match(modifiers)) is not None
        ]
        most = max((len(form.words) for form, _ in found), default=0)
        return tuple(each for each in found if len(each[0].words) == most)

    @lru_cache(maxsize=8192)  # noqa: B019  # as above
    def fault(self, opcode: str, modifiers: tuple[str, ...], shapes: tuple[Shape, ...]) -> str:
        """Why an instruction is none of PTX, "" if it is one."""
        candidates = self.matching(opcode, modifiers)
        if not candidates:
            return "PTX has no such combination of modifiers and types"
        if _has_constant_result(shapes):
            return "operand 1 has a number, and must have registers"
        best = -1
        for form, operands in candidates:
            for pattern in form.patterns:
                if pattern[-1:] == ("...",):
                    return ""
                if len(pattern) != len(shapes):
                    continue
                pairs = zip(pattern, shapes, strict=True)
                wrong = next(
                    (
                        at
                        for at, (spec, shape) in enumerate(pairs)
                        if not fits(spec, operands)(shape)
                    ),
                    None,
                )
                if wrong is None:
                    return ""
                best = max(best, wrong)
        if best < 0:
            return f"it does not take {len(shapes)} operands"
        return f"operand {best + 1} has a wrong kind or type"
