"""CUDA's headers: found, bundled, or missing with the package that brings them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

import ptx
from ptx import CompileError, CompileOptions, HeaderNotFoundError, Target, _nvrtc
from ptx.cache import toolchain
from ptx.cache.folder import PrivateFolder
from ptx.headers import install_command, package_of
from ptx.options import CompileRequest

from .fake_headers import environment_without_headers, link_bindings, write_runtime, write_toolkit

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


def skip_without(header: str) -> None:
    """Skip where this machine has no headers of NVRTC's version."""
    if not any(folder.has(header) for folder in ptx.cuda_headers().folders):
        pytest.skip("{} of CUDA {}.{} is not installed".format(header, *ptx.nvrtc_version()))


@pytest.fixture
def without_headers(tmp_path: Path) -> CompileOptions:
    """Options that name an empty folder for CUDA's headers, so that there are none."""
    (tmp_path / "empty").mkdir()
    return replace(PTX80, cuda_headers=(tmp_path / "empty",))


def pinned(package: str) -> str:
    """The package in the version that goes with the installed NVRTC, as pip takes it."""
    major, minor = ptx.nvrtc_version()
    if package == "nvidia-cuda-cccl" and major == 13 and minor >= 3:
        return f'"{package}==13.3.{minor}.*"'
    return f'"{package}=={major}.{minor}.*"' if major >= 13 else f'"{package}-cu12==12.{minor}.*"'


@pytest.mark.slow
@pytest.mark.parametrize(
    "header",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in KERNELS],
)
def test_header_of_cuda_is_found_without_its_folder(header: str) -> None:
    skip_without(header)
    image = ptx.compile(f"#include <{header}>\n{KERNELS[header]}", PTX80)
    assert len(image.signatures) == 1


def test_missing_header_names_the_package_that_brings_it(without_headers: CompileOptions) -> None:
    options = replace(without_headers, include_paths=("/my/own",))
    with pytest.raises(HeaderNotFoundError) as caught:
        ptx.compile("#include <cuda_fp16.h>\n", options)
    error = caught.value
    major, _ = ptx.nvrtc_version()
    assert error.header == "cuda_fp16.h"
    assert error.package == "nvidia-cuda-runtime" + ("" if major >= 13 else "-cu12")
    assert error.command == f"pip install {pinned('nvidia-cuda-runtime')}"
    assert error.searched == ("/my/own", *without_headers.cuda_headers)
    assert error.command in str(error)
    assert "kernel.cu(1)" in str(error)


def test_header_that_a_header_wants_is_named_too(without_headers: CompileOptions) -> None:
    texts = {"a.h": "// one\n#include <cuda/std/array>\n"}
    with pytest.raises(HeaderNotFoundError, match="'cuda/std/array' was not found") as e:
        ptx.compile('#include "a.h"\n', without_headers, headers=texts)
    assert (e.value.file, e.value.line) == ("a.h", 2)
    assert e.value.command == f"pip install {pinned('nvidia-cuda-cccl')}"


def test_header_of_others_reports_how_to_give_it() -> None:
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
def test_packages_are_named_as_they_are_published(package: str, folder: str) -> None:
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    names = [str(path).removeprefix(folder) for path in listed if str(path).startswith(folder)]
    # cudaGL.h and its like are interfaces of the driver, of no use in device code.
    mine = [n for n in names if n.endswith((".h", ".hpp", ".cuh")) and not re.match("cuda[A-Z]", n)]
    assert mine
    assert {name: package_of(name, 13) for name in mine} == dict.fromkeys(mine, package)


def test_package_names_of_cuda_12() -> None:
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
    assert {header: package_of(header, 12) for header in wanted} == wanted


OTHER = (12, 1)  # a version that no NVRTC has that can be used
ASKS = 'extern "C" __global__ void k(int* x) { *x = FAKE_OF; }'


@pytest.fixture
def fake_toolkit(tmp_path: Path) -> Path:
    """A toolkit of another version than NVRTC is."""
    root = write_toolkit(tmp_path / "toolkit", *OTHER)
    (root / "include" / "cuda_of_other.h").write_text("#define FAKE_OF 1201\n")
    return root


@pytest.mark.parametrize("cache", [True, False])
def test_header_of_another_version_is_rejected_with_both_versions_and_the_remedy(
    fake_toolkit: Path, monkeypatch: pytest.MonkeyPatch, cache: bool
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(fake_toolkit))
    monkeypatch.setenv("CUDA_PATH", str(fake_toolkit))
    with pytest.raises(ptx.HeaderVersionError) as caught:
        ptx.compile(f"#include <cuda_of_other.h>\n{ASKS}", cache=cache)
    error = caught.value
    assert isinstance(error, HeaderNotFoundError)
    assert error.versions == (("runtime", OTHER), ("CCCL", OTHER))
    assert error.nvrtc == ptx.nvrtc_version()
    assert error.folder == str(fake_toolkit / "include")
    assert error.folder not in error.searched
    assert error.command == f"pip install {pinned('nvidia-cuda-runtime')}"
    major, minor = ptx.nvrtc_version()
    for words in (f"NVRTC is {major}.{minor}", "12.1", error.folder, error.command):
        assert words in str(error)
    rejected = [folder.path for folder in ptx.cuda_headers().rejected]
    assert str(fake_toolkit / "include") in rejected


def test_named_headers_are_used_whatever_their_version_and_no_others(
    fake_toolkit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = str(fake_toolkit / "include")
    options = CompileOptions(cuda_headers=(include,))
    source = f"#include <cuda_fp16.h>\n{ASKS}"
    assert "1201" in (ptx.compile(source, options).ptx or "")
    with pytest.raises(CompileError):  # NVRTC's own, or none
        ptx.compile(source)
    monkeypatch.setenv("CUDADRV_HEADERS", include)
    assert "1201" in (ptx.compile(source).ptx or "")
    assert "1201" in (ptx.compile(source, cache=False).ptx or "")
    assert ptx.cuda_headers().paths == (include,)
    # What the options name goes before the environment.
    newer = write_runtime(fake_toolkit / "newer", 12, 2)
    options = CompileOptions(cuda_headers=(newer,))
    assert "1202" in (ptx.compile(source, options).ptx or "")
    assert ptx.cuda_headers(options).paths == (str(newer),)
    with pytest.raises(HeaderNotFoundError) as caught:
        ptx.compile("#include <cuda/std/cstdint>\n", options)
    assert caught.value.searched == (str(newer),)


def test_folders_of_headers_and_their_versions_are_in_the_key(fake_toolkit: Path) -> None:
    include = fake_toolkit / "include"
    options = CompileOptions(cuda_headers=(include,))
    request = CompileRequest.of(f"#include <cuda_fp16.h>\n{ASKS}", options, "k.cu", (), None)
    cache = ptx.default_cache()
    cache.get_or_build(request)
    assert cache.explain(request).hit
    # The source reaches this header not at all.
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12020\n")
    explanation = cache.explain(request)
    assert not explanation.hit
    (difference,) = explanation.differing
    assert difference.startswith("CUDA headers: ")
    assert "runtime 12.1" in difference
    assert "runtime 12.2" in difference
    bare = CompileRequest.of("__global__ void k() {}", options, "k.cu", (), None)
    cache.get_or_build(bare)
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12030\n")
    assert cache.explain(bare).hit


def test_the_note_of_header_folders_is_one_for_each_version_of_nvrtc(tmp_path: Path) -> None:
    asked = []

    def look(
        named: tuple[str, ...], nvrtc: tuple[int, int], folder: Path | None
    ) -> tuple[tuple[str, str], ...]:
        asked.append((named, nvrtc, folder))
        return ((str(tmp_path), f"runtime {nvrtc}"),)

    notes = PrivateFolder(tmp_path / "notes")
    for version in ((13, 5), (12, 9), (13, 5)):
        folders = toolchain.folders_of_headers(version, notes, look)
        assert folders == ((str(tmp_path), f"runtime {version}"),)
    assert asked == [((), (13, 5), notes.path), ((), (12, 9), notes.path)]


def test_an_error_reports_headers_of_another_version_among_the_users_own_folders(
    fake_toolkit: Path,
) -> None:
    include = fake_toolkit / "include"
    (include / "cuda_of_other.h").write_text("nonsense\n")
    options = CompileOptions(include_paths=(include,))
    with pytest.raises(CompileError) as caught:
        ptx.compile("#include <cuda_of_other.h>\n", options)
    major, minor = ptx.nvrtc_version()
    assert caught.value.remark == (
        f"{include} has headers of CUDA (runtime 12.1, CCCL 12.1), and NVRTC is {major}.{minor}"
    )
    with pytest.raises(CompileError) as caught:
        ptx.compile("nonsense\n", CompileOptions(include_paths=(fake_toolkit,)))
    assert caught.value.remark == ""


@pytest.mark.parametrize(
    ("package", "nvrtc", "pinned"),
    [
        ("nvidia-cuda-runtime", (13, 0), "nvidia-cuda-runtime==13.0.*"),
        ("nvidia-cuda-runtime-cu12", (12, 9), "nvidia-cuda-runtime-cu12==12.9.*"),
        ("nvidia-cuda-cccl", (13, 2), "nvidia-cuda-cccl==13.2.*"),
        # Since then its version is CUDA's major one and CCCL's own: CCCL 3.5 is CUDA 13.5's.
        ("nvidia-cuda-cccl", (13, 5), "nvidia-cuda-cccl==13.3.5.*"),
        ("nvidia-curand", (13, 5), "nvidia-curand"),
    ],
)
def test_packages_are_recommended_in_the_version_that_goes_with_nvrtc(
    package: str, nvrtc: tuple[int, int], pinned: str
) -> None:
    assert install_command([package, package], nvrtc) == f'pip install "{pinned}"'


HEADERS_OF = """
import ptx
SOURCE = "#include <cuda_fp16.h>\\n__global__ void k(__half* x) { *x = __hadd(*x, *x); }"
assert len(ptx.compile(SOURCE).signatures) == 1
for folder in ptx.cuda_headers().folders:
    print(folder.origin, folder.path)
"""


@pytest.fixture
def bare_environment(tmp_path: Path) -> Callable[..., str]:
    """Runs a script in an environment that has NVRTC and no package with headers."""
    return environment_without_headers(tmp_path / "environment")


@pytest.mark.slow
def test_bundled_headers_come_first_and_are_unpacked_into_the_cache_folder_once(
    bare_environment: Callable[..., str], cache_folder: Path, fake_toolkit: Path
) -> None:
    variables = {"CUDA_HOME": str(fake_toolkit), "CUDA_PATH": str(fake_toolkit)}
    major, minor = ptx.nvrtc_version()
    unpacked = cache_folder / f"headers-{major}.{minor}"
    used = bare_environment("-c", HEADERS_OF, **variables).splitlines()
    assert used[:2] == [
        f"bundled with NVRTC {unpacked}",
        f"bundled with NVRTC {unpacked / 'cccl'}",
    ]
    assert not [line for line in used if str(fake_toolkit) in line]
    written = (unpacked / "cuda_fp16.h").stat().st_mtime_ns
    assert bare_environment("-c", HEADERS_OF, **variables).splitlines() == used
    assert (unpacked / "cuda_fp16.h").stat().st_mtime_ns == written
    ptx.ImageCache(cache_folder).clear()
    assert not unpacked.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
def test_bundled_headers_are_unpacked_for_this_user_alone(
    bare_environment: Callable[..., str], cache_folder: Path
) -> None:
    cache_folder.mkdir(mode=0o755)
    bare_environment("-c", f"import os; os.umask(0)\n{HEADERS_OF}")
    (unpacked,) = cache_folder.glob("headers-*")
    assert unpacked.stat().st_mode & 0o777 == 0o700
    assert (unpacked / "cuda_fp16.h").is_file()


CLEARED = """
import ptx
SOURCE = "#include <cuda_fp16.h>\\n__global__ void k%d(__half* x) { *x = __hadd(*x, *x); }"
assert len(ptx.compile(SOURCE % 1).signatures) == 1
assert ptx.default_cache().clear() == 1
assert len(ptx.compile(SOURCE % 2).signatures) == 1
print("compiled again")
"""


@pytest.mark.slow
def test_bundled_headers_are_unpacked_anew_when_the_cache_was_cleared(
    bare_environment: Callable[..., str],
) -> None:
    assert bare_environment("-c", CLEARED) == "compiled again\n"


@pytest.mark.slow
def test_bundled_headers_serve_without_a_cache_folder(
    bare_environment: Callable[..., str], cache_folder: Path
) -> None:
    used = bare_environment("-c", HEADERS_OF, CUDADRV_CACHE_MAX_MB="0").splitlines()
    assert used[0].startswith("bundled with NVRTC ")
    folder = Path(used[0].removeprefix("bundled with NVRTC "))
    assert not folder.is_relative_to(cache_folder)
    assert not folder.exists()  # it went with the process


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
def test_sources_without_includes_are_distinguished(source: str, includes: bool) -> None:
    request = CompileRequest.of(source, PTX80, "kernel.cu", (), None)
    assert request.includes_anything() is includes


@pytest.mark.slow
def test_missing_nvrtc_names_the_one_command(tmp_path: Path) -> None:
    """A process that sees the bindings and not the libraries beside them."""
    import cuda.bindings

    link_bindings(Path(cuda.bindings.__path__[0]).parents[1], tmp_path)
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
        ("vector", "libcu++"),
        ("nvfunctional", "pass a functor as a template argument"),
        ("pycuda-complex.hpp", "<cuda/std/complex> instead"),
        ("cupy/complex.cuh", "<cuda/std/complex> instead"),
    ],
)
def test_missing_standard_header_reports_what_to_use(header: str, remedy: str) -> None:
    with pytest.raises(ptx.HeaderNotFoundError) as caught:
        ptx.compile(f"#include <{header}>\n", cache=False)
    assert remedy in str(caught.value)
    assert caught.value.header == header


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("thrust/complex.h", "include <cuda/std/complex>, which has cuda::std::complex<float>"),
        pytest.param(
            "thrust/device_vector.h",
            "kernels have CUB, <cub/cub.cuh>, and <cuda/std/...>",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_header_of_thrust_that_needs_the_host_reports_what_to_use(
    header: str, remedy: str
) -> None:
    skip_without("thrust/complex.h")
    with pytest.raises(ptx.CompileError) as caught:
        ptx.compile(f"#include <{header}>\n", cache=False)
    assert remedy in str(caught.value)


@pytest.mark.slow
def test_what_replaces_a_standard_header_compiles() -> None:
    skip_without("cuda/std/cstdint")
    source = """
    #include <cuda/std/cstdint>
    #include <cstdio>
    extern "C" __global__ void k(cuda::std::uint32_t* x)
    { assert(x); printf("%f", sqrt(2.0)); memcpy(x, x + 1, 4); }
    """
    assert "k" in ptx.compile(source, headers={"cstdio": ""}).signatures
