"""Streams, events and captures, as the emulator keeps them.

The timeline has the operations that are queued in a stream. A capture keeps the calls that were not
run, in order, with their dependencies (CUDA Programming Guide, "Creating a Graph Using Stream
Capture").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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


@dataclass(eq=False, slots=True)
class Stream:
    """A stream.

    Attributes:
        capture: the capture it takes part in, and `tip` where it stands there.
        number: counts the streams that were used, in the timeline.
        identity: what cuStreamGetId says, once that was asked.
        attributes: the values that were set, by number, as the driver's 64 bytes.
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


@dataclass(eq=False, slots=True)
class StreamCapture:
    """A capture sequence.

    Attributes:
        graph: what is recorded.
        is_into: whether that was there before.
        origin: the stream that it began in, and must end in.
        thread: identity of the thread that began it.
        streams: all that take part.
        nodes: what it recorded.
        number: no other capture has it.
        invalid: an error happened in it.
        ended: it gave its graph, or was given up.
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
        """Likewise."""
        node = self.graph.add(work, stream.tip)
        self.nodes.append(node)
        stream.tip = frozenset({node})
        return node

    @staticmethod
    def tell(stream: Stream, told: bytes) -> None:
        """Say by what parameters the operation was made that a stream recorded last."""
        for node in stream.tip:
            node.work = replace(node.work, told=told)

    def join(self, stream: Stream, tip: Tip) -> None:
        """Make what follows in a stream depend on `tip`; brings in a stream from outside."""
        if stream.capture is not self:
            stream.capture, stream.tip = self, frozenset()
            self.streams.add(stream)
        stream.tip = stream.tip | tip

    def end(self) -> None:
        """Let go of the streams."""
        self.ended = True
        for stream in self.streams:
            stream.capture, stream.tip = None, frozenset()

    def abandon(self) -> None:
        """Give back what it recorded, as there will be no graph.

        It takes the device's lock.
        """
        for node in reversed(self.nodes):
            self.graph.remove(node)
            if node.kind is NodeKind.ALLOC and node.memory is not None:
                node.memory.release()

    @property
    def is_joined(self) -> bool:
        """Whether the origin depends, at its end, on every node that it recorded."""
        found = self._ancestors(self.origin.tip)
        return all(node in found for node in self.nodes)

    @staticmethod
    def _ancestors(tip: Iterable[Node]) -> set[Node]:
        seen: set[Node] = set()
        waiting = list(tip)
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += node.after
        return seen
