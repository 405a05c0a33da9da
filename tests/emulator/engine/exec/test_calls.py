"""Calls by address: which functions they reach, and what they say of what they do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ptx
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.errors import (
    InvalidCall,
    StackOverflow,
    UndefinedSymbol,
    UnsupportedInstruction,
)
from ptx.emulate.model.geometry import GridCall
from ptx.emulate.program import Program
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

SOURCE = r"""
typedef int (*Function)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int plus_one(int x) { return x + 1; }
__device__ __noinline__ int factorial(int x) { return x < 2 ? 1 : x * factorial(x - 1); }
__device__ __noinline__ int large(int x) {
    volatile int a[1000];
    for (int i = 0; i < 1000; i++) a[i] = i * x;
    return a[999];
}
__device__ __noinline__ int summed(int x) {
    __shared__ int sum;
    __syncthreads();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x);
    __syncthreads();
    return sum;
}
__device__ Function table[5];

extern "C" __global__ void fill() {
    table[0] = twice; table[1] = plus_one; table[2] = factorial; table[3] = large;
    table[4] = summed;
}
extern "C" __global__ void through_table(int* out, int entry) {
    out[threadIdx.x] = table[entry](threadIdx.x);
}
extern "C" __global__ void each_its_own(int* out) {
    out[threadIdx.x] = table[threadIdx.x % 4](threadIdx.x % 8);
}
extern "C" __global__ void given(int* out, Function f) { out[threadIdx.x] = f(threadIdx.x); }

struct Shape {
    virtual __device__ int area(int x) = 0;
    virtual __device__ ~Shape() {}
};
struct Square : Shape {
    int side;
    __device__ Square(int s) : side(s) {}
    __device__ int area(int x) override { return side * side + x; }
};
struct Line : Shape {
    int length;
    __device__ Line(int l) : length(l) {}
    __device__ int area(int x) override { return -length * x; }
};
__device__ Shape* shapes[2];

extern "C" __global__ void make_shapes() { shapes[0] = new Square(7); shapes[1] = new Line(5); }
extern "C" __global__ void ask_shapes(int* out) {
    out[threadIdx.x] = shapes[threadIdx.x & 1]->area(threadIdx.x);
}
extern "C" __global__ void delete_shapes() { delete shapes[0]; delete shapes[1]; }
"""
LANES = np.arange(64)
FACTORIALS = np.array([1, 1, 2, 6, 24, 120, 720, 5040])


@pytest.fixture(scope="module", params=["compute_80", "compute_100"])
def text(request: pytest.FixtureRequest) -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx(request.param))
    return ptx.compile(SOURCE, options).ptx or ""


@pytest.fixture
def runner(text: str) -> KernelRunner:
    runner = KernelRunner(text)
    runner.launch("fill", 1, 1)
    return runner


def result(runner: KernelRunner, kernel: str, *arguments: int) -> list[int]:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch(kernel, 1, 64, out, *arguments)
    found: list[int] = runner.get(out, 64, np.int32).tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "expected"),
    [(0, 2 * LANES), (1, LANES + 1), (3, 999 * LANES), (4, np.full(64, LANES.sum()))],
    ids=["twice", "plus_one", "large", "summed"],
)
def test_a_pointer_that_another_kernel_stored_reaches_its_function(
    runner: KernelRunner, entry: int, expected: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    assert result(runner, "through_table", entry) == expected.tolist()


def test_threads_that_call_different_functions_get_their_own_results(runner: KernelRunner) -> None:
    x = LANES % 8
    expected = np.choose(LANES % 4, [2 * x, x + 1, FACTORIALS[x], 999 * x])
    assert result(runner, "each_its_own") == expected.tolist()


def test_virtual_functions_of_what_another_kernel_made_are_called(runner: KernelRunner) -> None:
    runner.launch("make_shapes", 1, 1)
    assert runner.device.heap.used_bytes > 0
    assert result(runner, "ask_shapes") == np.where(LANES % 2 == 0, 49 + LANES, -5 * LANES).tolist()
    runner.launch("delete_shapes", 1, 1)
    assert runner.device.heap.used_bytes == 0


def addresses(runner: KernelRunner) -> list[int]:
    start, _ = runner.program.globals["table"]
    found: list[int] = runner.get(start, 5, np.uint64).tolist()
    return found


def test_a_pointer_that_the_host_read_reaches_its_function(runner: KernelRunner) -> None:
    assert result(runner, "given", addresses(runner)[1]) == (LANES + 1).tolist()


def test_a_pointer_reaches_a_function_of_another_module(runner: KernelRunner, text: str) -> None:
    other = Program(ptx.parse(text), runner.device)
    out = runner.put(np.zeros(64, np.int32))
    for entry, expected in ((0, 2 * LANES), (1, LANES + 1)):
        params = np.array([out, addresses(runner)[entry]], np.uint64).tobytes()
        other.kernel("given").launch(GridCall((1, 1, 1), (64, 1, 1), params))
        assert runner.get(out, 64, np.int32).tolist() == expected.tolist()


def test_a_function_of_another_module_may_need_more_stack(runner: KernelRunner, text: str) -> None:
    kernel = Program(ptx.parse(text), runner.device).kernel("given")
    out = runner.put(np.zeros(64, np.int32))
    params = np.array([out, addresses(runner)[3]], np.uint64).tobytes()
    # It is known from its own module how much its functions need, so this has the room.
    kernel.launch(GridCall((1, 1, 1), (64, 1, 1), params))
    assert runner.get(out, 64, np.int32).tolist() == (999 * LANES).tolist()
    module = ptx.parse(ptx_text(CALL_GIVEN, ".param .u64 f"))
    alone = Program(module, runner.device).kernel("k")
    pointer = params[8:]
    with pytest.raises(StackOverflow, match=r"Limits\.stack_bytes"):
        alone.launch(GridCall((1, 1, 1), (64, 1, 1), pointer))
    alone.launch(GridCall((1, 1, 1), (64, 1, 1), pointer), limits=Limits(stack_bytes=1 << 17))


CALL_GIVEN = """.reg .b64 %rd<2>; ld.param.u64 %rd1, [f];
    {.param .b32 x; .param .b32 y; st.param.b32 [x], 3;
    shape: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (y), %rd1, (x), shape;} ret;"""


def test_a_function_has_an_address_of_its_own_on_each_device_and_in_each_module(
    runner: KernelRunner, text: str
) -> None:
    first = addresses(runner)
    again = Program(ptx.parse(text), runner.device)
    again.kernel("fill").launch(GridCall((1, 1, 1), (1, 1, 1)))
    start, _ = again.globals["table"]
    second = runner.get(start, 5, np.uint64).tolist()
    elsewhere = KernelRunner(text)
    elsewhere.launch("fill", 1, 1)
    assert len({*first, *second, *addresses(elsewhere)}) == 15
    runner.launch("fill", 1, 1)
    assert addresses(runner) == first


def test_a_pointer_into_a_module_that_was_unloaded_reaches_nothing(text: str) -> None:
    device = DeviceModel(DeviceMemory(next(_BASES) << 40, 1 << 26))
    gone, there = (Program(ptx.parse(text), device) for _ in range(2))
    gone.kernel("fill").launch(GridCall((1, 1, 1), (1, 1, 1)))
    start = gone.globals["table"][0] - device.memory.base
    pointer = device.memory.data[start : start + 8].tobytes()
    out = device.memory.allocate(256)
    params = out.to_bytes(8, "little") + pointer
    there.kernel("given").launch(GridCall((1, 1, 1), (1, 1, 1), params))
    gone.close()
    with pytest.raises(InvalidCall, match="no function of a module that is loaded"):
        there.kernel("given").launch(GridCall((1, 1, 1), (1, 1, 1), params))


_BASES = itertools.count(1000)


@pytest.mark.parametrize("pointer", [0, 0x1234, 1 << 40])
def test_a_number_that_is_no_address_of_a_function_raises(
    runner: KernelRunner, pointer: int
) -> None:
    with pytest.raises(InvalidCall, match=f"{pointer:#x}"):
        result(runner, "given", pointer)


STRANGE = """
.func strange() { .reg .f64 %fd<3>; tanh.whatever.f64 %fd1, %fd2; ret; }
.func nothing() { ret; }
.func missing();
.func lost() { call missing; ret; }
"""
CALLS = """.reg .b64 %rd<4>; .reg .pred %p; .reg .b32 %r<3>; ld.param.u32 %r1, [which];
mov.u64 %rd1, nothing;
setp.eq.u32 %p, %r1, 1; @%p mov.u64 %rd1, strange;
setp.eq.u32 %p, %r1, 2; @%p mov.u64 %rd1, lost;
shape: .callprototype _ ();
call %rd1, (), shape; ret;"""


def test_what_a_function_cannot_do_is_reported_when_its_address_is_called() -> None:
    runner = KernelRunner(ptx_text(CALLS, ".param .u32 which", STRANGE))
    runner.launch("k", 1, 1, 0)
    with pytest.raises(UnsupportedInstruction, match="tanh.whatever"):
        runner.launch("k", 1, 1, 1)
    with pytest.raises(UndefinedSymbol, match="missing"):
        runner.launch("k", 1, 1, 2)
    runner.launch("k", 1, 1, 0)


def test_an_undefined_function_is_reported_with_what_to_link() -> None:
    source = """
    extern "C" __device__ float triple(float x);
    extern "C" __global__ void k(float* a) { a[0] = triple(a[0]); }
    extern "C" __global__ void good(float* a) { a[0] = 5; }
    """
    options = ptx.CompileOptions(
        target=ptx.Target.ptx("compute_90"), extra=("--relocatable-device-code=true",)
    )
    runner = KernelRunner(ptx.compile(source, options).ptx or "")
    with pytest.raises(UndefinedSymbol, match=r"triple.* is not defined .*ptx\.link") as caught:
        runner.program.kernel("k")
    assert (caught.value.kernel, caught.value.symbol) == ("k", "triple")
    out = runner.put(np.zeros(1, np.float32))
    runner.launch("good", 1, 1, out)
    assert runner.get(out, 1, np.float32)[0] == 5


@pytest.mark.parametrize("name", ["cudaDeviceSynchronize", "__cudaCDP2DeviceSynchronize"])
def test_the_device_runtime_is_reported_as_what_the_emulator_lacks(name: str) -> None:
    declared = f".extern .func (.param .b32 r) {name}();"
    text = ptx_text(f"{{.param .b32 r; call (r), {name};}} ret;", before=declared)
    with pytest.raises(UnsupportedInstruction, match="cudaDeviceSynchronize of CUDA's device runt"):
        KernelRunner(text).program.kernel("k")


def test_a_kernel_that_launches_kernels_is_reported_as_dynamic_parallelism() -> None:
    source = """
    __global__ void child(int* p) { *p = 1; }
    extern "C" __global__ void k(int* p) { child<<<1, 1>>>(p); }
    """
    options = ptx.CompileOptions(
        target=ptx.Target.ptx("compute_90"), extra=("--relocatable-device-code=true",)
    )
    program = KernelRunner(ptx.compile(source, options).ptx or "").program
    with pytest.raises(UnsupportedInstruction, match="launch the kernel from the host") as caught:
        program.kernel("k")
    assert "dynamic parallelism (cudaGetParameterBufferV2) is not emulated" in str(caught.value)
    assert "ptx.link" not in str(caught.value)


def test_an_undefined_variable_is_zero() -> None:
    text = ptx_text(
        ".reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [elsewhere];"
        " st.global.u32 [%rd1], %r1; ret;",
        ".param .u64 p",
        ".extern .global .u32 elsewhere;",
    )
    runner = KernelRunner(text)
    out = runner.put(np.ones(1, np.uint32))
    runner.launch("k", 1, 1, out)
    assert runner.get(out, 1, np.uint32)[0] == 0
    assert runner.program.undefined == ["elsewhere"]


@pytest.mark.slow
def test_a_long_chain_of_calls_is_followed_to_its_end() -> None:
    """2,000 functions, which is more than Python's recursion allows."""
    count = 2000
    functions = f".func f{count}() {{ .local .b8 own[64]; ret; }}\n"
    functions += "".join(
        f".func f{at}() {{ call f{at + 1}; ret; }}\n" for at in range(count - 1, -1, -1)
    )
    runner = KernelRunner(ptx_text("call f0; ret;", before=functions))
    runner.launch("k", 1, 1)
    assert runner.program.kernel("k").attributes.local_bytes == 16 * count + 64
