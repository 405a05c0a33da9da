"""Structures of the CUDA runtime, filled by the driver: properties of devices, kernels, memory."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from ...driver._api import driver

Results = tuple[Any, ...]  # a code, and a structure of the bindings' module, which has no stubs

# CUDA Runtime API, "cudaDeviceProp": the fields, by the attributes of the device that they are. The
# types of some releases lack some.
_PROPERTIES: Final = """
ECCEnabled ECC_ENABLED
accessPolicyMaxWindowSize MAX_ACCESS_POLICY_WINDOW_SIZE
asyncEngineCount ASYNC_ENGINE_COUNT
canMapHostMemory CAN_MAP_HOST_MEMORY
canUseHostPointerForRegisteredMem CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
clockRate CLOCK_RATE
clusterLaunch CLUSTER_LAUNCH
computeMode COMPUTE_MODE
computePreemptionSupported COMPUTE_PREEMPTION_SUPPORTED
concurrentKernels CONCURRENT_KERNELS
concurrentManagedAccess CONCURRENT_MANAGED_ACCESS
cooperativeLaunch COOPERATIVE_LAUNCH
deferredMappingCudaArraySupported DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED
directManagedMemAccessFromHost DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
globalL1CacheSupported GLOBAL_L1_CACHE_SUPPORTED
gpuDirectRDMASupported GPU_DIRECT_RDMA_SUPPORTED
hostNativeAtomicSupported HOST_NATIVE_ATOMIC_SUPPORTED
hostRegisterReadOnlySupported READ_ONLY_HOST_REGISTER_SUPPORTED
hostRegisterSupported HOST_REGISTER_SUPPORTED
integrated INTEGRATED
ipcEventSupported IPC_EVENT_SUPPORTED
isMultiGpuBoard MULTI_GPU_BOARD
kernelExecTimeoutEnabled KERNEL_EXEC_TIMEOUT
l2CacheSize L2_CACHE_SIZE
localL1CacheSupported LOCAL_L1_CACHE_SUPPORTED
major COMPUTE_CAPABILITY_MAJOR
managedMemory MANAGED_MEMORY
maxBlocksPerMultiProcessor MAX_BLOCKS_PER_MULTIPROCESSOR
maxSurface1D MAXIMUM_SURFACE1D_WIDTH
maxTexture1D MAXIMUM_TEXTURE1D_WIDTH
maxTexture1DMipmap MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
maxThreadsPerBlock MAX_THREADS_PER_BLOCK
maxThreadsPerMultiProcessor MAX_THREADS_PER_MULTIPROCESSOR
memPitch MAX_PITCH
memoryBusWidth GLOBAL_MEMORY_BUS_WIDTH
memoryClockRate MEMORY_CLOCK_RATE
memoryPoolSupportedHandleTypes MEMPOOL_SUPPORTED_HANDLE_TYPES
memoryPoolsSupported MEMORY_POOLS_SUPPORTED
minor COMPUTE_CAPABILITY_MINOR
multiGpuBoardGroupID MULTI_GPU_BOARD_GROUP_ID
multiProcessorCount MULTIPROCESSOR_COUNT
pageableMemoryAccess PAGEABLE_MEMORY_ACCESS
pageableMemoryAccessUsesHostPageTables PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
pciBusID PCI_BUS_ID
pciDeviceID PCI_DEVICE_ID
pciDomainID PCI_DOMAIN_ID
persistingL2CacheMaxSize MAX_PERSISTING_L2_CACHE_SIZE
regsPerBlock MAX_REGISTERS_PER_BLOCK
regsPerMultiprocessor MAX_REGISTERS_PER_MULTIPROCESSOR
reservedSharedMemPerBlock RESERVED_SHARED_MEMORY_PER_BLOCK
sharedMemPerBlock MAX_SHARED_MEMORY_PER_BLOCK
sharedMemPerBlockOptin MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
sharedMemPerMultiprocessor MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
singleToDoublePrecisionPerfRatio SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
sparseCudaArraySupported SPARSE_CUDA_ARRAY_SUPPORTED
streamPrioritiesSupported STREAM_PRIORITIES_SUPPORTED
surfaceAlignment SURFACE_ALIGNMENT
textureAlignment TEXTURE_ALIGNMENT
texturePitchAlignment TEXTURE_PITCH_ALIGNMENT
totalConstMem TOTAL_CONSTANT_MEMORY
unifiedAddressing UNIFIED_ADDRESSING
warpSize WARP_SIZE
"""
_OF_AXES: Final = {
    "maxThreadsDim": "MAX_BLOCK_DIM_{}", "maxGridSize": "MAX_GRID_DIM_{}",
    "maxTexture2D": "MAXIMUM_TEXTURE2D_{}", "maxTexture3D": "MAXIMUM_TEXTURE3D_{}",
    "maxSurface2D": "MAXIMUM_SURFACE2D_{}", "maxSurface3D": "MAXIMUM_SURFACE3D_{}",
}  # fmt: skip
_AXES: Final = {
    "maxThreadsDim": "XYZ", "maxGridSize": "XYZ", "maxTexture2D": ("WIDTH", "HEIGHT"),
    "maxTexture3D": ("WIDTH", "HEIGHT", "DEPTH"), "maxSurface2D": ("WIDTH", "HEIGHT"),
    "maxSurface3D": ("WIDTH", "HEIGHT", "DEPTH"),
}  # fmt: skip
_OF_FUNCTION: Final = {
    "sharedSizeBytes": "SHARED_SIZE_BYTES", "constSizeBytes": "CONST_SIZE_BYTES",
    "localSizeBytes": "LOCAL_SIZE_BYTES", "maxThreadsPerBlock": "MAX_THREADS_PER_BLOCK",
    "numRegs": "NUM_REGS", "ptxVersion": "PTX_VERSION", "binaryVersion": "BINARY_VERSION",
    "cacheModeCA": "CACHE_MODE_CA",
    "maxDynamicSharedSizeBytes": "MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "preferredShmemCarveout": "PREFERRED_SHARED_MEMORY_CARVEOUT",
    "clusterDimMustBeSet": "CLUSTER_SIZE_MUST_BE_SET",
    "requiredClusterWidth": "REQUIRED_CLUSTER_WIDTH",
    "requiredClusterHeight": "REQUIRED_CLUSTER_HEIGHT",
    "requiredClusterDepth": "REQUIRED_CLUSTER_DEPTH",
    "clusterSchedulingPolicyPreference": "CLUSTER_SCHEDULING_POLICY_PREFERENCE",
    "nonPortableClusterSizeAllowed": "NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
}  # fmt: skip
_UNREGISTERED, _HOST, _DEVICE, _MANAGED = range(4)  # cudaMemoryType
_NO_DEVICE: Final = -2  # cudaInvalidDeviceId
_NAME_BYTES, _UUID_BYTES = 256, 16


def _value(prefix: str, name: str, call: str, *arguments: object) -> int | None:
    """Return an attribute; None if this release or the object lacks it."""
    kind = getattr(driver, f"CU{prefix}_attribute")
    prefixes = {"device": "CU_DEVICE_ATTRIBUTE_", "function": "CU_FUNC_ATTRIBUTE_"}
    attribute = getattr(kind, prefixes[prefix] + name, None)
    if attribute is None:
        return None
    code, value = getattr(driver, call)(attribute, *arguments)
    return None if code else int(value)


def device_properties(runtime: Any, device: int) -> Results:
    """Return the code, and a cudaDeviceProp."""
    code, name = driver.cuDeviceGetName(_NAME_BYTES, device)
    if code:
        return code, None
    found = runtime.cudaDeviceProp()
    found.name = name.partition(b"\0")[0].ljust(_NAME_BYTES, b"\0")
    uuid = driver.cuDeviceGetUuid(device)[1]
    if uuid is not None:
        ctypes.memmove(found.uuid.getPtr(), uuid.getPtr(), _UUID_BYTES)
    found.totalGlobalMem = driver.cuDeviceTotalMem(device)[1]
    for line in _PROPERTIES.split("\n"):
        field, _, attribute = line.partition(" ")
        if field and hasattr(found, field):
            _set(found, field, _value("device", attribute, "cuDeviceGetAttribute", device))
    for field, form in _OF_AXES.items():
        values = [
            _value("device", form.format(axis), "cuDeviceGetAttribute", device) or 0
            for axis in _AXES[field]
        ]
        setattr(found, field, values)
    return code, found


def _set(structure: Any, field: str, value: int | None) -> None:
    if value is not None:
        setattr(structure, field, value)


def attributes_of_function(runtime: Any, function: Any) -> Results:
    """Return the code, and a cudaFuncAttributes of a CUfunction."""
    first = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    code = driver.cuFuncGetAttribute(first, function)[0]
    if code:
        return code, None
    found = runtime.cudaFuncAttributes()
    for field, attribute in _OF_FUNCTION.items():
        if hasattr(found, field):
            _set(found, field, _value("function", attribute, "cuFuncGetAttribute", function))
    return code, found


def attributes_of_pointer(runtime: Any, pointer: int) -> Results:
    """Return the code, and a cudaPointerAttributes; memory of the system is unregistered."""
    kind = driver.CUpointer_attribute
    names = ("MEMORY_TYPE", "DEVICE_POINTER", "HOST_POINTER", "IS_MANAGED", "DEVICE_ORDINAL")
    wanted = [getattr(kind, f"CU_POINTER_ATTRIBUTE_{name}") for name in names]
    code, values = driver.cuPointerGetAttributes(len(wanted), wanted, pointer)
    if code:
        return code, None
    memory_type, on_device, on_host, is_managed, device = values
    found = runtime.cudaPointerAttributes()
    number = int(memory_type or _UNREGISTERED)
    found.type = runtime.cudaMemoryType(_MANAGED if is_managed else number)
    found.device = device if number else _NO_DEVICE
    # Of memory that the driver does not know, the runtime has the address itself.
    found.devicePointer = int(on_device or 0)
    found.hostPointer = int(on_host or 0) if number else pointer
    return code, found
