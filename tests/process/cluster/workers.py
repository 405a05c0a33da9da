"""Workers made up for tests."""

from __future__ import annotations

from cudadrv.cluster import WorkerReport
from cudadrv.driver import GpuDeviceInfo


def worker_with(device: GpuDeviceInfo, number: int) -> WorkerReport:
    return WorkerReport(
        f"made-up:{number}", "made-up", number, device, f"GPU-{number}", True, None, number=number
    )
