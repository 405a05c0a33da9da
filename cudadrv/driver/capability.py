"""Features and sizes of a device: `GpuCapability` and `GpuDeviceInfo`, after gam's structs."""

from __future__ import annotations

from dataclasses import dataclass

import ptx

from .. import border

GIB = 1 << 30
_COUNTS = (
    "ordinal", "sm_count", "max_threads_per_sm", "max_shared_mem_per_block", "l2_cache_bytes",
    "total_mem_bytes", "free_mem_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuCapability:
    """The features of a compute capability (gam `GpuCapability`)."""

    compute_major: int
    compute_minor: int
    has_tensor_cores: bool
    has_fp64_tensor_cores: bool
    has_async_copy: bool
    has_cluster_launch: bool
    has_tma: bool
    min_warp_size: int = 32

    def __post_init__(self) -> None:
        border.integer_fields(self, "compute_major", "compute_minor", "min_warp_size")

    @classmethod
    def from_compute_capability(cls, major: int, minor: int) -> GpuCapability:
        """Return the features of devices of compute capability `major`.`minor`."""
        major = border.integer("GpuCapability: major", major)
        return cls(
            compute_major=major,
            compute_minor=minor,
            has_tensor_cores=major >= 7,
            has_fp64_tensor_cores=major >= 8,
            has_async_copy=major >= 8,
            has_cluster_launch=major >= 9,
            has_tma=major >= 9,
        )

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(major, minor)."""
        return self.compute_major, self.compute_minor

    def nvrtc_arch(self) -> str:
        """The virtual architecture to compile for, such as "compute_90".

        A capability that the installed NVRTC does not support rounds down to the nearest supported
        one, never up. Without an explicit architecture NVRTC would choose one that can lack
        ``atomicAdd(double*, double)``.

        Raises:
            ptx.NvrtcNotFoundError: NVRTC is not installed.
        """
        return ptx.nearest_target(self.compute_capability).arch


@dataclass(frozen=True, slots=True)
class GpuDeviceInfo:
    """A device as the runtime layer sees it (gam `GpuDeviceInfo`); sizes are in bytes."""

    ordinal: int
    name: str
    capability: GpuCapability
    sm_count: int
    max_threads_per_sm: int
    max_shared_mem_per_block: int
    l2_cache_bytes: int
    total_mem_bytes: int
    free_mem_bytes: int
    ecc_enabled: bool
    integrated: bool
    mig_mode: bool

    def __post_init__(self) -> None:
        border.text("GpuDeviceInfo: name", self.name)
        border.instance_of("GpuDeviceInfo: capability", self.capability, GpuCapability)
        border.integer_fields(self, *_COUNTS)

    def score(self) -> float:
        """The weight that ranks devices and divides work among them.

        Multiprocessors, plus 4 per free GiB, plus 100 for float64 tensor cores and 50 for
        asynchronous copies.
        """
        return (
            float(self.sm_count)
            + self.free_mem_bytes / GIB * 4.0
            + (100.0 if self.capability.has_fp64_tensor_cores else 0.0)
            + (50.0 if self.capability.has_async_copy else 0.0)
        )

    def memory_budget_bytes(self) -> int:
        """The bytes that one user may plan with: the free bytes, at most half of all."""
        return min(self.free_mem_bytes, self.total_mem_bytes // 2)
