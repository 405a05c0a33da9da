"""Pinned memory that is lent again."""

from __future__ import annotations

import random
import threading
import time
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.memory import PinnedPool
from tests.several_threads import running

from .conftest import compile_module


def test_memory_that_was_released_is_reused(stream: cudadrv.Stream) -> None:
    pool = PinnedPool()
    array = pool.empty((10, 100), "f4")
    array[...] = 3
    address, part = array.ctypes.data, array[2:4]
    del array
    assert pool.statistics() == (0, 1, 0)  # a view holds the whole
    assert (part == 3).all()
    del part
    assert pool.statistics() == (4096, 1, 0)
    again = pool.empty(1024, "f4")
    assert again.ctypes.data == address
    assert pool.statistics() == (0, 1, 1)
    other = pool.empty(1000, "f4")
    assert other.ctypes.data != address
    device = stream.to_device(again)
    assert stream.to_host(device, out=again) is again


def test_memory_in_use_by_a_kernel_is_reused_after_it(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = """
    extern "C" __global__ void slow(float* x, float value) {
        for (int i = 0; i < 1000; i++) x[0] = value + i;
    }"""
    kernel = compile_module(context, source).kernel("slow")
    pool = PinnedPool()
    for turn in range(4):
        array = pool.empty(8, "f4")
        array[:] = -1
        kernel.launch(stream, LaunchConfig(1, 1), array, float(turn))
        del array
        later = pool.empty(8, "f4")  # waits: what the kernel writes is written
        later[:] = 7
        stream.synchronize()
        assert (later == 7).all()
        del later
    assert pool.statistics().pinned == 1


def test_a_pool_keeps_what_it_may() -> None:
    pool = PinnedPool(max_cached_bytes=3 << 20)
    arrays = [pool.empty(1 << 20, "u1"), pool.empty(2_500_000, "u1"), pool.empty(100, "u1")]
    arrays.clear()
    assert pool.statistics() == ((1 << 20) + 4096, 3, 0)
    pool.trim()
    assert pool.statistics() == (0, 3, 0)
    assert pool.empty((0, 3), "f4").shape == (0, 3)
    assert pool.empty((), "f8").shape == ()


def test_a_pool_goes_on_with_another_driver() -> None:
    from cudadrv import emulator

    pool = PinnedPool()
    with emulator.session():
        first = pool.empty(10, "f4")
        del first
        assert pool.statistics().cached == 4096
    with emulator.session():
        second = pool.empty(10, "f4")
        stream = cudadrv.cuda_context_for(0).default_stream
        second[:] = 2
        assert (stream.to_host(stream.to_device(second)) == 2).all()
        del second


def test_what_is_no_size_is_rejected() -> None:
    with pytest.raises(ValueError, match="PinnedPool: max_cached_bytes"):
        PinnedPool(-1)
    with pytest.raises(TypeError, match="cannot live in device memory"):
        PinnedPool().empty(3, object)
    assert np.dtype("f4") == PinnedPool().empty(0, "f4").dtype


def test_a_pool_is_shown_with_what_it_holds() -> None:
    pool = cudadrv.memory.PinnedPool()
    assert repr(pool) == "<PinnedPool 0 bytes cached, pinned 0 times, reused 0 times>"


def test_statistics_hold_while_threads_use_the_pool() -> None:
    pool, stop = PinnedPool(1 << 20), threading.Event()
    taken = [0] * 4

    def work(number: int) -> None:
        draw = random.Random(number)
        while not stop.is_set():
            array = pool.empty(1 << draw.randrange(12, 18), "u1")
            array[:8] = number
            taken[number] += 1
            assert (array[:8] == number).all()
            del array

    with running([partial(work, number) for number in range(4)]):
        try:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                assert 0 <= pool.statistics().cached <= 2 << 20  # one a thread beyond the cap
        finally:
            stop.set()
    now = pool.statistics()
    assert now.pinned + now.reused == sum(taken)
