from __future__ import annotations

import os
import pickle
import threading
import time
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import CudaClient, LaunchConfig, emulator
from cudadrv.client import CudaRawHandle, ModuleRegistry, UnknownModuleError
from cudadrv.errors import (
    ClosedError,
    CudadrvError,
    DriverCallFailed,
    InvalidDeviceError,
    InvalidValueError,
    OutOfMemoryError,
)
from cudadrv.memory.buffer import DeviceBuffer
from cudadrv.memory.reuse.allocator import FrozenAllocatorError
from tests.several_threads import all_at_once, running

STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))
SOURCE = """
extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
"""


@pytest.fixture
def client() -> CudaClient:
    return CudaClient(0)


def scratch(client: CudaClient, nbytes: int) -> DeviceBuffer:
    """Memory of the client's allocator, as a buffer."""
    return DeviceBuffer.borrowed(client.stream, client.allocator.allocate(nbytes), nbytes, None)


def test_there_is_one_client_a_device(client: CudaClient) -> None:
    assert CudaClient() is client
    assert CudaClient(cudadrv.Device.get(0)) is client
    assert pickle.loads(pickle.dumps(client)) is client
    assert repr(client) == f"<CudaClient on {client.device!r}>"
    with pytest.raises(InvalidDeviceError):
        CudaClient(99)


def test_each_device_has_its_own_client(
    client: CudaClient, second_context: cudadrv.Context
) -> None:
    other = CudaClient(1)
    assert other is not client
    assert other.context is second_context
    assert other.allocator.stream is other.stream


def test_racing_threads_get_the_same_client() -> None:
    with emulator.session():
        found: list[CudaClient] = []
        barrier = threading.Barrier(16)

        def take() -> None:
            barrier.wait()
            found.append(CudaClient(0))

        all_at_once([take] * 16)
        assert len(found) == 16
        assert len(set(map(id, found))) == 1


def test_a_client_has_two_streams_of_the_primary_context(client: CudaClient) -> None:
    assert client.context is cudadrv.cuda_context_for(0)
    assert client.stream is not client.copy_stream
    assert client.stream.context is client.copy_stream.context is client.context
    assert client.raw_handle == CudaRawHandle(client.context, client.stream)
    assert client.compute_stream_handle == int(client.stream.handle)
    client.synchronize()


def test_the_copy_stream_waits_for_the_compute_stream(client: CudaClient) -> None:
    for value in range(10):
        array = client.stream.empty(1 << 18, "i4")
        client.stream.fill(array, value)
        event = client.record_event_on_compute()
        client.copy_stream_wait_event(event)
        assert (client.copy_stream.to_host(array) == value).all()
        client.destroy_event(event)


def test_destroying_an_event_twice_is_harmless(client: CudaClient) -> None:
    event = client.record_event_on_compute()
    client.destroy_event(event)
    client.destroy_event(event)
    with pytest.raises(ClosedError, match="the event was closed"):
        client.copy_stream_wait_event(event)


def test_registered_modules_are_preloaded_once_a_device(client: CudaClient) -> None:
    cudadrv.client.register_module("test_client_twice", SOURCE)
    cudadrv.client.register_module("test_client_twice", SOURCE)
    client.preload_modules(["test_client_twice"])
    module = client.module("test_client_twice")
    client.preload_modules(["test_client_twice"])
    assert client.module("test_client_twice") is module
    assert module.context is client.context
    x, y = client.stream.to_device(np.arange(8, dtype="f4")), client.stream.zeros(8, "f4")
    module.kernel("twice").launch(client.stream, LaunchConfig(1, 8), x, y)
    assert client.stream.to_host(y).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_unknown_and_broken_modules_are_reported(client: CudaClient) -> None:
    with pytest.raises(UnknownModuleError, match="no module is registered as 'nowhere'"):
        client.preload_modules(["nowhere"])
    cudadrv.client.register_module("test_client_broken", "this is no C++")
    with pytest.raises(DriverCallFailed, match="test_client_broken NVRTC compile failed"):
        client.preload_modules(["test_client_broken"])
    with pytest.raises(InvalidValueError, match="'test_client_broken', which already names"):
        cudadrv.client.register_module("test_client_broken", SOURCE)


def test_a_registry_lists_its_names(client: CudaClient) -> None:
    registry = ModuleRegistry()
    registry.register("a", SOURCE)
    registry.register("b", lambda: SOURCE)
    assert registry.names == ("a", "b")
    with pytest.raises(UnknownModuleError, match="there are: a, b") as caught:
        registry.load("c", client.context)
    assert caught.value.available == ("a", "b")


@pytest.mark.parametrize("arena_bytes", [None, 1 << 16])
def test_a_captured_graph_replays_at_the_same_addresses(
    client: CudaClient, arena_bytes: int | None
) -> None:
    stream = client.stream
    x, y = stream.zeros(64, "u1"), stream.zeros(64, "u1")
    seen: list[int] = []

    def work(given: CudaClient) -> None:
        assert given is client
        assert client.allocator.is_frozen
        for _ in range(2):
            room = scratch(client, 64)
            seen.append(room.ptr)
            stream.copy(room, x.buffer)
            stream.copy(y.buffer, room)
            client.allocator.deallocate(room.ptr, 64)

    graph = client.capture_graph([x], [y], work, arena_bytes)
    assert not client.allocator.is_frozen
    assert not client.allocator.has_arena
    assert (graph.inputs, graph.outputs, graph.launch_count) == ((x,), (y,), 0)
    if graph.arena is not None:
        assert seen == [graph.arena.ptr, graph.arena.ptr + 256]
        assert graph.node_count == 4
    for value in (3, 8, 250):
        stream.fill(x, value)
        graph.launch()
        assert stream.to_host(y).tolist() == [value] * 64
    assert graph.launch_count == 3
    assert repr(graph) == f"<CapturedGraph of {graph.node_count} nodes, launched 3 times>"
    graph.close()
    graph.close()
    assert (graph.inputs, graph.outputs, graph.arena) == ((), (), None)
    with pytest.raises(ClosedError, match="the captured graph was closed"):
        graph.launch()


def test_memory_that_a_capture_leaves_allocated_does_not_hinder_replays(
    client: CudaClient,
) -> None:
    out = client.stream.zeros(64, "u1")

    def work(client: CudaClient) -> None:
        room = scratch(client, 64)
        client.stream.fill(room, 77)
        client.stream.copy(out.buffer, room)

    with client.capture_graph([], [out], work) as graph:
        for _ in range(3):
            graph.launch()
        assert client.stream.to_host(out).tolist() == [77] * 64


@pytest.mark.parametrize("arena_bytes", [None, 1 << 16])
def test_a_fault_in_a_capture_leaves_stream_and_allocator_usable(
    client: CudaClient, arena_bytes: int | None
) -> None:
    x = client.stream.zeros(64, "u1")

    def fails(client: CudaClient) -> None:
        room = scratch(client, 64)
        client.stream.fill(room, 1)
        raise KeyError("in the middle")

    def synchronizes(client: CudaClient) -> None:
        scratch(client, 64)
        client.stream.to_host(x)

    before = client.allocator.statistics()
    with pytest.raises(KeyError, match="in the middle"):
        client.capture_graph([], [], fails, arena_bytes)
    with pytest.raises(CudadrvError):
        client.capture_graph([x], [], synchronizes, arena_bytes)
    assert not client.stream.capturing
    assert not client.allocator.is_frozen
    assert not client.allocator.has_arena
    assert client.allocator.statistics() == before
    client.stream.fill(x, 4)
    assert client.stream.to_host(x).tolist() == [4] * 64
    client.allocator.deallocate(client.allocator.allocate(16), 16)
    graph = client.capture_graph([], [x], lambda client: client.stream.fill(x, 5), arena_bytes)
    graph.launch()
    assert client.stream.to_host(x).tolist() == [5] * 64


def test_a_capture_that_outgrows_its_arena_is_reported(client: CudaClient) -> None:
    with pytest.raises(OutOfMemoryError, match="give the capture a larger arena"):
        client.capture_graph([], [], lambda client: client.allocator.allocate(4096), 1024)
    with pytest.raises(InvalidValueError, match="a capture arena of 0 bytes"):
        client.capture_graph([], [], lambda client: None, 0)
    client.synchronize()


def test_a_capture_within_a_capture_is_rejected(client: CudaClient) -> None:
    def nested(client: CudaClient) -> None:
        with pytest.raises(InvalidValueError, match="capture_graph within a capture"):
            client.capture_graph([], [], lambda client: None)

    client.capture_graph([], [], nested).launch()
    client.allocator.freeze()
    with pytest.raises(FrozenAllocatorError, match="frozen already"):
        client.capture_graph([], [], lambda client: None)
    client.allocator.unfreeze()


def test_what_a_capture_uses_lives_as_long_as_the_graph(client: CudaClient) -> None:
    stream = client.stream
    y = stream.zeros(1 << 16, "u1")

    def captured() -> cudadrv.client.CapturedGraph:
        x = stream.to_device(np.full(1 << 16, 6, "u1"))

        def work(client: CudaClient) -> None:
            room = scratch(client, 1 << 16)
            stream.copy(room, x.buffer)
            stream.copy(y.buffer, room)

        return client.capture_graph([x], [y], work, 1 << 17)

    graph = captured()
    for _ in range(4):
        stream.fill(stream.empty(1 << 16, "u1"), 1)  # would land in freed memory
        stream.fill(y, 0)
        graph.launch()
        assert (stream.to_host(y) == 6).all()


def test_linear_algebra_is_on_the_compute_stream(client: CudaClient) -> None:
    assert client.blas is client.blas
    assert client.blas.stream is client.stream


def test_threads_on_one_client_double_nothing_and_lose_nothing(client: CudaClient) -> None:
    before = client.allocator.statistics().in_use_blocks
    faults: list[object] = []
    turns = [0] * 32
    stop = threading.Event()

    def work(number: int) -> None:
        try:
            while not (turns[number] and stop.is_set()):
                turns[number] += 1
                if CudaClient(0) is not client:
                    faults.append("another client")
                room = scratch(client, 256)
                client.stream.fill(room, number)
                if turns[number] % 8 == 0:
                    event = client.record_event_on_compute()
                    client.copy_stream_wait_event(event)
                    out = np.empty(256, np.uint8)
                    client.stream.copy(out, room)
                    client.destroy_event(event)
                    if (out != number).any():
                        faults.append("another thread wrote into the block")
                client.allocator.deallocate(room.ptr, 256)
        except CudadrvError as error:
            faults.append(error)

    with running([partial(work, number) for number in range(32)]):
        time.sleep(STRESS_SECONDS)
        stop.set()
    assert not faults
    assert all(turns)
    assert client.allocator.statistics().in_use_blocks == before


def test_the_names_in_the_error_for_an_unknown_module_are_few_and_short() -> None:
    text = str(UnknownModuleError("x", tuple(f"{k}" * 400 for k in range(100))))
    assert len(text) < 2000
    assert "and 96 more" in text
