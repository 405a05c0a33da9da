"""Loops and recursion without an end: each meets its limit, in as few steps as it has threads."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptx.emulate.model.errors import EndlessLoop, Runaway, StackOverflow
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.short_cases import few

FEW = Limits(max_steps=20_000)
HALVES = """.reg .pred %p; .reg .b32 %r<4>; mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 10;
    @%p bra B; A: {0}; bra A; B: {0}; bra B;"""
MEET = "barrier.sync 0"
SHUFFLE = "shfl.sync.bfly.b32 %r2, %r1, 31, 31, -1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "A: bra A;",
        f"A: {MEET}; bra A;",
        HALVES.format(MEET),
        HALVES.format(SHUFFLE),
        HALVES.format("nanosleep.u32 100"),
        "A: nanosleep.u32 100; bra A;",
        "A: call f; bra A;",
    ],
    ids=["empty", "barrier", "two barriers", "two shuffles", "two sleeps", "sleep", "call"],
)
def test_an_endless_loop_of_any_kind_meets_the_limit(body: str) -> None:
    runner = KernelRunner(ptx_text(body, before=".func f() { ret; }"))
    with pytest.raises(Runaway, match="max_steps"):
        runner.launch("k", 1, 32, limits=FEW)


@pytest.mark.parametrize(
    "functions",
    [
        ".func f() { call f; ret; }",
        ".func g(); .func f() { call g; ret; } .func g() { call f; ret; }",
        ".func f() { .reg .b64 %a; mov.u64 %a, f; p: .callprototype _ (); call %a, (), p; ret; }",
    ],
)
def test_recursion_without_an_end_fills_the_stack_whatever_a_frame_holds(functions: str) -> None:
    with pytest.raises(StackOverflow, match=r"Limits\.stack_bytes"):
        KernelRunner(ptx_text("call f;", before=functions)).launch("k", 1, 32)


@pytest.mark.slow
def test_a_loop_of_many_threads_may_turn_less_often_than_one_of_few() -> None:
    text = ptx_text(
        """.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];
        mov.u32 %r1, 0; A: add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; bra A;""",
        ".param .u64 out",
    )
    turns = {}
    for blocks in (1, 64):
        runner = KernelRunner(text)
        out = runner.put(np.zeros(1, np.uint32))
        with pytest.raises(Runaway):
            runner.launch("k", blocks, 1024, out, limits=Limits(max_steps=200_000))
        turns[blocks] = int(runner.get(out, 1, np.uint32)[0])
    assert 0 < turns[64] < turns[1] / 4


READS = """.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x; mov.u32 %r3, 0;
    A: cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %rd1, %rd2; ld.global.u8 %r2, [%rd2];
    add.u32 %r3, %r3, %r2; add.u32 %r1, %r1, 1024; setp.lt.u32 %p, %r1, 4194304; @%p bra A;
    st.global.u32 [%rd1], %r3;"""


@pytest.mark.slow
def test_a_kernel_may_read_each_byte_of_the_memory_whatever_the_limit() -> None:
    runner = KernelRunner(ptx_text(READS, ".param .u64 data"))
    data = runner.put(np.ones(1 << 22, np.uint8))
    runner.launch("k", 1, 1024, data, limits=Limits(max_steps=500))
    assert runner.get(data, 1, np.uint32)[0] == 4096


def test_an_endless_loop_beside_much_memory_meets_the_limit() -> None:
    runner = KernelRunner(ptx_text("A: bar.warp.sync -1; nanosleep.u32 1; bra A;"))
    runner.put(np.ones(1 << 21, np.uint8))
    with pytest.raises(Runaway, match="the last 8192 without"):
        runner.launch("k", 1, 32, limits=Limits(max_steps=500))


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    few(
        [
            # Long, but each turn changes memory alone, or a clock.
            "A: atom.global.add.u32 %r1, [%rd1], 1; setp.lt.u32 %p, %r1, 100000; @%p bra A; ret;",
            """mov.u64 %rd2, %globaltimer; A: mov.u64 %rd3, %globaltimer; sub.u64 %rd3, %rd3, %rd2;
        setp.lt.u64 %p, %rd3, 900000000; @%p bra A; ret;""",
            """A: ld.shared.u32 %r1, [raw]; add.u32 %r1, %r1, 1; st.shared.u32 [raw], %r1;
        setp.lt.u32 %p, %r1, 100000; @%p bra A; ret;""",
        ],
        1,
    ),
    ids=["memory", "clock", "shared memory"],
)
def test_a_long_wait_that_ends_is_not_mistaken_for_an_endless_one(body: str) -> None:
    text = ptx_text(
        f".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; {body}",
        ".param .u64 out",
        ".shared .align 4 .b8 raw[4];",
    )
    runner = KernelRunner(text)
    runner.launch("k", 1, 1, runner.put(np.zeros(1, np.uint32)))


LOOP = """.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out];
    mov.u32 %r1, 0; mov.u32 %r3, %tid.x; A: add.u32 %r1, %r1, 1; {0}
    setp.lt.u32 %p, %r1, 400000; @%p bra A; B: st.global.u32 [%rd1], %r1; ret;"""
WRITES_ON = """and.b32 %r2, %r1, 1023; setp.ne.u32 %p, %r2, 0; @%p bra C; shr.u32 %r2, %r1, 10;
    mad.wide.u32 %rd2, %r2, 4, %rd1; st.global.u32 [%rd2], %r1; C:"""
EXITS = """shr.u32 %r2, %r1, 12; setp.gt.u32 %p, %r2, %r3; @%p bra B;"""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "threads"), [(WRITES_ON, 1), (EXITS, 100)], ids=["new", "exits"])
def test_the_limit_grows_while_words_change_for_the_first_time_or_threads_exit(
    work: str, threads: int
) -> None:
    runner = KernelRunner(ptx_text(LOOP.format(work), ".param .u64 out"))
    out = runner.put(np.zeros(512, np.uint32))
    runner.launch("k", 1, threads, out, limits=FEW)
    assert runner.get(out, 1, np.uint32)[0]


@pytest.mark.slow
@pytest.mark.parametrize("blocks", range(1, 6))
def test_a_wait_whose_turns_are_of_several_blocks_is_endless_too(blocks: int) -> None:
    steps = "".join(
        f"L{at}: ld.volatile.global.u32 %r1, [%rd1+{4 * at}]; setp.ne.u32 %p, %r1, 0; @%p bra OUT;"
        for at in range(blocks)
    )
    text = ptx_text(
        ".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out];"
        f" {steps} bra L0; OUT: ret;",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    with pytest.raises(EndlessLoop, match="32 threads go round for ever"):
        runner.launch("k", 1, 32, runner.put(np.zeros(8, np.uint32)))


@pytest.mark.slow
def test_the_look_for_an_endless_loop_costs_little_for_threads_with_many_registers() -> None:
    few_registers, many_registers = (
        min(_seconds_of_loops(count) for _ in range(3)) for count in (2, 40)
    )
    assert many_registers < 3 * few_registers  # 5 times, if all were read at each look


def _seconds_of_loops(registers: int, threads: int = 24) -> float:
    """CPU time of threads of which each goes round in a loop of its own."""
    begin = "".join(f"cvt.rn.f64.u32 %f{at}, %r1;" for at in range(registers))
    choice = "".join(f"setp.eq.u32 %p, %r1, {each}; @%p bra L{each};" for each in range(threads))
    loops = "".join(
        f"L{each}: add.u32 %r2, %r2, 1; add.f64 %f{each % registers}, %f{each % registers}, %f0;"
        f" setp.lt.u32 %p, %r2, {4000 + each}; @%p bra L{each}; bra E;"
        for each in range(threads)
    )
    end = "E: " + "".join(f"add.f64 %f0, %f0, %f{at};" for at in range(1, registers))
    text = ptx_text(
        ".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .f64 %f<40>;"
        f" ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; {begin} {choice} ret;"
        f" {loops} {end} st.global.f64 [%rd1], %f0; ret;",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(1))
    runner.launch("k", 1, 1, out)  # generates code
    start = time.process_time()
    runner.launch("k", 1, threads, out)
    return time.process_time() - start
