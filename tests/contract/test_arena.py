from __future__ import annotations

import gc
import os
import threading
import time
from collections import deque
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArena, emulator
from cudadrv.errors import (
    ClosedError,
    CudadrvError,
    DriverCallFailed,
    DTypeError,
    InvalidValueError,
    OutOfMemoryError,
    StreamCaptureUnsupportedError,
)
from cudadrv.memory.reuse.arena import Lease, SlabReleaseError
from tests.several_threads import running

STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))


def test_a_fresh_slab_is_zeroed_and_a_reused_one_is_not(stream: cudadrv.Stream) -> None:
    arena = DeviceArena()
    bucket, slab = arena.alloc(stream, 100, "fit")
    assert (bucket, slab.shape, slab.dtype) == (128, (128,), np.dtype(np.float64))
    assert not stream.to_host(slab).any()
    stream.fill(slab, 7.0)
    arena.release(bucket, slab)
    assert arena.alloc(stream, 65, "fit") == (128, slab)
    assert (stream.to_host(slab) == 7.0).all()


def test_buckets_are_powers_of_two_of_elements(stream: cudadrv.Stream) -> None:
    assert [DeviceArena.bucket_of(n) for n in (0, 1, 2, 3, 1000, 1024, 1025)] == [
        1, 1, 2, 4, 1024, 1024, 2048,
    ]  # fmt: skip
    arena = DeviceArena("i2")
    bucket, slab = arena.alloc(stream, 0, "fit")
    assert (bucket, slab.shape, slab.nbytes) == (1, (1,), 2)
    with pytest.raises(InvalidValueError, match="a slab of -3 elements"):
        arena.alloc(stream, -3, "fit")


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "c16", "i8"])
def test_an_arena_has_a_dtype(stream: cudadrv.Stream, dtype: str) -> None:
    arena = DeviceArena(dtype)
    _, slab = arena.alloc(stream, 5)
    assert slab.dtype == np.dtype(dtype)
    assert slab.nbytes == 8 * np.dtype(dtype).itemsize
    with pytest.raises(DTypeError):
        DeviceArena(object)
    with pytest.raises(InvalidValueError, match="cap of -1 bytes"):
        DeviceArena(dtype, max_cached_bytes=-1)


def test_reuse_on_another_stream_waits_for_the_first(context: cudadrv.Context) -> None:
    arena = DeviceArena("i4")
    with context.new_stream() as first, context.new_stream() as second:
        for value in range(20):
            bucket, slab = arena.alloc(first, 1 << 18)
            first.fill(slab, -1)
            seen = first.empty(1 << 18, "i4")
            first.copy(seen, slab)
            arena.release(bucket, slab)
            bucket, slab = arena.alloc(second, 1 << 18)
            second.fill(slab, value)
            assert slab.stream is second
            assert (first.to_host(seen) == -1).all()
            assert (second.to_host(slab) == value).all()
            arena.release(bucket, slab)
        now = arena.statistics()
        assert (now.slabs, now.allocations, now.hits) == (1, 40, 39)
        arena.close()


def test_a_slab_of_a_closed_stream_is_still_reused(context: cudadrv.Context) -> None:
    arena = DeviceArena()
    with context.new_stream() as first:
        bucket, slab = arena.alloc(first, 1000)
        first.fill(slab, 3)
        arena.release(bucket, slab)
    with context.new_stream() as second:
        assert arena.alloc(second, 1000)[1] is slab
        assert (second.to_host(slab) == 3).all()
        arena.release(bucket, slab)
        arena.trim()
    with pytest.raises(ClosedError, match="fit arena alloc"):
        arena.alloc(first, 1000, "fit")


def test_totals_high_water_and_hit_rate_can_be_read(stream: cudadrv.Stream) -> None:
    arena = DeviceArena()
    assert arena.statistics().hit_rate == 0.0
    pairs = [arena.alloc(stream, 1 << bits) for bits in range(4)]
    for pair in pairs:
        arena.release(*pair)
    _, last = arena.alloc(stream, 3)
    now = arena.statistics()
    assert (now.in_use_bytes, now.cached_bytes, now.held_bytes) == (32, 88, 120)
    assert (now.high_water_bytes, now.slabs) == (120, 4)
    assert (now.allocations, now.hits, now.hit_rate) == (5, 1, 0.2)
    assert arena.trim(40) == 64
    assert arena.statistics().cached_bytes == 24
    assert repr(arena) == "<DeviceArena float64: 32 bytes in use, 24 cached>"
    last.close()
    assert arena.statistics().in_use_bytes == 0
    assert arena.statistics().high_water_bytes == 120


def test_the_cap_holds_as_the_largest_is_freed(stream: cudadrv.Stream) -> None:
    arena = DeviceArena("u1", max_cached_bytes=1000)
    pairs = [arena.alloc(stream, n) for n in (512, 256, 128, 128)]
    for pair in pairs:
        arena.release(*pair)
    assert arena.statistics().cached_bytes == 512  # 256 + 128 + 128
    assert pairs[0][1].closed
    arena.release(*arena.alloc(stream, 4096))
    assert arena.statistics().cached_bytes == 512
    nothing = DeviceArena(max_cached_bytes=0)
    nothing.release(*nothing.alloc(stream, 5))
    assert nothing.statistics().held_bytes == 0


def test_a_double_release_and_a_foreign_slab_are_errors(stream: cudadrv.Stream) -> None:
    arena, other = DeviceArena(), DeviceArena()
    bucket, slab = arena.alloc(stream, 10)
    with pytest.raises(SlabReleaseError, match="another arena"):
        other.release(bucket, slab)
    with pytest.raises(SlabReleaseError, match="is no slab of an arena"):
        arena.release(bucket, stream.zeros(16, "f8"))
    with pytest.raises(SlabReleaseError, match="is of bucket 16, not 32"):
        arena.release(32, slab)
    arena.release(bucket, slab)
    with pytest.raises(SlabReleaseError, match="released already"):
        arena.release(bucket, slab)
    assert arena.statistics().cached_bytes == 128


def test_a_slab_closes_in_hand_and_not_after_its_release(stream: cudadrv.Stream) -> None:
    arena = DeviceArena()
    bucket, slab = arena.alloc(stream, 10)
    view = slab[2:5]
    arena.release(bucket, slab)
    view.close()
    slab.close()
    assert arena.alloc(stream, 10)[1] is slab
    assert slab.ptr == slab.buffer.ptr
    slab.close()
    assert slab.closed
    with pytest.raises(SlabReleaseError, match="released already, or closed"):
        arena.release(bucket, slab)
    assert arena.statistics().held_bytes == 0


def test_a_dropped_slab_is_freed_and_counted(stream: cudadrv.Stream) -> None:
    arena = DeviceArena()
    arena.alloc(stream, 10)
    gc.collect()
    now = arena.statistics()
    assert (now.held_bytes, now.slabs, now.allocations) == (0, 0, 1)


def test_memory_that_does_not_fit_is_reported_with_the_label(stream: cudadrv.Stream) -> None:
    arena = DeviceArena("u1")
    kept = arena.alloc(stream, 1 << 20)
    arena.release(*kept)
    bucket = arena.bucket_of(4 * stream.context.memory_info().total)
    with pytest.raises(DriverCallFailed) as caught:
        arena.alloc(stream, bucket, "survival_flex")
    assert caught.value.reason.startswith(f"survival_flex arena alloc_zeros<{bucket}>: ")
    assert isinstance(caught.value.__cause__, OutOfMemoryError)
    assert arena.statistics().held_bytes == 0  # what was cached was given up first
    stream.synchronize()


def test_cached_slabs_make_way_for_a_request_that_does_not_fit() -> None:
    with emulator.session(total_memory=256 << 20):
        stream = cudadrv.cuda_context_for(0).default_stream
        arena = DeviceArena("u1")
        pairs = [arena.alloc(stream, 64 << 20) for _ in range(2)]
        for pair in pairs:
            arena.release(*pair)
        _, slab = arena.alloc(stream, 128 << 20, "fit")
        assert slab.nbytes == 128 << 20
        assert arena.statistics().slabs == 1


def test_a_capture_is_rejected_and_harms_nothing(stream: cudadrv.Stream) -> None:
    arena = DeviceArena()
    arena.release(*arena.alloc(stream, 10))
    with stream.capture(), pytest.raises(StreamCaptureUnsupportedError, match="fit arena alloc"):
        arena.alloc(stream, 10, "fit")
    assert arena.alloc(stream, 10)[0] == 16


def test_an_arena_serves_several_devices(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    arena = DeviceArena()
    here, there = context.default_stream, second_context.default_stream
    bucket, slab = arena.alloc(here, 10)
    arena.release(bucket, slab)
    other = arena.alloc(there, 10)[1]
    assert other is not slab
    assert other.context is second_context
    assert not there.to_host(other).any()


def test_threads_on_one_arena_double_nothing_and_lose_nothing(context: cudadrv.Context) -> None:
    arena = DeviceArena("i8", max_cached_bytes=1 << 20)
    faults: list[object] = []
    turns = [0] * 32
    stop = threading.Event()

    def work(number: int) -> None:
        try:
            with context.new_stream() as stream:
                while not (turns[number] and stop.is_set()):
                    turns[number] += 1
                    bucket, slab = arena.alloc(stream, 1 + (turns[number] * 7 + number) % 300)
                    stream.fill(slab, number)
                    if turns[number] % 8 == 0 and (stream.to_host(slab) != number).any():
                        faults.append("another thread wrote into the slab")
                    arena.release(bucket, slab)
        except CudadrvError as error:
            faults.append(error)

    with running([partial(work, number) for number in range(32)]):
        time.sleep(STRESS_SECONDS)
        stop.set()
    now = arena.statistics()
    assert not faults
    assert all(turns)
    assert now.allocations == sum(turns)
    assert now.in_use_bytes == 0
    assert now.held_bytes == now.cached_bytes <= 1 << 20
    arena.close()
    assert arena.statistics().held_bytes == 0


def test_a_stream_that_closes_while_a_slab_is_made_is_no_failure_of_the_driver(
    context: cudadrv.Context,
) -> None:
    arena, stream = DeviceArena(np.int32), context.new_stream()
    stream.close()
    with pytest.raises(ClosedError):  # as from there on, where another thread closed it
        arena._fresh(stream, 1024, Lease(4096, deque()), "")


def test_a_borrowed_slab_is_released_at_the_end_of_its_block(stream: cudadrv.Stream) -> None:
    arena = DeviceArena(np.float32)
    with arena.borrow(stream, 100, "fit") as slab:
        assert (slab.shape, arena.statistics().cached_bytes) == ((128,), 0)
        stream.fill(slab, 3)
    with pytest.raises(ZeroDivisionError), arena.borrow(stream, 65) as again:
        assert again is slab
        raise ZeroDivisionError
    now = arena.statistics()
    assert (now.in_use_bytes, now.cached_bytes, now.slabs, now.hits) == (0, 512, 1, 1)
    with pytest.raises(InvalidValueError, match="-1 elements"), arena.borrow(stream, -1):
        raise AssertionError
