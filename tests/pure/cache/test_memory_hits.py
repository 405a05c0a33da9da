"""A hit in memory: the image of an equal request, and of no other, while nothing has changed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import ptx
from ptx import CompileOptions, Image, ImageCache, ImageOrigin, Target
from ptx.errors import PtxError

PLAIN: Final = "__global__ void k(float* x) { x[0] = x[1] * x[2] + x[3] / x[4]; }"
TEMPLATE: Final = "template <typename T> __global__ void k(T* x) { x[0] = x[1] / x[2]; }"
LINES: Final = CompileOptions(lineinfo=True)


@dataclass(frozen=True)
class Call:
    """The arguments of one compilation."""

    source: str = PLAIN
    options: CompileOptions = CompileOptions()  # noqa: RUF009  # frozen
    name: str = "kernel.cu"
    expressions: Sequence[str] = ()
    headers: Mapping[str, str] | None = None

    def image(self, cache: ImageCache | bool) -> Image:
        return ptx.compile(
            self.source,
            self.options,
            name=self.name,
            name_expressions=self.expressions,
            headers=self.headers,
            cache=cache,
        )


CALLS: Final = (
    Call(),
    Call(PLAIN + " "),
    Call(name="other.cu"),
    Call(options=LINES),
    Call(options=LINES, name="other.cu"),
    Call(options=CompileOptions(debug=True)),
    Call(options=CompileOptions(target=Target.ptx("compute_80"))),
    Call(options=CompileOptions(target=Target.cubin("sm_80"))),
    Call(options=CompileOptions(std="c++14")),
    Call(options=CompileOptions(fmad=False)),
    Call(options=CompileOptions(ftz=True)),
    Call(options=CompileOptions(prec_div=False)),
    Call(options=CompileOptions(use_fast_math=True)),
    Call(options=CompileOptions(maxrregcount=32)),
    Call(options=CompileOptions(extra=("--relocatable-device-code=true",))),
    Call(TEMPLATE, expressions=("k<float>",)),
    Call(TEMPLATE, expressions=["k<float>"]),
    Call(TEMPLATE, expressions=("k<float>", "k<double>")),
    Call(TEMPLATE, expressions=["k<double>", "k<float>"]),
    Call(TEMPLATE, expressions=iter(())),  # type: ignore[arg-type]  # any iterable is accepted
    Call("__global__ void k(int* x) { *x = A; }", CompileOptions(defines={"A": 1})),
    Call("__global__ void k(int* x) { *x = A; }", CompileOptions(defines={"A": 2})),
    Call("__global__ void k(int* x) { *x = A; }", CompileOptions(defines={"A": "2+1", "B": None})),
    Call('#include "a.h"\n__global__ void k(int* x) { *x = A; }', headers={"a.h": "#define A 1"}),
    Call('#include "a.h"\n__global__ void k(int* x) { *x = A; }', headers={"a.h": "#define A 2"}),
)


def test_a_call_after_any_other_gives_the_image_of_an_uncached_compilation() -> None:
    fresh = [call.image(cache=False) for call in CALLS]
    cache = ImageCache(max_bytes=0)
    for call in CALLS:
        call.image(cache)
    faults = [
        (former, call)
        for former, (call, image) in itertools.product(CALLS, zip(CALLS, fresh, strict=True))
        if former.image(cache).origin is not ImageOrigin.MEMORY or call.image(cache) != image
    ]
    assert faults == []
    assert cache.stats().process.memory_hits >= 2 * len(CALLS) ** 2
    assert cache.stats().process.compiled <= len(CALLS)


def test_macros_that_a_caller_changed_compile_again() -> None:
    cache, macros = ImageCache(max_bytes=0), {"A": "1"}
    options = CompileOptions(defines=macros)
    source = "__global__ void k(int* x) { *x = A; }"
    images = [Call(source, options).image(cache)]
    macros["A"] = "2"  # of its own dictionary: the options have a copy
    images.append(Call(source, options).image(cache))
    held: Any = options.defines
    held["A"] = "3"
    images.append(Call(source, options).image(cache))
    assert images[0] == images[1] != images[2]
    assert images[2] == Call(source, options).image(cache=False)


@pytest.mark.parametrize("place", ["include folder", "working folder", "CUDADRV_HEADERS"])
def test_a_changed_header_compiles_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "headers" if place != "working folder" else tmp_path
    folder.mkdir(exist_ok=True)
    options = CompileOptions(include_paths=(folder,) if place == "include folder" else ())
    if place == "CUDADRV_HEADERS":
        monkeypatch.setenv("CUDADRV_HEADERS", str(folder))
    call = Call('#include "a.h"\n__global__ void k(int* x) { *x = A; }', options)
    cache = ImageCache(max_bytes=0)
    images: list[Image] = []
    for text in ("#define A 1", "#define A 22", "#define A 1"):
        (folder / "a.h").write_text(text)
        images.append(call.image(cache))
        assert images[-1] == call.image(cache=False)
        assert call.image(cache).origin is ImageOrigin.MEMORY
    assert images[0] == images[2] != images[1]


def test_line_tables_name_the_working_folder_of_their_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, call = ImageCache(max_bytes=0), Call(options=LINES)
    for folder in (tmp_path / "one", tmp_path / "two", tmp_path / "one"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        assert call.image(cache) == call.image(cache=False)
        assert str(folder) in (call.image(cache).ptx or "")
    assert cache.stats().process.compiled == 2


def test_the_default_cache_follows_the_present_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDADRV_CACHE_DIR")
    seen: dict[str, set[ImageOrigin]] = {}
    for variable, values in (
        ("HOME", ("a", "b", "a")),
        ("XDG_CACHE_HOME", ("c", "d", "c")),
        ("CUDADRV_CACHE_DIR", ("e", "f", "e")),
    ):
        for value in values:
            monkeypatch.setenv(variable, str(tmp_path / value))
            if variable == "HOME":
                monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
            image = Call().image(cache=True)
            seen.setdefault(value, set()).add(image.origin)
            assert Call().image(cache=True).origin is ImageOrigin.MEMORY
            folder = ptx.default_cache().folder
            assert folder is not None
            assert folder.is_relative_to(tmp_path / value)
            assert ptx.default_cache().stats().entries == 1
    compiled, both = {ImageOrigin.COMPILED}, {ImageOrigin.COMPILED, ImageOrigin.MEMORY}
    assert seen == {place: both if place in "ace" else compiled for place in "abcdef"}
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "lots")
    with pytest.raises(ValueError, match="'lots' is not a number"):
        Call().image(cache=True)
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "0")
    assert Call().image(cache=True).origin is ImageOrigin.COMPILED


def test_a_cleared_cache_compiles_again() -> None:
    cache = ImageCache(max_bytes=0)
    origins = [Call().image(cache).origin for _ in range(2)]
    cache.clear()
    origins.append(Call().image(cache).origin)
    assert origins == [ImageOrigin.COMPILED, ImageOrigin.MEMORY, ImageOrigin.COMPILED]


def test_wrong_arguments_raise_also_after_the_right_call() -> None:
    right: dict[str, Any] = {
        "source": TEMPLATE,
        "options": CompileOptions(),
        "name": "kernel.cu",
        "name_expressions": ["k<float>"],
        "headers": None,
        "cancel": None,
    }
    wrong: dict[str, list[object]] = {
        "source": [None, TEMPLATE.encode(), 1, TEMPLATE + "\0", [TEMPLATE]],
        "options": [None, {}, ()],
        "name": [None, b"kernel.cu", "a\0b"],
        "name_expressions": ["k<float>", b"k<float>", [1], ["k<float>\0"], None, [["k<float>"]]],
        "headers": [1, {"a": 1}, [("a", "b")]],
        "cancel": [1, lambda needed: needed],
    }
    for cache in (ImageCache(max_bytes=0), True):
        said: list[dict[tuple[str, int], str]] = []
        for _ in range(2):
            said.append({})
            for name, values in wrong.items():
                for number, value in enumerate(values):
                    with pytest.raises(PtxError) as caught:
                        ptx.compile(**{**right, name: value}, cache=cache)
                    said[-1][name, number] = f"{type(caught.value).__name__}: {caught.value}"
            ptx.compile(**right, cache=cache)
        assert said[0] == said[1]


def test_many_options_and_many_sources_each_give_their_own_image() -> None:
    cache = ImageCache(max_bytes=0)
    calls = [
        Call(
            f"__global__ void k(int* x) {{ *x = {number % 3}; }}", CompileOptions(std=std, ftz=ftz)
        )
        for number in range(3)
        for std in ("c++11", "c++14", "c++17", "c++20")
        for ftz in (None, False, True)
    ]
    images = [call.image(cache) for call in calls]
    assert [call.image(cache) for call in calls] == images
    assert [call.image(cache).origin for call in calls] == [ImageOrigin.MEMORY] * len(calls)
