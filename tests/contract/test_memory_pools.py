"""Pools of the user's own, and resources that call functions."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import cudadrv
from cudadrv import MemoryPool, using_memory
from cudadrv.driver._api import CUmemoryPool, CUresult
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ClosedError,
    OutOfMemoryError,
    PeerAccessUnsupportedError,
    WrongDeviceError,
)
from cudadrv.memory import DriverMemory, HookedMemory, MemoryStream
from tests.noted_calls import calls_of, replaced_calls

MIB = 1 << 20


def test_a_pool_counts_what_it_handed_out_and_retains_up_to_its_threshold(
    stream: cudadrv.Stream,
) -> None:
    with MemoryPool(release_threshold=1 << 40) as pool:
        assert pool.statistics() == (0, 0, 0, 0)
        with using_memory(pool):
            first, second = stream.zeros(MIB, "u1"), stream.zeros(3 * MIB, "u1")
        now = pool.statistics()
        assert (now.used, now.used_high) == (4 * MIB, 4 * MIB)
        assert now.reserved >= 4 * MIB
        second.close()
        stream.synchronize()
        now = pool.statistics()
        assert (now.used, now.used_high) == (MIB, 4 * MIB)
        assert now.reserved == now.reserved_high
        pool.reset_high_water()
        assert pool.statistics().used_high == MIB
        first.close()
        stream.synchronize()
        assert pool.release_threshold() == 1 << 40
        assert pool.statistics().reserved > 0
        pool.trim()
        assert pool.statistics().reserved == 0


def test_a_pool_allocates_no_more_than_its_limit(stream: cudadrv.Stream) -> None:
    with MemoryPool(max_bytes=64 * MIB) as pool, using_memory(pool):
        array = stream.empty(48 * MIB, "u1")
        with pytest.raises(OutOfMemoryError, match="of <MemoryPool of device 0>, which has 503"):
            stream.empty(48 * MIB, "u1")
        array.close()
        assert stream.empty(48 * MIB, "u1").nbytes == 48 * MIB


def test_what_a_pool_gave_outlives_it(stream: cudadrv.Stream) -> None:
    pool = MemoryPool()
    stream.use_memory(pool)
    array = stream.to_device(np.arange(10))
    pool.close()
    with pytest.raises(ClosedError, match="the memory pool of device 0 was closed"):
        stream.empty(3, "f4")
    with pytest.raises(ClosedError):
        pool.statistics()
    stream.use_memory(None)
    assert stream.to_host(array[::3]).tolist() == [0, 3, 6, 9]
    array.close()
    pool.close()
    del pool
    gc.collect()
    stream.synchronize()


def test_a_closed_pool_is_destroyed_after_its_last_memory(second_context: cudadrv.Context) -> None:
    """Driver 580 crashed later, on two H200s: it destroyed the pool with memory in use."""
    stream = second_context.default_stream
    with calls_of("cuMemPoolDestroy") as destroyed:
        with MemoryPool(second_context.device) as pool, using_memory(pool):
            first, second = stream.to_device(np.arange(10)), stream.zeros(4, "f4")
        assert pool.closed
        first.close()
        assert not destroyed
        second.close()
        assert len(destroyed) == 1


def test_a_pool_is_destroyed_after_the_frees_that_are_queued(
    second_context: cudadrv.Context,
) -> None:
    """Driver 580 crashed in a later call, on two H200s: frees were queued when a pool ended."""
    stream, destroy = second_context.default_stream, current().api.cuMemPoolDestroy
    done: list[bool] = []

    def cuMemPoolDestroy(pool: CUmemoryPool) -> tuple[CUresult]:
        done.append(stream.is_done())
        return destroy(pool)

    with replaced_calls(cuMemPoolDestroy=cuMemPoolDestroy):
        with MemoryPool(second_context.device) as pool, using_memory(pool):
            array = stream.zeros(4, "f4")
        stream.call_on_host(time.sleep, 0.02)
        array.close()
        with MemoryPool(second_context.device) as pool, using_memory(pool):
            stream.zeros(4, "f4").close()
            stream.call_on_host(time.sleep, 0.02)
    assert done == [True, True]


def test_a_stream_of_two_pools_retains_both_until_its_memory_is_freed(
    second_context: cudadrv.Context,
) -> None:
    """A resource may take one piece of two pools, such as a header beside the data."""
    stream = second_context.default_stream
    small, large = (MemoryPool(second_context.device) for _ in range(2))
    headers: list[int] = []

    class Both:
        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            address = large.allocate(nbytes, stream)
            headers.append(small.allocate(16, stream))
            return address

        def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
            small.deallocate(headers.pop(), 16, stream)
            large.deallocate(address, nbytes, stream)

    with calls_of("cuMemPoolDestroy") as destroyed:
        with using_memory(Both()):
            array = stream.zeros(100, "u1")
        small.close()
        large.close()
        gc.collect()
        assert not destroyed
        assert not stream.to_host(array).any()
        array.close()
        gc.collect()
        assert len(destroyed) == 2


def test_a_pool_is_of_one_device(stream: cudadrv.Stream, second_context: cudadrv.Context) -> None:
    with MemoryPool(1) as pool, using_memory(pool):
        with pytest.raises(WrongDeviceError, match="choose a pool of that"):
            stream.empty(3, "f4")
        other = second_context.default_stream
        array = other.to_device(np.arange(5))
        with using_memory(DriverMemory()):
            here = stream.zeros(5, array.dtype)
        assert not pool.is_open_to(0)
        try:
            pool.open_to(0)
        except PeerAccessUnsupportedError:
            assert not pool.is_open_to(0)
        else:
            assert pool.is_open_to(0)
        stream.copy(here, array)
        assert stream.to_host(here).tolist() == [0, 1, 2, 3, 4]
        array.close()
        other.synchronize()


def test_pools_that_are_no_such_are_rejected() -> None:
    with pytest.raises(TypeError, match="MemoryPool: max_bytes"):
        MemoryPool(max_bytes=1.5)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ValueError, match="MemoryPool: max_bytes"):
        MemoryPool(max_bytes=-1)
    with pytest.raises(cudadrv.CudaError, match="getting device 99"):
        MemoryPool(99)


def test_functions_are_notified_of_memory_that_is_allocated_and_freed(
    stream: cudadrv.Stream,
) -> None:
    told: list[tuple[str, int, int]] = []

    def allocated(address: int, nbytes: int, place: MemoryStream) -> None:
        assert place.owner is stream
        told.append(("taken", address, nbytes))
        if nbytes > 1000:
            raise MemoryError("too much")

    def released(address: int, nbytes: int, place: MemoryStream) -> None:
        told.append(("given", address, nbytes))

    with using_memory(HookedMemory(allocated=allocated, released=released)):
        array = stream.zeros(10, "f4")
        address = array.ptr
        array.close()
        with pytest.raises(MemoryError, match="too much"):
            stream.empty(1001, "u1")
    assert told == [("taken", address, 40), ("given", address, 40), ("taken", told[2][1], 1001)]
    with MemoryPool() as pool:
        with using_memory(HookedMemory(pool)):
            array = stream.zeros(10, "f4")
        assert pool.statistics().used == 40
        array.close()
    with pytest.raises(TypeError, match="HookedMemory: released"):
        HookedMemory(released=3)  # type: ignore[arg-type]  # what is tested
