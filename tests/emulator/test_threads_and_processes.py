from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_uint64

import pytest

from cudadrv.driver._api import CUcontext, CUdevice_attribute, CUdeviceptr, CUresult
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.node_kind import NodeKind
from ptx.emulate.exec.launch import Launch
from ptx.emulate.memory.chunk_accesses import AccessesOfChunks
from ptx.emulate.threads.limits import Limits
from tests.patience import SECONDS
from tests.several_threads import running

from .calls import LEGACY, Parameters, code, download, functions, launch, load, ok
from .kernels import INCREMENT, OWN_ELEMENT


def test_launches_of_one_device_do_not_mix() -> None:
    """A read, an addition and a write: threads that mixed would lose increments."""
    emulator = Emulator()
    ok(emulator.cuInit(0))
    context = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    memory = ok(emulator.cuMemAlloc(4))
    ok(emulator.cuMemsetD8Async(memory, 0, 4, LEGACY))

    def work() -> None:
        ok(emulator.cuCtxSetCurrent(context))
        for _ in range(50):
            ok(launch(emulator, increment, Parameters(c_uint64(int(memory)))))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert download(emulator, memory, 1).tolist() == [200]


class Garbage:
    """Frees memory of the device when a collection finds it."""

    def __init__(self, emulator: Emulator, memory: CUdeviceptr) -> None:
        self._self = self
        self._emulator = emulator
        self._memory = memory

    def __del__(self) -> None:
        self._emulator.cuMemFree(self._memory)


def test_a_collection_during_a_launch_in_several_threads_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finalizer in a thread of the launch would wait for the device, and the device for it."""
    emulator = Emulator(limits=Limits(threads=3, chunk_threads=64))
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (own_element,) = functions(emulator, load(emulator, OWN_ELEMENT), "own_element")
    memory = ok(emulator.cuMemAlloc(4 * 64 * 40))
    unused = [ok(emulator.cuMemAlloc(4)) for _ in range(20)]
    caller, former = threading.current_thread(), Launch.run_some

    def run_some(self: Launch, size: int, turn: int, accesses: AccessesOfChunks) -> None:
        while threading.current_thread() is not caller and unused:
            Garbage(emulator, unused.pop())
        former(self, size, turn, accesses)

    monkeypatch.setattr(Launch, "run_some", run_some)
    before, threshold = threading.active_count(), gc.get_threshold()
    gc.set_threshold(1)
    try:
        parameters = Parameters(c_uint64(int(memory)))
        ok(launch(emulator, own_element, parameters, grid=(40, 1, 1), block=(64, 1, 1)))
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert not unused
    assert download(emulator, memory, 64 * 40).tolist() == list(range(64 * 40))
    assert threading.active_count() == before


def test_devices_work_in_threads_of_their_own() -> None:
    emulator = Emulator(4)
    ok(emulator.cuInit(0))

    def work(ordinal: int) -> int:
        ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(ordinal))))
        (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
        memory = ok(emulator.cuMemAllocAsync(4, LEGACY))
        ok(emulator.cuMemsetD32Async(memory, ordinal, 1, LEGACY))
        for _ in range(20):
            ok(launch(emulator, increment, Parameters(c_uint64(int(memory)))))
        return int(download(emulator, memory, 1)[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [20, 21, 22, 23]


def test_copies_in_both_directions_do_not_lock_each_other() -> None:
    emulator = Emulator(2)
    ok(emulator.cuInit(0))
    contexts, memories = [], []
    for ordinal in range(2):
        contexts.append(ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(ordinal)))))
        memories.append(ok(emulator.cuMemAlloc(1 << 16)))

    def work(own: int) -> None:
        ok(emulator.cuCtxSetCurrent(contexts[own]))
        for _ in range(200):
            ok(
                emulator.cuMemcpyPeerAsync(
                    memories[own],
                    contexts[own],
                    memories[1 - own],
                    contexts[1 - own],
                    1 << 16,
                    LEGACY,
                )
            )

    threads = [threading.Thread(target=work, args=(own,), daemon=True) for own in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_primary_contexts_are_retained_by_many_threads_at_once() -> None:
    emulator = Emulator()
    ok(emulator.cuInit(0))
    device = ok(emulator.cuDeviceGet(0))
    with ThreadPoolExecutor(8) as pool:
        handles = list(
            pool.map(lambda _: int(ok(emulator.cuDevicePrimaryCtxRetain(device))), range(64))
        )
    assert len(set(handles)) == 1
    for _ in range(64):
        ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert code(emulator.cuDevicePrimaryCtxRelease(device)) == 201


def test_a_failure_is_reported_to_its_own_thread(emulator: Emulator) -> None:
    code(emulator.cuDeviceGet(99))
    seen: list[bytes | None] = []
    thread = threading.Thread(
        target=lambda: seen.append(
            ok(emulator.cuGetErrorString(CUresult.CUDA_ERROR_INVALID_DEVICE))
        )
    )
    thread.start()
    thread.join()
    assert seen == [b"invalid device ordinal"]


def _in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` holds in a forked child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking is what is tested
        child = os.fork()
    if child == 0:
        held = False
        try:
            held = work()
        finally:
            os._exit(0 if held else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_is_not_initialised(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(0))
    context: CUcontext = ok(emulator.cuCtxCreate(None, 0, device))
    stream = ok(emulator.cuStreamCreateWithPriority(0, 0))
    memory = ok(emulator.cuMemAlloc(8))
    attribute = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE

    def work() -> bool:
        refused = (
            emulator.cuInit(0), emulator.cuDeviceGetCount(), emulator.cuCtxGetCurrent(),
            emulator.cuMemAlloc(4), emulator.cuMemAllocAsync(4, stream), emulator.cuMemFree(memory),
            emulator.cuDeviceGetAttribute(attribute, device), emulator.cuCtxDestroy(context),
        )  # fmt: skip
        version = emulator.cuDriverGetVersion()
        return all(int(result[0]) == 3 for result in refused) and int(version[0]) == 0

    assert _in_child(work)
    assert code(emulator.cuMemFree(memory)) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_may_have_an_emulator_of_its_own(emulator: Emulator) -> None:
    def work() -> bool:
        own = Emulator()
        return int(own.cuInit(0)[0]) == 0 and int(own.cuDeviceGetCount()[1]) == 1

    assert _in_child(work)


def test_a_free_waits_for_work_of_its_stream_that_another_thread_runs() -> None:
    """Also under "immediate", where the work was queued as something else was in the queue."""
    emulator = Emulator()
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    memory = ok(emulator.cuMemAllocAsync(1 << 10, stream))
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait()

    queued = state_of(emulator).handles.stream(stream)
    with running([lambda: state_of(emulator).operations.queue.submit(queued, NodeKind.SET, work)]):
        begun.wait()
        ok(emulator.cuMemFreeAsync(memory, stream))
        is_there = state_of(emulator).devices.visible[0].memory.find(int(memory)) is not None
        may_end.set()
    assert is_there
    ok(emulator.cuStreamSynchronize(stream))
    assert state_of(emulator).devices.visible[0].memory.find(int(memory)) is None
