"""The barrier of a cluster: what threads wrote before it is ordered before reads after it."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv import emulator
from tests.emulator.engine.kernel_runner import ptx_text

# Block 0 waits, and block 1 comes later.
KERNEL = ptx_text(
    """.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 32, %r2; xor.b32 %r4, %r3, 32;
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
    mul.wide.u32 %rd6, %r4, 4; add.u64 %rd7, %rd1, %rd6;
    setp.eq.u32 %p1, %r1, 1; @%p1 bra LATER;
    GO: st.global.u32 [%rd4], %r3; barrier.cluster.arrive{arrive}; barrier.cluster.wait;
    ld.global.u32 %r5, [%rd7]; st.global.u32 [%rd5], %r5; ret;
    LATER: add.u32 %r6, %r3, 1; bra GO;""",
    ".param .u64 data, .param .u64 out",
)


@pytest.mark.parametrize(("arrive", "raced"), [("", False), (".relaxed", True)])
def test_a_block_that_waited_reads_what_the_later_one_wrote(arrive: str, raced: bool) -> None:
    with emulator.session(devices=[emulator.H100], check=("race",), raise_findings=False) as e:
        context = cudadrv.cuda_context_for(0)
        kernel = context.load_module(KERNEL.replace("{arrive}", arrive)).kernel("k")
        stream = context.new_stream()
        data, out = stream.zeros(64, "u4"), stream.zeros(64, "u4")
        kernel.launch(stream, cudadrv.LaunchConfig(2, 32, cluster=2), data, out)
        assert stream.to_host(out).tolist() == [*range(32, 64), *range(32)]
    assert bool(e.findings) is raced
