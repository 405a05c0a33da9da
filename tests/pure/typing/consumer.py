"""A package on top of cudadrv, as a type checker sees it: every value has a type of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import emulator


def devices() -> None:
    assert_type(cudadrv.driver_version(), tuple[int, int])
    assert_type(cudadrv.list_devices(), tuple[cudadrv.Device, ...])
    device = cudadrv.best_device()
    assert_type(device.name, str)
    assert_type(device.total_memory, int)
    assert_type(device.compute_capability, tuple[int, int])
    assert_type(device.attribute(cudadrv.driver.DeviceAttribute.WARP_SIZE), int)
    assert_type(device.info(), cudadrv.driver.GpuDeviceInfo)
    assert_type(device.info().score(), float)
    assert_type(cudadrv.memory.pool_info(device).used, int)
    cudadrv.memory.trim_pool(device)
    assert_type(cudadrv.driver.can_access_peer(device, device), bool)


def compiling() -> None:
    options = ptx.CompileOptions(target=ptx.Target.cubin("sm_90"), defines={"N": 3, "FAST": None})
    image = ptx.compile("", options, name_expressions=("scale<float>",))
    assert_type(image, ptx.Image)
    assert_type(image.data, bytes)
    assert_type(image.ptx, str | None)
    assert_type(image.lowered_names, Mapping[str, str])
    assert_type(image.signatures["k"].params[0].nbytes, int)
    assert_type(ptx.nvrtc_version(), tuple[int, int])
    assert_type(ptx.supported_targets(), tuple[ptx.Target, ...])
    assert_type(ptx.parse(""), ptx.PtxModule)


def memory(x: npt.NDArray[np.float32]) -> None:
    context = cudadrv.cuda_context_for(0)
    assert_type(context, cudadrv.Context)
    assert_type(context.memory_info().free, int)
    stream = context.new_stream(priority=-1)
    assert_type(stream, cudadrv.Stream)
    array = stream.to_device(x)
    assert_type(array, cudadrv.DeviceArray[np.float32])
    assert_type(stream.to_host(array), npt.NDArray[np.float32])
    assert_type(stream.zeros((2, 3), np.int64), cudadrv.DeviceArray[np.int64])
    assert_type(stream.empty(3, np.dtype(np.float64)), cudadrv.DeviceArray[np.float64])
    assert_type(array.view(np.uint8), cudadrv.DeviceArray[np.uint8])
    assert_type(array[1:3], cudadrv.DeviceArray[np.float32])
    assert_type(stream.copy(array, x), None)
    buffer = stream.alloc(100)
    assert_type(cudadrv.DeviceArray(buffer, 10, np.float32), cudadrv.DeviceArray[np.float32])
    assert_type(cudadrv.DeviceArray(buffer, 10, array.dtype, 4), cudadrv.DeviceArray[np.float32])
    assert_type(array.ptr, int)
    assert_type(array.shape, tuple[int, ...])
    assert_type(stream.alloc(100), cudadrv.DeviceBuffer)
    assert_type(cudadrv.pinned_empty(10, np.float64), npt.NDArray[np.float64])
    assert_type(cudadrv.managed_empty(10, np.int32), npt.NDArray[np.int32])
    event = stream.record()
    assert_type(event, cudadrv.Event)
    assert_type(event.elapsed_ms(event), float)
    with stream.capture() as graph:
        assert_type(graph, cudadrv.Graph)
    assert_type(graph.instantiate(), cudadrv.GraphExec)
    graph.instantiate().update(graph)
    built = context.new_graph()
    assert_type(built.add_alloc(3, np.float32).array, cudadrv.DeviceArray[np.float32])
    assert_type([row.shape for row in array], list[tuple[int, ...]])
    assert_type(array[1, 2:3], cudadrv.DeviceArray[np.float32])
    assert_type(array.reshape((2, -1)), cudadrv.DeviceArray[np.float32])
    # What is not there is an error, though names are looked up late.
    array.tolist()  # type: ignore[attr-defined]
    stream.handel  # type: ignore[attr-defined]  # noqa: B018
    cudadrv.absent  # type: ignore[attr-defined]  # noqa: B018
    ptx.absent  # type: ignore[attr-defined]  # noqa: B018


def arenas(stream: cudadrv.Stream, parts: cudadrv.runtime.CudaBackendParts) -> None:
    arena = cudadrv.DeviceArena(np.float32)
    assert_type(arena, cudadrv.DeviceArena[np.float32])
    assert_type(arena.dtype, np.dtype[np.float32])
    bucket, slab = arena.alloc(stream, 8, "solver")
    assert_type(slab, cudadrv.DeviceArray[np.float32])
    assert_type(stream.to_host(slab), npt.NDArray[np.float32])
    arena.release(bucket, slab)
    with cudadrv.DeviceArena(np.dtype(np.int64), max_cached_bytes=0) as other:
        assert_type(other, cudadrv.DeviceArena[np.int64])
        other.release(bucket, slab)  # type: ignore[arg-type]
    assert_type(cudadrv.DeviceArena(), cudadrv.DeviceArena[np.float64])
    assert_type(cudadrv.DeviceArena(max_cached_bytes=9), cudadrv.DeviceArena[np.float64])
    assert_type(cudadrv.DeviceArena("f4"), cudadrv.DeviceArena[Any])
    backend = cudadrv.runtime.CudaBackendContext.from_parts(parts)
    assert_type(backend.arena.alloc(stream, 1)[1].dtype.type, type[np.float64])
    wrong: cudadrv.DeviceArray[np.int64] = slab  # type: ignore[assignment]
    stream.to_host(slab, np.empty(8, np.int16))  # type: ignore[arg-type, misc, unused-ignore]
    wrong_arena: cudadrv.DeviceArena[np.float64] = arena  # type: ignore[assignment]
    del wrong, wrong_arena


def several_devices(x: npt.NDArray[np.float32]) -> None:
    def work(ordinal: int, part: npt.NDArray[np.float32]) -> None:
        part += ordinal

    runtime = cudadrv.GpuRuntime.resolve(cudadrv.GpuPolicy.REQUIRED)
    assert_type(runtime, cudadrv.GpuRuntime)
    cudadrv.scatter_batched(runtime, x, work)
    assert_type(cudadrv.GpuRuntime.resolve(), cudadrv.GpuRuntime | None)
    assert_type(cudadrv.GpuRuntime.current(), cudadrv.GpuRuntime | None)


def textures(stream: cudadrv.Stream, x: npt.NDArray[np.float32]) -> None:
    array = cudadrv.texture.CudaArray.from_host(stream, x, surface=True)
    assert_type(array, cudadrv.texture.CudaArray[np.float32])
    assert_type(array.copy_to(stream), npt.NDArray[np.float32])
    there = stream.empty(x.shape, np.float32)
    assert_type(array.copy_to(stream, there), cudadrv.DeviceArray[np.float32])
    made = cudadrv.texture.CudaArray(stream.context, (4, 8), np.uint8, channels=4, layered=True)
    assert_type(made, cudadrv.texture.CudaArray[np.uint8])
    assert_type(made.shape, tuple[int, ...])
    levels = cudadrv.texture.MipmappedArray(stream.context, (8, 8), np.float32)
    assert_type(levels.level(1), cudadrv.texture.CudaArray[np.float32])
    texture = cudadrv.texture.Texture(
        levels,
        filter_mode=cudadrv.texture.FilterMode.LINEAR,
        address_mode=cudadrv.texture.AddressMode.WRAP,
        read_mode=cudadrv.texture.ReadMode.ELEMENT,
        normalized_coordinates=True,
    )
    assert_type(texture.handle, int)
    assert_type(cudadrv.texture.Surface(array).handle, int)
    cudadrv.texture.Surface(texture)  # type: ignore[arg-type]


class Theirs:
    """A stream of another library."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1


def other_libraries(stream: cudadrv.Stream, tensor: object) -> None:
    assert_type(stream.context.external_stream(Theirs()), cudadrv.Stream)
    assert_type(stream.context.external_stream(140), cudadrv.Stream)
    stream.wait(Theirs())
    taken = stream.import_array(tensor)
    assert_type(taken.shape, tuple[int, ...])
    stream.call_on_host(print, "done", 3)


def launching(image: ptx.Image) -> None:
    context = cudadrv.cuda_context_for(0)
    module = context.load_module(image)
    assert_type(module, cudadrv.Module)
    assert_type(module.global_array("n", (), np.int32), cudadrv.DeviceArray[np.int32])
    assert_type(module.global_array("n", dtype=np.int32), cudadrv.DeviceArray[np.int32])
    kernel = module.kernel("saxpy")
    assert_type(kernel, cudadrv.Kernel)
    assert_type(kernel.attributes.registers, int)
    best = kernel.max_potential_block_size(lambda threads: 4 * threads, limit=512)
    assert_type(best.threads, int)
    config = cudadrv.LaunchConfig.for_elements(1000)
    assert_type(config.grid, tuple[int, int, int])
    launcher = kernel.bind(context.default_stream, config)
    assert_type(launcher, cudadrv.Launcher)
    assert_type(launcher.prepare(1, 2.0), cudadrv.launch.PreparedLaunch)
    assert_type(cudadrv.PtxModuleCache().get_or_compile(context, "unit", ""), cudadrv.Module)


def faults(error: cudadrv.CudaError) -> None:
    assert_type(error.code, int)
    assert_type(error.call, str)
    assert_type(error.name, str)


def emulated() -> None:
    with emulator.session(devices=2) as machine:
        assert_type(machine, emulator.Emulator)
    emulator.use(devices=[emulator.EmulatedDevice(compute_capability=(8, 0))])
