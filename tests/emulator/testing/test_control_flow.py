"""Places for inserted instructions: beside an instruction, and outside of its branches."""

from __future__ import annotations

from ptx.emulate.codegen.analysis.control_flow import ControlFlow, InsertionPoint
from ptx.isa.model import Instruction
from ptx.isa.module import parse

NESTED = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $OUTER;
    setp.eq.s32 %p2, %r1, 1;
    @%p2 bra $INNER;
    mov.u32 %r2, 7;
$INNER:
    mov.u32 %r3, 8;
$OUTER:
    ret;
}
"""
LOOP = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
$LOOP:
    setp.eq.s32 %p1, %r1, 4;
    @%p1 bra $NEXT;
    mov.u32 %r2, 7;
$NEXT:
    sub.s32 %r1, %r1, 1;
    setp.ne.s32 %p2, %r1, 0;
    @%p2 bra $LOOP;
    ret;
}
"""


def lines_of(text: str) -> dict[str, int]:
    """The line of each instruction, by its text."""
    return {line.strip(): number for number, line in enumerate(text.split("\n"), 1)}


def flow_of(text: str) -> ControlFlow:
    return ControlFlow("k", parse(text).body("k"))


def branch_lines(points: list[InsertionPoint]) -> list[int | None]:
    return [None if each.branch is None else each.branch.line for each in points]


def test_places_after_an_instruction_are_where_its_branches_end() -> None:
    at = lines_of(NESTED)
    points = list(flow_of(NESTED).after(at["mov.u32 %r2, 7;"]))
    assert [(each.line, each.is_after) for each in points] == [
        (at["mov.u32 %r2, 7;"], True),
        (at["mov.u32 %r3, 8;"], False),
        (at["ret;"], False),
    ]
    assert branch_lines(points) == [None, at["@%p2 bra $INNER;"], at["@%p1 bra $OUTER;"]]


def test_places_before_an_instruction_are_before_its_branches() -> None:
    at = lines_of(NESTED)
    points = list(flow_of(NESTED).before(at["mov.u32 %r2, 7;"]))
    branches = [at["@%p2 bra $INNER;"], at["@%p1 bra $OUTER;"]]
    assert [each.line for each in points] == [at["mov.u32 %r2, 7;"], *branches]
    assert branch_lines(points) == [None, *branches]


def test_an_instruction_outside_of_branches_has_one_place_on_each_side() -> None:
    at, flow = lines_of(NESTED), flow_of(NESTED)
    for line in (at["setp.eq.s32 %p1, %r1, 0;"], at["ld.param.u32 %r1, [n];"]):
        assert list(flow.after(line)) == [InsertionPoint(line, is_after=True)]
        assert list(flow.before(line)) == [InsertionPoint(line, is_after=False)]


def test_the_end_of_a_branch_in_a_loop_is_in_the_loop() -> None:
    at = lines_of(LOOP)
    points = list(flow_of(LOOP).after(at["mov.u32 %r2, 7;"]))
    assert [each.line for each in points] == [at["mov.u32 %r2, 7;"], at["sub.s32 %r1, %r1, 1;"]]
    assert isinstance(points[1].branch, Instruction)


def test_a_branch_has_places_too() -> None:
    line = lines_of(NESTED)["@%p2 bra $INNER;"]
    assert next(flow_of(NESTED).after(line)) == InsertionPoint(line, is_after=True)
