"""What is left, and what is said, where the driver refuses a step."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, MemoryPool, emulator
from cudadrv.errors import CudaError
from cudadrv.memory import GrowingBuffer, RegisteredArray


@pytest.mark.parametrize("call", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_buffer_that_cannot_grow_is_as_before_and_grows_later(call: str) -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        free = context.memory_info().free
        with GrowingBuffer(stream, 8 << 20, 1) as buffer:
            stream.fill(buffer, 3)
            machine.fail(call, with_=1)
            with pytest.raises(CudaError, match=f"(?s)growing .* {call} returned"):
                buffer.grow(4 << 20)
            assert buffer.nbytes == 2 << 20
            assert context.memory_info().free == free - (2 << 20)
            buffer.grow(4 << 20)
            array: DeviceArray[np.uint8] = DeviceArray(buffer, 4 << 20, np.uint8)
            assert stream.to_host(array[:5]).tolist() == [3] * 5
        assert context.memory_info().free == free


def test_a_range_that_cannot_be_reserved_leaves_nothing() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        machine.fail("cuMemAddressReserve", with_=2)
        with pytest.raises(CudaError, match="reserving a range of 8388608 bytes"):
            GrowingBuffer(stream, 8 << 20)


def test_a_pool_that_is_not_made_is_reported() -> None:
    with emulator.session() as machine:
        machine.fail("cuMemPoolCreate", with_=801)
        with pytest.raises(CudaError, match="making a memory pool of"):
            MemoryPool(max_bytes=5)
        with MemoryPool() as pool:
            machine.fail("cuMemPoolGetAttribute", with_=1)
            with pytest.raises(CudaError, match="querying <MemoryPool of device 0>"):
                pool.statistics()
            machine.fail("cuMemPoolTrimTo", with_=1)
            with pytest.raises(CudaError, match="emptying a closed memory pool"):
                pool.close()


@pytest.mark.parametrize(
    "call",
    [
        "cuMemPoolSetAttribute",
        "cuMemPoolTrimTo",
        "cuMemPoolGetAttribute",
        "cuDeviceGetCount",
        "cuMemPoolGetAccess",
        "cuMemPoolSetAccess",
    ],
)
def test_a_retired_pool_whose_calls_fail_is_reported_and_abandoned(call: str) -> None:
    with emulator.session(devices=2) as machine:
        with MemoryPool() as pool:
            number = int(pool.handle)
            pool.open_to(1)
        machine.fail(call, with_=1)
        with pytest.raises(CudaError, match=f"emptying a closed memory pool: {call} returned"):
            MemoryPool()
        with MemoryPool() as other:
            assert int(other.handle) != number


def test_memory_that_is_not_pinned_is_not_unpinned() -> None:
    with emulator.session() as machine:
        array = np.zeros(1000)
        machine.fail("cuMemHostRegister", with_=2)
        with pytest.raises(cudadrv.OutOfMemoryError, match="pinning 8000 bytes of a host array"):
            RegisteredArray(array)
        with RegisteredArray(array):
            pass


def test_what_the_device_has_not_is_not_mapped() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        with GrowingBuffer(stream, 1 << 30, 1) as buffer, machine.limit_memory(64 << 20):
            with pytest.raises(cudadrv.OutOfMemoryError, match="which has .* bytes free"):
                buffer.grow(1 << 30)
            assert buffer.nbytes == 2 << 20
            stream.fill(buffer, 1)
            buffer.grow(32 << 20)
