"""Warp algorithms in CUDA C++, through NVRTC, against NumPy."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import TARGETS, runner_of
from tests.rows import all_rows

VARIANTS = [*((target, False) for target in TARGETS), ("compute_75", True), ("compute_100", True)]


@pytest.fixture(params=VARIANTS, ids=lambda v: v[0] + ("-G" if v[1] else ""))
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    target, debug = request.param
    return runner_of("warps.cu", target, debug=debug, lineinfo=not debug)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.slow
def test_warp_aggregated_atomics_append_every_hit_once(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 100, 1000).astype(np.int32)
    count, where = runner.put(np.zeros(1, np.int32)), runner.put(np.full(1000, -1, np.int32))
    runner.launch("aggregated_count", 8, 128, runner.put(x), 1000, count, where)
    hits = np.flatnonzero(x % 3 == 0)
    assert runner.get(count, 1, np.int32)[0] == len(hits)
    found = runner.get(where, 1000, np.int32)
    assert sorted(found[: len(hits)].tolist()) == hits.tolist()
    assert (found[len(hits) :] == -1).all()


@pytest.mark.slow
@pytest.mark.parametrize("block", [32, 96, 100])
def test_a_warp_scan_adds_up_each_warp(
    runner: KernelRunner, rng: np.random.Generator, block: int
) -> None:
    n = 3 * block - 11
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    out = runner.put(np.zeros(n, np.int32))
    runner.launch("warp_scan", 3, block, runner.put(x), out, n)
    expected = [
        np.cumsum(x[first : min(first + 32, start + block)])
        for start in range(0, n, block)
        for first in range(start, min(start + block, n), 32)
    ]
    assert runner.get(out, n, np.int32).tolist() == np.concatenate(expected).tolist()


def test_a_bitonic_sort_by_shuffles_sorts_each_warp(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((16, 32)).astype(np.float32)
    address = runner.put(x)
    runner.launch("bitonic", 4, 128, address)
    assert (runner.get(address, 512, np.float32).reshape(16, 32) == np.sort(x)).all()


@pytest.mark.slow
@pytest.mark.parametrize("block", [64, 256, 1024])
def test_a_block_scan_adds_up_each_block(
    runner: KernelRunner, rng: np.random.Generator, block: int
) -> None:
    n = 4 * block - 17
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    out = runner.put(np.zeros(n, np.int32))
    runner.launch("block_scan", 4, block, runner.put(x), out, n)
    expected = np.concatenate([np.cumsum(x[k : k + block]) for k in range(0, n, block)])
    assert runner.get(out, n, np.int32).tolist() == expected.tolist()


@all_rows
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_segments_of_every_width_are_summed_apart(
    runner: KernelRunner, rng: np.random.Generator, width: int
) -> None:
    x = rng.integers(-(2**40), 2**40, 256).astype(np.float64)
    out = runner.put(np.zeros(256))
    runner.launch("segmented_sum", 2, 128, runner.put(x), out, width)
    expected = np.repeat(x.reshape(-1, width).sum(axis=1), width)
    assert runner.get(out, 256, np.float64).tolist() == expected.tolist()


def test_a_histogram_by_match_counts_every_value(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    n = 1000
    x = rng.integers(0, 10, n).astype(np.int32)
    bins, peers = runner.put(np.zeros(10, np.int32)), runner.put(np.zeros(n, np.uint32))
    runner.launch("match_histogram", 5, 224, runner.put(x), n, bins, peers)
    assert runner.get(bins, 10, np.int32).tolist() == np.bincount(x).tolist()
    starts = [w for b in range(0, n, 224) for w in range(b, min(b + 224, n), 32)]
    warps = [x[a:b] for a, b in zip(starts, [*starts[1:], n], strict=True)]
    expected = [int((warp == value).sum()) for warp in warps for value in warp]
    assert runner.get(peers, n, np.uint32).tolist() == expected


def test_votes_and_reductions_see_the_whole_warp(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 100, (8, 32)).astype(np.int32)
    x[3] = 50
    out = runner.put(np.zeros(256, np.uint32))
    runner.launch("votes", 2, 128, runner.put(x), out)
    expected = []
    for row in x.tolist():
        bits = sum((v & 1) << lane for lane, v in enumerate(row))
        bits ^= 0x10000 * any(v > 90 for v in row) ^ 0x20000 * all(v > 3 for v in row)
        bits += sum(row) + 7 * max(row) + 3 * functools.reduce(operator.xor, row)
        expected += [bits & 0xFFFFFFFF] * 32
    assert runner.get(out, 256, np.uint32).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("block", [64, 96, 72])
def test_block_votes_count_each_block_also_from_two_places(
    runner: KernelRunner, rng: np.random.Generator, block: int
) -> None:
    x = rng.integers(0, 100, (3, block)).astype(np.int32)
    x[1, 5], x[2] = 7, x[2] % 99
    x[0][x[0] == 7] = 8
    out = runner.put(np.zeros(x.size, np.int32))
    runner.launch("block_votes", 3, block, runner.put(x), out)
    expected = []
    for row in x:
        # Threads of both branches meet at one barrier, each with its own condition.
        mixed = sum(int(v & (2 if t & 32 else 4)) != 0 for t, v in enumerate(row))
        value = int((row & 1).sum()) + 1000 * mixed
        expected += [4 * value + 2 * bool((row < 99).all()) + bool((row == 7).any())] * block
    assert runner.get(out, x.size, np.int32).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_a_ring_of_named_barriers_hands_every_slot_over(
    runner: KernelRunner, rng: np.random.Generator, rounds: int
) -> None:
    x = rng.integers(0, 1000, (rounds, 32)).astype(np.int32)
    out = runner.put(np.zeros(96, np.int32))
    runner.launch("pipeline", 1, 128, runner.put(x), out, rounds)
    expected = [
        sum(int(x[r, (lane + warp) & 31]) * (r + 1) for r in range(rounds))
        for warp in (1, 2, 3)
        for lane in range(32)
    ]
    assert runner.get(out, 96, np.int32).tolist() == expected


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, ackermann(m, n - 1)) if n else ackermann(m - 1, 1)


def test_recursion_gives_each_thread_its_own_depth(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("recursion", 1, 64, out)
    expected = [ackermann(t & 1, t >> 2) for t in range(64)]
    assert runner.get(out, 64, np.int32).tolist() == expected


@pytest.mark.slow
def test_virtual_functions_of_objects_on_the_heap(runner: KernelRunner) -> None:
    x = np.arange(40, dtype=np.float32)
    out = runner.put(np.zeros(40, np.float32))
    runner.launch("virtuals", 1, 64, runner.put(x), out, 40)
    expected = np.where(np.arange(40) % 3 == 0, 3 * x, x * x)
    assert runner.get(out, 40, np.float32).tolist() == expected.tolist()
    assert runner.device.heap.used_bytes == 0


def test_functions_from_a_constant_table(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("pointers", 1, 64, out)
    expected = [2 * (t + 5) if t % 2 == 0 else -t - 5 for t in range(64)]
    assert runner.get(out, 64, np.int32).tolist() == expected


@pytest.mark.slow
def test_lists_on_the_device_heap(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("lists", 1, 64, out, 9)
    expected = [sum(k * k for k in range(t % 9 + 1)) for t in range(64)]
    assert runner.get(out, 64, np.int32).tolist() == expected
    assert runner.device.heap.used_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 32768])
def test_a_ticket_lock_lets_warps_pass_in_order(runner: KernelRunner, chunk: int) -> None:
    now, following = runner.put(np.zeros(1, np.uint32)), runner.put(np.zeros(1, np.uint32))
    order = runner.put(np.full(8, -1, np.int32))
    limits = Limits(chunk_threads=chunk)
    runner.launch("ticket", 2, 128, now, following, order, limits=limits)
    assert sorted(runner.get(order, 8, np.int32).tolist()) == list(range(8))
    assert runner.get(now, 1, np.uint32)[0] == 8


def test_lane_numbers_and_masks_follow_the_linear_thread(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(90, np.uint32))
    runner.launch("places", (2, 1, 1), (5, 6, 3), out)
    expected = [t % 32 + 100 * (t // 32) + 10000 for t in range(90)]
    assert runner.get(out, 90, np.uint32).tolist() == expected
