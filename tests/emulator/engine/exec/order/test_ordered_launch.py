"""Grids divided into chunks, and chunks into parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptx.emulate.exec.order.ordered_launch import OrderedScheduler, chunks_of, parts_of
from ptx.emulate.model.geometry import geometry
from ptx.emulate.model.order import Decisions, LaunchOrder
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.rows import all_rows

ORDERS = [LaunchOrder("late"), *(LaunchOrder("random", seed) for seed in range(8))]
GRIDS = [(1, 1), (1, 1024), (7, 32), (64, 128), (4096, 256), (100_000, 64)]


@all_rows
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("speak", [False, True])
def test_every_block_is_in_one_chunk_and_clusters_stay_whole(
    order: LaunchOrder, speak: bool
) -> None:
    for (clusters, threads), cluster in itertools.product(GRIDS, (1, 2, 8)):
        blocks = clusters * cluster
        most = max(65536 // threads // cluster, 1) * cluster
        found = sorted(chunks_of(blocks, threads, cluster, most, speak, Decisions(order)))
        assert [chunk.first for chunk in found] == [
            0,
            *itertools.accumulate(chunk.blocks for chunk in found),
        ][:-1]
        assert sum(chunk.blocks for chunk in found) == blocks
        assert all(chunk.first % cluster == chunk.blocks % cluster == 0 for chunk in found)
        assert all(chunk.blocks <= most for chunk in found)
        assert any(chunk.groups for chunk in found) or blocks * threads == 1


@all_rows
@pytest.mark.parametrize("block", [(64, 1, 1), (33, 3, 1), (5, 1, 1), (1024, 1, 1)])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_lane_is_in_one_part_and_parts_are_few(
    order: LaunchOrder, block: tuple[int, int, int]
) -> None:
    shape = geometry(block, 3)
    parts = parts_of(shape, 4, Decisions(order))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(shape.threads))
    assert all(np.array_equal(part, np.sort(part)) for part in parts)
    assert len(parts) <= 8


def test_blocks_begin_in_every_order() -> None:
    begun = {
        tuple(
            chunk.first
            for chunk in chunks_of(3, 32, 1, 2048, False, Decisions(LaunchOrder("random", seed)))
        )
        for seed in range(100)
    }
    assert len(begun) == 6


def test_any_two_lanes_run_apart_under_some_seed() -> None:
    shape = geometry((64, 1, 1), 1)
    together = np.ones((64, 64), dtype=np.bool_)
    for seed in range(50):
        part_of = np.zeros(64, dtype=np.intp)
        for number, lanes in enumerate(parts_of(shape, 4, Decisions(LaunchOrder("random", seed)))):
            part_of[lanes] = number
        together &= part_of[:, None] == part_of
    assert np.array_equal(together, np.eye(64, dtype=np.bool_))


# A barrier over all blocks: each adds 1 to a counter, and waits until all of the phase have.
PHASES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 counter, .param .u32 blocks, .param .u32 phases)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [counter]; ld.param.u32 %r1, [blocks]; ld.param.u32 %r2, [phases];
    mov.u32 %r3, 0; mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r4, 0;
NEXT:
    add.u32 %r3, %r3, %r1;
    bar.sync 0;
    @%p1 bra DONE;
    atom.add.release.gpu.u32 %r5, [%rd1], 1;
WAIT:
    ld.acquire.gpu.u32 %r6, [%rd1];
    setp.lt.u32 %p2, %r6, %r3;
    @%p2 bra WAIT;
DONE:
    bar.sync 0;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p3, %r2, 0;
    @%p3 bra NEXT;
    ret;
}
"""


# One thread of each block takes a lock, adds 1 to a number after 500 steps, and releases the lock.
LOCK = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 lock, .param .u32 blocks, .param .u32 phases)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [lock]; ld.param.u32 %r2, [phases];
    mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r4, 0;
    @%p1 ret;
NEXT:
    atom.cas.acquire.gpu.b32 %r5, [%rd1+4], 0, 1;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra NEXT;
    ld.u32 %r6, [%rd1];
    mov.u32 %r3, 500;
HOLD:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra HOLD;
    add.u32 %r6, %r6, 1;
    st.u32 [%rd1], %r6;
    atom.exch.release.gpu.b32 %r7, [%rd1+4], 0;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p3, %r2, 0;
    @%p3 bra NEXT;
    ret;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS[:4], ids=str)
@pytest.mark.parametrize(
    ("text", "most"), [(PHASES, 40_000), (LOCK, 150_000)], ids=["barrier", "lock"]
)
def test_blocks_that_wait_for_others_give_way(
    text: str, most: int, order: LaunchOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedulers: dict[int, OrderedScheduler] = {}
    run = OrderedScheduler.run

    def counted(self: OrderedScheduler, turn: int) -> bool:
        schedulers[id(self)] = self
        return run(self, turn)

    monkeypatch.setattr(OrderedScheduler, "run", counted)
    runner = KernelRunner(text)
    counter = runner.put(np.zeros(2, np.uint32))
    runner.launch("k", 8, 64, counter, 8, 30, cooperative=True, order=order)
    assert runner.get(counter, 2, np.uint32).tolist() == [240, 0]
    # Without a wait it is 6,000 basic blocks for the barrier, and 120,000 with the lock.
    assert sum(scheduler.steps for scheduler in schedulers.values()) < most
