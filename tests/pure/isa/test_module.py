"""Module-level directives, function bodies, scopes and errors of the PTX parser."""

import contextlib
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

import ptx
from ptx.isa import PtxSyntaxError, parse, signatures_of
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Linkage,
    Pair,
    Register,
    Space,
    Symbol,
    SymbolValue,
    Vector,
)
from ptx.signature import KernelSignature
from tests.rows import all_rows
from tests.short_cases import few

HEADER = ".version 8.0\n.target sm_90, debug\n.address_size 64\n"


def entry(body: str, params: str = "") -> str:
    return f"{HEADER}.visible .entry k({params})\n{{\n{body}\n}}\n"


def instructions(body: str) -> list[Instruction]:
    found = parse(entry(body)).body("k").statements
    return [each for each in found if isinstance(each, Instruction)]


def test_header_gives_version_and_target_without_options() -> None:
    module = parse(entry("ret;"))
    assert (module.version, module.target, module.address_size) == ("8.0", "sm_90", 64)


def test_bodies_are_parsed_only_when_requested() -> None:
    module = parse(entry("ret;") + ".func broken() { this is ? no statement; }\n")
    assert len(module.body("k").statements) == 1
    with pytest.raises(PtxSyntaxError):
        module.body("broken")


def test_variables_carry_space_alignment_count_and_initialiser() -> None:
    module = parse(
        HEADER
        + ".func f();\n.const .align 4 .b8 tab[8] = {0, 0, 128, 63};\n"
        + ".visible .global .align 8 .u64 where[2] = {generic(tab)+4, f};\n"
        + ".extern .shared .align 16 .b8 raw[];\n"
        + ".global .f32 x = 0f3F800000;\n"
        + ".global .u8 low[2] = {0xFF(tab), 0xFF00(tab)};\n"
    )
    tab, where, raw, x, low = module.variables.values()
    assert (tab.space, tab.align, tab.nbytes, tab.initialiser) == (
        Space.CONST,
        4,
        8,
        (0, 0, 128, 63),
    )
    assert where.initialiser == (SymbolValue("tab", 4, True), SymbolValue("f", 0, False))
    assert (raw.linkage, raw.nbytes, raw.align) == (Linkage.EXTERN, 0, 16)
    assert x.initialiser == (FloatImmediate(0x3F800000, 32),)
    assert low.initialiser[1] == SymbolValue("tab", 0, False, 0xFF00)


def test_nested_scopes_hide_registers_and_labels() -> None:
    body = """.reg .b32 %r<2>; .reg .pred p;
    { .reg .b32 t; mov.u32 t, 5; { .reg .b32 t; mov.u32 t, 6; } mov.u32 %r0, t; @!p bra L; L: }
    { L: bra L; }"""
    statements = instructions(body)
    outer, inner = (each.operands[0] for each in statements[:2])
    assert isinstance(outer, Register)
    assert isinstance(inner, Register)
    assert outer.name != inner.name
    assert statements[2].operands[1] == outer
    first, second = statements[3].operands[0], statements[4].operands[0]
    assert isinstance(first, Symbol)
    assert first != second
    assert statements[3].guard is not None
    assert statements[3].guard.negated


def test_operands_of_each_form() -> None:
    body = """.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<3>;
    ld.global.v2.b32 {%r1, %r2}, [%rd1+-8];
    shfl.sync.bfly.b32 %r3|%p1, %r1, 1, 0x1f, -1;
    st.shared.b32 [name+4], 0f3F800000;
    mov.b64 %rd2, name;
    ld.b32 %r1, [16];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];"""
    load, shuffle, store, move, absolute, bulk = instructions(body)
    assert isinstance(load.operands[0], Vector)
    assert load.operands[1] == Address(Register("%rd1", "b64"), -8)
    assert isinstance(shuffle.operands[0], Pair)
    assert shuffle.operands[3:] == (Immediate(31), Immediate(-1))
    assert store.operands == (Address(Symbol("name"), 4), FloatImmediate(0x3F800000, 32))
    assert move.operands[1] == Symbol("name")
    assert absolute.operands[1] == Address(None, 16)
    assert bulk.modifiers[2] == "shared::cluster"


def test_lines_and_source_locations_follow_the_text() -> None:
    body = "\t.loc 1 7 3\n\tbar.sync 0;\n.loc 1 9 1, function_name $L__x+4, inlined_at 1 7 3\nret;"
    barrier, ret = instructions("// a comment { with a brace\n" + body)
    assert (barrier.line, ret.line) == (8, 10)
    assert barrier.location is not None
    assert (barrier.location.line, barrier.text) == (7, "bar.sync")
    assert ret.location is not None
    assert ret.location.line == 9


def test_a_location_has_the_place_where_its_code_was_inlined() -> None:
    body = """.loc 1 7 3
    .loc 2 40 1, function_name $L__a, inlined_at 1 7 3
    .loc 3 5 2, function_name $L__b, inlined_at 2 40 1
    bar.sync 0;
    .loc 1 9 3
    .loc 2 40 1, function_name $L__a, inlined_at 1 9 3
    .loc 3 5 2, function_name $L__b, inlined_at 2 40 1
    bar.sync 0;"""
    for barrier, line in zip(instructions(body), (7, 9), strict=True):
        chain, each = [], barrier.location
        while each is not None:
            chain.append((each.file, each.line))
            each = each.caller
        assert chain == [(3, 5), (2, 40), (1, line)]


def test_branch_tables_and_prototypes_are_stored_by_label() -> None:
    body = """.reg .b32 %r<2>; .reg .b64 %rd<2>;
    ts: .branchtargets A, B;
    pr : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 16 .b8 _[48]);
    brx.idx %r1, ts;
    A: B: ret;"""
    parsed = parse(entry(body)).body("k")
    assert parsed.tables == {"ts": ("A", "B")}
    assert [param.nbytes for param in parsed.prototypes["pr"].params] == [4, 48]


def test_debug_sections_are_passed_over() -> None:
    text = entry("ret;") + '\t.section .debug_str\n\t{\n.b8 0 // {\n\t}\n.file 1 "/a//b{.cu"\n'
    module = parse(text)
    assert module.files == {1: "/a//b{.cu"}


@pytest.mark.parametrize(
    "name",
    ["mean.cu", "ü/日本.cu", "a {name}.cu", "back\\slash.cu", "it's // no comment.cu"],
)
def test_the_name_of_a_file_is_the_one_that_nvrtc_was_given(name: str) -> None:
    options = ptx.CompileOptions(target=ptx.Target.parse("compute_80"), lineinfo=True)
    source = 'extern "C" __global__ void k(int* x) { *x = 7 / x[1]; }'
    text = ptx.compile(source, options, name=name, cache=False).ptx
    assert text is not None
    module = parse(text)
    assert module.files[1].endswith(f"/{name}")
    assert module.body("k").statements


@pytest.mark.parametrize(
    "written", [r"a\nb.cu", r"a\033[1mb.cu", r"a\342\200\256b.cu", r"a\377.cu", r"a\303.cu", "a\\"]
)
def test_the_name_of_a_file_that_no_terminal_shows_stays_as_it_is_written(written: str) -> None:
    assert parse(f'{HEADER}.file 1 "{written}"').files.get(1, written) == written


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (entry(".reg .b32 %r1; .reg .b64 %rd1; ld.global.b32 %r1, [%rd1]"), 7, 1),
        (entry("mov.u32 %r1, 1;"), 6, 9),
        (entry("mov.u32 ?, 1;"), 6, 9),
        (entry("L: ret; L: ret;"), 6, 9),
        (entry("@q bra L;"), 6, 2),
        (entry("st.b32 [8], {};"), 6, 14),
        (HEADER + "nonsense\n", 4, 1),
    ],
)
def test_an_error_names_line_and_column_and_shows_a_caret(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text).body("k")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).splitlines()[-1] == "  " + " " * (column - 1) + "^" * (
        len(str(caught.value).splitlines()[-1]) - column - 1
    )


def test_text_without_a_version_is_no_ptx() -> None:
    with pytest.raises(PtxSyntaxError, match="version"):
        parse(".target sm_90\n")


def test_signatures_lay_parameters_out_at_their_alignment() -> None:
    params = (
        ".param .u8 a, .param .u64 .ptr .global .align 1 b, .param .u64 n, "
        ".param .align 16 .b8 s[24], .param .f32 f"
    )
    text = entry(
        ".shared .align 4 .b8 one[10]; .shared .align 8 .b64 two; ld.shared.b32 %r, [two];", params
    ).replace(")\n{", ")\n.reqntid 32, 2\n{")
    signature = signatures_of(text)["k"]
    assert [(p.offset, p.nbytes, p.is_pointer) for p in signature.params] == [
        (0, 1, False), (8, 8, True), (16, 8, None), (32, 24, False), (56, 4, False),
    ]  # fmt: skip
    assert (signature.nbytes, signature.shared_bytes) == (60, 24)
    assert (signature.max_threads, signature.required_block) == (64, (32, 2, 1))
    assert KernelSignature.from_line(signature.to_line()) == signature
    unbound = replace(signature, max_threads=None, required_block=None, params=())
    assert KernelSignature.from_line(unbound.to_line()) == unbound


def test_shared_bytes_count_what_called_functions_use() -> None:
    text = (
        HEADER
        + ".shared .align 4 .b8 used[100];\n.shared .align 4 .b8 unused[100];\n"
        + ".func g() { mov.u32 %r1, used; ret; }\n"
        + ".entry k() { call g; ret; }\n.entry other() { ret; }\n"
    )
    found = signatures_of(text)
    assert (found["k"].shared_bytes, found["other"].shared_bytes) == (100, 0)


def opcodes_of_signatures(count: int) -> int:
    """How many of Python's instructions the signatures of so many kernels take."""
    text = HEADER + ".func g() { .shared .align 4 .b32 own[4]; ret; }\n"
    for number in range(count):
        text += f".shared .align 4 .b8 s{number}[16];\n"
        text += f".entry k{number}() {{ mov.u32 %r1, s{number}; call g; ret; }}\n"
    executed = 0

    def count_one(frame: FrameType, event: str, _: object) -> Any:
        nonlocal executed
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed += event == "opcode"
        return count_one

    outer = sys.gettrace()
    sys.settrace(count_one)
    try:
        found = signatures_of(text)
    finally:
        sys.settrace(outer)
    assert {signature.shared_bytes for signature in found.values()} == {32}
    return executed


@pytest.mark.slow
def test_signatures_take_time_by_the_number_of_kernels_and_not_by_its_square() -> None:
    opcodes_of_signatures(1)
    few, many = opcodes_of_signatures(20), opcodes_of_signatures(80)
    assert many < 4.2 * few


_FEW, _MANY = 2_500, 20_000
_COMMENT = "// a comment of sixty characters, as compilers write them ......\n"


@pytest.mark.parametrize(
    "text",
    few(
        [
            lambda count: HEADER + _COMMENT * count + ".entry k() { ret; }",
            lambda count: HEADER + ".entry k() { ret; }" + _COMMENT * count,
            lambda count: entry(_COMMENT * count + "ret;"),
            lambda count: entry("\n" * count + "ret;"),
            lambda count: entry("/*" + "\n" * count + "*/ ret;"),
            lambda count: entry("ret" + " " * count + ";"),
            lambda count: entry("ret" + " " * count + ":"),
            lambda count: (
                HEADER + ".section .debug_str { .b8 1 }\n" * count + ".entry k() { ret; }"
            ),
            lambda count: entry(".shared \n" * count),
        ],
        3,
    ),
    ids=["before", "behind", "body", "blank", "block", "spaces", "colon", "sections", "unended"],
)
def test_a_text_needs_time_by_its_length_and_not_by_its_square(text: Callable[[int], str]) -> None:
    """Eight times the length takes eight times as long, and by the square 64 times."""
    few = min(_seconds_of(text(_FEW)) for _ in range(5))
    many = min(_seconds_of(text(_MANY)) for _ in range(3))
    assert many < 24 * few


def _seconds_of(text: str) -> float:
    """The processor time of parsing a text of one kernel, or of an error in it."""
    start = time.process_time()
    with contextlib.suppress(PtxSyntaxError):
        module = parse(text)
        assert module.instruction_words == frozenset()
        assert not module.uses("k").shared
        module.body("k")
    return time.process_time() - start


@pytest.mark.parametrize("count", [15, 16, 17, 300])
def test_long_lists_of_integers_are_read_like_short_ones(count: int) -> None:
    numbers = [(-1) ** index * index * 7919 for index in range(count)]
    text = ", ".join(map(str, numbers))
    module = parse(
        HEADER
        + f".const .s32 plain[{count}] = {{{text}}};\n"
        + f".const .s32 nested[2][{count}] = {{{{{text}}},\n {{{text}}}}};\n"
        + f".const .s32 mixed[{count + 5}] = {{{text}, 0x10, 010, 5+3, 7U, 2}};\n"
        + f".const .u8 parts[{count + 2}] = {{{text}, 255(plain), 0xFF00(plain)}};\n"
    )
    plain, nested, mixed, parts = (each.initialiser for each in module.variables.values())
    assert list(plain) == numbers
    assert list(nested) == numbers * 2
    assert list(mixed) == [*numbers, 16, 8, 8, 7, 2]
    assert list(parts) == [
        *numbers,
        SymbolValue("plain", 0, False, 255),
        SymbolValue("plain", 0, False, 0xFF00),
    ]


def test_an_error_after_a_long_list_names_its_place() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(f"{HEADER}.const .u32 x[40] = {{\n{'1, ' * 39}\n oops? }};\n")
    assert (caught.value.line, caught.value.column) == (6, 2)


@all_rows
@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (".global .align 49 .b8 x[4];", ".align 49 is not a power of two"),
        (".shared .align -4 .b8 x[4];", "expected an integer, found '-'"),
        (".entry k(.param .align 3 .b8 x[4]) { ret; }", ".align 3 is not a power of two"),
        (".global .b8 x[-3];", "expected an integer, found '-'"),
        (".global .u32 x[2] = {1, 0f3F800000};", "a 32-bit float does not initialise a .u32"),
        (".const .u32 x = 2.5;", "a 64-bit float does not initialise a .u32"),
        (".global .f32 x = 1;", "an integer does not initialise a .f32"),
        (".global .f64 x[20] = {" + "1, " * 19 + "2};", "an integer does not initialise a .f64"),
        (".global .b8 x[2] = {1, 2, 3};", "3 initial values for 2 elements"),
        (".global .b8 x[20] = {" + "1, " * 20 + "2};", "21 initial values for 20 elements"),
        (".global .b8 x[2][2] = {{1, 2, 3}};", "3 initial values for 2 elements"),
        (".global .b8 x[2][2] = {{1}, {2}, {3}};", "3 initial values for 2 elements"),
        (".global .b8 x[2][2] = {1, 2};", "expected '{', found '1'"),
        (".global .b8 x[2] = {{1}};", "expected a constant, found '{'"),
        (".global .b8 x[2] = 1;", "expected '{', found '1'"),
        (".global .b8 x = {1};", "expected a constant, found '{'"),
        (".global .b8 x[2] = {1, };", "expected a constant, found '}'"),
        (".global .v4 .b8 x = {1, 2, 3};", "3 initial values for a vector of 4"),
        (".global .b8 x[];", "x has no elements"),
        (".global .b8 x[] = {};", "x has no elements"),
        (".shared .b8 x[0];", "x has no elements"),
        (".entry k() { .local .b8 x[0]; ret; }", "x has no elements"),
        (".shared .b8 x = 1;", ".shared variables have no initial value"),
        (".entry k() { .local .b8 x = 1; ret; }", ".local variables have no initial value"),
        (".extern .global .b8 x = 1;", ".extern variables have no initial value"),
        (".global .u64 x = nothing;", "nothing is not declared before"),
        (".global .u64 x = generic(nothing) + 4;", "nothing is not declared before"),
        (".global .u64 x = y; .global .b8 y;", "y is not declared before"),
        (".shared .b8 y; .global .u64 x = y;", "y is a .shared variable"),
        (".global .b8 y; .global .f64 x = y;", "an address does not initialise a .f64"),
        (".global .b8 y; .global .u8 x = y;", "an address does not initialise a .u8"),
        (".param .b8 x;", ".param variables stand in functions only"),
        (".local .b8 x;", ".local variables stand in functions only"),
        (".global .b8 x; .global .b8 x;", "x is declared twice"),
        (".weak .global .b8 x; .visible .const .b8 x;", "x is declared twice"),
        (".extern .global .b8 x; .global .b8 x;", "x is .extern above"),
        (".global .b8 f; .func f() { ret; }", "f is declared twice"),
        (".func f() { ret; } .global .b8 f;", "f is declared twice"),
        (".func f(); .entry f() { ret; }", "f is declared twice"),
        (".func f() { ret; } .func f() { ret; }", "f is defined twice"),
        (".extern .func f() { ret; }", "f is .extern and has a body"),
        (".visible .extern .global .b8 x;", "expected a state space such as .global"),
        (".entry k(.param .b8 p, .param .b8 p) { ret; }", "parameter p is declared twice"),
        (".func (.param .b8 p) f(.param .b8 p) { ret; }", "parameter p is declared twice"),
        (".entry k(.reg .b32 p) { ret; }", "parameter p of a kernel is not a .param"),
        (".entry k(.param .b8 p[]) { ret; }", "parameter p of a kernel has no elements"),
        (".entry k(.param .pred p) { ret; }", "no .param variable has type .pred"),
        (".entry k() .maxntid 0 { ret; }", ".maxntid takes 1 to 3 positive integers"),
        (".entry k() .reqntid 1, 2, 3, 4 { ret; }", "expected a directive or a body, found ','"),
        (".entry k() .maxntid { ret; }", "expected an integer"),
        (".entry k() .maxnreg 0 { ret; }", ".maxnreg takes a positive integer"),
        (".entry k() .maxnreg 4294967296 { ret; }", "a number of .maxnreg has over 32 bits"),
        (".entry k() { .reg .b32 %r<4294967296>; ret; }", "a count of names has over 32 bits"),
        (".local .b32 l<0>;", ".local variables stand in functions only"),
        (".param .b32 p<0>;", ".param variables stand in functions only"),
        (".common .const .b32 x;", ".common variables are .global, and not .const"),
        (".common .const .b32 x<0>;", ".common variables are .global, and not .const"),
        (".common .shared .b32 x<2>;", ".common variables are .global, and not .shared"),
        (".func (.param .b32 r[]) f();", "result r has no extent"),
        (".func (.param .b32 r[0]) f();", "result r has no extent"),
        (".entry k() { P: .callprototype (.param .b32 _[]) _ (); ret; }", "result _ has no extent"),
        (".entry k() { P: .callprototype _ (.param .pred _[2]); ret; }", "an array of predicates"),
        (".entry k(.param .f16x2 p) { ret; }", "parameter p is a single .f16x2"),
        (".func f(.param .f16x2 p) { ret; }", "parameter p is a single .f16x2"),
        (".func f(.param .align 8 .u16 p) { ret; }", "parameter p is a .u16, which no function"),
        (".func (.param .s8 r) f() { ret; }", "parameter r is a .s8, which no function passes"),
        (".func f(.reg .pred p) { ret; }", "parameter p is a .pred, which no function passes"),
        (".func f(.reg .u8 p) { ret; }", "parameter p is a .u8, which no function passes"),
        (".func f(.reg .b32 p[2]) { ret; }", "parameter p is an array of registers"),
        (".func f(.param .b32 p[], .param .b32 q);", "parameter p has no extent, and is not the"),
        (".extern .func f(.reg .b32 p[0]);", "parameter p has no extent, and is not the last"),
        (".entry k() { .param .f16x2 p; ret; }", "p is a single .f16x2"),
        (".global .v4 .b64 x;", "a vector of 4 .b64 has more than 128 bits"),
        ('.pragma "a', "expected a string"),
        (".entry k() .maxntid 32 .reqntid 32 { ret; }", ".maxntid and .reqntid"),
        (".visible .func f(); .alias f, g;", "g is not a function declared before"),
        (".version 8.0", "a second .version"),
        (".address_size 64", "a second .address_size"),
        (".global .b8 x = " + "1" * 5000 + ";", "is not an integer constant of 64 bits"),
        (
            ".global .b8 x[20] = {" + "1, " * 18 + "1" * 5000 + "};",
            "is not an integer constant of 64 bits",
        ),
        (".global .b32 x = " + "-" * 50_000 + "1;", "this nests too deeply"),
        (".global .b32 x = " + "(" * 50_000 + "1" + ")" * 50_000 + ";", "this nests too deeply"),
        (".global .b8 x[1] = " + "{" * 50_000, "expected a constant, found '{'"),
        (".global .b8 x" + "[1]" * 50_000 + " = " + "{" * 50_000, "this nests too deeply"),
        ("/* never closed", "this comment is never closed"),
        ('.file 1 "a', "expected a string"),
    ],
)
def test_a_declaration_that_means_nothing_is_rejected(declaration: str, reason: str) -> None:
    with pytest.raises(PtxSyntaxError, match=re.escape(reason)) as caught:
        parse(HEADER + declaration).body("k")
    assert caught.value.line == 4
    assert all(len(line) <= 100 for line in str(caught.value).splitlines())


@all_rows
@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (".reg .b32 %r; .reg .b32 %r;", "%r is declared twice"),
        (".reg .b32 %r, %r;", "%r is declared twice"),
        (".reg .b32 %r<4>; .reg .f64 %r<4>;", "%r is declared twice"),
        (".reg .b32 %r<4>; .reg .f64 %r3;", "%r3 is declared twice"),
        (".reg .f64 %r3; .reg .b32 %r<4>;", "%r3 is declared twice"),
        (".reg .v2 .b32 v; .reg .b32 v;", "v is declared twice"),
        (".reg .b32 v; .reg .v2 .b32 v;", "v is declared twice"),
        (".reg .b32 x; .local .b32 x;", "x is declared twice"),
        (".shared .b32 x; .reg .b32 x;", "x is declared twice"),
        (".local .b32 x; .shared .b32 x;", "x is declared twice"),
        (".reg .b32 x; x: ret;", "x is a label too"),
        ("x: .local .b32 x;", "x is a label too"),
        (".reg .b32 p;", "p is declared twice"),
        (".local .b32 p;", "p is declared twice"),
        ("p: ret;", "p is a parameter too"),
        (".reg .b32 %r<-1>;", "expected an integer, found '-'"),
    ],
)
def test_a_name_is_declared_once_in_a_scope(declaration: str, reason: str) -> None:
    """As ptxas of CUDA 13.0 has it."""
    with pytest.raises(PtxSyntaxError, match=re.escape(reason)):
        parse(entry(declaration, ".param .b32 p")).body("k")


@pytest.mark.parametrize(
    "declaration",
    [
        ".reg .b32 %r; { .reg .f64 %r; }",
        "{ .reg .f64 %r; } { .reg .b32 %r; }",
        ".reg .b32 %r<20>; .reg .b64 %r1<4>;",
        ".reg .b32 %r<4>; .reg .b32 %r4, %r04;",
        "{ .reg .b32 p; p2: ret; }",
        "L: { L: bra L; }",
        "{ .local .b32 k; .reg .b32 g; }",
    ],
)
def test_a_name_may_be_declared_again_where_it_hides_another(declaration: str) -> None:
    """As ptxas of CUDA 13.0 has it."""
    parse(entry(declaration, ".param .b32 p")).body("k")


def test_declarations_that_a_gpu_accepts_are_read() -> None:
    """As ptxas of CUDA 13.0 and 13.5 has it: a row with few values does not move the next one."""
    module = parse(
        HEADER
        + ".extern .shared .b8 dynamic[];\n.extern .shared .b8 dynamic[];\n"
        + ".extern .global .b8 later[];\n.visible .global .b8 later[4];\n"
        + ".extern .global .b8 later[4];\n"
        + ".func f();\n.func f();\n.func f() { ret; }\n.func g();\n"
        + ".global .b8 rows[2][2] = {{1}, {2}};\n.global .b8 none[2] = {};\n"
        + ".global .b8 some[][2] = {{1}, {2, 3}};\n.global .v2 .b8 vectors[2] = {{1, 2}};\n"
        + ".global .b64 bits[2] = {0f3F800000, 2.5};\n"
        + ".global .u64 to[2] = {generic(later)+4, f};\n"
        + ".global .u8 parts[2] = {0xFF(later), 0xFF00(later)};\n"
        + ".alias g, f;\n.entry k() .maxntid 2048, 2, 1 { ret; }\n"
        + ".common .global .b32 shared<0>;\n"
        + ".func h(.param .f16x2 p[2], .param .b32 q[]) { .param .f16x2 a[2]; ret; }\n"
        + ".extern .func (.param .s8 p) i(.param .b32 p, .reg .u16 q[2], .param .pred q);\n"
        + ".func passed(.param .b16 a, .reg .b8 b, .param .u8 c[3], .reg .f16 d) { ret; }\n"
        + ".entry pairs(.param .f16x2 p[2]) { P: .callprototype _ (.param .f16x2 _); ret; }\n"
    )
    module.body("h")
    module.body("pairs")
    found = {name: (v.count, len(v.initialiser)) for name, v in module.variables.items()}
    assert found == {
        "dynamic": (0, 0), "later": (4, 0), "rows": (4, 2), "none": (2, 0), "some": (4, 3),
        "vectors": (4, 2), "bits": (2, 2), "to": (2, 2), "parts": (2, 2),
    }  # fmt: skip


@pytest.mark.parametrize("version", ["abc", "8", "8.", "8e0", "99999.0", "-8.0", '"8.0"'])
def test_a_version_is_two_numbers(version: str) -> None:
    with pytest.raises(PtxSyntaxError, match="takes a version such as 8.0") as caught:
        parse(f".version {version}\n.target sm_80\n")
    assert (caught.value.line, caught.value.column) == (1, 10)


@pytest.mark.parametrize(
    "target", ["sm_9", "sm_9999", "foo", "compute_8", "sm_80b", "sm_", "80", "debug, sm_80"]
)
def test_a_target_is_an_architecture(target: str) -> None:
    with pytest.raises(PtxSyntaxError, match="takes an architecture such as sm_90") as caught:
        parse(f".version 8.0\n.target {target}\n")
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_an_option_of_a_target_is_one_that_ptx_has() -> None:
    parse(".version 8.0\n.target sm_80, texmode_independent, debug\n")
    with pytest.raises(PtxSyntaxError, match="foo is not an option of .target"):
        parse(".version 8.0\n.target sm_80, foo\n")


def test_text_without_a_target_is_rejected() -> None:
    with pytest.raises(PtxSyntaxError, match=r"no \.target directive"):
        parse(".version 8.0\n.address_size 64\n.entry k() { ret; }")


@pytest.mark.parametrize("size", ["16", "0", "64.0"])
def test_an_address_size_is_one_of_two(size: str) -> None:
    with pytest.raises(PtxSyntaxError, match="takes 32 or 64|expected an integer"):
        parse(f".version 8.0\n.target sm_80\n.address_size {size}\n")


def test_an_error_in_a_long_line_shows_what_is_around_its_place() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(HEADER + "\t" + '.pragma "nounroll";' * 50_000 + "oops" + " " * 1_000_000)
    assert caught.value.column == 950_002
    first, shown, caret = str(caught.value).splitlines()
    assert len(first) <= 100
    assert len(shown) <= 100
    assert shown[caret.index("^") :].startswith("oops")
    assert caret.count("^") == 4


@pytest.mark.parametrize(
    ("declared", "operand", "offset"),
    [
        (".b32 a[16]", "a[0]", 0),
        (".b64 a[16]", "a[3]", 24),
        (".v4 .f32 a[16]", "a[3]", 12),  # as ptxas: the scalar type counts
        (".b16 a[16]", "a[1+2]", 6),
        (".b16 a[16]", "a[-1]", -2),
    ],
)
def test_the_address_of_an_element_is_that_of_its_variable_and_an_offset(
    declared: str, operand: str, offset: int
) -> None:
    for place in (".global", ".shared"):
        text = entry(f".reg .b64 %x; mov.u64 %x, {operand};")
        module = parse(text.replace(".visible", f"{place} {declared};\n.visible"))
        (mov,) = module.body("k").statements
        assert isinstance(mov, Instruction)
        assert mov.operands[1] == Symbol("a", offset)
    (mov,) = instructions(f".reg .b64 %x; .local {declared}; mov.u64 %x, {operand};")
    assert mov.operands[1] == Symbol("a", offset)


@pytest.mark.parametrize(
    "operand", ["absent[0]", "a[%x-1]", "a[", "a[1.5]", "a[0]+4", "k[0]", "one[0]"]
)
@pytest.mark.parametrize("opcode", ["mov.u64", "ld.shared.u64"])
def test_an_element_of_something_else_is_rejected(opcode: str, operand: str) -> None:
    text = f".reg .b64 %x; .shared .b32 a[4], one; {opcode} %x, {operand};"
    with pytest.raises(PtxSyntaxError):
        instructions(text)


@pytest.mark.parametrize("opcode", ["ld.global.u16 %h, a[3];", "st.global.u16 a[3], %h;"])
def test_ld_and_st_access_the_element_of_an_array(opcode: str) -> None:
    # A move of the same element before, whose operand has the same text.
    body = f".reg .b16 %h; .reg .b64 %x; mov.u64 %x, a[3]; {opcode}"
    module = parse(f"{HEADER}.global .u16 a[4];\n.entry k() {{ {body} }}")
    move, access = (each for each in module.body("k").statements if isinstance(each, Instruction))
    assert move.operands[1] == Symbol("a", 6)
    assert Address(Symbol("a"), 6) in access.operands


def test_ld_accesses_the_element_of_a_parameter() -> None:
    body = ".reg .b32 %r; ld.param.u32 %r, p[2];"
    (load,) = (
        each
        for each in parse(entry(body, ".param .u32 p[4]")).body("k").statements
        if isinstance(each, Instruction)
    )
    assert load.operands[1] == Address(Symbol("p"), 8)
    with pytest.raises(PtxSyntaxError, match="p is no array"):
        parse(entry(body, ".param .u32 p")).body("k")


LATER = ".func f() { ret; }\n.global .u32 g;\n.shared .u32 s;\n"


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("call f;", "f"),
        ("mov.u64 %x, f;", "f"),
        ("mov.u64 %x, g;", "g"),
        ("mov.u64 %x, g+4;", "g"),
        ("ld.global.u32 %r, [g];", "g"),
        ("ld.shared.u32 %r, [s+0];", "s"),
        ("{ .local .u32 g; } st.global.u32 [g], %r;", "g"),
        ("T: .calltargets f; call %x, (), T;", "f"),
    ],
)
def test_a_name_that_is_declared_after_the_function_is_rejected(use: str, name: str) -> None:
    body = f".reg .b64 %x; .reg .b32 %r;\n{use}"
    with pytest.raises(PtxSyntaxError, match=rf"{name} is not declared before") as caught:
        parse(entry(body) + LATER).body("k")
    assert caught.value.line == 7
    assert parse(entry(body).replace(".visible", f"{LATER}.visible")).body("k").statements


@pytest.mark.parametrize(
    "body",
    [
        "bra f; f: ret;",
        ".reg .b32 g; mov.u32 g, 1;",
        ".reg .b32 %r; .local .u32 g; ld.local.u32 %r, [g];",
        ".reg .b64 %x; mov.u64 %x, k;",
    ],
)
def test_a_function_has_names_of_its_own_that_are_declared_after_it(body: str) -> None:
    assert parse(entry(body) + LATER).body("k").statements
    assert parse(entry("ret;", ".param .u64 g") + LATER).body("k").statements


def test_a_declaration_before_is_enough() -> None:
    text = f"{HEADER}.func f();\n.entry k() {{ call f; ret; }}\n.func f() {{ ret; }}"
    assert parse(text).body("k").statements


def test_the_initialiser_of_a_variable_has_its_own_address() -> None:
    ring = ".global .u64 ring[2] = {ring, generic(ring)+8};"
    (variable,) = parse(f"{HEADER}{ring}\n").static_variables
    assert variable.initialiser == (SymbolValue("ring", 0, False), SymbolValue("ring", 8, True))
    (variable,) = parse(entry(f"{{ {ring} }} ret;")).static_variables
    assert {each.name for each in variable.initialiser if isinstance(each, SymbolValue)} == {
        variable.name
    }


@pytest.mark.parametrize("attribute", [".managed", ".unified(1, 2)"])
@pytest.mark.parametrize("space", [".const", ".shared", ".local"])
def test_only_global_variables_have_attributes(space: str, attribute: str) -> None:
    variable = f"{space} .attribute({attribute}) .u32 g;"
    text = entry(variable) if space == ".local" else f"{HEADER}{variable}\n"
    with pytest.raises(PtxSyntaxError, match=rf"only .global variables .* not {space}"):
        parse(text).body("k")
    assert parse(f"{HEADER}.global .attribute({attribute}) .u32 g;\n").static_variables
