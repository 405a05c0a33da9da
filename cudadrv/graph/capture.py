"""Capturing what a stream is given in a graph."""

from __future__ import annotations

from types import TracebackType

from .. import errors
from ..driver._api import CUresult, CUstreamCaptureMode, CUstreamCaptureStatus
from ..driver.handover import finish
from ..driver.in_use import failure
from ..driver.stream_box import CaptureState, StreamBox
from ..driver.stream_core import StreamCore
from .graph import Graph
from .needs import GraphBox, Needs


class Capture:
    """The `with` block of `Stream.capture`: records what its stream is given, runs nothing.

    The mode is relaxed: no other call of any thread disturbs the capture. Device memory that is
    released in the block is given back when it ends; what was allocated in the block as well is
    given back by the graph, at that point of each replay.
    """

    __slots__ = ("_box", "_graph", "_state", "_stream")

    def __init__(self, stream: StreamCore) -> None:
        self._state: CaptureState | None = None
        self._stream = stream

    def __enter__(self) -> Graph:
        stream = self._stream
        box: StreamBox = stream._box
        if box.capture is not None:
            raise errors.InvalidValueError(f"{stream!r} is already capturing")
        self._graph = Graph(stream.context)
        self._box = box
        self._state = state = CaptureState()
        try:
            # Before the driver is told: a collection from here on frees nothing into the capture.
            state.join(stream)
            mode = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            (code,) = box.api.cuStreamBeginCapture(box.raw, mode)
            if code:
                raise failure(box.api, code, "cuStreamBeginCapture", f"capturing {stream!r}")
            return self._graph
        except BaseException:
            finish(self._give_up)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            code, graph = self._end()
        except BaseException:
            finish(self._give_up)
            raise
        if graph is None:
            self._give_up()  # what refused to end may go on
            doing = f"ending the capture of {self._stream!r}"
            fault = failure(self._box.api, code, "cuStreamEndCapture", doing)
            if error is None:
                raise fault
            error.add_note(f"the capture was lost: {fault}")
        elif error is None:
            self._stream.handle  # noqa: B018  # raises if it was closed in the block
            graph.needs.give_to(graph)
            self._graph._fill(graph)

    def __del__(self) -> None:
        # An interrupt may come before `__exit__` can begin.
        if getattr(self, "_state", None) is not None:
            finish(self._give_up)

    def _end(self) -> tuple[CUresult, GraphBox | None]:
        """End the capture; gives what the driver said, and the graph if it gave one."""
        box, state = self._box, self._state
        assert state is not None  # it was entered
        graph = GraphBox(box.context)
        ((code, graph.raw),) = map(box.api.cuStreamEndCapture, (box.raw,))  # as `Part.make`
        if code:
            return code, None
        graph.needs = Needs(state)
        state.leave()
        self._state = None
        return code, graph

    def _give_up(self) -> None:
        """End a capture that was broken off, wherever that was. Idempotent."""
        box, state = self._box, self._state
        if state is not None:
            code, status = box.api.cuStreamIsCapturing(box.raw)
            if code or status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
                code, handle = box.api.cuStreamEndCapture(box.raw)
                if not code:
                    box.api.cuGraphDestroy(handle)
            state.leave()
            self._state = None
