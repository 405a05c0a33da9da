"""Short programs that together use the public surface; each compares what it reads."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import cudadrv
from cudadrv import (
    Context,
    CudaClient,
    DeviceArena,
    DeviceArray,
    DevicePool,
    Event,
    GpuRuntime,
    LaunchConfig,
    MemoryPool,
    Stream,
)
from cudadrv.blas import LinearAlgebra
from cudadrv.ipc import IpcEventHandle, IpcMemoryHandle
from cudadrv.memory import CudaAllocator, UnpooledMemory
from cudadrv.memory.staging import LEAST_STAGED_BYTES
from cudadrv.runtime.probe import GpuAvailable, GpuBroken
from cudadrv.texture import CudaArray, MipmappedArray, Surface, Texture
from tests import bump_kernel

from .further_scenarios import FURTHER
from .world import World, WrongValueError, expect

ONE: Final = LaunchConfig(1, 1)
PTX: Final = bump_kernel.PTX.replace(
    ".visible .entry",
    ".visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};\n.visible .entry",
)
_FILES: Final = tempfile.TemporaryDirectory(prefix="cudadrv-attack-")


def devices(world: World) -> None:
    for device in cudadrv.list_devices():
        _ = device.name, device.uuid, device.pci_bus_id, device.total_memory, device.info()
        device.memory_info()
        cudadrv.memory.pool_info(device)
        cudadrv.memory.set_release_threshold(device, 1 << 20)
        cudadrv.memory.trim_pool(device)
    expect(cudadrv.driver.can_access_peer(*cudadrv.list_devices()), True)
    cudadrv.best_device()
    cudadrv.driver_version()


def contexts(world: World) -> None:
    with Context.create(0) as own:
        least, greatest = own.priority_range()
        expect(least >= greatest, True)
        own.memory_info()
        stream = own.new_stream(priority=greatest)
        array = stream.to_device(np.arange(4))
        world.expect(own.default_stream, array, np.arange(4))
        event = stream.record()
        own.synchronize()
        expect(event.is_done(), True)
        own.bind()
    world.near.bind()
    world.near.synchronize()


class Theirs:
    """A stream of another library, alive as long as who uses it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return self._stream.__cuda_stream__()


def streams(world: World) -> None:
    with world.near.new_stream(priority=-1) as stream:
        _ = stream.priority
        array = stream.zeros(4, "u4")
        with stream.unordered():
            stream.fill(array, 5)
        world.a.wait(stream)
        world.b.wait(stream.record())
        world.expect(world.b, array, 5)
        stream.synchronize()
        expect(stream.is_done(), True)
    other = world.near.external_stream(Theirs(world.near.new_stream()))
    array = other.zeros(4, "u4")
    world.b.fill(array, 6)
    world.expect(other, array, 6)


def events(world: World) -> None:
    with Event(world.near) as first, Event(world.near, blocking=True) as last:
        first.record(world.a)
        world.b.wait(first)
        last.record(world.b)
        last.synchronize()
        expect(first.is_done() and last.elapsed_ms(first) >= 0.0, True)


def memory(world: World) -> None:
    a, b = world.a, world.b
    array = a.zeros((4, 8), "u4")
    b.fill(array[1:3], 3)
    a.fill(array[0], 1)
    world.expect(a, array, [[1]] + [[3]] * 2 + [[0]])
    with a.alloc(64) as buffer:
        buffer.record_use(b)
        a.fill(buffer, 7)
    short = b.zeros(4, "u1")
    world.expect(a, short, 0)
    del short, array


def small_copies(world: World) -> None:
    a, b, far = world.a, world.b, world.far
    host = np.arange(64, dtype="u4")
    array, other = a.to_device(host), far.empty(64, "u4")
    far.copy(other, array)
    back = b.empty(64, "u4")
    b.copy(back, other)
    world.expect(a, back, host)
    b.copy(back[1:], array[:-1])
    world.expect(b, back[1:], host[:-1])
    strided = np.zeros((64, 2), "u4")
    b.to_host(back, strided[:, 1])
    expect(strided[1:, 1], host[:-1])
    middle = np.arange(20_000, dtype="u4")
    out = np.zeros_like(middle)
    a.copy(out, a.to_device(middle), wait=False)
    a.synchronize()
    expect(out, middle)


def large_copies(world: World) -> None:
    host = np.full(LEAST_STAGED_BYTES, 7, "u1")
    array = world.a.to_device(host)
    world.expect(world.b, array, host)


def fills(world: World) -> None:
    for dtype, value in (("u1", 9), ("u2", 300), ("f4", 1.5), ("f8", 2.5), ("c16", 1j)):
        array = world.a.zeros(9, dtype)
        world.expect(world.a, array, 0)
        world.b.fill(array, value)
        world.expect(world.b, array, value)


def host_memory(world: World) -> None:
    pinned = cudadrv.pinned_empty(40_000, "u1")
    pinned[:] = 3
    array = world.a.to_device(pinned)
    pinned[:] = 0
    world.a.to_host(array, pinned)
    expect(pinned, 3)
    managed = cudadrv.managed_empty(4, "u4")
    managed[:] = 6
    world.near.load_module(PTX).kernel("bump").launch(world.a, ONE, managed)
    world.a.synchronize()
    expect(managed, [7, 6, 6, 6])


def textures(world: World) -> None:
    host = np.arange(64, dtype="f4").reshape(8, 8)
    image = CudaArray.from_host(world.a, host, surface=True)
    with Surface(image), Texture(image):
        expect(image.copy_to(world.b), host)
    mipmapped = MipmappedArray(world.near, (8, 8), "f4")
    mipmapped.level(1).copy_from(world.a, host[:4, :4].copy())
    expect(mipmapped.level(1).copy_to(world.b), host[:4, :4])
    linear = world.a.to_device(host)
    Texture(linear).close()
    target = world.a.empty((8, 8), "f4")
    image.copy_to(world.a, target)
    world.expect(world.b, target, host)
    mipmapped.close()
    image.close()


def captured(world: World) -> cudadrv.Graph:
    """A graph that adds 1 to what is 41, on two streams."""
    a, b = world.a, world.b
    bump = world.near.load_module(PTX).kernel("bump")
    host, array = np.full(1, 41, "u4"), a.zeros(1, "u4")
    dropped = a.zeros(64, "u4")
    with a.capture() as graph:
        b.wait(a.record())
        del dropped
        b.copy(array, host)
        brief = b.zeros(1, "u4")
        b.copy(brief, array)
        bump.launch(b, ONE, brief)
        b.copy(array, brief)
        del brief
        a.wait(b)
    world.result = array
    return graph


def graphs(world: World) -> None:
    graph = captured(world)
    executable = graph.instantiate()
    expect(graph.node_count > 3, True)
    for stream in (world.a, world.b, world.b):
        executable.launch(stream)
        assert world.result is not None
        world.expect(stream, world.result, 42)
    graph.close()
    executable.close()


def graph_updates(world: World) -> None:
    array = world.a.zeros(4, "u4")
    made = []
    for value in (1, 2):
        with world.a.capture() as graph:
            world.a.fill(array, value)
        made.append(graph)
    with made[0].instantiate() as executable:
        executable.launch(world.b)
        world.expect(world.a, array, 1)
        executable.update(made[1])
        executable.launch(world.a)
        world.expect(world.b, array, 2)


def built_graphs(world: World) -> None:
    array = world.a.zeros(1, "u4")
    with world.near.new_graph() as graph:
        fill = graph.add_fill(array, 41)
        bump = world.near.load_module(PTX).kernel("bump")
        graph.add_kernel(bump, ONE, array, after=fill)
        with graph.instantiate() as executable:
            executable.launch(world.b)
            world.expect(world.a, array, 42)
            fill.update_in(executable, array, 6)
            executable.launch(world.a)
            world.expect(world.b, array, 7)


def modules(world: World) -> None:
    with world.near.load_module(PTX) as module:
        expect(list(module.kernel_names), ["bump"])
        kernel = module.kernel("bump")
        _ = kernel.attributes.registers
        expect(kernel.max_active_blocks(32) > 0, True)
        kernel.max_potential_block_size()
        world.expect(world.a, module.global_array("table", dtype="u4"), [1, 2, 3, 4])
        array = world.a.zeros(1, "u4")
        kernel.launch(world.a, LaunchConfig(1, 1, shared_bytes=64 << 10), array)
        world.expect(world.a, array, 1)
    with world.near.load_module(PTX.encode()) as raw:
        expect(list(raw.kernel_names), ["bump"])
        raw.kernel("bump").launch(world.a, ONE, array)
        world.expect(world.a, array, 2)


def launches(world: World) -> None:
    kernel = world.near.load_module(PTX).kernel("bump")
    array = world.b.zeros(4, "u4")
    for stream in (world.a, world.a, world.a, world.b):
        kernel.launch(stream, ONE, array)
    prepared = kernel.bind(world.b, ONE).prepare(array)
    prepared()
    kernel.bind(world.a, ONE, ordered=False)(array)
    world.b.wait(world.a)
    world.expect(world.b, array, [6, 0, 0, 0])


def host_functions(world: World) -> None:
    calls: list[int] = []
    world.a.call_on_host(calls.append, 1)
    world.a.synchronize()
    expect(calls, [1])


def allocators(world: World) -> None:
    allocator = CudaAllocator(world.a)
    for nbytes in (64, 1 << 20):
        for _ in range(2):
            allocator.deallocate(allocator.allocate(nbytes), nbytes)
    allocator.reset()


def arenas(world: World) -> None:
    with DeviceArena("f4") as arena:
        for stream in (world.a, world.b):
            bucket, slab = arena.alloc(stream, 10)
            world.a.fill(slab, 2)
            world.expect(stream, slab, 2)
            arena.release(bucket, slab)


def clients(world: World) -> None:
    client = CudaClient(0)
    array = client.stream.zeros(4, "u4")

    def work(each: CudaClient) -> None:
        each.allocator.deallocate(each.allocator.allocate(64), 64)
        each.stream.fill(array, 4)

    with client.capture_graph([], [array], work, 1 << 16) as graph:
        graph.launch()
        client.copy_stream_wait_event(client.record_event_on_compute())
        world.expect(client.copy_stream, array, 4)
    client.synchronize()


def scatter(world: World) -> None:
    runtime = GpuRuntime.resolve()
    assert runtime is not None

    def work(ordinal: int, tile: Sequence[int]) -> int:
        stream = cudadrv.current_tile().stream
        return int(stream.to_host(stream.to_device(np.asarray(tile))).sum())

    expect(sum(cudadrv.scatter_map(runtime, range(100), work)), 4950)
    with DevicePool() as pool:
        pool.best_available_device()


def probes(world: World) -> None:
    outcome = GpuRuntime.probe()
    if isinstance(outcome, GpuBroken):
        outcome.raise_again()
    expect(isinstance(outcome, GpuAvailable), True)
    cudadrv.runtime.probe_cuda_backend("attack")


def algebra(world: World) -> None:
    a = world.a.to_device(np.diag([4.0, 9.0]))
    out = world.b.zeros((2, 2), "f8")
    linear = LinearAlgebra.for_stream(world.b)
    linear.gemm(a, a, out)
    world.expect(world.a, out, np.diag([16.0, 81.0]))
    linear.potrf(a)
    linear.trsm(a, out)


class Foreign:
    """Memory of another library, which has the array interface alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        interface: dict[str, object] = self._array.__cuda_array_interface__
        return interface


def other_libraries(world: World) -> None:
    array = world.a.to_device(np.arange(4, dtype="u4"))
    for value in (array, Foreign(array)):
        world.expect(world.b, world.b.import_array(value), np.arange(4))
    kernel = world.near.load_module(PTX).kernel("bump")
    kernel.launch(world.b, ONE, Foreign(array))
    world.expect(world.b, array, [1, 1, 2, 3])


def traces(world: World) -> None:
    path = Path(_FILES.name) / "trace.json"
    with cudadrv.trace(path) as trace, trace.span("all"):
        launches(world)
        with Context.create(1) as own:
            own.new_stream().zeros(4, "u4")
    document = json.loads(path.read_text())
    world.said += document.get("otherData", {}).values()
    if not any(event["name"] == "bump" for event in document["traceEvents"]):
        raise WrongValueError("the trace has no launch")


def sharing(world: World) -> None:
    """What other processes are given; the pool is taken here as they take it."""
    values = np.arange(10)
    with MemoryPool(shareable=True) as pool:
        with cudadrv.using_memory(pool):
            array = world.a.to_device(values)
        handle = IpcMemoryHandle.of(array)
        world.expect(world.a, DeviceArray(handle.open(world.a), 10, values.dtype), values)
        with MemoryPool.from_descriptor(0, pool.descriptor) as there:
            opened = replace(handle, pool=bytes(16)).open(world.b, there)
            world.expect(world.b, DeviceArray(opened, 10, values.dtype), values)
            opened.close()
            world.b.synchronize()
    with cudadrv.using_memory(UnpooledMemory()):
        plain = world.a.to_device(values)
    IpcMemoryHandle.of(plain)
    world.expect(world.a, plain, values)
    with (
        Event(world.near, timing=False, interprocess=True) as event,
        IpcEventHandle.of(event).open(world.near) as same,
    ):
        same.record(world.a)
        event.synchronize()


SCENARIOS: Final[dict[str, Callable[[World], None]]] = {
    scenario.__name__: scenario
    for scenario in (
        devices, contexts, streams, events, memory, small_copies, large_copies, fills, host_memory,
        textures, graphs, graph_updates, built_graphs, modules, launches, host_functions,
        allocators, arenas, clients, scatter, probes, algebra, other_libraries, traces,
        sharing, *FURTHER,
    )
}  # fmt: skip
