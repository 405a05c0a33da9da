"""The numbers of native threads, and the driver's state that belongs to them."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudadrv.driver._api import CUcontext
from cudadrv.emulator import Emulator
from cudadrv.emulator.native_thread import ThreadStates, native_threads, thread_number
from tests.patience import wait_until

from .calls import ok

needs_numbers = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has semaphores that tell the end of a thread"
)


def in_a_thread(act: Callable[[], object]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@needs_numbers
def test_no_later_thread_has_the_number_of_an_ended_one() -> None:
    numbers: list[int] = []
    for _ in range(50):
        in_a_thread(lambda: numbers.append(thread_number()))
    with ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)
        numbers += pool.map(lambda _: (barrier.wait(), thread_number())[1], range(8))
    assert len(set(numbers)) == 58
    assert thread_number() == thread_number()
    assert thread_number() not in numbers


@needs_numbers
def test_an_ended_thread_is_not_alive_and_its_state_is_dropped() -> None:
    threads = native_threads()
    assert threads is not None
    states, numbers = ThreadStates(), []

    class Value:
        """A value of a state."""

    kept = Value()
    value = weakref.ref(kept)

    def act() -> None:
        nonlocal kept
        states.restore({"value": kept})
        del kept
        numbers.append(thread_number())
        assert thread_number() in threads.alive()

    in_a_thread(act)
    # A thread is joined a moment before the system ends it.
    wait_until(lambda: numbers[0] not in threads.alive())
    states.restore({})
    gc.collect()
    assert value() is None


def test_a_thread_of_python_has_its_context_until_its_end() -> None:
    api = Emulator(1)
    ok(api.cuInit(0))
    context = ok(api.cuDevicePrimaryCtxRetain(ok(api.cuDeviceGet(0))))
    found: list[int] = []

    def current() -> int:
        got: CUcontext = ok(api.cuCtxGetCurrent())
        return int(got)

    def act() -> None:
        found.append(current())
        ok(api.cuCtxSetCurrent(context))
        found.append(current())

    for _ in range(3):
        in_a_thread(act)
    assert found == [0, int(context)] * 3
