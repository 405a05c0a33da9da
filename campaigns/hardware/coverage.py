"""The operations of the emulator that were compared with a GPU.

`python -m campaigns.hardware.coverage --write` writes the rows, and the lists of the page.

`opcodes.txt` has a row for each record of the emulator's table: its name, the types that some
stored result of a GPU has, and the types that none has, which are not measured.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ptx.emulate.codegen.table import in_table_order, operations
from ptx.emulate.requirements.check import instruction_needs
from ptx.emulate.requirements.needs import architecture_of, are_met
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction
from ptx.isa.module import PtxModule
from tests.emulator.differential.recording import DATA, Recording

from .stored import FORMS, KERNELS, PROGRAMS, Measured

ROWS: Final = Path(__file__).with_name("opcodes.txt")
PAGE: Final = Path(__file__).parents[2] / "docs" / "hardware.md"
BEGIN, END = "<!-- opcodes: begin -->\n", "<!-- opcodes: end -->\n"
_HEAD: Final = "# name | types compared with a GPU | types not measured; - is no type\n"
_MEASURED_TARGET: Final = "sm_90a"
_TEXTURES: Final = ("istypep", "suld", "suq", "sured", "sust", "tex", "tld4", "txq")
_NEWEST_PTX: Final = (99, 0)
_BARE: Final = re.compile(r"(?<![\w.])(?:exit|ret|pmevent)(?=[ ;])")
"""Instructions that are one word."""
Operation = tuple[str, str]
"""The name of a record, and a type suffix of it."""


def all_operations() -> frozenset[Operation]:
    """Return every operation of the emulator's table, without those that tests add."""
    return frozenset(
        (record.name, suffix)
        for record in operations()
        if record.emit.__module__.startswith("ptx.")
        for suffix in record.types
    )


def measured_operations() -> frozenset[Operation]:
    """Return the operations in the PTX of which a GPU's results are stored."""
    files = (FORMS, KERNELS, PROGRAMS)
    texts = [case.ptx for file in files for case in Measured.load(file).cases]
    texts += [Recording.load(path).ptx for path in sorted(DATA.glob("*.json.xz"))]
    words = frozenset[str]().union(*(PtxModule(text).instruction_words for text in texts))
    words |= frozenset(word for text in texts for word in _BARE.findall(text))
    known = all_operations()
    return frozenset(found for word in words for found in _operation(word, known))


def _operation(word: str, known: frozenset[Operation]) -> Iterator[Operation]:
    """Yield the operation that executes an instruction, if the table has it."""
    opcode, *modifiers = word.split(".")
    ordered = in_table_order(Instruction(opcode, tuple(modifiers), (), None, 0, None)).modifiers
    facts = facts_of(opcode, ordered)
    for length in range(len(facts.words), -1, -1):
        found = ".".join((opcode, *facts.words[:length])), facts.type_suffix
        if found in known:
            yield found
            return


def rows(measured: frozenset[Operation]) -> str:
    """Return the text of the rows."""
    by_name: dict[str, tuple[list[str], list[str]]] = {}
    for name, suffix in sorted(all_operations()):
        kinds = by_name.setdefault(name, ([], []))
        kinds[(name, suffix) not in measured].append(suffix or "-")
    return _HEAD + "".join(
        f"{name} | {' '.join(compared)} | {' '.join(absent)}".rstrip() + "\n"
        for name, (compared, absent) in by_name.items()
    )


def stored_rows() -> tuple[frozenset[Operation], frozenset[Operation]]:
    """Return the operations of the file: those that are measured, and the others."""
    found: tuple[set[Operation], set[Operation]] = set(), set()
    for line in ROWS.read_text().splitlines()[1:]:
        name, *kinds = (part.strip() for part in line.split("|"))
        for operations_, types in zip(found, kinds, strict=True):
            operations_ |= {(name, "" if each == "-" else each) for each in types.split()}
    return frozenset(found[0]), frozenset(found[1])


def needs_newer(operation: Operation) -> bool:
    """Return whether an operation needs a newer architecture than the measured GPU."""
    target = architecture_of(_MEASURED_TARGET)
    assert target is not None, "it is a target"
    word = ".".join(filter(None, operation))
    return not all(are_met(needs, target, _NEWEST_PTX) for needs in instruction_needs(word))


def page_lists() -> str:
    """Return the lists of docs/hardware.md."""
    measured, absent = stored_rows()
    newer = frozenset(each for each in absent if needs_newer(each))
    share = f"{len(measured):,} of {len(measured) + len(absent):,}"
    return (
        f"\nOf the emulator's operations (an opcode with the modifiers and types that select it), "
        f"{share} were compared. These need a newer architecture than `sm_90`, and were never "
        f"compared:\n\n{_list(newer)}\nNo stored result has these either:\n\n"
        f"{_list(_without_textures(absent - newer))}\n"
    )


def _without_textures(chosen: frozenset[Operation]) -> frozenset[Operation]:
    """Return the operations but those of textures and surfaces, which have other results."""
    return frozenset(each for each in chosen if each[0].partition(".")[0] not in _TEXTURES)


def _list(chosen: Iterable[Operation]) -> str:
    total: dict[str, int] = {}
    for operation in all_operations():
        total[_group(operation)] = total.get(_group(operation), 0) + 1
    count: dict[str, int] = {}
    for operation in chosen:
        count[_group(operation)] = count.get(_group(operation), 0) + 1
    return "".join(
        f"- `{group}`: {'all' if number == total[group] else f'{number} of'} {total[group]}\n"
        for group, number in sorted(count.items())
    )


def _group(operation: Operation) -> str:
    """Return the opcode, with its second word where it has two."""
    opcode, *modifiers = operation[0].split(".")
    return ".".join((opcode, *modifiers[:1])) if facts_of(opcode, ()).has_two_words else opcode


def page(text: str) -> str:
    """Return the text of the page with its lists as they should be."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{page_lists()}{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the rows and the lists of the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write both files")
    if parser.parse_args().write:
        ROWS.write_text(rows(measured_operations()))
        PAGE.write_text(page(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
