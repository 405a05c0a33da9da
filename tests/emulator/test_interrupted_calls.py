"""An exception that comes from outside into a call of the emulator loses no lock of it.

CPython delivers one where a function of Python begins and where a call of C has returned; and a
RecursionError comes at any call.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from ctypes import c_uint64
from types import FrameType
from typing import Final

import numpy as np
import pytest

from cudadrv.driver._api import CUcontext, CUdeviceptr, CUfunction
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of
from tests.patience import SECONDS

from .calls import LEGACY, Parameters, functions, launch, load, ok
from .handles import RELAXED
from .kernels import INCREMENT

NBYTES: Final = 64


class Planted(BaseException):
    """What comes from outside."""


class Program:
    """Calls that take the locks of the emulator and of two devices."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        ok(emulator.cuCtxSetCurrent(self.context_of(1)))
        self.there: CUdeviceptr = ok(emulator.cuMemAlloc(NBYTES))
        ok(emulator.cuCtxSetCurrent(self.context_of(0)))
        self.here: CUdeviceptr = ok(emulator.cuMemAlloc(NBYTES))
        self.increment: CUfunction
        (self.increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
        self.host = np.zeros(NBYTES, np.uint8)
        self.locks = [
            state_of(emulator).lock,
            *(device.lock for device in state_of(emulator).devices.visible),
        ]

    def context_of(self, ordinal: int) -> CUcontext:
        return ok(self.emulator.cuDevicePrimaryCtxRetain(ok(self.emulator.cuDeviceGet(ordinal))))

    def launch(self) -> None:
        launch(self.emulator, self.increment, Parameters(c_uint64(int(self.here))))

    def copy(self) -> None:
        api = self.emulator
        api.cuMemcpyHtoDAsync(self.here, self.host.ctypes.data, NBYTES, LEGACY)
        api.cuMemcpyDtoDAsync(self.there, self.here, NBYTES, LEGACY)

    def allocate(self) -> None:
        api = self.emulator
        memory = api.cuMemAllocAsync(NBYTES, LEGACY)[1]
        api.cuMemsetD8Async(memory, 1, NBYTES, LEGACY)
        api.cuMemFreeAsync(memory, LEGACY)
        api.cuMemFreeHost(api.cuMemHostAlloc(NBYTES, 0)[1])

    def capture(self) -> None:
        api = self.emulator
        stream = api.cuStreamCreateWithPriority(1, 0)[1]
        api.cuStreamBeginCapture(stream, RELAXED)
        api.cuMemAllocAsync(NBYTES, stream)
        api.cuGraphDestroy(api.cuStreamEndCapture(stream)[1])
        api.cuStreamDestroy(stream)

    def synchronize(self) -> None:
        self.emulator.cuCtxSynchronize()

    @property
    def parts(self) -> list[Callable[[], None]]:
        return [self.launch, self.copy, self.allocate, self.capture, self.synchronize]


def in_a_thread(break_off: Callable[[Program], bool]) -> bool:
    """Run a program that is broken off; gives whether it was. Every lock must be free then."""
    api = Emulator(2)
    ok(api.cuInit(0))
    program = Program(api)
    broken: list[bool] = []

    def work() -> None:
        ok(api.cuCtxSetCurrent(program.context_of(0)))
        broken.append(break_off(program))
        assert state_of(api).thread.depth == 0, "later calls would be put off for ever"

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(SECONDS)
    for lock in program.locks:
        assert lock.acquire(timeout=SECONDS)
        lock.release()
    return broken[0]


def planting(number: int) -> Callable[[FrameType, str, object], None]:
    """A profile function that raises at the place of this number.

    Not where ``with lock:`` has just taken the lock: from CPython 3.14 on that is a call of its
    own, and an exception there loses the lock in any program.
    """
    places = itertools.count()

    def profile(frame: FrameType, event: str, called: object) -> None:
        is_ours = "/emulat" in frame.f_code.co_filename
        is_entered = event == "c_return" and getattr(called, "__name__", "") == "__enter__"
        if not is_ours or is_entered:
            return
        if event in ("call", "c_return") and next(places) == number:
            sys.setprofile(None)
            raise Planted

    return profile


@pytest.mark.slow
def test_an_exception_wherever_one_may_come_loses_no_lock() -> None:
    for number in itertools.count(step=3):  # a third of the places, in 3 s

        def plant(program: Program, number: int = number) -> bool:
            gc.disable()  # what other tests have left would take the exception in a finalizer
            sys.setprofile(planting(number))
            try:
                for part in program.parts:
                    part()
            except Planted:
                return True
            finally:
                sys.setprofile(None)
                gc.enable()
            return False

        if not in_a_thread(plant):
            break
    assert number > 500


def test_too_deep_a_recursion_at_any_call_loses_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    # Finalizers fail as well so deep in the stack, and pytest's hook would fail there in turn.
    monkeypatch.setattr(sys, "unraisablehook", deque(maxlen=0).append)
    limit = sys.getrecursionlimit()
    for spare in range(3, 300):

        def crowd(program: Program, spare: int = spare) -> bool:
            def descend(levels: int, part: Callable[[], None]) -> None:
                if levels:
                    descend(levels - 1, part)
                else:
                    part()

            depth, broken = len(list(_frames())), False
            for part in program.parts:
                try:
                    descend(limit - depth - spare, part)
                except Exception:  # some turn a RecursionError into their own, as ctypes does
                    broken = True
            return broken

        if not in_a_thread(crowd):
            break
    assert spare > 10


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back
