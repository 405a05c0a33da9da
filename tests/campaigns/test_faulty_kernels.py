"""What only some orders show: each faulty kernel is found, each corrected twin always right."""

from __future__ import annotations

import os

import pytest

from campaigns.faulty_kernels import (
    LATE,
    WANTED,
    inputs,
    is_right,
    run,
    seeds_that_find,
)
from ptx.emulate import LaunchOrder
from tests.short_cases import few

# 500 for all: CUDADRV_ORDER_SEEDS=500 python -m pytest tests/emulator/engine/exec/order
SEEDS = int(os.environ.get("CUDADRV_ORDER_SEEDS", "12"))


@pytest.mark.parametrize("name", WANTED)
def test_a_faulty_kernel_is_found_under_late_or_within_fifty_seeds(name: str) -> None:
    kernel = f"{name}_faulty"
    assert not is_right(kernel, LATE) or seeds_that_find(kernel, 50)


@pytest.mark.parametrize("name", few(WANTED, 4))
def test_a_corrected_kernel_is_right_in_every_order(name: str) -> None:
    kernel = f"{name}_right"
    assert is_right(kernel, None)
    assert is_right(kernel, LATE)
    assert seeds_that_find(kernel, SEEDS) == []


@pytest.mark.parametrize("name", few(WANTED, 3))
def test_a_seed_repeats_a_run_bit_for_bit(name: str) -> None:
    kernel = f"{name}_right"
    traces = set()
    for seed in range(4):
        order = LaunchOrder("random", seed)
        (first, trace), (second, again) = run(kernel, order), run(kernel, order)
        assert first.tobytes() == second.tobytes()
        assert trace == again
        traces.add(trace)
    assert len(traces) == 4


def test_a_launch_without_an_order_decides_nothing() -> None:
    assert run("tile_right", None)[1] == 0
    assert len(inputs()) > 0
