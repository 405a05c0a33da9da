"""The handles of an emulator: a table for each kind of object, and look-ups for calls.

The tables need no lock: each look-up or removal is one operation of a dict. A removal that must
happen once is done under the lock of the removed object. Handles are numbers that are never
reused, so that a dead one refers to nothing. Only a primary context has one permanent handle, as on
a GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..driver._api import (
    CUarray,
    CUcontext,
    CUevent,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUresult,
    CUstream,
)
from .call_error import CallError, invalid_handle, invalid_value
from .contexts import Context, SmRange
from .events import Event
from .graphs import Conditions, Graph, Node, UserObject
from .modules import KernelFunction, Library, LibraryKernel, Module, PendingLink
from .native_thread import thread_number
from .streams import LEGACY_HANDLE, PER_THREAD_HANDLE, Stream
from .thread import CallingThread
from .workqueues import Workqueues

if TYPE_CHECKING:
    from .arrays import Array, MipmappedArray
    from .executables import Executable
    from .external_resources import ExternalMemory, ExternalSemaphore
    from .leaks import LeakWatch


class HandleTables:
    """The objects that have handles, by kind.

    Attributes:
        numbers: the handles of later objects.
        new: returns the next of them.
        default_streams: by context and thread; thread 0 is the legacy stream.
        primaries: primary contexts, by the ordinal of their devices.
        texture_owners: contexts of textures and surfaces, which are in the models of their devices.
    """

    def __init__(self, serial: int, thread: CallingThread) -> None:
        """`serial` differs among emulators, so that another one's handle is rejected."""
        self._thread = thread
        self.numbers: Iterator[int] = itertools.count((serial + 1) << 32, 16)
        self.new: Callable[[], int] = self.numbers.__next__
        # Context handles end in 8, so a destroyed context is recognised without storing it.
        self._first_context = self._next_context = (serial + 1) << 32 | 8
        self.contexts: dict[int, Context] = {}
        self.primaries: dict[int, Context] = {}
        self.streams: dict[int, Stream] = {}
        self.default_streams: dict[tuple[Context, int], Stream] = {}
        self.events: dict[int, Event] = {}
        self.modules: dict[int, Module] = {}
        self.libraries: dict[int, Library] = {}
        self.kernels: dict[int, LibraryKernel] = {}
        self.links: dict[int, PendingLink] = {}
        self.external_memory: dict[int, ExternalMemory] = {}
        self.external_semaphores: dict[int, ExternalSemaphore] = {}
        self.green: dict[int, Context] = {}
        self.descriptions: dict[int, tuple[tuple[SmRange, ...], Workqueues | None]] = {}
        self.functions: dict[int, KernelFunction] = {}
        self.graphs: dict[int, Graph] = {}
        self.nodes: dict[int, Node] = {}
        self.conditions: Conditions = Conditions()
        self.executables: dict[int, Executable] = {}
        self.user_objects: dict[int, UserObject] = {}
        self.arrays: dict[int, Array] = {}
        self.mipmapped_arrays: dict[int, MipmappedArray] = {}
        self.texture_owners: dict[int, Context] = {}

    def watch(self, leaks: LeakWatch) -> None:
        """Record the caller of each call that makes an object, from now on."""
        self.streams = leaks.handles("stream", self.streams)
        self.events = leaks.handles("event", self.events)
        self.modules = leaks.handles("module", self.modules)
        self.graphs = leaks.handles("graph", self.graphs)
        self.executables = leaks.handles("executable graph", self.executables)
        self.arrays = leaks.handles("array", self.arrays)
        self.mipmapped_arrays = leaks.handles("mipmapped array", self.mipmapped_arrays)
        self.texture_owners = leaks.handles("texture or surface", self.texture_owners)

    def new_context(self) -> int:
        """Return a handle for a new context; the emulator's lock is held."""
        handle = self._next_context
        self._next_context += 16
        return handle

    def context(self, handle: CUcontext) -> Context:
        """Return the context of a handle; of destroyed ones only a primary one."""
        number = int(handle)
        context = self.contexts.get(number)
        if context is None:
            if number & 15 == 8 and self._first_context <= number < self._next_context:
                raise CallError(
                    CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"
                )
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"{int(handle):#x} is no context's handle"
            )
        return context

    @staticmethod
    def usable(context: Context) -> Context:
        """Return the context, if calls may still use it."""
        if context.destroyed:
            raise CallError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
        context.device.reject_if_broken()
        return context

    def regular_and_green(self, context: int) -> tuple[int, int]:
        """Return the handles of a context's regular and green one, 0 if it has none.

        The regular one of a green context is its device's primary one (CUDA Driver API,
        cuStreamGetCtx_v2).
        """
        for handle, green in self.green.copy().items():
            if green.handle == context:
                return self.primaries[green.device.ordinal].handle, handle
        return context, 0

    def top(self) -> Context:
        """Return the calling thread's current context, usable or destroyed."""
        stack = self._thread.stack
        if not stack:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread"
            )
        top = stack[-1]
        # A primary context keeps its handle when another one replaces it.
        return self.primaries[top.device.ordinal] if top.primary else top

    def current(self) -> Context:
        """Return the calling thread's current context, usable."""
        return self.usable(self.top())

    def stream(self, handle: CUstream) -> Stream:
        """Return the usable stream of a handle; 0, 1 and 2 mean the current context's own."""
        number = int(handle)
        if number <= 2:
            context = self.current()
            return self.default_stream(context, number)
        stream = self.streams.get(number) or self._thread.streams.get(number)
        if stream is None:
            raise invalid_handle(f"invalid resource handle: {number:#x} is no live stream")
        self.usable(stream.context)
        return stream

    def streams_among(self, arguments: Iterable[object]) -> dict[int, Stream]:
        """Return the streams among the arguments of a call, by their handles."""
        numbers = [int(argument) for argument in arguments if isinstance(argument, CUstream)]
        return {number: self.streams[number] for number in numbers if number in self.streams}

    def lost_its_context(self, handle: CUstream) -> bool:
        """Return whether a deferred call names a stream whose context was destroyed meanwhile."""
        thread, number = self._thread, int(handle)
        if number <= 2:
            return thread.makes_up and bool(thread.stack) and thread.stack[-1].destroyed
        stream = thread.streams.get(number)
        return stream is not None and stream.context.destroyed

    def default_stream(self, context: Context, number: int) -> Stream:
        """Return a context's legacy stream, or its stream of the calling thread."""
        if number < PER_THREAD_HANDLE:
            number, thread = LEGACY_HANDLE, 0
        else:
            thread = thread_number()
        stream = self.default_streams.get((context, thread))
        if stream is None:
            new = Stream(number, context, flags=0, priority=0)
            stream = self.default_streams.setdefault((context, thread), new)
        return stream

    def event(self, handle: CUevent) -> Event:
        """Return the usable event of a handle."""
        number = int(handle)
        event = self.events.get(number)
        if event is None:
            if not number:
                raise invalid_handle("invalid resource handle: the event is null")
            # Measured: the driver returns this, not INVALID_HANDLE, for a destroyed event.
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live event"
            )
        self.usable(event.context)
        return event

    def array(self, handle: CUarray) -> Array:
        """Return the usable array of a handle."""
        number = int(handle)
        array = self.arrays.get(number)
        if array is None:
            if not number:
                raise invalid_handle("invalid resource handle: the array is null")
            # Measured: as for events.
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, f"{number:#x} is no live array"
            )
        self.usable(array.context)
        return array

    def graph(self, handle: CUgraph) -> Graph:
        """Return the graph of a handle."""
        graph = self.graphs.get(int(handle))
        if graph is None:
            raise invalid_value(f"{int(handle):#x} is no live graph")
        return graph

    def handle_of_graph(self, graph: Graph) -> CUgraph:
        """Return the handle of a graph, made at the first request."""
        if not graph.handle:
            graph.handle = self.new()
            self.graphs[graph.handle] = graph
        return CUgraph(graph.handle)

    def node(self, handle: CUgraphNode) -> Node:
        """Return the node of a handle."""
        node = self.nodes.get(int(handle))
        if node is None:
            raise invalid_value(f"{int(handle):#x} is no live node of a graph")
        return node

    def handle_of_node(self, node: Node) -> CUgraphNode:
        """Return the handle of a node, made at the first request."""
        if not node.handle:
            node.handle = self.new()
            self.nodes[node.handle] = node
        return CUgraphNode(node.handle)

    def executable(self, handle: CUgraphExec) -> Executable:
        """Return the executable graph of a handle."""
        executable = self.executables.get(int(handle))
        if executable is None:
            raise invalid_value(f"{int(handle):#x} is no live executable graph")
        return executable
