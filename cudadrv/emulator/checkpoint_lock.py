"""The lock of the process for checkpoints (CUDA Driver API, "CUDA Checkpointing")."""

from __future__ import annotations

from ptx.latch import Latch

from ..driver._api import CUresult
from .call_error import CallError
from .native_thread import thread_number


class CheckpointLock:
    """Whether the process runs, is locked, or has a checkpoint; calls wait while it does not run.

    Attributes:
        state: the CUprocessState, as an integer.
    """

    def __init__(self) -> None:
        self.state: int = 0
        self._resumed: Latch | None = None  # while the process does not run
        self._holder = 0

    def lock(self, state: int) -> None:
        """Let the calls of other threads wait, and those of this one fail."""
        self.state, self._holder = state, thread_number()
        if self._resumed is None:
            self._resumed = Latch()

    def unlock(self, state: int) -> None:
        """Let calls continue."""
        self.state = state
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.set()

    def wait(self, name: str) -> None:
        """Wait until the process runs, before a call that needs that.

        Raises:
            CallError: CUDA_ERROR_NOT_PERMITTED, in the thread that has locked it. The driver would
                wait for ever, unless another process unlocks it.
        """
        resumed = self._resumed
        if resumed is None or name.startswith(("cuCheckpoint", "cuGetError", "cuLogs")):
            return
        if thread_number() == self._holder:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_PERMITTED,
                f"{name} in the thread that has locked the process for a checkpoint: it would wait "
                "for ever",
            )
        resumed.wait()
