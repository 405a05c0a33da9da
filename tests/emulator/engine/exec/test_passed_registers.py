"""Calls that pass registers and constants, and variables that functions declare, by value."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.isa.errors import PtxSyntaxError
from ptx.isa.forms.check import check_forms
from ptx.isa.module import parse
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

FUNCTIONS = """
.func (.reg .u32 b) plus(.reg .u32 a, .reg .u32 n) { add.u32 b, a, n; ret; }
.func (.reg .f32 b) half(.reg .f32 a) { mul.f32 b, a, 0f3F000000; }
.func (.param .u32 b) twice(.param .u32 a)
{ .reg .u32 t; ld.param.u32 t, [a]; add.u32 t, t, t; st.param.u32 [b], t; ret; }
.func (.reg .u32 b) early(.reg .u32 a)
{
  .reg .pred p; .reg .u32 c; mov.u32 b, 7; setp.lt.u32 p, a, 3; @p ret;
  call (c), plus, (a, 100); mov.u32 b, c; ret;
}
.func (.reg .u32 b) down(.reg .u32 n)
{
  .reg .pred p; .reg .u32 m; mov.u32 b, 0; setp.eq.u32 p, n, 0; @p ret;
  sub.u32 m, n, 1; call (b), down, (m); add.u32 b, b, n; ret;
}
.func (.reg .u32 b) counted()
{ .global .u32 count = 40; .const .u32 step[2] = {1, 2}; .reg .u32 s;
  ld.const.u32 s, [step+4]; atom.global.add.u32 b, [count], s; ret; }
.func (.reg .u32 b) other()
{ .global .u32 count = 9; ld.global.u32 b, [count]; ret; }
"""
REGISTERS = ".reg .u32 %i, %o; .reg .u64 %a; .reg .f32 %f; .reg .pred %p; .reg .v4 .u32 %v;\n"


def values_of(body: str, threads: int = 5, before: str = FUNCTIONS) -> list[int]:
    """What each thread leaves in %o; %i is its number."""
    store = "mad.wide.u32 %a, %i, 4, %a; st.global.u32 [%a], %o; ret;"
    first = f"{REGISTERS} ld.param.u64 %a, [out]; mov.u32 %i, %tid.x; mov.u32 %o, 0;\n"
    runner = KernelRunner(ptx_text(f"{first}{body}\n{store}", ".param .u64 out", before))
    address = runner.put(np.zeros(threads, np.uint32))
    runner.launch("k", 1, threads, address)
    return [int(value) for value in runner.get(address, threads, np.uint32)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("call (%o), plus, (%i, 10);", [10, 11, 12, 13, 14]),
        ("call.uni (%o), plus, (%i, %i);", [0, 2, 4, 6, 8]),
        ("call (_), plus, (%i, 10);", [0, 0, 0, 0, 0]),
        ("setp.gt.u32 %p, %i, 2; @%p call (%o), plus, (%i, 1+2);", [0, 0, 0, 6, 7]),
        ("cvt.rn.f32.u32 %f, %i; call (%f), half, (%f); cvt.rni.u32.f32 %o, %f;", [0, 0, 1, 2, 2]),
        ("call (%f), half, (9.0); mov.b32 %o, %f;", [0x40900000] * 5),
        ("call (%o), twice, (%i);", [0, 2, 4, 6, 8]),
        ("{ .param .u32 q; call (q), plus, (%i, 1); ld.param.u32 %o, [q]; }", [1, 2, 3, 4, 5]),
        ("call (%o), early, (%i);", [7, 7, 7, 103, 104]),
        ("call (%o), down, (%i);", [0, 1, 3, 6, 10]),
        (
            "P: .callprototype (.reg .u32 _) _ (.reg .u32 _, .reg .u32 _); .reg .u64 %c;"
            " mov.u64 %c, plus; call (%o), %c, (%i, 5), P;",
            [5, 6, 7, 8, 9],
        ),
        (
            "T: .calltargets plus; .reg .u64 %c; mov.u64 %c, plus; call (%o), %c, (%i, 5), T;",
            [5, 6, 7, 8, 9],
        ),
    ],
)
def test_registers_and_constants_are_passed(body: str, expected: list[int]) -> None:
    assert values_of(body) == expected


STRUCTURE = """
.func (.param .u32 b) second(.param .align 8 .b8 s[8])
{ .reg .b64 d; .reg .u32 t; mov.b64 d, s; ld.local.u32 t, [d+4]; st.param.u32 [b], t; ret; }
.func (.param .u32 b) third(.param .align 8 .b8 s[8])
{ .reg .b64 d; .reg .u32 t; cvta.param.u64 d, s; ld.u32 t, [d+4]; st.param.u32 [b], t; ret; }
.func (.param .u32 b) fourth(.param .align 8 .b8 s[8])
{ .reg .b64 d; .reg .u32 t; mov.b64 d, s; ld.param.u32 t, [d+4];
  mov.b64 d, b; st.param.u32 [d], t; ret; }
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["second", "third", "fourth"])
def test_the_address_of_a_parameter_of_a_function_is_one_of_local_memory(
    name: str, threads: int
) -> None:
    passed = ".param .align 8 .b8 q[8]; st.param.u32 [q], 1; st.param.u32 [q+4], %i;"
    body = f"{{ {passed} call (%o), {name}, (q); }}"
    assert values_of(body, threads, STRUCTURE) == list(range(threads))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (".const .u32 c = 5; ld.const.u32 %o, [c];", 5),
        (".const .u32 c[3] = {5, 6, 7}; ld.const.u32 %o, [c+8];", 7),
        (".global .u32 c = 5; { .global .u32 c = 6; ld.global.u32 %o, [c]; }", 6),
        (".global .u32 c = 5; { .global .u32 c = 6; } ld.global.u32 %o, [c];", 5),
        (
            ".global .u32 c = 5; .global .u64 d = c; .reg .u64 %t; ld.global.u64 %t, [d];"
            " ld.global.u32 %o, [%t];",
            5,
        ),
        ("call (%o), counted, (); call (%o), counted, ();", 42),
        ("call (%o), other, ();", 9),
        (".global .u64 d = plus; .reg .u64 %t; ld.global.u64 %t, [d]; P: .callprototype"
         " (.reg .u32 _) _ (.reg .u32 _, .reg .u32 _); call (%o), %t, (3, 4), P;", 7),
    ],
)  # fmt: skip
def test_variables_of_functions_exist_once(body: str, expected: int) -> None:
    assert values_of(body, threads=1) == [expected]


def test_a_variable_of_a_function_hides_that_of_the_module() -> None:
    before = ".global .u32 c = 1; .shared .u32 s;"
    body = ".global .u32 c = 2; .const .u32 s = 30; ld.global.u32 %o, [c]; ld.const.u32 %i, [s];"
    assert values_of(f"{{ {body} add.u32 %o, %o, %i; mov.u32 %i, 0; }}", 1, before) == [32]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mov.u32 %v.x, %i; add.u32 %o, %v.r, 1;", 1),
        ("mov.u32 %v.g, 7; mov.u32 %o, %v.y;", 7),
        ("mov.u32 %v.b, 8; mov.u32 %v.a, 9; sub.u32 %o, %v.w, %v.z;", 1),
        ("mov.u32 %v .r, 3; mov.u32 %o, %v.x;", 3),
        ("mov.u32 %o, %ntid.r;", 1),
        ("mov.u32 %o, %ntid .g; mov.u32 %i, %ctaid.a;", 1),
    ],
)
def test_elements_have_the_names_of_colours_too(body: str, expected: int) -> None:
    assert values_of(body, threads=1) == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mov.v4.u32 %v, {1, 2, 3, %i}; mov.u32 %o, %v.z;", [3, 3]),
        ("mov.v4.u32 %v, {1, 2, 3, %i}; mov.v4.u32 {%o, _, _, _}, %v;", [1, 1]),
        ("mov.v4.u32 %v, {1, 2, 3, %i}; add.u32 %o, %v.x, %v.w;", [1, 2]),
        ("mov.u32 %n, 9; mov.v2.u32 {%n, %o}, {%i, %n};", [9, 9]),
        ("mov.v2.f32 {%f, _}, {0f40000000, 0f3F800000}; mov.b32 %o, %f;", [0x40000000] * 2),
        ("mov.v2.u64 {%a, _}, {%a, 5};", [0, 0]),
        ("mov.v4.u32 %v, %ntid; mov.u32 %o, %v.x;", [2, 2]),
    ],
)
def test_vectors_move_element_by_element(body: str, expected: list[int]) -> None:
    assert values_of(f".reg .u32 %n; {body}", threads=2) == expected
    assert values_of(f".reg .u32 %n; {body}", threads=1) == expected[:1] or "%ntid" in body


TABLE = "T: .branchtargets L0, L1;"
BRANCHES = "brx.idx %i, T; {} L0: mov.u32 %o, 1; ret; L1: mov.u32 %o, 2;"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("call (%o), plus, (%i);", "the call has 1 arguments, and its target has 2"),
        ("call plus, (%i, %i);", "the call has 0 results"),
        ("call (%o), plus, (%i, %a);", "does not fit n, .u32"),
        ("call (%f), plus, (%i, 1);", "does not fit b, .u32"),
        ("call (%o), plus, (%i, _);", "does not fit n"),
        ("call (%o), plus, (%i, %v.x);", "does not fit n"),
        ("call (%o), plus, (%i, 1.5);", "does not fit n"),
        ("call (%f), half, (5);", "does not fit a, .f32"),
        ("{ .param .f32 q; call (%o), twice, (q); }", "does not fit a"),
        ("{ .param .b8 q[4]; call (%o), twice, (q); }", "does not fit a"),
        ("{ .local .u32 q; call (%o), twice, (q); }", "does not fit a"),
        (
            "call (%o), %a, (%i), P; P: .callprototype (.reg .u32 _) _ (.reg .u32 _);",
            "P is not declared before",
        ),
        ("T: .calltargets nowhere; call (%o), %a, (%i), T;", "nowhere is neither a label nor"),
        (BRANCHES.format(TABLE), "T is not declared before"),
        (f"brx.idx 1, T; {TABLE} L0: L1: ret;", "T is not declared before"),
        (f"{TABLE} brx.idx %i, T; L0: ret;", "L1 is neither a label"),
    ],
)
def test_calls_and_branches_that_do_not_fit_are_rejected(body: str, fault: str) -> None:
    with pytest.raises(PtxSyntaxError, match=fault):
        check_forms(parse(ptx_text(REGISTERS + body + " ret;", before=FUNCTIONS)))


@pytest.mark.parametrize(
    ("section", "is_right"),
    [("", False), (".section .debug_str { .b8 1 }\n", True)],
)
def test_the_option_debug_needs_debug_information(section: str, *, is_right: bool) -> None:
    module = parse(f".version 8.7\n.target sm_90, debug\n.visible .entry k() {{ ret; }}\n{section}")
    if is_right:
        check_forms(module)
    else:
        with pytest.raises(PtxSyntaxError, match="line 2.*no section has debug information"):
            check_forms(module)
