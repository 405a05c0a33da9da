"""The kinds of graph nodes whose work can be replaced, in their graph or in an executable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue, CUresult
from ..driver.device import require_version
from ..driver.driver_selection import failure
from ..driver.event import Event
from ..launch.config import LaunchConfig
from ..launch.module_and_kernel import Kernel
from ..memory.array import DeviceArray
from ..memory.host_copy import ArrayOrBuffer, HostArray
from .base_graph import BaseGraph
from .executable import ExecHandle, GraphExec
from .node import GraphNode, NodeKind
from .node_work import (
    NodeWork,
    copy_work,
    event_work,
    fill_work,
    host_work,
    kernel_work,
)

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_UPDATABLE: Final = CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE


class _Changeable(GraphNode):
    """A node whose work can be replaced, in its graph and in executables."""

    __slots__ = ()

    def _set(self, work: NodeWork) -> None:
        graph = self.graph._handle
        api = graph.api

        def change(handle: CUgraphNode) -> tuple[CUresult]:
            # Without a current context, the driver of CUDA 13.0 ends the process at a kernel's.
            (code,) = graph.context.call(api.cuGraphNodeSetParams, handle, work.params)
            for attribute, value in () if code else work.attributes:
                (code,) = api.cuGraphKernelNodeSetAttribute(handle, attribute, value)
                if code:
                    break
            return (code,)

        self._change(work.needs, change)

    def _set_in(self, executable: GraphExec, work: NodeWork) -> None:
        border.instance_of("GraphNode.update_in: executable", executable, GraphExec)
        handle = self.handle

        def change(executable: ExecHandle) -> CUresult:
            set_params = executable.api.cuGraphExecNodeSetParams
            (code,) = executable.context.call(set_params, executable.raw, handle, work.params)
            return code

        executable._change(self, work.needs, change)


class KernelNode(_Changeable):
    """A node that launches a kernel."""

    __slots__ = ()

    def update(self, kernel: Kernel, config: LaunchConfig, *args: object) -> None:
        """Launch another kernel in executables that are instantiated from now on.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
        """
        self._set(kernel_work(self.graph.context, kernel, config, args))

    def update_in(
        self, executable: GraphExec, kernel: Kernel, config: LaunchConfig, *args: object
    ) -> None:
        """Launch another kernel in one executable of the graph, from its next launch on.

        Clusters and cooperation stay as the graph has them.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            InvalidValueError: the executable was made of another graph.
        """
        self._set_in(executable, kernel_work(self.graph.context, kernel, config, args))

    def make_updatable(self) -> int:
        """Let kernels of the graph update the node, and return its handle for them.

        Pass the handle as a 64-bit integer: it is a cudaGraphDeviceNode_t, whose functions are in
        libcudadevrt (`Context.link`). Upload the graph before each launch that may update it, and
        after each `update_in`. From now on the graph can have one executable at a time, it cannot
        be cloned, `GraphExec.update` rejects it, and the node cannot be removed. Another call
        returns the same handle.

        Raises:
            UnsupportedError: the driver is older than CUDA 12.4.
            CudaError: the driver reported an error.

        Source: cudaGraphKernelNodeUpdatesApply in the CUDA Runtime API manual.
        """
        require_version("a node that kernels update", (12, 4))
        graph, value = self.graph._handle, CUkernelNodeAttrValue()
        value.deviceUpdatableKernelNode.deviceUpdatable = 1
        change = graph.api.cuGraphKernelNodeSetAttribute
        (code,) = graph.context.call(change, self.handle, _UPDATABLE, value)
        if code:
            doing = f"letting kernels update {self!r}"
            raise failure(graph.api, code, "cuGraphKernelNodeSetAttribute", doing)
        return int(value.deviceUpdatableKernelNode.devNode)


class CopyNode(_Changeable):
    """A node that copies."""

    __slots__ = ()

    def update(self, dst: ArrayOrBuffer | HostArray, src: ArrayOrBuffer | HostArray) -> None:
        """Copy between other arrays in executables that are instantiated from now on."""
        self._set(copy_work(self.graph.context, dst, src))

    def update_in(
        self,
        executable: GraphExec,
        dst: ArrayOrBuffer | HostArray,
        src: ArrayOrBuffer | HostArray,
    ) -> None:
        """Copy between other arrays in one executable of the graph, from its next launch on."""
        self._set_in(executable, copy_work(self.graph.context, dst, src))


class FillNode(_Changeable):
    """A node that fills."""

    __slots__ = ()

    def update(self, dst: ArrayOrBuffer, value: object) -> None:
        """Fill another array in executables that are instantiated from now on."""
        self._set(fill_work(self.graph.context, dst, value))

    def update_in(self, executable: GraphExec, dst: ArrayOrBuffer, value: object) -> None:
        """Fill another array in one executable of the graph, from its next launch on."""
        self._set_in(executable, fill_work(self.graph.context, dst, value))


class HostNode(_Changeable):
    """A node that calls a function of the host."""

    __slots__ = ()

    def update(self, function: Callable[..., object], *args: object) -> None:
        """Call another function in executables that are instantiated from now on."""
        self._set(host_work(function, args))

    def update_in(
        self, executable: GraphExec, function: Callable[..., object], *args: object
    ) -> None:
        """Call another function in one executable of the graph, from its next launch on."""
        self._set_in(executable, host_work(function, args))


class EventNode(_Changeable):
    """A node that records an event, or waits for one."""

    __slots__ = ()

    def update(self, event: Event) -> None:
        """Use another event in executables that are instantiated from now on."""
        self._set(self._work(event))

    def update_in(self, executable: GraphExec, event: Event) -> None:
        """Use another event in one executable of the graph, from its next launch on."""
        self._set_in(executable, self._work(event))

    def _work(self, event: Event) -> NodeWork:
        records = self.kind is NodeKind.RECORD
        return event_work(self.graph.context, event, records=records)


class AllocNode(GraphNode, Generic[_ScalarT]):
    """A node that allocates memory, at the same address at each launch.

    Attributes:
        array: the memory.
    """

    __slots__ = ("_array",)

    array: ReadOnly[DeviceArray[_ScalarT]] = ReadOnly("_array")

    def __init__(self, graph: BaseGraph, handle: CUgraphNode, array: DeviceArray[_ScalarT]) -> None:
        super().__init__(graph, handle)
        self._array: DeviceArray[_ScalarT] = array
