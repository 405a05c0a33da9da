"""cudadrv: the typed, pure-Python CUDA driver layer, with an emulator for machines without a GPU.

Importing this package touches no driver, no GPU and no disk. The layers above devices are
imported at their first use: their names stand here twice, for type checkers and for the run.

`python -m cudadrv emulate` imports the package before pytest starts. The next word keeps pytest
from warning that it can no longer rewrite its assertions.

PYTEST_DONT_REWRITE
"""

import importlib
import sys
import types
import typing

if sys.version_info < (3, 11):  # noqa: UP036  # of a source tree, which no installer has checked
    raise ImportError(
        "cudadrv needs Python 3.11 or newer, and this is "
        f"{sys.version.split()[0]} ({sys.executable}): make the environment with a newer one"
    )

# Of its own files this one imports two that no program imports first: tests/pure/test_layers.py.
from .ptx_package import reject_other_ptx as _reject_other_ptx
from .version import VERSION as _VERSION

__version__ = _VERSION
_reject_other_ptx()

if typing.TYPE_CHECKING:
    from . import (
        allocators as allocators,
        blas as blas,
        client as client,
        cluster as cluster,
        emulator as emulator,
        errors as errors,
        interop as interop,
        runtime as runtime,
        testing as testing,
    )
    from .blas import (
        LinearAlgebra as LinearAlgebra,
        NotPositiveDefiniteError as NotPositiveDefiniteError,
    )
    from .checkpoint import (
        ProcessCheckpoint as ProcessCheckpoint,
        ProcessState as ProcessState,
    )
    from .client import (
        CapturedGraph as CapturedGraph,
        CudaClient as CudaClient,
        CudaRawHandle as CudaRawHandle,
        register_module as register_module,
    )
    from .cluster.executor import GpuExecutor as GpuExecutor
    from .cluster.tile_policy import (
        Progress as Progress,
        TerminalBar as TerminalBar,
        TilePolicy as TilePolicy,
    )
    from .cluster.worker_report import WorkerReport as WorkerReport
    from .driver.attributes import DeviceAttribute as DeviceAttribute
    from .driver.capability import GpuCapability as GpuCapability, GpuDeviceInfo as GpuDeviceInfo
    from .driver.context import (
        CachePreference as CachePreference,
        ContextLimits as ContextLimits,
    )
    from .driver.default_stream import DefaultStream as DefaultStream
    from .driver.device import (
        Device as Device,
        DeviceProperties as DeviceProperties,
        best_device as best_device,
        can_access_peer as can_access_peer,
        driver_version as driver_version,
        init as init,
        list_devices as list_devices,
    )
    from .driver.event import Event as Event, IpcEventHandle as IpcEventHandle
    from .driver.sm_resource import SmResource as SmResource
    from .driver.types import ContextFlags as ContextFlags, MemoryInfo as MemoryInfo
    from .errors import (
        ArgumentError as ArgumentError,
        ClosedError as ClosedError,
        CopyError as CopyError,
        CudadrvError as CudadrvError,
        CudaError as CudaError,
        DriverNotFoundError as DriverNotFoundError,
        GpuError as GpuError,
        KernelNotFoundError as KernelNotFoundError,
        LaunchConfigError as LaunchConfigError,
        OutOfMemoryError as OutOfMemoryError,
        WrongDeviceError as WrongDeviceError,
    )
    from .graph.executable import GraphExec as GraphExec
    from .graph.graph import (
        ConditionalNode as ConditionalNode,
        DotDetail as DotDetail,
        Graph as Graph,
        GraphCondition as GraphCondition,
    )
    from .graph.node import GraphNode as GraphNode, NodeKind as NodeKind
    from .graph.node_kinds import (
        AllocNode as AllocNode,
        CopyNode as CopyNode,
        EventNode as EventNode,
        FillNode as FillNode,
        HostNode as HostNode,
        KernelNode as KernelNode,
    )
    from .interop.external import (
        ExternalMemory as ExternalMemory,
        ExternalSemaphore as ExternalSemaphore,
    )
    from .ipc import IpcMemoryHandle as IpcMemoryHandle
    from .launch.config import (
        AccessWindow as AccessWindow,
        LaunchAttributes as LaunchAttributes,
        LaunchConfig as LaunchConfig,
    )
    from .launch.host_arguments import In as In, InOut as InOut, Out as Out
    from .launch.jit_options import JitOptions as JitOptions
    from .launch.kernel_attributes import KernelAttributes as KernelAttributes
    from .launch.module_and_kernel import (
        Kernel as Kernel,
        Launcher as Launcher,
        Module as Module,
        PreparedLaunch as PreparedLaunch,
    )
    from .memory.array import DeviceArray as DeviceArray
    from .memory.buffer import DeviceBuffer as DeviceBuffer
    from .memory.driver_pool import (
        PoolInfo as PoolInfo,
        pool_info as pool_info,
        set_release_threshold as set_release_threshold,
        trim_pool as trim_pool,
    )
    from .memory.growing_buffer import GrowingBuffer as GrowingBuffer
    from .memory.managed import (
        Advice as Advice,
        Attachment as Attachment,
        advise as advise,
        managed_empty as managed_empty,
    )
    from .memory.memory_pool import (
        MemoryPool as MemoryPool,
        PoolStatistics as PoolStatistics,
    )
    from .memory.multicast import MulticastObject as MulticastObject
    from .memory.physical_memory import (
        MappedBuffer as MappedBuffer,
        PhysicalMemory as PhysicalMemory,
    )
    from .memory.pinned import pinned_empty as pinned_empty
    from .memory.registered import RegisteredArray as RegisteredArray
    from .memory.resource import (
        DriverMemory as DriverMemory,
        MemoryResource as MemoryResource,
        MemoryStream as MemoryStream,
        using_memory as using_memory,
    )
    from .memory.resource_adaptors import (
        CountedMemory as CountedMemory,
        HookedMemory as HookedMemory,
        MemoryStatistics as MemoryStatistics,
    )
    from .memory.reuse.allocator import CudaAllocator as CudaAllocator
    from .memory.reuse.arena import ArenaMemory as ArenaMemory, DeviceArena as DeviceArena
    from .memory.reuse.pinned_pool import (
        PinnedPool as PinnedPool,
        PinnedStatistics as PinnedStatistics,
    )
    from .memory.unpooled import UnpooledMemory as UnpooledMemory
    from .memory.virtual_memory_resource import (
        VirtualMemoryResource as VirtualMemoryResource,
    )
    from .nvml import (
        ClockRates as ClockRates,
        DeviceConnection as DeviceConnection,
        EccErrors as EccErrors,
        NvLink as NvLink,
        NvmlDevice as NvmlDevice,
        PciPath as PciPath,
        PendingMode as PendingMode,
    )
    from .opengl import (
        OpenGLBuffer as OpenGLBuffer,
        OpenGLImage as OpenGLImage,
        opengl_devices as opengl_devices,
    )
    from .pool.device_pool import DevicePool as DevicePool
    from .pool.scatter import (
        balanced_partition as balanced_partition,
        scatter_batched as scatter_batched,
        scatter_map as scatter_map,
    )
    from .pool.tile import (
        NotInTileError as NotInTileError,
        ScatterError as ScatterError,
        Tile as Tile,
        TileError as TileError,
        current_tile as current_tile,
    )
    from .runtime.backend import (
        CudaBackendContext as CudaBackendContext,
        CudaBackendParts as CudaBackendParts,
        probe_backend_with_compile as probe_backend_with_compile,
        probe_cuda_backend as probe_cuda_backend,
    )
    from .runtime.cached_backend import CachedBackend as CachedBackend
    from .runtime.calibration import (
        Calibration as Calibration,
        PolicyOrigin as PolicyOrigin,
        calibrated_policy_for_device as calibrated_policy_for_device,
    )
    from .runtime.kernel_library import KernelLibrary as KernelLibrary
    from .runtime.module_cache import (
        KeyedPtxModuleCache as KeyedPtxModuleCache,
        PtxModuleCache as PtxModuleCache,
    )
    from .runtime.policy import (
        GpuDispatchPolicy as GpuDispatchPolicy,
        GpuMixedPrecisionPolicy as GpuMixedPrecisionPolicy,
    )
    from .runtime.probe import (
        AbsenceReason as AbsenceReason,
        GpuAbsent as GpuAbsent,
        GpuAvailability as GpuAvailability,
        GpuAvailable as GpuAvailable,
        GpuBroken as GpuBroken,
        GpuPolicy as GpuPolicy,
        GpuRuntime as GpuRuntime,
    )
    from .stream import (
        Context as Context,
        Stream as Stream,
        StreamPool as StreamPool,
        cuda_context_for as cuda_context_for,
    )
    from .tensor_map import (
        L2Promotion as L2Promotion,
        TensorElement as TensorElement,
        TensorFill as TensorFill,
        TensorInterleave as TensorInterleave,
        TensorMap as TensorMap,
        TensorSwizzle as TensorSwizzle,
    )
    from .texture.cuda_array import CudaArray as CudaArray
    from .texture.mipmapped_array import MipmappedArray as MipmappedArray
    from .texture.surface import Surface as Surface
    from .texture.texture import (
        AddressMode as AddressMode,
        FilterMode as FilterMode,
        ReadMode as ReadMode,
        Texture as Texture,
    )
    from .tracing import DeviceSpan as DeviceSpan, Trace as Trace, trace as trace
else:
    _AT_FIRST_USE = {
        "blas": "LinearAlgebra NotPositiveDefiniteError",
        "client": "CapturedGraph CudaClient CudaRawHandle register_module",
        "cluster.executor": "GpuExecutor",
        "cluster.tile_policy": "Progress TerminalBar TilePolicy",
        "cluster.worker_report": "WorkerReport",
        "driver.attributes": "DeviceAttribute",
        "driver.capability": "GpuCapability GpuDeviceInfo",
        "driver.context": "CachePreference ContextLimits",
        "driver.default_stream": "DefaultStream",
        "driver.device": (
            "Device DeviceProperties best_device can_access_peer driver_version init list_devices"
        ),
        "driver.event": "Event IpcEventHandle",
        "nvml": ("ClockRates DeviceConnection EccErrors NvLink NvmlDevice PciPath PendingMode"),
        "driver.sm_resource": "SmResource",
        "driver.types": "ContextFlags MemoryInfo",
        "errors": (
            "ArgumentError ClosedError CopyError CudaError CudadrvError DriverNotFoundError "
            "GpuError KernelNotFoundError LaunchConfigError OutOfMemoryError WrongDeviceError"
        ),
        "graph.executable": "GraphExec",
        "graph.graph": "ConditionalNode DotDetail Graph GraphCondition",
        "graph.node": "GraphNode NodeKind",
        "graph.node_kinds": "AllocNode CopyNode EventNode FillNode HostNode KernelNode",
        "interop.external": "ExternalMemory ExternalSemaphore",
        "launch.config": "AccessWindow LaunchAttributes LaunchConfig",
        "launch.host_arguments": "In InOut Out",
        "launch.jit_options": "JitOptions",
        "launch.kernel_attributes": "KernelAttributes",
        "launch.module_and_kernel": "Kernel Launcher Module PreparedLaunch",
        "memory.array": "DeviceArray",
        "memory.buffer": "DeviceBuffer",
        "memory.driver_pool": "PoolInfo pool_info set_release_threshold trim_pool",
        "memory.managed": "Advice Attachment advise managed_empty",
        "memory.multicast": "MulticastObject",
        "memory.physical_memory": "MappedBuffer PhysicalMemory",
        "memory.pinned": "pinned_empty",
        "memory.registered": "RegisteredArray",
        "ipc": "IpcMemoryHandle",
        "memory.growing_buffer": "GrowingBuffer",
        "memory.resource_adaptors": "CountedMemory HookedMemory MemoryStatistics",
        "memory.memory_pool": "MemoryPool PoolStatistics",
        "memory.unpooled": "UnpooledMemory",
        "memory.virtual_memory_resource": "VirtualMemoryResource",
        "memory.reuse.allocator": "CudaAllocator",
        "memory.reuse.pinned_pool": "PinnedPool PinnedStatistics",
        "memory.resource": ("DriverMemory MemoryResource MemoryStream using_memory"),
        "memory.reuse.arena": "ArenaMemory DeviceArena",
        "opengl": "OpenGLBuffer OpenGLImage opengl_devices",
        "pool.device_pool": "DevicePool",
        "pool.scatter": "balanced_partition scatter_batched scatter_map",
        "pool.tile": "NotInTileError ScatterError Tile TileError current_tile",
        "runtime.backend": (
            "CudaBackendContext CudaBackendParts probe_backend_with_compile probe_cuda_backend"
        ),
        "runtime.cached_backend": "CachedBackend",
        "runtime.calibration": "Calibration PolicyOrigin calibrated_policy_for_device",
        "runtime.kernel_library": "KernelLibrary",
        "runtime.module_cache": "KeyedPtxModuleCache PtxModuleCache",
        "runtime.policy": "GpuDispatchPolicy GpuMixedPrecisionPolicy",
        "runtime.probe": (
            "AbsenceReason GpuAbsent GpuAvailability GpuAvailable GpuBroken GpuPolicy GpuRuntime"
        ),
        "stream": "Context Stream StreamPool cuda_context_for",
        "checkpoint": "ProcessCheckpoint ProcessState",
        "tensor_map": (
            "L2Promotion TensorElement TensorFill TensorInterleave TensorMap TensorSwizzle"
        ),
        "texture.cuda_array": "CudaArray",
        "texture.mipmapped_array": "MipmappedArray",
        "texture.surface": "Surface",
        "texture.texture": "AddressMode FilterMode ReadMode Texture",
        "tracing": "DeviceSpan Trace trace",
    }
    """The names above by module, for the run.

    All of them at once would cost each start 100 ms, and those of `launch`, `memory` and `stream`,
    which need NumPy, an import that launches nothing 90 ms.
    """

    # Pages, error texts and tracebacks name them, such as cudadrv.interop.register.
    _SUBMODULES = (
        "allocators", "blas", "client", "cluster", "emulator", "errors", "interop", "runtime",
        "testing",
    )  # fmt: skip

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if name in _SUBMODULES:
            return importlib.import_module(f"{__name__}.{name}")
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        here = {
            name
            for name, value in globals().items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType)
        }
        later = " ".join(_AT_FIRST_USE.values()).split()
        return sorted({"__version__", *here, *later})
