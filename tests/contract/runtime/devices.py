"""Devices made up for tests, as the Rust tests make theirs."""

from __future__ import annotations

from cudadrv import GpuRuntime
from cudadrv.driver import GpuCapability, GpuDeviceInfo
from cudadrv.runtime import GpuDispatchPolicy

GIB = 1 << 30


def device_with(ordinal: int, sm_count: int, free_gib: float) -> GpuDeviceInfo:
    return GpuDeviceInfo(
        ordinal=ordinal,
        name=f"synthetic-{ordinal}",
        capability=GpuCapability.from_compute_capability(7, 0),
        sm_count=sm_count,
        max_threads_per_sm=2048,
        max_shared_mem_per_block=49_152,
        l2_cache_bytes=6 << 20,
        total_mem_bytes=int(free_gib) * GIB * 2,
        free_mem_bytes=int(free_gib * GIB),
        ecc_enabled=False,
        integrated=False,
        mig_mode=False,
    )


def runtime_with(*devices: GpuDeviceInfo) -> GpuRuntime:
    device = devices[0]
    return GpuRuntime(
        device=device,
        devices=devices,
        policy=GpuDispatchPolicy(),
        memory_budget_bytes=min(device.free_mem_bytes, device.total_mem_bytes // 2),
    )


class ScoredDevice(GpuDeviceInfo):
    """A device of any score at all."""

    __slots__ = ("given",)

    given: float

    def score(self) -> float:
        return self.given


def scored(ordinal: int, score: float) -> GpuDeviceInfo:
    plain = device_with(ordinal, 1, 1.0)
    device = ScoredDevice(**{name: getattr(plain, name) for name in GpuDeviceInfo.__slots__})
    object.__setattr__(device, "given", score)
    return device
