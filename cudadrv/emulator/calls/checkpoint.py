"""Checkpoints of this process: its states, and calls that wait while it is locked.

CUDA Driver API: "CUDA Checkpointing". The memory of emulated devices is memory of this process. So
a checkpoint moves nothing, and other processes are unknown to the emulator.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

from ...driver._api import (
    CUcheckpointCheckpointArgs,
    CUcheckpointLockArgs,
    CUcheckpointUnlockArgs,
    CUprocessState,
    CUresult,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from .call import DriverCalls, call

if TYPE_CHECKING:
    from ...driver._api import CUcheckpointRestoreArgs

_RUNNING: Final = CUprocessState.CU_PROCESS_STATE_RUNNING
_LOCKED: Final = CUprocessState.CU_PROCESS_STATE_LOCKED
_CHECKPOINTED: Final = CUprocessState.CU_PROCESS_STATE_CHECKPOINTED


class CheckpointCalls(DriverCalls):
    """Checkpoints of this process."""

    @call
    def cuCheckpointProcessGetState(self, pid: int, /) -> tuple[CUresult, CUprocessState]:
        """Return whether the process runs, is locked, or has a checkpoint."""
        self._require_own(pid)
        return SUCCESS, CUprocessState(self._state.process.checkpoint.state)

    @call
    def cuCheckpointProcessGetRestoreThreadId(self, pid: int, /) -> tuple[CUresult, int]:
        """Return the thread that restores: it is the caller's."""
        self._require_own(pid)
        return SUCCESS, threading.get_native_id()

    @call
    def cuCheckpointProcessLock(
        self, pid: int, args: CUcheckpointLockArgs | None, /
    ) -> tuple[CUresult]:
        """Run all queued work, and let other calls wait from now on; in this thread they fail."""
        self._require_state(pid, _RUNNING)
        limit = int(args.timeoutMs) if args is not None else 0
        end = time.monotonic() + limit / 1000 if limit else None
        process = self._state.process.checkpoint
        process.lock(int(_LOCKED))
        try:
            for context in [
                *self._state.handles.contexts.values(),
                *self._state.handles.primaries.values(),
            ]:
                if not context.destroyed:
                    self._state.operations.wait_for_context(context)
            for device in self._state.devices.visible:
                seconds_left = -1.0 if end is None else max(0.0, end - time.monotonic())
                if not device.lock.acquire(timeout=seconds_left):
                    raise CallError(
                        CUresult.CUDA_ERROR_NOT_READY,
                        f"work of device {device.ordinal} has not ended within {limit} ms",
                    )
                device.lock.release()
        except BaseException:
            process.unlock(int(_RUNNING))
            raise
        return OK

    @call
    def cuCheckpointProcessCheckpoint(
        self, pid: int, args: CUcheckpointCheckpointArgs | None, /
    ) -> tuple[CUresult]:
        """Count as checkpointed; the memory of the devices stays where it is."""
        self._require_state(pid, _LOCKED)
        self._state.process.checkpoint.state = int(_CHECKPOINTED)
        return OK

    @call
    def cuCheckpointProcessRestore(
        self, pid: int, args: CUcheckpointRestoreArgs | None, /
    ) -> tuple[CUresult]:
        """Count as locked again; the devices are the same ones."""
        self._require_state(pid, _CHECKPOINTED)
        pairs = args.gpuPairs[: args.gpuPairsCount] if args is not None else []
        if any(bytes(pair.oldUuid.bytes) != bytes(pair.newUuid.bytes) for pair in pairs):
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                "the emulator restores a process on its own devices alone",
            )
        self._state.process.checkpoint.state = int(_LOCKED)
        return OK

    @call
    def cuCheckpointProcessUnlock(
        self, pid: int, args: CUcheckpointUnlockArgs | None, /
    ) -> tuple[CUresult]:
        """Let calls continue."""
        self._require_state(pid, _LOCKED)
        self._state.process.checkpoint.unlock(int(_RUNNING))
        return OK

    def _require_state(self, pid: int, state: CUprocessState) -> None:
        self._require_own(pid)
        if self._state.process.checkpoint.state != int(state):
            now = CUprocessState(self._state.process.checkpoint.state).name
            raise CallError(
                CUresult.CUDA_ERROR_ILLEGAL_STATE, f"the process is {now}, and not {state.name}"
            )

    def _require_own(self, pid: int) -> None:
        if pid == os.getpid():
            return
        try:
            os.kill(pid, 0)
        except OSError:
            raise invalid_value(f"there is no process {pid}") from None
        raise not_supported(f"process {pid} is another one: a process can lock and restore itself")
