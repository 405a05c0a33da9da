"""Workers that die, hang or lose their context: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cudadrv import scatter_batched, scatter_map
from cudadrv.cluster import GpuExecutor, Progress, TilePolicy
from cudadrv.errors import CudaError, WorkerLostError
from cudadrv.pool.tile import ScatterError
from tests.patience import SECONDS, wait_until
from tests.process.cluster import jobs
from tests.short_cases import few

Losing = Callable[[str, int, int, int, npt.NDArray[np.int64]], None]
ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("losing", few([jobs.dying, jobs.hanging, jobs.breaking], 1))
def test_a_tile_of_a_lost_worker_is_done_again_by_another(
    local: GpuExecutor, tmp_path: Path, losing: Losing
) -> None:
    told: list[Progress] = []
    # The limit is for each tile: on a busy machine a right one may take its time as well.
    limit = 10.0 if losing is jobs.hanging else None
    local.policy = TilePolicy(items=10_000, seconds=limit, progress=told.append)
    items = np.arange(60_000)
    before = {each.result() for each in local.on_each(jobs.pid)}  # which have imported it then
    scatter_batched(local, items, partial(losing, str(tmp_path), 20_000, 1))
    assert np.array_equal(items, np.arange(60_000) + 1000)
    assert told[-1].repeated == 1
    pids = {int(path.name.split("-")[1]) for path in tmp_path.iterdir()}
    assert len(pids) == 2
    assert len({each.result() for each in local.on_each(jobs.pid)} & before) == 1


@pytest.mark.slow
@pytest.mark.parametrize("losing", [jobs.dying, jobs.breaking])
def test_a_tile_that_loses_every_worker_is_named_with_the_rest_done(
    local: GpuExecutor, tmp_path: Path, losing: Losing
) -> None:
    local.policy = TilePolicy(items=10, redone=1)
    items = np.arange(40)
    with pytest.raises(ScatterError) as caught:
        scatter_batched(local, items, partial(losing, str(tmp_path), 20, 9))
    (failure,) = caught.value.failures
    assert failure.range == range(20, 30)
    assert isinstance(failure.error, WorkerLostError)
    assert failure.error.attempts == 2 == len(list(tmp_path.iterdir()))
    if losing is jobs.breaking:
        cause = failure.error.__cause__
        assert isinstance(cause, CudaError)
        assert cause.sticky
    assert items[20:30].tolist() == list(range(20, 30))  # as it was
    assert items[:20].tolist() == list(range(1000, 1020))
    assert list(caught.value.results) == [range(10), range(10, 20), range(30, 40)]


@pytest.mark.slow
def test_a_worker_that_died_while_it_had_nothing_to_do_costs_no_attempt(
    local: GpuExecutor,
) -> None:
    local.policy = TilePolicy(redone=0)
    pids = [each.result() for each in local.on_each(jobs.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:  # a process with a GPU takes its time to end
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert {each.result() for each in local.on_each(jobs.pid)}.isdisjoint(pids)


@pytest.mark.slow
@pytest.mark.parametrize("losing", [jobs.dying, jobs.breaking, jobs.hanging])
def test_a_call_that_was_sent_before_a_lost_one_ended_was_not_begun(
    tmp_path: Path, losing: Losing
) -> None:
    told: list[Progress] = []
    policy = TilePolicy(items=10, redone=1, seconds=10.0, progress=told.append)
    with GpuExecutor.local(1, policy=policy) as executor:
        items = np.arange(40)
        # The second tile is sent while the first one is made.
        work = partial(losing, str(tmp_path), 0, 1)
        scatter_batched(executor, items, partial(jobs.later, 0.3, work))
        assert np.array_equal(items, np.arange(40) + 1000)
        assert told[-1].repeated == 1  # the first tile
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_a_call_that_was_sent_early_and_the_queued_ones_end_with_the_executor(
    tmp_path: Path,
) -> None:
    begun, may_end = tmp_path / "begun", tmp_path / "may end"
    executor = GpuExecutor.local(1)
    assert executor.workers
    futures = [executor.submit(jobs.wait_for, str(begun), str(may_end)) for _ in range(4)]
    wait_until(begun.exists)
    closing = threading.Thread(target=partial(executor.shutdown, cancel_futures=True))
    closing.start()
    wait_until(futures[3].cancelled)
    may_end.touch()
    closing.join()
    assert all(each.done() for each in futures)
    assert futures[0].result() is None
    assert [each.cancelled() for each in futures[2:]] == [True, True]


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_everything_and_leaves_no_process(tmp_path: Path) -> None:
    executor = GpuExecutor.local(2, policy=TilePolicy(items=1000))
    pids = [each.pid for each in executor.workers]
    items = np.arange(50_000)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        wait_until(lambda: any(tmp_path.iterdir()))
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        scatter_batched(executor, items, partial(jobs.noted, str(tmp_path), 0.1))
    changed = items.copy()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    time.sleep(0.3)
    assert np.array_equal(items, changed)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(jobs.pid)


@pytest.mark.slow
def test_an_interrupt_in_a_block_ends_what_runs() -> None:
    with pytest.raises(KeyboardInterrupt), GpuExecutor.local(1) as executor:
        future = executor.submit(time.sleep, 600)
        pid = executor.workers[0].pid
        raise KeyboardInterrupt
    assert future.done()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


_ABANDONED = """
import os, time
from cudadrv.cluster import GpuExecutor
executor = GpuExecutor.local(1)
future = executor.submit(time.sleep, 600)
print(executor.workers[0].pid, flush=True)
{end}
"""


_FORKED = """
if os.fork() == 0:  # it has all descriptors of its parent
    os.read(0, 1)  # until the test ends
    os._exit(0)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), 9)", _FORKED, "raise SystemExit", "os._exit(0)"],
    ids=["killed", "killed after a fork", "exit", "exit at once"],
)
def test_workers_end_with_the_process_that_started_them(end: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ABANDONED.format(end=end)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        pid = int(started.stdout.readline())  # the worker has this output too: it may not end yet
        started.wait(SECONDS)
        wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists())


@pytest.mark.slow
def test_an_error_of_the_callback_waits_for_the_tiles_that_run(local: GpuExecutor) -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError

    local.policy = TilePolicy(items=1, progress=fail)
    with pytest.raises(ZeroDivisionError):
        scatter_map(local, range(100), jobs.first_and_length)
    local.policy = TilePolicy()
    assert local.submit(divmod, 7, 3).result() == (2, 1)
