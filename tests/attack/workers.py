"""Workers of an executor, killed, stopped, broken and cut off at random while they change items.

Every item is changed exactly once, whatever happens to the workers, and no process is left: first
of processes of this host, then, where there is time and Dask, of a Dask cluster.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from cudadrv import GpuExecutor, Progress, TilePolicy, scatter_batched

from ..cluster import jobs
from .outcome import Outcome

_WORKERS: Final = 3
_TILES: Final = 40
_TILE: Final = 500
_KILL_SECONDS: Final = 2.0
_HUNG_SECONDS: Final = 3.0
_LEAST_FOR_DASK: Final = 30.0
_REDONE: Final = 1000  # that a tile fails for its bad luck would hide one that is lost


class Killer:
    """A thread that does something to a random worker every two seconds."""

    def __init__(
        self, executor: GpuExecutor, rng: random.Random, signals: list[signal.Signals]
    ) -> None:
        self.done = 0
        self._executor = executor
        self._random = rng
        self._signals = signals
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_KILL_SECONDS):
            workers = self._executor.workers
            if len(workers) < _WORKERS:
                continue  # Dask is replacing one, and somebody must be left to work
            sign = self._random.choice(self._signals)
            for worker in self._random.sample(workers, len(workers)):
                with contextlib.suppress(ProcessLookupError):  # it is just replaced
                    os.kill(worker.pid, sign)
                    self.done += 1
                    break


def scatter_once(executor: GpuExecutor, rng: random.Random, folder: Path) -> tuple[bool, Progress]:
    """One scatter in which some tiles harm their workers; whether each item is changed once."""
    told: list[Progress] = []
    executor.policy = TilePolicy(
        items=_TILE, seconds=_HUNG_SECONDS, redone=_REDONE, progress=told.append
    )
    items = np.arange(_TILES * _TILE)
    bad = _TILE * rng.randrange(_TILES)
    harm = rng.choice([jobs.dying, jobs.breaking, jobs.hanging, None, None, None])
    with tempfile.TemporaryDirectory(dir=folder) as notes:
        if harm is None:
            scatter_batched(executor, items, partial(jobs.noted, notes, rng.uniform(0.0, 0.1)))
        else:
            scatter_batched(executor, items, partial(harm, notes, bad, 1))
    return bool(np.array_equal(items, np.arange(_TILES * _TILE) + 1000)), told[-1]


def _attack(executor: GpuExecutor, what: str, seconds: float, seed: int, outcome: Outcome) -> None:
    rng, chosen = random.Random(seed), random.Random(seed + 1)
    # A stopped process is one that nobody hears: a hang, and the way from it cut.
    signals = [signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, Killer(executor, chosen, signals) as killer:
        number = 0
        while time.monotonic() < deadline and not outcome.failures:
            number += 1
            try:
                is_right, told = scatter_once(executor, rng, Path(folder))
            except Exception as error:
                outcome.failures.append(f"{what}: scatter {number}: {error!r}; seed {seed}")
                break
            outcome.count(f"{what}: tiles", told.tiles)
            outcome.count(f"{what}: tiles begun again", told.repeated)
            if not is_right:
                outcome.failures.append(f"{what}: scatter {number}: items differ; seed {seed}")
    outcome.count(f"{what}: signals", killer.done)


def attack(seconds: float, seed: int) -> Outcome:
    """Harm workers for about so long."""
    outcome = Outcome()
    before = set(_children())
    with_dask = seconds >= _LEAST_FOR_DASK and find_spec("distributed") is not None
    share = seconds / 2 if with_dask else seconds
    with GpuExecutor.local(_WORKERS) as executor:
        assert executor.workers
        _attack(executor, "local", share, seed, outcome)
    _look_for_processes("local", before, outcome)
    if with_dask:
        with _cluster() as executor:
            assert executor.workers
            _attack(executor, "dask", share, seed, outcome)
        _look_for_processes("dask", before, outcome)
    else:
        outcome.skipped["dask"] = f"needs distributed and {_LEAST_FOR_DASK:.0f} s"
    return outcome


@contextmanager
def _cluster() -> Iterator[GpuExecutor]:
    """A cluster that soon gives up on a worker that it does not hear."""
    dask, distributed = import_module("dask"), import_module("distributed")
    settings = {
        "distributed.scheduler.worker-ttl": "10s",
        "distributed.scheduler.allowed-failures": _REDONE,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        GpuExecutor.dask(client) as executor,
    ):
        yield executor


def _look_for_processes(what: str, before: set[int], outcome: Outcome) -> None:
    deadline = time.monotonic() + 20
    while (left := set(_children()) - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        outcome.failures.append(f"{what}: processes are left: {sorted(left)}")


def _children() -> list[int]:
    """Processes that this one has started, and has not waited for; Python's own helper is none."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        for pid in task.read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"resource_tracker" not in command:
                found.append(int(pid))
    return found
