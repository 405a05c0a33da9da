"""PTX wherever other libraries ask for machine code: NVRTC, nvJitLink, ptxas and nvcc."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptx
from cudadrv.cli import emulate
from cudadrv.emulator.emulator import NEWEST_DRIVER
from cudadrv.emulator.shared_libraries.nvrtc_files import nvrtc_file
from ptx.cubin_mark import CUBIN_MARK
from tests.emulator.fatbins import fatbin
from tests.patience import SECONDS

from .process import BINDINGS, Ended, environment, run, run_program
from .test_other_libraries import has

NVRTC = """
from cuda.bindings import nvrtc
import ptx

def built(*options):
    program = ok(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], []))
    ok(nvrtc.nvrtcCompileProgram(program, len(options), options))
    size = ok(nvrtc.nvrtcGetCUBINSize(program))
    cubin = bytearray(size)
    if size:
        ok(nvrtc.nvrtcGetCUBIN(program, cubin))
    return bytes(cubin)
"""


@pytest.mark.slow
def test_a_cubin_of_nvrtc_is_ptx_that_the_emulator_loads_and_ours_is_machine_code() -> None:
    printed = run_program(
        NVRTC
        + """
with stand_in():
    cubin = built(b"-arch=sm_80")
    print(b".version" in cubin, cubin.endswith(b"\\0"), len(built(b"-arch=compute_80")))
    prepare()
    print(int(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(cubin)), b"k")[0]))
    target = ptx.Target.cubin("sm_80")
    print(ptx.compile("__global__ void f() {}", ptx.CompileOptions(target=target)).data[:4])
print(built(b"-arch=sm_80")[:4])
"""
    )
    assert printed == "True True 0\n0\nb'\\x7fELF'\nb'\\x7fELF'\n"


OLDER = f"stand_in(driver_version=({ptx.nvrtc_version()[0]}, 0))\n"
needs_minor = pytest.mark.skipif(not ptx.nvrtc_version()[1], reason="NVRTC has no older driver")


@pytest.mark.slow
@needs_minor
def test_an_older_driver_loads_the_cubins_of_nvrtc_and_nvjitlink_and_rejects_their_ptx() -> None:
    printed = run_program(
        NVRTC
        + OLDER
        + """
from cuda.bindings import nvjitlink

def text_of():
    program = ok(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], []))
    ok(nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_80"]))
    made = bytearray(ok(nvrtc.nvrtcGetPTXSize(program)))
    ok(nvrtc.nvrtcGetPTX(program, made))
    return bytes(made)

def linked(kind, data):
    handle = nvjitlink.create(1, ["-arch=sm_80"])
    nvjitlink.add_data(handle, kind, data, len(data), "k")
    nvjitlink.complete(handle)
    image = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, image)
    return bytes(image)

prepare()
cubin, text, kinds = built(b"-arch=sm_80"), text_of(), nvjitlink.InputType
print(cubin.startswith(text[:-1]), cubin.count(b"\\0"), cubin.endswith(b"\\0"))
for image in (text, cubin, linked(kinds.PTX, text), linked(kinds.CUBIN, cubin)):
    print(int(driver.cuModuleLoadData(image)[0]))
"""
    )
    assert printed == "True 1 True\n222\n0\n0\n0\n"


@pytest.mark.slow
@needs_minor
@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_cuda_core_runs_its_cubins_on_an_older_driver() -> None:
    printed = run_program(
        OLDER
        + """
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
memory = device.allocate(4, stream=stream)
CALLER = 'extern "C" __device__ int f(); extern "C" __global__ void k(int* x) { *x = f(); }'
CALLED = 'extern "C" __device__ int f() { return VALUE; }'

def cubin(source, **options):
    options = ProgramOptions(arch=f"sm_{device.arch}", **options)
    return Program(source, "c++", options).compile("cubin")

def joined(value):
    parts = [cubin(each, define_macro=("VALUE", value), relocatable_device_code=True)
             for each in (CALLER, CALLED)]
    return Linker(*parts, options=LinkerOptions(arch=f"sm_{device.arch}")).link("cubin")

whole = cubin('extern "C" __global__ void k(int* x) { *x = 5; }')
for code in (whole, joined("7")):
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), memory)
    stream.sync()
    print(code.code_type, read(int(memory.handle), 1))
"""
    )
    assert printed == "cubin [5]\ncubin [7]\n"


def test_nvrtc_is_open_with_its_library_of_built_in_functions() -> None:
    if nvrtc_file() is None:
        pytest.skip("needs NVRTC")
    script = "print('/libnvrtc-builtins.so.' in open('/proc/self/maps').read())"
    ended = run("-m", "cudadrv", "emulate", "python", "-c", script)
    assert (ended.status, ended.out) == (0, "True\n"), ended.err


OPENED = """
import ctypes as C, os, sys
real, link = sys.argv[1:]
os.symlink(real, link)
source = b'extern "C" __global__ void k() {}'
option = (C.c_char_p * 1)(b"-arch=sm_90")
for name in ("libnvrtc.so", os.path.basename(real), real, link):
    library, program, size = C.CDLL(name), C.c_void_p(), C.c_size_t()
    library.nvrtcCreateProgram(C.byref(program), source, None, 0, None, None)
    assert library.nvrtcCompileProgram(program, 1, option) == 0
    assert library.nvrtcGetCUBINSize(program, C.byref(size)) == 0
    image = C.create_string_buffer(size.value)
    assert library.nvrtcGetCUBIN(program, image) == 0
    print(b".target sm_90" in image.raw, image.raw[:4] == b"\\x7fELF")
"""


@pytest.mark.slow
def test_nvrtc_returns_ptx_under_each_name_and_path(tmp_path: Path) -> None:
    file = nvrtc_file()
    if file is None:
        pytest.skip("needs NVRTC")
    link = str(tmp_path / "libnvrtc_of_mine.so")
    for start in (("-c", OPENED), ("-c", "import cuda.bindings.nvrtc\n" + OPENED)):
        ended = run("-m", "cudadrv", "emulate", "python", *start, str(file), link)
        assert (ended.status, ended.out) == (0, "True False\n" * 4), ended.err
        Path(link).unlink()


@pytest.mark.slow
def test_each_rejected_module_is_reported_once_with_the_call() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
with stand_in():
    prepare()
    for image in (b"\\x7fELF" + bytes(60), b"\\x50\\xed\\x55\\xba\\x01\\x00\\x10\\x00" + bytes(8)):
        code, _ = driver.cuModuleLoadData(image)
        print(int(code))
        driver.cuCtxGetCurrent(), driver.cuMemFree(1)
""",
    )
    assert (ended.status, ended.out) == (0, "209\n209\n"), ended.err
    cubin, fatbin = (line for line in ended.err.splitlines() if line.startswith("cudadrv"))
    assert cubin.startswith("cudadrv: cuModuleLoadData: the image is machine code")
    assert fatbin.startswith("cudadrv: cuModuleLoadData: the fatbin holds no PTX")


TOOLKIT = Path(emulate.__file__).parent / "toolkit" / "bin"
PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def tool(name: str, *arguments: str, folder: Path) -> Ended:
    done = subprocess.run(
        [TOOLKIT / name, *arguments],
        env=environment({"CUDADRV_PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_the_tools_are_first_on_the_path_of_the_command() -> None:
    program = "import shutil; print(*map(shutil.which, ('ptxas', 'nvcc')))"
    ended = run("-m", "cudadrv", "emulate", "python", "-c", program)
    assert ended.out.split() == [str(TOOLKIT / "ptxas"), str(TOOLKIT / "nvcc")], ended.err


def test_ptxas_passes_ptx_on(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    options = ("-lineinfo", "-v", "--fmad=false", "--gpu-name=sm_90", "k.ptx", "-o", "k.cubin")
    ended = tool("ptxas", *options, folder=tmp_path)
    assert ended.status == 0, ended.err
    assert (tmp_path / "k.cubin").read_text() == PTX + CUBIN_MARK + "\0"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-arch", "sm_75", "k.ptx"), "higher than sm_75"),
        (("-arch=nonsense", "k.ptx"), "'nonsense'"),
        (("absent.ptx",), "absent.ptx"),
        ((), "one file"),
        (("text",), "no PTX"),
        (("k.ptx", "-o"), "needs a value"),
    ],
)
def test_ptxas_rejects_what_cannot_be(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "text").write_text("some text")
    ended = tool("ptxas", *arguments, folder=tmp_path)
    assert ended.status == 255
    assert why in ended.err


def test_the_tools_name_the_newest_release_that_can_be_loaded(tmp_path: Path) -> None:
    assembler = tool("ptxas", "--version", folder=tmp_path).out
    assert f"release {'.'.join(map(str, NEWEST_DRIVER))}," in assembler
    compiler = tool("nvcc", "--version", folder=tmp_path).out
    assert f"release {'.'.join(map(str, ptx.nvrtc_version()))}," in compiler


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cubin", "fatbin", "ptx"])
def test_nvcc_compiles_by_nvrtc(tmp_path: Path, kind: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "n.h").write_text("#define M 3\n")
    (tmp_path / "k.cu").write_text(
        '#include "n.h"\nextern "C" __global__ void k(int* x) { *x = N * M; }\n'
    )
    options = ("-DN=14", "-I", "include", "-arch", "sm_80", "-O3", "-Xcompiler", "-fPIC", "-m64")
    ended = tool("nvcc", f"--{kind}", *options, "k.cu", folder=tmp_path)
    assert ended.status == 0, ended.err
    made = (tmp_path / f"k.{kind}").read_text()
    assert ".target sm_80" in made
    assert "42" in made
    assert (CUBIN_MARK in made) == (kind != "ptx")


_HOST_CODE = """
#include <stdio.h>
#include <cstdint>
#include <math.h>
#include <float.h>
#include <limits.h>
#include <cuda.h>
#include <surface_functions.h>
#include <cuda/std/climits>
extern "C" __global__ void k(float* x, double* y, int32_t* i, uint64_t* u, bool* b) {
    *y = pow(*x, *y) + pow(*i, *u) + fmod(*i, *x) + sqrt(*i) + exp(*u) + fabs(*x) + pow(*x, *x);
    *x = std::sqrt(*x) + std::pow(*x, 2) + (*i > 3 ? INFINITY : NAN) + FLT_MAX + M_PI;
    *b = sizeof(pow(1, 2)) == 8 && sizeof(pow(1.0f, 2.0f)) == 4 && *i < INT_MAX;
    printf("%d", *i);
}
"""


@pytest.mark.slow
def test_nvcc_has_the_hosts_headers_and_functions_of_mixed_types(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(_HOST_CODE)
    options = ("-lcudart", "-L", "/lib", "-l", "m", "-lineinfo", "-Wno-deprecated-gpu-targets")
    ended = tool("nvcc", "--ptx", *options, "-arch=sm_80", "k.cu", folder=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    made = (tmp_path / "k.ptx").read_text()
    assert re.findall(r'\.file\s+\d+ "(.*k\.cu)"', made)
    (tmp_path / "k.cu").write_text("__global__ void k() {\nwrong;\n}\n")
    assert "k.cu(2)" in tool("nvcc", "--ptx", "k.cu", folder=tmp_path).err
    (tmp_path / "k.cu").write_text("__global__ void k(int* x) {\nint unused;\n*x = 1;\n}\n")
    assert tool("nvcc", "--ptx", "k.cu", folder=tmp_path).err.count("unused") == 2  # and its line


def test_nvcc_reports_what_does_not_compile_and_what_needs_a_toolkit(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k() { wrong; }\n")
    ended = tool(
        "nvcc", "-cubin", "-gencode", "arch=compute_80,code=sm_80", "k.cu", folder=tmp_path
    )
    assert ended.status == 1
    assert "wrong" in ended.err
    ended = tool("nvcc", "k.cu", "-o", "k", folder=tmp_path)
    assert ended.status == 1
    assert "install a CUDA toolkit" in ended.err


@pytest.mark.slow
def test_nvjitlink_links_the_ptx_of_a_fatbin_or_nothing_and_rejects_unknown_options() -> None:
    image = fatbin((1, 80, PTX.encode()))
    printed = run_program(
        f"""
        from cuda.bindings import nvjitlink
        image = {image!r}
        with stand_in():
            handle = nvjitlink.create(1, ["-arch=sm_90"])
            nvjitlink.add_data(handle, nvjitlink.InputType.FATBIN, image, len(image), "f")
            nvjitlink.complete(handle)
            linked = bytearray(nvjitlink.get_linked_cubin_size(handle))
            nvjitlink.get_linked_cubin(handle, linked)
            print(b".entry k" in linked)
            for option in ("-arch=sm_99", "-arch=99", "-fictitious"):
                try:
                    nvjitlink.create(1, [option])
                except nvjitlink.nvJitLinkError as error:
                    print(error.status)
            handle = nvjitlink.create(1, ["-arch=sm_90"])
            nvjitlink.complete(handle)
            linked = bytearray(nvjitlink.get_linked_cubin_size(handle))
            nvjitlink.get_linked_cubin(handle, linked)
            prepare()
            print(int(driver.cuModuleLoadData(bytes(linked))[0]))
        """
    )
    assert printed == "True\n16\n1\n1\n0\n"
