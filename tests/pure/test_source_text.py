"""The lines of source beside findings, PTX and machine code: which files they come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

import ptx
from ptx.ordinary_files import read_text
from ptx.source_text import SourceText

ROOT: Final = Path(__file__).parents[2]
# Python's `str.splitlines` ends a line at each of these; NVRTC, PTX and editors do not.
NO_LINE_ENDS: Final = "\v\f\x1c\x1d\x1e\x85\u2028\u2029\r"


def test_a_line_ends_at_a_line_feed_alone() -> None:
    text = "".join(f"// {character} {number}\n" for number, character in enumerate(NO_LINE_ENDS))
    source = SourceText("k.cu", text)
    assert [source.line("k.cu", number + 1)[-1] for number in range(9)] == list("012345678")
    assert source.line("k.cu", 10) == source.line("k.cu", 11) == source.line("k.cu", 0) == ""
    assert source.line("k.cu", -1) == source.line(None, 1) == source.line("k.cu", None) == ""


@pytest.mark.parametrize("character", NO_LINE_ENDS)
def test_a_file_has_the_lines_that_the_compiler_counts(tmp_path: Path, character: str) -> None:
    file = tmp_path / "k.cu"
    file.write_bytes(f"// a {character} b\r\nint x;\nint y\n".encode())
    text = read_text(file, "utf-8")
    assert text.split("\n") == [f"// a {character} b", "int x;", "int y", ""]
    lines = []
    for each in (text, text.replace(character, " ")):
        with pytest.raises(ptx.CompileError) as caught:
            ptx.compile(each, name="k.cu", cache=False)
        lines.append([each.line for each in caught.value.diagnostics])
    assert lines[0] == lines[1] != []


def test_no_file_divides_lines_in_another_way() -> None:
    files = [file for package in ("cudadrv", "ptx") for file in (ROOT / package).rglob("*.py")]
    assert [str(file) for file in files if "splitlines(" in file.read_text()] == []


def request_of(folder: Path, source: str) -> ptx.CompileRequest:
    options = ptx.CompileOptions(include_paths=(str(folder / "include"),))
    return ptx.CompileRequest.of(
        source, options, str(folder / "k.cu"), (), {"given.h": "in memory"}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that a source includes, and others."""
    (tmp_path / "include").mkdir()
    for name in ("beside.h", "secret.txt", "include/found.h", "include/other.h"):
        (tmp_path / name).write_text(f"first\n{name}\n")
    (tmp_path / "link.h").symlink_to(tmp_path / "beside.h")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_text_comes_from_the_source_and_its_headers_alone(folder: Path) -> None:
    source = '#include "beside.h"\n#include <found.h>\n#include "fifo"\n#line 1 "secret.txt"\n'
    text = SourceText.of(request_of(folder, source))
    expected = {
        str(folder / "k.cu"): "#include <found.h>", "elsewhere/k.cu": "#include <found.h>",
        str(folder / "beside.h"): "beside.h", str(folder / "include/found.h"): "include/found.h",
        str(folder / "include/../beside.h"): "beside.h", str(folder / "link.h"): "beside.h",
        "given.h": "", str(folder / "secret.txt"): "", str(folder / "include/other.h"): "",
        str(folder / "fifo"): "", "/dev/zero": "", "/etc/passwd": "", "": "", "\0": "",
        str(folder): "", "secret.txt": "",
    }  # fmt: skip
    assert {file: text.line(file, 2) for file in expected} == expected
    assert text.line("given.h", 1) == "in memory"


def test_a_name_alone_opens_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for text in (SourceText(""), SourceText("k.cu"), SourceText("k.cu", "a\nb")):
        for name in ("secret.txt", "beside.h", "fifo", str(folder / "secret.txt")):
            assert text.line(name, 1) == ""
