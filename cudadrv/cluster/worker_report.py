"""`WorkerReport`: identity and device of an executor's worker."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from ..driver.capability import GpuDeviceInfo
from ..driver.device import Device
from ..version import VERSION


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker of an executor.

    Attributes:
        name: the executor's name for it, such as "host:PID" or a Dask worker's address.
        host: the host's name.
        pid: the process ID.
        device: its device, by its ordinal in that process, with its score and memory.
        uuid: the device's UUID.
        is_emulated: whether it is a device of the emulator.
        visible: CUDA_VISIBLE_DEVICES of the process; None if it is not set.
        threads: how many tiles it processes at once.
        number: the executor's own number, which stays when the process is replaced.
        version: the version of cudadrv there.
    """

    name: str
    host: str
    pid: int
    device: GpuDeviceInfo
    uuid: str
    is_emulated: bool
    visible: str | None
    threads: int = 1
    number: int = -1
    version: str = VERSION


def report_of(ordinal: int, name: str = "", threads: int = 1) -> WorkerReport:
    """Report this process as a worker that has a device.

    Raises:
        CudadrvError: there is no such device, or its driver fails.
    """
    device = Device.get(ordinal)
    host, pid = socket.gethostname(), os.getpid()
    return WorkerReport(
        name or f"{host}:{pid}",
        host,
        pid,
        device.info(),
        str(device.uuid),
        device.is_emulated,
        os.environ.get("CUDA_VISIBLE_DEVICES"),
        threads=threads,
    )
