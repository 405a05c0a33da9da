"""Kernel launches.

CUDA Driver API: "Execution Control". A captured launch copies its parameters when it is captured.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ptx.emulate.model.grid_dependency import GridDependency

from ...driver._api import (
    CUfunction,
    CUlaunchAttributeID,
    CUlaunchConfig,
    CUlimit,
    CUresult,
    CUstream,
)
from ..graphs import Work
from ..host_memory import HostRange
from ..launch import KernelCall, check, execute, execute_in_turns, read_parameters
from ..modules import NO_CLUSTER, Function, Shape
from ..node_kind import NodeKind, Run
from ..refusal import OK, Refusal, invalid_handle
from .call import call
from .library import LibraryCalls

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

_STACK: Final = int(CUlimit.CU_LIMIT_STACK_SIZE)
_EARLY: Final = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_NEEDS_EVENT: Final = (
    CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
    CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
    CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
)


class LaunchCalls(LibraryCalls):
    """Kernel launches."""

    @call()
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
        self._launch(f, shape, h_stream, kernel_params, 0)
        return OK

    @call()
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
        self._launch(f, shape, h_stream, kernel_params, extra)
        return OK

    @call()
    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, f: CUfunction, kernel_params: int, extra: int, /
    ) -> tuple[CUresult]:
        """Launch a kernel, cooperatively or in clusters if attributes ask for it.

        Attributes that only hint at scheduling have no effect; those with events are not supported.
        """
        cooperative, cluster, is_early = False, NO_CLUSTER, False
        for attribute in config.attrs[: config.numAttrs]:
            if attribute.id == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                cooperative = bool(attribute.value.cooperative)
            elif attribute.id == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                extents = attribute.value.clusterDim
                cluster = (extents.x, extents.y, extents.z)
            elif attribute.id == _EARLY:
                is_early = bool(attribute.value.programmaticStreamSerializationAllowed)
            elif attribute.id in _NEEDS_EVENT:
                raise Refusal(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED,
                    f"the emulator takes no launch attribute {int(attribute.id)}",
                )
        shape = Shape(
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            config.sharedMemBytes,
            cooperative,
            cluster,
        )
        self._launch(f, shape, config.hStream, kernel_params, extra, is_early=is_early)
        return OK

    def _launch(
        self, handle: CUfunction, shape: Shape, h_stream: CUstream, kernel_params: int, extra: int,
        *, is_early: bool = False,
    ) -> None:  # fmt: skip
        stream = self._stream(h_stream)
        function = self._function(handle, stream.context)
        context = function.module.context
        if stream.context is not context:
            raise invalid_handle(
                f"invalid resource handle: kernel {function.shown} and the stream belong to "
                "different contexts"
            )
        try:
            shape = _checked(function, shape)
            ready = KernelCall(function, shape, read_parameters(function, kernel_params, extra))
        except Refusal:
            if stream.capture is not None:
                stream.capture.invalid = True
            raise
        queued = stream.capture is None and self._timeline is not None
        dependency = GridDependency() if queued else None
        run = self._running(ready, dependency)
        host = () if self._accesses is None else self._host_memory_of(ready.parameters)
        if stream.capture is None:
            self._submit(
                stream, NodeKind.KERNEL, run, host, dependency=dependency, is_early=is_early
            )
        else:
            work = Work(NodeKind.KERNEL, run, host=host, launch=ready)
            with self._lock:
                self._refuse_if_invalid(stream.capture)
                stream.capture.add_work(stream, work)

    def _running(self, ready: KernelCall, dependency: GridDependency | None = None) -> Run:
        """What runs a kernel."""
        function, limits = ready.function, self.limits
        shape, parameters = ready.shape, ready.parameters
        device = function.module.context.device
        if self._accesses is not None:
            limits = replace(limits, accessed=self._accesses.launched)
        stack = function.module.context.settings.get(_STACK)
        if stack:
            limits = replace(limits, stack_bytes=stack)

        def run() -> Turns | None:
            order = self._order.of_launch(self._launches)
            if order is None:
                execute(function, shape, parameters, device, limits)
                return None
            own = limits if dependency is None else replace(limits, dependency=dependency)
            turns = execute_in_turns(function, shape, parameters, device, own, order)
            return turns if dependency is None else _after_what_is_ahead(turns, dependency)

        return run

    def _host_memory_of(self, parameters: bytes) -> tuple[HostRange, ...]:
        """The memory of the host that parameters may point to; whether it is used, nobody knows."""
        words = struct.unpack_from(f"{len(parameters) // 8}Q", parameters)
        found = {piece.address: piece for word in words if (piece := self._host.find(word))}
        return tuple(
            HostRange(piece.address, piece.nbytes, is_written=False, piece=piece, is_watched=False)
            for piece in found.values()
        )

    def _kernel_work(self, function: Function, shape: Shape, parameters: bytes) -> Work:
        """What a node does that launches a kernel.

        Raises:
            Refusal: as the launch would.
        """
        ready = KernelCall(function, _checked(function, shape), parameters)
        host = () if self._accesses is None else self._host_memory_of(parameters)
        return Work(NodeKind.KERNEL, self._running(ready), host=host, launch=ready)


def _after_what_is_ahead(turns: Turns, dependency: GridDependency) -> Turns:
    """The turns of a launch, which has not ended before the one that it depends on has."""
    yield from turns
    while not dependency.may_go_on:
        yield True


def _checked(function: Function, shape: Shape) -> Shape:
    """The shape of a launch that the driver would take, with the clusters of the kernel's own.

    Raises:
        Refusal: it would not.
    """
    if shape.cluster == NO_CLUSTER and any(function.cluster):
        shape = replace(shape, cluster=function.cluster)
    check(function, shape, function.module.context.device)
    return shape
