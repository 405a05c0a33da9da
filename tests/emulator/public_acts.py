"""Public calls that an exception may end at any line, each with what it prepares."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.memory import (
    ArenaMemory,
    CountedMemory,
    CudaAllocator,
    GrowingBuffer,
    HookedMemory,
    MappedBuffer,
    MemoryPool,
    PhysicalMemory,
    PinnedPool,
    RegisteredArray,
)
from cudadrv.runtime import KeyedPtxModuleCache
from tests.bump_kernel import PTX

N: Final = 16
CUDA: Final = 'extern "C" __global__ void bump(int* x) { x[0] += 1; } __constant__ int c[4];'


class Lab:
    """A session's streams, with an array whose values are known, and a kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.other = self.context.new_stream()
        self.far = cudadrv.cuda_context_for(1).new_stream()
        self.module = self.context.load_module(PTX)
        self.bump = self.module.kernel("bump")
        self.x = self.stream.to_device(np.full(N, 5, np.int32))
        self.serials = itertools.count()

    def close(self) -> None:
        """Close what can be closed."""
        self.x.close()
        self.module.close()
        for stream in (self.stream, self.other, self.far):
            stream.close()


Act = Callable[[], object]
ONE: Final = LaunchConfig(1, 1)


def allocation(lab: Lab) -> Act:
    def act() -> None:
        first, second = lab.stream.alloc(1000), lab.stream.zeros(N, np.int32)
        first.close()
        second.close()

    return act


def copies(lab: Lab) -> Act:
    numbers = np.arange(N, dtype=np.int32)

    def act() -> None:
        with lab.stream.to_device(numbers) as y, lab.other.empty(N, np.int32) as z:
            lab.other.copy(z, y)
            lab.stream.fill(y[::2], 3)
            assert lab.other.to_host(z).tolist() == numbers.tolist()

    return act


def batches(lab: Lab) -> Act:
    def act() -> None:
        y, z = lab.stream.zeros(N, np.int32), lab.stream.zeros(N, np.int32)
        lab.stream.copy_batch([(y, lab.x), (z, lab.x)])
        assert lab.stream.to_host(z).tolist() == [5] * N

    return act


def peers(lab: Lab) -> Act:
    def act() -> None:
        with lab.far.empty(N, np.int32) as y:
            lab.far.copy(y, lab.x)
            assert lab.far.to_host(y).tolist() == [5] * N

    return act


def launches(lab: Lab) -> Act:
    y, here = lab.stream.zeros(N, np.int32), np.zeros(N, np.int32)

    def act() -> None:
        lab.bump.launch(lab.stream, ONE, y)
        launcher = lab.bump.bind(lab.other, ONE)
        launcher(y)
        launcher(cudadrv.InOut(here))
        launcher.prepare(y)()
        lab.stream.synchronize()

    return act


def host_arrays(lab: Lab) -> Act:
    def act() -> None:
        pinned, managed = cudadrv.pinned_empty(N, np.int32), cudadrv.managed_empty(N, np.int32)
        lab.stream.to_host(lab.x, out=pinned)
        managed[...] = pinned
        lab.bump.launch(lab.stream, ONE, managed)
        lab.stream.synchronize()
        assert managed.tolist() == [6] + [5] * (N - 1)

    return act


def pinned_pool(lab: Lab) -> Act:
    pool = PinnedPool(max_cached_bytes=1 << 20)

    def act() -> None:
        for _ in range(2):
            batch = pool.empty(N, np.int32)
            lab.stream.to_host(lab.x, out=batch)
            assert batch.tolist() == [5] * N
            del batch

    return act


def registered(lab: Lab) -> Act:
    def act() -> None:
        here = np.full(N, 1, np.int32)
        with RegisteredArray(here):
            lab.bump.launch(lab.stream, ONE, here)
            lab.stream.synchronize()
        assert here[0] == 2

    return act


def allocator(lab: Lab) -> Act:
    own = CudaAllocator(lab.stream, cap_bytes=1 << 16)

    def act() -> None:
        address = own.allocate(1024)
        own.deallocate(address, 1024)
        own.reset()

    return act


def arena(lab: Lab) -> Act:
    own = cudadrv.DeviceArena(np.int32, max_cached_bytes=1 << 12)

    def act() -> None:
        for stream in (lab.stream, lab.other):
            with own.borrow(stream, 100) as slab:
                stream.fill(slab, 1)
        own.trim()

    return act


def arena_memory(lab: Lab) -> Act:
    memory = ArenaMemory(max_cached_bytes=1 << 16)

    def act() -> None:
        with cudadrv.using_memory(memory):
            lab.stream.zeros(N, np.int32).close()
            lab.other.zeros(N, np.int32).close()

    return act


def pools(lab: Lab) -> Act:
    def act() -> None:
        with MemoryPool(max_bytes=1 << 25) as pool, cudadrv.using_memory(pool):
            with lab.stream.zeros(N, np.int32):
                assert pool.statistics().used_high
            pool.trim()

    return act


def counted(lab: Lab) -> Act:
    memory = CountedMemory()

    def act() -> None:
        with cudadrv.using_memory(memory), lab.stream.zeros(N, np.int32):
            pass
        hooked = HookedMemory(memory, allocated=lambda address, nbytes, stream: None)
        with cudadrv.using_memory(hooked), lab.stream.zeros(N, np.int32):
            pass

    return act


def growing(lab: Lab) -> Act:
    def act() -> None:
        with GrowingBuffer(lab.stream, capacity=1 << 24, nbytes=4000) as buffer:
            buffer.grow(3 << 20)

    return act


def mapped(lab: Lab) -> Act:
    def act() -> None:
        with PhysicalMemory(2 << 20) as memory, MappedBuffer(lab.stream, [memory]) as buffer:
            with cudadrv.DeviceArray(buffer, N, np.int32) as y:
                lab.stream.fill(y, 2)
            lab.stream.synchronize()

    return act


def capture(lab: Lab) -> Act:
    y = lab.stream.zeros(N, np.int32)

    def act() -> None:
        with lab.stream.capture() as graph:
            lab.other.wait(lab.stream)
            lab.bump.launch(lab.other, ONE, y)
            with lab.other.zeros(N, np.int32) as born:
                lab.other.copy(born, y)
            lab.stream.wait(lab.other)
        with graph, graph.instantiate() as executable:
            executable.launch(lab.stream)
            lab.stream.synchronize()

    return act


def graph(lab: Lab) -> Act:
    y, given = lab.stream.zeros(N, np.int32), np.full(N, 4, np.int32)

    def act() -> None:
        with lab.context.new_graph() as built:
            up = built.add_copy(y, given)
            fill = built.add_fill(y, 6, after=up)
            bump = built.add_kernel(lab.bump, ONE, y, after=fill)
            built.add_host(int, after=bump)
            with built.clone() as clone, built.instantiate() as executable:
                executable.launch(lab.stream)
                executable.update(clone)
                executable.update(built)
                fill.update_in(executable, y, 7)
                executable.launch(lab.stream)
                lab.stream.synchronize()
        assert lab.stream.to_host(y)[0] == 8

    return act


def conditional(lab: Lab) -> Act:
    y = lab.stream.zeros(N, np.int32)

    def act() -> None:
        with lab.context.new_graph() as built:
            condition = built.new_condition(1)
            built.add_if(condition).body.add_fill(y, 3)
            with built.instantiate() as executable:
                executable.launch(lab.stream)
                lab.stream.synchronize()

    return act


def client(lab: Lab) -> Act:
    own = cudadrv.CudaClient(0)
    y = own.stream.zeros(N, np.int32)

    def work(_: object) -> None:
        address = own.allocator.allocate(1024)
        lab.bump.launch(own.stream, ONE, y)
        own.allocator.deallocate(address, 1024)

    def act() -> None:
        with own.capture_graph((), (y,), work, 1 << 16) as captured:
            captured.launch()
        own.stream.synchronize()

    return act


def streams(lab: Lab) -> Act:
    def act() -> None:
        with lab.context.new_stream(priority=-1) as stream, cudadrv.Event(lab.context) as event:
            event.record(stream)
            lab.other.wait(event)
            lab.other.wait(stream)
            stream.call_on_host(int)
            assert stream.record() - event >= 0 or True
            stream.synchronize()
        with lab.context.new_stream_pool(2) as pool:
            pool.next_stream().synchronize()

    return act


def contexts(lab: Lab) -> Act:
    def act() -> None:
        with cudadrv.Context.create(0) as context, context.new_stream() as stream:
            stream.to_host(stream.zeros(N, np.int32))
        (part,), _ = lab.context.sm_resource.split(8, 1)
        with cudadrv.Context.create_green(part) as green, green.new_stream() as stream:
            stream.to_host(stream.zeros(N, np.int32))
        with lab.context.bound():
            pass

    return act


def textures(lab: Lab) -> Act:
    numbers = np.arange(N, dtype=np.float32)

    def act() -> None:
        with cudadrv.texture.CudaArray(lab.context, N, np.float32, surface=True) as array:
            array.copy_from(lab.stream, numbers)
            with cudadrv.texture.Texture(array), cudadrv.texture.Surface(array):
                found = np.zeros_like(numbers)
                array.copy_to(lab.stream, found)
                assert np.array_equal(found, numbers)
        with cudadrv.texture.MipmappedArray(lab.context, (8, 8), np.float32) as levels:
            levels.level(1)

    return act


def tensor_maps(lab: Lab) -> Act:
    tiles = lab.stream.zeros((16, 16), np.float32)
    return lambda: cudadrv.tensor_map.TensorMap(tiles, (4, 8))


def modules(lab: Lab) -> Act:
    def act() -> None:
        with lab.context.load_module(PTX) as module:
            module.kernel("bump").launch(lab.stream, ONE, lab.other.zeros(N, np.int32))
        with lab.context.link([PTX], linker="driver", cache=False) as module:
            assert module.kernel("bump").attributes.registers >= 0

    return act


def compilation(lab: Lab) -> Act:
    def act() -> None:
        text = f"{CUDA} // {next(lab.serials)}"
        with lab.context.compile(text, ptx.CompileOptions(fmad=False)) as module:
            module.kernel("bump")
            lab.stream.copy(module.global_array("c", 4, np.int32), np.arange(4, dtype=np.int32))

    return act


def libraries(lab: Lab) -> Act:
    library = cudadrv.KernelLibrary({"bump.cu": CUDA}, instances={"bump.cu": ["&c"]})

    def act() -> None:
        keyed = KeyedPtxModuleCache()
        library.clear()
        library.prewarm(lab.context)
        library.kernel(lab.context, "bump")
        library.kernel(lab.far.context, "bump")
        keyed.get_or_compile(lab.context, next(lab.serials), "bump", lambda key: CUDA)
        cudadrv.PtxModuleCache().get_or_compile(lab.context, "bump", CUDA).kernel("bump")

    return act


def sharing(lab: Lab) -> Act:
    pool = MemoryPool(shareable=True)
    with cudadrv.using_memory(pool):
        y = lab.stream.to_device(np.arange(N, dtype=np.int32))

    def act() -> None:
        sent = bytes(ForkingPickler.dumps(y))
        assert pickle.loads(sent).ptr == y.ptr
        event = cudadrv.Event(lab.context, timing=False, interprocess=True)
        ForkingPickler.dumps(event)
        event.close()

    return act


def exchange(lab: Lab) -> Act:
    class Foreign:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {
            "shape": (N,), "typestr": "<i4", "data": (lab.x.ptr, False), "version": 3,
        }  # fmt: skip

    def act() -> None:
        lab.stream.import_array(Foreign()).close()
        lab.other.import_array(lab.x[:4]).close()

    return act


def device_pool(lab: Lab) -> Act:
    def act() -> None:
        with cudadrv.DevicePool() as pool:
            stream = pool.context(pool.next_device().ordinal).default_stream
            stream.to_host(stream.zeros(N, np.int32))

    return act


def scatter(lab: Lab) -> Act:
    runtime = cudadrv.GpuRuntime.resolve(cudadrv.GpuPolicy.REQUIRED)
    items = np.zeros(100, np.int32)

    def work(ordinal: int, tile: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        stream = cudadrv.current_tile().stream
        array = stream.to_device(tile)
        stream.fill(array, 3)
        stream.to_host(array, tile)

    def act() -> None:
        cudadrv.scatter_batched(runtime, items, work)
        assert items.tolist() == [3] * 100

    return act


def trace(lab: Lab) -> Act:
    def act() -> None:
        with cudadrv.trace(lab.folder / "trace.json") as recording, recording.span("fill"):
            lab.stream.fill(lab.other.empty(N, np.int32), 1)

    return act


def unordered(lab: Lab) -> Act:
    def act() -> None:
        with lab.stream.unordered(), lab.context.profiling():
            lab.stream.fill(lab.stream.empty(N, np.int32), 1)

    return act


PUBLIC_ACTS: Final[dict[str, Callable[[Lab], Act]]] = {
    made.__name__: made
    for made in (
        allocation, copies, batches, peers, launches, host_arrays, pinned_pool, registered,
        allocator, arena, arena_memory, pools, counted, growing, mapped, capture, graph,
        conditional, client, streams, contexts, textures, tensor_maps, modules, compilation,
        libraries, sharing, exchange, device_pool, scatter, trace, unordered,
    )
}  # fmt: skip
