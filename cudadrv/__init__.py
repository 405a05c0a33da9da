"""cudadrv: the typed, pure-Python CUDA driver layer, with an emulator for machines without a GPU.

Importing this package touches no driver, no GPU and no disk. What stands above devices and contexts
is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .driver.device import Device, best_device, can_access_peer, driver_version, init, list_devices
from .errors import (
    ArgumentError,
    ClosedError,
    CopyError,
    CudadrvError,
    CudaError,
    DriverNotFoundError,
    KernelNotFoundError,
    LaunchConfigError,
    WrongDeviceError,
)
from .stream import Context, cuda_context_for

if TYPE_CHECKING:
    from .blas import LinearAlgebra, NotPositiveDefiniteError
    from .client import CapturedGraph, CudaClient, CudaRawHandle, register_module
    from .client.sobol import SobolDvCache
    from .driver.attributes import DeviceAttribute
    from .driver.capability import GpuCapability, GpuDeviceInfo
    from .driver.event import Event
    from .driver.types import ContextFlags, MemoryInfo
    from .errors import GpuError, OutOfMemoryError
    from .graph import Graph, GraphExec
    from .launch.config import LaunchConfig
    from .launch.kernel_core import KernelAttributes
    from .launch.module import Kernel, Module
    from .launch.types import Launcher, PreparedLaunch
    from .memory.array import DeviceArray
    from .memory.buffer import DeviceBuffer
    from .memory.driver_pool import PoolInfo, pool_info, set_release_threshold, trim_pool
    from .memory.pinned import managed_empty, pinned_empty
    from .memory.reuse.allocator import CudaAllocator
    from .memory.reuse.arena import DeviceArena
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
    from .runtime.module_cache import KeyedPtxModuleCache, PtxModuleCache
    from .runtime.policy import GpuDispatchPolicy, GpuMixedPrecisionPolicy
    from .runtime.probe import GpuRuntime
    from .stream import Stream
    from .texture.array import CudaArray
    from .texture.mipmap import MipmappedArray
    from .texture.modes import AddressMode, FilterMode, ReadMode
    from .texture.surface import Surface
    from .texture.texture import Texture
    from .tracing import Trace, trace
    from .version import VERSION as __version__

_LATER = {
    "DeviceAttribute": "driver.attributes",
    "GpuError": "errors",
    "OutOfMemoryError": "errors",
    "Event": "driver.event",
    "Graph": "graph",
    "GraphExec": "graph",
    "Kernel": "launch.module",
    "KernelAttributes": "launch.kernel_core",
    "LaunchConfig": "launch.config",
    "Launcher": "launch.types",
    "PreparedLaunch": "launch.types",
    "DeviceArray": "memory.array",
    "DeviceBuffer": "memory.buffer",
    "Module": "launch.module",
    "Stream": "stream",
    "PoolInfo": "memory.driver_pool",
    "pool_info": "memory.driver_pool",
    "set_release_threshold": "memory.driver_pool",
    "trim_pool": "memory.driver_pool",
    "managed_empty": "memory.pinned",
    "pinned_empty": "memory.pinned",
    "ContextFlags": "driver.types",
    "MemoryInfo": "driver.types",
    "__version__": "version",
    "CudaArray": "texture.array",
    "MipmappedArray": "texture.mipmap",
    "AddressMode": "texture.modes",
    "FilterMode": "texture.modes",
    "ReadMode": "texture.modes",
    "Surface": "texture.surface",
    "Texture": "texture.texture",
    "Trace": "tracing",
    "trace": "tracing",
    "GpuCapability": "driver.capability",
    "GpuDeviceInfo": "driver.capability",
    "LinearAlgebra": "blas",
    "NotPositiveDefiniteError": "blas",
    "CapturedGraph": "client",
    "CudaClient": "client",
    "CudaRawHandle": "client",
    "CudaAllocator": "memory.reuse.allocator",
    "DeviceArena": "memory.reuse.arena",
    "KeyedPtxModuleCache": "runtime.module_cache",
    "PtxModuleCache": "runtime.module_cache",
    "register_module": "client",
    "DevicePool": "pool.device_pool",
    "NotInTileError": "pool.failures",
    "ScatterError": "pool.failures",
    "TileError": "pool.failures",
    "balanced_partition": "pool.partition",
    "scatter_batched": "pool.scatter",
    "scatter_map": "pool.scatter",
    "Tile": "pool.tile",
    "current_tile": "pool.tile",
    "PirlsCurvature": "runtime.admission",
    "PirlsFamily": "runtime.admission",
    "PirlsLoopAdmission": "runtime.admission",
    "RemlOuterAdmission": "runtime.admission",
    "AbsenceReason": "runtime.availability",
    "GpuAbsent": "runtime.availability",
    "GpuAvailability": "runtime.availability",
    "GpuAvailable": "runtime.availability",
    "GpuBroken": "runtime.availability",
    "GpuPolicy": "runtime.availability",
    "CudaBackendContext": "runtime.backend",
    "CudaBackendParts": "runtime.backend",
    "probe_backend_with_compile": "runtime.backend",
    "probe_cuda_backend": "runtime.backend",
    "Calibration": "runtime.calibration",
    "PolicyOrigin": "runtime.calibration",
    "calibrated_policy_for_device": "runtime.calibration",
    "GpuDispatchPolicy": "runtime.policy",
    "GpuMixedPrecisionPolicy": "runtime.policy",
    "GpuRuntime": "runtime.probe",
    "SobolDvCache": "client.sobol",
}
"""Public names by the module that is imported at their first use."""

__all__ = [
    "AbsenceReason",
    "AddressMode",
    "ArgumentError",
    "Calibration",
    "CapturedGraph",
    "ClosedError",
    "Context",
    "ContextFlags",
    "CopyError",
    "CudaAllocator",
    "CudaArray",
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
    "FilterMode",
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
    "MipmappedArray",
    "Module",
    "NotInTileError",
    "NotPositiveDefiniteError",
    "OutOfMemoryError",
    "PirlsCurvature",
    "PirlsFamily",
    "PirlsLoopAdmission",
    "PolicyOrigin",
    "PoolInfo",
    "PreparedLaunch",
    "PtxModuleCache",
    "ReadMode",
    "RemlOuterAdmission",
    "ScatterError",
    "SobolDvCache",
    "Stream",
    "Surface",
    "Texture",
    "Tile",
    "TileError",
    "Trace",
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
    "managed_empty",
    "pinned_empty",
    "pool_info",
    "probe_backend_with_compile",
    "probe_cuda_backend",
    "register_module",
    "scatter_batched",
    "scatter_map",
    "set_release_threshold",
    "trace",
    "trim_pool",
]


if not TYPE_CHECKING:  # a type checker sees each name above, and that there are no others

    def __getattr__(name: str) -> object:
        module = _LATER.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = "VERSION" if name == "__version__" else name
        value: object = getattr(import_module(f"{__name__}.{module}"), found)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
