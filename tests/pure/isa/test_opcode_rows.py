"""The rows of opcodes: a row that lacks something, or has it twice, fails and names its opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import operation
from ptx.isa.instruction_facts import opcodes
from ptx.isa.opcodes.opcode_row import Chapter, OpcodeRowError, read_rows
from ptx.isa.opcodes.opcode_table import CHAPTERS, ROWS

NOT_EXECUTED = {"alloca", "clusterlaunchcontrol", "stackrestore", "stacksave"}
FIELDS = 5


def row_texts() -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of each row with the name that an error has for it."""
    for chapter in CHAPTERS:
        for text in chapter.rows.split("\nopcode ")[1:]:
            lines = text.strip("\n").split("\n")
            yield lines[0].split()[0], lines


def error_of(lines: list[str]) -> OpcodeRowError | None:
    rows = "\nopcode " + "\n".join(lines) + "\n"
    try:
        read_rows([Chapter(rows, {})])
    except OpcodeRowError as error:
        return error
    return None


def wrong_ones(change: Callable[[list[str]], Iterator[list[str]]]) -> tuple[int, list[str]]:
    """Count the changed rows, and list those that raise nothing, or name another opcode."""
    count, wrong = 0, []
    for opcode, lines in row_texts():
        for changed in change(lines):
            count += 1
            error = error_of(changed)
            if error is None or error.opcode != opcode or opcode not in str(error):
                wrong.append(f"{changed}: {error}")
    return count, wrong


def _without_a_field(lines: list[str]) -> Iterator[list[str]]:
    fields = lines[0].split("|")
    for at in range(1, FIELDS):
        yield ["|".join((*fields[:at], *fields[at + 1 :])), *lines[1:]]
        yield ["|".join((*fields[:at], " ", *fields[at + 1 :])), *lines[1:]]


def _with_a_doubled_field(lines: list[str]) -> Iterator[list[str]]:
    fields = lines[0].split("|")
    for at in range(1, FIELDS):
        yield ["|".join((*fields[:at], fields[at], *fields[at:])), *lines[1:]]


def _with_a_doubled_line(lines: list[str]) -> Iterator[list[str]]:
    for line in lines[1:]:
        yield [*lines, line]
        if line.startswith("needs "):
            yield [*lines, f"{line.partition('|')[0]}| sm_999 99.9"]


def _without_forms(lines: list[str]) -> Iterator[list[str]]:
    if lines[0].split(" | ")[1] != "-":
        yield [lines[0], *(line for line in lines[1:] if line.startswith("needs "))]


def _without_needs(lines: list[str]) -> Iterator[list[str]]:
    head = " | ".join((*lines[0].split(" | ")[:-1], "-"))
    yield [head, *(line for line in lines[1:] if not line.startswith("needs "))]


def _twice(lines: list[str]) -> Iterator[list[str]]:
    yield [*lines, "", f"opcode {lines[0]}", *lines[1:]]


@pytest.mark.parametrize(
    "change",
    [
        _without_a_field,
        _with_a_doubled_field,
        _with_a_doubled_line,
        _without_forms,
        _without_needs,
        _twice,
    ],
)
def test_a_row_with_a_missing_or_a_doubled_part_fails_and_names_its_opcode(
    change: Callable[[list[str]], Iterator[list[str]]],
) -> None:
    count, wrong = wrong_ones(change)
    assert count >= len(list(row_texts())) - len(NOT_EXECUTED)
    assert wrong == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("frob | bit", "it has no file of its operations; write - for none"),
        ("frob | bit | integer | - |", "it has no needs; write - for none"),
        ("frob | bit | integer | - | -\nfrob | | b32 | d a", "it has no needs"),
        ("frob | bit | integer | - | sm_20 2.0", "it has no forms, and no reason for none"),
        ("frob | bit | integer | - | sm_20 2.0 | x", "it has a field too many: x"),
        ("frob | bit | integer | - | sm_20 2.0\nneeds | sm_30 3.0", "no forms"),
        (
            "frob | bit | integer | - | sm_20 2.0\nfrob | | b32 | d a\nneeds | sm_30 3.0",
            "it has twice: needs",
        ),
        (
            "frob | bit | integer | - | sm_20 2.0\nfrob | | b32 | d a\nunchecked why",
            "it has twice: forms or unchecked",
        ),
    ],
)
def test_an_error_names_the_part(row: str, reason: str) -> None:
    error = error_of(row.split("\n"))
    assert error is not None
    assert error.opcode == "frob"
    assert str(error).startswith("opcode frob: ")
    assert reason in str(error)


def test_only_branches_are_executed_without_an_operation() -> None:
    assert {each.opcode for each in ROWS.values() if not each.operations} == {"bra", *NOT_EXECUTED}


def test_opcodes_that_the_emulator_does_not_execute_have_no_facts() -> None:
    assert ROWS.keys() - opcodes() == NOT_EXECUTED


def test_every_row_has_forms_of_its_own_or_a_reason_for_none() -> None:
    absent = {
        opcode
        for opcode, row in ROWS.items()
        if not any(
            head.partition(".")[0] == opcode
            for line in row.forms()
            for head in line.partition("|")[0].split()
        )
    }
    assert absent == NOT_EXECUTED | {row.opcode for row in ROWS.values() if row.unchecked}


def test_a_form_of_a_row_is_of_its_opcodes() -> None:
    heads = {
        (opcode, head.partition(".")[0])
        for opcode, lines in row_texts()
        for line in lines[1:]
        if not line.startswith(("needs ", "forms ", "unchecked "))
        for head in line.partition("|")[0].split()
    }
    shared = {lines[0].partition("|")[0].strip() for _, lines in row_texts()}
    groups = {name: group.split() for group in shared for name in group.split()}
    assert {(opcode, head) for opcode, head in heads if head not in groups[opcode]} == set()


def test_an_operation_or_lane_code_whose_opcode_has_no_row_for_it_is_rejected() -> None:
    with pytest.raises(OpcodeRowError, match=r"^opcode unheard: ") as without_row:
        operation("unheard.of", ("u32",), 2, lambda e, i: None, section="this test")
    with pytest.raises(OpcodeRowError, match=r"^opcode bra: ") as without_file:
        operation("bra", ("u32",), 2, lambda e, i: None, section="this test")
    with pytest.raises(OpcodeRowError, match=r"^opcode dp4a: ") as without_lane:
        lane_operation("dp4a", ("u32.u32",), lambda e, i: None)
    errors = [without_row.value, without_file.value, without_lane.value]
    assert [error.opcode for error in errors] == ["unheard", "bra", "dp4a"]
