"""Which stream waits for which on account of memory, and which streams a memory remembers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.texture import Texture
from tests.noted_calls import waits_of_streams

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 x) { ret; }
.visible .entry look(.param .u64 texture, .param .u64 out) { ret; }
"""
ONE = LaunchConfig(1, 1)


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


@pytest.fixture
def waits(machine: emulator.Emulator) -> Iterator[list[tuple[int, int]]]:
    """Which stream waited for which, by handle: (the stream that waits, what it waits for)."""
    gc.collect()  # the objects of earlier tests, whose releases may wait
    with waits_of_streams() as waits:
        yield waits


def handle(stream: cudadrv.Stream) -> int:
    """The number of a stream."""
    return int(stream.handle)


def streams(count: int) -> list[cudadrv.Stream]:
    """New streams of the first device."""
    context = cudadrv.cuda_context_for(0)
    return [context.new_stream() for _ in range(count)]


def test_readers_wait_for_the_writer_and_not_for_each_other(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    writer, first, second, last = streams(4)
    x = writer.zeros(4, np.int32)
    for reader in (first, second, first):
        reader.to_host(x)
    assert waits == [(handle(first), handle(writer)), (handle(second), handle(writer))]
    waits.clear()
    last.fill(x, 1)
    assert sorted(waits) == sorted((handle(last), handle(s)) for s in (writer, first, second))
    waits.clear()
    last.fill(x, 1)
    assert waits == []


def test_a_texture_is_a_read(machine: emulator.Emulator, waits: list[tuple[int, int]]) -> None:
    writer, first, second = streams(3)
    look = writer.context.load_module(PTX).kernel("look")
    x = writer.zeros(4, np.float32)
    texture = Texture(x)
    for reader in (first, second):
        look.launch(reader, ONE, texture, reader.zeros(4, np.float32))
    assert waits == [(handle(first), handle(writer)), (handle(second), handle(writer))]


def unordered_block(kernel: cudadrv.Kernel, s: cudadrv.Stream, x: object) -> None:
    with s.unordered():
        kernel.launch(s, ONE, x)


def unordered_launcher(kernel: cudadrv.Kernel, s: cudadrv.Stream, x: object) -> None:
    launcher = kernel.bind(s, ONE, ordered=False)
    launcher(x)
    launcher.prepare(x)()


@pytest.mark.parametrize("launch", [unordered_block, unordered_launcher])
def test_an_unordered_use_does_not_wait_and_the_release_waits_for_it(
    machine: emulator.Emulator,
    waits: list[tuple[int, int]],
    launch: Callable[[cudadrv.Kernel, cudadrv.Stream, object], None],
) -> None:
    own, other = streams(2)
    kernel = own.context.load_module(PTX).kernel("nothing")
    x = own.zeros(4, np.int32)
    launch(kernel, other, x)
    assert waits == []
    x.close()
    assert waits == [(handle(own), handle(other))]


def test_beyond_eight_users_those_that_are_closed_and_idle_are_forgotten(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    own, still_open, *others = streams(30)
    x = own.zeros(4, np.int32)
    still_open.fill(x, 1)
    for other in others:
        other.fill(x, 1)
        other.close()
    waits.clear()
    x.close()
    assert {handle(own), handle(still_open)} <= {earlier for _, earlier in waits}
    assert len(waits) <= 8


def test_beyond_eight_users_those_that_still_work_are_retained(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    busy = machine.fail("cuStreamQuery", times=None, with_=600)  # CUDA_ERROR_NOT_READY
    own, *others = streams(20)
    x, y = own.zeros(4, np.int32), own.zeros(4, np.int32)
    for other in others:
        for array in (x, y):
            other.fill(array, 1)
        other.close()
    waits.clear()
    x.close()
    assert len(waits) == 19
    busy.remove()
    (last,) = streams(1)
    last.fill(y, 1)
    waits.clear()
    y.close()
    assert len(waits) <= 2


def test_streams_of_a_capture_wait_for_each_other_as_outside(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    stream, second, third = streams(3)
    x, y, z = (each.zeros(4, np.int32) for each in (stream, second, third))
    a, b, c = handle(stream), handle(second), handle(third)
    with stream.capture():
        second.wait(stream)
        third.wait(stream)
        waits.clear()
        stream.fill(x, 1)
        stream.fill(x, 2)
        for reader, copied in ((second, y), (third, z), (second, y)):
            reader.copy(copied, x)
        assert waits == [(b, a), (c, a)]
        waits.clear()
        stream.fill(x, 3)
        assert waits == [(a, b), (a, c)]
        waits.clear()
        third.fill(x, 4)
        assert waits == [(c, a)]
        stream.wait(second)
        stream.wait(third)
    waits.clear()
    x.close()
    assert waits == []  # the uses were the graph's


def test_a_stream_that_waits_for_a_capturing_one_waits_for_the_event_before(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    stream, joining, other = streams(3)
    x, y = stream.zeros(4, np.int32), joining.zeros(4, np.int32)
    with stream.capture() as graph:
        joining.wait(stream)
        other.fill(x, 1)
        other.fill(y, 2)
        assert not other.capturing
        stream.wait(joining)
    assert graph.node_count == 0
    waits.clear()
    other.fill(x, 1)
    assert waits == []
    assert other.to_host(y).tolist() == [2] * 4


def test_an_unordered_use_is_recorded_once(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    own, other = streams(2)
    x = own.zeros(4, np.int32)
    for stream in (own, other) * 3:
        with stream.unordered():
            stream.fill(x, 1)
    assert waits == []
    x.close()
    assert waits == [(handle(own), handle(other))]
