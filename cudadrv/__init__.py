"""cudadrv: the typed, pure-Python CUDA driver layer, with an emulator for machines without a GPU.

Importing this package touches no driver, no GPU and no disk. The root has the names of daily use,
the submodules have the others. Until 1.0 the root has those, too (`_MOVED`), with a
`DeprecationWarning`. All are imported at their first use: the names stand here twice, for type
checkers and for the run.

`python -m cudadrv emulate` imports the package before pytest starts. The next word keeps pytest
from warning that it can no longer rewrite its assertions.

PYTEST_DONT_REWRITE
"""

import importlib
import sys

if sys.version_info < (3, 11):  # noqa: UP036  # of a source tree, which no installer has checked
    raise ImportError(
        "cudadrv needs Python 3.11 or newer, and this is "
        f"{sys.version.split()[0]} ({sys.executable}): make the environment with a newer one"
    )

# Of its own files this one imports three that no program imports first:
# tests/pure/test_layers.py.
from .lazy_names import at_first_use as _at_first_use
from .ptx_package import reject_other_ptx as _reject_other_ptx
from .version import VERSION as _VERSION

__version__ = _VERSION
_reject_other_ptx()

# For type checkers it is true. `typing` itself would take most of the time of this import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (
        allocators as allocators,
        blas as blas,
        checkpoint as checkpoint,
        client as client,
        cluster as cluster,
        driver as driver,
        emulator as emulator,
        errors as errors,
        graph as graph,
        interop as interop,
        ipc as ipc,
        launch as launch,
        memory as memory,
        nvml as nvml,
        opengl as opengl,
        pool as pool,
        runtime as runtime,
        stream as stream,
        tensor_map as tensor_map,
        testing as testing,
        texture as texture,
        tracing as tracing,
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
    from .cluster import (
        GpuExecutor as GpuExecutor,
        Progress as Progress,
        TerminalBar as TerminalBar,
        TilePolicy as TilePolicy,
        WorkerReport as WorkerReport,
    )
    from .driver import (
        CachePreference as CachePreference,
        ContextFlags as ContextFlags,
        ContextLimits as ContextLimits,
        DefaultStream as DefaultStream,
        Device as Device,
        DeviceAttribute as DeviceAttribute,
        DeviceProperties as DeviceProperties,
        Event as Event,
        GpuCapability as GpuCapability,
        GpuDeviceInfo as GpuDeviceInfo,
        MemoryInfo as MemoryInfo,
        SmResource as SmResource,
        best_device as best_device,
        can_access_peer as can_access_peer,
        driver_version as driver_version,
        init as init,
        list_devices as list_devices,
    )
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
    from .graph import (
        AllocNode as AllocNode,
        ConditionalNode as ConditionalNode,
        CopyNode as CopyNode,
        DotDetail as DotDetail,
        EventNode as EventNode,
        FillNode as FillNode,
        Graph as Graph,
        GraphCondition as GraphCondition,
        GraphExec as GraphExec,
        GraphNode as GraphNode,
        HostNode as HostNode,
        KernelNode as KernelNode,
        NodeKind as NodeKind,
    )
    from .interop import (
        ExternalMemory as ExternalMemory,
        ExternalSemaphore as ExternalSemaphore,
    )
    from .ipc import (
        IpcEventHandle as IpcEventHandle,
        IpcMemoryHandle as IpcMemoryHandle,
    )
    from .launch import (
        AccessWindow as AccessWindow,
        In as In,
        InOut as InOut,
        JitOptions as JitOptions,
        Kernel as Kernel,
        KernelAttributes as KernelAttributes,
        LaunchAttributes as LaunchAttributes,
        LaunchConfig as LaunchConfig,
        Launcher as Launcher,
        Module as Module,
        Out as Out,
        PreparedLaunch as PreparedLaunch,
    )
    from .memory import (
        Advice as Advice,
        ArenaMemory as ArenaMemory,
        Attachment as Attachment,
        CountedMemory as CountedMemory,
        CudaAllocator as CudaAllocator,
        DeviceArena as DeviceArena,
        DeviceArray as DeviceArray,
        DeviceBuffer as DeviceBuffer,
        DriverMemory as DriverMemory,
        GrowingBuffer as GrowingBuffer,
        HookedMemory as HookedMemory,
        MappedBuffer as MappedBuffer,
        MemoryPool as MemoryPool,
        MemoryResource as MemoryResource,
        MemoryStatistics as MemoryStatistics,
        MemoryStream as MemoryStream,
        MulticastObject as MulticastObject,
        PhysicalMemory as PhysicalMemory,
        PinnedPool as PinnedPool,
        PinnedStatistics as PinnedStatistics,
        PoolInfo as PoolInfo,
        PoolStatistics as PoolStatistics,
        RegisteredArray as RegisteredArray,
        UnpooledMemory as UnpooledMemory,
        VirtualMemoryResource as VirtualMemoryResource,
        advise as advise,
        managed_empty as managed_empty,
        pinned_empty as pinned_empty,
        pool_info as pool_info,
        set_release_threshold as set_release_threshold,
        trim_pool as trim_pool,
        using_memory as using_memory,
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
    from .pool import (
        DevicePool as DevicePool,
        NotInTileError as NotInTileError,
        ScatterError as ScatterError,
        Tile as Tile,
        TileError as TileError,
        balanced_partition as balanced_partition,
        current_tile as current_tile,
        scatter_batched as scatter_batched,
        scatter_map as scatter_map,
    )
    from .runtime import (
        AbsenceReason as AbsenceReason,
        CachedBackend as CachedBackend,
        Calibration as Calibration,
        CudaBackendContext as CudaBackendContext,
        CudaBackendParts as CudaBackendParts,
        GpuAbsent as GpuAbsent,
        GpuAvailability as GpuAvailability,
        GpuAvailable as GpuAvailable,
        GpuBroken as GpuBroken,
        GpuDispatchPolicy as GpuDispatchPolicy,
        GpuMixedPrecisionPolicy as GpuMixedPrecisionPolicy,
        GpuPolicy as GpuPolicy,
        GpuRuntime as GpuRuntime,
        KernelLibrary as KernelLibrary,
        KeyedPtxModuleCache as KeyedPtxModuleCache,
        PolicyOrigin as PolicyOrigin,
        PtxModuleCache as PtxModuleCache,
        calibrated_policy_for_device as calibrated_policy_for_device,
        probe_backend_with_compile as probe_backend_with_compile,
        probe_cuda_backend as probe_cuda_backend,
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
    from .texture import (
        AddressMode as AddressMode,
        CudaArray as CudaArray,
        FilterMode as FilterMode,
        MipmappedArray as MipmappedArray,
        ReadMode as ReadMode,
        Surface as Surface,
        Texture as Texture,
    )
    from .tracing import (
        DeviceSpan as DeviceSpan,
        Trace as Trace,
        trace as trace,
    )
else:
    _SUBMODULES = (
        "allocators", "blas", "checkpoint", "client", "cluster", "driver", "emulator", "errors",
        "graph", "interop", "ipc", "launch", "memory", "nvml", "opengl", "pool", "runtime",
        "stream", "tensor_map", "testing", "texture", "tracing",
    )  # fmt: skip

    _NAMES = {
        "client": "CudaClient",
        "cluster": "GpuExecutor",
        "driver": "Device Event best_device driver_version init list_devices",
        "errors": (
            "ArgumentError ClosedError CudaError CudadrvError DriverNotFoundError OutOfMemoryError"
        ),
        "graph": "Graph GraphExec",
        "launch": "In InOut Kernel LaunchConfig Launcher Module Out",
        "memory": (
            "DeviceArena DeviceArray DeviceBuffer MemoryPool managed_empty pinned_empty "
            "using_memory"
        ),
        "pool": "DevicePool balanced_partition current_tile scatter_batched scatter_map",
        "runtime": "GpuPolicy GpuRuntime KernelLibrary PtxModuleCache",
        "stream": "Context Stream StreamPool cuda_context_for",
        "tracing": "trace",
    }
    """The names above, by submodule.

    All of them at once would cost each start 100 ms, and those of `launch`, `memory` and `stream`,
    which need NumPy, an import that launches nothing 90 ms.
    """

    _MOVED = {
        "blas": "LinearAlgebra NotPositiveDefiniteError",
        "checkpoint": "ProcessCheckpoint ProcessState",
        "client": "CapturedGraph CudaRawHandle register_module",
        "cluster": "Progress TerminalBar TilePolicy WorkerReport",
        "driver": (
            "CachePreference ContextFlags ContextLimits DefaultStream DeviceAttribute "
            "DeviceProperties GpuCapability GpuDeviceInfo MemoryInfo SmResource can_access_peer"
        ),
        "errors": "CopyError GpuError KernelNotFoundError LaunchConfigError WrongDeviceError",
        "graph": (
            "AllocNode ConditionalNode CopyNode DotDetail EventNode FillNode GraphCondition "
            "GraphNode HostNode KernelNode NodeKind"
        ),
        "interop": "ExternalMemory ExternalSemaphore",
        "ipc": "IpcEventHandle IpcMemoryHandle",
        "launch": "AccessWindow JitOptions KernelAttributes LaunchAttributes PreparedLaunch",
        "memory": (
            "Advice ArenaMemory Attachment CountedMemory CudaAllocator DriverMemory GrowingBuffer "
            "HookedMemory MappedBuffer MemoryResource MemoryStatistics MemoryStream "
            "MulticastObject PhysicalMemory PinnedPool PinnedStatistics PoolInfo PoolStatistics "
            "RegisteredArray UnpooledMemory VirtualMemoryResource advise pool_info "
            "set_release_threshold trim_pool"
        ),
        "nvml": "ClockRates DeviceConnection EccErrors NvLink NvmlDevice PciPath PendingMode",
        "opengl": "OpenGLBuffer OpenGLImage opengl_devices",
        "pool": "NotInTileError ScatterError Tile TileError",
        "runtime": (
            "AbsenceReason CachedBackend Calibration CudaBackendContext CudaBackendParts "
            "GpuAbsent GpuAvailability GpuAvailable GpuBroken GpuDispatchPolicy "
            "GpuMixedPrecisionPolicy KeyedPtxModuleCache PolicyOrigin "
            "calibrated_policy_for_device probe_backend_with_compile probe_cuda_backend"
        ),
        "tensor_map": (
            "L2Promotion TensorElement TensorFill TensorInterleave TensorMap TensorSwizzle"
        ),
        "texture": "AddressMode CudaArray FilterMode MipmappedArray ReadMode Surface Texture",
        "tracing": "DeviceSpan Trace",
    }
    """The names that are deprecated here, by the submodule that has them."""

    _first_use, _names = _at_first_use(__name__, _NAMES)

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return ["__version__", *_names()]
        if name in _SUBMODULES:
            return importlib.import_module(f"{__name__}.{name}")
        for module, names in _MOVED.items():
            if name in names.split():
                _warn_of_moved(name, module)
                return getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return _first_use(name)

    def _warn_of_moved(name: str, module: str) -> None:
        import warnings  # which no other start needs

        warnings.warn(
            f"cudadrv.{name} is deprecated and goes with 1.0: use cudadrv.{module}.{name}",
            DeprecationWarning,
            stacklevel=3,
        )

    def __dir__() -> list[str]:
        return sorted({"__version__", *_SUBMODULES, *_names()})
