"""Adding nodes to a graph, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import border
from ..driver._api import (
    CUdeviceptr,
    CUgraphNode,
    CUgraphNodeType as _Type,
    CUmemAllocationType,
    CUmemLocationType,
)
from ..driver.event import Event
from ..driver.in_use import failure
from ..driver.stream_core import StreamCore
from ..errors import InvalidValueError
from ..launch.config import LaunchConfig
from ..launch.module import Kernel
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer, over
from ..memory.driver_pool import out_of_memory
from ..memory.dtypes import TypedDType, checked_dtype
from ..memory.host_copy import ArrayOrBuffer, HostArray
from ..memory.layout import Shape, checked_shape
from ..memory.release import GraphMemory
from .graph_core import GraphCore
from .needs import NodeNeeds
from .node import After, GraphNode, handles_of
from .node_params import NodeWork, copy_work, event_work, fill_work, kernel_work, of_type
from .nodes import (
    AllocNode,
    CopyNode,
    EventNode,
    FillNode,
    HostNode,
    KernelNode,
    graph_work,
    host_work,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class GraphBuilding(GraphCore):
    """A graph to which nodes are added that run no other graphs of their own."""

    __slots__ = ("_default_stream",)

    # Of its context, for memory that it allocates.
    _default_stream: Callable[[], StreamCore]

    def add_kernel(
        self, kernel: Kernel, config: LaunchConfig, *args: object, after: After = ()
    ) -> KernelNode:
        """Launch a kernel.

        Args:
            kernel: of the graph's context.
            config: blocks, threads and resources.
            args: as for `Kernel.launch`.
            after: the node, or the nodes, that it comes after.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the kernel or an argument belongs to another device.
        """
        work = kernel_work(self.context, kernel, config, args)
        node = KernelNode(self, self._add(work, after))
        for attribute, value in work.attributes:
            api = self._box.api
            (code,) = api.cuGraphKernelNodeSetAttribute(node.handle, attribute, value)
            if code:
                node.remove()
                doing = f"adding kernel {kernel.name!r} with {config}"
                raise failure(api, code, "cuGraphKernelNodeSetAttribute", doing)
        return node

    def add_copy(
        self,
        dst: ArrayOrBuffer | HostArray,
        src: ArrayOrBuffer | HostArray,
        *,
        after: After = (),
    ) -> CopyNode:
        """Copy between arrays of one shape and dtype, or buffers of one size.

        Either side may be a host array, C-contiguous, which is read or written at each replay and
        belongs to the graph as long as that may run.

        Raises:
            CopyError: the two sides do not match, or a host array is strided or read-only.
            WrongDeviceError: neither side is of the graph's context.
        """
        return CopyNode(self, self._add(copy_work(self.context, dst, src), after))

    def add_fill(self, dst: ArrayOrBuffer, value: object, *, after: After = ()) -> FillNode:
        """Set every element of an array, or every byte of a buffer, to `value`.

        Raises:
            InvalidValueError: an element cannot have the value, or its bytes do not repeat after 1,
                2 or 4.
        """
        return FillNode(self, self._add(fill_work(self.context, dst, value), after))

    def add_host(
        self, function: Callable[..., object], *args: object, after: After = ()
    ) -> HostNode:
        """Call ``function(*args)`` at each replay, in a thread of the driver.

        It must make no CUDA call, of no library, and must not wait for what does. What it raises is
        reported by `sys.unraisablehook`.
        """
        return HostNode(self, self._add(host_work(function, args), after))

    def add_graph(self, child: GraphCore, *, after: After = ()) -> GraphNode:
        """Do what the nodes of another graph do, as it is now.

        Raises:
            InvalidValueError: it allocates memory.
            CudaError: it has conditional nodes, or frees memory.
        """
        return GraphNode(self, self._add(graph_work(child), after))

    def add_empty(self, *, after: After = ()) -> GraphNode:
        """Do nothing, after several nodes, so that others may come after this one."""
        return GraphNode(self, self._add(NodeWork(of_type(_Type.CU_GRAPH_NODE_TYPE_EMPTY)), after))

    def add_record(self, event: Event, *, after: After = ()) -> EventNode:
        """Record an event at this point of each replay."""
        work = event_work(self.context, event, records=True)
        return EventNode(self, self._add(work, after))

    def add_wait(self, event: Event, *, after: After = ()) -> EventNode:
        """Wait for what an event holds when the replay is launched."""
        work = event_work(self.context, event, records=False)
        return EventNode(self, self._add(work, after))

    @overload
    def add_alloc(
        self, shape: Shape, dtype: TypedDType[_ScalarT], *, after: After = ()
    ) -> AllocNode[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def add_alloc(
        self, shape: Shape, dtype: npt.DTypeLike, *, after: After = ()
    ) -> AllocNode[Any]: ...
    def add_alloc(self, shape: Shape, dtype: npt.DTypeLike, *, after: After = ()) -> AllocNode[Any]:
        """Allocate an array at each replay, not initialised; `AllocNode.array` is it.

        It has its memory from that node of a replay to the same of the next, or to `add_free`.

        Raises:
            OutOfMemoryError: there is not so much.
        """
        kind: np.dtype[Any] = checked_dtype(dtype)
        nbytes = math.prod(checked_shape(shape)) * kind.itemsize
        if not nbytes:
            raise InvalidValueError("a node allocates one byte or more")
        if nbytes > border.LARGEST:
            raise out_of_memory(self.context, nbytes, "")
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        alloc = params.alloc
        alloc.bytesize = nbytes
        pool = alloc.poolProps
        pool.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        pool.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        pool.location.id = self.context.ordinal
        handle = self._add(NodeWork(params), after)
        memory = GraphMemory(self._box.context, CUdeviceptr(int(params.alloc.dptr)), None)
        buffer = over(self._default_stream(), memory, int(memory.raw), nbytes)
        self._content.born.append(memory)
        self._touch()
        return AllocNode(self, handle, DeviceArray(buffer, shape, kind))

    def add_free(self, array: AnyDeviceArray | DeviceBuffer, *, after: After) -> GraphNode:
        """Free memory that a node of this graph allocates, after its uses.

        Raises:
            InvalidValueError: no node of the graph allocates it, or one frees it already.
        """
        memory = border.instance(
            "Graph.add_free: array", array, (DeviceArray, DeviceBuffer)
        )._memory
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEM_FREE)
        params.free.dptr = array.ptr
        handle = self._add(NodeWork(params, NodeNeeds(((memory, True),))), after)
        self._content.born = [each for each in self._content.born if each is not memory]
        return GraphNode(self, handle)

    def _add(self, work: NodeWork, after: After) -> CUgraphNode:
        """Add a node, with what it needs noted before the driver has it."""
        before = handles_of("Graph: after", self, after)
        box, nodes = self._box, self._content.nodes
        if any(work.needs):
            nodes[work] = work.needs
        add = box.api.cuGraphAddNode
        code, handle = box.context.call(add, box.raw, before, None, len(before), work.params)
        if code:
            nodes.pop(work, None)
            raise failure(box.api, code, "cuGraphAddNode", f"adding a node to {self!r}")
        if any(work.needs):
            nodes[int(handle)] = nodes.pop(work)
            self._touch()
        return handle
