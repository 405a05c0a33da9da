"""Scattered work over emulated devices: who gets what, what fails, and what is left behind."""

from __future__ import annotations

import array
import contextlib
import contextvars
import decimal
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv import (
    GpuRuntime,
    balanced_partition,
    current_tile,
    emulator,
    scatter_batched,
    scatter_map,
)
from cudadrv.driver import driver_selection
from cudadrv.emulator import EmulatedDevice, Emulator
from cudadrv.errors import ClosedError, InvalidDeviceError, NoDeviceError
from cudadrv.pool import NotInTileError, ScatterError, Tile, TileError, workers
from cudadrv.pool.tile import Workplace
from cudadrv.runtime import GpuDispatchPolicy
from tests.current_context import current_context
from tests.patience import SECONDS

from ..memory.test_copy_threads import set_exception
from ..runtime.devices import device_with, runtime_with

Floats = npt.NDArray[np.float64]


@pytest.fixture
def machine() -> Iterator[Emulator]:
    """Four devices of scores 100 to 400: each has the multiprocessors that its memory leaves."""
    with emulator.session(
        [
            EmulatedDevice(
                sm_count=100 * share - 4, compute_capability=(7, 0), total_memory=1 << 30
            )
            for share in (1, 2, 3, 4)
        ]
    ) as machine:
        yield machine


@pytest.fixture
def rt(machine: Emulator) -> GpuRuntime:
    runtime = GpuRuntime.current()
    assert runtime is not None
    return runtime


def test_four_devices_of_different_scores_take_work_in_proportion(rt: GpuRuntime) -> None:
    scores = {device.ordinal: device.score() for device in rt.devices}
    assert scores == pytest.approx({0: 100.0, 1: 200.0, 2: 300.0, 3: 400.0}, abs=0.5)
    taken = scatter_map(rt, range(1000), lambda ordinal, tile: (ordinal, len(tile)))
    assert taken == [(3, 400), (2, 300), (1, 200), (0, 100)]


def test_every_tile_runs_on_its_own_thread_with_its_devices_context(rt: GpuRuntime) -> None:
    meeting = threading.Barrier(4)

    def where(ordinal: int, tile: object) -> tuple[int, int, int]:
        meeting.wait(SECONDS)  # all four are running at once
        return ordinal, current_context(), threading.get_ident()

    found = scatter_map(rt, range(8), where)
    assert [ordinal for ordinal, _, _ in found] == [3, 2, 1, 0]
    assert all(
        int(cudadrv.cuda_context_for(ordinal).handle) == bound for ordinal, bound, _ in found
    )
    assert len({thread for _, _, thread in found} | {threading.get_ident()}) == 5


def test_an_arrays_tiles_are_views(rt: GpuRuntime) -> None:
    items = np.zeros((10, 3))

    def mark(ordinal: int, tile: Floats) -> None:
        assert np.shares_memory(tile, items)
        tile += ordinal

    scatter_batched(rt, items, mark)
    assert items[:, 0].tolist() == [3, 3, 3, 3, 2, 2, 2, 1, 1, 0]
    assert (items == items[:, :1]).all()


def test_strided_and_reversed_arrays_are_shared_in_place(rt: GpuRuntime) -> None:
    base = np.arange(20.0)

    def negate(ordinal: int, tile: Floats) -> None:
        np.negative(tile, out=tile)

    scatter_batched(rt, base[::-2], negate)
    assert base[1::2].tolist() == [-value for value in range(1, 20, 2)]
    assert base[::2].tolist() == list(range(0, 20, 2))


def test_a_lists_tiles_are_written_back(rt: GpuRuntime) -> None:
    items = list(range(10))

    def square(ordinal: int, tile: list[int]) -> None:
        tile[:] = [value * value for value in tile]

    scatter_batched(rt, items, square)
    assert items == [value * value for value in range(10)]
    typed = array.array("q", range(10))
    scatter_batched(rt, typed, square)
    assert typed.tolist() == items


def test_failed_tiles_are_named_and_the_others_stand(rt: GpuRuntime) -> None:
    items, numbers = list(range(10)), np.arange(10)

    def fail_on_two(ordinal: int, tile: list[int] | npt.NDArray[np.int64]) -> None:
        for index in range(len(tile)):
            tile[index] = -1
        if ordinal in (2, 0):
            raise ValueError(f"no {ordinal}")

    with pytest.raises(ScatterError) as caught:
        scatter_batched(rt, items, fail_on_two)
    error = caught.value
    assert [(tile.ordinal, tile.range) for tile in error.failures] == [
        (2, range(4, 7)),
        (0, range(9, 10)),
    ]
    assert [str(tile.error) for tile in error.failures] == ["no 2", "no 0"]
    assert str(error) == (
        "2 of 4 tiles failed: items 4 to 7 on device 2: ValueError: no 2; "
        "items 9 to 10 on device 0: ValueError: no 0"
    )
    assert isinstance(error, ExceptionGroup)
    assert isinstance(error, cudadrv.CudadrvError)
    assert error.results == {range(4): None, range(7, 9): None}
    # A list's failed tile is as it was; an array's is a view, so its writes have happened.
    assert items == [-1, -1, -1, -1, 4, 5, 6, -1, -1, 9]
    with pytest.raises(ScatterError):
        scatter_batched(rt, numbers, fail_on_two)
    assert numbers.tolist() == [-1] * 10


def test_except_star_finds_a_tiles_exception_and_keeps_its_place(rt: GpuRuntime) -> None:
    def fail(ordinal: int, tile: object) -> None:
        raise KeyError(ordinal) if ordinal == 1 else ValueError(ordinal)

    seen: list[tuple[int, range]] = []
    rest: list[int] = []
    try:
        scatter_map(rt, range(10), fail)
    except* KeyError as group:
        seen = _places(group)
    except* ValueError as group:
        rest = [ordinal for ordinal, _ in _places(group)]
    assert seen == [(1, range(7, 9))]
    assert rest == [3, 2, 0]


def _places(group: BaseExceptionGroup[BaseException]) -> list[tuple[int, range]]:
    assert isinstance(group, ScatterError)
    return [(tile.ordinal, tile.range) for tile in group.failures]


def test_every_tile_is_awaited_before_a_failure_is_raised(rt: GpuRuntime) -> None:
    items = np.zeros(10)
    failed = threading.Event()

    def work(ordinal: int, tile: Floats) -> None:
        if ordinal == 3:
            failed.set()
            raise ValueError
        assert failed.wait(SECONDS)
        tile[:] = 1

    with pytest.raises(ScatterError, match="1 of 4 tiles failed"):
        scatter_batched(rt, items, work)
    assert items.tolist() == [0] * 4 + [1] * 6


def test_a_tile_that_changes_its_length_fails_and_is_not_written(rt: GpuRuntime) -> None:
    items = list(range(10))

    def grow(ordinal: int, tile: list[int]) -> None:
        tile[:] = [0] * len(tile)
        if ordinal == 1:
            tile.append(0)

    with pytest.raises(ScatterError) as caught:
        scatter_batched(rt, items, grow)
    assert "made 3 items of a tile of 2" in str(caught.value)
    assert caught.value.failures[0].range == range(7, 9)
    assert items == [0] * 7 + [7, 8] + [0]


def test_a_device_that_cannot_be_bound_fails_its_tile_alone(rt: GpuRuntime) -> None:
    known = rt.devices[0]
    wider = GpuRuntime(devices=[known, device_with(9, 396, 1.0)], policy=GpuDispatchPolicy())
    items = np.zeros(10)

    def mark(ordinal: int, tile: Floats) -> None:
        tile[:] = 1

    with pytest.raises(ScatterError) as caught:
        scatter_batched(wider, items, mark)
    (failure,) = caught.value.failures
    assert failure.ordinal == 9
    assert isinstance(failure.error, InvalidDeviceError)
    assert int(items.sum()) == 10 - len(failure.range)


def test_no_device_raises(rt: GpuRuntime) -> None:
    empty = GpuRuntime(device=rt.device, devices=())
    for items in ([1, 2], []):
        with pytest.raises(ScatterError, match="the runtime has no device") as caught:
            scatter_batched(empty, items, lambda ordinal, tile: None)
        assert caught.value.failures == ()
        assert isinstance(caught.value.exceptions[0], NoDeviceError)


def test_no_items_are_no_work(rt: GpuRuntime) -> None:
    def never(ordinal: int, tile: object) -> None:
        raise AssertionError

    scatter_batched(rt, list[int](), never)
    scatter_batched(rt, np.zeros((0, 4)), never)
    assert scatter_map(rt, (), never) == []


def test_items_of_other_kinds_are_rejected(rt: GpuRuntime) -> None:
    with pytest.raises(TypeError, match="not tuple"):
        scatter_batched(rt, (1, 2), lambda ordinal, tile: None)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="not set"):
        scatter_map(rt, {1}, lambda ordinal, tile: None)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give fewer items"):
        scatter_map(rt, range(10**30), lambda ordinal, tile: None)


def test_map_gives_results_in_the_order_of_the_items(rt: GpuRuntime) -> None:
    values = np.arange(1000.0)

    def doubled(ordinal: int, tile: Floats) -> Floats:
        return 2 * tile

    assert np.array_equal(np.concatenate(scatter_map(rt, values, doubled)), 2 * values)
    assert scatter_map(rt, "abcdefghij", lambda ordinal, tile: "".join(tile)) == [
        "abcd",
        "efg",
        "hi",
        "j",
    ]
    with pytest.raises(ScatterError, match="4 of 4 tiles"):
        scatter_map(rt, values, lambda ordinal, tile: 1 // 0)


def test_a_tile_has_its_stream_arena_and_range_while_it_runs(rt: GpuRuntime) -> None:
    items = np.zeros(20)

    def fill(ordinal: int, part: Floats) -> Tile:
        tile = current_tile()
        assert tile.ordinal == ordinal
        assert len(tile.range) == len(part)
        assert tile.stream is tile.stream
        assert tile.stream.context is tile.context is cudadrv.cuda_context_for(ordinal)
        bucket, slab = tile.arena.alloc(tile.stream, len(part), "fill")
        tile.stream.fill(slab, ordinal)
        part[:] = tile.stream.to_host(slab)[: len(part)]
        tile.arena.release(bucket, slab)
        return tile

    tiles = scatter_map(rt, items, fill)
    assert items.tolist() == [3] * 8 + [2] * 6 + [1] * 4 + [0] * 2
    assert [tile.range for tile in tiles] == [part for _, part in balanced_partition(rt, 20)]
    with pytest.raises(ClosedError, match="items 0 to 8 on device 3> has ended"):
        _ = tiles[0].stream
    with pytest.raises(NotInTileError):
        current_tile()


def test_a_tile_that_failed_has_ended(rt: GpuRuntime) -> None:
    tiles: list[Tile] = []

    def fail(ordinal: int, part: Sequence[int]) -> None:
        tiles.append(current_tile())
        assert not tiles[-1].stream.closed
        raise ValueError

    with pytest.raises(ScatterError):
        scatter_map(rt, range(10), fail)
    for tile in tiles:
        with pytest.raises(ClosedError, match="has ended"):
            _ = tile.stream
    assert len(tiles) == 4


def test_work_left_on_the_tiles_stream_is_done_when_the_call_returns(
    rt: GpuRuntime, machine: Emulator
) -> None:
    with machine.fail("cuStreamSynchronize", nth=1 << 30) as counted:
        scatter_map(rt, range(10), lambda ordinal, tile: current_tile().stream)
        assert counted.calls == 4
        scatter_map(rt, range(10), lambda ordinal, tile: None)


def test_a_failure_of_the_stream_is_the_tiles_failure(rt: GpuRuntime, machine: Emulator) -> None:
    fault = machine.fail("cuStreamSynchronize", with_=700)
    with fault, pytest.raises(ScatterError, match="1 of 4 tiles failed"):
        scatter_map(rt, range(10), lambda ordinal, tile: current_tile().stream)
    first = scatter_map(rt, range(10), lambda ordinal, tile: current_tile().stream)
    assert not any(stream.closed for stream in first)


def test_a_workers_stream_serves_its_next_tile_and_not_after_a_failure(rt: GpuRuntime) -> None:
    one = GpuRuntime(devices=rt.devices[:1], policy=GpuDispatchPolicy())

    def stream_of(ordinal: int, tile: object) -> cudadrv.Stream:
        return current_tile().stream

    def fail(ordinal: int, tile: object) -> None:
        with current_tile().stream.capture():
            raise ValueError

    (first,) = scatter_map(one, range(1), stream_of)
    assert scatter_map(one, range(1), stream_of) == [first]
    with pytest.raises(ScatterError):
        scatter_map(one, range(1), fail)
    assert first.closed
    (after,) = scatter_map(one, range(1), stream_of)
    assert not after.closed


def test_the_function_sees_the_callers_context_variables(rt: GpuRuntime) -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)

    def look(ordinal: int, tile: object) -> int:
        seen = variable.get()
        variable.set(ordinal)
        return seen

    assert scatter_map(rt, range(10), look) == [7] * 4
    assert variable.get() == 7
    with decimal.localcontext(prec=3):
        thirds = scatter_map(rt, range(10), lambda ordinal, tile: str(decimal.Decimal(1) / 3))
    assert thirds == ["0.333"] * 4


def test_scatters_nest_and_run_side_by_side(rt: GpuRuntime) -> None:
    def inner(ordinal: int, tile: object) -> int:
        return current_tile().ordinal

    def outer(ordinal: int, tile: object) -> list[int]:
        below = scatter_map(rt, range(8), inner)
        assert current_tile().ordinal == ordinal
        return below

    results: list[list[list[int]]] = []
    threads = [
        threading.Thread(target=lambda: results.append(scatter_map(rt, range(8), outer)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[3, 2, 1, 0]] * 4] * 8


def test_what_is_no_failure_of_the_work_is_raised_as_it_is(rt: GpuRuntime) -> None:
    items = np.zeros(10)

    def leave(ordinal: int, tile: Floats) -> None:
        tile[:] = 1
        if ordinal == 2:
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        scatter_batched(rt, items, leave)
    assert items.all()


def test_an_interrupted_wait_still_awaits_the_tiles(rt: GpuRuntime) -> None:
    """SIGINT reaches the main thread while tiles run: their items are done when it gets on."""
    import _thread

    items = np.zeros(10)
    meeting = threading.Barrier(4)

    def work(ordinal: int, tile: Floats) -> None:
        if meeting.wait(SECONDS) == 0:
            _thread.interrupt_main()
        threading.Event().wait(0.05)
        tile[:] = 1

    # A process that was started in the background ignores the signal.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            scatter_batched(rt, items, work)
    finally:
        signal.signal(signal.SIGINT, former)
    assert items.all()


def test_a_scatter_interrupted_while_it_starts_runs_no_tile_later(
    rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = np.zeros(10)
    give = workers.Workers.give

    def interrupted(self: workers.Workers, job: workers.Job[None]) -> None:
        if self is driver_selection.current().cache(workers.Workers).get(1):
            raise KeyboardInterrupt
        give(self, job)

    def mark(ordinal: int, tile: Floats) -> None:
        tile[:] = 1

    with monkeypatch.context() as patched:
        patched.setattr(workers.Workers, "give", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scatter_batched(rt, items, mark)
    after = items.copy()
    assert len(scatter_map(rt, range(10), lambda ordinal, tile: ordinal)) == 4
    assert np.array_equal(items, after)
    assert items[7:].tolist() == [0, 0, 0]


@pytest.mark.parametrize("comes", [False, True])
def test_a_slow_worker_keeps_nothing_of_a_scatter_that_is_over(
    comes: bool, rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mark:
        def __call__(self, ordinal: int, tile: Floats) -> None:
            tile[:] = 1

    may_go_on = threading.Event()
    caller = threading.get_ident()

    class SlowLock:
        def __init__(self) -> None:
            self.own = threading.Lock()
            self.acquire = self.own.acquire

        def __enter__(self) -> None:
            self.own.acquire()

        def __exit__(self, *_: object) -> None:
            self.own.release()

        def release(self) -> None:
            self.own.release()
            if threading.get_ident() != caller:
                may_go_on.wait(SECONDS)

    def interrupted(self: workers.Workers, job: workers.Job[None]) -> None:
        if self is driver_selection.current().cache(workers.Workers).get(1):
            raise KeyboardInterrupt
        not_taken.append(job)

    not_taken: list[workers.Job[None]] = []
    mark = Mark()
    gone = weakref.ref(mark)
    with monkeypatch.context() as patched:
        if comes:
            slow = SimpleNamespace(**{**vars(threading), "Lock": SlowLock})
            patched.setattr(workers, "threading", slow)
            scatter_batched(rt, np.zeros(10), mark)
        else:
            patched.setattr(workers.Workers, "give", interrupted)
            with pytest.raises(KeyboardInterrupt):
                scatter_batched(rt, np.zeros(10), mark)
            assert not_taken
    del mark
    gc.collect()
    try:
        assert gone() is None
    finally:
        may_go_on.set()


def test_an_exception_set_into_a_worker_reaches_the_caller(rt: GpuRuntime) -> None:
    used: list[int] = []

    def work(ordinal: int, tile: Floats) -> None:
        used.append(threading.get_ident())
        if ordinal == 2:
            set_exception(threading.get_ident(), ZeroDivisionError)
            for _ in range(1000):
                time.sleep(0.001)

    for _ in range(3):
        with pytest.raises(ScatterError, match="1 of 4 tiles failed") as caught:
            scatter_batched(rt, np.zeros(10), work)
        assert isinstance(caught.value.failures[0].error, ZeroDivisionError)
    assert len(scatter_map(rt, range(10), lambda ordinal, tile: ordinal)) == 4


# The exception may also come in a finalizer.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_scatter_waits_for_no_worker_that_an_exception_ended(rt: GpuRuntime) -> None:
    def thread(ordinal: int, tile: object) -> threading.Thread:
        return threading.current_thread()

    for kind in (ZeroDivisionError, SystemExit):
        threads = scatter_map(rt, range(10), thread)
        for each in threads:
            assert each.ident is not None
            set_exception(each.ident, kind)
        with contextlib.suppress(ScatterError, SystemExit):  # it may come as a tile runs
            scatter_map(rt, range(10), thread)
        assert len(scatter_map(rt, range(10), thread)) == 4
        for each in threads:  # those that have gone, or have it behind them
            each.join(2)  # the outcome does not depend on it


def test_an_exception_between_a_workers_jobs_is_the_tiles_failure(
    rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: workers.Job[int], workplace: Workplace) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(workers.Job, "do", interrupted)
        with pytest.raises(ScatterError, match="4 of 4 tiles failed") as caught:
            scatter_map(rt, range(10), lambda ordinal, tile: ordinal)
    assert [type(each.error) for each in caught.value.failures] == [ZeroDivisionError] * 4


def test_tiles_are_awaited_though_each_step_that_awaits_them_is_interrupted(
    rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = np.zeros(10)
    meeting = threading.Barrier(5)

    def work(ordinal: int, tile: Floats) -> None:
        meeting.wait(SECONDS)
        time.sleep(0.05)
        tile[:] = 1

    def wait(job: workers.Job[None]) -> None:
        meeting.wait(SECONDS)
        raise KeyboardInterrupt

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.Job, "wait", wait)
    monkeypatch.setattr(workers.Job, "cancel", interrupted)
    monkeypatch.setattr(workers, "complete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scatter_batched(rt, items, work)
    assert items.all()


@pytest.mark.slow
def test_no_tile_runs_after_an_interrupt_at_any_point(rt: GpuRuntime) -> None:
    items = np.zeros(10)
    running: set[int] = set()

    def work(ordinal: int, tile: Floats) -> None:
        running.add(ordinal)
        time.sleep(0.002)
        running.remove(ordinal)

    scatter_batched(rt, items, work)
    for number in range(2000):
        interrupter = Interrupter(number)
        if not interrupter.run(lambda: scatter_batched(rt, items, work)):
            break
        assert not running, interrupter.place
    assert 50 < number < 1999
    assert len(scatter_map(rt, range(10), lambda ordinal, tile: ordinal)) == 4


def test_idle_workers_end_and_later_calls_start_others(
    rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.05)
    used = scatter_map(
        rt, range(10), lambda ordinal, tile: (threading.current_thread(), current_tile().stream)
    )
    for thread, stream in used:
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert stream.closed
    assert len(scatter_map(rt, range(10), lambda ordinal, tile: ordinal)) == 4


def test_a_worker_does_a_job_that_it_is_given_as_its_idle_time_ends(
    rt: GpuRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.01)
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())

    pool = workers.Workers(0)
    first, second = workers.Job(0, range(1), work), workers.Job(0, range(1), work)
    leave, has_looked = pool.leave, threading.Event()

    def late(worker: workers.Worker) -> bool:
        assert pool.idle.popitem()[0] is worker  # as a caller does that gives it a job
        left = leave(worker)
        monkeypatch.setattr(pool, "leave", leave)
        has_looked.set()
        return left

    monkeypatch.setattr(pool, "leave", late)
    worker = workers.Worker(pool, 0, first)
    first.wait()
    assert has_looked.wait(SECONDS)
    worker.give(second)
    assert second.done.acquire(timeout=SECONDS)
    assert threads[0] is threads[1]


def test_idle_workers_end_with_their_session_and_leave_nothing_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 10 * SECONDS)

    def work(ordinal: int, tile: Floats) -> threading.Thread:
        stream = current_tile().stream
        current_tile().arena.alloc(stream, len(tile))
        tile += stream.to_host(stream.to_device(tile))
        return threading.current_thread()

    items = np.arange(8.0)
    with emulator.session(devices=2, check=("leak",)):  # raises where something is left
        runtime = GpuRuntime.resolve()
        assert runtime is not None
        threads = scatter_map(runtime, items, work)
        assert all(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert np.array_equal(items, 2 * np.arange(8.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_fails_with_a_reason_and_does_not_hang(rt: GpuRuntime) -> None:
    assert len(scatter_map(rt, range(10), lambda ordinal, tile: ordinal)) == 4
    child = os.fork()
    if child == 0:
        status = 1
        try:
            scatter_map(rt, range(10), lambda ordinal, tile: ordinal)
        except ScatterError as error:
            status = 0 if "before the fork" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_tile_errors_can_be_pickled() -> None:
    import pickle

    error = ScatterError("1 of 1 tiles failed", [TileError([ValueError("x")], 3, range(2, 5))])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.failures[0].ordinal, again.failures[0].range) == (3, range(2, 5))


def test_a_runtime_made_by_hand_may_name_a_device_twice(machine: Emulator) -> None:
    device = device_with(0, 80, 1.0)
    assert scatter_map(runtime_with(device, device), range(4), lambda o, t: (o, len(t))) == [
        (0, 2),
        (0, 2),
    ]
