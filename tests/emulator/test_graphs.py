from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdevice,
    CUdeviceptr,
    CUgraph,
    CUgraphExec,
    CUpointer_attribute,
    CUstream,
    CUstreamCaptureMode,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.timeline.schedule import OrderName

from .calls import (
    LEGACY,
    OpenApi,
    Parameters,
    attribute,
    code,
    download,
    functions,
    launch,
    load,
    ok,
)
from .descriptors import over_linear, reading
from .kernels import EMPTY, FETCH

GLOBAL = CUstreamCaptureMode(0)
MEMORY_TYPE = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


def copy_graph(
    api: OpenApi, stream: CUstream, host: np.ndarray[tuple[int], np.dtype[np.uint32]]
) -> tuple[CUgraph, CUdeviceptr]:
    """A graph that allocates, sets, copies to the host and frees."""
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    memory = ok(api.cuMemAllocAsync(host.nbytes, stream))
    ok(api.cuMemsetD32Async(memory, 7, host.size, stream))
    ok(api.cuMemcpyDtoHAsync(host.ctypes.data, memory, host.nbytes, stream))
    ok(api.cuMemFreeAsync(memory, stream))
    return ok(api.cuStreamEndCapture(stream)), memory


def test_memory_allocated_in_a_capture_is_the_graph_s(api: OpenApi, stream: CUstream) -> None:
    host = np.zeros(8, np.uint32)
    graph, memory = copy_graph(api, stream, host)
    assert ok(api.cuGraphGetNodes(graph, 0))[1] == 4
    assert attribute(api, MEMORY_TYPE, int(memory)) == 0
    executable = ok(api.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        host[:] = 0
        ok(api.cuGraphLaunch(executable, stream))
        ok(api.cuStreamSynchronize(stream))
        assert (host == 7).all()


def test_memory_that_a_graph_leaves_must_be_freed_before_the_next_launch(
    api: OpenApi, stream: CUstream
) -> None:
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    memory = ok(api.cuMemAllocAsync(64, stream))
    graph = ok(api.cuStreamEndCapture(stream))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    assert code(api.cuGraphInstantiate(graph, 0)) == 801
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuMemsetD8Async(memory, 1, 64, stream))
    assert code(api.cuGraphLaunch(executable, stream)) == 1
    ok(api.cuMemFreeAsync(memory, stream))
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuStreamSynchronize(stream))
    ok(api.cuMemFree(memory))


def test_automatic_free_lets_a_graph_launch_again(api: OpenApi, stream: CUstream) -> None:
    """CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH is 1."""
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    ok(api.cuMemAllocAsync(64, stream))
    executable = ok(api.cuGraphInstantiate(ok(api.cuStreamEndCapture(stream)), 1))
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuStreamSynchronize(stream))


def test_a_capture_frees_only_what_it_allocated(api: OpenApi, stream: CUstream) -> None:
    outside = ok(api.cuMemAllocAsync(64, stream))
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    assert code(api.cuMemFreeAsync(outside, stream)) == 1
    assert ok(api.cuGraphGetNodes(ok(api.cuStreamEndCapture(stream)), 0))[1] == 0


def test_the_memory_of_graphs_comes_back(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    before = ok(emulator.cuMemGetInfo())
    host = np.zeros(8, np.uint32)
    graph, _ = copy_graph(emulator, stream, host)
    executable = ok(emulator.cuGraphInstantiate(graph, 0))
    ok(emulator.cuGraphDestroy(graph))
    ok(emulator.cuGraphLaunch(executable, stream))
    assert (host == 7).all()
    assert ok(emulator.cuMemGetInfo()) != before
    ok(emulator.cuGraphExecDestroy(executable))
    assert ok(emulator.cuMemGetInfo()) == before
    ok(emulator.cuStreamBeginCapture(stream, GLOBAL))
    ok(emulator.cuMemAllocAsync(64, stream))
    assert code(emulator.cuStreamSynchronize(stream)) == 900
    assert code(emulator.cuStreamEndCapture(stream)) == 901
    assert ok(emulator.cuMemGetInfo()) == before


def test_nodes_are_counted_and_listed(api: OpenApi, stream: CUstream) -> None:
    (empty,) = functions(api, load(api, EMPTY), "empty")
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    ok(launch(api, empty, stream=stream))
    ok(launch(api, empty, stream=stream))
    graph = ok(api.cuStreamEndCapture(stream))
    assert ok(api.cuGraphGetNodes(graph, 0))[1] == 2
    two, count = ok(api.cuGraphGetNodes(graph, 2))
    assert two is not None
    assert count == 2
    assert len({int(node) for node in two} - {0}) == 2
    one, count = ok(api.cuGraphGetNodes(graph, 1))
    assert one is not None
    assert (len(one), count) == (1, 1)
    assert int(one[0]) == int(two[0])
    more, count = ok(api.cuGraphGetNodes(graph, 4))
    assert more is not None
    assert count == 2
    assert [int(node) != 0 for node in more] == [True, True, False, False]


def test_an_executable_outlives_its_graph(api: OpenApi, stream: CUstream) -> None:
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    graph = ok(api.cuStreamEndCapture(stream))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuGraphDestroy(graph))
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuGraphLaunch(executable, LEGACY))
    ok(api.cuStreamSynchronize(stream))


def test_a_graph_runs_in_a_stream_of_any_context(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    executable = ok(api.cuGraphInstantiate(ok(api.cuStreamEndCapture(stream)), 0))
    other = ok(api.cuCtxCreate(None, 0, device))
    ok(api.cuGraphLaunch(executable, ok(api.cuStreamCreateWithPriority(1, 0))))
    ok(api.cuCtxSynchronize())
    ok(api.cuCtxDestroy(other))


def test_null_and_destroyed_graphs_are_invalid_values(api: OpenApi, stream: CUstream) -> None:
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    graph = ok(api.cuStreamEndCapture(stream))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuGraphDestroy(graph))
    ok(api.cuGraphExecDestroy(executable))
    for dead in (graph, CUgraph(0)):
        assert code(api.cuGraphInstantiate(dead, 0)) == 1
        assert code(api.cuGraphGetNodes(dead, 0)) == 1
        assert code(api.cuGraphDestroy(dead)) == 1
    for gone in (executable, CUgraphExec(0)):
        assert code(api.cuGraphLaunch(gone, stream)) == 1
        assert code(api.cuGraphExecDestroy(gone)) == 1


def test_instantiation_flags_are_checked(api: OpenApi, stream: CUstream) -> None:
    (empty,) = functions(api, load(api, EMPTY), "empty")
    ok(api.cuStreamBeginCapture(stream, GLOBAL))
    ok(launch(api, empty, stream=stream))
    graph = ok(api.cuStreamEndCapture(stream))
    for flags, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (8, 0), (16, 1), (1024, 1)):
        assert code(api.cuGraphInstantiate(graph, flags)) == expected


def test_a_graph_does_not_launch_an_unloaded_kernel(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    module = load(emulator, EMPTY)
    (empty,) = functions(emulator, module, "empty")
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    ok(emulator.cuStreamBeginCapture(stream, GLOBAL))
    ok(launch(emulator, empty, stream=stream))
    executable = ok(emulator.cuGraphInstantiate(ok(emulator.cuStreamEndCapture(stream)), 0))
    ok(emulator.cuModuleUnload(module))
    assert code(emulator.cuGraphLaunch(executable, stream)) == 400


@pytest.mark.parametrize("order", ["immediate", "late"])
def test_a_replay_that_reads_a_destroyed_texture_is_a_fault(order: OrderName) -> None:
    emulator = Emulator(order=order)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (fetch,) = functions(emulator, load(emulator, FETCH), "fetch")
    x, out = ok(emulator.cuMemAlloc(512)), ok(emulator.cuMemAlloc(4))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    ok(emulator.cuMemsetD32Async(x, 7, 128, stream))
    texture = ok(emulator.cuTexObjectCreate(over_linear(int(x), 512), reading(), None))
    parameters = Parameters(ctypes.c_uint64(int(out)), ctypes.c_uint64(int(texture)))
    ok(emulator.cuStreamBeginCapture(stream, GLOBAL))
    ok(launch(emulator, fetch, parameters, stream=stream))
    executable = ok(emulator.cuGraphInstantiate(ok(emulator.cuStreamEndCapture(stream)), 0))
    ok(emulator.cuGraphLaunch(executable, stream))
    ok(emulator.cuTexObjectDestroy(texture))  # what was launched before still reads it
    ok(emulator.cuStreamSynchronize(stream))
    assert download(emulator, out, 1).tolist() == [7]
    emulator.cuGraphLaunch(executable, stream)
    assert code(emulator.cuStreamSynchronize(stream)) == 719
    assert type(emulator.last_fault).__name__ == "InvalidTextureHandle"
