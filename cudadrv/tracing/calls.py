"""The calls that a trace shows, and those that it makes itself."""

from __future__ import annotations

from typing import Final, NamedTuple


class Span(NamedTuple):
    """A substituted function: how it is shown, and where its stream and its size are found."""

    category: str
    stream: int | None = None
    nbytes: int | None = None


# Position of the stream among the arguments for what runs on the device; a wait on the host has
# none. A memset's size is a number of elements.
SPANS: Final = {
    "cuLaunchKernel": Span("launch", 8),
    "cuLaunchKernelEx": Span("launch"),
    "cuGraphLaunch": Span("launch", 1),
    "cuMemcpyHtoDAsync": Span("copy", 3, 2),
    "cuMemcpyDtoHAsync": Span("copy", 3, 2),
    "cuMemcpyDtoDAsync": Span("copy", 3, 2),
    "cuMemcpyPeerAsync": Span("copy", 5, 4),
    "cuMemcpy3DAsync": Span("copy", 1),
    "cuMemsetD8Async": Span("copy", 3, 2),
    "cuMemsetD16Async": Span("copy", 3),
    "cuMemsetD32Async": Span("copy", 3),
    "cuMemAlloc": Span("allocation", None, 0),
    "cuMemAllocAsync": Span("allocation", None, 0),
    "cuMemHostAlloc": Span("allocation", None, 0),
    "cuMemFree": Span("allocation"),
    "cuMemFreeAsync": Span("allocation"),
    "cuMemFreeHost": Span("allocation"),
    "cuModuleLoadData": Span("compilation"),
    "cuModuleLoadDataEx": Span("compilation"),
    "cuGraphInstantiate": Span("compilation"),
    "cuStreamSynchronize": Span("wait"),
    "cuEventSynchronize": Span("wait"),
    "cuCtxSynchronize": Span("wait"),
}
# What the trace itself calls, as it was before the substitution.
OWN_CALLS: Final = (
    "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuEventCreate",
    "cuEventDestroy", "cuEventElapsedTime", "cuEventRecord", "cuEventSynchronize",
    "cuGetErrorString", "cuStreamIsCapturing",
)  # fmt: skip
COMPILERS: Final = ("compile", "link")
