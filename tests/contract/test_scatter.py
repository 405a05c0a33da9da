from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import (
    GpuRuntime,
    LaunchConfig,
    PtxModuleCache,
    balanced_partition,
    current_tile,
    scatter_batched,
    scatter_map,
)
from cudadrv.pool import ScatterError
from cudadrv.runtime import GpuDispatchPolicy
from tests.several_threads import all_at_once

SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))
Floats = npt.NDArray[np.float64]

SOURCE = """
extern "C" __global__ void logistic(double* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    for (int step = 0; step < 20; ++step) v = 3.7 * v * (1.0 - v);
    x[i] = v;
}
"""


@pytest.fixture(scope="module")
def rt() -> GpuRuntime:
    found = GpuRuntime.current()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def twice(rt: GpuRuntime) -> GpuRuntime:
    """Four equal tiles whatever the machine has: one device may have several."""
    devices = [
        replace(rt.devices[index % len(rt.devices)], sm_count=100, free_mem_bytes=1 << 30)
        for index in range(4)
    ]
    return GpuRuntime(devices=devices, policy=GpuDispatchPolicy())


@pytest.fixture(scope="module")
def cache() -> PtxModuleCache:
    return PtxModuleCache()


def iterate(cache: PtxModuleCache, ordinal: int, part: Floats) -> None:
    """Work that runs on the device that the tile names, or fails."""
    tile = current_tile()
    assert (tile.ordinal, tile.context.ordinal) == (ordinal, ordinal)
    kernel = cache.get_or_compile(tile.context, "logistic", SOURCE).kernel("logistic")
    with tile.stream.to_device(part) as there:
        assert there.context is tile.context
        kernel.launch(tile.stream, LaunchConfig.for_elements(part.size), there, part.size)
        tile.stream.to_host(there, part)


def test_results_equal_those_of_one_device_bit_for_bit(
    rt: GpuRuntime, twice: GpuRuntime, cache: PtxModuleCache
) -> None:
    start = np.random.default_rng(1).random(10_001)
    results: list[Floats] = []
    for runtime in (GpuRuntime(devices=rt.devices[:1], policy=GpuDispatchPolicy()), rt, twice):
        items = start.copy()
        scatter_batched(runtime, items, lambda ordinal, part: iterate(cache, ordinal, part))
        results.append(items)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    assert not np.array_equal(results[0], start)


def test_every_device_gets_its_tile_and_runs_it_on_itself(rt: GpuRuntime) -> None:
    def where(ordinal: int, part: object) -> tuple[int, range]:
        tile = current_tile()
        with tile.stream.zeros(1, "u1") as here:
            # Without a context named, memory comes from the current one.
            assert here.context is cudadrv.cuda_context_for(ordinal) is tile.context
        return ordinal, tile.range

    assert scatter_map(rt, range(1000), where) == list(balanced_partition(rt, 1000))


def test_a_tile_that_raises_leaves_the_others_results_and_the_devices_usable(
    twice: GpuRuntime, cache: PtxModuleCache
) -> None:
    start = np.random.default_rng(2).random(4000)
    whole = start.copy()
    scatter_batched(twice, whole, lambda ordinal, part: iterate(cache, ordinal, part))
    items = start.copy()

    def work(ordinal: int, part: Floats) -> None:
        if current_tile().range.start == 1000:
            raise ValueError("this one fails")
        iterate(cache, ordinal, part)

    with pytest.raises(ScatterError, match="1 of 4 tiles failed") as caught:
        scatter_batched(twice, items, work)
    assert [tile.range for tile in caught.value.failures] == [range(1000, 2000)]
    expected = whole.copy()
    expected[1000:2000] = start[1000:2000]
    assert np.array_equal(items, expected)
    again = start.copy()
    scatter_batched(twice, again, lambda ordinal, part: iterate(cache, ordinal, part))
    assert np.array_equal(again, whole)


def test_the_arena_hands_out_memory_to_a_tile(twice: GpuRuntime) -> None:
    def on_arena(ordinal: int, part: Floats) -> float:
        tile = current_tile()
        bucket, slab = tile.arena.alloc(tile.stream, part.size, "sum")
        tile.stream.copy(slab[: part.size], part)
        total = float(tile.stream.to_host(slab)[: part.size].sum())
        tile.arena.release(bucket, slab)
        return total

    items = np.arange(1000.0)
    for _ in range(3):
        assert sum(scatter_map(twice, items, on_arena)) == items.sum()


def test_a_kernel_queued_without_a_wait_has_run_when_the_call_returns(
    twice: GpuRuntime, cache: PtxModuleCache
) -> None:
    def queue(ordinal: int, part: Floats) -> cudadrv.DeviceArray[np.float64]:
        tile = current_tile()
        there = tile.stream.to_device(part)
        kernel = cache.get_or_compile(tile.context, "logistic", SOURCE).kernel("logistic")
        kernel.launch(tile.stream, LaunchConfig.for_elements(part.size), there, part.size)
        return there

    items = np.random.default_rng(3).random(4000)
    there = scatter_map(twice, items, queue)
    streams = [cudadrv.cuda_context_for(array.context.ordinal).default_stream for array in there]
    found = np.concatenate([s.to_host(array) for s, array in zip(streams, there, strict=True)])
    scatter_batched(twice, items, lambda ordinal, part: iterate(cache, ordinal, part))
    assert np.array_equal(found, items)


def test_lists_and_maps_keep_their_order(twice: GpuRuntime) -> None:
    items = list(range(11))

    def negate(ordinal: int, part: list[int]) -> None:
        part[:] = [-value for value in part]

    scatter_batched(twice, items, negate)
    assert items == [-value for value in range(11)]
    parts = scatter_map(twice, items, lambda ordinal, part: list(part))
    assert [value for part in parts for value in part] == items


def test_scatters_of_many_threads_do_not_mix(twice: GpuRuntime, cache: PtxModuleCache) -> None:
    """Thirty-two threads scatter at once; CUDADRV_STRESS_SECONDS sets how long."""
    end = time.monotonic() + SECONDS
    start = np.random.default_rng(4).random(400)
    expected = start.copy()
    scatter_batched(twice, expected, lambda ordinal, part: iterate(cache, ordinal, part))
    wrong: list[Floats] = []
    done: list[int] = []

    def work() -> None:
        count = 0
        while not count or time.monotonic() < end:
            items = start.copy()
            scatter_batched(twice, items, lambda ordinal, part: iterate(cache, ordinal, part))
            if not np.array_equal(items, expected):
                wrong.append(items)
            count += 1
        done.append(count)

    all_at_once([work] * 32)
    assert wrong == []
    assert len(done) == 32
