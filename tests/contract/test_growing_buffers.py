"""Device memory that grows where it is."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import AbstractContextManager

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.errors import ClosedError, InvalidValueError
from cudadrv.memory import GrowingBuffer
from tests.noted_calls import Call, calls_of

from .conftest import compile_module

MIB = 1 << 20
# What takes memory or addresses, each with what gives them back. Free memory itself would say it
# too, but other processes use the same GPU.
TAKEN = {
    "cuMemAddressReserve": "cuMemAddressFree",
    "cuMemCreate": "cuMemRelease",
    "cuMemMap": "cuMemUnmap",
}


def calls_that_give_and_take() -> AbstractContextManager[list[Call]]:
    return calls_of(*TAKEN, *TAKEN.values())


def expect_all_given_back(calls: list[Call], pieces: int) -> None:
    """A range with so many pieces of memory came and went, and the driver refused nothing."""
    assert {code for _, code in calls} == {0}
    count = Counter(name for name, _ in calls)
    taken = {"cuMemAddressReserve": 1, "cuMemCreate": pieces, "cuMemMap": pieces}
    assert count == {**taken, **{TAKEN[name]: times for name, times in taken.items()}}
    assert [name for name, _ in calls][-pieces - 1 :] == [
        *["cuMemUnmap"] * pieces,
        "cuMemAddressFree",
    ]


def test_a_buffer_grows_and_keeps_its_address_and_what_is_in_it(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = """
    extern "C" __global__ void add(int* x, int n, int value) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += value;
    }"""
    kernel = compile_module(context, source).kernel("add")
    with calls_that_give_and_take() as calls, GrowingBuffer(stream, 40 * MIB, 1000) as buffer:
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
    expect_all_given_back(calls, pieces=2)


@pytest.mark.slow
def test_a_dropped_buffer_goes_after_its_work(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with context.new_stream() as other, calls_that_give_and_take() as calls:
        buffer = GrowingBuffer(stream, 4 * MIB, 4 * MIB)
        array: DeviceArray[np.int32] = DeviceArray(buffer, MIB, np.int32)
        other.fill(array, 3)
        copied = other.contiguous(array[::2])
        assert "cuMemUnmap" not in dict(calls)
        del buffer, array
        gc.collect()
        expect_all_given_back(calls, pieces=1)
        assert (other.to_host(copied) == 3).all()


def test_a_buffer_grows_no_further_than_its_range(stream: cudadrv.Stream) -> None:
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
