"""The row of an opcode, and how it is written.

    opcode bfe | bit | integer | lane_arithmetic | sm_20 2.0
    bfe | | u32 u64 s32 s64 | d a N/=0..255 N/=0..255

The first line has five fields, each of which is `-` where there is none:

1. `opcode` and its name, or the names of opcodes whose rows are the same.
2. Its kind, by the values of `InstructionKind`, and those of its facts that no modifier changes,
   by the names of `InstructionFacts`. `warp=warp barrier` is another kind, for the first modifier `warp`.
   `-`: PTX has the opcode, and the emulator does not execute it.
3. The files of `ptx.emulate.ops` that have its operations. `warp:warp` is the file `warp`, for
   instructions with the modifier `warp` alone. `-`: the basic blocks' builder executes it.
4. The file of `ptx.emulate.ops` with its code for a single thread.
5. The target and the PTX version that each of its instructions needs.

Further lines, of which there may be none:

- `needs xorsign | sm_86 7.2`: what instructions with these modifiers need as well. "a/b" is one of
  the two, "a.b" one after the other, "!a" excludes one, and "L2::*" is any with that prefix. All lines that apply must hold. `ptx.emulate.requirements.needs` has the notation of
  targets. "4:P" among the modifiers is with a fourth operand of the kind `P`, and "4:" with any.
  The source is the "PTX ISA Notes" and "Target ISA Notes" of each instruction in the PTX
  ISA 9.0; tests/emulator/engine/requirements compares them with the assembler.
- `forms NAME`: a function of the chapter makes forms, in the notation of the next lines.
- `unchecked WHY`: instead of forms, for operands that are checked elsewhere.
- Anything else is one of its forms; `ptx.isa.forms.grammar` has the notation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

RECENT: Final = "sm_100f sm_110f sm_120f"
"""The needs of features that only architecture- or family-specific Blackwell targets have."""
_FIELDS: Final = ("name", "kind", "file of its operations", "file of its lane code", "needs")


class OpcodeRowError(ValueError):
    """A row lacks something, or has it twice, or other tables do not agree with it.

    Attributes:
        opcode: the opcode of the row.
    """

    def __init__(self, opcode: str, reason: str) -> None:
        self.opcode = opcode
        super().__init__(f"opcode {opcode}: {reason}")


class Chapter(NamedTuple):
    """The rows of a file, and by name the functions that make the forms of opcodes with many."""

    rows: str
    forms: Mapping[str, Callable[[], Iterable[str]]]


class OpcodeRow(NamedTuple):
    """The row of one opcode, as it is written.

    Attributes:
        opcode: its name.
        kind: the value of its kind; "" if the emulator does not execute it.
        other_kinds: the values of other kinds, by the first modifier.
        facts: the names of the facts that hold for all of its instructions.
        operations: the files of `ptx.emulate.ops` with its operations, each with the modifier that
            an instruction must have for it, or "".
        lane: the file with its code for a single thread, or "".
        needs: pairs of modifiers and the needs of instructions with them.
        unchecked: why it has no forms, or "".
        written_forms: the lines of its forms, and those that name a function.
        chapter: has these functions.
    """

    opcode: str
    kind: str
    other_kinds: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]
    operations: tuple[tuple[str, str], ...]
    lane: str
    needs: tuple[tuple[str, str], ...]
    unchecked: str
    written_forms: tuple[str, ...]
    chapter: Chapter

    def forms(self) -> Iterator[str]:
        """Yield the lines of its forms, some of which are for other opcodes, too."""
        for line in self.written_forms:
            kind, _, name = line.partition(" ")
            if kind == "forms":
                yield from self.chapter.forms[name]()
            else:
                yield line


def read_rows(chapters: Iterable[Chapter]) -> dict[str, OpcodeRow]:
    """Return the rows by opcode.

    Raises:
        OpcodeRowError: a row lacks a field or has one twice, or an opcode has two rows.
    """
    rows: dict[str, OpcodeRow] = {}
    for chapter in chapters:
        for text in chapter.rows.split("\nopcode ")[1:]:
            for row in _rows(text, chapter):
                if row.opcode in rows:
                    raise OpcodeRowError(row.opcode, "it has two rows")
                rows[row.opcode] = row
    return rows


def _rows(text: str, chapter: Chapter) -> Iterator[OpcodeRow]:
    """Yield a row for each name in the first line of the text."""
    head, *lines = text.strip("\n").split("\n")
    names, kind, operations, lane, target = _fields(head)
    opcode = names.split()[0]
    kind, *facts = kind.split(", ")
    needs = [("", target)] if target else []
    unchecked: list[str] = []
    forms: list[str] = []
    for line in lines:
        if line[:6] == "needs ":
            words, _, needed = line[6:].partition("|")
            needs.append((words.strip(), needed.strip()))
        elif line[:10] == "unchecked ":
            unchecked.append(line[10:])
        else:
            forms.append(line)
    if not needs:
        raise OpcodeRowError(opcode, "it has no needs")
    if kind and not forms and not unchecked:
        raise OpcodeRowError(opcode, "it has no forms, and no reason for none")
    if bool(forms) + len(unchecked) > 1:
        raise OpcodeRowError(opcode, "it has twice: forms or unchecked")
    parts = [*forms, *facts, *[f"needs {words}" for words, _ in needs]]
    if len(set(parts)) < len(parts):
        twice = next(part for part in parts if parts.count(part) > 1)
        raise OpcodeRowError(opcode, f"it has twice: {twice.strip()}")
    for name in names.split():
        yield OpcodeRow(
            opcode=name,
            kind=kind,
            other_kinds=tuple([_other_kind(fact) for fact in facts if "=" in fact]),
            facts=tuple([fact for fact in facts if "=" not in fact]),
            operations=tuple([_file(each) for each in operations.split()]),
            lane=lane,
            needs=tuple(needs),
            unchecked="".join(unchecked),
            written_forms=tuple(forms),
            chapter=chapter,
        )


def _fields(head: str) -> list[str]:
    """Return the fields of a row's first line, "" for `-`."""
    fields = [field.strip() for field in head.split("|")]
    opcode = fields[0].partition(" ")[0]
    fields += [""] * (len(_FIELDS) - len(fields))
    if "" in fields:
        raise OpcodeRowError(opcode, f"it has no {_FIELDS[fields.index('')]}; write - for none")
    if len(fields) > len(_FIELDS):
        raise OpcodeRowError(opcode, f"it has a field too many: {fields[-1]}")
    return ["" if field == "-" else field for field in fields]


def _other_kind(fact: str) -> tuple[str, str]:
    """Return the modifier and the kind of `warp=warp barrier`."""
    modifier, _, kind = fact.partition("=")
    return modifier, kind


def _file(word: str) -> tuple[str, str]:
    """Return the file, and the modifier of `modifier:file`; "" where there is none."""
    modifier, _, file = word.rpartition(":")
    return file, modifier
