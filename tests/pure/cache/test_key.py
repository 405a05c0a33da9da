"""What is part of the key: a change of it gives a fresh image, a change elsewhere a hit.

Every image is compared with what a compilation without a cache gives at that moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, Image, ImageCache, ImageOrigin, Target
from ptx.cache import key
from ptx.cache.key import CompileKeys
from ptx.cache.toolchain import Build
from ptx.options import CompileRequest
from tests.short_cases import few

PLAIN = "__global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; }"
TEMPLATE = "template <typename T> __global__ void k(T* x) { x[0] = x[1] / x[2]; }"
INCLUDES_A = '#include "a.h"\n__global__ void k(int* x) { *x = VALUE; }'
OPTIONS = CompileOptions()


class Project:
    """A cache folder and include folders `one` and `two`; each request is a new process's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths = (path / "one", path / "two")
        for folder in self.paths:
            folder.mkdir()

    def header(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def image(
        self,
        source: str,
        options: CompileOptions = OPTIONS,
        *,
        name: str = "kernel.cu",
        expressions: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Image:
        if not options.include_paths:
            options = replace(options, include_paths=self.paths)
        cache = ImageCache(self.path / "cache")
        image = cache.get_or_compile(
            source, options, name=name, name_expressions=expressions, headers=headers
        )
        fresh = ptx.compile(
            source, options, name=name, name_expressions=expressions, headers=headers, cache=False
        )
        assert image == fresh
        return image

    def compiles(
        self, source: str, options: CompileOptions = OPTIONS, *, name: str = "kernel.cu"
    ) -> bool:
        return self.image(source, options, name=name).origin is ImageOrigin.COMPILED


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_same_request_hits(project: Project) -> None:
    assert project.image(PLAIN).origin is ImageOrigin.COMPILED
    assert project.image(PLAIN).origin is ImageOrigin.DISK


def test_source_is_part_of_the_key(project: Project) -> None:
    project.image(PLAIN)
    assert project.compiles(PLAIN + " ")


def test_name_is_part_of_the_key(project: Project) -> None:
    project.image(PLAIN)
    assert project.compiles(PLAIN, name="other.cu")


@pytest.mark.parametrize(
    "options",
    few(
        [
            CompileOptions(target=Target.ptx("compute_80")),
            CompileOptions(target=Target.cubin("sm_80")),
            CompileOptions(target=Target.cubin("sm_90")),
            CompileOptions(target=Target.cubin("sm_90a")),
            CompileOptions(target=Target.ltoir("sm_90")),
            CompileOptions(std="c++14"),
            CompileOptions(defines={"N": None}),
            CompileOptions(defines={"N": "1"}),
            CompileOptions(defines={"N": "2"}),
            CompileOptions(fmad=False),
            CompileOptions(fmad=True),
            CompileOptions(ftz=True),
            CompileOptions(prec_div=False),
            CompileOptions(prec_sqrt=False),
            CompileOptions(use_fast_math=True),
            CompileOptions(lineinfo=True),
            CompileOptions(debug=True),
            CompileOptions(maxrregcount=32),
            CompileOptions(extra=("--diag-suppress=177",)),
        ],
        8,
    ),
    ids=lambda options: str(options.target) if options.target else " ".join(options.flags()[-1:]),
)
def test_every_option_is_part_of_the_key(project: Project, options: CompileOptions) -> None:
    project.image(PLAIN)
    assert project.compiles(PLAIN, options)
    assert not project.compiles(PLAIN, options)
    assert not project.compiles(PLAIN)


def test_options_are_distinct_from_each_other(project: Project) -> None:
    project.image(PLAIN, CompileOptions(defines={"A": "1 -DB=2"}))
    assert project.compiles(PLAIN, CompileOptions(defines={"A": "1", "B": "2"}))


def test_name_expressions_are_part_of_the_key(project: Project) -> None:
    one = project.image(TEMPLATE, expressions=("k<float>",))
    two = project.image(TEMPLATE, expressions=("k<float>", "k<double>"))
    assert two.origin is ImageOrigin.COMPILED
    assert set(one.lowered_names) == {"k<float>"}
    again = project.image(TEMPLATE, expressions=("k<float>",))
    assert again.origin is ImageOrigin.DISK
    assert again.lowered_names == one.lowered_names


def test_order_of_name_expressions_is_not(project: Project) -> None:
    project.image(TEMPLATE, expressions=("k<float>", "k<double>"))
    cache = ImageCache(project.path / "cache")
    options = CompileOptions(include_paths=project.paths)
    image = cache.get_or_compile(TEMPLATE, options, name_expressions=("k<double>", "k<float>"))
    assert image.origin is ImageOrigin.DISK


def test_version_of_nvrtc_is_part_of_the_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.image(PLAIN)
    monkeypatch.setattr(key, "build_of", lambda library, folder: Build((99, 1), 12345))
    assert project.compiles(PLAIN)
    monkeypatch.setattr(key, "build_of", lambda library, folder: Build((99, 1), 12346))
    assert project.compiles(PLAIN)


def test_header_in_memory_is_part_of_the_key(project: Project) -> None:
    project.image(INCLUDES_A, headers={"a.h": "#define VALUE 1\n"})
    image = project.image(INCLUDES_A, headers={"a.h": "#define VALUE 2\n"})
    assert image.origin is ImageOrigin.COMPILED
    project.header("one/a.h", "#define VALUE 3\n")  # the one in memory comes first
    again = project.image(INCLUDES_A, headers={"a.h": "#define VALUE 2\n"})
    assert again.origin is ImageOrigin.DISK


def test_directly_included_header_is_part_of_the_key(project: Project) -> None:
    project.header("one/a.h", "#define VALUE 1\n")
    project.image(INCLUDES_A)
    assert not project.compiles(INCLUDES_A)
    project.header("one/a.h", "#define VALUE 2\n")  # same size, and within the clock's step
    assert project.compiles(INCLUDES_A)


def test_header_changed_and_set_back_in_time_is_seen(project: Project) -> None:
    path = project.header("one/a.h", "#define VALUE 1\n")
    os.utime(path, ns=(10**18, 10**18))
    project.image(INCLUDES_A)
    path.write_text("#define VALUE 2\n")
    os.utime(path, ns=(10**18, 10**18))
    assert project.compiles(INCLUDES_A)


def test_transitively_included_header_is_part_of_the_key(project: Project) -> None:
    project.header("one/a.h", '#include "deep/b.h"\n')
    project.header("one/deep/b.h", "#if 1\n#include <c.h>\n#endif\n")
    project.header("two/c.h", "#define VALUE 1\n")
    project.image(INCLUDES_A)
    assert not project.compiles(INCLUDES_A)
    project.header("two/c.h", "#define VALUE 2\n")
    assert project.compiles(INCLUDES_A)


def test_unrelated_header_is_not_part_of_the_key(project: Project) -> None:
    project.header("one/a.h", "#define VALUE 1\n")
    project.header("one/unrelated.h", "#define OTHER 1\n")
    project.image(INCLUDES_A)
    project.header("one/unrelated.h", "#define OTHER 2\n")
    project.header("two/new.h", "")
    assert not project.compiles(INCLUDES_A)


def test_order_of_include_folders_is_part_of_the_key(project: Project) -> None:
    project.header("one/a.h", "#define VALUE 1\n")
    project.header("two/a.h", "#define VALUE 2\n")
    project.image(INCLUDES_A)
    assert project.compiles(INCLUDES_A, CompileOptions(include_paths=project.paths[::-1]))


def test_header_that_appears_in_an_earlier_folder_is_a_change(project: Project) -> None:
    project.header("two/a.h", "#define VALUE 1\n")
    project.image(INCLUDES_A)
    project.header("one/a.h", "#define VALUE 2\n")
    assert project.compiles(INCLUDES_A)


def test_header_moved_to_an_earlier_folder_is_a_change(project: Project) -> None:
    path = project.header("two/a.h", "#define VALUE 1\n")
    project.image(INCLUDES_A)
    path.rename(project.path / "one/a.h")
    assert project.compiles(INCLUDES_A)


@pytest.mark.parametrize(
    "test",
    [
        '__has_include("later.h")',
        "__has_include(<later.h>)",
        "__has_include( /* soon */ <later.h> )",
        "HAVE(<later.h>)",
        "__has_include(NAME)",
    ],
)
def test_header_requested_that_appears_later_is_a_change(project: Project, test: str) -> None:
    source = (
        "#define NAME <later.h>\n#define HAVE(x) __has_include(x)\n"
        f"#if {test}\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n"
        "__global__ void k(int* x) { *x = VALUE; }"
    )
    before = project.image(source)
    project.header("two/later.h", "")
    after = project.image(source)
    assert after.origin is ImageOrigin.COMPILED
    assert before.data != after.data


def test_header_beside_the_source_is_part_of_the_key(project: Project) -> None:
    project.header("src/a.h", "#define VALUE 1\n")
    name = str(project.path / "src/kernel.cu")
    project.image(INCLUDES_A, name=name)
    assert not project.compiles(INCLUDES_A, name=name)
    project.header("src/a.h", "#define VALUE 2\n")
    assert project.compiles(INCLUDES_A, name=name)


def test_header_beside_the_including_header_comes_first(project: Project) -> None:
    project.header("one/a.h", '#include "sub/b.h"\n')
    project.header("one/sub/b.h", '#include "value.h"\n')
    project.header("one/value.h", "#define VALUE 1\n")
    project.image(INCLUDES_A)
    project.header("one/sub/value.h", "#define VALUE 2\n")
    assert project.compiles(INCLUDES_A)


@pytest.mark.parametrize(
    "directive",
    few(
        [
            "#include NAME",
            "#define HERE NAME\n#include HERE",
            "#define IN(x) <x>\n#include IN(value.h)",
            "#define NAMED <value.h>\n#define PASTED(a, b) a##b\n#include PASTED(NAM, ED)",
        ],
        1,
    ),
)
def test_header_of_a_computed_name_is_part_of_the_key(project: Project, directive: str) -> None:
    source = f"{directive}\n__global__ void k(int* x) {{ *x = VALUE; }}"
    options = CompileOptions(include_paths=project.paths, defines={"NAME": "<value.h>"})
    project.header("two/value.h", "#define VALUE 1\n")
    project.header("src/beside.h", "")
    name = str(project.path / "src/kernel.cu")
    project.image(source, options, name=name)
    assert not project.compiles(source, options, name=name)
    project.header("two/value.h", "#define VALUE 2\n")
    assert project.compiles(source, options, name=name)


def test_computed_name_defined_in_another_header_is_followed(project: Project) -> None:
    source = '#include "a.h"\n#include NAME\n__global__ void k(int* x) { *x = VALUE; }'
    project.header("one/a.h", '#define NAME "value.h"\n')
    project.header("two/value.h", "#define VALUE 1\n")
    project.image(source)
    assert not project.compiles(source)
    project.header("two/value.h", "#define VALUE 2\n")
    assert project.compiles(source)


def test_pre_included_header_is_part_of_the_key(project: Project) -> None:
    source = "__global__ void k(int* x) { *x = VALUE; }"
    options = CompileOptions(include_paths=project.paths, extra=("--pre-include=value.h",))
    project.header("two/value.h", "#define VALUE 1\n")
    project.image(source, options)
    assert not project.compiles(source, options)
    project.header("two/value.h", "#define VALUE 2\n")
    assert project.compiles(source, options)


def test_next_header_of_a_name_is_part_of_the_key(project: Project) -> None:
    project.header("one/a.h", "#include_next <a.h>\n")
    project.header("two/a.h", "#define VALUE 1\n")
    project.image(INCLUDES_A.replace('"a.h"', "<a.h>"))
    project.header("two/a.h", "#define VALUE 2\n")
    assert project.compiles(INCLUDES_A.replace('"a.h"', "<a.h>"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "directive",
    [
        "#inc\\\nlude <value.h>",
        "%:include <value.h>",
        "/* a */ # /* b */ include /* c */ <value.h>",
        "/* a \n b */ #include/* \n */<value.h>",
        '  #  include\t"value.h" // c',
        "#if 0\n#else\n#include <value.h>\n#endif",
        "#include <./value.h>",
        "// a backslash and a blank splice nothing \\ \n#include <value.h>",
        pytest.param(
            "// nor does this since C++17 ??/\n#include <value.h>",
            marks=pytest.mark.filterwarnings("ignore::ptx.CompileWarning"),
        ),
        "// # /*\n#include <value.h>\n// */",
        "#include <../two/value.h>",
    ],
)
def test_directive_is_seen_however_it_is_written(project: Project, directive: str) -> None:
    source = f"{directive}\n__global__ void k(int* x) {{ *x = VALUE; }}"
    project.header("two/value.h", "#define VALUE 1\n")
    project.image(source)
    assert not project.compiles(source)
    project.header("two/value.h", "#define VALUE 2\n")
    assert project.compiles(source)


def test_headers_that_include_each_other_end(project: Project) -> None:
    project.header("one/a.h", '#pragma once\n#include "../one/b.h"\n#define VALUE 1\n')
    project.header("one/b.h", '#pragma once\n#include "../one/a.h"\n')
    project.image(INCLUDES_A)
    assert not project.compiles(INCLUDES_A)


def test_option_with_files_of_its_own_is_not_cached(project: Project) -> None:
    report = project.path / "time.csv"
    options = CompileOptions(extra=(f"--time={report}",))
    assert project.compiles(PLAIN, options)
    assert project.compiles(PLAIN, options)


@pytest.mark.parametrize("options", [CompileOptions(lineinfo=True), CompileOptions(debug=True)])
def test_the_working_folder_is_part_of_the_key_where_lines_are_named(
    options: CompileOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts_in(folder: Path) -> tuple[Mapping[str, str], Mapping[str, str]]:
        folder.mkdir()
        monkeypatch.chdir(folder)
        keys = key.CompileKeys(None)
        found = [
            keys.key(CompileRequest.of(PLAIN, each, "kernel.cu", (), None))
            for each in (options, OPTIONS)
        ]
        return found[0].parts, found[1].parts

    lines, plain = parts_in(tmp_path / "a")
    others, same = parts_in(tmp_path / "b")
    assert (lines["working folder"], others["working folder"]) == (
        str(tmp_path / "a"),
        str(tmp_path / "b"),
    )
    assert plain == same


@pytest.mark.parametrize(
    ("changed", "age", "sleeps"),
    [
        (1_000_000_007, 15_000_000, 0.005),
        (1_000_000_007, 25_000_000, 0.0),
        (1_000_000_007, -15_000_000, None),
        (3_000_000_000, 1_500_000_000, None),
        (3_000_000_000, 1_990_000_000, 0.01),
        (3_000_000_000, 2_000_000_000, 0.0),
    ],
)
def test_an_image_is_stored_when_a_change_of_its_headers_must_show(
    changed: int, age: int, sleeps: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time_ns", lambda: changed + age)
    stamps = ((1, 5, 5, 9), (1, changed - 1, changed, 2**62), (1, 2**62, 7, 8))
    assert key.Key("", {}, (), stamps).settle() == (sleeps is not None)
    assert slept == ([] if sleeps is None else [sleeps])


def test_header_folders_are_found_again_only_when_one_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    looked: list[int] = []

    def look(*_: object) -> tuple[tuple[str, str], ...]:
        looked.append(1)
        return ((str(folder), "contents"),)

    monkeypatch.setattr(key, "folders_of_headers", look)
    keys, request = key.CompileKeys(None), CompileRequest.of(PLAIN, OPTIONS, "k.cu", (), None)
    assert [keys.folders(request) for _ in range(3)] == [((str(folder), "contents"),)] * 3
    assert len(looked) == 1
    folder.rmdir()
    keys.folders(request)
    assert len(looked) == 2


def test_a_key_holds_no_longer_once_a_header_has_come_back(project: Project) -> None:
    path = project.header("one/a.h", "#define VALUE 1\n")
    options = replace(OPTIONS, include_paths=project.paths, target=Target.parse("compute_90"))
    request = CompileRequest.of(INCLUDES_A, options, "kernel.cu", (), None)
    before = CompileKeys(None).key(request)
    assert before.settle()
    assert before.still_holds(CompileKeys(None).key(request))
    path.write_text("#define VALUE 2\n")
    changed = CompileKeys(None).key(request)
    path.write_text("#define VALUE 1\n")
    after = CompileKeys(None).key(request)
    assert before.digest == after.digest != changed.digest
    assert not before.still_holds(after)
    assert not before.still_holds(changed)
