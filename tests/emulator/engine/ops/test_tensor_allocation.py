"""Columns of tensor memory: asked for, waited for, given back."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import Deadlock, TensorMemoryFault, UnsupportedInstruction
from tests.emulator.engine.ops.tensor_text import ALLOC, DEALLOC, launched, runner_of

NOTHING = np.zeros(1, np.uint32)
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
LOAD = "bar.warp.sync -1; ld.shared.u32"
SAVE = "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r9;"


def test_a_block_gets_columns_beside_those_that_it_holds() -> None:
    body = f"""{ALLOC} [slot], 128; {LOAD} %r7, [slot]; {ALLOC} [slot], 64; {LOAD} %r8, [slot];
        {RELINQUISH} shl.b32 %r9, %r8, 16; or.b32 %r9, %r9, %r7; {SAVE}
        {DEALLOC} %r7, 128; {DEALLOC} %r8, 64;"""
    assert launched(body, NOTHING, 64, 32, grid=2).tolist()[:32] == [128 << 16] * 32


def test_an_address_may_be_generic() -> None:
    generic = ALLOC.replace(".shared::cta", "")
    body = f"""mov.u64 %rd4, slot; cvta.shared.u64 %rd4, %rd4; {generic} [%rd4], 32;
        {LOAD} %r9, [slot]; add.u32 %r9, %r9, 7; {SAVE} {DEALLOC} 0, 32;"""
    assert launched(body, NOTHING, 32, 32).tolist() == [7] * 32


def test_what_is_released_can_be_had_again() -> None:
    again = f"{ALLOC} [slot], 512; {LOAD} %r9, [slot]; {DEALLOC} %r9, 512;"
    assert launched(again * 3 + SAVE, NOTHING, 32, 32).tolist() == [0] * 32


@pytest.mark.parametrize("first", [0, 1])
def test_a_warp_waits_for_columns_that_another_one_frees(first: int) -> None:
    # One warp holds all; the other one asks meanwhile.
    body = f"""setp.eq.u32 %p4, %r2, {first}; shl.b32 %r10, %r2, 2; mov.u32 %r11, pool;
        add.u32 %r11, %r11, %r10; @!%p4 bra SECOND;
        {ALLOC} [%r11], 512; bar.sync 0; mov.u32 %r12, 0;
        SPIN: add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, 50; @%p5 bra SPIN;
        ld.shared.u32 %r9, [%r11]; {DEALLOC} %r9, 512; bra DONE;
        SECOND: bar.sync 0; {ALLOC} [%r11], 256; {LOAD} %r9, [%r11]; add.u32 %r9, %r9, 9;
        {DEALLOC} 0, 256;
        DONE: {SAVE}"""
    found = launched(body, NOTHING, 64, 64).reshape(2, 32)
    assert found[first].tolist() == [0] * 32
    assert found[1 - first].tolist() == [9] * 32


def test_columns_that_are_never_freed_are_waited_for_for_ever() -> None:
    with pytest.raises(Deadlock, match="32 threads wait for columns of tensor memory"):
        launched(f"{ALLOC} [slot], 512; {ALLOC} [slot], 512;", NOTHING, 1, 32)


@pytest.mark.parametrize(("body", "said"), [
    (f"{ALLOC} [slot], 32;", "32 columns of tensor memory at 0x0 are still allocated"),
    (f"{ALLOC} [slot], 48;", "48 columns of tensor memory: the number is a power of two"),
    (f"{ALLOC} [slot], 16;", "the number is a power of two from 32 to 512"),
    (f"{ALLOC} [slot], 1024;", "the number is a power of two from 32 to 512"),
    (f"{ALLOC} [slot], 32; {DEALLOC} 0, 32; {ALLOC} [slot], 64;", "must not increase"),
    (f"{RELINQUISH} {ALLOC} [slot], 32;", "after tcgen05.relinquish_alloc_permit of the block"),
    (f"{DEALLOC} 0, 32;", "the block holds no allocation"),
    (f"{ALLOC} [slot], 64; {DEALLOC} 0, 32;", "32 columns .* are given back, of 64 that were"),
    (f"{ALLOC} [slot], 64; {DEALLOC} 0, 64; {DEALLOC} 0, 64;", "or none any more"),
    (f"shl.b32 %r7, 32, %r3; {ALLOC} [slot], %r7;", "different values of its columns"),
])  # fmt: skip
def test_what_breaks_the_rules_is_found(body: str, said: str) -> None:
    with pytest.raises(TensorMemoryFault, match=said):
        launched(body, NOTHING, 1, 32)


@pytest.mark.parametrize(
    "line",
    [
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;",
        "tcgen05.shift.cta_group::1.down [%r1];",
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd3, %rd4, %r2, %p1, %rd5;",
    ],
)
def test_what_is_not_known_of_it_is_rejected_by_its_name(line: str) -> None:
    with pytest.raises(
        UnsupportedInstruction, match=r"no \.cta_group::2, \.sp, \.ashift"
    ) as raised:
        runner_of(line).program.kernel("k")
    assert raised.value.opcode == line.split()[0].rstrip(";")
