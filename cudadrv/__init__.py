"""cudadrv: the typed, pure-Python CUDA driver layer, with an emulator for machines without a GPU.

Importing this package touches no driver, no GPU and no disk.
"""

from .attributes import DeviceAttribute
from .capability import GpuCapability, GpuDeviceInfo
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
from .memory.array import DeviceArray
from .memory.buffer import DeviceBuffer
from .memory.pinned import pinned_empty
from .module import Module
from .module_cache import KeyedPtxModuleCache, PtxModuleCache
from .stream import Stream
from .types import ContextFlags, MemoryInfo
from .version import VERSION as __version__

__all__ = [
    "ArgumentError",
    "ClosedError",
    "Context",
    "ContextFlags",
    "CopyError",
    "CudaError",
    "CudadrvError",
    "Device",
    "DeviceArray",
    "DeviceAttribute",
    "DeviceBuffer",
    "DriverNotFoundError",
    "Event",
    "GpuCapability",
    "GpuDeviceInfo",
    "GpuError",
    "Graph",
    "GraphExec",
    "Kernel",
    "KernelAttributes",
    "KernelNotFoundError",
    "KeyedPtxModuleCache",
    "LaunchConfig",
    "LaunchConfigError",
    "Launcher",
    "MemoryInfo",
    "Module",
    "OutOfMemoryError",
    "PreparedLaunch",
    "PtxModuleCache",
    "Stream",
    "WrongDeviceError",
    "__version__",
    "best_device",
    "can_access_peer",
    "cuda_context_for",
    "driver_version",
    "init",
    "list_devices",
    "pinned_empty",
]
