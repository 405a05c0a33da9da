"""Boxes: what is destroyed when, in which context, and who is told of a failure."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import Device, emulator
from cudadrv.driver import handle
from cudadrv.driver._api import CUcontext, CUresult
from cudadrv.errors import IllegalAddressError, InvalidValueError
from cudadrv.texture import CudaArray, MipmappedArray, Surface, Texture
from tests.current_context import current_context
from tests.noted_calls import calls_of, replaced_calls
from tests.patience import SECONDS

ROOT = Path(__file__).parents[3]
INVALID: Final = CUresult.CUDA_ERROR_INVALID_VALUE  # which leaves the context usable


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session(devices=2) as machine:
        yield machine


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches `sys.unraisablehook`."""
    texts: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: texts.append(str(args.exc_value)))
    return texts


class Saver:
    """In a circle; its finalizer saves it, and with it what it refers to."""

    def __init__(self, saved: list[Saver], thing: object) -> None:
        self.circle = self
        self.thing = thing
        self._saved = saved

    def __del__(self) -> None:
        self._saved.append(self)


def circle_of(*things: object) -> None:
    """Leave things that only a collection finds."""
    circle: list[object] = list(things)
    circle.append(circle)


def test_destroying_leaves_the_current_context_as_it_was(machine: emulator.Emulator) -> None:
    primary, other = cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)
    own = cudadrv.Context.create(0)
    contexts = {"none": None, "primary": primary, "of device 1": other}
    for name, bound in contexts.items():
        if bound is not None:
            bound.bind()
        before = current_context()
        for context in (primary, own):
            array = CudaArray(context, (4, 8), np.float32, surface=True)
            stream = context.new_stream()
            made: list[Any] = [
                array,
                MipmappedArray(context, 9, np.float32),
                Texture(array),
                Surface(array),
                stream,
                stream.zeros(4, "u1"),
                stream.record(),
            ]
            made.append(CudaArray(context, 9, np.float32))
            made.append(CudaArray(context, 9, np.float32))
            circle_of(made.pop())
            del array, stream
            while made:
                made.pop()
                assert current_context() == before, name
            gc.collect()
            assert current_context() == before, name
    before = current_context()
    own.close()
    del own
    gc.collect()
    assert current_context() == before


def test_a_context_that_is_being_destroyed_is_waited_for_no_more(
    machine: emulator.Emulator, told: list[str]
) -> None:
    pinned = [cudadrv.pinned_empty(64, "u1")]
    destroy = machine.cuCtxDestroy

    def dropping_pinned_memory(handle: CUcontext) -> tuple[CUresult]:
        answer = destroy(handle)
        pinned.clear()  # waits for every context there is
        return answer

    with replaced_calls(cuCtxDestroy=dropping_pinned_memory):
        cudadrv.Context.create(0).close()
    assert not pinned
    assert told == []


def test_a_context_that_is_waited_for_is_not_destroyed_meanwhile(
    machine: emulator.Emulator, told: list[str]
) -> None:
    calls: list[str] = []
    own = [cudadrv.Context.create(0)]
    pinned = cudadrv.pinned_empty(64, "u1")
    free, destroy = machine.cuMemFreeHost, machine.cuCtxDestroy

    def dropping_the_context(address: int) -> tuple[CUresult]:
        own.clear()
        gc.collect()
        calls.append("waited")
        return free(address)

    def noted(handle: CUcontext) -> tuple[CUresult]:
        calls.append("destroyed")
        return destroy(handle)

    with replaced_calls(cuMemFreeHost=dropping_the_context, cuCtxDestroy=noted):
        del pinned
    assert calls[0] == "waited"
    assert calls.count("destroyed") == 1
    assert told == []


def test_what_a_survivor_refers_to_waits_for_a_later_collection(
    machine: emulator.Emulator,
) -> None:
    array = CudaArray(cudadrv.cuda_context_for(0), 9, np.float32)
    saved: list[Saver] = []
    Saver(saved, Texture(array))
    gc.collect()
    assert len(saved) == 1
    assert machine.live_objects()["texture or surface"] == 1
    saved.clear()  # the finalizer runs once: the circle waits for a collection again
    gc.collect()
    gc.collect()
    assert machine.live_objects()["texture or surface"] == 0


def test_memory_that_a_survivor_refers_to_stays(machine: emulator.Emulator) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    used = cudadrv.memory.pool_info(Device.get(0)).used
    saved: list[Saver] = []
    Saver(saved, stream.to_device(np.arange(5)))
    gc.collect()
    (saver,) = saved
    assert isinstance(saver.thing, cudadrv.DeviceArray)
    assert stream.to_host(saver.thing).tolist() == [0, 1, 2, 3, 4]
    assert cudadrv.memory.pool_info(Device.get(0)).used > used
    saved.clear()
    del saver
    gc.collect()
    gc.collect()
    assert cudadrv.memory.pool_info(Device.get(0)).used == used


def test_a_collection_destroys_textures_before_what_they_are_over(
    machine: emulator.Emulator,
) -> None:
    context = cudadrv.cuda_context_for(0)
    with calls_of("cuArrayDestroy", "cuTexObjectDestroy") as destroyed:
        for _ in range(3):
            array = CudaArray(context, 9, np.float32)
            circle_of(array, Texture(array))
            del array
            gc.collect()
    assert destroyed == 3 * [("cuTexObjectDestroy", 0), ("cuArrayDestroy", 0)]


def test_a_collection_reports_every_failure(machine: emulator.Emulator, told: list[str]) -> None:
    context = cudadrv.cuda_context_for(0)
    array = CudaArray(context, 9, np.float32)
    circle_of(array, Texture(array))
    del array
    with (
        machine.fail("cuTexObjectDestroy", with_=INVALID),
        machine.fail("cuArrayDestroy", with_=INVALID),
    ):
        gc.collect()
    assert ["cuTexObjectDestroy" in text for text in told] == [True, False]


class Told:
    """Counts by whom the failure of a destroy was told: `close`, or the hook."""

    def __init__(self) -> None:
        self.raised = 0

    def close(self, thing: cudadrv.texture.Texture) -> None:
        try:
            thing.close()
        except InvalidValueError:
            self.raised += 1


def at_line(number: int, act: Callable[[], object]) -> Callable[[FrameType, str, object], Any]:
    """A trace function that acts before the line of this number of `Closeable.close`."""
    lines = itertools.count()

    def trace_lines(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not handle.Closeable.close.__code__:
            return None
        if event == "line" and next(lines) == number:
            act()
        return trace_lines

    return trace_lines


def test_an_error_is_reported_once_whenever_another_thread_destroys(
    machine: emulator.Emulator, told: list[str]
) -> None:
    array = CudaArray(cudadrv.cuda_context_for(0), 9, np.float32)
    ways = set()
    for number in range(20):
        texture = Texture(array)
        call_of_another: list[object] = [texture._handle]

        def drop(held: list[object] = call_of_another) -> None:
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join(SECONDS)

        telling, former = Told(), sys.gettrace()
        told.clear()
        with machine.fail("cuTexObjectDestroy", with_=INVALID):
            sys.settrace(at_line(number, drop))
            try:
                telling.close(texture)
            finally:
                sys.settrace(former)
            held = bool(call_of_another)
            call_of_another.clear()
            assert telling.raised + len(told) == 1, f"dropped before line {number}"
        ways.add((held, telling.raised))
    # While `close` ran, in the moment when it leaves, and later.
    assert ways == {(False, 1), (False, 0), (True, 0)} or ways == {(False, 1), (True, 0)}


def test_one_error_is_raised_as_it_is_and_several_are_a_group(machine: emulator.Emulator) -> None:
    for failing in (1, 2, 3):
        context = cudadrv.Context.create(0)
        array = CudaArray(context, 9, np.float32)
        kept = [Texture(array) for _ in range(3)]
        with (
            machine.fail("cuTexObjectDestroy", times=failing, with_=INVALID),
            pytest.raises((InvalidValueError, ExceptionGroup)) as caught,
        ):
            context.close()
        if failing == 1:
            assert isinstance(caught.value, InvalidValueError)
        else:
            assert isinstance(caught.value, ExceptionGroup)
            assert [type(each) for each in caught.value.exceptions] == [InvalidValueError] * failing
        assert all(texture.closed for texture in kept)
        context.close()


@pytest.mark.parametrize("failing", [1, 2])
def test_a_block_that_an_error_leaves_keeps_it_with_a_note(
    machine: emulator.Emulator, failing: int
) -> None:
    with (
        machine.fail("cuTexObjectDestroy", times=failing, with_=INVALID),
        pytest.raises(ZeroDivisionError) as caught,
        cudadrv.Context.create(0) as context,
    ):
        array = CudaArray(context, 9, np.float32)
        _kept = [Texture(array) for _ in range(2)]
        _ = 1 / 0
    (note,) = caught.value.__notes__
    assert "closing the Context failed as well" in note
    assert note.count("cuTexObjectDestroy") == failing


def test_a_broken_context_is_reported_once(machine: emulator.Emulator, told: list[str]) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    array = CudaArray(context, 9, np.float32)
    made: list[Any] = [Texture(array), Surface(CudaArray(context, 9, "f4", surface=True)), array]
    made += [stream.zeros(4, "u1"), stream.record(), MipmappedArray(context, 9, np.float32)]
    del array
    with machine.break_device(0):
        with pytest.raises(IllegalAddressError):
            stream.synchronize()
        made.pop().close()
        made.pop(0).close()
        circle_of(made.pop())
        made.clear()
        stream.close()
        gc.collect()
    assert told == []


def test_the_first_one_to_meet_a_broken_context_is_reported(
    machine: emulator.Emulator, told: list[str]
) -> None:
    context = cudadrv.cuda_context_for(0)
    array, other = CudaArray(context, 9, np.float32), CudaArray(context, 9, np.float32)
    with machine.break_device(0):
        with pytest.raises(IllegalAddressError):
            array.close()
        other.close()
    assert told == []


FORK = """
import gc, os, sys
import numpy as np
import cudadrv
from cudadrv import emulator
from cudadrv.texture import CudaArray, Texture

with emulator.session() as machine:
    context = cudadrv.cuda_context_for(0)
    own = cudadrv.Context.create(0)
    array = CudaArray(context, 9, np.float32)
    stream = context.new_stream()
    made = [Texture(array), array, stream.zeros(4, "u1"), stream.record(), stream, own]
    closed = CudaArray(context, 9, np.float32)
    del array, stream, own
    names = ("cuTexObjectDestroy", "cuArrayDestroy", "cuMemFreeAsync", "cuEventDestroy",
             "cuStreamDestroy", "cuCtxDestroy")
    faults = [machine.fail(name, times=None) for name in names]
    child = os.fork()
    if not child:
        sys.unraisablehook = lambda args: os._exit(2)
        circle = [made.pop(0)]
        circle.append(circle)
        del circle
        made.clear()
        closed.close()
        gc.collect()
        os._exit(3 if any(fault.calls for fault in faults) else 0)
    _, status = os.waitpid(child, 0)
    for fault in faults:
        fault.remove()
    made.clear()
    closed.close()
    print("child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_forked_child_destroys_nothing() -> None:
    assert run_alone(FORK) == ["child", "0"]


END = """
import atexit

def look():
    made.clear()
    print("calls", sum(fault.calls for fault in faults), flush=True)

atexit.register(look)  # before cudadrv is imported, so it is called after cudadrv's own function

import numpy as np
import cudadrv
from cudadrv import emulator
from cudadrv.texture import CudaArray, Texture

session = emulator.session()
machine = session.__enter__()
context = cudadrv.cuda_context_for(0)
array = CudaArray(context, 9, np.float32)
stream = context.new_stream()
made = [Texture(array), array, stream.zeros(4, "u1"), stream.record(), stream]
del array, stream
faults = [machine.fail(name, times=None) for name in
          ("cuTexObjectDestroy", "cuArrayDestroy", "cuMemFreeAsync", "cuEventDestroy",
           "cuStreamDestroy")]
"""


@pytest.mark.slow
def test_nothing_is_destroyed_one_by_one_at_the_end_of_the_process() -> None:
    assert run_alone(END) == ["calls", "0"]


def run_alone(script: str) -> list[str]:
    """What a script prints, in a process of its own that complains of nothing."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert not done.stderr, done.stderr[-3000:]
    return done.stdout.split()


def test_what_may_not_call_the_driver_leaves_its_boxes_for_the_next_call_that_may(
    machine: emulator.Emulator, told: list[str]
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    used = cudadrv.memory.pool_info(Device.get(0)).used
    array = CudaArray(context, 9, np.float32)
    left: list[int] = []

    def collect() -> None:
        gc.collect()
        left.append(machine.live_objects()["texture or surface"])

    gc.disable()  # otherwise a collection may come where it may call the driver
    try:
        circle_of(Texture(array), stream.zeros(4, "u1"), context.new_stream())
        stream.call_on_host(collect)
    finally:
        gc.enable()
    stream.synchronize()
    assert left == [1]
    assert machine.live_objects()["texture or surface"] == 0
    assert cudadrv.memory.pool_info(Device.get(0)).used == used
    assert told == []


def test_a_session_that_has_ended_is_released() -> None:
    def use_a_client() -> weakref.ref[emulator.Emulator]:
        with emulator.session() as machine:
            client = cudadrv.CudaClient(0)
            client.stream.zeros(4, "u1")
            return weakref.ref(machine)

    ended = use_a_client()
    gc.collect()
    gc.collect()
    assert ended() is None
