"""cudadrv: the typed, pure-Python CUDA driver layer, with an emulator for machines without a GPU.

Importing this package touches no driver, no GPU and no disk.
"""

from .attributes import DeviceAttribute
from .blas import LinearAlgebra, NotPositiveDefiniteError
from .capability import GpuCapability, GpuDeviceInfo
from .captured import CapturedGraph
from .client import CudaClient, CudaRawHandle
from .context import Context, cuda_context_for
from .device import Device, best_device, can_access_peer, driver_version, init, list_devices
from .errors import (
    ArgumentError,
    ClosedError,
    CopyError,
    CudadrvError,
    CudaError,
    DriverNotFoundError,
    GpuError,
    KernelNotFoundError,
    LaunchConfigError,
    OutOfMemoryError,
    WrongDeviceError,
)
from .event import Event
from .graph import Graph, GraphExec
from .kernel import Kernel, KernelAttributes
from .launch_config import LaunchConfig
from .launcher import Launcher, PreparedLaunch
from .memory.allocator import CudaAllocator
from .memory.arena import DeviceArena
from .memory.array import DeviceArray
from .memory.buffer import DeviceBuffer
from .memory.pinned import pinned_empty
from .module import Module
from .module_cache import KeyedPtxModuleCache, PtxModuleCache
from .module_registry import register_module
from .pool.device_pool import DevicePool
from .pool.failures import NotInTileError, ScatterError, TileError
from .pool.partition import balanced_partition
from .pool.scatter import scatter_batched, scatter_map
from .pool.tile import Tile, current_tile
from .runtime.admission import (
    PirlsCurvature,
    PirlsFamily,
    PirlsLoopAdmission,
    RemlOuterAdmission,
)
from .runtime.availability import (
    AbsenceReason,
    GpuAbsent,
    GpuAvailability,
    GpuAvailable,
    GpuBroken,
    GpuPolicy,
)
from .runtime.backend import (
    CudaBackendContext,
    CudaBackendParts,
    probe_backend_with_compile,
    probe_cuda_backend,
)
from .runtime.calibration import Calibration, PolicyOrigin, calibrated_policy_for_device
from .runtime.policy import GpuDispatchPolicy, GpuMixedPrecisionPolicy
from .runtime.probe import GpuRuntime
from .sobol import SobolDvCache
from .stream import Stream
from .types import ContextFlags, MemoryInfo
from .version import VERSION as __version__

__all__ = [
    "AbsenceReason",
    "ArgumentError",
    "Calibration",
    "CapturedGraph",
    "ClosedError",
    "Context",
    "ContextFlags",
    "CopyError",
    "CudaAllocator",
    "CudaBackendContext",
    "CudaBackendParts",
    "CudaClient",
    "CudaError",
    "CudaRawHandle",
    "CudadrvError",
    "Device",
    "DeviceArena",
    "DeviceArray",
    "DeviceAttribute",
    "DeviceBuffer",
    "DevicePool",
    "DriverNotFoundError",
    "Event",
    "GpuAbsent",
    "GpuAvailability",
    "GpuAvailable",
    "GpuBroken",
    "GpuCapability",
    "GpuDeviceInfo",
    "GpuDispatchPolicy",
    "GpuError",
    "GpuMixedPrecisionPolicy",
    "GpuPolicy",
    "GpuRuntime",
    "Graph",
    "GraphExec",
    "Kernel",
    "KernelAttributes",
    "KernelNotFoundError",
    "KeyedPtxModuleCache",
    "LaunchConfig",
    "LaunchConfigError",
    "Launcher",
    "LinearAlgebra",
    "MemoryInfo",
    "Module",
    "NotInTileError",
    "NotPositiveDefiniteError",
    "OutOfMemoryError",
    "PirlsCurvature",
    "PirlsFamily",
    "PirlsLoopAdmission",
    "PolicyOrigin",
    "PreparedLaunch",
    "PtxModuleCache",
    "RemlOuterAdmission",
    "ScatterError",
    "SobolDvCache",
    "Stream",
    "Tile",
    "TileError",
    "WrongDeviceError",
    "__version__",
    "balanced_partition",
    "best_device",
    "calibrated_policy_for_device",
    "can_access_peer",
    "cuda_context_for",
    "current_tile",
    "driver_version",
    "init",
    "list_devices",
    "pinned_empty",
    "probe_backend_with_compile",
    "probe_cuda_backend",
    "register_module",
    "scatter_batched",
    "scatter_map",
]
