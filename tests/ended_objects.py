"""Objects of every public class, and one call of each public member.

`tests/emulator/test_ended_objects.py` makes the calls on objects of an ended session, a closed
parent and so on, and a forked child makes them too.
"""

from __future__ import annotations

import enum
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

import cudadrv
from tests.documents.reference import named, names_of_cudadrv

SOURCE: Final = """
__device__ int table[4];
extern "C" __global__ void k(int* x) { x[threadIdx.x] = 1; }
"""
cudadrv.client.register_module("ended objects", SOURCE)


class Places(cudadrv.memory.DriverMemory):
    """Keeps the streams that it allocates for, as a resource of a user's may."""

    def __init__(self) -> None:
        self.places: list[cudadrv.memory.MemoryStream] = []

    def allocate(self, nbytes: int, stream: cudadrv.memory.MemoryStream) -> int:
        self.places.append(stream)
        return super().allocate(nbytes, stream)


class Lab:
    """One object of each class, on a context of its own where that is possible."""

    def __init__(self) -> None:
        self.dev = cudadrv.Device.get(0)
        self.context = context = cudadrv.Context.create(0)
        self.other = cudadrv.Context.create(0)
        self.stream = stream = context.new_stream()
        self.primary = cudadrv.cuda_context_for(0)
        self.array = stream.zeros((4, 8), np.float32)
        self.buffer = stream.alloc(64)
        self.view = self.array[1:]
        self.event = stream.record()
        self.before, self.doomed = stream.record(), stream.record()
        self.module = context.compile(SOURCE)
        self.kernel = self.module.kernel("k")
        self.config = cudadrv.LaunchConfig(1, 4)
        self.clusters = cudadrv.LaunchConfig(2, 32, cluster=2)
        self.numbers = stream.zeros(4, np.int32)
        self.launcher = self.kernel.bind(stream, self.config)
        self.launcher(self.numbers)
        self.prepared = self.launcher.prepare(self.numbers)
        self.host = np.zeros((4, 8), np.float32)
        self.image, self.raw_stream = self.module.image, int(stream.handle)
        self.foreign = self.other.new_stream().zeros(4, "f4")
        self._graphs(context)
        self._textures(context, stream)
        self._memory(context, stream)
        self._above()

    def _graphs(self, context: cudadrv.Context) -> None:
        self.graph = graph = context.new_graph()
        self.condition, self.spare = graph.new_condition(0), graph.new_condition(0)
        self.fill = graph.add_fill(self.array, 1)
        self.copy = graph.add_copy(self.array, self.host)
        self.launch_node = graph.add_kernel(self.kernel, self.config, self.numbers)
        self.host_node = graph.add_host(int)
        self.event_node = graph.add_record(self.event)
        self.empty, self.first, self.then = (graph.add_empty() for _ in range(3))
        self.loop = graph.add_if(self.condition)
        self.executable = graph.instantiate()
        self.child = context.new_graph()
        self.child.add_empty()
        self.allocating = context.new_graph()
        self.alloc = self.allocating.add_alloc(4, "f4")
        self.captured = cudadrv.CudaClient(0).capture_graph([], [], lambda _: None)

    def _textures(self, context: cudadrv.Context, stream: cudadrv.Stream) -> None:
        self.texels = cudadrv.texture.CudaArray.from_host(stream, self.host, surface=True)
        self.mipmap: cudadrv.texture.MipmappedArray[Any] = cudadrv.texture.MipmappedArray(
            context, (8, 8), "f4"
        )
        self.texture, self.surface = (
            cudadrv.texture.Texture(self.texels),
            cudadrv.texture.Surface(self.texels),
        )
        self.square = stream.zeros((16, 16), "f4")
        self.tensor = cudadrv.tensor_map.TensorMap(self.square, box=(4, 4))

    def _memory(self, context: cudadrv.Context, stream: cudadrv.Stream) -> None:
        self.pool = cudadrv.MemoryPool()
        self.growing = cudadrv.memory.GrowingBuffer(stream, 4096)
        self.physical = cudadrv.memory.PhysicalMemory(1 << 21)
        self.mapped = cudadrv.memory.MappedBuffer(stream, [self.physical])
        self.arena = cudadrv.DeviceArena()
        self.bucket, self.slab = self.arena.alloc(stream, 4, "l")
        self.pinned = cudadrv.memory.PinnedPool()
        self.pinned.empty(4, "f4")
        self.registered = cudadrv.memory.RegisteredArray(np.zeros(4096))
        self.streams = context.new_stream_pool(2)
        self.legacy = context.legacy_stream
        self.default = context.default_stream
        self.limits = context.limits
        self.part = self.primary.sm_resource
        self.allocator = cudadrv.memory.CudaAllocator(stream)
        self.address = self.allocator.allocate(64)
        self.managed = cudadrv.managed_empty(64, "f4")
        places = Places()
        with cudadrv.using_memory(places):
            stream.zeros(4, "f4")
        self.place = places.places[0]
        self.pooled = self.pool.allocate(64, self.place)

    def _above(self) -> None:
        self.client = cudadrv.CudaClient(0)
        self.blas = cudadrv.blas.LinearAlgebra(self.stream)
        self.eye, self.out = (self.stream.to_device(np.eye(4)) for _ in range(2))
        self.vector, self.row = (self.stream.zeros(4, "f8") for _ in range(2))
        self.devices = cudadrv.DevicePool()
        self.cache = cudadrv.PtxModuleCache()
        self.cached = self.cache.get_or_compile(self.context, "k", SOURCE)
        self.keyed = cudadrv.runtime.KeyedPtxModuleCache()
        self.library = cudadrv.KernelLibrary({"k.cu": SOURCE})
        self.library.kernel(self.context, "k")
        self.runtime = cudadrv.GpuRuntime.current()
        self.backend: cudadrv.runtime.CachedBackend[object] = cudadrv.runtime.CachedBackend()
        self.backend.get_or_probe(object)
        self.trace = cudadrv.trace(os.devnull)


# Class, the name of its object in the lab.
OBJECTS: Final[Mapping[str, str]] = dict(
    line.split()
    for line in """
    GraphExec executable
    KernelNode launch_node
    CopyNode copy
    FillNode fill
    HostNode host_node
    EventNode event_node
    AllocNode alloc
    ConditionalNode loop
    GraphNode empty
    GraphCondition condition
    Graph graph
    CapturedGraph captured
    Texture texture
    Surface surface
    TensorMap tensor
    CudaArray texels
    MipmappedArray mipmap
    Launcher launcher
    PreparedLaunch prepared
    Kernel kernel
    Module module
    DeviceArray array
    DeviceBuffer buffer
    GrowingBuffer growing
    MappedBuffer mapped
    PhysicalMemory physical
    MemoryPool pool
    DeviceArena arena
    PinnedPool pinned
    RegisteredArray registered
    CudaAllocator allocator
    Event event
    StreamPool streams
    DefaultStream legacy
    LinearAlgebra blas
    CudaClient client
    DevicePool devices
    PtxModuleCache cache
    KeyedPtxModuleCache keyed
    KernelLibrary library
    ContextLimits limits
    SmResource part
    GpuRuntime runtime
    CachedBackend backend
    Stream stream
    Context context
    Device dev
    """.strip().split("\n")
)

CALLS: Final[Mapping[str, str]] = {
    name: call
    for name, _, call in (
        line.strip().partition(" ")
        for line in """
    GraphExec.enable o.enable(fill)
    GraphExec.is_enabled o.is_enabled(fill)
    GraphExec.launch o.launch(stream)
    GraphExec.update o.update(graph)
    GraphExec.upload o.upload(stream)
    KernelNode.make_updatable o.make_updatable()
    KernelNode.update o.update(kernel, config, numbers)
    KernelNode.update_in o.update_in(executable, kernel, config, numbers)
    CopyNode.update o.update(array, host)
    CopyNode.update_in o.update_in(executable, array, host)
    FillNode.update o.update(array, 2)
    FillNode.update_in o.update_in(executable, array, 2)
    HostNode.update o.update(int)
    HostNode.update_in o.update_in(executable, int)
    EventNode.update o.update(event)
    EventNode.update_in o.update_in(executable, event)
    Graph.add_alloc o.add_alloc(4, 'f4')
    Graph.add_copy o.add_copy(array, host)
    Graph.add_edge o.add_edge(first, then)
    Graph.add_fill o.add_fill(array, 1)
    Graph.add_free o.add_free(alloc.array, after=first)
    Graph.add_graph o.add_graph(child)
    Graph.add_host o.add_host(int)
    Graph.add_if o.add_if(spare)
    Graph.add_kernel o.add_kernel(kernel, config, numbers)
    Graph.add_record o.add_record(event)
    Graph.add_switch o.add_switch(spare, 2)
    Graph.add_wait o.add_wait(event)
    Graph.add_while o.add_while(spare)
    Graph.remove_edge o.remove_edge(first, then)
    Graph.write_dot o.write_dot('/dev/null')
    TensorMap.replace o.replace(square)
    CudaArray.copy_from o.copy_from(stream, host)
    CudaArray.copy_to o.copy_to(stream)
    MipmappedArray.level o.level(0)
    Launcher.prepare o.prepare(numbers)
    Launcher.__call__ o(numbers)
    PreparedLaunch.__call__ o()
    Kernel.attribute o.attribute(0)
    Kernel.bind o.bind(stream, config)
    Kernel.__call__ o(stream, config, numbers)
    Kernel.launch o.launch(stream, config, numbers)
    Kernel.max_active_blocks o.max_active_blocks(32)
    Kernel.max_active_clusters o.max_active_clusters(clusters)
    Kernel.max_potential_cluster_size o.max_potential_cluster_size(clusters)
    Kernel.set_attribute o.set_attribute(8, 1024)
    Module.global_array o.global_array('table')
    Module.kernel o.kernel('k')
    Module.when_closed o.when_closed(id)
    DeviceArray.reshape o.reshape(32)
    DeviceArray.transpose o.transpose()
    DeviceArray.view o.view('i4')
    DeviceArray.__getitem__ o[1]
    DeviceArray.__setitem__ o.__setitem__(0, 1)
    DeviceArray.__iter__ list(o)
    DeviceArray.__index__ o.__index__()
    DeviceArray.__dlpack__ o.__dlpack__()
    DeviceArray.__dlpack_device__ o.__dlpack_device__()
    DeviceBuffer.record_use o.record_use(stream)
    DeviceBuffer.__index__ o.__index__()
    GrowingBuffer.grow o.grow(8192)
    GrowingBuffer.record_use o.record_use(stream)
    GrowingBuffer.__index__ o.__index__()
    MappedBuffer.record_use o.record_use(stream)
    MappedBuffer.open_to o.open_to(1)
    MappedBuffer.is_open_to o.is_open_to(0)
    MappedBuffer.close_to o.close_to(1)
    MappedBuffer.__index__ o.__index__()
    MemoryPool.allocate o.allocate(64, place)
    MemoryPool.deallocate o.deallocate(pooled, 64, place)
    MemoryPool.is_open_to o.is_open_to(1)
    MemoryPool.open_to o.open_to(1)
    MemoryPool.set_release_threshold o.set_release_threshold(0)
    DeviceArena.alloc o.alloc(stream, 4, 'l')
    DeviceArena.borrow o.borrow(stream, 4).__enter__()
    DeviceArena.release o.release(bucket, slab)
    PinnedPool.empty o.empty(400, 'f4')
    CudaAllocator.allocate o.allocate(4096)
    CudaAllocator.deallocate o.deallocate(address, 64)
    CudaAllocator.install_arena o.install_arena(4096, 64)
    Event.elapsed_ms o.elapsed_ms(before)
    Event.record o.record(stream)
    StreamPool.fork o.fork(stream)
    StreamPool.join o.join(stream)
    StreamPool.next_stream o.next_stream().handle
    StreamPool.__iter__ [stream.handle for stream in o]
    StreamPool.__getitem__ o[0].handle
    DefaultStream.wait o.wait(event)
    LinearAlgebra.gemm o.gemm(eye, eye, out)
    LinearAlgebra.gemv o.gemv(eye, vector, row)
    LinearAlgebra.potrf o.potrf(eye)
    LinearAlgebra.potrs o.potrs(eye, out)
    LinearAlgebra.syrk o.syrk(eye, out)
    LinearAlgebra.trsm o.trsm(eye, out)
    LinearAlgebra.xtwx o.xtwx(eye, vector, out)
    CudaClient.capture_graph o.capture_graph([], [], id)
    CudaClient.copy_stream_wait_event o.copy_stream_wait_event(event)
    CudaClient.destroy_event o.destroy_event(doomed)
    CudaClient.module o.module('ended objects')
    CudaClient.preload_modules o.preload_modules(['ended objects'])
    CudaClient.warmup_sobol o.warmup_sobol(2)
    DevicePool.context o.context(0).handle
    DevicePool.context_at o.context_at(0).handle
    DevicePool.device_at o.device_at(0)
    PtxModuleCache.get o.get(context)
    PtxModuleCache.get_or_compile o.get_or_compile(context, 'k', SOURCE)
    KeyedPtxModuleCache.get o.get(1, context)
    KeyedPtxModuleCache.get_or_compile o.get_or_compile(context, 1, 'k', SOURCE)
    KernelLibrary.kernel o.kernel(context, 'k')
    KernelLibrary.module o.module(context)
    KernelLibrary.prewarm o.prewarm(context)
    SmResource.split o.split(8, 1)
    GpuRuntime.memory_budget_for o.memory_budget_for(0)
    CachedBackend.get_or_probe o.get_or_probe(object)
    Stream.alloc o.alloc(64)
    Stream.assign o.assign(array, 1)
    Stream.attach o.attach(managed, cudadrv.memory.Attachment.GLOBAL)
    Stream.call_on_host o.call_on_host(int)
    Stream.capture o.capture().__enter__()
    Stream.contiguous o.contiguous(array.T)
    Stream.copy o.copy(array, host)
    Stream.copy_batch o.copy_batch([(array, host)])
    Stream.discard_batch o.discard_batch([managed])
    Stream.empty o.empty(4, 'f4')
    Stream.empty_pitched o.empty_pitched((4, 4), 'f4')
    Stream.fill o.fill(array, 1)
    Stream.import_array o.import_array(foreign)
    Stream.in_place o.in_place(managed)
    Stream.prefetch o.prefetch(managed)
    Stream.prefetch_batch o.prefetch_batch([managed])
    Stream.to_device o.to_device(host)
    Stream.to_host o.to_host(array)
    Stream.unordered o.unordered().__enter__()
    Stream.use_memory o.use_memory(cudadrv.memory.DriverMemory())
    Stream.wait o.wait(event)
    Stream.zeros o.zeros(4, 'f4')
    Context.bound o.bound().__enter__()
    Context.compile o.compile(SOURCE)
    Context.compile_kernel o.compile_kernel(SOURCE, 'k')
    Context.compile_nvvm o.compile_nvvm('')
    Context.enable_peer_access o.enable_peer_access(primary)
    Context.external_stream o.external_stream(raw_stream)
    Context.link o.link([image])
    Context.load_module o.load_module(image)
    Context.new_stream_pool o.new_stream_pool(2)
    Context.profiling o.profiling().__enter__()
    Context.use_memory o.use_memory(cudadrv.memory.DriverMemory())
    Context.when_module_loaded o.when_module_loaded(id)
    Device.attribute o.attribute(1)
    """.strip().split("\n")
    )
}


# Members that answer after the end, as they describe the object or lead to another one, which is
# closed too; books that an allocator keeps by itself; and releases. Everything else raises.
DESCRIBES: Final[Mapping[str, str]] = {
    "GraphExec": "context", "KernelNode": "graph", "CopyNode": "graph", "FillNode": "graph",
    "HostNode": "graph", "EventNode": "graph", "AllocNode": "array graph",
    "ConditionalNode": "bodies body graph", "GraphNode": "graph", "GraphCondition": "graph",
    "Graph": "allocates context",
    "CapturedGraph": "arena inputs launch_count node_count outputs stream",
    "Texture": "buffer context reading resource", "Surface": "buffer context resource",
    "TensorMap": "array box box_nbytes buffer context element element_strides shared_nbytes "
    "swizzle",
    "CudaArray": "argument_hint channels context dtype extents host_shape nbytes shape texel",
    "MipmappedArray": "argument_hint channels context dtype extents levels nbytes shape texel",
    "Kernel": "attributes describe_parameters module name parameter_bytes parameters signature",
    "Module": "context image kernel_names sass",
    "DeviceArray": "__dlpack_device__ buffer context dtype is_contiguous nbytes ndim shape size "
    "stream strides",
    "DeviceBuffer": "buffer context is_contiguous nbytes stream",
    "GrowingBuffer": "buffer capacity context granularity is_contiguous nbytes stream",
    "MappedBuffer": "buffer context is_contiguous nbytes stream",
    "PhysicalMemory": "device handle_type nbytes numa_node", "MemoryPool": "deallocate device",
    "DeviceArena": "dtype statistics trim", "PinnedPool": "empty statistics trim",
    "RegisteredArray": "array",
    "CudaAllocator": "clear_arena deallocate forget_captured free_captured has_arena is_frozen "
    "statistics stream unfreeze",
    "Event": "context interprocess timing", "DefaultStream": "context handle is_per_thread",
    "CudaClient": "allocator blas context copy_stream destroy_event device is_capturing raw_handle "
    "sobol_dv_cache stream",
    "DevicePool": "__iter__ device_at device_count next_device", "PtxModuleCache": "get",
    "KeyedPtxModuleCache": "get", "KernelLibrary": "clear",
    "SmResource": "coscheduled_alignment device min_partition_size sm_count",
    "GpuRuntime": "calibration device device_count device_ordinals devices memory_budget_bytes "
    "memory_budget_for policy selected_device",
    "CachedBackend": "get_or_probe", "LinearAlgebra": "stream", "Stream": "capturing context",
    "Context": "capability device is_primary ordinal target",
    "Device": "compute_capability default_pool driver forget_primary handle is_emulated name "
    "ordinal properties",
}  # fmt: skip
# Of the driver in use, so that they go on with the next one.
OF_THE_DRIVER_IN_USE: Final = frozenset({"PinnedPool.empty", "CachedBackend.get_or_probe"})
# Members that answer in a forked child, as they call no driver: numbers, views, state of Python.
# Each call of the driver with them raises ForkedProcessError.
WITHOUT_DRIVER: Final[Mapping[str, str]] = {
    **dict.fromkeys((
        "GraphExec", "KernelNode", "CopyNode", "FillNode", "HostNode", "EventNode", "AllocNode",
        "ConditionalNode", "GraphNode", "Graph", "Texture", "Surface", "CudaArray",
        "PhysicalMemory", "Event",
    ), "handle"),
    "GraphCondition": "__index__ handle", "MipmappedArray": "handle level", "Launcher": "prepare",
    "Kernel": "attribute bind handle", "Module": "handle kernel when_closed",
    "DeviceArray": "T __getitem__ __index__ __iter__ is_read_only origin ptr reshape transpose "
    "view",
    "DeviceBuffer": "__index__ is_read_only ptr record_use",
    "GrowingBuffer": "__index__ is_read_only ptr record_use",
    "MappedBuffer": "__index__ is_open_to is_read_only ptr record_use",
    "MemoryPool": "handle is_foreign shareable", "DeviceArena": "release",
    "StreamPool": "__getitem__ __iter__ next_stream", "LinearAlgebra": "warm_up",
    "CudaClient": "compute_stream_handle", "DevicePool": "context context_at",
    "PtxModuleCache": "get_or_compile", "KernelLibrary": "kernel module prewarm",
    "Stream": "handle unordered use_memory",
    "Context": "default_stream handle is_green legacy_stream limits per_thread_stream use_memory "
    "when_module_loaded",
}  # fmt: skip
# Rows that fail on live objects too: emulated devices or objects of the lab lack it, an earlier row
# excludes it, as a node that kernels update stays in its graph, or it is deprecated.
FAIL_ALIVE: Final = frozenset({
    "AllocNode.remove", "KernelNode.remove", "Kernel.attribute", "Kernel.set_attribute",
    "Graph.add_free", "Graph.remove_edge", "Graph.add_switch",
    "Graph.add_while", "Graph.clone", "Graph.instantiate",
    "PhysicalMemory.export_descriptor", "PhysicalMemory.export_fabric", "MemoryPool.descriptor",
    "Context.compile_nvvm", "Context.enable_peer_access", "Device.nvml",
})  # fmt: skip
# Errors other than ClosedError that a member documents.
OTHER_ERRORS: Final = {
    "DeviceArena.release": "SlabReleaseError",
    "Device.nvml": "NvmlNotFoundError",  # NVML knows no emulated device
}
# Objects that are not of the context that the lab creates.
NOT_OF_THE_CONTEXT: Final = frozenset({
    "CapturedGraph", "PhysicalMemory", "MemoryPool", "PinnedPool", "RegisteredArray", "CudaClient",
    "DevicePool", "SmResource", "GpuRuntime", "CachedBackend", "Device", "PtxModuleCache",
    "KeyedPtxModuleCache", "KernelLibrary",
})  # fmt: skip
# Public classes without a row, and why.
NO_ROW: Final[Mapping[str, str]] = {
    **dict.fromkeys((
        "AccessWindow", "Calibration", "ClockRates", "DeviceConnection", "DeviceProperties",
        "EccErrors", "GpuAbsent", "GpuAvailable", "GpuBroken", "GpuCapability", "GpuDeviceInfo",
        "GpuDispatchPolicy", "In", "InOut", "JitOptions", "LaunchAttributes", "LaunchConfig",
        "FieldValue", "MemoryStatistics", "NvLink", "NvmlEvent", "Out", "Progress", "TerminalBar",
        "TilePolicy",
        "WorkerReport", "WorkqueueResource", "IpcEventHandle", "IpcMemoryHandle",
        "PirlsLoopAdmission", "RemlOuterAdmission", "Reader",
    ), "a value"),
    **dict.fromkeys(("CudaBackendContext", "CudaBackendParts", "CudaRawHandle"), "holds others"),
    **dict.fromkeys((
        "ArenaMemory", "CountedMemory", "DriverMemory", "HookedMemory", "MemoryResource",
        "MemoryStream", "UnpooledMemory", "VirtualMemoryResource",
    ), "called by the library, with a stream that is open"),
    "KernelAttributes": "see Kernel.attribute", "NvmlDevice": "NVML has no emulated device",
    "NvmlEvents": "NVML has no emulated device",
    "OpenGLBuffer": "the emulator has no OpenGL", "OpenGLImage": "the emulator has no OpenGL",
    "ExternalMemory": "needs memory of Vulkan", "ExternalSemaphore": "needs one of Vulkan",
    "MulticastObject": "needs devices with NVLink switches", "GpuExecutor": "of processes",
    "ProcessCheckpoint": "of a process", "Tile": "of one call: tests/contract/test_scatter.py",
    "Trace": "tests/emulator/test_tracing_ends.py",
    "SobolDvCache": "needs SciPy: tests/contract/client/test_sobol.py",
}  # fmt: skip
_DESTRUCTIVE: Final = ("remove", "close_to", "destroy_event")
_NOT_CALLED: Final = ("close", "closed", "reset")


def classes() -> dict[str, type]:
    """Return the public classes that are neither errors, enums nor plain values."""
    found = {}
    for full in sorted(names_of_cudadrv()):
        name, value = full.rpartition(".")[2], named(full)
        if isinstance(value, type) and not issubclass(value, (BaseException, enum.Enum, tuple)):
            found[name] = value
    return found


_SPECIAL: Final = (
    "__call__", "__getitem__", "__setitem__", "__iter__", "__index__", "__dlpack__",
    "__dlpack_device__",
)  # fmt: skip


def members(name: str) -> Iterator[tuple[str, str]]:
    """Yield each public member of a class, and the call of it; those that destroy come last.

    A new method with arguments fails here until it has a row in `CALLS`.
    """
    cls = classes()[name]
    names = [member for member in dir(cls) if member not in _NOT_CALLED]
    for member in sorted(names, key=_DESTRUCTIVE.__contains__):
        if member.startswith("_") and member not in _SPECIAL:
            continue
        value = inspect.getattr_static(cls, member)
        definer = next((base for base in cls.__mro__ if member in vars(base)), object)
        is_of_class = isinstance(value, (classmethod, staticmethod))
        if is_of_class or not definer.__module__.startswith("cudadrv"):
            continue
        full = f"{name}.{member}"
        call = f"o.{member}"
        if full not in CALLS and inspect.isfunction(value):
            assert not _required(value), f"{full} has arguments, and no row"
            call += "()"
        yield full, CALLS.get(full, call)


def _required(function: Callable[..., object]) -> list[str]:
    """Return the arguments that a method requires."""
    _, *parameters = inspect.signature(function).parameters.values()
    return [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def outcomes(lab: Lab, names: Iterable[str]) -> dict[str, str]:
    """Make each call of these classes; return the name of its error, or "" if it answers."""
    found = {}
    scope = {**vars(lab), "cudadrv": cudadrv, "SOURCE": SOURCE}
    for name in names:
        for full, call in members(name):
            try:
                eval(call, scope | {"o": scope[OBJECTS[name]]})
                found[full] = ""
            except Exception as error:
                found[full] = type(error).__name__
    return found


def differences(
    found: Mapping[str, str], expected: str, *, answers: Mapping[str, str] | None = None
) -> list[str]:
    """Return the calls that did not end with an error, and should have.

    Args:
        found: the outcomes.
        expected: the name of the error.
        answers: members that may answer, beside those that describe an object.
    """
    wrong = []
    for full, error in found.items():
        name, _, member = full.partition(".")
        texts = (DESCRIBES.get(name, ""), (answers or {}).get(name, ""))
        allowed = {expected, OTHER_ERRORS.get(full, expected)}
        if any(member in text.split() for text in texts):
            allowed.add("")
        if error not in allowed and full not in OF_THE_DRIVER_IN_USE:
            wrong.append(f"{full}: {error or 'it answers'}")
    return wrong
