"""Any number of workers gives the bits that one device gives."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.cluster import SimulatedProcess
from cudadrv import GpuRuntime, scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, TilePolicy
from cudadrv.cluster.local_pool import LocalPool, WorkerSpec
from tests.process.cluster import jobs
from tests.process.cluster.jobs import Floats


def simulated(workers: int) -> GpuExecutor:
    """Threads for processes: each pickles and unpickles all, on a device that they share."""
    return GpuExecutor(LocalPool([WorkerSpec(0, None, {})] * workers, SimulatedProcess))


def summed(ordinal: int, part: Floats) -> float:
    return float(np.sum(part, dtype=np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4, 16, 100])
def test_a_number_of_workers_has_the_bits_of_one_device(workers: int) -> None:
    start = np.random.default_rng(1).random(20_000)
    here, there = start.copy(), start.copy()
    runtime = GpuRuntime.current()
    assert runtime is not None
    scatter_batched(runtime, here, jobs.logistic)
    expected = [summed(0, start[at : at + 300]) for at in range(0, 20_000, 300)]
    with simulated(workers) as executor:
        assert len(executor.workers) == workers
        scatter_batched(executor, there, jobs.logistic)
        # Sums depend on where the items are cut, which the policy says.
        executor.policy = TilePolicy(items=300)
        found = scatter_map(executor, start, summed)
    assert np.array_equal(here, there)
    assert not np.array_equal(start, there)
    assert found == expected


def test_all_of_a_hundred_workers_have_a_share() -> None:
    with simulated(100) as executor:
        executor.policy = TilePolicy(items=1)
        work = partial(jobs.later, 0.05, jobs.worker_thread)
        found = scatter_map(executor, range(300), work)
    assert len(set(found)) == 100
