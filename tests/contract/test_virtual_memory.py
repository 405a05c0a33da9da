"""Memory without an address, mapped into ranges of addresses, and sent to other processes."""

from __future__ import annotations

import gc
import os
from collections import Counter
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.driver.attributes import DeviceAttribute
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CudaError,
    ExportError,
    UnsupportedError,
    WrongDeviceError,
)
from cudadrv.memory import MappedBuffer, PhysicalMemory, VirtualMemoryResource
from tests.noted_calls import calls_of

from .conftest import compile_module
from .peer import KEPT, Peer

MIB = 1 << 20
ADD = """
extern "C" __global__ void add(int* x, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}"""


def has(attribute: DeviceAttribute, device: int = 0) -> bool:
    return bool(cudadrv.Device.get(device).attribute(attribute))


@pytest.fixture(autouse=True)
def virtual_memory() -> None:
    if not has(DeviceAttribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED):
        pytest.skip("the device maps no memory")


def ints(buffer: cudadrv.DeviceBuffer) -> DeviceArray[np.int32]:
    return DeviceArray(buffer, buffer.nbytes // 4, np.int32)


def test_memory_is_mapped_at_several_addresses(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with PhysicalMemory(1000) as memory:
        assert memory.nbytes >= 1000
        first, second = (MappedBuffer(stream, [memory]) for _ in range(2))
    assert first.ptr != second.ptr
    stream.copy(ints(first), np.arange(first.nbytes // 4, dtype=np.int32))
    stream.synchronize()
    kernel = compile_module(context, ADD).kernel("add")
    count = second.nbytes // 4
    kernel.launch(stream, LaunchConfig.for_elements(count), ints(second), count, 5)
    stream.synchronize()
    first.close()
    assert np.array_equal(stream.to_host(ints(second)), np.arange(count) + 5)


def test_pieces_that_follow_each_other_are_one_buffer(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    pieces = [PhysicalMemory(1), PhysicalMemory(3 * MIB)]
    with MappedBuffer(stream, pieces) as buffer:
        assert buffer.nbytes == sum(each.nbytes for each in pieces)
        array = ints(buffer)
        stream.fill(array, 1)
        kernel = compile_module(context, ADD).kernel("add")
        kernel.launch(stream, LaunchConfig.for_elements(array.size), array, array.size, 2)
        assert (stream.to_host(array) == 3).all()
    # The order is another one now.
    with MappedBuffer(stream, pieces[::-1]) as buffer:
        assert (stream.to_host(ints(buffer)) == 3).all()


def test_memory_goes_with_its_last_mapping(stream: cudadrv.Stream) -> None:
    taken = ("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemAddressFree")
    with calls_of(*taken) as calls:
        memory = PhysicalMemory(1)
        buffer = MappedBuffer(stream, [memory])
        stream.fill(ints(buffer), 1)
        memory.close()
        memory.close()
        with pytest.raises(ClosedError, match="PhysicalMemory of .* bytes of device 0 was closed"):
            MappedBuffer(stream, [memory])
        with pytest.raises(ClosedError):
            memory.handle  # noqa: B018
        del buffer
        gc.collect()
    assert Counter(name for name, _ in calls) == dict.fromkeys(taken, 1)
    assert {code for _, code in calls} == {0}
    # The handle goes after the mapping.
    assert [name for name, _ in calls][-1] == "cuMemRelease"


def test_wrong_memory_is_rejected(stream: cudadrv.Stream) -> None:
    with pytest.raises(ValueError, match="PhysicalMemory: nbytes"):
        PhysicalMemory(0)
    with pytest.raises(TypeError, match='give "posix_fd", "fabric" or None'):
        PhysicalMemory(1, handle_type="win32")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match='give "posix_fd", "fabric" or None'):
        PhysicalMemory(1, handle_type=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="MappedBuffer: pieces"):
        MappedBuffer(stream, [])
    with pytest.raises(TypeError, match="MappedBuffer: a piece"):
        MappedBuffer(stream, [3])  # type: ignore[list-item]
    memory = PhysicalMemory(1)
    with pytest.raises(ExportError, match='make it with handle_type="posix_fd"'):
        memory.export_descriptor()
    with pytest.raises(ExportError, match='make it with handle_type="fabric"'):
        memory.export_fabric()
    with pytest.raises(ArgumentValueError, match="always open to its own device"):
        MappedBuffer(stream, [memory]).close_to(0)


def test_another_device_uses_memory_that_is_open_to_it(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    if not cudadrv.driver.can_access_peer(second_context.device, stream.context.device):
        pytest.skip("the devices are not connected")
    with (
        cudadrv.Context.create(1) as own,  # without peer access
        own.new_stream() as other,
        MappedBuffer(stream, [PhysicalMemory(1)]) as buffer,
    ):
        kernel = compile_module(own, ADD).kernel("add")
        array = ints(buffer)
        stream.fill(array, 1)
        launch = other, LaunchConfig.for_elements(array.size), array, array.size
        assert not buffer.is_open_to(1)
        with pytest.raises(WrongDeviceError, match="enable_peer_access"):
            kernel.launch(*launch, 1)
        buffer.open_to(1)
        assert buffer.is_open_to(1)
        for value in (2, 3):
            kernel.launch(*launch, value)
        assert (stream.to_host(array) == 6).all()
        other.synchronize()
        buffer.close_to(1)
        assert not buffer.is_open_to(1)


def test_one_buffer_has_memory_of_two_devices(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    if not cudadrv.driver.can_access_peer(stream.context.device, second_context.device):
        pytest.skip("the devices are not connected")
    kernel = compile_module(stream.context, ADD).kernel("add")
    pieces = [PhysicalMemory(1, device) for device in (0, 1)]
    with MappedBuffer(stream, pieces, open_to=[1]) as buffer:
        array = ints(buffer)
        stream.fill(array, 1)
        kernel.launch(stream, LaunchConfig.for_elements(array.size), array, array.size, 1)
        assert (stream.to_host(array) == 2).all()


def test_memory_of_the_host_is_mapped(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    if not has(DeviceAttribute.HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED):
        with pytest.raises(UnsupportedError, match="numa_node: device 0"):
            PhysicalMemory(1, numa_node=0)
        return
    kernel = compile_module(context, ADD).kernel("add")
    node = max(context.device.attribute(DeviceAttribute.HOST_NUMA_ID), 0)
    with MappedBuffer(stream, [PhysicalMemory(1, numa_node=node)]) as buffer:
        array = ints(buffer)
        stream.fill(array, 1)
        kernel.launch(stream, LaunchConfig.for_elements(array.size), array, array.size, 1)
        assert (stream.to_host(array) == 2).all()


def map_received(descriptor: Any, nbytes: int) -> None:
    number = descriptor.detach()
    memory = PhysicalMemory.from_descriptor(number, nbytes)
    os.close(number)
    KEPT["stream"] = cudadrv.cuda_context_for(0).new_stream()
    KEPT["buffer"] = MappedBuffer(KEPT["stream"], [memory])


def add_received(value: int) -> list[int]:
    stream, array = KEPT["stream"], ints(KEPT["buffer"])
    found: list[int] = stream.to_host(array[:3]).tolist()
    stream.fill(array, value)
    stream.synchronize()
    return found


def close_received() -> None:
    KEPT["buffer"].close()
    KEPT["stream"].close()
    KEPT.clear()


def test_another_process_maps_exported_memory(stream: cudadrv.Stream, peer: Peer) -> None:
    memory = PhysicalMemory(1, handle_type="posix_fd")
    with MappedBuffer(stream, [memory]) as buffer:
        stream.copy(ints(buffer)[:3], np.array([1, 2, 3], np.int32))
        stream.synchronize()
        number = memory.export_descriptor()
        peer.ask(map_received, DupFd(number), memory.nbytes)
        os.close(number)
        memory.close()
        assert peer.ask(add_received, 7) == [1, 2, 3]
        assert (stream.to_host(ints(buffer)) == 7).all()
        stream.fill(ints(buffer), 8)
        stream.synchronize()
    # The other process still has it.
    assert peer.ask(add_received, 9) == [8, 8, 8]
    peer.ask(close_received)


def test_a_handle_of_nothing_is_rejected() -> None:
    with open(os.devnull) as file, pytest.raises(CudaError, match="opening memory of 4 bytes"):
        PhysicalMemory.from_descriptor(file.fileno(), 4)
    with pytest.raises(OSError, match="descriptor: 1073741824 is not open"):
        PhysicalMemory.from_descriptor(2**30, 4)
    with pytest.raises(ArgumentValueError, match="a fabric handle has 64"):
        PhysicalMemory.from_fabric(b"123", 4)


def test_a_fabric_handle_opens_memory(stream: cudadrv.Stream) -> None:
    if not has(DeviceAttribute.HANDLE_TYPE_FABRIC_SUPPORTED):
        with pytest.raises(UnsupportedError, match='"fabric": device 0 has none of it'):
            PhysicalMemory(1, handle_type="fabric")
        return
    try:
        memory = PhysicalMemory(1, handle_type="fabric")
    except CudaError as error:
        pytest.skip(f"the fabric is not set up here: {error}")
    exported = memory.export_fabric()
    assert len(exported) == 64
    again = PhysicalMemory.from_fabric(exported, memory.nbytes)
    with MappedBuffer(stream, [memory]) as first, MappedBuffer(stream, [again]) as second:
        stream.fill(ints(first), 3)
        stream.synchronize()
        assert (stream.to_host(ints(second)) == 3).all()


def test_arrays_come_from_mapped_memory(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    kernel = compile_module(context, ADD).kernel("add")
    resource = VirtualMemoryResource(handle_type="posix_fd")
    with calls_of("cuMemCreate", "cuMemRelease", "cuMemUnmap", "cuMemAddressFree") as calls:
        with cudadrv.using_memory(resource):
            array = stream.to_device(np.arange(1000, dtype=np.int32))
        kernel.launch(stream, LaunchConfig.for_elements(1000), array, 1000, 4)
        assert np.array_equal(stream.to_host(array), np.arange(1000) + 4)
        array.close()
    assert [name for name, _ in calls] == [
        "cuMemCreate",
        "cuMemRelease",
        "cuMemUnmap",
        "cuMemAddressFree",
    ]
    assert {code for _, code in calls} == {0}


@pytest.mark.slow
def test_mapped_memory_goes_after_work_on_other_streams(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with context.new_stream() as other:
        with cudadrv.using_memory(VirtualMemoryResource()):
            array = stream.zeros(MIB, np.int32)
        other.fill(array, 3)
        copied = other.contiguous(array[::2])
        del array
        gc.collect()
        assert (other.to_host(copied) == 3).all()


@pytest.mark.slow
def test_a_resource_opens_its_memory_to_other_devices(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    if not cudadrv.driver.can_access_peer(second_context.device, stream.context.device):
        pytest.skip("the devices are not connected")
    kernel = compile_module(second_context, ADD).kernel("add")
    with (
        second_context.new_stream() as other,
        cudadrv.using_memory(VirtualMemoryResource(open_to=[1])),
    ):
        array = stream.zeros(100, np.int32)
        kernel.launch(other, LaunchConfig.for_elements(100), array, 100, 4)
        assert (stream.to_host(array) == 4).all()
        array.close()
