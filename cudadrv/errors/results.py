"""The `CudaError` class of each CUresult, by number; a docstring is the name in the CUDA manual."""

# A table, a class a line. It has class statements, so that type checkers see every name.
# ruff: noqa: E501, E701
from __future__ import annotations

from typing import Final

from ptx.base_errors import shown

from .base import CudaError

_HOST_ADVICE: Final = (
    "free memory of the host (drop pinned, registered and managed arrays), or allocate less"
)


# fmt: off
_OF_POOLS = ("cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemPoolCreate")
_UNPOOLED = (
    "without memory pools allocate in `with cudadrv.using_memory(memory.UnpooledMemory())`, or call "
    "use_memory(cudadrv.memory.UnpooledMemory()) of the context or stream"
)


class InvalidValueError(CudaError, result=1, remedy=(
    "an argument was out of range: see the operation on the first line"
)):
    """CUDA_ERROR_INVALID_VALUE."""

    def __str__(self) -> str:
        # An error that cudadrv found itself describes the fault; code and remedy would add nothing.
        return super().__str__() if self.call else shown(self.doing)

class OutOfMemoryError(CudaError, result=2, remedy=(
    "free device memory (close arrays, trim arenas), or allocate less"
)):
    """CUDA_ERROR_OUT_OF_MEMORY."""

    _is_of_host: bool = False

    @classmethod
    def _of_host(cls, doing: str, call: str = "") -> OutOfMemoryError:
        """Return the error for memory of the host: device memory is no help."""
        error = cls(doing, call=call)
        error._is_of_host = True
        return error

    @property
    def _advice(self) -> str:
        return _HOST_ADVICE if self._is_of_host else self.remedy

class NotInitializedError(CudaError, result=3, remedy=(
    "call cudadrv.init() first"
)): """CUDA_ERROR_NOT_INITIALIZED."""
class DeinitializedError(CudaError, result=4, remedy=(
    "the process is shutting down; make no CUDA calls from exit handlers"
)): """CUDA_ERROR_DEINITIALIZED."""
class ProfilerDisabledError(CudaError, result=5): """CUDA_ERROR_PROFILER_DISABLED."""
class ProfilerNotInitializedError(CudaError, result=6): """CUDA_ERROR_PROFILER_NOT_INITIALIZED."""
class ProfilerAlreadyStartedError(CudaError, result=7): """CUDA_ERROR_PROFILER_ALREADY_STARTED."""
class ProfilerAlreadyStoppedError(CudaError, result=8): """CUDA_ERROR_PROFILER_ALREADY_STOPPED."""
class StubLibraryError(CudaError, result=34, remedy=(
    "the library found is the toolkit's stub; install the NVIDIA driver, or remove the stub "
    "folder from the library path"
)): """CUDA_ERROR_STUB_LIBRARY."""
class CallRequiresNewerDriverError(CudaError, result=36, remedy=(
    "update the NVIDIA driver"
)): """CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER."""
class DeviceUnavailableError(CudaError, result=46, remedy=(
    "another process holds the device in exclusive mode, or it is in a bad state; see "
    "nvidia-smi"
)): """CUDA_ERROR_DEVICE_UNAVAILABLE."""
class MulticastResourceFullError(CudaError, result=47): """CUDA_ERROR_MULTICAST_RESOURCE_FULL."""
class NoDeviceError(CudaError, result=100, remedy=(
    "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the emulator: CUDADRV_DRIVER=emulator"
)): """CUDA_ERROR_NO_DEVICE."""
class InvalidDeviceError(CudaError, result=101, remedy=(
    "list the devices with cudadrv.list_devices()"
)): """CUDA_ERROR_INVALID_DEVICE."""
class DeviceNotLicensedError(CudaError, result=102): """CUDA_ERROR_DEVICE_NOT_LICENSED."""
class InvalidImageError(CudaError, result=200, remedy=(
    "the image is damaged or not PTX, cubin or fatbin: compile it again"
)): """CUDA_ERROR_INVALID_IMAGE."""
class InvalidContextError(CudaError, result=201, remedy=(
    "the context was closed or reset: get it again from cuda_context_for(ordinal)"
)): """CUDA_ERROR_INVALID_CONTEXT."""
class ContextAlreadyCurrentError(CudaError, result=202): """CUDA_ERROR_CONTEXT_ALREADY_CURRENT."""
class MapFailedError(CudaError, result=205): """CUDA_ERROR_MAP_FAILED."""
class UnmapFailedError(CudaError, result=206): """CUDA_ERROR_UNMAP_FAILED."""
class ArrayIsMappedError(CudaError, result=207): """CUDA_ERROR_ARRAY_IS_MAPPED."""
class AlreadyMappedError(CudaError, result=208, remedy=(
    "leave the block of its other map() first"
)): """CUDA_ERROR_ALREADY_MAPPED."""
class NoBinaryForGPUError(CudaError, result=209, remedy=(
    "compile for the device: context.target names its architecture"
)): """CUDA_ERROR_NO_BINARY_FOR_GPU."""
class AlreadyAcquiredError(CudaError, result=210): """CUDA_ERROR_ALREADY_ACQUIRED."""
class NotMappedError(CudaError, result=211): """CUDA_ERROR_NOT_MAPPED."""
class NotMappedAsArrayError(CudaError, result=212): """CUDA_ERROR_NOT_MAPPED_AS_ARRAY."""
class NotMappedAsPointerError(CudaError, result=213): """CUDA_ERROR_NOT_MAPPED_AS_POINTER."""
class ECCUncorrectableError(CudaError, result=214, sticky=True, remedy=(
    "the device's memory failed; see nvidia-smi -q -d ECC"
)): """CUDA_ERROR_ECC_UNCORRECTABLE."""
class UnsupportedLimitError(CudaError, result=215): """CUDA_ERROR_UNSUPPORTED_LIMIT."""
class ContextAlreadyInUseError(CudaError, result=216): """CUDA_ERROR_CONTEXT_ALREADY_IN_USE."""
class PeerAccessUnsupportedError(CudaError, result=217, remedy=(
    "copy between these devices through Stream.copy, which needs no peer access"
)): """CUDA_ERROR_PEER_ACCESS_UNSUPPORTED."""
class InvalidPTXError(CudaError, result=218, remedy=(
    "the driver's JIT rejected the PTX: its log is in the error"
)): """CUDA_ERROR_INVALID_PTX."""
class InvalidGraphicsContextError(CudaError, result=219, remedy=(
    "make an OpenGL context of an NVIDIA GPU current in this thread"
)): """CUDA_ERROR_INVALID_GRAPHICS_CONTEXT."""
class NvLinkUncorrectableError(CudaError, result=220, sticky=True): """CUDA_ERROR_NVLINK_UNCORRECTABLE."""
class JITCompilerNotFoundError(CudaError, result=221, remedy=(
    "the driver's PTX compiler is missing: reinstall the driver, or load a cubin"
)): """CUDA_ERROR_JIT_COMPILER_NOT_FOUND."""
class UnsupportedPTXVersionError(CudaError, result=222, remedy=(
    "compile to a cubin for the device (context.target), update the driver, or install an "
    "NVRTC no newer than the driver"
)): """CUDA_ERROR_UNSUPPORTED_PTX_VERSION."""
class JITCompilationDisabledError(CudaError, result=223): """CUDA_ERROR_JIT_COMPILATION_DISABLED."""
class UnsupportedExecAffinityError(CudaError, result=224): """CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY."""
class UnsupportedDevsideSyncError(CudaError, result=225): """CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC."""
class ContainedError(CudaError, result=226, sticky=True): """CUDA_ERROR_CONTAINED."""
class InsufficientLoaderVersionError(CudaError, result=227): """CUDA_ERROR_INSUFFICIENT_LOADER_VERSION."""
class InvalidSourceError(CudaError, result=300): """CUDA_ERROR_INVALID_SOURCE."""
class SourceFileNotFoundError(CudaError, result=301): """CUDA_ERROR_FILE_NOT_FOUND."""
class SharedObjectSymbolNotFoundError(CudaError, result=302): """CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND."""
class SharedObjectInitFailedError(CudaError, result=303): """CUDA_ERROR_SHARED_OBJECT_INIT_FAILED."""
class OperatingSystemError(CudaError, result=304, remedy=(
    "an operating system call failed; check device permissions (/dev/nvidia*) and limits"
)): """CUDA_ERROR_OPERATING_SYSTEM."""
class InvalidHandleError(CudaError, result=400, remedy=(
    "the handle was closed, or belongs to another device"
)): """CUDA_ERROR_INVALID_HANDLE."""
class IllegalStateError(CudaError, result=401): """CUDA_ERROR_ILLEGAL_STATE."""
class LossyQueryError(CudaError, result=402): """CUDA_ERROR_LOSSY_QUERY."""
class NotFoundError(CudaError, result=500, remedy=(
    'check the name; extern "C" or a name expression gives the mangled one'
)): """CUDA_ERROR_NOT_FOUND."""
class NotReadyError(CudaError, result=600, remedy=(
    "the work is still running: synchronize, or query again later"
)): """CUDA_ERROR_NOT_READY."""
class IllegalAddressError(CudaError, result=700, sticky=True, remedy=(
    "a kernel accessed memory outside its allocations; run it on the emulator "
    "(CUDADRV_DRIVER=emulator) or under compute-sanitizer to find the access"
)): """CUDA_ERROR_ILLEGAL_ADDRESS."""
class LaunchOutOfResourcesError(CudaError, result=701, remedy=(
    "use fewer threads a block, fewer registers (maxrregcount) or less shared memory"
)): """CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES."""
class LaunchTimeoutError(CudaError, result=702, sticky=True, remedy=(
    "the device also drives a display, which limits run time: make the kernel shorter"
)): """CUDA_ERROR_LAUNCH_TIMEOUT."""
class LaunchIncompatibleTexturingError(CudaError, result=703): """CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING."""
class PeerAccessAlreadyEnabledError(CudaError, result=704): """CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED."""
class PeerAccessNotEnabledError(CudaError, result=705): """CUDA_ERROR_PEER_ACCESS_NOT_ENABLED."""
class PrimaryContextActiveError(CudaError, result=708, remedy=(
    "the primary context is in use: set its flags before the first use"
)): """CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE."""
class ContextIsDestroyedError(CudaError, result=709): """CUDA_ERROR_CONTEXT_IS_DESTROYED."""
class DeviceAssertError(CudaError, result=710, sticky=True, remedy=(
    "a device-side assert failed; its text was printed by the driver"
)): """CUDA_ERROR_ASSERT."""
class TooManyPeersError(CudaError, result=711): """CUDA_ERROR_TOO_MANY_PEERS."""
class HostMemoryAlreadyRegisteredError(CudaError, result=712): """CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED."""
class HostMemoryNotRegisteredError(CudaError, result=713): """CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED."""
class HardwareStackError(CudaError, result=714, sticky=True, remedy=(
    "a kernel overflowed its stack or corrupted it"
)): """CUDA_ERROR_HARDWARE_STACK_ERROR."""
class IllegalInstructionError(CudaError, result=715, sticky=True, remedy=(
    "a kernel ran an illegal instruction: rebuild it for this device, or, if it copies by "
    "tensor maps, run it on the emulator, which reports the fault"
)): """CUDA_ERROR_ILLEGAL_INSTRUCTION."""
class MisalignedAddressError(CudaError, result=716, sticky=True, remedy=(
    "a kernel accessed an address that is not a multiple of the access's size; the emulator "
    "names the line"
)): """CUDA_ERROR_MISALIGNED_ADDRESS."""
class InvalidAddressSpaceError(CudaError, result=717, sticky=True, remedy=(
    "a kernel used a pointer of another address space"
)): """CUDA_ERROR_INVALID_ADDRESS_SPACE."""
class InvalidPCError(CudaError, result=718, sticky=True, remedy=(
    "a kernel jumped to a bad address: check function pointers"
)): """CUDA_ERROR_INVALID_PC."""
class LaunchFailedError(CudaError, result=719, sticky=True, remedy=(
    "a kernel failed on the device; run it on the emulator or under compute-sanitizer to "
    "find out where"
)): """CUDA_ERROR_LAUNCH_FAILED."""
class CooperativeLaunchTooLargeError(CudaError, result=720, remedy=(
    "a cooperative grid must be resident at once: use fewer blocks (Kernel.max_active_blocks)"
)): """CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE."""
class TensorMemoryLeakError(CudaError, result=721, sticky=True): """CUDA_ERROR_TENSOR_MEMORY_LEAK."""
class NotPermittedError(CudaError, result=800, remedy=(
    "the call is not allowed in this state (for instance during a capture)"
)): """CUDA_ERROR_NOT_PERMITTED."""
class NotSupportedError(CudaError, result=801, remedy=(
    "this device or driver lacks the feature"
)):
    """CUDA_ERROR_NOT_SUPPORTED."""

    @property
    def _advice(self) -> str:
        return _UNPOOLED if self.call in _OF_POOLS else self.remedy

class SystemNotReadyError(CudaError, result=802, remedy=(
    "the fabric manager is not running or the system is starting"
)): """CUDA_ERROR_SYSTEM_NOT_READY."""
class SystemDriverMismatchError(CudaError, result=803, remedy=(
    "kernel module and user libraries of the driver differ: reboot after the driver update"
)): """CUDA_ERROR_SYSTEM_DRIVER_MISMATCH."""
class CompatNotSupportedOnDeviceError(CudaError, result=804): """CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE."""
class MPSConnectionFailedError(CudaError, result=805, remedy=(
    "start the MPS server, or unset CUDA_MPS_PIPE_DIRECTORY"
)): """CUDA_ERROR_MPS_CONNECTION_FAILED."""
class MPSRPCFailureError(CudaError, result=806): """CUDA_ERROR_MPS_RPC_FAILURE."""
class MPSServerNotReadyError(CudaError, result=807): """CUDA_ERROR_MPS_SERVER_NOT_READY."""
class MPSMaxClientsReachedError(CudaError, result=808): """CUDA_ERROR_MPS_MAX_CLIENTS_REACHED."""
class MPSMaxConnectionsReachedError(CudaError, result=809): """CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED."""
class MPSClientTerminatedError(CudaError, result=810): """CUDA_ERROR_MPS_CLIENT_TERMINATED."""
class CDPNotSupportedError(CudaError, result=811): """CUDA_ERROR_CDP_NOT_SUPPORTED."""
class CDPVersionMismatchError(CudaError, result=812): """CUDA_ERROR_CDP_VERSION_MISMATCH."""
class StreamCaptureUnsupportedError(CudaError, result=900, remedy=(
    "this call cannot be captured: make it before or after the capture"
)): """CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED."""
class StreamCaptureInvalidatedError(CudaError, result=901, remedy=(
    "an earlier error invalidated the capture: end it and capture again"
)): """CUDA_ERROR_STREAM_CAPTURE_INVALIDATED."""
class StreamCaptureMergeError(CudaError, result=902): """CUDA_ERROR_STREAM_CAPTURE_MERGE."""
class StreamCaptureUnmatchedError(CudaError, result=903): """CUDA_ERROR_STREAM_CAPTURE_UNMATCHED."""
class StreamCaptureUnjoinedError(CudaError, result=904, remedy=(
    "join every stream that was forked in the capture by an event before it ends"
)): """CUDA_ERROR_STREAM_CAPTURE_UNJOINED."""
class StreamCaptureIsolationError(CudaError, result=905): """CUDA_ERROR_STREAM_CAPTURE_ISOLATION."""
class StreamCaptureImplicitError(CudaError, result=906, remedy=(
    "the call synchronises with the legacy stream: make it outside the capture"
)): """CUDA_ERROR_STREAM_CAPTURE_IMPLICIT."""
class CapturedEventError(CudaError, result=907): """CUDA_ERROR_CAPTURED_EVENT."""
class StreamCaptureWrongThreadError(CudaError, result=908, remedy=(
    "end the capture in the thread that began it"
)): """CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD."""
class DriverTimeoutError(CudaError, result=909): """CUDA_ERROR_TIMEOUT."""
class GraphExecUpdateFailureError(CudaError, result=910, remedy=(
    "the graphs differ in more than parameters: instantiate the new one"
)): """CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE."""
class ExternalDeviceError(CudaError, result=911): """CUDA_ERROR_EXTERNAL_DEVICE."""
class InvalidClusterSizeError(CudaError, result=912, remedy=(
    "use a smaller cluster; 8 blocks is the portable limit"
)): """CUDA_ERROR_INVALID_CLUSTER_SIZE."""
class FunctionNotLoadedError(CudaError, result=913): """CUDA_ERROR_FUNCTION_NOT_LOADED."""
class InvalidResourceTypeError(CudaError, result=914): """CUDA_ERROR_INVALID_RESOURCE_TYPE."""
class InvalidResourceConfigurationError(CudaError, result=915): """CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION."""
class KeyRotationError(CudaError, result=916): """CUDA_ERROR_KEY_ROTATION."""
class StreamDetachedError(CudaError, result=917): """CUDA_ERROR_STREAM_DETACHED."""
class GraphRecaptureFailureError(CudaError, result=918): """CUDA_ERROR_GRAPH_RECAPTURE_FAILURE."""
class FabricNotReadyError(CudaError, result=919): """CUDA_ERROR_FABRIC_NOT_READY."""
class UnknownError(CudaError, result=999, sticky=True, remedy=(
    "see the kernel log (dmesg) for an Xid message"
)): """CUDA_ERROR_UNKNOWN."""
# fmt: on
