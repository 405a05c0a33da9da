"""Times of phases, threads that optimise, and precompiled headers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ptx
from ptx import PchState, _nvrtc, precompiled_headers
from ptx.cache.key import CompileKeys
from ptx.compile_report import CompilePhase, phases_in
from ptx.image_cache import ImageCache

SOURCE = '#include "h.h"\nextern "C" __global__ void f(int* x) { *x = VALUE; }\n'
PTX = ptx.Target.parse("compute_80")
CUBIN = ptx.Target.parse("sm_90")


@pytest.fixture
def heap() -> Iterator[None]:
    """Precompiled headers that no other test has made."""
    before = ptx.pch_heap_bytes()
    ptx.set_pch_heap_bytes(before)
    yield
    ptx.set_pch_heap_bytes(before)


def options(folder: Path) -> ptx.CompileOptions:
    return ptx.CompileOptions(target=PTX, include_paths=(folder,), pch=True, pch_dir=folder)


def value_in(image: ptx.Image) -> bool:
    return image.ptx is not None and "7777" in image.ptx


def test_the_report_has_the_time_of_each_phase_and_the_image_of_a_plain_compilation() -> None:
    source = 'extern "C" __global__ void f(int* x) { *x = 1; }'
    given = ptx.CompileOptions(target=CUBIN)
    report = ptx.compile_report(source, given, name="a, b.cu")
    assert [each.name for each in report.phases] == [
        "CUDA C++ Frontend",
        "NVVM Optimizer",
        "PTX Translation",
    ]
    assert all(0 <= each.ms <= report.image.build_ms for each in report.phases)
    assert (report.pch, report.pch_heap_bytes) == (PchState.NONE, 0)
    assert report.image == ptx.compile(source, given, name="a, b.cu", cache=False)


def test_the_table_of_times_is_read_from_the_right() -> None:
    table = "File name, phase name, metric, unit\nfile, of, commas.cu, NVVM Optimizer, 12.5, ms\n"
    assert list(phases_in(table)) == [CompilePhase("NVVM Optimizer", 12.5)]


def test_threads_that_optimise_are_a_part_of_the_key_and_precompiled_headers_are_not(
    tmp_path: Path,
) -> None:
    keys = CompileKeys(None)

    def digest(**given: object) -> str:
        chosen = ptx.CompileOptions(target=PTX, **given)  # type: ignore[arg-type]  # any of them
        request = ptx.CompileRequest.of("source", chosen, "a.cu", (), None)
        return keys.key(request).digest

    assert digest() == digest(pch=True) == digest(pch=True, pch_dir=tmp_path)
    assert len({digest(), digest(split_compile=0), digest(split_compile=2)}) == 3


def test_kernels_are_optimised_by_several_threads() -> None:
    source = "".join(f"__global__ void k{n}(int* x) {{ *x = {n}; }}\n" for n in range(8))
    chosen = ptx.CompileOptions(target=CUBIN, split_compile=2)
    assert len(ptx.compile(source, chosen, cache=False).signatures) == 8
    with pytest.raises(ValueError, match="split_compile=-1: expected 0 or more"):
        ptx.CompileOptions(split_compile=-1)


def test_flags_of_nvrtc_become_the_fields() -> None:
    found = ptx.CompileOptions.from_flags("--split-compile=4", "-pch", "--pch-dir=/somewhere")
    assert (found.split_compile, found.pch, found.pch_dir) == (4, True, "/somewhere")
    assert "--split-compile=4" in found.flags()
    assert not [flag for flag in found.flags() if "pch" in flag]
    with pytest.raises(ValueError, match=r"use CompileOptions\.pch instead"):
        ptx.CompileOptions(extra=("--pch",))


def test_a_header_is_precompiled_once_for_sources_with_the_same_includes(
    heap: None, tmp_path: Path
) -> None:
    (tmp_path / "h.h").write_text("#define VALUE 7777\n")
    first = ptx.compile_report(SOURCE, options(tmp_path))
    assert first.pch is PchState.CREATED
    assert 0 < first.pch_heap_bytes < ptx.pch_heap_bytes()
    second = ptx.compile_report(SOURCE + "// another source\n", options(tmp_path))
    assert (second.pch, second.pch_heap_bytes) == (PchState.USED, 0)
    assert value_in(first.image)
    assert value_in(second.image)
    assert first.image.log == second.image.log == ""


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_changed_header_is_not_taken_from_what_was_precompiled(
    heap: None, tmp_path: Path, in_memory: bool
) -> None:
    def image(text: str) -> ptx.Image:
        if in_memory:
            return ptx.compile(SOURCE, options(tmp_path), headers={"h.h": text}, cache=False)
        file = tmp_path / "h.h"
        file.write_text(text)
        os.utime(file, ns=(0, 0))  # the date tells nothing
        return ptx.compile(SOURCE, options(tmp_path), cache=ImageCache(max_bytes=0))

    assert not value_in(image("#define VALUE 3333\n"))
    assert value_in(image("#define VALUE 7777\n"))
    assert not value_in(image("#define VALUE 4444\n"))


def test_an_image_is_the_same_with_and_without_precompiled_headers(
    heap: None, tmp_path: Path
) -> None:
    (tmp_path / "h.h").write_text("#define VALUE 7777\ntemplate <class T> struct S { T t; };\n")
    plain = ptx.CompileOptions(target=PTX, include_paths=(tmp_path,))
    expected = ptx.compile(SOURCE, plain, cache=False)
    cache = ImageCache(tmp_path / "images")
    made = cache.get_or_compile(SOURCE, options(tmp_path))
    assert (made, made.origin) == (expected, ptx.ImageOrigin.COMPILED)
    assert cache.get_or_compile(SOURCE, plain).origin is ptx.ImageOrigin.MEMORY


def test_a_heap_that_is_too_small_is_reported_with_the_size_it_needs(
    heap: None, tmp_path: Path
) -> None:
    (tmp_path / "h.h").write_text("#define VALUE 7777\n")
    ptx.set_pch_heap_bytes(4096)
    assert ptx.pch_heap_bytes() == 4096
    report = ptx.compile_report(SOURCE, options(tmp_path))
    assert report.pch is PchState.HEAP_EXHAUSTED
    assert report.pch_heap_bytes > 4096
    assert value_in(report.image)
    needed = rf"ptx\.set_pch_heap_bytes\({report.pch_heap_bytes}\)"
    with pytest.warns(ptx.CompileWarning, match=needed):
        assert ptx.compile(SOURCE, options(tmp_path), cache=False).log == ""
    ptx.set_pch_heap_bytes(report.pch_heap_bytes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ptx.compile_report(SOURCE, options(tmp_path)).pch is PchState.CREATED
    assert ptx.compile_report(SOURCE, options(tmp_path)).pch is PchState.USED


def test_a_header_that_changes_while_it_is_compiled_is_not_used_again(
    heap: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "h.h"
    file.write_text("#define VALUE 3333\n")
    compile_program = _nvrtc.NvrtcProgram.compile

    def change_then_compile(
        program: _nvrtc.NvrtcProgram,
        given: tuple[str, ...],
        cancel: Callable[[], bool] | None = None,
    ) -> bool:
        file.write_text("#define VALUE 7777\n")
        return compile_program(program, given, cancel)

    with monkeypatch.context() as patch:
        patch.setattr(_nvrtc.NvrtcProgram, "compile", change_then_compile)
        assert value_in(ptx.compile(SOURCE, options(tmp_path), cache=False))
    file.write_text("#define VALUE 3333\n")
    assert not value_in(ptx.compile(SOURCE, options(tmp_path), cache=False))


def test_an_older_nvrtc_has_no_heap_for_precompiled_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Older:
        def nvrtcGetPCHHeapSize(self) -> None:  # the C name
            raise RuntimeError('Function "nvrtcGetPCHHeapSize" not found')

    monkeypatch.setattr(_nvrtc, "api", Older)
    with pytest.raises(
        ptx.NvrtcVersionError, match=r"^precompiled headers: this needs NVRTC 12\.8"
    ):
        ptx.pch_heap_bytes()


def test_a_forked_child_leaves_the_folder_to_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    precompiled_headers._remove(os.getpid() + 1, str(folder))
    assert folder.exists()
    precompiled_headers._remove(os.getpid(), str(folder))
    assert not folder.exists()


def test_sizes_of_the_heap_and_folders_that_cannot_be_are_named(tmp_path: Path) -> None:
    for wrong in (-1, 2**64):
        with pytest.raises(ptx.errors.PtxArgumentValueError, match="set_pch_heap_bytes: nbytes"):
            ptx.set_pch_heap_bytes(wrong)
    options = ptx.CompileOptions(target=PTX, pch=True, pch_dir=tmp_path / "missing")
    with pytest.raises(ptx.errors.PtxArgumentValueError, match="pch_dir: no folder can be made"):
        ptx.compile('#include "a.h"', options, headers={"a.h": "int a;"}, cache=False)
