"""Barriers of a block: counts, numbers, reductions, and what happens when threads stay away."""

from __future__ import annotations

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import BarrierDivergence, SynchronisationFault
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

HEAD = """.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b32 s[256];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd1, %rd1, %rd2;
    shl.b32 %r5, %r1, 2; mov.u32 %r6, s; add.u32 %r5, %r5, %r6; mov.u32 %r7, 0;"""
TAIL = "END: st.global.u32 [%rd1], %r7; ret;"


def outcome(
    body: str, block: int, grid: int = 1, *, limits: Limits | None = None
) -> list[list[int]]:
    """What each thread of each block stores of %r7; %r1 is its number, %r5 its place in s."""
    runner = KernelRunner(ptx_text(HEAD + body + TAIL, ".param .u64 out"), 1 << 20)
    out = runner.put(np.zeros(grid * block, np.uint32))
    runner.launch("k", grid, block, out, limits=limits or Limits())
    found: list[list[int]] = runner.get(out, grid * block, np.uint32).reshape(grid, -1).tolist()
    return found


@all_rows
@pytest.mark.parametrize("name", [
    "bar.sync", "bar.cta.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync.aligned",
])  # fmt: skip
@pytest.mark.parametrize("operands", ["0", "15", "3, 64", "%r8", "%r8, 64"])
def test_every_spelling_of_a_barrier_waits_for_the_block(name: str, operands: str) -> None:
    body = f"""mov.u32 %r8, 7; setp.lt.u32 %p1, %r1, 20; @%p1 bra LATE; bra GO;
        LATE: st.shared.u32 [%r5], %r1; GO: {name} {operands}; xor.b32 %r9, %r5, 4;
        ld.shared.u32 %r7, [%r9];"""
    expected = [(t ^ 1) if t ^ 1 < 20 else 0 for t in range(64)]
    assert outcome(body, 64, 2) == [expected] * 2


@pytest.mark.parametrize("block", [32, 40, 96, 100])
@pytest.mark.parametrize("count", ["", ", {0}"])
def test_reductions_count_the_threads_of_each_block(block: int, count: str) -> None:
    full = count.format(-(-block // 32) * 32)
    body = f"""rem.u32 %r8, %r1, 3; setp.eq.u32 %p1, %r8, %r2; setp.lt.u32 %p2, %r1, %r3;
        bar.red.popc.u32 %r9, 1{full}, %p1; barrier.red.and.pred %p3, 2{full}, %p2;
        bar.red.or.pred %p4, 1{full}, !%p2; bar.red.and.pred %p5, 3{full}, %p1;
        selp.u32 %r7, 1000, 0, %p3; add.u32 %r7, %r7, %r9; @%p4 add.u32 %r7, %r7, 5000;
        @%p5 add.u32 %r7, %r7, 7000;"""
    expected = [[1000 + sum(t % 3 == b for t in range(block))] * block for b in range(4)]
    assert outcome(body, block, 4) == expected


def test_reductions_meet_across_places_and_in_loops() -> None:
    body = """and.b32 %r8, %r1, 1; setp.eq.u32 %p1, %r8, 1; mov.u32 %r10, 0;
        LOOP: setp.lt.u32 %p2, %r1, %r10; @%p1 bra ODD;
        barrier.red.popc.u32 %r9, 4, %p2; bra JOIN; ODD: barrier.red.popc.u32 %r9, 4, !%p2;
        JOIN: mad.lo.u32 %r7, %r7, 100, %r9; add.u32 %r10, %r10, 10;
        setp.lt.u32 %p3, %r10, 40; @%p3 bra LOOP;"""
    value = 0
    for bound in range(0, 40, 10):
        value = value * 100 + sum((t < bound) != (t % 2 == 1) for t in range(64))
    assert outcome(body, 64, 3) == [[value & 0xFFFFFFFF] * 64] * 3


@pytest.mark.parametrize("name", ["bar.red", "barrier.red"])
def test_aligned_reductions_are_for_whole_warps(name: str) -> None:
    body = f"""and.b32 %r8, %r1, 1; setp.eq.u32 %p1, %r8, 1; @%p1 bra ODD;
        {name}.popc.u32 %r7, 0, %p1; bra END; ODD: {name}.popc.u32 %r7, 0, %p1;"""
    if name == "barrier.red":
        assert outcome(body, 64) == [[32] * 64]
        return
    with pytest.raises(SynchronisationFault, match="at different barriers"):
        outcome(body, 64)
    with pytest.raises(SynchronisationFault, match="at different barriers"):
        outcome(body, 64, limits=Limits(divergent_barriers=True))


def branches(least: int, first: str, second: str) -> str:
    """Threads from `least` on at the second of two barriers, the others at the first."""
    return f"""setp.ge.u32 %p1, %r1, {least}; st.shared.u32 [%r5], %r1; @%p1 bra HIGH;
        {first}; bra JOIN; HIGH: {second}; JOIN: xor.b32 %r9, %r5, 252; ld.shared.u32 %r7, [%r9];"""


TURNED = [[63 - t for t in range(64)]]


@all_rows
@pytest.mark.parametrize("least", [1, 16, 33])
@pytest.mark.parametrize("name", ["bar.sync", "bar.cta.sync", "barrier.sync.aligned"])
@pytest.mark.parametrize("operands", ["0", "3, 64"])
def test_threads_of_a_warp_at_different_aligned_barriers_are_a_fault(
    least: int, name: str, operands: str
) -> None:
    body = branches(least, f"{name} {operands}", f"\n{name} {operands}")
    with pytest.raises(SynchronisationFault, match=r"one warp .*, PTX lines \d+ and \d+") as caught:
        outcome(body, 64)
    assert caught.value.where.thread == (least, 0, 0)
    assert outcome(body, 64, limits=Limits(divergent_barriers=True)) == TURNED


@pytest.mark.parametrize("mixed", [("bar.sync 0", "barrier.sync 0"), ("barrier.sync 0",) * 2])
def test_threads_of_a_warp_may_come_from_different_barriers_that_are_not_aligned(
    mixed: tuple[str, str],
) -> None:
    assert outcome(branches(20, *mixed), 64, limits=Limits(strict_barriers=True)) == TURNED


def test_a_synchronisation_and_a_reduction_after_it_are_different_barriers() -> None:
    body = """setp.ge.u32 %p1, %r1, 16; @%p1 bra HIGH; bar.sync 0;
        HIGH: bar.red.popc.u32 %r7, 0, %p1;"""
    with pytest.raises(SynchronisationFault, match="one warp"):
        outcome(body, 32)


def test_one_barrier_in_a_function_that_is_called_from_two_places_is_one_place() -> None:
    body = "setp.ge.u32 %p1, %r1, 16; @%p1 bra HIGH; call meet; bra END; HIGH: call meet;"
    text = ptx_text(HEAD + body + TAIL, ".param .u64 out", ".func meet() { bar.sync 0; ret; }")
    runner = KernelRunner(text, 1 << 20)
    runner.launch("k", 1, 32, runner.put(np.zeros(32, np.uint32)))


def test_warps_may_come_from_different_barriers_unless_requested() -> None:
    body = branches(32, "bar.sync 0", "bar.sync 0")
    assert outcome(body, 64) == TURNED
    with pytest.raises(SynchronisationFault, match="threads of one block") as caught:
        outcome(body, 64, limits=Limits(strict_barriers=True))
    assert caught.value.where.thread == (32, 0, 0)


def test_warps_at_barriers_with_a_count_may_come_from_anywhere() -> None:
    body = branches(32, "bar.sync 2, 64", "bar.sync 2, 64")
    assert outcome(body, 64, limits=Limits(strict_barriers=True)) == TURNED


def test_a_condition_that_is_equal_for_a_block_is_no_divergence() -> None:
    body = branches(32, "bar.sync 0", "bar.sync 0").replace("%r1, 32", "%r2, 2", 1)
    assert outcome(body, 64, 5, limits=Limits(strict_barriers=True)) == TURNED * 5


def test_reductions_of_half_a_block_each_at_a_barrier_of_its_own() -> None:
    body = """shr.u32 %r8, %r1, 6; and.b32 %r9, %r1, 3; setp.eq.u32 %p1, %r9, %r8;
        add.u32 %r8, %r8, 8; barrier.red.popc.u32 %r7, %r8, 64, %p1;"""
    assert outcome(body, 128) == [[16] * 128]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_barrier_waits_for_a_last_warp_that_is_not_full(order: tuple[int, int, int]) -> None:
    body = "shr.u32 %r8, %r1, 5; setp.ge.u32 %p1, %r1, 64;"
    for warp in order:
        body += f"setp.eq.u32 %p2, %r8, {warp}; @%p2 bra WARP{warp};"
    for warp in order:
        body += f"WARP{warp}: bar.red.popc.u32 %r7, 0, %p1; bra END;"
    assert outcome(body, 72) == [[8] * 72]


def test_threads_above_the_count_begin_the_next_phase_in_whole_warps() -> None:
    # Half a warp waits. Then two halves and a warp come at once, which are 16 threads too many.
    body = """and.b32 %r8, %r1, 31; setp.ge.u32 %p1, %r8, 16; setp.lt.and.u32 %p1, %r1, 96, %p1;
        setp.ge.u32 %p2, %r1, 96; setp.ge.u32 %p3, %r1, 16; @%p1 bra HIGH; @%p3 bra LOW;
        barrier.red.popc.u32 %r7, 1, 64, %p2; bra END; LOW: barrier.red.popc.u32 %r7, 1, 64, %p2;
        bra END; HIGH: barrier.red.popc.u32 %r7, 1, 64, %p2;"""
    first = {*range(16), *range(32, 48), *range(96, 128)}
    assert outcome(body, 128) == [[32 * (t in first) for t in range(128)]]


def test_arrivals_of_the_next_phase_are_not_lost() -> None:
    # The first warp arrives three times; the second waits three times. No other order holds.
    body = """setp.ge.u32 %p1, %r1, 32; @%p1 bra WAIT; st.shared.u32 [s], 1;
        bar.arrive 1, 64; bar.arrive 2, 64; bar.arrive 3, 64; bra END;
        WAIT: bar.sync 1, 64; bar.sync 2, 64; bar.sync 3, 64; ld.shared.u32 %r7, [s];"""
    assert outcome(body, 64) == [[0] * 32 + [1] * 32]


def test_a_second_arrival_belongs_to_the_next_phase() -> None:
    # The waiting threads come first in the text and so arrive first.
    body = """setp.lt.u32 %p1, %r1, 32; @%p1 bra ARRIVE; bar.sync 1, 64; ld.shared.u32 %r7, [s];
        bar.sync 1, 64; add.u32 %r7, %r7, 1; bra END;
        ARRIVE: st.shared.u32 [s], 4; bar.arrive 1, 64; bar.arrive 1, 64;"""
    assert outcome(body, 64) == [[0] * 32 + [5] * 32]


def test_one_barrier_is_used_for_phase_after_phase() -> None:
    body = """mov.u32 %r10, 0; setp.ge.u32 %p1, %r1, 32;
        LOOP: @%p1 bra WAIT; st.shared.u32 [%r5], %r10; bar.sync 1, 64; bar.sync 1, 64; bra NEXT;
        WAIT: bar.sync 1, 64; ld.shared.u32 %r8, [%r5+-128]; mad.lo.u32 %r7, %r7, 10, %r8;
        bar.sync 1, 64;
        NEXT: add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 4; @%p2 bra LOOP;"""
    assert outcome(body, 64, 2) == [[0] * 32 + [123] * 32] * 2


def test_warps_meet_in_pairs_whose_barrier_depends_on_the_warp() -> None:
    body = """shr.u32 %r8, %r1, 6; add.u32 %r8, %r8, 1; st.shared.u32 [%r5], %r1;
        setp.lt.u32 %p1, %r1, 50; @%p1 bra SLOW; bra GO; SLOW: st.shared.u32 [%r5], 9;
        GO: barrier.sync %r8, 64; xor.b32 %r9, %r5, 128; ld.shared.u32 %r7, [%r9];"""
    expected = [9 if (t ^ 32) < 50 else t ^ 32 for t in range(256)]
    assert outcome(body, 256) == [expected]


def test_exited_threads_are_not_waited_for_unless_requested() -> None:
    body = """setp.ge.u32 %p1, %r1, 40; @%p1 bra END; st.shared.u32 [%r5], 3; bar.sync 0;
        xor.b32 %r9, %r5, 4; ld.shared.u32 %r7, [%r9];"""
    assert outcome(body, 64) == [[3] * 40 + [0] * 24]
    with pytest.raises(BarrierDivergence, match=r"40 threads wait at barrier 0 .*24 exited"):
        outcome(body, 64, limits=Limits(strict_barriers=True))


def test_an_error_counts_the_threads_that_a_block_has() -> None:
    body = "setp.ge.u32 %p1, %r1, 60; @%p1 bra END; bar.sync 0;"
    expected = r"60 threads wait at barrier 0 .*\(45 in block"
    with pytest.raises(BarrierDivergence, match=expected):
        outcome(body, 105, limits=Limits(strict_barriers=True))


def test_exited_lanes_of_a_waiting_warp_count_at_a_barrier_with_a_count() -> None:
    body = """setp.eq.u32 %p1, %r1, 5; @%p1 bra END; st.shared.u32 [%r5], 3;
        setp.ge.u32 %p2, %r1, 32; @%p2 bra B; bar.sync 1, 64; bra C; B: bar.sync 1, 64;
        C: xor.b32 %r9, %r5, 128; ld.shared.u32 %r7, [%r9];"""
    found = outcome(body, 64)[0]
    assert found == [3 if t not in (5, 37) else 0 for t in range(64)]


@all_rows
@pytest.mark.parametrize("fence", [
    "membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.acq_rel.gpu", "fence.sc.sys",
    "fence.acq_rel.cluster", "fence.acquire.gpu", "fence.release.sys", "fence.proxy.alias",
    "fence.proxy.async", "fence.proxy.async.global", "fence.proxy.async.shared::cta",
    "fence.mbarrier_init.release.cluster",
])  # fmt: skip
def test_fences_of_every_kind_are_executed(fence: str) -> None:
    assert outcome(f"{fence}; mov.u32 %r7, 1;", 32) == [[1] * 32]


@pytest.mark.parametrize(
    ("barrier", "words"),
    [
        ("bar.sync %r8", "barrier 17, but a block has only 16"),
        ("bar.sync 1, 40", "barrier 1 with 40 threads: it takes a multiple of 32"),
        ("bar.arrive 1, 96", "barrier 1 with 96 threads.* the block has 64"),
        ("bar.red.popc.u32 %r7, %r8, %p1", "barrier 17"),
    ],
)
def test_barriers_that_a_block_cannot_have_are_faults(barrier: str, words: str) -> None:
    with pytest.raises(SynchronisationFault, match=words) as caught:
        outcome(f"mov.u32 %r8, 17; setp.eq.u32 %p1, %r1, 0; {barrier};", 64)
    assert caught.value.where.block == (0, 0, 0)


SOURCE = """
extern "C" __global__ void odd_and_even(int* out) {
    __shared__ int s[64];
    if (threadIdx.x & 1) { s[threadIdx.x] = 3; __syncthreads(); out[64] = s[threadIdx.x ^ 1]; }
    else { s[threadIdx.x] = threadIdx.x; __syncthreads(); out[65] = s[63 - threadIdx.x]; }
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void below(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < n) __syncthreads();
    else s[threadIdx.x] *= 2;
    out[threadIdx.x] = s[threadIdx.x ^ 63];
    __syncthreads();
    out[threadIdx.x] += s[threadIdx.x ^ 1];
}
extern "C" __global__ void leavers(int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
"""


@pytest.fixture(params=["compute_80", "compute_100"])
def compiled_by_nvrtc(request: pytest.FixtureRequest) -> KernelRunner:
    options = ptx.CompileOptions(target=ptx.Target.ptx(request.param))
    return KernelRunner(ptx.compile(SOURCE, options).ptx or "")


@pytest.mark.parametrize(("kernel", "arguments"), [("odd_and_even", ()), ("below", (20,))])
def test_syncthreads_under_a_condition_that_differs_in_a_warp_is_a_fault(
    compiled_by_nvrtc: KernelRunner, kernel: str, arguments: tuple[int, ...]
) -> None:
    runner = compiled_by_nvrtc
    out = runner.put(np.zeros(66, np.int32))
    with pytest.raises(SynchronisationFault, match="threads of one warp"):
        runner.launch(kernel, 1, 64, out, *arguments)
    runner.launch(kernel, 1, 64, out, *arguments, limits=Limits(divergent_barriers=True))


@pytest.mark.parametrize("n", [64, 40, 32, 1])
def test_threads_that_return_before_syncthreads_are_not_waited_for(
    compiled_by_nvrtc: KernelRunner, n: int
) -> None:
    runner = compiled_by_nvrtc
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("leavers", 1, 64, out, n)
    expected = [*range(n)][::-1] + [0] * (64 - n)
    assert runner.get(out, 64, np.int32).tolist() == expected
