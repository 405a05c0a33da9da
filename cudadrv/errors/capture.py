"""The `CudaError` classes of captures and of the graphs that come of them, results 900 and up."""

from __future__ import annotations

from typing import ClassVar

from .base import CudaError


class StreamCaptureUnsupportedError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED."""

    result: ClassVar[int] = 900
    remedy: ClassVar[str] = "this call cannot be captured: make it before or after the capture"


class StreamCaptureInvalidatedError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_INVALIDATED."""

    result: ClassVar[int] = 901
    remedy: ClassVar[str] = "an earlier error spoilt the capture: end it and capture again"


class StreamCaptureMergeError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_MERGE."""

    result: ClassVar[int] = 902


class StreamCaptureUnmatchedError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_UNMATCHED."""

    result: ClassVar[int] = 903


class StreamCaptureUnjoinedError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_UNJOINED."""

    result: ClassVar[int] = 904
    remedy: ClassVar[str] = (
        "join every stream that was forked in the capture by an event before it ends"
    )


class StreamCaptureIsolationError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_ISOLATION."""

    result: ClassVar[int] = 905


class StreamCaptureImplicitError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_IMPLICIT."""

    result: ClassVar[int] = 906
    remedy: ClassVar[str] = (
        "the call synchronises with the legacy stream: make it outside the capture"
    )


class CapturedEventError(CudaError):
    """CUDA_ERROR_CAPTURED_EVENT."""

    result: ClassVar[int] = 907


class StreamCaptureWrongThreadError(CudaError):
    """CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD."""

    result: ClassVar[int] = 908
    remedy: ClassVar[str] = "end the capture in the thread that began it"


class GraphExecUpdateFailureError(CudaError):
    """CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE."""

    result: ClassVar[int] = 910
    remedy: ClassVar[str] = "the graphs differ in more than parameters: instantiate the new one"


class GraphRecaptureFailureError(CudaError):
    """CUDA_ERROR_GRAPH_RECAPTURE_FAILURE."""

    result: ClassVar[int] = 918
