"""Text of NVVM IR at which libNVVM would end the process."""

from __future__ import annotations

import pytest

import ptx
from ptx.nvvm import build_nvvm, fault_of
from tests.rows import all_rows

LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'


def fault(text: str, *, is_first: bool = True, is_old: bool = True) -> str:
    return fault_of(text, is_first=is_first, is_old=is_old) or ""


def with_layout(layout: str) -> str:
    return f'{TRIPLE}target datalayout = "{layout}"\n'


@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT,
        LAYOUT.replace("p:64:64:64", "p:32:32:32"),
        "e-i64:64-i128:128-v16:16-v32:32-n16:32:64",
        "e-p3:32:32-p4:32:32:32:32-i64:64-a:0:64-a:8:8-S128-m:e-A5-P0-ni:1:2-n8-s0:8",
        "E",
    ],
)
def test_layouts_that_llvm_reads_are_left_to_it(layout: str) -> None:
    assert fault(with_layout(layout)) == ""


# libNVVM 13.5 ends the process at each of them.
@all_rows
@pytest.mark.parametrize(("layout", "piece"), [
    ("x", "x"), ("e-n", "n"), ("e-n8:0", "n8:0"), ("e-p", "p"), ("e-p:64", "p:64"),
    ("e-p:0:0:0", "p:0:0:0"), ("e-p:99999999999:64:64", "p:99999999999:64:64"),
    ("e-p16777216:64:64", "p16777216:64:64"), ("e-i64", "i64"), ("e-i64:3", "i64:3"),
    ("e-i64:0", "i64:0"), ("e-i64:24", "i64:24"), ("e-i64:64:32", "i64:64:32"),
    ("e-p:64:64:32", "p:64:64:32"), ("e-i64:65536000:64", "i64:65536000:64"),
    ("e-a8:0:64", "a8:0:64"), ("e-S3", "S3"), ("e-m:q", "m:q"), ("e-A16777216", "A16777216"),
    ("e-ni:0", "ni:0"), ("e-ni", "ni"), ("e--i8:8", ""), ("e-i64:", "i64:"), (LAYOUT + "-", ""),
    (LAYOUT[:30], "i16"), (r"e-\6964:3", "i64:3"),
])  # fmt: skip
def test_a_layout_that_llvm_does_not_read_is_reported_by_its_part(layout: str, piece: str) -> None:
    said = fault(with_layout(layout))
    assert said.startswith("line 2: the data layout ")
    assert f" has {piece!r}, which is not part of a data layout" in said
    assert f'NVVM IR has the line: target datalayout = "{LAYOUT}"' in said
    assert fault(with_layout(layout), is_old=False) == ""  # a later LLVM tells of it


@pytest.mark.parametrize(
    "text",
    [
        'target datalayout="x"',
        'target triple="a" target\n\tdatalayout ; a comment\n;another\n = \0 "x"',
        with_layout(LAYOUT) + 'target datalayout = "x"',
        '; "\ntarget datalayout = "x"',
        '@c = global [2 x i8] c"; "\ntarget datalayout = "x"',
    ],
)
def test_the_line_is_found_wherever_llvm_reads_it(text: str) -> None:
    assert "the data layout 'x' has 'x'" in fault(text)


@pytest.mark.parametrize(
    "text",
    [
        '; target datalayout = "x"\n',
        '@c = constant c"target datalayout = "\n@target datalayout = "x"\n',
        '%my-target datalayout = "x"\n',
        '"target" datalayout = "x"\n',
    ],
)
def test_what_only_looks_like_the_line_is_none(text: str) -> None:
    assert fault(text) == ""


def test_the_first_module_has_a_layout_where_a_later_llvm_needs_one() -> None:
    for text in (TRIPLE, with_layout(""), "", "\0"):
        assert fault(text, is_old=False).startswith("it has no data layout\n  NVVM IR has the line")
        assert fault(text, is_old=True) == ""
        assert fault(text, is_first=False, is_old=False) == ""


HEAD = with_layout(LAYOUT)


@all_rows
@pytest.mark.parametrize(
    "nodes",
    [
        '!0 = !{ptr @k, !"kernel", i32 1}',
        '!0 = !{void (float*, {i32, [2 x i8]}*)* @"a,b}", !"kernel", i32 1, !"maxntidx", i32 64}',
        '!0 = distinct !{null, !"align", i32 -8, !"on", i1 true}',
        '!0 = !{ptr @k, !"grid_constant", !1}\n!1 = !{i32 1}',
        "!0 = !{ptr @k}",
        "",
    ],
)
@pytest.mark.parametrize("is_old", [False, True])
def test_annotations_of_things_with_names_and_numbers_are_right(nodes: str, is_old: bool) -> None:
    text = f"{HEAD}!nvvm.annotations = !{{!0, !0}}\n{nodes}\n"
    assert fault(text, is_old=is_old) == ""
    assert fault(f"{HEAD}!nvvm.annotations = !{{}}\n", is_old=is_old) == ""


@all_rows
@pytest.mark.parametrize(
    "node",
    [
        "!{}",
        '!{ptr @k, !"kernel"}',
        "!{ptr @k, i32 1, i32 1}",
        "!{ptr @k, null, i32 1}",
        '!{ptr @k, !"kernel", !"x"}',
        '!{ptr @k, !"kernel", null}',
        '!{ptr @k, !"kernel", i32 1, !"maxntidx"}',
    ],
)
@pytest.mark.parametrize("is_old", [False, True])
def test_an_annotation_that_is_none_is_reported_by_its_line(node: str, is_old: bool) -> None:
    text = f"{HEAD}!nvvm.annotations = !{{!1, !0}}\n!1 = !{{ptr @k}}\n!0 = {node}\n!2 = !{{}}\n"
    said = fault(text, is_old=is_old)
    assert said.startswith(f"line 5: the annotation {node} is none\n")
    assert 'such as !{ptr @k, !"kernel", i32 1}' in said


@pytest.mark.parametrize(
    "text",
    [
        "target " + ";" * 50_000,
        "target " + "; " * 50_000,
        '"' * 49_999,
        "!1" * 50_000,
        "!nvvm.annotations = !{" + "(" * 50_000,
    ],
    ids=["comments", "spaces", "quotes", "nodes", "brackets"],
)
def test_long_texts_are_passed_over_once(text: str) -> None:
    assert fault(text) == ""


def test_a_build_rejects_it_before_libnvvm_is_loaded() -> None:
    options = ptx.NvvmOptions(target=ptx.Target.ptx("compute_90"))
    modules = [("a.bc", b"BC\xc0\xde"), ("b.ll", b'target datalayout="x"')]
    with pytest.raises(ptx.NvvmError, match="end the process at 'b.ll': line 1: .* 'x'") as caught:
        build_nvvm(modules, b"", options)
    assert (caught.value.log, caught.value.options) == ("", ("-arch=compute_90",))
    later = ptx.NvvmOptions(target=ptx.Target.ptx("compute_100"))
    with pytest.raises(ptx.NvvmError, match="at 'a.ll': it has no data layout"):
        build_nvvm([("a.ll", b"")], b"", later)
