"""Calls over Dask whose result, client or executor goes away: who waits for them is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from cudadrv.cluster import GpuExecutor, TilePolicy
from cudadrv.cluster.call import Call
from cudadrv.cluster.dask_engine import DaskEngine
from cudadrv.cluster.pickled import PickledFunction
from cudadrv.errors import ExecutorClosedError, WorkerLostError
from tests.patience import SECONDS

pytest.importorskip("distributed", reason="needs distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours

from .test_paused import cluster_of  # noqa: E402  # it needs distributed as well


def test_a_result_whose_worker_leaves_before_it_is_fetched_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cluster_of(0, 0) as client, GpuExecutor.dask(client, grace_seconds=1.0) as executor:
        first, second = executor.workers
        gather = client.gather

        def late(futures: Mapping[str, Any], **kwargs: Any) -> Awaitable[Any]:
            async def gathered() -> Any:
                for worker in list(client.cluster.workers.values()):
                    if worker.address == first.name:
                        await worker.close(reason="a test")
                return await gather(futures, **kwargs)

            return gathered()

        monkeypatch.setattr(client, "gather", late)
        lost, there = executor.on_each(divmod, 7, 3)
        error = lost.exception(SECONDS)
        assert isinstance(error, WorkerLostError)
        assert f"{first.name} has left the cluster" in str(error)
        assert there.result(SECONDS) == (2, 1)
        # What any worker may do is done by the one that is left.
        assert executor.submit(divmod, 9, 2).result(SECONDS) == (4, 1)
        assert second.name == executor.workers[0].name


def test_a_cancelled_fetch_of_a_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # As where the client's loop ends in the middle.
    async def given_up(*_: object, **__: object) -> Any:
        raise asyncio.CancelledError

    with cluster_of(0) as client:
        with GpuExecutor.dask(client, policy=TilePolicy(redone=0)) as executor:
            assert executor.workers
            with monkeypatch.context() as patch:
                patch.setattr(client, "gather", given_up)
                error = executor.submit(divmod, 7, 3).exception(SECONDS)
        assert isinstance(error, WorkerLostError)
        assert "Dask lost the result" in str(error)


class OddFuture:
    """A task of which nobody can say how it is."""

    key = "odd"

    def add_done_callback(self, function: Callable[[object], None]) -> None:
        function(self)

    @property
    def status(self) -> str:
        raise ZeroDivisionError("no status")


class OddClient:
    """A client that has no other tasks."""

    def submit(self, *_: object, **__: object) -> OddFuture:
        return OddFuture()


def call_of(function: Callable[..., object], *args: object) -> Call:
    return Call(PickledFunction.of(function), (args, {}), TilePolicy())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_fails_fails_its_calls_and_accepts_no_more() -> None:
    before = set(threading.enumerate())
    engine = DaskEngine(OddClient(), 1.0)
    call = call_of(abs, -3)
    engine.start(call)
    assert isinstance(call.future.exception(SECONDS), ZeroDivisionError)
    with pytest.raises(ExecutorClosedError):
        engine.start(call_of(abs, -3))
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS)  # what it raised is this test's


class SlowCall(Call):
    """A call that is noted while another thread closes the engine."""

    close: Callable[[], object] | None = None

    def __hash__(self) -> int:
        if self.close is not None:
            closing, self.close = threading.Thread(target=self.close), None
            closing.start()
            closing.join(1.0)
        return super().__hash__()


def test_a_call_that_is_given_while_the_executor_is_closed_is_made() -> None:
    with cluster_of(0) as client:
        engine = DaskEngine(client, 1.0)
        assert engine.workers()
        call = SlowCall(PickledFunction.of(divmod), ((7, 3), {}), TilePolicy())
        call.close = lambda: engine.close(wait=False, cancel=False)
        engine.start(call)
        assert call.future.result(SECONDS) == (2, 1)
        with pytest.raises(ExecutorClosedError):
            engine.start(call_of(divmod, 7, 3))
