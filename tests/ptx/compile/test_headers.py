"""CUDA's headers: found, bundled, or missing with the package that brings them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, HeaderNotFoundError, Target, _nvrtc, headers
from ptx.cache import toolchain
from ptx.cache.folder import PrivateFolder
from ptx.request import CompileRequest

PTX80 = CompileOptions(target=Target.ptx("compute_80"))

KERNELS = {
    "cuda_fp16.h": "__global__ void k(__half* x) { *x = __hadd(*x, *x); }",
    "cuda_bf16.h": "__global__ void k(__nv_bfloat16* x) { *x = __hadd(*x, *x); }",
    "mma.h": "__global__ void k() { nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, "
    "float> f; nvcuda::wmma::fill_fragment(f, 0.0f); }",
    "cuda/std/type_traits": "__global__ void k(int* x) { *x = cuda::std::is_same_v<int, int>; }",
    "cuda/std/cstdint": "__global__ void k(cuda::std::uint8_t* x) { *x = 1; }",
    "cub/block/block_reduce.cuh": """
        __global__ void k(int* x) {
            typedef cub::BlockReduce<int, 128> Reduce;
            __shared__ typename Reduce::TempStorage storage;
            int sum = Reduce(storage).Sum(x[threadIdx.x]);
            if (threadIdx.x == 0) *x = sum;
        }""",
    "cooperative_groups.h": """
        __global__ void k(int* x) {
            auto block = cooperative_groups::this_thread_block();
            x[block.thread_rank()] = block.size();
        }""",
}
SLOW = ("cub/block/block_reduce.cuh", "cooperative_groups.h")


@pytest.fixture
def nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without header packages and toolkit, with an NVRTC that bundles none."""
    monkeypatch.setattr(headers, "_located", lambda: ())
    monkeypatch.setattr(_nvrtc, "bundled_header_count", lambda: 0)


@pytest.mark.parametrize("header", KERNELS)
def test_header_of_cuda_is_found_without_being_told_where(header: str) -> None:
    if header in SLOW and not os.environ.get("CUDADRV_LONG_TESTS"):
        pytest.skip("takes seconds; CUDADRV_LONG_TESTS is not set")
    image = ptx.compile(f"#include <{header}>\n{KERNELS[header]}", PTX80)
    assert len(image.signatures) == 1


def test_missing_header_names_the_package_that_brings_it(nothing_found: None) -> None:
    options = CompileOptions(include_paths=("/my/own",))
    with pytest.raises(HeaderNotFoundError) as caught:
        ptx.compile("#include <cuda_fp16.h>\n", options)
    error = caught.value
    suffix = "" if _nvrtc.bindings_major() >= 13 else "-cu12"
    assert error.header == "cuda_fp16.h"
    assert error.package == f"nvidia-cuda-runtime{suffix}"
    assert error.searched == ("/my/own",)
    assert f"pip install nvidia-cuda-runtime{suffix}" in str(error)
    assert "kernel.cu(1)" in str(error)


def test_header_that_a_header_wants_is_named_too(nothing_found: None) -> None:
    with pytest.raises(HeaderNotFoundError, match="'cuda/std/array' was not found") as e:
        ptx.compile('#include "a.h"\n', headers={"a.h": "// one\n#include <cuda/std/array>\n"})
    assert (e.value.file, e.value.line) == ("a.h", 2)
    assert (e.value.package or "").startswith("nvidia-cuda-cccl")


def test_header_of_others_says_how_to_give_it() -> None:
    with pytest.raises(HeaderNotFoundError, match=r"CompileOptions\.include_paths"):
        ptx.compile('#include "mine.h"\n')


@pytest.mark.parametrize(
    ("package", "folder"),
    [
        ("nvidia-cuda-runtime", "nvidia/cu13/include/"),
        ("nvidia-cuda-cccl", "nvidia/cu13/include/cccl/"),
        ("nvidia-cuda-crt", "nvidia/cu13/include/"),
        ("nvidia-curand", "nvidia/cu13/include/"),
    ],
)
def test_packages_are_named_as_they_are_published(
    package: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    monkeypatch.setattr(_nvrtc, "bindings_major", lambda: 13)
    names = [str(path).removeprefix(folder) for path in listed if str(path).startswith(folder)]
    # cudaGL.h and its like are interfaces of the driver, of no use in device code.
    mine = [n for n in names if n.endswith((".h", ".hpp", ".cuh")) and not re.match("cuda[A-Z]", n)]
    assert mine
    assert {name: headers.package_of(name) for name in mine} == dict.fromkeys(mine, package)


def test_package_names_of_cuda_12(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvrtc, "bindings_major", lambda: 12)
    wanted = {
        "cuda_bf16.h": "nvidia-cuda-runtime-cu12",
        "cooperative_groups/reduce.h": "nvidia-cuda-runtime-cu12",
        "mma.h": "nvidia-cuda-runtime-cu12",
        "crt/mma.h": "nvidia-cuda-nvcc-cu12",
        "cuda/std/array": "nvidia-cuda-cccl-cu12",
        "cub/cub.cuh": "nvidia-cuda-cccl-cu12",
        "nv/target": "nvidia-cuda-cccl-cu12",
        "curand_kernel.h": "nvidia-curand-cu12",
        "mine.h": None,
    }
    assert {header: headers.package_of(header) for header in wanted} == wanted


@pytest.fixture
def only_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without header packages and toolkit, with whatever NVRTC bundles."""
    if not _nvrtc.bundled_header_count():
        pytest.skip("this NVRTC bundles no headers")
    monkeypatch.setattr(headers, "_located", lambda: ())


def test_bundled_headers_are_unpacked_into_the_cache_folder_once(
    only_bundled: None, cache_folder: Path
) -> None:
    source = f"#include <cuda_fp16.h>\n{KERNELS['cuda_fp16.h']}"
    ptx.compile(source, PTX80)
    major, minor = ptx.nvrtc_version()
    unpacked = cache_folder / f"headers-{major}.{minor}"
    header = unpacked / "cuda_fp16.h"
    written = header.stat().st_mtime_ns
    ptx.compile(source + " ", PTX80)
    assert header.stat().st_mtime_ns == written

    def look(folder: Path | None) -> tuple[str, ...]:
        raise AssertionError("the note in the cache folder was not believed")

    folders = toolchain.folders_of_headers(PrivateFolder(cache_folder), look)
    assert folders == (str(unpacked), str(unpacked / "cccl"))
    ptx.default_cache().clear()
    assert not unpacked.exists()


def test_bundled_headers_serve_without_a_cache_folder(
    only_bundled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "0")
    headers._passing_bundle.cache_clear()
    image = ptx.compile(f"#include <cuda_fp16.h>\n{KERNELS['cuda_fp16.h']}", PTX80)
    assert len(image.signatures) == 1
    (folder, _) = headers.header_folders().paths
    assert not folder.startswith(os.path.expanduser("~/.cache"))


@pytest.mark.parametrize(
    ("source", "includes"),
    [
        ("__global__ void k() {}", False),
        ("#include <a.h>", True),
        ("#inc\\\nlude <a.h>", True),
        ("#inc\\ \r\nlude <a.h>", True),
        ("%:include <a.h>", True),
        ("#if __has_include(<a.h>)\n#endif", True),
        ("int inclu_de;", False),
    ],
)
def test_sources_without_includes_are_told_apart(source: str, includes: bool) -> None:
    request = CompileRequest.of(source, PTX80, "kernel.cu", (), None)
    assert request.includes_anything() is includes


def test_missing_nvrtc_names_the_one_command(tmp_path: Path) -> None:
    """A process that sees the bindings and not the libraries beside them."""
    import cuda.bindings

    site = Path(cuda.bindings.__path__[0]).parents[1]
    for name in ("cuda", "numpy", "numpy.libs", "platformdirs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    for info in site.glob("cuda_bindings-*.dist-info"):
        (tmp_path / info.name).symlink_to(info)
    script = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(ptx.__file__).parents[1])!r}]\n"
        "import ptx\n"
        "for _ in range(3):\n"
        "    try:\n        ptx.compile('')\n"
        "    except ptx.NvrtcNotFoundError as error:\n        print(error.command)\n"
        "    else:\n        print('found', ptx.nvrtc_version())\n"
    )
    environment = {"CUDADRV_CACHE_DIR": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    base = Path(sys.base_prefix) / "bin" / "python3"
    done = subprocess.run(
        [str(base), "-I", "-S", "-c", script], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    if "found" in done.stdout:
        pytest.skip("an NVRTC of the system is found without any package")
    command = f'pip install "cudadrv[cu{_nvrtc.bindings_major()}]"\n'
    assert done.stdout == command * 3


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("cstdint", "<cuda/std/cstdint> instead, whose names are in cuda::std"),
        ("stdint.h", "<cuda/std/cstdint> instead"),
        ("type_traits", "<cuda/std/type_traits> instead"),
        ("cstdio", "knows printf, assert, memcpy and the mathematical functions without one"),
        ("vector", "CompileOptions.include_paths"),
    ],
)
def test_missing_standard_header_says_what_to_use(header: str, remedy: str) -> None:
    with pytest.raises(ptx.HeaderNotFoundError) as caught:
        ptx.compile(f"#include <{header}>\n", cache=False)
    assert remedy in str(caught.value)
    assert caught.value.header == header


def test_what_replaces_a_standard_header_compiles() -> None:
    source = """
    #include <cuda/std/cstdint>
    #include <cstdio>
    extern "C" __global__ void k(cuda::std::uint32_t* x)
    { assert(x); printf("%f", sqrt(2.0)); memcpy(x, x + 1, 4); }
    """
    assert "k" in ptx.compile(source, headers={"cstdio": ""}).signatures
