"""`ProcessCheckpoint`: moves what a process has on its devices to the host, and back.

CUDA Driver API, "CUDA Checkpointing".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from ptx.read_only import ReadOnly

from . import border
from .driver._api import CUcheckpointLockArgs, CUprocessState, restore_arguments
from .driver.device import list_devices, needs_version
from .driver.driver_selection import checked, current
from .driver.handle import living
from .driver.stream import BaseStream
from .errors import CheckpointRejectedError, UnsupportedError
from .ipc import SharedMemory
from .memory.managed import ManagedHandle
from .memory.physical_memory import PhysicalMemory

__all__ = ["ProcessCheckpoint", "ProcessState"]

if TYPE_CHECKING:
    from uuid import UUID

_SINCE = (12, 8)


class ProcessState(IntEnum):
    """The state of a process for checkpoints.

    Source: CUprocessState in the CUDA Driver API manual.
    """

    RUNNING = int(CUprocessState.CU_PROCESS_STATE_RUNNING)
    LOCKED = int(CUprocessState.CU_PROCESS_STATE_LOCKED)
    CHECKPOINTED = int(CUprocessState.CU_PROCESS_STATE_CHECKPOINTED)
    FAILED = int(CUprocessState.CU_PROCESS_STATE_FAILED)


class ProcessCheckpoint:
    """Suspends the CUDA work of a process, and resumes it: ``lock``, ``checkpoint``, then back.

    While it is checkpointed, the process uses no device, and its device memory is in host memory. A
    tool such as CRIU can then save the process. Handles and addresses are the same after
    ``restore`` and ``unlock``.

    Usually another process does that: calls of the locked process wait until it is unlocked. Linux
    only; needs CUDA 12.8.

    Args:
        pid: the process; this one by default.

    Attributes:
        pid: the process.
    """

    __slots__ = ("_pid",)

    pid: ReadOnly[int] = ReadOnly("_pid")

    def __init__(self, pid: int | None = None) -> None:
        process_id = os.getpid() if pid is None else pid
        self._pid: int = border.int_in_range("ProcessCheckpoint: pid", process_id, 1, 2**31 - 1)

    def __repr__(self) -> str:
        return f"<ProcessCheckpoint of process {self._pid}>"

    def state(self) -> ProcessState:
        """Query the state of the process.

        Raises:
            UnsupportedError: the driver or cuda-bindings is older than CUDA 12.8.
            CudaError: there is no such process, or it does not use CUDA.
        """
        api, doing = current().api, f"querying the state of process {self._pid}"
        with needs_version("ProcessCheckpoint.state", _SINCE):
            result = api.cuCheckpointProcessGetState(self._pid)
        return ProcessState(int(checked(api, "cuCheckpointProcessGetState", result, doing)))

    def obstacles(self) -> tuple[str, ...]:
        """Return what this process has that a checkpoint would lose, as far as cudadrv made it.

        The driver does not save managed memory, nor memory that is shared with other processes, and
        a failed checkpoint leaves a process unusable. Memory of other libraries is not listed. For
        another process nothing is listed: call it there.
        """
        if self._pid != os.getpid():
            return ()
        driver = current()
        obstacles = [f"{stream!r} captures" for stream in living() if _is_capturing(stream)]
        managed = [
            handle for handle in driver.host_memory.alive() if isinstance(handle, ManagedHandle)
        ]
        if managed:
            obstacles.append(f"{len(managed)} arrays of managed memory")
        shared = 0
        for device in list_devices():
            memory = SharedMemory.of(driver, device.ordinal)
            tables = memory.own, memory.opened, memory.ranges, memory.pools
            shared += sum(len(table) for table in tables)
        shared += sum(
            isinstance(public, PhysicalMemory) and public.handle_type is not None
            for public in living()
        )
        if shared:
            obstacles.append(f"{shared} pools or pieces of memory for other processes")
        return tuple(obstacles)

    def lock(self, *, timeout_ms: int = 0) -> None:
        """Wait for the work of the process, and let its CUDA calls wait from now on.

        Args:
            timeout_ms: how long to wait at most; 0 is without a limit.

        Raises:
            CheckpointRejectedError: this process has `obstacles`; it is not locked.
            NotReadyError: its work has not ended in time; it is not locked.
            UnsupportedError: the driver or cuda-bindings is older than CUDA 12.8.
        """
        limit = border.int_in_range(
            "ProcessCheckpoint.lock: timeout_ms", timeout_ms, most=2**32 - 1
        )
        obstacles = self.obstacles()
        if obstacles:
            raise CheckpointRejectedError(
                f"{self!r} is not locked, as a checkpoint would lose objects in use\n  close: "
                + "; ".join(obstacles)
            )
        arguments = CUcheckpointLockArgs()
        arguments.timeoutMs = limit
        api, doing = current().api, f"locking process {self._pid}"
        with needs_version("ProcessCheckpoint.lock", _SINCE):
            result = api.cuCheckpointProcessLock(self._pid, arguments)
        checked(api, "cuCheckpointProcessLock", result, doing)

    def checkpoint(self) -> None:
        """Move the device memory of the locked process to the host, and release its devices.

        Raises:
            CudaError: the driver cannot save it; the process is then `ProcessState.FAILED`.
        """
        api = current().api
        with needs_version("ProcessCheckpoint.checkpoint", _SINCE):
            result = api.cuCheckpointProcessCheckpoint(self._pid, None)
        checked(api, "cuCheckpointProcessCheckpoint", result, f"saving process {self._pid}")

    def restore(self, devices: Mapping[UUID, UUID] | None = None) -> None:
        """Move the memory back to the devices; the process is locked then.

        Args:
            devices: the device to use now for each former one, by `Device.uuid`. All devices of the
                host must be named, also those that `CUDA_VISIBLE_DEVICES` hides. By default they
                are the same. Needs CUDA 13.0.
        """
        arguments = None
        if devices is not None:
            new_devices = border.instance_of("ProcessCheckpoint.restore: devices", devices, Mapping)
            try:
                pairs = [(old.bytes, new.bytes) for old, new in new_devices.items()]
            except AttributeError:
                remedy = "give a mapping of UUIDs, as of Device.uuid"
                where = "ProcessCheckpoint.restore: devices"
                raise border.wrong_type(where, devices, remedy) from None
            try:
                arguments = restore_arguments(pairs)
            except AttributeError as error:
                raise UnsupportedError(
                    "ProcessCheckpoint.restore: devices needs cuda-bindings >=13.0,!=13.3.0"
                ) from error
        api = current().api
        with needs_version("ProcessCheckpoint.restore", _SINCE):
            result = api.cuCheckpointProcessRestore(self._pid, arguments)
        checked(api, "cuCheckpointProcessRestore", result, f"restoring process {self._pid}")

    def unlock(self) -> None:
        """Let the CUDA calls of the locked process continue."""
        api = current().api
        with needs_version("ProcessCheckpoint.unlock", _SINCE):
            result = api.cuCheckpointProcessUnlock(self._pid, None)
        checked(api, "cuCheckpointProcessUnlock", result, f"unlocking process {self._pid}")

    def restore_thread_id(self) -> int:
        """Query the thread of the process that must run while it is restored, for tools."""
        api, doing = current().api, f"querying the restoring thread of process {self._pid}"
        with needs_version("ProcessCheckpoint.restore_thread_id", _SINCE):
            result = api.cuCheckpointProcessGetRestoreThreadId(self._pid)
        return checked(api, "cuCheckpointProcessGetRestoreThreadId", result, doing)


def _is_capturing(public: object) -> bool:
    return isinstance(public, BaseStream) and public._is_captured
