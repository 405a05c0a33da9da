"""Host memory that devices reach: registered, used in place, managed with advice."""

from __future__ import annotations

import gc
import mmap
import weakref
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.driver import DeviceAttribute
from cudadrv.errors import (
    ArgumentError,
    ClosedError,
    CopyError,
    CudaError,
    InvalidValueError,
    UnsupportedError,
)
from cudadrv.memory import Advice, Attachment, PinnedPool, RegisteredArray, advise

from .conftest import compile_module

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'


@pytest.fixture(scope="module")
def kernel(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, SOURCE).kernel("twice")


def test_memory_of_the_host_is_pinned_for_a_while(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    pages = np.frombuffer(mmap.mmap(-1, 1 << 16), np.float32)
    pages[:8] = range(8)
    with RegisteredArray(pages) as registered:
        assert registered.array is pages
        kernel.launch(stream, LaunchConfig(1, 8), pages)
        stream.synchronize()
        assert pages[:8].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
        device = stream.zeros(pages.shape, "f4")
        stream.copy(pages, device, wait=False)
        stream.synchronize()
        assert not pages.any()
        with pytest.raises(CudaError, match="pinning 65536 bytes of a host array"):
            RegisteredArray(pages)
    assert registered.closed
    registered.close()
    with pytest.raises(ArgumentError, match="is a host array"):
        kernel.launch(stream, LaunchConfig(1, 8), pages)
    with RegisteredArray(pages):
        pass


def test_a_registration_keeps_the_array_and_goes_with_its_last_name() -> None:
    array = np.zeros(1000)
    alive = weakref.ref(array)
    registered = RegisteredArray(array)
    del array
    gc.collect()
    assert alive() is not None
    del registered
    gc.collect()
    assert alive() is None


def test_what_cannot_be_pinned_is_rejected() -> None:
    with pytest.raises(CopyError, match="not C-contiguous"):
        RegisteredArray(np.zeros((4, 4)).T[1:])
    with pytest.raises(InvalidValueError, match="no bytes"):
        RegisteredArray(np.zeros(0))
    with pytest.raises(TypeError, match="RegisteredArray: array"):
        RegisteredArray([1.0])  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("make", [cudadrv.pinned_empty, cudadrv.managed_empty])
def test_host_memory_is_a_device_array_in_place(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel, make: object
) -> None:
    assert callable(make)
    host = make((4, 8), "f4")
    host[...] = np.arange(32).reshape(4, 8)
    device = stream.in_place(host)
    assert device.shape == (4, 8)
    kernel.launch(stream, LaunchConfig(1, 32), device)
    stream.fill(device[1], 5)
    part = stream.in_place(host[::2, ::-1])
    assert np.array_equal(stream.to_host(part), 2 * np.arange(32).reshape(4, 8)[::2, ::-1])
    stream.synchronize()
    assert host[1].tolist() == [5] * 8
    assert host[2, 0] == 32
    alive = weakref.ref(host)
    del host
    gc.collect()
    assert alive() is not None
    device.close()
    with pytest.raises(ClosedError):
        stream.to_host(device)


@pytest.fixture
def node(context: cudadrv.Context) -> int:
    """The NUMA node of the host that is nearest to the device."""
    try:
        has_pools = context.device.attribute(DeviceAttribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED)
    except InvalidValueError:
        has_pools = 0
    if not has_pools:
        with pytest.raises(UnsupportedError, match="pinned_empty: numa_node: device 0"):
            cudadrv.pinned_empty(1, "f4", numa_node=0)
        pytest.skip("the driver has no pools of NUMA nodes")
    return max(context.device.attribute(DeviceAttribute.HOST_NUMA_ID), 0)


def test_pinned_memory_of_a_numa_node_is_copied_and_used_by_kernels(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel, node: int
) -> None:
    host = cudadrv.pinned_empty((4, 8), np.float32, numa_node=node)
    host[...] = np.arange(32).reshape(4, 8)
    device = stream.to_device(host)
    kernel.launch(stream, LaunchConfig(1, 32), device)
    kernel.launch(stream, LaunchConfig(1, 32), stream.in_place(host))
    stream.synchronize()
    assert host.ravel().tolist() == list(range(0, 64, 2))
    host[...] = 0
    assert stream.to_host(device, out=host) is host
    assert host.ravel().tolist() == list(range(0, 64, 2))
    assert cudadrv.pinned_empty((0, 3), "f4", numa_node=node).shape == (0, 3)


def test_a_pinned_pool_reuses_memory_of_its_numa_node(stream: cudadrv.Stream, node: int) -> None:
    pool = PinnedPool(numa_node=node)
    array = pool.empty(1000, "f8")
    address = array.ctypes.data
    del array
    again = pool.empty(900, "f8")
    assert again.ctypes.data == address
    assert pool.statistics() == (0, 1, 1)
    again[...] = 7
    assert (stream.to_host(stream.to_device(again)) == 7).all()


def test_memory_of_a_numa_node_is_freed_after_the_work_that_uses_it(
    stream: cudadrv.Stream, node: int
) -> None:
    target = stream.empty(1 << 20, "u1")
    for value in range(5):
        host = cudadrv.pinned_empty(1 << 20, "u1", numa_node=node)
        host[...] = value
        stream.copy(target, host, wait=False)
        del host
        cudadrv.pinned_empty(1 << 20, "u1", numa_node=node)[...] = 99
        assert (stream.to_host(target) == value).all()


def test_wrong_numa_nodes_are_rejected(node: int) -> None:
    del node
    with pytest.raises(CudaError, match="making a pool of memory of NUMA node 9999 of the host"):
        cudadrv.pinned_empty(1, "f4", numa_node=9999)
    for make in (partial(cudadrv.pinned_empty, 1, "f4"), PinnedPool):
        for wrong in (-1, 1.5, "0"):
            with pytest.raises((TypeError, ValueError), match="numa_node"):
                make(numa_node=wrong)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(cudadrv.OutOfMemoryError, match="bytes of NUMA node 0 of the host"):
        cudadrv.pinned_empty(2**64, "u1", numa_node=0)


def test_a_driver_without_pools_of_numa_nodes_is_named() -> None:
    lacks = {DeviceAttribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED: 0}
    # The bindings of CUDA 12 lack the attribute.
    device = emulator.EmulatedDevice(attributes=lacks)  # type: ignore[arg-type]
    with emulator.session([device]):
        text = "numa_node: device 0 has none of it, with a driver of CUDA"
        with pytest.raises(UnsupportedError, match=f"pinned_empty: {text}"):
            cudadrv.pinned_empty(1, "f4", numa_node=0)
        with pytest.raises(UnsupportedError, match=f"PinnedPool: {text}"):
            PinnedPool(numa_node=0)
        assert PinnedPool().empty(1, "f4").shape == (1,)


def test_ordinary_memory_has_no_place_on_a_device(stream: cudadrv.Stream) -> None:
    with pytest.raises(CopyError, match="in ordinary memory has no place on a device"):
        stream.in_place(np.zeros(3))
    assert stream.in_place(np.zeros((0, 3))).shape == (0, 3)


def test_managed_memory_is_advised_and_moved(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    array = cudadrv.managed_empty((1 << 14,), "f4")
    array[...] = 1
    advise(array, Advice.READ_MOSTLY)
    advise(array, Advice.NOT_READ_MOSTLY)
    moves = stream.context.device.attribute(DeviceAttribute.CONCURRENT_MANAGED_ACCESS)
    if moves:
        advise(array, Advice.PREFERRED_LOCATION, 0)
        advise(array, Advice.ACCESSED_BY, 0)
        stream.prefetch(array)
        stream.prefetch(array[:4096], 0)
    kernel.launch(stream, LaunchConfig(1, 32), stream.in_place(array))
    if moves:
        stream.prefetch(stream.in_place(array), "host")
    stream.synchronize()
    assert array[:33].tolist() == [2] * 32 + [1]
    stream.attach(array, Attachment.HOST)
    stream.attach(array, Attachment.GLOBAL)
    stream.synchronize()


def test_advice_for_other_memory_is_rejected(stream: cudadrv.Stream) -> None:
    pinned, managed = cudadrv.pinned_empty(8, "f4"), cudadrv.managed_empty((4, 8), "f4")
    for array in (pinned, np.zeros(3), stream.zeros(3, "f4")):
        with pytest.raises(InvalidValueError, match="is in no managed memory"):
            advise(array, Advice.READ_MOSTLY)
        with pytest.raises(InvalidValueError, match="is in no managed memory"):
            stream.prefetch(array)
    with pytest.raises(InvalidValueError, match="advise: array is not C-contiguous"):
        advise(managed[:, ::2], Advice.READ_MOSTLY)
    with pytest.raises(TypeError, match="advise: advice"):
        advise(managed, 3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match='a device\'s ordinal or "host"'):
        stream.prefetch(managed, "gpu")
    with pytest.raises(CudaError, match="getting device 77"):
        stream.prefetch(managed, 77)
