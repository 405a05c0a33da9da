"""Copies that go through the staging ring, on the emulator and on a GPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv.memory import copy as copies
from cudadrv.memory.staging import LEAST_STAGED_BYTES, StagingRing
from tests.several_threads import all_at_once
from tests.short_cases import few

MiB = 1 << 20
# Around the least that is staged, around a chunk, and more than the ring holds at once.
SIZES = [
    LEAST_STAGED_BYTES - 1,
    LEAST_STAGED_BYTES,
    LEAST_STAGED_BYTES + 1,
    4 * MiB + 4095,
    64 * MiB,
    65 * MiB + 3,
]


def noise(nbytes: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.frombuffer(np.random.default_rng(seed).bytes(nbytes), np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_makes_the_round_trip(stream: cudadrv.Stream, nbytes: int) -> None:
    source = noise(nbytes)
    device = stream.to_device(source)
    assert np.array_equal(stream.to_host(device), source)


@pytest.mark.slow
def test_the_array_may_be_changed_when_the_copy_returns(stream: cudadrv.Stream) -> None:
    source = noise(24 * MiB).copy()
    expected = source.copy()
    devices = []
    for number in range(4):
        devices.append(stream.to_device(source))
        source += 1
        assert number < 4
    for number, device in enumerate(devices):
        assert np.array_equal(stream.to_host(device), expected + np.uint8(number))


@pytest.mark.slow
def test_copies_keep_the_streams_order(stream: cudadrv.Stream) -> None:
    device = stream.empty(16 * MiB, "u1")
    ones = np.ones(16 * MiB, np.uint8)
    out = np.empty_like(ones)
    for value in (3, 5, 7):
        stream.fill(device, value)
        stream.to_host(device, out=out)
        assert (out == value).all()
        stream.copy(device, ones)
        stream.to_host(device, out=out)
        assert (out == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "view", few([(np.s_[::3, 5:-7],), (np.s_[:, ::2],), (np.s_[1:2],), (np.s_[::-1],)], 2)
)
def test_strided_arrays_are_gathered_and_scattered(
    stream: cudadrv.Stream, view: tuple[slice, ...], order: str
) -> None:
    whole = np.arange(8 * MiB, dtype="f8").reshape(4096, 2048)
    if order == "F":
        whole = np.asfortranarray(whole)
    source = whole[view]
    device = stream.to_device(source)
    assert np.array_equal(stream.to_host(device), source)
    target = np.zeros_like(whole)
    stream.to_host(device, out=target[view])
    assert np.array_equal(target[view], source)
    target[view] = 0
    assert not target.any()


@pytest.mark.parametrize("shape", [(1, 1, 5 * MiB), (5 * MiB, 1), (7, 3, 250_000), (2, 2, 2, MiB)])
def test_shapes_with_short_and_long_axes(stream: cudadrv.Stream, shape: tuple[int, ...]) -> None:
    doubled = np.arange(2 * np.prod(shape), dtype="i4").reshape(*shape[:-1], 2 * shape[-1])
    source = doubled[..., ::2]
    assert np.array_equal(stream.to_host(stream.to_device(source)), source)


@pytest.mark.slow
def test_structured_and_dated_elements(stream: cudadrv.Stream) -> None:
    records = np.zeros(2_400_000, dtype=[("a", "i4"), ("b", "f8"), ("c", "S3")])
    records["a"], records["b"], records["c"] = np.arange(2_400_000), 0.5, b"xyz"
    dates = np.arange(2_400_000).astype("M8[s]")
    for source in (records, records[::2], dates, dates[::-1]):
        assert np.array_equal(stream.to_host(stream.to_device(source)), source)


def test_read_only_arrays_are_read(stream: cudadrv.Stream) -> None:
    source = noise(17 * MiB)
    assert not source.flags.writeable
    assert np.array_equal(stream.to_host(stream.to_device(source)), source)


@pytest.mark.slow
def test_threads_and_contexts_share_the_copy_threads() -> None:
    failures: list[int] = []

    def work(seed: int) -> None:
        ordinal = seed % len(cudadrv.list_devices())
        with cudadrv.cuda_context_for(ordinal).new_stream() as stream:
            source = noise(20 * MiB + seed, seed)
            same = [
                np.array_equal(stream.to_host(stream.to_device(source)), source) for _ in range(3)
            ]
        if not all(same):
            failures.append(seed)

    all_at_once([partial(work, seed) for seed in range(6)])
    assert not failures


def test_a_context_of_ones_own_has_a_ring_of_its_own() -> None:
    source = noise(LEAST_STAGED_BYTES + MiB)
    for _ in range(3):
        with cudadrv.Context.create(0) as own, own.new_stream() as stream:
            assert np.array_equal(stream.to_host(stream.to_device(source)), source)
            own._drop(StagingRing)
            assert np.array_equal(stream.to_host(stream.to_device(source)), source)


def test_pinned_arrays_need_not_be_waited_for(stream: cudadrv.Stream) -> None:
    nbytes = 17 * MiB
    source, target = cudadrv.pinned_empty(nbytes, "u1"), cudadrv.pinned_empty(nbytes, "u1")
    source[:] = noise(nbytes)
    target[:] = 0
    device = stream.empty(nbytes, "u1")
    copies.copy(stream, device, source, wait=False)
    copies.copy(stream, target, device, wait=False)
    stream.synchronize()
    assert np.array_equal(target, source)


@pytest.mark.parametrize("nbytes", [64, 16 << 10, 3 * MiB, 17 * MiB])
def test_ordinary_arrays_are_waited_for_whatever_is_requested(
    stream: cudadrv.Stream, nbytes: int
) -> None:
    source = noise(nbytes).copy()
    expected = source.copy()
    device = stream.empty(nbytes, "u1")
    copies.copy(stream, device, source, wait=False)
    source[:] = 0
    target = np.zeros(2 * nbytes, np.uint8)[::2]
    copies.copy(stream, target, device, wait=False)
    assert np.array_equal(target, expected)


def test_a_captured_copy_reads_the_array_at_each_replay(stream: cudadrv.Stream) -> None:
    source = cudadrv.pinned_empty(3 * MiB, "u1")
    device = stream.empty(3 * MiB, "u1")
    with stream.capture() as graph:
        stream.copy(device, source)
    ready = graph.instantiate()
    for value in (1, 2):
        source[:] = value
        ready.launch(stream)
        assert (stream.to_host(device) == value).all()


def test_a_strided_array_cannot_be_captured(stream: cudadrv.Stream) -> None:
    device = stream.empty(8, "u1")
    with (
        pytest.raises(cudadrv.errors.CopyError, match="strided array cannot be captured"),
        stream.capture(),
    ):
        stream.copy(device, np.zeros(16, np.uint8)[::2])
    stream.synchronize()
