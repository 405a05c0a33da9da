"""The value of every attribute of an emulated device (cuDeviceGetAttribute)."""

from __future__ import annotations

from ..driver._api import CUdevice_attribute
from .profiles import EmulatedDevice

# Alike on all devices of the profiles; read on an H100 with driver 580.
_COMMON = {
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": 2147483647,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
    "TOTAL_CONSTANT_MEMORY": 65536,
    "WARP_SIZE": 32,
    "MAX_PITCH": 2147483647,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "TEXTURE_ALIGNMENT": 512,
    "GPU_OVERLAP": 1,
    "CAN_MAP_HOST_MEMORY": 1,
    "MAXIMUM_TEXTURE1D_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_HEIGHT": 65536,
    "MAXIMUM_TEXTURE3D_WIDTH": 16384,
    "MAXIMUM_TEXTURE3D_HEIGHT": 16384,
    "MAXIMUM_TEXTURE3D_DEPTH": 16384,
    "MAXIMUM_TEXTURE2D_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_LAYERED_HEIGHT": 32768,
    "MAXIMUM_TEXTURE2D_LAYERED_LAYERS": 2048,
    "SURFACE_ALIGNMENT": 512,
    "CONCURRENT_KERNELS": 1,
    "UNIFIED_ADDRESSING": 1,
    "MAXIMUM_TEXTURE1D_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURE1D_LAYERED_LAYERS": 2048,
    "CAN_TEX2D_GATHER": 1,
    "MAXIMUM_TEXTURE2D_GATHER_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_GATHER_HEIGHT": 32768,
    "MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE": 8192,
    "MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE": 8192,
    "MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE": 32768,
    "TEXTURE_PITCH_ALIGNMENT": 32,
    "MAXIMUM_TEXTURECUBEMAP_WIDTH": 32768,
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS": 2046,
    "MAXIMUM_SURFACE1D_WIDTH": 32768,
    "MAXIMUM_SURFACE2D_WIDTH": 131072,
    "MAXIMUM_SURFACE2D_HEIGHT": 65536,
    "MAXIMUM_SURFACE3D_WIDTH": 16384,
    "MAXIMUM_SURFACE3D_HEIGHT": 16384,
    "MAXIMUM_SURFACE3D_DEPTH": 16384,
    "MAXIMUM_SURFACE1D_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACE1D_LAYERED_LAYERS": 2048,
    "MAXIMUM_SURFACE2D_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACE2D_LAYERED_HEIGHT": 32768,
    "MAXIMUM_SURFACE2D_LAYERED_LAYERS": 2048,
    "MAXIMUM_SURFACECUBEMAP_WIDTH": 32768,
    "MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS": 2046,
    "MAXIMUM_TEXTURE1D_LINEAR_WIDTH": 268435456,
    "MAXIMUM_TEXTURE2D_LINEAR_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT": 65000,
    "MAXIMUM_TEXTURE2D_LINEAR_PITCH": 2097120,
    "MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT": 32768,
    "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH": 32768,
    "STREAM_PRIORITIES_SUPPORTED": 1,
    "GLOBAL_L1_CACHE_SUPPORTED": 1,
    "LOCAL_L1_CACHE_SUPPORTED": 1,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MANAGED_MEMORY": 1,
    "CONCURRENT_MANAGED_ACCESS": 1,
    "COMPUTE_PREEMPTION_SUPPORTED": 1,
    "VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED": 1,
    "COOPERATIVE_LAUNCH": 1,
    "MEMORY_POOLS_SUPPORTED": 1,
    "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": 1,
    "MEMPOOL_SUPPORTED_HANDLE_TYPES": 1,
    "IPC_EVENT_SUPPORTED": 1,
    "UNIFIED_FUNCTION_POINTERS": 1,
    "HOST_NUMA_MEMORY_POOLS_SUPPORTED": 1,
    "HOST_MEMORY_POOLS_SUPPORTED": 1,
    "NUMA_ID": -1,
}
# The value is 0 for what the emulator does not have: pageable memory in kernels, multicast, RDMA.
# So it is for every attribute not listed.


def device_attributes(device: EmulatedDevice, ordinal: int) -> dict[int, int]:
    """Value by number of every attribute that the installed binding knows."""
    limits = device.architecture
    major, minor = device.compute_capability
    own = {
        "CLOCK_RATE": device.clock_khz,
        "MULTIPROCESSOR_COUNT": device.sm_count,
        "ECC_ENABLED": int(device.ecc),
        "PCI_BUS_ID": ordinal + 1,
        "MEMORY_CLOCK_RATE": device.memory_clock_khz,
        "GLOBAL_MEMORY_BUS_WIDTH": device.memory_bus_bits,
        "L2_CACHE_SIZE": device.l2_bytes,
        "MAX_THREADS_PER_MULTIPROCESSOR": limits.threads_per_sm,
        "ASYNC_ENGINE_COUNT": device.copy_engines,
        "COMPUTE_CAPABILITY_MAJOR": major,
        "COMPUTE_CAPABILITY_MINOR": minor,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": limits.shared_per_sm,
        "MULTI_GPU_BOARD_GROUP_ID": ordinal,
        "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": limits.double_ratio,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": limits.shared_per_block_optin,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": limits.blocks_per_sm,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": limits.reserved_shared,
        "CLUSTER_LAUNCH": int(limits.max_cluster > 0),
        "TENSOR_MAP_ACCESS_SUPPORTED": int(device.compute_capability >= (9, 0)),
    }
    values = {
        int(attribute): 0
        for attribute in CUdevice_attribute
        if attribute.name != "CU_DEVICE_ATTRIBUTE_MAX"
    }
    for name, value in (_COMMON | own).items():
        attribute = getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        if attribute is not None:  # the bindings of CUDA 12 lack some
            values[int(attribute)] = value
    values.update({int(attribute): value for attribute, value in device.attributes.items()})
    return values
