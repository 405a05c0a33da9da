"""Checkpoints of processes, which the emulator does not support.

CUDA Driver API: "CUDA Checkpointing".
"""

from __future__ import annotations

import os

from ...driver._api import CUresult
from ..call_error import SUCCESS, CallError, invalid_value
from ..call_rules import CallRules
from .call import call

_RUNNING = 0  # CU_PROCESS_STATE_RUNNING


class CheckpointCalls(CallRules):
    """Checkpoints of processes."""

    @call
    def cuCheckpointProcessGetState(self, pid: int, /) -> tuple[CUresult, int]:
        """Return that this process runs; other processes are unknown to the emulator."""
        if pid != os.getpid():
            raise invalid_value(f"process {pid} is not this one, of which alone the state is known")
        return SUCCESS, _RUNNING

    @call
    def cuCheckpointProcessGetRestoreThreadId(self, pid: int, /) -> tuple[CUresult, int]:
        """Reject the call."""
        raise _refusal()

    @call
    def cuCheckpointProcessLock(self, pid: int, args: object, /) -> tuple[CUresult]:
        """Reject the call."""
        raise _refusal()

    @call
    def cuCheckpointProcessCheckpoint(self, pid: int, args: object, /) -> tuple[CUresult]:
        """Reject the call."""
        raise _refusal()

    @call
    def cuCheckpointProcessRestore(self, pid: int, args: object, /) -> tuple[CUresult]:
        """Reject the call."""
        raise _refusal()

    @call
    def cuCheckpointProcessUnlock(self, pid: int, args: object, /) -> tuple[CUresult]:
        """Reject the call."""
        raise _refusal()


def _refusal() -> CallError:
    return CallError(
        CUresult.CUDA_ERROR_NOT_SUPPORTED,
        "the emulator's devices are memory of the process itself, and take no checkpoints: use a "
        "tool that takes those of processes",
    )
