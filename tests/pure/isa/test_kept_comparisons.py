"""Comparisons of a kernel that a variable decides which launches keep."""

from __future__ import annotations

from typing import Final

import pytest

from ptx.isa.kept_comparisons import kept_comparisons
from ptx.isa.module import parse

HEAD: Final = """
.version 8.0
.target sm_90
.address_size 64
.global .u32 calls;
.global .u32 other;
.func (.param .b32 out) twice(.param .b32 in)
{
    .reg .b32 %a;
    ld.param.b32 %a, [in];
    add.u32 %a, %a, %a;
    st.param.b32 [out], %a;
    ret;
}
.visible .entry k(.param .u32 n, .param .u64 x)
{
    .shared .b32 s;
    .reg .pred %p; .reg .b32 %a, %b, %c, %n; .reg .b64 %x;
    ld.param.u32 %n, [n]; ld.param.u64 %x, [x];
    setp.eq.u32 %p, %n, 7;
"""
WAYS: Final = {
    "load": "ld.global.u32 %a, [calls];",
    "atomic": "atom.global.add.u32 %a, [calls], 1;",
    "calculation": "ld.global.u32 %b, [calls]; mul.lo.u32 %c, %b, 3; xor.b32 %a, %c, %n;",
    "shared memory": "ld.global.u32 %b, [calls]; st.shared.u32 [s], %b; ld.shared.u32 %a, [s];",
    "global memory": "ld.global.u32 %b, [calls]; st.global.u32 [%x], %b; ld.global.u32 %a, [%x];",
    "shuffle": "ld.global.u32 %b, [calls]; shfl.sync.idx.b32 %a, %b, 0, 31, -1;",
    "function": "ld.global.u32 %b, [calls]; { .param .b32 in; .param .b32 out;"
    " st.param.b32 [in], %b; call (out), twice, (in); ld.param.b32 %a, [out]; }",
}


def lines(body: str) -> list[tuple[int, tuple[str, ...]]]:
    text = f"{HEAD}{body}\nsetp.gt.u32 %p, %a, 1000;\nret;\n}}\n"
    found = kept_comparisons(parse(text), "k", {"calls"})
    after = HEAD.count("\n") + 2
    return [(each.instruction.line - after, each.variables) for each in found]


@pytest.mark.parametrize("way", WAYS)
def test_a_comparison_is_found_behind_memory_functions_and_shuffles(way: str) -> None:
    assert lines(WAYS[way]) == [(0, ("calls",))]


def test_a_comparison_of_two_values_of_a_variable_is_found() -> None:
    body = "ld.global.u32 %b, [calls]; add.u32 %a, %b, 300; setp.lt.u32 %p, %b, %a;"
    assert lines(body) == [(-1, ("calls",)), (0, ("calls",))]


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 %a, [other];",
        "ld.global.u32 %a, [%x];",
        "mov.u32 %a, %n;",
        "ld.global.u32 %b, [calls]; st.global.u32 [other], %n; ld.global.u32 %a, [other];",
    ],
)
def test_other_comparisons_are_left_out(body: str) -> None:
    assert lines(body) == []
