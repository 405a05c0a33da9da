"""Workers made up for tests."""

from __future__ import annotations

from cudadrv import GpuDeviceInfo
from cudadrv.cluster import WorkerReport


def worker_with(device: GpuDeviceInfo, number: int) -> WorkerReport:
    return WorkerReport(
        f"made-up:{number}", "made-up", number, device, f"GPU-{number}", True, None, number=number
    )
