"""Fibres: divergence, barriers, locks, and that the chunk size changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import Runaway
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, compiled, ptx_text
from tests.short_cases import few

CHUNKS = [1, 64, 1000, 32768]


@pytest.mark.parametrize("chunk", few(CHUNKS, 2))
def test_a_spin_lock_lets_every_thread_through(chunk: int) -> None:
    runner = KernelRunner(compiled("compute_90"))
    lock, total = runner.put(np.zeros(1, np.int32)), runner.put(np.zeros(1, np.int32))
    runner.launch("spin", 2, 64, lock, total, limits=Limits(chunk_threads=chunk))
    assert runner.get(total, 1, np.int32)[0] == 2 * sum(range(64))


NESTED = """
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r5, 0; mov.u32 %r6, %r4;
  LOOP:
    add.u32 %r5, %r5, 1;
    and.b32 %r7, %r6, 1; setp.eq.u32 %p1, %r7, 0; @%p1 bra EVEN;
    mad.lo.u32 %r6, %r6, 3, 1;
    and.b32 %r8, %r6, 8; setp.ne.u32 %p2, %r8, 0; @%p2 bra DEEP; bra JOIN;
  DEEP:
    add.u32 %r5, %r5, 1000; bra JOIN;
  EVEN:
    shr.u32 %r6, %r6, 1;
  JOIN:
    setp.gt.u32 %p3, %r6, 1; setp.lt.u32 %p4, %r5, 40000; and.pred %p3, %p3, %p4;
    @%p3 bra LOOP;
    st.global.u32 [%rd3], %r5;
    ret;
"""


def collatz(n: int) -> int:
    count = 0
    while True:
        count += 1
        if n % 2:
            n = 3 * n + 1
            if n & 8:
                count += 1000
        else:
            n //= 2
        if not (n > 1 and count < 40000):
            return count


@pytest.mark.parametrize("chunk", CHUNKS)
def test_nested_divergence_in_a_loop_rejoins_rightly(chunk: int) -> None:
    runner = KernelRunner(ptx_text(NESTED, ".param .u64 out"))
    out = runner.put(np.zeros(300, np.int32))
    runner.launch("k", 3, 100, out, limits=Limits(chunk_threads=chunk))
    assert runner.get(out, 300, np.int32).tolist() == [collatz(n) for n in range(300)]


def test_two_barriers_with_counts_make_a_pipeline() -> None:
    # Threads 0-31 produce, 32-63 consume: bar 1 says "full", bar 2 says "empty".
    text = ptx_text(
        """.reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
        .shared .align 4 .b8 box[128];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31;
        shl.b32 %r3, %r2, 2; mov.u32 %r4, box; add.u32 %r4, %r4, %r3; mov.u32 %r5, 0;
        setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUME;
      PRODUCE:
        bar.sync 2, 64;
        mad.lo.u32 %r6, %r5, 100, %r2; st.shared.u32 [%r4], %r6;
        bar.arrive 1, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3; @%p2 bra PRODUCE;
        ret;
      CONSUME:
        bar.arrive 2, 64;
        bar.sync 1, 64;
        ld.shared.u32 %r6, [%r4]; mad.lo.u32 %r7, %r5, 32, %r2;
        mul.wide.u32 %rd2, %r7, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r6;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3; @%p2 bra CONSUME;
        ret;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(96, np.int32))
    runner.launch("k", 1, 64, out)
    expected = [100 * k + lane for k in range(3) for lane in range(32)]
    assert runner.get(out, 96, np.int32).tolist() == expected


def test_threads_that_meet_at_different_barrier_instructions_pass() -> None:
    text = ptx_text(
        """.reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<3>; .shared .align 4 .b8 s[8];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p bra B;
        st.shared.u32 [s], 5; barrier.sync 0; ret;
        B: barrier.sync 0; ld.shared.u32 %r2, [s]; st.global.u32 [%rd1], %r2; ret;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(1, np.int32))
    runner.launch("k", 1, 8, out)
    assert runner.get(out, 1, np.int32)[0] == 5


def test_guarded_instructions_of_every_kind_act_on_their_lanes_only() -> None:
    text = ptx_text(
        """.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 7;
        @%p1 add.u32 %r3, %r3, %r1; @!%p1 mov.u32 %r3, 1;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
        @%p1 st.global.u32 [%rd3], %r3;
        @!%p1 ret;
        @%p1 atom.global.add.u32 %r4, [%rd3], 100;
        @%p1 add.u32 %r4, %r4, 0; st.global.u32 [%rd3+128], %r4; exit;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("k", 1, 32, out)
    found = runner.get(out, 64, np.int32)
    assert found[:32].tolist() == [107 + n if n % 2 == 0 else 0 for n in range(32)]
    assert found[32:].tolist() == [7 + n if n % 2 == 0 else 0 for n in range(32)]


def test_indexed_branches_and_calls_by_address_part_the_threads() -> None:
    text = ptx_text(
        """.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3;
        table: .branchtargets A, B, C;
        brx.idx %r2, table;
        A: mov.u64 %rd4, one; bra D;
        B: mov.u64 %rd4, two; bra D;
        C: mov.u32 %r3, -1; bra E;
        D: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;
             proto: .callprototype (.param .b32 _) _ (.param .b32 _);
             call (r), %rd4, (a), proto; ld.param.b32 %r3, [r]; }
        E: mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret;""",
        ".param .u64 out",
        """.func (.param .b32 r) one(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a];
             add.u32 %x, %x, 100; st.param.b32 [r], %x; ret; }
           .func (.param .b32 r) two(.param .b32 a) { .reg .b32 %x; .reg .pred %q;
             ld.param.b32 %x, [a]; setp.lt.u32 %q, %x, 10; @%q bra L; add.u32 %x, %x, 1;
             L: shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }""",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(32, np.int32))
    runner.launch("k", 1, 32, out)
    expected = [
        n + 100 if n % 3 == 0 else -1 if n % 3 == 2 else 2 * n if n < 10 else 2 * n + 2
        for n in range(32)
    ]
    assert runner.get(out, 32, np.int32).tolist() == expected


def test_an_endless_divergent_loop_meets_the_limit_too() -> None:
    text = ptx_text(
        """.reg .pred %p; .reg .b32 %r<4>; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 1;
        A: xor.b32 %r1, %r1, 1; setp.eq.u32 %p, %r1, 0; @%p bra B; bra A; B: bra A;"""
    )
    with pytest.raises(Runaway):
        KernelRunner(text).launch("k", 1, 32, limits=Limits(max_steps=10000))


@pytest.mark.slow
def test_loops_that_never_end_meet_the_limit_when_they_take_turns() -> None:
    text = ptx_text(
        """.reg .pred %p<3>; .reg .b32 %r<3>; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
        setp.eq.u32 %p1, %r1, 0; @%p1 bra A; bra B;
        A: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 400000000; @%p2 bra A; ret;
        B: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 400000000; @%p2 bra B; ret;"""
    )
    with pytest.raises(Runaway):
        KernelRunner(text).launch("k", 1, 32, limits=Limits(max_steps=100_000))


def test_threads_may_wait_in_different_loops_for_a_late_one() -> None:
    text = ptx_text(
        """.reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [flag]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
        setp.eq.u32 %p1, %r1, 2; @%p1 bra C; setp.eq.u32 %p1, %r1, 1; @%p1 bra B;
        A: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra A; bra D;
        B: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra B; bra D;
        C: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 40000; @%p2 bra C;
        mov.u32 %r3, 1; st.volatile.global.u32 [%rd1], %r3;
        D: atom.global.add.u32 %r4, [%rd1], 1; ret;""",
        ".param .u64 flag",
    )
    runner = KernelRunner(text)
    flag = runner.put(np.zeros(1, np.int32))
    runner.launch("k", 1, 32, flag)
    assert runner.get(flag, 1, np.int32).tolist() == [33]


def test_threads_may_end_right_after_they_met() -> None:
    text = ptx_text(
        """.reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<5>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
        add.u64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
        shfl.sync.bfly.b32 %r2, %r1, 31, 31, -1; st.global.u32 [%rd1], %r2; ret;
        LOW: shfl.sync.bfly.b32 %r2, %r1, 31, 31, -1; st.global.u32 [%rd1], %r2; ret;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(32, np.int32))
    runner.launch("k", 1, 32, out)
    assert runner.get(out, 32, np.int32).tolist() == [31 - t for t in range(32)]


GRID_BARRIER = """
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b32 s[64];
    ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, 0;
    setp.ne.u32 %p1, %r1, 0; shl.b32 %r9, %r1, 2; mov.u32 %r10, s; add.u32 %r10, %r10, %r9;
    st.shared.u32 [%r10], %r3; mov.u32 %r11, 0;
  ROUND: bar.sync 0; @%p1 bra PASS;
    atom.global.add.u32 %r5, [%rd1], 1; add.u32 %r4, %r4, %r2;
  SPIN: ld.volatile.global.u32 %r6, [%rd1]; setp.lt.u32 %p2, %r6, %r4; @%p2 bra SPIN;
  PASS: bar.sync 0; add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, 5; @%p3 bra ROUND;
    mad.lo.u32 %r7, %r3, 64, %r1; mul.wide.u32 %rd3, %r7, 4; add.u64 %rd2, %rd2, %rd3;
    ld.shared.u32 %r8, [%r10]; st.global.u32 [%rd2], %r8; ret;
"""


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [64, 200, 640])
def test_blocks_that_a_gpu_would_hold_at_once_may_wait_for_each_other(chunk: int) -> None:
    runner = KernelRunner(ptx_text(GRID_BARRIER, ".param .u64 count, .param .u64 out"))
    count, out = runner.put(np.zeros(1, np.int32)), runner.put(np.zeros(640, np.int32))
    runner.launch("k", 10, 64, count, out, limits=Limits(chunk_threads=chunk))
    assert runner.get(count, 1, np.int32).tolist() == [50]
    # Each block's shared memory is still its own.
    assert runner.get(out, 640, np.int32).tolist() == [n // 64 for n in range(640)]


def test_a_block_that_waits_for_one_beyond_what_a_gpu_holds_runs_away() -> None:
    runner = KernelRunner(ptx_text(GRID_BARRIER, ".param .u64 count, .param .u64 out"))
    runner.device.sm_count, runner.device.blocks_per_sm = 3, 3
    count, out = runner.put(np.zeros(1, np.int32)), runner.put(np.zeros(640, np.int32))
    with pytest.raises(Runaway):
        runner.launch("k", 10, 64, count, out, limits=Limits(chunk_threads=200, max_steps=100_000))


def test_chunks_that_spin_for_ever_run_away_too() -> None:
    runner = KernelRunner(ptx_text("L: bra L;"))
    with pytest.raises(Runaway):
        runner.launch("k", 4, 64, limits=Limits(chunk_threads=64, max_steps=50_000))


def test_a_hardware_seed_gives_the_clocks_and_multiprocessors_of_another_gpu() -> None:
    body = """
        .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [out];
        mov.u32 %r1, %smid; mov.u32 %r2, %nsmid; mov.u64 %rd2, %globaltimer;
        st.global.v2.u32 [%rd1], {%r1, %r2}; st.global.u64 [%rd1+8], %rd2; ret;"""
    runner = KernelRunner(ptx_text(body, ".param .u64 out"))
    out = runner.put(np.zeros(2, np.uint64))
    seen = []
    for seed in (*range(1, 38), 65_537, 1_000_003, 2**31 - 1):
        runner.launch("k", 1, 1, out, limits=Limits(hardware_seed=seed))
        place, hour = runner.get(out, 2, np.uint64).tolist()
        seen.append((place & 0xFFFFFFFF, place >> 32, hour // (3600 * 10**9)))
    assert all(number < present for number, present, _ in seen)
    assert {108, 132, 148} <= {present for _, present, _ in seen}
    assert len({hour for _, _, hour in seen}) == len(seen)


@pytest.mark.parametrize("register", ["clock", "clock_hi", "clock64"])
def test_a_hardware_seed_gives_each_block_a_clock_of_its_own(register: str) -> None:
    size = 64 if register == "clock64" else 32
    body = f"""
        .reg .b32 %r<3>; .reg .b64 %rd<5>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x;
        mul.wide.u32 %rd2, %r1, 8; add.u64 %rd1, %rd1, %rd2;
        mov.u{size} {"%rd3" if size == 64 else "%r2"}, %{register};
        st.global.u{size} [%rd1], {"%rd3" if size == 64 else "%r2"}; ret;"""
    runner = KernelRunner(ptx_text(body, ".param .u64 out"))
    out = runner.put(np.zeros(64, np.uint64))
    runner.launch("k", 64, 32, out, limits=Limits(hardware_seed=65_537))
    assert len(set(runner.get(out, 64, np.uint64).tolist())) == (
        1 if register == "clock_hi" else 64
    )


def test_some_threads_of_a_block_see_the_time_go_on() -> None:
    body = """
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 0; @%p1 bra DONE;
        mov.u64 %rd2, %globaltimer;
      WAIT:
        mov.u64 %rd3, %globaltimer; sub.u64 %rd4, %rd3, %rd2;
        setp.lt.u64 %p2, %rd4, 2000; @%p2 bra WAIT;
        st.global.u32 [%rd1], 1;
      DONE: ret;"""
    for order in (None, LaunchOrder("late")):
        runner = KernelRunner(ptx_text(body, ".param .u64 out"))
        out = runner.put(np.zeros(1, np.int32))
        runner.launch("k", 1, 64, out, limits=Limits(max_steps=100_000), order=order)
        assert runner.get(out, 1, np.int32)[0] == 1


GRID_THEN_LOCK = """
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [locks]; ld.param.u32 %r1, [blocks];
    atom.global.add.u32 %r2, [%rd1], 1;
  GRID:
    ld.volatile.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, %r1; @%p1 bra GRID;
    mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd2, %rd3;
  LOCK:
    atom.global.cas.b32 %r5, [%rd4], 0, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra LOCK;
    atom.global.exch.b32 %r6, [%rd4], 0;
    ret;"""


@pytest.mark.slow
def test_a_lock_is_given_up_in_turns_shorter_than_the_patience() -> None:
    blocks = 10
    params = ".param .u64 count, .param .u64 locks, .param .u32 blocks"
    runner = KernelRunner(ptx_text(GRID_THEN_LOCK, params))
    count, locks = runner.put(np.zeros(1, np.int32)), runner.put(np.zeros(blocks, np.int32))
    limits = Limits(max_steps=200_000, chunk_threads=32)
    runner.launch("k", blocks, 32, count, locks, 32 * blocks, limits=limits)
    assert runner.get(count, 1, np.int32)[0] == 32 * blocks
