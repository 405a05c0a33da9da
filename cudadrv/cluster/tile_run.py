"""One scatter over the workers of an executor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, MutableSequence, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from ..driver.handover import finish
from ..errors import NoDeviceError
from ..pool.failures import ScatterError, TileError
from ..pool.scatter import balanced_partition, write_back
from ..runtime.policy import GpuDispatchPolicy
from ..runtime.probe import GpuRuntime
from .byte_copy import copy_items
from .call import Call
from .engine import Engine
from .parcel import Function
from .policy import Progress, TilePolicy
from .report import WorkerReport

_TILES_A_WORKER: Final = 8


def runtime_of(workers: Sequence[WorkerReport]) -> GpuRuntime:
    """The devices of all workers as one runtime, by the workers' indices."""
    devices = [replace(each.device, ordinal=index) for index, each in enumerate(workers)]
    devices.sort(key=lambda device: -device.score())
    return GpuRuntime(devices=devices, policy=GpuDispatchPolicy())


class TileRun:
    """Tiles of one size, shared by the workers' scores, and taken by who is done first.

    Each worker begins with its own share, and then takes tiles of the one who has most left: so
    what a score does not say, or a lost worker leaves, is made up for.
    """

    def __init__(self, engine: Engine, policy: TilePolicy, items: Any, *, in_place: bool) -> None:
        self._engine = engine
        self._policy = policy
        self._items = items
        self._in_place = in_place
        workers = engine.workers()
        if not workers:
            what = f"scattering {len(items)} items"
            raise ScatterError(f"{what}: there is no worker", [NoDeviceError(what)])
        size = policy.items or max(1, -(-len(items) // (_TILES_A_WORKER * len(workers))))
        self._tiles = [range(at, min(at + size, len(items))) for at in range(0, len(items), size)]
        # By the workers' numbers.
        self._shares: dict[int, deque[int]] = {each.number: deque() for each in workers}
        for index, part in balanced_partition(runtime_of(workers), len(self._tiles)):
            self._shares[workers[index].number].extend(part)
        self._nbytes = 0  # of a tile
        if isinstance(items, np.ndarray) and self._tiles:
            self._nbytes = items[: len(self._tiles[0])].nbytes
        self._under_way = dict.fromkeys(self._shares, 0)
        self._calls: dict[int, Call] = {}
        self._ended: SimpleQueue[tuple[int, int]] = SimpleQueue()  # tile, whose turn
        self._done = self._failed = self._items_done = 0
        self._began = time.monotonic()

    def run(self, f: Callable[[int, Any], Any]) -> list[Any]:
        """What the function gives for each tile, in the order of the items.

        Raises:
            ScatterError: tiles failed for good.
        """
        function = Function.of(f)
        try:
            self._begin(function)
            for _ in self._tiles:
                tile, worker = self._ended.get()
                self._count(tile)
                self._under_way[worker] -= 1
                while self._under_way[worker] < self._depth(worker, function):
                    if not self._next(worker, function):
                        break
                if self._policy.progress is not None:
                    self._tell()
        except Exception:
            self._cancel()
            raise
        except BaseException:
            finish(self._engine.abort)
            raise
        finally:
            if self._policy.progress is not None:
                self._tell(has_ended=True)
        return self._results()

    def _begin(self, function: Function) -> None:
        depths = {worker: self._depth(worker, function) for worker in self._shares}
        # In turns: the first worker would else take the tiles of all before they begin.
        for turn in range(max(depths.values())):
            for worker, depth in depths.items():
                if turn < depth:
                    self._next(worker, function)

    def _depth(self, worker: int, function: Function) -> int:
        return self._engine.depth(worker, self._nbytes, function)

    def _next(self, worker: int, function: Function) -> bool:
        """Give a worker its next tile, or one of who has most left; whether there was one."""
        own = self._shares[worker]
        if own:
            tile = own.popleft()
        else:
            most = max(self._shares.values(), key=len)
            if not most:
                return False
            tile = most.pop()
        part = self._tiles[tile]
        items = self._items[part.start : part.stop]
        if self._in_place and not isinstance(items, np.ndarray):
            items = list(items)
        call = Call(
            function, ((items,), {}), self._policy, items=part,
            deliver=partial(self._put, part) if self._in_place else None,
        )  # fmt: skip
        self._calls[tile] = call
        call.future.add_done_callback(partial(self._note, tile, worker))
        self._under_way[worker] += 1
        self._engine.start(call, worker)
        return True

    def _note(self, tile: int, worker: int, _: Future[Any]) -> None:
        self._ended.put((tile, worker))

    def _put(self, part: range, tile: Any) -> None:
        """Put what a worker made of a tile in its place."""
        if isinstance(self._items, np.ndarray):
            copy_items(self._items[part.start : part.stop], tile)
        else:
            items: MutableSequence[Any] = self._items
            write_back(items, part, tile)

    def _count(self, tile: int) -> None:
        error = self._calls[tile].future.exception()
        if error is None:
            self._done += 1
            self._items_done += len(self._tiles[tile])
        elif isinstance(error, Exception):
            self._failed += 1
        else:
            raise error  # an exit is no failure of the work

    def _cancel(self) -> None:
        """Begin no more, and wait for what runs: it may touch the items."""
        for call in list(self._calls.values()):
            call.future.cancel()
        for call in list(self._calls.values()):
            if not call.future.cancelled():
                call.future.exception()

    def _tell(self, *, has_ended: bool = False) -> None:
        assert self._policy.progress is not None
        repeated = sum(max(0, call.attempts - 1) for call in self._calls.values())
        self._policy.progress(
            Progress(
                len(self._tiles), self._done, self._failed, len(self._items), self._items_done,
                repeated, time.monotonic() - self._began, has_ended,
            )
        )  # fmt: skip

    def _results(self) -> list[Any]:
        failures: list[TileError] = []
        results: dict[range, object] = {}
        for index, part in enumerate(self._tiles):
            call = self._calls[index]
            error = call.future.exception()
            if isinstance(error, Exception):
                failures.append(TileError([error], call.ordinal, part, call.worker))
            else:
                results[part] = call.future.result()
        if failures:
            message = f"{len(failures)} of {len(self._tiles)} tiles failed"
            raise ScatterError(message, failures, results)
        return list(results.values())
