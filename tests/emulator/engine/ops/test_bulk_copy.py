"""Bulk copies: amounts that differ, masks, the blocks of a cluster, and what is found wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import (
    EmulationFault,
    Misaligned,
    OutOfBounds,
    SynchronisationFault,
    UninitialisedRead,
    UnsupportedInstruction,
    UseAfterFree,
)
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

HEAD = """.reg .pred %p<9>; .reg .b16 %rs<5>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .shared .align 128 .b8 s[4096]; .shared .align 8 .b64 m;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, s; mov.u32 %r6, m;
    setp.eq.u32 %p1, %r1, 0; mov.u64 %rd10, 0; mov.u16 %rs1, 21845;
"""
PARAMS = ".param .u64 in, .param .u64 out"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;"
ARRIVE = "mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.expect_tx.shared.b64 _, [m], "
IN = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
OUT = "cp.async.bulk.global.shared::cta.bulk_group"


def text(body: str, cluster: int = 1) -> str:
    whole = ptx_text(HEAD + body + "\nret;", PARAMS)
    return whole.replace(")\n{", f")\n.reqnctapercluster {cluster}\n{{") if cluster > 1 else whole


def launched(
    body: str,
    x: np.ndarray,
    out_bytes: int,
    grid: int = 1,
    block: int = 1,
    cluster: int = 1,
    *,
    limits: Limits | None = None,
) -> list[int]:
    runner = KernelRunner(text(body, cluster), 1 << 22)
    source, out = runner.put(x, "source"), runner.put(np.zeros(out_bytes, np.uint8), "result")
    runner.launch("k", grid, block, source, out, limits=limits or Limits())
    found: list[int] = runner.get(out, out_bytes, np.uint8).tolist()
    return found


def noise(nbytes: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, nbytes, dtype=np.uint8)


@pytest.mark.parametrize("chunk", [1, 65536])
def test_each_thread_copies_its_own_amount_to_its_own_place(chunk: int) -> None:
    # Thread t brings 16 * t bytes, from 256 * t on, and takes as many back.
    body = f"""@!%p1 bra GO; {ARRIVE} 448; GO: bar.sync 0;
        shl.b32 %r7, %r1, 4; shl.b32 %r8, %r1, 8; mul.wide.u32 %rd3, %r1, 256;
        add.u64 %rd4, %rd1, %rd3; add.u32 %r9, %r5, %r8;
        {IN} [%r9], [%rd4], %r7, [m]; {WAIT}
        fence.proxy.async.shared::cta; mul.wide.u32 %rd5, %r2, 2048; add.u64 %rd3, %rd3, %rd5;
        add.u64 %rd6, %rd2, %rd3; {OUT} [%rd6], [%r9], %r7; cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;"""
    x = noise(2048)
    rows = x.reshape(8, 256).copy()
    for t in range(8):
        rows[t, 16 * t :] = 0
    found = launched(body, x, 3 * 2048, 3, 8, limits=Limits(chunk_threads=chunk))
    assert found == [*rows.reshape(-1).tolist()] * 3


def test_a_mask_chooses_bytes_of_every_sixteen() -> None:
    body = f"""{ARRIVE} 64; {IN} [%r5], [%rd1], 64, [m]; {WAIT}
        {OUT}.cp_mask [%rd2], [%r5], 48, %rs1;"""
    x = noise(64)
    expected = [int(v) if at < 48 and at % 2 == 0 else 0 for at, v in enumerate(x)]
    assert launched(body, x, 64) == expected


def test_hints_and_policies_change_nothing() -> None:
    body = f"""createpolicy.fractional.L2::evict_last.b64 %rd10, 1.0;
        cp.async.bulk.prefetch.L2.global [%rd1], 64;
        cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd1], 64, %rd10;
        {ARRIVE} 64; {IN}.L2::cache_hint [%r5], [%rd1], 64, [m], %rd10; {WAIT}
        {OUT}.L2::cache_hint [%rd2], [%r5], 64, %rd10;
        setmaxnreg.inc.sync.aligned.u32 240; setmaxnreg.dec.sync.aligned.u32 40;
        griddepcontrol.wait; griddepcontrol.launch_dependents; discard.global.L2 [%rd1], 128;
        fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
        fence.proxy.async; fence.proxy.async.global;"""
    x = noise(128)
    assert launched(body, x, 64) == x[:64].tolist()


def test_a_copy_to_all_blocks_of_a_cluster_signals_each() -> None:
    # Blocks 0 and 1 send 32 bytes each.
    body = f"""{ARRIVE} 64; barrier.cluster.arrive; barrier.cluster.wait;
        mov.u32 %r7, %cluster_ctarank; shl.b32 %r8, %r7, 5; add.u32 %r9, %r5, %r8;
        cvt.u64.u32 %rd3, %r8; add.u64 %rd4, %rd1, %rd3; setp.gt.u32 %p3, %r7, 1;
        mov.u16 %rs2, 15; @!%p3 {IN}.multicast::cluster [%r9], [%rd4], 32, [m], %rs2; {WAIT}
        mul.wide.u32 %rd5, %r2, 64; add.u64 %rd6, %rd2, %rd5; {OUT} [%rd6], [%r5], 64;
        barrier.cluster.arrive; barrier.cluster.wait;"""
    x = noise(128)
    assert launched(body, x, 4 * 64, grid=4, cluster=4) == x[:64].tolist() * 4


def test_zeros_fill_memory_in_bulk() -> None:
    body = f"""{ARRIVE} 64; {IN} [%r5], [%rd1], 64, [m]; {WAIT} cvt.u64.u32 %rd7, %r5;
        cvta.shared.u64 %rd8, %rd7; mov.u64 %rd9, 24;
        st.bulk.weak.shared::cta [%r5], %rd9, 0; st.bulk.weak [%rd8+40], 8, 0;
        {OUT} [%rd2], [%r5], 64;"""
    x = noise(64)
    expected = x.copy()
    expected[:24] = expected[40:48] = 0
    assert launched(body, x, 64) == expected.tolist()


@pytest.mark.parametrize("chunk", [3, 65536])
def test_all_blocks_copy_at_once(chunk: int) -> None:
    body = f"""{ARRIVE} 4096; {IN} [%r5], [%rd1], 4096, [m]; {WAIT}
        mul.wide.u32 %rd5, %r2, 4096; add.u64 %rd6, %rd2, %rd5; {OUT} [%rd6], [%r5], 4096;"""
    x = noise(4096)
    limits = Limits(chunk_threads=chunk)
    assert launched(body, x, 20 * 4096, grid=20, limits=limits) == x.tolist() * 20


FULL = f"{ARRIVE} 64; {IN}"


@pytest.mark.parametrize(("body", "error", "words"), [
    (f"{FULL} [%r5], [%rd1], 20, [m];", Misaligned, "20 bytes, which is no multiple of 16"),
    (f"{FULL} [%r5], [%rd1], 0xfffffff0, [m];", OutOfBounds, "4294967280 bytes, more than"),
    ("mov.u64 %rd7, -8; st.bulk.weak.shared::cta [%r5], %rd7, 0;", OutOfBounds, "more than"),
    (f"{FULL} [%r5+8], [%rd1], 16, [m];", Misaligned, "write of 16 bytes at shared"),
    (f"{FULL} [%r5], [%rd1+4], 16, [m];", Misaligned, "misaligned read of 16 bytes"),
    (f"{FULL} [%r5], [%rd1], 80, [m];", OutOfBounds, "source"),
    (f"{FULL} [%r5+4064], [%rd1], 64, [m];", OutOfBounds, "shared address"),
    (f"{FULL} [%r5], [%rd1], 16, [%r5+64];", SynchronisationFault, "never initialised"),
    (f"{OUT} [%rd2+32], [%r5], 48;", OutOfBounds, "result"),
    ("st.bulk.weak.shared::cta [%r5], 12, 0;", Misaligned, "no multiple of 8"),
])  # fmt: skip
def test_wrong_copies_are_found(body: str, error: type[EmulationFault], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        launched(body, noise(64), 64)
    assert raised.value.where.ptx_line > 0


def test_a_copy_from_freed_memory_is_found() -> None:
    runner = KernelRunner(text(f"{FULL} [%r5], [%rd1], 16, [m];"), 1 << 22)
    source = runner.put(noise(64), "source")
    runner.memory.free(source)
    with pytest.raises(UseAfterFree):
        runner.launch("k", 1, 1, source, source)


def test_bytes_that_a_copy_brought_count_as_written() -> None:
    limits = Limits(checks={"undefined"})
    body = f"{ARRIVE} 64; {IN} [%r5], [%rd1], 64, [m]; {WAIT} {OUT} [%rd2], [%r5], %r7;"
    x = noise(64)
    assert launched("mov.u32 %r7, 64;" + body, x, 80, limits=limits)[:64] == x.tolist()
    with pytest.raises(UninitialisedRead):
        launched("mov.u32 %r7, 80;" + body, x, 80, limits=limits)


@pytest.mark.parametrize("line", [
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s64 [%r5],"
    " [%r5], 16, [m];",
    "cp.async.bulk.global.global.bulk_group [%rd2], [%rd1], 16;",
    "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd2], [%r5], 16, [m];",
    "cp.async.bulk.shared::cta.global.bulk_group [%r5], [%rd1], 16;",
    "st.async.mmio.release.gpu.global.b32 [%rd1], %r1;",
    "st.bulk.weak.shared::cta [%r5], 16, 1;",
    "tcgen05.shift.cta_group::1.down [%r1];",
    "multimem.st.weak.global.v2.u32 [%rd1], {%r1, %r1};",
    "multimem.ld_reduce.relaxed.gpu.global.add.s64 %rd1, [%rd1];",
])  # fmt: skip
def test_other_copies_are_rejected_when_the_kernel_is_loaded(line: str) -> None:
    source = text("\n" + line)
    with pytest.raises(UnsupportedInstruction) as raised:
        KernelRunner(source, 1 << 20).program.kernel("k")
    assert raised.value.opcode == line.split()[0].rstrip(";")
    assert source.splitlines()[raised.value.line - 1] == line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.e4m3x4 %r1, [%rd1];",
            "narrower floats",
        ),
        ("tcgen05.shift.cta_group::1.down [%r1];", "tensor memory"),
    ],
)
def test_what_emulated_devices_lack_is_named(line: str, words: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=words) as raised:
        KernelRunner(text("\n" + line), 1 << 20).program.kernel("k")
    assert raised.value.opcode == line.split()[0].rstrip(";")
