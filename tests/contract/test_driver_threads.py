"""Threads of the driver, which call functions of ours, and in which nothing may call the driver.

Python did not start such a thread, and a garbage collection may begin in it. So these tests drop
objects in a thread that the C library starts.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import Event
from cudadrv.driver.deferred_release import callbacks, is_driver_thread
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.driver_selection import current
from cudadrv.driver.handle import FREE_THREADED
from cudadrv.texture import Texture
from tests.several_threads import in_thread_of_c

from .conftest import compile_module


class _Watched:
    """The functions of a driver, which note their names and the threads that call them."""

    def __init__(self, api: DriverApi) -> None:
        self.api = api
        self.calls: list[tuple[str, int]] = []

    # Any: the functions have no signature in common.
    def __getattr__(self, name: str) -> Any:
        function = getattr(self.api, name)
        if not name.startswith("cu"):
            return function

        def call(*args: Any) -> Any:
            self.calls.append((name, threading.get_ident()))
            return function(*args)

        return call


@contextmanager
def watched() -> Iterator[list[tuple[str, int]]]:
    driver = current()
    former = driver.api
    noted = _Watched(former)
    driver.api = cast(DriverApi, noted)
    try:
        yield noted.calls
    finally:
        driver.api = former


@pytest.fixture(autouse=True)
def expected(stream: cudadrv.Stream) -> None:
    stream.call_on_host(lambda: None)
    stream.synchronize()


MAKERS: dict[str, tuple[str, Callable[[cudadrv.Stream], object]]] = {
    "stream": ("cuStreamDestroy", lambda stream: stream.context.new_stream()),
    "event": ("cuEventDestroy", lambda stream: Event(stream.context)),
    "array": ("cuMemFreeAsync", lambda stream: stream.zeros(3 << 20, np.uint8)),
    "texture": ("cuTexObjectDestroy", lambda stream: Texture(stream.zeros(64, np.float32))),
    "module": (
        "cuModuleUnload",
        lambda stream: compile_module(stream.context, 'extern "C" __global__ void f() {}'),
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("by_collection", [False, True])
def test_an_object_that_goes_there_is_destroyed_by_a_later_call(
    stream: cudadrv.Stream, kind: str, by_collection: bool
) -> None:
    destroy, make = MAKERS[kind]
    stream.synchronize()
    with watched() as calls:
        held: list[object] = [make(stream)]
        if by_collection:
            cycle: list[object] = [held]
            held.append(cycle)
            del held, cycle
        idents: list[int] = []

        def drop() -> None:
            idents.append(threading.get_ident())
            if by_collection:
                gc.collect()
            else:
                held.clear()

        del calls[:]
        in_thread_of_c(drop)
        assert [name for name, ident in calls if ident == idents[0]] == []
        # Without the interpreter lock the thread that made an object frees it, here at once.
        assert FREE_THREADED or destroy not in [name for name, _ in calls]
        stream.synchronize()
        assert (destroy, threading.get_ident()) in calls


def test_memory_on_a_stream_that_goes_with_it_is_freed_in_order(stream: cudadrv.Stream) -> None:
    with watched() as calls:
        held: list[object] = [stream.context.new_stream().zeros(3 << 20, np.uint8)]
        del calls[:]
        in_thread_of_c(held.clear)
        assert FREE_THREADED or calls == []
        stream.synchronize()
    assert {ident for _, ident in calls} == {threading.get_ident()}
    ends = [name for name, _ in calls if name in ("cuMemFreeAsync", "cuStreamDestroy")]
    assert ends == ["cuMemFreeAsync", "cuStreamDestroy"]


def test_threads_of_python_destroy_at_once(stream: cudadrv.Stream) -> None:
    seen: list[bool] = []
    with watched() as calls:
        held: list[object] = [Event(stream.context)]

        def drop() -> None:
            seen.append(is_driver_thread())
            held.clear()

        thread = threading.Thread(target=drop)
        thread.start()
        thread.join()
        assert "cuEventDestroy" in [name for name, _ in calls]
    in_thread_of_c(lambda: seen.append(is_driver_thread()))
    # What asks for the thread's name makes an object for it, as `logging` does.
    in_thread_of_c(lambda: seen.append(bool(threading.current_thread()) and is_driver_thread()))
    assert seen == [False, True, True]
    assert not is_driver_thread()


def test_the_driver_calls_functions_in_threads_of_its_own(stream: cudadrv.Stream) -> None:
    if stream.context.device.is_emulated:
        pytest.skip("needs the driver's threads; the emulator has none")
    seen: list[bool] = []
    stream.call_on_host(lambda: seen.append(is_driver_thread()))
    stream.synchronize()
    assert seen == [True]
    assert callbacks.expected
