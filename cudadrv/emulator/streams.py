"""Streams, events and captures of the emulator.

The timeline has the operations that are queued in a stream. A capture records calls instead of
running them, in order, with their dependencies (CUDA Programming Guide, "Creating a Graph Using
Stream Capture").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..driver._api import CUstreamCaptureMode
from .graphs import Graph, Node, Tip, Work
from .node_kind import NodeKind, Run

if TYPE_CHECKING:
    from .contexts import Context
    from .device_state import GraphAllocation
    from .host_memory import HostRange

NON_BLOCKING = 1
LEGACY_HANDLE = 1
PER_THREAD_HANDLE = 2


@dataclass(eq=False, repr=False, slots=True)
class Stream:
    """A stream.

    Attributes:
        capture: the capture it takes part in, and `tip` its position there.
        number: counts the streams that were used, in the timeline.
        identity: the result of cuStreamGetId, once that was called.
        attributes: the attributes that were set, by number, as the driver's 64 bytes.
    """

    handle: int
    context: Context
    flags: int
    priority: int
    capture: StreamCapture | None = None
    tip: Tip = frozenset()
    number: int = 0
    identity: int = 0
    attributes: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_legacy(self) -> bool:
        """Whether it is its context's legacy default stream."""
        return self.handle == LEGACY_HANDLE

    @property
    def is_blocking(self) -> bool:
        """Whether it and the legacy stream wait for each other."""
        return not self.flags & NON_BLOCKING


@dataclass(eq=False, repr=False, slots=True)
class StreamCapture:
    """A capture sequence.

    Attributes:
        graph: the graph that records.
        is_into: whether that graph existed before.
        origin: the stream that it began in, and must end in.
        thread: the number of the thread that began it (`native_thread.py`).
        streams: all streams that take part.
        nodes: the recorded nodes.
        number: unique among captures.
        invalid: an error happened in it.
        ended: whether it returned its graph, or was abandoned.
    """

    origin: Stream
    mode: CUstreamCaptureMode
    thread: int
    graph: Graph = field(default_factory=Graph)
    is_into: bool = False
    streams: set[Stream] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    number: int = 0
    invalid: bool = False
    ended: bool = False

    def add(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        memory: GraphAllocation | None = None,
        host: tuple[HostRange, ...] = (),
    ) -> Node:
        """Record an operation of a stream."""
        return self.add_work(stream, Work(kind, run, memory, host))

    def add_work(self, stream: Stream, work: Work) -> Node:
        """Record the work of an operation of a stream."""
        node = self.graph.add(work, stream.tip)
        self.nodes.append(node)
        stream.tip = frozenset({node})
        return node

    @staticmethod
    def set_params(stream: Stream, native_params: bytes) -> None:
        """Store the driver's parameters of the operation that a stream recorded last."""
        for node in stream.tip:
            node.work = node.work._replace(native_params=native_params)

    def join(self, stream: Stream, tip: Tip) -> None:
        """Let later operations of a stream depend on `tip`; a stream from outside joins."""
        if stream.capture is not self:
            self.streams.add(stream)  # first: the end of the capture releases these streams
            stream.capture, stream.tip = self, frozenset()
        stream.tip = stream.tip | tip

    def leave(self, stream: Stream) -> None:
        """Release one stream; its recorded work stays, and must be joined."""
        self.streams.discard(stream)
        stream.capture, stream.tip = None, frozenset()

    def end(self) -> None:
        """Release the streams."""
        self.ended = True
        for stream in self.streams:
            stream.capture, stream.tip = None, frozenset()

    def abandon(self) -> None:
        """Release the recorded objects, as there will be no graph.

        It takes the device's lock.
        """
        for node in reversed(self.nodes):
            self.graph.remove(node)
            if node.kind is NodeKind.ALLOC and node.memory is not None:
                node.memory.release()

    @property
    def is_joined(self) -> bool:
        """Return whether the origin depends, at its end, on every recorded node."""
        ancestors = self._ancestors(self.origin.tip)
        return all(node in ancestors for node in self.nodes)

    @staticmethod
    def _ancestors(tip: Iterable[Node]) -> set[Node]:
        ancestors: set[Node] = set()
        waiting = list(tip)
        while waiting:
            node = waiting.pop()
            if node not in ancestors:
                ancestors.add(node)
                waiting += node.after
        return ancestors
