"""Checkpoints of processes."""

from __future__ import annotations

import os
import threading

from cudadrv.driver._api import CUcheckpointLockArgs
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of
from tests.patience import SECONDS

from .calls import code, ok


def test_a_process_without_a_driver_of_its_own_may_request_checkpoints() -> None:
    emulator = Emulator()
    assert ok(emulator.cuCheckpointProcessGetState(os.getpid())) == 0
    assert code(emulator.cuCheckpointProcessLock(os.getppid(), None)) == 801


def test_the_states_of_the_own_process(emulator: Emulator) -> None:
    own = os.getpid()
    assert code(emulator.cuCheckpointProcessGetState(os.getppid())) == 801
    assert code(emulator.cuCheckpointProcessGetState(0x7FFFFFFF)) == 1
    steps = (
        (emulator.cuCheckpointProcessLock, 0, 1),
        (emulator.cuCheckpointProcessCheckpoint, 1, 2),
        (emulator.cuCheckpointProcessRestore, 2, 1),
        (emulator.cuCheckpointProcessUnlock, 1, 0),
    )
    for function, before, after in steps:
        for other, needed, _ in steps:
            if needed != before:
                assert code(other(own, None)) == 401  # CUDA_ERROR_ILLEGAL_STATE
        assert int(ok(emulator.cuCheckpointProcessGetState(own))) == before
        ok(function(own, None))
        assert int(ok(emulator.cuCheckpointProcessGetState(own))) == after
    assert ok(emulator.cuCheckpointProcessGetRestoreThreadId(own)) == threading.get_native_id()


def test_a_lock_that_waits_too_long_leaves_the_process_running(emulator: Emulator) -> None:
    own, device = os.getpid(), state_of(emulator).devices.visible[0]
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with device.lock:
            entered.set()
            leave.wait(SECONDS)

    other = threading.Thread(target=work)
    other.start()
    entered.wait(SECONDS)
    args = CUcheckpointLockArgs()
    args.timeoutMs = 1
    assert code(emulator.cuCheckpointProcessLock(own, args)) == 600  # CUDA_ERROR_NOT_READY
    assert int(ok(emulator.cuCheckpointProcessGetState(own))) == 0
    leave.set()
    other.join(SECONDS)
    ok(emulator.cuCtxGetCurrent())
