"""`GpuExecutor`: work over GPUs of many processes, on this host or on many."""

from __future__ import annotations

import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from itertools import islice
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

import numpy as np

from ptx.read_only import Guarded

from .. import border
from ..driver.handle import NotCopyable
from ..driver.once_task import complete
from ..errors import ArgumentValueError, NoDeviceError, NotSupportedError
from ..pool.scatter import TileExecutor, write_back
from ..pool.tile import ScatterError, TileError
from .call import Call, Engine
from .pickled import PickledFunction
from .shared_arrays import copy_items
from .tile_policy import Progress, TilePolicy
from .worker_report import WorkerReport

if TYPE_CHECKING:
    from ..emulator import EmulatedDevice
    from ..runtime.probe import GpuRuntime

_P = ParamSpec("_P")
_T = TypeVar("_T")
_TILES_A_WORKER: Final = 8


class GpuExecutor(Guarded, NotCopyable, Executor, TileExecutor):
    """An executor over processes with a GPU each; `local` and `dask` make one.

    `submit` and `map` are those of `concurrent.futures`. `cudadrv.scatter_batched` and
    `cudadrv.scatter_map` take an executor in place of a `GpuRuntime`. In each call the worker's
    context is current, and `cudadrv.current_tile` has a stream and an arena. Errors arrive as they
    were raised, with their attributes and causes. A note has the worker's traceback.

    A worker that dies, hangs or loses its context is replaced. Its calls are repeated as often as
    the policy allows; then they fail with `WorkerLostError`. A call that raises is not repeated,
    unless the policy allows it. An interrupt in a scatter, or in a ``with`` block, ends all
    processes of this host at once.
    """

    def __init__(self, engine: Engine, policy: TilePolicy | None = None) -> None:
        border.optional("GpuExecutor: policy", policy, TilePolicy)
        self._policy = policy or TilePolicy()
        self._engine = border.instance_of("GpuExecutor: engine", engine, Engine)
        # An executor without references ends when its calls are done.
        weakref.finalize(self, engine.close, wait=False, cancel=False).atexit = False

    @property
    def policy(self) -> TilePolicy:
        """The policy for tiles and calls that are started from now on."""
        return self._policy

    @policy.setter
    def policy(self, policy: TilePolicy) -> None:
        self._policy = border.instance_of("GpuExecutor: policy", policy, TilePolicy)

    @classmethod
    def local(
        cls,
        devices: int | Sequence[int | EmulatedDevice] | None = None,
        *,
        policy: TilePolicy | None = None,
    ) -> GpuExecutor:
        """Start a process of this host for each device.

        The processes see the devices that this one sees, by the same numbers; each uses its own.
        Without a GPU each has an emulated device of its own, with a warning unless CUDADRV_DRIVER
        or `cudadrv.emulator` selects the emulator.

        Args:
            devices: the number of visible devices, from the first; or their indices, also one index
                twice; or emulated devices. None takes all.
            policy: the policy of tiles and calls.

        Raises:
            InvalidDeviceError: a device is not visible.
            ValueError: no devices are given.
            NotSupportedError: on Windows, where a process cannot be started with an open socket.
        """
        if sys.platform == "win32":
            raise NotSupportedError(
                "GpuExecutor.local: Windows starts no process with an open socket",
                text="use scatter_map, whose tiles run in threads, or GpuExecutor.dask",
                explained=True,
            )
        from .local_pool import LocalPool, worker_specs

        return cls(LocalPool(worker_specs(devices)), policy)

    @classmethod
    def dask(
        cls, client: object, *, policy: TilePolicy | None = None, grace_seconds: float = 120.0
    ) -> GpuExecutor:
        """Use the workers of a Dask cluster, as they are at each scatter.

        A worker uses the first of its visible devices that no other process of its host uses. This
        works under dask-cuda, under Slurm with one process per GPU, and in a plain cluster.

        Args:
            client: a `distributed.Client`; the caller closes it.
            policy: the policy of tiles and calls. Dask itself repeats the tasks of a lost worker,
                ``distributed.scheduler.allowed-failures`` times, and does not report which had
                begun: those attempts do not count. Afterwards a call runs alone, and an attempt
                counts if it has begun.
            grace_seconds: how long calls wait while all workers are paused, closing or gone; then
                they fail with `NoWorkerError`. Calls that a paused worker has not begun are sent to
                others within seconds.

        Raises:
            RuntimeDependencyUnavailable: distributed is not installed.
        """
        from .dask_engine import DaskEngine

        if not border.real("GpuExecutor.dask: grace_seconds", grace_seconds) > 0:
            raise ArgumentValueError(
                f"GpuExecutor.dask: grace_seconds is {grace_seconds}: give more than 0"
            )
        return cls(DaskEngine(client, grace_seconds), policy)

    def __repr__(self) -> str:
        kind = type(self._engine).__name__.removesuffix("Engine").removesuffix("Pool").lower()
        return f"<GpuExecutor over {kind}>"

    @property
    def workers(self) -> tuple[WorkerReport, ...]:
        """The present workers; waits for those that are starting.

        Raises:
            CudadrvError: none of them could be started.
        """
        return self._engine.workers()

    def runtime(self) -> GpuRuntime:
        """Return all workers' devices as one runtime, for planning.

        A device's ordinal is its worker's index in `workers`.
        """
        from ..runtime.policy import GpuDispatchPolicy
        from ..runtime.probe import GpuRuntime  # a scatter over an executor does not load it

        devices = [replace(worker.device, ordinal=n) for n, worker in enumerate(self.workers)]
        devices.sort(key=lambda device: -device.score())
        return GpuRuntime(devices=devices, policy=GpuDispatchPolicy())

    # The signature of the base is the same, for any callable.
    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Let the next free worker call ``fn(*args, **kwargs)``; return its future.

        Raises:
            ExecutorClosedError: the executor was shut down.
            ArgumentTypeError: the function cannot be pickled.
        """
        call = self._call(fn, args, kwargs)
        self._engine.start(call)
        return cast("Future[_T]", call.future)

    def map(
        self,
        fn: Callable[..., _T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[_T]:
        """Return the results of ``fn`` for the iterables' items, in their order.

        Args:
            fn: the function.
            iterables: its arguments.
            timeout: seconds from now within which each result must arrive.
            chunksize: ignored.
            buffersize: the most calls in flight beyond the results you have consumed; the iterables
                are read no further. None reads them to the end at once. Python 3.14 has it for all
                executors.

        Raises:
            TimeoutError: a result does not arrive in time.
        """
        if buffersize is None:
            return super().map(fn, *iterables, timeout=timeout, chunksize=chunksize)
        border.int_in_range("GpuExecutor.map: buffersize", buffersize, least=1)
        end = None if timeout is None else time.monotonic() + timeout
        return self._mapped(fn, zip(*iterables, strict=False), end, buffersize)

    def _mapped(
        self,
        fn: Callable[..., _T],
        arguments: Iterator[tuple[Any, ...]],
        end: float | None,
        buffersize: int,
    ) -> Iterator[_T]:
        waiting: deque[Future[_T]] = deque()
        try:
            for args in islice(arguments, buffersize):
                waiting.append(self.submit(fn, *args))
            while waiting:
                first = waiting.popleft()
                result = first.result(None if end is None else end - time.monotonic())
                for args in islice(arguments, 1):
                    waiting.append(self.submit(fn, *args))
                yield result
        finally:
            for future in waiting:
                future.cancel()

    def on_each(
        self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> list[Future[_T]]:
        """Let each of `workers` execute the call; return their futures."""
        futures: list[Future[_T]] = []
        for worker in self.workers:
            call = self._call(fn, args, kwargs, only_worker=worker.number)
            self._engine.start(call)
            futures.append(cast("Future[_T]", call.future))
        return futures

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls, and end the processes of this host when all are done. Idempotent.

        Args:
            wait: whether to wait for that.
            cancel_futures: whether calls that no worker has begun are cancelled.
        """
        self._engine.close(wait=wait, cancel=cancel_futures)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Shut down when all calls are done; at once after an interrupt or an exit."""
        if error is not None and not isinstance(error, Exception):
            complete(self._engine.abort)
        self.shutdown()
        return None

    def change_items(self, items: Any, f: Callable[[int, Any], None]) -> None:
        """Implement `scatter_batched` with this executor."""
        _Scatter(self._engine, self.policy, items, f, in_place=True).run()

    def map_items(self, items: Any, f: Callable[[int, Any], Any]) -> list[Any]:
        """Implement `scatter_map` with this executor."""
        return _Scatter(self._engine, self.policy, items, f, in_place=False).run()

    def _call(
        self,
        fn: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        only_worker: int | None = None,
    ) -> Call:
        border.function("GpuExecutor.submit: fn", fn)
        function = PickledFunction.of(fn)
        return Call(function, (args, kwargs), self.policy, only_worker=only_worker)


class _Scatter:
    """Items cut into tiles of one size; each worker takes the next tile when it is free.

    Args:
        engine: the workers.
        policy: the size of tiles, retries and progress.
        items: the items to cut.
        f: the function of a tile.
        in_place: whether the function changes its tile; else its results are wanted.
    """

    def __init__(
        self,
        engine: Engine,
        policy: TilePolicy,
        items: Any,
        f: Callable[[int, Any], Any],
        *,
        in_place: bool,
    ) -> None:
        workers, count = engine.workers(), len(items)
        if not workers:
            attempted = f"scattering {count} items"
            raise ScatterError(f"{attempted}: there is no worker", [NoDeviceError(attempted)])
        size = policy.items or max(1, -(-count // (_TILES_A_WORKER * len(workers))))
        self._engine = engine
        self._policy = policy
        self._items = items
        self._function = PickledFunction.of(f)
        self._in_place = in_place
        self._tiles = [range(start, min(start + size, count)) for start in range(0, count, size)]
        self._nbytes = items[:size].nbytes if isinstance(items, np.ndarray) else 0
        self._calls: dict[Future[object], Call] = {}  # calls of the first tiles, in their order
        self._ended: SimpleQueue[Future[object]] = SimpleQueue()
        self._done = self._failed = self._items_done = 0
        self._began = time.monotonic()

    def run(self) -> list[Any]:
        """Return the results of all tiles, in the order of the items.

        Raises:
            ScatterError: tiles failed.
        """
        try:
            for ended in range(len(self._tiles)):
                self._start(ended + self._engine.capacity(self._nbytes, self._function))
                self._count(self._calls[self._ended.get()])
                if self._policy.progress is not None:
                    self._report()
        except Exception:
            self._cancel()
            raise
        except BaseException:
            complete(self._engine.abort)
            raise
        finally:
            if self._policy.progress is not None:
                self._report(has_ended=True)
        return self._results()

    def _start(self, total: int) -> None:
        """Start the next tiles, up to this many in all."""
        for part in self._tiles[len(self._calls) : total]:
            items = self._items[part.start : part.stop]
            if self._in_place and not isinstance(items, np.ndarray):
                items = list(items)
            call = Call(
                self._function,
                ((items,), {}),
                self._policy,
                items=part,
                put=partial(self._put, part) if self._in_place else None,
            )
            call.future.add_done_callback(self._ended.put)
            self._calls[call.future] = call
            self._engine.start(call)

    def _put(self, part: range, tile: Any) -> None:
        """Copy a tile that a worker has changed back to its position."""
        if isinstance(self._items, np.ndarray):
            copy_items(self._items[part.start : part.stop], tile)
        else:
            items: MutableSequence[Any] = self._items
            write_back(items, part, tile)

    def _count(self, call: Call) -> None:
        error = call.future.exception()
        if error is None:
            self._done += 1
            self._items_done += len(call.items)
        elif isinstance(error, Exception):
            self._failed += 1
        else:
            raise error  # an exit is not a failure of the work

    def _cancel(self) -> None:
        """Begin no more calls, and wait for running ones: they may access the items."""
        for future in self._calls:
            future.cancel()
        for future in self._calls:
            if not future.cancelled():
                future.exception()

    def _report(self, *, has_ended: bool = False) -> None:
        assert self._policy.progress is not None
        repeated = sum(max(0, call.attempts - 1) for call in self._calls.values())
        self._policy.progress(
            Progress(
                len(self._tiles),
                self._done,
                self._failed,
                len(self._items),
                self._items_done,
                repeated,
                time.monotonic() - self._began,
                has_ended,
            )
        )

    def _results(self) -> list[Any]:
        failures: list[TileError] = []
        results: dict[range, object] = {}
        for future, call in self._calls.items():
            error = future.exception()
            if isinstance(error, Exception):
                failures.append(TileError([error], call.ordinal, call.items, call.worker))
            else:
                results[call.items] = future.result()
        if failures:
            message = f"{len(failures)} of {len(self._tiles)} tiles failed"
            raise ScatterError(message, failures, results)
        return list(results.values())
