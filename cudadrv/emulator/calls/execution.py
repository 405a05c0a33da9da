"""Kernels as functions, their launches and occupancy, and calls of host functions.

CUDA Driver API: "Execution Control", "Occupancy". A captured launch copies its parameters when it
is captured.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ptx.emulate.model.grid_dependency import GridDependency

from ...driver._api import (
    CUevent,
    CUfunction,
    CUfunction_attribute,
    CUlaunchAttributeID,
    CUlaunchAttributeValue,
    CUlaunchConfig,
    CUlimit,
    CUmodule,
    CUresult,
    CUstream,
)
from ..call_error import (
    OK,
    SUCCESS,
    CallError,
    invalid_handle,
    invalid_value,
    not_supported,
)
from ..driver_state import DriverState
from ..graphs import Node, Work
from ..host_memory import HostRange
from ..launch import (
    CLUSTER_SIZE_MODE,
    SHARED_MEMORY_MODE,
    KernelCall,
    check,
    clusters_fit,
    execute,
    execute_in_turns,
    largest_cluster,
    read_parameters,
)
from ..modules import (
    KernelFunction,
    Shape,
    attribute_of,
    parameter_of,
    resident_blocks,
    set_attribute,
)
from ..node_kind import NodeKind, Run
from .call import DriverCalls, call
from .event import record
from .library import function_of

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns


VALUE_BYTES: Final = 64  # of a CUlaunchAttributeValue
_STACK: Final = int(CUlimit.CU_LIMIT_STACK_SIZE)
_EARLY: Final = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_BEGUN: Final = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
NVLINK_CENTRIC: Final = 16  # CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
# The greatest value of attributes that older drivers reject, by the version of CUDA that has it.
_NEWER: Final = {
    NVLINK_CENTRIC: {(13, 0): 1},
    CLUSTER_SIZE_MODE: {(13, 2): 2},
    SHARED_MEMORY_MODE: {(13, 2): 2, (13, 4): 4},
}
_UPDATABLE: Final = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE


class ExecutionCalls(DriverCalls):
    """Kernels as functions, their launches, and calls of host functions."""

    @call
    def cuFuncGetName(self, hfunc: CUfunction, /) -> tuple[CUresult, bytes | None]:
        """Return the kernel's name in the PTX."""
        if not int(hfunc):
            raise invalid_value("the function is null")
        return SUCCESS, function_of(self._state, hfunc).name.encode()

    @call
    def cuFuncGetAttribute(
        self, attrib: CUfunction_attribute, hfunc: CUfunction, /
    ) -> tuple[CUresult, int]:
        """Return an attribute; registers are an estimate."""
        return SUCCESS, attribute_of(function_of(self._state, hfunc), int(attrib))

    @call
    def cuFuncSetAttribute(
        self, hfunc: CUfunction, attrib: CUfunction_attribute, value: int, /
    ) -> tuple[CUresult]:
        """Set a settable attribute: the dynamic shared memory limit restricts launches."""
        set_attribute(function_of(self._state, hfunc), int(attrib), value)
        return OK

    @call
    def cuFuncGetParamInfo(
        self, func: CUfunction, param_index: int, /
    ) -> tuple[CUresult, int, int]:
        """Return offset and size of a parameter."""
        if not int(func):
            raise invalid_value("the function is null")
        return SUCCESS, *parameter_of(function_of(self._state, func), param_index)

    @call
    def cuOccupancyMaxPotentialClusterSize(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]:
        """Return the most blocks of a cluster; 0 if a block could not be launched."""
        function = function_of(self._state, func)
        self._state.handles.current()
        shape, device = self._shape_of(config), function.module.context.device
        fits = clusters_fit(function, shape, device)
        return SUCCESS, largest_cluster(function, shape, device) if fits else 0

    @call
    def cuOccupancyMaxActiveClusters(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]:
        """Return the clusters that fit on the device, whose multiprocessors are one group here.

        A launch without clusters has none.
        """
        function = function_of(self._state, func)
        self._state.handles.current()
        shape, device = self._shape_of(config), function.module.context.device
        cluster = function.cluster_of(shape)
        if not clusters_fit(function, shape, device) or cluster is None:
            return SUCCESS, 0
        threads = math.prod(shape.block)
        blocks = resident_blocks(function, device, threads, shape.shared_bytes)
        return SUCCESS, blocks * device.profile.sm_count // math.prod(cluster)

    def _shape_of(self, config: CUlaunchConfig) -> Shape:
        """Return the shape of a launch that a query is about."""
        grid = config.gridDimX, config.gridDimY, config.gridDimZ
        block = config.blockDimX, config.blockDimY, config.blockDimZ
        shape = Shape(grid, block, config.sharedMemBytes)
        for attribute in config.attrs[: config.numAttrs]:
            version = self._state.process.driver_version
            shape = with_attribute(shape, attribute.id, attribute.value, version)
        return shape

    @call
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, /
    ) -> tuple[CUresult, int]:
        """Return the blocks that fit on a multiprocessor; 0 if a block could not be launched."""
        function = function_of(self._state, func)
        self._state.handles.current()
        if block_size < 1:
            raise invalid_value(f"a block of {block_size} threads")
        if dynamic_smem_size > function.max_dynamic:
            return SUCCESS, 0
        device = function.module.context.device
        return SUCCESS, resident_blocks(function, device, block_size, dynamic_smem_size)

    @call
    def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, flags: int, /
    ) -> tuple[CUresult, int]:
        """Same; the flag of caching overrides has no effect."""
        if flags & ~1:
            raise invalid_value(f"invalid occupancy flags {flags:#x}")
        return self.cuOccupancyMaxActiveBlocksPerMultiprocessor(func, block_size, dynamic_smem_size)

    @call
    def cuOccupancyAvailableDynamicSMemPerBlock(
        self, func: CUfunction, num_blocks: int, block_size: int, /
    ) -> tuple[CUresult, int]:
        """Return the dynamic shared memory per block with this many blocks on a multiprocessor."""
        function = function_of(self._state, func)
        if num_blocks < 1 or block_size < 1:
            raise invalid_value(f"{num_blocks} blocks of {block_size} threads")
        low, high = 0, function.max_dynamic
        while low < high:
            middle = (low + high + 1) // 2
            code, blocks = self.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                func, block_size, middle
            )
            if code:
                return code, blocks
            low, high = (middle, high) if blocks >= num_blocks else (low, middle - 1)
        return SUCCESS, low

    @call
    def cuFuncGetParamCount(self, func: CUfunction, /) -> tuple[CUresult, int]:
        """Return how many parameters a kernel has."""
        return SUCCESS, len(function_of(self._state, func).signature.params)

    @call
    def cuFuncGetModule(self, hfunc: CUfunction, /) -> tuple[CUresult, CUmodule]:
        """Return the kernel's module."""
        return SUCCESS, CUmodule(function_of(self._state, hfunc).module.handle)

    @call
    def cuFuncSetCacheConfig(self, hfunc: CUfunction, config: int, /) -> tuple[CUresult]:
        """Set the memory that a kernel prefers; without effect."""
        function_of(self._state, hfunc)
        if not 0 <= int(config) <= 3:
            raise invalid_value(f"there is no cache configuration {int(config)}")
        return OK

    @call
    def cuLaunchCooperativeKernel(
        self,
        f: CUfunction,
        grid_dim_x: int,
        grid_dim_y: int,
        grid_dim_z: int,
        block_dim_x: int,
        block_dim_y: int,
        block_dim_z: int,
        shared_mem_bytes: int,
        h_stream: CUstream,
        kernel_params: int,
        /,
    ) -> tuple[CUresult]:
        """Launch a kernel whose blocks may wait for each other."""
        shape = Shape(
            (grid_dim_x, grid_dim_y, grid_dim_z),
            (block_dim_x, block_dim_y, block_dim_z),
            shared_mem_bytes,
            cooperative=True,
        )
        submit_launch(self._state, f, shape, h_stream, kernel_params, 0)
        return OK

    @call
    def cuLaunchKernel(
        self,
        f: CUfunction,
        grid_dim_x: int,
        grid_dim_y: int,
        grid_dim_z: int,
        block_dim_x: int,
        block_dim_y: int,
        block_dim_z: int,
        shared_mem_bytes: int,
        h_stream: CUstream,
        kernel_params: int,
        extra: int,
        /,
    ) -> tuple[CUresult]:
        """Launch a kernel."""
        shape = Shape(
            (grid_dim_x, grid_dim_y, grid_dim_z),
            (block_dim_x, block_dim_y, block_dim_z),
            shared_mem_bytes,
        )
        submit_launch(self._state, f, shape, h_stream, kernel_params, extra)
        return OK

    @call
    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, f: CUfunction, kernel_params: int, extra: int, /
    ) -> tuple[CUresult]:
        """Launch a kernel, cooperatively or in clusters if attributes request it.

        A launch completion event is recorded before the kernel, the earliest time at which a GPU
        may complete it. So work after it cannot rely on the kernel's results. Attributes that only
        hint at scheduling have no effect.
        """
        is_early, event = False, 0
        updatable: CUlaunchAttributeValue | None = None
        shape = Shape(
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            config.sharedMemBytes,
        )
        for attribute in config.attrs[: config.numAttrs]:
            if attribute.id == _EARLY:
                is_early = bool(attribute.value.programmaticStreamSerializationAllowed)
            elif attribute.id == _BEGUN:
                event = int(attribute.value.launchCompletionEvent.event)
            elif attribute.id == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                raise not_supported("the emulator takes no programmatic event of a launch")
            elif attribute.id == _UPDATABLE:
                self._check_updatable(attribute.value, config.hStream)
                updatable = attribute.value
            else:
                version = self._state.process.driver_version
                shape = with_attribute(shape, attribute.id, attribute.value, version)
        node = submit_launch(
            self._state,
            f,
            shape,
            config.hStream,
            kernel_params,
            extra,
            is_early=is_early,
            completion_event=event,
        )
        if updatable is not None and node is not None and requested_update(updatable):
            let_kernels_update(self._state, node, updatable)
        return OK

    def _check_updatable(self, value: CUlaunchAttributeValue, h_stream: CUstream) -> None:
        """Check the attribute of a node that kernels update (codes of driver 580)."""
        if self._state.handles.stream(h_stream).capture is None:
            raise not_supported("a launch has a node that kernels update in a capture only")
        if requested_update(value) and int(value.deviceUpdatableKernelNode.devNode):
            raise invalid_value("the attribute has the handle of another launch's node")

    @call
    def cuLaunchHostFunc(self, h_stream: CUstream, fn: int, user_data: int, /) -> tuple[CUresult]:
        """Call a host function at this point of the stream."""
        stream = self._state.handles.stream(h_stream)
        function, argument = int(fn), int(user_data)
        if not function:
            raise invalid_value("the host function is null")
        self._state.operations.submit(
            stream, NodeKind.HOST, lambda: self._state.thread.call_host(function, argument)
        )
        if stream.capture is not None:
            stream.capture.set_params(stream, host_params(function, argument))
        return OK


def submit_launch(
    driver: DriverState,
    handle: CUfunction,
    shape: Shape,
    h_stream: CUstream,
    kernel_params: int,
    extra: int,
    *,
    is_early: bool = False,
    completion_event: int = 0,
) -> Node | None:
    """Run, queue or record a launch, and return the node of a recorded one.

    `completion_event` is 0 if the launch has none.
    """
    stream = driver.handles.stream(h_stream)
    function = function_of(driver, handle, stream.context)
    context = function.module.context
    if stream.context is not context:
        raise invalid_handle(
            f"invalid resource handle: kernel {function.shown} and the stream belong to "
            "different contexts"
        )
    try:
        check(function, shape, context.device, is_node=stream.capture is not None)
        if stream.capture is not None:  # the node has the kernel's own cluster, as a GPU's
            shape = shape._replace(cluster=function.cluster_of(shape))
        parameters = read_parameters(
            function, kernel_params, extra, is_checked=driver.process.has_foreign_callers
        )
        ready = KernelCall(function, shape, parameters)
    except CallError:
        if stream.capture is not None:
            stream.capture.invalid = True
        raise
    queued = stream.capture is None and driver.operations.timeline is not None
    dependency = GridDependency() if queued else None
    run = _running(driver, ready, dependency)
    host = () if driver.operations.accesses is None else _host_memory_of(driver, ready.parameters)
    if completion_event:
        record(driver, CUevent(completion_event), stream)
    if stream.capture is None:
        driver.operations.submit(
            stream, NodeKind.KERNEL, run, host, dependency=dependency, is_early=is_early
        )
        return None
    work = Work(NodeKind.KERNEL, run, host=host, launch=ready)
    with driver.lock:
        driver.captures.reject_if_invalid(stream.capture)
        return stream.capture.add_work(stream, work)


def with_attribute(
    shape: Shape, attribute: int, value: CUlaunchAttributeValue, version: tuple[int, int]
) -> Shape:
    """Return a launch's shape with an attribute; most have no effect here.

    Raises:
        CallError: a driver of this version has no such attribute, or not this value.
    """
    if attribute == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return shape._replace(cooperative=bool(value.cooperative))
    if attribute == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        extents = value.clusterDim
        return shape._replace(cluster=(extents.x, extents.y, extents.z))
    raw = ctypes.string_at(value.getPtr(), VALUE_BYTES)
    newer = _NEWER.get(int(attribute))
    if newer is not None:
        _check_newer(int(attribute), int.from_bytes(raw[:4], sys.byteorder), newer, version)
    hints = dict(shape.hints) | {int(attribute): raw}
    return shape._replace(hints=tuple(hints.items()))


def _check_newer(
    attribute: int, value: int, greatest: dict[tuple[int, int], int], version: tuple[int, int]
) -> None:
    known = [most for since, most in greatest.items() if since <= version]
    if not known or value > max(known):
        raise invalid_value(
            f"the driver of CUDA {version[0]}.{version[1]} has no launch attribute {attribute} of "
            f"value {value}"
        )


def _running(
    driver: DriverState, ready: KernelCall, dependency: GridDependency | None = None
) -> Run:
    """Return a function that runs the kernel."""
    limits = driver.limits
    if driver.operations.accesses is not None:
        limits = replace(limits, accessed=driver.operations.accesses.launched)
    stack = ready.function.module.context.settings.get(_STACK)
    if stack:
        limits = replace(limits, stack_bytes=stack)

    def run() -> Turns | None:
        order = driver.operations.schedule.of_launch(driver.operations.launches)
        if order is None:
            execute(ready, limits)
            return None
        launch_limits = limits if dependency is None else replace(limits, dependency=dependency)
        turns = execute_in_turns(ready, launch_limits, order)
        return turns if dependency is None else _finish_after_dependency(turns, dependency)

    return run


def _host_memory_of(driver: DriverState, parameters: bytes) -> tuple[HostRange, ...]:
    """Return the host memory that parameters may point to; its use is unknown."""
    words = struct.unpack_from(f"{len(parameters) // 8}Q", parameters)
    pieces = {piece.address: piece for word in words if (piece := driver.memory.host.find(word))}
    return tuple(
        HostRange(piece.address, piece.nbytes, is_written=False, piece=piece, is_watched=False)
        for piece in pieces.values()
    )


def kernel_work(
    driver: DriverState, function: KernelFunction, shape: Shape, parameters: bytes
) -> Work:
    """Return the work of a node that launches a kernel.

    Raises:
        CallError: as the launch would.
    """
    check(function, shape, function.module.context.device, is_node=True)
    ready = KernelCall(function, shape, parameters)
    host = () if driver.operations.accesses is None else _host_memory_of(driver, parameters)
    return Work(NodeKind.KERNEL, _running(driver, ready), host=host, launch=ready)


def _finish_after_dependency(turns: Turns, dependency: GridDependency) -> Turns:
    """Yield the turns of a launch, which ends after its dependency."""
    yield from turns
    while not dependency.may_go_on:
        yield True


def requested_update(value: CUlaunchAttributeValue) -> int:
    """Return whether the value requests a node that kernels update: 1 or 0.

    Raises:
        CallError: it is another number.
    """
    requested = int(value.deviceUpdatableKernelNode.deviceUpdatable)
    if requested not in (0, 1):
        raise invalid_value(f"a node is updatable or not: 1 or 0, not {requested}")
    return requested


def let_kernels_update(driver: DriverState, node: Node, value: CUlaunchAttributeValue) -> None:
    """Let kernels update a node, and write its handle for them to the value."""
    node.device_handle = node.device_handle or driver.handles.new()
    value.deviceUpdatableKernelNode.devNode = node.device_handle


def host_params(function: int, argument: int) -> bytes:
    """Return a CUDA_HOST_NODE_PARAMS."""
    return struct.pack("<QQ", function, argument)
