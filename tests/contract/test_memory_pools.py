"""Pools of the user's own, and resources that call functions."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import cudadrv
from cudadrv import MemoryPool, using_memory
from cudadrv.errors import (
    ClosedError,
    OutOfMemoryError,
    PeerAccessUnsupportedError,
    WrongDeviceError,
)
from cudadrv.memory import DriverMemory, HookedMemory, MemoryStream
from tests.noted_calls import calls_of

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


def test_memory_whose_free_is_queued_is_reserved_and_not_used(stream: cudadrv.Stream) -> None:
    with MemoryPool() as pool, using_memory(pool):
        array = stream.zeros(MIB, "u1")
        stream.synchronize()
        stream.call_on_host(time.sleep, 0.02)
        array.close()
        sizes, was_done = pool.statistics(), stream.is_done()
        assert sizes.used == 0
        assert sizes.reserved or was_done
        pool.trim()
        assert pool.statistics().reserved or stream.is_done()
        stream.synchronize()
        assert pool.statistics()[:2] == (0, 0)


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


def test_a_closed_pool_is_taken_by_a_later_one_after_its_last_memory(
    second_context: cudadrv.Context,
) -> None:
    """Driver 580 crashed later, on two H200s: a pool was destroyed that streams had used."""
    stream, device, limit = second_context.default_stream, second_context.device, 96 * MIB
    with calls_of("cuMemPoolDestroy") as destroyed:
        with MemoryPool(device, max_bytes=limit) as pool, using_memory(pool):
            first, second = stream.to_device(np.arange(10)), stream.zeros(4, "f4")
            number = int(pool.handle)
        assert pool.closed
        first.close()
        stream.synchronize()
        with MemoryPool(device, max_bytes=limit) as other:
            assert int(other.handle) != number
            assert stream.to_host(second).tolist() == [0, 0, 0, 0]
            second.close()
            stream.synchronize()
            with MemoryPool(device, max_bytes=2 * limit) as larger:
                assert int(larger.handle) != number
            with MemoryPool(device, max_bytes=limit) as later:
                assert int(later.handle) == number
    assert not destroyed


def test_a_pool_whose_frees_are_queued_is_not_taken(second_context: cudadrv.Context) -> None:
    stream, device, limit = second_context.default_stream, second_context.device, 160 * MIB
    with MemoryPool(device, max_bytes=limit) as pool, using_memory(pool):
        number = int(pool.handle)
        stream.zeros(4, "f4").close()
        stream.call_on_host(time.sleep, 0.02)
        stream.zeros(4, "f4").close()
    with MemoryPool(device, max_bytes=limit) as other:
        was_done = stream.is_done()
        assert int(other.handle) != number or was_done
    stream.synchronize()
    taken = [MemoryPool(device, max_bytes=limit) for _ in range(2)]
    assert number in [int(pool.handle) for pool in taken]
    for pool in taken:
        pool.close()


def test_a_pool_that_takes_a_closed_one_is_as_a_new_one(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    limit = 224 * MIB
    with MemoryPool(max_bytes=limit, release_threshold=1 << 40) as pool:
        number = int(pool.handle)
        try:
            pool.open_to(second_context.device)
        except PeerAccessUnsupportedError:
            pass
        with using_memory(pool):
            stream.zeros(MIB, "u1").close()
        stream.synchronize()
        assert pool.statistics().reserved
    with MemoryPool(max_bytes=limit) as later:
        assert int(later.handle) == number
        assert later.statistics() == (0, 0, 0, 0)
        assert later.release_threshold() == 0
        assert not later.is_open_to(second_context.device)
        assert later.is_open_to(0)


def test_a_pool_that_other_processes_may_have_is_destroyed_and_not_taken(
    stream: cudadrv.Stream,
) -> None:
    limit = 288 * MIB
    with calls_of("cuMemPoolDestroy") as destroyed:
        with MemoryPool(max_bytes=limit, shareable=True) as pool, using_memory(pool):
            number = int(pool.handle)
            stream.zeros(MIB, "u1").close()
        stream.synchronize()
        with MemoryPool(max_bytes=limit, shareable=True) as again:
            assert int(again.handle) == number
            assert again.descriptor >= 0
            with using_memory(again):
                array = stream.zeros(MIB, "u1")
        with MemoryPool(max_bytes=limit, shareable=True) as other:
            assert int(other.handle) != number
        array.close()
        stream.synchronize()
        MemoryPool(max_bytes=limit).close()
    assert len(destroyed) == 1


def test_a_stream_of_two_pools_retains_both_until_its_memory_is_freed(
    second_context: cudadrv.Context,
) -> None:
    """A resource may take one piece of two pools, such as a header beside the data."""
    stream, device, limit = second_context.default_stream, second_context.device, 352 * MIB
    small, large = (MemoryPool(device, max_bytes=limit) for _ in range(2))
    numbers = {int(small.handle), int(large.handle)}
    headers: list[int] = []

    class Both:
        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            address = large.allocate(nbytes, stream)
            headers.append(small.allocate(16, stream))
            return address

        def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
            small.deallocate(headers.pop(), 16, stream)
            large.deallocate(address, nbytes, stream)

    def taken() -> list[MemoryPool]:
        """Make two pools of the same limit."""
        stream.synchronize()
        return [MemoryPool(device, max_bytes=limit) for _ in range(2)]

    with using_memory(Both()):
        array = stream.zeros(100, "u1")
    small.close()
    large.close()
    gc.collect()
    others = taken()
    assert numbers.isdisjoint(int(pool.handle) for pool in others)
    assert not stream.to_host(array).any()
    array.close()
    gc.collect()
    later = taken()
    assert {int(pool.handle) for pool in later} == numbers
    for pool in (*others, *later):
        pool.close()


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
