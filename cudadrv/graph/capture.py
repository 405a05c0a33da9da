"""`Capture`: record the work of a stream into a graph."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Literal, TypeAlias

from .. import border, errors
from ..driver._api import CUresult, CUstreamCaptureMode, CUstreamCaptureStatus
from ..driver.call_gate import CAPTURE_WAIT_S, wait_limit
from ..driver.driver_selection import failure
from ..driver.once_task import complete
from ..driver.stream import BaseStream
from ..driver.stream_handle import CaptureState, StreamHandle
from .base_graph import GraphHandle
from .graph import Graph
from .needs import Content
from .node import After, handles_of

CaptureMode: TypeAlias = Literal["relaxed", "thread_local", "global"]
"""The unsafe calls that break a capture: none; those of its own thread; those of any thread."""
_MODES: Final[dict[str, CUstreamCaptureMode]] = {
    "relaxed": CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED,
    "thread_local": CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    "global": CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL,
}


class Capture:
    """The `with` block of `Stream.capture`: it records the work of its stream, and runs nothing.

    Device memory that is released in the block is freed when it ends. Memory that was allocated in
    the block as well is freed by the graph, at that point of each replay.
    """

    __slots__ = (
        "_added",
        "_after",
        "_default_stream",
        "_graph",
        "_handle",
        "_into",
        "_mode",
        "_state",
        "_stream",
        "_wait_limit_s",
    )

    def __init__(
        self,
        stream: BaseStream,
        default_stream: Callable[[], BaseStream],
        mode: CaptureMode = "relaxed",
        into: Graph | None = None,
        after: After = (),
        wait_limit_s: float = CAPTURE_WAIT_S,
    ) -> None:
        self._state: CaptureState | None = None
        self._stream = stream
        self._default_stream = default_stream
        border.text("Stream.capture: mode", mode)
        if mode not in _MODES:
            raise errors.InvalidValueError(
                f"capturing with mode {mode!r}: use one of {', '.join(map(repr, _MODES))}"
            )
        self._mode = _MODES[mode]
        self._into = border.optional("Stream.capture: into", into, Graph)
        if into is not None and into.context is not stream.context:
            raise errors.WrongDeviceError(f"{into!r} is not of the context of {stream!r}")
        if into is None and not (isinstance(after, tuple) and after == ()):
            raise errors.InvalidValueError("`after` has nodes of a graph: give the graph as `into`")
        self._after = after
        self._wait_limit_s = wait_limit("Stream.capture", wait_limit_s)
        self._added: Content | None = None

    def __enter__(self) -> Graph:
        stream = self._stream
        handle: StreamHandle = stream._handle
        if handle.capture is not None:
            raise errors.InvalidValueError(f"{stream!r} is already capturing")
        self._graph = self._into or Graph._unfilled(stream.context, self._default_stream)
        self._handle = handle
        self._state = state = CaptureState(self._wait_limit_s)
        try:
            # Before the driver call: from here on no other thread and no collection adds to it.
            stream._join_capture(state)
            self._begin(handle)
            return self._graph
        except BaseException:
            complete(self._give_up)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._state is None:
            raise errors.InvalidValueError(f"this capture of {self._stream!r} has already ended")
        try:
            code, graph = self._end()
        except BaseException:
            complete(self._give_up)
            raise
        if graph is None:
            self._give_up()  # a capture that did not end may go on
            doing = f"ending the capture of {self._stream!r}"
            fault = failure(self._handle.api, code, "cuStreamEndCapture", doing)
            if error is None:
                raise fault
            error.add_note(f"the capture was lost: {fault}")
        elif error is None:
            self._stream.handle  # noqa: B018  # raises if it was closed in the block
            assert self._added is not None  # it gave a graph
            self._graph._take(self._added, None if self._into is not None else graph)

    def __del__(self) -> None:
        # An interrupt may come before `__exit__` can begin.
        if getattr(self, "_state", None) is not None:
            complete(self._give_up)

    def _begin(self, handle: StreamHandle) -> None:
        into, doing = self._into, f"capturing {self._stream!r}"
        if into is None:
            (code,) = handle.api.cuStreamBeginCapture(handle.raw, self._mode)
            if code:
                raise failure(handle.api, code, "cuStreamBeginCapture", doing)
            return
        dependencies = handles_of("Stream.capture: after", into, self._after)
        (code,) = handle.api.cuStreamBeginCaptureToGraph(
            handle.raw, into.handle, dependencies, None, len(dependencies), self._mode
        )
        if code:
            raise failure(handle.api, code, "cuStreamBeginCaptureToGraph", f"{doing} into {into!r}")

    def _end(self) -> tuple[CUresult, GraphHandle | None]:
        """End the capture; return the driver's result, and the graph if there is one."""
        handle, state = self._handle, self._state
        assert state is not None  # it was entered
        graph = GraphHandle(handle.context)
        if self._into is not None:
            graph.of = self._into._handle  # which owns the graph that the driver returns
        code, graph.raw = handle.api.cuStreamEndCapture(handle.raw)
        if code:
            return code, None
        self._added = Content()
        self._added.add_capture(state)
        state.leave()
        self._state = None
        return code, graph

    def _give_up(self) -> None:
        """End a capture that was broken off, wherever that was. Idempotent."""
        stream, state = self._handle, self._state
        if state is not None:
            code, status = stream.api.cuStreamIsCapturing(stream.raw)
            if code or status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
                code, handle = stream.api.cuStreamEndCapture(stream.raw)
                if self._into is not None:  # it may have got some nodes
                    self._into._content.add_capture(state)
                    self._into._touch()
                elif not code:
                    stream.api.cuGraphDestroy(handle)
            state.leave()
            self._state = None
