"""How much memory it takes to know who accessed what."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.check.accessed_bytes import LaunchAccesses
from ptx.emulate.check.findings import Findings
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

WORDS = 1 << 16
BODY = """
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
    mad.lo.s32 %r1, %r1, 256, %r2; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    xor.b32 %r3, %r1, 1; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;
"""


@pytest.mark.parametrize(
    ("accesses", "nbytes"),
    [
        ("st.global.u32 [%rd2], %r1;", 0),  # each thread its own: only listed
        # Two stamps, and four bytes by which it was seen that not one thread alone accesses it.
        ("st.global.u32 [%rd2], %r1; bar.sync 0; ld.global.u32 %r4, [%rd3];", 20),
        ("st.global.u32 [%rd2], %r1; bar.sync 0; atom.global.add.u32 %r4, [%rd3], 1;", 16),
        ("st.global.u32 [%rd2], %r1; bar.sync 0; ld.volatile.global.u32 %r4, [%rd3];", 16),
    ],
    ids=["written", "read by others", "combined by others", "heard by others"],
)
def test_a_word_has_a_stamp_for_each_way_in_which_it_was_accessed(
    accesses: str, nbytes: int
) -> None:
    runner = KernelRunner(ptx_text(f"{BODY} {accesses} ret;", ".param .u64 a"), 1 << 20)
    array = runner.put(np.zeros(WORDS, np.uint32))
    kept: list[int] = []

    def note(found: LaunchAccesses) -> None:
        kept.append(found.committed_nbytes())

    limits = Limits(checks={"race"}, findings=Findings(), accessed=note)
    runner.launch("k", WORDS // 256, 256, array, limits=limits)
    assert kept == [nbytes * WORDS]


def _kept_by(body: str, chunk_threads: int = 65536) -> list[int]:
    """The bytes of stamps after a launch, a thread a word."""
    runner = KernelRunner(ptx_text(f"{BODY} {body} ret;", ".param .u64 a"), 1 << 20)
    array = runner.put(np.zeros(WORDS, np.uint32))
    kept: list[int] = []
    findings = Findings()
    limits = Limits(
        checks={"race"},
        findings=findings,
        accessed=lambda found: kept.append(found.committed_nbytes()),
        chunk_threads=chunk_threads,
    )
    runner.launch("k", WORDS // 256, 256, array, limits=limits)
    assert not findings.found
    return kept


def test_what_the_blocks_of_every_chunk_read_alike_is_only_listed() -> None:
    reads = [
        f"xor.b32 %r3, %r1, {k}; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;"
        " ld.global.u32 %r4, [%rd3];"
        for k in range(1, 33)
    ]
    assert _kept_by(" ".join(reads), chunk_threads=8192) == [0]


def test_threads_that_write_words_of_their_own_in_any_order_are_only_listed() -> None:
    assert _kept_by("st.global.u32 [%rd3], %r1;") == [0]


def test_threads_that_exchange_words_of_their_own_where_it_is_due_are_only_listed() -> None:
    exchange = """
        ld.global.u32 %r4, [%rd2]; ld.global.u32 %r5, [%rd3];
        mul.lo.u32 %r3, %r1, 0x9E3779B1; and.b32 %r3, %r3, 0x10000; setp.ne.u32 %p, %r3, 0;
        @%p bra skip;
        st.global.u32 [%rd2], %r5; st.global.u32 [%rd3], %r4;
        skip:
    """
    half = "and.b32 %r3, %r1, 1; setp.ne.u32 %p, %r3, 0; @%p ret;"
    (kept,) = _kept_by(f"{half} {exchange}")
    assert kept == 4 * WORDS  # who is alone, but no stamps
