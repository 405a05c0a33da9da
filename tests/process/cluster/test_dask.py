"""Work over Dask's workers: three processes with nannies, and many in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cudadrv import GpuRuntime, scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, TilePolicy
from cudadrv.errors import CudaError, KernelNotFoundError, OutOfMemoryError, WorkerLostError
from cudadrv.pool.tile import ScatterError
from tests.patience import SECONDS, wait_until
from tests.process.cluster import jobs
from tests.process.cluster.dask_processes import three_processes

pytest.importorskip("dask", reason="needs distributed")
distributed = pytest.importorskip("distributed", reason="needs distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of libraries that are not ours
    pytest.mark.slow,  # each starts or ends Dask's processes
]

Losing = Callable[[str, int, int, int, npt.NDArray[np.int64]], None]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Three processes."""
    with three_processes(threads=1) as client:
        yield client


@pytest.fixture
def executor(client: Any) -> Iterator[GpuExecutor]:
    client.wait_for_workers(1, timeout=SECONDS)  # nannies on a busy machine may give one up
    with GpuExecutor.dask(client) as executor:
        yield executor


def test_a_scatter_has_the_bits_of_one_device(executor: GpuExecutor) -> None:
    start = np.random.default_rng(1).random(20_000)
    here, there = start.copy(), start.copy()
    runtime = GpuRuntime.current()
    assert runtime is not None
    scatter_batched(runtime, here, jobs.logistic)
    scatter_batched(executor, there, jobs.logistic)
    assert np.array_equal(here, there)


def test_calls_and_tiles_come_back_in_order_and_with_their_errors(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    workers = executor.workers
    assert [each.result()[0] for each in executor.on_each(jobs.where)] == [
        each.pid for each in workers
    ]
    assert list(executor.map(pow, range(40), [2] * 40)) == [n**2 for n in range(40)]
    data = np.arange(300_000.0)
    changed = data.copy()
    scatter_batched(executor, changed, jobs.doubled)
    assert np.array_equal(changed, data * 2)
    assert np.array_equal(np.concatenate(scatter_map(executor, data, jobs.copied)), data + 1)
    error = executor.submit(jobs.out_of_memory_with_a_cause).exception()
    assert isinstance(error, OutOfMemoryError)
    assert (error.call, str(error.__cause__)) == ("cuMemAllocAsync", "the cause")
    executor.policy = TilePolicy(items=5)
    with pytest.raises(ScatterError) as caught:
        scatter_map(executor, range(20), partial(jobs.raising, str(tmp_path), 10, 1))
    (failure,) = caught.value.failures
    assert isinstance(failure.error, KernelNotFoundError)
    # On a busy machine some may have joined since.
    assert failure.worker in {each.name for each in (*workers, *executor.workers)}
    assert len(caught.value.results) == 3


def test_few_tiles_are_shared_by_all_workers_from_the_beginning(executor: GpuExecutor) -> None:
    count = len(executor.workers)
    executor.policy = TilePolicy(items=1)
    found = scatter_map(executor, np.arange(count), jobs.slow_pid)
    assert len(set(found)) == count


def test_tiles_that_are_known_to_be_short_go_to_workers_together(executor: GpuExecutor) -> None:
    executor.policy = TilePolicy(items=1)
    scatter_map(executor, range(60), jobs.task_key)
    assert len(set(scatter_map(executor, range(600), jobs.task_key))) <= 300


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_gives_all_tiles_up(executor: GpuExecutor, tmp_path: Path) -> None:
    executor.policy = TilePolicy(items=10)
    items = np.arange(2000)
    assert executor.workers
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        wait_until(lambda: any(tmp_path.iterdir()))
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        scatter_batched(executor, items, partial(jobs.noted, str(tmp_path), 0.05))
    begun = len(list(tmp_path.iterdir()))
    assert begun < 200
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(jobs.pid)


@pytest.mark.parametrize("losing", [jobs.dying, jobs.breaking])
def test_a_tile_of_a_lost_worker_is_done_again_by_another(
    executor: GpuExecutor, tmp_path: Path, losing: Losing
) -> None:
    executor.policy = TilePolicy(items=10_000)
    items = np.arange(60_000)
    scatter_batched(executor, items, partial(losing, str(tmp_path), 20_000, 1))
    assert np.array_equal(items, np.arange(60_000) + 1000)
    assert len(list(tmp_path.iterdir())) >= 2


def test_a_tile_of_a_worker_that_is_cut_off_is_done_by_another_and_counts_once(
    client: Any, executor: GpuExecutor, tmp_path: Path
) -> None:
    executor.policy = TilePolicy(items=10_000)
    items = np.arange(60_000)
    scatter_batched(executor, items, partial(jobs.parting, str(tmp_path), 20_000, 1))
    assert np.array_equal(items, np.arange(60_000) + 1000)
    assert len(list(tmp_path.iterdir())) == 2
    # It has left, and its nanny too.
    client.cluster.scale(len(client.cluster.worker_spec) + 1)


def test_a_tile_that_finds_the_memory_full_is_done_again_if_that_is_requested(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    work = partial(jobs.starving, str(tmp_path), 20, 1)
    executor.policy = TilePolicy(items=10)
    items = np.arange(40)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(executor, items, work)
    (failure,) = caught.value.failures
    assert isinstance(failure.error, OutOfMemoryError)
    assert items[20:30].tolist() == list(range(20, 30))  # as it was
    again = tmp_path / "again"
    again.mkdir()
    executor.policy = TilePolicy(items=10, retried=1)
    items = np.arange(40)
    scatter_batched(executor, items, partial(jobs.starving, str(again), 20, 1))
    assert np.array_equal(items, np.arange(40) + 1000)


def test_a_tile_that_hangs_ends_its_worker_and_is_done_again(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    executor.policy = TilePolicy(items=10_000, seconds=10.0)
    items = np.arange(60_000)
    scatter_batched(executor, items, partial(jobs.hanging, str(tmp_path), 20_000, 1))
    assert np.array_equal(items, np.arange(60_000) + 1000)
    assert len({path.name.split("-")[1] for path in tmp_path.iterdir()}) == 2


def test_a_tile_that_hangs_always_is_reported_and_each_other_is_whole(
    client: Any, executor: GpuExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How often Dask itself makes a call again is its own setting.
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    executor.policy = TilePolicy(items=10, seconds=10.0, redone=0)
    items = np.arange(40)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(executor, items, partial(jobs.hanging, str(tmp_path), 20, 99))
    lost = {failure.range.start: failure.error for failure in caught.value.failures}
    # Dask counts a lost worker against all that waits there; this does not.
    assert list(lost) == [20]
    assert isinstance(lost[20], WorkerLostError)
    assert lost[20].attempts == 1
    for start in range(0, 40, 10):
        more = 0 if start in lost else 1000
        assert items[start : start + 10].tolist() == list(range(start + more, start + more + 10))


def test_a_context_that_is_always_lost_is_reported_with_what_broke_it(
    executor: GpuExecutor, tmp_path: Path
) -> None:
    executor.policy = TilePolicy(items=10, redone=0)
    items = np.arange(40)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(executor, items, partial(jobs.breaking, str(tmp_path), 20, 9))
    (failure,) = caught.value.failures
    assert isinstance(failure.error, WorkerLostError)
    assert isinstance(failure.error.__cause__, CudaError)
    assert items[20:30].tolist() == list(range(20, 30))
