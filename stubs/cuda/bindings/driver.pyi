# cuda.bindings.driver of cuda-bindings 13.5.0, made by tools/generate_stubs.

from enum import IntEnum
from typing import Any, Self, TypeAlias

from typing_extensions import Buffer, disjoint_base

# void *: an address, an object with the buffer protocol, or a number.
_Pointer: TypeAlias = CUdeviceptr | cuuint32_t | cuuint64_t | Buffer | int | None

# void **: the address of an array of pointers, or values and their ctypes types.
_KernelParams: TypeAlias = (
    Buffer | tuple[tuple[object, ...], tuple[type[object] | None, ...]] | int | None
)

CUDA_VERSION: int
CU_IPC_HANDLE_SIZE: int
CU_STREAM_LEGACY: int
CU_STREAM_PER_THREAD: int
CU_COMPUTE_ACCELERATED_TARGET_BASE: int
CU_COMPUTE_FAMILY_TARGET_BASE: int
CU_GRAPH_COND_ASSIGN_DEFAULT: int
CU_GRAPH_KERNEL_NODE_PORT_DEFAULT: int
CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: int
CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: int
CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW: int
CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE: int
CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION: int
CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: int
CU_KERNEL_NODE_ATTRIBUTE_PRIORITY: int
CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: int
CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN: int
CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: int
CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: int
CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: int
CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW: int
CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY: int
CU_STREAM_ATTRIBUTE_PRIORITY: int
CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: int
CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN: int
CU_MEMHOSTALLOC_PORTABLE: int
CU_MEMHOSTALLOC_DEVICEMAP: int
CU_MEMHOSTALLOC_WRITECOMBINED: int
CU_MEMHOSTREGISTER_PORTABLE: int
CU_MEMHOSTREGISTER_DEVICEMAP: int
CU_MEMHOSTREGISTER_IOMEMORY: int
CU_MEMHOSTREGISTER_READ_ONLY: int
CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL: int
CU_TENSOR_MAP_NUM_QWORDS: int
CUDA_EXTERNAL_MEMORY_DEDICATED: int
CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC: int
CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC: int
CUDA_NVSCISYNC_ATTR_SIGNAL: int
CUDA_NVSCISYNC_ATTR_WAIT: int
CU_MEM_CREATE_USAGE_TILE_POOL: int
CU_MEM_CREATE_USAGE_HW_DECOMPRESS: int
CU_MEM_CREATE_USAGE_GPU_DIRECT_RDMA_OVER_PCIE: int
CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS: int
CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC: int
CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC: int
CUDA_ARRAY3D_LAYERED: int
CUDA_ARRAY3D_2DARRAY: int
CUDA_ARRAY3D_SURFACE_LDST: int
CUDA_ARRAY3D_CUBEMAP: int
CUDA_ARRAY3D_TEXTURE_GATHER: int
CUDA_ARRAY3D_DEPTH_TEXTURE: int
CUDA_ARRAY3D_COLOR_ATTACHMENT: int
CUDA_ARRAY3D_SPARSE: int
CUDA_ARRAY3D_DEFERRED_MAPPING: int
CUDA_ARRAY3D_VIDEO_ENCODE_DECODE: int
CU_TRSA_OVERRIDE_FORMAT: int
CU_TRSF_READ_AS_INTEGER: int
CU_TRSF_NORMALIZED_COORDINATES: int
CU_TRSF_SRGB: int
CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: int
CU_TRSF_SEAMLESS_CUBEMAP: int
CU_LAUNCH_KERNEL_REQUIRED_BLOCK_DIM: int
CU_LAUNCH_PARAM_END_AS_INT: int
CU_LAUNCH_PARAM_END: int
CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT: int
CU_LAUNCH_PARAM_BUFFER_POINTER: int
CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT: int
CU_LAUNCH_PARAM_BUFFER_SIZE: int
CU_PARAM_TR_DEFAULT: int
CU_DEVICE_CPU: int
CU_DEVICE_INVALID: int
CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY: int
MAX_PLANES: int
CUDA_EGL_INFINITE_TIMEOUT: int

@disjoint_base
class CUcontext:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmodule:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUfunction:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUlibrary:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUkernel:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUarray:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmipmappedArray:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUtexref:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUsurfref:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUevent:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUstream:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphicsResource:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUexternalMemory:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUexternalSemaphore:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraph:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphNode:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphExec:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmemoryPool:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUuserObject:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphDeviceNode:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUasyncCallbackHandle:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgreenCtx:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUlinkState:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUcheckpointOperationHandle:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUcoredumpCallbackHandle:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdevResourceDesc:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUlogsCallbackHandle:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUeglStreamConnection:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class EGLImageKHR:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class EGLStreamKHR:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class EGLSyncKHR:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUasyncCallback:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUhostFn:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUstreamCallback:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUoccupancyB2DSize:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphRecaptureCallback:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUcoredumpStatusCallback:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUlogsCallback:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUuuid_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def bytes(self) -> bytes: ...

@disjoint_base
class CUmemFabricHandle_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    data: bytes

@disjoint_base
class CUipcEventHandle_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUipcMemHandle_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUstreamMemOpWaitValueParams_st:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    @property
    def address(self) -> CUdeviceptr: ...
    @address.setter
    def address(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def value(self) -> cuuint32_t: ...
    @value.setter
    def value(self, value: cuuint32_t | int | None) -> None: ...
    @property
    def value64(self) -> cuuint64_t: ...
    @value64.setter
    def value64(self, value: cuuint64_t | int | None) -> None: ...
    flags: int
    @property
    def alias(self) -> CUdeviceptr: ...
    @alias.setter
    def alias(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUstreamMemOpWriteValueParams_st:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    @property
    def address(self) -> CUdeviceptr: ...
    @address.setter
    def address(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def value(self) -> cuuint32_t: ...
    @value.setter
    def value(self, value: cuuint32_t | int | None) -> None: ...
    @property
    def value64(self) -> cuuint64_t: ...
    @value64.setter
    def value64(self, value: cuuint64_t | int | None) -> None: ...
    flags: int
    @property
    def alias(self) -> CUdeviceptr: ...
    @alias.setter
    def alias(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUstreamMemOpFlushRemoteWritesParams_st:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    flags: int

@disjoint_base
class CUstreamMemOpMemoryBarrierParams_st:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    flags: int

@disjoint_base
class CUstreamMemOpAtomicReductionParams_st:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    flags: int
    reductionOp: CUstreamAtomicReductionOpType
    dataType: CUstreamAtomicReductionDataType
    @property
    def address(self) -> CUdeviceptr: ...
    @address.setter
    def address(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def value(self) -> cuuint64_t: ...
    @value.setter
    def value(self, value: cuuint64_t | int | None) -> None: ...
    @property
    def alias(self) -> CUdeviceptr: ...
    @alias.setter
    def alias(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUstreamBatchMemOpParams_union:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    operation: CUstreamBatchMemOpType
    waitValue: CUstreamMemOpWaitValueParams_st
    writeValue: CUstreamMemOpWriteValueParams_st
    flushRemoteWrites: CUstreamMemOpFlushRemoteWritesParams_st
    memoryBarrier: CUstreamMemOpMemoryBarrierParams_st
    atomicReduction: CUstreamMemOpAtomicReductionParams_st
    pad: list[cuuint64_t]

@disjoint_base
class CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    count: int
    paramArray: list[CUstreamBatchMemOpParams]
    flags: int

@disjoint_base
class CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    count: int
    paramArray: list[CUstreamBatchMemOpParams]
    flags: int

@disjoint_base
class anon_struct0:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    bytesOverBudget: int

@disjoint_base
class anon_union2:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    overBudget: anon_struct0

@disjoint_base
class CUasyncNotificationInfo_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUasyncNotificationType
    info: anon_union2

@disjoint_base
class CUdevprop_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    maxThreadsPerBlock: int
    maxThreadsDim: list[int]
    maxGridSize: list[int]
    sharedMemPerBlock: int
    totalConstantMemory: int
    SIMDWidth: int
    memPitch: int
    regsPerBlock: int
    clockRate: int
    textureAlign: int

@disjoint_base
class CUaccessPolicyWindow_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def base_ptr(self) -> int: ...
    @base_ptr.setter
    def base_ptr(self, value: _Pointer) -> None: ...
    num_bytes: int
    hitRatio: float
    hitProp: CUaccessProperty
    missProp: CUaccessProperty

@disjoint_base
class CUDA_KERNEL_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def func(self) -> CUfunction: ...
    @func.setter
    def func(self, value: CUfunction | int | None) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def kernelParams(self) -> int: ...
    @kernelParams.setter
    def kernelParams(self, value: _Pointer) -> None: ...
    @property
    def extra(self) -> int: ...
    @extra.setter
    def extra(self, value: _Pointer) -> None: ...

@disjoint_base
class CUDA_KERNEL_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def func(self) -> CUfunction: ...
    @func.setter
    def func(self, value: CUfunction | int | None) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def kernelParams(self) -> int: ...
    @kernelParams.setter
    def kernelParams(self, value: _Pointer) -> None: ...
    @property
    def extra(self) -> int: ...
    @extra.setter
    def extra(self, value: _Pointer) -> None: ...
    @property
    def kern(self) -> CUkernel: ...
    @kern.setter
    def kern(self, value: CUkernel | int | None) -> None: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...

@disjoint_base
class CUDA_KERNEL_NODE_PARAMS_v3_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def func(self) -> CUfunction: ...
    @func.setter
    def func(self, value: CUfunction | int | None) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def kernelParams(self) -> int: ...
    @kernelParams.setter
    def kernelParams(self, value: _Pointer) -> None: ...
    @property
    def extra(self) -> int: ...
    @extra.setter
    def extra(self, value: _Pointer) -> None: ...
    @property
    def kern(self) -> CUkernel: ...
    @kern.setter
    def kern(self, value: CUkernel | int | None) -> None: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...

@disjoint_base
class CUDA_MEMSET_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def dst(self) -> CUdeviceptr: ...
    @dst.setter
    def dst(self, value: CUdeviceptr | int | None) -> None: ...
    pitch: int
    value: int
    elementSize: int
    width: int
    height: int

@disjoint_base
class CUDA_MEMSET_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def dst(self) -> CUdeviceptr: ...
    @dst.setter
    def dst(self, value: CUdeviceptr | int | None) -> None: ...
    pitch: int
    value: int
    elementSize: int
    width: int
    height: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...

@disjoint_base
class CUDA_HOST_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def fn(self) -> CUhostFn: ...
    @fn.setter
    def fn(self, value: CUhostFn | int | None) -> None: ...
    @property
    def userData(self) -> int: ...
    @userData.setter
    def userData(self, value: _Pointer) -> None: ...

@disjoint_base
class CUDA_HOST_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def fn(self) -> CUhostFn: ...
    @fn.setter
    def fn(self, value: CUhostFn | int | None) -> None: ...
    @property
    def userData(self) -> int: ...
    @userData.setter
    def userData(self, value: _Pointer) -> None: ...
    syncMode: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...

@disjoint_base
class CUDA_CONDITIONAL_NODE_PARAMS:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def handle(self) -> CUgraphConditionalHandle: ...
    @handle.setter
    def handle(self, value: CUgraphConditionalHandle | int | None) -> None: ...
    type: CUgraphConditionalNodeType
    size: int
    @property
    def phGraph_out(self) -> list[CUgraph]: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...

@disjoint_base
class CUgraphEdgeData_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    from_port: int
    to_port: int
    type: int

@disjoint_base
class CUDA_GRAPH_INSTANTIATE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def flags(self) -> cuuint64_t: ...
    @flags.setter
    def flags(self, value: cuuint64_t | int | None) -> None: ...
    @property
    def hUploadStream(self) -> CUstream: ...
    @hUploadStream.setter
    def hUploadStream(self, value: CUstream | int | None) -> None: ...
    @property
    def hErrNode_out(self) -> CUgraphNode: ...
    @hErrNode_out.setter
    def hErrNode_out(self, value: CUgraphNode | int | None) -> None: ...
    result_out: CUgraphInstantiateResult

@disjoint_base
class CUlaunchMemSyncDomainMap_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    default_: int
    remote: int

@disjoint_base
class anon_struct1:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    x: int
    y: int
    z: int

@disjoint_base
class anon_struct2:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def event(self) -> CUevent: ...
    @event.setter
    def event(self, value: CUevent | int | None) -> None: ...
    flags: int
    triggerAtBlockStart: int

@disjoint_base
class anon_struct3:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def event(self) -> CUevent: ...
    @event.setter
    def event(self, value: CUevent | int | None) -> None: ...
    flags: int

@disjoint_base
class anon_struct4:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    x: int
    y: int
    z: int

@disjoint_base
class anon_struct5:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    deviceUpdatable: int
    @property
    def devNode(self) -> CUgraphDeviceNode: ...
    @devNode.setter
    def devNode(self, value: CUgraphDeviceNode | int | None) -> None: ...

@disjoint_base
class CUlaunchAttributeValue_union:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    pad: bytes
    accessPolicyWindow: CUaccessPolicyWindow
    cooperative: int
    syncPolicy: CUsynchronizationPolicy
    clusterDim: anon_struct1
    clusterSchedulingPolicyPreference: CUclusterSchedulingPolicy
    programmaticStreamSerializationAllowed: int
    programmaticEvent: anon_struct2
    launchCompletionEvent: anon_struct3
    priority: int
    memSyncDomainMap: CUlaunchMemSyncDomainMap
    memSyncDomain: CUlaunchMemSyncDomain
    preferredClusterDim: anon_struct4
    deviceUpdatableKernelNode: anon_struct5
    sharedMemCarveout: int
    nvlinkUtilCentricScheduling: int
    portableClusterSizeMode: CUlaunchAttributePortableClusterMode
    sharedMemoryMode: CUsharedMemoryMode

@disjoint_base
class CUlaunchAttribute_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    id: CUlaunchAttributeID
    value: CUlaunchAttributeValue

@disjoint_base
class CUlaunchConfig_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def hStream(self) -> CUstream: ...
    @hStream.setter
    def hStream(self, value: CUstream | int | None) -> None: ...
    attrs: list[CUlaunchAttribute]
    numAttrs: int

@disjoint_base
class CUexecAffinitySmCount_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    val: int

@disjoint_base
class anon_union4:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    smCount: CUexecAffinitySmCount

@disjoint_base
class CUexecAffinityParam_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUexecAffinityType
    param: anon_union4

@disjoint_base
class CUctxCigParam_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    sharedDataType: CUcigDataType
    @property
    def sharedData(self) -> int: ...
    @sharedData.setter
    def sharedData(self, value: _Pointer) -> None: ...

@disjoint_base
class CUctxCreateParams_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    execAffinityParams: list[CUexecAffinityParam]
    numExecAffinityParams: int
    cigParams: list[CUctxCigParam]

@disjoint_base
class CUstreamCigParam_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    streamSharedDataType: CUstreamCigDataType
    @property
    def streamSharedData(self) -> int: ...
    @streamSharedData.setter
    def streamSharedData(self, value: _Pointer) -> None: ...

@disjoint_base
class CUstreamCigCaptureParams_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    streamCigParams: list[CUstreamCigParam]

@disjoint_base
class CUlibraryHostUniversalFunctionAndDataTable_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def functionTable(self) -> int: ...
    @functionTable.setter
    def functionTable(self, value: _Pointer) -> None: ...
    functionWindowSize: int
    @property
    def dataTable(self) -> int: ...
    @dataTable.setter
    def dataTable(self, value: _Pointer) -> None: ...
    dataWindowSize: int

@disjoint_base
class CUDA_MEMCPY2D_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    srcXInBytes: int
    srcY: int
    srcMemoryType: CUmemorytype
    @property
    def srcHost(self) -> int: ...
    @srcHost.setter
    def srcHost(self, value: _Pointer) -> None: ...
    @property
    def srcDevice(self) -> CUdeviceptr: ...
    @srcDevice.setter
    def srcDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def srcArray(self) -> CUarray: ...
    @srcArray.setter
    def srcArray(self, value: CUarray | int | None) -> None: ...
    srcPitch: int
    dstXInBytes: int
    dstY: int
    dstMemoryType: CUmemorytype
    @property
    def dstHost(self) -> int: ...
    @dstHost.setter
    def dstHost(self, value: _Pointer) -> None: ...
    @property
    def dstDevice(self) -> CUdeviceptr: ...
    @dstDevice.setter
    def dstDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def dstArray(self) -> CUarray: ...
    @dstArray.setter
    def dstArray(self, value: CUarray | int | None) -> None: ...
    dstPitch: int
    WidthInBytes: int
    Height: int

@disjoint_base
class CUDA_MEMCPY3D_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    srcXInBytes: int
    srcY: int
    srcZ: int
    srcLOD: int
    srcMemoryType: CUmemorytype
    @property
    def srcHost(self) -> int: ...
    @srcHost.setter
    def srcHost(self, value: _Pointer) -> None: ...
    @property
    def srcDevice(self) -> CUdeviceptr: ...
    @srcDevice.setter
    def srcDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def srcArray(self) -> CUarray: ...
    @srcArray.setter
    def srcArray(self, value: CUarray | int | None) -> None: ...
    srcPitch: int
    srcHeight: int
    dstXInBytes: int
    dstY: int
    dstZ: int
    dstLOD: int
    dstMemoryType: CUmemorytype
    @property
    def dstHost(self) -> int: ...
    @dstHost.setter
    def dstHost(self, value: _Pointer) -> None: ...
    @property
    def dstDevice(self) -> CUdeviceptr: ...
    @dstDevice.setter
    def dstDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def dstArray(self) -> CUarray: ...
    @dstArray.setter
    def dstArray(self, value: CUarray | int | None) -> None: ...
    dstPitch: int
    dstHeight: int
    WidthInBytes: int
    Height: int
    Depth: int

@disjoint_base
class CUDA_MEMCPY3D_PEER_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    srcXInBytes: int
    srcY: int
    srcZ: int
    srcLOD: int
    srcMemoryType: CUmemorytype
    @property
    def srcHost(self) -> int: ...
    @srcHost.setter
    def srcHost(self, value: _Pointer) -> None: ...
    @property
    def srcDevice(self) -> CUdeviceptr: ...
    @srcDevice.setter
    def srcDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def srcArray(self) -> CUarray: ...
    @srcArray.setter
    def srcArray(self, value: CUarray | int | None) -> None: ...
    @property
    def srcContext(self) -> CUcontext: ...
    @srcContext.setter
    def srcContext(self, value: CUcontext | int | None) -> None: ...
    srcPitch: int
    srcHeight: int
    dstXInBytes: int
    dstY: int
    dstZ: int
    dstLOD: int
    dstMemoryType: CUmemorytype
    @property
    def dstHost(self) -> int: ...
    @dstHost.setter
    def dstHost(self, value: _Pointer) -> None: ...
    @property
    def dstDevice(self) -> CUdeviceptr: ...
    @dstDevice.setter
    def dstDevice(self, value: CUdeviceptr | int | None) -> None: ...
    @property
    def dstArray(self) -> CUarray: ...
    @dstArray.setter
    def dstArray(self, value: CUarray | int | None) -> None: ...
    @property
    def dstContext(self) -> CUcontext: ...
    @dstContext.setter
    def dstContext(self, value: CUcontext | int | None) -> None: ...
    dstPitch: int
    dstHeight: int
    WidthInBytes: int
    Height: int
    Depth: int

@disjoint_base
class CUDA_MEMCPY_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    flags: int
    @property
    def copyCtx(self) -> CUcontext: ...
    @copyCtx.setter
    def copyCtx(self, value: CUcontext | int | None) -> None: ...
    copyParams: CUDA_MEMCPY3D

@disjoint_base
class CUDA_ARRAY_DESCRIPTOR_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    Width: int
    Height: int
    Format: CUarray_format
    NumChannels: int

@disjoint_base
class CUDA_ARRAY3D_DESCRIPTOR_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    Width: int
    Height: int
    Depth: int
    Format: CUarray_format
    NumChannels: int
    Flags: int

@disjoint_base
class anon_struct6:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    width: int
    height: int
    depth: int

@disjoint_base
class CUDA_ARRAY_SPARSE_PROPERTIES_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    tileExtent: anon_struct6
    miptailFirstLevel: int
    miptailSize: int
    flags: int

@disjoint_base
class CUDA_ARRAY_MEMORY_REQUIREMENTS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    size: int
    alignment: int

@disjoint_base
class anon_struct7:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def hArray(self) -> CUarray: ...
    @hArray.setter
    def hArray(self, value: CUarray | int | None) -> None: ...

@disjoint_base
class anon_struct8:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def hMipmappedArray(self) -> CUmipmappedArray: ...
    @hMipmappedArray.setter
    def hMipmappedArray(self, value: CUmipmappedArray | int | None) -> None: ...

@disjoint_base
class anon_struct9:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def devPtr(self) -> CUdeviceptr: ...
    @devPtr.setter
    def devPtr(self, value: CUdeviceptr | int | None) -> None: ...
    format: CUarray_format
    numChannels: int
    sizeInBytes: int

@disjoint_base
class anon_struct10:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def devPtr(self) -> CUdeviceptr: ...
    @devPtr.setter
    def devPtr(self, value: CUdeviceptr | int | None) -> None: ...
    format: CUarray_format
    numChannels: int
    width: int
    height: int
    pitchInBytes: int

@disjoint_base
class anon_struct11:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class anon_union5:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    array: anon_struct7
    mipmap: anon_struct8
    linear: anon_struct9
    pitch2D: anon_struct10

@disjoint_base
class CUDA_RESOURCE_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    resType: CUresourcetype
    res: anon_union5
    flags: int

@disjoint_base
class CUDA_TEXTURE_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    addressMode: list[CUaddress_mode]
    filterMode: CUfilter_mode
    flags: int
    maxAnisotropy: int
    mipmapFilterMode: CUfilter_mode
    mipmapLevelBias: float
    minMipmapLevelClamp: float
    maxMipmapLevelClamp: float
    borderColor: list[float]

@disjoint_base
class CUDA_RESOURCE_VIEW_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    format: CUresourceViewFormat
    width: int
    height: int
    depth: int
    firstMipmapLevel: int
    lastMipmapLevel: int
    firstLayer: int
    lastLayer: int

@disjoint_base
class CUtensorMap_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    opaque: list[cuuint64_t]

@disjoint_base
class CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    p2pToken: int
    vaSpaceToken: int

@disjoint_base
class CUDA_LAUNCH_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def function(self) -> CUfunction: ...
    @function.setter
    def function(self, value: CUfunction | int | None) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def hStream(self) -> CUstream: ...
    @hStream.setter
    def hStream(self, value: CUstream | int | None) -> None: ...
    @property
    def kernelParams(self) -> int: ...
    @kernelParams.setter
    def kernelParams(self, value: _Pointer) -> None: ...

@disjoint_base
class anon_struct12:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def handle(self) -> int: ...
    @handle.setter
    def handle(self, value: _Pointer) -> None: ...
    @property
    def name(self) -> int: ...
    @name.setter
    def name(self, value: _Pointer) -> None: ...

@disjoint_base
class anon_union6:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    fd: int
    win32: anon_struct12
    @property
    def nvSciBufObject(self) -> int: ...
    @nvSciBufObject.setter
    def nvSciBufObject(self, value: _Pointer) -> None: ...

@disjoint_base
class CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUexternalMemoryHandleType
    handle: anon_union6
    size: int
    flags: int

@disjoint_base
class CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    offset: int
    size: int
    flags: int

@disjoint_base
class CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    offset: int
    arrayDesc: CUDA_ARRAY3D_DESCRIPTOR
    numLevels: int

@disjoint_base
class anon_struct13:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def handle(self) -> int: ...
    @handle.setter
    def handle(self, value: _Pointer) -> None: ...
    @property
    def name(self) -> int: ...
    @name.setter
    def name(self, value: _Pointer) -> None: ...

@disjoint_base
class anon_union7:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    fd: int
    win32: anon_struct13
    @property
    def nvSciSyncObj(self) -> int: ...
    @nvSciSyncObj.setter
    def nvSciSyncObj(self, value: _Pointer) -> None: ...

@disjoint_base
class CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUexternalSemaphoreHandleType
    handle: anon_union7
    flags: int

@disjoint_base
class anon_struct14:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    value: int

@disjoint_base
class anon_union8:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def fence(self) -> int: ...
    @fence.setter
    def fence(self, value: _Pointer) -> None: ...

@disjoint_base
class anon_struct15:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    key: int

@disjoint_base
class anon_struct16:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    fence: anon_struct14
    nvSciSync: anon_union8
    keyedMutex: anon_struct15

@disjoint_base
class CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    params: anon_struct16
    flags: int

@disjoint_base
class anon_struct17:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    value: int

@disjoint_base
class anon_union9:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def fence(self) -> int: ...
    @fence.setter
    def fence(self, value: _Pointer) -> None: ...

@disjoint_base
class anon_struct18:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    key: int
    timeoutMs: int

@disjoint_base
class anon_struct19:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    fence: anon_struct17
    nvSciSync: anon_union9
    keyedMutex: anon_struct18

@disjoint_base
class CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    params: anon_struct19
    flags: int

@disjoint_base
class CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    extSemArray: list[CUexternalSemaphore]
    paramsArray: list[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS]
    numExtSems: int

@disjoint_base
class CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    extSemArray: list[CUexternalSemaphore]
    paramsArray: list[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS]
    numExtSems: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...

@disjoint_base
class CUDA_EXT_SEM_WAIT_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    extSemArray: list[CUexternalSemaphore]
    paramsArray: list[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS]
    numExtSems: int

@disjoint_base
class CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    extSemArray: list[CUexternalSemaphore]
    paramsArray: list[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS]
    numExtSems: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...

@disjoint_base
class anon_union12:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def mipmap(self) -> CUmipmappedArray: ...
    @mipmap.setter
    def mipmap(self, value: CUmipmappedArray | int | None) -> None: ...
    @property
    def array(self) -> CUarray: ...
    @array.setter
    def array(self, value: CUarray | int | None) -> None: ...

@disjoint_base
class anon_struct20:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    level: int
    layer: int
    offsetX: int
    offsetY: int
    offsetZ: int
    extentWidth: int
    extentHeight: int
    extentDepth: int

@disjoint_base
class anon_struct21:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    layer: int
    offset: int
    size: int

@disjoint_base
class anon_union13:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    sparseLevel: anon_struct20
    miptail: anon_struct21

@disjoint_base
class anon_union14:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def memHandle(self) -> CUmemGenericAllocationHandle: ...
    @memHandle.setter
    def memHandle(self, value: CUmemGenericAllocationHandle | int | None) -> None: ...

@disjoint_base
class CUarrayMapInfo_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    resourceType: CUresourcetype
    resource: anon_union12
    subresourceType: CUarraySparseSubresourceType
    subresource: anon_union13
    memOperationType: CUmemOperationType
    memHandleType: CUmemHandleType
    memHandle: anon_union14
    offset: int
    deviceBitMask: int
    flags: int

@disjoint_base
class anon_struct22:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    deviceId: int
    localityDomainId: int

@disjoint_base
class CUmemLocation_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUmemLocationType
    id: int
    localized: anon_struct22

@disjoint_base
class anon_struct23:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    compressionType: int
    gpuDirectRDMACapable: int
    usage: int

@disjoint_base
class CUmemAllocationProp_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUmemAllocationType
    requestedHandleTypes: CUmemAllocationHandleType
    location: CUmemLocation
    @property
    def win32HandleMetaData(self) -> int: ...
    @win32HandleMetaData.setter
    def win32HandleMetaData(self, value: _Pointer) -> None: ...
    allocFlags: anon_struct23

@disjoint_base
class CUmulticastObjectProp_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    numDevices: int
    size: int
    handleTypes: int
    flags: int

@disjoint_base
class CUmemAccessDesc_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    location: CUmemLocation
    flags: CUmemAccess_flags

@disjoint_base
class CUgraphExecUpdateResultInfo_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    result: CUgraphExecUpdateResult
    @property
    def errorNode(self) -> CUgraphNode: ...
    @errorNode.setter
    def errorNode(self, value: CUgraphNode | int | None) -> None: ...
    @property
    def errorFromNode(self) -> CUgraphNode: ...
    @errorFromNode.setter
    def errorFromNode(self, value: CUgraphNode | int | None) -> None: ...

@disjoint_base
class CUmemPoolProps_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    allocType: CUmemAllocationType
    handleTypes: CUmemAllocationHandleType
    location: CUmemLocation
    @property
    def win32SecurityAttributes(self) -> int: ...
    @win32SecurityAttributes.setter
    def win32SecurityAttributes(self, value: _Pointer) -> None: ...
    maxSize: int
    usage: int
    gpuDirectRDMACapable: int

@disjoint_base
class CUmemPoolPtrExportData_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmemcpyAttributes_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    srcAccessOrder: CUmemcpySrcAccessOrder
    srcLocHint: CUmemLocation
    dstLocHint: CUmemLocation
    flags: int

@disjoint_base
class CUoffset3D_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    x: int
    y: int
    z: int

@disjoint_base
class CUextent3D_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    width: int
    height: int
    depth: int

@disjoint_base
class anon_struct24:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def ptr(self) -> CUdeviceptr: ...
    @ptr.setter
    def ptr(self, value: CUdeviceptr | int | None) -> None: ...
    rowLength: int
    layerHeight: int
    locHint: CUmemLocation

@disjoint_base
class anon_struct25:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def array(self) -> CUarray: ...
    @array.setter
    def array(self, value: CUarray | int | None) -> None: ...
    offset: CUoffset3D

@disjoint_base
class anon_union16:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    ptr: anon_struct24
    array: anon_struct25

@disjoint_base
class CUmemcpy3DOperand_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUmemcpy3DOperandType
    op: anon_union16

@disjoint_base
class CUDA_MEMCPY3D_BATCH_OP_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    src: CUmemcpy3DOperand
    dst: CUmemcpy3DOperand
    extent: CUextent3D
    srcAccessOrder: CUmemcpySrcAccessOrder
    flags: int

@disjoint_base
class CUDA_MEM_ALLOC_NODE_PARAMS_v1_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    poolProps: CUmemPoolProps
    accessDescs: list[CUmemAccessDesc]
    accessDescCount: int
    bytesize: int
    @property
    def dptr(self) -> CUdeviceptr: ...
    @dptr.setter
    def dptr(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUDA_MEM_ALLOC_NODE_PARAMS_v2_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    poolProps: CUmemPoolProps
    accessDescs: list[CUmemAccessDesc]
    accessDescCount: int
    bytesize: int
    @property
    def dptr(self) -> CUdeviceptr: ...
    @dptr.setter
    def dptr(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUDA_MEM_FREE_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def dptr(self) -> CUdeviceptr: ...
    @dptr.setter
    def dptr(self, value: CUdeviceptr | int | None) -> None: ...

@disjoint_base
class CUDA_CHILD_GRAPH_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def graph(self) -> CUgraph: ...
    @graph.setter
    def graph(self, value: CUgraph | int | None) -> None: ...
    ownership: CUgraphChildGraphNodeOwnership

@disjoint_base
class CUDA_EVENT_RECORD_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def event(self) -> CUevent: ...
    @event.setter
    def event(self, value: CUevent | int | None) -> None: ...
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...

@disjoint_base
class CUDA_EVENT_WAIT_NODE_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def event(self) -> CUevent: ...
    @event.setter
    def event(self, value: CUevent | int | None) -> None: ...

@disjoint_base
class CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    count: int
    @property
    def dsts(self) -> list[CUdeviceptr]: ...
    @property
    def srcs(self) -> list[CUdeviceptr]: ...
    sizes: int
    attrs: list[CUmemcpyAttributes]
    attrsIdxs: int
    numAttrs: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...
    def set_dsts_srcs(self, dsts: list[CUdeviceptr], srcs: list[CUdeviceptr]) -> None: ...

@disjoint_base
class CUDA_FABRIC_COPY_BATCH_OP_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    src: CUfabricCpyOperand
    dst: CUfabricCpyOperand
    size: int
    flags: int

@disjoint_base
class CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    numOps: int
    opList: list[CUDA_FABRIC_COPY_BATCH_OP]
    flags: int
    @property
    def ctx(self) -> CUcontext: ...
    @ctx.setter
    def ctx(self, value: CUcontext | int | None) -> None: ...
    @property
    def gCtx(self) -> CUgreenCtx: ...
    @gCtx.setter
    def gCtx(self, value: CUgreenCtx | int | None) -> None: ...

@disjoint_base
class CUgraphNodeParams_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUgraphNodeType
    kernel: CUDA_KERNEL_NODE_PARAMS_v3
    memcpy: CUDA_MEMCPY_NODE_PARAMS
    memset: CUDA_MEMSET_NODE_PARAMS_v2
    host: CUDA_HOST_NODE_PARAMS_v2
    graph: CUDA_CHILD_GRAPH_NODE_PARAMS
    eventWait: CUDA_EVENT_WAIT_NODE_PARAMS
    eventRecord: CUDA_EVENT_RECORD_NODE_PARAMS
    extSemSignal: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2
    extSemWait: CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2
    alloc: CUDA_MEM_ALLOC_NODE_PARAMS_v2
    free: CUDA_MEM_FREE_NODE_PARAMS
    memOp: CUDA_BATCH_MEM_OP_NODE_PARAMS_v2
    conditional: CUDA_CONDITIONAL_NODE_PARAMS
    memcpyBatch: CUDA_MEMCPY_BATCH_NODE_PARAMS_V1
    fabricCpyBatch: CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1
    asBytes: bytes

@disjoint_base
class CUcheckpointCustomStoragePerDeviceData_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def devPtr(self) -> CUdeviceptr: ...
    @devPtr.setter
    def devPtr(self, value: CUdeviceptr | int | None) -> None: ...
    size: int
    @property
    def stream(self) -> CUstream: ...
    @stream.setter
    def stream(self, value: CUstream | int | None) -> None: ...

@disjoint_base
class CUcheckpointCustomStorageInfo_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def handle(self) -> CUcheckpointOperationHandle: ...
    @handle.setter
    def handle(self, value: CUcheckpointOperationHandle | int | None) -> None: ...
    perDeviceData: list[CUcheckpointCustomStoragePerDeviceData]
    deviceCount: int

@disjoint_base
class CUcheckpointLockArgs_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    timeoutMs: int

@disjoint_base
class CUcheckpointCheckpointArgs_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    customStorageInfo_out: int

@disjoint_base
class CUcheckpointGpuPair_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    oldUuid: CUuuid
    newUuid: CUuuid

@disjoint_base
class CUcheckpointRestoreArgs_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    gpuPairs: list[CUcheckpointGpuPair]
    gpuPairsCount: int
    customStorageInfo_out: int

@disjoint_base
class CUcheckpointUnlockArgs_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmemDecompressParams_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    srcNumBytes: int
    dstNumBytes: int
    @property
    def dstActBytes(self) -> cuuint32_t: ...
    @property
    def src(self) -> int: ...
    @src.setter
    def src(self, value: _Pointer) -> None: ...
    @property
    def dst(self) -> int: ...
    @dst.setter
    def dst(self, value: _Pointer) -> None: ...
    algo: CUmemDecompressAlgorithm

@disjoint_base
class CUcliqueInfo_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUcliqueType
    id: int

@disjoint_base
class CUlogicalEndpointFabricHandle_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    data: bytes

@disjoint_base
class anon_struct26:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def device(self) -> CUdevice: ...
    @device.setter
    def device(self, value: CUdevice | int | None) -> None: ...

@disjoint_base
class anon_struct27:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    numDevices: int

@disjoint_base
class CUlogicalEndpointProp_struct:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUlogicalEndpointType
    unicast: anon_struct26
    multicast: anon_struct27
    size: int
    ipcHandleTypes: int
    flags: int

@disjoint_base
class anon_struct28:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def ptr(self) -> CUdeviceptr: ...
    @ptr.setter
    def ptr(self, value: CUdeviceptr | int | None) -> None: ...
    locHint: CUmemLocation

@disjoint_base
class anon_struct29:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def id(self) -> CUlogicalEndpointId: ...
    @id.setter
    def id(self, value: CUlogicalEndpointId | int | None) -> None: ...
    @property
    def offset(self) -> cuuint64_t: ...
    @offset.setter
    def offset(self, value: cuuint64_t | int | None) -> None: ...

@disjoint_base
class anon_union22:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    ptr: anon_struct28
    le: anon_struct29

@disjoint_base
class CUfabricCpyOperand_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUfabricCpyOperandType
    op: anon_union22

@disjoint_base
class CUdevSmResource_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    smCount: int
    minSmPartitionSize: int
    smCoscheduledAlignment: int
    flags: int
    localityDomainId: int

@disjoint_base
class CUdevWorkqueueConfigResource_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    @property
    def device(self) -> CUdevice: ...
    @device.setter
    def device(self, value: CUdevice | int | None) -> None: ...
    wqConcurrencyLimit: int
    sharingScope: CUdevWorkqueueConfigScope

@disjoint_base
class CUdevWorkqueueResource_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CU_DEV_SM_RESOURCE_GROUP_PARAMS_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    smCount: int
    coscheduledSmCount: int
    preferredCoscheduledSmCount: int
    flags: int
    localityDomainId: int

@disjoint_base
class CUdevResource_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    type: CUdevResourceType
    _internal_padding: bytes
    sm: CUdevSmResource
    wqConfig: CUdevWorkqueueConfigResource
    wq: CUdevWorkqueueResource
    _oversize: bytes
    nextResource: list[CUdevResource_st]

@disjoint_base
class anon_union24:
    def __init__(self, _ptr: int) -> None: ...
    def getPtr(self) -> int: ...
    pArray: list[CUarray]
    pPitch: list[int]

@disjoint_base
class CUeglFrame_st:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...
    frame: anon_union24
    width: int
    height: int
    depth: int
    pitch: int
    planeCount: int
    numChannels: int
    frameType: CUeglFrameType
    eglColorFormat: CUeglColorFormat
    cuFormat: CUarray_format

@disjoint_base
class CUdeviceptr:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdevice:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUtexObject:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUsurfObject:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphConditionalHandle:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

class CUuuid(CUuuid_st): ...
class CUmemFabricHandle_v1(CUmemFabricHandle_st): ...
class CUmemFabricHandle(CUmemFabricHandle_v1): ...
class CUipcEventHandle_v1(CUipcEventHandle_st): ...
class CUipcEventHandle(CUipcEventHandle_v1): ...
class CUipcMemHandle_v1(CUipcMemHandle_st): ...
class CUipcMemHandle(CUipcMemHandle_v1): ...
class CUstreamBatchMemOpParams_v1(CUstreamBatchMemOpParams_union): ...
class CUstreamBatchMemOpParams(CUstreamBatchMemOpParams_v1): ...
class CUDA_BATCH_MEM_OP_NODE_PARAMS_v1(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st): ...
class CUDA_BATCH_MEM_OP_NODE_PARAMS(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1): ...
class CUDA_BATCH_MEM_OP_NODE_PARAMS_v2(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st): ...
class CUasyncNotificationInfo(CUasyncNotificationInfo_st): ...
class CUdevprop_v1(CUdevprop_st): ...
class CUdevprop(CUdevprop_v1): ...
class CUaccessPolicyWindow_v1(CUaccessPolicyWindow_st): ...
class CUaccessPolicyWindow(CUaccessPolicyWindow_v1): ...
class CUDA_KERNEL_NODE_PARAMS_v1(CUDA_KERNEL_NODE_PARAMS_st): ...
class CUDA_KERNEL_NODE_PARAMS_v2(CUDA_KERNEL_NODE_PARAMS_v2_st): ...
class CUDA_KERNEL_NODE_PARAMS(CUDA_KERNEL_NODE_PARAMS_v2): ...
class CUDA_KERNEL_NODE_PARAMS_v3(CUDA_KERNEL_NODE_PARAMS_v3_st): ...
class CUDA_MEMSET_NODE_PARAMS_v1(CUDA_MEMSET_NODE_PARAMS_st): ...
class CUDA_MEMSET_NODE_PARAMS(CUDA_MEMSET_NODE_PARAMS_v1): ...
class CUDA_MEMSET_NODE_PARAMS_v2(CUDA_MEMSET_NODE_PARAMS_v2_st): ...
class CUDA_HOST_NODE_PARAMS_v1(CUDA_HOST_NODE_PARAMS_st): ...
class CUDA_HOST_NODE_PARAMS(CUDA_HOST_NODE_PARAMS_v1): ...
class CUDA_HOST_NODE_PARAMS_v2(CUDA_HOST_NODE_PARAMS_v2_st): ...
class CUgraphEdgeData(CUgraphEdgeData_st): ...
class CUDA_GRAPH_INSTANTIATE_PARAMS(CUDA_GRAPH_INSTANTIATE_PARAMS_st): ...
class CUlaunchMemSyncDomainMap(CUlaunchMemSyncDomainMap_st): ...
class CUlaunchAttributeValue(CUlaunchAttributeValue_union): ...
class CUlaunchAttribute(CUlaunchAttribute_st): ...
class CUlaunchConfig(CUlaunchConfig_st): ...
class CUkernelNodeAttrValue_v1(CUlaunchAttributeValue): ...
class CUkernelNodeAttrValue(CUkernelNodeAttrValue_v1): ...
class CUstreamAttrValue_v1(CUlaunchAttributeValue): ...
class CUstreamAttrValue(CUstreamAttrValue_v1): ...
class CUexecAffinitySmCount_v1(CUexecAffinitySmCount_st): ...
class CUexecAffinitySmCount(CUexecAffinitySmCount_v1): ...
class CUexecAffinityParam_v1(CUexecAffinityParam_st): ...
class CUexecAffinityParam(CUexecAffinityParam_v1): ...
class CUctxCigParam(CUctxCigParam_st): ...
class CUctxCreateParams(CUctxCreateParams_st): ...
class CUstreamCigParam(CUstreamCigParam_st): ...
class CUstreamCigCaptureParams(CUstreamCigCaptureParams_st): ...
class CUlibraryHostUniversalFunctionAndDataTable(CUlibraryHostUniversalFunctionAndDataTable_st): ...
class CUDA_MEMCPY2D_v2(CUDA_MEMCPY2D_st): ...
class CUDA_MEMCPY2D(CUDA_MEMCPY2D_v2): ...
class CUDA_MEMCPY3D_v2(CUDA_MEMCPY3D_st): ...
class CUDA_MEMCPY3D(CUDA_MEMCPY3D_v2): ...
class CUDA_MEMCPY3D_PEER_v1(CUDA_MEMCPY3D_PEER_st): ...
class CUDA_MEMCPY3D_PEER(CUDA_MEMCPY3D_PEER_v1): ...
class CUDA_MEMCPY_NODE_PARAMS(CUDA_MEMCPY_NODE_PARAMS_st): ...
class CUDA_ARRAY_DESCRIPTOR_v2(CUDA_ARRAY_DESCRIPTOR_st): ...
class CUDA_ARRAY_DESCRIPTOR(CUDA_ARRAY_DESCRIPTOR_v2): ...
class CUDA_ARRAY3D_DESCRIPTOR_v2(CUDA_ARRAY3D_DESCRIPTOR_st): ...
class CUDA_ARRAY3D_DESCRIPTOR(CUDA_ARRAY3D_DESCRIPTOR_v2): ...
class CUDA_ARRAY_SPARSE_PROPERTIES_v1(CUDA_ARRAY_SPARSE_PROPERTIES_st): ...
class CUDA_ARRAY_SPARSE_PROPERTIES(CUDA_ARRAY_SPARSE_PROPERTIES_v1): ...
class CUDA_ARRAY_MEMORY_REQUIREMENTS_v1(CUDA_ARRAY_MEMORY_REQUIREMENTS_st): ...
class CUDA_ARRAY_MEMORY_REQUIREMENTS(CUDA_ARRAY_MEMORY_REQUIREMENTS_v1): ...
class CUDA_RESOURCE_DESC_v1(CUDA_RESOURCE_DESC_st): ...
class CUDA_RESOURCE_DESC(CUDA_RESOURCE_DESC_v1): ...
class CUDA_TEXTURE_DESC_v1(CUDA_TEXTURE_DESC_st): ...
class CUDA_TEXTURE_DESC(CUDA_TEXTURE_DESC_v1): ...
class CUDA_RESOURCE_VIEW_DESC_v1(CUDA_RESOURCE_VIEW_DESC_st): ...
class CUDA_RESOURCE_VIEW_DESC(CUDA_RESOURCE_VIEW_DESC_v1): ...
class CUtensorMap(CUtensorMap_st): ...
class CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_v1(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st): ...
class CUDA_POINTER_ATTRIBUTE_P2P_TOKENS(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_v1): ...
class CUDA_LAUNCH_PARAMS_v1(CUDA_LAUNCH_PARAMS_st): ...
class CUDA_LAUNCH_PARAMS(CUDA_LAUNCH_PARAMS_v1): ...
class CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st): ...
class CUDA_EXTERNAL_MEMORY_HANDLE_DESC(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1): ...
class CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1(CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st): ...
class CUDA_EXTERNAL_MEMORY_BUFFER_DESC(CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1): ...
class CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1(
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st
): ...
class CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1): ...
class CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st): ...
class CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1): ...
class CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st): ...
class CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1): ...
class CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st): ...
class CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1): ...
class CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st): ...
class CUDA_EXT_SEM_SIGNAL_NODE_PARAMS(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1): ...
class CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st): ...
class CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1(CUDA_EXT_SEM_WAIT_NODE_PARAMS_st): ...
class CUDA_EXT_SEM_WAIT_NODE_PARAMS(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1): ...
class CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st): ...

@disjoint_base
class CUmemGenericAllocationHandle:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

class CUarrayMapInfo_v1(CUarrayMapInfo_st): ...
class CUarrayMapInfo(CUarrayMapInfo_v1): ...
class CUmemLocation_v1(CUmemLocation_st): ...
class CUmemLocation(CUmemLocation_v1): ...
class CUmemAllocationProp_v1(CUmemAllocationProp_st): ...
class CUmemAllocationProp(CUmemAllocationProp_v1): ...
class CUmulticastObjectProp_v1(CUmulticastObjectProp_st): ...
class CUmulticastObjectProp(CUmulticastObjectProp_v1): ...
class CUmemAccessDesc_v1(CUmemAccessDesc_st): ...
class CUmemAccessDesc(CUmemAccessDesc_v1): ...
class CUgraphExecUpdateResultInfo_v1(CUgraphExecUpdateResultInfo_st): ...
class CUgraphExecUpdateResultInfo(CUgraphExecUpdateResultInfo_v1): ...
class CUmemPoolProps_v1(CUmemPoolProps_st): ...
class CUmemPoolProps(CUmemPoolProps_v1): ...
class CUmemPoolPtrExportData_v1(CUmemPoolPtrExportData_st): ...
class CUmemPoolPtrExportData(CUmemPoolPtrExportData_v1): ...
class CUmemcpyAttributes_v1(CUmemcpyAttributes_st): ...
class CUmemcpyAttributes(CUmemcpyAttributes_v1): ...
class CUoffset3D_v1(CUoffset3D_st): ...
class CUoffset3D(CUoffset3D_v1): ...
class CUextent3D_v1(CUextent3D_st): ...
class CUextent3D(CUextent3D_v1): ...
class CUmemcpy3DOperand_v1(CUmemcpy3DOperand_st): ...
class CUmemcpy3DOperand(CUmemcpy3DOperand_v1): ...
class CUDA_MEMCPY3D_BATCH_OP_v1(CUDA_MEMCPY3D_BATCH_OP_st): ...
class CUDA_MEMCPY3D_BATCH_OP(CUDA_MEMCPY3D_BATCH_OP_v1): ...
class CUDA_MEM_ALLOC_NODE_PARAMS_v1(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st): ...
class CUDA_MEM_ALLOC_NODE_PARAMS(CUDA_MEM_ALLOC_NODE_PARAMS_v1): ...
class CUDA_MEM_ALLOC_NODE_PARAMS_v2(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st): ...
class CUDA_MEM_FREE_NODE_PARAMS(CUDA_MEM_FREE_NODE_PARAMS_st): ...
class CUDA_CHILD_GRAPH_NODE_PARAMS(CUDA_CHILD_GRAPH_NODE_PARAMS_st): ...
class CUDA_EVENT_RECORD_NODE_PARAMS(CUDA_EVENT_RECORD_NODE_PARAMS_st): ...
class CUDA_EVENT_WAIT_NODE_PARAMS(CUDA_EVENT_WAIT_NODE_PARAMS_st): ...
class CUDA_MEMCPY_BATCH_NODE_PARAMS_V1(CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st): ...
class CUDA_MEMCPY_BATCH_NODE_PARAMS(CUDA_MEMCPY_BATCH_NODE_PARAMS_V1): ...
class CUDA_FABRIC_COPY_BATCH_OP_v1(CUDA_FABRIC_COPY_BATCH_OP_st): ...
class CUDA_FABRIC_COPY_BATCH_OP(CUDA_FABRIC_COPY_BATCH_OP_v1): ...
class CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1(CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st): ...
class CUDA_FABRIC_CPY_BATCH_NODE_PARAMS(CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1): ...
class CUgraphNodeParams(CUgraphNodeParams_st): ...
class CUcheckpointCustomStoragePerDeviceData(CUcheckpointCustomStoragePerDeviceData_st): ...
class CUcheckpointCustomStorageInfo(CUcheckpointCustomStorageInfo_st): ...
class CUcheckpointLockArgs(CUcheckpointLockArgs_st): ...
class CUcheckpointCheckpointArgs(CUcheckpointCheckpointArgs_st): ...
class CUcheckpointGpuPair(CUcheckpointGpuPair_st): ...
class CUcheckpointRestoreArgs(CUcheckpointRestoreArgs_st): ...
class CUcheckpointUnlockArgs(CUcheckpointUnlockArgs_st): ...
class CUmemDecompressParams(CUmemDecompressParams_st): ...
class CUcliqueInfo(CUcliqueInfo_st): ...

@disjoint_base
class CUlogicalEndpointId:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

class CUlogicalEndpointFabricHandle(CUlogicalEndpointFabricHandle_st): ...
class CUlogicalEndpointProp(CUlogicalEndpointProp_struct): ...
class CUfabricCpyOperand(CUfabricCpyOperand_st): ...
class CUdevSmResource(CUdevSmResource_st): ...
class CUdevWorkqueueConfigResource(CUdevWorkqueueConfigResource_st): ...
class CUdevWorkqueueResource(CUdevWorkqueueResource_st): ...
class CU_DEV_SM_RESOURCE_GROUP_PARAMS(CU_DEV_SM_RESOURCE_GROUP_PARAMS_st): ...
class CUdevResource_v1(CUdevResource_st): ...
class CUdevResource(CUdevResource_v1): ...
class CUeglFrame_v1(CUeglFrame_st): ...
class CUeglFrame(CUeglFrame_v1): ...

@disjoint_base
class cuuint32_t:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class cuuint64_t:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdeviceptr_v2:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdevice_v1:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUtexObject_v1:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUsurfObject_v1:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmemGenericAllocationHandle_v1:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUlogIterator:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class GLenum:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class GLuint:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class EGLint:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class VdpDevice:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class VdpGetProcAddress:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class VdpVideoSurface:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class VdpOutputSurface:
    def __new__(cls, init_value: int = 0, _ptr: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class cudaBindingsDriverGlobal:
    def __new__(cls, _ptr: int) -> Self: ...

class CUipcMem_flags(IntEnum):
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1

class CUmemAttach_flags(IntEnum):
    CU_MEM_ATTACH_GLOBAL = 1
    CU_MEM_ATTACH_HOST = 2
    CU_MEM_ATTACH_SINGLE = 4

class CUctx_flags(IntEnum):
    CU_CTX_SCHED_AUTO = 0
    CU_CTX_SCHED_SPIN = 1
    CU_CTX_SCHED_YIELD = 2
    CU_CTX_SCHED_BLOCKING_SYNC = 4
    CU_CTX_BLOCKING_SYNC = 4
    CU_CTX_SCHED_MASK = 7
    CU_CTX_MAP_HOST = 8
    CU_CTX_LMEM_RESIZE_TO_MAX = 16
    CU_CTX_COREDUMP_ENABLE = 32
    CU_CTX_USER_COREDUMP_ENABLE = 64
    CU_CTX_SYNC_MEMOPS = 128
    CU_CTX_FLAGS_MASK = 255

class CUevent_sched_flags(IntEnum):
    CU_EVENT_SCHED_AUTO = 0
    CU_EVENT_SCHED_SPIN = 1
    CU_EVENT_SCHED_YIELD = 2
    CU_EVENT_SCHED_BLOCKING_SYNC = 4

class cl_event_flags(IntEnum):
    NVCL_EVENT_SCHED_AUTO = 0
    NVCL_EVENT_SCHED_SPIN = 1
    NVCL_EVENT_SCHED_YIELD = 2
    NVCL_EVENT_SCHED_BLOCKING_SYNC = 4

class cl_context_flags(IntEnum):
    NVCL_CTX_SCHED_AUTO = 0
    NVCL_CTX_SCHED_SPIN = 1
    NVCL_CTX_SCHED_YIELD = 2
    NVCL_CTX_SCHED_BLOCKING_SYNC = 4

class CUhostTaskSyncMode(IntEnum):
    CU_HOST_TASK_BLOCKING = 0
    CU_HOST_TASK_SPINWAIT = 1

class CUstream_flags(IntEnum):
    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1

class CUevent_flags(IntEnum):
    CU_EVENT_DEFAULT = 0
    CU_EVENT_BLOCKING_SYNC = 1
    CU_EVENT_DISABLE_TIMING = 2
    CU_EVENT_INTERPROCESS = 4

class CUevent_record_flags(IntEnum):
    CU_EVENT_RECORD_DEFAULT = 0
    CU_EVENT_RECORD_EXTERNAL = 1

class CUevent_wait_flags(IntEnum):
    CU_EVENT_WAIT_DEFAULT = 0
    CU_EVENT_WAIT_EXTERNAL = 1

class CUatomicOperation(IntEnum):
    CU_ATOMIC_OPERATION_INTEGER_ADD = 0
    CU_ATOMIC_OPERATION_INTEGER_MIN = 1
    CU_ATOMIC_OPERATION_INTEGER_MAX = 2
    CU_ATOMIC_OPERATION_INTEGER_INCREMENT = 3
    CU_ATOMIC_OPERATION_INTEGER_DECREMENT = 4
    CU_ATOMIC_OPERATION_AND = 5
    CU_ATOMIC_OPERATION_OR = 6
    CU_ATOMIC_OPERATION_XOR = 7
    CU_ATOMIC_OPERATION_EXCHANGE = 8
    CU_ATOMIC_OPERATION_CAS = 9
    CU_ATOMIC_OPERATION_FLOAT_ADD = 10
    CU_ATOMIC_OPERATION_FLOAT_MIN = 11
    CU_ATOMIC_OPERATION_FLOAT_MAX = 12
    CU_ATOMIC_OPERATION_MAX = 13

class CUatomicOperationCapability(IntEnum):
    CU_ATOMIC_CAPABILITY_SIGNED = 1
    CU_ATOMIC_CAPABILITY_UNSIGNED = 2
    CU_ATOMIC_CAPABILITY_REDUCTION = 4
    CU_ATOMIC_CAPABILITY_SCALAR_32 = 8
    CU_ATOMIC_CAPABILITY_SCALAR_64 = 16
    CU_ATOMIC_CAPABILITY_SCALAR_128 = 32
    CU_ATOMIC_CAPABILITY_VECTOR_32x4 = 64

class CUstreamWaitValue_flags(IntEnum):
    CU_STREAM_WAIT_VALUE_GEQ = 0
    CU_STREAM_WAIT_VALUE_EQ = 1
    CU_STREAM_WAIT_VALUE_AND = 2
    CU_STREAM_WAIT_VALUE_NOR = 3
    CU_STREAM_WAIT_VALUE_FLUSH = 1073741824

class CUstreamWriteValue_flags(IntEnum):
    CU_STREAM_WRITE_VALUE_DEFAULT = 0
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1

class CUstreamBatchMemOpType(IntEnum):
    CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1
    CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2
    CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3
    CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4
    CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5
    CU_STREAM_MEM_OP_BARRIER = 6
    CU_STREAM_MEM_OP_ATOMIC_REDUCTION = 8

class CUstreamMemoryBarrier_flags(IntEnum):
    CU_STREAM_MEMORY_BARRIER_TYPE_SYS = 0
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU = 1

class CUstreamAtomicReductionOpType(IntEnum):
    CU_STREAM_ATOMIC_REDUCTION_OP_ADD = 0
    CU_STREAM_ATOMIC_REDUCTION_OP_AND = 5
    CU_STREAM_ATOMIC_REDUCTION_OP_OR = 6

class CUstreamAtomicReductionDataType(IntEnum):
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 = 14
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 = 22

class CUoccupancy_flags(IntEnum):
    CU_OCCUPANCY_DEFAULT = 0
    CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 1

class CUstreamUpdateCaptureDependencies_flags(IntEnum):
    CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1

class CUasyncNotificationType(IntEnum):
    CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET = 1

class CUarray_format(IntEnum):
    CU_AD_FORMAT_UNSIGNED_INT8 = 1
    CU_AD_FORMAT_UNSIGNED_INT16 = 2
    CU_AD_FORMAT_UNSIGNED_INT32 = 3
    CU_AD_FORMAT_SIGNED_INT8 = 8
    CU_AD_FORMAT_SIGNED_INT16 = 9
    CU_AD_FORMAT_SIGNED_INT32 = 10
    CU_AD_FORMAT_HALF = 16
    CU_AD_FORMAT_FLOAT = 32
    CU_AD_FORMAT_UNORM_INT_101010_2 = 80
    CU_AD_FORMAT_UINT8_PACKED_422 = 81
    CU_AD_FORMAT_UINT8_PACKED_444 = 82
    CU_AD_FORMAT_UINT8_SEMIPLANAR_420 = 83
    CU_AD_FORMAT_UINT16_SEMIPLANAR_420 = 84
    CU_AD_FORMAT_UINT8_SEMIPLANAR_422 = 85
    CU_AD_FORMAT_UINT16_SEMIPLANAR_422 = 86
    CU_AD_FORMAT_UINT8_SEMIPLANAR_444 = 87
    CU_AD_FORMAT_UINT16_SEMIPLANAR_444 = 88
    CU_AD_FORMAT_UINT8_PLANAR_420 = 89
    CU_AD_FORMAT_UINT16_PLANAR_420 = 90
    CU_AD_FORMAT_UINT8_PLANAR_422 = 91
    CU_AD_FORMAT_UINT16_PLANAR_422 = 92
    CU_AD_FORMAT_UINT8_PLANAR_444 = 93
    CU_AD_FORMAT_UINT16_PLANAR_444 = 94
    CU_AD_FORMAT_BC1_UNORM = 145
    CU_AD_FORMAT_BC1_UNORM_SRGB = 146
    CU_AD_FORMAT_BC2_UNORM = 147
    CU_AD_FORMAT_BC2_UNORM_SRGB = 148
    CU_AD_FORMAT_BC3_UNORM = 149
    CU_AD_FORMAT_BC3_UNORM_SRGB = 150
    CU_AD_FORMAT_BC4_UNORM = 151
    CU_AD_FORMAT_BC4_SNORM = 152
    CU_AD_FORMAT_BC5_UNORM = 153
    CU_AD_FORMAT_BC5_SNORM = 154
    CU_AD_FORMAT_BC6H_UF16 = 155
    CU_AD_FORMAT_BC6H_SF16 = 156
    CU_AD_FORMAT_BC7_UNORM = 157
    CU_AD_FORMAT_BC7_UNORM_SRGB = 158
    CU_AD_FORMAT_P010 = 159
    CU_AD_FORMAT_P016 = 161
    CU_AD_FORMAT_NV16 = 162
    CU_AD_FORMAT_P210 = 163
    CU_AD_FORMAT_P216 = 164
    CU_AD_FORMAT_YUY2 = 165
    CU_AD_FORMAT_Y210 = 166
    CU_AD_FORMAT_Y216 = 167
    CU_AD_FORMAT_AYUV = 168
    CU_AD_FORMAT_Y410 = 169
    CU_AD_FORMAT_NV12 = 176
    CU_AD_FORMAT_Y416 = 177
    CU_AD_FORMAT_Y444_PLANAR8 = 178
    CU_AD_FORMAT_Y444_PLANAR10 = 179
    CU_AD_FORMAT_YUV444_8bit_SemiPlanar = 180
    CU_AD_FORMAT_YUV444_16bit_SemiPlanar = 181
    CU_AD_FORMAT_UNORM_INT8X1 = 192
    CU_AD_FORMAT_UNORM_INT8X2 = 193
    CU_AD_FORMAT_UNORM_INT8X4 = 194
    CU_AD_FORMAT_UNORM_INT16X1 = 195
    CU_AD_FORMAT_UNORM_INT16X2 = 196
    CU_AD_FORMAT_UNORM_INT16X4 = 197
    CU_AD_FORMAT_SNORM_INT8X1 = 198
    CU_AD_FORMAT_SNORM_INT8X2 = 199
    CU_AD_FORMAT_SNORM_INT8X4 = 200
    CU_AD_FORMAT_SNORM_INT16X1 = 201
    CU_AD_FORMAT_SNORM_INT16X2 = 202
    CU_AD_FORMAT_SNORM_INT16X4 = 203
    CU_AD_FORMAT_MAX = 2147483647

class CUaddress_mode(IntEnum):
    CU_TR_ADDRESS_MODE_WRAP = 0
    CU_TR_ADDRESS_MODE_CLAMP = 1
    CU_TR_ADDRESS_MODE_MIRROR = 2
    CU_TR_ADDRESS_MODE_BORDER = 3

class CUfilter_mode(IntEnum):
    CU_TR_FILTER_MODE_POINT = 0
    CU_TR_FILTER_MODE_LINEAR = 1

class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12
    CU_DEVICE_ATTRIBUTE_REGISTERS_PER_BLOCK = 12
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14
    CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH = 21
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH = 22
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT = 23
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH = 24
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT = 25
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH = 26
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_WIDTH = 27
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_HEIGHT = 28
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES = 29
    CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT = 30
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34
    CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43
    CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER = 44
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50
    CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT = 51
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH = 52
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH = 55
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH = 56
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT = 57
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH = 58
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT = 59
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH = 60
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH = 66
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67
    CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77
    CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78
    CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED = 79
    CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED = 80
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83
    CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD = 84
    CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID = 85
    CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED = 86
    CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89
    CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 = 92
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH = 96
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES = 98
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100
    CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101
    CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105
    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED = 107
    CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE = 108
    CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE = 109
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110
    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED = 112
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113
    CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118
    CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES = 119
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120
    CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR = 123
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124
    CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED = 125
    CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT = 126
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128
    CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS = 129
    CU_DEVICE_ATTRIBUTE_NUMA_CONFIG = 130
    CU_DEVICE_ATTRIBUTE_NUMA_ID = 131
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132
    CU_DEVICE_ATTRIBUTE_MPS_ENABLED = 133
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134
    CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED = 135
    CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK = 136
    CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH = 137
    CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED = 138
    CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID = 139
    CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID = 140
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143
    CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED = 144
    CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145
    CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED = 146
    CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147
    CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED = 148
    CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT = 149
    CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK = 150
    CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED = 151
    CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED = 152
    CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED = 153
    CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED = 154
    CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED = 155
    CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED = 156
    CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157
    CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES = 158
    CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED = 159
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE = 160
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED = 161
    CU_DEVICE_ATTRIBUTE_MAX = 162

class CUpointer_attribute(IntEnum):
    CU_POINTER_ATTRIBUTE_CONTEXT = 1
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4
    CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12
    CU_POINTER_ATTRIBUTE_MAPPED = 13
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
    CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18
    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19
    CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20
    CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21
    CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL = 22

class CUfunction_attribute(IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6
    CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
    CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15
    CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED = 16
    CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE = 17
    CU_FUNC_ATTRIBUTE_MAX = 18

class CUfunc_cache(IntEnum):
    CU_FUNC_CACHE_PREFER_NONE = 0
    CU_FUNC_CACHE_PREFER_SHARED = 1
    CU_FUNC_CACHE_PREFER_L1 = 2
    CU_FUNC_CACHE_PREFER_EQUAL = 3

class CUsharedconfig(IntEnum):
    CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0
    CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1
    CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2

class CUshared_carveout(IntEnum):
    CU_SHAREDMEM_CARVEOUT_DEFAULT = -1
    CU_SHAREDMEM_CARVEOUT_MAX_L1 = 0
    CU_SHAREDMEM_CARVEOUT_MAX_SHARED = 100

class CUmemorytype(IntEnum):
    CU_MEMORYTYPE_HOST = 1
    CU_MEMORYTYPE_DEVICE = 2
    CU_MEMORYTYPE_ARRAY = 3
    CU_MEMORYTYPE_UNIFIED = 4

class CUcomputemode(IntEnum):
    CU_COMPUTEMODE_DEFAULT = 0
    CU_COMPUTEMODE_PROHIBITED = 2
    CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3

class CUmem_advise(IntEnum):
    CU_MEM_ADVISE_SET_READ_MOSTLY = 1
    CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2
    CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3
    CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4
    CU_MEM_ADVISE_SET_ACCESSED_BY = 5
    CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6

class CUmem_range_attribute(IntEnum):
    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1
    CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2
    CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3
    CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4
    CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5
    CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6
    CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7
    CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8

class CUjit_option(IntEnum):
    CU_JIT_MAX_REGISTERS = 0
    CU_JIT_THREADS_PER_BLOCK = 1
    CU_JIT_WALL_TIME = 2
    CU_JIT_INFO_LOG_BUFFER = 3
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
    CU_JIT_OPTIMIZATION_LEVEL = 7
    CU_JIT_TARGET_FROM_CUCONTEXT = 8
    CU_JIT_TARGET = 9
    CU_JIT_FALLBACK_STRATEGY = 10
    CU_JIT_GENERATE_DEBUG_INFO = 11
    CU_JIT_LOG_VERBOSE = 12
    CU_JIT_GENERATE_LINE_INFO = 13
    CU_JIT_CACHE_MODE = 14
    CU_JIT_NEW_SM3X_OPT = 15
    CU_JIT_FAST_COMPILE = 16
    CU_JIT_GLOBAL_SYMBOL_NAMES = 17
    CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18
    CU_JIT_GLOBAL_SYMBOL_COUNT = 19
    CU_JIT_LTO = 20
    CU_JIT_FTZ = 21
    CU_JIT_PREC_DIV = 22
    CU_JIT_PREC_SQRT = 23
    CU_JIT_FMA = 24
    CU_JIT_REFERENCED_KERNEL_NAMES = 25
    CU_JIT_REFERENCED_KERNEL_COUNT = 26
    CU_JIT_REFERENCED_VARIABLE_NAMES = 27
    CU_JIT_REFERENCED_VARIABLE_COUNT = 28
    CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29
    CU_JIT_POSITION_INDEPENDENT_CODE = 30
    CU_JIT_MIN_CTA_PER_SM = 31
    CU_JIT_MAX_THREADS_PER_BLOCK = 32
    CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33
    CU_JIT_SPLIT_COMPILE = 34
    CU_JIT_BINARY_LOADER_THREAD_COUNT = 35
    CU_JIT_NUM_OPTIONS = 36

class CUjit_target(IntEnum):
    CU_TARGET_COMPUTE_30 = 30
    CU_TARGET_COMPUTE_32 = 32
    CU_TARGET_COMPUTE_35 = 35
    CU_TARGET_COMPUTE_37 = 37
    CU_TARGET_COMPUTE_50 = 50
    CU_TARGET_COMPUTE_52 = 52
    CU_TARGET_COMPUTE_53 = 53
    CU_TARGET_COMPUTE_60 = 60
    CU_TARGET_COMPUTE_61 = 61
    CU_TARGET_COMPUTE_62 = 62
    CU_TARGET_COMPUTE_70 = 70
    CU_TARGET_COMPUTE_72 = 72
    CU_TARGET_COMPUTE_75 = 75
    CU_TARGET_COMPUTE_80 = 80
    CU_TARGET_COMPUTE_86 = 86
    CU_TARGET_COMPUTE_87 = 87
    CU_TARGET_COMPUTE_89 = 89
    CU_TARGET_COMPUTE_90 = 90
    CU_TARGET_COMPUTE_100 = 100
    CU_TARGET_COMPUTE_103 = 103
    CU_TARGET_COMPUTE_107 = 107
    CU_TARGET_COMPUTE_110 = 110
    CU_TARGET_COMPUTE_120 = 120
    CU_TARGET_COMPUTE_121 = 121
    CU_TARGET_COMPUTE_90A = 65626
    CU_TARGET_COMPUTE_100A = 65636
    CU_TARGET_COMPUTE_103A = 65639
    CU_TARGET_COMPUTE_107A = 65643
    CU_TARGET_COMPUTE_110A = 65646
    CU_TARGET_COMPUTE_120A = 65656
    CU_TARGET_COMPUTE_121A = 65657
    CU_TARGET_COMPUTE_100F = 131172
    CU_TARGET_COMPUTE_103F = 131175
    CU_TARGET_COMPUTE_107F = 131179
    CU_TARGET_COMPUTE_110F = 131182
    CU_TARGET_COMPUTE_120F = 131192
    CU_TARGET_COMPUTE_121F = 131193

class CUjit_fallback(IntEnum):
    CU_PREFER_PTX = 0
    CU_PREFER_BINARY = 1

class CUjit_cacheMode(IntEnum):
    CU_JIT_CACHE_OPTION_NONE = 0
    CU_JIT_CACHE_OPTION_CG = 1
    CU_JIT_CACHE_OPTION_CA = 2

class CUjitInputType(IntEnum):
    CU_JIT_INPUT_CUBIN = 0
    CU_JIT_INPUT_PTX = 1
    CU_JIT_INPUT_FATBINARY = 2
    CU_JIT_INPUT_OBJECT = 3
    CU_JIT_INPUT_LIBRARY = 4
    CU_JIT_INPUT_NVVM = 5
    CU_JIT_NUM_INPUT_TYPES = 6

class CUgraphicsRegisterFlags(IntEnum):
    CU_GRAPHICS_REGISTER_FLAGS_NONE = 0
    CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY = 1
    CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD = 2
    CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST = 4
    CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER = 8

class CUgraphicsMapResourceFlags(IntEnum):
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_NONE = 0
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY = 1
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD = 2

class CUarray_cubemap_face(IntEnum):
    CU_CUBEMAP_FACE_POSITIVE_X = 0
    CU_CUBEMAP_FACE_NEGATIVE_X = 1
    CU_CUBEMAP_FACE_POSITIVE_Y = 2
    CU_CUBEMAP_FACE_NEGATIVE_Y = 3
    CU_CUBEMAP_FACE_POSITIVE_Z = 4
    CU_CUBEMAP_FACE_NEGATIVE_Z = 5

class CUlimit(IntEnum):
    CU_LIMIT_STACK_SIZE = 0
    CU_LIMIT_PRINTF_FIFO_SIZE = 1
    CU_LIMIT_MALLOC_HEAP_SIZE = 2
    CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3
    CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4
    CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5
    CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6
    CU_LIMIT_SHMEM_SIZE = 7
    CU_LIMIT_CIG_ENABLED = 8
    CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9
    CU_LIMIT_PER_BLOCK_MEMORY_SIZE = 10
    CU_LIMIT_MAX = 11

class CUresourcetype(IntEnum):
    CU_RESOURCE_TYPE_ARRAY = 0
    CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1
    CU_RESOURCE_TYPE_LINEAR = 2
    CU_RESOURCE_TYPE_PITCH2D = 3

class CUaccessProperty(IntEnum):
    CU_ACCESS_PROPERTY_NORMAL = 0
    CU_ACCESS_PROPERTY_STREAMING = 1
    CU_ACCESS_PROPERTY_PERSISTING = 2

class CUgraphConditionalNodeType(IntEnum):
    CU_GRAPH_COND_TYPE_IF = 0
    CU_GRAPH_COND_TYPE_WHILE = 1
    CU_GRAPH_COND_TYPE_SWITCH = 2

class CUgraphNodeType(IntEnum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMCPY = 1
    CU_GRAPH_NODE_TYPE_MEMSET = 2
    CU_GRAPH_NODE_TYPE_HOST = 3
    CU_GRAPH_NODE_TYPE_GRAPH = 4
    CU_GRAPH_NODE_TYPE_EMPTY = 5
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11
    CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13
    CU_GRAPH_NODE_TYPE_MEMCPY_BATCH = 14
    CU_GRAPH_NODE_TYPE_RESERVED_16 = 16
    CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE = 17
    CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH = 18

class CUgraphDependencyType(IntEnum):
    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1

class CUgraphInstantiateResult(IntEnum):
    CUDA_GRAPH_INSTANTIATE_SUCCESS = 0
    CUDA_GRAPH_INSTANTIATE_ERROR = 1
    CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2
    CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3
    CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4
    CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5

class CUsynchronizationPolicy(IntEnum):
    CU_SYNC_POLICY_AUTO = 1
    CU_SYNC_POLICY_SPIN = 2
    CU_SYNC_POLICY_YIELD = 3
    CU_SYNC_POLICY_BLOCKING_SYNC = 4

class CUclusterSchedulingPolicy(IntEnum):
    CU_CLUSTER_SCHEDULING_POLICY_DEFAULT = 0
    CU_CLUSTER_SCHEDULING_POLICY_SPREAD = 1
    CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING = 2
    CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY = 3

class CUlaunchMemSyncDomain(IntEnum):
    CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT = 0
    CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE = 1

class CUlaunchAttributePortableClusterMode(IntEnum):
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT = 0
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_REQUIRE_PORTABLE = 1
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE = 2

class CUsharedMemoryMode(IntEnum):
    CU_SHARED_MEMORY_MODE_DEFAULT = 0
    CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE = 1
    CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE = 2
    CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY = 3
    CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY = 4

class CUlaunchAttributeID(IntEnum):
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14
    CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16
    CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17
    CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18

class CUstreamCaptureStatus(IntEnum):
    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2

class CUstreamCaptureMode(IntEnum):
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
    CU_STREAM_CAPTURE_MODE_RELAXED = 2

class CUdriverProcAddress_flags(IntEnum):
    CU_GET_PROC_ADDRESS_DEFAULT = 0
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2

class CUdriverProcAddressQueryResult(IntEnum):
    CU_GET_PROC_ADDRESS_SUCCESS = 0
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2

class CUexecAffinityType(IntEnum):
    CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0
    CU_EXEC_AFFINITY_TYPE_MAX = 1

class CUcigDataType(IntEnum):
    CIG_DATA_TYPE_D3D12_COMMAND_QUEUE = 1
    CIG_DATA_TYPE_NV_BLOB = 2

class CUstreamCigDataType(IntEnum):
    STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST = 1
    STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV = 2

class CUlibraryOption(IntEnum):
    CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0
    CU_LIBRARY_BINARY_IS_PRESERVED = 1
    CU_LIBRARY_NUM_OPTIONS = 2

class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_DEINITIALIZED = 4
    CUDA_ERROR_PROFILER_DISABLED = 5
    CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6
    CUDA_ERROR_PROFILER_ALREADY_STARTED = 7
    CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8
    CUDA_ERROR_STUB_LIBRARY = 34
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46
    CUDA_ERROR_MULTICAST_RESOURCE_FULL = 47
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_DEVICE_NOT_LICENSED = 102
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202
    CUDA_ERROR_MAP_FAILED = 205
    CUDA_ERROR_UNMAP_FAILED = 206
    CUDA_ERROR_ARRAY_IS_MAPPED = 207
    CUDA_ERROR_ALREADY_MAPPED = 208
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_ALREADY_ACQUIRED = 210
    CUDA_ERROR_NOT_MAPPED = 211
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212
    CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213
    CUDA_ERROR_ECC_UNCORRECTABLE = 214
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225
    CUDA_ERROR_CONTAINED = 226
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION = 227
    CUDA_ERROR_INVALID_SOURCE = 300
    CUDA_ERROR_FILE_NOT_FOUND = 301
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303
    CUDA_ERROR_OPERATING_SYSTEM = 304
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_ILLEGAL_STATE = 401
    CUDA_ERROR_LOSSY_QUERY = 402
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_LAUNCH_TIMEOUT = 702
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709
    CUDA_ERROR_ASSERT = 710
    CUDA_ERROR_TOO_MANY_PEERS = 711
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715
    CUDA_ERROR_MISALIGNED_ADDRESS = 716
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717
    CUDA_ERROR_INVALID_PC = 718
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721
    CUDA_ERROR_NOT_PERMITTED = 800
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_SYSTEM_NOT_READY = 802
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805
    CUDA_ERROR_MPS_RPC_FAILURE = 806
    CUDA_ERROR_MPS_SERVER_NOT_READY = 807
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810
    CUDA_ERROR_CDP_NOT_SUPPORTED = 811
    CUDA_ERROR_CDP_VERSION_MISMATCH = 812
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906
    CUDA_ERROR_CAPTURED_EVENT = 907
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908
    CUDA_ERROR_TIMEOUT = 909
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910
    CUDA_ERROR_EXTERNAL_DEVICE = 911
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913
    CUDA_ERROR_INVALID_RESOURCE_TYPE = 914
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915
    CUDA_ERROR_KEY_ROTATION = 916
    CUDA_ERROR_STREAM_DETACHED = 917
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918
    CUDA_ERROR_FABRIC_NOT_READY = 919
    CUDA_ERROR_UNKNOWN = 999

class CUdevice_P2PAttribute(IntEnum):
    CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2
    CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED = 4
    CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4
    CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5

class CUresourceViewFormat(IntEnum):
    CU_RES_VIEW_FORMAT_NONE = 0
    CU_RES_VIEW_FORMAT_UINT_1X8 = 1
    CU_RES_VIEW_FORMAT_UINT_2X8 = 2
    CU_RES_VIEW_FORMAT_UINT_4X8 = 3
    CU_RES_VIEW_FORMAT_SINT_1X8 = 4
    CU_RES_VIEW_FORMAT_SINT_2X8 = 5
    CU_RES_VIEW_FORMAT_SINT_4X8 = 6
    CU_RES_VIEW_FORMAT_UINT_1X16 = 7
    CU_RES_VIEW_FORMAT_UINT_2X16 = 8
    CU_RES_VIEW_FORMAT_UINT_4X16 = 9
    CU_RES_VIEW_FORMAT_SINT_1X16 = 10
    CU_RES_VIEW_FORMAT_SINT_2X16 = 11
    CU_RES_VIEW_FORMAT_SINT_4X16 = 12
    CU_RES_VIEW_FORMAT_UINT_1X32 = 13
    CU_RES_VIEW_FORMAT_UINT_2X32 = 14
    CU_RES_VIEW_FORMAT_UINT_4X32 = 15
    CU_RES_VIEW_FORMAT_SINT_1X32 = 16
    CU_RES_VIEW_FORMAT_SINT_2X32 = 17
    CU_RES_VIEW_FORMAT_SINT_4X32 = 18
    CU_RES_VIEW_FORMAT_FLOAT_1X16 = 19
    CU_RES_VIEW_FORMAT_FLOAT_2X16 = 20
    CU_RES_VIEW_FORMAT_FLOAT_4X16 = 21
    CU_RES_VIEW_FORMAT_FLOAT_1X32 = 22
    CU_RES_VIEW_FORMAT_FLOAT_2X32 = 23
    CU_RES_VIEW_FORMAT_FLOAT_4X32 = 24
    CU_RES_VIEW_FORMAT_UNSIGNED_BC1 = 25
    CU_RES_VIEW_FORMAT_UNSIGNED_BC2 = 26
    CU_RES_VIEW_FORMAT_UNSIGNED_BC3 = 27
    CU_RES_VIEW_FORMAT_UNSIGNED_BC4 = 28
    CU_RES_VIEW_FORMAT_SIGNED_BC4 = 29
    CU_RES_VIEW_FORMAT_UNSIGNED_BC5 = 30
    CU_RES_VIEW_FORMAT_SIGNED_BC5 = 31
    CU_RES_VIEW_FORMAT_UNSIGNED_BC6H = 32
    CU_RES_VIEW_FORMAT_SIGNED_BC6H = 33
    CU_RES_VIEW_FORMAT_UNSIGNED_BC7 = 34

class CUtensorMapDataType(IntEnum):
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2
    CU_TENSOR_MAP_DATA_TYPE_INT32 = 3
    CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4
    CU_TENSOR_MAP_DATA_TYPE_INT64 = 5
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ = 10
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ = 12
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B = 13
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15

class CUtensorMapInterleave(IntEnum):
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0
    CU_TENSOR_MAP_INTERLEAVE_16B = 1
    CU_TENSOR_MAP_INTERLEAVE_32B = 2

class CUtensorMapSwizzle(IntEnum):
    CU_TENSOR_MAP_SWIZZLE_NONE = 0
    CU_TENSOR_MAP_SWIZZLE_32B = 1
    CU_TENSOR_MAP_SWIZZLE_64B = 2
    CU_TENSOR_MAP_SWIZZLE_128B = 3
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B = 4
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B = 6

class CUtensorMapL2promotion(IntEnum):
    CU_TENSOR_MAP_L2_PROMOTION_NONE = 0
    CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3

class CUtensorMapFloatOOBfill(IntEnum):
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1

class CUtensorMapIm2ColWideMode(IntEnum):
    CU_TENSOR_MAP_IM2COL_WIDE_MODE_W = 0
    CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 = 1

class CUtensorMapAllocClass(IntEnum):
    CU_TENSOR_MAP_ALLOC_CLASS_AUTO = 0
    CU_TENSOR_MAP_ALLOC_CLASS_SMALL = 1
    CU_TENSOR_MAP_ALLOC_CLASS_LARGE = 2

class CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS(IntEnum):
    CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE = 0
    CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ = 1
    CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE = 3

class CUexternalMemoryHandleType(IntEnum):
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 4
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 5
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE = 6
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT = 7
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9

class CUexternalSemaphoreHandleType(IntEnum):
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 2
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE = 4
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE = 5
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC = 6
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX = 7
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT = 8
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 = 10

class CUmemAllocationHandleType(IntEnum):
    CU_MEM_HANDLE_TYPE_NONE = 0
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
    CU_MEM_HANDLE_TYPE_WIN32 = 2
    CU_MEM_HANDLE_TYPE_WIN32_KMT = 4
    CU_MEM_HANDLE_TYPE_FABRIC = 8
    CU_MEM_HANDLE_TYPE_MAX = 2147483647

class CUmemAccess_flags(IntEnum):
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
    CU_MEM_ACCESS_FLAGS_PROT_MAX = 2147483647

class CUmemLocationType(IntEnum):
    CU_MEM_LOCATION_TYPE_INVALID = 0
    CU_MEM_LOCATION_TYPE_NONE = 0
    CU_MEM_LOCATION_TYPE_DEVICE = 1
    CU_MEM_LOCATION_TYPE_HOST = 2
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4
    CU_MEM_LOCATION_TYPE_INVISIBLE = 5
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6
    CU_MEM_LOCATION_TYPE_MAX = 2147483647

class CUmemAllocationType(IntEnum):
    CU_MEM_ALLOCATION_TYPE_INVALID = 0
    CU_MEM_ALLOCATION_TYPE_PINNED = 1
    CU_MEM_ALLOCATION_TYPE_MANAGED = 2
    CU_MEM_ALLOCATION_TYPE_MAX = 2147483647

class CUmemAllocationGranularity_flags(IntEnum):
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1

class CUmemRangeHandleType(IntEnum):
    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1
    CU_MEM_RANGE_HANDLE_TYPE_MAX = 2147483647

class CUmemRangeFlags(IntEnum):
    CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE = 1

class CUarraySparseSubresourceType(IntEnum):
    CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0
    CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1

class CUmemOperationType(IntEnum):
    CU_MEM_OPERATION_TYPE_MAP = 1
    CU_MEM_OPERATION_TYPE_UNMAP = 2

class CUmemHandleType(IntEnum):
    CU_MEM_HANDLE_TYPE_GENERIC = 0

class CUmemAllocationCompType(IntEnum):
    CU_MEM_ALLOCATION_COMP_NONE = 0
    CU_MEM_ALLOCATION_COMP_GENERIC = 1

class CUmulticastGranularity_flags(IntEnum):
    CU_MULTICAST_GRANULARITY_MINIMUM = 0
    CU_MULTICAST_GRANULARITY_RECOMMENDED = 1

class CUgraphExecUpdateResult(IntEnum):
    CU_GRAPH_EXEC_UPDATE_SUCCESS = 0
    CU_GRAPH_EXEC_UPDATE_ERROR = 1
    CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2
    CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3
    CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4
    CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5
    CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6
    CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7
    CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8

class CUmemPool_attribute(IntEnum):
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8
    CU_MEMPOOL_ATTR_ALLOCATION_TYPE = 9
    CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES = 10
    CU_MEMPOOL_ATTR_LOCATION_ID = 11
    CU_MEMPOOL_ATTR_LOCATION_TYPE = 12
    CU_MEMPOOL_ATTR_MAX_POOL_SIZE = 13
    CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED = 14
    CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID = 15

class CUmemcpyFlags(IntEnum):
    CU_MEMCPY_FLAG_DEFAULT = 0
    CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE = 1

class CUmemcpySrcAccessOrder(IntEnum):
    CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0
    CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2
    CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3
    CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 2147483647

class CUmemcpy3DOperandType(IntEnum):
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2
    CU_MEMCPY_OPERAND_TYPE_MAX = 2147483647

class CUgraphMem_attribute(IntEnum):
    CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0
    CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3

class CUgraphChildGraphNodeOwnership(IntEnum):
    CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID = -1
    CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0
    CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1

class CUflushGPUDirectRDMAWritesOptions(IntEnum):
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST = 1
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_MEMOPS = 2

class CUGPUDirectRDMAWritesOrdering(IntEnum):
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE = 0
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER = 100
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES = 200

class CUflushGPUDirectRDMAWritesScope(IntEnum):
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES = 200

class CUflushGPUDirectRDMAWritesTarget(IntEnum):
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0

class CUgraphDebugDot_flags(IntEnum):
    CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE = 1
    CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES = 2
    CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS = 4
    CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS = 8
    CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS = 16
    CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS = 32
    CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS = 64
    CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS = 128
    CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS = 256
    CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES = 512
    CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES = 1024
    CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS = 2048
    CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS = 4096
    CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS = 8192
    CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO = 16384
    CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS = 32768
    CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_BATCH_NODE_PARAMS = 65536
    CU_GRAPH_DEBUG_DOT_FLAGS_FABRIC_CPY_BATCH_NODE_PARAMS = 131072

class CUuserObject_flags(IntEnum):
    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1

class CUuserObjectRetain_flags(IntEnum):
    CU_GRAPH_USER_OBJECT_MOVE = 1

class CUgraphInstantiate_flags(IntEnum):
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8

class CUdeviceNumaConfig(IntEnum):
    CU_DEVICE_NUMA_CONFIG_NONE = 0
    CU_DEVICE_NUMA_CONFIG_NUMA_NODE = 1

class CUprocessState(IntEnum):
    CU_PROCESS_STATE_RUNNING = 0
    CU_PROCESS_STATE_LOCKED = 1
    CU_PROCESS_STATE_CHECKPOINTED = 2
    CU_PROCESS_STATE_FAILED = 3
    CU_PROCESS_STATE_CHECKPOINTING = 4
    CU_PROCESS_STATE_RESTORING = 5

class CUmoduleLoadingMode(IntEnum):
    CU_MODULE_EAGER_LOADING = 1
    CU_MODULE_LAZY_LOADING = 2

class CUmemDecompressAlgorithm(IntEnum):
    CU_MEM_DECOMPRESS_UNSUPPORTED = 0
    CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE = 1
    CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY = 2
    CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4

class CUcliqueType(IntEnum):
    CU_CLIQUE_TYPE_UNICAST_POINTER = 0
    CU_CLIQUE_TYPE_MULTICAST_POINTER = 1
    CU_CLIQUE_TYPE_UNICAST_LOGICAL_ENDPOINT = 2
    CU_CLIQUE_TYPE_MULTICAST_LOGICAL_ENDPOINT = 3

class CUlogicalEndpointIpcHandleType(IntEnum):
    CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_NONE = 0
    CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC = 1

class CUlogicalEndpointType(IntEnum):
    CU_LOGICAL_ENDPOINT_TYPE_INVALID = 0
    CU_LOGICAL_ENDPOINT_TYPE_UNICAST = 1
    CU_LOGICAL_ENDPOINT_TYPE_MULTICAST = 2

class CUlogicalEndpointFlag(IntEnum):
    CU_LOGICAL_ENDPOINT_FLAG_NONE = 0
    CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS = 1

class CUfabricCpyOperandType(IntEnum):
    CU_FABRIC_COPY_OPERAND_TYPE_POINTER = 1
    CU_FABRIC_COPY_OPERAND_TYPE_LOGICAL_ENDPOINT = 2
    CU_FABRIC_COPY_OPERAND_TYPE_MAX = 2147483647

class CUgraphRecaptureStatus(IntEnum):
    CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0
    CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1
    CU_GRAPH_RECAPTURE_ERROR = 2

class CUfunctionLoadingState(IntEnum):
    CU_FUNCTION_LOADING_STATE_UNLOADED = 0
    CU_FUNCTION_LOADING_STATE_LOADED = 1
    CU_FUNCTION_LOADING_STATE_MAX = 2

class CUcoredumpSettings(IntEnum):
    CU_COREDUMP_ENABLE_ON_EXCEPTION = 1
    CU_COREDUMP_TRIGGER_HOST = 2
    CU_COREDUMP_LIGHTWEIGHT = 3
    CU_COREDUMP_ENABLE_USER_TRIGGER = 4
    CU_COREDUMP_FILE = 5
    CU_COREDUMP_PIPE = 6
    CU_COREDUMP_GENERATION_FLAGS = 7
    CU_COREDUMP_MAX = 8

class CUCoredumpGenerationFlags(IntEnum):
    CU_COREDUMP_DEFAULT_FLAGS = 0
    CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES = 1
    CU_COREDUMP_SKIP_GLOBAL_MEMORY = 2
    CU_COREDUMP_SKIP_SHARED_MEMORY = 4
    CU_COREDUMP_SKIP_LOCAL_MEMORY = 8
    CU_COREDUMP_SKIP_ABORT = 16
    CU_COREDUMP_SKIP_CONSTBANK_MEMORY = 32
    CU_COREDUMP_GZIP_COMPRESS = 64
    CU_COREDUMP_FAULTED_CONTEXTS_ONLY = 128
    CU_COREDUMP_SKIP_TENSOR_MEMORY = 256
    CU_COREDUMP_LIGHTWEIGHT_FLAGS = 303
    CU_COREDUMP_NO_ERRBAR_AT_EXIT = 1073741824
    CU_COREDUMP_LOG_ONLY = -2147483648

class CUgreenCtxCreate_flags(IntEnum):
    CU_GREEN_CTX_NONE = 0
    CU_GREEN_CTX_DEFAULT_STREAM = 1

class CUdevSmResourceGroup_flags(IntEnum):
    CU_DEV_SM_RESOURCE_GROUP_DEFAULT = 0
    CU_DEV_SM_RESOURCE_GROUP_BACKFILL = 1
    CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID = 2
    CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS = 4

class CUdevSmResourceSplitByCount_flags(IntEnum):
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1
    CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2

class CUdevResourceType(IntEnum):
    CU_DEV_RESOURCE_TYPE_INVALID = 0
    CU_DEV_RESOURCE_TYPE_SM = 1
    CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG = 1000
    CU_DEV_RESOURCE_TYPE_WORKQUEUE = 10000

class CUdevWorkqueueConfigScope(IntEnum):
    CU_WORKQUEUE_SCOPE_DEVICE_CTX = 0
    CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1

class CUlogLevel(IntEnum):
    CU_LOG_LEVEL_ERROR = 0
    CU_LOG_LEVEL_WARNING = 1

class CUoutput_mode(IntEnum):
    CU_OUT_KEY_VALUE_PAIR = 0
    CU_OUT_CSV = 1

class CUeglFrameType(IntEnum):
    CU_EGL_FRAME_TYPE_ARRAY = 0
    CU_EGL_FRAME_TYPE_PITCH = 1

class CUeglResourceLocationFlags(IntEnum):
    CU_EGL_RESOURCE_LOCATION_SYSMEM = 0
    CU_EGL_RESOURCE_LOCATION_VIDMEM = 1

class CUeglColorFormat(IntEnum):
    CU_EGL_COLOR_FORMAT_YUV420_PLANAR = 0
    CU_EGL_COLOR_FORMAT_YUV420_SEMIPLANAR = 1
    CU_EGL_COLOR_FORMAT_YUV422_PLANAR = 2
    CU_EGL_COLOR_FORMAT_YUV422_SEMIPLANAR = 3
    CU_EGL_COLOR_FORMAT_RGB = 4
    CU_EGL_COLOR_FORMAT_BGR = 5
    CU_EGL_COLOR_FORMAT_ARGB = 6
    CU_EGL_COLOR_FORMAT_RGBA = 7
    CU_EGL_COLOR_FORMAT_L = 8
    CU_EGL_COLOR_FORMAT_R = 9
    CU_EGL_COLOR_FORMAT_YUV444_PLANAR = 10
    CU_EGL_COLOR_FORMAT_YUV444_SEMIPLANAR = 11
    CU_EGL_COLOR_FORMAT_YUYV_422 = 12
    CU_EGL_COLOR_FORMAT_UYVY_422 = 13
    CU_EGL_COLOR_FORMAT_ABGR = 14
    CU_EGL_COLOR_FORMAT_BGRA = 15
    CU_EGL_COLOR_FORMAT_A = 16
    CU_EGL_COLOR_FORMAT_RG = 17
    CU_EGL_COLOR_FORMAT_AYUV = 18
    CU_EGL_COLOR_FORMAT_YVU444_SEMIPLANAR = 19
    CU_EGL_COLOR_FORMAT_YVU422_SEMIPLANAR = 20
    CU_EGL_COLOR_FORMAT_YVU420_SEMIPLANAR = 21
    CU_EGL_COLOR_FORMAT_Y10V10U10_444_SEMIPLANAR = 22
    CU_EGL_COLOR_FORMAT_Y10V10U10_420_SEMIPLANAR = 23
    CU_EGL_COLOR_FORMAT_Y12V12U12_444_SEMIPLANAR = 24
    CU_EGL_COLOR_FORMAT_Y12V12U12_420_SEMIPLANAR = 25
    CU_EGL_COLOR_FORMAT_VYUY_ER = 26
    CU_EGL_COLOR_FORMAT_UYVY_ER = 27
    CU_EGL_COLOR_FORMAT_YUYV_ER = 28
    CU_EGL_COLOR_FORMAT_YVYU_ER = 29
    CU_EGL_COLOR_FORMAT_YUV_ER = 30
    CU_EGL_COLOR_FORMAT_YUVA_ER = 31
    CU_EGL_COLOR_FORMAT_AYUV_ER = 32
    CU_EGL_COLOR_FORMAT_YUV444_PLANAR_ER = 33
    CU_EGL_COLOR_FORMAT_YUV422_PLANAR_ER = 34
    CU_EGL_COLOR_FORMAT_YUV420_PLANAR_ER = 35
    CU_EGL_COLOR_FORMAT_YUV444_SEMIPLANAR_ER = 36
    CU_EGL_COLOR_FORMAT_YUV422_SEMIPLANAR_ER = 37
    CU_EGL_COLOR_FORMAT_YUV420_SEMIPLANAR_ER = 38
    CU_EGL_COLOR_FORMAT_YVU444_PLANAR_ER = 39
    CU_EGL_COLOR_FORMAT_YVU422_PLANAR_ER = 40
    CU_EGL_COLOR_FORMAT_YVU420_PLANAR_ER = 41
    CU_EGL_COLOR_FORMAT_YVU444_SEMIPLANAR_ER = 42
    CU_EGL_COLOR_FORMAT_YVU422_SEMIPLANAR_ER = 43
    CU_EGL_COLOR_FORMAT_YVU420_SEMIPLANAR_ER = 44
    CU_EGL_COLOR_FORMAT_BAYER_RGGB = 45
    CU_EGL_COLOR_FORMAT_BAYER_BGGR = 46
    CU_EGL_COLOR_FORMAT_BAYER_GRBG = 47
    CU_EGL_COLOR_FORMAT_BAYER_GBRG = 48
    CU_EGL_COLOR_FORMAT_BAYER10_RGGB = 49
    CU_EGL_COLOR_FORMAT_BAYER10_BGGR = 50
    CU_EGL_COLOR_FORMAT_BAYER10_GRBG = 51
    CU_EGL_COLOR_FORMAT_BAYER10_GBRG = 52
    CU_EGL_COLOR_FORMAT_BAYER12_RGGB = 53
    CU_EGL_COLOR_FORMAT_BAYER12_BGGR = 54
    CU_EGL_COLOR_FORMAT_BAYER12_GRBG = 55
    CU_EGL_COLOR_FORMAT_BAYER12_GBRG = 56
    CU_EGL_COLOR_FORMAT_BAYER14_RGGB = 57
    CU_EGL_COLOR_FORMAT_BAYER14_BGGR = 58
    CU_EGL_COLOR_FORMAT_BAYER14_GRBG = 59
    CU_EGL_COLOR_FORMAT_BAYER14_GBRG = 60
    CU_EGL_COLOR_FORMAT_BAYER20_RGGB = 61
    CU_EGL_COLOR_FORMAT_BAYER20_BGGR = 62
    CU_EGL_COLOR_FORMAT_BAYER20_GRBG = 63
    CU_EGL_COLOR_FORMAT_BAYER20_GBRG = 64
    CU_EGL_COLOR_FORMAT_YVU444_PLANAR = 65
    CU_EGL_COLOR_FORMAT_YVU422_PLANAR = 66
    CU_EGL_COLOR_FORMAT_YVU420_PLANAR = 67
    CU_EGL_COLOR_FORMAT_BAYER_ISP_RGGB = 68
    CU_EGL_COLOR_FORMAT_BAYER_ISP_BGGR = 69
    CU_EGL_COLOR_FORMAT_BAYER_ISP_GRBG = 70
    CU_EGL_COLOR_FORMAT_BAYER_ISP_GBRG = 71
    CU_EGL_COLOR_FORMAT_BAYER_BCCR = 72
    CU_EGL_COLOR_FORMAT_BAYER_RCCB = 73
    CU_EGL_COLOR_FORMAT_BAYER_CRBC = 74
    CU_EGL_COLOR_FORMAT_BAYER_CBRC = 75
    CU_EGL_COLOR_FORMAT_BAYER10_CCCC = 76
    CU_EGL_COLOR_FORMAT_BAYER12_BCCR = 77
    CU_EGL_COLOR_FORMAT_BAYER12_RCCB = 78
    CU_EGL_COLOR_FORMAT_BAYER12_CRBC = 79
    CU_EGL_COLOR_FORMAT_BAYER12_CBRC = 80
    CU_EGL_COLOR_FORMAT_BAYER12_CCCC = 81
    CU_EGL_COLOR_FORMAT_Y = 82
    CU_EGL_COLOR_FORMAT_YUV420_SEMIPLANAR_2020 = 83
    CU_EGL_COLOR_FORMAT_YVU420_SEMIPLANAR_2020 = 84
    CU_EGL_COLOR_FORMAT_YUV420_PLANAR_2020 = 85
    CU_EGL_COLOR_FORMAT_YVU420_PLANAR_2020 = 86
    CU_EGL_COLOR_FORMAT_YUV420_SEMIPLANAR_709 = 87
    CU_EGL_COLOR_FORMAT_YVU420_SEMIPLANAR_709 = 88
    CU_EGL_COLOR_FORMAT_YUV420_PLANAR_709 = 89
    CU_EGL_COLOR_FORMAT_YVU420_PLANAR_709 = 90
    CU_EGL_COLOR_FORMAT_Y10V10U10_420_SEMIPLANAR_709 = 91
    CU_EGL_COLOR_FORMAT_Y10V10U10_420_SEMIPLANAR_2020 = 92
    CU_EGL_COLOR_FORMAT_Y10V10U10_422_SEMIPLANAR_2020 = 93
    CU_EGL_COLOR_FORMAT_Y10V10U10_422_SEMIPLANAR = 94
    CU_EGL_COLOR_FORMAT_Y10V10U10_422_SEMIPLANAR_709 = 95
    CU_EGL_COLOR_FORMAT_Y_ER = 96
    CU_EGL_COLOR_FORMAT_Y_709_ER = 97
    CU_EGL_COLOR_FORMAT_Y10_ER = 98
    CU_EGL_COLOR_FORMAT_Y10_709_ER = 99
    CU_EGL_COLOR_FORMAT_Y12_ER = 100
    CU_EGL_COLOR_FORMAT_Y12_709_ER = 101
    CU_EGL_COLOR_FORMAT_YUVA = 102
    CU_EGL_COLOR_FORMAT_YUV = 103
    CU_EGL_COLOR_FORMAT_YVYU = 104
    CU_EGL_COLOR_FORMAT_VYUY = 105
    CU_EGL_COLOR_FORMAT_Y10V10U10_420_SEMIPLANAR_ER = 106
    CU_EGL_COLOR_FORMAT_Y10V10U10_420_SEMIPLANAR_709_ER = 107
    CU_EGL_COLOR_FORMAT_Y10V10U10_444_SEMIPLANAR_ER = 108
    CU_EGL_COLOR_FORMAT_Y10V10U10_444_SEMIPLANAR_709_ER = 109
    CU_EGL_COLOR_FORMAT_Y12V12U12_420_SEMIPLANAR_ER = 110
    CU_EGL_COLOR_FORMAT_Y12V12U12_420_SEMIPLANAR_709_ER = 111
    CU_EGL_COLOR_FORMAT_Y12V12U12_444_SEMIPLANAR_ER = 112
    CU_EGL_COLOR_FORMAT_Y12V12U12_444_SEMIPLANAR_709_ER = 113
    CU_EGL_COLOR_FORMAT_UYVY_709 = 114
    CU_EGL_COLOR_FORMAT_UYVY_709_ER = 115
    CU_EGL_COLOR_FORMAT_UYVY_2020 = 116
    CU_EGL_COLOR_FORMAT_MAX = 117

class CUGLDeviceList(IntEnum):
    CU_GL_DEVICE_LIST_ALL = 1
    CU_GL_DEVICE_LIST_CURRENT_FRAME = 2
    CU_GL_DEVICE_LIST_NEXT_FRAME = 3

class CUGLmap_flags(IntEnum):
    CU_GL_MAP_RESOURCE_FLAGS_NONE = 0
    CU_GL_MAP_RESOURCE_FLAGS_READ_ONLY = 1
    CU_GL_MAP_RESOURCE_FLAGS_WRITE_DISCARD = 2

class CUkernelNodeAttrID(IntEnum):
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14
    CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16
    CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17
    CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18

class CUstreamAttrID(IntEnum):
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14
    CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16
    CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17
    CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18

def cuGetErrorString(error: CUresult) -> tuple[CUresult, bytes | None]: ...
def cuGetErrorName(error: CUresult) -> tuple[CUresult, bytes | None]: ...
def cuInit(Flags: int) -> tuple[CUresult]: ...
def cuDriverGetVersion() -> tuple[CUresult, int]: ...
def cuDeviceGet(ordinal: int) -> tuple[CUresult, CUdevice]: ...
def cuDeviceGetCount() -> tuple[CUresult, int]: ...
def cuDeviceGetName(length: int, dev: CUdevice | int | None) -> tuple[CUresult, bytes]: ...
def cuDeviceGetUuid(dev: CUdevice | int | None) -> tuple[CUresult, CUuuid]: ...
def cuDeviceGetLuid(dev: CUdevice | int | None) -> tuple[CUresult, bytes, int]: ...
def cuDeviceTotalMem(dev: CUdevice | int | None) -> tuple[CUresult, int]: ...
def cuDeviceGetTexture1DLinearMaxWidth(
    pformat: CUarray_format, numChannels: int, dev: CUdevice | int | None
) -> tuple[CUresult, int]: ...
def cuDeviceGetAttribute(
    attrib: CUdevice_attribute, dev: CUdevice | int | None
) -> tuple[CUresult, int]: ...
def cuDeviceGetHostAtomicCapabilities(
    operations: tuple[CUatomicOperation, ...] | list[CUatomicOperation] | None,
    count: int,
    dev: CUdevice | int | None,
) -> tuple[CUresult, list[int]]: ...
def cuDeviceGetNvSciSyncAttributes(
    nvSciSyncAttrList: _Pointer, dev: CUdevice | int | None, flags: int
) -> tuple[CUresult]: ...
def cuDeviceSetMemPool(
    dev: CUdevice | int | None, pool: CUmemoryPool | int | None
) -> tuple[CUresult]: ...
def cuDeviceGetMemPool(dev: CUdevice | int | None) -> tuple[CUresult, CUmemoryPool]: ...
def cuDeviceGetDefaultMemPool(dev: CUdevice | int | None) -> tuple[CUresult, CUmemoryPool]: ...
def cuDeviceGetExecAffinitySupport(
    typename: CUexecAffinityType, dev: CUdevice | int | None
) -> tuple[CUresult, int]: ...
def cuFlushGPUDirectRDMAWrites(
    target: CUflushGPUDirectRDMAWritesTarget, scope: CUflushGPUDirectRDMAWritesScope
) -> tuple[CUresult]: ...
def cuDeviceGetProperties(dev: CUdevice | int | None) -> tuple[CUresult, CUdevprop]: ...
def cuDeviceComputeCapability(dev: CUdevice | int | None) -> tuple[CUresult, int, int]: ...
def cuDevicePrimaryCtxRetain(dev: CUdevice | int | None) -> tuple[CUresult, CUcontext]: ...
def cuDevicePrimaryCtxRelease(dev: CUdevice | int | None) -> tuple[CUresult]: ...
def cuDevicePrimaryCtxSetFlags(dev: CUdevice | int | None, flags: int) -> tuple[CUresult]: ...
def cuDevicePrimaryCtxGetState(dev: CUdevice | int | None) -> tuple[CUresult, int, int]: ...
def cuDevicePrimaryCtxReset(dev: CUdevice | int | None) -> tuple[CUresult]: ...
def cuCtxCreate(
    ctxCreateParams: CUctxCreateParams | None, flags: int, dev: CUdevice | int | None
) -> tuple[CUresult, CUcontext]: ...
def cuCtxDestroy(ctx: CUcontext | int | None) -> tuple[CUresult]: ...
def cuCtxPushCurrent(ctx: CUcontext | int | None) -> tuple[CUresult]: ...
def cuCtxPopCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxSetCurrent(ctx: CUcontext | int | None) -> tuple[CUresult]: ...
def cuCtxGetCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxGetDevice() -> tuple[CUresult, CUdevice]: ...
def cuCtxGetDevice_v2(ctx: CUcontext | int | None) -> tuple[CUresult, CUdevice]: ...
def cuCtxGetFlags() -> tuple[CUresult, int]: ...
def cuCtxSetFlags(flags: int) -> tuple[CUresult]: ...
def cuCtxGetId(ctx: CUcontext | int | None) -> tuple[CUresult, int]: ...
def cuCtxSynchronize() -> tuple[CUresult]: ...
def cuCtxSynchronize_v2(ctx: CUcontext | int | None) -> tuple[CUresult]: ...
def cuCtxSetLimit(limit: CUlimit, value: int) -> tuple[CUresult]: ...
def cuCtxGetLimit(limit: CUlimit) -> tuple[CUresult, int]: ...
def cuCtxGetCacheConfig() -> tuple[CUresult, CUfunc_cache]: ...
def cuCtxSetCacheConfig(config: CUfunc_cache) -> tuple[CUresult]: ...
def cuCtxGetApiVersion(ctx: CUcontext | int | None) -> tuple[CUresult, int]: ...
def cuCtxGetStreamPriorityRange() -> tuple[CUresult, int, int]: ...
def cuCtxResetPersistingL2Cache() -> tuple[CUresult]: ...
def cuCtxGetExecAffinity(typename: CUexecAffinityType) -> tuple[CUresult, CUexecAffinityParam]: ...
def cuCtxRecordEvent(
    hCtx: CUcontext | int | None, hEvent: CUevent | int | None
) -> tuple[CUresult]: ...
def cuCtxWaitEvent(
    hCtx: CUcontext | int | None, hEvent: CUevent | int | None
) -> tuple[CUresult]: ...
def cuCtxAttach(flags: int) -> tuple[CUresult, CUcontext]: ...
def cuCtxDetach(ctx: CUcontext | int | None) -> tuple[CUresult]: ...
def cuCtxGetSharedMemConfig() -> tuple[CUresult, CUsharedconfig]: ...
def cuCtxSetSharedMemConfig(config: CUsharedconfig) -> tuple[CUresult]: ...
def cuModuleLoad(fname: bytes | bytearray) -> tuple[CUresult, CUmodule]: ...
def cuModuleLoadData(image: _Pointer) -> tuple[CUresult, CUmodule]: ...
def cuModuleLoadDataEx(
    image: _Pointer,
    numOptions: int,
    options: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    optionValues: tuple[Any, ...] | list[Any] | None,
) -> tuple[CUresult, CUmodule]: ...
def cuModuleLoadFatBinary(fatCubin: _Pointer) -> tuple[CUresult, CUmodule]: ...
def cuModuleUnload(hmod: CUmodule | int | None) -> tuple[CUresult]: ...
def cuModuleGetLoadingMode() -> tuple[CUresult, CUmoduleLoadingMode]: ...
def cuModuleGetFunction(
    hmod: CUmodule | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUfunction]: ...
def cuModuleGetFunctionCount(mod: CUmodule | int | None) -> tuple[CUresult, int]: ...
def cuModuleEnumerateFunctions(
    numFunctions: int, mod: CUmodule | int | None
) -> tuple[CUresult, list[CUfunction]]: ...
def cuModuleGetGlobal(
    hmod: CUmodule | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuLinkCreate(
    numOptions: int,
    options: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    optionValues: tuple[Any, ...] | list[Any] | None,
) -> tuple[CUresult, CUlinkState]: ...
def cuLinkAddData(
    state: CUlinkState | int | None,
    typename: CUjitInputType,
    data: _Pointer,
    size: int,
    name: bytes | bytearray,
    numOptions: int,
    options: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    optionValues: tuple[Any, ...] | list[Any] | None,
) -> tuple[CUresult]: ...
def cuLinkAddFile(
    state: CUlinkState | int | None,
    typename: CUjitInputType,
    path: bytes | bytearray,
    numOptions: int,
    options: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    optionValues: tuple[Any, ...] | list[Any] | None,
) -> tuple[CUresult]: ...
def cuLinkComplete(state: CUlinkState | int | None) -> tuple[CUresult, int, int]: ...
def cuLinkDestroy(state: CUlinkState | int | None) -> tuple[CUresult]: ...
def cuModuleGetTexRef(
    hmod: CUmodule | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUtexref]: ...
def cuModuleGetSurfRef(
    hmod: CUmodule | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUsurfref]: ...
def cuLibraryLoadData(
    code: _Pointer,
    jitOptions: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    jitOptionsValues: tuple[Any, ...] | list[Any] | None,
    numJitOptions: int,
    libraryOptions: tuple[CUlibraryOption, ...] | list[CUlibraryOption] | None,
    libraryOptionValues: tuple[Any, ...] | list[Any] | None,
    numLibraryOptions: int,
) -> tuple[CUresult, CUlibrary]: ...
def cuLibraryLoadFromFile(
    fileName: bytes | bytearray,
    jitOptions: tuple[CUjit_option, ...] | list[CUjit_option] | None,
    jitOptionsValues: tuple[Any, ...] | list[Any] | None,
    numJitOptions: int,
    libraryOptions: tuple[CUlibraryOption, ...] | list[CUlibraryOption] | None,
    libraryOptionValues: tuple[Any, ...] | list[Any] | None,
    numLibraryOptions: int,
) -> tuple[CUresult, CUlibrary]: ...
def cuLibraryUnload(library: CUlibrary | int | None) -> tuple[CUresult]: ...
def cuLibraryGetKernel(
    library: CUlibrary | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUkernel]: ...
def cuLibraryGetKernelCount(lib: CUlibrary | int | None) -> tuple[CUresult, int]: ...
def cuLibraryEnumerateKernels(
    numKernels: int, lib: CUlibrary | int | None
) -> tuple[CUresult, list[CUkernel]]: ...
def cuLibraryGetModule(library: CUlibrary | int | None) -> tuple[CUresult, CUmodule]: ...
def cuKernelGetFunction(kernel: CUkernel | int | None) -> tuple[CUresult, CUfunction]: ...
def cuKernelGetLibrary(kernel: CUkernel | int | None) -> tuple[CUresult, CUlibrary]: ...
def cuLibraryGetGlobal(
    library: CUlibrary | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuLibraryGetManaged(
    library: CUlibrary | int | None, name: bytes | bytearray
) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuLibraryGetUnifiedFunction(
    library: CUlibrary | int | None, symbol: bytes | bytearray
) -> tuple[CUresult, int]: ...
def cuKernelGetAttribute(
    attrib: CUfunction_attribute, kernel: CUkernel | int | None, dev: CUdevice | int | None
) -> tuple[CUresult, int]: ...
def cuKernelSetAttribute(
    attrib: CUfunction_attribute,
    val: int,
    kernel: CUkernel | int | None,
    dev: CUdevice | int | None,
) -> tuple[CUresult]: ...
def cuKernelSetCacheConfig(
    kernel: CUkernel | int | None, config: CUfunc_cache, dev: CUdevice | int | None
) -> tuple[CUresult]: ...
def cuKernelGetName(hfunc: CUkernel | int | None) -> tuple[CUresult, bytes | None]: ...
def cuKernelGetParamInfo(
    kernel: CUkernel | int | None, paramIndex: int
) -> tuple[CUresult, int, int]: ...
def cuKernelGetParamCount(kernel: CUkernel | int | None) -> tuple[CUresult, int]: ...
def cuMemGetInfo() -> tuple[CUresult, int, int]: ...
def cuMemAlloc(bytesize: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemAllocPitch(
    WidthInBytes: int, Height: int, ElementSizeBytes: int
) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuMemFree(dptr: CUdeviceptr | int | None) -> tuple[CUresult]: ...
def cuMemGetAddressRange(dptr: CUdeviceptr | int | None) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuMemAllocHost(bytesize: int) -> tuple[CUresult, int]: ...
def cuMemFreeHost(p: _Pointer) -> tuple[CUresult]: ...
def cuMemHostAlloc(bytesize: int, Flags: int) -> tuple[CUresult, int]: ...
def cuMemHostGetDevicePointer(p: _Pointer, Flags: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemHostGetFlags(p: _Pointer) -> tuple[CUresult, int]: ...
def cuMemAllocManaged(bytesize: int, flags: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuDeviceRegisterAsyncNotification(
    device: CUdevice | int | None, callbackFunc: CUasyncCallback | int | None, userData: _Pointer
) -> tuple[CUresult, CUasyncCallbackHandle]: ...
def cuDeviceUnregisterAsyncNotification(
    device: CUdevice | int | None, callback: CUasyncCallbackHandle | int | None
) -> tuple[CUresult]: ...
def cuDeviceGetByPCIBusId(pciBusId: bytes | bytearray) -> tuple[CUresult, CUdevice]: ...
def cuDeviceGetPCIBusId(length: int, dev: CUdevice | int | None) -> tuple[CUresult, bytes]: ...
def cuIpcGetEventHandle(event: CUevent | int | None) -> tuple[CUresult, CUipcEventHandle]: ...
def cuIpcOpenEventHandle(handle: CUipcEventHandle) -> tuple[CUresult, CUevent]: ...
def cuIpcGetMemHandle(dptr: CUdeviceptr | int | None) -> tuple[CUresult, CUipcMemHandle]: ...
def cuIpcOpenMemHandle(handle: CUipcMemHandle, Flags: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuIpcCloseMemHandle(dptr: CUdeviceptr | int | None) -> tuple[CUresult]: ...
def cuMemHostRegister(p: _Pointer, bytesize: int, Flags: int) -> tuple[CUresult]: ...
def cuMemHostUnregister(p: _Pointer) -> tuple[CUresult]: ...
def cuMemcpy(
    dst: CUdeviceptr | int | None, src: CUdeviceptr | int | None, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyPeer(
    dstDevice: CUdeviceptr | int | None,
    dstContext: CUcontext | int | None,
    srcDevice: CUdeviceptr | int | None,
    srcContext: CUcontext | int | None,
    ByteCount: int,
) -> tuple[CUresult]: ...
def cuMemcpyHtoD(
    dstDevice: CUdeviceptr | int | None, srcHost: _Pointer, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyDtoH(
    dstHost: _Pointer, srcDevice: CUdeviceptr | int | None, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyDtoD(
    dstDevice: CUdeviceptr | int | None, srcDevice: CUdeviceptr | int | None, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyDtoA(
    dstArray: CUarray | int | None,
    dstOffset: int,
    srcDevice: CUdeviceptr | int | None,
    ByteCount: int,
) -> tuple[CUresult]: ...
def cuMemcpyAtoD(
    dstDevice: CUdeviceptr | int | None,
    srcArray: CUarray | int | None,
    srcOffset: int,
    ByteCount: int,
) -> tuple[CUresult]: ...
def cuMemcpyHtoA(
    dstArray: CUarray | int | None, dstOffset: int, srcHost: _Pointer, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyAtoH(
    dstHost: _Pointer, srcArray: CUarray | int | None, srcOffset: int, ByteCount: int
) -> tuple[CUresult]: ...
def cuMemcpyAtoA(
    dstArray: CUarray | int | None,
    dstOffset: int,
    srcArray: CUarray | int | None,
    srcOffset: int,
    ByteCount: int,
) -> tuple[CUresult]: ...
def cuMemcpy2D(pCopy: CUDA_MEMCPY2D | None) -> tuple[CUresult]: ...
def cuMemcpy2DUnaligned(pCopy: CUDA_MEMCPY2D | None) -> tuple[CUresult]: ...
def cuMemcpy3D(pCopy: CUDA_MEMCPY3D | None) -> tuple[CUresult]: ...
def cuMemcpy3DPeer(pCopy: CUDA_MEMCPY3D_PEER | None) -> tuple[CUresult]: ...
def cuMemcpyAsync(
    dst: CUdeviceptr | int | None,
    src: CUdeviceptr | int | None,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr | int | None,
    dstContext: CUcontext | int | None,
    srcDevice: CUdeviceptr | int | None,
    srcContext: CUcontext | int | None,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr | int | None,
    srcHost: _Pointer,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyDtoHAsync(
    dstHost: _Pointer,
    srcDevice: CUdeviceptr | int | None,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr | int | None,
    srcDevice: CUdeviceptr | int | None,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyHtoAAsync(
    dstArray: CUarray | int | None,
    dstOffset: int,
    srcHost: _Pointer,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyAtoHAsync(
    dstHost: _Pointer,
    srcArray: CUarray | int | None,
    srcOffset: int,
    ByteCount: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpy2DAsync(
    pCopy: CUDA_MEMCPY2D | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemcpy3DAsync(
    pCopy: CUDA_MEMCPY3D | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemcpy3DPeerAsync(
    pCopy: CUDA_MEMCPY3D_PEER | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemcpyBatchAsync(
    dsts: tuple[CUdeviceptr, ...] | list[CUdeviceptr] | None,
    srcs: tuple[CUdeviceptr, ...] | list[CUdeviceptr] | None,
    sizes: tuple[int, ...] | list[int],
    count: int,
    attrs: tuple[CUmemcpyAttributes, ...] | list[CUmemcpyAttributes] | None,
    attrsIdxs: tuple[int, ...] | list[int],
    numAttrs: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpy3DBatchAsync(
    numOps: int,
    opList: tuple[CUDA_MEMCPY3D_BATCH_OP, ...] | list[CUDA_MEMCPY3D_BATCH_OP] | None,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpyWithAttributesAsync(
    dst: CUdeviceptr | int | None,
    src: CUdeviceptr | int | None,
    size: int,
    attr: CUmemcpyAttributes | None,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemcpy3DWithAttributesAsync(
    op: CUDA_MEMCPY3D_BATCH_OP | None, flags: int, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemsetD8(dstDevice: CUdeviceptr | int | None, uc: int, N: int) -> tuple[CUresult]: ...
def cuMemsetD16(dstDevice: CUdeviceptr | int | None, us: int, N: int) -> tuple[CUresult]: ...
def cuMemsetD32(dstDevice: CUdeviceptr | int | None, ui: int, N: int) -> tuple[CUresult]: ...
def cuMemsetD2D8(
    dstDevice: CUdeviceptr | int | None, dstPitch: int, uc: int, Width: int, Height: int
) -> tuple[CUresult]: ...
def cuMemsetD2D16(
    dstDevice: CUdeviceptr | int | None, dstPitch: int, us: int, Width: int, Height: int
) -> tuple[CUresult]: ...
def cuMemsetD2D32(
    dstDevice: CUdeviceptr | int | None, dstPitch: int, ui: int, Width: int, Height: int
) -> tuple[CUresult]: ...
def cuMemsetD8Async(
    dstDevice: CUdeviceptr | int | None, uc: int, N: int, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemsetD16Async(
    dstDevice: CUdeviceptr | int | None, us: int, N: int, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemsetD32Async(
    dstDevice: CUdeviceptr | int | None, ui: int, N: int, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemsetD2D8Async(
    dstDevice: CUdeviceptr | int | None,
    dstPitch: int,
    uc: int,
    Width: int,
    Height: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemsetD2D16Async(
    dstDevice: CUdeviceptr | int | None,
    dstPitch: int,
    us: int,
    Width: int,
    Height: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemsetD2D32Async(
    dstDevice: CUdeviceptr | int | None,
    dstPitch: int,
    ui: int,
    Width: int,
    Height: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuArrayCreate(pAllocateArray: CUDA_ARRAY_DESCRIPTOR | None) -> tuple[CUresult, CUarray]: ...
def cuArrayGetDescriptor(
    hArray: CUarray | int | None,
) -> tuple[CUresult, CUDA_ARRAY_DESCRIPTOR]: ...
def cuArrayGetSparseProperties(
    array: CUarray | int | None,
) -> tuple[CUresult, CUDA_ARRAY_SPARSE_PROPERTIES]: ...
def cuMipmappedArrayGetSparseProperties(
    mipmap: CUmipmappedArray | int | None,
) -> tuple[CUresult, CUDA_ARRAY_SPARSE_PROPERTIES]: ...
def cuArrayGetMemoryRequirements(
    array: CUarray | int | None, device: CUdevice | int | None
) -> tuple[CUresult, CUDA_ARRAY_MEMORY_REQUIREMENTS]: ...
def cuMipmappedArrayGetMemoryRequirements(
    mipmap: CUmipmappedArray | int | None, device: CUdevice | int | None
) -> tuple[CUresult, CUDA_ARRAY_MEMORY_REQUIREMENTS]: ...
def cuArrayGetPlane(hArray: CUarray | int | None, planeIdx: int) -> tuple[CUresult, CUarray]: ...
def cuArrayDestroy(hArray: CUarray | int | None) -> tuple[CUresult]: ...
def cuArray3DCreate(pAllocateArray: CUDA_ARRAY3D_DESCRIPTOR | None) -> tuple[CUresult, CUarray]: ...
def cuArray3DGetDescriptor(
    hArray: CUarray | int | None,
) -> tuple[CUresult, CUDA_ARRAY3D_DESCRIPTOR]: ...
def cuMipmappedArrayCreate(
    pMipmappedArrayDesc: CUDA_ARRAY3D_DESCRIPTOR | None, numMipmapLevels: int
) -> tuple[CUresult, CUmipmappedArray]: ...
def cuMipmappedArrayGetLevel(
    hMipmappedArray: CUmipmappedArray | int | None, level: int
) -> tuple[CUresult, CUarray]: ...
def cuMipmappedArrayDestroy(hMipmappedArray: CUmipmappedArray | int | None) -> tuple[CUresult]: ...
def cuMemGetHandleForAddressRange(
    dptr: CUdeviceptr | int | None, size: int, handleType: CUmemRangeHandleType, flags: int
) -> tuple[CUresult, Any]: ...
def cuMemBatchDecompressAsync(
    paramsArray: CUmemDecompressParams | None, count: int, flags: int, stream: CUstream | int | None
) -> tuple[CUresult, int]: ...
def cuMemAddressReserve(
    size: int, alignment: int, addr: CUdeviceptr | int | None, flags: int
) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemAddressFree(ptr: CUdeviceptr | int | None, size: int) -> tuple[CUresult]: ...
def cuMemCreate(
    size: int, prop: CUmemAllocationProp | None, flags: int
) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
def cuMemRelease(handle: CUmemGenericAllocationHandle | int | None) -> tuple[CUresult]: ...
def cuMemMap(
    ptr: CUdeviceptr | int | None,
    size: int,
    offset: int,
    handle: CUmemGenericAllocationHandle | int | None,
    flags: int,
) -> tuple[CUresult]: ...
def cuMemMapArrayAsync(
    mapInfoList: tuple[CUarrayMapInfo, ...] | list[CUarrayMapInfo] | None,
    count: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemUnmap(ptr: CUdeviceptr | int | None, size: int) -> tuple[CUresult]: ...
def cuMemSetAccess(
    ptr: CUdeviceptr | int | None,
    size: int,
    desc: tuple[CUmemAccessDesc, ...] | list[CUmemAccessDesc] | None,
    count: int,
) -> tuple[CUresult]: ...
def cuMemGetAccess(
    location: CUmemLocation | None, ptr: CUdeviceptr | int | None
) -> tuple[CUresult, int]: ...
def cuMemExportToShareableHandle(
    handle: CUmemGenericAllocationHandle | int | None,
    handleType: CUmemAllocationHandleType,
    flags: int,
) -> tuple[CUresult, Any]: ...
def cuMemImportFromShareableHandle(
    osHandle: _Pointer, shHandleType: CUmemAllocationHandleType
) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
def cuMemGetAllocationGranularity(
    prop: CUmemAllocationProp | None, option: CUmemAllocationGranularity_flags
) -> tuple[CUresult, int]: ...
def cuMemGetAllocationPropertiesFromHandle(
    handle: CUmemGenericAllocationHandle | int | None,
) -> tuple[CUresult, CUmemAllocationProp]: ...
def cuMemRetainAllocationHandle(
    addr: _Pointer,
) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
def cuMemFreeAsync(
    dptr: CUdeviceptr | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuMemAllocAsync(
    bytesize: int, hStream: CUstream | int | None
) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemPoolTrimTo(pool: CUmemoryPool | int | None, minBytesToKeep: int) -> tuple[CUresult]: ...
def cuMemPoolSetAttribute(
    pool: CUmemoryPool | int | None, attr: CUmemPool_attribute, value: _Pointer
) -> tuple[CUresult]: ...
def cuMemPoolGetAttribute(
    pool: CUmemoryPool | int | None, attr: CUmemPool_attribute
) -> tuple[CUresult, Any]: ...
def cuMemPoolSetAccess(
    pool: CUmemoryPool | int | None,
    map: tuple[CUmemAccessDesc, ...] | list[CUmemAccessDesc] | None,
    count: int,
) -> tuple[CUresult]: ...
def cuMemPoolGetAccess(
    memPool: CUmemoryPool | int | None, location: CUmemLocation | None
) -> tuple[CUresult, CUmemAccess_flags]: ...
def cuMemPoolCreate(poolProps: CUmemPoolProps | None) -> tuple[CUresult, CUmemoryPool]: ...
def cuMemPoolDestroy(pool: CUmemoryPool | int | None) -> tuple[CUresult]: ...
def cuMemGetDefaultMemPool(
    location: CUmemLocation | None, typename: CUmemAllocationType
) -> tuple[CUresult, CUmemoryPool]: ...
def cuMemGetMemPool(
    location: CUmemLocation | None, typename: CUmemAllocationType
) -> tuple[CUresult, CUmemoryPool]: ...
def cuMemSetMemPool(
    location: CUmemLocation | None, typename: CUmemAllocationType, pool: CUmemoryPool | int | None
) -> tuple[CUresult]: ...
def cuMemAllocFromPoolAsync(
    bytesize: int, pool: CUmemoryPool | int | None, hStream: CUstream | int | None
) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemPoolExportToShareableHandle(
    pool: CUmemoryPool | int | None, handleType: CUmemAllocationHandleType, flags: int
) -> tuple[CUresult, Any]: ...
def cuMemPoolImportFromShareableHandle(
    handle: _Pointer, handleType: CUmemAllocationHandleType, flags: int
) -> tuple[CUresult, CUmemoryPool]: ...
def cuMemPoolExportPointer(
    ptr: CUdeviceptr | int | None,
) -> tuple[CUresult, CUmemPoolPtrExportData]: ...
def cuMemPoolImportPointer(
    pool: CUmemoryPool | int | None, shareData: CUmemPoolPtrExportData | None
) -> tuple[CUresult, CUdeviceptr]: ...
def cuMulticastCreate(
    prop: CUmulticastObjectProp | None,
) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
def cuMulticastAddDevice(
    mcHandle: CUmemGenericAllocationHandle | int | None, dev: CUdevice | int | None
) -> tuple[CUresult]: ...
def cuMulticastBindMem(
    mcHandle: CUmemGenericAllocationHandle | int | None,
    mcOffset: int,
    memHandle: CUmemGenericAllocationHandle | int | None,
    memOffset: int,
    size: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuMulticastBindMem_v2(
    mcHandle: CUmemGenericAllocationHandle | int | None,
    dev: CUdevice | int | None,
    mcOffset: int,
    memHandle: CUmemGenericAllocationHandle | int | None,
    memOffset: int,
    size: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuMulticastBindAddr(
    mcHandle: CUmemGenericAllocationHandle | int | None,
    mcOffset: int,
    memptr: CUdeviceptr | int | None,
    size: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuMulticastBindAddr_v2(
    mcHandle: CUmemGenericAllocationHandle | int | None,
    dev: CUdevice | int | None,
    mcOffset: int,
    memptr: CUdeviceptr | int | None,
    size: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuMulticastUnbind(
    mcHandle: CUmemGenericAllocationHandle | int | None,
    dev: CUdevice | int | None,
    mcOffset: int,
    size: int,
) -> tuple[CUresult]: ...
def cuMulticastGetGranularity(
    prop: CUmulticastObjectProp | None, option: CUmulticastGranularity_flags
) -> tuple[CUresult, int]: ...
def cuDeviceGetFabricClusterUuid(dev: CUdevice | int | None) -> tuple[CUresult, CUuuid]: ...
def cuDeviceGetCliqueCount(dev: CUdevice | int | None) -> tuple[CUresult, int]: ...
def cuDeviceGetCliqueInfo(
    count: int, dev: CUdevice | int | None
) -> tuple[CUresult, list[CUcliqueInfo], int]: ...
def cuLogicalEndpointIdReserve(count: _Pointer) -> tuple[CUresult, CUlogicalEndpointId]: ...
def cuLogicalEndpointIdRelease(
    baseLeId: CUlogicalEndpointId | int | None, count: _Pointer
) -> tuple[CUresult]: ...
def cuLogicalEndpointCreate(
    leId: CUlogicalEndpointId | int | None, prop: CUlogicalEndpointProp | None
) -> tuple[CUresult]: ...
def cuLogicalEndpointAddDevice(
    leId: CUlogicalEndpointId | int | None, dev: CUdevice | int | None
) -> tuple[CUresult]: ...
def cuLogicalEndpointDestroy(leId: CUlogicalEndpointId | int | None) -> tuple[CUresult]: ...
def cuLogicalEndpointBindAddr(
    leId: CUlogicalEndpointId | int | None,
    dev: CUdevice | int | None,
    offset: _Pointer,
    ptr: _Pointer,
    size: _Pointer,
    flags: int,
) -> tuple[CUresult]: ...
def cuLogicalEndpointBindMem(
    leId: CUlogicalEndpointId | int | None,
    dev: CUdevice | int | None,
    offset: _Pointer,
    memHandle: CUmemGenericAllocationHandle | int | None,
    memOffset: _Pointer,
    size: _Pointer,
    flags: int,
) -> tuple[CUresult]: ...
def cuLogicalEndpointUnbind(
    leId: CUlogicalEndpointId | int | None,
    dev: CUdevice | int | None,
    offset: _Pointer,
    size: _Pointer,
) -> tuple[CUresult]: ...
def cuLogicalEndpointExport(
    leId: CUlogicalEndpointId | int | None, handleType: CUlogicalEndpointIpcHandleType
) -> tuple[CUresult, Any]: ...
def cuLogicalEndpointImport(
    leId: CUlogicalEndpointId | int | None,
    handle: _Pointer,
    handleType: CUlogicalEndpointIpcHandleType,
) -> tuple[CUresult]: ...
def cuLogicalEndpointGetLimits(
    prop: CUlogicalEndpointProp | None,
) -> tuple[CUresult, cuuint64_t, cuuint64_t]: ...
def cuLogicalEndpointQuery(
    leId: CUlogicalEndpointId | int | None, count: _Pointer
) -> tuple[CUresult, int]: ...
def cuFabricCpyBatchAsync(
    numOps: int,
    opList: tuple[CUDA_FABRIC_COPY_BATCH_OP, ...] | list[CUDA_FABRIC_COPY_BATCH_OP] | None,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuPointerGetAttribute(
    attribute: CUpointer_attribute, ptr: CUdeviceptr | int | None
) -> tuple[CUresult, Any]: ...
def cuMemPrefetchAsync(
    devPtr: CUdeviceptr | int | None,
    count: int,
    location: CUmemLocation,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemAdvise(
    devPtr: CUdeviceptr | int | None, count: int, advice: CUmem_advise, location: CUmemLocation
) -> tuple[CUresult]: ...
def cuMemPrefetchBatchAsync(
    dptrs: tuple[CUdeviceptr, ...] | list[CUdeviceptr] | None,
    sizes: tuple[int, ...] | list[int],
    count: int,
    prefetchLocs: tuple[CUmemLocation, ...] | list[CUmemLocation] | None,
    prefetchLocIdxs: tuple[int, ...] | list[int],
    numPrefetchLocs: int,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemDiscardBatchAsync(
    dptrs: tuple[CUdeviceptr, ...] | list[CUdeviceptr] | None,
    sizes: tuple[int, ...] | list[int],
    count: int,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemDiscardAndPrefetchBatchAsync(
    dptrs: tuple[CUdeviceptr, ...] | list[CUdeviceptr] | None,
    sizes: tuple[int, ...] | list[int],
    count: int,
    prefetchLocs: tuple[CUmemLocation, ...] | list[CUmemLocation] | None,
    prefetchLocIdxs: tuple[int, ...] | list[int],
    numPrefetchLocs: int,
    flags: int,
    hStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuMemGetLocationInfo(
    ptr: CUdeviceptr | int | None,
    size: int,
    summaryGranularity: int,
    samplingGranularity: int,
    location_out: CUmemLocation | None,
) -> tuple[CUresult]: ...
def cuMemRangeGetAttribute(
    dataSize: int, attribute: CUmem_range_attribute, devPtr: CUdeviceptr | int | None, count: int
) -> tuple[CUresult, Any]: ...
def cuMemRangeGetAttributes(
    dataSizes: tuple[int, ...] | list[int],
    attributes: tuple[CUmem_range_attribute, ...] | list[CUmem_range_attribute] | None,
    numAttributes: int,
    devPtr: CUdeviceptr | int | None,
    count: int,
) -> tuple[CUresult, list[Any]]: ...
def cuPointerSetAttribute(
    value: _Pointer, attribute: CUpointer_attribute, ptr: CUdeviceptr | int | None
) -> tuple[CUresult]: ...
def cuPointerGetAttributes(
    numAttributes: int,
    attributes: tuple[CUpointer_attribute, ...] | list[CUpointer_attribute] | None,
    ptr: CUdeviceptr | int | None,
) -> tuple[CUresult, list[Any]]: ...
def cuStreamCreate(Flags: int) -> tuple[CUresult, CUstream]: ...
def cuStreamCreateWithPriority(flags: int, priority: int) -> tuple[CUresult, CUstream]: ...
def cuStreamBeginCaptureToCig(
    hStream: CUstream | int | None, streamCigCaptureParams: CUstreamCigCaptureParams | None
) -> tuple[CUresult]: ...
def cuStreamEndCaptureToCig(hStream: CUstream | int | None) -> tuple[CUresult]: ...
def cuStreamGetPriority(hStream: CUstream | int | None) -> tuple[CUresult, int]: ...
def cuStreamGetDevice(hStream: CUstream | int | None) -> tuple[CUresult, CUdevice]: ...
def cuStreamGetFlags(hStream: CUstream | int | None) -> tuple[CUresult, int]: ...
def cuStreamGetId(hStream: CUstream | int | None) -> tuple[CUresult, int]: ...
def cuStreamGetCtx(hStream: CUstream | int | None) -> tuple[CUresult, CUcontext]: ...
def cuStreamGetCtx_v2(hStream: CUstream | int | None) -> tuple[CUresult, CUcontext, CUgreenCtx]: ...
def cuStreamWaitEvent(
    hStream: CUstream | int | None, hEvent: CUevent | int | None, Flags: int
) -> tuple[CUresult]: ...
def cuStreamAddCallback(
    hStream: CUstream | int | None,
    callback: CUstreamCallback | int | None,
    userData: _Pointer,
    flags: int,
) -> tuple[CUresult]: ...
def cuStreamBeginCapture(
    hStream: CUstream | int | None, mode: CUstreamCaptureMode
) -> tuple[CUresult]: ...
def cuStreamBeginRecaptureToGraph(
    hStream: CUstream | int | None,
    mode: CUstreamCaptureMode,
    hGraph: CUgraph | int | None,
    callbackFunc: CUgraphRecaptureCallback | int | None,
    userData: _Pointer,
) -> tuple[CUresult]: ...
def cuStreamBeginCaptureToGraph(
    hStream: CUstream | int | None,
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    dependencyData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
    mode: CUstreamCaptureMode,
) -> tuple[CUresult]: ...
def cuThreadExchangeStreamCaptureMode(
    mode: CUstreamCaptureMode,
) -> tuple[CUresult, CUstreamCaptureMode]: ...
def cuStreamEndCapture(hStream: CUstream | int | None) -> tuple[CUresult, CUgraph]: ...
def cuStreamIsCapturing(
    hStream: CUstream | int | None,
) -> tuple[CUresult, CUstreamCaptureStatus]: ...
def cuStreamGetCaptureInfo(
    hStream: CUstream | int | None,
) -> tuple[
    CUresult,
    CUstreamCaptureStatus,
    cuuint64_t,
    CUgraph,
    list[CUgraphNode],
    list[CUgraphEdgeData],
    int,
]: ...
def cuStreamUpdateCaptureDependencies(
    hStream: CUstream | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    dependencyData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuStreamAttachMemAsync(
    hStream: CUstream | int | None, dptr: CUdeviceptr | int | None, length: int, flags: int
) -> tuple[CUresult]: ...
def cuStreamQuery(hStream: CUstream | int | None) -> tuple[CUresult]: ...
def cuStreamSynchronize(hStream: CUstream | int | None) -> tuple[CUresult]: ...
def cuStreamDestroy(hStream: CUstream | int | None) -> tuple[CUresult]: ...
def cuStreamCopyAttributes(
    dst: CUstream | int | None, src: CUstream | int | None
) -> tuple[CUresult]: ...
def cuStreamGetAttribute(
    hStream: CUstream | int | None, attr: CUstreamAttrID
) -> tuple[CUresult, CUstreamAttrValue]: ...
def cuStreamSetAttribute(
    hStream: CUstream | int | None, attr: CUstreamAttrID, value: CUstreamAttrValue | None
) -> tuple[CUresult]: ...
def cuEventCreate(Flags: int) -> tuple[CUresult, CUevent]: ...
def cuEventRecord(
    hEvent: CUevent | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuEventRecordWithFlags(
    hEvent: CUevent | int | None, hStream: CUstream | int | None, flags: int
) -> tuple[CUresult]: ...
def cuEventQuery(hEvent: CUevent | int | None) -> tuple[CUresult]: ...
def cuEventSynchronize(hEvent: CUevent | int | None) -> tuple[CUresult]: ...
def cuEventDestroy(hEvent: CUevent | int | None) -> tuple[CUresult]: ...
def cuEventElapsedTime(
    hStart: CUevent | int | None, hEnd: CUevent | int | None
) -> tuple[CUresult, float]: ...
def cuImportExternalMemory(
    memHandleDesc: CUDA_EXTERNAL_MEMORY_HANDLE_DESC | None,
) -> tuple[CUresult, CUexternalMemory]: ...
def cuExternalMemoryGetMappedBuffer(
    extMem: CUexternalMemory | int | None, bufferDesc: CUDA_EXTERNAL_MEMORY_BUFFER_DESC | None
) -> tuple[CUresult, CUdeviceptr]: ...
def cuExternalMemoryGetMappedMipmappedArray(
    extMem: CUexternalMemory | int | None,
    mipmapDesc: CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC | None,
) -> tuple[CUresult, CUmipmappedArray]: ...
def cuDestroyExternalMemory(extMem: CUexternalMemory | int | None) -> tuple[CUresult]: ...
def cuImportExternalSemaphore(
    semHandleDesc: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC | None,
) -> tuple[CUresult, CUexternalSemaphore]: ...
def cuSignalExternalSemaphoresAsync(
    extSemArray: tuple[CUexternalSemaphore, ...] | list[CUexternalSemaphore] | None,
    paramsArray: tuple[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, ...]
    | list[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS]
    | None,
    numExtSems: int,
    stream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuWaitExternalSemaphoresAsync(
    extSemArray: tuple[CUexternalSemaphore, ...] | list[CUexternalSemaphore] | None,
    paramsArray: tuple[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, ...]
    | list[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS]
    | None,
    numExtSems: int,
    stream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuDestroyExternalSemaphore(extSem: CUexternalSemaphore | int | None) -> tuple[CUresult]: ...
def cuStreamWaitValue32(
    stream: CUstream | int | None, addr: CUdeviceptr | int | None, value: _Pointer, flags: int
) -> tuple[CUresult]: ...
def cuStreamWaitValue64(
    stream: CUstream | int | None, addr: CUdeviceptr | int | None, value: _Pointer, flags: int
) -> tuple[CUresult]: ...
def cuStreamWriteValue32(
    stream: CUstream | int | None, addr: CUdeviceptr | int | None, value: _Pointer, flags: int
) -> tuple[CUresult]: ...
def cuStreamWriteValue64(
    stream: CUstream | int | None, addr: CUdeviceptr | int | None, value: _Pointer, flags: int
) -> tuple[CUresult]: ...
def cuStreamBatchMemOp(
    stream: CUstream | int | None,
    count: int,
    paramArray: tuple[CUstreamBatchMemOpParams, ...] | list[CUstreamBatchMemOpParams] | None,
    flags: int,
) -> tuple[CUresult]: ...
def cuFuncGetAttribute(
    attrib: CUfunction_attribute, hfunc: CUfunction | int | None
) -> tuple[CUresult, int]: ...
def cuFuncSetAttribute(
    hfunc: CUfunction | int | None, attrib: CUfunction_attribute, value: int
) -> tuple[CUresult]: ...
def cuFuncSetCacheConfig(
    hfunc: CUfunction | int | None, config: CUfunc_cache
) -> tuple[CUresult]: ...
def cuFuncGetModule(hfunc: CUfunction | int | None) -> tuple[CUresult, CUmodule]: ...
def cuFuncGetName(hfunc: CUfunction | int | None) -> tuple[CUresult, bytes | None]: ...
def cuFuncGetParamInfo(
    func: CUfunction | int | None, paramIndex: int
) -> tuple[CUresult, int, int]: ...
def cuFuncGetParamCount(func: CUfunction | int | None) -> tuple[CUresult, int]: ...
def cuFuncIsLoaded(
    function: CUfunction | int | None,
) -> tuple[CUresult, CUfunctionLoadingState]: ...
def cuFuncLoad(function: CUfunction | int | None) -> tuple[CUresult]: ...
def cuLaunchKernel(
    f: CUfunction | int | None,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    hStream: CUstream | int | None,
    kernelParams: _KernelParams,
    extra: int,
) -> tuple[CUresult]: ...
def cuLaunchKernelEx(
    config: CUlaunchConfig | None,
    f: CUfunction | int | None,
    kernelParams: _KernelParams,
    extra: int,
) -> tuple[CUresult]: ...
def cuLaunchCooperativeKernel(
    f: CUfunction | int | None,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    hStream: CUstream | int | None,
    kernelParams: _KernelParams,
) -> tuple[CUresult]: ...
def cuLaunchHostFunc(
    hStream: CUstream | int | None, fn: CUhostFn | int | None, userData: _Pointer
) -> tuple[CUresult]: ...
def cuLaunchHostFunc_v2(
    hStream: CUstream | int | None, fn: CUhostFn | int | None, userData: _Pointer, syncMode: int
) -> tuple[CUresult]: ...
def cuFuncSetBlockShape(
    hfunc: CUfunction | int | None, x: int, y: int, z: int
) -> tuple[CUresult]: ...
def cuFuncSetSharedSize(hfunc: CUfunction | int | None, numbytes: int) -> tuple[CUresult]: ...
def cuParamSetSize(hfunc: CUfunction | int | None, numbytes: int) -> tuple[CUresult]: ...
def cuParamSeti(hfunc: CUfunction | int | None, offset: int, value: int) -> tuple[CUresult]: ...
def cuParamSetf(hfunc: CUfunction | int | None, offset: int, value: float) -> tuple[CUresult]: ...
def cuParamSetv(
    hfunc: CUfunction | int | None, offset: int, ptr: _Pointer, numbytes: int
) -> tuple[CUresult]: ...
def cuLaunch(f: CUfunction | int | None) -> tuple[CUresult]: ...
def cuLaunchGrid(
    f: CUfunction | int | None, grid_width: int, grid_height: int
) -> tuple[CUresult]: ...
def cuLaunchGridAsync(
    f: CUfunction | int | None, grid_width: int, grid_height: int, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuLaunchCooperativeKernelMultiDevice(
    launchParamsList: tuple[CUDA_LAUNCH_PARAMS, ...] | list[CUDA_LAUNCH_PARAMS] | None,
    numDevices: int,
    flags: int,
) -> tuple[CUresult]: ...
def cuParamSetTexRef(
    hfunc: CUfunction | int | None, texunit: int, hTexRef: CUtexref | int | None
) -> tuple[CUresult]: ...
def cuFuncSetSharedMemConfig(
    hfunc: CUfunction | int | None, config: CUsharedconfig
) -> tuple[CUresult]: ...
def cuGraphCreate(flags: int) -> tuple[CUresult, CUgraph]: ...
def cuGraphAddKernelNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_KERNEL_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphKernelNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_KERNEL_NODE_PARAMS]: ...
def cuGraphKernelNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_KERNEL_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphAddMemcpyNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    copyParams: CUDA_MEMCPY3D | None,
    ctx: CUcontext | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphMemcpyNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_MEMCPY3D]: ...
def cuGraphMemcpyNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_MEMCPY3D | None
) -> tuple[CUresult]: ...
def cuGraphAddMemsetNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    memsetParams: CUDA_MEMSET_NODE_PARAMS | None,
    ctx: CUcontext | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphMemsetNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_MEMSET_NODE_PARAMS]: ...
def cuGraphMemsetNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_MEMSET_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphAddHostNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_HOST_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphHostNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_HOST_NODE_PARAMS]: ...
def cuGraphHostNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_HOST_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphAddChildGraphNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    childGraph: CUgraph | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphChildGraphNodeGetGraph(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUgraph]: ...
def cuGraphAddEmptyNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphAddEventRecordNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    event: CUevent | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphEventRecordNodeGetEvent(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUevent]: ...
def cuGraphEventRecordNodeSetEvent(
    hNode: CUgraphNode | int | None, event: CUevent | int | None
) -> tuple[CUresult]: ...
def cuGraphAddEventWaitNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    event: CUevent | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphEventWaitNodeGetEvent(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUevent]: ...
def cuGraphEventWaitNodeSetEvent(
    hNode: CUgraphNode | int | None, event: CUevent | int | None
) -> tuple[CUresult]: ...
def cuGraphAddExternalSemaphoresSignalNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphExternalSemaphoresSignalNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS]: ...
def cuGraphExternalSemaphoresSignalNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphAddExternalSemaphoresWaitNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_EXT_SEM_WAIT_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphExternalSemaphoresWaitNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_EXT_SEM_WAIT_NODE_PARAMS]: ...
def cuGraphExternalSemaphoresWaitNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_EXT_SEM_WAIT_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphAddBatchMemOpNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_BATCH_MEM_OP_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphBatchMemOpNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_BATCH_MEM_OP_NODE_PARAMS]: ...
def cuGraphBatchMemOpNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUDA_BATCH_MEM_OP_NODE_PARAMS | None
) -> tuple[CUresult]: ...
def cuGraphExecBatchMemOpNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUDA_BATCH_MEM_OP_NODE_PARAMS | None,
) -> tuple[CUresult]: ...
def cuGraphAddMemAllocNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    nodeParams: CUDA_MEM_ALLOC_NODE_PARAMS | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphMemAllocNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUDA_MEM_ALLOC_NODE_PARAMS]: ...
def cuGraphAddMemFreeNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    numDependencies: int,
    dptr: CUdeviceptr | int | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphMemFreeNodeGetParams(
    hNode: CUgraphNode | int | None,
) -> tuple[CUresult, CUdeviceptr]: ...
def cuDeviceGraphMemTrim(device: CUdevice | int | None) -> tuple[CUresult]: ...
def cuDeviceGetGraphMemAttribute(
    device: CUdevice | int | None, attr: CUgraphMem_attribute
) -> tuple[CUresult, Any]: ...
def cuDeviceSetGraphMemAttribute(
    device: CUdevice | int | None, attr: CUgraphMem_attribute, value: _Pointer
) -> tuple[CUresult]: ...
def cuGraphClone(originalGraph: CUgraph | int | None) -> tuple[CUresult, CUgraph]: ...
def cuGraphNodeFindInClone(
    hOriginalNode: CUgraphNode | int | None, hClonedGraph: CUgraph | int | None
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphNodeGetType(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUgraphNodeType]: ...
def cuGraphNodeGetContainingGraph(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUgraph]: ...
def cuGraphNodeGetLocalId(hNode: CUgraphNode | int | None) -> tuple[CUresult, int]: ...
def cuGraphNodeGetToolsId(hNode: CUgraphNode | int | None) -> tuple[CUresult, int]: ...
def cuGraphGetId(hGraph: CUgraph | int | None) -> tuple[CUresult, int]: ...
def cuGraphExecGetId(hGraphExec: CUgraphExec | int | None) -> tuple[CUresult, int]: ...
def cuGraphGetNodes(
    hGraph: CUgraph | int | None, numNodes: int = 0
) -> tuple[CUresult, list[CUgraphNode], int]: ...
def cuGraphGetRootNodes(
    hGraph: CUgraph | int | None, numRootNodes: int = 0
) -> tuple[CUresult, list[CUgraphNode], int]: ...
def cuGraphGetEdges(
    hGraph: CUgraph | int | None, numEdges: int = 0
) -> tuple[CUresult, list[CUgraphNode], list[CUgraphNode], list[CUgraphEdgeData], int]: ...
def cuGraphNodeGetDependencies(
    hNode: CUgraphNode | int | None, numDependencies: int = 0
) -> tuple[CUresult, list[CUgraphNode], list[CUgraphEdgeData], int]: ...
def cuGraphNodeGetDependentNodes(
    hNode: CUgraphNode | int | None, numDependentNodes: int = 0
) -> tuple[CUresult, list[CUgraphNode], list[CUgraphEdgeData], int]: ...
def cuGraphAddDependencies(
    hGraph: CUgraph | int | None,
    from_: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    to: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    edgeData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
) -> tuple[CUresult]: ...
def cuGraphRemoveDependencies(
    hGraph: CUgraph | int | None,
    from_: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    to: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    edgeData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
) -> tuple[CUresult]: ...
def cuGraphDestroyNode(hNode: CUgraphNode | int | None) -> tuple[CUresult]: ...
def cuGraphInstantiate(
    hGraph: CUgraph | int | None, flags: int
) -> tuple[CUresult, CUgraphExec]: ...
def cuGraphInstantiateWithParams(
    hGraph: CUgraph | int | None, instantiateParams: CUDA_GRAPH_INSTANTIATE_PARAMS | None
) -> tuple[CUresult, CUgraphExec]: ...
def cuGraphExecGetFlags(hGraphExec: CUgraphExec | int | None) -> tuple[CUresult, cuuint64_t]: ...
def cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUDA_KERNEL_NODE_PARAMS | None,
) -> tuple[CUresult]: ...
def cuGraphExecMemcpyNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    copyParams: CUDA_MEMCPY3D | None,
    ctx: CUcontext | int | None,
) -> tuple[CUresult]: ...
def cuGraphExecMemsetNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    memsetParams: CUDA_MEMSET_NODE_PARAMS | None,
    ctx: CUcontext | int | None,
) -> tuple[CUresult]: ...
def cuGraphExecHostNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUDA_HOST_NODE_PARAMS | None,
) -> tuple[CUresult]: ...
def cuGraphExecChildGraphNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    childGraph: CUgraph | int | None,
) -> tuple[CUresult]: ...
def cuGraphExecEventRecordNodeSetEvent(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    event: CUevent | int | None,
) -> tuple[CUresult]: ...
def cuGraphExecEventWaitNodeSetEvent(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    event: CUevent | int | None,
) -> tuple[CUresult]: ...
def cuGraphExecExternalSemaphoresSignalNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS | None,
) -> tuple[CUresult]: ...
def cuGraphExecExternalSemaphoresWaitNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUDA_EXT_SEM_WAIT_NODE_PARAMS | None,
) -> tuple[CUresult]: ...
def cuGraphNodeSetEnabled(
    hGraphExec: CUgraphExec | int | None, hNode: CUgraphNode | int | None, isEnabled: int
) -> tuple[CUresult]: ...
def cuGraphNodeGetEnabled(
    hGraphExec: CUgraphExec | int | None, hNode: CUgraphNode | int | None
) -> tuple[CUresult, int]: ...
def cuGraphUpload(
    hGraphExec: CUgraphExec | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuGraphLaunch(
    hGraphExec: CUgraphExec | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuGraphExecDestroy(hGraphExec: CUgraphExec | int | None) -> tuple[CUresult]: ...
def cuGraphDestroy(hGraph: CUgraph | int | None) -> tuple[CUresult]: ...
def cuGraphExecUpdate(
    hGraphExec: CUgraphExec | int | None, hGraph: CUgraph | int | None
) -> tuple[CUresult, CUgraphExecUpdateResultInfo]: ...
def cuGraphKernelNodeCopyAttributes(
    dst: CUgraphNode | int | None, src: CUgraphNode | int | None
) -> tuple[CUresult]: ...
def cuGraphKernelNodeGetAttribute(
    hNode: CUgraphNode | int | None, attr: CUkernelNodeAttrID
) -> tuple[CUresult, CUkernelNodeAttrValue]: ...
def cuGraphKernelNodeSetAttribute(
    hNode: CUgraphNode | int | None, attr: CUkernelNodeAttrID, value: CUkernelNodeAttrValue | None
) -> tuple[CUresult]: ...
def cuGraphDebugDotPrint(
    hGraph: CUgraph | int | None, path: bytes | bytearray, flags: int
) -> tuple[CUresult]: ...
def cuUserObjectCreate(
    ptr: _Pointer, destroy: CUhostFn | int | None, initialRefcount: int, flags: int
) -> tuple[CUresult, CUuserObject]: ...
def cuUserObjectRetain(object: CUuserObject | int | None, count: int) -> tuple[CUresult]: ...
def cuUserObjectRelease(object: CUuserObject | int | None, count: int) -> tuple[CUresult]: ...
def cuGraphRetainUserObject(
    graph: CUgraph | int | None, object: CUuserObject | int | None, count: int, flags: int
) -> tuple[CUresult]: ...
def cuGraphReleaseUserObject(
    graph: CUgraph | int | None, object: CUuserObject | int | None, count: int
) -> tuple[CUresult]: ...
def cuGraphAddNode(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    dependencyData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
    nodeParams: CUgraphNodeParams | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphAddNode_v3(
    hGraph: CUgraph | int | None,
    dependencies: tuple[CUgraphNode, ...] | list[CUgraphNode] | None,
    dependencyData: tuple[CUgraphEdgeData, ...] | list[CUgraphEdgeData] | None,
    numDependencies: int,
    nodeParams: CUgraphNodeParams | None,
) -> tuple[CUresult, CUgraphNode]: ...
def cuGraphNodeSetParams(
    hNode: CUgraphNode | int | None, nodeParams: CUgraphNodeParams | None
) -> tuple[CUresult]: ...
def cuGraphNodeSetParams_v2(
    hNode: CUgraphNode | int | None, nodeParams: CUgraphNodeParams | None
) -> tuple[CUresult]: ...
def cuGraphNodeGetParams(hNode: CUgraphNode | int | None) -> tuple[CUresult, CUgraphNodeParams]: ...
def cuGraphExecNodeSetParams(
    hGraphExec: CUgraphExec | int | None,
    hNode: CUgraphNode | int | None,
    nodeParams: CUgraphNodeParams | None,
) -> tuple[CUresult]: ...
def cuGraphConditionalHandleCreate(
    hGraph: CUgraph | int | None, ctx: CUcontext | int | None, defaultLaunchValue: int, flags: int
) -> tuple[CUresult, CUgraphConditionalHandle]: ...
def cuOccupancyMaxActiveBlocksPerMultiprocessor(
    func: CUfunction | int | None, blockSize: int, dynamicSMemSize: int
) -> tuple[CUresult, int]: ...
def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    func: CUfunction | int | None, blockSize: int, dynamicSMemSize: int, flags: int
) -> tuple[CUresult, int]: ...
def cuOccupancyMaxPotentialBlockSize(
    func: CUfunction | int | None,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize | int | None,
    dynamicSMemSize: int,
    blockSizeLimit: int,
) -> tuple[CUresult, int, int]: ...
def cuOccupancyMaxPotentialBlockSizeWithFlags(
    func: CUfunction | int | None,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize | int | None,
    dynamicSMemSize: int,
    blockSizeLimit: int,
    flags: int,
) -> tuple[CUresult, int, int]: ...
def cuOccupancyAvailableDynamicSMemPerBlock(
    func: CUfunction | int | None, numBlocks: int, blockSize: int
) -> tuple[CUresult, int]: ...
def cuOccupancyMaxPotentialClusterSize(
    func: CUfunction | int | None, config: CUlaunchConfig | None
) -> tuple[CUresult, int]: ...
def cuOccupancyMaxActiveClusters(
    func: CUfunction | int | None, config: CUlaunchConfig | None
) -> tuple[CUresult, int]: ...
def cuTexRefSetArray(
    hTexRef: CUtexref | int | None, hArray: CUarray | int | None, Flags: int
) -> tuple[CUresult]: ...
def cuTexRefSetMipmappedArray(
    hTexRef: CUtexref | int | None, hMipmappedArray: CUmipmappedArray | int | None, Flags: int
) -> tuple[CUresult]: ...
def cuTexRefSetAddress(
    hTexRef: CUtexref | int | None, dptr: CUdeviceptr | int | None, numbytes: int
) -> tuple[CUresult, int]: ...
def cuTexRefSetAddress2D(
    hTexRef: CUtexref | int | None,
    desc: CUDA_ARRAY_DESCRIPTOR | None,
    dptr: CUdeviceptr | int | None,
    Pitch: int,
) -> tuple[CUresult]: ...
def cuTexRefSetFormat(
    hTexRef: CUtexref | int | None, fmt: CUarray_format, NumPackedComponents: int
) -> tuple[CUresult]: ...
def cuTexRefSetAddressMode(
    hTexRef: CUtexref | int | None, dim: int, am: CUaddress_mode
) -> tuple[CUresult]: ...
def cuTexRefSetFilterMode(hTexRef: CUtexref | int | None, fm: CUfilter_mode) -> tuple[CUresult]: ...
def cuTexRefSetMipmapFilterMode(
    hTexRef: CUtexref | int | None, fm: CUfilter_mode
) -> tuple[CUresult]: ...
def cuTexRefSetMipmapLevelBias(hTexRef: CUtexref | int | None, bias: float) -> tuple[CUresult]: ...
def cuTexRefSetMipmapLevelClamp(
    hTexRef: CUtexref | int | None, minMipmapLevelClamp: float, maxMipmapLevelClamp: float
) -> tuple[CUresult]: ...
def cuTexRefSetMaxAnisotropy(hTexRef: CUtexref | int | None, maxAniso: int) -> tuple[CUresult]: ...
def cuTexRefSetBorderColor(
    hTexRef: CUtexref | int | None, pBorderColor: float
) -> tuple[CUresult]: ...
def cuTexRefSetFlags(hTexRef: CUtexref | int | None, Flags: int) -> tuple[CUresult]: ...
def cuTexRefGetAddress(hTexRef: CUtexref | int | None) -> tuple[CUresult, CUdeviceptr]: ...
def cuTexRefGetArray(hTexRef: CUtexref | int | None) -> tuple[CUresult, CUarray]: ...
def cuTexRefGetMipmappedArray(
    hTexRef: CUtexref | int | None,
) -> tuple[CUresult, CUmipmappedArray]: ...
def cuTexRefGetAddressMode(
    hTexRef: CUtexref | int | None, dim: int
) -> tuple[CUresult, CUaddress_mode]: ...
def cuTexRefGetFilterMode(hTexRef: CUtexref | int | None) -> tuple[CUresult, CUfilter_mode]: ...
def cuTexRefGetFormat(hTexRef: CUtexref | int | None) -> tuple[CUresult, CUarray_format, int]: ...
def cuTexRefGetMipmapFilterMode(
    hTexRef: CUtexref | int | None,
) -> tuple[CUresult, CUfilter_mode]: ...
def cuTexRefGetMipmapLevelBias(hTexRef: CUtexref | int | None) -> tuple[CUresult, float]: ...
def cuTexRefGetMipmapLevelClamp(
    hTexRef: CUtexref | int | None,
) -> tuple[CUresult, float, float]: ...
def cuTexRefGetMaxAnisotropy(hTexRef: CUtexref | int | None) -> tuple[CUresult, int]: ...
def cuTexRefGetBorderColor(hTexRef: CUtexref | int | None) -> tuple[CUresult, float]: ...
def cuTexRefGetFlags(hTexRef: CUtexref | int | None) -> tuple[CUresult, int]: ...
def cuTexRefCreate() -> tuple[CUresult, CUtexref]: ...
def cuTexRefDestroy(hTexRef: CUtexref | int | None) -> tuple[CUresult]: ...
def cuSurfRefSetArray(
    hSurfRef: CUsurfref | int | None, hArray: CUarray | int | None, Flags: int
) -> tuple[CUresult]: ...
def cuSurfRefGetArray(hSurfRef: CUsurfref | int | None) -> tuple[CUresult, CUarray]: ...
def cuTexObjectCreate(
    pResDesc: CUDA_RESOURCE_DESC | None,
    pTexDesc: CUDA_TEXTURE_DESC | None,
    pResViewDesc: CUDA_RESOURCE_VIEW_DESC | None,
) -> tuple[CUresult, CUtexObject]: ...
def cuTexObjectDestroy(texObject: CUtexObject | int | None) -> tuple[CUresult]: ...
def cuTexObjectGetResourceDesc(
    texObject: CUtexObject | int | None,
) -> tuple[CUresult, CUDA_RESOURCE_DESC]: ...
def cuTexObjectGetTextureDesc(
    texObject: CUtexObject | int | None,
) -> tuple[CUresult, CUDA_TEXTURE_DESC]: ...
def cuTexObjectGetResourceViewDesc(
    texObject: CUtexObject | int | None,
) -> tuple[CUresult, CUDA_RESOURCE_VIEW_DESC]: ...
def cuSurfObjectCreate(pResDesc: CUDA_RESOURCE_DESC | None) -> tuple[CUresult, CUsurfObject]: ...
def cuSurfObjectDestroy(surfObject: CUsurfObject | int | None) -> tuple[CUresult]: ...
def cuSurfObjectGetResourceDesc(
    surfObject: CUsurfObject | int | None,
) -> tuple[CUresult, CUDA_RESOURCE_DESC]: ...
def cuTensorMapEncodeTiled(
    tensorDataType: CUtensorMapDataType,
    tensorRank: _Pointer,
    globalAddress: _Pointer,
    globalDim: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    globalStrides: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    boxDim: tuple[cuuint32_t, ...] | list[cuuint32_t] | None,
    elementStrides: tuple[cuuint32_t, ...] | list[cuuint32_t] | None,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapEncodeIm2col(
    tensorDataType: CUtensorMapDataType,
    tensorRank: _Pointer,
    globalAddress: _Pointer,
    globalDim: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    globalStrides: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    pixelBoxLowerCorner: tuple[int, ...] | list[int] | None,
    pixelBoxUpperCorner: tuple[int, ...] | list[int] | None,
    channelsPerPixel: _Pointer,
    pixelsPerColumn: _Pointer,
    elementStrides: tuple[cuuint32_t, ...] | list[cuuint32_t] | None,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapEncodeIm2colWide(
    tensorDataType: CUtensorMapDataType,
    tensorRank: _Pointer,
    globalAddress: _Pointer,
    globalDim: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    globalStrides: tuple[cuuint64_t, ...] | list[cuuint64_t] | None,
    pixelBoxLowerCornerWidth: int,
    pixelBoxUpperCornerWidth: int,
    channelsPerPixel: _Pointer,
    pixelsPerColumn: _Pointer,
    elementStrides: tuple[cuuint32_t, ...] | list[cuuint32_t] | None,
    interleave: CUtensorMapInterleave,
    mode: CUtensorMapIm2ColWideMode,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapReplaceAddress(
    tensorMap: CUtensorMap | None, globalAddress: _Pointer
) -> tuple[CUresult]: ...
def cuTensorMapSetAllocationClass(
    tensorMap: CUtensorMap | None, allocClass: CUtensorMapAllocClass
) -> tuple[CUresult, CUtensorMapAllocClass]: ...
def cuDeviceCanAccessPeer(
    dev: CUdevice | int | None, peerDev: CUdevice | int | None
) -> tuple[CUresult, int]: ...
def cuCtxEnablePeerAccess(peerContext: CUcontext | int | None, Flags: int) -> tuple[CUresult]: ...
def cuCtxDisablePeerAccess(peerContext: CUcontext | int | None) -> tuple[CUresult]: ...
def cuDeviceGetP2PAttribute(
    attrib: CUdevice_P2PAttribute,
    srcDevice: CUdevice | int | None,
    dstDevice: CUdevice | int | None,
) -> tuple[CUresult, int]: ...
def cuDeviceGetP2PAtomicCapabilities(
    operations: tuple[CUatomicOperation, ...] | list[CUatomicOperation] | None,
    count: int,
    srcDevice: CUdevice | int | None,
    dstDevice: CUdevice | int | None,
) -> tuple[CUresult, list[int]]: ...
def cuGraphicsUnregisterResource(resource: CUgraphicsResource | int | None) -> tuple[CUresult]: ...
def cuGraphicsSubResourceGetMappedArray(
    resource: CUgraphicsResource | int | None, arrayIndex: int, mipLevel: int
) -> tuple[CUresult, CUarray]: ...
def cuGraphicsResourceGetMappedMipmappedArray(
    resource: CUgraphicsResource | int | None,
) -> tuple[CUresult, CUmipmappedArray]: ...
def cuGraphicsResourceGetMappedPointer(
    resource: CUgraphicsResource | int | None,
) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuGraphicsResourceSetMapFlags(
    resource: CUgraphicsResource | int | None, flags: int
) -> tuple[CUresult]: ...
def cuGraphicsMapResources(
    count: int, resources: CUgraphicsResource | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuGraphicsUnmapResources(
    count: int, resources: CUgraphicsResource | int | None, hStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuGetProcAddress(
    symbol: bytes | bytearray, cudaVersion: int, flags: _Pointer
) -> tuple[CUresult, int, CUdriverProcAddressQueryResult]: ...
def cuCoredumpGetAttribute(attrib: CUcoredumpSettings) -> tuple[CUresult, Any]: ...
def cuCoredumpGetAttributeGlobal(attrib: CUcoredumpSettings) -> tuple[CUresult, Any]: ...
def cuCoredumpSetAttribute(attrib: CUcoredumpSettings, value: _Pointer) -> tuple[CUresult]: ...
def cuCoredumpSetAttributeGlobal(
    attrib: CUcoredumpSettings, value: _Pointer
) -> tuple[CUresult]: ...
def cuCoredumpRegisterStartCallback(
    callback: CUcoredumpStatusCallback | int | None, userData: _Pointer
) -> tuple[CUresult, CUcoredumpCallbackHandle]: ...
def cuCoredumpRegisterCompleteCallback(
    callback: CUcoredumpStatusCallback | int | None, userData: _Pointer
) -> tuple[CUresult, CUcoredumpCallbackHandle]: ...
def cuCoredumpDeregisterStartCallback(
    callback: CUcoredumpCallbackHandle | int | None,
) -> tuple[CUresult]: ...
def cuCoredumpDeregisterCompleteCallback(
    callback: CUcoredumpCallbackHandle | int | None,
) -> tuple[CUresult]: ...
def cuGetExportTable(pExportTableId: CUuuid | None) -> tuple[CUresult, int]: ...
def cuGreenCtxCreate(
    desc: CUdevResourceDesc | int | None, dev: CUdevice | int | None, flags: int
) -> tuple[CUresult, CUgreenCtx]: ...
def cuGreenCtxDestroy(hCtx: CUgreenCtx | int | None) -> tuple[CUresult]: ...
def cuCtxFromGreenCtx(hCtx: CUgreenCtx | int | None) -> tuple[CUresult, CUcontext]: ...
def cuDeviceGetDevResource(
    device: CUdevice | int | None, typename: CUdevResourceType
) -> tuple[CUresult, CUdevResource]: ...
def cuCtxGetDevResource(
    hCtx: CUcontext | int | None, typename: CUdevResourceType
) -> tuple[CUresult, CUdevResource]: ...
def cuGreenCtxGetDevResource(
    hCtx: CUgreenCtx | int | None, typename: CUdevResourceType
) -> tuple[CUresult, CUdevResource]: ...
def cuDevSmResourceSplitByCount(
    nbGroups: int, input_: CUdevResource | None, flags: int, minCount: int
) -> tuple[CUresult, list[CUdevResource], int, CUdevResource]: ...
def cuDevSmResourceSplit(
    nbGroups: int,
    input_: CUdevResource | None,
    flags: int,
    groupParams: tuple[CU_DEV_SM_RESOURCE_GROUP_PARAMS, ...]
    | list[CU_DEV_SM_RESOURCE_GROUP_PARAMS]
    | None,
) -> tuple[CUresult, list[CUdevResource], CUdevResource]: ...
def cuDevResourceGenerateDesc(
    resources: tuple[CUdevResource, ...] | list[CUdevResource] | None, nbResources: int
) -> tuple[CUresult, CUdevResourceDesc]: ...
def cuGreenCtxRecordEvent(
    hCtx: CUgreenCtx | int | None, hEvent: CUevent | int | None
) -> tuple[CUresult]: ...
def cuGreenCtxWaitEvent(
    hCtx: CUgreenCtx | int | None, hEvent: CUevent | int | None
) -> tuple[CUresult]: ...
def cuStreamGetGreenCtx(hStream: CUstream | int | None) -> tuple[CUresult, CUgreenCtx]: ...
def cuGreenCtxStreamCreate(
    greenCtx: CUgreenCtx | int | None, flags: int, priority: int
) -> tuple[CUresult, CUstream]: ...
def cuGreenCtxGetId(greenCtx: CUgreenCtx | int | None) -> tuple[CUresult, int]: ...
def cuStreamGetDevResource(
    hStream: CUstream | int | None, typename: CUdevResourceType
) -> tuple[CUresult, CUdevResource]: ...
def cuLogsRegisterCallback(
    callbackFunc: CUlogsCallback | int | None, userData: _Pointer
) -> tuple[CUresult, CUlogsCallbackHandle]: ...
def cuLogsUnregisterCallback(callback: CUlogsCallbackHandle | int | None) -> tuple[CUresult]: ...
def cuLogsCurrent(flags: int) -> tuple[CUresult, CUlogIterator]: ...
def cuLogsDumpToFile(
    iterator: CUlogIterator | None, pathToFile: bytes | bytearray, flags: int
) -> tuple[CUresult, CUlogIterator]: ...
def cuLogsDumpToMemory(
    iterator: CUlogIterator | None, buffer: bytes | bytearray, size: int, flags: int
) -> tuple[CUresult, CUlogIterator, int]: ...
def cuCheckpointProcessGetRestoreThreadId(pid: int) -> tuple[CUresult, int]: ...
def cuCheckpointProcessGetState(pid: int) -> tuple[CUresult, CUprocessState]: ...
def cuCheckpointProcessLock(pid: int, args: CUcheckpointLockArgs | None) -> tuple[CUresult]: ...
def cuCheckpointProcessCheckpoint(
    pid: int, args: CUcheckpointCheckpointArgs | None
) -> tuple[CUresult]: ...
def cuCheckpointProcessRestore(
    pid: int, args: CUcheckpointRestoreArgs | None
) -> tuple[CUresult]: ...
def cuCheckpointOperationComplete(
    handle: CUcheckpointOperationHandle | int | None,
) -> tuple[CUresult]: ...
def cuCheckpointProcessUnlock(pid: int, args: CUcheckpointUnlockArgs | None) -> tuple[CUresult]: ...
def cuProfilerStart() -> tuple[CUresult]: ...
def cuProfilerStop() -> tuple[CUresult]: ...
def cuGraphicsEGLRegisterImage(
    image: EGLImageKHR | int | None, flags: int
) -> tuple[CUresult, CUgraphicsResource]: ...
def cuEGLStreamConsumerConnect(
    stream: EGLStreamKHR | int | None,
) -> tuple[CUresult, CUeglStreamConnection]: ...
def cuEGLStreamConsumerConnectWithFlags(
    stream: EGLStreamKHR | int | None, flags: int
) -> tuple[CUresult, CUeglStreamConnection]: ...
def cuEGLStreamConsumerDisconnect(conn: CUeglStreamConnection | int | None) -> tuple[CUresult]: ...
def cuEGLStreamConsumerAcquireFrame(
    conn: CUeglStreamConnection | int | None,
    pCudaResource: CUgraphicsResource | int | None,
    pStream: CUstream | int | None,
    timeout: int,
) -> tuple[CUresult]: ...
def cuEGLStreamConsumerReleaseFrame(
    conn: CUeglStreamConnection | int | None,
    pCudaResource: CUgraphicsResource | int | None,
    pStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuEGLStreamProducerConnect(
    stream: EGLStreamKHR | int | None, width: EGLint | int | None, height: EGLint | int | None
) -> tuple[CUresult, CUeglStreamConnection]: ...
def cuEGLStreamProducerDisconnect(conn: CUeglStreamConnection | int | None) -> tuple[CUresult]: ...
def cuEGLStreamProducerPresentFrame(
    conn: CUeglStreamConnection | int | None, eglframe: CUeglFrame, pStream: CUstream | int | None
) -> tuple[CUresult]: ...
def cuEGLStreamProducerReturnFrame(
    conn: CUeglStreamConnection | int | None,
    eglframe: CUeglFrame | None,
    pStream: CUstream | int | None,
) -> tuple[CUresult]: ...
def cuGraphicsResourceGetMappedEglFrame(
    resource: CUgraphicsResource | int | None, index: int, mipLevel: int
) -> tuple[CUresult, CUeglFrame]: ...
def cuEventCreateFromEGLSync(
    eglSync: EGLSyncKHR | int | None, flags: int
) -> tuple[CUresult, CUevent]: ...
def cuGraphicsGLRegisterBuffer(
    buffer: GLuint | int | None, Flags: int
) -> tuple[CUresult, CUgraphicsResource]: ...
def cuGraphicsGLRegisterImage(
    image: GLuint | int | None, target: GLenum | int | None, Flags: int
) -> tuple[CUresult, CUgraphicsResource]: ...
def cuGLGetDevices(
    cudaDeviceCount: int, deviceList: CUGLDeviceList
) -> tuple[CUresult, int, list[CUdevice]]: ...
def cuVDPAUGetDevice(
    vdpDevice: VdpDevice | int | None, vdpGetProcAddress: VdpGetProcAddress | int | None
) -> tuple[CUresult, CUdevice]: ...
def cuVDPAUCtxCreate(
    flags: int,
    device: CUdevice | int | None,
    vdpDevice: VdpDevice | int | None,
    vdpGetProcAddress: VdpGetProcAddress | int | None,
) -> tuple[CUresult, CUcontext]: ...
def cuGraphicsVDPAURegisterVideoSurface(
    vdpSurface: VdpVideoSurface | int | None, flags: int
) -> tuple[CUresult, CUgraphicsResource]: ...
def cuGraphicsVDPAURegisterOutputSurface(
    vdpSurface: VdpOutputSurface | int | None, flags: int
) -> tuple[CUresult, CUgraphicsResource]: ...
def sizeof(objType: type[object]) -> int: ...
