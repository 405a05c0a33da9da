"""`NodeWork`: the work of a graph's node as driver parameters, and the objects that it uses.

CUDA Driver API, "Graph Management": CUgraphNodeParams.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from .. import border
from ..driver._api import (
    CUDA_MEMCPY3D,
    CUdeviceptr,
    CUgraphNodeParams,
    CUgraphNodeType as _Type,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUmemorytype,
)
from ..driver.context import BaseContext
from ..driver.event import Event
from ..errors import CopyError, InvalidValueError, LaunchConfigError, WrongDeviceError
from ..launch.config import LaunchConfig, requested_attributes
from ..launch.module_and_kernel import Kernel
from ..memory.array import DeviceArray
from ..memory.buffer import DeviceBuffer
from ..memory.copy import check_alike, open_pools
from ..memory.fill import pattern_of
from ..memory.host_copy import ArrayOrBuffer, HostArray, host_address, require_plain
from .base_graph import BaseGraph, require_graph
from .host_function import HostCall
from .needs import NodeNeeds

_NOTHING: Final = NodeNeeds()
_CAPTURE: Final = "capture a stream instead: with stream.capture(into=graph)"
_SIDES: Final = (DeviceArray, DeviceBuffer, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class NodeWork:
    """The work of a node.

    `repr` leaves out the driver's unions: that of cuda.bindings reads each member's pointers, and
    a traceback of pytest that shows them would end the process.

    Attributes:
        params: the driver's parameters, which it takes over.
        needs: the memory and objects that the node uses.
        attributes: those of a launch, beside its parameters.
        alive: the memory that the parameters point to.
    """

    params: CUgraphNodeParams = field(repr=False)
    needs: NodeNeeds = _NOTHING
    attributes: tuple[tuple[CUkernelNodeAttrID, CUkernelNodeAttrValue], ...] = field(
        default=(), repr=False
    )
    alive: object = None


def of_type(kind: _Type) -> CUgraphNodeParams:
    """Return empty parameters of a kind of node."""
    params = CUgraphNodeParams()
    params.type = kind
    return params


def kernel_work(
    context: BaseContext, kernel: Kernel, config: LaunchConfig, args: tuple[object, ...]
) -> NodeWork:
    """Return a launch.

    Raises:
        ArgumentError: an argument has the wrong count, type, range or memory space.
        LaunchConfigError: the device or the kernel cannot run the configuration.
        WrongDeviceError: the kernel or an argument belongs to another device.
    """
    border.instance_of("a node's kernel", kernel, Kernel)
    module = kernel.module
    if module.context is not context:
        raise WrongDeviceError(f"kernel {kernel.name!r} is of {module.context!r}, not {context!r}")
    handle, loaded = kernel.handle, module._handle
    kernel._check.require(config)
    if config.programmatic or config.attributes.completion_event is not None:
        raise LaunchConfigError(
            f"kernel {kernel.name!r} with {config} as a node: edges alone order a graph\n"
            f"  {_CAPTURE}"
        )
    kernel._attributes._allow_shared_of(config)
    read, block = kernel._packing.pack(args, module._default_stream())
    params = of_type(_Type.CU_GRAPH_NODE_TYPE_KERNEL)
    launch = params.kernel
    launch.func = handle
    launch.gridDimX, launch.gridDimY, launch.gridDimZ = config.grid
    launch.blockDimX, launch.blockDimY, launch.blockDimZ = config.block
    launch.sharedMemBytes = config.shared_bytes
    launch.kernelParams = block.address
    launch.ctx = context.handle
    memory = tuple(
        (argument.memory, argument.writes) for argument in read if argument.memory is not None
    )
    owners = (argument.holds for argument in read if argument.holds is not None)
    return NodeWork(params, NodeNeeds(memory, (loaded, *owners)), _attributes(config), block)


def _attributes(
    config: LaunchConfig,
) -> tuple[tuple[CUkernelNodeAttrID, CUkernelNodeAttrValue], ...]:
    attributes = []
    for number, fill in requested_attributes(config):
        value = CUkernelNodeAttrValue()
        fill(value)
        attributes.append((CUkernelNodeAttrID(int(number)), value))
    return tuple(attributes)


def copy_work(
    context: BaseContext, dst: ArrayOrBuffer | HostArray, src: ArrayOrBuffer | HostArray
) -> NodeWork:
    """A copy, which reads and writes host arrays anew at each replay.

    Raises:
        ArgumentValueError: the destination is device memory that is read-only.
        CopyError: the two sides do not match, both are on the host, the elements of one do not lie
            together, or a host array is read-only.
        WrongDeviceError: neither side is of the graph's context.
    """
    border.instance_of("a node's dst", dst, _SIDES)
    border.instance_of("a node's src", src, _SIDES)
    check_alike(dst, src)
    for side in (dst, src):
        if isinstance(side, DeviceArray) and not side.is_contiguous:
            raise CopyError(f"{side!r}: a node copies contiguous memory\n  {_CAPTURE}")
    params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEMCPY)
    params.memcpy.copyCtx = context.handle
    copy = params.memcpy.copyParams
    copy.WidthInBytes, copy.Height, copy.Depth = dst.nbytes, 1, 1
    copy.srcPitch = copy.dstPitch = dst.nbytes
    if isinstance(dst, np.ndarray):
        if isinstance(src, np.ndarray):
            raise CopyError("both sides are host arrays: NumPy copies those")
        _write_host(copy, dst)
    elif isinstance(src, np.ndarray):
        _read_host(copy, src)
    on_device = [side for side in (dst, src) if not isinstance(side, np.ndarray)]
    if all(side.context is not context for side in on_device):
        raise WrongDeviceError(f"a copy from {src!r} to {dst!r} does not belong to {context!r}")
    is_between = len({id(side.context) for side in on_device}) > 1
    if is_between:
        open_pools(*on_device)
    kind = CUmemorytype.CU_MEMORYTYPE_UNIFIED if is_between else CUmemorytype.CU_MEMORYTYPE_DEVICE
    memory = []
    if not isinstance(dst, np.ndarray):
        dst._require_writable()
        copy.dstMemoryType, copy.dstDevice = kind, CUdeviceptr(dst.ptr)
        memory.append((dst._memory, True))
    if not isinstance(src, np.ndarray):
        copy.srcMemoryType, copy.srcDevice = kind, CUdeviceptr(src.ptr)
        memory.append((src._memory, False))
    host_arrays = tuple(side for side in (dst, src) if isinstance(side, np.ndarray))
    return NodeWork(params, NodeNeeds(tuple(memory), host_arrays))


def _write_host(copy: CUDA_MEMCPY3D, dst: HostArray) -> None:
    require_plain(dst)
    if not dst.flags.writeable or not dst.flags.c_contiguous:
        raise CopyError("a node copies to a host array that is C-contiguous and writeable")
    copy.dstMemoryType, copy.dstHost = CUmemorytype.CU_MEMORYTYPE_HOST, host_address(dst)


def _read_host(copy: CUDA_MEMCPY3D, src: HostArray) -> None:
    require_plain(src)
    if not src.flags.c_contiguous:
        raise CopyError("a node copies from a host array that is C-contiguous: make it so first")
    copy.srcMemoryType, copy.srcHost = CUmemorytype.CU_MEMORYTYPE_HOST, host_address(src)


def fill_work(context: BaseContext, dst: ArrayOrBuffer, value: object) -> NodeWork:
    """Return a fill with elements whose bytes repeat after 1, 2 or 4.

    Raises:
        ArgumentValueError: the memory is read-only.
        CopyError: the elements do not lie together.
        InvalidValueError: an element cannot have the value, or no one node can set it.
        WrongDeviceError: the memory is of another context.
    """
    border.instance_of("a node's dst", dst, (DeviceArray, DeviceBuffer))
    if dst.context is not context:
        raise WrongDeviceError(f"a fill of {dst!r} does not belong to {context!r}")
    if isinstance(dst, DeviceArray) and not dst.is_contiguous:
        raise CopyError(f"{dst!r}: a node fills contiguous memory\n  {_CAPTURE}")
    dst._require_writable()
    pattern, address = pattern_of(dst, value), dst.ptr
    params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEMSET)
    fill = params.memset
    for width, code in ((1, "B"), (2, "H"), (4, "I")):
        is_aligned = address % width == len(pattern) % width == 0
        if is_aligned and pattern == pattern[:width] * (len(pattern) // width):
            fill.dst, fill.ctx = CUdeviceptr(address), context.handle
            (fill.value,) = struct.unpack(f"<{code}", pattern[:width])
            fill.elementSize, fill.width, fill.height = width, dst.nbytes // width, 1
            fill.pitch = dst.nbytes
            return NodeWork(params, NodeNeeds(((dst._memory, True),)))
    raise InvalidValueError(
        f"{border.shown(value)} in {dst!r}: a node fills with a pattern of 1, 2 or 4 bytes\n"
        f"  {_CAPTURE}"
    )


def event_work(context: BaseContext, event: Event, *, records: bool) -> NodeWork:
    """Return the recording of an event, or a wait for one."""
    border.instance_of("a node's event", event, Event)
    # The driver of CUDA 13.0 ends the process where a stream of another device waits for an event
    # of several processes.
    is_fixed = event.interprocess and event.context.ordinal != context.ordinal
    if is_fixed or (records and event.context is not context):
        raise WrongDeviceError(f"{event!r} is not of {context!r}")
    kind = _Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD if records else _Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT
    params = of_type(kind)
    (params.eventRecord if records else params.eventWait).event = event.handle
    return NodeWork(params, NodeNeeds(retained=(event._handle,)))


def host_work(function: Callable[..., object], args: tuple[object, ...]) -> NodeWork:
    """Return the call of a function of the host."""
    border.function("a node's function", function)
    call = HostCall(function, args)
    return NodeWork(call.params(), NodeNeeds(retained=(call,)))


def graph_work(child: BaseGraph) -> NodeWork:
    """Return the nodes of another graph, as it is now.

    Raises:
        InvalidValueError: that graph allocates memory that it leaves to its user.
    """
    require_graph("a node's graph", child)
    if child.allocates:
        raise InvalidValueError(f"{child!r} allocates memory, which a child graph cannot")
    needs = child._retain_needs()
    params = of_type(_Type.CU_GRAPH_NODE_TYPE_GRAPH)
    params.graph.graph = child.handle
    objects = tuple(item for part in child._content.parts() for item in part.retained)
    return NodeWork(params, NodeNeeds(needs.memory, objects))
