"""Wide loads of which a pragma says that only some bytes are used."""

from __future__ import annotations

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import OutOfBounds, UninitialisedRead
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

SOURCE = r"""
struct __align__(16) F3 { float x, y, z; };
struct __align__(32) D3 { double x, y, z; };

extern "C" __global__ void fixed(float* out) {
    __shared__ __align__(16) float t[7];
    int i = threadIdx.x;
    if (i < 7) t[i] = i * 2.0f;
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 7; k++) sum += t[k] * (i + k);
    out[i] = sum;
}
extern "C" __global__ void dynamic(float* out) {
    extern __shared__ __align__(16) float u[];
    int i = threadIdx.x;
    if (i < 7) u[i] = i * 2.0f;
    __syncthreads();
    out[i] = u[0] + u[1] * 2 + u[2] * 3 + u[4] * 5 + u[5] * 6 + u[6] * 7;
}
__device__ __align__(16) float table[7];

extern "C" __global__ void variable(float* out) {
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 7; k++) sum += table[k] * (threadIdx.x + k);
    out[threadIdx.x] = sum;
}
extern "C" __global__ void triples(const float* __restrict__ a, float* out) {
    const F3* p = (const F3*)a + threadIdx.x;
    out[threadIdx.x] = p->x + p->y * p->z;
}
extern "C" __global__ void doubles(const double* __restrict__ a, double* out) {
    const D3* p = (const D3*)a + threadIdx.x;
    out[threadIdx.x] = p->x + p->y * p->z;
}
"""
CHECKED = Limits(checks={"undefined"})


def kernels(target: str, *, linked: bool = False) -> KernelRunner:
    if linked:
        options = ptx.CompileOptions(target=ptx.Target.ltoir(target.replace("compute", "sm")))
        part = ptx.compile(SOURCE, options, cache=False)
        image = ptx.link([part], ptx.Target.ptx(target), cache=False)
    else:
        options = ptx.CompileOptions(target=ptx.Target.ptx(target), lineinfo=True)
        image = ptx.compile(SOURCE, options, cache=False)
    text = image.ptx or ""
    assert "used_bytes_mask" in text
    return KernelRunner(text)


@pytest.fixture(params=["compute_80", "compute_90", "compute_100", "linked"], scope="module")
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    linked = request.param == "linked"
    return kernels("compute_90" if linked else request.param, linked=linked)


def test_a_load_past_the_end_of_static_shared_memory_is_right(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(40, np.float32))
    runner.launch("fixed", 1, 40, out, limits=CHECKED)
    i, k = np.arange(40)[:, None], np.arange(7)
    expected = (2 * k * (i + k)).sum(axis=1)
    assert np.array_equal(runner.get(out, 40, np.float32), expected.astype(np.float32))


def test_a_load_past_the_end_of_dynamic_shared_memory_is_right(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(40, np.float32))
    runner.launch("dynamic", 3, 40, out, shared=28, limits=CHECKED)
    expected = sum(2 * k * (k + 1) for k in (0, 1, 2, 4, 5, 6))
    assert np.array_equal(runner.get(out, 40, np.float32), np.full(40, expected, np.float32))


def test_a_load_past_the_end_of_a_variable_is_right(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(40, np.float32))
    address, nbytes = runner.program.globals["table"]
    assert nbytes == 28
    runner.set(address, np.arange(7, dtype=np.float32))
    runner.launch("variable", 1, 40, out)
    i, k = np.arange(40)[:, None], np.arange(7)
    expected = (k * (i + k)).sum(axis=1)
    assert np.array_equal(runner.get(out, 40, np.float32), expected.astype(np.float32))


@pytest.fixture(scope="module")
def blackwell() -> KernelRunner:
    """For older targets NVRTC reads these structs whole, and says nothing of it."""
    runner = kernels("compute_100")
    if ".pragma" not in runner.program.module.text.partition(".entry triples")[2]:
        pytest.skip("needs an NVRTC that masks loads from global memory")
    return runner


@pytest.mark.parametrize(("name", "dtype"), [("triples", np.float32), ("doubles", np.float64)])
def test_a_load_past_the_end_of_global_memory_is_right(
    blackwell: KernelRunner, name: str, dtype: type[np.floating]
) -> None:
    runner = blackwell
    values = np.arange(4 * 10 - 1, dtype=dtype)
    source, out = runner.put(values), runner.put(np.zeros(10, dtype))
    runner.launch(name, 1, 10, source, out)
    x, y, z = (values[k::4] for k in range(3))
    assert np.array_equal(runner.get(out, 10, dtype), x + y * z)


@pytest.mark.parametrize(("name", "dtype"), [("triples", np.float32), ("doubles", np.float64)])
def test_a_used_byte_past_the_end_is_out_of_bounds(
    blackwell: KernelRunner, name: str, dtype: type[np.floating]
) -> None:
    runner = blackwell
    source, out = runner.put(np.zeros(4 * 10 - 2, dtype)), runner.put(np.zeros(10, dtype))
    with pytest.raises(OutOfBounds) as caught:
        runner.launch(name, 1, 10, source, out)
    assert caught.value.where.thread == (9, 0, 0)


def masked(mask: str, load: str, *, between: str = "") -> KernelRunner:
    """Thread i loads 16 bytes from place i of `in`, and stores the four words."""
    return KernelRunner(
        ptx_text(
            f"""
            .reg .b32 %r<9>; .reg .b64 %rd<9>;
            ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd3, %r0, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
            .pragma "used_bytes_mask {mask}";
            {between}
            {load}
            st.global.v4.b32 [%rd2], {{%r1, %r2, %r3, %r4}}; ret;""",
            ".param .u64 in, .param .u64 out",
        )
    )


WIDE = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];"


@pytest.mark.parametrize("mask", ["0x0ff0", "4080"])
@pytest.mark.parametrize("between", ["", ".loc 1 7 3"])
def test_a_mask_in_the_middle_reads_what_it_names(mask: str, between: str) -> None:
    runner = masked(mask, WIDE, between=between)
    values = np.arange(1, 12, dtype=np.uint32)
    source, out = runner.put(values), runner.put(np.zeros((3, 4), np.uint32))
    runner.launch("k", 1, 3, source, out)
    found = runner.get(out, 12, np.uint32).reshape(3, 4)
    assert found[:, 1:3].tolist() == [[2, 3], [6, 7], [10, 11]]


def test_a_mask_cuts_an_element_too() -> None:
    runner = masked("0x3", "ld.global.b32 %r1, [%rd1]; mov.b32 %r2, 0; and.b32 %r1, %r1, 0xffff;")
    source = runner.put(np.array([0x1234], np.uint16))
    out = runner.put(np.zeros(4, np.uint32))
    runner.launch("k", 1, 1, source, out)
    assert runner.get(out, 1, np.uint32)[0] == 0x1234


def test_a_pragma_is_for_the_next_instruction_alone() -> None:
    second = masked("0xfff", f"{WIDE} {WIDE}")
    source, out = second.put(np.zeros(3, np.uint32)), second.put(np.zeros(4, np.uint32))
    with pytest.raises(OutOfBounds):
        second.launch("k", 1, 1, source, out)


def test_a_pragma_before_another_instruction_is_ignored() -> None:
    runner = masked("0xfff", f"add.u64 %rd1, %rd1, 0; {WIDE}")
    source, out = runner.put(np.zeros(3, np.uint32)), runner.put(np.zeros(4, np.uint32))
    with pytest.raises(OutOfBounds):
        runner.launch("k", 1, 1, source, out)
    stores = masked("0xfff", "mov.b32 %r1, 0;").program.module.text
    wide_store = stores.replace("mov.b32 %r1, 0;", "").replace("st.global", "\nst.global")
    runner = KernelRunner(wide_store)
    source, out = runner.put(np.zeros(4, np.uint32)), runner.put(np.zeros(3, np.uint32))
    with pytest.raises(OutOfBounds):
        runner.launch("k", 1, 1, source, out)


def test_other_pragmas_mean_nothing() -> None:
    runner = masked('0xf"; .pragma "nounroll", "used_bytes_mask 0xfff', WIDE)
    values = np.arange(3, dtype=np.uint32)
    source, out = runner.put(values), runner.put(np.zeros(4, np.uint32))
    runner.launch("k", 1, 1, source, out)
    assert np.array_equal(runner.get(out, 3, np.uint32), values)


def test_unused_bytes_need_not_be_initialised_and_used_ones_do() -> None:
    text = ptx_text(
        """.reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [out]; mov.b32 %r0, 7;
        st.shared.v2.b32 [raw], {%r0, %r0};
        .pragma "used_bytes_mask MASK";
        ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [raw];
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%rd1], %r1; ret;""",
        ".param .u64 out",
        ".shared .align 16 .b8 raw[16];",
    )
    runner = KernelRunner(text.replace("MASK", "0xff"))
    out = runner.put(np.zeros(1, np.uint32))
    runner.launch("k", 1, 1, out, limits=CHECKED)
    assert runner.get(out, 1, np.uint32)[0] == 14
    runner = KernelRunner(text.replace("MASK", "0x1ff"))
    with pytest.raises(UninitialisedRead):
        runner.launch("k", 1, 1, runner.put(np.zeros(1, np.uint32)), limits=CHECKED)


@pytest.mark.parametrize("mask", ["0", "0x0"])
def test_padding_alone_need_not_be_initialised(mask: str) -> None:
    """NVRTC 13.0 loads the padding of a struct so, without optimisation."""
    text = ptx_text(
        f""".reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [out];
        .pragma "used_bytes_mask {mask}";
        ld.shared.u32 %r1, [raw+4]; st.global.u32 [%rd1], %r1; ret;""",
        ".param .u64 out",
        ".shared .align 16 .b8 raw[16];",
    )
    runner = KernelRunner(text)
    runner.launch("k", 1, 1, runner.put(np.zeros(1, np.uint32)), limits=CHECKED)
    plain = KernelRunner(text.replace(f'.pragma "used_bytes_mask {mask}";', ""))
    with pytest.raises(UninitialisedRead):
        plain.launch("k", 1, 1, plain.put(np.zeros(1, np.uint32)), limits=CHECKED)
