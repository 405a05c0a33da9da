"""NVRTC's warnings as warnings of Python: once a source, whatever gave the image."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, CompileWarning, ImageCache, ImageOrigin, Target, diagnostics

SOURCE = """
extern "C" __global__ void k(unsigned n, int* x)
{
\tif (n >= 0) x[n] = 1;
}
"""
PTX80 = CompileOptions(target=Target.ptx("compute_80"))


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> dict[int, None]:
    """Nothing that other tests of this process compiled counts."""
    warned: dict[int, None] = {}
    monkeypatch.setattr(diagnostics, "_warned", warned)
    return warned


def test_a_warning_names_the_line_of_the_source_and_its_remedy() -> None:
    with pytest.warns(CompileWarning) as caught:
        ptx.compile(SOURCE, PTX80, name="fill.cu")
    (found,) = caught
    first, line, caret, remedy = str(found.message).splitlines()
    assert first == "fill.cu(4): warning: pointless comparison of unsigned integer with zero"
    assert line == "    \tif (n >= 0) x[n] = 1;"
    assert caret == "    \t      ^"
    assert remedy == ("  correct the source, or compile it with extra=('--diag-suppress=186',)")
    assert found.filename == __file__
    assert isinstance(found.message, CompileWarning)
    (diagnostic,) = found.message.diagnostics
    assert (diagnostic.code, diagnostic.line, found.message.name) == ("186-D", 4, "fill.cu")
    copy = pickle.loads(pickle.dumps(found.message))
    assert (str(copy), copy.diagnostics) == (str(found.message), found.message.diagnostics)


@pytest.mark.slow
def test_a_source_is_warned_of_once() -> None:
    with pytest.warns(CompileWarning, match="pointless"):
        ptx.compile(SOURCE, PTX80)
    # Another warning would be an error.
    for options in (PTX80, CompileOptions(target=Target.ptx("compute_90"))):
        for cache in (True, False):
            ptx.compile(SOURCE, options, cache=cache)
    with pytest.warns(CompileWarning, match="pointless"):
        ptx.compile(SOURCE + "\n", PTX80)


def test_an_image_from_the_disk_is_warned_of(tmp_path: Path, unwarned: dict[int, None]) -> None:
    with pytest.warns(CompileWarning):
        ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    unwarned.clear()  # as another process begins
    with pytest.warns(CompileWarning, match="pointless comparison"):
        image = ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    assert image.origin is ImageOrigin.DISK


@pytest.mark.parametrize("option", ["-w", "--diag-suppress=186"])
def test_a_warning_that_is_silenced_is_none(option: str) -> None:
    image = ptx.compile(SOURCE, CompileOptions(target=PTX80.target, extra=(option,)))
    assert image.log == ""


def test_logs_that_were_requested_are_no_warnings() -> None:
    options = CompileOptions(target=Target.cubin("sm_80"), extra=("--ptxas-options=-v", "-time=-"))
    log = ptx.compile(SOURCE.replace(">= 0", "> 0"), options, cache=False).log
    assert "ptxas info" in log
    assert "Frontend" in log


def test_a_filter_makes_it_an_error_every_time() -> None:
    for _ in range(2):
        with pytest.raises(CompileWarning, match="pointless"):
            ptx.compile(SOURCE, PTX80)


def test_many_warnings_are_shown_in_part() -> None:
    lines = "\n".join(f"    if (n + {number} >= 0) x[n] = {number};" for number in range(6))
    source = f"__global__ void k(unsigned n, int* x) {{\n    int unused;\n{lines}\n}}"
    with pytest.warns(CompileWarning) as caught:
        ptx.compile(source, PTX80)
    (message,) = (each.message for each in caught)
    assert isinstance(message, CompileWarning)
    assert len(message.diagnostics) == 7
    assert str(message).count(": warning: ") == 4
    assert "and 3 more: see Image.log" in str(message)
    assert {"186", "177"} == set(str(message).partition("suppress=")[2][:7].split(","))


def test_a_block_collects_also_what_the_process_was_warned_of() -> None:
    with pytest.warns(CompileWarning):
        ptx.compile(SOURCE, PTX80)
    with diagnostics.collected() as found:
        ptx.compile(SOURCE, PTX80)
    ptx.compile(SOURCE, PTX80)
    assert [each.diagnostics[0].code for each in found] == ["186-D"]
