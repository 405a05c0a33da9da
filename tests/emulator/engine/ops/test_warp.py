"""Warp instructions one by one, against the ISA's own pseudocode written lane by lane."""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from collections.abc import Callable

import numpy as np
import pytest

from ptx.emulate.model.errors import Deadlock, SynchronisationFault
from tests.emulator.engine.kernel_runner import run
from tests.rows import all_rows

MODES = ("up", "down", "bfly", "idx")
FULL = 0xFFFFFFFF


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """PTX ISA, "shfl.sync": the source lane and the predicate."""
    bval, cval, segmask = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segmask) | (cval & ~segmask & 31)
    min_lane = lane & segmask
    if mode == "up":
        j = lane - bval
        pval = j >= max_lane
    elif mode == "down":
        j = lane + bval
        pval = j <= max_lane
    elif mode == "bfly":
        j = lane ^ bval
        pval = j <= max_lane
    else:
        j = min_lane | (bval & ~segmask & 31)
        pval = j <= max_lane
    return (j if pval else lane), pval


SHUFFLE = """ld.global.u32 %r3, [%rd1]; ld.global.u32 %r4, [%rd1+4]; ld.global.u32 %r5, [%rd1+8];
    {body} selp.u32 %r8, 1, 0, %p1; mov.b64 %rd4, {{%r6, %r8}}; st.global.u64 [%rd2], %rd4;"""
# Odd lanes execute the instruction at another place.
APART = (
    """and.b32 %r9, %r0, 1; setp.eq.u32 %p2, %r9, 1; @%p2 bra ODD; {0} bra JOIN; ODD: {0} JOIN: """
)


@all_rows
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", [64, 96])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_shuffles_follow_the_isa(mode: str, block: int, apart: bool, constant: bool) -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2**32, (block * 2, 3)).astype(np.uint32)
    widths = rng.choice([1, 2, 4, 8, 16, 32], len(rows))
    clamps = rng.choice([0, 31, 31, 7], len(rows))
    rows[:, 2] = (32 - widths) << 8 | clamps
    b, c = "%r4", "%r5"
    if constant:
        rows[:, 1], rows[:, 2] = 5, 0x1007
        b, c = "5", "0x1007"
    instruction = f"shfl.sync.{mode}.b32 %r6|%p1, %r3, {b}, {c}, -1;"
    body = SHUFFLE.format(body=APART.format(instruction) if apart else instruction)
    found = run(body, rows, np.uint64, block=block).tolist()
    for i, (_, amount, segment) in enumerate(rows.tolist()):
        source, inside = shuffled(mode, i % 32, amount, segment)
        if source < 32:
            value = int(rows[i - i % 32 + source, 0])
            assert found[i] == value | int(inside) << 32, i


def test_a_shuffle_without_a_predicate_of_one_value_for_all() -> None:
    body = "mov.u32 %r3, 77; shfl.sync.idx.b32 %r4, %r3, 3, 31, -1; st.global.u32 [%rd2], %r4;"
    assert run(body, np.zeros((64, 1), np.uint32), np.uint32).tolist() == [77] * 64


def test_lanes_that_a_short_warp_does_not_have_are_not_waited_for() -> None:
    body = SHUFFLE.format(body=APART.format("shfl.sync.idx.b32 %r6|%p1, %r0, 2, 31, -1;"))
    found = run(body, np.zeros((40, 3), np.uint32), np.uint64, block=40).tolist()
    assert found == [(i - i % 32 + 2) | 1 << 32 for i in range(40)]


MASKS = [0xFFFF0000, 0x0000FFFF, 0x5A5A5A5A, 0xA5A5A5A5, 0x80000001, 0x7FFFFFFE]


def partner_mask(lane: int, kind: int) -> int:
    """One of two masks that share the warp."""
    first, second = MASKS[2 * kind], MASKS[2 * kind + 1]
    return first if first >> lane & 1 else second


VOTES = """ld.global.u32 %r3, [%rd1]; ld.global.u32 %r4, [%rd1+4]; setp.ne.u32 %p3, %r3, 0;
    {body} st.global.u32 [%rd2], %r6;"""


@all_rows
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("mode", ["ballot", "all", "any", "uni"])
def test_votes_count_the_lanes_of_their_mask(kind: int, apart: bool, mode: str) -> None:
    rng = np.random.default_rng(5)
    flags = rng.integers(0, 2, (6, 32))
    flags[1], flags[2] = 0, 1
    flags[3] = [MASKS[0] >> lane & 1 for lane in range(32)]
    flags[4] = [MASKS[2] >> lane & 1 for lane in range(32)]
    masks = [partner_mask(lane, kind) for lane in range(32)]
    rows = np.stack([flags.reshape(-1), np.tile(masks, 6)], axis=1).astype(np.uint32)
    if mode == "ballot":
        vote = "vote.sync.ballot.b32 %r6, %p3, %r4;"
    else:
        vote = f"vote.sync.{mode}.pred %p4, %p3, %r4; selp.u32 %r6, 1, 0, %p4;"
    body = VOTES.format(body=APART.format(vote) if apart else vote)
    found = run(body, rows, np.uint32, block=96).reshape(6, 32).tolist()
    for warp in range(6):
        for lane in range(32):
            group = [k for k in range(32) if masks[lane] >> k & 1]
            held = [bool(flags[warp, k]) for k in group]
            expected = {
                "ballot": sum(1 << k for k in group if flags[warp, k]),
                "all": int(all(held)),
                "any": int(any(held)),
                "uni": int(all(held) or not any(held)),
            }[mode]
            assert found[warp][lane] == expected


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("apart", [False, True])
def test_matches_find_equal_values(bits: int, apart: bool) -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 3, (4, 32)).astype(np.uint64) << np.uint64(bits - 2)
    values[1] = 5
    values[2, :16] = 9
    masks = [partner_mask(lane, 0) for lane in range(32)]
    rows = np.stack([values.reshape(-1), np.tile(masks, 4).astype(np.uint64)], axis=1)
    source = "%rd5" if bits == 64 else "%r3"
    instruction = (
        f"match.any.sync.b{bits} %r6, {source}, %r4; match.all.sync.b{bits} %r7|%p4, {source}, %r4;"
    )
    body = f"""ld.global.u64 %rd5, [%rd1]; ld.global.u32 %r4, [%rd1+8]; cvt.u32.u64 %r3, %rd5;
        {APART.format(instruction) if apart else instruction}
        selp.u32 %r8, 0x80000000, 0, %p4; xor.b32 %r7, %r7, %r8;
        mov.b64 %rd6, {{%r6, %r7}}; st.global.u64 [%rd2], %rd6;"""
    found = run(body, rows, np.uint64, block=64).reshape(4, 32).tolist()
    for warp, lane in itertools.product(range(4), range(32)):
        row = values[warp].tolist()
        group = [k for k in range(32) if masks[lane] >> k & 1]
        same = sum(1 << k for k in group if row[k] == row[lane])
        together = masks[lane] if len({row[k] for k in group}) == 1 else 0
        together ^= 0x80000000 * bool(together)
        assert found[warp][lane] == same | together << 32


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "add.u32": lambda v: sum(v) & FULL,
    "add.s32": lambda v: sum(v) & FULL,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda v: min(v, key=lambda x: x ^ 0x80000000),
    "max.s32": lambda v: max(v, key=lambda x: x ^ 0x80000000),
    "and.b32": lambda v: functools.reduce(operator.and_, v),
    "or.b32": lambda v: functools.reduce(operator.or_, v),
    "xor.b32": lambda v: functools.reduce(operator.xor, v),
}


@all_rows
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("apart", [False, True])
def test_reductions_of_integers(name: str, apart: bool) -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(0, 2**32, (4, 32)).astype(np.uint32)
    values[1] |= 0xFF000000
    masks = [partner_mask(lane, 1) for lane in range(32)]
    rows = np.stack([values.reshape(-1), np.tile(masks, 4).astype(np.uint32)], axis=1)
    instruction = f"redux.sync.{name} %r6, %r3, %r4;"
    body = VOTES.format(body=APART.format(instruction) if apart else instruction)
    found = run(body, rows, np.uint32, block=64).reshape(4, 32).tolist()
    for warp, lane in itertools.product(range(4), range(32)):
        group = [int(values[warp, k]) for k in range(32) if masks[lane] >> k & 1]
        assert found[warp][lane] == REDUCTIONS[name](group)


def bits_of(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("absolute", ["", ".abs"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
def test_reductions_of_floats_order_zeros_and_skip_nans(name: str, absolute: str, nan: str) -> None:
    quiet, inf = float("nan"), float("inf")
    warps = [
        [float(k) - 15.5 for k in range(32)],
        [0.0] * 31 + [-0.0],
        [quiet] * 32,
        [quiet, -3.0, inf, -inf] + [1.5] * 28,
        [-1e-45] * 16 + [1e-45] * 16,
    ]
    rows = np.array([[bits_of(v), FULL] for warp in warps for v in warp], np.uint32)
    instruction = f"redux.sync.{name}{absolute}{nan}.f32 %f1, %f2, %r4; mov.b32 %r6, %f1;"
    body = VOTES.format(body=f"mov.b32 %f2, %r3; {instruction}")
    found = run(body, rows, np.uint32, block=160).reshape(5, 32).tolist()
    for warp, row in zip(warps, found, strict=True):
        numbers = [abs(v) if absolute else v for v in warp if v == v]
        if not numbers or (nan and len(numbers) < len(warp)):
            expected = 0x7FFFFFFF
        else:
            choose = min if name == "min" else max
            expected = bits_of(choose(numbers, key=lambda v: (v, bits_of(v) >> 31 == 0)))
        assert row == [expected] * 32


def test_the_active_mask_has_the_lanes_of_the_branch() -> None:
    body = """mov.u32 %r6, 0; and.b32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 1; @!%p1 bra END;
        activemask.b32 %r6; END: st.global.u32 [%rd2], %r6;"""
    found = run(body, np.zeros((40, 1), np.uint32), np.uint32, block=40).tolist()
    short = sum(1 << k for k in range(8) if k % 4 == 1)
    assert found == [(0x22222222 if i < 32 else short) if i % 4 == 1 else 0 for i in range(40)]


def test_one_lane_of_the_mask_is_elected() -> None:
    masks = [partner_mask(lane, 2) for lane in range(32)]
    rows = np.array([[0, mask] for mask in masks] * 2, np.uint32)
    body = VOTES.format(
        body="elect.sync %r6|%p1, %r4; selp.u32 %r7, 256, 0, %p1; add.u32 %r6, %r6, %r7;"
    )
    found = run(body, rows, np.uint32, block=64).tolist()
    expected = [0 if masks[k % 32] & 1 else 1 for k in range(64)]
    assert [v & 255 for v in found] == expected
    assert [v >> 8 for v in found] == [int(k % 32 == expected[k]) for k in range(64)]


def test_lanes_that_synchronise_see_each_others_writes() -> None:
    body = """and.b32 %r3, %r0, 31; shl.b32 %r4, %r0, 2; mov.u32 %r5, s; add.u32 %r4, %r4, %r5;
        setp.lt.u32 %p1, %r3, 16; @%p1 bra LOW; bar.warp.sync -1; bra GO;
        LOW: st.shared.u32 [%r4+64], %r0; bar.warp.sync -1;
        GO: ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd2], %r6;"""
    found = run(
        body, np.zeros((64, 1), np.uint32), np.uint32, before=".shared .b32 s[64];", block=64
    )
    assert found.reshape(2, 32)[:, 16:].tolist() == [list(range(16)), list(range(32, 48))]


@pytest.mark.parametrize("instruction", [
    "shfl.sync.idx.b32 %r3, %r0, 0, 31, {0}", "vote.sync.ballot.b32 %r3, %p0, {0}",
    "match.any.sync.b32 %r3, %r0, {0}", "redux.sync.add.s32 %r3, %r0, {0}", "bar.warp.sync {0}",
])  # fmt: skip
def test_a_mask_that_does_not_name_its_own_lane_is_a_fault(instruction: str) -> None:
    body = f"{instruction.format('0xffff')}; st.global.u32 [%rd2], 0;"
    with pytest.raises(SynchronisationFault, match="lane 16 .* membermask 0x0000ffff") as caught:
        run(body, np.zeros((32, 1), np.uint32), np.uint32)
    assert caught.value.where.thread == (16, 0, 0)


def test_masks_that_disagree_are_a_deadlock_that_names_the_lanes() -> None:
    body = """and.b32 %r3, %r0, 31; setp.lt.u32 %p1, %r3, 4; selp.u32 %r4, 0xff, -1, %p1;
        vote.sync.ballot.b32 %r5, %p1, %r4; st.global.u32 [%rd2], %r5;"""
    with pytest.raises(Deadlock, match="waits for lanes 0x000000f0.*32 at warp instructions"):
        run(body, np.zeros((32, 1), np.uint32), np.uint32)
