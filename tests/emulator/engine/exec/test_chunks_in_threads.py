"""Chunks of a launch in several threads: the bytes, faults and text of one thread."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

from ptx.emulate.check.findings import Findings
from ptx.emulate.exec import launch as launch_module
from ptx.emulate.exec.launch import Launch
from ptx.emulate.memory.chunk_accesses import AccessesOfChunks, ByteRanges
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.threads.limits import Limits
from ptx.emulate.watchers import LAUNCH_CHECKS
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.short_cases import few

BLOCKS, THREADS, CHUNK = 24, 32, 64  # 12 chunks of two blocks
COUNT = BLOCKS * THREADS
BEGIN = """.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2;
"""
OUT = ".param .u64 out"
SQUARES = "ld.global.u32 %r5, [%rd3]; mad.lo.u32 %r5, %r5, %r5, %r4; st.global.u32 [%rd3], %r5;"
# Each thread adds what stands before its element, which another chunk may have written.
CHAIN = """ld.global.u32 %r5, [%rd3]; ld.global.u32 %r6, [%rd3+-4]; add.u32 %r5, %r5, %r6;
    st.global.u32 [%rd3], %r5;"""
SAME = "st.global.u32 [%rd1], %r4;"
LONG = "mov.u32 %r6, 0; A: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 20000; @%p1 bra A;" + SQUARES
STRIDE = """mov.u32 %r6, 0;
    A: ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, %r6; st.global.u32 [%rd3], %r5;
    add.u64 %rd3, %rd3, 3072; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 5; @%p1 bra A;"""
SHARED_COUNT = """mov.u32 %r6, 0; st.shared.u32 [s], %r6; bar.sync 0;
    atom.shared.add.u32 %r7, [s], 1; bar.sync 0; ld.shared.u32 %r7, [s];
    st.global.u32 [%rd3], %r7;"""
SEPARATE = {"squares": SQUARES, "long": LONG, "stride": STRIDE, "shared count": SHARED_COUNT}
DEPENDENT = {"chain": CHAIN, "same": SAME}
ORDERED = {
    "atomic": "red.global.add.u32 [%rd1], 1;",
    "generic atomic": "red.add.u32 [%rd1], 1;",
    "volatile": "ld.volatile.global.u32 %r5, [%rd1];",
    "acquire": "ld.acquire.gpu.global.u32 %r5, [%rd1];",
    "release": "st.release.gpu.global.u32 [%rd3], %r4;",
    "past L1": "ld.global.cg.u32 %r5, [%rd1];",
    "fence": "membar.gl;",
    "sleep": "nanosleep.u32 10;",
}


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[AccessesOfChunks]:
    """What `Launch` makes when it uses several threads."""
    made: list[AccessesOfChunks] = []

    def make(*arguments: Any) -> AccessesOfChunks:  # as the class takes them
        made.append(AccessesOfChunks(*arguments))
        return made[-1]

    monkeypatch.setattr(launch_module, "AccessesOfChunks", make)
    return made


def run(body: str, threads: int, **limits: Any) -> tuple[bytes, str, KernelRunner]:  # any limit
    """The bytes that a kernel leaves, and its fault."""
    text = ptx_text(BEGIN + body, OUT, before=".shared .align 4 .u32 s;")
    runner = KernelRunner(text, 1 << 20)
    out = runner.put(np.arange(COUNT * 5 + 1, dtype=np.uint32))
    fault = ""
    try:
        runner.launch(
            "k",
            BLOCKS,
            THREADS,
            out + 4,
            limits=Limits(chunk_threads=CHUNK, threads=threads, **limits),
        )
    except EmulationFault as error:
        fault = f"{type(error).__name__} {error.where}"
    return runner.get(out, COUNT * 5 + 1, np.uint32).tobytes(), fault, runner


@pytest.mark.parametrize("name", SEPARATE)
@pytest.mark.parametrize("threads", few([4, 2], 1))
def test_separate_chunks_run_in_threads_with_the_bytes_of_one(
    name: str, threads: int, began: list[AccessesOfChunks]
) -> None:
    expected, _, _ = run(SEPARATE[name], 1)
    assert not began
    found, fault, _ = run(SEPARATE[name], threads)
    assert (found, fault) == (expected, "")
    assert [each.stopped_by for each in began] == [None]


@pytest.mark.parametrize("name", DEPENDENT)
@pytest.mark.parametrize("threads", [2, 4])
def test_chunks_that_depend_on_each_other_have_the_bytes_of_one_thread(
    name: str, threads: int, began: list[AccessesOfChunks]
) -> None:
    expected, _, _ = run(DEPENDENT[name], 1)
    found, _, runner = run(DEPENDENT[name], threads)
    assert found == expected
    assert [each.stopped_by is None for each in began] == [False]
    out = runner.put(np.zeros(COUNT + 1, np.uint32))
    limits = Limits(chunk_threads=CHUNK, threads=threads)
    runner.launch("k", BLOCKS, THREADS, out + 4, limits=limits)
    assert len(began) == 1  # the kernel runs in one thread from then on


@pytest.mark.parametrize("name", ORDERED)
def test_a_kernel_whose_blocks_may_meet_runs_in_one_thread(
    name: str, began: list[AccessesOfChunks]
) -> None:
    expected, _, _ = run(ORDERED[name], 1)
    found, _, _ = run(ORDERED[name], 4)
    assert found == expected
    assert not began


def test_checks_and_counters_run_in_one_thread(began: list[AccessesOfChunks]) -> None:
    # These two observe kernels with divisions and with floats.
    for name in LAUNCH_CHECKS.keys() - {"divide", "nan"}:
        run(SQUARES, 4, checks={name}, findings=Findings())
    run(SQUARES, 4, check_synchronisation=True)
    assert not began


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("block", [0, 9, 23])
def test_the_first_fault_is_that_of_one_thread_and_later_chunks_leave_no_bytes(
    threads: int, block: int, began: list[AccessesOfChunks]
) -> None:
    wrong = f"""setp.lt.u32 %p1, %r2, {block}; @%p1 bra GOOD;
        add.u64 %rd3, %rd3, 500000; GOOD: {SQUARES}"""
    expected, fault, _ = run(wrong, 1)
    found, again, _ = run(wrong, threads)
    assert f"block ({block}, 0, 0)" in fault
    assert (found, again) == (expected, fault)
    assert [each.stopped_by is None for each in began] == [False]


def test_an_endless_loop_is_reported_as_in_one_thread() -> None:
    endless = "setp.ne.u32 %p1, %r2, 7; @%p1 bra B; A: bra A; B: " + SQUARES
    assert run(endless, 3, max_steps=2000)[:2] == run(endless, 1, max_steps=2000)[:2]


def test_an_interrupt_ends_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    former, caller = Launch.run_some, threading.current_thread()

    def run_some(self: Launch, size: int, turn: int, accesses: AccessesOfChunks) -> None:
        if threading.current_thread() is caller:
            raise KeyboardInterrupt
        former(self, size, turn, accesses)

    monkeypatch.setattr(Launch, "run_some", run_some)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(LONG, 2)
    assert threading.active_count() == before


def test_code_of_few_threads_records_its_accesses(began: list[AccessesOfChunks]) -> None:
    # One thread of each block adds up its block's elements, often enough to get code of its own.
    loop = """setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, 0; mov.u32 %r7, 0;
        A: ld.global.u32 %r5, [%rd3]; add.u32 %r7, %r7, %r5; st.global.u32 [%rd3+{0}], %r7;
        add.u64 %rd3, %rd3, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 32; @%p2 bra A;
        END: ret;"""
    for offset, depends in ((0, False), (256, True)):
        began.clear()
        body = loop.format(offset)
        expected, _, _ = run(body, 1)
        found, _, _ = run(body, 4)
        assert found == expected
        assert (began[0].stopped_by is not None) == depends


def test_chunks_of_a_matrix_are_whole_rows_of_tiles(began: list[AccessesOfChunks]) -> None:
    width, tiles = 40, 5  # a chunk has room for 7 tiles of 8 x 8
    tile = """.reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 8, %r1;
        mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r3, %r4, 8, %r3;
        mad.lo.u32 %r5, %r3, 40, %r1; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd1, %rd1, %rd2;
        st.global.u32 [%rd1], %r5;"""
    runner = KernelRunner(ptx_text(tile, OUT), 1 << 20)
    out = runner.put(np.zeros(width * width, np.uint32))
    limits = Limits(chunk_threads=7 * 64, threads=2)
    runner.launch("k", (tiles, tiles, 1), (8, 8, 1), out, limits=limits)
    assert runner.get(out, width * width, np.uint32).tolist() == list(range(width * width))
    assert [each.stopped_by for each in began] == [None]


def test_ranges_are_those_of_a_set_of_bytes() -> None:
    rng = random.Random(0)
    for _ in range(200):
        ranges, known = ByteRanges(), set[int]()
        for _ in range(20):
            start = rng.randrange(60)
            new = set(range(start, start + rng.randrange(1, 12)))
            assert ranges.overlaps(start, max(new) + 1) == bool(known & new)
            parts = ranges.add(start, max(new) + 1)
            assert {byte for part in parts for byte in range(*part)} == new - known
            known |= new
