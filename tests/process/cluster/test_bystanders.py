"""Calls that wait, or run, at a Dask worker which another call ends: none of them pays for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudadrv import scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, TilePolicy
from cudadrv.cluster.dask_worker import Gate
from cudadrv.errors import WorkerLostError
from cudadrv.pool.tile import ScatterError
from tests.patience import SECONDS
from tests.process.cluster import jobs
from tests.process.cluster.dask_processes import three_processes

pytest.importorskip("dask", reason="needs distributed")
distributed = pytest.importorskip("distributed", reason="needs distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours

_Plugin: Any = distributed.WorkerPlugin


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Three processes that make two calls at once each: one call ends two of them."""
    # Each loss is told.
    with three_processes(threads=2, **{"scheduler.allowed-failures": 0}) as client:
        yield client


@pytest.fixture
def executor(client: Any) -> Iterator[GpuExecutor]:
    client.wait_for_workers(1, timeout=SECONDS)
    with GpuExecutor.dask(client, policy=TilePolicy(items=1, redone=0)) as executor:
        yield executor


@pytest.mark.slow
def test_of_many_short_calls_only_the_one_fails_that_ends_its_workers(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    work = partial(jobs.dying, str(tmp_path), 60, 99)
    items = np.arange(120)
    # Once they are known to be short, calls go to a worker by the dozen.
    scatter_map(executor, items, jobs.doubled)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(executor, items, work)
    (failure,) = caught.value.failures
    assert failure.range == range(60, 61)
    assert isinstance(failure.error, WorkerLostError)
    expected = np.arange(120) + 1000
    expected[60] = 60
    assert np.array_equal(items, expected)


@pytest.mark.slow
def test_calls_that_run_beside_the_one_that_ends_its_workers_are_made_again(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    work = partial(jobs.later, 0.1, jobs.dying, str(tmp_path), 3, 99)
    items = np.arange(8)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(executor, items, work)
    assert [each.range.start for each in caught.value.failures] == [3]
    assert items.tolist() == [1000, 1001, 1002, 3, 1004, 1005, 1006, 1007]


class Deadly(_Plugin):  # type: ignore[misc]  # of a library without types
    """Ends a worker that is to begin a call of an executor, as too large arguments do."""

    def transition(self, key: str, start: str, finish: str, **_: object) -> None:
        if finish == "executing" and key.startswith("cudadrv-"):
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_call_is_given_up_where_no_worker_lives_to_begin_it(
    client: Any, executor: GpuExecutor
) -> None:
    assert executor.workers
    client.register_plugin(Deadly(), name="deadly")
    future = executor.submit(abs, -3)
    try:
        error = future.exception()
        assert isinstance(error, WorkerLostError)
        assert error.attempts == 1
    finally:
        client.unregister_worker_plugin("deadly")


@pytest.mark.slow
def test_one_goes_through_a_gate_alone() -> None:
    gate = Gate()
    inside: list[bool] = []
    beside: list[int] = []
    both = threading.Barrier(2, timeout=SECONDS)

    def go(alone: bool) -> None:
        for _ in range(50):
            with gate.entered(alone=alone):
                inside.append(alone)
                if alone:
                    beside.append(len(inside) - 1)
                inside.pop()

    def together() -> None:
        with gate.entered(alone=False):
            both.wait()  # which it does not pass, but with the other one inside

    threads = [threading.Thread(target=go, args=(alone,)) for alone in (True, True, False, False)]
    threads += [threading.Thread(target=together) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert beside == [0] * 100
    assert not both.broken
