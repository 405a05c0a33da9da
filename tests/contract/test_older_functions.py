"""Driver functions that cudadrv does not call, and that other libraries do."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

import cudadrv
from cudadrv.driver._api import (
    CUDA_ARRAY_DESCRIPTOR,
    CUarray_format,
    CUdevice,
    CUdeviceptr,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUresult,
    CUstream,
)

from .conftest import all_functions

SOURCE = """
extern "C" __global__ void add(float* out, int count, float value) {
    int at = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < count) out[at] += value;
}
extern "C" __global__ void first(int* out) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x + 5;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = shared[blockDim.x - 1];
}
"""
INVALID_VALUE = int(CUresult.CUDA_ERROR_INVALID_VALUE)


@pytest.fixture
def api(context: cudadrv.Context) -> Iterator[Any]:
    """The driver, with the context current; its functions are more than `DriverApi` has."""
    api = all_functions()
    ok(api.cuCtxPushCurrent(context.handle))
    yield api
    ok(api.cuCtxPopCurrent())


def ok(result: tuple[Any, ...]) -> Any:  # one value, or a tuple of them
    assert result[0] == 0, result
    return result[1] if len(result) == 2 else result[1:]


def words(api: Any, address: int, count: int) -> list[int]:
    found = (ctypes.c_uint32 * count)()
    ok(api.cuMemcpyDtoH(ctypes.addressof(found), CUdeviceptr(address), 4 * count))
    return list(found)


def test_a_device_has_a_capability_and_is_found_by_its_address(api: Any) -> None:
    device = CUdevice(0)
    capability = cudadrv.list_devices()[0].compute_capability
    assert tuple(ok(api.cuDeviceComputeCapability(device))) == tuple(capability)
    text = ok(api.cuDeviceGetPCIBusId(16, device)).rstrip(b"\0")
    assert int(ok(api.cuDeviceGetByPCIBusId(text))) == 0
    assert int(ok(api.cuDeviceGetByPCIBusId(text.rpartition(b".")[0]))) == 0
    assert api.cuDeviceGetByPCIBusId(b"nothing")[0] == INVALID_VALUE
    assert api.cuDeviceGetByPCIBusId(b"ffff:ff:1f.0")[0] == CUresult.CUDA_ERROR_INVALID_DEVICE


def test_rows_are_allocated_at_a_pitch_and_filled(api: Any) -> None:
    memory, pitch = ok(api.cuMemAllocPitch(20, 3, 4))
    try:
        assert pitch >= 20
        assert pitch % 4 == 0
        ok(api.cuMemsetD2D32(memory, pitch, 7, 5, 3))
        ok(api.cuMemsetD2D16(memory, pitch, 0x0101, 2, 2))
        ok(api.cuMemsetD2D8(memory, pitch, 0xFF, 1, 1))
        rows = [words(api, int(memory) + pitch * row, 5) for row in range(3)]
        assert rows == [[0x010101FF, 7, 7, 7, 7], [0x01010101, 7, 7, 7, 7], [7] * 5]
    finally:
        ok(api.cuMemFree(memory))
    for width, height, element in ((20, 3, 3), (0, 3, 4), (20, 0, 4)):
        assert api.cuMemAllocPitch(width, height, element)[0] == INVALID_VALUE


def an_array(api: Any, width: int, height: int = 0) -> Any:
    given = CUDA_ARRAY_DESCRIPTOR()
    given.Width, given.Height, given.NumChannels = width, height, 1
    given.Format = CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
    return ok(api.cuArrayCreate(given))


def test_bytes_are_copied_between_arrays_and_memory(api: Any) -> None:
    one, other = an_array(api, 8), an_array(api, 8)
    memory, stream = ok(api.cuMemAlloc(32)), ok(api.cuStreamCreate(1))
    host, back = (ctypes.c_uint32 * 8)(*range(8)), (ctypes.c_uint32 * 8)()
    try:
        ok(api.cuMemcpyHtoA(one, 0, ctypes.addressof(host), 32))
        ok(api.cuMemcpyAtoA(other, 0, one, 16, 16))
        ok(api.cuMemcpyAtoD(memory, other, 0, 16))
        assert words(api, int(memory), 4) == [4, 5, 6, 7]
        ok(api.cuMemcpyDtoA(other, 16, memory, 8))
        ok(api.cuMemcpyAtoH(ctypes.addressof(back), other, 8, 16))
        assert list(back[:4]) == [6, 7, 4, 5]
        ok(api.cuMemcpyHtoAAsync(one, 4, ctypes.addressof(host), 8, stream))
        ok(api.cuMemcpyAtoHAsync(ctypes.addressof(back), one, 0, 16, stream))
        ok(api.cuStreamSynchronize(stream))
        assert list(back[:4]) == [0, 0, 1, 3]
        assert api.cuMemcpyAtoH(ctypes.addressof(back), one, 16, 32)[0] == INVALID_VALUE
    finally:
        ok(api.cuStreamDestroy(stream))
        ok(api.cuMemFree(memory))
        ok(api.cuArrayDestroy(one))
        ok(api.cuArrayDestroy(other))


def test_a_kernel_is_launched_with_settings_made_before(api: Any, kernels: cudadrv.Module) -> None:
    memory = ok(api.cuMemAlloc(64))
    try:
        ok(api.cuMemsetD32(memory, 0, 16))
        module = kernels.handle
        function = ok(api.cuModuleGetFunction(module, b"add"))
        address = (ctypes.c_uint64 * 1)(int(memory))
        ok(api.cuFuncSetBlockShape(function, 4, 1, 1))
        ok(api.cuParamSetv(function, 0, ctypes.addressof(address), 8))
        ok(api.cuParamSeti(function, 8, 11))
        ok(api.cuParamSetf(function, 12, 1.0))
        ok(api.cuParamSetSize(function, 16))
        ok(api.cuLaunchGrid(function, 2, 2))
        ok(api.cuLaunchGridAsync(function, 1, 1, CUstream(0)))
        ok(api.cuLaunch(function))
        ok(api.cuCtxSynchronize())
        three, one = 0x40400000, 0x3F800000
        assert words(api, int(memory), 16) == [three] * 4 + [one] * 7 + [0] * 5
        assert api.cuFuncSetBlockShape(function, 0, 1, 1)[0] == INVALID_VALUE
        function = ok(api.cuModuleGetFunction(module, b"first"))
        ok(api.cuFuncSetBlockShape(function, 8, 1, 1))
        ok(api.cuFuncSetSharedSize(function, 32))
        ok(api.cuParamSetv(function, 0, ctypes.addressof(address), 8))
        ok(api.cuParamSetSize(function, 8))
        ok(api.cuLaunchGrid(function, 1, 1))
        assert words(api, int(memory), 1) == [12]
    finally:
        ok(api.cuMemFree(memory))


def test_the_last_detach_destroys_a_context(api: Any) -> None:
    before = int(ok(api.cuCtxGetCurrent()))
    made = ok(api.cuCtxCreate(None, 0, CUdevice(0)))
    assert int(ok(api.cuCtxAttach(0))) == int(made)
    assert api.cuCtxAttach(1)[0] == INVALID_VALUE
    ok(api.cuCtxDetach(made))
    assert int(ok(api.cuCtxGetCurrent())) == int(made)
    ok(api.cuCtxDetach(made))
    assert int(ok(api.cuCtxGetCurrent())) == before


def test_graphs_and_nodes_have_numbers_of_their_own(api: Any) -> None:
    if ok(api.cuDriverGetVersion()) < 13010:
        pytest.skip("needs a driver of CUDA 13.1: cuGraphGetId")
    one, other = ok(api.cuGraphCreate(0)), ok(api.cuGraphCreate(0))
    empty = CUgraphNodeParams()
    empty.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY
    nodes = [ok(api.cuGraphAddNode(graph, None, None, 0, empty)) for graph in (one, one, other)]
    executable = ok(api.cuGraphInstantiate(one, 0))
    try:
        assert ok(api.cuGraphGetId(one)) != ok(api.cuGraphGetId(other))
        assert ok(api.cuGraphExecGetId(executable)) > 0
        local = [ok(api.cuGraphNodeGetLocalId(node)) for node in nodes]
        assert local[0] != local[1]
        assert len({ok(api.cuGraphNodeGetToolsId(node)) for node in nodes}) == 3
        assert int(ok(api.cuGraphNodeGetContainingGraph(nodes[2]))) == int(other)
    finally:
        ok(api.cuGraphExecDestroy(executable))
        ok(api.cuGraphDestroy(one))
        ok(api.cuGraphDestroy(other))


def test_a_stream_writes_values_and_waits_for_them(api: Any) -> None:
    memory, stream = ok(api.cuMemAlloc(16)), ok(api.cuStreamCreate(1))
    greater, equal, both, neither = range(4)
    try:
        ok(api.cuMemsetD32(memory, 0, 4))
        ok(api.cuStreamSynchronize(CUstream(0)))
        ok(api.cuStreamWriteValue32(stream, memory, 5, 0))
        ok(api.cuStreamWriteValue64(stream, CUdeviceptr(int(memory) + 8), 1 << 40 | 3, 0))
        for value, how in ((4, greater), (5, greater), (5, equal), (4, both), (8, neither)):
            ok(api.cuStreamWaitValue32(stream, memory, value, how))
        ok(api.cuStreamWaitValue64(stream, CUdeviceptr(int(memory) + 8), 1 << 40, both))
        ok(api.cuStreamSynchronize(stream))
        assert words(api, int(memory), 4) == [5, 0, 3, 1 << 8]
        unaligned = CUdeviceptr(int(memory) + 2)
        assert api.cuStreamWriteValue32(stream, unaligned, 5, 0)[0] == INVALID_VALUE
    finally:
        ok(api.cuStreamDestroy(stream))
        ok(api.cuMemFree(memory))


def test_an_unwritten_value_is_waited_for_until_another_stream_writes_it() -> None:
    with cudadrv.emulator.session(order="late"):
        api = all_functions()
        context = cudadrv.cuda_context_for(0)
        ok(api.cuCtxPushCurrent(context.handle))
        memory = ok(api.cuMemAlloc(4))
        one, other = ok(api.cuStreamCreate(1)), ok(api.cuStreamCreate(1))
        ok(api.cuMemsetD32(memory, 0, 1))
        ok(api.cuStreamSynchronize(CUstream(0)))
        ok(api.cuStreamWaitValue32(one, memory, 1, 1))
        ok(api.cuStreamWriteValue32(one, memory, 2, 0))
        ok(api.cuStreamWriteValue32(other, memory, 1, 0))
        ok(api.cuStreamSynchronize(one))
        assert words(api, int(memory), 1) == [2]
        ok(api.cuCtxPopCurrent())
