"""Invariants of rare places: captures of several streams, owners of borrowed memory."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv.memory.array import AnyDeviceArray

from .lab import Lab, used_bytes
from .late_kernels import Ints, count_from
from .test_named import N, everything_given_back

LAUNCHES = 10
"""How many late kernels make a stream busy for long."""
PACKAGE = Path(cudadrv.__file__).parent
FILES = tuple(
    str(PACKAGE / name)
    for name in ("graph/capture.py", "graph/needs.py", "driver/stream_handle.py")
)


class TheirMemory:
    """Memory of another library, by the CUDA array interface."""

    def __init__(self, array: Ints) -> None:
        self._array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.taken: AnyDeviceArray | None = None


class TheirStream:
    """A stream of another library, which may refer to an array."""

    def __init__(self, stream: cudadrv.Stream) -> None:
        self._stream = stream
        self.array: Ints | None = None

    def __cuda_stream__(self) -> tuple[int, int]:
        return self._stream.__cuda_stream__()


def there_are(kind: type) -> bool:
    """Whether objects of a type live; a collection clears references to what it then leaves."""
    return any(isinstance(each, kind) for each in gc.get_objects())


def test_borrowed_memory_whose_owner_refers_to_it_is_released(lab: Lab) -> None:
    with everything_given_back(lab), lab.contexts[0].new_stream() as stream:
        owner = TheirMemory(stream.zeros(N, np.int32))
        owner.taken = stream.import_array(owner)
        lab.kernels[0].write_at(stream, owner.taken.ptr, N, 1)
        del owner
        lab.settle()  # what it finds may have to wait for the kernel, and is then found again
        lab.settle()
        assert not there_are(TheirMemory)


def test_a_borrowed_stream_whose_owner_refers_to_its_memory_is_released(lab: Lab) -> None:
    context = lab.contexts[0]
    with everything_given_back(lab), context.new_stream() as stream:
        owner = TheirStream(stream)
        owner.array = context.external_stream(owner).zeros(N, np.int32)
        del owner
        lab.settle()
        assert not there_are(TheirStream)


def test_the_owner_of_borrowed_memory_stays_until_queued_work_is_done(lab: Lab) -> None:
    with everything_given_back(lab), lab.contexts[0].new_stream() as stream:
        owner = TheirMemory(stream.zeros(N, np.int32))
        stream.synchronize()
        taken = stream.import_array(owner)
        gone = weakref.ref(owner)
        del owner
        for _ in range(LAUNCHES):
            lab.kernels[0].write_at(stream, taken.ptr, N, 1)
        stream.fill(taken, 1)
        del taken
        assert lab.is_emulated or gone() is not None
        stream.synchronize()
        assert gone() is None


def test_readers_on_two_streams_run_beside_each_other(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with (
        everything_given_back(lab),
        context.new_stream() as stream,
        context.new_stream() as slow,
        context.new_stream() as quick,
    ):
        x = stream.zeros(N, np.int32)
        outs = [slow.zeros(N, np.int32), quick.zeros(N, np.int32)]
        texture = cudadrv.texture.Texture(x)
        context.synchronize()
        kernels.write(stream, x, 3)
        for _ in range(LAUNCHES):
            kernels.fetch(slow, outs[0], texture)
        kernels.fetch(quick, outs[1], texture)
        quick.synchronize()
        assert lab.is_emulated or not slow.is_done()
        kernels.write(stream, x, 50)  # after both
        for out in outs:
            assert np.array_equal(stream.to_host(out), count_from(3, N))
        assert np.array_equal(stream.to_host(x), count_from(50, N))
        del x, outs, out, texture


@pytest.mark.parametrize("how", ["block", "launcher"])
def test_memory_is_freed_after_unordered_work(lab: Lab, how: str) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with (
        everything_given_back(lab),
        context.new_stream() as stream,
        context.new_stream() as other,
    ):
        for turn in range(4):
            x = stream.zeros(N, np.int32)
            stream.synchronize()
            for _ in range(3):
                kernels.spin(other)
            if how == "block":
                with other.unordered():
                    kernels.write(other, x, 1)
            else:
                config = cudadrv.LaunchConfig.for_elements(N, 256)
                launch = kernels.kernel("write").bind(other, config, ordered=False)
                launch(x, N, 1, kernels.cycles)
                del launch
            del x
            new = stream.empty(N, np.int32)
            stream.fill(new, -turn)
            other.synchronize()
            assert (stream.to_host(new) == -turn).all()
            del new


def test_streams_of_one_capture_are_ordered_by_what_they_use(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with (
        everything_given_back(lab),
        context.new_stream() as stream,
        context.new_stream() as other,
    ):
        x, out = stream.zeros(N, np.int32), other.zeros(N, np.int32)
        context.synchronize()
        with stream.capture() as graph:
            other.wait(stream)
            joined = other.capturing
            kernels.write(stream, x, 7)
            kernels.read(other, out, x)
            kernels.bump(stream, x, 1)
            kernels.bump(other, x, 1)
            stream.wait(other)
        assert (joined, other.capturing) == (True, False)
        assert graph.node_count == 4
        assert (other.to_host(out) == 0).all()
        executable = graph.instantiate()
        for _ in range(3):
            executable.launch(stream)
        assert np.array_equal(stream.to_host(out), count_from(7, N))
        assert np.array_equal(other.to_host(x), count_from(9, N))
        del x, out, graph, executable


def test_what_a_stream_held_before_its_capture_is_waited_for_outside_of_it(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with (
        everything_given_back(lab),
        context.new_stream() as stream,
        context.new_stream() as joining,
        context.new_stream() as other,
    ):
        x, y, out = (stream.zeros(N, np.int32) for _ in range(3))
        context.synchronize()
        for first in (stream, joining):
            kernels.spin(first)
            kernels.write(first, x, 5)
            with stream.capture() as graph:
                joining.wait(stream)
                kernels.bump(stream, y, 1)
                kernels.read(other, out, x)
                stream.wait(joining)
            assert graph.node_count == 1
            assert np.array_equal(other.to_host(out), count_from(5, N))
            other.fill(out, 0)
        del x, y, out, graph


def test_memory_dropped_in_a_capture_of_another_library_is_released_after_it(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with everything_given_back(lab), context.new_stream() as theirs:
        ours = context.external_stream(int(theirs.handle))
        x, y = ours.zeros(N, np.int32), theirs.zeros(N, np.int32)
        context.synchronize()
        used = used_bytes()
        with theirs.capture() as graph:
            kernels.bump(theirs, y, 1)
            del x
            gc.collect()
            assert used_bytes() == used
        assert graph.node_count == 1
        context.synchronize()
        if lab.is_emulated:
            assert used_bytes()[0] < used[0]
        executable = graph.instantiate()
        executable.launch(theirs)
        executable.launch(theirs)
        assert (theirs.to_host(y) == 2).all()
        del y, ours, graph, executable


def test_many_streams_may_use_what_a_closed_stream_still_captures(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with everything_given_back(lab), context.new_stream() as stream:
        x, y = stream.zeros(N, np.int32), stream.zeros(N, np.int32)
        closed = context.new_stream()
        closed.fill(x, 1)
        context.synchronize()
        with stream.capture() as graph:
            closed.wait(stream)
            kernels.bump(closed, y, 1)
            stream.wait(closed)
            closed.close()
            for _ in range(20):  # more than are remembered when they are closed and idle
                with context.new_stream() as one_of_many:
                    kernels.bump(one_of_many, x, 1)
            kernels.bump(stream, y, 1)
        assert graph.node_count == 2
        graph.instantiate().launch(stream)
        assert (stream.to_host(y) == 2).all()
        assert (stream.to_host(x) == 21).all()
        del x, y, graph, closed, one_of_many


def capture_once(lab: Lab, stream: cudadrv.Stream, other: cudadrv.Stream, x: Ints) -> None:
    with stream.capture() as graph:
        other.wait(stream)
        lab.kernels[0].bump(stream, x, 1)
        stream.wait(other)
    assert graph.node_count == 1


@pytest.mark.slow
def test_an_interrupt_at_any_point_of_a_capture_leaves_its_streams_usable(lab: Lab) -> None:
    context = lab.contexts[0]
    stream, other = context.new_stream(), context.new_stream()
    x = stream.zeros(N, np.int32)
    context.synchronize()
    for number in range(1000):
        interrupter = Interrupter(number, lambda code: code.co_filename in FILES)
        if not interrupter.run(partial(capture_once, lab, stream, other, x)):
            break
        assert not stream.capturing, interrupter.place
        assert not other.capturing, interrupter.place
        stream.fill(x, number)
        assert (other.to_host(x) == number).all()
        stream.synchronize()
    assert number > 50
    capture_once(lab, stream, other, x)
    stream.close()
    other.close()
    del stream, other, x
