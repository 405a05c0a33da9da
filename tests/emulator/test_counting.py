"""What launches execute, against numbers worked out by hand and by NumPy from their patterns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator import Counters, Counts, Executed, InstructionClass
from cudadrv.errors import DriverSelectionError, KernelNotFoundError

WARP = 32
ELEMENTS = 1 << 14
Addresses = NDArray[np.int64]


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(2):
        yield cudadrv.cuda_context_for(0)


def kernel(body: str, name: str = "k", before: str = "") -> str:
    """`x` and `y` hold floats, `idx` integers; `t` is the thread's number, `i` that in the grid."""
    return (
        f'{before}\nextern "C" __global__ void {name}(float* x, float* y, int* idx, int n) {{\n'
        f"int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n{body}\n}}\n"
    )


INDICES = np.random.default_rng(3).integers(0, 1 << 10, ELEMENTS).astype(np.int32)


def count(
    context: cudadrv.Context, source: str, grid: int = 4, block: int = 128, n: int = 8
) -> Counters:
    """What one launch executes; `x` lies at a multiple of 512 bytes."""
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(source, options, name="counted.cu"))
    stream = context.new_stream()
    x, y = (stream.zeros(ELEMENTS, np.float32) for _ in range(2))
    idx = stream.to_device(INDICES)
    with emulator.counting() as counters:
        config = cudadrv.LaunchConfig(grid, block)
        module.kernel("k").launch(stream, config, x, y, idx, n)
        stream.synchronize()
    assert all(each.ptr % 512 == 0 for each in (x, y, idx))
    return counters


def warps_of(addresses: Addresses, block: int) -> list[list[int]]:
    """The addresses of each warp, of a grid of blocks."""
    blocks = addresses.reshape(-1, block).tolist()
    return [each[first : first + WARP] for each in blocks for first in range(0, block, WARP)]


def sectors(addresses: Addresses, nbytes: int, block: int = 128) -> tuple[int, int, int]:
    """Requests, sectors and the least of them."""
    rows = warps_of(addresses, block)
    touched = [{a // 32 for a in row} for row in rows]
    least = [-(-len(set(row)) * nbytes // 32) for row in rows]
    return len(rows), sum(map(len, touched)), sum(least)


GLOBAL: list[tuple[str, str, int, Callable[[Addresses], Addresses]]] = [
    ("coalesced", "x[i]", 4, lambda i: 4 * i),
    ("stride 2", "x[2 * i]", 4, lambda i: 8 * i),
    ("stride 32", "x[32 * i]", 4, lambda i: 128 * i),
    ("misaligned", "x[i + 1]", 4, lambda i: 4 * i + 4),
    ("same", "x[blockIdx.x]", 4, lambda i: i // 128 * 4),
    ("reversed", "x[n - i]", 4, lambda i: 4 * (511 - i)),
    ("bytes", "((unsigned char*)x)[i + 3]", 1, lambda i: i + 3),
    ("doubles", "((double*)x)[i + 1]", 8, lambda i: 8 * i + 8),
    ("vectors", "((float4*)x)[2 * i].w + ((float4*)x)[2 * i].x", 16, lambda i: 32 * i),
]


@pytest.mark.parametrize(("name", "value", "nbytes", "where"), GLOBAL, ids=lambda v: str(v)[:12])
def test_sectors_are_those_that_the_addresses_touch(
    context: cudadrv.Context, name: str, value: str, nbytes: int,
    where: Callable[[Addresses], Addresses],
) -> None:  # fmt: skip
    counts = count(context, kernel(f"y[i] = {value};"), n=511)["k"]
    expected = sectors(where(np.arange(512)), nbytes)
    found = counts.global_loads
    if name == "vectors" and found.requests != expected[0]:
        pytest.skip("NVRTC made two loads of it")
    assert (found.requests, found.sectors, found.least_sectors) == expected
    stored = counts.global_stores
    assert (stored.requests, stored.sectors, stored.least_sectors) == (16, 64, 64)


def test_sectors_of_a_gather_are_those_of_its_indices(context: cudadrv.Context) -> None:
    counts = count(context, kernel("y[idx[i]] = x[idx[i]];"))["k"]
    scattered = sectors(4 * INDICES[:512].astype(np.int64), 4)
    indices = sectors(4 * np.arange(512), 4)
    loads, stores = counts.global_loads, counts.global_stores
    assert (stores.requests, stores.sectors, stores.least_sectors) == scattered
    expected = tuple(a + b for a, b in zip(scattered, indices, strict=True))
    assert (loads.requests, loads.sectors, loads.least_sectors) == expected


@pytest.mark.parametrize("block", [33, 1, 96])
def test_warps_of_blocks_that_are_no_multiple_of_32(context: cudadrv.Context, block: int) -> None:
    counts = count(context, kernel("y[i] = x[3 * i];"), grid=5, block=block)["k"]
    expected = sectors(12 * np.arange(5 * block), 4, block)
    found = counts.global_loads
    assert (found.requests, found.sectors, found.least_sectors) == expected
    assert counts.of(InstructionClass.LOAD_GLOBAL).warps == expected[0]
    assert counts.of(InstructionClass.LOAD_GLOBAL).threads == 5 * block


def test_threads_that_are_not_there_touch_nothing(context: cudadrv.Context) -> None:
    counts = count(context, kernel("if (t % 4 == 1) y[i] = x[8 * i];"))["k"]
    assert (counts.global_loads.requests, counts.global_loads.sectors) == (16, 16 * 8)
    assert (counts.global_stores.sectors, counts.global_stores.least_sectors) == (64, 16)
    assert counts.of(InstructionClass.STORE_GLOBAL).threads == 128


def turns(offsets: Addresses, nbytes: int) -> int:
    """Turns of the banks, a warp's parts one after the other."""
    lanes = WARP * 4 // max(nbytes, 4)
    total = 0
    for row in warps_of(offsets, 128):
        for first in range(0, WARP, lanes):
            words = {
                w for a in row[first : first + lanes] for w in range(a // 4, -(-(a + nbytes) // 4))
            }
            total += max(Counter(w % 32 for w in words).values())
    return total


SHARED: list[tuple[str, str, int, Callable[[Addresses], Addresses]]] = [
    *(
        (f"stride {k}", f"s[{k} * t % 4096]", 4, lambda t, k=k: 4 * (k * t % 4096))
        for k in (1, 2, 3, 16, 32, 33)
    ),
    ("same", "s[blockIdx.x]", 4, lambda t: 0 * t),
    ("bytes", "((char*)s)[4 * t]", 1, lambda t: 4 * t),
    ("bytes of one word", "((char*)s)[t]", 1, lambda t: t),
    ("doubles", "((double*)s)[t]", 8, lambda t: 8 * t),
    ("doubles of stride 2", "((double*)s)[2 * t]", 8, lambda t: 16 * t),
    ("vectors", "((float4*)s)[t]", 16, lambda t: 16 * t),
    ("vectors of stride 8", "((float4*)s)[8 * t]", 16, lambda t: 128 * t),
]


@pytest.mark.parametrize(("name", "place", "nbytes", "where"), SHARED, ids=lambda v: str(v)[:12])
def test_turns_of_shared_memory_are_those_of_the_fullest_bank(
    context: cudadrv.Context, name: str, place: str, nbytes: int,
    where: Callable[[Addresses], Addresses],
) -> None:  # fmt: skip
    kind = {1: "char", 4: "float", 8: "double", 16: "float4"}[nbytes]
    value = "make_float4(t, 1, 2, 3)" if nbytes == 16 else "t"
    body = f"__shared__ __align__(16) float s[4096]; {place} = {value}; __syncthreads();"
    body += f" {kind} v = {place}; y[i] = {'v.x + v.y + v.z + v.w' if nbytes == 16 else 'v'};"
    counts = count(context, kernel(body), grid=1)["k"]
    expected = turns(where(np.arange(128)), nbytes)
    ideal = 4 * max(nbytes // 4, 1)
    for found in (counts.shared_loads, counts.shared_stores):
        assert (found.requests, found.wavefronts, found.least_wavefronts) == (4, expected, ideal)
        assert found.conflicts == expected - ideal


@pytest.mark.parametrize(
    ("place", "kind", "loaded", "stored"),
    [
        # The two halves of a warp are one where every thread takes the same as a neighbour.
        ("t / 2", "double", 1, 2),
        ("t / 4 * 2 + t % 2", "double", 1, 2),
        ("t / 8 * 4 + t % 4", "double", 2, 2),
        ("t % 32 == 31 ? 16 : t % 32 / 2", "double", 2, 2),
        ("t % 32 / 2 < 8 ? t % 32 / 2 * 16 : t % 32 / 2 * 16 - 126", "double", 8, 16),
        # Of the four quarters two and two.
        ("t / 2", "float4", 2, 4),
        ("t % 8", "float4", 4, 4),
        ("t % 32 < 16 ? t % 32 / 2 : t % 32", "float4", 4, 4),
    ],
)
def test_loads_of_the_same_in_pairs_are_served_together_and_stores_are_not(
    context: cudadrv.Context, place: str, kind: str, loaded: int, stored: int
) -> None:
    value, sum_of = ("t", "v") if kind == "double" else ("make_float4(t, 1, 2, 3)", "v.x + v.y")
    if kind == "float4":
        sum_of += " + v.z + v.w"
    body = f"__shared__ {kind} s[512]; s[{place}] = {value}; __syncthreads();"
    counts = count(context, kernel(f"{body} {kind} v = s[{place}]; y[i] = {sum_of};"), grid=1)["k"]
    assert counts.shared_loads.wavefronts == 4 * loaded
    assert counts.shared_stores.wavefronts == 4 * stored


def test_each_line_has_its_own_conflicts(context: cudadrv.Context) -> None:
    body = "__shared__ float s[4096];\ns[t] = t;\n__syncthreads();\ny[i] = s[32 * t % 4096];"
    counters = count(context, kernel(body), grid=1)
    found = {line.number: c for (_, line), c in counters.lines.items()}
    assert {number for number, c in found.items() if c.shared_loads.conflicts} == {7}
    assert found[7].shared_loads.conflicts == 4 * 31
    assert found[5].shared_stores.requests == 4
    assert sum(found.values(), Counts()) == counters["k"]


def test_a_branch_diverges_where_threads_of_a_warp_part(context: cudadrv.Context) -> None:
    loop = "for (int k = 0; k < n; k++) v = v * x[k] + {};"
    body = "float v = t; if ({}) {{ " + loop.format(2) + " }} else {{ " + loop.format(3)
    body += " }} y[i] = v;"
    # What the compiler makes of the loops is the same, so that only the condition differs.
    by_warp = count(context, kernel(body.format("t / 32 & 1")))["k"]
    by_lane = count(context, kernel(body.format("t & 1")))["k"]
    by_mask = count(context, kernel(body.format("0x00ff00f0u >> t % 32 & (t / 64)")))["k"]
    assert by_warp.branches.divergent == 0
    assert by_lane.branches.divergent == 16
    assert by_mask.branches.divergent == 8
    assert by_lane.branches.executed > by_warp.branches.executed


def test_a_loop_counts_each_turn_of_each_thread(context: cudadrv.Context) -> None:
    body = "float v = t; for (int k = 0; k < (t & 7); k++) v = __fadd_rn(v, 1.5f); y[i] = v;"
    counts = count(context, kernel("#pragma unroll 1\n" + body))["k"]
    adds = counts.of(InstructionClass.FP32_ADD)
    assert adds.threads == sum(t & 7 for t in range(512))
    assert adds.warps == 16 * 7  # as long as one of its threads goes on


def test_a_guard_leaves_threads_out_but_not_their_warp(context: cudadrv.Context) -> None:
    body = (
        'asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 5;"'
        ' " @p add.f32 %1, %1, %1; @!p mul.f32 %1, %1, %1;"'
        ' " @p st.global.f32 [%2], %1; }" :: "r"(t), "f"(1.f), "l"(y + i));'
    )
    counts = count(context, kernel(body))["k"]
    assert counts.of(InstructionClass.FP32_ADD) == Executed(16, 4 * 5)
    assert counts.of(InstructionClass.FP32_MUL) == Executed(16, 512 - 20)
    assert counts.of(InstructionClass.STORE_GLOBAL) == Executed(16, 20)
    assert counts.global_stores.requests == 4
    assert counts.branches.executed == 0


def test_lanes_that_wait_for_each_other_count_once(context: cudadrv.Context) -> None:
    body = "int v = t; if (t & 1) v += 3; v += __shfl_xor_sync(~0u, v, 1); __syncwarp(); y[i] = v;"
    counts = count(context, kernel(body + "__syncthreads(); x[i] = v;"))["k"]
    assert counts.of(InstructionClass.WARP) == Executed(32, 1024)
    assert counts.of(InstructionClass.BARRIER) == Executed(16, 512)


def turns_in_sectors(row: list[int]) -> int:
    """Each sector as often as the element in it that most threads of a warp use."""
    times = Counter(row)
    every = {element // 8 for element in row}
    return sum(max(n for e, n in times.items() if e // 8 == sector) for sector in every)


def test_lanes_that_meet_at_two_places_count_once_at_each(context: cudadrv.Context) -> None:
    shuffle = 'asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(v));'
    body = (
        f"int v = t; if (t & 1) {{ {shuffle} v *= 3; }} else {{ v += idx[i]; {shuffle} }} y[i] = v;"
    )
    counts = count(context, kernel(body + " y[i] = v;"))["k"]
    assert counts.branches.divergent == 16
    assert counts.of(InstructionClass.WARP) == Executed(32, 512)


FUNCTIONS = """
__device__ __noinline__ float early(float v, int n) {
  if (v < 3) return v;
  for (int k = 0; k < n; k++) v = v * v + 1;
  return v;
}
__device__ __noinline__ float doubled(float v, int n) { return v * n; }
__device__ float (*const chosen[])(float, int) = {early, doubled};
"""


@pytest.mark.parametrize("call", ["early(t % 8, n)", "chosen[t % 2](t % 8, n)"])
def test_threads_go_on_together_behind_a_call(context: cudadrv.Context, call: str) -> None:
    counts = count(context, kernel(f"y[i] = {call};", before=FUNCTIONS))["k"]
    assert counts.global_stores.requests == 16


def test_atomics_are_counted_by_address(context: cudadrv.Context) -> None:
    one = count(context, kernel("atomicAdd(y, x[i]);"))["k"].global_atomics
    assert (one.requests, one.threads, one.ways, one.addresses) == (16, 512, 512, 1)
    assert (one.most_on_one, one.turns) == (512, 512)
    own = count(context, kernel("atomicAdd(y + i, x[i]);"))["k"].global_atomics
    assert (own.ways, own.addresses, own.most_on_one, own.turns) == (16, 512, 1, 64)
    some = count(context, kernel("atomicAdd(y + idx[i], x[i]);"))["k"].global_atomics
    rows = INDICES[:512].reshape(-1, WARP).tolist()
    assert some.ways == sum(max(Counter(row).values()) for row in rows)
    assert some.turns == sum(map(turns_in_sectors, rows))
    assert some.addresses == len(set(INDICES[:512].tolist()))
    assert some.most_on_one == max(Counter(INDICES[:512].tolist()).values())


def test_atomics_in_shared_memory_of_different_blocks_are_apart(context: cudadrv.Context) -> None:
    body = "__shared__ int s[32]; if (t < 32) s[t] = 0; __syncthreads();"
    body += " atomicAdd(s + t % 2, i); __syncthreads(); y[i] = s[t & 1];"
    found = count(context, kernel(body))["k"].shared_atomics
    assert (found.threads, found.addresses, found.most_on_one) == (512, 4 * 2, 64)
    assert (found.ways, found.turns) == (16 * 16, 16 * 16)
    body = "__shared__ int s[1024]; s[t] = t; __syncthreads(); atomicAdd(s + idx[i] % 512, 1);"
    found = count(context, kernel(body + " __syncthreads(); y[i] = s[t];"))["k"].shared_atomics
    banks = [Counter(e % 512 % 32 for e in row) for row in INDICES[:512].reshape(-1, WARP).tolist()]
    assert found.turns == sum(max(each.values()) for each in banks)


def test_a_generic_address_counts_where_it_leads(context: cudadrv.Context) -> None:
    body = "__shared__ float s[128]; s[t] = t; __syncthreads();"
    body += " float* p = n ? s + 31 - t % 32 : x + i; y[i] = *p;"
    for n, expected in ((8, (16, 0)), (0, (0, 16))):
        counts = count(context, kernel(body), n=n)["k"]
        assert (counts.shared_loads.requests, counts.global_loads.requests) == expected
    mixed = body.replace("n ?", "t % 2 ?")
    counts = count(context, kernel(mixed))["k"]
    assert (counts.shared_loads.requests, counts.global_loads.requests) == (16, 16)
    assert counts.global_loads.least_sectors == 16 * 2


def test_copies_and_matrices_are_counted(context: cudadrv.Context) -> None:
    body = "__shared__ __align__(16) float s[1024]; __pipeline_memcpy_async(s + 4 * t, x + 8 * t,"
    body += " 16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); unsigned a;"
    body += ' asm volatile("{ .reg .u64 p; cvta.to.shared.u64 p, %1;"'
    body += ' " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [p]; }" : "=r"(a)'
    body += ' : "l"(s + t % 8 * 32)); y[i] = a;'
    counts = count(context, kernel(body, before="#include <cuda_pipeline.h>"), grid=1)["k"]
    copies = counts.global_copies
    assert (copies.requests, copies.sectors, copies.least_sectors) == (4, 128, 64)
    assert counts.of(InstructionClass.LOAD_MATRIX).warps == 4
    assert (counts.shared_loads.wavefronts, counts.shared_loads.least_wavefronts) == (32, 4)


def test_launches_add_up_by_kernel(context: cudadrv.Context) -> None:
    source = kernel("y[i] = x[2 * i];", "a") + kernel("y[i] = t;", "b")
    module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
    stream = context.new_stream()
    x, y = (stream.zeros(ELEMENTS, np.float32) for _ in range(2))
    idx = stream.zeros(ELEMENTS, np.int32)
    with emulator.counting() as counters:
        for name in "aba":
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(2, 64), x, y, idx, 0)
        stream.synchronize()
    assert [each.kernel for each in counters.launches] == ["a", "b", "a"]
    assert counters["a"].global_loads.sectors == 2 * 4 * 8
    assert counters.total == counters["a"] + counters["b"]
    assert [*counters.kernels] == ["a", "b"]
    with pytest.raises(KernelNotFoundError, match="no launch of 'c' was counted"):
        counters["c"]
    launch = counters.launches[0]
    assert (launch.grid, launch.block, launch.device) == ((2, 1, 1), (64, 1, 1), 0)
    # Without line information a line is one of PTX.
    assert {line.file for line in launch.lines} == {""}


def test_occupancy_is_that_of_the_driver(context: cudadrv.Context) -> None:
    body = "__shared__ float s[8192]; s[t] = x[i]; __syncthreads(); y[i] = s[127 - t];"
    (launch,) = count(context, kernel(body)).launches
    found = launch.occupancy
    # 32 KiB and 1 KiB that the system takes, of 228 KiB.
    assert (found.blocks, found.warps, found.most_warps) == (6, 24, 64)
    assert found.share == 24 / 64


def test_nothing_is_counted_outside_of_the_block(context: cudadrv.Context) -> None:
    source = kernel("y[i] = x[i];")
    module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
    stream = context.new_stream()
    x = stream.zeros(ELEMENTS, np.float32)
    launch = module.kernel("k").launch
    config = cudadrv.LaunchConfig(1, 32)
    launch(stream, config, x, x, x, 0)
    with emulator.counting() as outer:
        launch(stream, config, x, x, x, 0)
        with emulator.counting() as inner:
            launch(stream, config, x, x, x, 0)
    launch(stream, config, x, x, x, 0)
    assert (len(outer.launches), len(inner.launches)) == (2, 1)


@pytest.mark.parametrize("order", ["late", "random"])
def test_queued_launches_count_where_they_were_queued(order: Literal["late", "random"]) -> None:
    with emulator.session(order=order, seed=5 if order == "random" else None):
        context = cudadrv.cuda_context_for(0)
        source = kernel("__syncthreads(); y[i] = __shfl_sync(~0u, x[2 * i], 3);")
        module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
        stream = context.new_stream()
        x = stream.zeros(ELEMENTS, np.float32)
        y = stream.zeros(ELEMENTS, np.float32)
        launch = module.kernel("k").launch
        launch(stream, cudadrv.LaunchConfig(3, 64), x, y, x, 0)
        with emulator.counting() as counters:
            launch(stream, cudadrv.LaunchConfig(2, 64), x, y, x, 0)
        launch(stream, cudadrv.LaunchConfig(3, 64), x, y, x, 0)
        stream.synchronize()
    (counted,) = counters.launches
    assert counted.grid == (2, 1, 1)
    # The warps run whole, whatever the order.
    assert counted.total.of(InstructionClass.WARP).warps == 4
    assert counted.total.global_loads.sectors == 4 * 8


def test_replays_of_a_graph_and_launches_on_each_device_count() -> None:
    with emulator.session(2), emulator.counting() as counters:
        for ordinal in range(2):
            context = cudadrv.cuda_context_for(ordinal)
            options = ptx.CompileOptions(target=context.target)
            module = context.load_module(ptx.compile(kernel("y[i] = x[i];"), options))
            stream = context.new_stream()
            x = stream.zeros(ELEMENTS, np.float32)
            with stream.capture() as graph:
                module.kernel("k").launch(stream, cudadrv.LaunchConfig(1, 32), x, x, x, 0)
            executable = graph.instantiate()
            for _ in range(ordinal + 2):
                executable.launch(stream)
            stream.synchronize()
    assert [each.device for each in counters.launches] == [0, 0, 1, 1, 1]


def test_results_are_the_same_with_counting(context: cudadrv.Context) -> None:
    body = "float v = i; for (int k = 0; k < t % 9; k++) { v = v * 1.5f + k;"
    body += " if (k & 1 && t & 2) v = sqrtf(v); } y[i] = v + __shfl_xor_sync(~0u, v, 5);"
    options = ptx.CompileOptions(target=context.target)
    module = context.load_module(ptx.compile(kernel(body), options))
    stream = context.new_stream()
    found: list[NDArray[np.float32]] = []
    for counted in (False, True):
        y = stream.zeros(512, np.float32)
        arguments: Sequence[object] = (y, y, y, 0)
        if counted:
            with emulator.counting():
                module.kernel("k").launch(stream, cudadrv.LaunchConfig(4, 128), *arguments)
        else:
            module.kernel("k").launch(stream, cudadrv.LaunchConfig(4, 128), *arguments)
        found.append(stream.to_host(y))
    assert np.array_equal(found[0], found[1])


def test_a_launch_that_fails_is_not_counted(context: cudadrv.Context) -> None:
    with emulator.counting() as counters, pytest.raises(cudadrv.CudaError):
        module = context.load_module(
            ptx.compile(kernel("x[1 << 28] = 1;"), ptx.CompileOptions(target=context.target))
        )
        stream = context.new_stream()
        x = stream.zeros(4, np.float32)
        module.kernel("k").launch(stream, cudadrv.LaunchConfig(1, 32), x, x, x, 0)
        stream.synchronize()
    assert counters.launches == []


def test_counting_on_a_gpu_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudadrv.driver import emulated

    class Gpu:
        is_emulated = False

    monkeypatch.setattr(emulated, "current", Gpu)
    with pytest.raises(DriverSelectionError, match="CUDADRV_DRIVER=emulator"), emulator.counting():
        pass
