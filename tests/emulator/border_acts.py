"""Public calls at the border that an exception may end at any line.

Modules and compilation, other libraries' arrays, other processes, device pools, tensor maps, and
the nodes of graphs.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.driver._api import CUipcEventHandle, CUipcMemHandle, opaque_bytes
from cudadrv.driver.driver_selection import current
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.interprocess import ProcessHandle
from cudadrv.interop import ExternalMemory
from cudadrv.ipc import IpcEventHandle, IpcMemoryHandle, PoolHandle
from cudadrv.memory import (
    Advice,
    MappedBuffer,
    MemoryResource,
    PhysicalMemory,
    UnpooledMemory,
    VirtualMemoryResource,
    advise,
)
from cudadrv.runtime import CachedBackend, probe_backend_with_compile, probe_cuda_backend
from cudadrv.tensor_map import TensorMap, TensorSwizzle
from tests.bump_kernel import PTX
from tests.contract.interop.exchanging_library import Library

from .calls import ok
from .public_acts import CUDA, ONE, Act, Lab, N
from .test_interprocess import FILES, a_pool, an_emulator


def module_uses(lab: Lab) -> Act:
    seen: list[object] = []
    text = f"{CUDA} template <class T> __global__ void twice(T* x) {{ x[0] += x[0]; }}"
    image = ptx.compile(text, name_expressions=["twice<int>", "&c"])

    def act() -> None:
        with lab.context.load_module(image) as module:
            module.when_closed(seen.append)
            kernel = module.kernel("twice<int>")
            assert len(module.kernel_names) == 2
            assert kernel.max_active_blocks(32) > 0
            kernel.max_potential_block_size()
            kernel.set_attribute(8, 1024)  # dynamic shared memory
            numbers = module.global_array("c", 4, np.int32)
            with lab.stream.to_device(np.full(N, 4, np.int32)) as x:
                kernel.launch(lab.stream, ONE, x)
                lab.stream.copy(numbers, np.arange(4, dtype=np.int32))
                assert lab.stream.to_host(x)[0] == 8
                assert lab.stream.to_host(numbers).tolist() == [0, 1, 2, 3]

    return act


def image_caches(lab: Lab) -> Act:
    """Misses, and hits in memory and on disk, with headers."""
    folder, header = lab.folder / "images", lab.folder / "twice.cuh"
    header.write_text("#define TWICE(x) (2 * (x))\n")
    options = ptx.CompileOptions(include_paths=(lab.folder,))
    text = '#include "twice.cuh"\nextern "C" __global__ void f(int* x) { x[0] = TWICE(3); }'

    def act() -> None:
        for max_bytes in (1 << 24, 0):
            cache = ptx.ImageCache(folder, max_bytes=max_bytes)
            new = f"{text} // {next(lab.serials)}"
            first = cache.get_or_compile(new, options)
            assert cache.get_or_compile(new, options).data == first.data
            other = ptx.ImageCache(folder, max_bytes=max_bytes)
            assert other.get_or_compile(new, options).data == first.data
            other.stats()
            cache.close()
        other = ptx.ImageCache(folder)
        other.verify()
        other.clear()
        other.close()

    return act


def compile_errors(lab: Lab) -> Act:
    """Sources that NVRTC rejects, and one that it warns of."""

    def act() -> None:
        try:
            lab.context.compile(f"int f( {{ // {next(lab.serials)}")
        except ptx.CompileError:
            pass
        else:
            raise AssertionError("no error")
        text = f"{CUDA} __device__ static int unused; // {next(lab.serials)}"
        with lab.context.compile(text) as module:
            module.kernel("bump")

    return act


def raw_libraries(lab: Lab) -> Act:
    """The driver's libraries, as C programs use them."""
    api = current().api
    assert isinstance(api, Emulator)

    def act() -> None:
        lab.context.bind()
        code, library = api.cuLibraryLoadData(PTX.encode(), [], [], 0, [], [], 0)
        assert not code
        try:
            kernel = ok(api.cuLibraryGetKernel(library, b"bump"))
            assert ok(api.cuLibraryGetKernelCount(library)) == 1
            ok(api.cuLibraryEnumerateKernels(1, library))
            ok(api.cuKernelGetFunction(kernel))
            ok(api.cuLibraryGetModule(library))
            with lab.far.context.bound():
                ok(api.cuKernelGetFunction(kernel))
        finally:
            ok(api.cuLibraryUnload(library))

    return act


class _Foreign:
    """An array of another library, by the array interface."""

    def __init__(self, array: Any, stream: int | None) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream}


class _Capsules:
    """An array of another library, by DLPack."""

    def __init__(self, array: Any, version: tuple[int, int] | None) -> None:
        self._array, self._version = array, version

    def __dlpack_device__(self) -> tuple[int, int]:
        found: tuple[int, int] = self._array.__dlpack_device__()
        return found

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        return self._array.__dlpack__(stream=stream, max_version=self._version)


def imports(lab: Lab) -> Act:
    """Other libraries' arrays by each protocol, as arrays of ours and as arguments."""
    library, x = Library(), lab.x
    other = lab.stream.zeros(N, np.int32)

    def act() -> None:
        loans = len(library.lent)
        library.current = int(lab.other.handle)
        values = (
            _Foreign(x, None), _Foreign(x, int(lab.other.handle)), _Capsules(x, None),
            _Capsules(x[::2], (1, 0)), library.kind(x),
        )  # fmt: skip
        for value in values:
            with lab.stream.import_array(value) as array:
                assert lab.stream.to_host(array)[0] == 5
        for value in (_Foreign(other, int(lab.other.handle)), library.kind(other)):
            lab.bump.launch(lab.stream, ONE, value)
            lab.bump.bind(lab.other, ONE)(value)
        lab.stream.synchronize()
        lab.other.synchronize()
        lost = len(library.lent) - loans
        assert lost <= 1, f"{lost} tensors are lost"

    return act


def exports(lab: Lab) -> Act:
    def act() -> None:
        for stream in (None, 1, -1, int(lab.other.handle)):
            for version in (None, (1, 0)):
                capsule = lab.x.__dlpack__(stream=stream, max_version=version)
                del capsule
        with lab.other.zeros(N, np.int32) as y:
            lab.bump.launch(lab.stream, ONE, y)
            assert y[::2].__cuda_array_interface__["strides"] == (8,)
            y.__dlpack__(stream=int(lab.stream.handle), max_version=(1, 0))
        with lab.context.external_stream(int(lab.other.handle)) as same:
            assert same.to_host(same.zeros(N, np.int32)).tolist() == [0] * N

    return act


class _Peer:
    """Another process: an emulator with memory and an event that it shares."""

    def __init__(self, lab: Lab) -> None:
        self.api = api = an_emulator()
        self.uuid = lab.context.device.uuid.bytes
        self.pool = a_pool(api)
        stream = ok(api.cuStreamCreateWithPriority(1, 0))
        self.pooled = ok(api.cuMemAllocFromPoolAsync(4 * N, self.pool, stream))
        self.plain = ok(api.cuMemAlloc(4 * N))
        for memory in (self.pooled, self.plain):
            ok(api.cuMemsetD32Async(memory, 6, N, stream))
        ok(api.cuStreamSynchronize(stream))
        self.event = ok(api.cuEventCreate(2 | 4))  # without times, for several processes
        lab.context.bind()

    @staticmethod
    def elsewhere(handle: CUipcMemHandle | CUipcEventHandle) -> bytes:
        """Return a handle as one of another process, whose descriptors are those of this one."""
        read = ProcessHandle.read(opaque_bytes(handle))
        assert read is not None
        return read._replace(process=_other_process()).packed


@functools.cache
def _other_process() -> int:
    """Return the number of a thread, under which the system shows the descriptors too."""
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    assert thread.native_id is not None
    return thread.native_id


def received(lab: Lab) -> Act:
    """What another process has shared: its pool, its memory, its event."""
    peer = _Peer(lab)
    identity = b"identity of pool"
    pooled = opaque_bytes(ok(peer.api.cuMemPoolExportPointer(peer.pooled)))
    plain = peer.elsewhere(ok(peer.api.cuIpcGetMemHandle(peer.plain)))
    event = peer.elsewhere(ok(peer.api.cuIpcGetEventHandle(peer.event)))

    def act() -> None:
        descriptor = ok(peer.api.cuMemPoolExportToShareableHandle(peer.pool, FILES, 0))
        pool = PoolHandle.imported(lab.context.device, descriptor, identity)
        handles = (
            IpcMemoryHandle(pooled, peer.uuid, 4 * N, 0, identity),
            IpcMemoryHandle(plain, peer.uuid, 4 * N),
        )
        for handle in handles:
            with handle.open(lab.stream) as buffer:
                there = cudadrv.DeviceArray(buffer, N, np.int32)
                assert lab.stream.to_host(there).tolist() == [6] * N
        with IpcEventHandle(event, peer.uuid).open(lab.context) as opened:
            opened.record(lab.stream)
            lab.other.wait(opened)
        del pool

    return act


def sent(lab: Lab) -> Act:
    """What this process shares: memory by itself, physical memory, and an event."""
    unpooled = UnpooledMemory()

    def act() -> None:
        with cudadrv.using_memory(unpooled), lab.stream.zeros(N, np.int32) as y:
            handle = IpcMemoryHandle.of(y)
            handle.open(lab.other).close()
        with PhysicalMemory(2 << 20, handle_type="posix_fd") as memory:
            descriptor = memory.export_descriptor()
            try:
                with (
                    PhysicalMemory.from_descriptor(descriptor, 2 << 20) as same,
                    MappedBuffer(lab.stream, [same]) as buffer,
                ):
                    lab.stream.fill(buffer, 1)
            finally:
                os.close(descriptor)
        event = cudadrv.Event(lab.context, timing=False, interprocess=True)
        IpcEventHandle.of(event).open(lab.context).close()

    return act


def external(lab: Lab) -> Act:
    """Memory and a semaphore of a graphics library."""

    def act() -> None:
        with PhysicalMemory(1, handle_type="posix_fd") as memory:
            descriptor = memory.export_descriptor()
            try:
                with (
                    ExternalMemory(lab.context, descriptor, memory.nbytes) as same,
                    same.buffer(lab.stream) as buffer,
                ):
                    lab.stream.fill(buffer, 1)
                    lab.stream.synchronize()
            finally:
                os.close(descriptor)

    return act


def device_pools(lab: Lab) -> Act:
    def act() -> None:
        with cudadrv.DevicePool() as pool:
            taken = [pool.next_device().ordinal for _ in range(4)]
            assert taken == [0, 1, 0, 1]
            stream = pool.context(pool.best_available_device().ordinal).default_stream
            assert stream.to_host(stream.zeros(N, np.int32)).tolist() == [0] * N
        with cudadrv.DevicePool(flags=cudadrv.driver.ContextFlags(0)) as own:
            for _, context in own:
                with context.new_stream() as stream:
                    stream.zeros(N, np.int32).close()

    return act


def scatter_map(lab: Lab) -> Act:
    runtime = cudadrv.GpuRuntime.resolve(cudadrv.GpuPolicy.REQUIRED)
    items = list(range(50))

    def work(ordinal: int, tile: Sequence[int]) -> int:
        return sum(tile)

    def failing(ordinal: int, tile: Sequence[int]) -> int:
        raise ZeroDivisionError

    def act() -> None:
        assert sum(cudadrv.scatter_map(runtime, items, work)) == sum(items)
        try:
            cudadrv.scatter_map(runtime, items, failing)
        except cudadrv.pool.ScatterError:
            pass

    return act


def backends(lab: Lab) -> Act:
    def build(parts: cudadrv.runtime.CudaBackendParts) -> cudadrv.Module:
        return parts.ctx.compile(CUDA)

    def act() -> None:
        cached: CachedBackend[cudadrv.Module] = CachedBackend()
        for _ in range(2):
            cached.get_or_probe(lambda: probe_backend_with_compile("bump", build)).kernel("bump")
        probe_cuda_backend("bump")

    return act


def tensor_maps_of_images(lab: Lab) -> Act:
    images = lab.stream.zeros((2, 8, 8, 16), np.float32)
    same = lab.stream.zeros((2, 8, 8, 16), np.float32)

    def act() -> None:
        made = TensorMap.im2col(images, (-1, -1), (-1, -1), 16, 8)
        assert bytes(made.replace(same)) != bytes(made)
        tiled = TensorMap(images, (1, 2, 2, 16), swizzle=TensorSwizzle.BYTES_64)
        assert tiled.shared_nbytes
        tiled.replace(same)

    return act


def memories(lab: Lab) -> Act:
    resources: list[MemoryResource] = [VirtualMemoryResource(), UnpooledMemory()]

    def act() -> None:
        for resource in resources:
            with cudadrv.using_memory(resource), lab.stream.zeros(N, np.int32) as y:
                assert lab.stream.to_host(y).tolist() == [0] * N
        managed = cudadrv.managed_empty(N, np.int32)
        advise(managed, Advice.READ_MOSTLY)
        lab.stream.prefetch(managed, 0)
        lab.stream.synchronize()

    return act


def nodes(lab: Lab) -> Act:
    """Each kind of node, the edges between them, and their changes."""
    y, given = lab.stream.zeros(N, np.int32), np.full(N, 4, np.int32)
    event, other = cudadrv.Event(lab.context), cudadrv.Event(lab.context)

    def act() -> None:
        with lab.context.new_graph() as child, lab.context.new_graph() as built:
            child.add_fill(y, 1)
            up = built.add_copy(y, given)
            bump = built.add_kernel(lab.bump, LaunchConfig(1, 1), y, after=up)
            below = built.add_graph(child, after=bump)
            record = built.add_record(event, after=below)
            built.add_wait(event, after=up)
            host = built.add_host(int, after=record)
            last, end = built.add_fill(y, 2), built.add_empty(after=host)
            built.add_edge(end, last)
            assert len(built.nodes) == 8
            built.remove_edge(end, last)
            built.add_edge(host, last)
            with built.instantiate() as executable:
                bump.update_in(executable, lab.bump, LaunchConfig(1, 1), y)
                record.update_in(executable, other)
                host.update_in(executable, str)
                up.update_in(executable, y, given)
                last.update_in(executable, y, 3)
                executable.enable(bump, False)
                executable.upload(lab.stream)
                executable.launch(lab.stream)
                assert lab.stream.to_host(y).tolist() == [3] * N
            bump.update(lab.bump, LaunchConfig(1, 1), y)
            up.update(y, given)
            record.update(other)
            host.update(str)
            last.update(y, 6)
            bump.remove()
            with built.instantiate(upload=lab.stream) as executable:
                executable.launch(lab.stream)
                lab.stream.synchronize()
            built.write_dot(lab.folder / "graph.dot")

    return act


def graph_memory(lab: Lab) -> Act:
    """Memory of graphs, and conditional nodes with recorded bodies."""
    y = lab.stream.zeros(N, np.int32)

    def act() -> None:
        with lab.context.new_graph() as built:
            born = built.add_alloc(N, np.int32)
            fill = built.add_fill(born.array, 7, after=born)
            copy = built.add_copy(y, born.array, after=fill)
            built.add_free(born.array, after=copy)
            condition = built.new_condition(1)
            chosen = built.add_switch(condition, 2, after=copy)
            chosen.bodies[0].add_fill(y, 1)
            with lab.stream.capture(into=chosen.bodies[1]):
                lab.bump.launch(lab.stream, ONE, y)
            with built.instantiate() as executable:
                executable.launch(lab.stream)
                assert lab.stream.to_host(y).tolist() == [8] + [7] * (N - 1)

    return act


def traced_graphs(lab: Lab) -> Act:
    y = lab.stream.zeros(N, np.int32)

    def act() -> None:
        with cudadrv.trace(None) as recording:
            with lab.stream.capture() as graph:
                lab.bump.launch(lab.stream, ONE, y)
            with graph, graph.instantiate() as executable:
                executable.launch(lab.stream)
            with lab.context.load_module(PTX) as module:
                module.kernel("bump").launch(lab.other, ONE, y)
        assert len(recording.device_spans) == 2

    return act


BORDER_ACTS: Final[dict[str, Callable[[Lab], Act]]] = {
    made.__name__: made
    for made in (
        module_uses, image_caches, compile_errors, raw_libraries, imports, exports, received, sent,
        external, device_pools, scatter_map, backends, tensor_maps_of_images, memories, nodes,
        graph_memory, traced_graphs,
    )
}  # fmt: skip
