"""The `CudaError` classes of results 216 to 699: images, compilers, symbols and handles."""

from __future__ import annotations

from typing import ClassVar

from .base import CudaError


class ContextAlreadyInUseError(CudaError):
    """CUDA_ERROR_CONTEXT_ALREADY_IN_USE."""

    result: ClassVar[int] = 216


class PeerAccessUnsupportedError(CudaError):
    """CUDA_ERROR_PEER_ACCESS_UNSUPPORTED."""

    result: ClassVar[int] = 217
    remedy: ClassVar[str] = (
        "copy between these devices through Stream.copy, which needs no peer access"
    )


class InvalidPTXError(CudaError):
    """CUDA_ERROR_INVALID_PTX."""

    result: ClassVar[int] = 218
    remedy: ClassVar[str] = "the driver's JIT refused the PTX: its log is in the error"


class InvalidGraphicsContextError(CudaError):
    """CUDA_ERROR_INVALID_GRAPHICS_CONTEXT."""

    result: ClassVar[int] = 219


class NvLinkUncorrectableError(CudaError):
    """CUDA_ERROR_NVLINK_UNCORRECTABLE."""

    result: ClassVar[int] = 220
    sticky: ClassVar[bool] = True


class JITCompilerNotFoundError(CudaError):
    """CUDA_ERROR_JIT_COMPILER_NOT_FOUND."""

    result: ClassVar[int] = 221
    remedy: ClassVar[str] = (
        "the driver's PTX compiler is missing: reinstall the driver, or load a cubin"
    )


class UnsupportedPTXVersionError(CudaError):
    """CUDA_ERROR_UNSUPPORTED_PTX_VERSION."""

    result: ClassVar[int] = 222
    remedy: ClassVar[str] = (
        "compile to a cubin for the device (context.target), update the driver, or install an "
        "NVRTC no newer than the driver"
    )


class JITCompilationDisabledError(CudaError):
    """CUDA_ERROR_JIT_COMPILATION_DISABLED."""

    result: ClassVar[int] = 223


class UnsupportedExecAffinityError(CudaError):
    """CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY."""

    result: ClassVar[int] = 224


class UnsupportedDevsideSyncError(CudaError):
    """CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC."""

    result: ClassVar[int] = 225


class ContainedError(CudaError):
    """CUDA_ERROR_CONTAINED."""

    result: ClassVar[int] = 226
    sticky: ClassVar[bool] = True


class InsufficientLoaderVersionError(CudaError):
    """CUDA_ERROR_INSUFFICIENT_LOADER_VERSION."""

    result: ClassVar[int] = 227


class InvalidSourceError(CudaError):
    """CUDA_ERROR_INVALID_SOURCE."""

    result: ClassVar[int] = 300


class SourceFileNotFoundError(CudaError):
    """CUDA_ERROR_FILE_NOT_FOUND."""

    result: ClassVar[int] = 301


class SharedObjectSymbolNotFoundError(CudaError):
    """CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND."""

    result: ClassVar[int] = 302


class SharedObjectInitFailedError(CudaError):
    """CUDA_ERROR_SHARED_OBJECT_INIT_FAILED."""

    result: ClassVar[int] = 303


class OperatingSystemError(CudaError):
    """CUDA_ERROR_OPERATING_SYSTEM."""

    result: ClassVar[int] = 304
    remedy: ClassVar[str] = (
        "an operating system call failed; check device permissions (/dev/nvidia*) and limits"
    )


class InvalidHandleError(CudaError):
    """CUDA_ERROR_INVALID_HANDLE."""

    result: ClassVar[int] = 400
    remedy: ClassVar[str] = "the handle was closed, or belongs to another device"


class IllegalStateError(CudaError):
    """CUDA_ERROR_ILLEGAL_STATE."""

    result: ClassVar[int] = 401


class LossyQueryError(CudaError):
    """CUDA_ERROR_LOSSY_QUERY."""

    result: ClassVar[int] = 402


class NotFoundError(CudaError):
    """CUDA_ERROR_NOT_FOUND."""

    result: ClassVar[int] = 500
    remedy: ClassVar[str] = 'check the name; extern "C" or a name expression gives the mangled one'


class NotReadyError(CudaError):
    """CUDA_ERROR_NOT_READY."""

    result: ClassVar[int] = 600
    remedy: ClassVar[str] = "the work is still running: synchronize, or ask again later"
