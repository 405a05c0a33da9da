"""Devices to emulate: any, by `EmulatedDevice`, and the profiles of real ones.

CUDA Programming Guide, "Compute Capabilities", has the limits of each compute capability.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypedDict

from .. import border
from ..driver._api import CUdevice_attribute
from ..errors import ArgumentValueError

_KIB = 1024


class ArchitectureLimits(NamedTuple):
    """The limits of one compute capability; memory in bytes.

    Attributes:
        double_ratio: single-precision throughput over double-precision throughput.
        single_lanes: single-precision operations that a multiprocessor begins per clock cycle
            (CUDA Programming Guide, "Throughput of Native Arithmetic Instructions").
        reserved_shared: shared memory of each block that the system reserves.
        max_cluster: largest portable cluster, in blocks; 0 without clusters.
    """

    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block_optin: int
    double_ratio: int
    single_lanes: int
    reserved_shared: int = 1024
    max_cluster: int = 0


def _architecture(
    threads: int,
    blocks: int,
    shared: int,
    optin: int,
    ratio: int,
    *,
    cluster: int = 0,
    lanes: int = 128,
) -> ArchitectureLimits:
    return ArchitectureLimits(
        threads_per_sm=threads,
        blocks_per_sm=blocks,
        shared_per_sm=shared * _KIB,
        shared_per_block_optin=optin * _KIB,
        double_ratio=ratio,
        single_lanes=lanes,
        reserved_shared=0 if shared == optin else _KIB,
        max_cluster=cluster,
    )


ARCHITECTURES: dict[tuple[int, int], ArchitectureLimits] = {
    (7, 0): _architecture(2048, 32, 96, 96, 2, lanes=64),
    (7, 2): _architecture(2048, 32, 96, 96, 2, lanes=64),
    (7, 5): _architecture(1024, 16, 64, 64, 32, lanes=64),
    (8, 0): _architecture(2048, 32, 164, 163, 2, lanes=64),
    (8, 6): _architecture(1536, 16, 100, 99, 32),
    (8, 7): _architecture(1536, 16, 164, 163, 32),
    (8, 9): _architecture(1536, 24, 100, 99, 64),
    (9, 0): _architecture(2048, 32, 228, 227, 2, cluster=8),
    (10, 0): _architecture(2048, 32, 228, 227, 2, cluster=8),
    (10, 3): _architecture(2048, 32, 228, 227, 64, cluster=8),
    (11, 0): _architecture(1536, 24, 228, 227, 64, cluster=8),
    (12, 0): _architecture(1536, 24, 100, 99, 64, cluster=8),
    (12, 1): _architecture(1536, 24, 100, 99, 64, cluster=8),
}


_CAPABILITIES = {f"{major}.{minor}": (major, minor) for major, minor in ARCHITECTURES}
_VARIABLE = "CUDADRV_EMULATOR_COMPUTE_CAPABILITY"


def default_capability() -> tuple[int, int]:
    """Return the compute capability of devices that state none."""
    text = os.environ.get(_VARIABLE, "").strip() or "9.0"
    if text not in _CAPABILITIES:
        raise ArgumentValueError(f"{_VARIABLE} is {text!r}: use one of {', '.join(_CAPABILITIES)}")
    return _CAPABILITIES[text]


_MIB = 1 << 20
_GIB = 1 << 30
# Windows counts reserved bytes as the memory of the process before they are written.
_COMMITS_AT_ONCE = platform.system() == "Windows"
MAX_TOTAL_MEMORY = 1 << 40  # an emulated device's part of the address space
MAX_DEVICES = 64
_GRANULE = 4096
# The driver returns them as a C int.
_BOUNDED = ("clock_khz", "memory_clock_khz", "memory_bus_bits", "l2_bytes", "copy_engines")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedDevice:
    """A device to emulate. The default is a small device of the Hopper architecture.

    The limits of blocks, threads, registers and shared memory follow from the compute capability;
    `attributes` replaces any of them, or any other attribute, one by one.

    Attributes:
        compute_capability: by default that of CUDADRV_EMULATOR_COMPUTE_CAPABILITY, else 9.0.
        total_memory: bytes, a multiple of 4,096, at most 1 TiB. The process commits written memory;
            on Windows all of it, so the default there is 1 GiB.
        clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes: in the units of the attributes.
        peer_access: whether it and the other devices can access each other's memory.
        attributes: values that override those of the profile.

    Raises:
        ValueError: the compute capability is unknown, or a number is out of range.
    """

    name: str = "cudadrv emulated device"
    compute_capability: tuple[int, int] = field(default_factory=default_capability)
    sm_count: int = 16
    total_memory: int = _GIB if _COMMITS_AT_ONCE else 16 * _GIB
    clock_khz: int = 1_500_000
    memory_clock_khz: int = 1_500_000
    memory_bus_bits: int = 1024
    l2_bytes: int = 32 * _MIB
    ecc: bool = False
    copy_engines: int = 3
    peer_access: bool = True
    attributes: Mapping[CUdevice_attribute, int] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )

    def __post_init__(self) -> None:
        border.text("EmulatedDevice: name", self.name)
        capability = tuple(
            border.integer("EmulatedDevice: compute_capability", each)
            for each in border.elements(
                "EmulatedDevice: compute_capability", self.compute_capability
            )
        )
        object.__setattr__(self, "compute_capability", capability)
        border.integer_fields(self, "sm_count", "total_memory")
        border.integer_fields(self, *_BOUNDED, most=2**31 - 1)
        border.instance_of("EmulatedDevice: attributes", self.attributes, Mapping)
        attributes = {}
        for attribute, value in self.attributes.items():
            border.integer("EmulatedDevice: an attribute", attribute)
            where = f"EmulatedDevice: {attribute!r}"
            attributes[attribute] = border.int_in_range(where, value, -(2**31), 2**31 - 1)
        if self.compute_capability not in ARCHITECTURES:
            raise ArgumentValueError(
                f"no architecture has compute capability {self.compute_capability}: use one of "
                f"{', '.join(_CAPABILITIES)}"
            )
        if not 1 <= self.sm_count < 1 << 31:
            raise ArgumentValueError(f"sm_count is {self.sm_count}: a device has at least one")
        if not 0 < self.total_memory <= MAX_TOTAL_MEMORY or self.total_memory % _GRANULE:
            raise ArgumentValueError(
                f"total_memory is {self.total_memory}: use a multiple of {_GRANULE} bytes of at "
                f"most {MAX_TOTAL_MEMORY}"
            )
        object.__setattr__(self, "attributes", MappingProxyType(attributes))

    def __reduce__(self) -> tuple[object, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # Python pickles no view of a dictionary.
        return partial(EmulatedDevice, **{**values, "attributes": dict(self.attributes)}), ()

    @property
    def architecture(self) -> ArchitectureLimits:
        """The limits of the compute capability."""
        return ARCHITECTURES[self.compute_capability]


class DeviceProperties(TypedDict, total=False):
    """The properties of an `EmulatedDevice`, for the functions that make devices of them."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    total_memory: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    l2_bytes: int
    ecc: bool
    copy_engines: int
    peer_access: bool
    attributes: Mapping[CUdevice_attribute, int]


# V100, T4, A100 and L4: what deviceQuery prints on them. H100 and H200: read with
# cuDeviceGetAttribute, driver 580. B200: memory is known to a hundredth of a GiB.
V100 = EmulatedDevice(
    name="Tesla V100-SXM2-16GB",
    compute_capability=(7, 0),
    sm_count=80,
    total_memory=16_945_512_448,
    clock_khz=1_530_000,
    memory_clock_khz=877_000,
    memory_bus_bits=4096,
    l2_bytes=6_291_456,
    ecc=True,
    copy_engines=6,
)
T4 = EmulatedDevice(
    name="Tesla T4",
    compute_capability=(7, 5),
    sm_count=40,
    total_memory=15_843_721_216,
    clock_khz=1_590_000,
    memory_clock_khz=5_001_000,
    memory_bus_bits=256,
    l2_bytes=4_194_304,
    ecc=True,
    peer_access=False,
)
A100 = EmulatedDevice(
    name="NVIDIA A100-SXM4-40GB",
    compute_capability=(8, 0),
    sm_count=108,
    total_memory=42_505_273_344,
    clock_khz=1_410_000,
    memory_clock_khz=1_215_000,
    memory_bus_bits=5120,
    l2_bytes=41_943_040,
    ecc=True,
)
L4 = EmulatedDevice(
    name="NVIDIA L4",
    compute_capability=(8, 9),
    sm_count=58,
    total_memory=23_612_293_120,
    clock_khz=2_040_000,
    memory_clock_khz=6_251_000,
    memory_bus_bits=192,
    l2_bytes=50_331_648,
    ecc=True,
    copy_engines=2,
    peer_access=False,
)
H100 = EmulatedDevice(
    name="NVIDIA H100 80GB HBM3",
    compute_capability=(9, 0),
    sm_count=132,
    total_memory=85_017_493_504,
    clock_khz=1_980_000,
    memory_clock_khz=2_619_000,
    memory_bus_bits=5120,
    l2_bytes=52_428_800,
    ecc=True,
)
H200 = EmulatedDevice(
    name="NVIDIA H200",
    compute_capability=(9, 0),
    sm_count=132,
    total_memory=150_109_880_320,
    clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    memory_bus_bits=6016,
    l2_bytes=62_914_560,
    ecc=True,
)
B200 = EmulatedDevice(
    name="NVIDIA B200",
    compute_capability=(10, 0),
    sm_count=148,
    total_memory=191_503_138_816,
    clock_khz=1_965_000,
    memory_clock_khz=3_996_000,
    memory_bus_bits=7680,
    l2_bytes=132_644_864,
    ecc=True,
)
PROFILES: Mapping[str, EmulatedDevice] = MappingProxyType(
    {"V100": V100, "T4": T4, "A100": A100, "L4": L4, "H100": H100, "H200": H200, "B200": B200}
)


def given_devices(
    devices: int | Sequence[EmulatedDevice], make: Callable[[], EmulatedDevice]
) -> Sequence[EmulatedDevice]:
    """Return the given devices, or this number of default ones.

    Raises:
        ArgumentTypeError: the argument is neither.
        ArgumentValueError: the number is out of range.
    """
    if hasattr(devices, "__index__"):
        return (make(),) * border.int_in_range("an emulator's devices", devices, most=MAX_DEVICES)
    return border.sequence_of("an emulator's devices", devices, EmulatedDevice)


# The same on all devices of the profiles; read on an H100 with driver 580.
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
    "HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": 1,
    "HOST_MEMORY_POOLS_SUPPORTED": 1,
    "NUMA_ID": -1,
}
# The value is 0 for features that the emulator does not have: pageable memory in kernels, RDMA. The
# same holds for every attribute not listed.


def device_attributes(device: EmulatedDevice, ordinal: int) -> dict[int, int]:
    """Return the value by number of every attribute that the installed binding knows."""
    limits = device.architecture
    major, minor = device.compute_capability
    attributes = {
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
        "HANDLE_TYPE_FABRIC_SUPPORTED": int(device.compute_capability >= (9, 0)),
        "MULTICAST_SUPPORTED": int(device.compute_capability >= (9, 0)),
        "TENSOR_MAP_ACCESS_SUPPORTED": int(device.compute_capability >= (9, 0)),
        # The shares of an H100.
        "MAX_PERSISTING_L2_CACHE_SIZE": device.l2_bytes * 5 // 8 if major >= 8 else 0,
        "MAX_ACCESS_POLICY_WINDOW_SIZE": 1 << 27 if major >= 8 else 0,
        "MEM_SYNC_DOMAIN_COUNT": 4 if major >= 9 else 1,
    }
    values = {
        int(attribute): 0
        for attribute in CUdevice_attribute
        if attribute.name != "CU_DEVICE_ATTRIBUTE_MAX"
    }
    for name, value in (_COMMON | attributes).items():
        attribute = getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        if attribute is not None:  # the bindings of CUDA 12 lack some
            values[int(attribute)] = value
    values.update({int(attribute): value for attribute, value in device.attributes.items()})
    return values
