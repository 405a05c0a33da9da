from __future__ import annotations

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, PtxModuleCache
from cudadrv.errors import (
    ClosedError,
    CudaError,
    DriverCallFailed,
    InvalidValueError,
    KernelNotFoundError,
)

from .conftest import compile_module, ptx_for_driver

GLOBALS = """
__device__ int counters[4] = {1, 2, 3, 4};
__constant__ float factor = 2.5f;
extern "C" __global__ void bump(float* out)
{ counters[threadIdx.x] += 10; out[threadIdx.x] = factor; }
template <int N> __global__ void fill(int* out) { out[threadIdx.x] = N; }
"""
NAMES = ("fill<7>", "fill<9>", "counters", "&factor")


@pytest.fixture(scope="module")
def own(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, GLOBALS, *NAMES)


def test_module_variables_can_be_read_and_written(
    stream: cudadrv.Stream, own: cudadrv.Module
) -> None:
    counters = own.global_array("counters", 4, "i4")
    assert stream.to_host(counters).tolist() == [1, 2, 3, 4]
    factor = own.global_array("&factor", dtype="f4")
    assert factor.shape == (1,)
    stream.copy(factor, np.array([4.5], "f4"))
    out = stream.zeros(4, "f4")
    own.kernel("bump").launch(stream, LaunchConfig(1, 4), out)
    assert stream.to_host(counters).tolist() == [11, 12, 13, 14]
    assert stream.to_host(out).tolist() == [4.5] * 4
    counters.close()
    assert stream.to_host(own.global_array("counters", (2, 2), "i4")).tolist() == [
        [11, 12],
        [13, 14],
    ]
    with pytest.raises(InvalidValueError, match="does not fit a buffer of 16 bytes"):
        own.global_array("counters", 5, "i4")
    with pytest.raises(KernelNotFoundError, match="no variable 'absent'"):
        own.global_array("absent")


def test_name_expressions_find_template_instances(
    stream: cudadrv.Stream, own: cudadrv.Module
) -> None:
    out = stream.zeros(3, "i4")
    for n in (7, 9):
        own.kernel(f"fill<{n}>").launch(stream, LaunchConfig(1, 3), out)
        assert stream.to_host(out).tolist() == [n] * 3


def test_a_kernel_that_does_not_exist_is_reported_with_those_that_do(own: cudadrv.Module) -> None:
    with pytest.raises(KernelNotFoundError) as caught:
        own.kernel("bumb")
    assert "no kernel 'bumb'; it has: fill<7>, fill<9>" in str(caught.value)
    assert {"bump", "fill<7>"} <= set(caught.value.available)
    assert own.kernel("bump") is own.kernel("bump")
    assert "bump" in own.kernel_names


def test_a_closed_module_gives_no_kernels(context: cudadrv.Context) -> None:
    module = compile_module(context, 'extern "C" __global__ void k() {}')
    kernel = module.kernel("k")
    module.close()
    module.close()
    with pytest.raises(ClosedError, match="the module on device 0 was closed"):
        module.kernel("other")
    with pytest.raises(ClosedError, match="the module on device 0 was closed"):
        module.kernel("k")
    with pytest.raises(ClosedError):
        kernel.launch(context.default_stream, LaunchConfig(1, 1))


def test_plain_ptx_text_loads(context: cudadrv.Context) -> None:
    source = 'extern "C" __global__ void two(int* p) { p[threadIdx.x] = 2; }'
    text = ptx_for_driver(context, source)
    stream = context.default_stream
    for image in (text, text.encode()):
        out = stream.zeros(4, "i4")
        module = context.load_module(image)
        assert module.kernel_names == ("two",)
        module.kernel("two").launch(stream, LaunchConfig(1, 4), out)
        assert stream.to_host(out).tolist() == [2] * 4


@pytest.mark.parametrize("image", [b"not an image", b"", b"\x7fELF" + b"\0" * 60])
def test_bytes_that_are_no_image_are_rejected(context: cudadrv.Context, image: bytes) -> None:
    with pytest.raises(CudaError, match=f"loading {len(image)} bytes on"):
        context.load_module(image)


def test_broken_ptx_is_rejected_with_the_compilers_words(context: cudadrv.Context) -> None:
    text = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry k() { frobnicate.u32 %r1, 2; ret; }
"""
    with pytest.raises(CudaError) as caught:
        module = context.load_module(text)
        module.kernel("k")
    assert "frobnicate" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize(
    "line",
    ["// {}\n", "/* {} */\n", '.file 1 "{}.cu"\n', ".section .debug_str {{ .b8 0 // {}\n }}\n"],
)
def test_ptx_is_ascii_in_comments_and_names_of_files_too(
    context: cudadrv.Context, line: str, encoding: str
) -> None:
    head = ".version 7.8\n.target sm_75\n.address_size 64\n"
    entry = ".visible .entry k() { ret; }\n"
    context.load_module((head + entry + line.format("u")).encode(encoding)).close()
    with pytest.raises(cudadrv.errors.InvalidPTXError) as caught:
        context.load_module((head + entry + line.format("µ")).encode(encoding))
    assert "ASCII" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


# Targets, a version that has each, and the one before it. PTX ISA, ".target".
FIRST_VERSIONS = {
    "sm_52": ("4.1", "4.0"), "sm_60": ("5.0", "4.3"), "sm_70": ("6.0", "5.0"),
    "sm_75": ("6.3", "6.2"), "sm_80": ("7.0", "6.5"), "sm_86": ("7.1", "7.0"),
    "sm_89": ("7.8", "7.7"), "sm_90": ("7.8", "7.7"), "sm_90a": ("8.0", "7.8"),
}  # fmt: skip


def test_a_version_older_than_its_target_is_rejected(context: cudadrv.Context) -> None:
    major, minor = context.capability.compute_capability
    device = 10 * major + minor
    wrong = []
    for target, versions in FIRST_VERSIONS.items():
        number = int(target.strip("sm_a"))
        if number > device or (target.endswith("a") and number != device):
            continue
        for version, loads in zip(versions, (True, False), strict=True):
            text = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}"
            try:
                context.load_module(text)
                loaded = True
            except cudadrv.errors.InvalidPTXError:
                loaded = False
            if loaded != loads:
                wrong.append((target, version))
    assert wrong == []


def test_a_parametrised_name_declares_variables_of_any_space(
    stream: cudadrv.Stream, context: cudadrv.Context
) -> None:
    if not context.device.is_emulated:
        # Each form alone loads there.
        pytest.skip("needs a driver whose compiler does not crash on all forms together (580 does)")
    text = """
.version 7.8
.target sm_75
.address_size 64
.global .u32 g<3>;
.const .u32 c = 5;
.shared .u32 s<2>;
.func (.param .u32 %sum) add(.param .u32 %left, .param .u32 %right)
{
    .reg .u32 %a<2>;
    ld.param.u32 %a0, [%left];
    ld.param.u32 %a1, [%right];
    add.u32 %a0, %a0, %a1;
    st.param.u32 [%sum], %a0;
    ret;
}
.visible .entry k(.param .u64 %out)
{
    .reg .u64 %o; .reg .u32 %r, %q;
    .local .u32 %l<2>;
    .reg .v2 .u32 %v<2>;
    ld.param.u64 %o, [%out];
    mov.u32 %r, 20;
    st.global.u32 [g2], %r;
    st.shared.u32 [s1], %r;
    st.local.u32 [%l1], %r;
    ld.global.u32 %v1.x, [g2];
    ld.shared.u32 %v1.y, [s1];
    {
        .param .u32 %P<2>; .param .u32 %R;
        st.param.u32 [%P0], %v1.x;
        st.param.u32 [%P1], %v1.y;
        call.uni (%R), add, (%P0, %P1);
        ld.param.u32 %r, [%R];
    }
    ld.local.u32 %q, [%l1];
    add.u32 %r, %r, %q;
    ld.const.u32 %q, [c];
    add.u32 %r, %r, %q;
    st.global.u32 [%o], %r;
    ret;
}
"""
    out = stream.zeros(1, "u4")
    context.load_module(text).kernel("k").launch(stream, LaunchConfig(1, 1), out)
    assert stream.to_host(out).tolist() == [65]


def test_a_profilers_event_has_no_effect(stream: cudadrv.Stream, context: cudadrv.Context) -> None:
    source = 'extern "C" __global__ void f(int* out) { __prof_trigger(3); *out = 7; }'
    out = stream.zeros(1, "i4")
    context.compile(source).kernel("f").launch(stream, LaunchConfig(1, 1), out)
    assert stream.to_host(out).tolist() == [7]


def test_an_instruction_that_the_modules_own_target_lacks_is_rejected_at_the_load(
    context: cudadrv.Context,
) -> None:
    text = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry k() { ret; }
.visible .entry never_taken() { cp.async.wait_all; ret; }
"""
    with pytest.raises(CudaError) as caught:
        context.load_module(text)
    said = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "cp.async" in said
    assert "sm_80" in said
    context.load_module(text.replace("sm_75", "sm_80")).close()


def test_the_module_cache_compiles_once_and_keeps_the_module(context: cudadrv.Context) -> None:
    cache = PtxModuleCache()
    assert cache.get() is None
    source = 'extern "C" __global__ void k() {}'
    module = cache.get_or_compile(context, "unit", source)
    assert cache.get_or_compile(context, "unit", "".join(list(source))) is module
    assert cache.get() is module
    assert cache.get(context) is module


def test_the_module_cache_reports_whose_source_failed(context: cudadrv.Context) -> None:
    with pytest.raises(DriverCallFailed, match=r"^spline NVRTC compile failed: ") as caught:
        PtxModuleCache().get_or_compile(context, "spline", "void f( {")
    assert isinstance(caught.value.__cause__, ptx.CompileError)
    keyed = cudadrv.runtime.KeyedPtxModuleCache()
    with pytest.raises(DriverCallFailed, match=r"^spline NVRTC compile failed \(key=3\): "):
        keyed.get_or_compile(context, 3, "spline", lambda key: "void f( {")


def test_the_module_cache_keeps_devices_apart(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    cache = PtxModuleCache()
    source = 'extern "C" __global__ void k() {}'
    first = cache.get_or_compile(context, "unit", source)
    second = cache.get_or_compile(second_context, "unit", source)
    assert (first.context, second.context) == (context, second_context)
    assert cache.get() is first
    assert cache.get(second_context) is second


def test_a_fatbin_is_loaded_as_the_image_that_fits(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    capability = context.device.compute_capability
    targets = [
        ptx.Target.parse("compute_75"),
        ptx.nearest_target(capability, ptx.ImageKind.CUBIN),
    ]
    source = "template <int N> __global__ void fill(int* out) { *out = N; }"
    images = [
        ptx.compile(source, ptx.CompileOptions(target=each), name_expressions=["fill<5>"])
        for each in targets
    ]
    try:
        fatbin = ptx.Fatbin.build(images)
    except ptx.NvFatbinNotFoundError:
        pytest.skip("nvFatbin is not installed")
    module = context.load_module(fatbin.image())
    out = stream.zeros(1, "i4")
    module.kernel("fill<5>").launch(stream, LaunchConfig(1, 1), out)
    assert stream.to_host(out).tolist() == [5]
    module.close()
