"""Grids divided into chunks, and chunks into parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptx.emulate.exec.order.ordered_launch import chunks_of, parts_of
from ptx.emulate.model.geometry import geometry
from ptx.emulate.model.order import Decisions, LaunchOrder

ORDERS = [LaunchOrder("late"), *(LaunchOrder("random", seed) for seed in range(8))]
GRIDS = [(1, 1), (1, 1024), (7, 32), (64, 128), (4096, 256), (100_000, 64)]


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
            0, *itertools.accumulate(chunk.blocks for chunk in found)
        ][:-1]  # fmt: skip
        assert sum(chunk.blocks for chunk in found) == blocks
        assert all(chunk.first % cluster == chunk.blocks % cluster == 0 for chunk in found)
        assert all(chunk.blocks <= most for chunk in found)
        assert any(chunk.groups for chunk in found) or blocks * threads == 1


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
