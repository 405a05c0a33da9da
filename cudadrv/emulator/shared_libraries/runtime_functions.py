"""Functions of the CUDA runtime over the driver: a façade, not the runtime.

CUDA Runtime API, "Interactions with the CUDA Driver API". Each function takes the module
`cuda.bindings.runtime`, whose types its results have, and the caller's arguments. It calls
`cuda.bindings.driver`, which accepts the same forms of arguments, and so the emulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...driver._api import CUresult, driver
from .runtime_properties import attributes_of_function, attributes_of_pointer, device_properties

Results = tuple[Any, ...]
"""A number of an error, and values."""
Function = Callable[..., Results]

_OK: Final = 0
_INVALID_DIRECTION: Final = 21  # cudaErrorInvalidMemcpyDirection
_NO_NAME: Final = b"unrecognized error code"
_HOST_TO_HOST, _HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE, _BY_ADDRESS = range(5)
_COPIES: Final = {
    _HOST_TO_DEVICE: "cuMemcpyHtoD",
    _DEVICE_TO_HOST: "cuMemcpyDtoH",
    _DEVICE_TO_DEVICE: "cuMemcpyDtoD",
    _BY_ADDRESS: "cuMemcpy",
}
_MEMORY_TYPES: Final = {
    _HOST_TO_HOST: (1, 1), _HOST_TO_DEVICE: (1, 2), _DEVICE_TO_HOST: (2, 1),
    _DEVICE_TO_DEVICE: (2, 2), _BY_ADDRESS: (4, 4),
}  # fmt: skip
"""CUmemorytype of the source and the destination of a copy of rows."""


class _Functions:
    """The functions by their names, with the number of values that each returns."""

    def __init__(self) -> None:
        self.by_name: dict[str, tuple[int, Function]] = {}

    def add(
        self, values: int, *, name: str, in_context: bool = True
    ) -> Callable[[Function], Function]:
        """Let a function serve a name; `in_context` lets it run with a context."""

        def in_any_context(function: Function) -> Function:
            def wrapper(runtime: Any, *arguments: object) -> Results:
                code = _use_context()
                return (code,) if code else function(runtime, *arguments)

            return wrapper

        def added(function: Function) -> Function:
            self.by_name[name] = values, in_any_context(function) if in_context else function
            return function

        return added

    def same(self, name: str, of_driver: str, *kinds: str, in_context: bool = True) -> None:
        """Let a function of the driver serve a name: its arguments are the same.

        `kinds` has the type of each value in the runtime, "int", or "" for one that stays.
        """

        def function(runtime: Any, *arguments: object) -> Results:
            code, *values = call(of_driver, *arguments)
            return code, *[_typed(runtime, kind, v) for kind, v in zip(kinds, values, strict=True)]

        self.add(len(kinds), name=name, in_context=in_context)(function)


# `Any` below: the module and the arguments are whatever the bindings accept.
FUNCTIONS: Final = _Functions()


def call(name: str, *arguments: object) -> Results:
    """Call a function of the driver."""
    results: Results = getattr(driver, name)(*arguments)
    return results


def _typed(runtime: Any, kind: str, value: Any) -> object:
    if value is None or not kind:
        return value
    return int(value) if kind == "int" else getattr(runtime, kind)(int(value))


def _primary_context(device: int) -> Results:
    """Return the context that the runtime uses; it is never released."""
    return call("cuDevicePrimaryCtxRetain", device)


def _set_device(_: Any, device: int) -> Results:
    code, context = _primary_context(device)
    return (code,) if code else call("cuCtxSetCurrent", context)


def _use_context() -> int:
    """Make sure that the thread has a context: else that of device 0."""
    code, current = call("cuCtxGetCurrent")
    return int(code) if code or int(current) else int(_set_device(None, 0)[0])


FUNCTIONS.add(0, name="cudaSetDevice", in_context=False)(_set_device)
for _name, _of_driver, *_kinds in (
    ("cudaGetDeviceCount", "cuDeviceGetCount", ""),
    ("cudaDeviceGetPCIBusId", "cuDeviceGetPCIBusId", ""),
    ("cudaDeviceGetByPCIBusId", "cuDeviceGetByPCIBusId", "int"),
    ("cudaDeviceCanAccessPeer", "cuDeviceCanAccessPeer", ""),
    ("cudaDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool", "cudaMemPool_t"),
    ("cudaDeviceGetMemPool", "cuDeviceGetMemPool", "cudaMemPool_t"),
    ("cudaDeviceSetMemPool", "cuDeviceSetMemPool"),
    ("cudaDriverGetVersion", "cuDriverGetVersion", ""),
    ("cudaRuntimeGetVersion", "cuDriverGetVersion", ""),
):
    FUNCTIONS.same(_name, _of_driver, *_kinds, in_context=False)
for _name, _of_driver, *_kinds in (
    ("cudaDeviceSynchronize", "cuCtxSynchronize"),
    ("cudaGetDevice", "cuCtxGetDevice", "int"),
    ("cudaGetDeviceFlags", "cuCtxGetFlags", ""),
    ("cudaDeviceGetStreamPriorityRange", "cuCtxGetStreamPriorityRange", "", ""),
    ("cudaMalloc", "cuMemAlloc", "int"),
    ("cudaFree", "cuMemFree"),
    ("cudaMallocAsync", "cuMemAllocAsync", "int"),
    ("cudaMallocFromPoolAsync", "cuMemAllocFromPoolAsync", "int"),
    ("cudaFreeAsync", "cuMemFreeAsync"),
    ("cudaMallocManaged", "cuMemAllocManaged", "int"),
    ("cudaMallocHost", "cuMemAllocHost", "int"),
    ("cudaHostAlloc", "cuMemHostAlloc", "int"),
    ("cudaFreeHost", "cuMemFreeHost"),
    ("cudaHostRegister", "cuMemHostRegister"),
    ("cudaHostUnregister", "cuMemHostUnregister"),
    ("cudaHostGetDevicePointer", "cuMemHostGetDevicePointer", "int"),
    ("cudaHostGetFlags", "cuMemHostGetFlags", ""),
    ("cudaMemGetInfo", "cuMemGetInfo", "", ""),
    ("cudaMemPoolTrimTo", "cuMemPoolTrimTo"),
    ("cudaMemPoolDestroy", "cuMemPoolDestroy"),
    ("cudaStreamCreateWithFlags", "cuStreamCreate", "cudaStream_t"),
    ("cudaStreamCreateWithPriority", "cuStreamCreateWithPriority", "cudaStream_t"),
    ("cudaStreamDestroy", "cuStreamDestroy"),
    ("cudaStreamSynchronize", "cuStreamSynchronize"),
    ("cudaStreamQuery", "cuStreamQuery"),
    ("cudaStreamWaitEvent", "cuStreamWaitEvent"),
    ("cudaStreamGetFlags", "cuStreamGetFlags", ""),
    ("cudaStreamGetPriority", "cuStreamGetPriority", ""),
    ("cudaStreamGetId", "cuStreamGetId", ""),
    ("cudaStreamGetDevice", "cuStreamGetDevice", "int"),
    ("cudaEventCreateWithFlags", "cuEventCreate", "cudaEvent_t"),
    ("cudaEventRecord", "cuEventRecord"),
    ("cudaEventRecordWithFlags", "cuEventRecordWithFlags"),
    ("cudaEventSynchronize", "cuEventSynchronize"),
    ("cudaEventQuery", "cuEventQuery"),
    ("cudaEventElapsedTime", "cuEventElapsedTime", ""),
    ("cudaEventDestroy", "cuEventDestroy"),
    ("cudaStreamEndCapture", "cuStreamEndCapture", "cudaGraph_t"),
    ("cudaGraphCreate", "cuGraphCreate", "cudaGraph_t"),
    ("cudaGraphClone", "cuGraphClone", "cudaGraph_t"),
    ("cudaGraphDestroy", "cuGraphDestroy"),
    ("cudaGraphInstantiate", "cuGraphInstantiate", "cudaGraphExec_t"),
    ("cudaGraphInstantiateWithFlags", "cuGraphInstantiate", "cudaGraphExec_t"),
    ("cudaGraphUpload", "cuGraphUpload"),
    ("cudaGraphLaunch", "cuGraphLaunch"),
    ("cudaGraphExecDestroy", "cuGraphExecDestroy"),
    ("cudaGraphDestroyNode", "cuGraphDestroyNode"),
    ("cudaOccupancyMaxActiveBlocksPerMultiprocessor",
     "cuOccupancyMaxActiveBlocksPerMultiprocessor", ""),
    ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
     "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", ""),
    ("cudaProfilerStart", "cuProfilerStart"),
    ("cudaProfilerStop", "cuProfilerStop"),
):  # fmt: skip
    FUNCTIONS.same(_name, _of_driver, *_kinds)


@FUNCTIONS.add(0, name="cudaInitDevice", in_context=False)
def init_device(runtime: Any, device: int, device_flags: int, flags: int) -> Results:
    """Make the context of a device, which does not become current."""
    return (_primary_context(device)[0],)


@FUNCTIONS.add(0, name="cudaDeviceReset")
def reset(runtime: Any) -> Results:
    """Destroy everything of the current device."""
    code, device = call("cuCtxGetDevice")
    return (code,) if code else call("cuDevicePrimaryCtxReset", device)


@FUNCTIONS.add(0, name="cudaSetDeviceFlags")
def set_flags(runtime: Any, flags: int) -> Results:
    """Set the flags of the current device."""
    code, device = call("cuCtxGetDevice")
    return (code,) if code else call("cuDevicePrimaryCtxSetFlags", device, flags)


@FUNCTIONS.add(1, name="cudaDeviceGetAttribute", in_context=False)
def device_attribute(runtime: Any, attribute: Any, device: int) -> Results:
    """Return an attribute; the numbers are the driver's."""
    return call("cuDeviceGetAttribute", _of_driver_enum("CUdevice_attribute", attribute), device)


@FUNCTIONS.add(1, name="cudaGetDeviceProperties", in_context=False)
def properties(runtime: Any, device: int) -> Results:
    """Return the properties of a device."""
    return device_properties(runtime, device)


@FUNCTIONS.add(1, name="cudaDeviceGetLimit")
def limit(runtime: Any, which: Any) -> Results:
    """Return a limit of the current device."""
    return call("cuCtxGetLimit", _of_driver_enum("CUlimit", which))


@FUNCTIONS.add(0, name="cudaDeviceSetLimit")
def set_limit(runtime: Any, which: Any, value: int) -> Results:
    """Set a limit of the current device."""
    return call("cuCtxSetLimit", _of_driver_enum("CUlimit", which), value)


def _of_driver_enum(kind: str, value: Any) -> object:
    """Return the driver's member of the same number; a number that it lacks stays."""
    try:
        return getattr(driver, kind)(int(value))
    except ValueError:
        return value


def _peer(function: str, device: int, *flags: int) -> Results:
    code, context = _primary_context(device)
    return (code,) if code else call(function, context, *flags)


@FUNCTIONS.add(0, name="cudaDeviceEnablePeerAccess")
def enable_peer(runtime: Any, device: int, flags: int) -> Results:
    """Let the current device access another one's memory."""
    return _peer("cuCtxEnablePeerAccess", device, flags)


@FUNCTIONS.add(0, name="cudaDeviceDisablePeerAccess")
def disable_peer(runtime: Any, device: int) -> Results:
    """End that."""
    return _peer("cuCtxDisablePeerAccess", device)


@FUNCTIONS.add(2, name="cudaMallocPitch")
def allocate_rows(runtime: Any, width: int, height: int) -> Results:
    """Allocate rows, whose pitch is returned."""
    code, address, pitch = call("cuMemAllocPitch", width, height, 4)
    return code, int(address or 0), pitch


@FUNCTIONS.add(1, name="cudaStreamCreate")
def create_stream(runtime: Any) -> Results:
    """Create a stream."""
    return FUNCTIONS.by_name["cudaStreamCreateWithFlags"][1](runtime, 0)


@FUNCTIONS.add(1, name="cudaEventCreate")
def create_event(runtime: Any) -> Results:
    """Create an event."""
    return FUNCTIONS.by_name["cudaEventCreateWithFlags"][1](runtime, 0)


@FUNCTIONS.add(0, name="cudaStreamBeginCapture")
def begin_capture(runtime: Any, stream: Any, mode: Any) -> Results:
    """Begin to capture a stream."""
    return call("cuStreamBeginCapture", stream, driver.CUstreamCaptureMode(int(mode)))


@FUNCTIONS.add(1, name="cudaStreamIsCapturing")
def is_capturing(runtime: Any, stream: Any) -> Results:
    """Return the state of a stream's capture."""
    code, status = call("cuStreamIsCapturing", stream)
    return code, runtime.cudaStreamCaptureStatus(int(status or 0))


@FUNCTIONS.add(1, name="cudaGraphAddEmptyNode")
def add_empty_node(runtime: Any, graph: Any, dependencies: Any, count: int) -> Results:
    """Add a node without work after others."""
    before = [driver.CUgraphNode(int(each)) for each in dependencies or ()]
    code, node = call("cuGraphAddEmptyNode", graph, before, count)
    return code, runtime.cudaGraphNode_t(int(node or 0))


@FUNCTIONS.add(0, name="cudaLaunchHostFunc")
def launch_host_function(runtime: Any, stream: Any, function: Any, data: Any) -> Results:
    """Call a function of C in the order of a stream."""
    return call("cuLaunchHostFunc", stream, driver.CUhostFn(_ptr=function.getPtr()), data)


@FUNCTIONS.add(0, name="cudaMemcpy")
def copy(runtime: Any, target: Any, source: Any, nbytes: int, kind: Any) -> Results:
    """Copy bytes."""
    return _copy("", target, source, nbytes, int(kind))


@FUNCTIONS.add(0, name="cudaMemcpyAsync")
def copy_in_stream(
    runtime: Any, target: Any, source: Any, nbytes: int, kind: Any, stream: Any
) -> Results:
    """Copy bytes in the order of a stream."""
    return _copy("Async", target, source, nbytes, int(kind), stream)


def _copy(
    suffix: str, target: Any, source: Any, nbytes: int, kind: int, *stream: object
) -> Results:
    if kind == _HOST_TO_HOST:
        return _copy_rows(suffix, (target, nbytes), (source, nbytes), nbytes, 1, kind, *stream)
    if kind not in _COPIES:
        return (_INVALID_DIRECTION,)
    if kind == _BY_ADDRESS:
        target, source = address_of(target), address_of(source)
    return call(f"{_COPIES[kind]}{suffix}", target, source, nbytes, *stream)


@FUNCTIONS.add(0, name="cudaMemcpy2D")
def copy_rows(
    runtime: Any,
    target: Any,
    target_pitch: int,
    source: Any,
    source_pitch: int,
    width: int,
    height: int,
    kind: Any,
) -> Results:
    """Copy rows."""
    target_rows, source_rows = (target, target_pitch), (source, source_pitch)
    return _copy_rows("", target_rows, source_rows, width, height, int(kind))


@FUNCTIONS.add(0, name="cudaMemcpy2DAsync")
def copy_rows_in_stream(
    runtime: Any,
    target: Any,
    target_pitch: int,
    source: Any,
    source_pitch: int,
    width: int,
    height: int,
    kind: Any,
    stream: Any,
) -> Results:
    """Copy rows in the order of a stream."""
    target_rows, source_rows = (target, target_pitch), (source, source_pitch)
    return _copy_rows("Async", target_rows, source_rows, width, height, int(kind), stream)


def _copy_rows(
    suffix: str,
    target: tuple[Any, int],
    source: tuple[Any, int],
    width: int,
    height: int,
    kind: int,
    *stream: object,
) -> Results:
    if kind not in _MEMORY_TYPES:
        return (_INVALID_DIRECTION,)
    if not width or not height:
        return (_OK,)
    described = driver.CUDA_MEMCPY2D()
    sides = zip(("src", "dst"), _MEMORY_TYPES[kind], (source, target), strict=True)
    for side, memory_type, (memory, pitch) in sides:
        where = "Host" if memory_type == 1 else "Device"
        setattr(described, f"{side}MemoryType", driver.CUmemorytype(memory_type))
        setattr(described, f"{side}{where}", address_of(memory))
        setattr(described, f"{side}Pitch", pitch)
    described.WidthInBytes, described.Height = width, height
    return call("cuMemcpy2DAsync" if suffix else "cuMemcpy2DUnaligned", described, *stream)


@FUNCTIONS.add(0, name="cudaMemcpyPeer")
def copy_between_devices(
    runtime: Any, target: Any, target_device: int, source: Any, source_device: int, nbytes: int
) -> Results:
    """Copy bytes between devices."""
    return _copy_to_peer("", target, target_device, source, source_device, nbytes)


@FUNCTIONS.add(0, name="cudaMemcpyPeerAsync")
def copy_between_devices_in_stream(
    runtime: Any,
    target: Any,
    target_device: int,
    source: Any,
    source_device: int,
    nbytes: int,
    stream: Any,
) -> Results:
    """Copy bytes between devices in the order of a stream."""
    return _copy_to_peer("Async", target, target_device, source, source_device, nbytes, stream)


def _copy_to_peer(
    suffix: str,
    target: Any,
    target_device: int,
    source: Any,
    source_device: int,
    nbytes: int,
    *stream: object,
) -> Results:
    contexts = [_primary_context(device) for device in (target_device, source_device)]
    for code, _ in contexts:
        if code:
            return (code,)
    (_, to), (_, from_) = contexts
    return call(f"cuMemcpyPeer{suffix}", target, to, source, from_, nbytes, *stream)


@FUNCTIONS.add(0, name="cudaMemset")
def fill(runtime: Any, target: Any, value: int, nbytes: int) -> Results:
    """Fill bytes."""
    return call("cuMemsetD8", target, value & 0xFF, nbytes)


@FUNCTIONS.add(0, name="cudaMemsetAsync")
def fill_in_stream(runtime: Any, target: Any, value: int, nbytes: int, stream: Any) -> Results:
    """Fill bytes in the order of a stream."""
    return call("cuMemsetD8Async", target, value & 0xFF, nbytes, stream)


@FUNCTIONS.add(0, name="cudaMemset2D")
def fill_rows(
    runtime: Any, target: Any, pitch: int, value: int, width: int, height: int
) -> Results:
    """Fill rows."""
    return call("cuMemsetD2D8", target, pitch, value & 0xFF, width, height)


@FUNCTIONS.add(0, name="cudaMemset2DAsync")
def fill_rows_in_stream(
    runtime: Any, target: Any, pitch: int, value: int, width: int, height: int, stream: Any
) -> Results:
    """Fill rows in the order of a stream."""
    return call("cuMemsetD2D8Async", target, pitch, value & 0xFF, width, height, stream)


def address_of(memory: Any) -> int:
    """Return the address of a buffer, or the number that an object has."""
    if memory is None:
        return 0
    try:
        view = memoryview(memory)
    except TypeError:
        return int(memory)
    import numpy as np  # a buffer of the caller is nearly always an array of it

    return int(np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8).ctypes.data)


@FUNCTIONS.add(1, name="cudaPointerGetAttributes")
def pointer_attributes(runtime: Any, pointer: Any) -> Results:
    """Return the kind and the device of memory."""
    return attributes_of_pointer(runtime, address_of(pointer))


@FUNCTIONS.add(1, name="cudaFuncGetAttributes")
def function_attributes(runtime: Any, function: Any) -> Results:
    """Return the attributes of a kernel, a CUfunction of the driver."""
    return attributes_of_function(runtime, function)


@FUNCTIONS.add(0, name="cudaFuncSetAttribute")
def set_function_attribute(runtime: Any, function: Any, attribute: Any, value: int) -> Results:
    """Set an attribute of a kernel; the numbers are the driver's."""
    which = _of_driver_enum("CUfunction_attribute", attribute)
    return call("cuFuncSetAttribute", function, which, value)


@FUNCTIONS.add(0, name="cudaMemPoolSetAttribute")
def set_pool_attribute(runtime: Any, pool: Any, attribute: Any, value: Any) -> Results:
    """Set an attribute of a pool; the numbers are the driver's."""
    which = _of_driver_enum("CUmemPool_attribute", attribute)
    number = (
        value
        if "reuse" in str(getattr(attribute, "name", "")).lower()
        else (driver.cuuint64_t(int(value)))
    )
    return call("cuMemPoolSetAttribute", pool, which, number)


@FUNCTIONS.add(1, name="cudaMemPoolGetAttribute")
def pool_attribute(runtime: Any, pool: Any, attribute: Any) -> Results:
    """Return an attribute of a pool."""
    which = _of_driver_enum("CUmemPool_attribute", attribute)
    return call("cuMemPoolGetAttribute", pool, which)


@FUNCTIONS.add(0, name="cudaMemPrefetchAsync")
def prefetch(runtime: Any, *arguments: Any) -> Results:
    """Move managed memory to a location, in the order of a stream."""
    return call("cuMemPrefetchAsync", *map(_location, arguments))


@FUNCTIONS.add(0, name="cudaMemAdvise")
def advise(runtime: Any, memory: Any, nbytes: int, advice: Any, location: Any) -> Results:
    """Give advice on managed memory; the numbers are the driver's."""
    which = _of_driver_enum("CUmem_advise", advice)
    return call("cuMemAdvise", memory, nbytes, which, _location(location))


def _location(value: Any) -> Any:
    """Return the driver's form of a cudaMemLocation; before CUDA 13 a device is a number."""
    if not hasattr(value, "id"):
        return value
    location = driver.CUmemLocation()
    location.type = driver.CUmemLocationType(int(value.type))
    location.id = value.id
    return location


@FUNCTIONS.add(1, name="cudaGetErrorName", in_context=False)
def error_name(runtime: Any, error: Any) -> Results:
    """Return the name of an error."""
    try:
        return _OK, runtime.cudaError_t(int(error)).name.encode()
    except ValueError:
        return _OK, _NO_NAME


@FUNCTIONS.add(1, name="cudaGetErrorString", in_context=False)
def error_text(runtime: Any, error: Any) -> Results:
    """Return the text of an error."""
    if int(error) == _INVALID_DIRECTION:
        return _OK, b"invalid copy direction for memcpy"
    try:
        code, text = call("cuGetErrorString", CUresult(int(error)))
    except ValueError:
        return _OK, _NO_NAME
    return _OK, _NO_NAME if code or text is None else text
