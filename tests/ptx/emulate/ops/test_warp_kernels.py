"""Warp algorithms in CUDA C++, through NVRTC, against NumPy."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from ptx.emulate.exec.limits import Limits
from tests.ptx.emulate.machine import Machine
from tests.ptx.emulate.ops.corpus import TARGETS, machine_of

VARIANTS = [*((target, False) for target in TARGETS), ("compute_75", True), ("compute_100", True)]


@pytest.fixture(params=VARIANTS, ids=lambda v: v[0] + ("-G" if v[1] else ""))
def machine(request: pytest.FixtureRequest) -> Machine:
    target, debug = request.param
    return machine_of("warps.cu", target, debug=debug, lineinfo=not debug)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_warp_aggregated_atomics_append_every_hit_once(
    machine: Machine, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 100, 1000).astype(np.int32)
    count, where = machine.put(np.zeros(1, np.int32)), machine.put(np.full(1000, -1, np.int32))
    machine.launch("aggregated_count", 8, 128, machine.put(x), 1000, count, where)
    hits = np.flatnonzero(x % 3 == 0)
    assert machine.get(count, 1, np.int32)[0] == len(hits)
    found = machine.get(where, 1000, np.int32)
    assert sorted(found[: len(hits)].tolist()) == hits.tolist()
    assert (found[len(hits) :] == -1).all()


@pytest.mark.parametrize("block", [32, 96, 100])
def test_a_warp_scan_adds_up_each_warp(
    machine: Machine, rng: np.random.Generator, block: int
) -> None:
    n = 3 * block - 11
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    out = machine.put(np.zeros(n, np.int32))
    machine.launch("warp_scan", 3, block, machine.put(x), out, n)
    expected = [
        np.cumsum(x[first : min(first + 32, start + block)])
        for start in range(0, n, block)
        for first in range(start, min(start + block, n), 32)
    ]
    assert machine.get(out, n, np.int32).tolist() == np.concatenate(expected).tolist()


def test_a_bitonic_sort_by_shuffles_sorts_each_warp(
    machine: Machine, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((16, 32)).astype(np.float32)
    address = machine.put(x)
    machine.launch("bitonic", 4, 128, address)
    assert (machine.get(address, 512, np.float32).reshape(16, 32) == np.sort(x)).all()


@pytest.mark.parametrize("block", [64, 256, 1024])
def test_a_block_scan_adds_up_each_block(
    machine: Machine, rng: np.random.Generator, block: int
) -> None:
    n = 4 * block - 17
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    out = machine.put(np.zeros(n, np.int32))
    machine.launch("block_scan", 4, block, machine.put(x), out, n)
    expected = np.concatenate([np.cumsum(x[k : k + block]) for k in range(0, n, block)])
    assert machine.get(out, n, np.int32).tolist() == expected.tolist()


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_segments_of_every_width_are_summed_apart(
    machine: Machine, rng: np.random.Generator, width: int
) -> None:
    x = rng.integers(-(2**40), 2**40, 256).astype(np.float64)
    out = machine.put(np.zeros(256))
    machine.launch("segmented_sum", 2, 128, machine.put(x), out, width)
    expected = np.repeat(x.reshape(-1, width).sum(axis=1), width)
    assert machine.get(out, 256, np.float64).tolist() == expected.tolist()


def test_a_histogram_by_match_counts_every_value(
    machine: Machine, rng: np.random.Generator
) -> None:
    n = 1000
    x = rng.integers(0, 10, n).astype(np.int32)
    bins, peers = machine.put(np.zeros(10, np.int32)), machine.put(np.zeros(n, np.uint32))
    machine.launch("match_histogram", 5, 224, machine.put(x), n, bins, peers)
    assert machine.get(bins, 10, np.int32).tolist() == np.bincount(x).tolist()
    starts = [w for b in range(0, n, 224) for w in range(b, min(b + 224, n), 32)]
    warps = [x[a:b] for a, b in zip(starts, [*starts[1:], n], strict=True)]
    expected = [int((warp == value).sum()) for warp in warps for value in warp]
    assert machine.get(peers, n, np.uint32).tolist() == expected


def test_votes_and_reductions_see_the_whole_warp(
    machine: Machine, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 100, (8, 32)).astype(np.int32)
    x[3] = 50
    out = machine.put(np.zeros(256, np.uint32))
    machine.launch("votes", 2, 128, machine.put(x), out)
    expected = []
    for row in x.tolist():
        bits = sum((v & 1) << lane for lane, v in enumerate(row))
        bits ^= 0x10000 * any(v > 90 for v in row) ^ 0x20000 * all(v > 3 for v in row)
        bits += sum(row) + 7 * max(row) + 3 * functools.reduce(operator.xor, row)
        expected += [bits & 0xFFFFFFFF] * 32
    assert machine.get(out, 256, np.uint32).tolist() == expected


@pytest.mark.parametrize("block", [64, 96, 72])
def test_block_votes_count_each_block_also_from_two_places(
    machine: Machine, rng: np.random.Generator, block: int
) -> None:
    x = rng.integers(0, 100, (3, block)).astype(np.int32)
    x[1, 5], x[2] = 7, x[2] % 99
    x[0][x[0] == 7] = 8
    out = machine.put(np.zeros(x.size, np.int32))
    machine.launch("block_votes", 3, block, machine.put(x), out)
    expected = []
    for row in x:
        # Threads of both branches meet at one barrier, each with its own condition.
        mixed = sum(int(v & (2 if t & 32 else 4)) != 0 for t, v in enumerate(row))
        value = int((row & 1).sum()) + 1000 * mixed
        expected += [4 * value + 2 * bool((row < 99).all()) + bool((row == 7).any())] * block
    assert machine.get(out, x.size, np.int32).tolist() == expected


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_a_ring_of_named_barriers_hands_every_slot_over(
    machine: Machine, rng: np.random.Generator, rounds: int
) -> None:
    x = rng.integers(0, 1000, (rounds, 32)).astype(np.int32)
    out = machine.put(np.zeros(96, np.int32))
    machine.launch("pipeline", 1, 128, machine.put(x), out, rounds)
    expected = [
        sum(int(x[r, (lane + warp) & 31]) * (r + 1) for r in range(rounds))
        for warp in (1, 2, 3)
        for lane in range(32)
    ]
    assert machine.get(out, 96, np.int32).tolist() == expected


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, ackermann(m, n - 1)) if n else ackermann(m - 1, 1)


def test_recursion_gives_each_thread_its_own_depth(machine: Machine) -> None:
    out = machine.put(np.zeros(64, np.int32))
    machine.launch("recursion", 1, 64, out)
    expected = [ackermann(t & 1, t >> 2) for t in range(64)]
    assert machine.get(out, 64, np.int32).tolist() == expected


def test_virtual_functions_of_objects_on_the_heap(machine: Machine) -> None:
    x = np.arange(40, dtype=np.float32)
    out = machine.put(np.zeros(40, np.float32))
    machine.launch("virtuals", 1, 64, machine.put(x), out, 40)
    expected = np.where(np.arange(40) % 3 == 0, 3 * x, x * x)
    assert machine.get(out, 40, np.float32).tolist() == expected.tolist()
    assert machine.device.heap.used_bytes == 0


def test_functions_from_a_constant_table(machine: Machine) -> None:
    out = machine.put(np.zeros(64, np.int32))
    machine.launch("pointers", 1, 64, out)
    expected = [2 * (t + 5) if t % 2 == 0 else -t - 5 for t in range(64)]
    assert machine.get(out, 64, np.int32).tolist() == expected


def test_lists_on_the_device_heap(machine: Machine) -> None:
    out = machine.put(np.zeros(64, np.int32))
    machine.launch("lists", 1, 64, out, 9)
    expected = [sum(k * k for k in range(t % 9 + 1)) for t in range(64)]
    assert machine.get(out, 64, np.int32).tolist() == expected
    assert machine.device.heap.used_bytes == 0


@pytest.mark.parametrize("chunk", [1, 32768])
def test_a_ticket_lock_lets_warps_pass_in_order(machine: Machine, chunk: int) -> None:
    now, following = machine.put(np.zeros(1, np.uint32)), machine.put(np.zeros(1, np.uint32))
    order = machine.put(np.full(8, -1, np.int32))
    limits = Limits(chunk_threads=chunk)
    machine.launch("ticket", 2, 128, now, following, order, limits=limits)
    assert sorted(machine.get(order, 8, np.int32).tolist()) == list(range(8))
    assert machine.get(now, 1, np.uint32)[0] == 8


def test_lane_numbers_and_masks_follow_the_linear_thread(machine: Machine) -> None:
    out = machine.put(np.zeros(90, np.uint32))
    machine.launch("places", (2, 1, 1), (5, 6, 3), out)
    expected = [t % 32 + 100 * (t // 32) + 10000 for t in range(90)]
    assert machine.get(out, 90, np.uint32).tolist() == expected
