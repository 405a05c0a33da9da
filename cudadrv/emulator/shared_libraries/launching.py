"""Launches and contexts: functions with nested structures."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Final

from ...driver._api import CUgraph, CUgraphExec, CUlaunchAttribute, CUresult
from ..caller_memory import view_at
from ..calls.call import state_of
from ..emulator import Emulator
from .caller_structures import bytes_at, structures_at
from .handlers import Handlers, call, passed_on, put_size, put_uint

LAUNCHING: Final = Handlers()
# The nodes and edges that cuStreamGetCaptureInfo returned, by stream.
_NODES: Final[dict[int, ctypes.Array[ctypes.c_size_t]]] = {}
_EDGES: Final[dict[int, ctypes.Array[ctypes.c_size_t]]] = {}
_CONTEXT_PARAMS: Final = struct.Struct("<Qi4xQ")  # CUctxCreateParams
_ATTRIBUTE_BYTES: Final = 72  # sizeof(CUlaunchAttribute)


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_size_t),
        ("attribute_count", ctypes.c_uint),
    )


def _configuration(api: Emulator, address: int) -> SimpleNamespace:
    """Return a CUlaunchConfig; the bindings' view of it would have an unknown attribute count."""
    config = view_at(_LaunchConfig, address)
    stream = config.stream or state_of(api).thread.default_stream
    return SimpleNamespace(
        gridDimX=config.grid[0],
        gridDimY=config.grid[1],
        gridDimZ=config.grid[2],
        blockDimX=config.block[0],
        blockDimY=config.block[1],
        blockDimZ=config.block[2],
        sharedMemBytes=config.shared_bytes,
        hStream=stream,
        numAttrs=config.attribute_count,
        attrs=[
            CUlaunchAttribute(_ptr=at)
            for at in structures_at(config.attributes, _ATTRIBUTE_BYTES, config.attribute_count)
        ],
    )


@LAUNCHING("cuLaunchKernelEx")
def launch_with_config(api: Emulator, config: int, function: int, params: int, extra: int) -> int:
    """Launch a kernel, with its attributes."""
    return int(
        call(api, "cuLaunchKernelEx", _configuration(api, config), function, params, extra)[0]
    )


@LAUNCHING("cuOccupancyMaxActiveClusters")
def active_clusters(api: Emulator, result: int, function: int, config: int) -> int:
    """Return how many clusters of a configuration fit on the device."""
    return _of_clusters(api, "cuOccupancyMaxActiveClusters", result, function, config)


@LAUNCHING("cuOccupancyMaxPotentialClusterSize")
def largest_cluster(api: Emulator, result: int, function: int, config: int) -> int:
    """Return the most blocks of a cluster."""
    return _of_clusters(api, "cuOccupancyMaxPotentialClusterSize", result, function, config)


def _of_clusters(api: Emulator, name: str, result: int, function: int, config: int) -> int:
    code, number = call(api, name, function, _configuration(api, config))
    if not code:
        put_uint(result, number)
    return int(code)


@LAUNCHING("cuLaunchHostFunc_v2")
def launch_host_function(
    api: Emulator, stream: int, function: int, argument: int, mode: int
) -> int:
    """Call a function of the host; the driver's way of waiting does not matter."""
    return int(call(api, "cuLaunchHostFunc", stream, function, argument)[0])


@LAUNCHING("cuCtxCreate")
@LAUNCHING("cuCtxCreate_v2")
def create_context(api: Emulator, result: int, flags: int, device: int) -> int:
    """Create a context."""
    return passed_on(api, "cuCtxCreate", (None, flags, device), result)


@LAUNCHING("cuCtxCreate_v3")
def create_context_with_affinity(
    api: Emulator, result: int, params: int, count: int, flags: int, device: int
) -> int:
    """Create a context with CUexecAffinityParam, of which the devices support none."""
    native = _context_params(params, count, 0)
    return passed_on(api, "cuCtxCreate", (native, flags, device), result)


@LAUNCHING("cuCtxCreate_v4")
def create_context_with_parameters(
    api: Emulator, result: int, params: int, flags: int, device: int
) -> int:
    """Create a context with CUctxCreateParams."""
    if not params:
        native = None
    else:
        native = _context_params(*_CONTEXT_PARAMS.unpack(bytes_at(params, _CONTEXT_PARAMS.size)))
    return passed_on(api, "cuCtxCreate", (native, flags, device), result)


def _context_params(affinities: int, count: int, cig: int) -> SimpleNamespace:
    """Return a CUctxCreateParams; the bindings' view of it does not know its arrays."""
    return SimpleNamespace(
        execAffinityParams=affinities, numExecAffinityParams=count, cigParams=cig
    )


@LAUNCHING("cuCtxSynchronize_v2")
def synchronize_context(api: Emulator, context: int) -> int:
    """Wait for a context; null is the current one."""
    if not context:
        return int(api.cuCtxSynchronize()[0])
    code = int(call(api, "cuCtxPushCurrent", context)[0])
    if code:
        return code
    try:
        return int(api.cuCtxSynchronize()[0])
    finally:
        api.cuCtxPopCurrent()


@LAUNCHING("cuStreamGetCaptureInfo_v2")
def capture_info(
    api: Emulator,
    stream: int,
    status: int,
    identity: int,
    graph: int,
    dependencies: int,
    count: int,
) -> int:
    """Return the capture of a stream, and the nodes that the next one comes after."""
    code, is_capturing, number, owner, nodes, _, node_count = call(
        api, "cuStreamGetCaptureInfo", stream
    )
    if not code:
        put_uint(status, int(is_capturing))
        put_size(identity, number)
        put_size(graph, owner)
        put_size(count, node_count)
        handles = (ctypes.c_size_t * max(1, node_count))(*map(int, nodes or ()))
        _NODES[stream] = handles  # by the manual they are valid until the stream's next call
        put_size(dependencies, ctypes.addressof(handles))
    return int(code)


@LAUNCHING("cuStreamGetCaptureInfo_v3")
def capture_info_with_edges(
    api: Emulator,
    stream: int,
    status: int,
    identity: int,
    graph: int,
    dependencies: int,
    edges: int,
    count: int,
) -> int:
    """Same; all edges are ordinary ones, whose data are zeros."""
    code = capture_info(api, stream, status, identity, graph, dependencies, count)
    if not code:  # CUgraphEdgeData has 8 bytes, as a node's handle has
        edge_data = _EDGES[stream] = (ctypes.c_size_t * len(_NODES[stream]))()
        put_size(edges, ctypes.addressof(edge_data))
    return code


@LAUNCHING("cuThreadExchangeStreamCaptureMode")
def exchange_capture_mode(api: Emulator, mode: int) -> int:
    """Set which captures restrict a thread, and return the former value."""
    mode_field = view_at(ctypes.c_int, mode)
    code, former = call(api, "cuThreadExchangeStreamCaptureMode", mode_field.value)
    if not code:
        mode_field.value = int(former)
    return int(code)


def update_result(api: Emulator, executable: int, graph: int) -> int:
    """Return why an update failed, a CUgraphExecUpdateResult."""
    why = (
        state_of(api)
        .handles.executable(CUgraphExec(executable))
        .why_not(state_of(api).handles.graph(CUgraph(graph)))
    )
    return int(why.result) if why is not None else 0


@LAUNCHING("cuGraphExecUpdate_v2")
def update_executable(api: Emulator, executable: int, graph: int, result: int) -> int:
    """Update an executable from a graph; CUgraphExecUpdateResultInfo begins with the outcome."""
    code, _ = call(api, "cuGraphExecUpdate", executable, graph)
    if code == CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
        put_uint(result, update_result(api, executable, graph))
    elif not code:
        put_uint(result, 0)
    return int(code)
