"""Lanes of a warp that wait in different fibres, tried with an operation made for this test."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.model.errors import Deadlock, SynchronisationFault
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.limits import Limits
from ptx.isa.model import Instruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text


def warp_sum(fibre: Fibre, value: Value) -> Value:
    """The sum of the values that all lanes of the warp brought."""
    threads = fibre.blocks.geometry.threads
    table = np.zeros(threads, np.uint32)
    if fibre.exchange is None:
        table[fibre.lane_numbers()] = value
    else:
        table = fibre.exchange["value"]
    warps = fibre.blocks.geometry.index("warp_slot") // 32
    return np.bincount(warps, table).astype(np.uint32).take(warps[fibre.lane_numbers()])


def emit(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], "u32"))
    mask = e.temporary(e.value(i.operands[2], "u32"))
    brought = f"{{'value': {value}}}"
    arrive = f"f.scheduler.waiting.warp_sync.arrive(f, {mask}, {e.here}, 'sum', {brought})"
    e.line(f"if not {arrive}: return -1")
    e.assign(i.operands[0], "u32", f"{e.helper(warp_sum)}(f, {value})")


operation("redux.testsum", ("u32",), 3, emit, effect=Effect.SYNCS, section="this test")

HEAD = """.reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<5>; ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; and.b32 %r5, %r1, 31; mov.u32 %r4, 0;"""
TAIL = "END: st.global.u32 [%rd3], %r4; ret;"


def outcome(body: str, block: int) -> list[int]:
    runner = KernelRunner(ptx_text(HEAD + body + TAIL, ".param .u64 out"))
    out = runner.put(np.zeros(block, np.uint32))
    runner.launch("k", 1, block, out)
    found: list[int] = runner.get(out, block, np.uint32).tolist()
    return found


def sums(block: int) -> list[int]:
    return [sum(range(n // 32 * 32, min(n // 32 * 32 + 32, block))) for n in range(block)]


@pytest.mark.parametrize("block", [32, 64, 40])
def test_a_whole_warp_passes_at_once(block: int) -> None:
    assert outcome("redux.testsum.u32 %r4, %r1, -1;", block) == sums(block)


@pytest.mark.parametrize("block", [32, 64, 96])
def test_lanes_at_two_places_exchange_values(block: int) -> None:
    body = """@%p1 bra EVEN; add.u32 %r6, %r1, 0; redux.testsum.u32 %r4, %r6, -1; bra END;
        EVEN: redux.testsum.u32 %r4, %r1, -1; bra END;"""
    assert outcome(body, block) == sums(block)


def test_lanes_that_come_to_one_place_in_turn_keep_their_registers() -> None:
    body = """mov.u32 %r8, 100; @!%p1 bra LATER; GO: redux.testsum.u32 %r4, %r1, -1;
        add.u32 %r4, %r4, %r8; bra END; LATER: add.u32 %r8, %r1, 200; bra GO;"""
    expected = [496 + (100 if n % 2 == 0 else 200 + n) for n in range(32)]
    assert outcome(body, 32) == expected


def test_guarded_meetings_wait_for_the_lanes_of_their_mask_only() -> None:
    body = "@%p1 redux.testsum.u32 %r4, %r1, 0x55555555;"
    expected = [sum(range(0, 32, 2)) if n % 2 == 0 else 0 for n in range(32)]
    assert outcome(body, 32) == expected


def test_warps_that_are_complete_go_on_while_others_wait() -> None:
    # Warp 1 arrives one lane at a time, warp 0 at once.
    body = """setp.lt.u32 %p2, %r1, 32; @%p2 bra GO; mov.u32 %r7, 0;
        LOOP: setp.ge.u32 %p3, %r7, %r5; @%p3 bra GO; add.u32 %r7, %r7, 1; bra LOOP;
        GO: redux.testsum.u32 %r4, %r1, -1;"""
    assert outcome(body, 64) == sums(64)


def test_lanes_that_exited_are_not_waited_for() -> None:
    body = "setp.ge.u32 %p2, %r5, 20; @%p2 exit; redux.testsum.u32 %r4, %r1, -1;"
    assert outcome(body, 32) == [sum(range(20)) if n < 20 else 0 for n in range(32)]


def test_lanes_that_wait_elsewhere_are_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="at warp instructions"):
        outcome("@%p1 bra A; bar.sync 0; bra END; A: redux.testsum.u32 %r4, %r1, -1;", 32)


def test_an_exited_lane_of_the_mask_is_reported_where_lane_0_is_not_in_it() -> None:
    body = """setp.eq.u32 %p2, %r1, 31; setp.lt.or.u32 %p2, %r1, 16, %p2; @%p2 bra END;
        redux.testsum.u32 %r4, %r1, 0xffff0000;"""
    runner = KernelRunner(ptx_text(HEAD + body + TAIL, ".param .u64 out"))
    out = runner.put(np.zeros(32, np.uint32))
    with pytest.raises(SynchronisationFault, match="0xffff0000 names 1 lanes"):
        runner.launch("k", 1, 32, out, limits=Limits(check_synchronisation=True))
