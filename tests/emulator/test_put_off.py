"""What finalizers give back in the middle of a call is put off until that has ended."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Literal

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver._api import CUresult
from cudadrv.emulator import thread as calling_thread
from cudadrv.errors import CudaError

FAILING = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry fail() { trap; }
"""


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


@pytest.mark.slow
def test_thousands_of_releases_in_one_call_are_all_made(machine: emulator.Emulator) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    buffers = [stream.alloc(64) for _ in range(5000)]
    with machine.on_call("cuStreamQuery", buffers.clear):
        stream.is_done()
    assert not buffers
    assert not cudadrv.memory.pool_info(stream.context.device).used


def test_releases_are_made_after_a_call_that_an_interrupt_broke_off(
    machine: emulator.Emulator,
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    buffer = stream.alloc(64)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with machine.on_call("cuStreamQuery", interrupt), pytest.raises(KeyboardInterrupt):
        stream.is_done()
    buffer.close()
    assert not cudadrv.memory.pool_info(stream.context.device).used


def test_a_finalizer_may_come_while_a_thread_makes_its_first_call(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    buffers = [stream.alloc(64)]
    done: list[bool] = []

    def collect() -> deque[object]:
        buffers.clear()
        return deque()

    def first_call() -> None:
        done.append(stream.is_done())

    initial = {**calling_thread._INITIAL, "put_off": collect}
    monkeypatch.setattr(calling_thread, "_INITIAL", initial)
    thread = threading.Thread(target=first_call)
    thread.start()
    thread.join()
    assert done == [True]
    assert not buffers
    assert not cudadrv.memory.pool_info(stream.context.device).used


def test_what_broke_a_context_is_reported_once() -> None:
    with emulator.session(order="late") as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        module = context.load_module(FAILING)
        module.kernel("fail").launch(stream, cudadrv.LaunchConfig(1, 1))
        answers: list[object] = []

        def unload() -> None:  # as a finalizer would in the middle of it
            answers.append(machine.cuModuleUnload(module.handle))

        with machine.on_call("cuStreamSynchronize", unload), pytest.raises(CudaError):
            stream.synchronize()
        # It was put off, and nothing came to sys.unraisablehook, which would fail the test.
        assert answers == [(CUresult.CUDA_SUCCESS,)]


def test_a_fault_that_was_reported_to_another_thread_is_not_reported_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with emulator.session(order="late") as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        module = context.load_module(FAILING)
        module.kernel("fail").launch(stream, cudadrv.LaunchConfig(1, 1))
        told: list[BaseException | None] = []

        def wait() -> None:
            with pytest.raises(CudaError) as failed:
                stream.synchronize()
            told.append(failed.value)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        assert len(told) == 1
        answers: list[object] = []

        def unload() -> None:  # as a finalizer would in the middle of it
            machine.cuCtxPushCurrent(context.handle)
            answers.append(machine.cuModuleUnload(module.handle))
            machine.cuCtxPopCurrent()

        machine.on_call("cuDriverGetVersion", unload)
        unraisable: list[object] = []
        monkeypatch.setattr("sys.unraisablehook", unraisable.append)
        assert machine.cuDriverGetVersion()[0] == CUresult.CUDA_SUCCESS
        assert answers == [(CUresult.CUDA_SUCCESS,)]
        assert not unraisable


def test_memory_is_freed_after_another_thread_has_destroyed_its_stream(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = cudadrv.cuda_context_for(0)
    used = cudadrv.memory.pool_info(context.device).used
    waiting = context.new_stream()
    code, stream = machine.cuStreamCreate(0)
    assert code == CUresult.CUDA_SUCCESS
    code, address = machine.cuMemAllocAsync(64, stream)
    assert code == CUresult.CUDA_SUCCESS
    answers: list[object] = []

    def destroy() -> None:
        machine.cuCtxPushCurrent(context.handle)
        answers.append(machine.cuStreamDestroy(stream))
        machine.cuCtxPopCurrent()

    def free() -> None:  # as a finalizer would in the middle of it
        answers.append(machine.cuMemFreeAsync(address, stream))
        thread = threading.Thread(target=destroy)
        thread.start()
        thread.join()

    machine.on_call("cuStreamQuery", free)
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    waiting.is_done()
    assert answers == [(CUresult.CUDA_SUCCESS,)] * 2
    assert not unraisable
    assert cudadrv.memory.pool_info(context.device).used == used


@pytest.mark.parametrize("order", ["immediate", "late"])
def test_a_context_that_another_thread_destroys_ends_deferred_releases(
    order: Literal["immediate", "late"],
) -> None:
    with emulator.session(order=order) as machine:
        device = cudadrv.list_devices()[0]
        stream = cudadrv.cuda_context_for(0).new_stream()
        before = machine.live_objects()["context"]
        contexts = [cudadrv.Context.create(device)]
        streams = [contexts[0].new_stream()]
        kept = [
            contexts[0].load_module(FAILING),
            streams[0].record(),
            streams[0].alloc(64),
            contexts[0].default_stream.alloc(64),
        ]

        def drop() -> None:  # as a collection in the middle of it
            kept.clear()
            streams.clear()
            thread = threading.Thread(target=contexts.pop().close)
            thread.start()
            thread.join()

        with machine.on_call("cuStreamQuery", drop) as planned:
            stream.is_done()
        assert planned.hits == 1
        # Nothing came to sys.unraisablehook, which would fail the test.
        assert not cudadrv.memory.pool_info(device).used
        assert machine.live_objects()["context"] == before
