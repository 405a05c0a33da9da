"""Memory that grows where it is, in two processes of one host."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray
from cudadrv.errors import ArgumentTypeError, ExportError, NotPermittedError
from cudadrv.memory import GrowingBuffer
from tests.noted_calls import calls_of

from .peer import KEPT, Peer

MIB = 1 << 20


def keep(name: str, value: object) -> None:
    KEPT[name] = value


def drop(*names: str) -> None:
    for name in names:
        del KEPT[name]
    gc.collect()


def over(buffer: GrowingBuffer) -> DeviceArray[np.int32]:
    return DeviceArray(buffer, buffer.nbytes // 4, np.int32)


def ends(name: str) -> tuple[int, int, int]:
    """The size of a buffer, and what stands at its ends."""
    array = over(KEPT[name])
    stream = cudadrv.cuda_context_for(0).default_stream
    return array.nbytes, stream.to_host(array[:1]).item(), stream.to_host(array[-1:]).item()


def fill(name: str, value: int) -> None:
    stream = cudadrv.cuda_context_for(0).default_stream
    stream.fill(over(KEPT[name]), value)
    stream.synchronize()


def test_a_buffer_that_has_grown_and_is_sent_again_grows_there(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    with GrowingBuffer(stream, 40 * MIB, 1000, shareable=True) as buffer:
        unit = buffer.granularity
        stream.fill(over(buffer), 5)
        peer.ask(keep, "first", buffer)
        assert peer.ask(ends, "first") == (unit, 5, 5)
        buffer.grow(3 * unit)
        stream.fill(over(buffer)[-1:], 6)
        peer.ask(keep, "second", buffer)
        assert peer.ask(ends, "second") == (3 * unit, 5, 6)
        assert peer.ask(one_place)
        peer.ask(fill, "second", 7)
        assert (stream.to_host(over(buffer)) == 7).all()
        with pytest.raises(NotPermittedError, match="only the process that made it can"):
            peer.ask(grow, "second")
        # What was an array of it there before it grew goes on.
        assert peer.ask(ends, "first") == (unit, 7, 7)
        peer.ask(drop, "first", "second")
        assert stream.to_host(over(buffer)[:1]).item() == 7


def one_place() -> bool:
    return bool(KEPT["first"].ptr == KEPT["second"].ptr)


def grow(name: str) -> None:
    KEPT[name].grow(KEPT[name].capacity)


@pytest.mark.slow
def test_arrays_over_a_buffer_go_with_it_and_come_back_to_it(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    buffer = GrowingBuffer(stream, 4 * MIB, 4 * MIB, shareable=True)
    array: DeviceArray[Any] = DeviceArray(buffer, (4, 6), np.int64, 80)
    stream.copy(array, np.arange(24).reshape(4, 6))
    peer.ask(keep, "array", array[1:, ::2])
    assert peer.ask(numbers, "array") == [[6, 8, 10], [12, 14, 16], [18, 20, 22]]
    back = peer.ask(kept, "array")
    assert back.ptr == array[1:].ptr
    with stream.context.new_stream() as other:
        other.fill(back, 7)
        with calls_of("cuStreamWaitEvent") as waits:
            stream.fill(array, 8)  # uses of both are ordered
    assert waits
    peer.ask(drop, "array")


def numbers(name: str) -> list[Any]:
    found: list[Any] = cudadrv.cuda_context_for(0).default_stream.to_host(KEPT[name]).tolist()
    return found


def kept(name: str) -> object:
    return KEPT[name]


@pytest.mark.slow
def test_memory_stays_usable_until_its_last_process_closes_it(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    context = stream.context
    gc.collect()
    context.synchronize()
    buffer = GrowingBuffer(stream, 4 * MIB, 4 * MIB, shareable=True)
    stream.fill(over(buffer), 3)
    peer.ask(keep, "buffer", buffer)
    buffer.close()
    other = GrowingBuffer(stream, 4 * MIB, 4 * MIB)
    stream.fill(over(other), 4)
    stream.synchronize()
    assert peer.ask(ends, "buffer") == (4 * MIB, 3, 3)
    peer.ask(drop, "buffer")
    killed = Peer()
    again = GrowingBuffer(stream, 4 * MIB, 4 * MIB, shareable=True)
    killed.ask(keep, "buffer", again)
    killed.ask(fill, "buffer", 9)
    killed.kill()
    assert (stream.to_host(over(again)) == 9).all()


@pytest.mark.slow
def test_a_buffer_that_was_not_made_to_be_shared_is_rejected(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    with (
        GrowingBuffer(stream, 2 * MIB, shareable=True) as shared,
        GrowingBuffer(stream, 2 * MIB, 4) as buffer,
    ):
        with pytest.raises(ExportError, match="make it with shareable=True"):
            peer.ask(keep, "buffer", buffer)
        with pytest.raises(ExportError, match="cannot go to another process"):
            peer.ask(keep, "array", over(buffer))
        with pytest.raises(ArgumentTypeError, match="make it with shareable=True"):
            pickle.dumps(shared)
