"""What orders two accesses: short programs of a few threads, each right or with one race."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.threads.limits import Limits

from ..kernel_runner import KernelRunner, ptx_text

REGISTERS = """
    .reg .pred %p, %q; .reg .u32 %number, %thread, %size, %turn, %mask, %value;
    .reg .u64 %data, %own;
    ld.param.u64 %data, [data]; mov.u32 %thread, %tid.x;
    mov.u32 %number, %ctaid.x; mov.u32 %size, %ntid.x; mad.lo.u32 %number, %number, %size, %thread;
    mad.wide.u32 %own, %number, 4, %data;
"""
WRITE, READ = "st.global.u32 [%data], 1;", "ld.global.u32 %value, [%data];"


def by(threads: int | range, instruction: str) -> str:
    """An instruction of one thread, or some, by their numbers in the grid."""
    some = range(threads, threads + 1) if isinstance(threads, int) else threads
    return f"""setp.ge.u32 %p, %number, {some.start};
        setp.lt.and.u32 %p, %number, {some.stop}, %p; @%p {instruction}"""


def found_in(*lines: str, blocks: int = 1, cluster: int = 1) -> list[Finding]:
    """What the check finds in a program of blocks of 64 threads."""
    before = ".shared .align 8 .b64 object;"
    text = ptx_text("\n".join([REGISTERS, *lines, "ret;"]), ".param .u64 data", before)
    runner, findings = KernelRunner(text, 1 << 20), Findings()
    data = runner.put(np.zeros(64 * blocks, np.uint32))
    limits = Limits(checks={"race"}, findings=findings)
    runner.launch("k", blocks, 64, data, limits=limits, cluster=(cluster, 1, 1))
    return findings.found


@pytest.mark.parametrize("is_early", [True, False])
def test_a_wait_for_a_phase_does_not_acquire_arrivals_in_the_next_one(is_early: bool) -> None:
    arrive = "mbarrier.arrive.shared.b64 _, [object];"
    found = found_in(
        by(0, "mbarrier.init.shared.b64 [object], 2;"),
        "bar.sync 0;",
        by(0, WRITE) if is_early else "",
        by(range(2), arrive),
        "" if is_early else by(0, WRITE),
        by(0, arrive),
        by(32, "mbarrier.test_wait.parity.shared.b64 %q, [object], 0;"),
        by(32, READ),
    )
    assert len(found) == (not is_early)


@pytest.mark.parametrize("fence", ["fence.acq_rel.cluster;", ""])
def test_a_relaxed_arrival_at_a_cluster_barrier_releases_work_before_a_fence(fence: str) -> None:
    found = found_in(
        by(0, WRITE),
        fence,
        "barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
        by(64, READ),
        blocks=2,
        cluster=2,
    )
    assert len(found) == (not fence)


@pytest.mark.parametrize(("scope", "is_benign"), [("gpu", True), ("cluster", False)])
def test_only_fences_that_reach_the_reader_make_a_flag_after_a_barrier_likely_intentional(
    scope: str, is_benign: bool
) -> None:
    (found,) = found_in(
        by(1, WRITE),
        f"fence.acq_rel.{scope};",
        by(0, "fence.acq_rel.gpu;"),
        "bar.sync 0;",
        by(0, "st.relaxed.gpu.global.u32 [%data + 4], 1;"),
        by(128, "ld.acquire.gpu.global.u32 %value, [%data + 4];"),
        by(128, READ),
        blocks=4,
        cluster=2,
    )
    assert bool(found.benign) == is_benign


@pytest.mark.parametrize("is_released", [True, False])
def test_a_thread_that_reads_a_flag_again_acquires_its_first_release(is_released: bool) -> None:
    release = "st.release.gpu.global.u32 [%data + {}], 1;".format
    found = found_in(
        by(0, release(4)),
        "mov.u32 %turn, 0; AGAIN:",
        by(range(32, 64), "ld.acquire.gpu.global.u32 %value, [%own];"),
        "setp.eq.u32 %q, %turn, 1; @%q bra END;",
        by(0, WRITE),
        by(0, release(4 * 33 if is_released else 4)),
        "mov.u32 %turn, 1; bra AGAIN; END:",
        by(33, READ),
    )
    assert len(found) == (not is_released)


@pytest.mark.parametrize(("reader", "is_right"), [(65, True), (66, False)])
def test_lanes_that_meet_share_what_one_of_them_acquired(reader: int, is_right: bool) -> None:
    found = found_in(
        by(0, WRITE),
        by(0, "st.release.gpu.global.u32 [%data + 4], 1;"),
        by(64, "ld.acquire.gpu.global.u32 %value, [%data + 4];"),
        "setp.lt.u32 %q, %thread, 2; selp.u32 %mask, 0x3, 0xc, %q;",
        by(range(64, 68), "bar.warp.sync %mask;"),
        by(reader, READ),
        blocks=2,
    )
    assert len(found) == (not is_right)


@pytest.mark.parametrize("is_right", [True, False])
def test_warps_that_come_to_a_barrier_from_different_places_are_in_order(is_right: bool) -> None:
    found = found_in(
        "setp.ge.u32 %p, %thread, 32; @%p bra HIGH;",
        by(0, WRITE) if is_right else "",
        "bar.sync 0;",
        "" if is_right else by(0, WRITE),
        "bra JOIN; HIGH: bar.sync 0; JOIN:",
        by(32, READ),
    )
    assert len(found) == (not is_right)
