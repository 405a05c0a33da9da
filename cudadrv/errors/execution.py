"""The `CudaError` classes of results 700 and up: execution, peers and the system."""

from __future__ import annotations

from typing import ClassVar

from .base import CudaError


class IllegalAddressError(CudaError):
    """CUDA_ERROR_ILLEGAL_ADDRESS."""

    result: ClassVar[int] = 700
    remedy: ClassVar[str] = (
        "a kernel accessed memory that is not its own; run it on the emulator "
        "(CUDADRV_DRIVER=emulator) or under compute-sanitizer to find the access"
    )
    sticky: ClassVar[bool] = True


class LaunchOutOfResourcesError(CudaError):
    """CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES."""

    result: ClassVar[int] = 701
    remedy: ClassVar[str] = (
        "use fewer threads a block, fewer registers (maxrregcount) or less shared memory"
    )


class LaunchTimeoutError(CudaError):
    """CUDA_ERROR_LAUNCH_TIMEOUT."""

    result: ClassVar[int] = 702
    remedy: ClassVar[str] = (
        "the device also drives a display, which limits run time: make the kernel shorter"
    )
    sticky: ClassVar[bool] = True


class LaunchIncompatibleTexturingError(CudaError):
    """CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING."""

    result: ClassVar[int] = 703


class PeerAccessAlreadyEnabledError(CudaError):
    """CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED."""

    result: ClassVar[int] = 704


class PeerAccessNotEnabledError(CudaError):
    """CUDA_ERROR_PEER_ACCESS_NOT_ENABLED."""

    result: ClassVar[int] = 705


class PrimaryContextActiveError(CudaError):
    """CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE."""

    result: ClassVar[int] = 708
    remedy: ClassVar[str] = "the primary context is in use: set its flags before the first use"


class ContextIsDestroyedError(CudaError):
    """CUDA_ERROR_CONTEXT_IS_DESTROYED."""

    result: ClassVar[int] = 709


class DeviceAssertError(CudaError):
    """CUDA_ERROR_ASSERT."""

    result: ClassVar[int] = 710
    remedy: ClassVar[str] = "a device-side assert failed; its text was printed by the driver"
    sticky: ClassVar[bool] = True


class TooManyPeersError(CudaError):
    """CUDA_ERROR_TOO_MANY_PEERS."""

    result: ClassVar[int] = 711


class HostMemoryAlreadyRegisteredError(CudaError):
    """CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED."""

    result: ClassVar[int] = 712


class HostMemoryNotRegisteredError(CudaError):
    """CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED."""

    result: ClassVar[int] = 713


class HardwareStackError(CudaError):
    """CUDA_ERROR_HARDWARE_STACK_ERROR."""

    result: ClassVar[int] = 714
    remedy: ClassVar[str] = "a kernel overflowed its stack or corrupted it"
    sticky: ClassVar[bool] = True


class IllegalInstructionError(CudaError):
    """CUDA_ERROR_ILLEGAL_INSTRUCTION."""

    result: ClassVar[int] = 715
    remedy: ClassVar[str] = (
        "a kernel ran an illegal instruction: rebuild it for this device, or, if it copies by "
        "tensor maps, run it on the emulator, which tells what is wrong"
    )
    sticky: ClassVar[bool] = True


class MisalignedAddressError(CudaError):
    """CUDA_ERROR_MISALIGNED_ADDRESS."""

    result: ClassVar[int] = 716
    remedy: ClassVar[str] = (
        "a kernel accessed an address that is not a multiple of the access's size; the emulator "
        "names the line"
    )
    sticky: ClassVar[bool] = True


class InvalidAddressSpaceError(CudaError):
    """CUDA_ERROR_INVALID_ADDRESS_SPACE."""

    result: ClassVar[int] = 717
    remedy: ClassVar[str] = "a kernel used a pointer of another address space"
    sticky: ClassVar[bool] = True


class InvalidPCError(CudaError):
    """CUDA_ERROR_INVALID_PC."""

    result: ClassVar[int] = 718
    remedy: ClassVar[str] = "a kernel jumped to a bad address: check function pointers"
    sticky: ClassVar[bool] = True


class LaunchFailedError(CudaError):
    """CUDA_ERROR_LAUNCH_FAILED."""

    result: ClassVar[int] = 719
    remedy: ClassVar[str] = (
        "a kernel failed on the device; run it on the emulator or under compute-sanitizer to "
        "find out where"
    )
    sticky: ClassVar[bool] = True


class CooperativeLaunchTooLargeError(CudaError):
    """CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE."""

    result: ClassVar[int] = 720
    remedy: ClassVar[str] = (
        "a cooperative grid must be resident at once: use fewer blocks (Kernel.max_active_blocks)"
    )


class TensorMemoryLeakError(CudaError):
    """CUDA_ERROR_TENSOR_MEMORY_LEAK."""

    result: ClassVar[int] = 721
    sticky: ClassVar[bool] = True


class NotPermittedError(CudaError):
    """CUDA_ERROR_NOT_PERMITTED."""

    result: ClassVar[int] = 800
    remedy: ClassVar[str] = "the call is not allowed in this state (for instance during a capture)"


class NotSupportedError(CudaError):
    """CUDA_ERROR_NOT_SUPPORTED."""

    result: ClassVar[int] = 801
    remedy: ClassVar[str] = "this device or driver lacks the feature"


class SystemNotReadyError(CudaError):
    """CUDA_ERROR_SYSTEM_NOT_READY."""

    result: ClassVar[int] = 802
    remedy: ClassVar[str] = "the fabric manager is not running or the system is starting"


class SystemDriverMismatchError(CudaError):
    """CUDA_ERROR_SYSTEM_DRIVER_MISMATCH."""

    result: ClassVar[int] = 803
    remedy: ClassVar[str] = (
        "kernel module and user libraries of the driver differ: reboot after the driver update"
    )


class CompatNotSupportedOnDeviceError(CudaError):
    """CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE."""

    result: ClassVar[int] = 804


class MPSConnectionFailedError(CudaError):
    """CUDA_ERROR_MPS_CONNECTION_FAILED."""

    result: ClassVar[int] = 805
    remedy: ClassVar[str] = "start the MPS server, or unset CUDA_MPS_PIPE_DIRECTORY"


class MPSRPCFailureError(CudaError):
    """CUDA_ERROR_MPS_RPC_FAILURE."""

    result: ClassVar[int] = 806


class MPSServerNotReadyError(CudaError):
    """CUDA_ERROR_MPS_SERVER_NOT_READY."""

    result: ClassVar[int] = 807


class MPSMaxClientsReachedError(CudaError):
    """CUDA_ERROR_MPS_MAX_CLIENTS_REACHED."""

    result: ClassVar[int] = 808


class MPSMaxConnectionsReachedError(CudaError):
    """CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED."""

    result: ClassVar[int] = 809


class MPSClientTerminatedError(CudaError):
    """CUDA_ERROR_MPS_CLIENT_TERMINATED."""

    result: ClassVar[int] = 810


class CDPNotSupportedError(CudaError):
    """CUDA_ERROR_CDP_NOT_SUPPORTED."""

    result: ClassVar[int] = 811


class CDPVersionMismatchError(CudaError):
    """CUDA_ERROR_CDP_VERSION_MISMATCH."""

    result: ClassVar[int] = 812


class DriverTimeoutError(CudaError):
    """CUDA_ERROR_TIMEOUT."""

    result: ClassVar[int] = 909


class ExternalDeviceError(CudaError):
    """CUDA_ERROR_EXTERNAL_DEVICE."""

    result: ClassVar[int] = 911


class InvalidClusterSizeError(CudaError):
    """CUDA_ERROR_INVALID_CLUSTER_SIZE."""

    result: ClassVar[int] = 912
    remedy: ClassVar[str] = "use a smaller cluster; 8 blocks is the portable limit"


class FunctionNotLoadedError(CudaError):
    """CUDA_ERROR_FUNCTION_NOT_LOADED."""

    result: ClassVar[int] = 913


class InvalidResourceTypeError(CudaError):
    """CUDA_ERROR_INVALID_RESOURCE_TYPE."""

    result: ClassVar[int] = 914


class InvalidResourceConfigurationError(CudaError):
    """CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION."""

    result: ClassVar[int] = 915


class KeyRotationError(CudaError):
    """CUDA_ERROR_KEY_ROTATION."""

    result: ClassVar[int] = 916


class StreamDetachedError(CudaError):
    """CUDA_ERROR_STREAM_DETACHED."""

    result: ClassVar[int] = 917


class FabricNotReadyError(CudaError):
    """CUDA_ERROR_FABRIC_NOT_READY."""

    result: ClassVar[int] = 919


class UnknownError(CudaError):
    """CUDA_ERROR_UNKNOWN."""

    result: ClassVar[int] = 999
    remedy: ClassVar[str] = "see the kernel log (dmesg) for an Xid message"
    sticky: ClassVar[bool] = True
