"""Public operations one by one, each beside the bare calls that do the same.

`OPERATIONS` and `ELSEWHERE` have the callables that are measured, and `EXCUSED` has the others of
`CLASSES`, with the reason: a test compares them with the public names. `REASONS` says why some take
long.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from cuda.bindings import driver

import cudadrv
import ptx

from .. import bare
from ..driver import build_null_driver
from ..kernels import BLOCK, FIVE_IN_PTX, GRID
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "operations"
_SOURCE: Final = 'extern "C" __global__ void put(int* out) { *out = 3; }'
_TARGET: Final = "compute_80"
_HOST_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and what it is compared with.

    Attributes:
        case: what is done.
        covers: the public callables that it measures.
        plain: the statement that does the same without cudadrv.
        ours: the statement that is measured.
        who: whose `plain` is.
        needs: the driver function that cuda.bindings of CUDA 12 lack, if there is one.
    """

    case: str
    covers: str
    plain: str
    ours: str
    who: str = bare.NAME
    needs: str = ""


CLASSES: Final = (
    "Context", "CudaAllocator", "DeviceArena", "DeviceArray", "DeviceBuffer", "Event",
    "GpuDispatchPolicy", "GraphExec", "Kernel", "KernelLibrary", "KeyedPtxModuleCache",
    "PinnedPool", "PtxModuleCache", "Stream", "StreamPool",
)  # fmt: skip
_BY_HAND: Final = "Python by hand"
_DICT: Final = "a dict"
_NUMPY: Final = "NumPy"
OPERATIONS: Final = (
    Operation(
        "event recorded, waited for and closed",
        "Stream.record Event.synchronize Event.close",
        "e = create(2)[1]; record(e, s); synchronize(e); destroy(e)",
        "e = stream.record(timing=False); e.synchronize(); e.close()",
    ),
    Operation(
        "two events of one stream, and the time between them",
        "Event.elapsed_ms",
        "a = create(0)[1]; record(a, s); b = create(0)[1]; record(b, s); synchronize(b);"
        " elapsed(a, b); destroy(a); destroy(b)",
        "a = stream.record(); b = stream.record(); b.synchronize(); b.elapsed_ms(a); a.close();"
        " b.close()",
    ),
    Operation(
        "event made and closed", "Event", "destroy(create(2)[1])",
        "Event(context, timing=False).close()",
    ),
    Operation("event recorded again", "Event.record", "record(e, s)", "event.record(stream)"),
    Operation("event queried", "Event.is_done", "query(e)", "event.is_done()"),
    Operation("wait for an event", "Stream.wait", "wait(s, e, 0)", "stream.wait(event)"),
    Operation(
        "wait for a stream", "Stream.wait",
        "e = create(2)[1]; record(e, s); wait(s, e, 0); destroy(e)", "stream.wait(other)",
    ),
    Operation(
        "four streams fork and join", "StreamPool.fork StreamPool.join",
        "e = create(2)[1]; record(e, s); wait(s, e, 0); wait(s, e, 0); wait(s, e, 0);"
        " wait(s, e, 0); destroy(e)\n"
        "for _ in range(4): e = create(2)[1]; record(e, s); wait(s, e, 0); destroy(e)",
        "pool.fork(stream); pool.join(stream)",
    ),
    Operation(
        "stream made and closed", "Context.new_stream Stream.close",
        "destroy_stream(create_stream(1, 0)[1])", "new_stream().close()",
    ),
    Operation(
        "stream made, used and closed", "Context.new_stream Stream.close",
        "t = create_stream(1, 0)[1]; record(e, t); destroy_stream(t)",
        "t = new_stream(); event.record(t); t.close()",
    ),
    Operation(
        "stream waited for", "Stream.synchronize", "synchronize_stream(s)", "stream.synchronize()"
    ),
    Operation("stream queried", "Stream.is_done", "query_stream(s)", "stream.is_done()"),
    Operation(
        "launch with a new config", "Kernel.launch",
        f"launch(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)",
        f"kernel.launch(stream, LaunchConfig({GRID}, {BLOCK}), a, a, a, 1.5, 100)",
    ),
    Operation(
        "launch prepared and run", "Launcher.prepare",
        f"launch(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)",
        "launcher.prepare(a, a, a, 1.5, 100)()",
    ),
    Operation(
        "launcher bound", "Kernel.bind",
        f"launch(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)", "kernel.bind(stream, config)",
    ),
    Operation(
        "launcher bound and run once", "Launcher",
        f"launch(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)",
        "kernel.bind(stream, config)(a, a, a, 1.5, 100)",
    ),
    Operation(
        "the next stream of a pool", "StreamPool.next_stream",
        "streams[next(numbers) % 4]", "pool.next_stream()", _BY_HAND,
    ),
    Operation(
        "1 KiB filled", "Stream.fill", "fill(p, 0x3F800000, 256, s)", "stream.fill(a, 1.0)",
    ),
    Operation(
        "1 KiB of zeros made and freed", "Stream.zeros",
        "q = alloc(1024, s)[1]; clear(q, 0, 1024, s); free(q, s)", "stream.zeros(256, 'f4')",
    ),
    Operation(
        "rows with gaps made and freed", "Stream.empty_pitched", "free(alloc(2048, s)[1], s)",
        "stream.empty_pitched((4, 65), 'f4')",
    ),
    Operation(
        "function of the host queued", "Stream.call_on_host", "on_host(s, host_address, 0)",
        "stream.call_on_host(host_function)",
    ),
    Operation(
        "managed memory moved", "Stream.prefetch", "prefetch(mp, 4096, location, 0, s)",
        "stream.prefetch(managed)",
    ),
    Operation(
        "four managed arrays moved", "Stream.prefetch_batch",
        "prefetch_batch([mp] * 4, [4096] * 4, 4, [location], [0], 1, 0, s)",
        "stream.prefetch_batch([managed] * 4)", needs="cuMemPrefetchBatchAsync",
    ),
    Operation(
        "four managed arrays discarded", "Stream.discard_batch",
        "discard_batch([mp] * 4, [4096] * 4, 4, 0, s)", "stream.discard_batch([managed] * 4)",
        needs="cuMemDiscardBatchAsync",
    ),
    Operation(
        "managed memory attached", "Stream.attach", "attach(s, mp, 0, 1)",
        "stream.attach(managed, everyone)",
    ),
    Operation(
        "pinned array of a pool", "PinnedPool.empty", "free_host(host_alloc(4096, 0)[1])",
        "pinned_pool.empty(1024, 'f4')",
    ),
    Operation(
        "part of an array", "DeviceArray", "host[2:5]", "a[2:5]", _NUMPY,
    ),
    Operation(
        "array of another shape", "DeviceArray.reshape", "host.reshape(16, 16)",
        "a.reshape(16, 16)", _NUMPY,
    ),
    Operation(
        "array of another dtype", "DeviceArray.view", "host.view('i4')", "a.view('i4')", _NUMPY,
    ),
    Operation(
        "array transposed", "DeviceArray.transpose", "square.transpose()", "matrix.transpose()",
        _NUMPY,
    ),
    Operation(
        "XᵀWX of a size", "GpuDispatchPolicy.xtwx_target_is_gpu",
        "m > 0 and k > 0 and 2 * m * k * k >= 100_000_000", "policy.xtwx_target_is_gpu(m, k, True)",
        _BY_HAND,
    ),
    Operation(
        "XᵀWY of a size", "GpuDispatchPolicy.xtwy_target_is_gpu",
        "m > 0 and k > 0 and 2 * m * k * k >= 100_000_000",
        "policy.xtwy_target_is_gpu(m, k, k, True)", _BY_HAND,
    ),
    Operation(
        "matrix times vector of a size", "GpuDispatchPolicy.dense_gemv_target_is_gpu",
        "2 * m * k >= 100_000_000", "policy.dense_gemv_target_is_gpu(m, k, False)", _BY_HAND,
    ),
    Operation(
        "Hessian of a size", "GpuDispatchPolicy.dense_hessian_work_target_is_gpu",
        "m > 0 and k >= 32 and 2 * m * k * k >= 100_000_000",
        "policy.dense_hessian_work_target_is_gpu(m, k)", _BY_HAND,
    ),
    Operation(
        "Cholesky of a size", "GpuDispatchPolicy.potrf_target_is_gpu", "k >= 512",
        "policy.potrf_target_is_gpu(k, True)", _BY_HAND,
    ),
    Operation(
        "refinement of a size", "GpuDispatchPolicy.iterative_refinement_should_attempt", "k >= 64",
        "policy.iterative_refinement_should_attempt(k)", _BY_HAND,
    ),
    Operation(
        "iterative solve of a size", "GpuDispatchPolicy.reduced_schur_matvec_should_offload",
        "k >= 32 and m > 0 and 8 * m * (16 * k + 64) >= 10_000_000",
        "policy.reduced_schur_matvec_should_offload(m, k, 8, 8)", _BY_HAND,
    ),
    Operation(
        "module of a key", "KeyedPtxModuleCache.get_or_compile KeyedPtxModuleCache.get",
        "table[3]", "keyed.get_or_compile(context, 3, 'put', source_of)", _DICT,
    ),
    Operation(
        "module of a source", "PtxModuleCache.get_or_compile PtxModuleCache.get", "table[3]",
        "single.get_or_compile(context, 'put', source)", _DICT,
    ),
    Operation(
        "kernel of a library", "KernelLibrary.kernel KernelLibrary.module", "table[3]",
        "library.kernel(context, 'put')", _DICT,
    ),
    Operation(
        "image in memory", "ptx.compile", "table[3]", "compile(source, options)", _DICT,
    ),
)  # fmt: skip
ELSEWHERE: Final = """
    allocation  Stream.alloc Stream.empty Stream.to_device Stream.to_host
    allocation  DeviceBuffer.close DeviceArray.close CudaAllocator.allocate
    allocation  CudaAllocator.deallocate DeviceArena.alloc DeviceArena.release
    copies      Stream.copy
    batches     Stream.copy_batch
    graph       Stream.capture GraphExec.launch
    exchange    Stream.import_array
"""
"""Callables that another group measures, by group."""
REASONS: Final = {
    "`Context.new_stream`: a stream has the state of captures, and of its memory's order.": (
        "stream made and closed", "stream made, used and closed",
    ),
    "`Event(...)`: the driver makes it, with its context current. `Stream.record` uses events of "
    "closed objects again.": ("event made and closed",),
    "Events and waits: the driver needs little time for each call. So the method, its test for a "
    "capture of another thread and the objects of an event show.": (
        "event recorded, waited for and closed",
        "two events of one stream, and the time between them", "wait for a stream",
        "four streams fork and join",
    ),
    "`Kernel.bind`, the first launch of a launcher, and `prepare`: they check the configuration "
    "and the arguments once, for all later launches. A launch with a grid and a block of two "
    "integers finds the former `LaunchConfig`.": (
        "launch prepared and run", "launcher bound", "launcher bound and run once",
        "launch: cudadrv Kernel.launch, new config", "launch: cudadrv prepare",
        "foreign: bound and run once",
    ),
    "`Stream.fill` and `empty_pitched`: Python converts and checks the value, and makes the "
    "view.": (
        "1 KiB filled", "1 KiB of zeros made and freed", "rows with gaps made and freed",
    ),
    "`call_on_host`: the call is registered, and what former calls have used is released.": (
        "function of the host queued",
    ),
    "Managed memory: the driver is queried for each array, and the context is made current.": (
        "managed memory moved", "four managed arrays moved", "four managed arrays discarded",
        "managed memory attached",
    ),
    "`PinnedPool.empty`: it makes an array of NumPy, and tests whether former uses of the memory "
    "are done.": ("pinned array of a pool",),
    "Views of arrays are objects of Python, those of NumPy are of C.": (
        "part of an array", "array of another shape", "array of another dtype", "array transposed",
    ),
    "`KernelLibrary.kernel` finds the source, its module on the context and the kernel, beside one "
    "look-up in a dict.": ("kernel of a library",),
    "`ptx.compile` of a known source compares the options and the environment's settings with "
    "those of the former call, beside a dict whose key is ready.": ("image in memory",),
    "Launches with arrays of an unknown library read the array interface each time, and query the "
    "driver for the device of the memory where there are several.": (
        "launch: cudadrv Launcher, foreign arrays",
        "foreign: cudadrv Launcher, arrays with no more than the interface",
    ),
    "Launches with arrays of CuPy, PyTorch and Numba: Python reads address and stream, and orders "
    "both streams.": (
        "foreign: cudadrv Launcher, CuPy arrays", "foreign: cudadrv Launcher, PyTorch tensors",
        "foreign: cudadrv Launcher, Numba-CUDA arrays", "launch: cudadrv Launcher, CuPy arrays",
        "launch: cudadrv Launcher, PyTorch tensors",
    ),
    "Small ordinary arrays are copied first, so that you may change them at once.": (
        "copies: 4 KiB to the device, queued", "copies: 4 KiB to the device",
    ),
    "Ordinary arrays of 1 to 16 MiB: the host copies them to pinned memory, which takes longer "
    "than the transfer itself.": (
        "copies: 1 MiB to the device", "copies: 1 MiB to the host", "copies: 8 MiB to the device",
        "copies: 8 MiB to the host", "copies: 16 MiB to the device", "copies: 16 MiB to the host",
        "copies: 16 MiB strided, to the device",
    ),
    "The system maps the pages of a new host array at the first write to each.": (
        "copies: 64 MiB to a new host array", "copies: 1 GiB to a new host array",
    ),
    "`Stream.empty`, `to_device` and `to_host` make an array with shape and dtype, and its "
    "memory's order.": (
        "allocation: 1 KiB, taken and given back", "allocation: 64 bytes to a new device array",
        "allocation: 64 bytes to a new host array",
    ),
    "Each of many copies checks both arrays and the order of their memory. `Stream.copy_batch` "
    "saves most of that.": (
        "batches: 1000 copies of 4 KiB", "batches: 1000 copies of 4 KiB, waited for",
    ),
}  # fmt: skip
"""Why rows take more than 1.5 times the bare calls and 1 µs, on the null driver or a GPU.

A row of another group stands by the group and its case, or by the group and who measured it.
"""
EXCUSED: Final = """
    starts no work that a program repeats, but at its start or end
        Context.bind Context.bound Context.close Context.create Context.create_green
        Context.enable_peer_access
        Context.external_stream Context.new_graph Context.profiling Context.reset
        Context.use_memory Context.when_module_loaded Stream.use_memory StreamPool.close
        Context.new_stream_pool DeviceArena.close GraphExec.close
    takes as long as the compiler or the loading of a module
        Context.compile Context.compile_kernel Context.compile_nvvm Context.link
        Context.load_module KernelLibrary.prewarm
    takes as long as the work that it waits for
        Context.synchronize StreamPool.synchronize
    frees what is cached, which a program does when memory is short
        CudaAllocator.clear_arena CudaAllocator.forget_captured CudaAllocator.free_captured
        CudaAllocator.freeze CudaAllocator.install_arena CudaAllocator.reset
        CudaAllocator.unfreeze DeviceArena.trim KernelLibrary.clear PinnedPool.trim
    reads numbers of this process, not of the driver
        CudaAllocator.statistics DeviceArena.bucket_of DeviceArena.statistics
        PinnedPool.statistics
    is needed for memory of other libraries only, once each
        DeviceBuffer.adopted DeviceBuffer.borrowed DeviceBuffer.record_use
    changes a graph between its replays, not in each
        GraphExec.enable GraphExec.is_enabled GraphExec.update GraphExec.upload
    is read once for a kernel or a device, not for each launch
        Context.memory_info Context.priority_range Kernel.attribute Kernel.describe_parameters
        Kernel.max_active_blocks Kernel.max_active_clusters Kernel.max_potential_block_size
        Kernel.max_potential_cluster_size Kernel.set_attribute
    is made of operations that are measured
        DeviceArena.borrow Stream.assign Stream.contiguous Stream.in_place Stream.unordered
    touches no device, and only reads or writes JSON
        GpuDispatchPolicy.from_json GpuDispatchPolicy.to_json
    calls two predicates that are measured
        GpuDispatchPolicy.should_run_reml_outer_on_device
        GpuDispatchPolicy.should_use_gpu_pirls_loop
"""
"""Callables without a row: a reason, and those that it holds for."""


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    names = operation_names(setting.context, setting.stream, null=setting.null)
    rows: list[Row] = []
    for operation in offered():
        cases = [
            Case(operation.who, operation.plain, names),
            Case("cudadrv", operation.ours, names),
        ]
        peers, failed = setting.peer_cases(GROUP, operation.case, "operation", operation.case)
        rounds = setting.rounds(60)
        rows += measure(
            GROUP,
            operation.case,
            cases + peers,
            repeats=100,
            rounds=rounds,
            settle=setting.settle,
            limit_s=2.0,
        )
        rows += failed
    return rows


def offered() -> list[Operation]:
    """Return the operations for which the installed cuda.bindings have the calls."""
    return [each for each in OPERATIONS if not each.needs or hasattr(driver, each.needs)]


def operation_names(
    context: cudadrv.Context, stream: cudadrv.Stream, *, null: bool
) -> Mapping[str, object]:
    """What the statements of all operations name."""
    kernel = context.load_module(FIVE_IN_PTX).kernel("k5")
    config, array = cudadrv.LaunchConfig(GRID, BLOCK), stream.empty(256, "f4")
    launcher = kernel.bind(stream, config)
    prepared, event = launcher.prepare(array, array, array, 1.5, 100), stream.record(timing=False)
    pool = context.new_stream_pool(4)
    names: dict[str, Any] = {
        **_bare_names(), "s": stream.handle, "e": event.handle, "f": kernel.handle,
        "params": prepared.block.address, "keep": prepared, "table": {3: kernel}, "m": 5000,
        "k": 100, "context": context, "stream": stream, "event": event, "kernel": kernel,
        "launcher": launcher, "config": config, "a": array, "other": context.new_stream(),
        "pool": pool, "streams": list(pool), "numbers": itertools.count(),
        "new_stream": context.new_stream, "Event": cudadrv.Event,
        "LaunchConfig": cudadrv.LaunchConfig, "policy": cudadrv.runtime.GpuDispatchPolicy(),
    }  # fmt: skip
    # A GPU's driver may reject the PTX of a newer NVRTC; the null driver has no target.
    target = ptx.Target.parse(_TARGET) if null else context.target
    options = ptx.CompileOptions(target=target)
    if null:
        _fill_cache()
    names |= {
        "source": _SOURCE,
        "source_of": lambda key: _SOURCE,
        "options": options,
        "compile": ptx.compile,
        "keyed": cudadrv.runtime.KeyedPtxModuleCache(options),
        "single": cudadrv.PtxModuleCache(options),
        "library": cudadrv.KernelLibrary({"put.cu": _SOURCE}, options),
    }
    return names | _memory_names(stream, array)


def _memory_names(stream: cudadrv.Stream, array: cudadrv.DeviceArray[Any]) -> dict[str, object]:
    """Those of arrays, and of memory that host and device share."""
    host, managed = np.zeros(256, np.float32), cudadrv.managed_empty(1024, np.float32)
    # The driver calls it as it calls those of `Stream.call_on_host`.
    function = _HOST_FUNCTION(lambda _: None)
    return {
        **bare.memory_names(stream), "p": bare.pointer(array.ptr), "host": host,
        "square": host.reshape(16, 16), "matrix": array.reshape(16, 16), "managed": managed,
        "mp": bare.pointer(managed.ctypes.data), "location": bare.location(0),
        "everyone": cudadrv.memory.Attachment.GLOBAL, "pinned_pool": cudadrv.memory.PinnedPool(),
        "keep_function": function, "host_function": int,
        "host_address": ctypes.cast(function, ctypes.c_void_p).value,
    }  # fmt: skip


def _fill_cache() -> None:
    """Compile the source in another process: NVRTC ends a process that has the null driver."""
    code = (
        f"import ptx\nfor name in ('kernel.cu', 'put.cu'):\n"
        f"    ptx.compile({_SOURCE!r}, ptx.CompileOptions(target=ptx.Target.parse({_TARGET!r})),"
        " name=name)"
    )
    null, path = str(build_null_driver()), os.environ.get("LD_LIBRARY_PATH", "")
    folders = [folder for folder in path.split(os.pathsep) if folder != null]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


_OF_CUDA_13: Final = {
    "prefetch_batch": "cuMemPrefetchBatchAsync",
    "discard_batch": "cuMemDiscardBatchAsync",
}


def _bare_names() -> dict[str, object]:
    # The stub has only what cudadrv calls.
    every: Any = driver
    return {
        "create": every.cuEventCreate, "record": every.cuEventRecord,
        "synchronize": every.cuEventSynchronize, "destroy": every.cuEventDestroy,
        "elapsed": every.cuEventElapsedTime, "query": every.cuEventQuery,
        "wait": every.cuStreamWaitEvent, "create_stream": every.cuStreamCreateWithPriority,
        "destroy_stream": every.cuStreamDestroy, "query_stream": every.cuStreamQuery,
        "synchronize_stream": every.cuStreamSynchronize, "launch": every.cuLaunchKernel,
        "fill": every.cuMemsetD32Async, "clear": every.cuMemsetD8Async,
        "on_host": every.cuLaunchHostFunc, "prefetch": every.cuMemPrefetchAsync,
        **{name: getattr(driver, function, None) for name, function in _OF_CUDA_13.items()},
        "attach": every.cuStreamAttachMemAsync,
        "host_alloc": every.cuMemHostAlloc, "free_host": every.cuMemFreeHost,
    }  # fmt: skip
