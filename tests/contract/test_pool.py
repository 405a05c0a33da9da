from __future__ import annotations

import os
import threading
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import DevicePool
from cudadrv.driver import ContextFlags
from cudadrv.errors import ClosedError, InvalidDeviceError, InvalidValueError
from tests.current_context import current_context
from tests.several_threads import all_at_once

SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))


def test_pool_with_real_devices() -> None:
    pool = DevicePool()
    assert pool.device_count() > 0
    device = pool.next_device()
    assert pool.context(device.ordinal).device is device
    assert pool.best_available_device().total_memory > 0
    for index, (each, context) in enumerate(pool):
        assert each.name
        assert context.device is each
        assert pool.device_at(index) is each
        assert pool.context_at(index) is context
    ordinals = list(range(pool.device_count()))
    assert repr(pool) == f"DevicePool(device_count={len(ordinals)}, devices={ordinals})"


def test_places_and_ordinals_that_are_not_there_are_rejected() -> None:
    pool = DevicePool()
    with pytest.raises(InvalidDeviceError):
        pool.context(99)
    for index in (-1, pool.device_count()):
        with pytest.raises(InvalidValueError):
            pool.context_at(index)
        with pytest.raises(InvalidValueError):
            pool.device_at(index)
    with pytest.raises(InvalidValueError):
        DevicePool.with_devices([])


def test_shared_contexts_are_the_primary_ones_and_stay() -> None:
    with DevicePool() as pool:
        contexts = [context for _, context in pool]
    assert contexts == [cudadrv.cuda_context_for(each.ordinal) for each in contexts]
    for context in contexts:
        context.synchronize()


@pytest.mark.parametrize("flags", [ContextFlags.SCHED_AUTO, ContextFlags.SCHED_BLOCKING_SYNC])
def test_contexts_of_the_pools_own_work_and_are_destroyed(flags: ContextFlags) -> None:
    primary = cudadrv.cuda_context_for(0)
    pool = DevicePool(flags=flags)
    for _, context in pool:
        assert context is not cudadrv.cuda_context_for(context.ordinal)
        stream = context.default_stream
        assert stream.to_host(stream.to_device(np.arange(4))).tolist() == [0, 1, 2, 3]
    contexts = [context for _, context in pool]
    pool.close()
    pool.close()
    assert all(context.closed for context in contexts)
    with pytest.raises(ClosedError):
        pool.context(0)
    primary.synchronize()


def test_making_a_pool_leaves_the_current_context_in_place() -> None:
    mine = cudadrv.cuda_context_for(0)
    with DevicePool(), DevicePool(flags=ContextFlags.SCHED_AUTO):
        assert current_context() == int(mine.handle)


def test_thirty_two_threads_share_a_pool_evenly_and_lose_nothing() -> None:
    """Threads take turns and copy on the devices they get; CUDADRV_STRESS_SECONDS sets how long."""
    pool = DevicePool()
    end = time.monotonic() + SECONDS
    turns: Counter[int] = Counter()
    wrong: list[object] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        mine: Counter[int] = Counter()
        value = 0
        while not mine or time.monotonic() < end:
            device = pool.next_device()
            mine[device.ordinal] += 1
            stream = pool.context(device.ordinal).default_stream
            value += 1
            sent = np.full(64, number * 1_000_000 + value)
            with stream.to_device(sent) as there:
                back = stream.to_host(there)
            if there.context.device is not device or not np.array_equal(back, sent):
                wrong.append((number, device, back))
        with lock:
            turns.update(mine)

    all_at_once([partial(work, number) for number in range(32)])
    assert wrong == []
    assert len(turns) == pool.device_count()
    assert max(turns.values()) - min(turns.values()) <= 1
