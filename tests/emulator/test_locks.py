"""The emulator's locks: no two at once, none lost, and finalizers that come in between."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_uint64
from typing import Any, Final

import numpy as np
import pytest

from cudadrv.driver._api import CUcontext, CUdeviceptr, CUresult, CUstream
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.timeline.queues import Queues
from cudadrv.emulator.timeline.timeline import _Changes
from ptx.emulate.exec import collection
from tests.patience import SECONDS
from tests.rows import all_rows
from tests.several_threads import all_at_once

from .calls import LEGACY, Parameters, code, functions, launch, load, ok
from .handle_calls import CALLS
from .handles import KINDS, RELAXED, Call
from .kernels import INCREMENT

MIB: Final = 1 << 20


@pytest.fixture
def context(emulator: Emulator) -> Iterator[CUcontext]:
    context = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    yield context
    while int(ok(emulator.cuCtxGetCurrent())):
        ok(emulator.cuCtxPopCurrent())


class Watched:
    """A lock that notes which locks a thread holds when it takes this one."""

    def __init__(self, name: str, held: list[str], nested: set[tuple[str, str]]) -> None:
        self._lock = threading.RLock()
        self._name = name
        self._held = held
        self._nested = nested

    def __enter__(self) -> None:
        self._nested.update((other, self._name) for other in self._held if other != self._name)
        self._lock.acquire()
        self._held.append(self._name)

    def __exit__(self, *_: object) -> None:
        self._held.pop()
        self._lock.release()


def watch(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The pairs of locks that are taken one in the other from now on."""
    held: list[str] = []
    nested: set[tuple[str, str]] = set()
    state, lock = state_of(emulator), Watched("emulator", held, nested)
    monkeypatch.setattr(state, "lock", lock)
    for part in (state.process, state.captures, state.memory, state.operations):
        monkeypatch.setattr(part, "_lock", lock)
    for device in state.devices.visible:
        monkeypatch.setattr(device, "lock", Watched(f"device {device.ordinal}", held, nested))
    return nested


@all_rows
@pytest.mark.parametrize(("kind", "use"), CALLS.values(), ids=[" ".join(names) for names in CALLS])
def test_no_call_acquires_a_lock_while_it_holds_another(
    monkeypatch: pytest.MonkeyPatch, kind: str, use: Call
) -> None:
    """So no order of two locks can be wrong."""
    emulator = Emulator(2)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    nested = watch(emulator, monkeypatch)
    handle = KINDS[kind].make(emulator)
    use(emulator, handle)
    KINDS[kind].destroy(emulator, handle)
    assert not nested


def test_contexts_captures_and_graphs_hold_one_lock_at_a_time(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = watch(emulator, monkeypatch)
    device = ok(emulator.cuDeviceGet(0))
    context = ok(emulator.cuDevicePrimaryCtxRetain(device))
    ok(emulator.cuCtxPushCurrent(context))
    load(emulator, INCREMENT)
    ok(emulator.cuMemAlloc(64))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    for leave in (emulator.cuStreamEndCapture, emulator.cuStreamDestroy):
        ok(emulator.cuStreamBeginCapture(stream, RELAXED))
        memory = ok(emulator.cuMemAllocAsync(64, stream))
        ok(emulator.cuMemFreeAsync(memory, stream))
        left = leave(stream)
        if len(left) == 2:
            executable = ok(emulator.cuGraphInstantiate(left[1], 0))
            ok(emulator.cuGraphDestroy(left[1]))
            ok(emulator.cuGraphLaunch(executable, LEGACY))
            ok(emulator.cuGraphExecDestroy(executable))
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert not nested


def test_only_a_copy_between_devices_holds_two_locks_in_the_order_of_ordinals(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ok(emulator.cuMemAlloc(64))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(1))))
    there = ok(emulator.cuMemAlloc(64))
    nested = watch(emulator, monkeypatch)
    for to, of in ((here, there), (there, here)):
        ok(emulator.cuMemcpyDtoDAsync(to, of, 64, LEGACY))
        assert nested == {("device 0", "device 1")}


def test_an_exception_in_a_copy_loses_no_lock(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, host = ok(emulator.cuMemAlloc(64)), np.zeros(64, np.uint8)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "memmove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            emulator.cuMemcpyHtoDAsync(memory, host.ctypes.data, 64, LEGACY)
    found: list[int] = []

    def work() -> None:
        ok(emulator.cuCtxSetCurrent(context))
        found.append(code(emulator.cuMemFree(memory)))

    other = threading.Thread(target=work, daemon=True)
    other.start()
    other.join(SECONDS)
    assert found == [0]


def freeing(emulator: Emulator, memory: list[CUdeviceptr], work: Callable[..., object]) -> object:
    """`work`, in the middle of which a finalizer frees all of `memory`."""

    def with_finalizers(*args: object, **options: object) -> object:
        while memory:
            assert code(emulator.cuMemFreeAsync(memory.pop(), LEGACY)) == 0
        return work(*args, **options)

    return with_finalizers


def test_a_finalizer_may_free_memory_while_memory_is_allocated(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = state_of(emulator).devices.visible[0]
    dead = [ok(emulator.cuMemAllocAsync(MIB, LEGACY)) for _ in range(3)]
    monkeypatch.setattr(device.memory, "allocate", freeing(emulator, dead, device.memory.allocate))
    kept = ok(emulator.cuMemAllocAsync(MIB, LEGACY))
    assert device.pool.used == MIB
    assert device.pool.rounded == device.memory.used_bytes
    ok(emulator.cuMemFreeAsync(kept, LEGACY))
    ok(emulator.cuCtxSynchronize())
    free, total = ok(emulator.cuMemGetInfo())
    assert free == total


def test_a_finalizer_may_free_memory_while_a_kernel_runs(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is given back after the kernel."""
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    device = state_of(emulator).devices.visible[0]
    memory = ok(emulator.cuMemAlloc(4))
    ok(emulator.cuMemsetD32Async(memory, 0, 1, LEGACY))
    dead = [ok(emulator.cuMemAllocAsync(MIB, LEGACY))]
    before = device.memory.used_bytes
    kernel = state_of(emulator).handles.functions[int(increment)].kernel()
    seen: list[int] = []

    def launched(*args: object, **options: object) -> None:
        freeing(emulator, dead, lambda: None)()  # type: ignore[operator]
        seen.append(device.memory.used_bytes)

    monkeypatch.setattr(type(kernel), "launch", launched)
    ok(launch(emulator, increment, Parameters(c_uint64(int(memory)))))
    assert seen == [before]
    assert device.memory.used_bytes < before


def in_two_threads(context: CUcontext, emulator: Emulator, *works: Callable[[], object]) -> None:
    """Do each in a thread of its own, with the context current; fail if one waits forever."""

    def work(do: Callable[[], object]) -> None:
        ok(emulator.cuCtxSetCurrent(context))
        do()

    threads = [threading.Thread(target=work, args=[each], daemon=True) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def meeting() -> Callable[[], None]:
    """A function that waits a moment for the other thread, the first time that each calls it."""
    both, met = threading.Barrier(2), threading.local()

    def meet() -> None:
        if not hasattr(met, "done"):
            met.done = True
            with suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # one of them waits for the other's lock

    return meet


def test_finalizers_may_come_while_two_threads_hold_locks(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One changes the queues, the other one the emulator's tables; each finalizer uses both.
    stream, event = ok(emulator.cuStreamCreateWithPriority(1, 0)), ok(emulator.cuEventCreate(0))
    meet, add, called = meeting(), Queues.add, threading.local()

    def with_finalizer(queues: Queues, *given: Any) -> None:
        meet()
        if not hasattr(called, "once"):  # the wait itself is added while the event is pending
            called.once = True
            emulator.cuStreamWaitEvent(stream, event, 0)
        add(queues, *given)

    def in_a_call() -> None:
        state_of(emulator).thread.within_a_call(lambda: ok(emulator.cuEventRecord(event, stream)))

    def in_the_tables() -> None:
        with state_of(emulator).lock:
            meet()
            in_a_call()

    monkeypatch.setattr(Queues, "add", with_finalizer)
    in_two_threads(context, emulator, in_a_call, in_the_tables)


def test_a_finalizer_may_come_while_a_pause_of_the_collector_begins(
    emulator: Emulator, context: CUcontext, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, event = ok(emulator.cuStreamCreateWithPriority(1, 0)), ok(emulator.cuEventCreate(0))
    meet, forget = meeting(), _Changes.forget

    def in_a_call() -> None:
        state_of(emulator).thread.within_a_call(lambda: ok(emulator.cuEventRecord(event, stream)))

    def in_a_pause() -> None:
        with collection._lock:
            meet()
            in_a_call()

    def with_a_moment(changes: _Changes) -> None:
        meet()  # the timeline's lock is held
        forget(changes)

    monkeypatch.setattr(_Changes, "forget", with_a_moment)
    in_two_threads(context, emulator, in_a_call, in_a_pause)


@pytest.mark.slow
def test_one_of_two_threads_destroys(emulator: Emulator, context: CUcontext) -> None:
    for name in ("stream", "event", "module", "graph", "executable", "array", "pool memory"):
        for _ in range(20):
            handle = KINDS[name].make(emulator)
            found: list[CUresult] = []
            start = threading.Barrier(4)

            def work(
                name: str = name,
                handle: CUstream = handle,
                start: threading.Barrier = start,
                found: list[CUresult] = found,
            ) -> None:
                ok(emulator.cuCtxSetCurrent(context))
                start.wait()
                found.append(KINDS[name].destroy(emulator, handle)[0])

            all_at_once([work] * 4)
            assert sorted(map(int, found)) == [0, *[KINDS[name].dead] * 3], name
