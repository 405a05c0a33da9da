"""Device memory that grows where it is."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, GrowingBuffer, LaunchConfig
from cudadrv.errors import ClosedError, InvalidValueError

from .conftest import compile_module

MIB = 1 << 20


def test_a_buffer_grows_and_keeps_its_address_and_what_is_in_it(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = """
    extern "C" __global__ void add(int* x, int n, int value) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += value;
    }"""
    kernel = compile_module(context, source).kernel("add")
    gc.collect()
    free = context.memory_info().free
    with GrowingBuffer(stream, 40 * MIB, 1000) as buffer:
        unit = buffer.granularity
        assert buffer.nbytes == unit
        assert buffer.capacity >= 40 * MIB
        address, count = buffer.ptr, unit // 4
        first: DeviceArray[np.int32] = DeviceArray(buffer, count, np.int32)
        stream.copy(first, np.arange(count, dtype=np.int32))
        buffer.grow(unit + 1)
        buffer.grow(5)
        assert (buffer.nbytes, buffer.ptr) == (2 * unit, address)
        whole: DeviceArray[np.int32] = DeviceArray(buffer, 2 * count, np.int32)
        stream.fill(whole[count:], -1)
        config = LaunchConfig.for_elements(2 * count)
        kernel.launch(stream, config, whole, 2 * count, 1)
        found = stream.to_host(whole)
        assert np.array_equal(found[:count], np.arange(1, count + 1))
        assert not found[count:].any()
        assert np.array_equal(stream.to_host(first), found[:count])
        # A copy over the border of two pieces of memory.
        stream.copy(whole[count - 5 : count + 5], np.arange(10, dtype=np.int32))
        assert stream.to_host(whole[count - 5 : count + 5]).tolist() == list(range(10))
    assert first.closed
    gc.collect()
    stream.synchronize()
    assert context.memory_info().free >= free  # more where tests before have left something


def test_a_dropped_buffer_goes_after_its_work(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    free = context.memory_info().free
    with context.new_stream() as other:
        buffer = GrowingBuffer(stream, 4 * MIB, 4 * MIB)
        array: DeviceArray[np.int32] = DeviceArray(buffer, MIB, np.int32)
        other.fill(array, 3)
        copied = other.contiguous(array[::2])
        del buffer, array
        gc.collect()
        assert (other.to_host(copied) == 3).all()
        copied.close()
        other.synchronize()
    stream.synchronize()
    cudadrv.trim_pool(context.device)
    gc.collect()
    assert context.memory_info().free >= free


def test_a_buffer_grows_no_further_than_its_range(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    buffer = GrowingBuffer(stream, 4 * MIB)
    assert buffer.nbytes == 0
    with pytest.raises(InvalidValueError, match="cannot grow to"):
        buffer.grow(buffer.capacity + 1)
    with pytest.raises(InvalidValueError, match="does not fit a buffer of 0 bytes"):
        DeviceArray(buffer, 1, np.int32)
    buffer.close()
    buffer.close()
    with pytest.raises(ClosedError):
        buffer.grow(5)
    with pytest.raises(ValueError, match="GrowingBuffer: capacity"):
        GrowingBuffer(stream, 0)
