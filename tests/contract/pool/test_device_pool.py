from __future__ import annotations

import itertools
import threading
from collections import Counter

import pytest

import cudadrv
from cudadrv import Device, DevicePool, emulator
from cudadrv.driver import ContextFlags
from cudadrv.emulator import EmulatedDevice
from cudadrv.errors import (
    ClosedError,
    InvalidDeviceError,
    InvalidValueError,
    NoDeviceError,
    OutOfMemoryError,
)
from tests.current_context import current_context
from tests.patience import SECONDS
from tests.several_threads import all_at_once

GIB = 1 << 30


def test_pool_with_empty_devices_returns_error() -> None:
    with emulator.session():
        with pytest.raises(InvalidValueError) as caught:
            DevicePool.with_devices([])
        assert caught.value.code == 1


def test_a_pool_of_all_devices_needs_one() -> None:
    with emulator.session() as machine:
        machine.fail("cuDeviceGetCount", with_=100)
        with pytest.raises(NoDeviceError):
            DevicePool()


def test_the_pool_keeps_the_order_given() -> None:
    with emulator.session(devices=3):
        devices = [Device.get(2), Device.get(0)]
        pool = DevicePool.with_devices(devices)
        assert [device for device, _ in pool] == devices
        assert [context.ordinal for _, context in pool] == [2, 0]
        assert (len(pool), pool.device_count()) == (2, 2)
        assert pool.device_at(0) is devices[0]
        assert pool.context_at(1) is pool.context(0)
        assert repr(pool) == "DevicePool(device_count=2, devices=[2, 0])"


def test_context_at_out_of_bounds_returns_error() -> None:
    with emulator.session(devices=2):
        pool = DevicePool()
        for index in (2, -1):
            with pytest.raises(InvalidValueError, match=f"index {index} of DevicePool"):
                pool.context_at(index)
            with pytest.raises(InvalidValueError):
                pool.device_at(index)
        with pytest.raises(InvalidDeviceError, match="device 5 of DevicePool"):
            pool.context(5)


@pytest.mark.parametrize(("size", "turns"), [(3, [0, 1, 2, 0, 1, 2, 0]), (1, [0] * 10)])
def test_round_robin_wraps(size: int, turns: list[int]) -> None:
    with emulator.session(devices=size):
        pool = DevicePool()
        assert [pool.next_device().ordinal for _ in turns] == turns


def test_the_best_device_has_the_most_free_memory_now() -> None:
    sizes = (8, 12, 12, 4)
    with emulator.session([EmulatedDevice(total_memory=gib * GIB) for gib in sizes]):
        pool = DevicePool()
        assert pool.best_available_device().ordinal == 1
        held = pool.context(1).default_stream.alloc(9 * GIB)
        assert pool.best_available_device().ordinal == 2
        second = pool.context(2).default_stream.alloc(9 * GIB)
        assert pool.best_available_device().ordinal == 0
        held.close()
        second.close()


def test_total_memory_breaks_a_tie_of_free_memory() -> None:
    with emulator.session([EmulatedDevice(total_memory=gib * GIB) for gib in (4, 8)]) as machine:
        machine.limit_memory(4 * GIB, ordinal=1)
        pool = DevicePool()
        first, second = (context.memory_info() for _, context in pool)
        assert first.free == second.free
        assert first.total < second.total
        assert pool.best_available_device().ordinal == 1


def test_without_flags_the_primary_contexts_are_shared_and_survive() -> None:
    with emulator.session(devices=2):
        with DevicePool() as pool:
            contexts = [context for _, context in pool]
            assert contexts == [cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)]
        assert all(not context.closed for context in contexts)


def test_with_flags_the_contexts_are_the_pools_own_and_go_with_it() -> None:
    with emulator.session(devices=2):
        pool = DevicePool(flags=ContextFlags.SCHED_BLOCKING_SYNC)
        contexts = [context for _, context in pool]
        assert not any(context.is_primary for context in contexts)
        stream = contexts[1].default_stream
        assert stream.to_host(stream.to_device([1, 2])).tolist() == [1, 2]
        pool.close()
        pool.close()
        assert pool.closed
        assert all(context.closed for context in contexts)
        for call in (pool.next_device, pool.best_available_device, lambda: list(pool)):
            with pytest.raises(ClosedError, match="the device pool was closed"):
                call()


def test_a_device_named_twice_has_one_context() -> None:
    with emulator.session(devices=1):
        device = Device.get(0)
        with DevicePool([device, device], flags=ContextFlags.SCHED_AUTO) as pool:
            assert pool.context_at(0) is pool.context_at(1)
            assert len(pool) == 2


@pytest.mark.parametrize("flags", [None, ContextFlags.SCHED_SPIN])
def test_a_pool_leaves_the_current_context_as_it_was(flags: ContextFlags | None) -> None:
    with emulator.session(devices=2):
        mine = cudadrv.cuda_context_for(0)
        with DevicePool(flags=flags) as pool:
            pool.best_available_device()
            assert current_context() == int(mine.handle)


def test_a_pool_that_cannot_be_made_whole_releases_what_it_made() -> None:
    with emulator.session(devices=3) as machine:
        destroyed = machine.fail("cuCtxDestroy", nth=1 << 30)
        with machine.fail("cuCtxCreate", nth=3, with_=2), pytest.raises(OutOfMemoryError):
            DevicePool(flags=ContextFlags.SCHED_AUTO)
        assert destroyed.calls == 2


def test_turns_are_even_over_threads() -> None:
    with emulator.session(devices=3):
        pool = DevicePool()
        seen: list[list[int]] = []
        meeting = threading.Barrier(32)

        def take() -> None:
            meeting.wait(SECONDS)
            seen.append([pool.next_device().ordinal for _ in range(101)])

        all_at_once([take] * 32)
        counts = Counter(itertools.chain.from_iterable(seen))
        assert sum(counts.values()) == 32 * 101
        assert max(counts.values()) - min(counts.values()) <= 1
