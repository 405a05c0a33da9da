"""Barriers of a block: counts, numbers, reductions, and what happens when threads stay away."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.exec.limits import Limits
from ptx.emulate.model.errors import BarrierDivergence, SynchronisationFault
from tests.ptx.emulate.kernel_runner import KernelRunner, ptx_text

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
    with pytest.raises(SynchronisationFault, match="at different places"):
        outcome(body, 64)


def test_reductions_of_half_a_block_each_at_a_barrier_of_its_own() -> None:
    body = """shr.u32 %r8, %r1, 6; and.b32 %r9, %r1, 3; setp.eq.u32 %p1, %r9, %r8;
        add.u32 %r8, %r8, 8; barrier.red.popc.u32 %r7, %r8, 64, %p1;"""
    assert outcome(body, 128) == [[16] * 128]


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


def test_exited_threads_are_not_waited_for_unless_asked() -> None:
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
