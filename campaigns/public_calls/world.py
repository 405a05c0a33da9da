"""The objects that fuzzed calls are made on and with: open, closed, and of another device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.client import SobolDvCache
from cudadrv.runtime import (
    PirlsCurvature,
    PirlsFamily,
    PirlsLoopAdmission,
    RemlOuterAdmission,
)

_MIB: Final = 1 << 20
_DEVICE: Final = emulator.EmulatedDevice(total_memory=64 * _MIB, sm_count=16)

SOURCE: Final = """
.version 7.5
.target sm_75
.address_size 64
.global .align 4 .b8 table[64];
.visible .entry put(.param .u64 out, .param .u32 n, .param .f32 x)
{
    .reg .f32 %f<2>;
    ld.param.f32 %f1, [x];
    ret;
}
"""


class OursError(Exception):
    """What a function of the fuzzer's raises, and so may come out of a call that was given it."""


class Places(cudadrv.memory.DriverMemory):
    """Keeps the streams that it allocates for, as a resource of a user's may."""

    def __init__(self) -> None:
        self.places: list[cudadrv.memory.MemoryStream] = []

    def allocate(self, nbytes: int, stream: cudadrv.memory.MemoryStream) -> int:
        self.places.append(stream)
        return super().allocate(nbytes, stream)


class World:
    """Objects by class."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[type, list[object]] = {}

    def add(self, *values: object) -> None:
        """Have some objects, under each of their classes."""
        for value in values:
            for cls in type(value).__mro__[:-1]:
                self.objects.setdefault(cls, []).append(value)

    def of(self, cls: type) -> list[object]:
        """The objects of a class."""
        return self.objects.get(cls, [])


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[World]:
    """A world on an emulator of its own with two small devices."""
    world = World(folder)
    with emulator.session([_DEVICE, _DEVICE]) as driver:
        with driver.fail("cuMemFree", nth=10**6) as fault, driver.limit_memory(1 << 40) as limit:
            world.add(fault, limit)
        world.add(driver, _DEVICE, emulator.H100, emulator.Limits())
        for ordinal in (0, 1):
            _fill_context(world, cudadrv.cuda_context_for(ordinal))
        own = cudadrv.Context.create(0)
        _fill_context(world, own)
        gone = cudadrv.Context.create(1)
        _fill_context(world, gone, small=True)
        gone.close()
        _fill_above(world)
        yield world


def _fill_context(world: World, context: cudadrv.Context, *, small: bool = False) -> None:
    stream = context.new_stream()
    array = stream.zeros((4, 8), np.float32)
    world.add(context, stream, array, array.buffer, context.device)
    event = stream.record()
    module = context.load_module(SOURCE)
    kernel = module.kernel("put")
    world.add(event, module, kernel)
    if small:
        return
    world.add(context.default_stream, stream.alloc(100), stream.alloc(0))
    world.add(stream.to_device(np.arange(6, dtype=np.int32)), array[1], array[0, 0])
    world.add(stream.zeros((0, 3), np.int16), stream.zeros((), np.float64))
    world.add(stream.to_device(np.zeros((3, 3)) + np.eye(3)), stream.zeros((8, 8), np.float32))
    closed_stream, closed_array, closed_event = (
        context.new_stream(),
        stream.zeros(3, "u1"),
        stream.record(),
    )
    for each in (closed_stream, closed_array, closed_event):
        each.close()
    world.add(closed_stream, closed_array, closed_array.buffer, closed_event)
    closed_module = context.load_module(SOURCE)
    world.add(closed_module.kernel("put"), closed_module)
    closed_module.close()
    with stream.capture() as graph:
        stream.fill(array, 1)
    world.add(graph, graph.instantiate())
    texels: cudadrv.texture.CudaArray[Any] = cudadrv.texture.CudaArray(
        context, (8, 8), np.float32, surface=True
    )
    mipmap: cudadrv.texture.MipmappedArray[Any] = cudadrv.texture.MipmappedArray(
        context, (8, 8), np.float32
    )
    world.add(texels, mipmap, cudadrv.texture.Texture(texels), cudadrv.texture.Surface(texels))
    world.add(
        cudadrv.blas.LinearAlgebra(stream),
        cudadrv.memory.CudaAllocator(stream),
        cudadrv.DeviceArena(),
    )
    arena = cudadrv.DeviceArena(np.float32)
    world.add(arena, arena.alloc(stream, 5))
    world.add(SobolDvCache(stream))
    _fill_newer(world, context, stream)


def _fill_newer(world: World, context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    """Pools, parts of a device, streams of others, graphs that are built, maps, handles."""
    pool, closed_pool = cudadrv.MemoryPool(context.device), cudadrv.MemoryPool(context.device)
    closed_pool.close()
    unpooled, resource = cudadrv.memory.UnpooledMemory(), cudadrv.memory.DriverMemory()
    world.add(pool, closed_pool, unpooled, resource, cudadrv.memory.CountedMemory(resource))
    world.add(cudadrv.memory.ArenaMemory(), cudadrv.memory.PinnedPool())
    world.add(cudadrv.memory.HookedMemory(resource, allocated=lambda *_: None))
    place = Places()
    with cudadrv.using_memory(place):
        world.add(stream.zeros(8, np.uint8), *place.places)
    growing, closed = (cudadrv.memory.GrowingBuffer(stream, 4096) for _ in range(2))
    closed.close()
    world.add(growing, closed, cudadrv.memory.RegisteredArray(np.zeros(64)))
    world.add(context.new_stream_pool(2), context.legacy_stream, context.per_thread_stream)
    if not context.is_primary:
        return
    parts = context.sm_resource.split(8, 1)
    world.add(*parts, context.limits)
    graph = context.new_graph()
    condition = graph.new_condition(default=0)
    array = stream.zeros((16, 16), np.float32)
    fill = graph.add_fill(array, 1)
    node = graph.add_if(condition, after=fill)
    world.add(graph, condition, fill, node, node.body, graph.add_while(graph.new_condition()))
    world.add(cudadrv.tensor_map.TensorMap(array, box=(4, 4)))
    with cudadrv.using_memory(unpooled):
        world.add(cudadrv.ipc.IpcMemoryHandle.of(stream.zeros(64, np.uint8)))
    event = cudadrv.Event(context, timing=False, interprocess=True)
    world.add(event, cudadrv.ipc.IpcEventHandle.of(event))


def _fill_above(world: World) -> None:
    infos = [device.info() for device in cudadrv.list_devices()]
    policy = cudadrv.runtime.GpuDispatchPolicy()
    runtime = cudadrv.GpuRuntime(devices=infos, policy=policy)
    world.add(*infos, infos[0].capability, policy, runtime, cudadrv.runtime.GpuAvailable(runtime))
    world.add(cudadrv.runtime.GpuAbsent(cudadrv.runtime.AbsenceReason.NO_DEVICE, "none"))
    world.add(cudadrv.runtime.GpuBroken(cudadrv.errors.DriverCallFailed("it failed")))
    world.add(cudadrv.CudaClient(0), cudadrv.CudaClient(1))
    world.add(cudadrv.DevicePool(), cudadrv.PtxModuleCache(), cudadrv.runtime.KeyedPtxModuleCache())
    world.add(cudadrv.LaunchConfig(1, 32), cudadrv.LaunchConfig((2, 2), (8, 4), 64))
    world.add(cudadrv.runtime.Calibration.given(policy))
    parts = cudadrv.runtime.probe_cuda_backend("fuzz")
    world.add(parts, cudadrv.runtime.CudaBackendContext.from_parts(parts))
    world.add(cudadrv.trace(world.folder / "trace.json"))
    family, curvature = PirlsFamily.POISSON_LOG, PirlsCurvature.FISHER
    world.add(PirlsLoopAdmission(10, 3, family, curvature, True))
    world.add(RemlOuterAdmission(10, 3, 2, None, curvature, False))
    image = ptx.Image.from_ptx(SOURCE)
    world.add(image, image.target, *image.signatures.values())
    world.add(*(param for each in image.signatures.values() for param in each.params))
    world.add(ptx.Target.parse("sm_90"), ptx.Target.parse("lto_75"), ptx.CompileOptions())
    client = cudadrv.CudaClient(0)
    world.add(client.capture_graph((), (), lambda _: None))
    world.add(ptx.Diagnostic("a.cu", 1, 2, "error", None, "it is wrong", "int x;"))
    world.add(ptx.NO_FMA, ptx.LinkOptions(), ptx.NvvmOptions(), cudadrv.launch.JitOptions())
    world.add(ptx.ImageCache(world.folder / "cache"))
    request = ptx.CompileRequest.of("int x;", ptx.CompileOptions(), "a.cu", (), None)
    world.add(request, ptx.parse(SOURCE))
