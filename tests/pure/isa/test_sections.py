"""Sections, `.loc`, `.file` and vectors of parameters, as ptxas of CUDA 13.5 takes them."""

import pytest

from ptx.isa import PtxSyntaxError, parse
from tests.rows import all_rows

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
KERNEL = ".visible .entry k() { ret; }\n"


def read(text: str) -> None:
    module = parse(HEADER + text)
    for function in module.functions.values():
        if function.span is not None:
            module.body(function.name)


def located(places: str) -> str:
    return f'.file 1 "a"\n.visible .entry k() {{ {places}\n ret; }}\n.section .d {{ L: .b8 0 }}'


@all_rows
@pytest.mark.parametrize(
    "section",
    [
        ".section .debug_info { }", ".section .d{.b8 1}", ".section .text { A: B: }",
        ".section\n.d\n{ .b8 1\n, 2 }", ".section .d { .b8 0xff, 0377, 255U, 0b11, -128, - 1 }",
        ".section .d { .b8 4294967296, 4294967551 .b16 4295032831 }",
        ".section .d { .b16 -32768, 65535 .b32 4294967296 .b64 18446744073709551615 }",
        ".section .d { A : .b32 A+4 .b64 B-A B: .b32 unknown .b64 .debug_str }",
        ".section .d { .b8 1 } .section .e { .b64 k+0x4 } .section .d { $L__a: %b: .b8 2 }",
        '.file 1 ".section {"\n.section .d { }',
    ],
)  # fmt: skip
def test_a_section_of_labels_and_data_is_accepted_at_any_place(section: str) -> None:
    read(KERNEL + section)
    read(section + KERNEL)


@all_rows
@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (".section .d", "this section never ends"),
        (".section .d { .b8 1", "this section never ends"),
        (".section { }", "expected a directive"),
        (".section d { }", "expected a directive"),
        (".section .9 { }", "expected a directive"),
        (".section .d.e { }", "expected '{'"),
        ('.section .d, "x" { }', "expected '{'"),
        (".section .global { }", "expected the name of a section"),
        (".section .d { .f32 1.0 }", "sections have labels, and data of .b8"),
        (".section .d { .u8 1 }", "sections have labels, and data of .b8"),
        (".section .d { { .b8 1 } }", "sections have labels, and data of .b8"),
        (".section .d { .b8 1; }", "sections have labels, and data of .b8"),
        (".section .d { .b8 1 2 }", "sections have labels, and data of .b8"),
        (".section .d { .b8 1+1 }", "sections have labels, and data of .b8"),
        (".section .d { .b8 }", "expected an integer"),
        (".section .d { .b8 1, }", "expected an integer"),
        (".section .d { .b8 (1) }", "expected an integer"),
        (".section .d { .b8 -1U }", "expected an integer"),
        (".section .d { .b8 256 }", "256 has over 8 bits"),
        (".section .d { .b8 1, 0x100 }", "256 has over 8 bits"),
        (".section .d { .b8 4294967552 }", "4294967552 has over 8 bits"),
        (".section .d { .b8 -129 }", "-129 has over 8 bits"),
        (".section .d { .b16 65536 }", "65536 has over 16 bits"),
        (".section .d { .b32 -2147483649 }", "-2147483649 has over 32 bits"),
        (".section .d { .b64 -9223372036854775808 }", "is below the range of 64 bits"),
        (".section .d { .b8 k }", "addresses have .b32 or .b64"),
        (".section .d { A: .b16 A }", "addresses have .b32 or .b64"),
        (".section .d { .b32 A-4 }", "expected a name"),
        (".section .d { .b32 A, 1 }", "sections have labels, and data of .b8"),
        (".section .d { A: A: }", "a second label A"),
        (".section .d { A: } .section .e { A: }", "a second label A"),
    ],
)
def test_a_section_of_anything_else_is_rejected(section: str, reason: str) -> None:
    for text in (section, f"{section} // {KERNEL}"):
        with pytest.raises(PtxSyntaxError) as caught:
            read(KERNEL + text)
        assert reason in caught.value.reason


@all_rows
@pytest.mark.parametrize(
    ("places", "reason"),
    [
        (".loc 1 1 1\n.loc 1 2 3, function_name L, inlined_at 1 1 1", ""),
        (".loc 1 0x1 1\n.loc 1 2 3,function_name L+9,inlined_at 1 1 01", ""),
        (".loc 9 4294967295 4294967295", ""),
        (".loc 1 4294967296 1", "4294967296 has over 32 bits"),
        (".loc 4294967296 1 1", "4294967296 has over 32 bits"),
        (".loc 1 1 1\n.loc 1 2 3, inlined_at 1 1 1", "expected 'function_name'"),
        (".loc 1 1 1\n.loc 1 2 3, function_name L", "expected ','"),
        (".loc 1 1 1\n.loc 1 2 3, nothing 1", "expected 'function_name'"),
        (".loc 1 1 1\n.loc 1 2 3, function_name L, inlined_at 1 1 2", "no .loc before this one"),
        (".loc 1 2 3, function_name L, inlined_at 1 2 3", "no .loc before this one"),
    ],
)
def test_a_place_that_was_inlined_names_its_function_and_a_place_before(
    places: str, reason: str
) -> None:
    if not reason:
        return read(located(places))
    with pytest.raises(PtxSyntaxError) as caught:
        read(located(places))
    assert reason in caught.value.reason
    return None


def test_a_place_of_a_function_before_counts_as_before() -> None:
    first = ".func f() { .loc 1 7 1\n ret; }\n"
    read(first + located(".loc 1 2 3, function_name L, inlined_at 1 7 1"))


def test_the_number_of_a_file_has_32_bits() -> None:
    read('.file 4294967295 "a"\n')
    with pytest.raises(PtxSyntaxError, match="4294967296 has over 32 bits"):
        read('.file 4294967296 "a"\n')


@all_rows
@pytest.mark.parametrize(
    ("parameter", "align", "count"),
    [
        (".param .v2 .f32 a[2]", 8, 4), (".param .align 4 .v2 .f32 a[2]", 8, 4),
        (".param .v4 .b8 a[1]", 4, 4), (".param .align 16 .v2 .u16 a[3]", 16, 6),
        (".param .align 1 .b64 a", 8, 1), (".param .b64 .align 2 a", 8, 1),
        (".param .u64 .ptr .global .align 2 a", 8, 1), (".param .align 4 .b8 a[16]", 4, 16),
    ],
)  # fmt: skip
def test_a_parameter_has_at_least_the_alignment_of_its_elements(
    parameter: str, align: int, count: int
) -> None:
    (found,) = parse(f"{HEADER}.entry k({parameter}) {{ ret; }}").functions["k"].params
    assert (found.align, found.count) == (align, count)


@all_rows
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".entry k(.param .v2 .f32 a) { ret; }", "a of a kernel is a single vector"),
        (".entry k(.param .v2 .texref a[2]) { ret; }", "a vector of 2 .texref is no type"),
        (".entry k() { .param .v2 .f32 a; ret; }", "a is a single vector in .param"),
        (".entry k() { .param .v4 .b8 a[2], b; ret; }", "b is a single vector in .param"),
        (".entry k() { .param .v2 .f32 a<2>; ret; }", "a is a single vector in .param"),
    ],
)
def test_a_single_vector_is_no_parameter(text: str, reason: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        read(text)
    assert reason in caught.value.reason
