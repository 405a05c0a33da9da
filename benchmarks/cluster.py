"""What work over processes costs, and how well it scales: `python -m benchmarks.cluster`.

A line of JSON for each measurement, with its engine and number of workers:

- `noop`: microseconds a tile that does nothing, the median of rounds.
- `sleep`: tiles that sleep 100 ms, as kernels of another machine's: the time that they need at
  least over the time that they took.
- `compute`: efficiency of a job of about two seconds on one worker, as `benchmarks.scatter` has it.
- `copy`: the same of 64 MiB in and out with little work.

``--engine simulated`` has threads for processes, to see what the executor itself costs with many
workers. ``--engine threads`` measures the last two with the threads of a runtime, for comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pickle
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cudadrv import GpuExecutor, GpuPolicy, GpuRuntime, scatter_batched, scatter_map
from cudadrv.cluster import TilePolicy
from cudadrv.cluster.call import Call, Reply
from cudadrv.cluster.local_pool import LocalPool, WorkerProcess, WorkerSpec
from cudadrv.cluster.worker import RequestHandler
from cudadrv.cluster.worker_report import report_of
from cudadrv.runtime import GpuDispatchPolicy

from .scatter import logistic

KINDS: Final = ("noop", "sleep", "compute", "copy")
_SLEEP_SECONDS: Final = 0.1


def nothing(ordinal: int, part: object) -> None:
    """A tile that does nothing."""


def sleeping(ordinal: int, part: object) -> None:
    """A tile of 100 ms."""
    time.sleep(_SLEEP_SECONDS)


class SimulatedProcess(WorkerProcess):
    """A worker that is a thread of this process; all is pickled as for another one."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.report = report_of(spec.ordinal)
        self._handler = RequestHandler(self.report.name, spec.ordinal)
        self._calls: deque[Call] = deque()

    @property
    def is_alive(self) -> bool:
        """A thread does not die."""
        return True

    def wait_for_start(self) -> None:
        """It is there at once."""

    def send(self, call: Call) -> None:
        """Keep a call until its reply is wanted."""
        self._calls.append(call)

    def receive(self, seconds: float | None) -> tuple[Reply, Callable[[], object]]:
        """Make the call that was sent first."""
        request = self._calls.popleft().request(has_function=False)
        reply = self._handler.reply_to(pickle.loads(pickle.dumps(request, 5)))
        reply = pickle.loads(pickle.dumps(reply, 5))
        return reply, reply.result

    def end(self) -> None:
        """There is nothing to end."""

    kill = close = end


@contextlib.contextmanager
def executor_of(engine: str, workers: int) -> Iterator[GpuExecutor]:
    """An executor; Dask's workers are threads where there are more than 16."""
    if engine == "simulated":
        specs = [WorkerSpec(0, None, {})] * workers
        with GpuExecutor(LocalPool(specs, SimulatedProcess)) as executor:
            yield executor
        return
    if engine == "local":
        with GpuExecutor.local(devices_for(workers)) as executor:
            yield executor
        return
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=workers <= 16,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
        GpuExecutor.dask(client) as executor,
    ):
        yield executor


def devices_for(workers: int) -> list[int] | int:
    """So many workers: on GPUs in turn, where there are fewer; on the emulator any number."""
    runtime = GpuRuntime.current()
    count = 0 if runtime is None else runtime.device_count()
    return workers if workers <= count else [n % max(1, count) for n in range(workers)]


def seconds(function: Callable[[], object], repeats: int) -> float:
    """The median of some calls."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def noop_us(executor: GpuExecutor, tiles: int, repeats: int) -> float:
    """Microseconds a tile that does nothing."""
    executor.policy = TilePolicy(items=1)
    scatter_map(executor, range(tiles), nothing)
    return 1e6 / tiles * seconds(lambda: scatter_map(executor, range(tiles), nothing), repeats)


def sleep_efficiency(executor: GpuExecutor, workers: int, tiles: int) -> float:
    """The least time over the time of tiles that sleep, each worker having so many."""
    executor.policy = TilePolicy(items=1)
    scatter_map(executor, range(workers), nothing)
    took = seconds(lambda: scatter_map(executor, range(tiles * workers), sleeping), 1)
    return tiles * _SLEEP_SECONDS / took


def job_seconds(
    target: GpuExecutor | GpuRuntime,
    items: npt.NDArray[np.float64],
    steps: int,
    repeats: int,
    tiles: int | None,
) -> float:
    """Seconds of a job that changes items in so many tiles, after one that warms up."""
    work = partial(logistic, steps)
    if isinstance(target, GpuExecutor):
        target.policy = TilePolicy(items=None if tiles is None else -(-len(items) // tiles))
    scatter_batched(target, items.copy(), work)
    scratch = items.copy()
    return seconds(lambda: scatter_batched(target, scratch, work), repeats)


def threads_of(workers: int) -> GpuRuntime:
    """The first devices of this process."""
    runtime = GpuRuntime.resolve(GpuPolicy.REQUIRED)
    assert runtime is not None  # REQUIRED raises instead
    return GpuRuntime(devices=runtime.devices[:workers], policy=GpuDispatchPolicy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--engine", choices=("local", "dask", "simulated", "threads"), default="local"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=KINDS, nargs="+", default=["noop", "sleep"])
    parser.add_argument("--tiles", type=int, default=10, help="of sleep, a worker")
    parser.add_argument("--noops", type=int, default=2000, help="tiles of noop")
    parser.add_argument("--elements", type=int, default=1 << 22, help="of compute")
    parser.add_argument("--steps", type=int, default=40_000, help="of compute")
    parser.add_argument("--copy-elements", type=int, default=1 << 23, help="of copy: 64 MiB")
    parser.add_argument("--copy-steps", type=int, default=400, help="of copy")
    parser.add_argument(
        "--tiles-a-worker", type=int, help="of compute and copy; else as an executor chooses"
    )
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    jobs = {
        "compute": (rng.random(options.elements), options.steps),
        "copy": (rng.random(options.copy_elements), options.copy_steps),
    }
    first: dict[str, tuple[int, float]] = {}
    for workers in options.workers:
        with contextlib.ExitStack() as stack:
            target = (
                threads_of(workers)
                if options.engine == "threads"
                else stack.enter_context(executor_of(options.engine, workers))
            )
            report: dict[str, object] = {"engine": options.engine, "workers": workers}
            if isinstance(target, GpuExecutor):
                began = time.perf_counter()
                assert len(target.workers) == workers
                report["start_s"] = round(time.perf_counter() - began, 2)
                if "noop" in options.only:
                    report["noop_us"] = round(noop_us(target, options.noops, options.repeats), 1)
                if "sleep" in options.only:
                    report["sleep_efficiency"] = round(
                        sleep_efficiency(target, workers, options.tiles), 3
                    )
            tiles = options.tiles_a_worker and options.tiles_a_worker * workers
            for kind in sorted(jobs.keys() & set(options.only)):
                took = job_seconds(target, *jobs[kind], options.repeats, tiles)
                one, one_took = first.setdefault(kind, (workers, took))
                report[f"{kind}_s"] = round(took, 4)
                report[f"{kind}_efficiency"] = round(one_took * one / (took * workers), 3)
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
