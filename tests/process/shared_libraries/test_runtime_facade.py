"""`cuda.bindings.runtime` on the emulator: documented functions over the driver."""

from __future__ import annotations

import pytest

from tests.emulator.kernels import OWN_ELEMENT

from .process import HEADER, run

BEGIN = f"""
import ctypes, threading
import numpy as np
from cuda.bindings import driver, runtime as rt
from cuda.bindings.runtime import cudaMemcpy, cudaMemcpyKind as Kind

PTX = {HEADER + OWN_ELEMENT!r}.encode()
TO, FROM, WITHIN, ANY = (Kind(number) for number in (1, 2, 3, 4))

def ok(result):
    assert result[0] is rt.cudaError_t.cudaSuccess, result
    return result[1] if len(result) == 2 else result[1:] or None

def equal(found, expected):
    assert np.array_equal(found, expected), (found, expected)
"""
MEMORY = """
x = np.arange(12, dtype=np.uint8)
memory = ok(rt.cudaMalloc(16))
y = np.zeros_like(x)
ok(cudaMemcpy(memory, x, 12, TO))
for target in (y, y.ctypes.data):
    for kind in (FROM, ANY):
        y[:] = 0
        ok(cudaMemcpy(target, memory, 12, kind))
        equal(y, x)
ok(rt.cudaMemcpy(dst=memory + 4, src=memory, count=4, kind=WITHIN))
ok(rt.cudaMemset(memory, 258, 2))
ok(cudaMemcpy(y, memory, 12, FROM))
equal(y, [2, 2, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11])
ok(cudaMemcpy(y, b"abcdefgh", 8, Kind(0)))
assert bytes(y[:8]) == b"abcdefgh"
rows = np.zeros((3, 4), np.uint8)
ok(rt.cudaMemset2D(memory, 4, 7, 2, 3))
ok(rt.cudaMemcpy2D(rows, 4, memory + 1, 4, 3, 2, FROM))
equal(rows, [[7, 2, 3, 0], [7, 2, 3, 0], [0, 0, 0, 0]])
kinds = [ok(rt.cudaPointerGetAttributes(p)).type.name for p in
         (memory, x, ok(rt.cudaMallocHost(8)), ok(rt.cudaMallocManaged(8, 1)))]
assert [kind.removeprefix("cudaMemoryType") for kind in kinds] == [
    "Device", "Unregistered", "Host", "Managed"], kinds
free, total = ok(rt.cudaMemGetInfo())
ok(rt.cudaFree(memory))
assert ok(rt.cudaMemGetInfo())[0] > free
"""
STREAMS = """
stream = ok(rt.cudaStreamCreateWithFlags(rt.cudaStreamNonBlocking))
assert isinstance(stream, rt.cudaStream_t) and ok(rt.cudaStreamGetFlags(stream)) == 1
memory = ok(rt.cudaMallocAsync(8, stream))
start, end = ok(rt.cudaEventCreate()), ok(rt.cudaEventCreateWithFlags(0))
ok(rt.cudaEventRecord(start, stream))
mode = rt.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
ok(rt.cudaMemsetAsync(memory, 1, 8, stream))
ok(rt.cudaStreamBeginCapture(stream, mode))
assert ok(rt.cudaStreamIsCapturing(stream)).name == "cudaStreamCaptureStatusActive"
ok(rt.cudaMemsetAsync(memory, 3, 4, stream))
graph = ok(rt.cudaStreamEndCapture(stream))
executable = ok(rt.cudaGraphInstantiate(graph, 0))
y = np.zeros(8, np.uint8)
for expected in (1, 3):
    ok(rt.cudaMemcpyAsync(y, memory, 8, FROM, stream))
    ok(rt.cudaStreamSynchronize(stream))
    equal(y, [expected] * 4 + [1] * 4)
    ok(rt.cudaGraphLaunch(executable, stream))
ok(rt.cudaEventRecord(end, stream))
ok(rt.cudaEventSynchronize(end))
ok(rt.cudaEventQuery(end))
assert ok(rt.cudaEventElapsedTime(start, end)) >= 0
of_driver = driver.CUgraph(int(graph))
first = driver.cuGraphGetNodes(of_driver, 1)[1][0]
after = ok(rt.cudaGraphAddEmptyNode(graph, [rt.cudaGraphNode_t(int(first))], 1))
assert isinstance(after, rt.cudaGraphNode_t) and driver.cuGraphGetEdges(of_driver)[-1] == 1
for node in (after, first, ok(rt.cudaGraphAddEmptyNode(graph, None, 0))):
    ok(rt.cudaGraphDestroyNode(node))
assert driver.cuGraphGetNodes(of_driver)[2] == 0
for destroy, each in ((rt.cudaGraphExecDestroy, executable), (rt.cudaGraphDestroy, graph),
                      (rt.cudaEventDestroy, end)):
    ok(destroy(each))
ok(rt.cudaFreeAsync(memory, stream))
ok(rt.cudaStreamDestroy(stream))
"""
DEVICES = """
assert ok(rt.cudaGetDeviceCount()) == 2 and ok(rt.cudaGetDevice()) == 0
Attribute = driver.CUdevice_attribute
found = ok(rt.cudaGetDeviceProperties(1))
of_driver = lambda name: ok_of_driver(
    driver.cuDeviceGetAttribute(getattr(Attribute, "CU_DEVICE_ATTRIBUTE_" + name), 1))
def ok_of_driver(result):
    assert result[0] == 0
    return result[1]
for field, name in (("major", "COMPUTE_CAPABILITY_MAJOR"), ("warpSize", "WARP_SIZE"),
                    ("multiProcessorCount", "MULTIPROCESSOR_COUNT"), ("pciBusID", "PCI_BUS_ID"),
                    ("sharedMemPerBlockOptin", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")):
    assert getattr(found, field) == of_driver(name), field
assert found.maxThreadsDim == [of_driver("MAX_BLOCK_DIM_" + axis) for axis in "XYZ"]
assert found.name == driver.cuDeviceGetName(100, 1)[1].partition(b"\\0")[0]
assert found.uuid.bytes == driver.cuDeviceGetUuid(1)[1].bytes
ok(rt.cudaSetDevice(1))
assert ok(rt.cudaGetDevice()) == 1
other = []
thread = threading.Thread(target=lambda: other.append(ok(rt.cudaGetDevice())))
thread.start(), thread.join()
assert other == [0]
module = ok_of_driver(driver.cuModuleLoadData(PTX))
kernel = ok_of_driver(driver.cuModuleGetFunction(module, b"own_element"))
attributes = ok(rt.cudaFuncGetAttributes(kernel))
threads = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
expected = driver.cuFuncGetAttribute(threads, kernel)[1]
assert (attributes.maxThreadsPerBlock, attributes.sharedSizeBytes) == (expected, 0)
blocks = ok(rt.cudaOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 128, 0))
assert blocks == driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 128, 0)[1] > 0
"""
ERRORS = """
Error = rt.cudaError_t
assert rt.cudaSetDevice(5) == (Error.cudaErrorInvalidDevice,)
assert rt.cudaMalloc(1 << 60) == (Error.cudaErrorMemoryAllocation, None)
other = []
thread = threading.Thread(target=lambda: other.append(rt.cudaGetLastError()[0]))
thread.start(), thread.join()
assert other == [Error.cudaSuccess]
assert rt.cudaPeekAtLastError() == rt.cudaGetLastError() == (Error.cudaErrorMemoryAllocation,)
assert rt.cudaGetLastError() == (Error.cudaSuccess,)
x = bytearray(4)
assert rt.cudaMemcpy(x, x, 4, 9) == (Error.cudaErrorInvalidMemcpyDirection,)
assert ok(rt.cudaGetErrorName(Error.cudaErrorMemoryAllocation)) == b"cudaErrorMemoryAllocation"
assert ok(rt.cudaGetErrorString(Error.cudaErrorMemoryAllocation)) == b"out of memory"
assert "fa\u00e7ade" in rt.__doc__ and "fa\u00e7ade" in rt.cudaMalloc.__doc__
for name in ("cudaMalloc3D", "cudaGetExportTable", "cudaGraphAddKernelNode"):
    try:
        getattr(rt, name)(1)
    except NotImplementedError as error:
        assert str(error).startswith(f"cuda.bindings.runtime.{name}: "), error
    else:
        raise AssertionError(name)
try:
    rt.cudaMalloc(1, 2)
except TypeError as error:
    assert "cudaMalloc takes size" in str(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late"])
def test_functions_of_the_runtime_have_the_results_of_the_driver(order: str) -> None:
    program = BEGIN + MEMORY + STREAMS + DEVICES + ERRORS + "print('ran')\n"
    options = ("-m", "cudadrv", "emulate", "--devices", "2", "--order", order)
    ended = run(*options, "python", "-c", program)
    assert (ended.status, ended.out) == (0, "ran\n"), ended.err
