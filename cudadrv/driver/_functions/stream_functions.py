"""The driver's functions of streams and events."""

from __future__ import annotations

from typing import Protocol

from .._api import (
    CUcontext,
    CUevent,
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUipcEventHandle,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
    cuuint64_t,
)


class StreamFunctions(Protocol):
    """Functions of streams and events."""

    def cuStreamCreateWithPriority(
        self, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]: ...
    def cuStreamDestroy(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamSynchronize(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamQuery(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamGetPriority(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamGetFlags(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamGetCtx(self, h_stream: CUstream, /) -> tuple[CUresult, CUcontext]: ...
    def cuLaunchHostFunc(
        self, h_stream: CUstream, fn: int, user_data: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamWaitEvent(
        self, h_stream: CUstream, h_event: CUevent, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamBeginCapture(
        self, h_stream: CUstream, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult]: ...
    def cuStreamEndCapture(self, h_stream: CUstream, /) -> tuple[CUresult, CUgraph]: ...
    def cuStreamIsCapturing(
        self, h_stream: CUstream, /
    ) -> tuple[CUresult, CUstreamCaptureStatus]: ...
    def cuStreamBeginCaptureToGraph(
        self,
        h_stream: CUstream,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        mode: CUstreamCaptureMode,
        /,
    ) -> tuple[CUresult]: ...
    def cuStreamGetCaptureInfo(
        self, h_stream: CUstream, /
    ) -> tuple[
        CUresult,
        CUstreamCaptureStatus,
        cuuint64_t,
        CUgraph,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]: ...
    def cuStreamUpdateCaptureDependencies(
        self,
        h_stream: CUstream,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        flags: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuEventCreate(self, flags: int, /) -> tuple[CUresult, CUevent]: ...
    def cuEventDestroy(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventRecord(self, h_event: CUevent, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuEventQuery(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventSynchronize(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventElapsedTime(self, h_start: CUevent, h_end: CUevent, /) -> tuple[CUresult, float]: ...
    def cuIpcGetEventHandle(self, event: CUevent, /) -> tuple[CUresult, CUipcEventHandle]: ...
    def cuIpcOpenEventHandle(self, handle: CUipcEventHandle, /) -> tuple[CUresult, CUevent]: ...
