"""A package on top of cudadrv, as a type checker sees it: every value has a type of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import emulator, graph as graphs
from cudadrv.testing import strategies, verify


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


def arenas(stream: cudadrv.Stream, parts: cudadrv.runtime.CudaBackendParts) -> None:
    arena = cudadrv.DeviceArena(np.float32)
    assert_type(arena, cudadrv.DeviceArena[np.float32])
    assert_type(arena.dtype, np.dtype[np.float32])
    bucket, slab = arena.alloc(stream, 8, "solver")
    assert_type(slab, cudadrv.DeviceArray[np.float32])
    assert_type(stream.to_host(slab), npt.NDArray[np.float32])
    arena.release(bucket, slab)
    with cudadrv.DeviceArena(np.int64, max_cached_bytes=0) as other:
        assert_type(other, cudadrv.DeviceArena[np.int64])
    assert_type(cudadrv.DeviceArena(), cudadrv.DeviceArena[np.float64])
    assert_type(cudadrv.DeviceArena(max_cached_bytes=9), cudadrv.DeviceArena[np.float64])
    assert_type(cudadrv.DeviceArena("f4"), cudadrv.DeviceArena[Any])
    backend = cudadrv.runtime.CudaBackendContext.from_parts(parts)
    assert_type(backend.arena.alloc(stream, 1)[1].dtype, np.dtype[np.float64])


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


def libraries(context: cudadrv.Context) -> None:
    library = cudadrv.KernelLibrary(
        {"a.cu": files("scaler") / "a.cu", "b.cu": lambda: "", "c.cu": Path("c.cu"), "d.cu": ""},
        ptx.CompileOptions(std="c++17"),
        instances={"a.cu": ["scale<float>"]},
        headers={"a.h": "", "b.h": Path("b.h"), "c.h": lambda: ""},
    )
    assert_type(library.kernel(context, "scale<float>"), cudadrv.Kernel)
    assert_type(library.module(context, "b.cu"), cudadrv.Module)
    library.prewarm(context, context)
    cudadrv.KernelLibrary({"a.cu": ""}, headers=files("scaler"))
    cudadrv.KernelLibrary({"a.cu": ""}, headers=Path("include"))
    keyed = cudadrv.runtime.KeyedPtxModuleCache(headers={"a.h": ""})
    module = keyed.get_or_compile(context, ("f", 3), "label", lambda key: key[0] * key[1])
    assert_type(module, cudadrv.Module)
    assert_type(keyed.get("key"), cudadrv.Module | None)
    kernel = context.compile_kernel("", "scale<float>", headers={"a.h": ""})
    assert_type(kernel.max_active_blocks(256), int)
    assert_type(context.target, ptx.Target)
    image = ptx.compile("", headers={"a.h": ""})
    assert_type(context.link([image]), cudadrv.Module)
    assert_type(ptx.link([image], ptx.Target.cubin("sm_90")), ptx.Image)
    assert_type(ptx.ImageCache(Path("images")).folder, Path | None)


def contexts(context: cudadrv.Context) -> None:
    assert_type(context.capability, cudadrv.driver.GpuCapability)
    parts, rest = context.sm_resource.split(8, 1)
    assert_type(parts, tuple[cudadrv.driver.SmResource, ...])
    assert_type(rest, cudadrv.driver.SmResource | None)
    assert_type(context.workqueues.concurrency_limit, int)
    assert_type(context.limits.heap_bytes, int)
    assert_type(context.priority_range(), tuple[int, int])
    with cudadrv.Context.create_green(parts[0]) as green, green.bound():
        assert_type(green, cudadrv.Context)


async def streams(context: cudadrv.Context) -> None:
    with context.new_stream_pool(3) as pool:
        assert_type(pool, cudadrv.StreamPool)
        assert_type([each.is_done() for each in pool], list[bool])
        pool.fork(context.default_stream)
        assert_type(pool.next_stream(), cudadrv.Stream)
    with context.new_stream() as stream, stream.unordered():
        event = stream.record()
        assert_type(event - event, float)
        await event
        await stream


def nodes(kernel: cudadrv.Kernel, x: npt.NDArray[np.float64]) -> None:
    stream = cudadrv.cuda_context_for(0).default_stream
    array = stream.to_device(x)
    graph = stream.context.new_graph()
    up = graph.add_copy(array, x)
    assert_type(up, graphs.CopyNode)
    config = cudadrv.LaunchConfig(1, 32)
    assert_type(graph.add_kernel(kernel, config, array, 1, after=up), graphs.KernelNode)
    assert_type(graph.add_fill(array, 1), graphs.FillNode)
    assert_type(graph.add_host(print, 1), graphs.HostNode)
    assert_type(graph.add_empty(), graphs.GraphNode)
    assert_type(graph.nodes, list[graphs.GraphNode])
    assert_type(graph.edges, list[tuple[graphs.GraphNode, graphs.GraphNode]])
    loop = graph.add_while(graph.new_condition(default=1))
    assert_type(loop, graphs.ConditionalNode)
    with stream.capture(into=loop.body) as body:
        assert_type(body, cudadrv.Graph)
    executable = graph.instantiate(upload=stream)
    assert_type(executable, cudadrv.GraphExec)
    up.update_in(executable, array, x)


def resources(stream: cudadrv.Stream, x: npt.NDArray[np.int16]) -> None:
    with cudadrv.MemoryPool(max_bytes=1 << 20) as pool, cudadrv.using_memory(pool):
        assert_type(pool.statistics(), cudadrv.memory.PoolStatistics)
    assert_type(cudadrv.memory.CountedMemory().statistics().allocations, int)
    assert_type(cudadrv.memory.PinnedPool().empty(3, np.uint8), npt.NDArray[np.uint8])
    with cudadrv.memory.RegisteredArray(x) as registered:
        assert_type(registered, cudadrv.memory.RegisteredArray)
        assert_type(stream.in_place(x), cudadrv.DeviceArray[np.int16])
    with cudadrv.memory.GrowingBuffer(stream, capacity=1 << 20, nbytes=16) as growing:
        assert_type(growing.ptr, int)
    array = stream.to_device(x)
    assert_type(array.T, cudadrv.DeviceArray[np.int16])
    assert_type(array.strides, tuple[int, ...])
    assert_type(array.buffer, cudadrv.DeviceBuffer)
    assert_type(stream.contiguous(array), cudadrv.DeviceArray[np.int16])
    assert_type(stream.empty_pitched((3, 3), np.float32), cudadrv.DeviceArray[np.float32])
    assert_type(array.__dlpack_device__(), tuple[int, int])
    assert_type(array.__cuda_array_interface__["typestr"], str)
    assert_type(array.__cuda_array_interface__.get("descr"), list[tuple[object, ...]] | None)
    assert_type(len(array), int)
    with cudadrv.DeviceArena(np.int16).borrow(stream, 8) as slab:
        assert_type(slab, cudadrv.DeviceArray[np.int16])
    assert_type(cudadrv.tensor_map.TensorMap(array, (3, 3)), cudadrv.tensor_map.TensorMap)


def tiles(runtime: cudadrv.GpuRuntime, x: npt.NDArray[np.float64]) -> None:
    def total(ordinal: int, part: npt.NDArray[np.float64]) -> float:
        tile = cudadrv.current_tile()
        assert_type(tile.stream, cudadrv.Stream)
        assert_type(tile.arena, cudadrv.DeviceArena[np.float64])
        return ordinal + float(part.sum())

    assert_type(cudadrv.balanced_partition(runtime, 3), tuple[tuple[int, range], ...])
    assert_type(cudadrv.scatter_map(runtime, x, total), list[float])
    assert_type(cudadrv.scatter_map(runtime, [1], lambda at, part: str(part[at])), list[str])
    with cudadrv.DevicePool() as pool:
        assert_type(pool.next_device(), cudadrv.Device)
        assert_type(list(pool), list[tuple[cudadrv.Device, cudadrv.Context]])
    with cudadrv.GpuExecutor.local() as executor:
        assert_type(executor.submit(total, 2, x), Future[float])
        assert_type(executor.map(str, [1, 2]), Iterator[str])
        assert_type(cudadrv.scatter_map(executor, x, total), list[float])


def probed() -> None:
    make = cudadrv.runtime.CudaBackendContext.from_parts
    probe = cudadrv.runtime.probe_backend_with_compile
    cached: cudadrv.runtime.CachedBackend[cudadrv.runtime.CudaBackendContext]
    cached = cudadrv.runtime.CachedBackend()
    backend = cached.get_or_probe(lambda: probe("scale", make))
    assert_type(backend, cudadrv.runtime.CudaBackendContext)
    assert_type(backend.module, cudadrv.PtxModuleCache)


def checked() -> None:
    with emulator.session([emulator.H100], check=("race",), order="late", seed=3) as machine:
        assert_type(machine.findings[0].kernel, str)
        with machine.fail("cuMemAllocAsync", nth=2, with_=2) as fault:
            assert_type(fault, emulator.ScheduledFault)
        assert_type(machine.live_objects(), dict[str, int])
    with emulator.counting() as counters, cudadrv.trace("trace.json"):
        assert_type(counters["scale"].global_loads.sectors, int)


def same(x: npt.NDArray[np.float32], n: int) -> Mapping[str, npt.NDArray[np.float32]]:
    return {"x": x}


def verified() -> None:
    n = strategies.sizes()
    case = verify.KernelCase(
        "",
        arguments={"x": strategies.arrays(np.float32, n), "n": n},
        launch=strategies.launch_configs(n),
        reference=same,
    )
    verdict = verify.verify(case, verify.VerifyOptions(examples=3))
    assert_type(verdict, verify.Verdict)
    assert_type(verdict.findings, tuple[verify.Finding, ...])
    assert_type(verdict.to_json(), dict[str, object])


def errors(error: ptx.CompileError, failed: cudadrv.pool.ScatterError) -> None:
    assert_type(error.diagnostics[0].line, int)
    assert_type(error.log, str)
    assert_type([each.ordinal for each in failed.failures], list[int])
