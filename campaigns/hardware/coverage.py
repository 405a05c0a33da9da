"""The operations of the emulator that were compared with a GPU.

`python -m campaigns.hardware.coverage --write` writes the rows, and the lists of the page.

`opcodes.txt` has a row for each record of the emulator's table. A row has the name, the types that
some stored result of a GPU has, and the types that are not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

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
_TEXTURES: Final = DATA.parents[1] / "engine" / "data" / "textures.npz"
"""Texture and surface instructions with the results of an H100."""
_NEWEST_PTX: Final = (99, 0)
_BARE: Final = re.compile(r"(?<![\w.])(?:exit|ret|pmevent)(?=[ ;])")
"""Instructions that are one word."""
_FETCH: Final = re.compile(r"\b(?:istypep|suld|suq|sured|sust|tex|tld4|txq)\.[\w.]+")
Operation = tuple[str, str]
"""The name of a record, and a type suffix of it."""
NOT_PTX: Final = "No PTX has it: the emulator's table has all pairs of types of the opcode."
REASONS: Final = {
    r"multimem\..*": "NVLink must multicast memory to several GPUs, and none could be had.",
    r"trap|brkpt": "It ends the kernel, which then has no results.",
    r"prefetch\.const\.tensormap|fence\.proxy\.async::generic": "It changes no value.",
    r"mov\.v[24]\..*": "Programs of GCC with it were compared with the processor.",
    r"cvta\.u32": "Targets from `sm_90` on have no 32-bit addresses.",
    r"cvt\.b?f16\.[us]8|cvt\.[us]8\.b?f16|set\.f(16|32)\.b?f16": NOT_PTX,
    r"tensormap\.replace\..*\.b(32|64)": NOT_PTX,
    r"(sured|tex|tld4)\..*": "Other types or operations of the opcode were compared, with an H100.",
}
"""Why an operation of `sm_90` has no result, by a pattern of its name with its types."""


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
    words |= _texture_words()
    known = all_operations()
    return frozenset(found for word in words for found in _operation(word, known))


def _texture_words() -> frozenset[str]:
    """Return the instructions of textures and surfaces that a GPU executed."""
    with np.load(_TEXTURES) as file:
        cases = json.loads(file["index"].tobytes())["cases"]
    return frozenset(word for case in cases for word in _FETCH.findall(case["form"]))


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
    """Return the lists of docs/hardware.md.

    Raises:
        KeyError: an operation without a result has no reason.
    """
    measured, absent = stored_rows()
    newer = frozenset(each for each in absent if needs_newer(each))
    share = f"{len(measured):,} of {len(measured) + len(absent):,}"
    return (
        f"\nOf the emulator's operations (an opcode with the modifiers and types that select it), "
        f"{share} were compared. These need a newer architecture than `sm_90`, and no such GPU was "
        f"at hand:\n\n{_list(newer)}\nThese have no result either:\n\n"
        f"| opcode | operations | reason |\n|---|---|---|\n{_reasons(absent - newer)}\n"
    )


def _reasons(chosen: Iterable[Operation]) -> str:
    """Return a row for each opcode and reason."""
    total = Counter(_group(each) for each in all_operations())
    absent = Counter((_group(each), reason_of(each)) for each in chosen)
    return "".join(
        f"| `{group}` | {count} of {total[group]} | {reason} |\n"
        for (group, reason), count in sorted(absent.items())
    )


def reason_of(operation: Operation) -> str:
    """Return why an operation of `sm_90` has no result of a GPU.

    Raises:
        KeyError: no reason is known.
    """
    word = ".".join(filter(None, operation))
    for pattern, reason in REASONS.items():
        if re.fullmatch(pattern, word):
            return reason
    raise KeyError(f"measure {word}, or add why it was not to REASONS")


def _list(chosen: Iterable[Operation]) -> str:
    total = Counter(_group(each) for each in all_operations())
    count = Counter(_group(each) for each in chosen)
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
