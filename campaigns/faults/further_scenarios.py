"""Scenarios of what few programs use: ranges, green contexts, links, graphs that are changed."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

import cudadrv
from cudadrv import Context, DeviceArray, LaunchConfig, MemoryPool, Stream
from cudadrv.checkpoint import ProcessCheckpoint, ProcessState
from cudadrv.driver import CachePreference
from cudadrv.driver._api import driver
from cudadrv.errors import CudadrvError
from cudadrv.interop.external import ExternalMemory, ExternalSemaphore
from cudadrv.memory import (
    Advice,
    Attachment,
    GrowingBuffer,
    HookedMemory,
    MappedBuffer,
    MulticastObject,
    PhysicalMemory,
    PinnedPool,
    RegisteredArray,
)
from cudadrv.memory.array import AnyDeviceArray
from cudadrv.tensor_map import TensorMap
from tests import bump_kernel

from .world import World, expect

ONE: Final = LaunchConfig(1, 1)
_KEPT: Final[deque[object]] = deque(maxlen=4)
_FILES: Final = tempfile.TemporaryDirectory(prefix="cudadrv-attack-")


def ranges(world: World) -> None:
    for shareable in (False, True):
        with GrowingBuffer(world.a, 8 << 20, 1000, shareable=shareable) as buffer:
            buffer.grow(buffer.granularity + 1)
            array: DeviceArray[np.uint32] = DeviceArray(buffer, buffer.nbytes // 4, np.uint32)
            world.b.fill(array, 3)
            world.expect(world.a, array[-4:], 3)


def green_contexts(world: World) -> None:
    (part,), _ = world.near.sm_resource.split(8, 1)
    with Context.create_green(part) as green:
        expect(green.sm_resource.sm_count, part.sm_count)
        stream = green.new_stream()
        array = stream.zeros(4, "u4")
        stream.fill(array, 2)
        world.expect(stream, array, 2)


def settings(world: World) -> None:
    with Context.create(0) as own:
        own.limits.stack_bytes = 4096
        expect(own.limits.stack_bytes >= 4096, True)
        own.cache_preference = CachePreference.SHARED
        expect(own.cache_preference is CachePreference.SHARED, True)
        expect(own.new_stream(blocking=True).blocking, True)
        with own.profiling():
            world.expect(own.default_stream, own.default_stream.zeros(4, "u4"), 0)


def peers(world: World) -> None:
    with Context.create(0) as here, Context.create(1) as there:
        here.enable_peer_access(there)
        queue, other = here.new_stream(), there.new_stream()
        array = other.zeros(4, "u4")
        kernel = here.load_module(bump_kernel.PTX).kernel("bump")
        for _ in range(2):
            kernel.launch(queue, ONE, array)
        world.expect(other, array, [2, 0, 0, 0])
    with MemoryPool() as pool:
        pool.open_to(1)
        expect(pool.is_open_to(1), True)


def other_contexts(world: World) -> None:
    theirs = Theirs(world.a.to_device(np.arange(4)))
    with Context.create(0) as own, own.new_stream() as stream:
        for _ in range(2):
            world.expect(stream, stream.import_array(theirs), np.arange(4))


class Theirs:
    """Memory of another library, by the array interface."""

    def __init__(self, array: AnyDeviceArray) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def host_memory_of_others(world: World) -> None:
    host = np.arange(1024, dtype="u4")
    _KEPT.append(host)  # what could not be unregistered stays so, wherever the next array lies
    with RegisteredArray(host):
        array = world.a.to_device(host)
        world.expect(world.b, array, host)
    pool = PinnedPool()
    for _ in range(2):
        lent = pool.empty(16, "u4")
        lent[:] = 7
        world.a.copy(array[:16], lent)
        world.a.synchronize()
        world.expect(world.a, array[:16], 7)
        del lent
    pool.trim()


def managed_memory(world: World) -> None:
    array = cudadrv.managed_empty(64, "u4")
    array[:] = 1
    cudadrv.memory.advise(array, Advice.PREFERRED_LOCATION, 0)
    world.a.prefetch(array, 0)
    if hasattr(driver, "cuMemDiscardBatchAsync"):  # bindings of CUDA 12 lack it
        world.a.prefetch_batch([array], 0)
        world.a.prefetch_batch([array], 0, discard=True)
        world.a.discard_batch([array])
    world.a.attach(array, Attachment.STREAM)
    world.a.fill(world.a.in_place(array), 5)
    world.a.synchronize()
    expect(array, 5)


def batches_of_copies(world: World) -> None:
    sources = [world.a.to_device(np.full(64, value, "u4")) for value in (1, 2)]
    targets = [world.a.zeros(64, "u4") for _ in sources]
    world.b.copy_batch(zip(targets, sources, strict=True))
    for target, value in zip(targets, (1, 2), strict=True):
        world.expect(world.a, target, value)
    if hasattr(driver, "cuMemcpy3DBatchAsync"):  # bindings of CUDA 12.6 lack it
        strided = world.a.zeros((8, 16), "u4")
        world.b.copy_batch([(strided[:, 1:9:2], sources[1][:32].reshape((8, 4)))])
        world.expect(world.a, strided[:, 1:9:2], 2)
        world.expect(world.a, strided[:, ::2], 0)


def batches_by_a_kernel(world: World) -> None:
    sources = [world.a.to_device(np.full(64, value, "u4")) for value in range(9)]
    targets = [world.a.zeros(64, "u4") for _ in sources]
    world.b.copy_batch(zip(targets, sources, strict=True))
    for value, target in enumerate(targets):
        world.expect(world.a, target, value)


def memory_of_a_numa_node(world: World) -> None:
    host = cudadrv.pinned_empty(64, "u4", numa_node=0)
    host[:] = 6
    array = world.a.to_device(host)
    del host
    world.expect(world.b, array, 6)


def multicasts(world: World) -> None:
    with MulticastObject(1, [0, 1]) as team, MappedBuffer(world.a, [team]):
        for device, stream in zip(team.devices, (world.a, world.far), strict=True):
            with PhysicalMemory(team.nbytes, device) as memory:
                team.bind(memory)
                team.unbind(memory)
                team.bind(memory)
                with MappedBuffer(stream, [memory]) as buffer:
                    array: DeviceArray[np.uint8] = DeviceArray(buffer, 64, np.uint8)
                    stream.fill(array, 2)
                    world.expect(stream, array, 2)


@contextmanager
def _descriptor(number: int) -> Iterator[int]:
    try:
        yield number
    finally:
        os.close(number)


def memory_of_other_interfaces(world: World) -> None:
    if sys.platform != "linux":
        return
    with PhysicalMemory(1, handle_type="posix_fd") as memory:
        with _descriptor(memory.export_descriptor()) as number:
            external = ExternalMemory(world.near, number, memory.nbytes)
            received = PhysicalMemory.from_descriptor(number, memory.nbytes)
        with external:
            array: DeviceArray[np.uint8] = DeviceArray(external.buffer(world.a), 64, np.uint8)
            world.a.fill(array, 3)
            world.a.synchronize()
        with MappedBuffer(world.b, [received]) as whole, received:
            world.expect(world.b, DeviceArray(whole, 64, np.uint8), 3)


def semaphores_of_other_interfaces(world: World) -> None:
    if sys.platform != "linux":
        return
    with (
        _descriptor(os.eventfd(0)) as number,
        ExternalSemaphore(world.near, number, timeline=True) as semaphore,
    ):
        array = world.a.zeros(4, "u4")
        with world.a.unordered(), world.b.unordered():
            world.a.fill(array, 4)
            semaphore.signal(world.a, 2)
            semaphore.wait(world.b, 1)
            world.expect(world.b, array, 4)


def checkpoints(world: World) -> None:
    array = world.a.to_device(np.arange(4))
    saved = ProcessCheckpoint()
    expect(saved.state() is ProcessState.RUNNING, True)
    try:
        saved.lock()
        saved.restore_thread_id()
        saved.checkpoint()
        saved.restore()
        saved.unlock()
    finally:
        _resume(saved)
    world.expect(world.b, array, np.arange(4))


def _resume(saved: ProcessCheckpoint) -> None:
    """Unlock a process, with a second try of each step; raise the first failure."""
    failures: list[CudadrvError] = []
    while len(failures) < 3:
        try:
            state = saved.state()
            if state is ProcessState.CHECKPOINTED:
                saved.restore()
            elif state is ProcessState.LOCKED:
                saved.unlock()
            else:
                break
        except CudadrvError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def strided_work(world: World) -> None:
    for kind in ("u1", "u2", "u4"):
        array = world.a.zeros((4, 6), kind)
        world.a.fill(array[:, 1:3], 9)
        there = world.far.zeros((4, 6), kind)
        world.far.copy(there[:, 2:4], array[:, 1:3])
        expected = np.zeros((4, 6))
        expected[:, 2:4] = 9
        world.expect(world.far, there, expected)


def hooks(world: World) -> None:
    seen: list[int] = []
    hooked = HookedMemory(allocated=lambda address, nbytes, stream: seen.append(nbytes))
    with cudadrv.using_memory(hooked):
        array = world.a.zeros(4, "u4")
    world.expect(world.b, array, 0)
    expect(seen, [16])


_HEAD: Final = ".version 7.8\n.target sm_75\n.address_size 64\n"
_CALLER: Final = (
    f"{_HEAD}.extern .func f;\n.visible .entry k(.param .u64 p) {{\n.reg .b64 %d; .reg .b32 %r;\n"
    "ld.param.u64 %d, [p]; mov.u32 %r, 4; st.global.u32 [%d], %r; call f; ret; }"
)
_CALLED: Final = f"{_HEAD}.visible .func f {{ ret; }}"


def links(world: World) -> None:
    with world.near.link([_CALLER, _CALLED], cache=False, linker="driver") as module:
        array = world.a.zeros(1, "u4")
        module.kernel("k").launch(world.a, ONE, array)
        world.expect(world.b, array, 4)


def occupancies(world: World) -> None:
    text = bump_kernel.PTX.replace("sm_75", "sm_90")
    kernel = world.near.load_module(text).kernel("bump")
    clusters = LaunchConfig(2, 32, cluster=2)
    expect(kernel.max_active_clusters(clusters) > 0, True)
    expect(kernel.max_potential_cluster_size(clusters) > 0, True)


def tensor_maps(world: World) -> None:
    array = world.a.zeros((16, 16), "f4")
    with_map = TensorMap(array, (4, 4))
    expect(with_map.array is array, True)
    other = world.b.zeros((16, 16), "f4")
    expect(with_map.replace(other).array is other, True)


def changed_graphs(world: World) -> None:
    array = world.a.zeros(2, "u4")
    bump = world.near.load_module(bump_kernel.PTX).kernel("bump")
    with world.near.new_graph() as graph:
        fill = graph.add_fill(array, 40)
        kernel = graph.add_kernel(bump, LaunchConfig(1, 1, cooperative=True), array)
        graph.add_edge(fill, kernel)
        expect([len(graph.nodes), len(graph.edges)], [2, 1])
        expect(fill.kind.name, "FILL")
        graph.write_dot(Path(_FILES.name) / "graph.dot")
        extra = graph.add_empty(after=kernel)
        graph.remove_edge(kernel, extra)
        extra.remove()
        with graph.instantiate() as executable:
            executable.upload(world.a)
            executable.enable(kernel, False)
            expect(executable.is_enabled(kernel), False)
            executable.launch(world.b)
            world.expect(world.a, array, 40)
        fill.update(array, 6)
        kernel.update(bump, ONE, array)
        with graph.clone() as copy, copy.instantiate() as executable:
            executable.launch(world.a)
            world.expect(world.b, array, [7, 6])


def conditions(world: World) -> None:
    array = world.a.zeros(1, "u4")
    with world.near.new_graph() as graph:
        condition = graph.new_condition(1)
        node = graph.add_if(condition)
        node.body.add_fill(array, 8)
        with graph.instantiate() as executable:
            executable.launch(world.a)
            world.expect(world.b, array, 8)


def captures_into_graphs(world: World) -> None:
    calls: list[int] = []
    array = world.a.zeros(1, "u4")
    with world.near.new_graph() as graph:
        first = graph.add_empty()
        with world.a.capture(into=graph, after=first):
            world.a.call_on_host(calls.append, 1)
            world.a.fill(array, 3)
        with graph.instantiate() as executable:
            executable.launch(world.a)
            world.a.synchronize()
            world.expect(world.b, array, 3)
    expect(calls, [1])


def resets(world: World) -> None:
    context = cudadrv.cuda_context_for(1)
    array = context.new_stream().zeros(4, "u4")
    if "far" in vars(world):
        del world.far
    context.reset()
    expect(array.closed, True)
    stream: Stream = cudadrv.cuda_context_for(1).new_stream()
    world.expect(stream, stream.zeros(4, "u4"), 0)


FURTHER: Final[tuple[Callable[[World], None], ...]] = (
    ranges, green_contexts, settings, peers, other_contexts, host_memory_of_others, managed_memory,
    batches_of_copies, batches_by_a_kernel, memory_of_a_numa_node, multicasts,
    memory_of_other_interfaces,
    semaphores_of_other_interfaces, checkpoints, strided_work, hooks, links, occupancies,
    tensor_maps, changed_graphs, conditions, captures_into_graphs, resets,
)  # fmt: skip
