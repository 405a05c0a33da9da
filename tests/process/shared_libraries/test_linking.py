from __future__ import annotations

import pytest

from .process import BINDINGS, run, run_program

LINKED = """
import cudadrv
from cuda.bindings import nvjitlink

CALLER = b'''.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .entry doubles(.param .u64 p) {
  .reg .b64 %rd<2>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];
  { .param .b32 x; st.param.b32 [x], %r1; .param .b32 r;
    call.uni (r), twice, (x); ld.param.b32 %r2, [r]; }
  st.global.u32 [%rd1], %r2; ret;
}'''
CALLED = b'''.version 8.0
.target sm_80
.address_size 64
.visible .func (.param .b32 r) twice (.param .b32 x) {
  .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
}'''

def link(*inputs, options=("-arch=sm_90",)):
    handle = nvjitlink.create(len(options), list(options))
    for at, (kind, data) in enumerate(inputs):
        name = "libcudadevrt.a" if kind == nvjitlink.InputType.LIBRARY else f"input {at}"
        nvjitlink.add_data(handle, kind, data, len(data), name)
    nvjitlink.complete(handle)
    image = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, image)
    nvjitlink.destroy(handle)
    return bytes(image)

def doubled(image):
    library = ok(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0))
    function = ok(driver.cuKernelGetFunction(ok(driver.cuLibraryGetKernel(library, b"doubles"))))
    memory = ok(driver.cuMemAlloc(4))
    ok(driver.cuMemsetD32(memory, 21, 1))
    launch(function, memory)
    return read(memory, 1)

stand_in()
prepare()
PTX_INPUT = nvjitlink.InputType.PTX
"""


@pytest.mark.slow
def test_a_kernel_calls_a_function_of_another_ptx_text() -> None:
    out = run_program(LINKED + "print(doubled(link((PTX_INPUT, CALLER), (PTX_INPUT, CALLED))))")
    assert out == "[42]\n"


@pytest.mark.slow
def test_a_kernel_of_lto_ir_calls_a_function_of_ptx() -> None:
    pytest.importorskip("nvidia", reason="needs nvJitLink from a package")
    out = run_program(
        LINKED
        + """
import ptx
source = 'extern "C" __device__ int twice(int x); '
source += 'extern "C" __global__ void doubles(int *p) { *p = twice(*p); }'
image = ptx.compile(source, ptx.CompileOptions(target=ptx.Target.ltoir("compute_90")))
print(doubled(link((PTX_INPUT, CALLED), (nvjitlink.InputType.LTOIR, image.data),
                   options=("-arch=sm_90", "-lto"))))
"""
    )
    assert out == "[42]\n"


@pytest.mark.slow
def test_a_kernel_of_ptx_calls_a_function_of_lto_ir() -> None:
    pytest.importorskip("nvidia", reason="needs nvJitLink from a package")
    out = run_program(
        LINKED
        + """
import ptx
source = 'extern "C" __device__ int twice(int x) { return 2 * x; } '
source += 'extern "C" __global__ void unrelated(int *p) { *p = 1; }'
image = ptx.compile(source, ptx.CompileOptions(target=ptx.Target.ltoir("sm_90")))
linked = link((PTX_INPUT, CALLER), (nvjitlink.InputType.LTOIR, image.data),
              options=("-arch=sm_90", "-lto"))
functions = ptx.parse(linked.rstrip(b"\\0").decode()).functions
print(doubled(linked), sorted(name for name, each in functions.items() if each.is_entry))
"""
    )
    assert out == "[42] ['doubles', 'unrelated']\n"


@pytest.mark.slow
def test_an_input_that_is_no_ptx_is_rejected_by_name() -> None:
    out = run_program(
        LINKED
        + """
handle = nvjitlink.create(1, ["-arch=sm_90"])
try:
    nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, b"\\x7fELF", 4, "mine.cubin")
except nvjitlink.nvJitLinkError as error:
    log = bytearray(nvjitlink.get_error_log_size(handle))
    nvjitlink.get_error_log(handle, log)
    print(log.rstrip(b"\\0").decode())
"""
    )
    assert out.strip() == (
        "error   : mine.cubin is a cubin; the emulator executes PTX, and links PTX and LTO-IR"
    )


@pytest.mark.slow
def test_a_function_of_no_input_fails_the_link_unless_it_is_relocatable() -> None:
    out = run_program(
        LINKED
        + """
for options in (["-arch=sm_90"], ["-arch=sm_90", "-r"]):
    handle = nvjitlink.create(len(options), options)
    nvjitlink.add_data(handle, PTX_INPUT, CALLER, len(CALLER), "mine")
    try:
        nvjitlink.complete(handle)
        print(nvjitlink.get_linked_cubin_size(handle) > len(CALLER) - 2)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        print(error.status, log.rstrip(b"\\0").decode().strip())
"""
    )
    assert out.splitlines() == ["6 error   : Undefined reference to 'twice' in 'mine'", "True"]


@pytest.mark.slow
def test_a_register_limit_of_the_link_reaches_the_kernels() -> None:
    out = run_program(
        LINKED
        + """
image = link((PTX_INPUT, CALLER), (PTX_INPUT, CALLED),
             options=("-arch=sm_90", "-maxrregcount=24"))
print(b".maxnreg 24" in image)
"""
    )
    assert out == "True\n"


@pytest.mark.slow
def test_blocks_of_a_grid_wait_for_each_other_by_the_device_runtime() -> None:
    out = run_program(
        LINKED
        + """
GRID = b'''.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
.visible .entry meets(.param .u64 p) {
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %q;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r1;
  { .param .b32 s; st.param.b32 [s], 1; .param .b64 r;
    call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd3, [r]; }
  { .param .b64 h; st.param.b64 [h], %rd3; .param .b32 f; st.param.b32 [f], 0; .param .b32 r;
    call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r3, [r]; }
  add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd4, %rd1, %rd4; ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, %r3;
  mul.wide.u32 %rd5, %r2, 4; add.s64 %rd2, %rd2, %rd5; st.global.u32 [%rd2], %r5; ret;
}'''
image = link((PTX_INPUT, GRID), (nvjitlink.InputType.LIBRARY, b"!<arch>"))
function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(image)), b"meets"))
memory = ok(driver.cuMemAlloc(24))
ok(driver.cuLaunchCooperativeKernel(
    function, 3, 1, 1, 64, 1, 1, 0, 0, ((memory,), (None,))))
print(read(memory, 6))
"""
    )
    assert out == "[0, 1, 2, 1, 2, 0]\n"


@pytest.mark.slow
def test_machine_code_is_rejected_by_its_name_also_where_the_caller_hides_the_log() -> None:
    program = """
try:
    link((nvjitlink.InputType.CUBIN, b"ELF"))
except nvjitlink.nvJitLinkError as error:
    print(error)
"""
    ended = run("-c", BINDINGS + LINKED + program)
    assert (ended.status, ended.out) == (0, "ERROR_INVALID_INPUT (3)\n")
    assert ended.err == (
        "cudadrv: nvJitLink: input 0 is a cubin; the emulator executes PTX, and links PTX and "
        "LTO-IR\n"
    )


@pytest.mark.slow
def test_compiled_callers_find_the_names_and_the_version_of_the_real_library() -> None:
    out = run_program("""
        stand_in()
        prepare()
        from importlib import metadata
        major = metadata.version("cuda-bindings").partition(".")[0]
        find = ctypes.CDLL(None).dlvsym
        find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, *[ctypes.c_char_p] * 2)
        soname = f"libnvJitLink.so.{major}"
        library = ctypes.CDLL(soname)._handle
        for version in (soname, "GLIBC_2.2.5"):
            for name in ("nvJitLinkCreate", f"__nvJitLinkCreate_{major}_0"):
                print(bool(find(library, name.encode(), version.encode())))
    """)
    assert out.split() == ["True", "True", "False", "False"]
