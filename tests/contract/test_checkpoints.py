"""Checkpoints of a process, taken by another one; on the emulator by itself."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from cuda.bindings import driver

import cudadrv
from cudadrv import MemoryPool, managed_empty
from cudadrv.checkpoint import ProcessCheckpoint
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentTypeError,
    CheckpointRejectedError,
    CudaError,
    DriverSymbolMissingError,
    NotPermittedError,
    NotSupportedError,
    UnsupportedError,
)
from tests.noted_calls import replaced_calls
from tests.patience import SECONDS

from .peer import KEPT, Peer

Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def nothing_is_shared(stream: cudadrv.Stream) -> None:
    """No object of an earlier test stands in the way, which a thread of it may still hold."""
    gc.collect()
    stream.synchronize()
    left = [each for each in ProcessCheckpoint().obstacles() if "other processes" in each]
    if left:
        pytest.skip(f"needs a process without shared memory of earlier tests: {left}")


@pytest.fixture
def target(peer: Peer) -> Iterator[tuple[int, Ask]]:
    """A process to be saved, and a function that makes calls there."""
    if current().is_emulated:
        yield os.getpid(), lambda function, *args: function(*args)
        KEPT.clear()
        return
    if sys.platform != "linux" or cudadrv.driver_version() < (12, 8):
        pytest.skip("needs Linux and a driver of CUDA 12.8")
    yield peer.process.pid or 0, peer.ask
    peer.ask(KEPT.clear)


def make_array(count: int) -> None:
    stream = KEPT["stream"] = cudadrv.cuda_context_for(0).new_stream()
    KEPT["array"] = stream.to_device(np.arange(count, dtype=np.int32))
    stream.fill(KEPT["array"][3:5], 9)


def read_array() -> list[int]:
    found: list[int] = KEPT["stream"].to_host(KEPT["array"]).tolist()
    return found


def test_a_process_continues_where_it_was_saved(target: tuple[int, Ask]) -> None:
    pid, ask = target
    ask(make_array, 7)
    saved = ProcessCheckpoint(pid)
    assert saved.state() == cudadrv.checkpoint.ProcessState.RUNNING
    try:
        saved.lock(timeout_ms=30000)
        assert saved.state() == cudadrv.checkpoint.ProcessState.LOCKED
        saved.checkpoint()
    except NotSupportedError as error:
        pytest.skip(f"no checkpoints here: {error}")
    assert saved.state() == cudadrv.checkpoint.ProcessState.CHECKPOINTED
    saved.restore()
    assert saved.state() == cudadrv.checkpoint.ProcessState.LOCKED
    saved.unlock()
    assert saved.state() == cudadrv.checkpoint.ProcessState.RUNNING
    assert ask(read_array) == [0, 1, 2, 9, 9, 5, 6]


def test_steps_have_an_order(target: tuple[int, Ask]) -> None:
    pid, ask = target
    ask(make_array, 7)
    saved = ProcessCheckpoint(pid)
    for step in (saved.checkpoint, saved.restore, saved.unlock):
        with pytest.raises(CudaError, match=f"process {pid}"):
            step()
    assert saved.state() == cudadrv.checkpoint.ProcessState.RUNNING


def test_a_process_with_managed_memory_is_not_locked(stream: cudadrv.Stream) -> None:
    own = ProcessCheckpoint()
    assert own.pid == os.getpid()
    try:
        array = managed_empty(10, np.float32)
    except NotSupportedError:
        pytest.skip("the device has no managed memory")
    with pytest.raises(CheckpointRejectedError, match="1 arrays of managed memory"):
        own.lock()
    assert own.state() == cudadrv.checkpoint.ProcessState.RUNNING
    del array
    with MemoryPool(shareable=True):
        assert "1 pools or pieces of memory for other processes" in own.obstacles()
    before = own.obstacles()
    with stream.capture():
        (found,) = set(own.obstacles()) - set(before)
        assert found.endswith("captures")
    assert own.obstacles() == before


def test_wrong_processes_are_rejected() -> None:
    with pytest.raises(ValueError, match="ProcessCheckpoint: pid"):
        ProcessCheckpoint(0)
    with pytest.raises(CudaError, match="querying the state of process 2147483647"):
        ProcessCheckpoint(2**31 - 1).state()
    with pytest.raises(ValueError, match="timeout_ms"):
        ProcessCheckpoint().lock(timeout_ms=-1)
    wrong: Any = {"GPU-1": "GPU-2"}
    with pytest.raises((ArgumentTypeError, CudaError), match="a mapping of UUIDs"):
        ProcessCheckpoint().restore(wrong)


def test_an_older_driver_is_named() -> None:
    def missing(*_: object) -> None:
        raise DriverSymbolMissingError("cuCheckpointProcessGetState")

    with (
        replaced_calls(cuCheckpointProcessGetState=missing),
        pytest.raises(UnsupportedError, match=r"ProcessCheckpoint.state needs .* CUDA 12\.8"),
    ):
        ProcessCheckpoint().state()


def _restore_on_its_devices(process: ProcessCheckpoint) -> None:
    uuid = UUID(int=1)
    # cuda-bindings of CUDA 12, and 13.3.0
    older = not hasattr(getattr(driver, "CUcheckpointRestoreArgs", None), "gpuPairs")
    error, text = (
        (UnsupportedError, "devices needs cuda-bindings >=13.0,!=13.3.0")
        if older
        else (NotSupportedError, "on its own devices alone")
    )
    with pytest.raises(error, match=text):
        process.restore({uuid: UUID(int=2)})
    process.restore(None if older else {uuid: uuid})


def test_calls_wait_while_the_process_is_locked(stream: cudadrv.Stream) -> None:
    if not current().is_emulated:
        pytest.skip("a process that locks itself would wait for itself")
    own, array = ProcessCheckpoint(), stream.to_device(np.arange(3))
    found: list[list[int]] = []
    other = threading.Thread(target=lambda: found.append(stream.to_host(array).tolist()))
    own.lock()
    try:
        other.start()
        with pytest.raises(NotPermittedError, match="has locked the process"):
            stream.to_host(array)
        own.checkpoint()
        _restore_on_its_devices(own)
        assert not found
    finally:
        own.unlock()
    other.join(SECONDS)
    assert found == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("checkpoint", "cuCheckpointProcessCheckpoint"),
        ("restore", "cuCheckpointProcessRestore"),
        ("unlock", "cuCheckpointProcessUnlock"),
        ("restore_thread_id", "cuCheckpointProcessGetRestoreThreadId"),
    ],
)
def test_each_step_is_one_call_that_an_older_driver_lacks(step: str, call: str) -> None:
    def missing(*_: object) -> None:
        raise DriverSymbolMissingError(call)

    asked: list[int] = []
    with (
        replaced_calls(cuCheckpointProcessGetState=asked.append, **{call: missing}),
        pytest.raises(UnsupportedError, match=rf"ProcessCheckpoint.{step} needs .* CUDA 12\.8"),
    ):
        getattr(ProcessCheckpoint(), step)()
    assert asked == []
