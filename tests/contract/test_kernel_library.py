"""A library of kernels: lazy, one load a context, any template instance."""

from __future__ import annotations

import pickle
import zipfile
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import KernelLibrary, LaunchConfig
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DriverCallFailed,
    KernelNotFoundError,
)
from tests.several_threads import all_at_once

SCALE = """
namespace detail {
__global__ void set(int* x) { *x = 70; }
}
template <typename T, int N> __global__ void put(T* x) { *x = T(N); }
extern "C" __global__ void seven(int* x) { *x = 7; }
__global__ void eight(int* x) { *x = 8; }
__device__ int table[4] = {1, 2, 3, 4};
"""
INCLUDES = '#include "number.h"\nextern "C" __global__ void number(int* x) { *x = NUMBER; }'


class Counted:
    """Makes a source and counts its calls: one a compilation of the source or an instance."""

    def __init__(self, text: str) -> None:
        self.text, self.calls = text, 0

    def __call__(self) -> str:
        self.calls += 1
        return self.text


def result(kernel: cudadrv.Kernel, dtype: str = "i4") -> float:
    context = kernel.module.context
    assert isinstance(context, cudadrv.Context)
    stream = context.default_stream
    with stream.zeros(1, dtype) as x:
        kernel.launch(stream, LaunchConfig(1, 1), x)
        return float(stream.to_host(x)[0])


def test_kernels_are_found_by_each_kind_of_name_and_are_the_same_at_each_call(
    context: cudadrv.Context,
) -> None:
    library = KernelLibrary({"scale.cu": SCALE}, instances={"scale.cu": ["put<int, 5>"]})
    wanted = {
        "seven": ("i4", 7), "eight": ("i4", 8), "detail::set": ("i4", 70),
        "put<int, 5>": ("i4", 5), "put<float, 6>": ("f4", 6), "put<double, 9>": ("f8", 9),
    }  # fmt: skip
    for name, (dtype, value) in wanted.items():
        kernel = library.kernel(context, name)
        assert result(kernel, dtype) == value, name
        assert library.kernel(context, name, "scale.cu") is kernel
    declared = {library.kernel(context, name).module for name in ("seven", "put<int, 5>")}
    assert declared == {library.module(context)}
    stream = context.default_stream
    table = library.module(context).global_array("table", dtype=np.int32)
    assert stream.to_host(table).tolist() == [1, 2, 3, 4]


def test_a_source_is_made_when_its_first_kernel_is_taken_and_once_a_module(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    first, second = Counted(SCALE), Counted("nonsense {")
    library = KernelLibrary({"a.cu": first, "b.cu": second})
    assert (first.calls, second.calls) == (0, 0)
    for where in (context, second_context, context):
        assert library.kernel(where, "seven", "a.cu").module.context is where
        assert library.kernel(where, "put<int, 3>", "a.cu").module.context is where
    assert (first.calls, second.calls) == (2, 0)
    with pytest.raises(DriverCallFailed, match=r"b\.cu NVRTC compile failed"):
        library.kernel(context, "seven", "b.cu")


def test_sources_are_files_of_a_package_with_the_headers_beside_them(
    context: cudadrv.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "number.h").write_text("#define NUMBER 31\n")
    (tmp_path / "number.cu").write_text(INCLUDES)
    monkeypatch.chdir(tmp_path)
    library = KernelLibrary({"number.cu": Path("number.cu")})
    monkeypatch.chdir("/")
    assert result(library.kernel(context, "number")) == 31

    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("kernels/seven.cu", SCALE)
    file: Traversable = zipfile.Path(tmp_path / "package.zip") / "kernels" / "seven.cu"
    assert result(KernelLibrary({"seven.cu": file}).kernel(context, "seven")) == 7

    (tmp_path / "number.cu").write_text(INCLUDES.replace("NUMBER", "NUMBER + 1"))
    assert result(library.kernel(context, "number")) == 31
    library.clear()
    assert result(library.kernel(context, "number")) == 32
    missing = KernelLibrary({"none.cu": tmp_path / "none.cu"})
    with pytest.raises(FileNotFoundError, match=r"none\.cu"):
        missing.kernel(context, "number")


def test_headers_are_given_by_name_as_text_function_and_file(
    context: cudadrv.Context, tmp_path: Path
) -> None:
    (tmp_path / "number.h").write_text("#define NUMBER 40 + MORE\n")
    more = Counted("#define MORE 3\n")
    library = KernelLibrary(
        {"number.cu": f'#include <more.h>\n#include "none.h"\n{INCLUDES}', "scale.cu": SCALE},
        headers={"number.h": tmp_path / "number.h", "more.h": more, "none.h": ""},
    )
    assert more.calls == 0
    assert result(library.kernel(context, "number", "number.cu")) == 43
    library.prewarm(context)
    assert more.calls == 1
    more.text = "#define MORE 4\n"
    library.clear()
    assert result(library.kernel(context, "number", "number.cu")) == 44
    (tmp_path / "number.h").unlink()
    library.clear()
    with pytest.raises(FileNotFoundError, match=r"number\.h"):
        library.kernel(context, "number", "number.cu")


@pytest.mark.parametrize("kind", ["path", "zip"])
def test_headers_are_a_folder_of_a_package(
    context: cudadrv.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    files = {
        "include/number.h": b'#include "more/step.h"\n#define NUMBER 50 + STEP\n',
        "include/more/step.h": b"#define STEP 2\n",
        "include/picture.png": b"\x89PNG\0\xff",
        "include/latin.txt": b"\xe9t\xe9",
    }
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        root: Traversable = zipfile.Path(tmp_path / "package.zip")
    else:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
        monkeypatch.chdir(tmp_path)
        root = Path()
    library = KernelLibrary({"number.cu": INCLUDES}, headers=root / "include")
    monkeypatch.chdir("/")
    assert result(library.kernel(context, "number")) == 52
    for wrong in (root / "include" / "number.h", root / "missing"):
        with pytest.raises(NotADirectoryError, match="headers is no folder"):
            KernelLibrary({"number.cu": INCLUDES}, headers=wrong).kernel(context, "number")


def test_module_caches_take_headers_and_keep_them_in_pickles(context: cudadrv.Context) -> None:
    single = cudadrv.PtxModuleCache(headers={"number.h": "#define NUMBER 61\n"})
    keyed = cudadrv.runtime.KeyedPtxModuleCache(headers={"number.h": "#define NUMBER 62\n"})
    for caches in ((single, keyed), pickle.loads(pickle.dumps((single, keyed)))):
        module = caches[0].get_or_compile(context, "number", INCLUDES)
        assert result(module.kernel("number")) == 61
        module = caches[1].get_or_compile(context, "key", "number", INCLUDES)
        assert result(module.kernel("number")) == 62
    wrong: Any
    for wrong in ("number.h", {"number.h": 3}, {3: ""}):
        for cls in (cudadrv.PtxModuleCache, cudadrv.runtime.KeyedPtxModuleCache):
            with pytest.raises(ArgumentTypeError, match="headers"):
                cls(headers=wrong)


def test_a_prewarmed_library_compiles_nothing_later(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    sources = {label: Counted(SCALE.replace("7", label)) for label in "123"}
    library = KernelLibrary(sources, instances={"2": ["put<int, 4>"]})
    library.kernel(context, "put<int, 3>", "1")
    library.prewarm(context, second_context)
    calls = [source.calls for source in sources.values()]
    assert calls == [2, 1, 1]
    for where in (context, second_context):
        assert [result(library.kernel(where, "seven", label)) for label in "123"] == [1, 2, 3]
        assert result(library.kernel(where, "put<int, 4>", "2")) == 4
        assert result(library.kernel(where, "put<int, 3>", "1")) == 3
    assert [source.calls for source in sources.values()] == calls
    with pytest.raises(DriverCallFailed, match="^bad NVRTC compile failed"):
        KernelLibrary({"bad": "nonsense {", "good": SCALE}).prewarm(context)


def test_threads_that_take_kernels_at_once_share_one_module(context: cudadrv.Context) -> None:
    source = Counted(SCALE)
    library = KernelLibrary({"scale": source})
    found: list[cudadrv.Kernel] = []
    names = ["seven", "put<int, 1>", "put<int, 2>"]
    all_at_once([lambda: found.extend(library.kernel(context, name) for name in names)] * 8)
    assert len(found) == 24
    assert len(set(map(id, found))) == 3
    assert source.calls == 3


def test_what_is_missing_is_named_with_what_exists(context: cudadrv.Context) -> None:
    library = KernelLibrary({"a.cu": SCALE, "b.cu": SCALE})
    with pytest.raises(KernelNotFoundError, match="(?s)'sevens'.*seven"):
        library.kernel(context, "sevens", "a.cu")
    with pytest.raises(ptx.CompileError, match="(?s)nothing<int>"):
        library.kernel(context, "nothing<int>", "a.cu")
    with pytest.raises(ArgumentValueError, match=r"(?s)several.*a\.cu, b\.cu"):
        library.kernel(context, "seven")
    with pytest.raises(ArgumentValueError, match=r"(?s)'c\.cu'.*a\.cu, b\.cu"):
        library.kernel(context, "seven", "c.cu")
    library.prewarm(context)  # a name that failed is not tried again
    assert result(library.kernel(context, "seven", "b.cu")) == 7


def test_an_instance_that_one_source_declares_needs_no_label(context: cudadrv.Context) -> None:
    source = "template <typename T> __global__ void {}(T* x) {{ *x = {}; }}"
    library = KernelLibrary(
        {"a.cu": source.format("one", 1), "b.cu": source.format("two", 2)},
        instances={"a.cu": ["one<int>"], "b.cu": ["two<int>", "two<float>"]},
    )
    stream = context.new_stream()
    for name, value in {"one<int>": 1, "two<float>": 2}.items():
        kernel = library.kernel(context, name)
        assert kernel is library.kernel(context, name)
        x = stream.zeros(1, np.int32 if "int" in name else np.float32)
        kernel.launch(stream, cudadrv.LaunchConfig(1, 1), x)
        assert stream.to_host(x).tolist() == [value]
    with pytest.raises(ArgumentValueError, match=r"none of several(?s:.)*a\.cu, b\.cu"):
        library.kernel(context, "one<float>")
    with pytest.raises(ArgumentValueError, match=r"'tow<int>'(?s:.)*did you mean 'two<int>'\?"):
        library.kernel(context, "tow<int>")
    both = KernelLibrary(
        {"a.cu": source.format("one", 1), "b.cu": source.format("one", 2)},
        instances={"a.cu": ["one<int>"], "b.cu": ["one<int>"]},
    )
    with pytest.raises(ArgumentValueError, match="several sources have 'one<int>'"):
        both.kernel(context, "one<int>")


def test_a_kernel_with_the_name_of_one_source_needs_no_label(context: cudadrv.Context) -> None:
    source = 'extern "C" __global__ void {0}(int* x) {{ *x = {1}; }}'
    template = "template <typename T> __global__ void three(T* x) { *x = 3; }"
    library = KernelLibrary(
        {
            "kernels/one.cu": source.format("one", 1), "two": source.format("two", 2),
            "three.cu": template, "a/four.cu": source.format("four", 4),
            "b/four.cu": source.format("four", 5), "five.cu": template,
        },
        instances={"five.cu": ["three<float>"]},
    )  # fmt: skip
    for name, dtype, value in (("one", "i4", 1), ("two", "i4", 2), ("three<int>", "i4", 3)):
        kernel = library.kernel(context, name)
        assert result(kernel, dtype) == value
        assert library.kernel(context, name) is kernel
    # An instance that another source declares is that one's.
    declared = library.kernel(context, "three<float>", "five.cu")
    assert library.kernel(context, "three<float>") is declared
    with pytest.raises(ArgumentValueError, match="several sources have 'four'"):
        library.kernel(context, "four")
    with pytest.raises(KernelNotFoundError, match="'five'.*three<float>"):
        library.kernel(context, "five")


def test_wrong_arguments_are_rejected_when_they_are_given(context: cudadrv.Context) -> None:
    wrong: list[tuple[Any, ...]] = [
        (None,),
        ("text",),
        ({"a": None},),
        ({"a": 3},),
        ({3: SCALE},),
        ({"a": lambda x: x},),
        ({"a": SCALE}, "-O3"),
    ]
    for arguments in wrong:
        with pytest.raises(ArgumentTypeError):
            KernelLibrary(*arguments)
    headers: Any
    for headers in ("number.h", ["number.h"], {"number.h": 3}, {3: ""}):
        with pytest.raises(ArgumentTypeError):
            KernelLibrary({"a": SCALE}, headers=headers)
    with pytest.raises(ArgumentValueError, match="no source"):
        KernelLibrary({})
    instances: Any
    for instances in ("put", {"a": "put<int, 1>"}, {"a": [1]}):
        with pytest.raises(ArgumentTypeError):
            KernelLibrary({"a": SCALE}, instances=instances)
    with pytest.raises(ArgumentValueError, match="'b'"):
        KernelLibrary({"a": SCALE}, instances={"b": ["put<int, 1>"]})
    library = KernelLibrary({"a": SCALE})
    call: Any = library.kernel
    given: Any
    for given in ((None, "seven"), (context, 3), (context, "seven", 3), (context, "seven", [])):
        with pytest.raises(ArgumentTypeError):
            call(*given)
    prewarm: Any = library.prewarm
    with pytest.raises(ArgumentTypeError):
        prewarm(0)


def test_a_pickled_library_has_its_compiled_images(context: cudadrv.Context) -> None:
    library = KernelLibrary({"a": SCALE}, ptx.CompileOptions(lineinfo=True))
    library.kernel(context, "put<int, 12>")
    there = pickle.loads(pickle.dumps(library))
    assert result(there.kernel(context, "put<int, 12>")) == 12
    assert result(there.kernel(context, "seven")) == 7
