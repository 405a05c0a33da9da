"""Work over two processes of this host, each with an emulated device of its own, or a GPU."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ptx
from cudadrv import GpuRuntime, balanced_partition, scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, Progress, TilePolicy, WorkerReport, local_pool
from cudadrv.cluster.call import Call, Engine
from cudadrv.cluster.pickled import PickledFunction
from cudadrv.errors import (
    ArgumentError,
    ArgumentTypeError,
    KernelNotFoundError,
    OutOfMemoryError,
    RemoteError,
)
from cudadrv.pool.tile import ScatterError
from tests.contract.runtime.devices import device_with
from tests.patience import wait_until
from tests.process.cluster import jobs
from tests.process.cluster.jobs import Floats

from .workers import worker_with


def test_each_worker_is_a_process_with_a_device_of_its_own(local: GpuExecutor) -> None:
    workers = local.workers
    assert [each.number for each in workers] == [0, 1]
    assert len({each.pid for each in workers} | {os.getpid()}) == 3
    found = [future.result() for future in local.on_each(jobs.where)]
    assert [pid for pid, _, _ in found] == [each.pid for each in workers]
    assert all(of_tile == current for _, of_tile, current in found)
    assert [ordinal for _, ordinal, _ in found] == [each.device.ordinal for each in workers]


def test_submit_and_map_give_results_in_order(local: GpuExecutor) -> None:
    assert local.submit(divmod, 7, 3).result() == (2, 1)
    assert local.submit(int, "ff", base=16).result() == 255
    assert list(local.map(pow, range(20), [2] * 20)) == [n**2 for n in range(20)]


def test_a_map_with_a_buffer_reads_no_further_than_that(local: GpuExecutor) -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            yield number

    results = local.map(abs, numbers(), buffersize=3)
    assert read == []
    assert next(results) == 0
    assert read == [0, 1, 2, 3]
    assert list(results) == list(range(1, 10))


def test_a_worker_keeps_its_devices_memory_from_tile_to_tile(local: GpuExecutor) -> None:
    assert [each.result() for each in local.on_each(jobs.pool_keeps)] == [256 << 20] * 2


def test_a_scatter_has_the_bits_of_one_device(local: GpuExecutor) -> None:
    start = np.random.default_rng(1).random(10_000)
    here, there = start.copy(), start.copy()
    runtime = GpuRuntime.current()
    assert runtime is not None
    scatter_batched(runtime, here, jobs.logistic)
    scatter_batched(local, there, jobs.logistic)
    assert np.array_equal(here, there)
    assert not np.array_equal(start, there)


@pytest.mark.parametrize("n", [0, 1, 7, 100_003])
def test_items_of_any_number_and_layout_are_changed_in_place(local: GpuExecutor, n: int) -> None:
    base = np.arange(2.0 * n)
    scatter_batched(local, base[::-2], jobs.doubled)
    assert np.array_equal(base[1::2], 2.0 * np.arange(2.0 * n)[1::2])
    assert np.array_equal(base[::2], np.arange(2.0 * n)[::2])
    columns = np.asfortranarray(np.arange(3.0 * n).reshape(n, 3))
    scatter_batched(local, columns, jobs.doubled)
    assert np.array_equal(columns, 2.0 * np.arange(3.0 * n).reshape(n, 3))


def test_objects_and_lists_are_changed_in_place(local: GpuExecutor) -> None:
    numbers: npt.NDArray[Any] = np.array([1, 2**80, 3])
    assert numbers.dtype.hasobject
    scatter_batched(local, numbers, jobs.doubled)
    assert numbers.tolist() == [2, 2**81, 6]
    items = list(range(50))
    scatter_batched(local, items, jobs.negated)
    assert items == [-each for each in range(50)]


def test_results_come_in_the_order_of_the_items_and_of_tiles_of_one_size(
    local: GpuExecutor,
) -> None:
    local.policy = TilePolicy(items=8)
    assert scatter_map(local, range(30), jobs.first_and_length) == [
        (0, 8),
        (8, 8),
        (16, 8),
        (24, 6),
    ]
    data = np.arange(300_000.0)
    local.policy = TilePolicy(items=70_000)
    parts = scatter_map(local, data, jobs.copied)
    assert np.array_equal(np.concatenate(parts), data + 1)
    assert all(part.flags.writeable for part in parts)


def test_large_arguments_and_results_of_calls_arrive_whole(local: GpuExecutor) -> None:
    one, other = np.arange(1e5), np.arange(1e5, dtype=np.int16).reshape(100, 1000)
    found = local.submit(_both, one, [other, "text"]).result()
    assert np.array_equal(found[0], other)
    assert np.array_equal(found[1], one)
    again = local.submit(_both, one + 1, [other + 1, "text"]).result()
    assert np.array_equal(found[1], one)  # what came before is the caller's
    assert np.array_equal(again[1], one + 1)


def test_messages_larger_than_a_socket_buffer_do_not_wait(local: GpuExecutor) -> None:
    texts = [chr(97 + number) * (1 << 20) for number in range(12)]
    assert list(local.map(str.upper, texts)) == [each.upper() for each in texts]


def test_the_results_of_calls_in_a_row_are_each_the_callers(local: GpuExecutor) -> None:
    local.policy = TilePolicy(redone=0)
    arrays = [np.full(20_000, float(number)) for number in range(24)]
    found = list(local.map(partial(jobs.later, 0.02, np.negative), arrays))
    assert [each.min() for each in found] == [each.max() for each in found]
    assert [each[0] for each in found] == [-float(number) for number in range(24)]


def test_arguments_too_large_to_be_cached_wait_for_the_call_before(
    local: GpuExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_pool, "MAX_REUSED_BYTES", 1 << 15)
    local.policy = TilePolicy(redone=0, items=10_000)
    data = np.arange(120_000.0)
    scatter_batched(local, data, jobs.doubled)
    assert np.array_equal(data, 2 * np.arange(120_000.0))


def _both(one: Floats, several: list[Any]) -> tuple[npt.NDArray[np.int16], Floats]:
    return several[0], one


def test_functions_of_no_module_are_taken_where_cloudpickle_is_installed(
    local: GpuExecutor,
) -> None:
    pytest.importorskip("cloudpickle")
    offset = np.arange(3)
    assert local.submit(lambda: offset.sum() + 1).result() == 4


def test_what_cannot_be_pickled_is_rejected_in_words(local: GpuExecutor) -> None:
    with pytest.raises(ArgumentTypeError, match="cannot be sent to workers"):
        local.submit(id, threading.Lock()).result()
    with pytest.raises(ArgumentTypeError, match="give a function"):
        local.submit(3)  # type: ignore[arg-type]  # what is tested
    assert local.submit(divmod, 7, 3).result() == (2, 1)


def test_a_call_is_not_sent_early_while_another_worker_is_idle(
    local: GpuExecutor, tmp_path: Path
) -> None:
    assert len(local.workers) == 2
    pool = local._engine
    assert isinstance(pool, local_pool.LocalPool)
    for number in range(3):
        # A worker becomes idle soon after its result is there.
        wait_until(lambda: pool._waiting >= 2)
        folder = tmp_path / str(number)
        folder.mkdir()
        futures = [local.submit(jobs.meet, str(folder), 2) for _ in range(2)]
        assert len({each.result() for each in futures}) == 2


def test_a_function_that_workers_cannot_import_fails_the_same_way_each_time(
    local: GpuExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local.workers  # which do not see the folder
    (tmp_path / "only_here.py").write_text("def one(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    one = import_module("only_here").one
    for _ in range(4):
        error = local.submit(one).exception()
        assert isinstance(error, ModuleNotFoundError)
        assert "only_here" in str(error)


def test_errors_arrive_with_attributes_cause_and_the_workers_traceback(
    local: GpuExecutor,
) -> None:
    error = local.submit(jobs.out_of_memory_with_a_cause).exception()
    assert isinstance(error, OutOfMemoryError)
    assert (error.code, error.call, error.doing) == (2, "cuMemAllocAsync", "allocating 5 bytes")
    assert isinstance(error.__cause__, ValueError)
    assert "in out_of_memory_with_a_cause" in error.__notes__[0]
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))
    odd = local.submit(jobs.odd).exception()
    assert isinstance(odd, RemoteError)
    assert odd.type_name == "OddError"
    assert "1 and 2" in str(odd)
    with pytest.raises(SystemExit) as left:
        local.submit(jobs.leave).result()
    assert left.value.code == 3


def test_a_tile_that_raises_is_reported_with_what_the_others_gave(
    local: GpuExecutor, tmp_path: Path
) -> None:
    local.policy = TilePolicy(items=5)
    with pytest.raises(ScatterError) as caught:
        scatter_map(local, range(20), partial(jobs.raising, str(tmp_path), 10, 1))
    (failure,) = caught.value.failures
    assert failure.range == range(10, 15)
    assert failure.worker in {each.name for each in local.workers}
    assert isinstance(failure.error, KernelNotFoundError)
    assert failure.error.available == ("a", "b")
    assert caught.value.results == {range(5): 10, range(5, 10): 35, range(15, 20): 85}
    assert len(list(tmp_path.iterdir())) == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.results == caught.value.results


def test_a_tile_that_raises_is_tried_again_if_that_is_requested(
    local: GpuExecutor, tmp_path: Path
) -> None:
    local.policy = TilePolicy(items=5, retried=2)
    found = scatter_map(local, range(20), partial(jobs.raising, str(tmp_path), 10, 2))
    assert found == [10, 35, 60, 85]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_a_full_memory_is_an_error_of_its_tile(local: GpuExecutor) -> None:
    local.policy = TilePolicy(items=5)
    with pytest.raises(ScatterError) as caught:
        scatter_map(local, range(10), jobs.full)
    (failure,) = caught.value.failures
    assert isinstance(failure.error, OutOfMemoryError)
    assert caught.value.results == {range(5, 10): 5}


@pytest.mark.slow
def test_an_image_is_compiled_once_for_all_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "images"
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(folder))
    with GpuExecutor.local(2) as executor:
        ended = [each.result() for each in executor.on_each(jobs.compiled)]
    assert ended == ["logistic"] * 2
    counts = ptx.ImageCache(folder).stats().lifetime
    assert (counts.compiled, counts.hits) == (1, 1)


@pytest.mark.slow
def test_progress_is_reported_for_each_tile(local: GpuExecutor) -> None:
    told: list[Progress] = []
    local.policy = TilePolicy(items=4, progress=told.append)
    scatter_map(local, range(10), jobs.first_and_length)
    assert [each.done for each in told] == [1, 2, 3, 3]
    assert [each.has_ended for each in told] == [False, False, False, True]
    assert (told[-1].tiles, told[-1].items, told[-1].items_done, told[-1].failed) == (3, 10, 10, 0)


class ThreeWorkers(Engine):
    """Workers with different devices, which nothing asks for calls."""

    def workers(self) -> tuple[WorkerReport, ...]:
        devices = [device_with(0, sm, 1.0) for sm in (96, 196, 296)]
        return tuple(worker_with(device, number) for number, device in enumerate(devices))

    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        raise NotImplementedError

    def start(self, call: Call) -> None:
        raise NotImplementedError

    def close(self, *, wait: bool, cancel: bool) -> None:
        pass

    def abort(self) -> None:
        raise NotImplementedError


@pytest.mark.slow
def test_shares_follow_the_scores_of_the_workers() -> None:
    runtime = GpuExecutor(ThreeWorkers()).runtime()
    assert [(n, len(part)) for n, part in balanced_partition(runtime, 600)] == [
        (2, 300),
        (1, 200),
        (0, 100),
    ]


@pytest.mark.slow
def test_after_a_shutdown_nothing_more_is_accepted() -> None:
    with GpuExecutor.local(1) as executor:
        pid = executor.submit(jobs.pid).result()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(jobs.pid)
    executor.shutdown()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(TypeError, match="a GpuExecutor cannot be copied or pickled"):
        pickle.dumps(executor)
    with pytest.raises(ArgumentTypeError, match="give fewer items"):
        scatter_map(executor, range(10**25), lambda ordinal, tile: len(tile))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "match"),
    [
        ({"items": 0}, "TilePolicy: items"),
        ({"seconds": 0.0}, "TilePolicy: seconds"),
        ({"redone": -1}, "TilePolicy: redone"),
        ({"progress": 3}, "TilePolicy: progress"),
    ],
)
def test_a_policy_that_cannot_be_is_rejected(policy: dict[str, object], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        TilePolicy(**policy)  # type: ignore[arg-type]  # what is tested
