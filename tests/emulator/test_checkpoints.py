"""Checkpoints of processes."""

from __future__ import annotations

import os

from cudadrv.driver._api import CUresult
from cudadrv.emulator import Emulator

from .calls import code, ok


def test_no_checkpoints_are_taken_and_the_refusal_says_so(emulator: Emulator) -> None:
    own = os.getpid()
    assert int(ok(emulator.cuCheckpointProcessGetState(own))) == 0
    assert code(emulator.cuCheckpointProcessGetState(own + 1)) == 1
    for function in (
        emulator.cuCheckpointProcessLock, emulator.cuCheckpointProcessCheckpoint,
        emulator.cuCheckpointProcessRestore, emulator.cuCheckpointProcessUnlock,
    ):  # fmt: skip
        assert code(function(own, None)) == 801
    assert code(emulator.cuCheckpointProcessGetRestoreThreadId(own)) == 801
    text = emulator.cuGetErrorString(CUresult.CUDA_ERROR_NOT_SUPPORTED)[1]
    assert b"use a tool that takes those of processes" in (text or b"")
