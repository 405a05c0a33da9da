"""A closed stream that never had work is used again, and no other stream is."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import Context, Stream, emulator
from cudadrv.errors import ClosedError
from tests.several_threads import all_at_once


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[emulator.Emulator]:
    """An emulator that lets streams be used again, as a driver does."""
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session(devices=2) as machine:
        yield machine


@pytest.fixture
def context(machine: emulator.Emulator) -> Context:
    return cudadrv.cuda_context_for(0)


def raw(stream: Stream) -> int:
    """Return the number of a stream, without showing it to others."""
    return int(stream._handle.raw)


def test_a_closed_stream_without_work_is_used_again(context: Context) -> None:
    first = context.new_stream()
    number = raw(first)
    first.close()
    first.close()
    second = context.new_stream()
    assert raw(second) == number
    with pytest.raises(ClosedError, match="the stream on device 0 was closed"):
        first.synchronize()
    assert (first.closed, second.closed, second.capturing) == (True, False, False)
    assert second.to_host(second.zeros(4, "i4")).tolist() == [0] * 4
    dropped = context.new_stream()
    number = raw(dropped)
    del dropped
    assert raw(context.new_stream()) == number


def _copies(stream: Stream) -> None:
    stream.copy(stream.empty(4, "i4"), np.arange(4, dtype=np.int32))


def _captures(stream: Stream) -> None:
    with stream.capture():
        pass


def _protocol(stream: Stream) -> None:
    stream.__cuda_stream__()


SEEN: dict[str, Callable[[Stream], object]] = {
    "copy": _copies,
    "capture": _captures,
    "protocol": _protocol,
    "handle": lambda stream: stream.handle,
    "record": lambda stream: stream.record(),
    "wait": lambda stream: stream.wait(stream.context.default_stream),
    "synchronize": Stream.synchronize,
    "query": Stream.is_done,
    "other name": lambda stream: stream.context.external_stream(stream),
}


@pytest.mark.parametrize("way", SEEN)
def test_a_stream_that_was_used_or_seen_is_not_used_again(context: Context, way: str) -> None:
    stream = context.new_stream()
    number = raw(stream)
    SEEN[way](stream)
    stream.close()
    gc.collect()
    # The emulator gives no number twice.
    assert raw(context.new_stream()) != number


def test_a_stream_of_another_kind_is_not_used_again(context: Context) -> None:
    least, greatest = context.priority_range()
    green = Context.create_green(context.sm_resource.split(8)[0][0])
    ways: tuple[Callable[[], Stream], ...] = (
        lambda: context.new_stream(blocking=True),
        lambda: context.new_stream(priority=greatest),
        green.new_stream,
    )
    for made in ways:
        former = [made(), made()]
        numbers = {raw(stream) for stream in former}
        former[0].close()
        former[1].close()
        new = [made(), context.new_stream(), Context.create(0).new_stream()]
        assert numbers.isdisjoint(map(raw, new))
        assert context.new_stream().priority == least


@pytest.mark.parametrize("is_primary", [False, True])
def test_no_stream_of_an_ended_context_is_used_again(
    machine: emulator.Emulator, is_primary: bool
) -> None:
    def context() -> Context:
        return cudadrv.cuda_context_for(1) if is_primary else Context.create(1)

    ended = context()
    held, closed = ended.new_stream(), ended.new_stream()
    numbers = {raw(held), raw(closed)}
    handle = held._handle
    closed.close()
    if is_primary:
        ended.reset()
    else:
        ended.close()
    del ended, held, handle
    gc.collect()
    streams = [context().new_stream() for _ in range(3)]
    assert numbers.isdisjoint(map(raw, streams))
    assert streams[0].to_host(streams[0].zeros(4, "i4")).tolist() == [0] * 4


def test_few_streams_are_cached(machine: emulator.Emulator, context: Context) -> None:
    streams = [context.new_stream() for _ in range(20)]
    for stream in streams:
        stream.close()
    assert machine.live_objects()["stream"] == 8


def test_threads_have_streams_of_their_own(context: Context) -> None:
    def make() -> None:
        for _ in range(30):
            stream = context.new_stream()
            assert raw(stream) not in taken
            taken.add(raw(stream))
            taken.remove(raw(stream))
            stream.close()

    taken: set[int] = set()
    all_at_once([make] * 8)
    assert taken == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_not_given_a_stream(context: Context) -> None:
    context.new_stream().close()
    child = os.fork()
    if not child:
        try:
            context.new_stream()
        except cudadrv.CudadrvError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
