"""Products by four warps; tests/emulator/differential has their results on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import OutOfBounds, SynchronisationFault, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

HEAD = """
.reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;
.shared .align 1024 .b8 pool[4096];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16;
add.u64 %rd1, %rd1, %rd2; mov.u32 %r2, pool; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd3, %r2;
setp.eq.u32 %p1, %r1, %r1; mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0;
mov.f32 %f3, %f0; mov.u32 %r3, 0x3C003C00; mov.u32 %r4, %r3; mov.u32 %r5, %r3; mov.u32 %r6, %r3;
"""
# Ones at the 16 places of k and n that a descriptor without swizzling reads.
FILL = """
shl.b32 %r7, %r1, 2; mov.u32 %r8, pool; add.u32 %r8, %r8, %r7; st.shared.u32 [%r8], %r3;
bar.sync 0; or.b64 %rd4, %rd3, 0x0000001000080000;
"""
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
STORE = "st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3}; ret;"
D = "{%f0, %f1, %f2, %f3}"
A = "{%r3, %r4, %r5, %r6}"


def runner_of(body: str) -> KernelRunner:
    text = ptx_text(HEAD + body + STORE, ".param .u64 out").replace("sm_90", "sm_90a")
    return KernelRunner(text, 1 << 20)


def launched(body: str, threads: int = 128) -> list[float]:
    runner = runner_of(body)
    out = runner.put(np.zeros(512, np.float32))
    runner.launch("k", 1, threads, out)
    return sorted(set(runner.get(out, 512, np.float32).tolist()))


def test_registers_times_memory_and_former_values() -> None:
    assert launched(f"{FILL} {WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0;") == [17.0]


def test_former_values_may_be_left_out_and_factors_negated() -> None:
    line = f"{WGMMA} {D}, {A}, %rd4, %p2, 1, -1, 1;"
    assert launched(f"{FILL} setp.ne.u32 %p2, %r1, %r1; {line}") == [-16.0]


def test_the_guarded_case_keeps_the_destination() -> None:
    line = f"setp.ne.u32 %p2, %r1, %r1; @%p2 {WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0;"
    assert launched(FILL + line) == [1.0]


def test_each_warp_reads_its_rows_of_a_matrix_in_memory() -> None:
    # Row r of A is r + 1 at k 0; B is 1 there, and 0 elsewhere.
    body = """
    shl.b32 %r7, %r1, 2; mov.u32 %r8, pool; add.u32 %r8, %r8, %r7; mov.u32 %r9, 0;
    st.shared.u32 [%r8], %r9; st.shared.u32 [%r8+512], %r9; st.shared.u32 [%r8+1024], %r9;
    st.shared.u32 [%r8+1536], %r9; st.shared.u32 [%r8+2048], %r9; bar.sync 0;
    setp.lt.u32 %p2, %r1, 64; add.u32 %r10, %r1, 1; cvt.rn.f32.u32 %f5, %r10;
    .reg .b16 %h<2>; cvt.rn.f16.f32 %h0, %f5; shl.b32 %r11, %r1, 4; mov.u32 %r12, pool;
    add.u32 %r11, %r11, %r12; @%p2 st.shared.b16 [%r11], %h0;
    setp.lt.u32 %p3, %r1, 8; mov.b16 %h1, 0x3C00; @%p3 st.shared.b16 [%r11+2048], %h1; bar.sync 0;
    or.b64 %rd4, %rd3, 0x0000000800400000; add.u64 %rd5, %rd3, 128;
    or.b64 %rd5, %rd5, 0x0000000800080000; setp.ne.u32 %p2, %r1, %r1;
    """
    runner = runner_of(f"{body} {WGMMA} {D}, %rd4, %rd5, %p2, 1, 1, 0, 0;")
    out = runner.put(np.zeros(512, np.float32))
    runner.launch("k", 1, 128, out)
    found = runner.get(out, 512, np.float32).reshape(4, 8, 4, 2, 2)  # warp, group, place, half
    rows = 16 * np.arange(4)[:, None, None] + np.arange(8)[:, None] + 8 * np.arange(2) + 1
    assert np.array_equal(found, np.broadcast_to(rows[:, :, None, :, None], found.shape))


def test_a_descriptor_beyond_the_blocks_memory_is_a_fault() -> None:
    with pytest.raises(OutOfBounds, match="shared address"):
        launched(f"{FILL} add.u64 %rd4, %rd4, 250; {WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0;")


def test_all_lanes_must_be_there() -> None:
    with pytest.raises(SynchronisationFault, match="all 32 must exist and must not have exited"):
        launched(f"{FILL} {WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0;", threads=40)


@pytest.mark.parametrize(("threads", "warps"), [(32, 1), (96, 3), (192, 2)])
def test_the_block_must_have_all_four_warps(threads: int, warps: int) -> None:
    said = f"{WGMMA} is executed by a group of {warps} warps; it takes the four of 128 threads"
    with pytest.raises(SynchronisationFault, match=said):
        launched(f"{FILL} {WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0;", threads=threads)


BITS = "wgmma.mma_async.sync.aligned.m64n8k256.s32"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
UNKNOWN = "does not execute this instruction"


@all_rows
@pytest.mark.parametrize(("line", "said"), [
    (f"{WGMMA} {D}, {A}, %rd4, %p1, 1, 1;", UNKNOWN),
    (f"{WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 0, 0;", "it takes 3 numbers behind its predicate"),
    (f"{WGMMA} {D}, %rd3, %rd4, %p1, 1, 1, 0;", "it takes 4 numbers behind its predicate"),
    (f"{WGMMA} {D}, {A}, %rd4, %p1, 1, 1, %r1;", "it takes 3 numbers behind its predicate"),
    (f"{WGMMA} {D}, {A}, %rd4, %p1, 1, 2, 0;", "factors are multiplied by 1 or -1"),
    (f"{WGMMA} {D}, {A}, %rd4, %p1, 1, 1, 2;", "a transposition is 0 or 1"),
    (f"{WGMMA} {{%f0, %f1}}, {A}, %rd4, %p1, 1, 1, 0;", "2 registers for a fragment of 4"),
    (f"{BITS}.b1.b1.and {D}, {A}, %rd4, %p1;", r"\.b1\.b1\.and\.popc"),
    (f"{BITS} {D}, {A}, %rd4, %p1;", r"\.b1\.b1\.and\.popc"),
    (f"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {D}, {A}, %rd4, %p1, 1, 1, 0;", UNKNOWN),
    (f"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {D}, {A}, %rd4, %p1, 1, 1, 0;", UNKNOWN),
    (f"{SPARSE} {D}, {A}, %rd4, %r1, 2, %p1, 1, 1, 0;", "its selector must be a constant below 2"),
    (f"{SPARSE} {D}, {A}, %rd4, %r1, %r2, %p1, 1, 1, 0;", "its selector must be a constant"),
    (f"{SPARSE} {D}, {A}, %rd4, %r1, 0, %p1, 1, 1;", UNKNOWN),
])  # fmt: skip
def test_what_is_wrong_is_rejected_when_the_kernel_is_loaded(line: str, said: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=said) as raised:
        runner_of(line).program.kernel("k")
    assert raised.value.opcode == line.split()[0]
