"""Batches of copies, prefetches and discards, in one call of the driver each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, Stream, managed_empty, pinned_empty
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CopyError,
    DriverSymbolMissingError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    UnsupportedError,
    WrongDeviceError,
)
from tests.noted_calls import calls_of, replaced_calls

COUNT = 20


@pytest.fixture(autouse=True)
def new_driver() -> None:
    if cudadrv.driver_version() < (13, 0):
        pytest.skip("a driver of CUDA 13.0 has all batches")


def parts(stream: Stream, first: int = 0) -> list[DeviceArray[np.uint32]]:
    """Arrays of 0, 1, 2 ... elements, all different."""
    given = [np.arange(n, dtype=np.uint32) + 100 * n + first for n in range(COUNT)]
    return [stream.to_device(each) for each in given]


def same(stream: Stream, arrays: list[Any], others: list[Any]) -> bool:
    def host(array: Any) -> Any:
        return stream.to_host(array) if isinstance(array, DeviceArray) else array

    return all(np.array_equal(host(a), host(b)) for a, b in zip(arrays, others, strict=True))


@pytest.mark.parametrize("order", ["stream", "any", "call"])
def test_device_arrays_are_copied(stream: Stream, order: Any) -> None:
    sources = parts(stream)
    targets = [stream.zeros(each.shape, np.uint32) for each in sources]
    stream.synchronize()  # the sources have their values, as "any" and "call" need
    stream.copy_batch(zip(targets, sources, strict=True), source_order=order)
    assert same(stream, targets, sources)


def test_parts_of_one_array_are_copied(stream: Stream) -> None:
    source = stream.to_device(np.arange(64, dtype=np.float32))
    target = stream.zeros(64, np.float32)
    stream.copy_batch([(target[60 - i : 64 - i], source[i : i + 4]) for i in range(0, 64, 4)])
    expected = np.arange(64, dtype=np.float32).reshape(16, 4)[::-1].ravel()
    assert np.array_equal(stream.to_host(target), expected)


def test_many_small_copies_of_any_size_and_alignment_are_exact(stream: Stream) -> None:
    random = np.random.default_rng(1)
    given = random.integers(0, 256, 400 * 512, dtype=np.uint8)
    source, target = stream.to_device(given), stream.zeros(given.size, np.uint8)
    expected = np.zeros_like(given)
    pairs = []
    for k in range(400):  # each pair in 512 bytes of its own
        step = (1, 2, 4, 8, 16)[k // 80]
        size = step * int(random.integers(0, 240 // step))
        to, of = (512 * k + step * int(random.integers(0, 240 // step)) for _ in range(2))
        expected[to : to + size] = given[of : of + size]
        pairs.append((target[to : to + size], source[of : of + size]))
    stream.copy_batch(pairs)
    assert np.array_equal(stream.to_host(target), expected)


def test_small_and_large_copies_go_together(stream: Stream) -> None:
    sizes = [1 << k for k in range(19)]
    sources = [stream.to_device(np.arange(n, dtype=np.uint32) * 7 + n) for n in sizes]
    targets = [stream.zeros(n, np.uint32) for n in sizes]
    stream.copy_batch(zip(targets, sources, strict=True))
    assert same(stream, targets, sources)


def test_a_kernel_makes_many_small_copies_of_one_device(stream: Stream) -> None:
    def unwanted(*_: object) -> None:
        raise DriverSymbolMissingError("it is not in the installed driver")

    sources = parts(stream)
    targets = [stream.zeros(each.shape, np.uint32) for each in sources]
    stream.synchronize()
    pairs = list(zip(targets, sources, strict=True))
    with replaced_calls(cuMemcpyBatchAsync=unwanted):
        stream.copy_batch(pairs)
        assert same(stream, targets, sources)
        for arguments in ({"source_order": "call"}, {"target_location": 0}):
            with pytest.raises(UnsupportedError, match="copy_batch needs"):
                stream.copy_batch(pairs, **cast(Any, arguments))  # as keywords of any type


def test_a_batch_that_reads_in_the_call_returns_after_earlier_work(stream: Stream) -> None:
    """As driver 580 does; no manual says it."""
    source, device = stream.to_device(np.arange(64)), stream.zeros(64, np.int64)
    pinned = pinned_empty(64, np.int64)
    managed = managed_empty(64, np.int64)
    ended: list[str] = []
    for target in (device, pinned, managed):
        stream.call_on_host(lambda: time.sleep(0.05))
        stream.call_on_host(ended.append, "")
        stream.copy_batch([(target, source)], source_order="call", wait=False)
        count = len(ended)
        ended.append(f"{count}")
        stream.synchronize()
    assert ended == ["", "1", "", "3", "", "5"]


@pytest.mark.parametrize("order", ["stream", "call"])
@pytest.mark.parametrize("kind", [np.empty, pinned_empty], ids=["ordinary", "pinned"])
def test_host_arrays_are_copied_both_ways(stream: Stream, kind: Any, order: Any) -> None:
    sources = [kind(n, np.uint32) for n in (1, 5, 1000)]
    results = [kind(n, np.uint32) for n in (1, 5, 1000)]
    for number, each in enumerate(sources):
        each[...] = np.arange(each.size) + number
    expected = [each.copy() for each in sources]
    devices = [stream.zeros(each.shape, np.uint32) for each in sources]
    stream.copy_batch(list(zip(devices, sources, strict=True)), source_order=order)
    for each in sources:
        each[...] = 0  # the call has read them
    stream.synchronize()
    stream.copy_batch(list(zip(results, devices, strict=True)), source_order="stream")
    assert same(stream, results, expected)


def test_without_a_wait_pinned_arrays_have_their_values_later(stream: Stream) -> None:
    results = [pinned_empty(4, np.uint32) for _ in range(3)]
    sources = [stream.to_device(np.full(4, n, np.uint32)) for n in range(3)]
    stream.copy_batch(zip(results, sources, strict=True), wait=False)
    stream.synchronize()
    assert [each.tolist() for each in results] == [[n] * 4 for n in range(3)]


def test_without_a_wait_ordinary_arrays_have_their_values_at_once(stream: Stream) -> None:
    result = np.zeros(4, np.uint32)
    stream.copy_batch([(result, stream.to_device(np.full(4, 7, np.uint32)))], wait=False)
    assert result.tolist() == [7] * 4


def test_buffers_are_copied(stream: Stream) -> None:
    source = stream.to_device(np.arange(8, dtype=np.uint8))
    with stream.alloc(8) as buffer:
        stream.copy_batch([(buffer, source)])
        result = np.zeros(8, np.uint8)
        stream.copy_batch([(result, buffer)])
    assert result.tolist() == list(range(8))


def test_a_batch_waits_for_the_work_of_other_streams(
    context: cudadrv.Context, stream: Stream
) -> None:
    with context.new_stream() as other:
        sources, targets = parts(stream), parts(stream, 5)
        expected = [stream.to_host(each) for each in sources]
        other.copy_batch(zip(targets, sources, strict=True))
        with calls_of("cuStreamWaitEvent") as waits:
            for each in sources:
                stream.fill(each, 0)  # after the other stream's reads
        assert waits
        with calls_of("cuStreamWaitEvent") as waits:
            assert same(stream, targets, expected)  # after its writes
        assert waits


def test_memory_may_be_closed_after_the_call(stream: Stream) -> None:
    sources = parts(stream)
    expected = [stream.to_host(each) for each in sources]
    targets = [stream.zeros(each.shape, np.uint32) for each in sources]
    stream.copy_batch(zip(targets, sources, strict=True))
    for each in sources:
        each.close()
    assert same(stream, targets, expected)


def test_an_empty_batch_does_nothing(stream: Stream) -> None:
    stream.copy_batch([])
    empty = stream.zeros(0, np.uint32)
    stream.copy_batch([(empty, stream.zeros(0, np.uint32))])
    array = stream.to_device(np.arange(3))
    stream.copy_batch([(array, array)])
    assert stream.to_host(array).tolist() == [0, 1, 2]


def test_a_pair_that_does_not_fit_rejects_the_whole_batch(stream: Stream) -> None:
    a, b = stream.zeros(4, np.uint32), stream.to_device(np.ones(4, np.uint32))
    short, wide = stream.zeros(3, np.uint32), stream.zeros((4, 4), np.uint32)
    host = np.zeros(4, np.uint32)
    read_only = np.zeros(4, np.uint32)
    read_only.flags.writeable = False
    refused: list[tuple[Any, Any, str]] = [
        (a, short, "one shape and dtype"),
        (a, stream.zeros(4, np.int32), "one shape and dtype"),
        (b[1:], b[:3], "overlaps itself"),
        (
            wide[:, 0],
            np.zeros(8, np.uint32),
            "the destination of a copy from or to the host is strided",
        ),
        (a, np.zeros(8, np.uint32)[::2], "the source of .* host is strided"),
        (host, np.zeros(4, np.uint32), "NumPy copies those"),
        (read_only, a, "read-only"),
    ]
    for dst, src, text in refused:
        with pytest.raises(CopyError, match=text):
            stream.copy_batch([(a, b), (dst, src)])
    assert stream.to_host(a).tolist() == [0] * 4
    with stream.zeros(4, np.uint32) as closed:
        pass
    with pytest.raises(ClosedError):
        stream.copy_batch([(a, b), (closed, b)])


def test_wrong_arguments_are_named(stream: Stream) -> None:
    a = stream.zeros(4, np.uint32)
    wrong = cast(Any, stream.copy_batch)
    for pairs in (3, [3], [(a,)], [(a, [1, 2])], [(a, None)]):
        with pytest.raises(ArgumentTypeError, match=r"Stream\.copy_batch: "):
            wrong(pairs)
    orders: tuple[object, ...] = ("", "later", None, 1, [])
    for order in orders:
        with pytest.raises(ArgumentTypeError, match=r'"stream", "call" or "any"'):
            wrong([], source_order=order)
    with pytest.raises(ArgumentTypeError, match='ordinal or "host"'):
        wrong([], target_location="device")


def test_a_capture_records_no_batch(stream: Stream) -> None:
    a, b = stream.zeros(4, np.uint32), stream.to_device(np.ones(4, np.uint32))
    with stream.capture() as graph:
        with pytest.raises(StreamCaptureUnsupportedError, match=r"use Stream\.copy for each"):
            stream.copy_batch([(a, b)])
        stream.copy(a, b)
    with graph.instantiate() as run:
        run.launch(stream)
    assert stream.to_host(a).tolist() == [1] * 4


def test_a_batch_copies_between_devices() -> None:
    if len(cudadrv.list_devices()) < 2:
        pytest.skip("one device")
    here, there = (cudadrv.cuda_context_for(n).new_stream() for n in range(2))
    sources = parts(here)
    targets = [there.zeros(each.shape, np.uint32) for each in sources]
    there.copy_batch(zip(targets, sources, strict=True))
    assert all(
        np.array_equal(there.to_host(a), here.to_host(b))
        for a, b in zip(targets, sources, strict=True)
    )
    with pytest.raises(WrongDeviceError):
        there.copy_batch([(sources[3], here.zeros(3, np.uint32))])


def test_managed_arrays_are_moved_and_discarded(stream: Stream) -> None:
    if not stream.context.device.properties.concurrent_managed_access:
        pytest.skip("the device does not prefetch")
    arrays = [managed_empty(1 << 14, np.uint32) for _ in range(3)]
    for number, each in enumerate(arrays):
        each[...] = number
    stream.prefetch_batch(arrays)
    stream.copy_batch(
        [(stream.in_place(arrays[0]), stream.in_place(arrays[2]))],
        source_location=0,
        target_location="host",
    )
    stream.prefetch_batch([stream.in_place(arrays[0]), arrays[1]], "host")
    stream.synchronize()
    assert [int(each[5]) for each in arrays] == [2, 1, 2]
    stream.discard_batch([arrays[0]])
    stream.prefetch_batch([stream.in_place(arrays[1])], discard=True)
    for each in arrays[:2]:
        stream.fill(stream.in_place(each), 9)
    stream.synchronize()
    assert [int(each[-1]) for each in arrays] == [9, 9, 2]
    stream.discard_batch([])


class WithoutElements:
    def __iter__(self) -> Iterator[object]:
        raise ValueError("these elements are gone")


def test_only_managed_arrays_are_moved(stream: Stream) -> None:
    ordinary = np.zeros(4, np.uint32)
    for batch in (stream.prefetch_batch, stream.discard_batch):
        with pytest.raises(InvalidValueError, match="in no managed memory"):
            batch([ordinary])
        for wrong in (ordinary, 3, [3], WithoutElements()):
            with pytest.raises(ArgumentTypeError, match="arrays"):
                batch(cast(Any, wrong))
    with pytest.raises(ArgumentTypeError, match='ordinal or "host"'):
        stream.prefetch_batch([], "gpu")


def test_read_only_arrays_are_not_discarded(stream: Stream) -> None:
    array = managed_empty(4, np.uint32)
    array[:] = 7
    array.flags.writeable = False
    for batch in (stream.discard_batch, partial(stream.prefetch_batch, discard=True)):
        with pytest.raises(CopyError, match="read-only"):
            batch([managed_empty(4, np.uint32), array])
        with pytest.raises(ArgumentValueError, match="read-only"):
            batch([stream.in_place(array)])
    stream.prefetch_batch([array])
    stream.synchronize()
    assert array.tolist() == [7] * 4


def test_the_copy_that_failed_is_one_more_result_of_older_bindings(stream: Stream) -> None:
    copy_batch = current().api.cuMemcpyBatchAsync

    def of_12_9(*given: Any) -> tuple[Any, int]:
        return copy_batch(*given)[0], 2**64 - 1

    a, b = stream.zeros(4, np.uint32), stream.to_device(np.ones(4, np.uint32))
    with replaced_calls(cuMemcpyBatchAsync=of_12_9):
        stream.copy_batch([(a, b)])
    assert stream.to_host(a).tolist() == [1] * 4


def test_an_older_driver_is_named(stream: Stream) -> None:
    def lacked(*_: object) -> None:
        raise DriverSymbolMissingError("it is not in the installed driver")

    managed = managed_empty(4, np.uint32)
    a, b = stream.zeros(4, np.uint32), stream.zeros(4, np.uint32)
    names = ("cuMemcpyBatchAsync", "cuMemPrefetchBatchAsync", "cuMemDiscardBatchAsync")
    version = ".".join(map(str, cudadrv.driver_version()))
    calls: list[tuple[str, Callable[[], None]]] = [
        ("copy_batch needs .* 12.8", lambda: stream.copy_batch([(a, b)])),
        ("prefetch_batch needs .* 13.0", lambda: stream.prefetch_batch([managed])),
        ("discard_batch needs .* 13.0", lambda: stream.discard_batch([managed])),
    ]
    for needed, call in calls:
        match = f"{needed}: the driver has CUDA {version}"
        with (
            replaced_calls(**dict.fromkeys(names, lacked)),
            pytest.raises(UnsupportedError, match=match),
        ):
            call()


def test_strided_device_arrays_are_copied(stream: Stream) -> None:
    given = np.arange(6 * 8 * 10, dtype=np.float32).reshape(6, 8, 10)
    whole = stream.to_device(given)
    small = stream.to_device(np.arange(12, dtype=np.int16))
    targets: list[Any] = [
        stream.zeros((6, 8, 4), np.float32),
        stream.zeros((8, 6), np.float32),
        stream.zeros((3, 20), np.float32)[:, 5:15],
        stream.zeros((4, 3), np.int16).T,
        stream.zeros(5, np.int16),
        stream.zeros(12, np.int16),
    ]
    sources: list[Any] = [
        whole[:, :, 3:7],
        whole[:, :, 2].T,
        whole[::2, 1, :],
        small.reshape((3, 4)),
        small[2:7][::-1],
        small,
    ]
    expected = [
        given[:, :, 3:7],
        given[:, :, 2].T,
        given[::2, 1, :],
        np.arange(12).reshape(3, 4),
        np.arange(12)[2:7][::-1],
        np.arange(12),
    ]
    stream.copy_batch(zip(targets, sources, strict=True))
    assert same(stream, targets, expected)


def test_a_strided_copy_waits_for_other_streams(stream: Stream) -> None:
    with stream.context.new_stream() as other:
        source = other.zeros((20, 30), np.int32)
        other.fill(source, 4)
        target = other.zeros((10, 30), np.int32)
        stream.copy_batch([(target, source[::2])])
        assert (other.to_host(target) == 4).all()


def test_strided_copies_that_do_not_fit_a_batch_are_rejected(stream: Stream) -> None:
    array = stream.to_device(np.arange(5000, dtype=np.int8))
    with pytest.raises(CopyError, match="overlaps itself"):
        stream.copy_batch([(array[::2], array[1::2])])
    with pytest.raises(CopyError, match="from or to the host is strided"):
        stream.copy_batch([(np.zeros(2500, np.int8), array[::2])])
    scattered = stream.zeros((34,) * 4, np.int8).transpose(3, 2, 1, 0)
    with pytest.raises(CopyError, match="more than 1024 boxes"):
        stream.copy_batch([(stream.zeros(scattered.shape, np.int8), scattered)])
    with pytest.raises(InvalidValueError, match="overlap each other"):
        one = stream.zeros((1, 5), np.int8)
        stream.copy_batch(
            [(DeviceArray(one.buffer, (3, 5), np.int8, 0, (0, 1)), stream.zeros((3, 5), np.int8))]
        )
    assert stream.to_host(array).tolist() == np.arange(5000).astype(np.int8).tolist()
