"""The `CudaError` classes of results 1 to 215: values, initialisation, devices and contexts."""

from __future__ import annotations

from typing import ClassVar

from .base import CudaError


class InvalidValueError(CudaError):
    """CUDA_ERROR_INVALID_VALUE."""

    result: ClassVar[int] = 1
    remedy: ClassVar[str] = "an argument was out of range; see what was being done"

    def __str__(self) -> str:
        # What cudadrv found by itself says what was wrong; code and remedy would say less.
        return super().__str__() if self.call else self.doing


class OutOfMemoryError(CudaError):
    """CUDA_ERROR_OUT_OF_MEMORY."""

    result: ClassVar[int] = 2
    remedy: ClassVar[str] = "free device memory (close arrays, trim arenas), or ask for less"


class NotInitializedError(CudaError):
    """CUDA_ERROR_NOT_INITIALIZED."""

    result: ClassVar[int] = 3
    remedy: ClassVar[str] = "call cudadrv.init() first"


class DeinitializedError(CudaError):
    """CUDA_ERROR_DEINITIALIZED."""

    result: ClassVar[int] = 4
    remedy: ClassVar[str] = "the process is shutting down; make no CUDA calls from exit handlers"


class ProfilerDisabledError(CudaError):
    """CUDA_ERROR_PROFILER_DISABLED."""

    result: ClassVar[int] = 5


class ProfilerNotInitializedError(CudaError):
    """CUDA_ERROR_PROFILER_NOT_INITIALIZED."""

    result: ClassVar[int] = 6


class ProfilerAlreadyStartedError(CudaError):
    """CUDA_ERROR_PROFILER_ALREADY_STARTED."""

    result: ClassVar[int] = 7


class ProfilerAlreadyStoppedError(CudaError):
    """CUDA_ERROR_PROFILER_ALREADY_STOPPED."""

    result: ClassVar[int] = 8


class StubLibraryError(CudaError):
    """CUDA_ERROR_STUB_LIBRARY."""

    result: ClassVar[int] = 34
    remedy: ClassVar[str] = (
        "the library found is the toolkit's stub; install the NVIDIA driver, or take the stub "
        "folder out of the library path"
    )


class CallRequiresNewerDriverError(CudaError):
    """CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER."""

    result: ClassVar[int] = 36
    remedy: ClassVar[str] = "update the NVIDIA driver"


class DeviceUnavailableError(CudaError):
    """CUDA_ERROR_DEVICE_UNAVAILABLE."""

    result: ClassVar[int] = 46
    remedy: ClassVar[str] = (
        "another process holds the device in exclusive mode, or it is in a bad state; see "
        "nvidia-smi"
    )


class MulticastResourceFullError(CudaError):
    """CUDA_ERROR_MULTICAST_RESOURCE_FULL."""

    result: ClassVar[int] = 47


class NoDeviceError(CudaError):
    """CUDA_ERROR_NO_DEVICE."""

    result: ClassVar[int] = 100
    remedy: ClassVar[str] = (
        "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the emulator: CUDADRV_DRIVER=emulator"
    )


class InvalidDeviceError(CudaError):
    """CUDA_ERROR_INVALID_DEVICE."""

    result: ClassVar[int] = 101
    remedy: ClassVar[str] = "list the devices with cudadrv.list_devices()"


class DeviceNotLicensedError(CudaError):
    """CUDA_ERROR_DEVICE_NOT_LICENSED."""

    result: ClassVar[int] = 102


class InvalidImageError(CudaError):
    """CUDA_ERROR_INVALID_IMAGE."""

    result: ClassVar[int] = 200
    remedy: ClassVar[str] = "the image is damaged or not PTX, cubin or fatbin: compile it again"


class InvalidContextError(CudaError):
    """CUDA_ERROR_INVALID_CONTEXT."""

    result: ClassVar[int] = 201
    remedy: ClassVar[str] = (
        "the context was closed or reset: take it again from cuda_context_for(ordinal)"
    )


class ContextAlreadyCurrentError(CudaError):
    """CUDA_ERROR_CONTEXT_ALREADY_CURRENT."""

    result: ClassVar[int] = 202


class MapFailedError(CudaError):
    """CUDA_ERROR_MAP_FAILED."""

    result: ClassVar[int] = 205


class UnmapFailedError(CudaError):
    """CUDA_ERROR_UNMAP_FAILED."""

    result: ClassVar[int] = 206


class ArrayIsMappedError(CudaError):
    """CUDA_ERROR_ARRAY_IS_MAPPED."""

    result: ClassVar[int] = 207


class AlreadyMappedError(CudaError):
    """CUDA_ERROR_ALREADY_MAPPED."""

    result: ClassVar[int] = 208


class NoBinaryForGPUError(CudaError):
    """CUDA_ERROR_NO_BINARY_FOR_GPU."""

    result: ClassVar[int] = 209
    remedy: ClassVar[str] = "compile for the device: context.target names its architecture"


class AlreadyAcquiredError(CudaError):
    """CUDA_ERROR_ALREADY_ACQUIRED."""

    result: ClassVar[int] = 210


class NotMappedError(CudaError):
    """CUDA_ERROR_NOT_MAPPED."""

    result: ClassVar[int] = 211


class NotMappedAsArrayError(CudaError):
    """CUDA_ERROR_NOT_MAPPED_AS_ARRAY."""

    result: ClassVar[int] = 212


class NotMappedAsPointerError(CudaError):
    """CUDA_ERROR_NOT_MAPPED_AS_POINTER."""

    result: ClassVar[int] = 213


class ECCUncorrectableError(CudaError):
    """CUDA_ERROR_ECC_UNCORRECTABLE."""

    result: ClassVar[int] = 214
    remedy: ClassVar[str] = "the device's memory failed; see nvidia-smi -q -d ECC"
    sticky: ClassVar[bool] = True


class UnsupportedLimitError(CudaError):
    """CUDA_ERROR_UNSUPPORTED_LIMIT."""

    result: ClassVar[int] = 215
