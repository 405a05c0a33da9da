"""What a worker is: its process, its device, and how it comes to that."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..driver.capability import GpuDeviceInfo
from ..driver.device import Device, list_devices
from ..errors import NoDeviceError
from ..version import VERSION

_MOST_SHARING: Final = 64  # processes of one device


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker of an executor.

    Attributes:
        name: the executor's name for it, such as "host:PID" or a Dask worker's address.
        host: the machine.
        pid: the process.
        device: its device, by the ordinal that it has in that process, with its score and memory.
        uuid: the device's UUID.
        is_emulated: whether it is a device of the emulator.
        visible: CUDA_VISIBLE_DEVICES as the process has it; None where it is not set.
        threads: how many tiles it works on at once.
        number: the executor's own, which stays when the process is replaced.
        version: of cudadrv there.
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
    """This process as a worker that has a device.

    Raises:
        CudadrvError: there is no such device, or its driver fails.
    """
    device = Device.get(ordinal)
    host, pid = socket.gethostname(), os.getpid()
    return WorkerReport(
        name or f"{host}:{pid}", host, pid, device.info(), str(device.uuid), device.is_emulated,
        os.environ.get("CUDA_VISIBLE_DEVICES"), threads=threads,
    )  # fmt: skip


class Claim:
    """The device of a worker that nobody gave one: the first that no process of the host has.

    It is taken among those that are visible, as they are: so dask-cuda's workers, each of which
    sees its own device first, Slurm's processes, which see one, and plain ones, which see all, have
    one each. Where there are more processes than devices they are shared evenly. The claim is a
    name of a socket (unix(7), abstract), which ends with the process.

    Args:
        turn: how many workers of this process came before.

    Attributes:
        ordinal: the device.

    Raises:
        NoDeviceError: there is none.
    """

    def __init__(self, turn: int) -> None:
        devices = list_devices()
        if not devices:
            raise NoDeviceError("taking a worker's device")
        self._socket: socket.socket | None = None
        index: int | None = turn % len(devices)
        # Each process has emulated devices of its own.
        if not devices[0].is_emulated and sys.platform == "linux":
            index = first_free([str(device.uuid) for device in devices], self._take)
        self.ordinal: int = devices[index or 0].ordinal

    def _take(self, name: str) -> bool:
        self._socket = held_name(name)
        return self._socket is not None


def held_name(name: str) -> socket.socket | None:
    """What has a name on this host as long as it is open; None where another one has it."""
    mine = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mine.bind(f"\0cudadrv-{name}")
    except OSError:
        mine.close()
        return None
    return mine


def first_free(names: Sequence[str], take: Callable[[str], bool]) -> int | None:
    """The index of the first name that can be taken, each once before any a second time."""
    for turn in range(_MOST_SHARING):
        for index, name in enumerate(names):
            if take(f"{name}-{turn}"):
                return index
    return None
