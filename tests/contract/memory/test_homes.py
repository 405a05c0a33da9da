"""Who waits for whom on account of memory, and which streams a memory remembers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, Texture, emulator
from cudadrv.driver.stream_handle import StreamHandle
from cudadrv.memory import order
from cudadrv.memory.order import order_access, record_access

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
def waits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Who waited for whom, by handle: (the stream that waits, what it waits for)."""
    gc.collect()  # the objects of earlier tests, whose releases may wait
    seen: list[tuple[int, int]] = []

    def note(follow: Callable[[StreamHandle, StreamHandle], None]) -> None:
        def noted(self: StreamHandle, other: StreamHandle) -> None:
            seen.append((int(self.raw), int(other.raw)))
            follow(self, other)

        monkeypatch.setattr(StreamHandle, follow.__name__, noted)

    note(StreamHandle.follow)
    note(StreamHandle.follow_at_once)
    return seen


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
    assert x._memory.ordered_on is None
    waits.clear()
    last.fill(x, 1)
    assert sorted(waits) == sorted((handle(last), handle(s)) for s in (writer, first, second))
    assert x._memory.ordered_on is last._handle


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
    assert x._memory.ordered_on is own._handle
    x.close()
    assert waits == [(handle(own), handle(other))]


def test_beyond_eight_users_those_that_are_closed_and_idle_are_forgotten(
    machine: emulator.Emulator,
) -> None:
    own, still_open, *others = streams(30)
    x = own.zeros(4, np.int32)
    still_open.fill(x, 1)
    for other in others:
        other.fill(x, 1)
        other.close()
        users = x._memory.all_users()
        assert len(users) <= order._MANY_USERS + 1
        assert {own._handle, still_open._handle} <= set(users)
    assert len(users) < len(others)


def test_beyond_eight_users_those_that_still_work_are_retained(machine: emulator.Emulator) -> None:
    busy = machine.fail("cuStreamQuery", times=None, with_=600)  # CUDA_ERROR_NOT_READY
    own, *others = streams(20)
    x = own.zeros(4, np.int32)
    for other in others:
        other.fill(x, 1)
        other.close()
    assert len(x._memory.all_users()) == 20
    busy.remove()
    (last,) = streams(1)
    last.fill(x, 1)
    assert len(x._memory.all_users()) <= 3


def test_streams_of_a_capture_wait_for_each_other_as_outside(
    machine: emulator.Emulator, waits: list[tuple[int, int]]
) -> None:
    stream, second, third = streams(3)
    x = stream.zeros(4, np.int32)
    a, b, c = handle(stream), handle(second), handle(third)
    with stream.capture():
        second.wait(stream)
        third.wait(stream)
        order_access(x._memory, stream._handle)
        order_access(x._memory, stream._handle)
        order_access(x._memory, second._handle, writes=False)
        order_access(x._memory, third._handle, writes=False)
        order_access(x._memory, second._handle, writes=False)
        assert waits == [(b, a), (c, a)]
        waits.clear()
        order_access(x._memory, stream._handle)
        assert waits == [(a, b), (a, c)]
        waits.clear()
        order_access(x._memory, third._handle)
        assert waits == [(c, a)]
        stream.wait(second)
        stream.wait(third)
    assert x._memory.ordered_on is stream._handle  # the uses were the graph's
    assert x._memory.accesses.users == ()


def test_a_stream_that_waits_for_a_capturing_one_waits_for_the_event_before(
    machine: emulator.Emulator,
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
    assert x._memory.ordered_on is other._handle
    assert other.to_host(y).tolist() == [2] * 4


def test_a_use_that_is_noted_is_noted_once(machine: emulator.Emulator) -> None:
    own, other = streams(2)
    x = own.zeros(4, np.int32)
    for _ in range(3):
        record_access(x._memory, own._handle)
        record_access(x._memory, other._handle)
    assert x._memory.accesses.users == (other._handle,)
    assert x._memory.ordered_on is own._handle
