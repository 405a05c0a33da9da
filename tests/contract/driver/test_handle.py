"""Boxes: destroyed once, whoever lets go last, and held by no error."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import Event, Stream, emulator
from cudadrv.driver import deferred_release
from cudadrv.driver.handle import Closeable, ClosedHandle, _live, living
from cudadrv.driver.registry import Registry
from cudadrv.driver.stream_handle import StreamHandle
from cudadrv.errors import ClosedError, CudaError
from cudadrv.texture import CudaArray
from tests.patience import SECONDS


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session(devices=2) as machine:
        yield machine


def test_an_error_of_close_keeps_no_context_alive(machine: emulator.Emulator) -> None:
    contexts = machine.live_objects()["context"]
    own = cudadrv.Context.create(0)
    stream = own.new_stream()
    gc.disable()
    try:
        with machine.fail("cuStreamDestroy"):
            try:
                stream.close()
            except CudaError as error:
                kept = error
        own.close()
        assert machine.live_objects()["context"] == contexts
        assert kept.__traceback__ is not None
    finally:
        gc.enable()


def an_array(context: cudadrv.Context) -> CudaArray[Any]:
    return CudaArray(context, 9, np.float32)


def test_children_made_by_two_threads_at_once_all_close(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cudadrv.Context.create(0)
    arrays: list[CudaArray[Any]] = []
    make = Registry.__init__
    threads: list[threading.Thread] = []

    def make_meanwhile(registry: Registry[Closeable]) -> None:
        make(registry)
        if not threads:
            threads.append(threading.Thread(target=lambda: arrays.append(an_array(own))))
            threads[0].start()
            threads[0].join(0.2)

    monkeypatch.setattr(Registry, "__init__", make_meanwhile)
    arrays.append(an_array(own))
    threads[0].join()
    own.close()
    assert len(arrays) == 2
    assert all(array.closed for array in arrays)


def test_a_stream_that_two_threads_close_is_closed(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    looked: list[Closeable] = []
    errors: list[Exception] = []
    closed = vars(Closeable)["closed"].fget

    def look(thing: Closeable) -> bool:
        found: bool = closed(thing)
        if not looked:
            looked.append(thing)
            thread = threading.Thread(target=stream.close)
            thread.start()
            thread.join()
        return found

    monkeypatch.setattr(Closeable, "closed", property(look))
    try:
        stream.close()
    except Exception as error:
        errors.append(error)
    assert not errors
    assert machine.live_objects()["stream"] == 0


def test_an_emulator_goes_after_its_session() -> None:
    def count() -> int:
        deferred_release.run_deferred()
        gc.collect()
        gc.collect()
        return sum(isinstance(thing, emulator.Emulator) for thing in gc.get_objects())

    before = count()
    for _ in range(3):
        with emulator.session():
            stream = cudadrv.cuda_context_for(0).default_stream
            array = stream.zeros(4, "u4")
            with stream.capture() as graph:
                stream.fill(array, 1)
            graph.instantiate().launch(stream)
        del stream, array, graph
    assert count() == before


@pytest.mark.slow
def test_thousands_of_boxes_in_circles_all_go(machine: emulator.Emulator) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    streams = machine.live_objects()["stream"]
    for _ in range(3000):
        circle: list[object] = [stream.context.new_stream(), stream.record(), stream.alloc(8)]
        circle.append(circle)
    del circle
    gc.collect()
    gc.collect()
    left = machine.live_objects()
    assert (left["stream"], left["event"]) == (streams, 0)
    assert not cudadrv.memory.pool_info(stream.context.device).used


EXIT = """
import cudadrv
context = cudadrv.cuda_context_for(0)
own = cudadrv.Context.create(0)
stream = own.new_stream()
class Last:
    pass
last = Last()
last.everything = [last, stream, stream.zeros(4, "u4"), stream.record(), own]
import builtins
builtins.last = last
builtins.more = stream.record(), stream
"""


@pytest.mark.slow
def test_boxes_that_outlive_their_file_say_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stderr == ""


def test_an_object_that_is_adopted_after_its_parent_was_closed_is_closed(
    machine: emulator.Emulator,
) -> None:
    own = cudadrv.Context.create(0)
    with Event(cudadrv.cuda_context_for(0)) as event:
        own.close()
        with pytest.raises(ClosedError, match="closed"):
            own._adopt(event)
        assert event.closed


def test_every_access_of_a_closed_handle_raises_its_text() -> None:
    closed = ClosedHandle("the thing was closed")
    with pytest.raises(ClosedError, match="^the thing was closed$"):
        _ = closed.number  # type: ignore[attr-defined]
    assert closed.error.args == ("the thing was closed",)


def test_a_handle_that_was_never_finished_destroys_nothing() -> None:
    assert StreamHandle.__new__(StreamHandle)._destroy_and_report() is None  # type: ignore[func-returns-value]


def test_an_object_that_refers_to_objects_of_the_user_is_found_and_keeps_its_parent() -> None:
    class Library:
        def __init__(self, stream: Stream) -> None:
            self._stream = stream

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, int(self._stream.handle)

    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        with context.external_stream(Library(context.new_stream())) as borrowed:
            assert any(each is borrowed for each in living())
            assert _live[borrowed._key] is context._handle
        assert all(each is not borrowed for each in living())


def test_a_registry_forgets_an_object_without_running_python() -> None:
    """Python loses an interrupt that arrives while a function of a weak reference runs."""

    class Item:
        """An object without a finalizer."""

    registry: Registry[Item] = Registry()
    item: Item | None = Item()
    assert item is not None
    registry.add(item)
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(f"{event} {frame.f_code.co_filename}"))
    try:
        item = None
    finally:
        sys.setprofile(None)
    assert not [event for event in called if event.startswith("call ")]
    assert len(registry) == 0
