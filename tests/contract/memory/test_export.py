"""The order of a consumer's stream after an export by DLPack, with work done late."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.memory.array import AnyDeviceArray
from tests.noted_calls import calls_of

ORDERING = ("cuEventRecord", "cuStreamWaitEvent", "cuCtxPushCurrent")


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(order="late"):
        yield cudadrv.cuda_context_for(0)


def read_by(consumer: cudadrv.Stream, array: AnyDeviceArray) -> object:
    """What a consumer reads that orders nothing itself."""
    with consumer.unordered():
        return consumer.to_host(array).tolist()


@pytest.mark.parametrize("number", [None, 0, 1])
def test_the_legacy_stream_of_a_consumer_waits(
    context: cudadrv.Context, number: int | None
) -> None:
    stream, legacy = context.new_stream(), context.external_stream(0)
    array = stream.zeros(4, "f4")
    stream.synchronize()
    stream.fill(array, 5)
    array.__dlpack__(stream=number)
    assert read_by(legacy, array) == [5] * 4


def test_a_numbered_stream_of_a_consumer_waits_without_binding_a_context(
    context: cudadrv.Context,
) -> None:
    stream, consumer = context.new_stream(), context.new_stream()
    array = stream.zeros(4, "f4")
    stream.synchronize()
    array.__dlpack__(stream=int(consumer.handle))  # makes the event
    stream.fill(array, 5)
    with calls_of(*ORDERING) as made:
        array.__dlpack__(stream=int(consumer.handle))
    assert made == [("cuEventRecord", 0), ("cuStreamWaitEvent", 0)]
    assert read_by(consumer, array) == [5] * 4


def test_a_consumer_waits_for_every_stream_that_reads_since(context: cudadrv.Context) -> None:
    first, second, consumer = (context.new_stream() for _ in range(3))
    array, target = first.zeros(4, "f4"), second.zeros(4, "f4")
    second.copy(target, array)
    with calls_of("cuStreamWaitEvent") as made:
        array.__dlpack__(stream=int(consumer.handle))
    assert len(made) == 2


def test_streams_that_are_in_order_by_themselves_wait_for_nothing(
    context: cudadrv.Context,
) -> None:
    default, stream = context.default_stream, context.new_stream()
    of_default, of_stream = default.zeros(4, "f4"), stream.zeros(4, "f4")
    context.synchronize()
    default.fill(of_default, 5)
    stream.fill(of_stream, 6)
    with calls_of(*ORDERING) as made:
        of_default.__dlpack__()
        of_stream.__dlpack__(stream=int(stream.handle))
        of_stream.__dlpack__(stream=-1)
    assert made == []
    assert read_by(context.external_stream(0), of_default) == [5] * 4


def test_the_legacy_stream_waits_for_a_default_stream_that_does_not_wait_for_it() -> None:
    with emulator.session(order="late"), cudadrv.Context.create(0) as context:
        array = context.default_stream.zeros(4, "f4")
        with calls_of("cuStreamWaitEvent") as made:
            array.__dlpack__()
        assert len(made) == 1
