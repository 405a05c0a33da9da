"""The errors of the runtime layer, after gam's `GpuError`: one class a variant."""

from __future__ import annotations

from .base import CudadrvError


class GpuError(CudadrvError):
    """Root of the runtime layer's errors.

    Attributes:
        reason: the fault, in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DriverLibraryUnavailable(GpuError):
    """There is no CUDA runtime on this machine."""


class DriverLibraryLoadFailed(GpuError):
    """The driver library exists but did not load."""


class RuntimeDependencyUnavailable(GpuError):
    """A library that the work needs (NVRTC, cuBLAS, an extra) is missing."""


class DriverSymbolMissing(GpuError):
    """The driver lacks a function that the work needs."""


class DriverCallFailed(GpuError):
    """A driver call failed; its `CudaError` is the cause."""


class CalibrationFailed(GpuError):
    """Timings or checksums of the calibration were invalid."""


class NoDeviceKernel(GpuError):
    """No device kernel exists for the request."""


class RequiredDeviceUnavailable(GpuError):
    """The policy requires a device and there is none."""
