"""Nodes of graphs that may be changed, each kind with what it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from .. import border
from ..driver._api import CUgraphNode, CUgraphNodeType, CUresult
from ..driver.event import Event
from ..errors import InvalidValueError
from ..launch.config import LaunchConfig
from ..launch.module import Kernel
from ..memory.array import DeviceArray
from ..memory.host_copy import ArrayOrBuffer, HostArray
from .executable import GraphExec
from .graph_box import ExecBox
from .graph_core import GraphCore
from .host_function import HostCall
from .needs import NodeNeeds
from .node import GraphNode, NodeKind
from .node_params import NodeWork, copy_work, event_work, fill_work, kernel_work, of_type

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class _Changeable(GraphNode):
    """A node whose parameters may be replaced, in its graph and in executables."""

    __slots__ = ()

    def _set(self, work: NodeWork) -> None:
        box = self.graph._box
        api = box.api

        def change(handle: CUgraphNode) -> tuple[CUresult]:
            # Without a current context, the driver of CUDA 13.0 ends the process at a kernel's.
            (code,) = box.context.call(api.cuGraphNodeSetParams, handle, work.params)
            for attribute, value in () if code else work.attributes:
                (code,) = api.cuGraphKernelNodeSetAttribute(handle, attribute, value)
                if code:
                    break
            return (code,)

        self._change(work.needs, change)

    def _set_in(self, executable: GraphExec, work: NodeWork) -> None:
        border.instance("GraphNode.update_in: executable", executable, GraphExec)
        handle = self.handle

        def change(box: ExecBox) -> CUresult:
            set_params = box.api.cuGraphExecNodeSetParams
            (code,) = box.context.call(set_params, box.raw, handle, work.params)
            return code

        executable._change(self, work.needs, change)


class KernelNode(_Changeable):
    """A node that launches a kernel."""

    __slots__ = ()

    def update(self, kernel: Kernel, config: LaunchConfig, *args: object) -> None:
        """Launch this, in what is instantiated from now on.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
        """
        self._set(kernel_work(self.graph.context, kernel, config, args))

    def update_in(
        self, executable: GraphExec, kernel: Kernel, config: LaunchConfig, *args: object
    ) -> None:
        """Launch this in one executable of the graph, from its next launch on.

        Clusters and cooperation stay as the graph has them.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            InvalidValueError: the executable was made of another graph.
        """
        self._set_in(executable, kernel_work(self.graph.context, kernel, config, args))


class CopyNode(_Changeable):
    """A node that copies."""

    __slots__ = ()

    def update(self, dst: ArrayOrBuffer | HostArray, src: ArrayOrBuffer | HostArray) -> None:
        """Copy this, in what is instantiated from now on."""
        self._set(copy_work(self.graph.context, dst, src))

    def update_in(
        self,
        executable: GraphExec,
        dst: ArrayOrBuffer | HostArray,
        src: ArrayOrBuffer | HostArray,
    ) -> None:
        """Copy this in one executable of the graph, from its next launch on."""
        self._set_in(executable, copy_work(self.graph.context, dst, src))


class FillNode(_Changeable):
    """A node that fills."""

    __slots__ = ()

    def update(self, dst: ArrayOrBuffer, value: object) -> None:
        """Fill this, in what is instantiated from now on."""
        self._set(fill_work(self.graph.context, dst, value))

    def update_in(self, executable: GraphExec, dst: ArrayOrBuffer, value: object) -> None:
        """Fill this in one executable of the graph, from its next launch on."""
        self._set_in(executable, fill_work(self.graph.context, dst, value))


class HostNode(_Changeable):
    """A node that calls a function of the host."""

    __slots__ = ()

    def update(self, function: Callable[..., object], *args: object) -> None:
        """Call this, in what is instantiated from now on."""
        self._set(host_work(function, args))

    def update_in(
        self, executable: GraphExec, function: Callable[..., object], *args: object
    ) -> None:
        """Call this in one executable of the graph, from its next launch on."""
        self._set_in(executable, host_work(function, args))


class EventNode(_Changeable):
    """A node that records an event, or waits for one."""

    __slots__ = ()

    def update(self, event: Event) -> None:
        """Take this event, in what is instantiated from now on."""
        self._set(self._work(event))

    def update_in(self, executable: GraphExec, event: Event) -> None:
        """Take this event in one executable of the graph, from its next launch on."""
        self._set_in(executable, self._work(event))

    def _work(self, event: Event) -> NodeWork:
        records = self.kind is NodeKind.RECORD
        return event_work(self.graph.context, event, records=records)


class AllocNode(GraphNode, Generic[_ScalarT]):
    """A node that allocates memory, at the same address at each launch.

    Attributes:
        array: the memory.
    """

    __slots__ = ("array",)

    def __init__(self, graph: GraphCore, handle: CUgraphNode, array: DeviceArray[_ScalarT]) -> None:
        super().__init__(graph, handle)
        self.array: DeviceArray[_ScalarT] = array


def host_work(function: Callable[..., object], args: tuple[object, ...]) -> NodeWork:
    """A call of a function of the host."""
    border.function("a node's function", function)
    call = HostCall(function, args)
    return NodeWork(call.params(), NodeNeeds(kept=(call,)))


def graph_work(child: GraphCore) -> NodeWork:
    """All nodes of another graph, as it is now.

    Raises:
        InvalidValueError: it allocates memory that it leaves to its user.
    """
    border.instance("a node's graph", child, GraphCore)
    if child.allocates:
        raise InvalidValueError(f"{child!r} allocates memory, which a child graph cannot")
    needs = child._settle()
    params = of_type(CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH)
    params.graph.graph = child.handle
    kept = tuple(each for part in child._content.parts() for each in part.kept)
    return NodeWork(params, NodeNeeds(needs.memory, kept))
