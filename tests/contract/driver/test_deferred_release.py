"""What is dropped later: when, by whom, and what of it an unrelated call hears."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver import deferred_release
from cudadrv.driver._api import CUresult, CUstreamCaptureMode
from cudadrv.driver.deferred_release import defer_release, release_when, run_deferred
from cudadrv.driver.handle import FREE_THREADED
from cudadrv.errors import InvalidValueError, OutOfMemoryError
from tests.noted_calls import calls_of
from tests.several_threads import in_thread_of_c

BUSY: Final = CUresult.CUDA_ERROR_NOT_READY
INVALID: Final = CUresult.CUDA_ERROR_INVALID_VALUE


class Thing:
    """What is dropped."""


class TheirMemory:
    """Memory of another library, by the CUDA array interface."""

    def __init__(self, array: cudadrv.DeviceArray[np.int32]) -> None:
        self._array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    run_deferred()
    with emulator.session() as machine:
        yield machine
    assert not deferred_release.waiting_count()


def borrowed(stream: cudadrv.Stream) -> tuple[object, weakref.ref[TheirMemory]]:
    """An array over memory of an owner that nothing else keeps, and whether that is there."""
    owner = TheirMemory(stream.zeros(4, np.int32))
    stream.synchronize()
    return stream.import_array(owner), weakref.ref(owner)


def test_an_owner_is_parked_while_a_stream_works_on_its_memory(machine: emulator.Emulator) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    taken, owner = borrowed(stream)
    del taken
    assert owner() is None  # at once, as nothing was under way
    taken, owner = borrowed(stream)
    with machine.fail("cuEventQuery", times=None, with_=BUSY) as asked:
        with machine.fail("cuStreamQuery", with_=BUSY):
            del taken
        assert owner() is not None
        for turn in range(1, 4):
            cudadrv.memory.pool_info(stream.context.device)  # a call that has nothing to do with it
            assert asked.calls == turn
            assert owner() is not None
    run_deferred()
    assert owner() is None


def test_an_owner_whose_work_failed_goes_and_no_other_call_hears_of_it(
    machine: emulator.Emulator,
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    taken, owner = borrowed(stream)
    with machine.fail("cuStreamQuery", with_=BUSY):
        del taken
    with machine.fail("cuEventQuery", with_=INVALID):
        run_deferred()
    assert owner() is None


def test_what_is_put_off_is_dropped_once_and_only_where_it_is_requested(
    machine: emulator.Emulator,
) -> None:
    dropped: list[int] = []
    there = [Thing() for _ in range(5)]
    for thing in there:
        weakref.finalize(thing, lambda: dropped.append(threading.get_ident()))
    cells: list[list[object]] = [[thing] for thing in there]
    del thing
    there.clear()

    def put() -> None:
        for cell in cells:
            defer_release(cell)

    thread = threading.Thread(target=put)
    thread.start()
    thread.join()
    assert dropped == []
    run_deferred()
    assert dropped == 5 * [threading.get_ident()]
    assert cells == [[]] * 5  # whoever put them there may hold the lists


def test_what_is_parked_waits_for_its_own_condition_alone(machine: emulator.Emulator) -> None:
    done = [False, True, False]
    things = [Thing() for _ in done]
    there = [weakref.ref(thing) for thing in things]
    for number, thing in enumerate(things):
        release_when(lambda number=number: done[number], [thing])  # type: ignore[misc]
    del thing
    things.clear()
    run_deferred()
    assert [thing() is not None for thing in there] == [True, False, True]
    done[:] = [True, True, True]
    run_deferred()
    assert [thing() for thing in there] == [None] * 3


def test_dropping_may_come_back_in_the_middle(machine: emulator.Emulator) -> None:
    order: list[str] = []

    class Busy(Thing):
        def __del__(self) -> None:
            order.append("first")
            run_deferred()
            order.append("last")

    inner = Thing()
    weakref.finalize(inner, order.append, "inner")
    defer_release([Busy()])
    defer_release([inner])
    del inner
    run_deferred()
    assert order == ["first", "inner", "last"]


def test_memory_in_an_unreported_capture_is_found_by_a_query(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(str(args.exc_value)))
    context = cudadrv.cuda_context_for(0)
    code, theirs = machine.cuStreamCreate(1)
    assert not code
    ours = context.external_stream(theirs)
    used = cudadrv.memory.pool_info(context.device).used
    relaxed = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    for parked in (1, 2):
        x = ours.zeros(4, np.int32)
        assert not machine.cuStreamBeginCapture(theirs, relaxed)[0]
        del x
        assert deferred_release.waiting_count() == parked
        assert cudadrv.memory.pool_info(context.device).used > used
        assert not machine.cuStreamEndCapture(theirs)[0]
    with machine.fail("cuStreamIsCapturing", with_=INVALID), pytest.raises(InvalidValueError):
        ours._handle.is_capturing()
    assert cudadrv.memory.pool_info(context.device).used == used
    assert told == []


@pytest.mark.skipif(
    FREE_THREADED, reason="needs the interpreter lock: without it, the thread that made it frees it"
)
def test_memory_that_a_thread_of_the_driver_left_is_freed_when_the_device_is_full(
    machine: emulator.Emulator,
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    stream.call_on_host(print)
    stream.synchronize()
    held = [stream.zeros(3 << 20, np.uint8)]
    with calls_of("cuMemFreeAsync") as freed:
        in_thread_of_c(held.clear)
        machine.fail("cuMemAllocAsync", with_=CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        assert stream.empty(4 << 20, np.uint8).nbytes == 4 << 20
        assert len(freed) >= 1
    with (
        machine.fail("cuMemAllocAsync", with_=CUresult.CUDA_ERROR_OUT_OF_MEMORY) as tried,
        pytest.raises(OutOfMemoryError),
    ):
        stream.empty(5 << 20, np.uint8)
    assert tried.calls == 1  # there was nothing to free
