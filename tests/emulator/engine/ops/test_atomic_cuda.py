"""CUDA's atomic functions and libcu++'s, through NVRTC: every overload, locks, loops and queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, reduce
from operator import xor
from pathlib import Path

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import Runaway, UndefinedSymbol
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.atomic_reference import simulate
from tests.emulator.engine.ops.corpus import compiled
from tests.short_cases import few

TARGETS = ("compute_75", "compute_90", "compute_100", "compute_120")
N = 64  # threads
INTEGERS = {"int": "s32", "unsigned": "u32", "long long": "s64", "unsigned long long": "u64"}


def runner_of(source: str, target: str) -> KernelRunner:
    return KernelRunner(compiled(source, target), 1 << 22)


@dataclass(frozen=True)
class Overload:
    """One atomic function: what it is called on, and what PTX operation it means."""

    function: str
    c_type: str
    name: str
    kind: str
    live: bool


@cache
def overloads() -> tuple[Overload, ...]:
    return tuple(
        Overload(f"atomic{function}{scope}", c_type, name, kind, live)
        for scope in ("", "_block", "_system")
        for live in (True, False)
        for function, name, c_type, kind in functions()
    )


def functions() -> Iterator[tuple[str, str, str, str]]:
    for c_type, kind in INTEGERS.items():
        names = ["Min", "Max", "And", "Or", "Xor"]
        if c_type != "long long":
            names += ["Add", "Exch", "CAS"]
        if kind[1:] == "32":
            names += ["Sub"]
        if kind == "u32":
            names += ["Inc", "Dec"]
        for function in names:
            yield function, "add" if function == "Sub" else function.lower(), c_type, kind
    yield from (("Add", "add", "float", "f32"), ("Exch", "exch", "float", "f32"))
    yield "Add", "add", "double", "f64"


def source() -> str:
    kernels = []
    for number, each in enumerate(overloads()):
        arguments = "p + (i & 3), v, w" if each.name == "cas" else "p + (i & 3), v"
        call = f"{each.function}({arguments})"
        result = f"o[i] = {call};" if each.live else f"{call}; o[i] = v;"
        kernels.append(
            f"__global__ void g{number}({each.c_type}* p, const {each.c_type}* x, {each.c_type}* o)"
            f" {{ int i = threadIdx.x; {each.c_type} v = x[i], w = x[{N} + i]; {result} }}"
            f"__global__ void s{number}({each.c_type}* m, const {each.c_type}* x, {each.c_type}* o)"
            f" {{ __shared__ {each.c_type} p[4]; int i = threadIdx.x; {each.c_type} v = x[i],"
            f" w = x[{N} + i]; if (i < 4) p[i] = m[i]; __syncthreads(); {result}"
            " __syncthreads(); if (i < 4) m[i] = p[i]; }"
        )
    return 'extern "C" {\n' + "\n".join(kernels) + "\n}"


@pytest.mark.slow
@pytest.mark.parametrize("target", few(TARGETS, 1))
def test_every_overload_of_every_atomic_function(target: str) -> None:
    runner = runner_of(source(), target)
    generator = np.random.default_rng(11)
    wrong = []
    for number, each in enumerate(overloads()):
        bits = f"u{int(each.kind[1:]) // 8}"
        if each.kind[0] == "f":
            values = generator.uniform(1, 9, 2 * N + 4).astype(f"f{bits[1]}").view(bits)
        elif each.name in ("inc", "dec", "cas"):
            values = generator.integers(0, 4, 2 * N + 4).astype(bits)
        else:
            values = generator.integers(0, 2 ** int(each.kind[1:]), 2 * N + 4, "u8").astype(bits)
        x, start = values[: 2 * N], values[2 * N :].tolist()
        first = x[:N].tolist()
        if each.function.startswith("atomicSub"):
            first = [-value % 2**32 for value in first]
        expected = list(start)
        olds = simulate(
            each.name, each.kind, expected, [i & 3 for i in range(N)], first, x[N:].tolist()
        )
        for kernel in ("g", "s"):
            memory, out = runner.put(np.array(start, bits)), runner.put(np.zeros(N, bits))
            runner.launch(f"{kernel}{number}", 1, N, memory, runner.put(x), out)
            found = runner.get(out, N, bits).tolist()
            after = runner.get(memory, 4, bits).tolist()
            if after != expected or (each.live and found != olds):
                wrong.append((kernel, each))
    assert len(overloads()) > 180
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_atomic_adds_of_halves(target: str) -> None:
    runner = runner_of(
        """#include <cuda_fp16.h>
        #include <cuda_bf16.h>
        template <class T> __device__ void add(T* p, const T* x, T* o) {
          o[threadIdx.x] = atomicAdd(p, x[threadIdx.x]); atomicAdd(p + 2, x[threadIdx.x]); }
        extern "C" __global__ void f16(__half* p, const __half* x, __half* o) { add(p, x, o); }
        extern "C" __global__ void f16x2(__half2* p, const __half2* x, __half2* o) { add(p, x, o); }
        using B = __nv_bfloat16;
        using B2 = __nv_bfloat162;
        extern "C" __global__ void bf16(B* p, const B* x, B* o) { add(p, x, o); }
        extern "C" __global__ void bf16x2(B2* p, const B2* x, B2* o) { add(p, x, o); }""",
        target,
    )
    generator = np.random.default_rng(12)
    numbers = generator.uniform(-9, 9, 2 * N).astype("f4")
    for kind, bits in (
        ("f16", numbers.astype("f2").view("u2")),
        ("bf16", (numbers.view("u4") >> np.uint32(16)).astype("u2")),
    ):
        for name, width in ((kind, 1), (f"{kind}x2", 2)):
            memory, out = runner.put(np.zeros(16, "u2")), runner.put(np.zeros(2 * N, "u2"))
            runner.launch(name, 1, N, memory, runner.put(bits), out)
            found = runner.get(out, width * N, "u2").reshape(N, width)
            after = runner.get(memory, 16, "u2")
            for part in range(width):
                expected = [0]
                values = bits[: width * N].reshape(N, width)[:, part].tolist()
                olds = simulate("add", kind, expected, [0] * N, values, values)
                assert found[:, part].tolist() == olds
                assert after[[part, 2 * width + part]].tolist() == expected * 2


@pytest.mark.slow
def test_vectors_of_floats_and_16_bytes_of_compute_capability_9() -> None:
    runner = runner_of(
        """struct __align__(16) Pair { unsigned long long a, b; };
        extern "C" __global__ void two(float2* p, const float2* x, float2* o) {
          o[threadIdx.x] = atomicAdd(p, x[threadIdx.x]); atomicAdd_system(p + 1, x[threadIdx.x]); }
        extern "C" __global__ void four(float4* p, const float4* x, float4* o) {
          o[threadIdx.x] = atomicAdd_block(p, x[threadIdx.x]); atomicAdd(p + 1, x[threadIdx.x]); }
        extern "C" __global__ void swap(Pair* p, const Pair* x, Pair* o) {
          o[threadIdx.x] = atomicExch(p, x[threadIdx.x]);
          Pair none = {0, 0};
          atomicCAS_block(p + 1, none, x[threadIdx.x]); }""",
        "compute_90",
    )
    numbers = np.random.default_rng(13).integers(-99, 99, 4 * N).astype("f4")
    for name, width in (("two", 2), ("four", 4)):
        values = numbers[: width * N].reshape(N, width)
        memory, out = zeros(runner, 2 * width, "f4"), zeros(runner, width * N, "f4")
        runner.launch(name, 1, N, memory, runner.put(values), out)
        sums = np.cumsum(values, axis=0)
        assert np.array_equal(runner.get(out, width * N, "f4"), (sums - values).reshape(-1))
        assert np.array_equal(runner.get(memory, 2 * width, "f4"), np.tile(sums[-1], 2))
    pairs = np.random.default_rng(14).integers(1, 1 << 60, (N, 2))
    memory, out = zeros(runner, 4, "i8"), zeros(runner, 2 * N, "i8")
    runner.launch("swap", 1, N, memory, runner.put(pairs), out)
    assert runner.get(out, 2 * N, "i8")[2:].tolist() == pairs[:-1].reshape(-1).tolist()
    assert runner.get(memory, 4, "i8").tolist() == [*pairs[-1].tolist(), *pairs[0].tolist()]


@cache
def loops(target: str) -> KernelRunner:
    return runner_of(Path(__file__).with_name("atomics.cu").read_text(), target)


def zeros(runner: KernelRunner, count: int = 1, dtype: str = "i4") -> int:
    return runner.put(np.zeros(count, dtype))


@pytest.mark.parametrize("target", few(["compute_75", "compute_90", "compute_120"], 1))
class TestWaiting:
    @pytest.mark.slow
    def test_the_maximum_of_floats_by_swaps(self, target: str) -> None:
        runner, x = loops(target), np.random.default_rng(0).standard_normal(5000).astype("f4")
        out = zeros(runner)
        runner.launch("maximum", 20, 256, runner.put(x), out, len(x))
        assert runner.get(out, 1, "f4")[0] == x.max()

    @pytest.mark.slow
    def test_a_sum_of_doubles_by_swaps(self, target: str) -> None:
        runner, out = loops(target), zeros(loops(target), 1, "f8")
        runner.launch("add_by_swaps", 4, 128, runner.put(np.arange(500.0)), out, 500)
        assert runner.get(out, 1, "f8")[0] == 500 * 499 / 2

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "grid", "block", "count"),
        [("lock_in_loop", 3, 64, 192), ("lock_of_blocks", 40, 32, 40), ("lock_before", 2, 48, 96)],
    )
    def test_a_lock_is_had_by_each_in_turn(
        self, target: str, name: str, grid: int, block: int, count: int
    ) -> None:
        runner = loops(target)
        lock, counter = zeros(runner), zeros(runner)
        runner.launch(name, grid, block, lock, counter)
        assert runner.get(counter, 1, "i4")[0] == count
        assert runner.get(lock, 1, "i4")[0] == 0

    @pytest.mark.slow
    def test_tickets_are_served_in_their_order(self, target: str) -> None:
        runner = loops(target)
        order = zeros(runner, 96)
        runner.launch("tickets", 3, 32, zeros(runner), zeros(runner), order)
        assert sorted(runner.get(order, 96, "i4").tolist()) == list(range(96))

    @pytest.mark.slow
    def test_the_last_block_sees_what_all_blocks_left(self, target: str) -> None:
        runner, x = loops(target), np.arange(40 * 64, dtype="i4")
        arrived, out = zeros(runner), zeros(runner)
        runner.launch("last_block", 40, 64, runner.put(x), zeros(runner, 40), arrived, out)
        assert runner.get(out, 1, "i4")[0] == x.sum()
        assert runner.get(arrived, 1, "i4")[0] == 0

    @pytest.mark.slow
    def test_half_a_warp_waits_for_the_other_half(self, target: str) -> None:
        runner = loops(target)
        out = zeros(runner, 32)
        runner.launch("flag_in_warp", 1, 32, zeros(runner), out)
        assert runner.get(out, 32, "i4").tolist() == [5] * 16 + [1] * 16

    @pytest.mark.slow
    def test_blocks_wait_for_the_block_before_them(self, target: str) -> None:
        runner = loops(target)
        out = zeros(runner, 60)
        limits = Limits(chunk_threads=512)
        runner.launch("chained", 60, 32, zeros(runner), out, limits=limits)
        assert runner.get(out, 60, "i4").tolist() == list(range(60))

    @pytest.mark.slow
    def test_a_counter_compacts_in_the_order_of_the_threads(self, target: str) -> None:
        runner, x = loops(target), np.random.default_rng(1).integers(-5, 5, 3000).astype("i4")
        out, count = zeros(runner, 3000), zeros(runner)
        runner.launch("compact", 12, 256, runner.put(x), 3000, out, count)
        positive = x[x > 0]
        assert runner.get(out, len(positive), "i4").tolist() == positive.tolist()

    @pytest.mark.slow
    def test_a_list_is_pushed_to_by_all(self, target: str) -> None:
        runner = loops(target)
        head, links = runner.put(np.array([-1], "i4")), zeros(runner, 256)
        runner.launch("push", 2, 128, head, links)
        following = runner.get(links, 256, "i4")
        at, seen = int(runner.get(head, 1, "i4")[0]), []
        while at >= 0:
            seen.append(at)
            at = int(following[at])
        assert sorted(seen) == list(range(256))

    @pytest.mark.slow
    def test_pairs_of_16_bytes_are_swapped_whole(self, target: str) -> None:
        if ptx.nvrtc_version() < (13, 2):
            pytest.skip("libcu++ of CUDA older than 13.2 has no operands of 128 bits for NVRTC")
        runner, x = loops(target), np.random.default_rng(2).integers(0, 1 << 40, 100)
        pair = zeros(runner, 2, "i8")
        if target == "compute_75":  # libcu++ calls a function there that nobody defines
            with pytest.raises(UndefinedSymbol, match="compile for compute_90 or newer"):
                runner.launch("pairs", 1, 100, pair, runner.put(x))
            return
        runner.launch("pairs", 1, 100, pair, runner.put(x))
        numbers: list[int] = x.tolist()
        assert runner.get(pair, 2, "i8").tolist() == [sum(numbers), reduce(xor, numbers)]

    @pytest.mark.slow
    def test_bytes_are_added_within_their_words(self, target: str) -> None:
        runner, x = loops(target), np.random.default_rng(3).integers(0, 256, 160).astype("u1")
        at = zeros(runner, 8, "u1")
        runner.launch("bytes", 1, 160, at, runner.put(x))
        assert runner.get(at, 8, "u1").tolist() == [int(x[k::8].sum()) & 255 for k in range(8)]

    @pytest.mark.slow
    def test_waiting_for_a_notification(self, target: str) -> None:
        runner = loops(target)
        out = zeros(runner, 64)
        runner.launch("wait_for", 1, 64, zeros(runner), out)
        assert runner.get(out, 64, "i4").tolist() == [7] * 64


@pytest.mark.slow
def test_a_lock_that_is_never_released_ends_in_an_error_and_not_in_a_hang() -> None:
    runner = loops("compute_90")
    lock = runner.put(np.ones(1, "i4"))
    with pytest.raises(Runaway, match="max_steps"):
        runner.launch("lock_of_blocks", 2, 32, lock, zeros(runner), limits=Limits(max_steps=20_000))
