"""Types of cuda.bindings.driver, for the functions that cudadrv calls (cuda-bindings 12.9 and 13).

The signatures are those of 13.x; where 12.9 names them otherwise, `cudadrv.driver._api` maps the name.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Self, type_check_only

from typing_extensions import disjoint_base

CUDA_VERSION: int

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
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED = 161
    CU_DEVICE_ATTRIBUTE_MAX = 162

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

class CUstreamCaptureMode(IntEnum):
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
    CU_STREAM_CAPTURE_MODE_RELAXED = 2

class CUstreamCaptureStatus(IntEnum):
    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2

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

class CUstream_flags(IntEnum):
    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1

class CUevent_flags(IntEnum):
    CU_EVENT_DEFAULT = 0
    CU_EVENT_BLOCKING_SYNC = 1
    CU_EVENT_DISABLE_TIMING = 2
    CU_EVENT_INTERPROCESS = 4

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

class CUmemorytype(IntEnum):
    CU_MEMORYTYPE_HOST = 1
    CU_MEMORYTYPE_DEVICE = 2
    CU_MEMORYTYPE_ARRAY = 3
    CU_MEMORYTYPE_UNIFIED = 4

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

class CUresourcetype(IntEnum):
    CU_RESOURCE_TYPE_ARRAY = 0
    CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1
    CU_RESOURCE_TYPE_LINEAR = 2
    CU_RESOURCE_TYPE_PITCH2D = 3

@disjoint_base
class CUcontext:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmodule:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUfunction:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUstream:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUevent:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraph:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphExec:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUuserObject:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

class CUgraphExecUpdateResultInfo:
    def __init__(self, _ptr: int = 0) -> None: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUgraphNode:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmemoryPool:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUarray:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUmipmappedArray:
    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdevice:
    def __new__(cls, init_value: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUdeviceptr:
    def __new__(cls, init_value: int = 0) -> Self: ...
    def __int__(self) -> int: ...
    def getPtr(self) -> int: ...

@disjoint_base
class CUtexObject:
    def __new__(cls, init_value: int = 0) -> Self: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUsurfObject:
    def __new__(cls, init_value: int = 0) -> Self: ...
    def __int__(self) -> int: ...

@disjoint_base
class cuuint64_t:
    def __new__(cls, init_value: int = 0) -> Self: ...
    def __int__(self) -> int: ...

class CUuuid:
    @property
    def bytes(self) -> bytes: ...

class CUctxCreateParams: ...

@disjoint_base
class anon_struct1:
    def __init__(self, *args: object, **kwargs: object) -> None: ...

    x: int
    y: int
    z: int

class CUmemLocation:
    type: CUmemLocationType
    id: int

class CUmemAccessDesc:
    location: CUmemLocation
    flags: CUmemAccess_flags

class CUlaunchAttributeValue:
    cooperative: int
    clusterDim: anon_struct1
    priority: int

class CUlaunchAttribute:
    id: CUlaunchAttributeID
    value: CUlaunchAttributeValue

class CUlaunchConfig:
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    hStream: CUstream
    attrs: list[CUlaunchAttribute]
    numAttrs: int

class CUDA_ARRAY3D_DESCRIPTOR:
    Width: int
    Height: int
    Depth: int
    Format: CUarray_format
    NumChannels: int
    Flags: int

class CUDA_MEMCPY3D:
    srcXInBytes: int
    srcY: int
    srcZ: int
    srcLOD: int
    srcMemoryType: CUmemorytype
    srcHost: int
    srcDevice: CUdeviceptr
    srcArray: CUarray
    srcPitch: int
    srcHeight: int
    dstXInBytes: int
    dstY: int
    dstZ: int
    dstLOD: int
    dstMemoryType: CUmemorytype
    dstHost: int
    dstDevice: CUdeviceptr
    dstArray: CUarray
    dstPitch: int
    dstHeight: int
    WidthInBytes: int
    Height: int
    Depth: int

# The parts of a resource; their own names are numbered, and otherwise in each version.
@type_check_only
class _ArrayResource:
    hArray: CUarray

@type_check_only
class _MipmapResource:
    hMipmappedArray: CUmipmappedArray

@type_check_only
class _LinearResource:
    devPtr: CUdeviceptr
    format: CUarray_format
    numChannels: int
    sizeInBytes: int

@type_check_only
class _Pitch2DResource:
    devPtr: CUdeviceptr
    format: CUarray_format
    numChannels: int
    width: int
    height: int
    pitchInBytes: int

@type_check_only
class _Resource:
    array: _ArrayResource
    mipmap: _MipmapResource
    linear: _LinearResource
    pitch2D: _Pitch2DResource

class CUDA_RESOURCE_DESC:
    resType: CUresourcetype
    res: _Resource
    flags: int

class CUDA_TEXTURE_DESC:
    addressMode: list[CUaddress_mode]
    filterMode: CUfilter_mode
    flags: int
    maxAnisotropy: int
    mipmapFilterMode: CUfilter_mode
    mipmapLevelBias: float
    minMipmapLevelClamp: float
    maxMipmapLevelClamp: float
    borderColor: list[float]

class CUDA_RESOURCE_VIEW_DESC: ...

def cuInit(Flags: int) -> tuple[CUresult]: ...
def cuDriverGetVersion() -> tuple[CUresult, int]: ...
def cuGetErrorString(error: CUresult) -> tuple[CUresult, bytes | None]: ...
def cuDeviceGetCount() -> tuple[CUresult, int]: ...
def cuDeviceGet(ordinal: int) -> tuple[CUresult, CUdevice]: ...
def cuDeviceGetName(length: int, dev: CUdevice) -> tuple[CUresult, bytes]: ...
def cuDeviceGetUuid(dev: CUdevice) -> tuple[CUresult, CUuuid]: ...
def cuDeviceGetPCIBusId(length: int, dev: CUdevice) -> tuple[CUresult, bytes]: ...
def cuDeviceTotalMem(dev: CUdevice) -> tuple[CUresult, int]: ...
def cuDeviceGetAttribute(attrib: CUdevice_attribute, dev: CUdevice) -> tuple[CUresult, int]: ...
def cuDeviceCanAccessPeer(dev: CUdevice, peerDev: CUdevice) -> tuple[CUresult, int]: ...
def cuDeviceGetDefaultMemPool(dev: CUdevice) -> tuple[CUresult, CUmemoryPool]: ...
def cuDevicePrimaryCtxRetain(dev: CUdevice) -> tuple[CUresult, CUcontext]: ...
def cuDevicePrimaryCtxRelease(dev: CUdevice) -> tuple[CUresult]: ...
def cuCtxCreate(
    ctxCreateParams: CUctxCreateParams | None, flags: int, dev: CUdevice
) -> tuple[CUresult, CUcontext]: ...
def cuCtxDestroy(ctx: CUcontext) -> tuple[CUresult]: ...
def cuCtxSetCurrent(ctx: CUcontext) -> tuple[CUresult]: ...
def cuCtxGetCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxPushCurrent(ctx: CUcontext) -> tuple[CUresult]: ...
def cuCtxPopCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxGetDevice() -> tuple[CUresult, CUdevice]: ...
def cuCtxSynchronize() -> tuple[CUresult]: ...
def cuCtxEnablePeerAccess(peerContext: CUcontext, Flags: int) -> tuple[CUresult]: ...
def cuCtxGetStreamPriorityRange() -> tuple[CUresult, int, int]: ...
def cuStreamCreateWithPriority(flags: int, priority: int) -> tuple[CUresult, CUstream]: ...
def cuStreamDestroy(hStream: CUstream) -> tuple[CUresult]: ...
def cuStreamSynchronize(hStream: CUstream) -> tuple[CUresult]: ...
def cuStreamQuery(hStream: CUstream) -> tuple[CUresult]: ...
def cuStreamGetPriority(hStream: CUstream) -> tuple[CUresult, int]: ...
def cuStreamGetCtx(hStream: CUstream) -> tuple[CUresult, CUcontext]: ...
def cuLaunchHostFunc(hStream: CUstream, fn: int, userData: int) -> tuple[CUresult]: ...
def cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: int) -> tuple[CUresult]: ...
def cuStreamBeginCapture(hStream: CUstream, mode: CUstreamCaptureMode) -> tuple[CUresult]: ...
def cuStreamEndCapture(hStream: CUstream) -> tuple[CUresult, CUgraph]: ...
def cuStreamIsCapturing(hStream: CUstream) -> tuple[CUresult, CUstreamCaptureStatus]: ...
def cuEventCreate(Flags: int) -> tuple[CUresult, CUevent]: ...
def cuEventDestroy(hEvent: CUevent) -> tuple[CUresult]: ...
def cuEventRecord(hEvent: CUevent, hStream: CUstream) -> tuple[CUresult]: ...
def cuEventQuery(hEvent: CUevent) -> tuple[CUresult]: ...
def cuEventSynchronize(hEvent: CUevent) -> tuple[CUresult]: ...
def cuEventElapsedTime(hStart: CUevent, hEnd: CUevent) -> tuple[CUresult, float]: ...
def cuMemGetInfo() -> tuple[CUresult, int, int]: ...
def cuMemAlloc(bytesize: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemAllocManaged(bytesize: int, flags: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemFree(dptr: CUdeviceptr) -> tuple[CUresult]: ...
def cuMemAllocAsync(bytesize: int, hStream: CUstream) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemFreeAsync(dptr: CUdeviceptr, hStream: CUstream) -> tuple[CUresult]: ...
def cuMemHostAlloc(bytesize: int, Flags: int) -> tuple[CUresult, int]: ...
def cuMemFreeHost(p: int) -> tuple[CUresult]: ...
def cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr, srcHost: int, ByteCount: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuMemcpyDtoHAsync(
    dstHost: int, srcDevice: CUdeviceptr, ByteCount: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    ByteCount: int,
    hStream: CUstream,
) -> tuple[CUresult]: ...
def cuMemsetD8Async(
    dstDevice: CUdeviceptr, uc: int, N: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuMemsetD16Async(
    dstDevice: CUdeviceptr, us: int, N: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuMemsetD32Async(
    dstDevice: CUdeviceptr, ui: int, N: int, hStream: CUstream
) -> tuple[CUresult]: ...
def cuArray3DCreate(
    pAllocateArray: CUDA_ARRAY3D_DESCRIPTOR | None,
) -> tuple[CUresult, CUarray]: ...
def cuArrayDestroy(hArray: CUarray) -> tuple[CUresult]: ...
def cuArray3DGetDescriptor(hArray: CUarray) -> tuple[CUresult, CUDA_ARRAY3D_DESCRIPTOR]: ...
def cuMipmappedArrayCreate(
    pMipmappedArrayDesc: CUDA_ARRAY3D_DESCRIPTOR | None, numMipmapLevels: int
) -> tuple[CUresult, CUmipmappedArray]: ...
def cuMipmappedArrayGetLevel(
    hMipmappedArray: CUmipmappedArray, level: int
) -> tuple[CUresult, CUarray]: ...
def cuMipmappedArrayDestroy(hMipmappedArray: CUmipmappedArray) -> tuple[CUresult]: ...
def cuMemcpy3DAsync(pCopy: CUDA_MEMCPY3D | None, hStream: CUstream) -> tuple[CUresult]: ...
def cuTexObjectCreate(
    pResDesc: CUDA_RESOURCE_DESC | None,
    pTexDesc: CUDA_TEXTURE_DESC | None,
    pResViewDesc: CUDA_RESOURCE_VIEW_DESC | None,
) -> tuple[CUresult, CUtexObject]: ...
def cuTexObjectDestroy(texObject: CUtexObject) -> tuple[CUresult]: ...
def cuSurfObjectCreate(
    pResDesc: CUDA_RESOURCE_DESC | None,
) -> tuple[CUresult, CUsurfObject]: ...
def cuSurfObjectDestroy(surfObject: CUsurfObject) -> tuple[CUresult]: ...
def cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: int) -> tuple[CUresult]: ...
def cuMemPoolSetAttribute(
    pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t
) -> tuple[CUresult]: ...
def cuMemPoolGetAttribute(
    pool: CUmemoryPool, attr: CUmemPool_attribute
) -> tuple[CUresult, cuuint64_t]: ...
def cuMemPoolSetAccess(
    pool: CUmemoryPool, map: Sequence[CUmemAccessDesc], count: int
) -> tuple[CUresult]: ...
def cuPointerGetAttributes(
    numAttributes: int, attributes: Sequence[CUpointer_attribute], ptr: int
) -> tuple[CUresult, list[object]]: ...
def cuModuleLoadData(image: bytes) -> tuple[CUresult, CUmodule]: ...
def cuModuleLoadDataEx(
    image: bytes, numOptions: int, options: Sequence[CUjit_option], optionValues: Sequence[object]
) -> tuple[CUresult, CUmodule]: ...
def cuModuleUnload(hmod: CUmodule) -> tuple[CUresult]: ...
def cuModuleGetFunction(hmod: CUmodule, name: bytes) -> tuple[CUresult, CUfunction]: ...
def cuModuleGetGlobal(hmod: CUmodule, name: bytes) -> tuple[CUresult, CUdeviceptr, int]: ...
def cuModuleGetFunctionCount(mod: CUmodule) -> tuple[CUresult, int]: ...
def cuModuleEnumerateFunctions(
    numFunctions: int, mod: CUmodule
) -> tuple[CUresult, list[CUfunction]]: ...
def cuFuncGetName(hfunc: CUfunction) -> tuple[CUresult, bytes]: ...
def cuFuncGetAttribute(attrib: CUfunction_attribute, hfunc: CUfunction) -> tuple[CUresult, int]: ...
def cuFuncSetAttribute(
    hfunc: CUfunction, attrib: CUfunction_attribute, value: int
) -> tuple[CUresult]: ...
def cuFuncGetParamInfo(func: CUfunction, paramIndex: int) -> tuple[CUresult, int, int]: ...
def cuOccupancyMaxActiveBlocksPerMultiprocessor(
    func: CUfunction, blockSize: int, dynamicSMemSize: int
) -> tuple[CUresult, int]: ...
def cuLaunchKernel(
    f: CUfunction,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    hStream: CUstream,
    kernelParams: int,
    extra: int,
) -> tuple[CUresult]: ...
def cuLaunchKernelEx(
    config: CUlaunchConfig, f: CUfunction, kernelParams: int, extra: int
) -> tuple[CUresult]: ...
def cuGraphInstantiate(hGraph: CUgraph, flags: int) -> tuple[CUresult, CUgraphExec]: ...
def cuGraphExecUpdate(
    hGraphExec: CUgraphExec, hGraph: CUgraph
) -> tuple[CUresult, CUgraphExecUpdateResultInfo]: ...
def cuGraphLaunch(hGraphExec: CUgraphExec, hStream: CUstream) -> tuple[CUresult]: ...
def cuGraphDestroy(hGraph: CUgraph) -> tuple[CUresult]: ...
def cuGraphExecDestroy(hGraphExec: CUgraphExec) -> tuple[CUresult]: ...
def cuGraphGetNodes(
    hGraph: CUgraph, numNodes: int = 0
) -> tuple[CUresult, list[CUgraphNode] | None, int]: ...
def cuUserObjectCreate(
    ptr: int, destroy: int, initialRefcount: int, flags: int
) -> tuple[CUresult, CUuserObject]: ...
def cuUserObjectRelease(object: CUuserObject, count: int) -> tuple[CUresult]: ...
def cuGraphRetainUserObject(
    graph: CUgraph, object: CUuserObject, count: int, flags: int
) -> tuple[CUresult]: ...
