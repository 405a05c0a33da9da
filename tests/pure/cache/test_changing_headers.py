"""Headers that change while they are compiled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

import ptx
from ptx import CompileOptions, CompileRequest, Image, ImageCache, nvrtc_build
from ptx.cache.key import sealed_key

INCLUDES_A: Final = '#include "a.h"\n__global__ void k(int* x) { *x = VALUE; }'


@pytest.mark.slow
@pytest.mark.parametrize("how", ["in place", "renamed"])
def test_header_that_changes_and_comes_back_while_it_is_compiled_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = tmp_path / "a.h"
    path.write_text("#define VALUE 1\n")
    cache = ImageCache(tmp_path / "cache")
    options = CompileOptions(include_paths=(tmp_path,))
    other = ptx.compile(INCLUDES_A, options, headers={"a.h": "#define VALUE 2\n"})
    compiled = nvrtc_build.build

    def put(text: str) -> None:
        if how == "in place":
            path.write_text(text)
        else:
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)

    def build(request: CompileRequest, folders: Sequence[str], **_: object) -> Image:
        put("#define VALUE 2\n")
        image = compiled(request, folders)
        put("#define VALUE 1\n")
        return image

    monkeypatch.setattr(nvrtc_build, "build", build)
    image = cache.get_or_compile(INCLUDES_A, options)
    monkeypatch.undo()
    assert image.data == other.data
    right = ptx.compile(INCLUDES_A, options, cache=False)
    assert cache.get_or_compile(INCLUDES_A, options) == right
    assert ImageCache(tmp_path / "cache").get_or_compile(INCLUDES_A, options) == right


@pytest.mark.slow
def test_the_first_header_that_appears_while_it_is_compiled_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        '#if __has_include("late.h")\n#include "late.h"\n#else\n#define VALUE 1\n#endif\n'
        "__global__ void k(int* x) { *x = VALUE; }"
    )
    header, compiled = tmp_path / "late.h", nvrtc_build.build
    options = CompileOptions(include_paths=(tmp_path,))
    cache = ImageCache(tmp_path / "cache")

    def build(request: CompileRequest, folders: Sequence[str], **_: object) -> Image:
        header.write_text("#define VALUE 2\n")
        return compiled(request, folders)

    monkeypatch.setattr(nvrtc_build, "build", build)
    cache.get_or_compile(source, options)
    monkeypatch.undo()
    header.unlink()
    right = ptx.compile(source, options, cache=False)
    assert cache.get_or_compile(source, options) == right


def test_a_header_dated_now_is_compiled_a_step_of_the_clock_later() -> None:
    """Two changes within one step have one stamp, so that the second could not be seen."""
    changed = time.time_ns() | 1
    assert sealed_key({}, (), ((1, 0, 5, 1), (1, 0, changed, 2))).settle()
    assert time.time_ns() >= changed + 20_000_000
    assert not sealed_key({}, (), ((1, 0, time.time_ns() + 10**11, 1),)).settle()
    whole = time.time_ns() // 10**9 * 10**9
    assert not sealed_key({}, (), ((1, 0, whole, 1),)).settle()
    assert sealed_key({}, (), ((1, 0, whole - 10**10, 1),)).settle()
