"""`CapturedGraph`: a graph with all that its addresses lie in, after numr's captured graphs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import ClosedError
from ..graph import Graph, GraphExec

if TYPE_CHECKING:
    from ..memory.buffer import DeviceBuffer
    from ..stream import Stream


class CapturedGraph:
    """The graph of `CudaClient.capture_graph`, which can be launched any number of times.

    A graph holds addresses, so this keeps their memory: write new data into `inputs`,
    launch, and read `outputs`.

    Attributes:
        stream: the stream that it was captured from and is launched on.
        inputs: the caller's inputs.
        outputs: the caller's outputs.
        arena: the memory of the capture's own allocations; None without an arena.
        node_count: the number of captured operations.
    """

    def __init__(
        self,
        graph: Graph,
        stream: Stream,
        inputs: tuple[object, ...],
        outputs: tuple[object, ...],
        arena: DeviceBuffer | None,
    ) -> None:
        self.stream = stream
        self.inputs: tuple[object, ...] = inputs
        self.outputs: tuple[object, ...] = outputs
        self.arena = arena
        self.node_count: int = graph.node_count
        self._graph = graph
        self._executable: GraphExec | None = graph.instantiate()
        self._launch_count = 0
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        state = "closed" if self._executable is None else f"launched {self._launch_count} times"
        return f"<CapturedGraph of {self.node_count} nodes, {state}>"

    def __enter__(self) -> CapturedGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def launch_count(self) -> int:
        """The number of launches."""
        return self._launch_count

    def launch(self) -> None:
        """Queue the whole graph on its stream.

        Raises:
            ClosedError: it was closed.
            CudaError: the driver returned an error.
        """
        # An executable runs once at a time, so threads that launch one queue anyway.
        with self._lock:
            executable = self._executable
            if executable is None:
                raise ClosedError("the captured graph was closed")
            executable.launch(self.stream)
            self._launch_count += 1

    def close(self) -> None:
        """Destroy the graph after its queued launches, and release inputs, outputs and arena.

        Idempotent.
        """
        with self._lock:
            executable, self._executable = self._executable, None
        if executable is not None:
            executable.close()
            self._graph.close()
            self.inputs = self.outputs = ()
            # In the order of the stream that the launches are in.
            self.arena = None
