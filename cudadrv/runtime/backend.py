"""The set-up that every CUDA backend shares, after gam's `backend_probe`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from .. import border
from ..driver.capability import GpuCapability
from ..errors import CudadrvError, DriverCallFailed, DriverLibraryUnavailable
from ..memory.reuse.arena import DeviceArena
from ..stream import Context, Stream, cuda_context_for
from .module_cache import PtxModuleCache
from .probe import GpuAbsent, GpuBroken, GpuRuntime

if TYPE_CHECKING:
    import numpy as np

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CudaBackendParts:
    """The parts of a backend that a probe finds.

    Attributes:
        ctx: the primary context of the runtime's selected device.
        stream: that context's default stream.
        capability: the device's capability.
    """

    ctx: Context
    stream: Stream
    capability: GpuCapability

    def __post_init__(self) -> None:
        border.instance_of("CudaBackendParts: ctx", self.ctx, Context)
        border.instance_of("CudaBackendParts: stream", self.stream, Stream)
        border.instance_of("CudaBackendParts: capability", self.capability, GpuCapability)


@dataclass(frozen=True, slots=True, eq=False)
class CudaBackendContext:
    """The objects that a backend keeps for the process.

    Attributes:
        ctx: the context.
        stream: its default stream.
        module: the backend's compiled source, empty until the first use.
        arena: float64 device memory that launches share; safe from any thread.
    """

    ctx: Context
    stream: Stream
    module: PtxModuleCache
    arena: DeviceArena[np.float64]

    def __post_init__(self) -> None:
        border.instance_of("CudaBackendContext: ctx", self.ctx, Context)
        border.instance_of("CudaBackendContext: stream", self.stream, Stream)
        border.instance_of("CudaBackendContext: module", self.module, PtxModuleCache)
        border.instance_of("CudaBackendContext: arena", self.arena, DeviceArena)

    @classmethod
    def from_parts(cls, parts: CudaBackendParts) -> CudaBackendContext:
        """Return a backend on probed parts, with an empty module cache and an empty arena."""
        border.instance_of("CudaBackendContext.from_parts: parts", parts, CudaBackendParts)
        return cls(parts.ctx, parts.stream, PtxModuleCache(), DeviceArena())


def probe_cuda_backend(label: str) -> CudaBackendParts:
    """Return the selected device's context, default stream and capability.

    Args:
        label: the calling module, named in errors.

    Raises:
        DriverLibraryUnavailable: there is no CUDA runtime; the cause has the reason.
        DriverCallFailed: the device's context cannot be made; the cause has the reason.
        GpuError: looking for devices failed.
    """
    border.text("probe_cuda_backend: label", label)
    outcome = GpuRuntime.availability()
    if isinstance(outcome, GpuBroken):
        outcome.raise_again(f"{label} backend: ")
    if isinstance(outcome, GpuAbsent):
        text = f"{label} backend: no CUDA runtime available"
        raise DriverLibraryUnavailable(text) from outcome.error
    device = outcome.runtime.selected_device()
    try:
        context = cuda_context_for(device.ordinal)
        stream = context.default_stream
    except CudadrvError as error:
        reason = f"{label} backend: failed to create CUDA context for device {device.ordinal}"
        raise DriverCallFailed.of(error, reason) from error
    return CudaBackendParts(context, stream, device.capability)


def probe_backend_with_compile(label: str, build: Callable[[CudaBackendParts], _T]) -> _T:
    """Return the result of `build` for the probed parts: a backend's compiled kernels and caches.

    Raises:
        GpuError: as `probe_cuda_backend`; errors of `build` pass through.
    """
    border.function("probe_backend_with_compile: build", build, takes=1)
    return build(probe_cuda_backend(label))
