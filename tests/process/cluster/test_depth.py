"""How many tiles are started at once: as many as the engine says at the time."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

from cudadrv import scatter_map
from cudadrv.cluster import GpuExecutor, TilePolicy, WorkerReport
from cudadrv.cluster.call import Call, Engine
from cudadrv.cluster.pickled import PickledFunction
from tests.contract.runtime.devices import device_with
from tests.patience import SECONDS

from .workers import worker_with


def nothing(ordinal: int, part: object) -> None: ...


class LearningEngine(Engine):
    """One worker, which takes more tiles at once when it knows how short they are.

    A thread ends the first call whenever the worker has as many as it takes, or all that are left.

    Attributes:
        counts: how many calls the worker had, each time.
    """

    def __init__(self, tiles: int) -> None:
        self.counts: list[int] = []
        self._given: SimpleQueue[Call] = SimpleQueue()
        self._left = tiles
        threading.Thread(target=self._end_calls, daemon=True).start()

    def workers(self) -> tuple[WorkerReport, ...]:
        return (worker_with(device_with(0, 96, 1.0), 0),)

    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        return 5 if self.counts else 2

    def start(self, call: Call) -> None:
        call.begin()
        self._given.put(call)

    def close(self, *, wait: bool, cancel: bool) -> None:
        pass

    def abort(self) -> None:
        raise NotImplementedError

    def _end_calls(self) -> None:
        calls: list[Call] = []
        while self._left:
            expected = min(5 if self.counts else 2, self._left)
            with suppress(Empty):  # fewer, which the test tells
                while len(calls) < expected:
                    calls.append(self._given.get(timeout=SECONDS))
            self.counts.append(len(calls))
            self._left -= 1
            calls.pop(0).future.set_result(None)


def test_more_tiles_are_started_once_the_engine_accepts_more() -> None:
    engine = LearningEngine(8)
    found = scatter_map(GpuExecutor(engine, TilePolicy(items=1)), range(8), nothing)
    assert found == [None] * 8
    assert engine.counts == [2, 5, 5, 5, 4, 3, 2, 1]
