"""mbarrier objects: their phases against a scalar reference, waits, and what the checker finds."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from ptx.emulate.model.errors import (
    Deadlock,
    EmulationFault,
    Misaligned,
    OutOfBounds,
    SynchronisationFault,
    UnsupportedInstruction,
)
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows
from tests.short_cases import few

HEAD = """.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .shared .align 8 .b64 m[4];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, {row}; add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r5, m; mov.u32 %r7, 0; setp.eq.u32 %p1, %r1, 0;
"""


def results(
    body: str,
    block: int = 1,
    grid: int = 1,
    words: int = 1,
    *,
    limits: Limits | None = None,
    order: LaunchOrder | None = None,
) -> list[list[int]]:
    """What each thread stores in its row of `words`; the default row is %r7 at the end."""
    tail = "st.global.u32 [%rd1], %r7; ret;" if words == 1 else "ret;"
    text = ptx_text(HEAD.format(row=4 * words) + body + tail, ".param .u64 out")
    runner = KernelRunner(text, 1 << 20)
    out = runner.put(np.zeros(grid * block * words, np.uint32))
    runner.launch("k", grid, block, out, limits=limits or Limits(), order=order)
    flat = runner.get(out, grid * block * words, np.uint32)
    found: list[list[int]] = flat.reshape(grid * block, words).tolist()
    return found


def column(body: str, block: int = 1, grid: int = 1) -> list[int]:
    return [row[0] for row in results(body, block, grid)]


@dataclass
class Reference:
    """One object, as the PTX ISA describes it."""

    expected: int
    pending: int
    phase: int = 0
    tx: int = 0

    def settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected


def _step(rng: random.Random, m: Reference) -> tuple[str, list[int]]:
    """A random operation that is allowed now: its PTX, and what it gives besides the parities."""
    name = rng.choice(["arrive", "arrive", "drop", "expect", "complete", "arrive_tx", "quiet"])
    before = m.pending
    count = rng.randint(1, max(1, m.pending))
    space = rng.choice([".shared", ".shared::cta", ".release.cta.shared::cta"])
    note = "mbarrier.pending_count.b64 %r8, %rd3;"
    if m.pending == 0:
        name = "complete" if m.tx > 0 else "expect"
    if name == "drop" and m.expected > count:
        m.expected -= count
        m.pending -= count
        m.settle()
        return f"mbarrier.arrive_drop{space}.b64 %rd3, [m], {count}; {note}", [before]
    if name == "expect":
        more = -m.tx if m.tx < 0 else rng.randint(0, 5000)
        m.tx += more
        m.settle()
        return f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], {more}; mov.u32 %r8, 0;", [0]
    if name == "complete":
        less = m.tx if m.tx > 0 else rng.randint(0, 300)
        m.tx -= less
        m.settle()
        text = f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [m], {less}; mov.u32 %r8, 0;"
        return text, [0]
    if name == "arrive_tx":
        more = rng.randint(0, 100)
        m.tx += more
        m.pending -= 1
        m.settle()
        return f"mbarrier.arrive.expect_tx{space}.b64 %rd3, [m], {more}; {note}", [before]
    if name == "quiet" and (m.pending > 1 or m.tx):
        count = rng.randint(1, m.pending - 1 if not m.tx else m.pending)
        m.pending -= count
        text = f"mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd3, [m], {count}; {note}"
        return text, [before]
    m.pending -= count
    m.settle()
    one = "" if count == 1 and rng.random() < 0.5 else f", {count}"
    return f"mbarrier.arrive{space}.b64 %rd3, [m]{one}; {note}", [before]


@pytest.mark.parametrize("seed", range(8))
def test_random_operations_lead_to_the_phases_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.choice([1, 2, 5, 40, 1000])
    m = Reference(count, count)
    lines = [f"mbarrier.init.shared::cta.b64 [m], {count};"]
    expected: list[int] = []
    for n in range(60):
        text, values = _step(rng, m)
        wait = rng.choice(["test_wait", "try_wait"])
        lines.append(f"""{text}
            mbarrier.{wait}.parity.shared::cta.b64 %p2, [m], 0; selp.u32 %r9, 1, 0, %p2;
            mbarrier.{wait}.parity.acquire.cta.shared::cta.b64 %p3, [m], 1;
            selp.u32 %r10, 1, 0, %p3;
            st.global.u32 [%rd1+{12 * n}], %r8; st.global.u32 [%rd1+{12 * n + 4}], %r9;
            st.global.u32 [%rd1+{12 * n + 8}], %r10;""")
        # A parity's phase is over when the object is in a phase of the other parity.
        expected += [*values, m.phase % 2, 1 - m.phase % 2]
    assert results("\n".join(lines), words=180) == [expected]


@pytest.mark.parametrize("block", [32, 64, 100])
def test_arrivals_of_one_instruction_are_counted_in_the_order_of_threads(block: int) -> None:
    # Two objects; each thread arrives at that of its number's last bit, with a count of its own.
    totals = [sum(t % 5 + 1 for t in range(block) if t % 2 == half) for half in (0, 1)]
    body = f"""@!%p1 bra GO; mbarrier.init.shared.b64 [m], {totals[0]};
        mbarrier.init.shared.b64 [m+8], {totals[1]}; GO: bar.sync 0;
        and.b32 %r8, %r1, 1; shl.b32 %r8, %r8, 3; add.u32 %r5, %r5, %r8;
        rem.u32 %r9, %r1, 5; add.u32 %r9, %r9, 1;
        mbarrier.arrive.shared::cta.b64 %rd3, [%r5], %r9; mbarrier.pending_count.b64 %r7, %rd3;
        mbarrier.test_wait.shared.b64 %p2, [%r5], %rd3; @%p2 add.u32 %r7, %r7, 100000;"""
    expected = []
    for t in range(block):
        before = sum(u % 5 + 1 for u in range(t) if u % 2 == t % 2)
        expected.append(100000 + totals[t % 2] - before)
    assert column(body, block, 3) == expected * 3


def test_one_instruction_may_complete_many_phases() -> None:
    body = """@!%p1 bra GO; mbarrier.init.shared.b64 [m], 3; GO: bar.sync 0;
        mbarrier.arrive.shared.b64 %rd3, [m]; mbarrier.pending_count.b64 %r7, %rd3; bar.sync 0;
        mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; @%p2 add.u32 %r7, %r7, 100;"""
    # 20 arrivals: six phases are over, two of the seventh's three have come.
    assert column(body, 20, 2) == [3 - t % 3 for t in range(20)] * 2
    assert column(body, 22, 1) == [103 - t % 3 for t in range(22)]


@pytest.mark.parametrize("wait", ["test_wait", "try_wait"])
@pytest.mark.parametrize("threads", [1, 64, 4096])
def test_a_ring_of_two_objects_hands_values_over(wait: str, threads: int) -> None:
    # Warp 0 fills, warp 1 empties: m says "full", m+8 "empty"; the parity changes every round.
    limit = "" if wait == "test_wait" else ", 1000"
    body = f""".shared .align 4 .b32 box[32];
        @!%p1 bra GO; mbarrier.init.shared.b64 [m], 32; mbarrier.init.shared.b64 [m+8], 32;
        GO: bar.sync 0; and.b32 %r8, %r1, 31; shl.b32 %r8, %r8, 2; mov.u32 %r9, box;
        add.u32 %r9, %r9, %r8; mov.u32 %r10, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra TAKE;
        FILL: and.b32 %r11, %r10, 1; xor.b32 %r12, %r11, 1;
        W1: mbarrier.{wait}.parity.shared.b64 %p3, [m+8], %r12{limit}; @!%p3 bra W1;
        mad.lo.u32 %r13, %r10, 1000, %r1; st.shared.u32 [%r9], %r13;
        mbarrier.arrive.shared.b64 _, [m];
        add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 7; @%p4 bra FILL; bra END;
        TAKE: and.b32 %r11, %r10, 1;
        W2: mbarrier.{wait}.parity.shared.b64 %p3, [m], %r11{limit}; @!%p3 bra W2;
        xor.b32 %r14, %r9, 4; ld.shared.u32 %r13, [%r14]; mad.lo.u32 %r7, %r7, 3, %r13;
        mbarrier.arrive.shared.b64 _, [m+8];
        add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 7; @%p4 bra TAKE; END:"""
    expected = []
    for lane in range(32):
        total = 0
        for step in range(7):
            total = total * 3 + 1000 * step + (lane ^ 1)
        expected.append(total)
    found = results(body, 64, 5, limits=Limits(chunk_threads=threads))
    assert [row[0] for row in found] == ([0] * 32 + expected) * 5


def test_waiting_in_a_spin_with_sleep_lets_the_arriving_thread_go_on() -> None:
    body = """@!%p1 bra GO; mbarrier.init.shared.b64 [m], 1; GO: bar.sync 0;
        setp.eq.u32 %p2, %r1, 63; @%p2 bra LAST;
        SPIN: mbarrier.test_wait.parity.shared.b64 %p3, [m], 0; @%p3 bra END;
        nanosleep.u32 100; add.u32 %r7, %r7, 0; bra SPIN;
        LAST: nanosleep.u32 50000; mbarrier.arrive.shared.b64 _, [m]; END: mov.u32 %r7, 5;"""
    assert column(body, 64, 2) == [5] * 128


def test_drops_shrink_the_next_phase() -> None:
    # In round k, thread k drops out; the rest go on without it.
    body = """@!%p1 bra GO; mbarrier.init.shared.b64 [m], 8; GO: bar.sync 0; mov.u32 %r10, 0;
        LOOP: setp.eq.u32 %p2, %r10, %r1; @%p2 bra DROP;
        mbarrier.arrive.shared.b64 %rd3, [m]; mbarrier.pending_count.b64 %r8, %rd3;
        add.u32 %r7, %r7, %r8;
        W: mbarrier.try_wait.shared.b64 %p3, [m], %rd3; @!%p3 bra W;
        add.u32 %r10, %r10, 1; bra LOOP;
        DROP: mbarrier.arrive_drop.shared.b64 %rd3, [m]; mbarrier.pending_count.b64 %r8, %rd3;
        add.u32 %r7, %r7, %r8;"""
    # With n threads left, they see n, n - 1, ... 1 pending arrivals, in whatever order.
    assert sum(column(body, 8)) == sum(sum(range(1, n + 1)) for n in range(1, 9))


def test_copies_without_noinc_leave_the_count_alone_and_with_it_arrive() -> None:
    body = """mbarrier.init.shared.b64 [m], 2; cp.async.mbarrier.arrive.shared.b64 [m];
        cp.async.mbarrier.arrive.noinc.shared.b64 [m]; mbarrier.arrive.shared.b64 %rd3, [m];
        mbarrier.pending_count.b64 %r7, %rd3;
        mbarrier.test_wait.shared.b64 %p2, [m], %rd3; @%p2 add.u32 %r7, %r7, 10;"""
    assert column(body) == [11]


@pytest.mark.parametrize("order", [None, LaunchOrder("late")], ids=str)
@pytest.mark.parametrize(("noinc", "count"), [("", 2), (".noinc", 4)])
def test_a_phase_counts_the_copies_of_each_thread(
    noinc: str, count: int, order: LaunchOrder | None
) -> None:
    body = f"""@%p1 mbarrier.init.shared.b64 [m], {count}; bar.sync 0; shl.b32 %r8, %r1, 2;
        add.u32 %r8, %r8, %r5; add.u32 %r9, %r1, 40; st.global.u32 [%rd1], %r9;
        cp.async.ca.shared.global [%r8 + 16], [%rd1], 4; xor.b32 %r8, %r8, 4;
        cp.async.mbarrier.arrive{noinc}.shared.b64 [m]; mbarrier.arrive.shared.b64 _, [m];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT;
        ld.shared.u32 %r7, [%r8 + 16];"""
    assert results(body, 2, order=order) == [[41], [40]]


CLUSTER = """.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .shared .align 8 .b64 m;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, m;
    setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [m], 64;
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
    mapa.shared::cluster.u32 %r4, %r3, 0; mapa.shared::cluster.u32 %r5, %r3, 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
    mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r5], 8;
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r5], 8;"""


def test_blocks_of_a_cluster_arrive_in_each_other() -> None:
    body = (
        CLUSTER
        + """
        W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [m], 0; @!%p2 bra W;
        mad.lo.u32 %r6, %r2, 32, %r1; mul.wide.u32 %rd2, %r6, 4; add.u64 %rd1, %rd1, %rd2;
        st.global.u32 [%rd1], 1; barrier.cluster.arrive; barrier.cluster.wait; ret;"""
    )
    text = ptx_text(body, ".param .u64 out").replace(")\n{", ")\n.reqnctapercluster 2\n{")
    runner = KernelRunner(text, 1 << 20)
    out = runner.put(np.zeros(128, np.uint32))
    runner.launch("k", 4, 32, out)
    assert runner.get(out, 128, np.uint32).tolist() == [1] * 128


def test_only_the_block_itself_waits_for_its_object() -> None:
    body = CLUSTER + "mbarrier.test_wait.parity.shared.b64 %p2, [%r5], 0; ret;"
    text = ptx_text(body, ".param .u64 out").replace(")\n{", ")\n.reqnctapercluster 2\n{")
    runner = KernelRunner(text, 1 << 20)
    with pytest.raises(SynchronisationFault, match="in another block"):
        runner.launch("k", 2, 32, runner.put(np.zeros(8, np.uint32)))


def test_a_wait_ends_in_vain_when_its_time_is_over() -> None:
    body = """mbarrier.init.shared.b64 [m], 2; mbarrier.arrive.shared.b64 %rd3, [m];
        mov.u64 %rd4, %globaltimer;
        mbarrier.try_wait.shared.b64 %p2, [m], %rd3, 3000000; selp.u32 %r7, 1, 0, %p2;
        mov.u64 %rd5, %globaltimer; sub.u64 %rd6, %rd5, %rd4;
        setp.ge.u64 %p3, %rd6, 3000000; @%p3 add.u32 %r7, %r7, 10;"""
    assert column(body) == [10]


def test_sleep_lets_the_clocks_go_on() -> None:
    body = """mov.u64 %rd4, %globaltimer; mov.u64 %rd7, %clock64; nanosleep.u32 900000000;
        mov.u64 %rd5, %globaltimer; mov.u64 %rd8, %clock64; sub.u64 %rd6, %rd5, %rd4;
        setp.ge.u64 %p3, %rd6, 900000000; selp.u32 %r7, 1, 0, %p3; sub.u64 %rd9, %rd8, %rd7;
        setp.ge.u64 %p3, %rd9, 900000000; @%p3 add.u32 %r7, %r7, 10;"""
    assert column(body) == [11]


@pytest.mark.slow
@pytest.mark.parametrize(
    "wait",
    few(
        [
            "mbarrier.test_wait.shared.b64 %p2, [m], %rd3",
            "mbarrier.try_wait.shared.b64 %p2, [m], %rd3",
            "mbarrier.try_wait.parity.shared.b64 %p2, [m], 0, 500",
        ],
        1,
    ),
)
@pytest.mark.parametrize("sleep", ["", "nanosleep.u32 20;"])
def test_a_phase_that_never_ends_is_a_deadlock(wait: str, sleep: str) -> None:
    body = f"""@!%p1 bra GO; mbarrier.init.shared.b64 [m], 33; GO: bar.sync 0;
        mbarrier.arrive.shared.b64 %rd3, [m]; W: {wait}; @%p2 bra END; {sleep} bra W; END:"""
    with pytest.raises(Deadlock, match=r"pending arrivals 1 of 33, tx-count 0"):
        results(body, 32)


@pytest.mark.slow
def test_a_deadlock_names_the_threads_that_wait_elsewhere() -> None:
    body = """@!%p1 bra GO; mbarrier.init.shared.b64 [m], 64; GO: bar.sync 0;
        setp.lt.u32 %p2, %r1, 32; @%p2 bra END; mbarrier.arrive.shared.b64 %rd3, [m];
        W: mbarrier.try_wait.shared.b64 %p3, [m], %rd3; @!%p3 bra W; END:"""
    with pytest.raises(Deadlock, match=r"32 at mbarrier objects \(PTX line \d+\), 32 exited"):
        results(body, 64)


INIT = "mbarrier.init.shared.b64 [m], 2;"
ARRIVE = "mbarrier.arrive.shared.b64 %rd3, [m];"


@all_rows
@pytest.mark.parametrize(("body", "error", "words"), [
    (ARRIVE, SynchronisationFault, "never initialised"),
    ("mbarrier.test_wait.parity.shared.b64 %p2, [m], 0;", SynchronisationFault, "never init"),
    ("mbarrier.expect_tx.relaxed.cta.shared.b64 [m], 8;", SynchronisationFault, "never init"),
    ("cp.async.mbarrier.arrive.shared.b64 [m];", SynchronisationFault, "never initialised"),
    ("mbarrier.inval.shared.b64 [m];", SynchronisationFault, "never initialised"),
    (INIT + "mbarrier.inval.shared.b64 [m];" + ARRIVE, SynchronisationFault, "invalidated"),
    (INIT + "st.shared.u32 [m], 7;" + ARRIVE, SynchronisationFault, "overwritten"),
    (INIT + "mbarrier.arrive.shared.b64 %rd3, [m], 3;", SynchronisationFault, "for only 2 more"),
    (INIT + "mbarrier.arrive.noComplete.shared.b64 %rd3, [m], 2;", SynchronisationFault,
     "noComplete"),
    (INIT + "mbarrier.expect_tx.relaxed.cta.shared.b64 [m], 1048576;", SynchronisationFault,
     "tx-count 1048576"),
    ("mbarrier.init.shared.b64 [m], 0;", SynchronisationFault, "expect 0 arrivals"),
    ("mbarrier.init.shared.b64 [m], 1048576;", SynchronisationFault, "not 1 to 1048575"),
    ("mbarrier.init.shared.b64 [m+4], 1;", Misaligned, "misaligned"),
    ("mbarrier.init.shared.b64 [m+4096], 1;", OutOfBounds, "out-of-bounds"),
    ("mbarrier.init.b64 [%rd1], 1;", SynchronisationFault, "not in shared memory"),
    ("mbarrier.init.shared.b64 [m], 1;" + 3 * ARRIVE
     + "mov.u64 %rd4, %rd3;" + 2 * ARRIVE + "mbarrier.test_wait.shared.b64 %p2, [m], %rd4;",
     SynchronisationFault, "neither its current nor its last"),
    (INIT + "mbarrier.test_wait.shared.b64 %p2, [m], %rd3;", SynchronisationFault, "neither"),
])  # fmt: skip
def test_misuse_is_found(body: str, error: type[EmulationFault], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        results(body)
    assert raised.value.where.thread == (0, 0, 0)
    assert raised.value.where.ptx_line > 0


def test_a_wait_for_an_object_that_is_invalidated_meanwhile_is_found() -> None:
    body = """@!%p1 bra GO; mbarrier.init.shared.b64 [m], 2; GO: bar.sync 0; @%p1 bra END;
        mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; bra OUT;
        END: nanosleep.u32 10; mbarrier.inval.shared.b64 [m]; OUT:"""
    with pytest.raises(SynchronisationFault, match="invalidated"):
        results(body, 2)


def test_memory_may_be_used_again_after_an_object() -> None:
    body = (
        INIT
        + """mbarrier.inval.shared.b64 [m]; st.shared.u32 [m], 9; ld.shared.u32 %r7, [m];
        mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.shared.b64 %rd3, [m];
        mbarrier.test_wait.shared.b64 %p2, [m], %rd3; @%p2 add.u32 %r7, %r7, 1;"""
    )
    assert column(body) == [10]


@pytest.mark.parametrize("line", [
    "mbarrier.arrive.release.cluster.shared::cluster.b64 %rd3, [m];",
    "mbarrier.arrive.release.gpu.shared.b64 %rd3, [m];",
    "mbarrier.try_wait.parity.shared::cluster.b64 %p2, [m], 0;",
    "mbarrier.init.global.b64 [m], 2;",
    "mbarrier.test_wait.shared.b64 %p2, [m], %rd3, 5;",
    "mbarrier.check_layout.shared::cta.b64 %p2, [m];",
])  # fmt: skip
def test_other_forms_are_rejected_when_the_kernel_is_loaded(line: str) -> None:
    text = ptx_text(HEAD.format(row=4) + "\n" + line + "\nret;", ".param .u64 out")
    with pytest.raises(UnsupportedInstruction) as raised:
        KernelRunner(text, 1 << 20).program.kernel("k")
    assert raised.value.opcode == line.split()[0]
    assert text.splitlines()[raised.value.line - 1] == line
