"""Which headers a text refers to: a superset, whatever stands around the directive."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings, strategies as st

from ptx import _nvrtc
from ptx.cache.header_dependencies import References, defined_otherwise, scan
from tests.rows import all_rows


@all_rows
@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("", References()),
        ('#include "a.h"\n#include <b.h>', References(quoted=("a.h",), angled=("b.h",))),
        ("#include_next <a.h>", References(following=("a.h",))),
        ("  #\tinclude<a.h>//", References(angled=("a.h",))),
        ("%:include <a.h>", References(angled=("a.h",))),
        ("??=include <a.h>", References(angled=("a.h",))),
        ("#incl\\\nude <a.h>", References(angled=("a.h",))),
        ("#incl??/\nude <a.h>", References(angled=("a.h",))),
        ("/*\n*/ # /* <b.h> */ include /* */ <a.h>", References(angled=("a.h",))),
        ("#if 0\n#include <a.h>\n#endif", References(angled=("a.h",))),
        ("// x \\ \n#include <a.h>", References(angled=("a.h",))),
        ("// x ??/\n#include <a.h>", References(angled=("a.h",))),
        ("// # /*\n#include <a.h>\n// */ include", References(angled=("a.h",))),
        ("\ufeff#include <a.h>", References(angled=("a.h",))),
        ("#include __FILE__", References(opaque=True)),
        ("#include NAME", References(computed=("NAME",))),
        ("#include NAME // why", References(computed=("NAME",))),
        ("#include NAME(x)", References(opaque=True)),
        ("#include A B", References(opaque=True)),
        ("// #include this header", References()),
        (" * #include the header", References()),
        ("int x; #include <a.h>", References()),
        ('#define N "a.h"\n', References(definitions=(("N", '"a.h"'),))),
        ("#define N <a.h> // x\n", References(definitions=(("N", "<a.h>"),))),
        ("#if __has_include(<a.h>)", References(angled=("a.h",))),
        ('#if __has_include ( "a.h" )', References(quoted=("a.h",))),
        ("#if __has_include(NAME)", References(computed=("NAME",))),
        ("#if HAVE(<a/b.h>)", References(angled=("a/b.h",))),
    ],
)
def test_text_gives_its_references(text: str, references: References) -> None:
    assert scan(text.encode()) == references


@pytest.mark.parametrize(
    ("text", "otherwise"),
    [
        ("#define N <a.h>", False),
        ('#define N "a.h" // x', False),
        ("#define NAME x", False),
        ("#define N OTHER", True),
        ("#define N(x) <x>", True),
        ('#define N "a" "b.h"', True),
        ("#define N", True),
    ],
)
def test_macro_that_is_more_than_one_header_is_reported(text: str, otherwise: bool) -> None:
    found = defined_otherwise(text.encode(), frozenset({"N"}))
    assert found == ({"N"} if otherwise else set())


BLANK = st.sampled_from(["", " ", "\t", "/* c */", "\\\n", " \\\n ", "/*\n#*/"])


@settings(max_examples=40, deadline=None)
@given(BLANK, BLANK, BLANK, st.sampled_from(["#", "%:", "??="]), st.text(max_size=20))
def test_directive_is_found_after_anything(
    before: str, within: str, after: str, mark: str, text: str
) -> None:
    assume(not text.rstrip().endswith(("\\", "??/")))  # which makes the directive no directive
    line = f"{before}{mark}{within}include{after}<dir/name.h>"
    source = f"{text}\n{line}\n{text}".encode("utf-8", "surrogatepass")
    assert "dir/name.h" in scan(source).angled


def test_many_comments_are_passed_over() -> None:
    """Going back over comments would take quadratic time: here, minutes."""
    text = b"(/* a */ # /* b */ define /* c */ " * 20_000
    assert scan(text + b"\n#include <a.h>") == References(angled=("a.h",))


FRAGMENT = st.sampled_from(
    [
        *(" ", "\t", "\n", "\r\n", "\\\n", "\\ \n", "??/\n", "\v", "\f", "x", ";", "'", '"'),
        *("/*", "*/", "//", 'R"(', ')"', "#", "%:", "??=", "include", "define", "N", "<t.h>"),
        *("#include <t.h>", "#include N\n", '#define N "t.h"\n', "#define N <t.h>\n", "#if 0\n"),
        *("#else\n", "#endif\n", "#if __has_include(<t.h>)\n", "#include_next <t.h>\n"),
        *('#include "t.h"\n', "# /* */ include", "#define I(x) <x>\n", "#include I(t.h)\n"),
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("include")
    (path / "t.h").write_text("#warning t.h was opened\n")
    return path


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(pieces=st.lists(FRAGMENT, max_size=12), standard=st.sampled_from(["c++14", "c++17"]))
def test_what_nvrtc_includes_is_always_found(
    folder: Path, pieces: list[str], standard: str
) -> None:
    text = "".join(pieces)
    with _nvrtc.NvrtcProgram(text, str(folder / "kernel.cu"), ()) as program:
        program.compile(
            ["--gpu-architecture=compute_80", f"--std={standard}", f"--include-path={folder}"]
        )
        opened = "t.h was opened" in program.log()
    if not opened:
        return
    references = scan(text.encode())
    named = {*references.quoted, *references.angled, *references.following}
    if references.computed:
        named |= {header[1:-1] for _, header in references.definitions}
        macros = frozenset(references.computed)
        assert "t.h" in named or references.opaque or defined_otherwise(text.encode(), macros)
    else:
        assert "t.h" in named or references.opaque
