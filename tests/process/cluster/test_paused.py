"""Dask workers that begin no task, as their process has more memory than they may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudadrv import GpuRuntime, scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, TilePolicy
from cudadrv.errors import ArgumentError, NoWorkerError, WorkerLostError
from cudadrv.pool.tile import ScatterError
from tests.patience import wait_until
from tests.process.cluster import jobs

dask = pytest.importorskip("dask", reason="needs distributed")
distributed = pytest.importorskip("distributed", reason="needs distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours

_LITTLE = "1MiB"  # less than this process has
_MUCH = "1TiB"


@contextmanager
def cluster_of(*limits: int | str) -> Iterator[Any]:
    """Workers of this process with a memory_limit each; 0 is none."""
    settings = {"distributed.logging.distributed": "critical"}
    workers = {
        number: {"cls": distributed.Worker, "options": {"memory_limit": limit, "nthreads": 1}}
        for number, limit in enumerate(limits)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    with (
        dask.config.set(settings),
        distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def wait_until_paused(client: Any, count: int) -> set[str]:
    """The addresses of the paused workers, once there are so many."""
    paused = set()

    def are_paused() -> bool:
        nonlocal paused
        workers = client.sync(client.scheduler.identity)["workers"]
        paused = {address for address, each in workers.items() if each["status"] == "paused"}
        return len(paused) == count

    wait_until(are_paused)
    return paused


@pytest.mark.slow
def test_sixteen_workers_of_one_process_have_the_bits_of_one_device() -> None:
    start = np.random.default_rng(1).random(20_000)
    here, there = start.copy(), start.copy()
    runtime = GpuRuntime.current()
    assert runtime is not None
    scatter_batched(runtime, here, jobs.logistic)
    with cluster_of(*[0] * 16) as client, GpuExecutor.dask(client) as executor:
        assert len(executor.workers) == 16
        assert {each.device.ordinal for each in executor.workers} == set(runtime.device_ordinals())
        scatter_batched(executor, there, jobs.logistic)
    assert np.array_equal(here, there)


def test_tiles_that_no_worker_accepts_fail_with_the_workers_and_the_remedy() -> None:
    with cluster_of(_LITTLE, _LITTLE) as client:
        paused = wait_until_paused(client, 2)
        with GpuExecutor.dask(client, grace_seconds=0.5) as executor:
            executor.policy = TilePolicy(items=5)
            with pytest.raises(ScatterError) as caught:
                scatter_map(executor, range(100), jobs.first_and_length)
    assert len(caught.value.failures) == 20
    for failure in caught.value.failures:
        assert isinstance(failure.error, NoWorkerError)
        assert failure.error.states == dict.fromkeys(paused, "paused")
    text = str(caught.value.failures[0].error)
    assert all(f"{address}: paused, with " in text for address in paused)
    assert "memory_limit of 1 MiB" in text
    assert "memory_limit=0" in text


@pytest.mark.slow
def test_a_worker_that_is_paused_begins_no_tile_and_keeps_none(tmp_path: Path) -> None:
    with (
        cluster_of(_MUCH, _MUCH) as client,
        GpuExecutor.dask(client, grace_seconds=2.0) as executor,
    ):
        assert len(executor.workers) == 2
        executor.policy = TilePolicy(items=1)
        found = scatter_map(executor, np.arange(60), partial(jobs.pausing, str(tmp_path), 0))
        (paused,) = wait_until_paused(client, 1)
    tiles = Counter(found)
    assert found[0] == paused
    assert tiles.total() == 60
    assert 0 < tiles[paused] < 30 < tiles.total() - tiles[paused]
    # What it had begun was not begun again.
    assert len(list(tmp_path.iterdir())) == 60


def test_a_call_for_a_paused_worker_alone_does_not_wait_for_ever() -> None:
    with cluster_of(0, _LITTLE) as client:
        (paused,) = wait_until_paused(client, 1)
        with GpuExecutor.dask(client, grace_seconds=0.5) as executor:
            workers = executor.workers
            futures = executor.on_each(divmod, 7, 3)
            for worker, future in zip(workers, futures, strict=True):
                if worker.name == paused:
                    error = future.exception()
                    assert isinstance(error, NoWorkerError)
                    assert f"{paused}: paused" in str(error)
                else:
                    assert future.result() == (2, 1)


def test_a_cluster_without_workers_raises() -> None:
    with cluster_of() as client, GpuExecutor.dask(client, grace_seconds=0.1) as executor:
        with pytest.raises(NoWorkerError, match="no worker for 0.1 s"):
            executor.workers  # noqa: B018  # it waits for one
        error = executor.submit(divmod, 7, 3).exception()
        assert isinstance(error, WorkerLostError)
        assert "no worker for 0.1 s" in str(error)


@pytest.mark.parametrize("grace", [0, -1.0, float("nan"), "1"])
def test_a_grace_that_cannot_be_is_rejected(grace: float) -> None:
    with pytest.raises(ArgumentError, match="grace_seconds"):
        GpuExecutor.dask(object(), grace_seconds=grace)
