"""Values that depend on a thread's place alone: which they are, and that chunks may share them."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.codegen.analysis.block_invariant import dominators, invariant_definitions
from ptx.emulate.codegen.cfg import CfgBuilder, find_live_registers
from ptx.emulate.threads.limits import Limits
from ptx.isa import parse
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

_REGISTERS = ".reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %rd<9>;"


def invariants_in(body: str) -> list[str]:
    """The opcodes whose results chunks share."""
    parsed = parse(ptx_text(_REGISTERS + body, ".param .u32 n")).body("k")
    blocks = CfgBuilder("k", parsed).build()
    find_live_registers(blocks, {r.name: at for at, r in enumerate(parsed.registers)})
    found = sorted(invariant_definitions(blocks, {"n"}))
    return [blocks[block].steps[at].instruction.text for block, at in found]


def test_what_comes_from_the_place_in_the_block_is_steady_and_the_rest_is_not() -> None:
    body = """mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; ld.param.u32 %r2, [n];
    shl.b32 %r3, %r0, 2; add.u32 %r4, %r0, %r1; mad.lo.u32 %r5, %r3, %r2, 7; ret;"""
    assert invariants_in(body) == ["mov.u32", "shl.b32", "mad.lo.u32"]


def test_a_register_with_two_values_on_the_way_is_not_steady() -> None:
    body = """mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 5; mov.u32 %r1, %r0;
    @%p0 bra A; ld.global.u32 %r1, [%rd0]; A: not.b32 %r2, %r1; ret;"""
    assert invariants_in(body) == ["mov.u32", "setp.lt.u32", "mov.u32"]


def test_a_value_of_a_loop_is_not_steady_though_it_starts_so() -> None:
    body = """mov.u32 %r0, %tid.x; L: shl.b32 %r1, %r0, 1; add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 5; @%p0 bra L; ret;"""
    assert invariants_in(body) == ["mov.u32"]


def test_a_definition_that_not_all_ways_pass_is_not_steady() -> None:
    body = """mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 5; @%p0 bra A; mov.u32 %r1, %r0;
    A: not.b32 %r2, %r1; ret;"""
    assert "not.b32" not in invariants_in(body)


def test_what_a_call_returns_is_not_steady() -> None:
    body = """mov.u32 %r0, %tid.x; { .param .b32 z;
    P: .callprototype (.param .b32 _) _ (); call (z), %rd0, (), P; ld.param.b32 %r1, [z]; }
    add.u32 %r2, %r0, %r1; ret;"""
    assert invariants_in(body) == ["mov.u32"]


def test_dominators_of_a_diamond() -> None:
    body = ".reg .pred %p<2>; @%p0 bra A; bra B; A: mov.pred %p1, %p0; B: ret;"
    blocks = CfgBuilder("k", parse(ptx_text(body)).body("k")).build()
    assert [bin(mask) for mask in dominators(blocks)[:4]] == ["0b1", "0b11", "0b101", "0b1001"]


@pytest.mark.parametrize("chunk", [2048, 4096, 65536])
def test_chunks_that_share_values_and_divisions_reduce_alike(chunk: int) -> None:
    """The second half of the blocks parts threads by data where the first did by place."""
    body = f"""{_REGISTERS}
    ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 256, %r0;
    mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd0, %rd2; ld.global.u32 %r3, [%rd3];
    shl.b32 %r4, %r0, 2; mov.u32 %r5, pool; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], %r3;
    bar.sync 0; mov.u32 %r6, 128;
    L: setp.ge.u32 %p0, %r0, %r6; setp.gt.u32 %p1, %r1, 31; setp.eq.u32 %p2, %r3, 5;
    and.pred %p1, %p1, %p2; or.pred %p0, %p0, %p1; @%p0 bra J;
    shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r4; ld.shared.u32 %r8, [%r7];
    ld.shared.u32 %r3, [%r4]; add.u32 %r8, %r8, %r3; st.shared.u32 [%r4], %r8;
    J: bar.sync 0; shr.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra L;
    ld.shared.u32 %r8, [%r4]; add.u64 %rd4, %rd1, %rd2; st.global.u32 [%rd4], %r8; ret;"""
    text = ptx_text(body, ".param .u64 in, .param .u64 out", ".shared .align 4 .b8 pool[1024];")
    data = np.random.default_rng(3).integers(0, 6, (64, 256)).astype(np.uint32)
    runner = KernelRunner(text)
    source, out = runner.put(data), runner.put(np.zeros_like(data))
    runner.launch("k", 64, 256, source, out, limits=Limits(chunk_threads=chunk))
    wanted, first = data.copy(), data.copy()
    for half in (128, 64, 32, 16, 8, 4, 2, 1):
        skipped = (first[:, :half] == 5) & (np.arange(64)[:, None] > 31)
        total = wanted[:, :half] + wanted[:, half : 2 * half]
        first[:, :half] = np.where(skipped, first[:, :half], wanted[:, :half])
        wanted[:, :half] = np.where(skipped, wanted[:, :half], total)
    assert (runner.get(out, data.size, np.uint32).reshape(64, 256) == wanted).all()


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("result", ["z", "out"], ids=["own name", "name of a parameter"])
@pytest.mark.parametrize("called", ["f, (x)", "%rd5, (x), P"], ids=["direct", "by address"])
@pytest.mark.parametrize("chunk", [2048, 4096, 65536])
def test_what_a_call_returns_is_of_its_own_chunk(chunk: int, called: str, result: str) -> None:
    """The result meets a value of the thread's place, and both an address."""
    before = """.visible .func (.param .b32 r) f(.param .b32 a) { .reg .b32 %q<3>;
    ld.param.b32 %q0, [a]; mul.lo.u32 %q1, %q0, 2654435761; shr.u32 %q2, %q1, 20;
    st.param.b32 [r], %q2; ret; }"""
    body = f"""{_REGISTERS} P: .callprototype (.param .b32 _) _ (.param .b32 _);
    ld.param.u64 %rd1, [out]; mov.u64 %rd5, f; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
    {{ .param .b32 x; .param .b32 {result}; st.param.b32 [x], %r1;
    call ({result}), {called}; ld.param.b32 %r2, [{result}]; }}
    add.u32 %r3, %r2, %r0; mad.lo.u32 %r4, %r1, 64, %r0;
    mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret;"""
    runner = KernelRunner(ptx_text(body, ".param .u64 out", before))
    out = runner.put(np.zeros(300 * 64, np.uint32))
    runner.launch("k", 300, 64, out, limits=Limits(chunk_threads=chunk))
    found = runner.get(out, 300 * 64, np.uint32).reshape(300, 64)
    given = np.arange(300, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(20)
    assert (found == given[:, None] + np.arange(64, dtype=np.uint32)).all()
