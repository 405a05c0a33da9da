"""Operations that make something of the driver, or begin and end something."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.memory.reuse.allocator import CudaAllocator
from cudadrv.memory.reuse.arena import DeviceArena
from cudadrv.runtime.probe import GpuRuntime
from tests.bump_kernel import PTX

from .place import Act, Check, N, Place, whole

SOURCE: Final = 'extern "C" __global__ void bump(int* x) { x[0] += 1; }'


def streams(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with place.context.new_stream(priority=-1) as stream:
            stream.synchronize()

    return act, lambda done: None


def events(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with cudadrv.Event(place.context) as event:
            event.record(place.stream)
            place.other.wait(event)
            place.other.wait(place.stream)
            event.synchronize()

    return act, lambda done: None


def contexts(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with cudadrv.Context.create(0) as context, context.new_stream() as stream:
            stream.to_host(stream.zeros(N, np.int32))

    return act, lambda done: None


def green_contexts(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        (part,), _ = place.context.sm_resource.split(8, 1)
        with cudadrv.Context.create_green(part) as context, context.new_stream() as stream:
            stream.to_host(stream.zeros(N, np.int32))

    return act, lambda done: None


def links(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with place.context.link([PTX], linker="driver", cache=False) as module:
            module.kernel("bump")

    return act, lambda done: None


def capture(place: Place) -> tuple[Act, Check]:
    stream, other = place.stream, place.other
    array = stream.zeros(N, np.int32)

    def act() -> None:
        before = stream.zeros(N, np.int32)
        with stream.capture() as graph:
            del before
            other.wait(stream)
            place.bump.launch(other, LaunchConfig(1, 1), array)
            born = stream.zeros(N, np.int32)
            stream.wait(other)
            del born
        with graph, graph.instantiate() as executable:
            executable.launch(stream)
            executable.launch(other)

    def check(done: bool) -> None:
        assert not stream.capturing
        assert not other.capturing
        found = int(stream.to_host(array)[0])
        assert found == 2 if done else found in (0, 1, 2)

    return act, check


def graph_update(place: Place) -> tuple[Act, Check]:
    stream, array = place.stream, place.stream.zeros(N, np.int32)

    def captured(value: int) -> cudadrv.Graph:
        with stream.capture() as graph:
            stream.fill(array, value)
        return graph

    def act() -> None:
        with captured(1).instantiate() as executable:
            executable.update(captured(2))
            executable.launch(stream)

    def check(done: bool) -> None:
        assert not stream.capturing
        whole(stream.to_host(array), 2, *(() if done else (0,)))

    return act, check


def graph_building(place: Place) -> tuple[Act, Check]:
    stream, array = place.stream, place.stream.zeros(N, np.int32)
    given = np.full(N, 5, np.int32)

    def act() -> None:
        with place.context.new_graph() as graph:
            copy = graph.add_copy(array, given)
            fill = graph.add_fill(array, 6, after=copy)
            bump = graph.add_kernel(place.bump, LaunchConfig(1, 1), array, after=fill)
            host = graph.add_host(int, after=bump)
            with graph.instantiate() as executable:
                executable.launch(stream)
                fill.update_in(executable, array, 7)
                host.update_in(executable, str)
                executable.launch(stream)

    def check(done: bool) -> None:
        found = int(stream.to_host(array)[0])
        assert found == 8 if done else found in (0, 7, 8)

    return act, check


def client_capture(place: Place) -> tuple[Act, Check]:
    client = cudadrv.CudaClient(0)
    stream, allocator = client.stream, client.allocator
    array = stream.zeros(N, np.int32)

    def work(_: object) -> None:
        address = allocator.allocate(1024)
        place.bump.launch(stream, LaunchConfig(1, 1), array)
        allocator.deallocate(address, 1024)
        allocator.allocate(512)

    def act() -> None:
        with client.capture_graph((), (array,), work, 1 << 16) as graph:
            graph.launch()
        with client.capture_graph((), (array,), work) as graph:
            graph.launch()

    def check(done: bool) -> None:
        assert not stream.capturing
        assert not allocator.is_frozen
        assert not allocator.has_arena
        found = int(stream.to_host(array)[0])
        assert found == 2 if done else found in (0, 1, 2)
        address = allocator.allocate(1024)
        allocator.deallocate(address, 1024)
        allocator.reset()

    return act, check


def allocator(place: Place) -> tuple[Act, Check]:
    own = CudaAllocator(place.stream, cap_bytes=4096)

    def act() -> None:
        addresses = [own.allocate(1024) for _ in range(2)]
        for address in addresses:
            own.deallocate(address, 1024)
        own.deallocate(own.allocate(8192), 8192)
        own.reset()

    def check(done: bool) -> None:
        # Addresses are numbers: what an interrupt kept from the caller, he cannot give back.
        for address, nbytes in own._live.copy().items():
            own.deallocate(address, nbytes)
        own.reset()
        assert own.statistics().cached_bytes == 0

    return act, check


def arena(place: Place) -> tuple[Act, Check]:
    own = DeviceArena(max_cached_bytes=1 << 12)

    def act() -> None:
        for stream in (place.stream, place.other):
            first, second = own.alloc(stream, 100), own.alloc(stream, 1000)
            own.release(*first)
            own.release(*second)
        own.trim()

    def check(done: bool) -> None:
        bucket, slab = own.alloc(place.stream, 100)
        own.release(bucket, slab)
        own.close()
        assert own.statistics().held_bytes == 0 or not done

    return act, check


def trace(place: Place) -> tuple[Act, Check]:
    array = place.stream.zeros(N, np.int32)
    api = place.context.device.driver.api

    def act() -> None:
        with cudadrv.trace(place.folder / "trace.json") as recording, recording.span("fill"):
            place.stream.fill(array, 1)

    def check(done: bool) -> None:
        assert place.context.device.driver.api is api
        whole(place.stream.to_host(array), 1, *(() if done else (0,)))

    return act, check


def textures(place: Place) -> tuple[Act, Check]:
    numbers = np.arange(N, dtype=np.float32)

    def act() -> None:
        with cudadrv.texture.CudaArray(place.context, N, np.float32, surface=True) as array:
            array.copy_from(place.stream, numbers)
            with cudadrv.texture.Texture(array), cudadrv.texture.Surface(array):
                found = np.zeros_like(numbers)
                array.copy_to(place.stream, found)
                assert np.array_equal(found, numbers)
        with cudadrv.texture.MipmappedArray(place.context, (8, 8), np.float32) as levels:
            levels.level(1)

    return act, lambda done: None


def modules(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with place.context.load_module(PTX) as module:
            module.kernel("bump")

    return act, lambda done: None


def compile_cold(place: Place) -> tuple[Act, Check]:
    text = f"{SOURCE} // {place.serial}"

    def check(done: bool) -> None:
        assert ptx.compile(text, name="cold.cu").data

    return lambda: ptx.compile(text, name="cold.cu"), check


def compile_warm(place: Place) -> tuple[Act, Check]:
    ptx.compile(SOURCE)

    def act() -> None:
        with place.context.compile(SOURCE) as module:
            module.kernel("bump")

    def check(done: bool) -> None:
        assert ptx.compile(SOURCE).data

    return act, check


def scatter(place: Place) -> tuple[Act, Check]:
    devices = [device.info() for device in cudadrv.list_devices()]
    runtime = GpuRuntime(devices=devices, policy=cudadrv.runtime.GpuDispatchPolicy())
    items = np.zeros(1000, np.int32)

    def work(ordinal: int, tile: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        stream = cudadrv.current_tile().stream
        array = stream.to_device(tile)
        stream.fill(array, place.serial)
        stream.to_host(array, tile)

    def check(done: bool) -> None:
        then = items.copy()
        whole(items, place.serial, *(() if done else (0,)))
        cudadrv.scatter_batched(runtime, items, work)
        whole(items, place.serial)
        assert then.size

    return lambda: cudadrv.scatter_batched(runtime, items, work), check
