"""Workers of an executor, harmed at random while they change items.

They are killed, stopped for a while or for good, cut off from their scheduler, find their memory
full, break their context, hang. Whatever happens to the workers, every item is changed exactly
once, or its tile is reported with its error. No process is left. Processes of this host come first,
then a Dask cluster, where there is Dask.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from cudadrv import GpuExecutor, scatter_batched
from cudadrv.cluster import Progress, TilePolicy, WorkerReport
from cudadrv.errors import OutOfMemoryError
from cudadrv.pool import ScatterError
from tests.process.cluster import jobs

from .report import Report

_WORKERS: Final = 3
_TILES: Final = 40
_TILE: Final = 500
_HARM_SECONDS: Final = 2.0
_HUNG_SECONDS: Final = 3.0
_STOPPED_SECONDS: Final = 1.0
# Far beyond what one tile meets while it runs; so a tile fails that pays for what others meet.
_REDONE: Final = 5

Harm = Callable[[WorkerReport], object]


def _signalled(sign: signal.Signals, worker: WorkerReport) -> None:
    os.kill(worker.pid, sign)


def _stopped_for_a_while(worker: WorkerReport) -> None:
    os.kill(worker.pid, signal.SIGSTOP)
    time.sleep(_STOPPED_SECONDS)
    os.kill(worker.pid, signal.SIGCONT)


# A stopped process is one that nobody hears: a hang, and the way from it cut.
_HARMS: Final[Mapping[str, Harm]] = {
    "killed": partial(_signalled, signal.SIGKILL),
    "stopped for good": partial(_signalled, signal.SIGSTOP),
    "stopped for a while": _stopped_for_a_while,
}


class Attacker:
    """A thread that does something to a random worker from time to time."""

    def __init__(
        self, executor: GpuExecutor, rng: random.Random, harms: Mapping[str, Harm], seconds: float
    ) -> None:
        self.done: dict[str, int] = {}
        self._executor = executor
        self._random = rng
        self._harms = harms
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Attacker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            workers = self._executor.workers
            if len(workers) < 2:
                continue  # Dask is replacing others, and somebody must be left to work
            name = self._random.choice(sorted(self._harms))
            worker = self._random.choice(workers)
            with contextlib.suppress(ProcessLookupError):  # it is just replaced
                self._harms[name](worker)
                self.done[name] = self.done.get(name, 0) + 1


def scatter_once(executor: GpuExecutor, rng: random.Random, folder: Path) -> tuple[str, Progress]:
    """One scatter in which a tile may harm its worker; what is wrong, if anything, and figures."""
    told: list[Progress] = []
    retried = rng.randrange(2)
    executor.policy = TilePolicy(
        items=_TILE, seconds=_HUNG_SECONDS, redone=_REDONE, retried=retried, progress=told.append
    )
    items = np.arange(_TILES * _TILE)
    bad = _TILE * rng.randrange(_TILES)
    harm = rng.choice([jobs.dying, jobs.breaking, jobs.hanging, jobs.starving, None, None])
    expected, error = items + 1000, None
    with tempfile.TemporaryDirectory(dir=folder) as notes:
        if harm is None:
            scatter_batched(executor, items, partial(jobs.noted, notes, rng.uniform(0.0, 0.1)))
        else:
            try:
                scatter_batched(executor, items, partial(harm, notes, bad, 1))
            except ScatterError as failed:
                error = failed
    if error is not None:
        if harm is not jobs.starving or retried or not _is_told(error, bad):
            return f"{error!r} with {error.failures}", told[-1]
        expected[bad : bad + _TILE] -= 1000
    return "" if np.array_equal(items, expected) else "items differ", told[-1]


def _is_told(error: ScatterError, bad: int) -> bool:
    """Whether the tile that found the memory full failed so, and no other."""
    return [(each.range.start, type(each.error)) for each in error.failures] == [
        (bad, OutOfMemoryError)
    ]


def _attack(
    executor: GpuExecutor,
    what: str,
    harms: Mapping[str, Harm],
    given: tuple[float, int],
    outcome: Report,
) -> None:
    seconds, seed = given
    rng, chosen = random.Random(seed), random.Random(seed + 1)
    attacker = Attacker(executor, chosen, harms, min(_HARM_SECONDS, seconds / 4))
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, attacker:
        number = 0
        while time.monotonic() < deadline and not outcome.failures:
            number += 1
            try:
                wrong, told = scatter_once(executor, rng, Path(folder))
            except Exception as error:
                outcome.failures.append(f"{what}: scatter {number}: {error!r}; seed {seed}")
                break
            outcome.count(f"{what}: tiles", told.tiles)
            outcome.count(f"{what}: tiles begun again", told.repeated)
            outcome.count(f"{what}: tiles told as failed", told.failed)
            if wrong:
                outcome.failures.append(f"{what}: scatter {number}: {wrong}; seed {seed}")
    for name, times in attacker.done.items():
        outcome.count(f"{what}: workers {name}", times)


def run_campaign(seconds: float, seed: int) -> Report:
    """Harm workers for about so long."""
    outcome = Report()
    before = set(_children())
    with_dask = find_spec("distributed") is not None
    share = seconds / 2 if with_dask else seconds
    with GpuExecutor.local(_WORKERS) as executor:
        assert executor.workers
        _attack(executor, "local", _HARMS, (share, seed), outcome)
    _look_for_processes("local", before, outcome)
    if with_dask:
        with _cluster() as (executor, cut_off):
            assert executor.workers
            harms = {**_HARMS, "cut off": cut_off}
            _attack(executor, "dask", harms, (share, seed), outcome)
        _look_for_processes("dask", before, outcome)
    else:
        outcome.skipped["dask"] = "needs distributed"
    return outcome


@contextmanager
def _cluster() -> Iterator[tuple[GpuExecutor, Harm]]:
    """A cluster that soon gives up on a worker that it does not hear, and what cuts one off."""
    dask, distributed = import_module("dask"), import_module("distributed")
    settings = {
        "distributed.scheduler.worker-ttl": "5s",
        "distributed.scheduler.allowed-failures": 0,  # each loss is told, and counted rightly
    }

    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        GpuExecutor.dask(client) as executor,
    ):
        yield executor, partial(_cut_off, cluster, client)


def _cut_off(cluster: Any, client: Any, worker: WorkerReport) -> None:
    """Cut a worker off; it and its nanny leave the cluster, and another one comes."""
    client.run(jobs.cut_off, workers=[worker.name], wait=False, on_error="ignore")
    cluster.scale(len(cluster.worker_spec) + 1)


def _look_for_processes(what: str, before: set[int], outcome: Report) -> None:
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
